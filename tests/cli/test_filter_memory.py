"""What a process of ``foreword filter`` has for itself, whatever it reads."""

from __future__ import annotations

import base64
import random
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Foreword

from foreword.ngram.model import NgramLM
from foreword.pipeline.language import TextLM
from foreword.storage.folder import save
from foreword.tokens.words import WordTokenizer

pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

MOST = 300
WORDS = ["the", "quick", "brown", "animal", "sat", "quietly", "behind", "another", "yellow", "mountain", "wondering"]

pytestmark = pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="needs Linux")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model") / "ngram"
    save(TextLM(WordTokenizer(), NgramLM(2, "witten-bell")).fit([" ".join(WORDS)]), folder)
    return folder


def text_of(size: int, seed: int = 0) -> str:
    rng = random.Random(seed)
    piece = " ".join(rng.choices(WORDS, k=2000))
    return (piece * (size // len(piece) + 1))[:size]


def noise_of(size: int, seed: int) -> str:
    """Words of random letters."""
    letters = base64.b64encode(random.Random(seed).randbytes(size)).decode()
    return " ".join(letters[at : at + 7] for at in range(0, size, 8))[:size]


def alone(words: list[str]) -> float:
    """Megabytes of anonymous memory that a command has at most."""
    child = subprocess.Popen([sys.executable, "-m", "foreword", *words])
    most = 0
    while child.poll() is None:
        try:
            found = re.search(r"Anonymous:\s+(\d+)", Path(f"/proc/{child.pid}/smaps_rollup").read_text())
        except OSError:  # it has ended
            break
        most = max(most, int(found[1]) if found else 0)
        time.sleep(0.03)
    assert child.wait() == 0
    return most / 1e3


SHORT = [text_of(1000, seed) for seed in range(20)] * 1500

HOSTILE: dict[str, tuple[list[str], dict[str, Any]]] = {
    "one row group of a whole file": (SHORT * 3, {"compression": "none", "row_group_size": 1 << 30}),
    "long rows among short ones": (SHORT + [text_of(14_000_000)] * 5 + SHORT[:100], {"write_batch_size": 1}),
    "large pages": ([text_of(45_000, seed) for seed in range(16)] * 64, {}),
    "a page that does not compress": ([noise_of(13_000_000, seed) for seed in range(3)], {}),
}


@pytest.mark.long
@pytest.mark.parametrize("name", HOSTILE)
def test_memory_of_a_worker_is_bounded_whatever_the_parquet(model: Path, tmp_path: Path, name: str) -> None:
    texts, options = HOSTILE[name]
    columns = pyarrow.table({"id": range(len(texts)), "text": texts})
    parquet.write_table(columns, tmp_path / "x.parquet", use_dictionary=False, **options)
    words = ["filter", model, tmp_path / "x.parquet", tmp_path / "out", "--keep", "tokens>0", "-p", 1, "--quiet"]
    assert alone([str(word) for word in words]) < MOST
    assert parquet.read_table(tmp_path / "out" / "x.parquet").equals(columns)


@pytest.mark.long
def test_pages_that_would_take_more_are_refused(foreword: Foreword, model: Path, tmp_path: Path) -> None:
    texts = [text_of(14_000_000)] * 8
    parquet.write_table(pyarrow.table({"text": texts}), tmp_path / "x.parquet", use_dictionary=False)
    words = ("filter", model, tmp_path / "x.parquet", tmp_path / "out", "--keep", "tokens>0", "-p", 1, "--quiet")
    done = foreword(*words)
    assert done.exit_code == 1
    assert re.search(r"x.parquet: row group 0 has pages that may take 1\d\d MB.*--longest allows more", done.stderr)
    assert done.stderr.count("\n") == 1
    done = foreword(*words, "--longest", "64M")
    assert done.exit_code == 0, done.stderr
    assert parquet.read_table(tmp_path / "out" / "x.parquet")["text"].to_pylist() == texts
