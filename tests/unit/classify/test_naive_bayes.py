"""Naive Bayes: by hand, against the plain form, in a stream, with nothing to smooth it, and on bad input."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

import foreword
from foreword.classify.naive_bayes import Kind, NaiveBayes
from foreword.classify.plain import multinomial_joint_logs
from foreword.errors import ForewordError, InputError, SettingError
from foreword.protocols import Classifier, LinearClassifier, Saveable

WORDS = ("won", "prize", "nine", "report")
COUNTS = np.array([[2, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, 0], [0, 0, 1, 2], [0, 1, 2, 0]])
LABELS = ["spam", "spam", "ham", "ham", "ham"]


def random_counts(seed: int = 0, documents: int = 80, words: int = 40, classes: int = 3) -> tuple[Any, Any]:
    random = np.random.default_rng(seed)
    counts = sparse.random_array((documents, words), density=0.2, rng=random, format="csr")
    counts.data = np.ceil(4 * counts.data)
    labels = random.integers(0, classes, documents)
    labels[:classes] = range(classes)
    return counts, labels


# --- what it is


def test_by_hand() -> None:
    model = NaiveBayes().fit(COUNTS, LABELS)
    assert list(model.classes_) == ["ham", "spam"]
    assert_array_equal(model.class_count_, [3, 2])
    assert_array_equal(model.feature_count_, [[0, 1, 4, 2], [3, 2, 0, 0]])
    # ham: 7 words and 4 times one more; spam: 5 and 4.
    assert_allclose(np.exp(model.feature_log_prob_), [[1 / 11, 2 / 11, 5 / 11, 3 / 11], [4 / 9, 3 / 9, 1 / 9, 1 / 9]])
    joint = model.predict_joint_log_proba([[1, 0, 1, 0]])[0]
    assert_allclose(joint, [math.log(3 / 5 * 1 / 11 * 5 / 11), math.log(2 / 5 * 4 / 9 * 1 / 9)])
    assert_allclose(model.predict_proba([[1, 0, 1, 0]])[0], np.exp(joint) / np.exp(joint).sum())
    assert model.predict([[2, 1, 0, 0], [0, 0, 1, 1]]).tolist() == ["spam", "ham"]
    assert model.score(COUNTS, LABELS) == 1


def test_b01_the_fast_road_equals_the_plain_one() -> None:
    """B01: p(c | x) ∝ p(c) Π p(w | c)."""
    counts, labels = random_counts()
    for alpha in (0.01, 1.0):
        ours = NaiveBayes(alpha=alpha).fit(counts, labels).predict_joint_log_proba(counts)
        assert_allclose(ours, multinomial_joint_logs(counts.toarray(), labels, alpha, counts.toarray()), rtol=1e-12)


@pytest.mark.parametrize("kind", get_args(Kind))
def test_protocols(kind: Kind) -> None:
    counts, labels = random_counts()
    model = NaiveBayes(kind).fit(counts, labels)
    assert isinstance(model, Classifier)
    assert isinstance(model, LinearClassifier)
    assert isinstance(model, Saveable)
    scores = np.minimum(counts.toarray(), 1 if kind == "bernoulli" else 99) @ model.weights_.T + model.bias_
    assert_allclose(model.predict_joint_log_proba(counts), scores, rtol=1e-12)
    assert_allclose(model.predict_proba(counts).sum(axis=1), 1, rtol=1e-12)


@pytest.mark.parametrize("kind", get_args(Kind))
def test_dense_and_sparse_of_any_kind_are_the_same(kind: Kind) -> None:
    counts, labels = random_counts()
    expected = NaiveBayes(kind).fit(counts, labels).predict_log_proba(counts)
    forms = [counts.toarray(), counts.tocsc(), counts.tocoo(), sparse.csr_matrix(counts), counts.astype(np.int32)]
    forms += [counts.astype(np.int64), counts.astype(np.float32), counts.astype(np.uint8), counts.toarray().tolist()]
    for form in forms:
        assert_array_equal(NaiveBayes(kind).fit(form, labels).predict_log_proba(form), expected)


@pytest.mark.parametrize("order", [[0, 1, 2, 3], [0, 1, 3, 2]])
def test_entries_given_twice_are_added_up_and_stored_zeros_are_nothing(order: list[int]) -> None:
    parts = (np.array([1.0, 1.0, 2.0, 0.0])[order], np.array([2, 2, 0, 1])[order], np.array([0, 2, 4]))
    twice = sparse.csr_array(parts, shape=(2, 3))
    for kind in get_args(Kind):
        ours = NaiveBayes(kind).fit(twice, ["a", "b"])
        dense = NaiveBayes(kind).fit([[0, 0, 2], [2, 0, 0]], ["a", "b"])
        assert_allclose(ours.weights_, dense.weights_)
        assert_allclose(ours.predict_log_proba(twice), dense.predict_log_proba([[0, 0, 2], [2, 0, 0]]))
    assert_array_equal(twice.data, parts[0])
    mixed = sparse.csr_array((np.ones(3), np.array([2, 0, 2]), np.array([0, 3])), shape=(1, 3))
    mixed.has_canonical_format = True  # which is not true
    assert_allclose(
        NaiveBayes("bernoulli").fit(twice, ["a", "b"]).predict_log_proba(mixed),
        NaiveBayes("bernoulli").fit(twice, ["a", "b"]).predict_log_proba([[1, 0, 1]]),
    )


@pytest.mark.parametrize(
    "labels", [["b", "a", "b"], [3, 1, 3], [True, False, True], [2.0, 1.0, 2.0], np.array(["b", "a", "b"], object)]
)
def test_labels_of_any_kind_come_back_as_they_were(labels: Any) -> None:
    model = NaiveBayes().fit([[1, 0], [0, 1], [1, 0]], labels)
    assert model.predict([[1, 0], [0, 1], [1, 0]]).tolist() == list(labels)
    assert model.classes_.tolist() == sorted(set(labels))
    assert type(model.predict([[1, 0]]).tolist()[0]) is type(next(iter(labels)))


def test_priors() -> None:
    counts, labels = random_counts()
    empty = np.zeros((1, counts.shape[1]))
    shares = np.bincount(labels) / len(labels)
    assert_allclose(NaiveBayes().fit(counts, labels).predict_proba(empty)[0], shares)
    assert_allclose(NaiveBayes(prior="uniform").fit(counts, labels).predict_proba(empty)[0], 1 / 3)
    given = [0.5, 0.25, 0.25]
    assert_allclose(NaiveBayes(prior=given).fit(counts, labels).predict_proba(empty)[0], given)


# --- nothing to smooth it


def test_b05_without_smoothing_an_unseen_word_makes_the_whole_product_zero() -> None:
    """B05: α = 0 gives −∞ and never NaN; α > 0 is finite; rows of the table sum to one."""
    bare, smooth = NaiveBayes(alpha=0).fit(COUNTS, LABELS), NaiveBayes(alpha=0.01).fit(COUNTS, LABELS)
    seen_and_unseen = [[1, 0, 0, 0], [1, 0, 1, 0], [0, 1, 0, 0]]
    assert_array_equal(np.isneginf(bare.predict_joint_log_proba(seen_and_unseen)), [[1, 0], [1, 1], [0, 0]])
    assert_array_equal(bare.predict_log_proba([[1, 0, 0, 0]]), [[-np.inf, 0]])
    # Impossible everywhere: the words say nothing, and the prior stays.
    assert_allclose(np.exp(bare.predict_log_proba([[1, 0, 1, 0]])), [[3 / 5, 2 / 5]])
    assert np.isfinite(smooth.predict_joint_log_proba(seen_and_unseen)).all()
    for model in (bare, smooth):
        assert_allclose(np.exp(model.feature_log_prob_).sum(axis=1), 1, rtol=1e-12)


@pytest.mark.parametrize("kind", get_args(Kind))
@pytest.mark.parametrize("seed", range(5))
def test_b05_without_smoothing_nothing_is_ever_nan(kind: Kind, seed: int) -> None:
    """B05: also where a word stands in all documents of a class, or in those of one class only."""
    counts, labels = random_counts(seed, documents=12, words=6)
    model = NaiveBayes(kind, alpha=0).fit(counts, labels)
    everything = np.array([[row >> place & 1 for place in range(6)] for row in range(64)])
    for logs in (model.predict_log_proba(everything), model.predict_joint_log_proba(everything)):
        assert not np.isnan(logs).any()
    assert_allclose(model.predict_proba(everything).sum(axis=1), 1)
    assert set(model.predict(everything)) <= {0, 1, 2}


def test_b05_bernoulli_without_smoothing_by_hand() -> None:
    """B05: a word that all documents of a class had must be there, and then says nothing."""
    model = NaiveBayes("bernoulli", alpha=0).fit([[1, 1], [1, 0], [0, 1], [0, 0]], ["a", "a", "b", "b"])
    assert_allclose(
        np.exp(model.predict_joint_log_proba([[1, 1], [1, 0], [0, 1], [0, 0]])),
        [[1 / 4, 0], [1 / 4, 0], [0, 1 / 4], [0, 1 / 4]],
    )


def test_b05_a_class_without_words_is_impossible_only_where_there_are_words() -> None:
    """B05: its shares would be 0/0."""
    model = NaiveBayes(alpha=0).fit([[0, 0], [1, 1]], ["empty", "full"])
    assert_array_equal(model.predict_proba([[1, 0], [0, 0]]), [[0, 1], [0.5, 0.5]])


# --- streams


@pytest.mark.parametrize("kind", get_args(Kind))
def test_piece_by_piece_is_the_same_as_at_once(kind: Kind) -> None:
    counts, labels = random_counts()
    whole = NaiveBayes(kind).fit(counts, labels)
    pieced = NaiveBayes(kind)
    for start in range(0, counts.shape[0], 7):
        pieced.partial_fit(counts[start : start + 7], labels[start : start + 7])
    assert_array_equal(pieced.classes_, whole.classes_)
    assert_array_equal(pieced.weights_, whole.weights_)
    assert_array_equal(pieced.bias_, whole.bias_)


def test_classes_may_come_later_unless_they_were_named() -> None:
    model = NaiveBayes().partial_fit([[1, 0]], ["m"]).partial_fit([[0, 1], [1, 1]], ["a", "z"])
    assert list(model.classes_) == ["a", "m", "z"]
    assert_array_equal(model.feature_count_, [[0, 1], [1, 0], [1, 1]])
    named = NaiveBayes().partial_fit([[1, 0]], ["m"], classes=["m", "z"])
    assert list(named.classes_) == ["m", "z"]
    with pytest.raises(InputError, match="the label 'a' is not among the classes m, z"):
        named.partial_fit([[1, 0]], ["a"])
    with pytest.raises(InputError, match="the classes are not those of the first call"):
        named.partial_fit([[1, 0]], ["m"], classes=["m", "a"])


def test_fit_forgets() -> None:
    model = NaiveBayes().partial_fit([[1, 0, 0]], ["m"], classes=["m", "z"])
    model.fit([[1, 0], [0, 1]], ["a", "b"])
    assert list(model.classes_) == ["a", "b"]
    assert model.partial_fit([[1, 1]], ["c"]).weights_.shape == (3, 2)


# --- a folder


@pytest.mark.parametrize("kind", get_args(Kind))
@pytest.mark.parametrize("names", [["x", "y", "z"], [1, 2, 3]])
def test_save_and_load(kind: Kind, names: list[Any], tmp_path: Path) -> None:
    counts, labels = random_counts()
    model = NaiveBayes(kind, alpha=0.3, prior=[0.2, 0.3, 0.5]).fit(counts, [names[label] for label in labels])
    foreword.save(model, tmp_path / "model")
    loaded = foreword.load(tmp_path / "model")
    assert loaded.get_params() == {**model.get_params(), "prior": [0.2, 0.3, 0.5]}
    assert loaded.classes_.tolist() == names
    assert_array_equal(loaded.predict_log_proba(counts), model.predict_log_proba(counts))
    more = loaded.partial_fit(counts, [names[label] for label in labels])
    assert_array_equal(more.feature_count_, 2 * model.feature_count_)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"counts": np.zeros((4, 3))}, "counts is float64"),
        ({"counts": np.zeros((4, 2), np.float32)}, "counts is float32"),
        ({"counts": np.full((4, 2), np.nan)}, "contains NaN"),
        ({"counts": np.full((4, 2), np.inf)}, "infinite"),
        ({"counts": np.full((4, 2), -1.0)}, "negative"),
        ({"documents": np.zeros(3)}, "documents is"),
        ({"classes": ["spam", "ham"]}, "not sorted"),
        ({"classes": ["ham", "ham"]}, "occurs twice"),
        ({"classes": "ham"}, "must be a list"),
        ({"alpha": -1.0}, "alpha"),
        ({"kind": "gaussian"}, "kind"),
    ],
)
def test_a_damaged_folder_is_refused(change: dict[str, Any], complaint: str) -> None:
    parts = NaiveBayes().fit(COUNTS, LABELS).to_parts()
    for name, value in change.items():
        (parts.arrays if isinstance(value, np.ndarray) else parts.settings)[name] = value
    with pytest.raises((ValueError, InputError, SettingError), match=complaint):
        NaiveBayes.from_parts(parts)


# --- what is wrong


@pytest.mark.parametrize(
    ("counts", "labels", "complaint"),
    [
        ([[1, 0], [0, 1]], ["a", "a"], "all documents have the label 'a': more than one class is needed"),
        ([[1, 0], [0, 1]], ["a"], "2 documents and 1 labels"),
        ([[1, 0], [0, -1]], ["a", "b"], "Negative values in data passed to NaiveBayes: expected counts"),
        ([[1, 0], [0, np.nan]], ["a", "b"], "NaN or infinity"),
        ([[1, 0], [0, np.inf]], ["a", "b"], "NaN or infinity"),
        ([1, 0], ["a", "b"], "expected a matrix"),
        (np.zeros((0, 2)), [], "nothing to learn from"),
        (np.zeros((2, 0)), ["a", "b"], r"0 feature\(s\)"),
        ([["x", "y"], ["z", "w"]], ["a", "b"], "expected numbers"),
        ([[1, 0], [0, 1]], ["a", None], "Unknown label type"),
        ([[1, 0], [0, 1]], ["a", 1], "Unknown label type: expected strings or whole numbers, got int, str"),
        ([[1, 0], [0, 1]], [0.5, 1.5], "Unknown label type"),
        ([[1, 0], [0, 1]], "ab", "y should be a 1d array"),
    ],
)
def test_complaints(counts: Any, labels: Any, complaint: str) -> None:
    with pytest.raises(InputError, match=complaint) as raised:
        NaiveBayes().fit(counts, labels)
    assert "\n" not in str(raised.value)


def test_a_sparse_matrix_that_points_outside_itself_is_refused() -> None:
    counts = sparse.csr_array(COUNTS)
    counts.indices[0] = 99
    with pytest.raises(InputError, match="an index lies outside of it"):
        NaiveBayes().fit(counts, LABELS)
    counts = sparse.csr_array(COUNTS)
    counts.indptr[2] = 99
    with pytest.raises(InputError, match="an index lies outside of it"):
        NaiveBayes().fit(counts, LABELS)


def test_asked_too_early_or_with_other_columns() -> None:
    with pytest.raises(ForewordError, match=r"this NaiveBayes has learnt nothing yet: call fit\(X, y\) first"):
        NaiveBayes().predict(COUNTS)
    assert not hasattr(NaiveBayes(), "weights_")
    model = NaiveBayes().fit(COUNTS, LABELS)
    with pytest.raises(InputError, match="X has 3 features, but NaiveBayes is expecting 4 features"):
        model.predict(COUNTS[:, :3])
    with pytest.raises(InputError, match="X has 3 features, but NaiveBayes is expecting 4 features"):
        model.partial_fit(COUNTS[:, :3], LABELS)
    with pytest.raises(InputError, match="5 documents and 4 labels"):
        model.score(COUNTS, LABELS[1:])


def test_a_label_never_seen_in_training_counts_as_wrong() -> None:
    model = NaiveBayes().fit(COUNTS, LABELS)
    assert model.score(COUNTS, [*LABELS[:4], "eggs"]) == 4 / 5
    assert model.score(COUNTS, [0, 1, 2, 3, 4]) == 0


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"kind": "gaussian"}, "kind is 'gaussian': expected multinomial or complement or bernoulli"),
        ({"alpha": -1}, "alpha is -1: expected at least 0"),
        ({"alpha": np.nan}, "alpha"),
        ({"prior": "flat"}, "prior='flat': expected"),
        ({"prior": [0.5, 0.6]}, "sum to one"),
        ({"prior": [0.2, 0.2, 0.6]}, "prior has 3 probabilities, but there are 2 classes"),
        ({"kind": "complement", "norm": True, "alpha": 0}, "norm=True"),
    ],
)
def test_settings_that_make_no_sense(settings: dict[str, Any], complaint: str) -> None:
    with pytest.raises(SettingError, match=complaint):
        NaiveBayes(**settings).fit(COUNTS, LABELS)


def test_no_documents_to_judge_is_fine() -> None:
    model = NaiveBayes().fit(COUNTS, LABELS)
    assert model.predict_log_proba(np.zeros((0, 4))).shape == (0, 2)
    assert model.predict(np.zeros((0, 4))).tolist() == []
