"""What is true of every classifier, of counts or of texts: scikit-learn's conventions, and the laws of probability."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from foreword.errors import ForewordError
from foreword.features.bag import BagOfWords
from foreword.kinds import KINDS
from foreword.protocols import Classifier, Saveable
from foreword.storage.folder import load, save

from .models import CLASSIFIERS, Model

TEXTS = [
    "win a prize now", "free prize money", "win money now now", "call now to win", "free call", "a prize for you",
    "see you at nine", "lunch at nine", "are you at home", "home for lunch", "see you for lunch", "at home now",
] * 2  # fmt: skip
LABELS = (["spam"] * 6 + ["ham"] * 6) * 2
HELD_OUT = ["free money", "lunch at home", "", "unseen words only", "now"]


@pytest.fixture(scope="module", params=CLASSIFIERS, ids=lambda case: case.name)
def case(request: pytest.FixtureRequest) -> Model:
    assert isinstance(request.param, Model)
    return request.param


@pytest.fixture(scope="module")
def bag() -> BagOfWords:
    return BagOfWords().fit(TEXTS)


def inputs(case: Model, bag: BagOfWords, texts: list[str]) -> Any:
    """The texts as this kind reads them."""
    return texts if "classify" in KINDS[case.kind].abilities else bag.transform(texts)


@pytest.fixture(scope="module")
def model(case: Model, bag: BagOfWords) -> Any:
    return case.build().fit(inputs(case, bag, TEXTS), LABELS)


def test_it_follows_the_protocols(model: Any) -> None:
    assert isinstance(model, Classifier)
    assert isinstance(model, Saveable)
    assert sorted(model.classes_) == ["ham", "spam"]  # fastText has the most frequent first


def test_fit_returns_the_model(case: Model, bag: BagOfWords) -> None:
    model = case.build()
    assert model.fit(inputs(case, bag, TEXTS), LABELS) is model


def test_every_row_of_probabilities_sums_to_one(case: Model, model: Any, bag: BagOfWords) -> None:
    logs = model.predict_log_proba(inputs(case, bag, HELD_OUT))
    assert logs.shape == (len(HELD_OUT), 2)
    assert not np.isnan(logs).any()
    assert_allclose(np.exp(logs).sum(axis=1), 1, rtol=1e-5)


def test_the_prediction_is_the_likeliest_class(case: Model, model: Any, bag: BagOfWords) -> None:
    X = inputs(case, bag, [text for text in HELD_OUT if text])
    best = np.asarray(model.classes_)[model.predict_log_proba(X).argmax(axis=1)]
    assert list(model.predict(X)) == best.tolist()


def test_texts_do_not_know_of_each_other(case: Model, model: Any, bag: BagOfWords) -> None:
    together = model.predict_log_proba(inputs(case, bag, HELD_OUT))
    alone = [model.predict_log_proba(inputs(case, bag, [text]))[0] for text in HELD_OUT]
    assert_allclose(together, np.stack(alone), rtol=0, atol=1e-5 if KINDS[case.kind].network else 1e-12)


def test_the_score_is_the_accuracy(case: Model, model: Any, bag: BagOfWords) -> None:
    X = inputs(case, bag, TEXTS)
    right = np.mean([ours == theirs for ours, theirs in zip(model.predict(X), LABELS, strict=True)])
    assert model.score(X, LABELS) == pytest.approx(right)


def test_fitted_twice_it_is_the_same(case: Model, model: Any, bag: BagOfWords) -> None:
    again = case.build().fit(inputs(case, bag, TEXTS), LABELS)
    X = inputs(case, bag, HELD_OUT)
    assert_array_equal(again.predict_log_proba(X), model.predict_log_proba(X))


def test_texts_and_labels_are_as_many(case: Model, bag: BagOfWords) -> None:
    with pytest.raises(ForewordError):
        case.build().fit(inputs(case, bag, TEXTS), LABELS[:-1])


def test_saved_and_loaded_it_gives_the_same_bits(case: Model, model: Any, bag: BagOfWords, tmp_path: Path) -> None:
    save(model, tmp_path / "model")
    loaded = load(tmp_path / "model")
    X = inputs(case, bag, HELD_OUT)
    assert list(loaded.classes_) == list(model.classes_)
    assert_array_equal(loaded.predict_log_proba(X), model.predict_log_proba(X))
