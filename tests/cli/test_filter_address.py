"""``foreword filter`` whose results go to an address."""

from __future__ import annotations

import json
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.conftest import Foreword

from foreword.errors import ForewordError
from foreword.filtering import Filtering, filter_files
from foreword.filtering.ledger import FOLDER, AddressLedger
from foreword.ngram.model import NgramLM
from foreword.pipeline.language import TextLM
from foreword.storage.folder import save
from foreword.tokens.words import WordTokenizer

fsspec = pytest.importorskip("fsspec")

WORDS = ["the", "cat", "sat", "on", "a", "mat", "dog", "log", "and"]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model") / "ngram"
    save(TextLM(WordTokenizer(), NgramLM(2, "witten-bell")).fit(["the cat sat on the mat", "a dog and a cat"]), folder)
    return folder


@pytest.fixture
def web(tmp_path: Path) -> Path:
    folder, rng = tmp_path / "web", random.Random(0)
    (folder / "deep").mkdir(parents=True)
    for name in ("a.jsonl", "b.jsonl", "deep/c.jsonl"):
        rows = [json.dumps({"text": " ".join(rng.choices(WORDS, k=rng.randint(2, 12)))}) for _ in range(500)]
        (folder / name).write_text("\n".join(rows) + "\n")
    return folder


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return tmp_path / "tmp"


@pytest.fixture
def memory() -> Iterator[str]:
    system = fsspec.filesystem("memory")
    system.store.clear()
    system.pseudo_dirs[:] = [""]
    yield "memory://bucket/kept"
    system.store.clear()


def below(address: str) -> dict[str, bytes]:
    """All that lies there, hidden things apart."""
    system, root = fsspec.core.url_to_fs(address)
    found = {path.removeprefix(f"{root}/"): system.cat_file(path) for path in system.find(root)}
    return {name: data for name, data in found.items() if not name.startswith(FOLDER)}


@pytest.mark.parametrize("rule", [("--keep", "perplexity<8"), ("--keep-percentile", 40)])
@pytest.mark.parametrize("kind", ["memory", "file"])
def test_an_address_gets_what_a_folder_gets(
    foreword: Foreword, model: Path, web: Path, tmp_path: Path, memory: str, temporary: Path, kind: str,
    rule: tuple[object, ...],
) -> None:  # fmt: skip
    address = memory if kind == "memory" else f"file://{tmp_path}/far/kept"
    assert foreword("filter", model, web, tmp_path / "near", *rule, "-p", 1).exit_code == 0
    done = foreword("filter", model, web, address, *rule, "-p", 1, "--json")
    assert done.exit_code == 0, done.stderr
    near = below(f"file://{tmp_path}/near")
    assert list(near) == ["a.jsonl", "b.jsonl", "deep/c.jsonl"]
    assert below(address) == near
    assert list(temporary.iterdir()) == []
    again = foreword("filter", model, web, address, *rule, "-p", 1, "--json")
    assert {**json.loads(again.stdout), "seconds": 0} == {**json.loads(done.stdout), "seconds": 0}


