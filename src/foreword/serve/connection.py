"""Connections: uvicorn's, with an end for those that hold one open and neither ask nor read.

A client that sends half of a head, or takes no byte of its answer, would keep a socket for ever. So a head must be
whole after some seconds, and an answer that waits to be read must move. And where the client has gone, its answer is
given up: nothing is computed any more for a question that waits.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

from foreword.errors import MissingExtraError
from foreword.serve.counted import LATE, OTHER
from foreword.serve.limits import RETRY_SECONDS, App, Limits, Receive, Scope, Send
from foreword.serve.metrics import Metrics

try:
    from uvicorn.protocols.http.h11_impl import H11Protocol
except ImportError:
    raise MissingExtraError("uvicorn", "lab", "a server") from None


CORKED = 1 << 16
"""Bytes that are held back at most."""


class Corked:
    """A transport whose short writes of one turn of the loop go out as one: head and body in one packet."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport, self._loop = transport, loop
        self._held: list[bytes] = []
        self._size = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        if not data:
            return
        if not self._held:
            self._loop.call_soon(self._flush)
        self._held.append(data)
        self._size += len(data)
        if self._size > CORKED:
            self._flush()

    def close(self) -> None:
        self._flush()
        self._transport.close()

    def _flush(self) -> None:
        if self._held:
            held, self._held, self._size = self._held, [], 0
            self._transport.write(held[0] if len(held) == 1 else b"".join(held))


class ByH11(H11Protocol):
    """Where httptools is not installed."""

    def current(self) -> Any:
        """The request that is being answered, or was."""
        return self.cycle

    def half_a_head(self) -> bool:
        return bool(self.conn.trailing_data[0])

    def half_a_body(self) -> bool:
        return self.cycle is not None and self.cycle.more_body and not self.cycle.response_complete

    def send_400_response(self, msg: str) -> None:
        """In the middle of an answer there is nothing more to say."""
        if self.cycle is None or self.cycle.response_complete:
            self.tell_broken()
        else:
            self.transport.close()

    def tell_broken(self) -> None:
        self.transport.close()


def quickest() -> Any:
    """What reads HTTP: httptools where it is installed, or h11."""
    try:
        from foreword.serve.parsed import Parsed
    except ImportError:
        return ByH11
    return Parsed


def door(limits: Limits, metrics: Metrics, reading: Any = None) -> Any:
    """The class of a server's connections. reading: ``ByH11`` or ``Parsed``; by default the quickest there is."""
    base = quickest() if reading is None else reading

    class Door(base):  # type: ignore[misc, valid-type]
        app: App
        waiting: asyncio.TimerHandle | None = None
        stalled: asyncio.TimerHandle | None = None
        awaited: str | None = None
        answering: asyncio.Task[Any] | None = None

        def __init__(self, *given: Any, **named: Any) -> None:
            super().__init__(*given, **named)
            self.app = self._answered_by(self.app)

        def _answered_by(self, app: App) -> App:
            async def answering(scope: Scope, receive: Receive, send: Send) -> None:
                self.answering = asyncio.current_task()
                try:
                    await app(scope, receive, send)
                finally:
                    self.answering = None

            return answering

        def connection_made(self, transport: asyncio.Transport) -> None:
            super().connection_made(Corked(transport, self.loop))
            if len(self.connections) > limits.connections:
                metrics.request(OTHER, OTHER, 503, 0.0)
                self.transport.write(_plain(503, "Service Unavailable", "too many connections: try again in a moment"))
                self.transport.close()
                return
            self._watch()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            self._watch()

        def on_response_complete(self) -> None:
            super().on_response_complete()
            self._watch()

        def _watch(self) -> None:
            """From the first byte of a head, or from the beginning, until it is whole; then until the body is."""
            awaited = None if self.transport.is_closing() else self._awaited()
            if awaited != self.awaited:
                self.awaited = awaited
                if self.waiting is not None:
                    self.waiting.cancel()
                self.waiting = None if awaited is None else self.loop.call_later(limits.arrival, self._too_slow)

        def _awaited(self) -> str | None:
            if self.half_a_body():
                return "body"
            idle = self.cycle is None or self.cycle.response_complete
            return "head" if idle and (self.cycle is None or self.half_a_head()) else None

        def _too_slow(self) -> None:
            if self.transport.is_closing():
                return
            if self.awaited == "head":
                metrics.request(OTHER, OTHER, 408, limits.arrival)
            else:
                self.current().scope[LATE] = 408  # under which the request is counted that is given up
            sentence = f"the {self.awaited} of a request was not there after {limits.arrival:g} seconds"
            self.transport.write(_plain(408, "Request Timeout", sentence))
            self.transport.close()

        def pause_writing(self) -> None:
            super().pause_writing()
            if self.stalled is None:
                self.stalled = self.loop.call_later(limits.seconds, self.transport.abort)

        def resume_writing(self) -> None:
            super().resume_writing()
            self._forget_stall()

        def _forget_stall(self) -> None:
            if self.stalled is not None:
                self.stalled.cancel()
                self.stalled = None

        def connection_lost(self, exc: Exception | None) -> None:
            for timer in (self.waiting, self.stalled):
                if timer is not None:
                    timer.cancel()
            super().connection_lost(exc)
            if self.answering is not None:
                self.answering.cancel()

        def send_400_response(self, msg: str) -> None:
            metrics.request(OTHER, OTHER, 400, 0.0)
            super().send_400_response(msg)

        def tell_broken(self) -> None:
            self.transport.write(_plain(400, "Bad Request", "this is no HTTP request"))
            super().tell_broken()

    return Door


def _plain(status: int, phrase: str, sentence: str) -> bytes:
    body = json.dumps({"error": sentence}).encode()
    head: list[Any] = [
        f"HTTP/1.1 {status} {phrase}",
        "content-type: application/json",
        f"content-length: {len(body)}",
        "connection: close",
        *([f"retry-after: {RETRY_SECONDS}"] if status == 503 else []),
    ]
    return "\r\n".join([*head, "", ""]).encode() + body
