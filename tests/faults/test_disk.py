"""Disks, shrinking files, several writers, clocks: each fault a few times."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest
from benchmarks import fault_disk, fault_slow
from benchmarks.fault_disk import Fault, answer_of
from benchmarks.fault_kills import Work
from benchmarks.fault_slow import slow_disk, why_not

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


@pytest.mark.long
def test_clocks_may_jump(place: Path) -> None:
    check(fault_disk.jumping_clock(place / "clock"))


def test_a_flipped_bit_of_a_large_model_is_reported(place: Path) -> None:
    check(fault_disk.flipped_bits(place / "flips", 2))


@pytest.mark.skipif(bool(why_not()), reason=why_not() or "disks can be slowed")
@pytest.mark.long
def test_a_slow_disk_gives_the_same_bytes(place: Path) -> None:
    fault = slow_disk(place / "slow", ("n-gram estimation", "BPE training"), kills=1, microseconds=1000)
    check(fault)
    assert fault.tried == 4
    assert int(fault.note.split()[0].replace(",", "")) > 100, "calls that were slow"


@pytest.mark.skipif(bool(why_not()), reason=why_not() or "disks can be slowed")
@pytest.mark.long
def test_other_bytes_and_tracebacks_on_a_slow_disk_would_be_found(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fault_slow, "timed", lambda work, folder: 0.0)  # so that nothing is on the fast disk
    assert slow_disk(place / "slow", ("saving over a model",), 0, 0).found == [
        "saving over a model: other bytes than on a fast disk"
    ]
    monkeypatch.setattr(fault_slow, "WORKS", (Work("unknown", lambda folder: None, False, lambda folder: None),))
    [found] = slow_disk(place / "slow", ("unknown",), 0, 0).found
    assert "StopIteration" in found


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
