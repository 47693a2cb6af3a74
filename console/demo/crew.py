"""The workers of a run: real `sendonce worker` processes, killed and replaced, frozen and thawed."""

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from sqlalchemy import Engine

from console.db import transaction
from console.demo import store
from console.demo.children import Child, Children, sendonce
from console.errors import SendonceError


@dataclass
class Crew:
    """Workers by their place, 0 and up; whoever is killed is replaced at once."""

    children: Children
    environ: Mapping[str, str]
    engine: Engine
    dead_after_s: float
    size: int = 2
    kills: int = 0
    freezes: int = 0
    workers: list[Child] = field(default_factory=list)
    frozen: dict[int, Child] = field(default_factory=dict)
    _hired: int = 0

    def start(self) -> None:
        self.workers = [self._hire() for _ in range(self.size)]

    def wait_until_alive(self, *, within_s: float = 60.0) -> None:
        """Returns when each worker is registered.

        Raises: SendonceError when one has ended, with the end of its log, or the time is up.
        """
        deadline = time.monotonic() + within_s
        while not all(self.is_working(place) for place in range(self.size)):
            self.check()
            if time.monotonic() > deadline:
                raise SendonceError(f"The workers did not start within {within_s:g} s.{self.workers[0].log_tail()}")
            time.sleep(0.05)

    def check(self) -> None:
        """Raises: SendonceError when a worker has ended by itself."""
        for child in self.workers:
            if not child.is_alive():
                code = child.running.returncode
                raise SendonceError(f"A worker ended by itself (exit code {code}).{child.log_tail()}")

    def kill(self, place: int) -> None:
        """SIGKILL, and a new worker in its place."""
        self.workers[place].kill()
        self.frozen.pop(place, None)
        self.kills += 1
        self.workers[place] = self._hire()

    def freeze(self, place: int) -> None:
        """SIGSTOP."""
        self.workers[place].freeze()
        self.frozen[place] = self.workers[place]
        self.freezes += 1

    def thaw(self, place: int) -> None:
        """SIGCONT."""
        self.frozen.pop(place).thaw()

    def is_working(self, place: int) -> bool:
        """Tells whether the worker is registered and not declared dead."""
        return "alive" in self._identities(self.workers[place]).values()

    def is_taken_over(self, place: int) -> bool:
        """Tells whether the worker has been declared dead and holds no row any more."""
        identities = self._identities(self.workers[place])
        if not identities or set(identities.values()) & {"alive"}:
            return False
        with transaction(self.engine) as session:
            return store.held_count(session, identities) == 0

    def _identities(self, child: Child) -> dict[int, str]:
        with transaction(self.engine) as session:
            return store.identities_of(session, host=os.uname().nodename, pid=child.pid)

    def _hire(self) -> Child:
        self._hired += 1
        return self.children.start(f"worker {self._hired}", sendonce("worker"), environ=self.environ)
