"""A server from its first socket to its last answer."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from foreword.errors import InputError, MissingExtraError
from foreword.serve.batches import Desk
from foreword.serve.connection import door
from foreword.serve.counted import Counted, Log
from foreword.serve.limits import Guard, Limits
from foreword.serve.loading import Keeper, Source, beside
from foreword.serve.metrics import Metrics
from foreword.serve.quick import Quick
from foreword.serve.registry import Shelf
from foreword.serve.routes import service

try:
    import uvicorn
except ImportError:
    raise MissingExtraError("uvicorn", "lab", "a server") from None

LOOK_EVERY = 1.0
"""Seconds between two looks at the models' folders."""

KEEP_ALIVE = 15
"""Seconds that a connection may be silent between two requests."""


class Service:
    """Models, and all that stands between them and a client. reading: what reads HTTP, see ``door``."""

    def __init__(
        self,
        shelf: Shelf,
        *,
        token: str | None = None,
        limits: Limits | None = None,
        log: Callable[[str], object] | None = None,
        reading: Any = None,
    ) -> None:
        self.shelf, self.reading = shelf, reading
        self.limits = Limits() if limits is None else limits
        self.metrics = Metrics()
        self.desk = Desk(self.limits, self.metrics)
        self.log = Log(log)
        app = service(shelf, "Foreword", self.desk)
        routes = {getattr(route, "path", "") for route in app.routes}
        guard = Guard(
            Quick(app, shelf, self.desk),
            token=token,
            most_bytes=self.limits.body,
            at_once=self.limits.at_once,
        )
        self.app = Counted(guard, self.metrics, self.log, routes)

    def config(self, grace: float) -> uvicorn.Config:
        return uvicorn.Config(
            self.app,
            http=door(self.limits, self.metrics, self.reading),
            ws="none",
            loop="asyncio",
            lifespan="off",
            log_config=None,
            access_log=False,
            proxy_headers=False,  # where a client is does not matter to anything here
            server_header=False,
            timeout_keep_alive=KEEP_ALIVE,
            timeout_graceful_shutdown=max(1, round(grace)),
        )


class Server(uvicorn.Server):
    """uvicorn's, which loads models while it already answers, and ends a quiet end with status 0.

    failed: why it ended before it was ready.
    """

    def __init__(
        self, made: Service, keeper: Keeper | None = None, *, grace: float = 10.0, look_every: float | None = LOOK_EVERY
    ) -> None:
        super().__init__(made.config(grace))
        self.made, self.keeper, self.look_every = made, keeper, look_every
        self.failed: BaseException | None = None
        self._keeping: asyncio.Task[None] | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        # What is no HTTP, and what is cut off at the end, is counted; where errors are is told by ourselves.
        logging.getLogger("uvicorn").setLevel(logging.CRITICAL)
        await super().startup(sockets)
        if self.keeper is not None:
            self._keeping = asyncio.create_task(self._keep(self.keeper))

    async def _keep(self, keeper: Keeper) -> None:
        try:
            await beside(keeper.load_all)
        except BaseException as error:
            self.failed, self.should_exit = error, True
            return
        if self.look_every is not None:
            await keeper.watch(self.look_every)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self.made.desk.closing = True
        if self._keeping is not None:
            self._keeping.cancel()
        await super().shutdown(sockets)
        self.made.log.flush()
        self.made.desk.close()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """As uvicorn does, without being killed by the same signal after a good end."""
        with contextlib.ExitStack() as stack:
            if threading.current_thread() is threading.main_thread():
                import signal

                for name in (signal.SIGINT, signal.SIGTERM):
                    before = signal.signal(name, self.handle_exit)
                    stack.callback(signal.signal, name, before)
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
    """Until SIGTERM or Ctrl-C. ready: told the address once it is listened on, which is before models are loaded.

    Whether every request had ended after ``grace`` seconds.
    """
    shelf = Shelf()
    made = Service(shelf, token=token, limits=limits, log=log)
    keeper = Keeper(shelf, sources, made.metrics)
    server = Server(made, keeper, grace=grace, look_every=LOOK_EVERY if watch else None)
    with listening(host, port) as bound:
        if ready is not None:
            ready(address_of(bound, host))
        server.run([bound])
    if server.failed is not None:
        raise server.failed
    return not made.metrics.in_flight


def listening(host: str, port: int) -> socket.socket:
    """A socket that is bound and listens: an address that is taken is told before anything is loaded."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # The protocol is named, so that accepted sockets have it too: asyncio sends without delay only on those.
    bound = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((host, port))
        bound.listen(1024)  # who comes before the server is ready waits, and is not turned away
    except OSError as error:
        bound.close()
        raise InputError(f"cannot listen on {host}:{port}: {error.strerror or error}; try another --port") from error
    return bound


def address_of(bound: socket.socket, host: str, token: str | None = None) -> str:
    shown = f"[{host}]" if ":" in host else host
    port: Any = bound.getsockname()[1]
    return f"http://{shown}:{port}/" + (f"?token={token}" if token else "")
