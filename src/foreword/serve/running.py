"""A server from its first socket to its last answer."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from types import FrameType
from typing import Any

from foreword.errors import InputError
from foreword.serve.connection import RESERVED, Connection
from foreword.serve.limits import Limits
from foreword.serve.loading import Reloader, Source, in_daemon_thread
from foreword.serve.registry import Registry
from foreword.serve.routes import Service

RELOAD_EVERY = 1.0
"""Seconds between two checks whether a model has been replaced."""

OTHER_FILES, WANTED_FILES = 64, 4096
"""Open files that are not connections: models, logs, the socket itself; and how many files a server would like."""

SWITCH = 0.0005
"""Seconds until a thread that computes in Python lets another run: with Python's own five milliseconds, worker threads
and a busy event loop make each other wait ten times as long."""

TICK = 0.05
"""Seconds between two checks of all connections."""


class Server:
    """Accepts connections, loads models while it already answers, and shuts down gracefully.

    grace: seconds for requests that have begun when the server is to end. failed: why it ended before it was ready.
    """

    def __init__(
        self,
        service: Service,
        reloader: Reloader | None = None,
        *,
        grace: float = 10.0,
        reload_every: float | None = RELOAD_EVERY,
    ) -> None:
        self.service, self.reloader, self.grace, self.reload_every = service, reloader, grace, reload_every
        self.started = self.should_exit = self.impatient = False
        self.failed: BaseException | None = None
        self.connections: set[Connection] = set()
        self.most_connections = min(service.limits.connections, _affordable_connections())
        self.cut_off = 0  # requests that had not ended after ``grace`` seconds

    def run(self, bound: socket.socket) -> None:
        """Serve on a listening socket until SIGTERM, Ctrl-C or ``should_exit``."""
        sys.setswitchinterval(SWITCH)
        with self._signals():
            asyncio.run(self._serve(bound))

    async def _serve(self, bound: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        accepting = await loop.create_server(self._connection, sock=bound)
        loading = None if self.reloader is None else asyncio.create_task(self._load(self.reloader))
        self.started = True
        while not self.should_exit:
            await self._tick()
        self.service.batcher.closing = True
        if loading is not None:
            loading.cancel()
        accepting.close()
        await self._finish()
        self.service.access_log.flush()
        self.service.batcher.close()

    def _connection(self) -> Connection:
        return Connection(self.service, self.connections, self.most_connections)

    async def _tick(self) -> None:
        due = time.monotonic() + TICK
        await asyncio.sleep(TICK)
        now = time.monotonic()
        self.service.admission.observe(now - due)
        for connection in list(self.connections):
            connection.check(now)

    async def _finish(self) -> None:
        """Let requests that have begun end, for ``grace`` seconds, then cut them off."""
        until = time.monotonic() + self.grace
        for connection in list(self.connections):
            connection.close_when_idle()
        while self.connections and time.monotonic() < until and not self.impatient:
            await self._tick()
        self.cut_off = self.service.metrics.in_flight
        for connection in list(self.connections):
            connection.transport.abort()

    async def _load(self, reloader: Reloader) -> None:
        try:
            await in_daemon_thread(reloader.load_all)
        except BaseException as error:
            self.failed, self.should_exit = error, True
            return
        if self.reload_every is not None:
            await reloader.watch(self.reload_every)

    @contextlib.contextmanager
    def _signals(self) -> Iterator[None]:
        """End on SIGINT and SIGTERM; a second one does not wait for requests."""

        def end(number: int, frame: FrameType | None) -> None:
            self.impatient, self.should_exit = self.should_exit, True

        with contextlib.ExitStack() as stack:
            if threading.current_thread() is threading.main_thread():
                for name in (signal.SIGINT, signal.SIGTERM):
                    stack.callback(signal.signal, name, signal.signal(name, end))
            yield


def serve(
    sources: Sequence[Source],
    host: str,
    port: int,
    *,
    token: str | None = None,
    limits: Limits | None = None,
    grace: float = 10.0,
    watch: bool = True,
    log: Callable[[str], object] | None = None,
    ready: Callable[[str], None] | None = None,
) -> bool:
    """Serve models until SIGTERM or Ctrl-C; return whether every request had ended after ``grace`` seconds.

    ready: called with the address once it is listened on, which is before models are loaded.
    """
    registry = Registry()
    service = Service(registry, token=token, limits=limits, log=log)
    reloader = Reloader(registry, sources, service.metrics)
    server = Server(service, reloader, grace=grace, reload_every=RELOAD_EVERY if watch else None)
    with listening(host, port) as bound:
        if ready is not None:
            ready(address_of(bound, host))
        server.run(bound)
    if server.failed is not None:
        raise server.failed
    return not server.cut_off


def _affordable_connections() -> int:
    """Return how many connections the process may open, next to the files of its models; raise that limit if it can."""
    if sys.platform == "win32":
        return 1 << 16
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < WANTED_FILES:
        wanted = WANTED_FILES if hard == resource.RLIM_INFINITY else min(hard, WANTED_FILES)
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
            soft = wanted
    return max(1, soft - RESERVED - OTHER_FILES)


def listening(host: str, port: int) -> socket.socket:
    """Return a socket that listens; raise an InputError if the address is taken, before anything is loaded."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # The protocol is named, so that accepted sockets have it too: asyncio sends without delay only on those.
    bound = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((host, port))
        bound.listen(1024)  # clients that come before the server is ready wait instead of being refused
    except OSError as error:
        bound.close()
        raise InputError(f"cannot listen on {host}:{port}: {error.strerror or error}; try another --port") from error
    return bound


def address_of(bound: socket.socket, host: str, token: str | None = None) -> str:
    """Return the address of the server as a link."""
    shown = f"[{host}]" if ":" in host else host
    port: Any = bound.getsockname()[1]
    return f"http://{shown}:{port}/" + (f"?token={token}" if token else "")
