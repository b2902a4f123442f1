"""Bad input gets one clear line, exit status 1, and nothing half written."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import resource
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

from foreword.cli.failures import message_of, one_line

from .conftest import TEXT, Foreword, Process

Listing = Callable[[Path], list[str]]


def refused(result: Result, said: str) -> None:
    assert result.exit_code == 1, result.output
    assert result.stderr.startswith("foreword: ")
    assert result.stderr.count("\n") == 1
    assert "Traceback" not in result.stderr
    assert said in result.stderr


# Texts


def truncated_gzip() -> bytes:
    return gzip.compress(TEXT.encode() * 100)[:-20]


TEXTS: dict[str, tuple[str, bytes, list[str], str]] = {
    "empty file": ("empty.txt", b"", [], "empty.txt: no text in it"),
    "blank file": ("blank.txt", b" \n\n\t\n", [], "blank.txt: no text in it"),
    "invalid UTF-8": ("bad.txt", b"good\nb\xffd\n", [], "bad.txt: invalid UTF-8 at byte 6 (0xff); --errors replace"),
    "NUL bytes": ("nul.txt", b"a\0b\n", [], "nul.txt: NUL at byte 1"),
    "UTF-16": ("wide.txt", "wide".encode("utf-16"), [], "wide.txt: this is UTF-16; --encoding utf-16 reads it"),
    "truncated gzip": ("cut.txt.gz", truncated_gzip(), [], "cut.txt.gz: the file is truncated"),
    "no gzip": ("not.txt.gz", b"plain text, long enough\n", [], "not.txt.gz is not a gzip file"),
    "no such field": (
        "rows.jsonl",
        b'{"text": "a"}\n{"body": "b"}\n',
        [],
        'rows.jsonl: line 2 has no field "text" (it has: body)',
    ),
    "no JSON": ("rows.jsonl", b'{"text": "a"}\n{"text": \n', [], "rows.jsonl: line 2 is not JSON"),
    "no Parquet": ("table.parquet", b"PAR1 but no more", [], "table.parquet: not a Parquet file"),
}

TRAININGS = {
    "tokenize": ["tokenize", "train", "--vocab", "300"],
    "train": ["train", "unigram"],
}


@pytest.mark.parametrize("training", TRAININGS.values(), ids=TRAININGS)
@pytest.mark.parametrize(("name", "data", "options", "said"), TEXTS.values(), ids=TEXTS)
def test_a_text_that_cannot_be_read(
    foreword: Foreword,
    tmp_path: Path,
    listing: Listing,
    training: list[str],
    name: str,
    data: bytes,
    options: list[str],
    said: str,
) -> None:
    (tmp_path / name).write_bytes(data)
    refused(foreword(*training, tmp_path / name, "-o", tmp_path / "out", *options), said)
    assert listing(tmp_path) == [name]


def test_a_text_that_is_not_there(foreword: Foreword, tmp_path: Path, listing: Listing) -> None:
    (tmp_path / "folder").mkdir()
    for name, said in (
        ("absent.txt", "no such file: "),
        ("*.txt", "no file matches "),
        ("folder", "no text in it (a folder without files)"),
        ("s3x://bucket/file", "s3x"),
    ):
        path = name if "://" in name else tmp_path / name
        refused(foreword("tokenize", "train", path, "-o", tmp_path / "out"), said)
    assert listing(tmp_path) == ["folder"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_text_that_must_not_be_read(foreword: Foreword, text: Path, tmp_path: Path, listing: Listing) -> None:
    text.chmod(0)
    refused(foreword("tokenize", "train", text, "-o", tmp_path / "out"), "no permission to read")
    assert listing(tmp_path) == ["text.txt"]


def test_invalid_bytes_are_replaced_if_asked(foreword: Foreword, tmp_path: Path) -> None:
    (tmp_path / "bad.txt").write_bytes(b"good\nb\xffd\nend\n")
    call = ["train", "unigram", tmp_path / "bad.txt", "-o", tmp_path / "out", "--errors", "replace"]
    assert foreword(*call).exit_code == 0
    scored = foreword("score", tmp_path / "out", tmp_path / "bad.txt", "--errors", "replace")
    assert len(scored.stdout.splitlines()) == 3
    refused(foreword("score", tmp_path / "out", tmp_path / "bad.txt"), "invalid UTF-8 at byte 6")


def test_a_vocabulary_smaller_than_the_alphabet(
    foreword: Foreword, text: Path, tmp_path: Path, listing: Listing
) -> None:
    for kind, said, status in (("bpe", "256 bytes and 1 special", 2), ("bpe-characters", "than the alphabet", None)):
        result = foreword("tokenize", "train", text, "-o", tmp_path / "out", "--vocab", 5, "--kind", kind)
        assert result.exit_code == (status or result.exit_code) != 0
        assert said in result.stderr
    assert listing(tmp_path) == ["text.txt"]


# Tokenizers and models


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ('{"model": {"type": "WordPiece", "vocab": {}}}', "unk_token"),
        ('{"model": {"type": "BPE", ', "t.json"),
        ('{"model": {"type": "BPE", "vocab": {"a": 0}, "merges": ["a b"]}}', "t.json"),
        ("not JSON at all", "neither a saved model nor a file of a kind that Foreword reads"),
        ("", "neither a saved model nor a file of a kind that Foreword reads"),
    ],
)
def test_a_tokenizer_json_that_is_none(
    foreword: Foreword, tmp_path: Path, listing: Listing, content: str, said: str
) -> None:
    (tmp_path / "t.json").write_text(content)
    refused(foreword("convert", tmp_path / "t.json", tmp_path / "out"), said)
    refused(foreword("tokenize", "encode", tmp_path / "t.json", "-", input="a"), said)
    assert listing(tmp_path) == ["t.json"]


def flip_a_byte(model: Path) -> None:
    data = bytearray((model / "arrays.safetensors").read_bytes())
    data[-3] ^= 1
    (model / "arrays.safetensors").write_bytes(data)


def lose_a_file(model: Path) -> None:
    (model / "vocab.txt").unlink()


def cut_a_file(model: Path) -> None:
    (model / "vocab.txt").write_bytes((model / "vocab.txt").read_bytes()[:-2])


def empty_the_description(model: Path) -> None:
    (model / "model.json").write_text("")


def rewrite(model: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Change the description of a model as somebody would who means harm: its own checksum is right again."""
    facts = json.loads((model / "model.json").read_text())
    facts.pop("sha256")
    change(facts)

    def render() -> str:
        return json.dumps(facts, ensure_ascii=False, indent=2, sort_keys=True) + "\n"

    facts["sha256"] = hashlib.sha256(render().encode()).hexdigest()
    (model / "model.json").write_text(render())


