"""Workers that share a batch, as threads of this process: what ``cluster/training.py`` has Ray do."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from foreword.errors import SettingError
from foreword.tokens.corpus import Corpus
from foreword.tokens.words import WordTokenizer

torch = pytest.importorskip("torch")

from foreword.neural.model import NeuralLM  # noqa: E402
from foreword.neural.recurrent import MODEST, RecurrentLM  # noqa: E402
from foreword.neural.training import TextRing  # noqa: E402
from foreword.nn.dropout import Dropout  # noqa: E402

NONE = Dropout(words=0.0, input=0.0, between=0.0, output=0.0, recurrent=0.0)


class Threads:
    """A group of workers: they meet, and take the sum of what all have brought, in the order of their ranks."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.brought: list[Any] = [None] * size
        self.barrier = threading.Barrier(size, timeout=60)

    def met(self, rank: int, what: Any) -> list[Any]:
        self.brought[rank] = what
        self.barrier.wait()
        found = list(self.brought)
        self.barrier.wait()
        return found


class Member:
    def __init__(self, rank: int, group: Threads) -> None:
        self.rank, self.size, self.group = rank, group.size, group

    def broadcast(self, weights: Any) -> None:
        weights.copy_(self.group.met(self.rank, weights.clone())[0])

    def average(self, gradient: Any) -> None:
        first, *others = self.group.met(self.rank, gradient.clone())
        for other in others:
            first = first + other
        gradient.copy_(first / self.size)

    def agree(self, number: float) -> float:
        return float(self.group.met(self.rank, number)[0])


def in_threads(
    make: Callable[..., NeuralLM], corpus: Corpus, workers: int, valid: Corpus | None = None, **settings: Any
) -> list[NeuralLM]:
    """The models of all workers of one run."""
    group, models = Threads(workers), [make(**settings) for _ in range(workers)]

    def work(rank: int) -> None:
        for _ in models[rank].train(corpus, valid=valid, group=Member(rank, group)):
            pass

    threads = [threading.Thread(target=work, args=(rank,)) for rank in range(workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return models


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    rng = random.Random(0)
    texts = [" ".join(rng.choices("abcdefg", k=rng.randrange(4, 12))) for _ in range(100)]
    return Corpus.from_texts(texts, WordTokenizer().fit(texts))


def new(dropout: Dropout | None = None, **training: Any) -> RecurrentLM:
    how = replace(MODEST, **{"epochs": 2, "batch": 8, "steps": 20, **training})
    return RecurrentLM("lstm", 8, 8, 1, dropout=dropout, training=how, device="cpu")


def flat(model: NeuralLM) -> Any:
    return model.flat_weights().numpy()


@pytest.mark.parametrize("workers", [2, 4])
def test_workers_without_dropout_do_what_one_does_but_for_rounding(corpus: Corpus, workers: int) -> None:
    plain = new(NONE).fit(corpus, valid=corpus[:10])
    models = in_threads(new, corpus, workers, corpus[:10], dropout=NONE)
    np.testing.assert_allclose(flat(models[0]), flat(plain), atol=2e-4)
    assert models[0].valid_score_ == pytest.approx(plain.valid_score_, abs=1e-4)
    assert all(flat(model).tobytes() == flat(models[0]).tobytes() for model in models)


def test_workers_agree_and_draw_dropout_of_their_own(corpus: Corpus) -> None:
    first, second = in_threads(new, corpus, 2, patience=1, schedule="plateau", valid=corpus[:10])
    again, _ = in_threads(new, corpus, 2, patience=1, schedule="plateau", valid=corpus[:10])
    assert flat(first).tobytes() == flat(second).tobytes() == flat(again).tobytes()
    plain = new(patience=1, schedule="plateau").fit(corpus, valid=corpus[:10])
    assert not np.allclose(flat(first), flat(plain), atol=1e-5)


def test_shares_of_a_batch_are_its_columns(corpus: Corpus) -> None:
    ids = torch.arange(103)
    whole = TextRing(ids, 6, 5, offsets=np.array([0, 40, 103]), vary=True)
    parts = [TextRing(ids, 6, 5, offsets=np.array([0, 40, 103]), vary=True, share=(each, 3)) for each in range(3)]
    inputs, targets = whole.epoch(np.random.default_rng(0))
    found = [part.epoch(np.random.default_rng(0)) for part in parts]
    assert torch.equal(torch.cat([each for each, _ in found], 1), inputs)
    assert torch.equal(torch.cat([each for _, each in found], 1), targets)
    assert {part.tokens for part in parts} == {whole.tokens}
    with pytest.raises(SettingError, match="a batch of 6 cannot be shared by 4 workers"):
        TextRing(ids, 6, 5, share=(0, 4))
