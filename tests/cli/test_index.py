"""``foreword index`` as people and programs use it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from foreword.infinigram.chunks import ChunkedSort
from foreword.pipeline.index import TextIndex
from foreword.storage.folder import load
from foreword.text.sources import read_blocks

from .conftest import Foreword


@pytest.fixture
def index(foreword: Foreword, text: Path, tmp_path: Path) -> Path:
    made = foreword("index", "build", text, "-o", tmp_path / "index")
    assert made.exit_code == 0, made.stderr
    return tmp_path / "index"


def test_runs_of_words_are_counted_and_found(foreword: Foreword, index: Path, text: Path) -> None:
    assert json.loads(foreword("index", "count", index, "sat on", "--json").stdout) == {"text": "sat on", "count": 3}
    assert foreword("index", "count", index, "sat on").stdout == "3\n"
    assert foreword("index", "find", index, "dog sat", "-k", 1).stdout.split("\t")[:2] == [f"{text}#2", "1"]
    found = json.loads(foreword("index", "find", index, "dog sat", "--json").stdout)
    assert [each["document"] for each in found["occurrences"]] == [1, 2]
    assert foreword("index", "document", index, "dog sat").stdout == f"{text}#2\tthe dog sat on the log\n"


def test_next_words_and_spans(foreword: Foreword, index: Path) -> None:
    found = json.loads(foreword("index", "context", index, "nobody sat on the", "--json").stdout)
    assert (found["matched"], found["length"], found["count"]) == ("sat on the", 3, 2)
    assert found["words"][0] == {"token": "mat", "count": 1, "probability": 0.5}
    spans = json.loads(foreword("index", "spans", index, "my cat sat on the mat", "--least", 2, "--json").stdout)
    assert [(span["begin"], span["end"], span["count"]) for span in spans["spans"]] == [(1, 6, 1)]
    piped = foreword("index", "spans", index, "--file", "-", input="a dog sat")
    assert piped.stdout.split("\t")[5] == "a dog sat\n"


def test_indexes_grow_and_are_asked_together(foreword: Foreword, index: Path, tmp_path: Path) -> None:
    more = tmp_path / "more.txt"
    more.write_text("a zebra sat on the mat\n")
    other = tmp_path / "other"
    assert foreword("index", "build", more, "-o", other, "--tokenizer", index).exit_code == 0
    assert foreword("index", "count", index, "on the mat", "--with", other).stdout == "2\n"
    grown = json.loads(foreword("index", "append", index, more, "--json").stdout)
    assert (grown["documents"], grown["segments"]) == (5, 2)
    assert foreword("index", "count", index, "a zebra").stdout == "1\n"
    refused = foreword("index", "count", index, "a zebra", "--with", other)
    assert refused.exit_code == 1
    assert "share one vocabulary" in refused.stderr


def test_any_limit_of_memory_and_number_of_threads_gives_the_same_files(
    foreword: Foreword, text: Path, tmp_path: Path
) -> None:
    long, tokenizer = tmp_path / "long.txt", tmp_path / "bytes"
    long.write_text(text.read_text() * 2000)
    assert foreword("tokenize", "train", text, "--kind", "byte", "-o", tokenizer).exit_code == 0
    for name, options in {"one": (1,), "two": (2,), "limited": (2, "--memory", "64M")}.items():
        call = ("index", "build", long, "-o", tmp_path / name, "--tokenizer", tokenizer, "--threads", *options)
        assert foreword(*call).exit_code == 0
    files = [
        {file.name: file.read_bytes() for file in (tmp_path / name).iterdir()} for name in ("one", "two", "limited")
    ]
    assert files[0] == files[1] == files[2]
    assert not list(tmp_path.glob("*.checkpoint"))
    whole: TextIndex = load(tmp_path / "one")
    assert whole.count("at sat o") == 2000
    for threads in (1, 2):  # the command takes no limit so low that there are several chunks
        chunked = TextIndex(load(tokenizer)).fit_blocks(
            read_blocks(long), threads=threads, memory=1 << 20, folder=tmp_path / f"work{threads}"
        )
        segment = chunked.index.segments[0]
        ids = segment.read(0, segment.size)
        assert len(ChunkedSort(ids, 257, 1 << 20, tmp_path / f"work{threads}" / "0").borders) > 2
        for name in ("text", "suffixes", "firsts", "offsets"):
            assert np.array_equal(getattr(segment, name), getattr(whole.index.segments[0], name))


def test_a_compressed_index_counts_and_does_not_find(
    foreword: Foreword, text: Path, index: Path, tmp_path: Path
) -> None:
    small = tmp_path / "small"
    made = foreword("index", "build", text, "-o", small, "--compressed", "--memory", "64M", "--json")
    assert json.loads(made.stdout)["documents"] == len(load(index))
    assert foreword("index", "count", small, "sat o").stdout == foreword("index", "count", index, "sat on").stdout
    assert foreword("index", "count", small, "sat on", "--with", index).stdout == "6\n"
    assert not list(tmp_path.glob("*.checkpoint"))
    refused = foreword("index", "find", small, "sat on")
    assert refused.exit_code == 1
    assert "its kind is compressed-text-index, not text-index" in refused.stderr
    named = foreword("index", "build", text, "-o", small, "--compressed", "--id-field", "url")
    assert "no names of documents" in named.stderr


def test_files_of_infini_gram_are_asked_where_they_are(foreword: Foreword, text: Path, tmp_path: Path) -> None:
    lines = [line for line in text.read_text().splitlines() if line]
    tokens = b"".join(b"\xff" + line.encode() for line in lines)
    table = sorted(range(len(tokens)), key=lambda begin: tokens[begin:])
    (tmp_path / "tokenized.0").write_bytes(tokens)
    (tmp_path / "table.0").write_bytes(bytes(table))
    begins = [begin for begin, byte in enumerate(tokens) if byte == 0xFF]
    (tmp_path / "offset.0").write_bytes(b"".join(begin.to_bytes(8, "little") for begin in begins))
    assert len(tokens) <= 256
    refused = foreword("index", "count", tmp_path, "sat")
    assert "give it with --tokenizer" in refused.stderr
    foreword("tokenize", "train", text, "--kind", "byte", "-o", tmp_path / "bytes")
    tokenizer = ("--tokenizer", tmp_path / "bytes")
    assert foreword("index", "count", tmp_path, "at sat o", *tokenizer).stdout == "1\n"
    assert foreword("index", "document", tmp_path, "dog sat", *tokenizer).stdout == f"1\t{lines[1]}\n"
    found = json.loads(foreword("index", "context", tmp_path, "xx dog sa", *tokenizer, "--json").stdout)
    assert (found["matched"], found["words"][0]["token"]) == (" dog sa", "t")
    other = tmp_path / "other"
    assert foreword("index", "build", text, "-o", other, *tokenizer).exit_code == 0
    assert foreword("index", "count", tmp_path, "sat on", *tokenizer, "--with", other).stdout == "6\n"
    (tmp_path / "table.0").write_bytes(bytes(table[:-1]))
    assert "table.0" in foreword("index", "count", tmp_path, "sat", *tokenizer).stderr


def test_small_texts_and_long_queries(foreword: Foreword, tmp_path: Path) -> None:
    for content, words, expected in [
        ("a\n", "a", 1),
        ("a\n", "b", 0),
        ("a\n", "a a", 0),
        ("a a a a\n", "a a", 3),
        ("a a a a\n", " ".join("a" * 1000), 0),
        ("a a a a\n" * 2, "a a a a", 2),
    ]:
        (tmp_path / "text").write_text(content)
        made = foreword("index", "build", tmp_path / "text", "-o", tmp_path / "index", "--overwrite")
        assert made.exit_code == 0, made.stderr
        assert foreword("index", "count", tmp_path / "index", words).stdout == f"{expected}\n"
    spans = foreword("index", "spans", tmp_path / "index", " ".join("a" * 1000), "--json")
    assert {(span["end"] - span["begin"]) for span in json.loads(spans.stdout)["spans"]} == {4}
    for command in ("count", "find", "document"):
        refused = foreword("index", command, tmp_path / "index", " ")
        assert "expected words to look for" in refused.stderr


def test_a_draft_from_an_index_of_another_vocabulary_is_refused(
    foreword: Foreword, shelf: Path, tmp_path: Path
) -> None:
    foreword("index", "build", "-", "-o", tmp_path / "other", input="other words\n")
    refused = foreword("generate", shelf / "model", "--draft", tmp_path / "other")
    assert refused.exit_code == 1
    assert "build it with --tokenizer MODEL" in refused.stderr


def test_bad_input_is_one_line(foreword: Foreword, shelf: Path, index: Path, tmp_path: Path) -> None:
    empty = tmp_path / "empty.txt"
    empty.write_text("")
    for words, expected in [
        (("index", "build", empty, "-o", tmp_path / "x"), "empty"),
        (
            ("index", "count", shelf / "model", "a"),
            "its kind is text-lm, not text-index: foreword index build makes one",
        ),
        (("index", "count", tmp_path / "none", "a"), "no such file or folder"),
        (("index", "build", empty, "-o", shelf / "model"), "another kind of model"),
    ]:
        refused = foreword(*words)
        assert refused.exit_code in (1, 2)
        assert expected in " ".join(refused.stderr.replace("│", " ").split()), refused.stderr
    assert not (tmp_path / "x").exists()
    arrays = index / "arrays.safetensors"
    content = bytearray(arrays.read_bytes())
    arrays.write_bytes(content[:-4])
    assert "damaged" in foreword("index", "count", index, "a").stderr
    content[-40] ^= 4
    arrays.write_bytes(content)
    assert "damaged" in foreword("index", "count", index, "a").stderr