def claim_a_version(model: Path) -> None:
    rewrite(model, lambda facts: facts.update(version=99))


def claim_many_tokens(model: Path) -> None:
    rewrite(model, lambda facts: facts["vocab"].update(tokens=10**15))


def claim_many_bytes(model: Path) -> None:
    rewrite(model, lambda facts: facts["files"]["arrays.safetensors"].update(bytes=10**18))


def lead_elsewhere(model: Path) -> None:
    rewrite(model, lambda facts: facts["files"].update({"../../secret": {"bytes": 1, "sha256": "00"}}))


def claim_large_arrays(model: Path) -> None:
    """A header that promises 8 exabytes, in a file whose size and checksum are right."""
    header = json.dumps({"model.counts": {"dtype": "I64", "shape": [1 << 60], "data_offsets": [0, 1 << 63]}}).encode()
    data = len(header).to_bytes(8, "little") + header
    (model / "arrays.safetensors").write_bytes(data)
    listed = {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    rewrite(model, lambda facts: facts["files"].update({"arrays.safetensors": listed}))


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (flip_a_byte, "arrays.safetensors does not match its checksum"),
        (lose_a_file, "vocab.txt is missing"),
        (cut_a_file, "vocab.txt has"),
        (empty_the_description, "model"),
        (claim_a_version, "written by a newer Foreword (version 99"),
        (claim_many_tokens, "model"),
        (claim_many_bytes, "arrays.safetensors has"),
        (claim_large_arrays, "arrays.safetensors"),
        (lead_elsewhere, "is not the name of a file in the folder"),
    ],
)
def test_a_model_that_was_spoilt(
    foreword: Foreword, shelf: Path, tmp_path: Path, listing: Listing, spoil: Callable[[Path], None], said: str
) -> None:
    model = tmp_path / "model"
    shutil.copytree(shelf / "model", model)
    spoil(model)
    before = listing(tmp_path)
    refused(foreword("evaluate", model, "-", input="the cat"), said)
    refused(foreword("score", model, input="the cat"), said)
    refused(foreword("generate", model), said)
    assert listing(tmp_path) == before


