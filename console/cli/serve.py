"""`sendonce serve` and `sendonce worker`: the processes that stay."""

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

import click
from flask import Flask
from waitress.server import BaseWSGIServer, MultiSocketServer, create_server

from console.app import create_app
from console.cli.root import Opened, cli, open_installation
from console.db import make_engine
from console.dispatch.worker import Worker
from console.errors import SendonceError
from console.scheduler import Scheduler, ticks

WEB_THREADS = 8
# Together with the embedded server's own stop these stay below the 10 seconds that supervisors grant.
DRAIN_S = 6.0
END_S = 7.5
TICK_STOP_S = 1.0
SIGNAL_LOOK_S = 1.0

WebServer = BaseWSGIServer | MultiSocketServer


@cli.command("serve")
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option("--port", default=8080, show_default=True, type=click.IntRange(0, 65535), help="0: any free one.")
@click.option("--no-scheduler", is_flag=True, help="The web console alone: no ticks, no sending.")
def serve(host: str, port: int, no_scheduler: bool) -> None:
    """Serve the console, run the ticks and send, in one process.

    Behind a proxy, which also ends TLS, set SENDONCE_TRUSTED_PROXIES to how many there are, and let nobody reach this
    address but them; else all people share one machine's limit on failed sign-ins.
    """
    with open_installation() as opened:
        web_engine = make_engine(opened.url, pool_size=WEB_THREADS)
        server = _listen(create_app(opened.settings, web_engine), host=host, port=port)
        try:
            if no_scheduler:
                _serve(server)
            else:
                with _sending(opened) as sending:
                    _serve(server, sending)
        finally:
            server.close()
            web_engine.dispose()


@cli.command("worker")
def worker() -> None:
    """Run the ticks and send, without the web console; any number of them, on any number of machines."""
    is_over = threading.Event()
    with open_installation() as opened, _sending(opened) as sending:

        def stop() -> None:
            sending.begin_to_end()
            is_over.set()

        _on_stop(stop)
        click.echo("Sending (Ctrl-C stops).")
        # Not one endless wait: a signal that came while the process was stopped (SIGSTOP) may go to another thread
        # when it goes on, and Python runs its handler only when this one comes around.
        while not is_over.wait(SIGNAL_LOOK_S):
            pass


class _Sending:
    """The worker and the scheduler of this process; both are over END_S after the end was asked for."""

    def __init__(self, opened: Opened):
        self._engine = make_engine(opened.url)
        self._scheduler = Scheduler(ticks(opened.settings), self._engine, opened.settings)
        self._worker = Worker(opened.settings, opened.url)
        self._ends_at: float | None = None

    def start(self) -> None:
        self._worker.start()
        self._scheduler.start()

    def begin_to_end(self) -> float:
        """Takes no new work from now on and returns at once; gives when all must be over."""
        if self._ends_at is None:
            self._ends_at = time.monotonic() + END_S
            self._worker.drain(within_s=DRAIN_S)
        return self._ends_at

    def end(self) -> None:
        ends_at = self.begin_to_end()
        self._scheduler.stop(within_s=TICK_STOP_S)
        self._worker.join(max(0.1, ends_at - time.monotonic()))
        self._engine.dispose()


@contextmanager
def _sending(opened: Opened) -> Iterator[_Sending]:
    sending = _Sending(opened)
    sending.start()
    try:
        yield sending
    finally:
        sending.end()


def _listen(app: Flask, *, host: str, port: int) -> WebServer:
    try:
        # What proxies say is left for the app, which knows how many of them to believe (web/proxies.py).
        return create_server(
            app,
            host=host,
            port=port,
            threads=WEB_THREADS,
            ident=None,
            clear_untrusted_proxy_headers=False,
            asyncore_use_poll=True,
        )
    except OSError as error:
        raise SendonceError(
            f"The console can't listen on {host}:{port} ({error.strerror or error}):"
            " choose another place with --host or --port."
        ) from error


def _serve(server: WebServer, sending: _Sending | None = None) -> None:
    def stop() -> NoReturn:
        if sending is not None:
            sending.begin_to_end()
        raise SystemExit  # waitress ends its loop by it, and waits a little for answers that are under way

    _on_stop(stop)
    for host, port in _addresses(server):
        click.echo(f"The console is at http://{host}:{port} (Ctrl-C stops it).")
    server.run()


def _addresses(server: WebServer) -> list[tuple[str, int]]:
    if isinstance(server, MultiSocketServer):
        return list(server.effective_listen or [])
    assert server.socket is not None  # bound since it was made
    host, port, *_ = server.socket.getsockname()
    return [(host, port)]


def _on_stop(stop: Callable[[], None]) -> None:
    """Calls `stop` at the first SIGTERM or Ctrl-C; the next ones find the end already under way."""

    def first(_number: int, _frame: FrameType | None) -> None:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)
        stop()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, first)
