"""What a server refuses before it computes anything: strangers, forged pages, oversized bodies and crowds.

A server on the loopback address trusts everybody on the machine, but not every web page that is open there. A page may
send requests to any address, so the requested name (``Host``) must be this machine's own, which a page that has pointed
its own name here cannot claim, and where the browser names the page (``Origin``), it must be ours. A server on any
other address requires a token.
"""

from __future__ import annotations

import hmac
import re
from dataclasses import dataclass
from functools import lru_cache
from http.cookies import CookieError, SimpleCookie
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import parse_qs, urlsplit

from foreword.checks import check_numbers
from foreword.errors import SettingError

if TYPE_CHECKING:
    from foreword.serve.connection import Request

OPEN = ("/health", "/ready")
"""Answered without a token and however many requests wait: monitors have no token, and these say nothing else."""

COOKIE = "foreword-token"
LOOPBACK = ("127.0.0.1", "localhost", "::1")
TOKEN = re.compile(r"[A-Za-z0-9._~+/=-]+")
"""What a bearer token may be made of (RFC 6750)."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of one server.

    body: bytes of a request; tokens: of one text; seconds: until an answer is there; arrival: seconds until a request
    is there; at_once: requests being answered; connections: open sockets; queue: seconds that a request should wait
    for those before it at most. batch: texts computed together; wait: seconds that a text waits for others.
    """

    body: int = 1 << 20
    tokens: int = 20_000
    seconds: float = 30.0
    arrival: float = 10.0
    at_once: int = 256
    connections: int = 900
    queue: float = 0.1
    batch: int = 64
    wait: float = 0.002

    def __post_init__(self) -> None:
        check_numbers(self, "body", "tokens", "at_once", "connections", "batch", least=1)
        check_numbers(self, "seconds", "arrival", "queue", above=0, most=86_400)


class Admission:
    """How many requests may be in flight: as many as the event loop answers within ``Limits.queue`` seconds.

    A request takes about five turns of the loop. ``observe`` gets the delay of the loop several times a second: when a
    turn takes more than a fifth of the time, half as many are admitted, else a tenth more, as TCP does. ``LEAST`` are
    always admitted.
    """

    TURNS, LEAST = 5, 64

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.allowed = self.least = min(self.LEAST, limits.at_once)

    def observe(self, late: float) -> None:
        """Adapt the limit. late: seconds that a timer of the event loop was late."""
        if late * self.TURNS > self.limits.queue:
            self.allowed = max(self.allowed // 2, self.least)
        else:
            self.allowed = min(self.allowed + self.allowed // 10 + 1, self.limits.at_once)


class Refusal(NamedTuple):
    """A status and one sentence."""

    status: int
    sentence: str


def is_loopback(address: str) -> bool:
    """Return whether only this machine reaches the address."""
    return address in LOOPBACK or address.startswith("127.")


def check_address(address: str, token: str | None) -> None:
    """Raise a SettingError for an address that others reach without a token, or for a token that is too short."""
    if not is_loopback(address) and not token:
        raise SettingError(f"--host {address} can be reached from other machines: set --token for them")
    if token is None:
        return
    if len(token) < 8:
        raise SettingError("--token is too short to keep anybody out: expected at least 8 characters")
    if not TOKEN.fullmatch(token):
        raise SettingError("--token must fit into a header and a cookie: expected letters, digits, or any of -._~+/=")


class Access:
    """Access control. token: what clients must send; None for a server that only this machine reaches."""

    def __init__(self, token: str | None) -> None:
        self.token = token

    def refused(self, request: Request) -> Refusal | None:
        """Return why the request may not be answered, or None if it may."""
        headers = request.headers
        host = headers.get("host", "")
        if self.token is None and not _is_this_machine(host):
            return Refusal(421, "this server answers to localhost only")
        origin = headers.get("origin")
        if origin is not None and _netloc(origin) != host:
            return Refusal(403, "another page may not ask this server")
        if self.token is not None and request.path not in OPEN and not self._has_token(request):
            return Refusal(401, "a token is needed: open the address with ?token=… or send Authorization: Bearer …")
        return None

    def cookie(self, request: Request) -> str | None:
        """Return the cookie that keeps a token given in the address, for the page's next requests."""
        if self.token is None or not request.query or not _query_token(request.query):
            return None
        return f"{COOKIE}={self.token}; Path=/; HttpOnly; SameSite=Strict"

    def _has_token(self, request: Request) -> bool:
        """Return whether the token is in the header, in the cookie or in the address."""
        scheme, _, bearer = request.headers.get("authorization", "").partition(" ")
        given = [
            bearer if scheme.lower() == "bearer" else "",
            _cookie_token(request.headers.get("cookie", "")),
            _query_token(request.query),
        ]
        wanted = (self.token or "").encode()
        # Compared in a time that does not depend on where they differ.
        return any(hmac.compare_digest(each.encode(), wanted) for each in given)


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


def _query_token(query: str) -> str:
    return parse_qs(query).get("token", [""])[0]


def _cookie_token(cookies: str) -> str:
    try:
        found = SimpleCookie(cookies).get(COOKIE)
    except CookieError:
        return ""
    return "" if found is None else str(found.value)
