"""Every reader takes thousands of broken files; ``python -m benchmarks.faults`` gives them a million."""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from benchmarks.faults import readers
from benchmarks.fuzz import Target, fuzz, make_input
from benchmarks.fuzz_models import NEURAL, PLAIN

from foreword.errors import InputError
from foreword.kinds import KINDS

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="limits are set by means of Linux")

INPUTS = 150


def test_every_reader_takes_or_refuses_broken_files(place: Path) -> None:
    for name in ("pyarrow", "zstandard", "torch"):
        pytest.importorskip(name)
    found = []
    total = 0
    for target in readers(place / "whole"):
        outcome = fuzz(target, round(INPUTS * min(target.weight, 2)), place, first=10_000_000)
        found += outcome.found
        total += outcome.inputs
        assert outcome.refused
    assert found == []
    assert total > 3000


def test_every_kind_of_model_is_damaged() -> None:
    """A new kind joins by its line in ``benchmarks/fuzz_models.py``."""
    assert KINDS.keys() - PLAIN.keys() - NEURAL.keys() == set()


def reader(read: Callable[[Path], object]) -> Target:
    return Target("test", lambda rng, folder: None, read, [])


def test_what_must_not_be_is_found(place: Path) -> None:
    def crash(folder: Path) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def hang(folder: Path) -> None:
        while True:
            pass

    def wait(folder: Path) -> None:
        time.sleep(60)

    def eat(folder: Path) -> None:
        bytearray(1 << 30)

    def raise_another(folder: Path) -> None:
        raise IndexError("out of bounds")

    def refuse_in_two_lines(folder: Path) -> None:
        raise InputError("one\ntwo")

    for read, what in (
        (crash, "SIGKILL"),
        (hang, "over five seconds"),
        (wait, "over five seconds"),
        (eat, "MemoryError"),
        (raise_another, "IndexError: out of bounds"),
        (refuse_in_two_lines, "not one line"),
    ):
        outcome = fuzz(reader(read), 2, place, seconds=0.1)
        assert outcome.inputs == 2
        assert [line["what"][: len(what)] for line in outcome.found] == [what, what]


def test_what_may_be_is_counted(place: Path) -> None:
    def refuse(folder: Path) -> None:
        raise InputError("no")

    assert fuzz(reader(refuse), 3, place).refused == 3
    assert fuzz(reader(lambda folder: None), 3, place).taken == 3


def test_an_input_is_made_from_its_number_alone(place: Path) -> None:
    def made(folder: Path) -> bytes:
        make_input(target, 7, folder)
        return (folder / "a").read_bytes()

    def make(rng: random.Random, folder: Path) -> None:
        (folder / "a").write_bytes(rng.randbytes(9))

    target = Target("test", make, print, [])
    assert made(place / "one") == made(place / "other")
