"""HTTP/1.1 over a socket: an ``asyncio.Protocol`` that reads requests with httptools and writes responses.

A request is answered once it has arrived completely, and requests of one connection are answered in order. Three rules
bound what a client can hold:

- Bytes are parsed in slices, and no further than one request that waits for the one before it; meanwhile nothing is
  read from the socket. A client that sends thousands of requests without waiting fills its own buffers.
- The server calls ``check`` several times a second. A head or a body that does not arrive in time is answered by 408, a
  client that does not read its answer is cut off, and an idle connection is closed.
- When the client has gone, its answer is cancelled, so that a queued question is not computed.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Iterator
from dataclasses import dataclass, field
from email.utils import formatdate
from functools import lru_cache
from http import HTTPStatus
from time import monotonic, perf_counter, time
from typing import Any, NamedTuple, Protocol
from urllib.parse import unquote

from foreword.errors import MissingExtraError
from foreword.serve.limits import OPEN, Limits

try:
    import httptools
except ImportError:
    raise MissingExtraError("httptools", "lab", "a server") from None

SLICE = 1 << 14
"""Bytes that are parsed at once."""

MAX_HEAD = 1 << 16
"""Bytes of a request's head."""

MAX_DRAINED = 1 << 28
"""Bytes of a body over the limit that are read and dropped, because a client that is cut off while it sends does not
read the refusal."""

RESERVED = 32
"""Connections over the limit that are accepted for the sake of monitors: they may ask ``OPEN`` addresses, nothing
else. Where they are all taken, the one that has waited longest gives way, so that half-sent heads keep nobody out."""

KEEP_ALIVE = 15.0
"""Seconds that a connection may be idle between two requests."""

RETRY_SECONDS = 1
"""What ``Retry-After`` says."""

GONE = 499
"""Status of a request whose client left before the answer began, as other servers log it."""

JSON = "application/json"


@dataclass(slots=True)
class Request:
    """One request. headers: names in lower case; size: bytes of the body, those over the limit included.

    chunks: whether the client takes a chunked answer; counted: whether it is among the requests in flight; began: when
    its head, and then the whole of it, was there.
    """

    method: str
    path: str
    query: str
    headers: dict[str, str]
    keep_alive: bool
    chunks: bool
    body: bytes = b""
    size: int = 0
    counted: bool = False
    began: float = field(default_factory=perf_counter)


class Response(NamedTuple):
    """One response. body: the whole of it, or an iterator of parts that are sent as they come."""

    body: bytes | AsyncIterator[bytes]
    status: int = 200
    content_type: str = JSON
    headers: tuple[tuple[str, str], ...] = ()


class Application(Protocol):
    """What a connection asks for answers."""

    limits: Limits

    def admit(self, request: Request, /) -> Response | None: ...
    def answer(self, request: Request, /) -> Awaitable[Response]: ...
    def record(self, request: Request | None, status: int, sent: int = 0) -> None: ...


def json_response(value: object, status: int = 200) -> Response:
    """Return a response with ``value`` as JSON."""
    return Response(_dumps(value).encode(), status)


def json_parts(value: object) -> Iterator[str]:
    """Yield the JSON of a value in parts: a list or an object without others in it is one part.

    One call of the encoder lets no other thread run until it ends, which takes a second for a million numbers.
    """
    if isinstance(value, dict) and any(isinstance(inner, (dict, list)) for inner in value.values()):
        for number, (name, inner) in enumerate(value.items()):
            yield f"{',' if number else '{'}{_dumps(name)}:"
            yield from json_parts(inner)
        yield "}"
    elif isinstance(value, list) and any(isinstance(inner, (dict, list)) for inner in value):
        for number, inner in enumerate(value):
            yield "," if number else "["
            yield from json_parts(inner)
        yield "]"
    else:
        yield _dumps(value)


