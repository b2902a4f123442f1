"""``TextClassifier`` keeps the type of its labels, and scikit-learn's tools take it for one of theirs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from foreword.classify.calibration import Calibrated
from foreword.classify.logistic import LogisticRegression, NBLogistic
from foreword.classify.naive_bayes import NaiveBayes
from foreword.errors import SettingError
from foreword.features.bag import BagOfWords
from foreword.features.lsa import LSA
from foreword.features.tfidf import TfIdf
from foreword.pipeline.classifier import TextClassifier
from foreword.storage.folder import load, save

TEXTS = ["you have won a prize", "win a million now", "see you at nine", "the meeting is at nine"] * 6


@pytest.mark.parametrize("labels", [[1, 1, 0, 0] * 6, [True, True, False, False] * 6, ["s", "s", "h", "h"] * 6])
@pytest.mark.parametrize("given", [list, np.array, tuple])
def test_labels_keep_their_type(labels: list[Any], given: Any, tmp_path: Path) -> None:
    classifier = TextClassifier().fit(TEXTS, given(labels))
    for each in (classifier, _saved(classifier, tmp_path)):
        assert each.predict(TEXTS) == labels
        assert {type(label) for label in each.predict(TEXTS)} == {type(labels[0])}
        assert each.classes_.tolist() == sorted(set(labels))
        assert each.score(TEXTS, given(labels)) == 1
        assert next(iter(each.predict_best(TEXTS)))[0][0] == labels[0]
        assert each.explain(TEXTS[2]).label == labels[2]
    assert (np.array(labels) == classifier.predict(TEXTS)).all()


def _saved(classifier: TextClassifier, folder: Path) -> Any:
    save(classifier, folder / "model")
    return load(folder / "model")


def test_a_class_named_zero_is_explained() -> None:
    explanation = TextClassifier().fit(TEXTS, [1, 1, 0, 0] * 6).explain("won a prize")
    assert explanation.table(0).title.plain.startswith("0 (")  # type: ignore[union-attr]
    with pytest.raises(SettingError, match="no class 2: expected 0, 1"):
        explanation.contributions(2)


def test_files_have_strings_where_the_model_has_numbers() -> None:
    from foreword.evaluate.classification import measure_classifier

    classifier = TextClassifier().fit(TEXTS, [1, 1, 0, 0] * 6)
    assert measure_classifier(classifier, TEXTS, ["1", "1", "0", "0"] * 6).accuracy == 1


def test_settings_of_the_parts_by_name() -> None:
    classifier = TextClassifier(TfIdf(), LogisticRegression(C=2))
    assert classifier.get_params()["model__C"] == 2
    classifier.set_params(model__C=3, features__ngrams=(1, 2))
    assert (classifier.model.C, classifier.features.ngrams) == (3, (1, 2))
    with pytest.raises(SettingError, match="no setting 'modell__C': expected features, model"):
        classifier.set_params(modell__C=3)
    assert Calibrated(NaiveBayes(alpha=0.5)).get_params()["model__alpha"] == 0.5


def test_features_follow_the_model_unless_they_are_given() -> None:
    classifier = TextClassifier()
    classifier.set_params(model=NaiveBayes())
    assert type(classifier.features) is BagOfWords
    own = TextClassifier(TfIdf())
    own.set_params(model=NaiveBayes())
    assert type(own.features) is TfIdf
    own.set_params(features=None)
    assert type(own.features) is BagOfWords


def test_scikit_learn_clones_it_and_searches_its_settings() -> None:
    pytest.importorskip("sklearn")
    from sklearn.base import clone, is_classifier
    from sklearn.metrics import accuracy_score
    from sklearn.model_selection import GridSearchCV, cross_val_score

    labels: Any = np.array([1, 1, 0, 0] * 6)
    fitted = TextClassifier(TfIdf(), LogisticRegression(C=2)).fit(TEXTS, labels)
    copy = clone(fitted)
    assert not hasattr(copy.model, "classes_")
    assert copy.get_params()["model__C"] == 2
    assert is_classifier(copy)
    assert accuracy_score(labels, fitted.predict(TEXTS)) == 1
    assert clone(TextClassifier()).get_params()["features"] is None
    grid = {"model__C": [0.1, 10.0], "features__ngrams": [(1, 1), (1, 2)]}
    search = GridSearchCV(TextClassifier(model=LogisticRegression()), grid, cv=3, scoring="roc_auc")
    search.fit(TEXTS, labels)
    assert search.best_score_ == 1
    assert search.predict(["win a prize"]) == [1]
    models = GridSearchCV(TextClassifier(), {"model": [NaiveBayes(), NBLogistic()]}, cv=2).fit(TEXTS, labels)
    assert type(models.best_estimator_.features) is (
        BagOfWords if isinstance(models.best_params_["model"], NaiveBayes) else TfIdf
    )
    assert cross_val_score(TextClassifier(), TEXTS, labels, cv=3, scoring="f1").mean() == 1


def test_set_output_gives_data_frames() -> None:
    pandas = pytest.importorskip("pandas")
    series = pandas.Series(TEXTS[:4], index=[3, 5, 7, 9])
    bag = TfIdf().fit(TEXTS)
    plain = bag.transform(series)
    frame = bag.set_output(transform="pandas").transform(series)
    assert list(frame.columns) == list(bag.get_feature_names_out())
    assert list(frame.index) == [3, 5, 7, 9]
    assert_allclose(frame.to_numpy(), plain.toarray())
    reduced: Any = LSA(2).set_output(transform="pandas").fit_transform(frame)
    assert list(reduced.columns) == ["lsa0", "lsa1"]
    bag.set_output(transform="default")
    assert bag.transform(series).shape == plain.shape
    with pytest.raises(SettingError, match="expected default or pandas"):
        bag.set_output(transform="polars")


def test_set_output_of_a_pipeline() -> None:
    pytest.importorskip("pandas")
    pipelines = pytest.importorskip("sklearn.pipeline")
    labels = [1, 1, 0, 0] * 6
    pipeline = pipelines.make_pipeline(TfIdf(), NBLogistic()).set_output(transform="pandas").fit(TEXTS, labels)
    assert pipeline[0].transform(TEXTS).shape == (24, 13)
    assert pipeline.predict(TEXTS).tolist() == labels


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("weight", ["balanced", "given"])
def test_class_weights_end_in_the_optimum_of_scikit_learn(classes: int, weight: str) -> None:
    linear_model = pytest.importorskip("sklearn.linear_model")
    random = np.random.default_rng(classes)
    X = random.poisson(0.6, (90, 7)).astype(float)
    y: Any = np.where(random.random(90) < 0.7, 0, random.integers(0, classes, 90))
    given: Any = "balanced" if weight == "balanced" else {0: 0.3, 1: 2.5}
    ours = LogisticRegression(tolerance=1e-12, max_iterations=5000, class_weight=given).fit(X, y)
    peer = linear_model.LogisticRegression(C=1.0, tol=1e-12, max_iter=10_000, class_weight=given).fit(X, y)
    assert_allclose(ours.predict_log_proba(X), peer.predict_log_proba(X), atol=1e-5)
    unweighted = LogisticRegression(tolerance=1e-12, max_iterations=5000).fit(X, y)
    assert np.abs(unweighted.predict_log_proba(X) - ours.predict_log_proba(X)).max() > 0.1


@pytest.mark.parametrize("given", ["balanced", {"ham": 2.0}, {"spam": 0.5, "ham": 1}])
def test_class_weights_are_saved(given: Any, tmp_path: Path) -> None:
    model = NBLogistic(class_weight=given)
    loaded = _saved(TextClassifier(model=model).fit(TEXTS, ["spam", "spam", "ham", "ham"] * 6), tmp_path)
    assert loaded.model.class_weight == given


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("blanced", "class_weight is 'blanced': expected balanced"),
        ({"eggs": 1.0}, "'eggs', which is not among the classes ham, spam"),
        ({"ham": -1}, "class_weight of 'ham' is -1: expected a number above 0"),
        (3, "class_weight is 3"),
    ],
)
def test_wrong_class_weights(given: Any, message: str) -> None:
    with pytest.raises(SettingError, match=message):
        TextClassifier(model=NBLogistic(class_weight=given)).fit(TEXTS, ["spam", "spam", "ham", "ham"] * 6)


def test_an_estimator_in_another_one_is_shown_with_its_own_settings() -> None:
    assert repr(Calibrated(NaiveBayes(alpha=0.5), folds=3)) == "Calibrated(model=NaiveBayes(alpha=0.5), folds=3)"
