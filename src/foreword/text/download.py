"""Download one file: resume where an earlier attempt stopped, check it, and put it in place complete.

What has arrived is stored next to the target as ``<target>.part`` until its checksum is right; only then is it renamed.
So a target that exists is complete, and a download that was stopped (Ctrl-C, a lost connection) is resumed.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

from foreword.errors import InputError

if TYPE_CHECKING:
    from http.client import HTTPResponse

    from foreword.protocols import Meter

SHA256 = re.compile(r"[0-9a-f]{64}")
CHUNK_BYTES = 1 << 18
ATTEMPTS = 5
TIMEOUT_SECONDS = 30.0


class _DroppedError(Exception):
    """The connection failed in a way that may not happen again."""


def cache_folder() -> Path | None:
    """Return the folder for downloads and cached results; None for a user without a home. It need not exist yet."""
    named = os.environ.get("XDG_CACHE_HOME", "")
    if Path(named).is_absolute():  # the XDG rules: a relative path is to be ignored
        return Path(named) / "foreword"
    try:
        return Path.home() / ".cache" / "foreword"
    except RuntimeError:
        return None


def download(
    url: str,
    target: Path,
    *,
    sha256: str | None,
    size: int | None = None,
    meter: Meter | None = None,
    timeout: float = TIMEOUT_SECONDS,
    pause: float = 1.0,
) -> None:
    """Download ``url`` to ``target``; do nothing if the target exists.

    sha256: hexadecimal digest the file must have; None if it is unknown, and then nothing is resumed.
    size: its length in bytes where known; a download that gets longer is stopped.
    timeout: seconds without a byte before a connection counts as dropped.
    pause: seconds before the second attempt; doubled for each further one.
    """
    _refuse_other_schemes(url)
    part = target.with_name(target.name + ".part")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with _alone_in(target.parent):
            if target.exists():  # from before, or from another process while we waited
                return
            with _tidied(part), part.open("wb" if sha256 is None else "ab") as out:
                _fill(out, url, size, meter, timeout, pause)
                out.flush()
                os.fsync(out.fileno())
            _check(part, url, sha256)
            part.replace(target)
    except OSError as error:
        raise InputError(f"cannot store {url} at {target}: {error.strerror or error}") from error


def _refuse_other_schemes(url: str) -> None:
    if not url.startswith(("http://", "https://")):
        raise InputError(f"{url}: expected an address that starts with http:// or https://")


@contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """Lock the folder against other downloads: two processes that append to one .part would spoil it.

    Where there are no such locks (Windows, some network drives) the checksum still finds a spoilt file.
    """
    try:
        from fcntl import LOCK_EX, flock
    except ImportError:
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):
            flock(handle, LOCK_EX)
        yield
    finally:
        os.close(handle)


@contextmanager
def _tidied(part: Path) -> Iterator[None]:
    """Leave no empty file behind where nothing arrived."""
    try:
        yield
    finally:
        if part.exists() and part.stat().st_size == 0:
            part.unlink()


def _fill(out: IO[bytes], url: str, size: int | None, meter: Meter | None, timeout: float, pause: float) -> None:
    """Download until the whole file is in ``out``, resuming after each lost connection."""
    for attempt in range(1, ATTEMPTS + 1):
        try:
            _fetch_rest(out, url, size, meter, timeout)
            return
        except _DroppedError as drop:
            if attempt == ATTEMPTS:
                raise InputError(
                    f"cannot download {url}: {drop} ({ATTEMPTS} attempts; another attempt resumes it)"
                ) from drop
            time.sleep(pause * 2 ** (attempt - 1))


def _fetch_rest(out: IO[bytes], url: str, size: int | None, meter: Meter | None, timeout: float) -> None:
    """Open one connection, ask for the bytes that are missing and append them."""
    if size is not None and out.tell() > size:
        _empty(out)
    if out.tell() == size:
        return
    response = _open(url, out.tell(), timeout)
    if response is None:  # the server has nothing after our bytes: the checksum tells whether they are the file
        return
    with response:
        _refuse_other_schemes(response.url)  # a redirection may lead anywhere
        if not _continues(response, out.tell()):
            _empty(out)
        _copy(response, out, size, "download " + url.rsplit("/", 1)[-1], meter)


def _empty(out: IO[bytes]) -> None:
    out.seek(0)
    out.truncate()


def _open(url: str, offset: int, timeout: float) -> HTTPResponse | None:
    """Request everything from ``offset`` on; return None if the server has nothing there."""
    from http.client import HTTPException
    from socket import gaierror
    from ssl import SSLCertVerificationError
    from urllib.error import HTTPError
    from urllib.request import Request, urlopen

    headers = {"User-Agent": "foreword"}
    if offset:
        headers["Range"] = f"bytes={offset}-"
    try:
        return cast("HTTPResponse", urlopen(Request(url, headers=headers), timeout=timeout))
    except HTTPError as error:
        with error:
            if error.code == 416 and offset:
                return None
            if error.code == 429 or error.code >= 500:
                raise _DroppedError(f"the server answers {error.code} {error.reason}") from error
            raise InputError(f"cannot download {url}: the server answers {error.code} {error.reason}") from error
    except (OSError, HTTPException) as error:  # URLError is an OSError
        cause = getattr(error, "reason", error)
        if isinstance(cause, (gaierror, SSLCertVerificationError)):  # no such host, no network, no trust: all last
            raise InputError(f"cannot download {url}: {cause}") from error
        raise _DroppedError(str(cause) or type(cause).__name__) from error


def _continues(response: HTTPResponse, offset: int) -> bool:
    """Return whether the response starts at ``offset``: servers without ranges answer 200 and start over."""
    if response.status == 206:
        return (response.headers.get("Content-Range") or "").startswith(f"bytes {offset}-")
    return offset == 0


def _copy(response: HTTPResponse, out: IO[bytes], size: int | None, phase: str, meter: Meter | None) -> None:
    done = out.tell()
    announced = response.headers.get("Content-Length")
    total = done + int(announced) if announced else size
    while chunk := _read(response):
        done += out.write(chunk)
        if meter is not None:
            meter(phase, done, total)
        if size is not None and done > size:
            return
    if total is not None and done < total:  # read(n) ends early without a word when the line is cut
        raise _DroppedError(f"the connection was cut after {done} of {total} bytes")


def _read(response: HTTPResponse) -> bytes:
    from http.client import HTTPException

    try:
        return response.read(CHUNK_BYTES)
    except (OSError, HTTPException) as error:
        raise _DroppedError(str(error) or type(error).__name__) from error


def checksum_offered(url: str, timeout: float = TIMEOUT_SECONDS) -> tuple[str | None, int | None]:
    """Return the SHA-256 and the size that a server offers for a file before it is downloaded; None where it does not.

    Hugging Face names both for large files, in the answer that redirects to where they are stored.
    """
    from urllib.error import HTTPError, URLError
    from urllib.request import HTTPRedirectHandler, Request, build_opener

    class Stay(HTTPRedirectHandler):
        def redirect_request(self, *_: object) -> None:
            return None

    _refuse_other_schemes(url)
    try:
        answer: Any = build_opener(Stay).open(
            Request(url, headers={"User-Agent": "foreword"}, method="HEAD"), timeout=timeout
        )
    except HTTPError as error:
        answer = error  # a redirection is one here
    except (URLError, OSError):
        return None, None  # the download will say what is wrong
    with answer:
        tag = (answer.headers.get("X-Linked-Etag") or answer.headers.get("ETag") or "").strip('"')
        size = answer.headers.get("X-Linked-Size") or ""
    return (tag if SHA256.fullmatch(tag) else None), (int(size) if size.isdecimal() else None)


def _check(part: Path, url: str, sha256: str | None) -> None:
    import hashlib

    if sha256 is None:
        return
    with part.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != sha256:
        part.unlink()
        raise InputError(f"{url}: expected a file with sha256 {sha256}, got {found}; nothing was kept")
