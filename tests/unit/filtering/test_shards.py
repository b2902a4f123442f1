"""Files in parts, the lines of a batch, and the ledger."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from foreword.errors import InputError, SettingError
from foreword.filtering import Filtering, filter_files, shards
from foreword.filtering.ledger import FOLDER, Ledger
from foreword.filtering.shards import relative_name
from foreword.ngram.unigram import UnigramLM
from foreword.pipeline.language import TextLM
from foreword.storage.folder import save
from foreword.text import segments
from foreword.tokens.words import WordTokenizer


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("model") / "unigram"
    save(TextLM(WordTokenizer(), UnigramLM()).fit(["a b c d", "a a b"]), folder)
    return str(folder)


def a_file(path: Path, lines: int = 400) -> bytes:
    rng = random.Random(lines)
    ends = ["\n", "\r\n", "\n\n"]
    data = "".join(
        json.dumps({"n": n, "text": " ".join(rng.choices("abcdé", k=rng.randrange(60)))}, ensure_ascii=False)
        + rng.choice(ends)
        for n in range(lines)
    ).encode()
    path.write_bytes(data.rstrip(b"\r\n"))
    return data


def kept(model: str, source: Path, out: Path, **settings: object) -> bytes:
    filtering = Filtering([("", model)], keep=["tokens>20"], with_scores=True, **settings)  # type: ignore[arg-type]
    filter_files(str(source), out, filtering, processes=1)
    return (out / source.name).read_bytes()


@pytest.mark.parametrize(("part", "lines"), [(64, 40), (1000, 400), (4001, 400)])
def test_a_file_in_parts_gives_the_same_bytes(
    model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part: int, lines: int
) -> None:
    source = tmp_path / "x.jsonl"
    a_file(source, lines)
    whole = kept(model, source, tmp_path / "whole")
    assert 0 < whole.count(b"\n") < lines
    monkeypatch.setattr(shards, "PART_BYTES", part)
    assert kept(model, source, tmp_path / "parts") == whole
    assert not list((tmp_path / "parts" / FOLDER).glob("parts/*"))


def test_an_error_in_a_part_names_the_line_of_the_file(
    model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "x.jsonl"
    good = a_file(source)
    source.write_bytes(good + b'{"n": "no text"}\n')
    monkeypatch.setattr(shards, "PART_BYTES", 1000)
    line = good.count(b"\n") + 1
    with pytest.raises(InputError, match=rf'line {line} has no field "text".*begins at byte {len(good)}\)'):
        kept(model, source, tmp_path / "out")


def test_parts_that_were_finished_are_not_done_again(
    model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "x.jsonl"
    good = a_file(source)
    source.write_bytes(good + b"no JSON\n")
    monkeypatch.setattr(shards, "PART_BYTES", 1000)
    with pytest.raises(InputError, match="is not JSON"):
        kept(model, source, tmp_path / "out")
    done = (tmp_path / "out" / FOLDER / "ledger.jsonl").read_text().splitlines()[1:]
    assert len(done) == len(good) // 1000  # all but the last
    opened: list[int] = []
    plain = segments.segment_opened

    def noting(name: str, start: int, stop: int, longest: int) -> Any:
        opened.append(start)
        return plain(name, start, stop, longest)

    monkeypatch.setattr(shards, "segment_opened", noting)
    with pytest.raises(InputError):
        kept(model, source, tmp_path / "out")
    assert set(opened) == {1000 * len(done)}


def test_a_shard_that_has_changed_is_done_again(model: str, tmp_path: Path) -> None:
    source = tmp_path / "x.jsonl"
    a_file(source)
    first = kept(model, source, tmp_path / "out")
    a_file(source, 300)
    assert kept(model, source, tmp_path / "out") != first


def test_a_line_of_the_ledger_that_breaks_off_counts_for_nothing(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "out", {"a": 1})
    ledger.record("one", n=1)
    ledger.record("two", n=2)
    with pytest.raises(InputError, match="another foreword filter is writing"):
        Ledger(tmp_path / "out", {"a": 1})
    ledger.close()
    path = tmp_path / "out" / FOLDER / "ledger.jsonl"
    whole = path.read_bytes()
    for cut in range(len(whole) - 1, whole.index(b"one"), -1):
        path.write_bytes(whole[:cut])
        again = Ledger(tmp_path / "out", {"a": 1})
        assert "two" not in again
        again.record("three", n=3)
        again.close()
        assert json.loads(path.read_bytes().splitlines()[-1].split(b"\t")[0]) == {"key": "three", "n": 3}
    path.write_bytes(whole)
    with pytest.raises(InputError, match=r"other settings \(a\); --restart"):
        Ledger(tmp_path / "out", {"a": 2})
    Ledger(tmp_path / "out", {"a": 2}, restart=True).close()


@pytest.mark.parametrize(
    ("source", "name", "wanted"),
    [
        ("web", "web/a/b.jsonl", "a/b.jsonl"),
        ("web/", "web/b.jsonl", "b.jsonl"),
        ("./web", "./web/b.jsonl", "b.jsonl"),
        ("/in/web", "/in/web/b.jsonl", "b.jsonl"),
        ("web/b.jsonl", "web/b.jsonl", "b.jsonl"),
        ("web/*/b-*.jsonl", "web/x/b-1.jsonl", "x/b-1.jsonl"),
        ("*.jsonl", "b.jsonl", "b.jsonl"),
        ("/in/**/*.jsonl", "/in/x/y.jsonl", "x/y.jsonl"),
        ("memory://web", "memory://web/x/y.jsonl", "x/y.jsonl"),
        ("memory://web/y.jsonl", "memory://web/y.jsonl", "y.jsonl"),
    ],
)
def test_where_a_shard_goes(source: str, name: str, wanted: str) -> None:
    assert relative_name(name, source) == wanted


def test_files_at_an_address(model: str, tmp_path: Path) -> None:
    fsspec = pytest.importorskip("fsspec")
    a_file(tmp_path / "x.jsonl")
    data = (tmp_path / "x.jsonl").read_bytes()
    with fsspec.open("memory://filtered/deep/x.jsonl", "wb") as file:
        file.write(data)
    filtering = Filtering([("", model)], keep=["tokens>20"], with_scores=True)
    filter_files("memory://filtered", tmp_path / "far", filtering, processes=1)
    assert (tmp_path / "far" / "deep" / "x.jsonl").read_bytes() == kept(model, tmp_path / "x.jsonl", tmp_path / "near")


def test_settings_that_make_no_sense() -> None:
    senseless: list[dict[str, Any]] = [
        {"models": []}, {"keep_percentile": 0.0}, {"keep_percentile": 101.0}, {"buckets": (60, 30)},
        {"buckets": "table"},
        {"score_only": True, "keep": ["x<1"]}, {"keep_percentile": 5.0, "buckets": (1, 2)}, {},
        {"models": [("", "a"), ("b", "c")], "score_only": True}, {"score_only": True, "longest": 1},
    ]  # fmt: skip
    for settings in senseless:
        with pytest.raises(SettingError):
            Filtering(**{"models": [("", "m")], **settings})


def test_a_damaged_line_of_the_ledger_is_done_again(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "out", {"a": 1})
    ledger.record("one", n=1)
    ledger.record("two", n=2)
    ledger.close()
    path = tmp_path / "out" / FOLDER / "ledger.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"n": 1', b'"m": 1'))
    again = Ledger(tmp_path / "out", {"a": 1})
    assert "one" not in again
    assert again["two"] == {"n": 2}
    again.close()
    path.write_bytes(b"x" + path.read_bytes())
    with pytest.raises(InputError, match="is damaged, or was written by another Foreword; --restart begins again"):
        Ledger(tmp_path / "out", {"a": 1})


def test_tiny_shards_share_their_syncs_and_all_are_synced_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each had two syncs of the ledger and one of its folder: a hundred thousand files took more than an hour."""
    folders, records = list[Path](), list[int]()
    monkeypatch.setattr("foreword.filtering.ledger.sync_entries", folders.append)
    monkeypatch.setattr("foreword.filtering.ledger.os.fsync", records.append)
    monkeypatch.setattr("foreword.filtering.ledger.SYNC_EVERY", 3600.0)
    ledger = Ledger(tmp_path / "out", {})
    for seen in (folders, records):
        seen.clear()
    for number in range(100):
        made = ledger.parts / "made"
        made.write_text("a")
        ledger.put(made, f"{number}.txt")
        ledger.record(f"shard {number}.txt", bytes=1)
    assert folders == []
    assert records == []
    ledger.sync()
    assert folders == [tmp_path / "out"]
    assert len(records) == 1
    made.write_text("b")
    ledger.put(made, "0.txt")  # if this rename were lost, the old file would stand there with a new record
    assert folders == [tmp_path / "out"] * 2
    ledger.close()