def test_something_else_than_a_model(foreword: Foreword, shelf: Path, text: Path) -> None:
    refused(foreword("evaluate", shelf / "word", text), "its kind is word, not text-lm: foreword train makes one")
    refused(foreword("tokenize", "encode", text, text), "neither a saved model nor")
    refused(foreword("evaluate", text.parent, text), "model.json is missing")
    refused(foreword("evaluate", "nowhere", text), "nowhere: no such file or folder")


def test_a_text_that_holds_nothing_to_measure(foreword: Foreword, shelf: Path) -> None:
    refused(foreword("evaluate", shelf / "model", "-", input=""), "standard input: no text in it")
    assert foreword("score", shelf / "model", input="").stdout == ""


# Writing


@pytest.mark.long
def test_a_full_disk(process: Process, tmp_path: Path, listing: Listing) -> None:
    """A limit on the size of files makes the kernel refuse writes as a full disk does."""
    text = tmp_path / "text.txt"
    text.write_text("\n".join(f"word{number} another{number}" for number in range(5000)))

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (30_000, 30_000))

    for call in (
        ["tokenize", "train", text, "-o", tmp_path / "out", "--kind", "word"],
        ["tokenize", "train", text, "-o", tmp_path / "out.json", "--vocab", "3000"],
        ["train", "unigram", text, "-o", tmp_path / "out"],
    ):
        result = process(*call, preexec_fn=limit)
        assert result.returncode == 1, result.stderr
        assert result.stderr.startswith(f"foreword: cannot write {tmp_path}/out")
        assert result.stderr.count("\n") == 1
    assert listing(tmp_path) == ["text.txt"]


def test_what_is_there_stays_when_the_work_fails(foreword: Foreword, text: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert foreword("train", "unigram", text, "-o", out).exit_code == 0
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    (tmp_path / "bad.txt").write_bytes(b"\xff")
    refused(foreword("train", "unigram", tmp_path / "bad.txt", "-o", out), "invalid UTF-8")
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before


# Anything else


def test_other_errors_are_lines_too() -> None:
    assert message_of(MemoryError()) == ("not enough memory", 1)
    assert message_of(PermissionError(13, "Permission denied", "x.txt")) == ("x.txt: Permission denied", 1)
    assert message_of(OSError("odd")) == ("odd", 1)
    assert message_of(ValueError("odd")) == ("unexpected ValueError: odd (--debug shows where)", 1)


def test_a_message_is_one_line_whatever_the_name_of_a_file() -> None:
    assert one_line("a\nb\x1b[31m é 猫 \udcff") == "a\\nb\\x1b[31m é 猫 \\udcff"


def test_a_setting_given_as_an_option_is_told_how_to_be_given(foreword: Foreword) -> None:
    result = foreword("train", "ngram", "--order", "3", "embedded", "-o", "model")
    assert result.exit_code == 2
    assert "--set order=VALUE" in result.stderr
    assert "--set" not in foreword("score", "--order", "3", "model", "text").stderr
