"""Everything that takes long, killed at random moments; ``python -m benchmarks.faults`` does it a thousand times."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest
from benchmarks.fault_kills import MODEL, WORKS, Work, files_of, forked, kill_at_random, waited, whole_or_absent

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there is no such signal")


SLOW = (
    "BiLSTM tagger", "recurrent classifier", "translator", "indexing in chunks", "compressed index in chunks",
    "comparison of models", "speech recogniser", "filter, two processes",
)  # fmt: skip


@pytest.mark.parametrize(
    "work",
    [pytest.param(work, marks=pytest.mark.long) if work.name in SLOW else work for work in WORKS],
    ids=lambda work: work.name,
)
def test_killed_at_random_moments_it_ends_in_the_same_bytes(work: Work, place: Path) -> None:
    outcome = kill_at_random(work, 3, place / "kills")
    assert outcome.kills == 3
    assert outcome.finished
    assert outcome.found == []


def test_what_is_wrong_would_be_found(place: Path) -> None:
    """Work that writes in place leaves halves, and work that does not begin anew ends in other bytes."""

    def careless(folder: Path) -> None:
        with (folder / MODEL).open("a") as file:
            for _ in range(200):
                file.write("x" * 1000)
                file.flush()
                time.sleep(0.001)

    def whole(folder: Path) -> None:
        assert len((folder / MODEL).read_bytes()) == 200_000

    outcome = kill_at_random(Work("careless", careless, False, whole), 8, place / "kills")
    assert any("after a kill" in line for line in outcome.found)
    assert any("other bytes" in line for line in outcome.found)
    assert not outcome.finished


def test_a_process_that_waits_for_a_killed_one_would_be_found(place: Path) -> None:
    def wait(folder: Path) -> None:
        time.sleep(60)

    child = forked(Work("waiting", wait, False, whole_or_absent), place)
    with pytest.raises(RuntimeError, match="waited for another"):
        waited(child, patience=0.1)


def test_files_of_sees_what_is_hidden(place: Path) -> None:
    (place / ".model.new-1").mkdir()
    (place / ".model.new-1" / "a").write_text("a")
    assert files_of(place) == {".model.new-1/a": b"a"}
