"""``foreword tokenize train``, ``encode`` and ``decode``."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foreword import BPETokenizer, Corpus, load
from foreword.cli.options import memory_size
from foreword.cli.tokenize import DocumentLines
from foreword.text.block import Block
from foreword.tokens.corpus import Encoded

from .conftest import TEXT, Foreword

LINES = [line for line in TEXT.splitlines() if line]


# Learning


@pytest.mark.parametrize("kind", ["bpe", "bpe-characters", "word", "character", "byte"])
def test_every_kind_brings_its_text_back(foreword: Foreword, text: Path, tmp_path: Path, kind: str) -> None:
    size = ["--vocab", "280"] if kind == "bpe" else []
    trained = foreword("tokenize", "train", text, "-o", tmp_path / "out", "--kind", kind, *size)
    assert trained.exit_code == 0, trained.stderr
    assert trained.stdout == ""
    assert "tokens in" in trained.stderr
    assert "MB/s" in trained.stderr
    ids = foreword("tokenize", "encode", tmp_path / "out", text)
    assert foreword("tokenize", "decode", tmp_path / "out", input=ids.stdout).stdout.splitlines() == LINES


def test_the_options_reach_the_tokenizer(foreword: Foreword, text: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    options = ["--vocab", 270, "--pattern", "cl100k", "--special", "<|endoftext|>", "--special", "<x>"]
    options += ["--min-frequency", 2, "--lowercase", "--form", "NFC", "--memory", "512M", "--threads", 1, "--quiet"]
    result = foreword("tokenize", "train", text, "-o", out, *options)
    assert (result.exit_code, result.stderr) == (0, "")
    tokenizer = load(out)
    assert isinstance(tokenizer, BPETokenizer)
    assert tokenizer.pattern == "cl100k"
    assert tokenizer.special_tokens == ("<|endoftext|>", "<x>")
    assert tokenizer.min_frequency == 2
    assert tokenizer.cleaning.lowercase
    assert tokenizer.cleaning.form == "NFC"


def test_vetoed_tokens_are_not_made(foreword: Foreword, text: Path, tmp_path: Path) -> None:
    learn = ["tokenize", "train", text, "--vocab", 270, "--quiet"]
    assert foreword(*learn, "-o", tmp_path / "free").exit_code == 0
    merged = [load(tmp_path / "free").vocab[merge.merged] for merge in load(tmp_path / "free").steps()]
    (tmp_path / "veto.txt").write_text("\n".join(merged[:2]), encoding="utf-8")
    assert foreword(*learn, "-o", tmp_path / "out", "--veto", tmp_path / "veto.txt").exit_code == 0
    assert not set(merged[:2]) & set(load(tmp_path / "out").vocab)
    refused = foreword(*learn, "-o", tmp_path / "words", "--kind", "word", "--veto", tmp_path / "veto.txt")
    assert refused.exit_code == 2
    assert "--veto" in refused.stderr


def test_word_options_reach_the_tokenizer(foreword: Foreword, text: Path, tmp_path: Path) -> None:
    options = ["--kind", "word", "--vocab", 6, "--min-count", 2, "--split", "punctuation"]
    assert foreword("tokenize", "train", text, "-o", tmp_path / "out", *options).exit_code == 0
    tokenizer = load(tmp_path / "out")
    assert list(tokenizer.vocab)[:3] == ["<unk>", "</s>", "the"]
    assert len(tokenizer.vocab) == 6
    assert tokenizer.split == "punctuation"


def test_json_tells_what_was_learnt(foreword: Foreword, text: Path, tmp_path: Path) -> None:
    result = foreword("tokenize", "train", text, "-o", tmp_path / "out", "--vocab", 280, "--json")
    told = json.loads(result.stdout)
    assert told["vocabulary"] == len(load(tmp_path / "out").vocab)
    assert told["bytes"] == sum(map(len, LINES))
    assert told["left_out"] == 0
    assert result.stderr == ""


def test_the_folder_and_tokenizer_json_are_one_tokenizer(foreword: Foreword, shelf: Path, text: Path) -> None:
    assert (
        foreword("tokenize", "encode", shelf / "bpe", text).stdout
        == foreword("tokenize", "encode", shelf / "tokenizer.json", text).stdout
    )


def test_a_tokenizer_goes_to_standard_output(foreword: Foreword, shelf: Path, text: Path) -> None:
    result = foreword("tokenize", "train", text, "-o", "-", "--vocab", 280, "--quiet")
    assert result.stdout_bytes == (shelf / "tokenizer.json").read_bytes()


def test_what_did_not_fit_is_told(
    foreword: Foreword, text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    learn = BPETokenizer.fit_counted

    def short_of_memory(self: BPETokenizer, *arguments: Any, **named: Any) -> BPETokenizer:
        learn(self, *arguments, **named)
        self.left_out_ = 7
        return self

    monkeypatch.setattr(BPETokenizer, "fit_counted", short_of_memory)
    result = foreword("tokenize", "train", text, "-o", tmp_path / "out", "--vocab", 270, "--quiet")
    assert result.exit_code == 0
    assert result.stderr.startswith("foreword: warning: 7 rare pieces")


def test_counting_is_stopped_and_gone_on_with(
    foreword: Foreword, text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def blocks(stop: bool) -> Callable[..., Iterator[Block]]:
        def each(*_: object, **__: object) -> Iterator[Block]:
            for number, line in enumerate(LINES):
                if stop and number == 2:
                    os.kill(os.getpid(), signal.SIGINT)
                yield Block.from_texts([line])

        return each

    out, partial = tmp_path / "out", tmp_path / "out.partial"
    call = ["tokenize", "train", text, "-o", out, "--threads", 1, "--quiet"]
    monkeypatch.setattr("foreword.cli.texts.read_blocks", blocks(stop=True))
    stopped = foreword(*call, "--vocab", 280)
    assert (stopped.exit_code, stopped.stderr) == (130, "foreword: stopped; --resume continues\n")
    assert partial.exists()
    assert not out.exists()

    monkeypatch.setattr("foreword.cli.texts.read_blocks", blocks(stop=False))
    refused = foreword(*call, "--vocab", 280, "--resume", "--lowercase")
    assert refused.exit_code == 1
    assert "the checkpoint of another run" in refused.stderr
    too_small = foreword(*call, "--vocab", 100, "--resume")
    assert too_small.stderr.endswith("the counts are saved, --resume continues\n")
    assert partial.exists()

    gone_on = foreword(*call, "--vocab", 280, "--resume")
    assert (gone_on.exit_code, gone_on.stderr) == (0, "")
    assert not partial.exists()
    whole = foreword("tokenize", "train", text, "-o", tmp_path / "whole", "--vocab", 280, "--quiet")
    assert whole.exit_code == 0
    assert (out / "model.json").read_bytes() == (tmp_path / "whole" / "model.json").read_bytes()


def test_an_output_that_cannot_be_is_refused_before_the_work(
    foreword: Foreword, text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("foreword.cli.texts.read_blocks", lambda *_, **__: pytest.fail("it began to read"))
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("dear")
    for out in (text, tmp_path / "mine", text / "below"):
        result = foreword("tokenize", "train", text, "-o", out)
        assert result.exit_code == 1
        assert result.stderr.startswith("foreword: cannot write")
    assert text.read_text() == TEXT


@pytest.mark.parametrize(
    ("size", "number"),
    [("512M", 512 << 20), ("2G", 2 << 30), ("1.5GiB", 3 << 29), ("1gb", 1 << 30), ("99999999", 99999999)],
)
def test_sizes_of_memory(size: str, number: int) -> None:
    assert memory_size(size) == number


# Encoding and decoding


def test_forms_of_output(foreword: Foreword, shelf: Path) -> None:
    def encoded(*options: str) -> str:
        return foreword("tokenize", "encode", shelf / "bpe", "-", *options, input="the cat\n\n dog\n").stdout

    ids = [[int(word) for word in line.split()] for line in encoded().splitlines()]
    assert [json.loads(line) for line in encoded("--json").splitlines()] == ids
    assert encoded("--tokens").splitlines() == ["the Ġcat", "Ġdog"]
    assert [json.loads(line) for line in encoded("--tokens", "--json").splitlines()] == [["the", "Ġcat"], ["Ġdog"]]


def test_white_space_in_a_token_is_made_visible(foreword: Foreword, tmp_path: Path, text: Path) -> None:
    foreword("tokenize", "train", text, "-o", tmp_path / "out", "--kind", "character")
    shown = foreword("tokenize", "encode", tmp_path / "out", "-", "--tokens", input="a t").stdout
    assert shown == "a ▁ t\n"


def test_json_keeps_line_ends(foreword: Foreword, tmp_path: Path, text: Path) -> None:
    foreword("tokenize", "train", text, "-o", tmp_path / "out", "--kind", "byte")
    ids = foreword("tokenize", "encode", tmp_path / "out", text, "--document", "file", "--json").stdout
    back = foreword("tokenize", "decode", tmp_path / "out", "--json", input=ids).stdout
    assert json.loads(back) == TEXT


def test_a_model_lends_its_tokenizer(foreword: Foreword, shelf: Path, text: Path) -> None:
    assert (
        foreword("tokenize", "encode", shelf / "model", text).stdout
        == foreword("tokenize", "encode", shelf / "word", text).stdout
    )


def test_a_corpus_goes_to_a_folder(foreword: Foreword, shelf: Path, text: Path, tmp_path: Path) -> None:
    result = foreword("tokenize", "encode", shelf / "bpe", text, "--corpus", tmp_path / "ids", "--json")
    corpus = load(tmp_path / "ids")
    assert isinstance(corpus, Corpus)
    assert json.loads(result.stdout) == {
        "documents": 4,
        "tokens": len(corpus.ids),
        "output": str(tmp_path / "ids"),
    }
    printed = foreword("tokenize", "encode", shelf / "bpe", text).stdout
    assert [list(document[:-1]) for document in corpus.documents()] == [
        [int(word) for word in line.split()] for line in printed.splitlines()
    ]


@pytest.mark.parametrize(
    ("line", "options", "said"),
    [
        ("3 x 4", [], "standard input: line 2 is not ids"),
        ("3 999999", [], "standard input: line 2 has the id 999999, but the vocabulary ends at"),
        ("-1", [], "has the id -1"),
        ("{}", ["--json"], "is not a JSON list of ids"),
        ("[true]", ["--json"], "is not a JSON list of ids"),
        ("[" * 100_000, ["--json"], "is not a JSON list of ids"),
        ("[1", ["--json"], "is not a JSON list of ids"),
    ],
)
def test_what_is_no_id_is_told_with_its_line(
    foreword: Foreword, shelf: Path, line: str, options: list[str], said: str
) -> None:
    first = "[3]" if options else "3"
    result = foreword("tokenize", "decode", shelf / "bpe", *options, input=f"{first}\n{line}\n")
    assert result.exit_code == 1
    assert said in result.stderr
    assert result.stderr.count("\n") == 1


@given(st.lists(st.lists(st.integers(0, 9))), st.data(), st.booleans())
@settings(max_examples=50, deadline=None)
def test_lines_do_not_depend_on_where_blocks_end(
    documents: list[list[int]], data: st.DataObject, as_json: bool
) -> None:
    import numpy as np

    end = 10
    flat = [id for document in documents for id in [*document, end]]
    cuts = sorted(data.draw(st.lists(st.integers(0, len(flat)), max_size=4)))
    lines = DocumentLines([str(id) for id in range(11)], as_json)
    written = ""
    for start, stop in zip([0, *cuts], [*cuts, len(flat)], strict=True):
        piece = flat[start:stop]
        ends = [place + 1 for place, id in enumerate(piece) if id == end]
        written += lines.of(Encoded(np.array(piece, np.int32), np.array(ends, np.int64)))
    read = [json.loads(line) if as_json else [int(word) for word in line.split()] for line in written.splitlines()]
    assert read == documents