def _dumps(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def refusal(status: int, sentence: str) -> Response:
    """Return ``{"error": sentence}`` with the headers that its status needs."""
    headers: tuple[tuple[str, str], ...] = ()
    if status == HTTPStatus.SERVICE_UNAVAILABLE:
        headers = (("retry-after", str(RETRY_SECONDS)),)
    elif status == HTTPStatus.UNAUTHORIZED:
        headers = (("www-authenticate", "Bearer"),)
    return json_response({"error": sentence}, status)._replace(headers=headers)


CROWDED = refusal(503, "too many connections: try again in a moment")


def too_large(limits: Limits) -> Response:
    """Return the refusal of a body over the limit."""
    return refusal(413, f"the request is too large: at most {limits.body:,} bytes are read")


class Connection(asyncio.Protocol):
    """One client. connections: the open ones, to which this one adds itself. most: how many may be open."""

    transport: asyncio.Transport

    def __init__(self, app: Application, connections: set[Connection], most: int) -> None:
        self.app, self.limits, self.connections, self.most = app, app.limits, connections, most
        self.parser: Any = httptools.HttpRequestParser(self)
        self.queue: deque[Request] = deque()
        self.active: Request | None = None
        self.arriving: Request | None = None  # its head is complete, its body is not
        self.in_head = True  # from the beginning: a connection that never asks is as bad as half a head
        self.broken = False  # what comes next cannot be parsed, or must not be
        self.failure: Response | None = None
        self.closing = False
        self.crowded, self.opened = False, monotonic()
        self.unparsed = b""
        self.task: asyncio.Task[None] | None = None
        self.writable = asyncio.Event()
        self.writable.set()
        self._url, self._headers, self._parts = b"", dict[str, str](), list[bytes]()
        self._size = 0  # bytes of the request that is being parsed
        self._number = 0  # of the request that is being parsed
        self._awaited: tuple[str, int] | None = None
        self._since = self._stalled_since = monotonic()

    # The socket

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Accept the client, or refuse it where there are too many."""
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.connections.add(self)
        over = len(self.connections) - self.most
        self.crowded = over > 0
        if over > RESERVED:
            waiting = (each for each in self.connections if each.crowded and each.active is None and each is not self)
            longest = min(waiting, key=lambda each: each.opened, default=self)
            self.connections.discard(longest)  # now: many may come before its close is reported
            longest._refuse(None, CROWDED)

    def data_received(self, data: bytes) -> None:
        """Parse received data, unless a request is pending already."""
        if self.unparsed or not self._may_parse():
            self.unparsed += data
            self.transport.pause_reading()
        else:
            self._parse(data)

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel the answer; count the request that had begun to arrive."""
        self.connections.discard(self)
        self.writable.set()
        if self.task is not None:
            self.task.cancel()
        if self.arriving is not None:
            self.app.record(self.arriving, GONE)
            self.arriving = None

    def pause_writing(self) -> None:
        """Note that the client does not read."""
        self._stalled_since = monotonic()
        self.writable.clear()

    def resume_writing(self) -> None:
        """Resume writing."""
        self.writable.set()

    # Parsing

    def _may_parse(self) -> bool:
        return not (self.queue or self.broken or self.closing or self.transport.is_closing())

    def _parse(self, data: bytes) -> None:
        """Parse slices until a complete request waits for another; keep the rest."""
        at = 0
        while at < len(data) and self._may_parse():
            part = data[at : at + SLICE] if len(data) > SLICE else data
            at += len(part)
            self._size += len(part)
            try:
                self.parser.feed_data(part)
            except httptools.HttpParserUpgrade:  # answered like any other request; what follows is not HTTP
                self.broken = True
                if self.queue:
                    self.queue[-1].keep_alive = False
            except httptools.HttpParserError:
                self._fail()
            if self.in_head and self._size > MAX_HEAD:
                self._fail()
            if self.arriving is not None and self.arriving.size > MAX_DRAINED:
                request, self.arriving = self.arriving, None
                self._refuse(request, too_large(self.limits))
        self.unparsed = data[at:]
        if self.unparsed:
            self.transport.pause_reading()
        else:
            self.transport.resume_reading()

    def _fail(self) -> None:
        """Refuse what is not HTTP, after the answers to the requests before it."""
        if not self.broken:
            self.broken, self.failure = True, refusal(400, "this is not an HTTP request")
            self.arriving = None
            if self.task is None:
                self._refuse(None, self.failure)

    def on_message_begin(self) -> None:
        """Start a request (httptools callback, as all ``on_`` methods)."""
        self.in_head, self._size, self._number = True, 0, self._number + 1
        self._url, self._headers, self._parts = b"", {}, []

    def on_url(self, url: bytes) -> None:
        """Collect the address."""
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """Collect a header; trailers of a chunked body are ignored."""
        if self.in_head:
            self._headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        """Build the request, whose body is still to come."""
        self.in_head = False
        method = self.parser.get_method().decode("ascii")
        path, query = _parsed_url(self._url) if method != "CONNECT" else ("", "")
        keep_alive, chunks = self.parser.should_keep_alive(), self.parser.get_http_version() == "1.1"
        self.arriving = Request(method, path, query, self._headers, keep_alive, chunks)
        if self._headers.get("expect", "").lower() == "100-continue":
            self.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def on_body(self, body: bytes) -> None:
        """Collect the body; count and drop what exceeds the limit."""
        assert self.arriving is not None
        self.arriving.size += len(body)
        if self.arriving.size <= self.limits.body:
            self._parts.append(body)
        else:
            self._parts.clear()

    def on_message_complete(self) -> None:
        """Refuse the request at once if it is one too many; else answer it, after those before it."""
        assert self.arriving is not None
        request, self.arriving = self.arriving, None
        request.began = perf_counter()
        if self.task is None and self.writable.is_set() and (response := self._refusal(request)) is not None:
            self._refuse(request, response, close=self.closing or self.crowded or not request.keep_alive)
            return
        request.body = b"".join(self._parts)
        self.queue.append(request)
        if self.task is None:
            self.task = asyncio.get_running_loop().create_task(self._answer_queue())

    # Answering

    async def _answer_queue(self) -> None:
        try:
            while self.queue and not self.transport.is_closing():
                self.active = self.queue.popleft()
                if self.unparsed:
                    self._parse(self.unparsed)
                await self._answer(self.active)
                self.active = None
            if self.failure is not None:
                self._refuse(None, self.failure)
            elif self.closing:
                self.transport.close()
        finally:
            self.active = self.task = None

    async def _answer(self, request: Request) -> None:
        """Answer one request and record what became of it."""
        status = GONE
        sent = 0
        try:
            response = self._refusal(request) or await self.app.answer(request)
            close = self.closing or self.crowded or not request.keep_alive
            if not self.writable.is_set():
                await self.writable.wait()
            status, body = response.status, response.body
            if isinstance(body, bytes):
                sent = len(body)
                head = _head(response, "" if status == HTTPStatus.NO_CONTENT else f"content-length: {sent}", close)
                self.transport.write(head if request.method == "HEAD" else head + body)
            else:
                framing = "transfer-encoding: chunked" if request.chunks else ""
                close = close or not framing
                self.transport.write(_head(response, framing, close))
                async for part in body:
                    sent += len(part)
                    self.transport.write(b"%x\r\n%b\r\n" % (len(part), part) if framing else part)
                    await self.writable.wait()
                if framing:
                    self.transport.write(b"0\r\n\r\n")
            if close:
                self.transport.close()
        finally:
            self.app.record(request, status, sent)

    def _refusal(self, request: Request) -> Response | None:
        """Return the refusal of a request where there are too many, before anything of its body is parsed."""
        return CROWDED if self.crowded and request.path not in OPEN else self.app.admit(request)

    def _refuse(self, request: Request | None, response: Response, close: bool = True) -> None:
        """Write a refusal that no route gives."""
        assert isinstance(response.body, bytes)
        self.app.record(request, response.status, len(response.body))
        head = _head(response, f"content-length: {len(response.body)}", close)
        self.transport.write(head if request is not None and request.method == "HEAD" else head + response.body)
        if close:
            self.transport.close()

    # Time

    def check(self, now: float) -> None:
        """Close the connection if the client is too slow to send, to read, or to ask again."""
        if self.transport.is_closing():
            return
        if not self.writable.is_set() and now - self._stalled_since > self.limits.seconds:
            self.transport.abort()
            return
        awaited = self._awaiting()
        if awaited != self._awaited:
            self._awaited, self._since = awaited, now
        elif awaited is not None:
            patience = KEEP_ALIVE if awaited[0] == "request" else self.limits.arrival
            if now - self._since > patience:
                self._give_up(awaited[0])

    def _awaiting(self) -> tuple[str, int] | None:
        """Return what the client owes, with the number of the request: its head, its body, or another request."""
        if self.arriving is not None:
            return None if self.unparsed else ("body", self._number)
        if self.active is not None or self.queue:
            return None
        return "head" if self.in_head else "request", self._number

    def _give_up(self, awaited: str) -> None:
        if awaited == "request":
            self.transport.close()
            return
        sentence = f"the {awaited} of a request was not there after {self.limits.arrival:g} seconds"
        request, self.arriving = self.arriving, None
        self._refuse(request, refusal(408, sentence))

    def close_when_idle(self) -> None:
        """Close after the answers that have begun."""
        self.closing = True
        if self.active is None and not self.queue:
            self.transport.close()


@lru_cache(maxsize=256)
def _parsed_url(url: bytes) -> tuple[str, str]:
    """Return the decoded path and the query of a request's target."""
    parsed = httptools.parse_url(url)
    return unquote((parsed.path or b"").decode("ascii")), (parsed.query or b"").decode("latin-1")


def _head(response: Response, framing: str, close: bool) -> bytes:
    start = _head_start(response.status, response.content_type, response.headers, close, int(time()))
    return start + framing.encode() + b"\r\n\r\n" if framing else start + b"\r\n"


@lru_cache(maxsize=64)
def _head_start(
    status: int, content_type: str, headers: tuple[tuple[str, str], ...], close: bool, second: int
) -> bytes:
    """Return the head up to the framing; within a second most heads are equal."""
    lines = [
        f"HTTP/1.1 {status} {HTTPStatus(status).phrase}",
        f"content-type: {content_type}",
        f"date: {formatdate(second, usegmt=True)}",
        *(f"{name}: {value}" for name, value in headers),
        *(["connection: close"] if close else []),
    ]
    return ("\r\n".join(lines) + "\r\n").encode("latin-1")
