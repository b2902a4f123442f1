"""What is true of every tagger."""

from __future__ import annotations

from itertools import chain
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from foreword.evaluate.tagging import measure_tagger
from foreword.kinds import KINDS
from foreword.protocols import Saveable, Tagger, TreebankTagger
from foreword.storage.folder import load, save

from .models import TAGGERS, Model

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


@pytest.fixture(scope="module", params=TAGGERS, ids=lambda case: case.name)
def case(request: pytest.FixtureRequest) -> Model:
    assert isinstance(request.param, Model)
    return request.param


@pytest.fixture(scope="module")
def tagger(case: Model) -> TreebankTagger:
    fitted: TreebankTagger = case.build().fit(TRAIN, TRAIN_TAGS)
    return fitted


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


def test_sentences_do_not_know_of_each_other(case: Model, tagger: TreebankTagger) -> None:
    tolerance = 1e-5 if KINDS[case.kind].network else 0  # a network reads sentences together, in one batch
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


def test_learning_again_gives_the_same(case: Model, tagger: TreebankTagger) -> None:
    again = case.build().fit(TRAIN, TRAIN_TAGS)
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
