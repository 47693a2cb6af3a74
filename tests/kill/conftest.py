"""What several tests that kill need: a PostgreSQL of their own, which may be killed too."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from console import placement
from console.placement import Place
from console.postgres import Server


@pytest.fixture
def server_place() -> Iterator[Place]:
    """The place of a PostgreSQL of the test's own, which runs, and which nobody starts again but the test."""
    # Not below pytest's own folder, which is closed to the user that the server runs as when we are root.
    with tempfile.TemporaryDirectory(prefix="sendonce-kill-") as folder:
        Path(folder).chmod(0o711)
        place = placement.find(Path(folder) / "data")
        server = Server(place)
        server.start()
        server.make_database("sendonce")
        yield place
        server.stop()
