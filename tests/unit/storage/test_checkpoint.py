"""The one checkpoint file: what it holds, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from foreword.arrays import Array
from foreword.errors import InputError, explained
from foreword.storage.checkpoint import VERSION, Checkpoint, fingerprint, read_checkpoint, write_checkpoint
from foreword.storage.safetensors import write_arrays
from foreword.text.block import blocks_of
from foreword.tokens.bpe import BPETokenizer
from foreword.tokens.resume import KIND, count_with_checkpoint

ARRAYS: dict[str, Array] = {"counts": np.arange(5), "weights": np.ones((2, 3), np.float32)}


def test_arrays_and_facts_come_back(tmp_path: Path) -> None:
    write_checkpoint(tmp_path / "run", ARRAYS, kind="counting", run="a", facts={"blocks": 3})
    arrays, facts = read_checkpoint(tmp_path / "run", kind="counting", run="a")
    assert facts == {"blocks": 3}
    assert arrays.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        assert_array_equal(arrays[name], array)


@pytest.mark.parametrize(("kind", "run", "problem"), [("x", "a", "another model"), ("counting", "b", "another run")])
def test_a_checkpoint_of_something_else_is_refused(tmp_path: Path, kind: str, run: str, problem: str) -> None:
    write_checkpoint(tmp_path / "run", ARRAYS, kind="counting", run="a")
    with pytest.raises(InputError, match=problem):
        read_checkpoint(tmp_path / "run", kind=kind, run=run)


@pytest.mark.parametrize("about", [b"", b"[]", b"{}", b'{"version": 2, "kind": "counting"}'])
def test_another_file_is_no_checkpoint(tmp_path: Path, about: bytes) -> None:
    write_arrays(tmp_path / "file", {"about": np.frombuffer(about, np.uint8)})
    with pytest.raises(InputError, match="not a checkpoint"):
        read_checkpoint(tmp_path / "file", kind="counting", run="a")


def test_a_tokenizer_s_counts_of_0_1_0_are_read(tmp_path: Path) -> None:
    about = json.dumps({"fingerprint": "a", "blocks": 7}).encode()
    write_arrays(tmp_path / "old", {**ARRAYS, "about": np.frombuffer(about, np.uint8)})
    assert read_checkpoint(tmp_path / "old", kind="counting", run="a")[1] == {"blocks": 7}
    with pytest.raises(InputError, match="another run"):
        read_checkpoint(tmp_path / "old", kind="counting", run="b")


def test_due_when_asked_or_when_time_is_up(tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path / "run", every=1e9)
    assert not checkpoint.due()
    checkpoint.ask()
    assert checkpoint.due()
    checkpoint.write(ARRAYS, "counting", "a")
    assert (checkpoint.due(), checkpoint.written) == (False, 1)
    assert Checkpoint(tmp_path / "run", every=0).due()


def test_what_is_read_must_look_like_what_is_wanted(tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path / "run")
    assert checkpoint.read(ARRAYS, "counting", "a") is None
    checkpoint.write(ARRAYS, "counting", "a")
    found = checkpoint.read(ARRAYS, "counting", "a")
    assert found is not None
    found["counts"][0] = 9  # a copy, not the file
    with pytest.raises(InputError, match="damaged checkpoint: counts is not"):
        checkpoint.read({"counts": np.zeros(6, np.int64)}, "counting", "a")


def test_fingerprints_depend_on_settings_and_arrays() -> None:
    same = fingerprint({"a": 1, "b": 2}, np.arange(3)), fingerprint({"b": 2, "a": 1}, np.arange(3))
    assert len(set(same)) == 1
    others = fingerprint({"a": 1, "b": 3}, np.arange(3)), fingerprint({"a": 1, "b": 2}, np.arange(4))
    assert len({*same, *others}) == 3


def test_an_error_of_the_system_is_explained_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"^cannot write x: No such file or directory$"), explained("cannot write x"):
        (tmp_path / "missing").read_bytes()
    with pytest.raises(InputError, match=r"^cannot reach y: first$"), explained("cannot reach y", catch=ValueError):
        raise ValueError("first\nsecond")


@pytest.mark.parametrize("facts", [{"kind": "two\nlines"}, {"version": "two\nlines"}])
def test_what_a_file_says_of_itself_is_shown_in_one_line(tmp_path: Path, facts: dict[str, str]) -> None:
    """A byte was changed to a line feed, once in the kind and once in an array's name: found by broken files."""
    about = json.dumps({"version": VERSION, "kind": "counting", "run": "a", **facts}).encode()
    write_arrays(tmp_path / "file", {"about": np.frombuffer(about, np.uint8)})
    with pytest.raises(InputError) as refused:
        read_checkpoint(tmp_path / "file", kind="counting", run="a")
    assert "\n" not in str(refused.value)


def test_arrays_of_other_names_are_no_counts(tmp_path: Path) -> None:
    write_checkpoint(tmp_path / "run", {"two\nlines": np.arange(3)}, kind=KIND, run="a", facts={"blocks": 1})
    with pytest.raises(InputError, match=r"a damaged checkpoint \(wrong names\)"):
        count_with_checkpoint(
            BPETokenizer(300), blocks_of(["a"]), tmp_path / "run", fingerprint="a", resume=True, threads=1
        )
