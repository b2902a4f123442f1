"""Disks, shrinking files, several writers, clocks: each fault a few times."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest
from benchmarks import fault_disk
from benchmarks.fault_disk import Fault, answer_of

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="faults are caused by means of Linux")

SRC = Path(fault_disk.__file__).parent.parent / "src" / "foreword"


def check(fault: Fault) -> None:
    assert fault.tried > 0
    assert fault.found == []


def test_a_full_disk_leaves_the_old_one_whole(place: Path) -> None:
    check(fault_disk.full_disk(place / "full", 2))


def test_a_locked_folder_leaves_the_old_one_whole(place: Path) -> None:
    check(fault_disk.locked_folder(place / "locked"))


def test_a_text_that_shrinks_is_refused(place: Path) -> None:
    pytest.importorskip("pyarrow")
    check(fault_disk.shrinking_text(place))


def test_a_model_that_shrinks_is_told_in_one_line(place: Path) -> None:
    check(fault_disk.shrinking_model(place))


def test_several_writers_and_a_reader(place: Path) -> None:
    check(fault_disk.two_writers(place / "two", 2))


def test_clocks_may_jump(place: Path) -> None:
    check(fault_disk.jumping_clock(place / "clock"))


def test_a_flipped_bit_of_a_large_model_is_reported(place: Path) -> None:
    check(fault_disk.flipped_bits(place / "flips", 2))


def test_nothing_depends_on_the_clock_on_the_wall() -> None:
    """What lasts is taken by clocks that never go back; only what is shown to people may name a date."""
    asks = re.compile(r"\btime\.time(_ns)?\(|\bdatetime\.(now|utcnow|today)\(")
    found = {path.name for path in SRC.rglob("*.py") if asks.search(path.read_text("utf-8"))}
    # The day of a claim; the times of a server's log and metrics; how old files are that a stopped comparison left.
    assert found == {"proofs.py", "metrics.py", "run_cache.py"}


def test_a_crash_would_be_seen() -> None:
    assert answer_of(lambda: os.kill(os.getpid(), 9)) == "crashed: SIGKILL"
    assert answer_of(lambda: 1 / 0).startswith("raised ZeroDivisionError")
    assert answer_of(lambda: "fine") == "fine"
