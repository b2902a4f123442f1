"""A saved model is mapped, not read: processes that open it share one copy of its arrays."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.sharing import check_shared, on_linux

from foreword import load, save
from foreword.ngram.model import NgramLM
from foreword.tokens.corpus import Corpus
from foreword.tokens.vocab import Vocab

WORDS = 30_000

USE = """
import numpy as np
from foreword.tokens.corpus import Corpus

def few(model):
    model.logprobs(Corpus.from_ids([[2, 3]], model.vocab))

def many(model):
    ids = np.random.default_rng(0).integers(2, len(model.vocab), (2000, 200))
    return model.logprobs(Corpus.from_ids(ids.tolist(), model.vocab)).sum()
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


@on_linux
def test_processes_share_the_arrays(folder: Path) -> None:
    arrays = folder / "arrays.safetensors"
    assert 30e6 < arrays.stat().st_size < 60e6
    check_shared(folder, arrays, USE, arrays.stat().st_size / 3)


def test_opening_makes_views_of_the_file(folder: Path) -> None:
    model = load(folder)
    table = model.to_parts().arrays["table"]
    assert not table.flags.owndata
    assert not table.flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        table[0] = 1
