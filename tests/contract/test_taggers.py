"""What is true of every tagger. A new one joins by adding its line to TAGGERS."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from foreword.evaluate.tagging import measure_tagger
from foreword.protocols import Saveable, Tagger, TreebankTagger
from foreword.storage.folder import load, save
from foreword.tag.bilstm import BiLSTMTagger
from foreword.tag.features import FeatureTagger
from foreword.tag.hmm import HMMTagger

TAGGERS: dict[str, Callable[[], TreebankTagger]] = {
    "hmm-2": lambda: HMMTagger(2),
    "hmm-3": HMMTagger,
    "features": FeatureTagger,
    "features-no-history": lambda: FeatureTagger(["word", "suffix", "neighbours"], rounds=3),
    "bilstm": lambda: _neural(),
    "bilstm-lstm-no-crf": lambda: _neural(layers=2, characters="lstm", crf=False, optimiser="sgd", rate=0.05),
    "lstm-one-way": lambda: _neural(both_ways=False, crf=False, characters="none"),
}

TOLERANCE = {"bilstm": 1e-5, "bilstm-lstm-no-crf": 1e-5, "lstm-one-way": 1e-5}
"""What logits may differ by when sentences are read together; none where nothing is computed side by side."""


def _neural(**settings: Any) -> TreebankTagger:
    """One thread: these matrices are too small to share out."""
    import torch

    torch.set_num_threads(1)
    sizes: dict[str, Any] = {"units": 6, "words": 5, "letter_units": 4, "spelling": 6, "epochs": 2, "device": "cpu"}
    tagger: TreebankTagger = BiLSTMTagger(**{**sizes, **settings})
    return tagger


RANDOM = np.random.default_rng(0)
STEMS, ENDINGS, TAGS = ("ka", "Mo", "ti", "zu", "Ra"), ("", "s", "ing", "ly", "-3"), ("A", "B", "C", "D")


def sentences(count: int) -> list[list[str]]:
    return [
        [RANDOM.choice(STEMS) + RANDOM.choice(ENDINGS) for _ in range(length)]
        for length in RANDOM.integers(0, 15, count).tolist()
    ]


TRAIN, TEST = sentences(80), [*sentences(20), ["new", "x" * 40, "İ", "\ud800", "", "a b"], []]
TRAIN_TAGS, TEST_TAGS = (
    [[TAGS[(len(word) + place) % len(TAGS)] for place, word in enumerate(words)] for words in part]
    for part in (TRAIN, TEST)
)


@pytest.fixture(scope="module", params=list(TAGGERS))
def tagger(request: pytest.FixtureRequest) -> TreebankTagger:
    return TAGGERS[request.param]().fit(TRAIN, TRAIN_TAGS)


def test_it_follows_the_protocols(tagger: TreebankTagger) -> None:
    assert isinstance(tagger, Tagger)
    assert isinstance(tagger, TreebankTagger)
    assert isinstance(tagger, Saveable)
    assert list(tagger.tags_) == sorted(TAGS)


def test_every_word_gets_a_tag_that_was_seen(tagger: TreebankTagger) -> None:
    predicted = tagger.predict(TEST)
    assert [len(tags) for tags in predicted] == [len(words) for words in TEST]
    assert set(chain.from_iterable(predicted)) <= set(tagger.tags_)


def test_log_probabilities_are_of_distributions(tagger: TreebankTagger) -> None:
    for words, logs in zip(TEST, tagger.predict_log_proba(TEST), strict=True):
        assert logs.shape == (len(words), len(tagger.tags_))
        assert not np.isnan(logs).any()
        assert_allclose(np.exp(logs).sum(axis=1), 1, rtol=1e-9)


def test_sentences_do_not_know_of_each_other(tagger: TreebankTagger, request: pytest.FixtureRequest) -> None:
    tolerance = TOLERANCE.get(request.node.callspec.id, 0)
    together = tagger.predict(TEST)
    assert together == [tagger.predict([words])[0] for words in TEST]
    for words, logs in zip(TEST, tagger.predict_log_proba(TEST), strict=True):
        assert_allclose(logs, tagger.predict_log_proba([words])[0], rtol=0, atol=tolerance)


def test_the_score_is_the_share_of_tags_that_are_right(tagger: TreebankTagger) -> None:
    pairs = zip(chain(*tagger.predict(TEST)), chain(*TEST_TAGS), strict=True)
    right = [ours == theirs for ours, theirs in pairs]
    assert tagger.score(TEST, TEST_TAGS) == pytest.approx(np.mean(right))
    measures = measure_tagger(tagger, TEST, TEST_TAGS)
    assert measures.accuracies.all == measures.confusion.accuracy == pytest.approx(np.mean(right))


def test_it_knows_the_words_of_its_training_and_no_others(tagger: TreebankTagger) -> None:
    seen = set(chain.from_iterable(TRAIN))
    assert all(tagger.knows(word) for word in seen)
    assert not any(tagger.knows(word) for word in chain.from_iterable(TEST) if word not in seen)


def test_learning_again_gives_the_same(tagger: TreebankTagger, request: pytest.FixtureRequest) -> None:
    again = TAGGERS[request.node.callspec.id]().fit(TRAIN, TRAIN_TAGS)
    for ours, theirs in zip(again.predict_log_proba(TEST), tagger.predict_log_proba(TEST), strict=True):
        assert_array_equal(ours, theirs)


def test_saved_and_loaded_it_gives_the_same_bits(tagger: TreebankTagger, tmp_path: Path) -> None:
    assert isinstance(tagger, Saveable)
    save(tagger, tmp_path / "tagger")
    loaded = load(tmp_path / "tagger")
    assert loaded.column == tagger.column
    assert loaded.predict(TEST) == tagger.predict(TEST)
    for ours, theirs in zip(loaded.predict_log_proba(TEST), tagger.predict_log_proba(TEST), strict=True):
        assert_array_equal(ours, theirs)
