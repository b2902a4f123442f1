"""Several labels per document: one classifier of two classes for each label."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from foreword.classify.labels import DataError
from foreword.classify.logistic import LogisticRegression, NBLogistic
from foreword.classify.naive_bayes import NaiveBayes
from foreword.classify.one_vs_rest import OneVsRest
from foreword.features.bag import BagOfWords
from foreword.pipeline.classifier import TextClassifier
from foreword.storage.folder import load, save

TEXTS = ["a red car", "a blue car", "a red house", "a blue house", "a house", "a car", "nothing here", "nothing at all"]
LABELS = [["red", "car"], ["car"], ("red", "house"), {"house"}, ["house"], ["car"], [], []]


@pytest.fixture
def classifier() -> TextClassifier:
    return TextClassifier(model=OneVsRest(NBLogistic())).fit(TEXTS, LABELS)


def test_a_text_has_any_number_of_labels(classifier: TextClassifier) -> None:
    assert list(classifier.classes_) == ["car", "house", "red"]
    assert classifier.predict(["red car", "blue house", "nothing"]) == [["car", "red"], ["house"], []]
    assert classifier.score(TEXTS, LABELS) == 1


def test_each_label_is_a_classifier_of_its_own() -> None:
    X = BagOfWords().fit_transform(TEXTS)
    model = OneVsRest(LogisticRegression()).fit(X, LABELS)
    alone = LogisticRegression().fit(X, ["red" in labels for labels in LABELS])
    assert_array_equal(model.predict_proba(X)[:, 2], alone.predict_proba(X)[:, 1])


def test_it_gives_the_probabilities_of_scikit_learn() -> None:
    sklearn = pytest.importorskip("sklearn.multiclass")
    from sklearn.linear_model import LogisticRegression as Peer
    from sklearn.preprocessing import MultiLabelBinarizer

    X = BagOfWords().fit_transform(TEXTS)
    truth = MultiLabelBinarizer().fit_transform(LABELS)
    peer = sklearn.OneVsRestClassifier(Peer(C=1.0, tol=1e-10, max_iter=5000)).fit(X, truth)
    ours = OneVsRest(LogisticRegression(tolerance=1e-12, max_iterations=5000)).fit(X, LABELS)
    assert_allclose(ours.predict_proba(X), peer.predict_proba(X), atol=1e-5)


def test_the_threshold_decides(classifier: TextClassifier) -> None:
    classifier.model.threshold = 1e-9
    assert classifier.predict(["nothing"]) == [["car", "house", "red"]]


def test_saved_and_loaded_it_gives_the_same_bits(classifier: TextClassifier, tmp_path: Path) -> None:
    save(classifier, tmp_path / "model")
    loaded = load(tmp_path / "model")
    assert loaded.predict(TEXTS) == classifier.predict(TEXTS)
    assert_array_equal(loaded.predict_proba(TEXTS), classifier.predict_proba(TEXTS))


def test_numbers_as_labels() -> None:
    model = OneVsRest(NaiveBayes()).fit(BagOfWords().fit_transform(TEXTS[:4]), [[1, 2], [1], [np.int64(2)], []])
    assert model.classes_.tolist() == [1, 2]


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (["red"] * 8, "expected a list of labels for each document, not 'red'"),
        ([[]] * 8, "no document has a label"),
        ([["red"]] * 8, "all documents have the label 'red'"),
        ([["red"], []], "8 documents and 2 labels"),
    ],
)
def test_labels_that_nothing_can_be_learnt_from(labels: list[list[str]], message: str) -> None:
    with pytest.raises(DataError, match=message):
        OneVsRest(NaiveBayes()).fit(BagOfWords().fit_transform(TEXTS), labels)


def test_other_classifiers_say_what_learns_several_labels() -> None:
    with pytest.raises(DataError, match="several labels, or none: OneVsRest"):
        TextClassifier().fit(TEXTS, LABELS)
