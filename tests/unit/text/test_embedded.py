"""The embedded text: the same every time, split as promised, cached where it can be."""

import hashlib
import subprocess
import sys
import sysconfig
from itertools import combinations
from pathlib import Path
from shutil import which
from typing import cast, get_args
from zlib import crc32

import pytest

from foreword.errors import InputError, SettingError
from foreword.text import embedded
from foreword.text.embedded import Split, clean, docstrings_in, embedded_text, is_prose, split_of


@pytest.fixture(scope="module")
def collected() -> list[str]:
    return embedded.collect()


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "foreword"


def forbid_collecting(monkeypatch: pytest.MonkeyPatch) -> None:
    def collect() -> list[str]:
        raise AssertionError("collected although cached")

    monkeypatch.setattr(embedded, "collect", collect)


def test_collecting_twice_gives_the_same(collected: list[str]) -> None:
    assert embedded.collect() == collected


def test_size(collected: list[str]) -> None:
    assert 190_000 < sum(len(text.split()) for text in collected) < 600_000


DIGEST = "4e3351124c717c62"
"""Of the text that Python 3.11, 3.12 and 3.13 share."""


def test_every_python_is_given_the_same_text(collected: list[str]) -> None:
    shared = embedded.shared_checksums()
    assert len(set(shared)) == len(shared)
    if len(collected) == len(shared):
        assert hashlib.sha256("\n".join(collected).encode()).hexdigest().startswith(DIGEST)
    else:  # a later release, which has changed some paragraphs
        assert len(collected) > 0.9 * len(shared)


