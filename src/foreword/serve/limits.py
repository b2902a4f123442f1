"""What is refused before anything is read or computed: strangers, forged pages, and bodies that are too large.

A server on this machine alone trusts whoever is on it, but not every web page that is open there. A page may send
requests to any address, so the name it asked for (``Host``) must be this machine's own, which a page that has made its
name point here cannot say, and where a browser tells the page it comes from (``Origin``), it must be ours. A server on
any other address asks for a token.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Awaitable, Callable, MutableMapping
from http.cookies import CookieError, SimpleCookie
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

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


class Refusal(NamedTuple):
    status: int
    sentence: str


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
    """An ASGI application around another. token: what must be given; None on this machine alone."""

    def __init__(self, app: App, *, token: str | None = None, most_bytes: int = MOST_BYTES) -> None:
        self.app = app
        self.token = token
        self.most_bytes = most_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        refused = self._refused(scope, headers)
        body = b""
        if refused is None:
            body, refused = await self._body(headers, receive)
        if refused is not None:
            await _answer(refused, send)
            return
        await self.app(scope, _replay(body, receive), self._with_headers(scope, send))

    def _refused(self, scope: Scope, headers: dict[str, str]) -> Refusal | None:
        host = headers.get("host", "")
        if self.token is None and (urlsplit(f"//{host}").hostname or "") not in LOOPBACK:
            return Refusal(421, "this server answers to localhost only")
        origin = headers.get("origin")
        if origin is not None and urlsplit(origin).netloc != host:
            return Refusal(403, "another page may not ask this server")
        if self.token is not None and not self._knows(scope, headers):
            return Refusal(401, "a token is needed: open the address with ?token=… or send Authorization: Bearer …")
        return None

    def _knows(self, scope: Scope, headers: dict[str, str]) -> bool:
        """Whether the token was given, in the header, as a cookie, or in the address."""
        given = [headers.get("authorization", "").removeprefix("Bearer "), _cookie(headers), _asked(scope)]
        wanted = (self.token or "").encode()
        # Compared in a time that tells nothing of where they differ.
        return any(hmac.compare_digest(each.encode(), wanted) for each in given)

    async def _body(self, headers: dict[str, str], receive: Receive) -> tuple[bytes, Refusal | None]:
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
            return b"", Refusal(413, f"the request is too large: at most {self.most_bytes:,} bytes are read")
        return b"".join(parts), None

    def _with_headers(self, scope: Scope, send: Send) -> Send:
        more = dict(HEADERS)
        if self.token is not None and _asked(scope):
            more["set-cookie"] = f"{COOKIE}={self.token}; Path=/; HttpOnly; SameSite=Strict"

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                added = [(name.encode(), value.encode("latin-1")) for name, value in more.items()]
                message["headers"] = [*message.get("headers", []), *added]
            await send(message)

        return sending


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


async def _answer(refused: Refusal, send: Send) -> None:
    body = json.dumps({"error": refused.sentence}, ensure_ascii=False).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": refused.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
