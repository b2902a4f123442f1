from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from foreword.errors import ForewordError, SettingError
from foreword.ngram.unigram import UnigramLM
from foreword.protocols import Parts
from foreword.tokens.corpus import Corpus
from foreword.tokens.vocab import Vocab

VOCAB = Vocab(["<unk>", "</s>", "a", "b"])


def fitted(add: float = 1.0) -> UnigramLM:
    """Counts: <unk> 0, </s> 2, a 3, b 1."""
    return UnigramLM(add=add).fit(Corpus.from_ids([[2, 2, 3], [2]], VOCAB))


def test_by_hand_with_laplace_s_rule() -> None:
    assert_array_equal(fitted().counts_, [0, 2, 3, 1])
    np.testing.assert_allclose(np.exp(fitted().log_probabilities_), [1 / 10, 3 / 10, 4 / 10, 2 / 10], rtol=1e-15)


def test_without_smoothing_an_unseen_word_is_impossible() -> None:
    model = fitted(add=0)
    assert model.log_probabilities_[0] == -math.inf
    assert model.logprobs(Corpus.from_ids([[0]], VOCAB)).tolist() == [-math.inf, math.log(2 / 6)]


def test_the_table_cannot_be_changed_by_accident() -> None:
    model = fitted()
    with pytest.raises(ValueError, match="read-only"):
        model.log_probabilities_[0] = 0
    with pytest.raises(ValueError, match="read-only"):
        model.next_logprobs(model.start())[0, 0] = 0


def test_a_row_for_each_text_costs_no_memory() -> None:
    model = fitted()
    rows = model.next_logprobs(model.start(1_000_000_000))
    assert rows.shape == (1_000_000_000, 4)


@pytest.mark.parametrize("add", [-1.0, math.nan, math.inf])
def test_add_must_make_sense(add: float) -> None:
    with pytest.raises(SettingError, match="add="):
        fitted(add)


def test_each_text_needs_one_next_token() -> None:
    model = fitted()
    with pytest.raises(ValueError, match="2 texts but 1"):
        model.advance(model.start(2), np.array([2]))


def test_an_unfitted_model_cannot_be_taken_apart() -> None:
    with pytest.raises(ForewordError, match="call fit"):
        UnigramLM().to_parts()


@pytest.mark.parametrize(
    ("parts", "complaint"),
    [
        (Parts({}, {"counts": np.ones(4, np.int64)}, VOCAB), "'add'"),
        (Parts({"add": True}, {"counts": np.ones(4, np.int64)}, VOCAB), "'add'"),
        (Parts({"add": "1"}, {"counts": np.ones(4, np.int64)}, VOCAB), "'add'"),
        (Parts({"add": 1}, {}, VOCAB), "'counts'"),
        (Parts({"add": 1}, {"counts": np.ones(4, np.int64)}, None), "vocabulary"),
        (Parts({"add": 1}, {"counts": np.ones(3, np.int64)}, VOCAB), "int64"),
        (Parts({"add": 1}, {"counts": np.ones((4, 1), np.int64)}, VOCAB), "int64"),
        (Parts({"add": 1}, {"counts": np.ones(4)}, VOCAB), "int64"),
        (Parts({"add": 1}, {"counts": np.array([1, -1, 1, 1])}, VOCAB), "negative"),
        (Parts({"add": 1}, {"counts": np.zeros(4, np.int64)}, VOCAB), "zero"),
        (Parts({"add": -1}, {"counts": np.ones(4, np.int64)}, VOCAB), "add="),
    ],
)
def test_what_is_no_unigram_model_is_refused(parts: Parts, complaint: str) -> None:
    with pytest.raises((ValueError, SettingError), match=complaint):
        UnigramLM.from_parts(parts)


def test_fitting_that_fails_leaves_the_model_as_it_was() -> None:
    model = fitted()
    before = model.log_probabilities_
    with pytest.raises(ForewordError, match="empty"):
        model.fit(Corpus.from_ids([], VOCAB))
    assert model.log_probabilities_ is before
