"""Power cuts: what was not synced is lost; ``python -m benchmarks.faults`` cuts two hundred times."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest
from benchmarks.fault_kills import MODEL, WORKS, Work, whole_or_absent
from benchmarks.fault_power import cut_power

from foreword.ngram.unigram import UnigramLM
from foreword.storage.atomic import atomic_file, sync_entries
from foreword.storage.folder import save
from foreword.tokens.corpus import Corpus
from foreword.tokens.words import WordTokenizer

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="inodes are held open while they are followed")


@pytest.mark.parametrize(
    "work", [work for work in WORKS if work.name in ("saving over a model", "filter")], ids=lambda work: work.name
)
def test_after_a_power_cut_work_ends_in_the_same_bytes(work: Work, place: Path) -> None:
    assert cut_power(work, 4, place / "cuts").found == []


@pytest.mark.long
@pytest.mark.parametrize("work", [work for work in WORKS if not work.children], ids=lambda work: work.name)
def test_after_many_power_cuts_work_ends_in_the_same_bytes(work: Work, place: Path) -> None:
    assert cut_power(work, 8, place / "cuts", seed=1).found == []


def test_folders_that_are_made_for_a_model_are_on_the_disk(place: Path) -> None:
    """Once only the folder of the model itself was synced."""
    model = UnigramLM().fit(Corpus.from_texts(["a b"], WordTokenizer().fit(["a b"])))

    def write(folder: Path) -> None:
        save(model, folder / "new" / "newer" / MODEL)

    assert cut_power(Work("deep", write, False, whole_or_absent), 4, place / "cuts").found == []


def test_what_is_not_synced_would_be_found(place: Path) -> None:
    def careless(folder: Path) -> None:
        (folder / "new").write_text("x" * 1000)
        (folder / "new").replace(folder / MODEL)

    def careful(folder: Path) -> None:
        with atomic_file(folder / MODEL) as new:
            new.write_text("x" * 1000)

    def whole(folder: Path) -> None:
        assert not (folder / MODEL).exists() or len((folder / MODEL).read_bytes()) == 1000

    found = cut_power(Work("careless", careless, False, whole), 24, place / "cuts").found
    assert "not all that was finished is on the disk" in found
    assert any("AssertionError" in line for line in found)
    assert cut_power(Work("careful", careful, False, whole), 8, place / "cuts").found == []


def test_a_deleted_folder_that_comes_back_is_a_folder(place: Path) -> None:
    """A folder whose name was synced, and nothing in it, was once put back as a file."""

    def write(folder: Path) -> None:
        (folder / "kept").mkdir(exist_ok=True)
        sync_entries(folder)
        (folder / "kept" / "part").write_text("x")
        shutil.rmtree(folder / "kept")

    def check(folder: Path) -> None:
        assert not (folder / "kept").is_file()

    assert cut_power(Work("folder", write, False, check), 40, place / "cuts").found == []
