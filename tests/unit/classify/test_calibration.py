"""One temperature: the labels stay, the probabilities come to mean what they say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import foreword
from foreword.classify.calibration import COLDEST, HOTTEST, Calibrated, best_temperature, calibrated, stratified_parts
from foreword.classify.linear import log_softmax
from foreword.classify.logistic import LogisticRegression
from foreword.classify.naive_bayes import NaiveBayes
from foreword.errors import NotFittedError, SettingError
from foreword.evaluate.classification import calibration_error

Random = np.random.Generator


@pytest.fixture
def random() -> Random:
    return np.random.default_rng(0)


def echoed(random: Random, documents: int = 600) -> tuple[Any, list[str]]:
    """Counts in which every word has four echoes: naive Bayes takes each for new evidence and is too sure."""
    labels = random.integers(0, 3, documents)
    means = random.gamma(2.0, 0.05, (3, 20)) + 0.05
    words = random.poisson(means[labels])
    return np.tile(words, 5), [f"c{label}" for label in labels]


def test_a_model_that_is_too_sure_is_cooled(random: Random) -> None:
    X, y = echoed(random)
    half = len(y) // 2
    plain = NaiveBayes().fit(X[:half], y[:half])
    tempered = calibrated(NaiveBayes(), X[:half], y[:half])
    assert tempered.temperature_ > 2
    right = plain.predict(X[half:]) == np.array(y[half:])
    errors = [calibration_error(model.predict_proba(X[half:]).max(axis=1), right) for model in (plain, tempered)]
    assert errors[1] < errors[0] / 2


def test_no_label_changes(random: Random) -> None:
    X, y = echoed(random)
    tempered = calibrated(NaiveBayes(), X, y)
    assert_array_equal(tempered.predict(X), NaiveBayes().fit(X, y).predict(X))
    assert tempered.score(X, y) == NaiveBayes().fit(X, y).score(X, y)
    assert_allclose(tempered.predict_proba(X).sum(axis=1), 1)
    scores = X @ tempered.weights_.T + tempered.bias_
    assert_allclose(log_softmax(scores, np.zeros(3)), tempered.predict_log_proba(X), atol=1e-9)


@pytest.mark.parametrize("temperature", [0.3, 1.0, 7.0])
def test_the_temperature_that_made_the_labels_is_found(random: Random, temperature: float) -> None:
    scores = 2 * random.standard_normal((20_000, 4))
    chances = np.exp(log_softmax(scores, np.zeros(4)))
    truth = (chances.cumsum(axis=1) > random.random((len(chances), 1))).argmax(axis=1)
    assert best_temperature(temperature * scores, truth) == pytest.approx(temperature, rel=0.05)


def test_it_is_the_lowest_loss(random: Random) -> None:
    logs, truth = 3 * random.standard_normal((200, 3)), random.integers(0, 3, 200)

    def loss(temperature: float) -> float:
        return -float(log_softmax(logs / temperature, np.zeros(3))[np.arange(200), truth].mean())

    found = best_temperature(logs, truth)
    assert loss(found) <= min(loss(found * 0.99), loss(found * 1.01))


def test_always_right_and_never_right_end_at_the_bounds() -> None:
    logs = np.log(np.array([[0.9, 0.1], [0.2, 0.8]]))
    assert best_temperature(logs, np.array([0, 1])) == pytest.approx(COLDEST)
    assert best_temperature(logs, np.array([1, 0])) == pytest.approx(HOTTEST)


def test_what_is_impossible_does_not_spoil_it() -> None:
    logs = np.array([[0.0, -np.inf], [np.log(0.5), np.log(0.5)]])
    assert np.isfinite(best_temperature(logs, np.array([1, 0])))


def test_documents_are_dealt_out_class_by_class(random: Random) -> None:
    numbers = random.integers(0, 4, 203)
    dealt = stratified_parts(numbers, 5, 0)
    for label in range(4):
        shares = np.bincount(dealt[numbers == label], minlength=5)
        assert shares.max() - shares.min() <= 1
    assert_array_equal(dealt, stratified_parts(numbers, 5, 0))
    assert not np.array_equal(dealt, stratified_parts(numbers, 5, 1))


def test_save_and_load(random: Random, tmp_path: Path) -> None:
    X, y = echoed(random, 100)
    model = Calibrated(LogisticRegression(C=0.1), folds=3, seed=2).fit(X, y)
    foreword.save(model, tmp_path / "model")
    loaded = foreword.load(tmp_path / "model")
    assert isinstance(loaded, Calibrated)
    assert (loaded.folds, loaded.seed, loaded.temperature_) == (3, 2, model.temperature_)
    assert_array_equal(loaded.predict_log_proba(X), model.predict_log_proba(X))


@pytest.mark.parametrize("settings", [{"folds": 1}, {"folds": 2.5}, {"seed": -1}, {"folds": True}])
def test_settings_that_make_no_sense(settings: dict[str, Any]) -> None:
    with pytest.raises(SettingError, match=next(iter(settings))):
        Calibrated(NaiveBayes(), **settings).fit([[1, 0], [0, 1]], ["a", "b"])


def test_untrained() -> None:
    with pytest.raises(NotFittedError):
        Calibrated(NaiveBayes()).predict([[1, 0]])


def test_a_class_with_one_document_is_judged_where_it_can_be() -> None:
    """Its only document is held out once, and the model that judges it has never seen its class."""
    X, y = np.eye(7), ["a", "a", "a", "b", "b", "b", "c"]
    model = Calibrated(NaiveBayes(), folds=3).fit(X, y)
    assert np.isfinite(model.predict_log_proba(X)).all()
    assert set(model.classes_) == {"a", "b", "c"}
