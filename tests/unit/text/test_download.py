"""Downloads against servers on this machine: good ones, and all the bad ones we could think of."""

from __future__ import annotations

import hashlib
import multiprocessing
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import TypeAlias

import pytest

from foreword.errors import InputError
from foreword.text import download as module
from foreword.text.download import CHUNK_BYTES, cache_folder, download

CONTENT = bytes(range(256)) * 3000
SUM = hashlib.sha256(CONTENT).hexdigest()


class Handler(BaseHTTPRequestHandler):
    """Serves CONTENT without ranges. What it was asked for is kept on the server, one entry a request."""

    def do_GET(self) -> None:
        asked: list[str | None] = self.server.asked  # type: ignore[attr-defined]
        asked.append(self.headers.get("Range"))
        self.answer(len(asked))

    def answer(self, request: int) -> None:
        self.send(200, CONTENT)

    def send(self, status: int, body: bytes, *, length: int | None = None, extra: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(length or len(body)), **(extra or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


class Ranges(Handler):
    content = CONTENT

    def answer(self, request: int) -> None:
        start = int((self.headers.get("Range") or "bytes=0-").removeprefix("bytes=").removesuffix("-"))
        if start >= len(self.content):
            self.send(416, b"", extra={"Content-Range": f"bytes */{len(self.content)}"})
        elif "Range" in self.headers:
            self.send_rest(start, request)
        else:
            self.send_whole(request)

    def send_rest(self, start: int, request: int) -> None:
        rest = f"bytes {start}-{len(self.content) - 1}/{len(self.content)}"
        self.send(206, self.content[start:], extra={"Content-Range": rest})

    def send_whole(self, request: int) -> None:
        self.send(200, self.content)


class Dropping(Ranges):
    """Cuts the first answer in the middle."""

    def send_whole(self, request: int) -> None:
        self.send(200, CONTENT[: CHUNK_BYTES + 7], length=len(CONTENT))


class DroppingWithoutRanges(Handler):
    def answer(self, request: int) -> None:
        self.send(200, CONTENT[:1000] if request < 3 else CONTENT, length=len(CONTENT))


class AlwaysDropping(Handler):
    def answer(self, request: int) -> None:
        self.send(200, CONTENT[:1000], length=len(CONTENT))


class WrongRange(Ranges):
    def send_rest(self, start: int, request: int) -> None:
        self.send(206, CONTENT, extra={"Content-Range": f"bytes 0-{len(CONTENT) - 1}/{len(CONTENT)}"})


class WrongContent(Ranges):
    content = b"x" * len(CONTENT)


class TooShort(Handler):
    def answer(self, request: int) -> None:
        self.send(200, CONTENT[:-1])


class Endless(Handler):
    """Says no length and sends far more than was asked for; the client has to hang up."""

    def answer(self, request: int) -> None:
        self.send_response(200)
        self.end_headers()
        with suppress(OSError):
            for _ in range(1000):
                self.wfile.write(CONTENT)


class NotFound(Handler):
    def answer(self, request: int) -> None:
        self.send(404, b"no such thing")


class BusyAtFirst(Handler):
    def answer(self, request: int) -> None:
        self.send(503, b"") if request < 3 else self.send(200, CONTENT)


class ToAnotherScheme(Handler):
    def answer(self, request: int) -> None:
        self.send(302, b"", extra={"Location": "file:///etc/hostname"})


class Server(ThreadingHTTPServer):
    asked: list[str | None]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/folder/file.txt"


Serve: TypeAlias = Callable[[type[Handler]], Server]


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Iterator[Serve]:
    monkeypatch.setenv("no_proxy", "*")
    running: list[tuple[Server, Thread]] = []

    def start(handler: type[Handler]) -> Server:
        server = Server(("127.0.0.1", 0), handler)
        server.asked = []
        thread = Thread(target=partial(server.serve_forever, poll_interval=0.01))
        thread.start()
        running.append((server, thread))
        return server

    yield start
    for server, thread in running:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "below" / "file.txt"


def part_of(target: Path) -> Path:
    return target.with_name(target.name + ".part")


def fetch(server: Server, target: Path, *, size: int | None = len(CONTENT)) -> None:
    download(server.url, target, sha256=SUM, size=size, pause=0.001, timeout=10)


def assert_whole(target: Path) -> None:
    assert target.read_bytes() == CONTENT
    assert not part_of(target).exists()


@pytest.mark.parametrize("size", [len(CONTENT), None])
@pytest.mark.parametrize(
    "handler", [Handler, Ranges, Dropping, DroppingWithoutRanges, BusyAtFirst], ids=lambda handler: handler.__name__
)
def test_the_file_arrives_whole(serve: Serve, target: Path, handler: type[Handler], size: int | None) -> None:
    fetch(serve(handler), target, size=size)
    assert_whole(target)


def test_after_a_drop_only_the_rest_is_asked_for(serve: Serve, target: Path) -> None:
    server = serve(Dropping)
    fetch(server, target)
    assert server.asked == [None, f"bytes={CHUNK_BYTES + 7}-"]


def test_a_part_from_before_is_used(serve: Serve, target: Path) -> None:
    server = serve(Ranges)
    target.parent.mkdir()
    part_of(target).write_bytes(CONTENT[:5000])
    fetch(server, target)
    assert server.asked == ["bytes=5000-"]
    assert_whole(target)


@pytest.mark.parametrize("handler", [Handler, WrongRange], ids=lambda handler: handler.__name__)
def test_a_server_that_ignores_the_range_starts_over(serve: Serve, target: Path, handler: type[Handler]) -> None:
    target.parent.mkdir()
    part_of(target).write_bytes(CONTENT[:5000])
    fetch(serve(handler), target)
    assert_whole(target)


@pytest.mark.parametrize(("size", "asked"), [(len(CONTENT), []), (None, [f"bytes={len(CONTENT)}-"])])
def test_a_part_that_is_complete(serve: Serve, target: Path, size: int | None, asked: list[str]) -> None:
    server = serve(Ranges)
    target.parent.mkdir()
    part_of(target).write_bytes(CONTENT)
    fetch(server, target, size=size)
    assert server.asked == asked
    assert_whole(target)


def test_a_part_that_is_too_long_is_thrown_away(serve: Serve, target: Path) -> None:
    target.parent.mkdir()
    part_of(target).write_bytes(CONTENT + b"more")
    fetch(serve(Ranges), target)
    assert_whole(target)


def test_a_target_that_is_there_is_left_alone(serve: Serve, target: Path) -> None:
    server = serve(Handler)
    target.parent.mkdir()
    target.write_text("as it is")
    fetch(server, target)
    assert target.read_text() == "as it is"
    assert server.asked == []


@pytest.mark.parametrize("handler", [WrongContent, TooShort, Endless], ids=lambda handler: handler.__name__)
def test_wrong_content_is_refused_and_not_kept(serve: Serve, target: Path, handler: type[Handler]) -> None:
    with pytest.raises(InputError, match=f"expected a file with sha256 {SUM}"):
        fetch(serve(handler), target)
    assert list(target.parent.iterdir()) == []


def test_not_found_is_said_at_once(serve: Serve, target: Path) -> None:
    server = serve(NotFound)
    with pytest.raises(InputError, match="404 Not Found"):
        fetch(server, target)
    assert len(server.asked) == 1
    assert list(target.parent.iterdir()) == []


def test_giving_up_keeps_what_arrived(serve: Serve, target: Path) -> None:
    server = serve(AlwaysDropping)
    with pytest.raises(InputError, match=f"cut after 1000 of {len(CONTENT)} bytes"):
        fetch(server, target)
    assert len(server.asked) == module.ATTEMPTS
    assert part_of(target).read_bytes() == CONTENT[:1000]


def test_nobody_listens(serve: Serve, target: Path) -> None:
    server = serve(Handler)
    url = server.url.replace(f":{server.server_address[1]}/", ":1/")
    with pytest.raises(InputError, match="cannot download"):
        download(url, target, sha256=SUM, pause=0.001)


@pytest.mark.parametrize("url", ["file:///etc/hostname", "ftp://host/file", "file.txt"])
def test_other_schemes_are_refused(target: Path, url: str) -> None:
    with pytest.raises(InputError, match="http"):
        download(url, target, sha256=SUM)


def test_a_redirection_to_another_scheme_is_refused(serve: Serve, target: Path) -> None:
    with pytest.raises(InputError):
        fetch(serve(ToAnotherScheme), target)
    assert not target.exists()


def test_progress_is_told(serve: Serve, target: Path) -> None:
    told: list[tuple[str, int, int | None]] = []
    download(serve(Ranges).url, target, sha256=SUM, meter=lambda *progress: told.append(progress))
    assert {phase for phase, _, _ in told} == {"download file.txt"}
    assert [done for _, done, _ in told] == sorted(done for _, done, _ in told)
    assert told[-1][1:] == (len(CONTENT), len(CONTENT))


def test_ctrl_c_keeps_what_arrived_and_the_next_call_goes_on(serve: Serve, target: Path) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    server = serve(Ranges)
    with pytest.raises(KeyboardInterrupt):
        download(server.url, target, sha256=SUM, meter=interrupt)
    kept = part_of(target).stat().st_size
    assert 0 < kept < len(CONTENT)
    fetch(server, target)
    assert server.asked == [None, f"bytes={kept}-"]
    assert_whole(target)


def test_a_folder_that_cannot_be_written(serve: Serve, tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    with pytest.raises(InputError, match="cannot store"):
        fetch(serve(Handler), blocked / "below" / "file.txt")


def test_two_processes_do_not_spoil_each_others_part(serve: Serve, target: Path) -> None:
    server = serve(Dropping)
    work = partial(download, server.url, target, sha256=SUM, pause=0.2)
    helpers = [multiprocessing.get_context("spawn").Process(target=work) for _ in range(2)]
    for helper in helpers:
        helper.start()
    for helper in helpers:
        helper.join()
    assert [helper.exitcode for helper in helpers] == [0, 0]
    assert server.asked == [None, f"bytes={CHUNK_BYTES + 7}-"]  # the second found it done
    assert_whole(target)


def test_cache_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "x"))
    assert cache_folder() == tmp_path / "x" / "foreword"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert cache_folder() == tmp_path / ".cache" / "foreword"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_folder() == tmp_path / ".cache" / "foreword"
