"""The batched search against the plain one in ``decode.py``, against every text there is, and against hand values."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

from foreword.arrays import Ids, Logs
from foreword.decode import beam_search, generate, gnmt_score
from foreword.errors import InputError, NotFittedError, SettingError
from foreword.nn.recurrent_layer import CELLS
from foreword.tokens.corpus import Corpus
from foreword.tokens.vocab import Vocab
from foreword.translate.pairs import Pairs
from foreword.translate.seq2seq import Seq2Seq

VOCAB = Vocab(["<unk>", "</s>", "a", "b"])
SETTINGS: dict[str, Any] = {"units": 8, "words": 6, "epochs": 3, "batch": 50, "rate": 2e-2, "device": "cpu"}


def pairs_of(count: int, seed: int = 0) -> Pairs:
    random = np.random.default_rng(seed)
    sources = [random.integers(2, 4, random.integers(1, 5)) for _ in range(count)]
    return Pairs(Corpus.from_ids(sources, VOCAB), Corpus.from_ids([each[::-1] for each in sources], VOCAB))


@pytest.fixture(scope="module", params=["general", "additive-feed", "none"])
def model(request: pytest.FixtureRequest) -> Seq2Seq:
    torch.set_num_threads(1)
    attention, _, feed = request.param.partition("-")
    return Seq2Seq(**SETTINGS, attention=attention, feed=bool(feed)).fit(pairs_of(60))


@pytest.mark.parametrize(
    "settings",
    [
        {"width": 1},
        {"width": 3, "n_best": 3},
        {"width": 5, "length_penalty": 0.0},
        {"width": 4, "normalisation": "gnmt", "length_penalty": 0.6},
        {"width": 4, "n_best": 2, "normalisation": "gnmt", "length_penalty": 0.2, "coverage": 0.2},
        {"width": 10, "max_tokens": 3},
    ],
    ids=str,
)
def test_the_batched_search_is_the_plain_one(model: Seq2Seq, settings: dict[str, Any]) -> None:
    if settings.get("coverage") and model.attention == "none":
        return
    sources = pairs_of(30, seed=1).sources
    ours = model.search(sources, **settings)
    for place, texts in enumerate(ours):
        plain = beam_search(model.condition(sources[place : place + 1]), **settings)[0]
        assert [each.ids for each in texts] == [each.ids for each in plain]
        assert [each.finished for each in texts] == [each.finished for each in plain]
        assert_allclose([each.score for each in texts], [each.score for each in plain], atol=1e-5)
    together = beam_search(model.condition(sources), **settings)
    assert [[each.ids for each in texts] for texts in together] == [[each.ids for each in texts] for texts in ours]


def test_q05_greedy_is_a_beam_of_one(model: Seq2Seq) -> None:
    """Q05: the likeliest word at each step."""
    sources = pairs_of(20, seed=2).sources
    for place, texts in enumerate(model.search(sources, width=1)):
        stepped = model.condition(sources[place : place + 1])
        assert list(generate(stepped, temperature=0)) == list(texts[0].ids)


def test_q06_a_wide_beam_finds_the_best_of_all_targets(model: Seq2Seq) -> None:
    """Q06: every target of up to four words, scored one by one."""
    sources = pairs_of(4, seed=3).sources
    every = [list(ids) for size in range(4) for ids in itertools.product([0, 2, 3], repeat=size)]
    for place in range(len(sources)):
        repeated = Corpus.from_ids([sources[place : place + 1].ids[:-1]] * len(every), VOCAB)
        logs = [each.sum() for each in model.logprobs(Pairs(repeated, Corpus.from_ids(every, VOCAB)))]
        for penalty in (0.0, 1.0):
            scores = [log / (len(ids) + 1) ** penalty for log, ids in zip(logs, every, strict=True)]
            best = int(np.argmax(scores))
            # So wide that none of the 40 texts and their beginnings is ever dropped.
            found = model.search(
                sources[place : place + 1], width=200, n_best=40, max_tokens=4, length_penalty=penalty
            )[0]
            assert list(found[0].ids) == every[best]
            assert found[0].score == pytest.approx(scores[best], abs=1e-5)


def test_q07_q08_penalties_are_the_hand_values() -> None:
    """Q07, Q08: mean, GNMT's length penalty and its coverage penalty, worked out from the attention itself."""
    torch.set_num_threads(1)
    pairs = pairs_of(60)
    model = Seq2Seq(**SETTINGS, attention="general").fit(pairs)
    sources = pairs.sources[:10]
    for texts, source in zip(
        model.search(sources, width=4, normalisation="gnmt", length_penalty=0.7, coverage=0.3),
        sources.documents(),
        strict=True,
    ):
        best = texts[0]
        pair = Pairs(Corpus.from_ids([source[:-1]], VOCAB), Corpus.from_ids([best.ids], VOCAB))
        weights = model.attend(pair)[0]
        length = len(best.ids) + 1
        covered = sum(math.log(min(1.0, float(weights[:, word].sum()))) for word in range(len(source) - 1))
        expected = best.logprob / ((5 + length) / 6) ** 0.7 + 0.3 * covered
        assert best.score == pytest.approx(expected, abs=1e-4)
        assert best.score == pytest.approx(gnmt_score(best.logprob, weights[:, :-1], alpha=0.7, beta=0.3), abs=1e-4)
    for texts in model.search(sources, width=4, length_penalty=1.0):
        assert texts[0].score == pytest.approx(texts[0].logprob / (len(texts[0].ids) + 1))


