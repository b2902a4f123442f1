"""Models behind addresses: copied once, checked, and used without a network."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from foreword import NgramLM, TextLM, WordTokenizer, load, save
from foreword.errors import InputError
from foreword.text.remote import RECORD, local_copy

TEXTS = ["the cat sat on the mat", "the cat sat", "a mat on a mat"]


class Hub(BaseHTTPRequestHandler):
    """A server like Hugging Face's: large files are redirected, with their checksum in the first answer."""

    files: dict[str, bytes] = {}  # noqa: RUF012
    asked: list[str] = []  # noqa: RUF012
    checksum = True

    def do_HEAD(self) -> None:
        self.answer(body=False)

    def do_GET(self) -> None:
        self.asked.append(self.path)
        self.answer(body=True)

    def answer(self, body: bool) -> None:
        content = self.files.get(self.path.removeprefix("/stored"))
        if content is None:
            self.send_error(404)
        elif self.path.startswith("/stored"):
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            if body:
                self.wfile.write(content)
        else:
            self.send_response(302)
            self.send_header("Location", f"/stored{self.path}")
            if self.checksum:
                self.send_header("X-Linked-Etag", f'"{hashlib.sha256(content).hexdigest()}"')
                self.send_header("X-Linked-Size", str(len(content)))
            self.send_header("Content-Length", "0")
            self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[ThreadingHTTPServer]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    thread = Thread(target=server.serve_forever)
    thread.start()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{server.server_port}/")
    monkeypatch.setattr(Hub, "files", {})
    monkeypatch.setattr(Hub, "asked", [])
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture(scope="module")
def binary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from foreword.ngram.kenlm_writing import write_kenlm
    from foreword.ngram.log10 import log10_of

    path: Path = tmp_path_factory.mktemp("binary") / "model.bin"
    model = TextLM(WordTokenizer(), NgramLM(3)).fit(TEXTS)
    assert isinstance(model.model, NgramLM)
    write_kenlm(log10_of(model.model), path, "trie")
    return path


@pytest.mark.parametrize("checksum", [True, False])
def test_a_model_of_the_hub_is_copied_once(
    hub: ThreadingHTTPServer, binary: Path, monkeypatch: pytest.MonkeyPatch, checksum: bool
) -> None:
    Hub.files["/me/models/resolve/main/lm/en.arpa.bin"] = binary.read_bytes()
    monkeypatch.setattr(Hub, "checksum", checksum)
    address = "hf://me/models/lm/en.arpa.bin"
    expected = load(binary).score("the cat")
    assert load(address).score("the cat") == expected
    assert len(Hub.asked) == 2  # the redirection and the file
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")  # nobody is there: the copy is used
    assert load(address).score("the cat") == expected
    assert load(address, verify=True).score("the cat") == expected
    assert local_copy(address).name == "en.arpa.bin"


def test_a_revision_is_another_file(hub: ThreadingHTTPServer, binary: Path) -> None:
    Hub.files["/me/models/resolve/v2/en.bin"] = binary.read_bytes()
    assert load("hf://me/models@v2/en.bin").score("the") == load(binary).score("the")
    with pytest.raises(InputError, match="404"):
        load("hf://me/models/en.bin")


def test_a_damaged_copy_is_fetched_again(hub: ThreadingHTTPServer, binary: Path) -> None:
    Hub.files["/me/models/resolve/main/en.bin"] = binary.read_bytes()
    copy = local_copy("hf://me/models/en.bin")
    copy.write_bytes(b"spoilt" + copy.read_bytes()[6:])
    assert load("hf://me/models/en.bin").score("the") == load(binary).score("the")
    assert json.loads((copy.parents[1] / RECORD).read_text())["address"] == "hf://me/models/en.bin"


def test_the_record_is_synced_before_it_has_its_name(
    hub: ThreadingHTTPServer, binary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a power cut a record could be there, and be empty."""
    import foreword.text.remote as module

    synced = list[str]()
    replace = Path.replace

    def replacing(self: Path, target: Path) -> Path:
        if self.name == f"{RECORD}.new":
            assert synced == [self.name]
        return replace(self, target)

    monkeypatch.setattr(module, "_sync", lambda file: synced.append(Path(file.name).name))
    monkeypatch.setattr(Path, "replace", replacing)
    Hub.files["/me/models/resolve/main/en.bin"] = binary.read_bytes()
    local_copy("hf://me/models/en.bin")
    assert synced == [f"{RECORD}.new"]


def test_a_file_that_is_not_what_the_server_promised_is_refused(
    hub: ThreadingHTTPServer, binary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import foreword.text.remote as module

    Hub.files["/me/models/resolve/main/en.bin"] = binary.read_bytes()
    monkeypatch.setattr(module, "checksum_offered", lambda url: ("0" * 64, None))
    with pytest.raises(InputError, match="expected a file with sha256 0000"):
        load("hf://me/models/en.bin")


def test_without_a_network_it_is_one_line(hub: ThreadingHTTPServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://no-such-host.invalid")
    with pytest.raises(InputError, match=r"cannot download http://no-such-host\.invalid") as raised:
        load("hf://me/models/en.bin")
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("address", ["hf://me/models", "hf://me", "hf:///x/y", "hf://me/models/"])
def test_an_address_that_names_no_file_is_one_line(hub: ThreadingHTTPServer, address: str) -> None:
    with pytest.raises(InputError, match="expected hf://OWNER/NAME/FILE"):
        load(address)


def test_a_file_and_a_folder_of_any_file_system(hub: ThreadingHTTPServer, binary: Path, tmp_path: Path) -> None:
    fsspec = pytest.importorskip("fsspec")
    save(load(binary), tmp_path / "saved")
    memory = fsspec.filesystem("memory")
    memory.pipe("/models/en.bin", binary.read_bytes())
    for path in (tmp_path / "saved").iterdir():
        memory.pipe(f"/models/saved/{path.name}", path.read_bytes())
    expected = load(binary).score("the cat")
    for address in ("memory://models/en.bin", "memory://models/saved"):
        assert load(address).score("the cat") == expected
    memory.rm("/models", recursive=True)
    for address in ("memory://models/en.bin", "memory://models/saved"):
        assert load(address).score("the cat") == expected
    with pytest.raises(InputError, match="no such file"):
        load("memory://models/other.bin")


def test_https_addresses_are_downloaded(hub: ThreadingHTTPServer, binary: Path) -> None:
    Hub.files["/anywhere/en.bin"] = binary.read_bytes()
    address = f"http://127.0.0.1:{hub.server_port}/anywhere/en.bin?download=true"
    Hub.files["/anywhere/en.bin?download=true"] = binary.read_bytes()
    assert load(address).score("the") == load(binary).score("the")
    assert local_copy(address).name == "en.bin"