@pytest.mark.long
@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13"])
def test_other_pythons_here_have_the_same_text(version: str) -> None:
    source = (
        "import hashlib; from foreword.text.embedded import collect, shared_checksums; texts = collect(); "
        "print(len(texts) / len(shared_checksums()), hashlib.sha256(chr(10).join(texts).encode()).hexdigest())"
    )
    found = sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python"))
    python = str(found[0]) if found else which(f"python{version}")
    if python is None or f"{sys.version_info[0]}.{sys.version_info[1]}" == version:
        pytest.skip(f"no other Python {version} here")
    folder = str(Path(embedded.__file__).parents[2])
    run = subprocess.run([python, "-c", source], env={"PYTHONPATH": folder}, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    share, digest = run.stdout.split()
    assert float(share) > 0.9
    assert float(share) < 1 or digest.startswith(DIGEST)


def test_what_one_python_alone_has_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stored difference: 3.13 has a new paragraph, lacks one that 3.11 has, and reads the rest in another order."""
    both = ["Return a list of names.", "Close the file and flush it.", "Send a byte to the other end."]
    older, newer = [both[0], "Install the package with distutils.", *both[1:]], [*both[::-1], "Import the new module."]
    checksums = [crc32(text.encode()) for text in older if text in newer]
    monkeypatch.setattr(embedded, "shared_checksums", lambda: checksums)
    for python in (older, newer):
        monkeypatch.setattr(embedded, "paragraphs", lambda python=python: python)
        assert embedded.collect() == both


def test_documents_are_clean_lines(collected: list[str]) -> None:
    assert len(set(collected)) == len(collected)
    for text in collected:
        assert text == " ".join(text.split())
        assert len(text.split()) >= 4
        assert ">>>" not in text.split()[0]


def test_splits_share_out_the_whole(cache: Path, collected: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedded, "collect", lambda: collected)
    splits = {name: embedded_text(name) for name in get_args(Split)}
    assert sum(map(len, splits.values())) == len(collected)
    for one, other in combinations(splits.values(), 2):
        assert not set(one) & set(other)
    for name, share in (("train", 0.9), ("valid", 0.05), ("test", 0.05)):
        assert len(splits[name]) / len(collected) == pytest.approx(share, abs=0.01)


def test_the_split_depends_on_the_text_alone() -> None:
    assert [split_of(text) for text in ("a", "b", "6")] == ["train", "valid", "test"]  # never to change
    assert {split_of(str(number)) for number in range(100)} == set(get_args(Split))


def test_unknown_split() -> None:
    with pytest.raises(SettingError, match="train, valid, test"):
        embedded_text(cast(Split, "dev"))


def test_the_cache_is_written_and_used(cache: Path, collected: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedded, "collect", lambda: collected)
    first = embedded_text("valid")
    (file,) = cache.iterdir()
    assert file.read_text(encoding="utf-8").split("\n")[:-1] == collected
    forbid_collecting(monkeypatch)
    assert embedded_text("valid") == first


def test_a_new_rule_leaves_an_old_cache_alone(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedded, "collect", lambda: ["the old text of it"])
    embedded_text()
    monkeypatch.setattr(embedded, "RULE", embedded.RULE + 1)
    monkeypatch.setattr(embedded, "collect", lambda: ["the new text of it"])
    assert [text for split in get_args(Split) for text in embedded_text(split)] == ["the new text of it"]


@pytest.mark.parametrize("broken", [b"", b"\xff\xfe\n"])
def test_a_broken_cache_is_made_again(cache: Path, broken: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedded, "collect", lambda: ["some text or other"])
    embedded_text()
    (file,) = cache.iterdir()
    file.write_bytes(broken)
    assert [text for split in get_args(Split) for text in embedded_text(split)] == ["some text or other"]
    assert file.read_text() == "some text or other\n"


def test_a_cache_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")  # holds even for root, whom permissions do not stop
    monkeypatch.setenv("XDG_CACHE_HOME", str(blocked))
    monkeypatch.setattr(embedded, "collect", lambda: ["some text or other"])
    assert [text for split in get_args(Split) for text in embedded_text(split)] == ["some text or other"]


def test_a_full_disk_leaves_no_draft(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(embedded, "collect", lambda: ["some text or other"])
    monkeypatch.setattr("os.fsync", full)
    embedded_text()
    assert list(cache.iterdir()) == []


def test_no_home_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedded, "cache_folder", lambda: None)
    monkeypatch.setattr(embedded, "collect", lambda: ["some text or other"])
    assert [text for split in get_args(Split) for text in embedded_text(split)] == ["some text or other"]


def test_topics_alone_where_sources_are_absent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sysconfig, "get_path", lambda _: str(tmp_path / "python.zip"))
    assert sum(len(text.split()) for text in embedded.collect()) > 30_000


def test_a_python_without_any_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sysconfig, "get_path", lambda _: str(tmp_path))
    monkeypatch.setattr(embedded, "_topics", list)
    with pytest.raises(InputError, match="name a text of your own"):
        embedded.collect()


def test_docstrings_in_the_order_of_the_text() -> None:
    source = b'''
"""module"""
class A:
    """class"""
    if True:
        def f(self):
            """method"""
    try:
        pass
    except ValueError:
        async def g():
            """handler"""
def h():
    "function"
    return """no docstring"""
'''
    assert list(docstrings_in(source)) == ["module", "class", "method", "handler", "function"]


@pytest.mark.parametrize("source", [b"def (:", b"\0"])
def test_what_only_looks_like_python(source: bytes) -> None:
    assert list(docstrings_in(source)) == []


@pytest.mark.parametrize(
    ("paragraph", "text"),
    [
        ("  Some   text\n  on lines. ", "Some text on lines."),
        ("Title of it\n===========", "Title of it"),
        ("Use :class:`Foo` and ``bar``.", "Use Foo and bar."),
        (".. note:: Mind the *gap* and **the step**.", "Mind the gap and the step."),
        ("* the left-\n  hand side", "the left-hand side"),
        ("For example:\n>>> 1 + 1\n2", "For example:"),
        ("f(*args, **kwargs) takes *args and *more", "f(*args, **kwargs) takes *args and *more"),
        ("4*x*3", "4*x*3"),
    ],
)
def test_clean(paragraph: str, text: str) -> None:
    assert clean(paragraph) == text


@pytest.mark.parametrize(
    ("text", "prose"),
    [
        ("Return a list of names.", True),
        ("Return a list.", False),
        ("server = Server(host, 8000) server.register(f) server.run()", False),
        ('or_test ::= and_test "or" and this and that and more', False),
        ("half a character is \ud800 in here", False),
    ],
)
def test_is_prose(text: str, prose: bool) -> None:
    assert is_prose(text) is prose