def test_q07_length_normalisation_makes_no_target_shorter() -> None:
    """Q07: a model that has learnt little ends too early when whole probabilities are compared."""
    torch.set_num_threads(1)
    pairs = pairs_of(200)
    model = Seq2Seq(**{**SETTINGS, "epochs": 1}, attention="none").fit(pairs)
    bare, mean = (
        sum(len(texts[0].ids) for texts in model.search(pairs.sources, width=5, length_penalty=penalty))
        for penalty in (0.0, 1.0)
    )
    true = len(pairs.targets.ids) - len(pairs)
    assert abs(mean / true - 1) <= abs(bare / true - 1)
    assert bare < true


@pytest.mark.parametrize("kind", ["general", "additive", "dot", "scaled", "none", "additive-feed", "general-two"])
def test_q05_the_quick_greedy_road_says_the_same(kind: str) -> None:
    """Words looked up, products made once, ended sentences left out: the same texts as a beam of one."""
    torch.set_num_threads(1)
    attention, _, more = kind.partition("-")
    settings: dict[str, Any] = {**SETTINGS, "both_ways": more != "two", "layers": 2 if more == "two" else 1}
    settings |= {"attention": attention, "feed": more == "feed"}
    model = Seq2Seq(**settings).fit(pairs_of(60))
    sources = pairs_of(150, seed=5).sources
    for max_tokens in (100, 2):
        found = model.search(sources, width=1, max_tokens=max_tokens)
        said = model.translate(sources, width=1, max_tokens=max_tokens)
        assert [ids.tolist() for ids in said] == [list(texts[0].ids) for texts in found]


@pytest.mark.parametrize("cell", CELLS)
def test_search_takes_every_cell(cell: Any) -> None:
    """The batched search is the plain one, and greedy translation is a beam of one."""
    torch.set_num_threads(1)
    model = Seq2Seq(**SETTINGS, cell=cell, layers=2, feed=True).fit(pairs_of(60))
    sources = pairs_of(12, seed=1).sources
    for width in (1, 3):
        found = model.search(sources, width=width, n_best=width)
        for place, texts in enumerate(found):
            plain = beam_search(model.condition(sources[place : place + 1]), width=width, n_best=width)[0]
            assert [each.ids for each in texts] == [each.ids for each in plain]
            assert_allclose([each.score for each in texts], [each.score for each in plain], atol=1e-5)
        said = model.translate(sources, width=width)
        assert [ids.tolist() for ids in said] == [list(texts[0].ids) for texts in found]


# Ensembles


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
    found = models[0].search(sources, width=4, n_best=3, others=models[1:])
    for place, texts in enumerate(found):
        plain = beam_search(MeanOfAll(models, sources[place : place + 1]), width=4, n_best=3)[0]
        assert [each.ids for each in texts] == [each.ids for each in plain]
        assert_allclose([each.score for each in texts], [each.score for each in plain], atol=1e-5)


def test_a_model_with_itself_is_that_model(models: list[Seq2Seq]) -> None:
    sources = pairs_of(20, seed=2).sources
    settings: dict[str, Any] = {"width": 3, "normalisation": "gnmt", "coverage": 0.2}
    alone, twice = (models[0].search(sources, **settings, others=others) for others in ([], models[:1]))
    assert [[each.ids for each in texts] for texts in twice] == [[each.ids for each in texts] for texts in alone]
    for width in (1, 3):
        said = [models[0].translate(sources, width=width, others=others) for others in ([], models[:1])]
        assert [each.tolist() for each in said[0]] == [each.tolist() for each in said[1]]


def test_members_that_do_not_fit_are_refused(models: list[Seq2Seq]) -> None:
    other = Vocab(["<unk>", "</s>", "x", "y"])
    stranger = Seq2Seq(**SETTINGS).fit(Pairs(Corpus.from_ids([[2, 3]], other), Corpus.from_ids([[3]], other)))
    with pytest.raises(InputError, match="different vocabularies"):
        models[0].search(pairs_of(2).sources, others=[stranger])
    with pytest.raises(NotFittedError):
        models[0].search(pairs_of(2).sources, others=[Seq2Seq(**SETTINGS)])
    blind = Seq2Seq(**SETTINGS, attention="none").fit(pairs_of(20))
    with pytest.raises(SettingError, match="coverage"):
        models[0].search(pairs_of(2).sources, others=[blind], coverage=0.2)
