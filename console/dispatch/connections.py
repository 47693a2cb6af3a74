"""The channels of one pump: opened without holding up the thread, kept, heard through one epoll, closed when idle."""

import os
import select
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress

from console.providers.base import Channel, Provider, Trouble

IDLE_CLOSE_S = 30.0
# While other channels work, how long to wait after one could not be opened.
OPEN_AGAIN_S = 5.0


class Connections:
    """Knows which channels there are and which are free; nothing of messages."""

    def __init__(self, provider: Provider, *, most: int):
        self._provider = provider
        self._most = most
        self._openers = ThreadPoolExecutor(max_workers=most, thread_name_prefix="opener")
        self._opens_at = 0.0
        self._opening: deque[Future[Channel | Trouble]] = deque()
        self._epoll = select.epoll()
        self._wake_read, self._wake_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._epoll.register(self._wake_read, select.EPOLLIN)
        self._channels: dict[int, Channel] = {}
        self._writing: set[int] = set()
        self._free: list[tuple[Channel, float]] = []

    def __iter__(self) -> Iterator[Channel]:
        return iter(list(self._channels.values()))

    def __getitem__(self, fd: int) -> Channel:
        return self._channels[fd]

    def __len__(self) -> int:
        return len(self._channels)

    @property
    def is_opening(self) -> bool:
        return bool(self._opening)

    def wake(self) -> None:
        """Ends a `wait` early; may be called from any thread."""
        # A full pipe means that it is awake as can be.
        with suppress(BlockingIOError):
            os.write(self._wake_write, b".")

    def watch(self, fd: int) -> None:
        """Lets `wait` also tell of this descriptor (the database's)."""
        self._epoll.register(fd, select.EPOLLIN)

    def wait(self, timeout_s: float) -> tuple[list[Channel], bool]:
        """Waits until something can be heard; gives the channels, and whether a watched descriptor has something."""
        channels, has_other = [], False
        for fd, _ in self._epoll.poll(timeout_s):
            channel = self._channels.get(fd)
            if channel is not None:
                channels.append(channel)
            elif fd == self._wake_read:
                os.read(fd, 4096)
            else:
                has_other = True
        return channels, has_other

    def take_free(self) -> Channel | None:
        """Gives a channel that carries no message; the most recently used, since it is the least likely to be dead."""
        while self._free:
            channel, _ = self._free.pop()
            if channel.is_open:
                return channel
        return None

    def put_free(self, channel: Channel, now: float) -> None:
        self._free.append((channel, now))

    def rest(self, now: float) -> None:
        """The provider takes no more channels than there are: opens none for a while."""
        self._opens_at = now + OPEN_AGAIN_S

    def open_to(self, wanted: int, now: float) -> None:
        """Starts opening channels until there are `wanted`, those being opened included; not while it rests."""
        if now < self._opens_at:
            return
        for _ in range(min(wanted, self._most) - len(self._channels) - len(self._opening)):
            future = self._openers.submit(self._provider.connect)
            self._opening.append(future)
            future.add_done_callback(lambda _: self.wake())

    def take_opened(self, now: float) -> list[Trouble]:
        """Takes in the channels that are open now; gives what stood in the way of the others."""
        troubles = []
        for _ in range(len(self._opening)):
            future = self._opening.popleft()
            if not future.done():
                self._opening.append(future)
                continue
            match future.result():
                case Trouble() as trouble:
                    troubles.append(trouble)
                case channel:
                    self._channels[channel.fileno()] = channel
                    self._epoll.register(channel.fileno(), select.EPOLLIN)
                    self._free.append((channel, now))
        return troubles

    def look_after(self, channel: Channel) -> None:
        """To be called after a channel was used: forgets a closed one, waits for room when it has more to write."""
        fd = channel.fileno()
        if not channel.is_open:
            self._channels.pop(fd, None)
            self._writing.discard(fd)
        elif channel.wants_write != (fd in self._writing):
            self._writing.symmetric_difference_update({fd})
            self._epoll.modify(fd, select.EPOLLIN | select.EPOLLOUT if channel.wants_write else select.EPOLLIN)

    def drop(self, fd: int) -> None:
        """Closes a channel at once: before the terminator only that surely stops its message."""
        channel = self._channels[fd]
        channel.close()
        self.look_after(channel)

    def drop_free(self) -> None:
        while (channel := self.take_free()) is not None:
            channel.quit()
            self.look_after(channel)

    def close_idle(self, now: float) -> None:
        while self._free and self._free[0][1] + IDLE_CLOSE_S < now:
            channel, _ = self._free.pop(0)
            channel.quit()
            self.look_after(channel)

    def close(self) -> None:
        for channel in self:
            channel.quit()
        self._openers.shutdown(wait=False, cancel_futures=True)
        for future in self._opening:
            future.add_done_callback(_quit)


def _quit(future: "Future[Channel | Trouble]") -> None:
    if not future.cancelled() and not isinstance(future.result(), Trouble):
        future.result().quit()  # type: ignore[union-attr]