def test_in_an_object_store_nothing_is_moved(
    model: Path, web: Path, memory: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where an object appears whole; to move it would be to copy it."""
    from fsspec.implementations.memory import MemoryFileSystem

    from foreword.filtering import ledger

    def never(*words: object, **how: object) -> None:
        raise AssertionError(words)

    monkeypatch.setattr(ledger, "WHOLE_AT_ONCE", {"memory"})
    monkeypatch.setattr(MemoryFileSystem, "mv", never)
    report = filter_files(str(web), memory, Filtering([("", str(model))], score_only=True), processes=1)
    assert report.tally.kept == 1500
    assert list(below(memory)) == ["a.jsonl", "b.jsonl", "deep/c.jsonl"]


def test_only_what_is_missing_is_done_again(model: Path, web: Path, memory: str, tmp_path: Path) -> None:
    rules = Filtering([("", str(model))], keep_percentile=40)
    filter_files(str(web), memory, rules, processes=1)
    whole, system = below(memory), fsspec.filesystem("memory")
    before = {name: system.info(f"/bucket/kept/{name}")["created"] for name in whole}
    system.rm("/bucket/kept/b.jsonl")
    system.pipe_file("/bucket/kept/deep/c.jsonl", b"cut")
    report = filter_files(str(web), memory, rules, processes=1, scratch=tmp_path / "scratch")
    assert (below(memory), report.tally.documents) == (whole, 1500)
    assert report.read_before == (web / "a.jsonl").stat().st_size
    assert system.info("/bucket/kept/a.jsonl")["created"] == before["a.jsonl"]
    assert list((tmp_path / "scratch").iterdir()) == []


def test_what_an_address_refuses(foreword: Foreword, model: Path, web: Path, memory: str, tmp_path: Path) -> None:
    def told(*words: object, source: object = web) -> str:
        done = foreword("filter", model, source, *words, "-p", 1)
        assert done.exit_code in (1, 2)
        assert done.stderr.count("\n") == 1
        return done.stderr

    system = fsspec.filesystem("memory")
    assert "there is no column" in told(memory, "--keep", "label=en")
    assert system.find("/") == []
    system.pipe_file("/bucket/kept/precious.txt", b"mine")
    assert "not empty" in told(memory, "--score-only")
    assert "OUT is a folder" in told(f"{memory}/precious.txt", "--score-only")
    assert "is inside" in told(f"file://{web}/kept", "--score-only")
    assert "is inside" in told("memory://bucket/kept/in", "--score-only", source="memory://bucket/kept")
    assert "cannot write nowhere://x" in told("nowhere://x", "--score-only")
    assert "--scratch is for an address" in told(tmp_path / "out", "--score-only", "--scratch", tmp_path)
    assert foreword("filter", model, web, "memory://b/done", "--score-only", "-p", 1).exit_code == 0
    assert "holds a run with other settings (keep)" in told("memory://b/done", "--keep", "oov=0")
    assert foreword("filter", model, web, "memory://b/done", "--keep", "oov=0", "-p", 1, "--restart").exit_code == 0


def test_of_two_runs_the_first_ends(memory: str, tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"x")
    first = AddressLedger(memory, {"a": 1}, scratch=tmp_path / "one")
    second = AddressLedger(memory, {"a": 1}, scratch=tmp_path / "two")
    with pytest.raises(ForewordError, match="another foreword filter has begun to write to memory://bucket/kept"):
        first.put(tmp_path / "x", "x")
    second.put(tmp_path / "x", "x")
    second.record("shard x", bytes=1)
    for ledger in (first, second):
        ledger.close()
    third = AddressLedger(memory, {"a": 1}, scratch=tmp_path / "three")
    assert (third["shard x"], third.stored("x")) == ({"bytes": 1}, 1)
    third.close()


def test_a_store_that_fails_is_told_and_nothing_is_lost(
    foreword: Foreword, model: Path, web: Path, memory: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from fsspec.implementations.memory import MemoryFileSystem

    put, calls = MemoryFileSystem.put_file, list[object]()

    def failing(self: MemoryFileSystem, *words: object, **how: object) -> None:
        calls.append(words)
        if len(calls) == 2:
            raise RuntimeError("the bucket is on holiday\nand so are we")
        put(self, *words, **how)

    words = ("filter", model, web, memory, "--keep", "oov=0", "-p", 1)
    with monkeypatch.context() as patched:
        patched.setattr(MemoryFileSystem, "put_file", failing)
        done = foreword(*words)
    assert done.exit_code == 1
    told = re.match(r"foreword: cannot write memory://bucket/kept/(\S+): the bucket is on holiday$", done.stderr)
    assert told, done.stderr
    assert told[1] not in below(memory)
    assert foreword(*words).exit_code == 0
    assert list(below(memory)) == ["a.jsonl", "b.jsonl", "deep/c.jsonl"]


@pytest.mark.long
def test_killed_at_random_moments_ends_in_the_same_bytes(
    foreword: Foreword, model: Path, tmp_path: Path, temporary: Path
) -> None:
    source, rng, kills = tmp_path / "many", random.Random(1), 0
    source.mkdir()
    for number in range(12):
        rows = [json.dumps({"text": " ".join(rng.choices(WORDS, k=9))}) for _ in range(4000)]
        (source / f"{number:02}.jsonl").write_text("\n".join(rows) + "\n")
    words = ("filter", model, source, "--keep-percentile", 40, "--quiet", "-p", 1)
    assert foreword(*words[:3], tmp_path / "clean", *words[3:]).exit_code == 0
    address = f"file://{tmp_path}/far"
    command = [sys.executable, "-m", "foreword", *map(str, (*words[:3], address, *words[3:]))]
    for number in range(6):
        child = subprocess.Popen(command)
        began = time.monotonic()
        while not (tmp_path / "far" / FOLDER / "run.jsonl").exists() and time.monotonic() - began < 60:
            time.sleep(0.01)
        time.sleep(0.7 + rng.uniform(0.0, 0.6) if number else 0.3)
        kills += child.poll() is None
        child.send_signal(signal.SIGKILL)
        child.wait()
    assert kills
    done = foreword(*words[:3], address, *words[3:])
    assert done.exit_code == 0, done.stderr
    assert below(address) == below(f"file://{tmp_path}/clean")
    assert list((tmp_path / "far" / FOLDER).glob("new/*")) == []
    assert list(temporary.iterdir()) == []
