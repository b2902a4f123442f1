"""Several translators that write together: the mean of their probabilities, by the batched search and by hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

from foreword.arrays import Ids, Logs
from foreword.decode import beam_search
from foreword.errors import InputError, SettingError
from foreword.tokens.corpus import Corpus
from foreword.tokens.vocab import Vocab
from foreword.translate.ensemble import Ensemble
from foreword.translate.pairs import Pairs
from foreword.translate.seq2seq import Seq2Seq

VOCAB = Vocab(["<unk>", "</s>", "a", "b"])
SETTINGS: dict[str, Any] = {"units": 8, "words": 6, "epochs": 3, "batch": 50, "rate": 2e-2, "device": "cpu"}


def pairs_of(count: int, seed: int = 0) -> Pairs:
    random = np.random.default_rng(seed)
    sources = [random.integers(2, 4, random.integers(1, 5)) for _ in range(count)]
    return Pairs(Corpus.from_ids(sources, VOCAB), Corpus.from_ids([each[::-1] for each in sources], VOCAB))


@pytest.fixture(scope="module")
def models() -> list[Seq2Seq]:
    torch.set_num_threads(1)
    others: list[dict[str, Any]] = [{}, {"seed": 1}, {"seed": 2, "attention": "additive", "feed": True, "cell": "gru"}]
    return [Seq2Seq(**{**SETTINGS, **each}).fit(pairs_of(60)) for each in others]


class StateOfAll(tuple[Any, ...]):
    """One state of every model; an index selects rows of all."""

    def __len__(self) -> int:
        return len(self[0])

    def __getitem__(self, rows: Any) -> Any:
        if isinstance(rows, int):
            return tuple.__getitem__(self, rows)
        return StateOfAll(each[rows] for each in self)


class MeanOfAll:
    """The plain version: ``NextToken`` by the mean of several models' probabilities."""

    def __init__(self, models: Sequence[Seq2Seq], sources: Corpus) -> None:
        self.vocab = models[0].vocab
        self.all = [each.condition(sources) for each in models]

    def start(self, n: int = 1) -> StateOfAll:
        return StateOfAll(each.start(n) for each in self.all)

    def next_logprobs(self, state: StateOfAll) -> Logs:
        logs = [each.next_logprobs(part) for each, part in zip(self.all, tuple(state), strict=True)]
        found: Logs = np.log(np.mean(np.exp(logs), axis=0))
        return found

    def advance(self, state: StateOfAll, ids: Ids) -> StateOfAll:
        return StateOfAll(each.advance(part, ids) for each, part in zip(self.all, tuple(state), strict=True))


def test_an_ensemble_searches_by_the_mean_of_the_probabilities(models: list[Seq2Seq]) -> None:
    sources = pairs_of(20, seed=1).sources
    found = Ensemble(models).search(sources, width=4, n_best=3)
    for place, texts in enumerate(found):
        plain = beam_search(MeanOfAll(models, sources[place : place + 1]), width=4, n_best=3)[0]
        assert [each.ids for each in texts] == [each.ids for each in plain]
        assert_allclose([each.score for each in texts], [each.score for each in plain], atol=1e-5)


def test_an_ensemble_of_one_is_that_model_and_of_two_alike_too(models: list[Seq2Seq]) -> None:
    sources = pairs_of(20, seed=2).sources
    settings: dict[str, Any] = {"width": 3, "normalisation": "gnmt", "coverage": 0.2}
    alone = models[0].search(sources, **settings)
    for members in ([models[0]], [models[0], models[0]]):
        ensemble = Ensemble(members)
        assert [[each.ids for each in texts] for texts in ensemble.search(sources, **settings)] == [
            [each.ids for each in texts] for texts in alone
        ]
        assert ensemble.parameter_count == len(members) * models[0].parameter_count
    said = Ensemble(models[:1]).translate(sources, width=3)
    assert [each.tolist() for each in said] == [each.tolist() for each in models[0].translate(sources, width=3)]


def test_members_that_do_not_fit_are_refused(models: list[Seq2Seq]) -> None:
    with pytest.raises(InputError, match="at least one model"):
        Ensemble([])
    other = Vocab(["<unk>", "</s>", "x", "y"])
    stranger = Seq2Seq(**SETTINGS).fit(Pairs(Corpus.from_ids([[2, 3]], other), Corpus.from_ids([[3]], other)))
    with pytest.raises(InputError, match="different vocabularies"):
        Ensemble([models[0], stranger])
    with pytest.raises(InputError, match="another vocabulary"):
        Ensemble(models).search(Corpus.from_ids([[2]], other))
    blind = Seq2Seq(**SETTINGS, attention="none").fit(pairs_of(20))
    with pytest.raises(SettingError, match="coverage"):
        Ensemble([models[0], blind]).search(pairs_of(2).sources, coverage=0.2)
