"""A KenLM binary is mapped, not read: processes that open it share one copy of it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from foreword.ngram.hash_layout import Spelled
from foreword.ngram.kenlm_writing import Binary, write_kenlm
from foreword.ngram.log10 import Log10Ngrams
from foreword.tokens.vocab import Vocab

SMAPS = Path("/proc/self/smaps")
PROCESSES, WORDS, FOLLOWING = 3, 20_000, 50

CHILD = """
import json, sys
from pathlib import Path
import numpy as np
from foreword import load

def memory():
    mapped, private, ours = dict.fromkeys(("Rss", "Private_Dirty", "Shared_Clean"), 0), 0, False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        name, *rest = line.split()
        if not name.endswith(":"):
            ours = line.endswith(sys.argv[1])
        elif name == "Private_Dirty:" and not ours:
            private += int(rest[0]) << 10
        if ours and name[:-1] in mapped:
            mapped[name[:-1]] += int(rest[0]) << 10
    return mapped, private

model = load(sys.argv[1])
model.perplexity(["w3 w4"])
before = memory()[1]
words = np.random.default_rng(0).integers(2, 20_000, (1000, 20))
score = model.perplexity([" ".join(f"w{word}" for word in line) for line in words.tolist()])
print("ready", flush=True)
sys.stdin.readline()
mapped, private = memory()
print(json.dumps({"score": score, "growth": private - before, **mapped}))
"""


def bigrams() -> Log10Ngrams:
    vocab = Vocab(["<unk>", "</s>", *(f"w{number}" for number in range(2, WORDS))])

    def orders() -> Iterator[Spelled]:
        rng, single = np.random.default_rng(0), np.arange(WORDS + 1)[:, None]  # <s> is the last
        yield 1, single, -rng.random(len(single), np.float32) - 1, -rng.random(len(single), np.float32)
        first = np.repeat(np.arange(2, WORDS), FOLLOWING)
        second = np.sort((first.reshape(-1, FOLLOWING) + np.arange(FOLLOWING)) % (WORDS - 2), axis=1).ravel() + 2
        pairs = np.stack((first, second), axis=1)
        yield 2, pairs, -rng.random(len(pairs), np.float32), np.zeros(len(pairs), np.float32)

    return Log10Ngrams(vocab, [WORDS + 1, (WORDS - 2) * FOLLOWING], orders)


@pytest.mark.skipif(not SMAPS.exists(), reason="only Linux tells a process what it shares")
@pytest.mark.parametrize("binary", ["probing", "trie"])
def test_processes_share_the_file(tmp_path: Path, binary: Binary) -> None:
    path = tmp_path / f"{binary}.bin"
    write_kenlm(bigrams(), path, binary)
    size = path.stat().st_size
    command = [sys.executable, "-c", CHILD, str(path)]
    children = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(PROCESSES)
    ]
    try:
        for child in children:
            assert child.stdout is not None
            assert child.stdout.readline() == "ready\n"
        found = [json.loads(child.communicate("go\n")[0]) for child in children]
    finally:
        for child in children:
            child.kill()
            child.communicate()
    assert len({each["score"] for each in found}) == 1
    for each in found[:-1]:  # the last may be alone by the time it looks
        assert each["Rss"] > size / 2
        assert each["Private_Dirty"] == 0
        assert each["Shared_Clean"] > 0.95 * each["Rss"]
    for each in found:
        assert each["growth"] < max(2 << 20, size / 3)
