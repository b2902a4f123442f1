"""Connections that read HTTP by httptools, in half the time that h11 takes.

uvicorn's own class for it parses all that has come at once: a client that sends thousands of requests without waiting
would have them all in memory, and bytes that are no HTTP would take the answers before them along. Here what came is
parsed in slices, no further than one request that waits for the one before it, and nothing more is read from the socket
meanwhile. What is no HTTP is told after the answers before it.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from foreword.serve.limits import MOST_DRAINED

SLICE = 1 << 14
"""Bytes that are parsed at once."""

MOST_HEAD = 1 << 16
"""Bytes of a head."""


class Flow(FlowControl):
    """holding: nothing is read, whoever asks for more."""

    holding = False

    def resume_reading(self) -> None:
        if not self.holding:
            super().resume_reading()


class Parsed(HttpToolsProtocol):
    """in_head: whether a head has begun and is not whole. broken: whether what comes now is no HTTP. size: bytes of the
    request that is being parsed. active: the request that is being answered, or was. held: what is not parsed yet.
    """

    flow: Flow
    in_head = False
    broken = False
    size = 0
    active: RequestResponseCycle | None = None
    held = b""

    def current(self) -> RequestResponseCycle | None:
        return self.active

    def half_a_head(self) -> bool:
        return self.in_head

    def half_a_body(self) -> bool:
        return self.active is not None and self.active.more_body and not self.active.response_complete

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.flow = Flow(transport)

    def data_received(self, data: bytes) -> None:
        if self.held or self.pipeline or self.broken:
            self.held += data
            self._hold(True)
        else:
            self._parse(data)

    def _parse(self, data: bytes) -> None:
        """As far as there is nobody who waits; the rest is held."""
        at = 0
        while at < len(data) and not (self.pipeline or self.broken or self.transport.is_closing()):
            some = data[at : at + SLICE] if len(data) > SLICE else data
            at += len(some)
            self.size += len(some)
            super().data_received(some)
            if self.size > (MOST_HEAD if self.in_head else MOST_DRAINED + MOST_HEAD):
                self.send_400_response("too long")
        self.held = data[at:]
        self._hold(bool(self.held or self.pipeline or self.broken))

    def _hold(self, holding: bool) -> None:
        self.flow.holding = holding
        if holding:
            self.flow.pause_reading()
        else:
            self.flow.resume_reading()

    def on_message_begin(self) -> None:
        self.in_head, self.size = True, 0
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        if self.in_head:  # what may come behind a body that is sent in pieces is for nobody
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self.in_head = False
        super().on_headers_complete()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self.active = cycle
        super()._start_asgi_task(cycle, app)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.pipeline or self.transport.is_closing():
            return
        if not self.broken:
            self._parse(self.held)
        elif not self._busy():
            self.tell_broken()

    def _busy(self) -> bool:
        return self.active is not None and not self.active.response_complete

    def send_400_response(self, msg: str) -> None:
        """What is no HTTP is told after the answers before it; a request whose own body it is gets none."""
        own = self.cycle is not None and self.cycle.more_body
        if not self._busy():
            self.tell_broken()
        elif own and self.cycle is self.active:
            self.transport.close()
        else:
            self.broken = True
            if own:
                self.pipeline.popleft()

    def _unsupported_upgrade_warning(self) -> None:
        """The request is answered as any other, and what comes behind it is not read."""
        self.broken, self.cycle.keep_alive = True, False

    def tell_broken(self) -> None:
        """Say so, and hang up."""
        self.transport.close()
