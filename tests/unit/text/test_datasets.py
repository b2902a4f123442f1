"""The register and the look-up: with tiny files in temporary folders, and with the real ones where there are any."""

from __future__ import annotations

import hashlib
import json
import lzma
from collections import Counter
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any, get_args

import pytest

from foreword.errors import InputError, SettingError
from foreword.text import datasets
from foreword.text.datasets import (
    DATASETS,
    Availability,
    DataFile,
    Dataset,
    Format,
    availability,
    dataset,
    find,
    is_intact,
    labelled,
    locate,
    lookup,
    parse_dataset,
)

TEXT = b"some text\n"


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty data folder; the cache is an empty folder beside it."""
    monkeypatch.setenv("FOREWORD_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "data"


@pytest.fixture
def cache(data: Path) -> Path:
    return data.parent / "cache" / "foreword" / "data"


def tiny(
    content: bytes = TEXT, format: Format = "lines", download: str | None = "https://example.org/a.txt"
) -> Dataset:
    """A set of two files with the same content, of which only the first can be downloaded."""
    digest = hashlib.sha256(content).hexdigest()
    first = DataFile("train", "folder/a.txt", len(content), digest, download, format)
    second = replace(first, split="test", name="folder/b.txt", download=None)
    return Dataset(
        name="tiny",
        title="Tiny",
        task="lm",
        licence="none",
        citation="nobody",
        address="https://example.org/",
        files=(first, second),
        by_hand="unpack it",
    )


def put(path: Path, content: bytes = TEXT) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(lzma.compress(content) if path.suffix == ".xz" else content)
    return path


def register(one: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(DATASETS, one.name, one)


# The register


def test_names_and_splits_are_unique_and_complete() -> None:
    listed = resources.files("foreword.text").joinpath("datasets.json").read_text("utf-8")
    assert list(DATASETS) == [name for name, _ in json.loads(listed, object_pairs_hook=list)]  # no name twice
    files = [file for one in DATASETS.values() for file in one.files]
    assert len({(file.name, file.sha256, file.split) for file in files}) == len(files) > 100  # parts may share a file
    for one in DATASETS.values():
        assert len(set(one.splits)) == len(one.splits)
        assert ":" not in one.name + "".join(one.splits)
        assert one.title
        assert one.licence
        assert one.citation
        assert one.address.startswith(("http://", "https://"))


@pytest.mark.parametrize("one", DATASETS.values(), ids=DATASETS)
def test_every_file_can_be_had(one: Dataset) -> None:
    for file in one.files:
        assert file.bytes > 0
        assert len(file.sha256) == 64
        assert file.format in get_args(Format)
        if file.download is None:
            assert one.by_hand
        else:
            assert file.download.startswith("https://raw.githubusercontent.com/")
            assert file.download.rsplit("/", 1)[-1] == file.name.rsplit("/", 1)[-1]


ENTRY: dict[str, Any] = {
    "title": "Tiny", "task": "lm", "licence": "none", "citation": "nobody", "address": "https://example.org/",
    "files": [
        {"folder": "a", "upstream": "https://example.org/", "format": "lines", "splits": {"all": ["a", 1, "0" * 64]}}
    ],
}  # fmt: skip


def group(**changes: Any) -> dict[str, Any]:
    return {"files": [{**ENTRY["files"][0], **changes}]}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"task": "cooking"}, "tiny: no task 'cooking'"),
        ({"colour": "red"}, "tiny: .*colour"),
        ({"files": []}, "tiny: expected at least one file"),
        (group(format="wax"), "tiny: no format 'wax'"),
        (group(upstream=None), "tiny: files without a download need by_hand"),
        (group(splits={"all": ["a", 0, "0" * 64]}), "tiny: expected a size and a sha256 for a"),
        (group(splits={"all": ["a", 1, "0" * 63]}), "tiny: expected a size and a sha256 for a"),
    ],
)
def test_a_malformed_entry_is_refused(change: dict[str, Any], said: str) -> None:
    assert parse_dataset("tiny", ENTRY).files[0].download == "https://example.org/a"
    with pytest.raises(ValueError, match=said):
        parse_dataset("tiny", {**ENTRY, **change})


def test_specs() -> None:
    assert lookup("ptb")[1].split == "train"
    assert lookup("wikitext-2:test")[1].name == "wikitext-2/test.txt"
    assert lookup("sst2:valid")[1].name == "sent-cls/stsa.binary.dev"
    assert lookup("multi30k-tok:test2016.de")[1].name == "multi30k/test_2016_flickr.lc.norm.tok.de"
    assert dataset("imdb").format == "jsonl"
    assert dataset("imdb").file("unsup").format == "lines"


@pytest.mark.parametrize(
    ("name", "likeliest"),
    [("wikitext2", "wikitext-2"), ("PTB", "ptb"), ("sent-cls", "sst2"), ("enwiki2014", "enwiki"), ("", "20newsgroups")],
)
def test_an_unknown_name_lists_the_likeliest_first(name: str, likeliest: str) -> None:
    with pytest.raises(SettingError, match=f"no dataset named {name!r}: expected {likeliest}, ") as caught:
        dataset(name)
    assert all(known in str(caught.value) for known in DATASETS)


@pytest.mark.parametrize("spec", ["ptb:dev", "ptb:"])
def test_an_unknown_split_lists_the_known(spec: str) -> None:
    with pytest.raises(SettingError, match="in ptb: expected train, valid, test"):
        find(spec)


# Finding


def test_the_data_folder_comes_before_the_cache_and_plain_before_xz(data: Path, cache: Path) -> None:
    one = tiny()
    for path in (cache / "folder/a.txt.xz", cache / "folder/a.txt", data / "folder/a.txt.xz", data / "folder/a.txt"):
        put(path)
        assert one.path("train", download=False) == path


def test_find(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    register(tiny(), monkeypatch)
    put(data / "folder/a.txt")
    put(data / "folder/b.txt.xz")
    assert find("tiny") == find("tiny:train") == data / "folder/a.txt"
    assert find("tiny:test") == data / "folder/b.txt.xz"


def test_no_data_folder_is_set(data: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FOREWORD_DATA")
    put(data / "folder/a.txt")
    assert locate(tiny().file()) == ("not here", None)
    put(cache / "folder/a.txt")
    assert locate(tiny().file()) == ("cache", cache / "folder/a.txt")


def test_a_missing_file_is_downloaded_into_the_cache(data: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def pretend(url: str, target: Path, **settings: object) -> None:
        assert url == "https://example.org/a.txt"
        assert settings == {"sha256": one.file().sha256, "size": len(TEXT), "meter": None}
        put(target)

    one = tiny()
    monkeypatch.setattr(datasets, "download", pretend)
    assert one.path() == cache / "folder/a.txt"
    assert not data.exists()


def test_a_missing_file_that_may_not_be_downloaded(data: Path) -> None:
    with pytest.raises(
        InputError, match=r"tiny:train is not here: get it from https://example.org/a.txt and put it at "
    ):
        tiny().path(download=False)


def test_a_file_to_be_had_by_hand(data: Path) -> None:
    with pytest.raises(InputError) as caught:
        tiny().path("test")
    assert str(caught.value) == (
        "tiny:test is not here: get it from https://example.org/ (by hand: unpack it) "
        f"and put it at {data / 'folder/b.txt'}"
    )


def test_nowhere_to_put_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FOREWORD_DATA", raising=False)
    monkeypatch.setattr(datasets, "cache_folder", lambda: None)
    with pytest.raises(InputError, match=r"put it at \$FOREWORD_DATA/folder/a.txt"):
        tiny().path()


def test_a_cut_file_is_refused(data: Path) -> None:
    put(data / "folder/a.txt", TEXT[:-1])
    with pytest.raises(InputError, match="has 9 bytes, expected 10 for tiny:train"):
        tiny().path()


def test_a_file_packed_by_hand_may_differ(data: Path) -> None:
    mine = put(data / "folder/b.txt", b"my own packing\n")
    assert tiny().path("test") == mine


def test_availability(data: Path, cache: Path) -> None:
    one = tiny()
    assert availability(one) == Availability("not here", 0, 0)
    packed = put(cache / "folder/b.txt.xz")
    assert availability(one) == Availability("cache", 1, packed.stat().st_size)
    put(data / "folder/a.txt")
    assert availability(one) == Availability("data folder", 2, len(TEXT) + packed.stat().st_size)


@pytest.mark.parametrize("name", ["a.txt", "a.txt.xz"])
def test_is_intact(tmp_path: Path, name: str) -> None:
    assert is_intact(put(tmp_path / name), tiny().file())
    assert not is_intact(put(tmp_path / name, b"other text"), tiny().file())


@pytest.mark.parametrize("content", [lzma.compress(TEXT)[:-9], TEXT])
def test_a_broken_xz_is_not_intact(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.txt.xz"
    path.write_bytes(content)
    assert not is_intact(path, tiny().file())


# Reading


@pytest.mark.parametrize(
    ("format", "content"),
    [
        ("jsonl", b'{"label": 1, "text": "good \\u2014 very"}\n{"text": "bad", "label": 0}'),
        ("label-tab-text", "1\tgood — very\n0\tbad\n".encode()),
        ("label-tab-text", "1\tgood — very\r\n\r\n0\tbad\r\n".encode()),
        ("label-space-text", "1 good — very \n0 bad\n".encode()),
        ("text-tab-label", "text\tlabel\ngood — very\t1\nbad \t0\n".encode()),
        ("label-comma-text", '"1","good —","very"\n"0","bad"\n'.encode()),
    ],
)
@pytest.mark.parametrize("suffix", ["", ".xz"])
def test_labelled(data: Path, monkeypatch: pytest.MonkeyPatch, format: Format, content: bytes, suffix: str) -> None:
    register(tiny(content, format), monkeypatch)
    put(data / f"folder/a.txt{suffix}", content)
    assert list(labelled("tiny")) == [("1", "good — very"), ("0", "bad")]


def test_labelled_decodes_as_the_set_says(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = b"1 clich\xe9s \x85 indeed\n"  # \x85 alone would end a line in Latin-1
    register(replace(tiny(content, "label-space-text"), encoding="cp1252"), monkeypatch)
    put(data / "folder/a.txt", content)
    assert list(labelled("tiny")) == [("1", "clichés … indeed")]


@pytest.mark.parametrize(
    ("format", "content", "message"),
    [
        ("jsonl", b'{"label": 1, "text": ""}\nnonsense\n', "line 2: expected jsonl"),
        ("jsonl", b'{"label": 1}\n', "line 1: expected jsonl: 'text'"),
        ("jsonl", b"[1]\n", "line 1: expected jsonl"),
        ("label-tab-text", b"1 good\n", "line 1: expected label-tab-text"),
        ("text-tab-label", b"text\tlabel\ngood 1\n", "line 2: expected text-tab-label"),
        ("label-space-text", b"1 \xff\n", "expected text in utf-8"),
    ],
)
def test_labelled_names_the_line_that_is_wrong(
    data: Path, monkeypatch: pytest.MonkeyPatch, format: Format, content: bytes, message: str
) -> None:
    register(tiny(content, format), monkeypatch)
    put(data / "folder/a.txt", content)
    with pytest.raises(InputError, match=message):
        list(labelled("tiny"))


def test_labelled_of_a_broken_xz(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    register(tiny(b"1 good\n", "label-space-text"), monkeypatch)
    path = put(data / "folder/a.txt.xz", b"1 good\n")
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(InputError, match=r"expected a whole \.xz file"):
        list(labelled("tiny"))


@pytest.mark.parametrize("spec", ["ptb", "imdb:unsup", "conll2003"])
def test_labelled_of_a_set_without_labels(spec: str) -> None:
    with pytest.raises(SettingError, match="has no labels"):
        labelled(spec)


# Real data


def need_real_data(one: Dataset) -> None:
    """A data folder need not hold everything, but what it holds must be right."""
    if availability(one).where == "not here":
        pytest.skip(f"{one.name} is not in $FOREWORD_DATA")


class TestRealData:
    pytestmark = pytest.mark.data

    @pytest.mark.parametrize("one", DATASETS.values(), ids=DATASETS)
    def test_every_file_is_there_and_intact(self, one: Dataset) -> None:
        need_real_data(one)
        for file in one.files:
            path = one.path(file.split, download=False)
            if file.bytes < 15_000_000:  # the larger ones would take minutes
                assert is_intact(path, file), path

    @pytest.mark.parametrize(
        ("spec", "counts"),
        [
            ("20newsgroups:test", 7532),
            ("reuters_r8:train", 5485),
            ("reuters_r8:test", 2189),
            ("sms_spam", {"ham": 4827, "spam": 747}),
            ("sst2:train", 6920),
            ("sst2:valid", 872),
            ("sst2:test", 1821),
            ("sst1:train", 8544),
            ("sst1:valid", 1101),
            ("sst1:test", 2210),
            ("trec:train", 5452),
            ("trec:test", 500),
            ("mr", {"0": 5331, "1": 5331}),
            ("subj", {"0": 5000, "1": 5000}),
            ("cr", 3775),
            ("mpqa", 10606),
            ("sst2-glue:train", 60614),
            ("sst2-glue:valid", 6735),
            ("sst2-glue:test", 872),
            ("ag_news:test", {"1": 1900, "2": 1900, "3": 1900, "4": 1900}),
        ],
    )
    def test_labelled_counts_are_the_published_ones(self, spec: str, counts: int | dict[str, int]) -> None:
        need_real_data(lookup(spec)[0])
        found = Counter(label for label, _ in labelled(spec))
        assert (found.total() if isinstance(counts, int) else found) == counts

    @pytest.mark.parametrize(
        ("spec", "classes"), [("20newsgroups:test", 20), ("reuters_r8:test", 8), ("trec:test", 6), ("sst1:test", 5)]
    )
    def test_classes(self, spec: str, classes: int) -> None:
        need_real_data(lookup(spec)[0])
        assert len({label for label, _ in labelled(spec)}) == classes
