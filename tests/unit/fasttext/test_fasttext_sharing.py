"""A classifier's folder is mapped: it opens at once, and processes that use it share one copy."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from foreword import load, save
from foreword.fasttext.classifier import FastTextClassifier
from foreword.fasttext.files import LABEL, SOFTMAX, SUPERVISED, WORD, FastTextFile, Settings

SMAPS = Path("/proc/self/smaps")
WORDS, BUCKETS, DIMENSIONS = 50_000, 250_000, 50

CHILD = """
import json, sys
from pathlib import Path
from foreword import load

def memory():
    mapped, private, ours = 0, 0, False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        name, *rest = line.split()
        if not name.endswith(":"):
            ours = line.endswith("arrays.safetensors")
        elif name in ("Private_Dirty:", "Private_Clean:") and not ours:
            private += int(rest[0]) << 10
        elif ours and name == "Rss:":
            mapped += int(rest[0]) << 10
    return mapped, private

model = load(sys.argv[1])
model.predict(["w1 w2"])  # loads the kernels
before = memory()[1]
texts = [" ".join(f"w{(17 * line + 31 * word) % 50_000}" for word in range(50)) for line in range(2000)]
answers = model.predict(texts)
mapped, private = memory()
print(json.dumps({"mapped": mapped, "growth": private - before, "answers": answers[:50]}))
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Some 80 MB of random numbers."""
    rng = np.random.default_rng(0)
    words = [b"</s>", *(f"w{number}".encode() for number in range(WORDS)), b"__label__a", b"__label__b"]
    counts = np.arange(len(words), 0, -1, dtype=np.int64)
    types = np.repeat(np.array([WORD, LABEL], np.int8), [WORDS + 1, 2])
    settings = Settings(DIMENSIONS, 5, 5, 1, 5, 2, SOFTMAX, SUPERVISED, BUCKETS, 0, 0, 100, 1e-4)
    inputs = rng.standard_normal((WORDS + 1 + BUCKETS, DIMENSIONS), np.float32)
    outputs = rng.standard_normal((2, DIMENSIONS), np.float32)
    file = FastTextFile(settings, words, counts, types, 1000, None, inputs, outputs)
    path = tmp_path_factory.mktemp("shared") / "model"
    save(FastTextClassifier.from_file(file), path)
    return path


def test_it_opens_without_being_read(folder: Path) -> None:
    load(folder)
    taken = []
    for _ in range(5):
        start = time.process_time()
        load(folder)
        taken.append(time.process_time() - start)
    assert min(taken) < 0.1


@pytest.mark.long
@pytest.mark.skipif(not SMAPS.exists(), reason="only Linux tells a process what it shares")
def test_a_process_holds_nothing_of_its_own(folder: Path) -> None:
    size = (folder / "arrays.safetensors").stat().st_size
    assert size > 70e6
    command = [sys.executable, "-c", CHILD, str(folder)]
    found = json.loads(subprocess.run(command, capture_output=True, check=True, text=True).stdout)
    assert found["mapped"] > size / 4
    assert found["growth"] < size / 20
    assert set(found["answers"]) == {"a", "b"}
