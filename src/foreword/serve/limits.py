"""What is refused before anything is computed: strangers, forged pages, bodies that are too large, and crowds.

A server on this machine alone trusts whoever is on it, but not every web page that is open there. A page may send
requests to any address, so the name it asked for (``Host``) must be this machine's own, which a page that has made its
name point here cannot say, and where a browser tells the page it comes from (``Origin``), it must be ours. A server on
any other address asks for a token.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from functools import lru_cache
from http.cookies import CookieError, SimpleCookie
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

from foreword.checks import check_numbers
from foreword.errors import SettingError

Message = MutableMapping[str, Any]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

MOST_BYTES = 1 << 20
"""Of a body: a megabyte of text is more than anybody types."""

MOST_DRAINED = 1 << 28
"""Bytes of a body that is refused which are still read, and thrown away: a client that is cut off while it sends does
not read why."""

OPEN = ("/health", "/ready")
"""Answered to anybody, however many wait: whoever looks after servers has no token, and they tell nothing else."""

RETRY_SECONDS = 1

OWN_FAULT = "something went wrong here: the server's log says where"

COOKIE = "foreword-token"
LOOPBACK = ("127.0.0.1", "localhost", "::1")

HEADERS = {
    "content-security-policy": "default-src 'self'; style-src 'self' 'unsafe-inline'; "
    "script-src 'self' 'unsafe-inline'; "
    "img-src 'self' data:; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-cache",
}
_ENCODED = [(name.encode(), value.encode("latin-1")) for name, value in HEADERS.items()]
_OF_DATA = [(name, value) for name, value in _ENCODED if name in (b"x-content-type-options", b"cache-control")]
"""For JSON, of which a browser draws nothing: every header takes its time."""

_JSON = (b"content-type", b"application/json")


@dataclass(frozen=True, slots=True)
class Limits:
    """What one server takes.

    body: bytes of a request; tokens: of a text that is read; seconds: until an answer is there; arrival: seconds until
    a request is there; at_once: requests that are being answered; connections: sockets that are open.
    batch: texts that are computed together; wait: seconds that a text waits for others.
    """

    body: int = MOST_BYTES
    tokens: int = 20_000
    seconds: float = 30.0
    arrival: float = 10.0
    at_once: int = 256
    connections: int = 900
    batch: int = 64
    wait: float = 0.002

    def __post_init__(self) -> None:
        check_numbers(self, "body", "tokens", "at_once", "connections", "batch", least=1)
        check_numbers(self, "seconds", "arrival", above=0, most=86_400)


class Refusal(NamedTuple):
    """closing: whether the connection ends with it, because the rest of the request is still to come."""

    status: int
    sentence: str
    closing: bool = False


def out_of_time(seconds: float) -> Refusal:
    return Refusal(504, f"there was no answer after {seconds:g} seconds: ask for less, or when it is quieter")


def is_loopback(address: str) -> bool:
    return address in LOOPBACK or address.startswith("127.")


def check_address(address: str, token: str | None) -> None:
    """An address that others reach needs a token."""
    if not is_loopback(address) and not token:
        raise SettingError(
            f"--host {address} can be reached from other machines: say --token, which they must then give"
        )
    if token is not None and len(token) < 8:
        raise SettingError("--token is too short to keep anybody out: expected at least 8 characters")


class Guard:
    """An ASGI application around another. token: what must be given; None on this machine alone.

    inside: how many requests are being answered.
    """

    def __init__(
        self,
        app: App,
        *,
        token: str | None = None,
        most_bytes: int = MOST_BYTES,
        at_once: int | None = None,
    ) -> None:
        self.app = app
        self.token = token
        self.most_bytes = most_bytes
        self.at_once = at_once
        self.inside = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        self.inside += 1
        try:
            refused = self._refused(scope, headers)
            body = b""
            if refused is None:
                body, refused = await self._body(receive)
            scope["foreword.bytes"] = len(body)
            if refused is not None:
                await refuse(refused, send)
                return
            await self.app(scope, _replay(body, receive), self._with_headers(scope, send))
        finally:
            self.inside -= 1

    def _refused(self, scope: Scope, headers: dict[str, str]) -> Refusal | None:
        host = headers.get("host", "")
        if self.token is None and not _is_this_machine(host):
            return Refusal(421, "this server answers to localhost only")
        origin = headers.get("origin")
        if origin is not None and _netloc(origin) != host:
            return Refusal(403, "another page may not ask this server")
        if scope["path"] in OPEN:
            return None
        if self.token is not None and not self._knows(scope, headers):
            return Refusal(401, "a token is needed: open the address with ?token=… or send Authorization: Bearer …")
        if self.at_once is not None and self.inside > self.at_once:
            return Refusal(503, f"{self.at_once} requests are being answered already: ask again in a moment")
        return None

    def _knows(self, scope: Scope, headers: dict[str, str]) -> bool:
        """Whether the token was given, in the header, as a cookie, or in the address."""
        scheme, _, bearer = headers.get("authorization", "").partition(" ")
        given = [bearer if scheme.lower() == "bearer" else "", _cookie(headers), _asked(scope)]
        wanted = (self.token or "").encode()
        # Compared in a time that tells nothing of where they differ.
        return any(hmac.compare_digest(each.encode(), wanted) for each in given)

    async def _body(self, receive: Receive) -> tuple[bytes, Refusal | None]:
        """The whole body, which is short, or why not."""
        parts, size = [], 0
        while True:
            message = await receive()
            if message["type"] != "http.request":  # the client has gone
                return b"", Refusal(400, "the request broke off")
            part = message.get("body", b"")
            size += len(part)
            if size <= self.most_bytes:
                parts.append(part)
            if not message.get("more_body") or size > MOST_DRAINED:
                break
        if size > self.most_bytes:
            sentence = f"the request is too large: at most {self.most_bytes:,} bytes are read"
            return b"", Refusal(413, sentence, closing=size > MOST_DRAINED)
        return b"".join(parts), None

    def _with_headers(self, scope: Scope, send: Send) -> Send:
        kept = []
        if self.token is not None and _asked(scope):
            cookie = f"{COOKIE}={self.token}; Path=/; HttpOnly; SameSite=Strict"
            kept = [(b"set-cookie", cookie.encode("latin-1"))]

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                own = message.get("headers", [])
                message["headers"] = [*own, *(_OF_DATA if _JSON in own else _ENCODED), *kept]
            await send(message)

        return sending


@lru_cache(maxsize=256)
def _is_this_machine(host: str) -> bool:
    try:
        return (urlsplit(f"//{host}").hostname or "") in LOOPBACK
    except ValueError:  # such as half of a bracket
        return False


def _netloc(origin: str) -> str | None:
    try:
        return urlsplit(origin).netloc
    except ValueError:
        return None


def _asked(scope: Scope) -> str:
    query: bytes = scope.get("query_string", b"")
    return parse_qs(query.decode("latin-1")).get("token", [""])[0]


def _cookie(headers: dict[str, str]) -> str:
    try:
        found = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
    except CookieError:
        return ""
    return "" if found is None else str(found.value)


def _replay(body: bytes, receive: Receive) -> Receive:
    """The body once more, for the application, and then what else the client does."""
    given = False

    async def again() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again


async def refuse(refused: Refusal, send: Send) -> None:
    body = json.dumps({"error": refused.sentence}, ensure_ascii=False).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    if refused.status == 503:
        headers.append((b"retry-after", str(RETRY_SECONDS).encode()))
    if refused.status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    if refused.closing:
        headers.append((b"connection", b"close"))
    await send({"type": "http.response.start", "status": refused.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
