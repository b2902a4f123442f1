"""Around all else: every request is counted, timed and logged, whatever becomes of it.

A line of the log has the time, the method, the route, the status, milliseconds and the bytes in and out. It never has
the text that was sent, nor an address as the client wrote it, in which there may be text too.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from foreword.serve.limits import OPEN, OWN_FAULT, App, Message, Receive, Refusal, Scope, Send, refuse
from foreword.serve.metrics import Metrics

METHODS = ("GET", "POST", "HEAD", "OPTIONS", "PUT", "PATCH", "DELETE")
OTHER = "other"
GONE = 499
"""Status of a request whose client left before the answer began, as other servers log it."""

LATE = "foreword.late"
"""Where a scope has the status of a request that was given up, if not this one."""

LOG_EVERY = 0.2
"""Seconds after which lines are written, all that there are at once."""


log = logging.getLogger("foreword.serve")


def tell_place(error: Exception) -> None:
    """Where something went wrong is logged; what was asked is not, and an error's message may hold it."""
    trace, places = error.__traceback__, list[str]()
    while trace is not None:
        places.append(f"{Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}")
        trace = trace.tb_next
    log.error("%s at %s", type(error).__name__, " < ".join(reversed(places)))


class Log:
    """Lines, gathered for a moment: a write for each would be a good part of a short request."""

    def __init__(self, write: Callable[[str], object] | None) -> None:
        self._write = write
        self._lines: list[str] = []
        self._second, self._told = 0, ""

    def add(self, method: str, route: str, status: int, seconds: float, read: int, sent: int) -> None:
        if self._write is None:
            return
        if not self._lines:
            asyncio.get_running_loop().call_later(LOG_EVERY, self.flush)
        second, thousandths = divmod(int(1000 * time.time()), 1000)
        if second != self._second:
            told = datetime.fromtimestamp(second, UTC).isoformat().removesuffix("+00:00")
            self._second, self._told = second, told
        now = f"{self._told}.{thousandths:03}Z"
        self._lines.append(f"{now} {method} {route} {status} {1000 * seconds:.1f}ms {read}B {sent}B\n")

    def flush(self) -> None:
        if self._lines and self._write is not None:
            lines, self._lines = self._lines, []
            self._write("".join(lines))


class Counted:
    """An ASGI application around the guarded one."""

    def __init__(self, app: App, metrics: Metrics, log: Log, routes: set[str]) -> None:
        self.app, self.metrics, self.log, self.routes = app, metrics, log, routes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began = time.perf_counter()
        status, sent = GONE, 0

        async def counting(message: Message) -> None:
            nonlocal status, sent
            if message["type"] == "http.response.start":
                status = message["status"]
            else:
                sent += len(message.get("body", b""))
            await send(message)

        self.metrics.in_flight += 1
        try:
            await self.app(scope, receive, counting)
        except Exception as error:
            tell_place(error)
            if status == GONE:
                await refuse(Refusal(500, OWN_FAULT), counting)
        finally:
            self.metrics.in_flight -= 1
            seconds = time.perf_counter() - began
            status = scope.get(LATE, GONE) if status == GONE else status
            route = scope["path"] if scope["path"] in self.routes else OTHER
            method = scope["method"] if scope["method"] in METHODS else OTHER
            self.metrics.request(method, route, status, seconds)
            if route not in OPEN:  # who looks after servers asks every few seconds
                self.log.add(method, route, status, seconds, scope.get("foreword.bytes", 0), sent)
