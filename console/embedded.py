"""The embedded PostgreSQL: started in the data directory when no database URL is given, shared by all processes there."""

from collections.abc import Iterator
from contextlib import contextmanager

from console.config import Settings
from console.errors import DatabaseError


@contextmanager
def database_url(settings: Settings) -> Iterator[str]:
    """Gives the database's URL: the one in the settings, or that of the embedded server, held while the block runs.

    Raises: DatabaseError when the embedded server can't be started, with the reason.
    """
    if settings.database_url is None:
        raise DatabaseError("The embedded server is not built yet; set SENDONCE_DATABASE_URL.")
    yield settings.database_url
