"""hmmlearn's CategoricalHMM as an oracle, both of its implementations: the same numbers from the same beginning."""

from __future__ import annotations

import itertools
import logging
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from foreword.hmm.model import HMM
from foreword.tokens.corpus import Corpus
from foreword.tokens.vocab import Vocab

hmmlearn = pytest.importorskip("hmmlearn.hmm")

STATES, WORDS = 6, 40
VOCAB = Vocab(["<unk>", "</s>", *map(str, range(WORDS - 2))])


def parameters(seed: int = 0) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(seed)
    return (
        rng.dirichlet(np.ones(STATES)),
        rng.dirichlet(np.ones(STATES), STATES),
        rng.dirichlet(np.ones(WORDS), STATES),
    )


@pytest.fixture
def corpus() -> Corpus:
    rng = np.random.default_rng(1)
    return Corpus.from_ids([rng.zipf(1.5, rng.integers(0, 60)) % WORDS for _ in range(120)], VOCAB)


def peer_of(model: HMM, implementation: str, iterations: int = 1) -> Any:
    peer = hmmlearn.CategoricalHMM(
        STATES, n_features=WORDS, n_iter=iterations, tol=-np.inf, init_params="", implementation=implementation
    )
    peer.startprob_, peer.transmat_, peer.emissionprob_ = model.start_, model.transition_, model.emission_
    return peer


def columns(corpus: Corpus) -> tuple[Any, Any]:
    """The ids as hmmlearn takes them, and the documents' lengths."""
    return corpus.ids.astype(np.int64)[:, None], np.diff(corpus.offsets)


@pytest.mark.parametrize("implementation", ["log", "scaling"])
def test_h10_every_round_of_em_has_the_same_likelihood_and_ends_in_the_same_parameters(
    corpus: Corpus, implementation: str, caplog: pytest.LogCaptureFixture
) -> None:
    """H10: the result equals a reference implementation."""
    caplog.set_level(logging.CRITICAL)
    model = HMM.from_parameters(*parameters(), VOCAB, smoothing=0.0, iterations=25, tolerance=0)
    peer = peer_of(model, implementation, 25)
    peer.fit(*columns(corpus))
    steps = list(model.improve(corpus))
    assert_allclose(
        [-step.loss * len(corpus.ids) for step in steps], list(peer.monitor_.history)[: len(steps)], rtol=1e-10
    )
    assert len(steps) == 25
    assert_allclose(model.start_, peer.startprob_, atol=1e-8)
    assert_allclose(model.transition_, peer.transmat_, atol=1e-8)
    assert_allclose(model.emission_, peer.emissionprob_, atol=1e-8)


@pytest.mark.parametrize("implementation", ["log", "scaling"])
def test_h06_h08_scores_posteriors_and_paths_are_the_same(corpus: Corpus, implementation: str) -> None:
    """H06 and H08: filter, smoother and Viterbi."""
    model = HMM.from_parameters(*parameters(), VOCAB)
    peer = peer_of(model, implementation)
    ids, lengths = columns(corpus)
    assert model.logprobs(corpus).sum() == pytest.approx(peer.score(ids, lengths), rel=1e-12)
    assert_allclose(model.posteriors(corpus), peer.predict_proba(ids, lengths), atol=1e-10)
    log_probability, path = peer.decode(ids, lengths)
    ours = model.viterbi(corpus)
    assert joint(model, corpus, ours) == pytest.approx(log_probability, rel=1e-13)
    # Where the same word stands three times in a row, going round three states in another order is exactly as likely.
    differ = np.flatnonzero(ours != path)
    assert len(differ) < 5
    assert joint(model, corpus, path) == pytest.approx(log_probability, rel=1e-13)


def joint(model: HMM, corpus: Corpus, path: Any) -> float:
    bounds = itertools.pairwise(corpus.offsets.tolist())
    return sum(model.joint_logprob(corpus.ids[start:stop], path[start:stop]) for start, stop in bounds)


def test_float32_stays_close(corpus: Corpus) -> None:
    model = HMM.from_parameters(*parameters(), VOCAB, dtype="float32", smoothing=0.0, iterations=5, tolerance=0)
    peer = peer_of(model, "scaling", 5)
    for table in ("startprob_", "transmat_", "emissionprob_"):  # which its own check wants to sum to one
        rows = np.asarray(getattr(peer, table), np.float64)
        setattr(peer, table, rows / rows.sum(axis=-1, keepdims=True))
    peer.fit(*columns(corpus))
    steps = list(model.improve(corpus))
    assert_allclose([-step.loss * len(corpus.ids) for step in steps], list(peer.monitor_.history), rtol=1e-5)
