"""pLSA and LDA: known topics are found, likelihood rises, folding in, saving, refusals."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from foreword.errors import InputError, NotFittedError, SettingError
from foreword.evaluate.topics import coherence, completion_perplexity
from foreword.features.topics import LDA, PLSA, TopicModel, mean_log_likelihood
from foreword.storage.folder import load, save

BOTH = pytest.mark.parametrize("kind", [PLSA, LDA])


def drawn(documents: int = 300, seed: int = 0) -> tuple[sparse.csr_array, np.ndarray]:
    """Documents of 50 words from three topics of ten words each."""
    random = np.random.default_rng(seed)
    topics = np.kron(np.eye(3), np.full(10, 0.1))
    shares = random.dirichlet(np.full(3, 0.2), documents)
    return sparse.csr_array([random.multinomial(50, row) for row in shares @ topics]), topics


@BOTH
def test_known_topics_are_found(kind: type[TopicModel]) -> None:
    counts, topics = drawn()
    model = kind(3).fit(counts)
    assert_allclose(model.components_.sum(1), 1)
    found = model.components_[np.argsort(model.components_[:, :20].argmax(1))]
    order = [int(np.abs(found - topic).sum(1).argmin()) for topic in topics]
    assert sorted(order) == [0, 1, 2]
    assert np.abs(found[order] - topics).sum(1).max() < 0.15
    assert coherence(model.components_, counts).min() > 0.1
    new, _ = drawn(50, seed=1)
    ideal = -mean_log_likelihood(new, np.ones((50, 1)), np.full((1, 30), 1 / 30))
    assert completion_perplexity(model, new) < 0.8 * np.exp(ideal)


@BOTH
def test_a_document_s_topics_are_a_distribution_and_do_not_depend_on_others(kind: type[TopicModel]) -> None:
    counts, _ = drawn(60)
    model = kind(3).fit(counts)
    shares = model.transform(counts)
    assert_allclose(shares.sum(1), 1)
    assert shares.max(1).mean() > 0.7
    assert_allclose(model.transform(counts[:5]), shares[:5], atol=0.02)
    assert_allclose(model.transform(sparse.csr_array((1, 30))), np.full((1, 3), 1 / 3))


def test_the_likelihood_of_plsa_never_falls_and_the_same_seed_gives_the_same_model() -> None:
    counts, _ = drawn(80)
    scores = []
    for passes in (1, 2, 5, 20):
        model = PLSA(3, iterations=passes, tolerance=0).fit(counts)
        theta = np.full((80, 3), 1 / 3)
        for _ in range(200):
            theta = model._documents(counts, theta, model.components_)
        scores.append(mean_log_likelihood(counts, theta / theta.sum(1, keepdims=True), model.components_))
    assert all(later > sooner for sooner, later in pairwise(scores))
    assert_array_equal(PLSA(3).fit(counts).components_, PLSA(3).fit(counts).components_)
    assert not np.array_equal(PLSA(3, seed=1).fit(counts).components_, PLSA(3).fit(counts).components_)


@BOTH
def test_it_comes_back_as_it_was_saved(kind: type[TopicModel], tmp_path: Path) -> None:
    counts, _ = drawn(40)
    model = kind(3, seed=2).fit(counts)
    save(model, tmp_path / "topics")
    again = load(tmp_path / "topics")
    assert again.get_params() == model.get_params()
    assert_array_equal(again.transform(counts), model.transform(counts))
    assert again.top_words([f"w{column}" for column in range(30)], 3) == model.top_words(
        [f"w{column}" for column in range(30)], 3
    )


@BOTH
def test_what_makes_no_sense_is_refused(kind: type[TopicModel]) -> None:
    with pytest.raises(NotFittedError):
        kind().transform(np.ones((2, 2)))
    with pytest.raises(SettingError, match="topics is 0"):
        kind(0).fit(np.ones((2, 2)))
    with pytest.raises(InputError, match="expects counts"):
        kind(2).fit(-np.ones((2, 2)))
    with pytest.raises(InputError, match="is expecting 3 features"):
        kind(2).fit(np.ones((4, 3))).transform(np.ones((1, 2)))


def test_coherence_by_hand() -> None:
    """Two words always together in half of the documents, and a third one that never meets them."""
    counts = np.array([[1, 1, 0], [2, 1, 0], [0, 0, 1], [0, 0, 3]])
    found = coherence(np.array([[3.0, 2.0, 1.0], [3.0, 1.0, 2.0]]), counts, words=2)
    assert_allclose(found, [1.0, -1.0])
