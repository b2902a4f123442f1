"""What TEXT may be."""

from __future__ import annotations

import lzma
from pathlib import Path

import pytest

from foreword.cli.texts import blocks_in, documents_in, fingerprint, whole_dataset
from foreword.errors import InputError, SettingError
from foreword.text import datasets
from foreword.text.embedded import embedded_text
from foreword.text.sources import BY_LINE, Reading


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data folder with tiny stand-ins, and a working folder beside it."""
    (tmp_path / "data" / "ptb").mkdir(parents=True)
    (tmp_path / "data" / "ptb" / "ptb.train.txt.xz").write_bytes(lzma.compress(b"no it was\nblack monday\n"))
    (tmp_path / "data" / "sent-cls").mkdir()
    (tmp_path / "data" / "sent-cls" / "stsa.binary.train").write_text("1 a fine film\n0 a dull one\n")
    (tmp_path / "work").mkdir()
    monkeypatch.setenv("FOREWORD_DATA", str(tmp_path / "data"))
    monkeypatch.setattr(datasets, "_check_size", lambda *_: None)
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path / "work"


def texts(*names: str, reading: Reading = BY_LINE) -> list[str]:
    found = list(documents_in(names, reading))
    assert [text for block in blocks_in(names, reading) for text in block.strings()] == found
    return found


def test_data_sets_by_name(library: Path) -> None:
    assert texts("ptb:train") == texts("ptb") == ["no it was", "black monday"]


def test_labels_are_not_text(library: Path) -> None:
    assert texts("sst2:train") == ["a fine film", "a dull one"]


def test_a_file_goes_before_a_name(library: Path) -> None:
    (library / "ptb").write_text("mine\n")
    (library / "embedded").write_text("mine too\n")
    assert texts("ptb", "embedded") == ["mine", "mine too"]
    assert whole_dataset("ptb") is None


def test_texts_of_all_sorts_come_in_order(library: Path) -> None:
    (library / "a.txt").write_text("one\ntwo\n")
    (library / "b.txt").write_text("three\n")
    found = texts("b.txt", "embedded:test", "a.txt", "*.txt", "sst2")
    middle = embedded_text("test")
    assert found == ["three", *middle, "one", "two", "one", "two", "three", "a fine film", "a dull one"]


def test_names_that_stand_for_nothing(library: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(library / "cache"))
    for name, kind, said in (
        ("ptb:tset", SettingError, "no split 'tset'"),
        ("embedded:all", SettingError, "no split 'all' in the embedded text"),
        ("conll2000:train", SettingError, "is not running text"),
        ("ptbb", InputError, r"no such file: ptbb; did you mean the data set ptb\\?"),
        ("ptbb:test", InputError, r"did you mean the data set ptb:test\\?"),
        ("embeded", InputError, r"did you mean the data set embedded\\?"),
        ("nowhere.txt", InputError, "no such file: nowhere.txt$"),
        ("x" * 5000, InputError, "name too long"),
        ("enwiki", InputError, "is not here"),
    ):
        with pytest.raises(kind, match=rf"(?i){said}"):
            blocks_in([name], BY_LINE)


def test_the_fingerprint_knows_what_is_read(library: Path) -> None:
    path = library / "a.txt"
    path.write_text("one\n")
    first = fingerprint(["a.txt"], BY_LINE)
    assert first == fingerprint(["a.txt"], Reading(errors="replace"))
    assert first != fingerprint(["a.txt"], Reading(document="file"))
    path.write_text("one two\n")
    assert first != fingerprint(["a.txt"], BY_LINE)
    assert fingerprint(["-"], BY_LINE) is None
