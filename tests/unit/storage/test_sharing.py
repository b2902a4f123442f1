"""A saved model is mapped, not read: processes that open it share one copy of its arrays."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from foreword import load, save
from foreword.ngram.model import NgramLM
from foreword.tokens.corpus import Corpus
from foreword.tokens.vocab import Vocab

SMAPS = Path("/proc/self/smaps")
PROCESSES = 3
WORDS = 30_000

CHILD = """
import json, sys
from pathlib import Path
import numpy as np
from foreword import load
from foreword.tokens.corpus import Corpus

def memory():
    mapped, private, ours = dict.fromkeys(("Rss", "Private_Dirty", "Shared_Clean"), 0), 0, False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        name, *rest = line.split()
        if not name.endswith(":"):
            ours = line.endswith("arrays.safetensors")
        elif name == "Private_Dirty:" and not ours:
            private += int(rest[0]) << 10
        if ours and name[:-1] in mapped:
            mapped[name[:-1]] += int(rest[0]) << 10
    return mapped, private

model = load(sys.argv[1])
few = Corpus.from_ids([[2, 3]], model.vocab)
model.logprobs(few)
before = memory()[1]
random = np.random.default_rng(0)
texts = Corpus.from_ids(random.integers(2, len(model.vocab), (2000, 200)).tolist(), model.vocab)
score = model.logprobs(texts).sum()
print("ready", flush=True)
sys.stdin.readline()
mapped, private = memory()
print(json.dumps({"score": score, "growth": private - before, **mapped}))
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of about 45 MB; nearly all of its bigrams are different."""
    random = np.random.default_rng(1)
    texts = random.integers(2, WORDS, (4000, 250)).tolist()
    vocab = Vocab(["<unk>", "</s>", *(f"w{number}" for number in range(2, WORDS))])
    path = tmp_path_factory.mktemp("shared") / "model"
    save(NgramLM(3).fit(Corpus.from_ids(texts, vocab)), path)
    return path


@pytest.fixture
def children(folder: Path) -> Iterator[list[subprocess.Popen[str]]]:
    command = [sys.executable, "-c", CHILD, str(folder)]
    running = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(PROCESSES)
    ]
    yield running
    for child in running:
        child.kill()
        child.communicate()


@pytest.mark.skipif(not SMAPS.exists(), reason="only Linux tells a process what it shares")
def test_processes_share_the_arrays(folder: Path, children: list[subprocess.Popen[str]]) -> None:
    size = (folder / "arrays.safetensors").stat().st_size
    assert 30e6 < size < 60e6
    for child in children:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
    # All are still there when each looks at its memory: a page is shared only while another process has it too.
    found = [json.loads(child.communicate("go\n")[0]) for child in children]
    assert len({each["score"] for each in found}) == 1
    for each in found[:-1]:  # the last may be alone by the time it looks
        assert each["Rss"] > size / 2
        assert each["Private_Dirty"] == 0
        assert each["Shared_Clean"] > 0.95 * each["Rss"]
    for each in found:
        assert each["growth"] < size / 3


def test_opening_makes_views_of_the_file(folder: Path) -> None:
    model = load(folder)
    table = model.to_parts().arrays["table"]
    assert not table.flags.owndata
    assert not table.flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        table[0] = 1
