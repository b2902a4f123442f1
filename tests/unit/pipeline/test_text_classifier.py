"""Features and a classifier joined: labels, posteriors, reasons, and a folder that holds both."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import foreword
from foreword.classify.calibration import Calibrated
from foreword.classify.explain import Explanation, against_others
from foreword.classify.logistic import LogisticRegression, NBLogistic
from foreword.classify.naive_bayes import NaiveBayes
from foreword.errors import InputError, SettingError
from foreword.features.bag import BagOfWords
from foreword.features.tfidf import TfIdf
from foreword.pipeline.classifier import TextClassifier
from foreword.text.block import Block

TEXTS = [
    "you have won a prize",
    "win a million now",
    "claim your prize now",
    "see you at nine",
    "the meeting is at nine",
    "have you seen the report",
    "good morning to you",
]
LABELS = ["spam", "spam", "spam", "ham", "ham", "ham", "ham"]
THREE = ["spam", "spam", "spam", "plan", "plan", "ham", "ham"]

MAKERS: dict[str, Callable[[], TextClassifier]] = {
    "default": TextClassifier,
    "naive-bayes": lambda: TextClassifier(BagOfWords(), NaiveBayes()),
    "complement": lambda: TextClassifier(BagOfWords(), NaiveBayes("complement")),
    "bernoulli": lambda: TextClassifier(BagOfWords(), NaiveBayes("bernoulli")),
    "logistic": lambda: TextClassifier(TfIdf(), LogisticRegression(C=10)),
    "nb-logistic": lambda: TextClassifier(BagOfWords(ngrams=(1, 2)), NBLogistic()),
    "calibrated": lambda: TextClassifier(BagOfWords(), Calibrated(cast(Any, NaiveBayes("bernoulli")))),
    "hashed": lambda: TextClassifier(BagOfWords(columns=64), NaiveBayes()),
    "characters": lambda: TextClassifier(BagOfWords(split="characters in words", ngrams=(2, 4)), NaiveBayes()),
}


@pytest.fixture(params=MAKERS)
def classifier(request: pytest.FixtureRequest) -> TextClassifier:
    return MAKERS[request.param]()


@pytest.fixture
def bayes() -> TextClassifier:
    return TextClassifier(BagOfWords(), NaiveBayes()).fit(TEXTS, LABELS)


def test_it_learns_and_says_how_sure_it_is(classifier: TextClassifier) -> None:
    classifier.fit(TEXTS, LABELS)
    assert list(classifier.classes_) == ["ham", "spam"]
    assert classifier.score(TEXTS, LABELS) == 1
    assert classifier.predict(["a prize, now!", "at nine"]) == ["spam", "ham"]
    logs = classifier.predict_log_proba(TEXTS)
    assert logs.shape == (len(TEXTS), 2)
    assert_allclose(np.exp(logs).sum(axis=1), 1, rtol=1e-12)
    assert_allclose(classifier.predict_proba(TEXTS), np.exp(logs))
    assert [classifier.classes_[place] for place in logs.argmax(axis=1)] == classifier.predict(TEXTS)


def test_an_empty_text_gets_the_prior_and_never_nan(classifier: TextClassifier) -> None:
    classifier.fit([*TEXTS, ""], [*LABELS, "ham"])
    for text in ("", "!!!", "unbekannte wörter"):
        assert np.isfinite(classifier.predict_log_proba([text])).all()
        assert classifier.predict([text])[0] in ("ham", "spam")
        explanation = classifier.explain(text)
        assert np.isfinite(explanation.probabilities).all()
    assert classifier.predict([]) == []


@pytest.mark.parametrize("labels", [LABELS, THREE])
def test_contributions_add_up_to_the_score(classifier: TextClassifier, labels: list[str]) -> None:
    classifier.fit(TEXTS, labels)
    text = "you have won the report, you have"
    explanation = classifier.explain(text)
    scores = scores_of(classifier.model, classifier.counts([text]))
    for place, label in enumerate(classifier.classes_):
        total = explanation.prior(label) + sum(each.contribution for each in explanation.contributions(label))
        assert total == pytest.approx(scores[place] - np.delete(scores, place).mean(), rel=1e-9, abs=1e-9)
    assert_allclose(explanation.probabilities, classifier.predict_proba([text])[0])
    assert explanation.label == classifier.predict([text])[0]
    softmax = np.exp(scores - scores.max())
    assert_allclose(explanation.probabilities, softmax / softmax.sum(), rtol=1e-9)


def scores_of(model: Any, row: Any) -> Any:
    if isinstance(model, Calibrated):
        return scores_of(model.model_, row) / model.temperature_
    return model.predict_joint_log_proba(row)[0]


def test_with_two_classes_a_contribution_is_the_log_odds(bayes: TextClassifier) -> None:
    explanation = bayes.explain("won won nine")
    words = {label: " ".join(t for t, x in zip(TEXTS, LABELS, strict=True) if x == label) for label in ("ham", "spam")}
    size = len(bayes.features.vocabulary_)

    def share(word: str, label: str) -> float:
        counted = [each for each in words[label].split() if len(each) > 1]
        return (counted.count(word) + 1) / (len(counted) + size)

    found = {each.term: each for each in explanation.contributions("spam")}
    for word, times in (("won", 2), ("nine", 1)):
        assert found[word].value == times
        expected = times * math.log(share(word, "spam") / share(word, "ham"))
        assert found[word].contribution == pytest.approx(expected, rel=1e-12)
    assert explanation.prior("spam") == pytest.approx(math.log(3 / 4), rel=1e-12)
    assert explanation.prior("ham") == -explanation.prior("spam")


def test_the_weightiest_comes_first_and_unknown_words_are_named(bayes: TextClassifier) -> None:
    explanation = bayes.explain("a prize at nine in euros, euros!")
    gains = [abs(each.contribution) for each in explanation.contributions()]
    assert gains == sorted(gains, reverse=True)
    assert explanation.unknown == ("in", "euros")
    assert {each.term for each in explanation.contributions()} == {"prize", "at", "nine"}
    with pytest.raises(SettingError, match="no class 'eggs': expected ham, spam"):
        explanation.contributions("eggs")


def test_terms_that_share_a_hashed_column_are_named_together() -> None:
    classifier = TextClassifier(BagOfWords(columns=2), NaiveBayes()).fit(TEXTS, LABELS)
    explanation = classifier.explain("you have won")
    assert sorted(word for each in explanation.terms for word in each.split(" | ")) == ["have", "won", "you"]


def test_as_text(bayes: TextClassifier) -> None:
    lines = str(bayes.explain("a prize, a prize in euros")).splitlines()
    assert lines[0].startswith("spam (0.")
    assert lines[1].startswith("(prior)")
    assert lines[2].startswith("prize ×2")
    assert "█" in lines[2]
    assert lines[-1] == "not known, so without effect: in, euros"


def test_a_long_text_is_summed_up() -> None:
    words = " ".join(f"word{number}" for number in range(30))
    explanation = TextClassifier(BagOfWords(), NaiveBayes()).fit([words, "other"], ["long", "short"]).explain(words)
    lines = str(explanation).splitlines()
    assert len(lines) == 1 + 1 + 20 + 1
    assert lines[-1].startswith("10 more ")
    shown = sum(float(next(word for word in line.split() if word[0] in "+-")) for line in lines[2:])
    assert shown == pytest.approx(sum(each.contribution for each in explanation.contributions()), abs=0.02)


def test_as_json(bayes: TextClassifier) -> None:
    told = json.loads(json.dumps(bayes.explain("a prize in euros").to_json(), allow_nan=False))
    assert told["label"] == "spam"
    assert set(told["probabilities"]) == {"ham", "spam"}
    assert told["unknown"] == ["in", "euros"]
    assert told["classes"]["spam"]["contributions"][0]["term"] == "prize"
    assert told["classes"]["spam"]["prior"] == -told["classes"]["ham"]["prior"]


def test_as_a_table(bayes: TextClassifier) -> None:
    from rich.console import Console

    console = Console(width=80)
    with console.capture() as captured:
        console.print(bayes.explain("[bold]prize").table("ham"))
    assert "for ham" in captured.get()
    assert "bold" in captured.get()


def test_against_others_with_impossible_terms() -> None:
    """Without smoothing a word may have no chance in one class, or in any."""
    weighted = np.array([[-np.inf, -np.inf, -1.0], [-2.0, -np.inf, -3.0]])
    assert_array_equal(against_others(weighted, 0), [-np.inf, 0, 2])
    assert_array_equal(against_others(weighted, 1), [np.inf, 0, -2])
    explanation = Explanation("x", ("a", "b"), np.array([0.1, 0.9]), ("u", "v", "w"), np.ones(3), np.zeros(2), weighted)
    json.dumps(explanation.to_json(), allow_nan=False)
    assert "inf" in str(explanation)


def test_blocks_are_texts_too() -> None:
    block = Block.from_texts(TEXTS)
    half = [Block(block.data, block.starts[:4], block.stops[:4]), Block(block.data, block.starts[4:], block.stops[4:])]
    whole = TextClassifier(BagOfWords(), NaiveBayes()).fit(TEXTS, LABELS)
    pieced = TextClassifier(BagOfWords(), NaiveBayes()).fit(half, LABELS)
    assert_array_equal(whole.predict_log_proba(TEXTS), pieced.predict_log_proba(half))


# --- a folder


def test_save_and_load_give_the_same_bit_for_bit(classifier: TextClassifier, tmp_path: Path) -> None:
    classifier.fit(TEXTS, THREE)
    foreword.save(classifier, tmp_path / "model")
    loaded = foreword.load(tmp_path / "model")
    assert isinstance(loaded, TextClassifier)
    assert list(loaded.classes_) == list(classifier.classes_)
    assert_array_equal(loaded.predict_log_proba(TEXTS), classifier.predict_log_proba(TEXTS))
    ours, theirs = classifier.explain(TEXTS[0]), loaded.explain(TEXTS[0])
    assert ours.contributions("ham") == theirs.contributions("ham")


def test_parts_that_do_not_fit_together_are_refused(tmp_path: Path) -> None:
    small = TextClassifier(BagOfWords(), NaiveBayes()).fit(TEXTS, LABELS)
    large = TextClassifier(BagOfWords(ngrams=(1, 2)), NaiveBayes()).fit(TEXTS, LABELS)
    foreword.save(TextClassifier(large.features, small.model), tmp_path / "model")
    with pytest.raises(InputError, match=r"not a valid text-classifier model \(the features have \d+ columns"):
        foreword.load(tmp_path / "model")
    parts = small.to_parts()
    parts.settings["model"] = parts.settings["features"]
    of_features = {name: array for name, array in parts.arrays.items() if name.startswith("features.")}
    parts.arrays = of_features | {f"model.{name.partition('.')[2]}": array for name, array in of_features.items()}
    with pytest.raises(ValueError, match="make no text classifier"):
        TextClassifier.from_parts(parts)


# --- what is wrong


@pytest.mark.parametrize(
    ("texts", "labels", "complaint"),
    [
        (["a b", "c d"], ["x", "x"], "all texts have the label 'x': a classifier needs two classes at least"),
        ([], [], "there is nothing to learn from: no labelled text"),
        (["aa bb", "cc dd", "ee ff"], ["x", "y"], "3 texts and 2 labels: expected a label for each text"),
        ("a string", ["x", "y"], "put it in a list"),
    ],
)
def test_complaints(texts: Any, labels: list[str], complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        TextClassifier(BagOfWords(), NaiveBayes()).fit(texts, labels)


def test_a_classifier_that_adds_nothing_up_cannot_be_explained(bayes: TextClassifier) -> None:
    class Oracle:
        classes_ = ("ham", "spam")

        def fit(self, X: Any, y: Any) -> Oracle:
            return self

        def predict(self, X: Any) -> list[str]:
            return ["ham"] * X.shape[0]

        def predict_log_proba(self, X: Any) -> Any:
            return np.log(np.full((X.shape[0], 2), 0.5))

        def score(self, X: Any, y: Any) -> float:
            return 0.5

    with pytest.raises(SettingError, match="a Oracle is not linear"):
        TextClassifier(bayes.features, Oracle()).explain("you")
    with pytest.raises(SettingError, match="a Oracle cannot be saved"):
        TextClassifier(bayes.features, Oracle()).to_parts()
