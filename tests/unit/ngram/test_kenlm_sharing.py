"""A KenLM binary is mapped, not read: processes that open it share one copy of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from tests.sharing import check_shared, on_linux

from foreword.ngram.hash_layout import Spelled
from foreword.ngram.kenlm_writing import Binary, write_kenlm
from foreword.ngram.log10 import Log10Ngrams
from foreword.tokens.vocab import Vocab

WORDS, FOLLOWING = 20_000, 50

USE = """
import numpy as np

def few(model):
    model.perplexity(["w3 w4"])

def many(model):
    words = np.random.default_rng(0).integers(2, 20_000, (1000, 20))
    return model.perplexity([" ".join(f"w{word}" for word in line) for line in words.tolist()])
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


@on_linux
@pytest.mark.parametrize("binary", ["probing", "trie"])
def test_processes_share_the_file(tmp_path: Path, binary: Binary) -> None:
    path = tmp_path / f"{binary}.bin"
    write_kenlm(bigrams(), path, binary)
    check_shared(path, path, USE, max(2 << 20, path.stat().st_size / 3))
