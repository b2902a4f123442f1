"""Logistic regression, plain and weighted by naive Bayes: the minimum, the way there, and what may go wrong."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.optimize import minimize
from scipy.special import expit

import foreword
from foreword.classify import kernels, solver
from foreword.classify.labels import read_labels
from foreword.classify.linear import SparseRows, rows_of
from foreword.classify.logistic import (
    LogisticRegression,
    NBLogistic,
    NotConvergedWarning,
    log_count_ratios,
    presence_counts,
    squared_ratios,
)
from foreword.classify.plain import Ascent, best_shares, objective
from foreword.classify.solver import Objective, Problem, Search, is_slow, polish, solve
from foreword.errors import InputError, SettingError
from foreword.protocols import Classifier, LinearClassifier, Saveable

MAKERS = {"logistic": LogisticRegression, "nb-logistic": NBLogistic}
Random = np.random.Generator


@pytest.fixture
def random() -> Random:
    return np.random.default_rng(0)


@pytest.fixture(params=MAKERS)
def model(request: pytest.FixtureRequest) -> Any:
    return MAKERS[request.param]()


def texts(
    random: Random, documents: int = 60, features: int = 50, classes: int = 3, density: float = 0.15
) -> tuple[Any, Any]:
    """A sparse matrix, some of whose columns one row only has and some none, and classes that depend on it."""
    X = sparse.random_array((documents, features), density=density, rng=random, format="csr")
    X.data = np.ceil(3 * X.data)
    scores = X @ random.standard_normal((features, classes)) + random.gumbel(size=(documents, classes))
    labels = scores.argmax(axis=1)
    labels[:classes] = range(classes)
    return X, labels


def problem_of(X: Any, labels: Any, strength: float, scales: Any = None) -> Problem:
    rows = rows_of(sparse.csr_array(X, dtype=np.float64), None)
    return Problem(rows, labels.astype(np.int32), int(labels.max()) + 1, np.full(len(rows), strength), scales)


def some_scales(random: Random, features: int, classes: int) -> Any:
    """Squared; one of them zero, as a ratio of 1 without a floor gives."""
    scales = random.uniform(0.1, 3, (features, classes))
    scales[3] = 0.0
    return scales


# --- the minimum


@pytest.mark.parametrize("classes", [2, 3, 17])
@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize("strength", [0.01, 1.0, 30.0])
def test_nothing_is_lower(random: Random, classes: int, scaled: bool, strength: float) -> None:
    X, labels = texts(random, classes=classes)
    scales = some_scales(random, X.shape[1], classes) if scaled else None
    found = solve(problem_of(X, labels, strength, scales), Search(1e-13, 3000, 0))
    assert found.gap <= 1e-13
    s = np.ones((X.shape[1], classes)) if scales is None else np.sqrt(scales)

    def other(z: Any) -> float:
        split = z[: -X.shape[1] * classes], z[-X.shape[1] * classes :].reshape(s.shape)
        return objective(X.toarray(), labels, s * split[1], split[0], strength) - 0.5 * float(
            ((s * split[1]) ** 2 - split[1] ** 2).sum()
        )

    z = np.divide(found.table, s, out=np.zeros_like(s), where=s > 0)
    at = np.concatenate((found.bias, z.ravel()))
    lowest = other(at)
    slopes = [(other(at + step) - other(at - step)) / 2e-5 for step in 1e-5 * np.eye(len(at))[:: max(1, len(at) // 40)]]
    assert_allclose(slopes, 0, atol=2e-5 * max(1, strength))
    for _ in range(20):
        assert other(at + 1e-3 * random.standard_normal(len(at))) > lowest
    if scaled:
        assert_array_equal(found.table[3], 0)


@pytest.mark.parametrize("classes", [2, 5])
@pytest.mark.parametrize("scaled", [False, True])
def test_single_precision_stays_within_its_tolerance(random: Random, classes: int, scaled: bool) -> None:
    X, labels = texts(random, 200, 300, classes, 0.05)
    scales = some_scales(random, 300, classes) if scaled else None
    problem = problem_of(X, labels, 2.0, scales)
    kept = np.ones((300, classes)) if scales is None else np.where(scales > 0, scales, 1)
    best = solve(problem, Search(1e-12, 1000, 0))
    lowest = objective(X.toarray(), labels, best.table, best.bias, 2.0, kept)
    for tolerance in (1e-2, 1e-4, 1e-6):
        found = solve(problem, Search(tolerance, 1000, 0))
        above = objective(X.toarray(), labels, found.table, found.bias, 2.0, kept) - lowest
        assert -1e-12 * lowest <= above <= found.gap * lowest * 1.01 + 1e-9
        assert found.gap <= tolerance
        assert found.passes < best.passes


def test_the_gap_that_is_told_is_about_what_is_left_or_more(random: Random) -> None:
    """The part of the intercept is an estimate."""
    X, labels = texts(random, 150, 120, 4)
    problem = problem_of(X, labels, 1.0)
    best = solve(problem, Search(1e-13, 1000, 0))
    lowest = objective(X.toarray(), labels, best.table, best.bias, 1.0)
    for passes in range(2, 12):
        found = solve(problem, Search(1e-13, passes, 0))
        value = objective(X.toarray(), labels, found.table, found.bias, 1.0)
        assert value >= lowest * (1 - 1e-12)
        assert found.passes == passes
        assert value - lowest <= 1.5 * found.gap * value


# --- the way there


@pytest.mark.parametrize("classes", [2, 3, 18])
@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize("tolerance", [1e-2, 1e-9])
def test_a_pass_goes_where_the_plain_one_goes(random: Random, classes: int, scaled: bool, tolerance: float) -> None:
    """In both precisions, whether classes share their scales or not. A visit stops at 1e-3 of a probability."""
    X, labels = texts(random, 40, 60, classes)
    scales = some_scales(random, 60, classes) if scaled else np.ones((60, classes))
    problem = problem_of(X, labels, 0.7, scales if scaled else None)
    fast: Any = (solver._TwoClasses if classes == 2 else solver._ManyClasses)(problem, tolerance)
    plain = Ascent(X.toarray(), labels, 0.7, scales)
    for number in range(3):
        order = random.permutation(40)
        totals, sums = np.zeros((2, len(fast.bias))), np.zeros(2)
        fast.visit(order, number == 0, 0.3, totals, sums)
        for document in order.tolist():
            plain.visit(document, 0.3)
        assert_allclose(fast.bias, plain.bias[1:] - plain.bias[:1] if classes == 2 else plain.bias, atol=1e-3)
        assert_allclose(fast.table(), plain.table, atol=1e-3)
    taken = 0.7 * (np.eye(classes)[labels] - plain.shares).sum(axis=0)
    assert_allclose(totals[0], 2 * taken[1:] if classes == 2 else taken, atol=1e-2)


def test_settling_at_the_edges(random: Random) -> None:
    """A visit solves log p + L p = u − ν wherever it begins, also where documents are long and scores far apart."""
    for _ in range(300):
        classes = int(random.integers(2, 9))
        length, spread = 10.0 ** random.uniform(-3, 6), 10.0 ** random.uniform(-1, 3)
        old = random.dirichlet(np.full(classes, 10.0 ** random.uniform(-2, 1)))
        scores, label = spread * random.standard_normal(classes), int(random.integers(classes))
        expected = best_shares(scores + length * old, np.full(classes, length))
        found = settled(scores, length, old, label)
        assert_allclose(found, expected, atol=2e-3)
        if classes == 2:
            margin = scores[1] - scores[0] if label == 1 else scores[0] - scores[1]
            logit = kernels._solve_two(margin, 2 * length, old[1 - label], 0.0)
            assert expit(logit) == pytest.approx(expected[1 - label], abs=1e-4)


def settled(scores: Any, length: float, old: Any, label: int) -> Any:
    """What a visit to a document with these scores makes of its dual variables."""
    classes = len(scores)
    rows = np.zeros(2, np.int64), np.empty(0, np.int32), np.empty(0)
    logs = np.maximum(np.log(np.maximum(old, 1e-300)), -700)[None]
    kernels.pass_over_many(
        *rows, np.array([label], np.int32), np.zeros((1, 1)), np.full((1, 1), length), np.empty(0), np.ones(1), 0.0,
        np.zeros(1, np.int64), False, np.empty(0), scores.copy(), logs, np.empty((4, classes)),
        np.zeros((2, classes)), np.zeros(2),
    )  # fmt: skip
    return np.exp(logs[0])


def test_features_are_numbered_by_how_many_documents_have_them() -> None:
    X = sparse.csr_array([[1.0, 0, 2, 0, 3], [0, 0, 4, 5, 0], [0, 0, 6, 7, 0], [0, 0, 0, 8, 0]])
    rows = solver._ranked(rows_of(X, None), np.float64, np.array([1.0, 1, 10, 1, 1]))
    assert_array_equal(rows.kept, [2, 3])
    assert_array_equal(rows.starts, [0, 1, 3, 5, 6])
    assert_array_equal(rows.columns, [0, 0, 1, 0, 1, 1])
    assert_array_equal(rows.values, [20, 40, 5, 60, 7, 8])
    assert_array_equal(rows.single_starts, [0, 2, 2, 2, 2])
    assert_array_equal(rows.singles, [0, 4])
    assert_array_equal(rows.single_values, [1, 3])


def test_newton_goes_on_where_dual_ascent_is_slow(random: Random) -> None:
    """Few features, large values, large C: the dual variables hardly move."""
    X = random.integers(0, 15, (300, 6)).astype(float)
    labels = (X @ random.standard_normal((6, 3)) / 5 + random.gumbel(size=(300, 3))).argmax(axis=1)
    problem = problem_of(X, labels, 100.0)
    told: list[str] = []
    found = solve(problem, Search(1e-10, 200, 0, lambda phase, done, total: told.append(phase)))
    assert found.gap <= 1e-10
    assert "fitting by Newton's method" in told
    theirs = minimize(
        lambda z: objective(X, labels, z[3:].reshape(6, 3), z[:3], 100.0), np.zeros(21), method="L-BFGS-B",
        options={"maxiter": 5000, "maxfun": 10**6, "ftol": 1e-15, "gtol": 1e-9},
    )  # fmt: skip
    value = objective(X, labels, found.table, found.bias, 100.0)
    assert value == pytest.approx(theirs.fun, rel=1e-6)
    assert value <= theirs.fun * (1 + 1e-9)
    assert_allclose(found.table.sum(axis=1), 0, atol=1e-8)


@pytest.mark.parametrize("classes", [2, 4])
def test_newton_alone_finds_the_same_minimum(random: Random, classes: int) -> None:
    X, labels = texts(random, classes=classes)
    scales = some_scales(random, X.shape[1], classes)
    problem = problem_of(X, labels, 3.0, scales)
    ours = solve(problem, Search(1e-13, 3000, 0))
    table, bias, _, gap = polish(problem, np.zeros((X.shape[1], classes)), np.zeros(classes), 1e-14, 200)
    assert gap < 1e-13
    assert_allclose(table, ours.table, atol=1e-6)
    assert_allclose(bias - bias.mean(), ours.bias - ours.bias.mean(), atol=1e-6)


def test_newton_has_the_right_derivatives(random: Random) -> None:
    X, labels = texts(random, 20, 6, 3, 0.5)
    scales = random.uniform(0.5, 2, (6, 3))
    function = Objective(problem_of(X, labels, 2.0, scales), np.zeros((6, 3)), np.zeros(3))
    y, direction = random.standard_normal(21), random.standard_normal(21)
    value, gradient = function.value_and_gradient(y)
    ahead, behind = (function.value_and_gradient(y + step * direction) for step in (1e-5, -1e-5))
    assert (ahead[0] - behind[0]) / 2e-5 == pytest.approx(gradient @ direction, rel=1e-6)
    assert_allclose(function.hessian_times(y, direction), (ahead[1] - behind[1]) / 2e-5, rtol=1e-5, atol=1e-6)
    table, bias = function.split(y)
    plain = objective(X.toarray(), labels, table, bias, 2.0, scales)
    assert value == pytest.approx(plain + 0.5 * bias.sum() ** 2)


def test_when_it_is_slow() -> None:
    assert not is_slow([1.0] * 20, 1e-4, 100)  # too early to tell
    assert is_slow([1.0] * 30, 1e-4, 100)
    quick = [0.5**number for number in range(30)]
    assert not is_slow(quick, 1e-12, 100)
    assert is_slow([0.99**number for number in range(30)], 1e-4, 100)


# --- the classifiers


def test_two_classes_by_hand() -> None:
    """One feature, ±1: log p/(1-p) = w x, and C σ(−w) documents times 2 balance w."""
    model = LogisticRegression(C=3.0, tolerance=1e-13).fit([[1.0], [-1.0]], ["b", "a"])
    w = float(model.weights_[1, 0] - model.weights_[0, 0])
    assert w == pytest.approx(3 * 2 / (1 + np.exp(w)), rel=1e-6)
    assert_allclose(model.bias_, 0, atol=1e-6)
    assert_allclose(model.weights_[0], -model.weights_[1])
    assert model.predict_proba([[1.0]])[0, 1] == pytest.approx(1 / (1 + np.exp(-w)))


def test_protocols(model: Any, random: Random) -> None:
    X, labels = texts(random)
    model.fit(X, labels)
    for protocol in (Classifier, LinearClassifier, Saveable):
        assert isinstance(model, protocol)
    assert_allclose(model.predict_joint_log_proba(X), X @ model.weights_.T + model.bias_, rtol=1e-9, atol=1e-12)
    assert_allclose(model.predict_proba(X).sum(axis=1), 1)
    assert model.score(X, labels) > 0.8
    assert model.n_iter_ > 1
    assert 0 <= model.gap_ <= model.tolerance


def test_the_same_seed_gives_the_same_bits(model: Any, random: Random) -> None:
    X, labels = texts(random)
    first = model.fit(X, labels).weights_.copy()
    assert_array_equal(first, model.fit(X, labels).weights_)
    other = type(model)(seed=1).fit(X, labels).weights_
    assert not np.array_equal(first, other)
    assert_allclose(first, other, atol=0.1 * np.abs(first).max())


def test_empty_documents_and_features_that_nobody_has(model: Any, random: Random) -> None:
    X, labels = texts(random)
    X = sparse.vstack([X, sparse.csr_array((2, X.shape[1]))]).tocsr()
    X = sparse.hstack([X, sparse.csr_array((X.shape[0], 3))]).tocsr()
    model.fit(X, [*labels, 0, 1])
    assert_array_equal(model.weights_[:, -3:], 0)
    empty = model.predict_log_proba(np.zeros((1, X.shape[1])))
    assert np.isfinite(empty).all()
    assert_allclose(empty[0], model.bias_ - np.log(np.exp(model.bias_).sum()))
    nothing = type(model)().fit(np.zeros((4, 2)), ["a", "b", "b", "b"])
    assert_allclose(nothing.predict_proba([[0, 0]])[0], [0.25, 0.75], atol=0.05)


def test_save_and_load(model: Any, random: Random, tmp_path: Path) -> None:
    X, labels = texts(random)
    model.set_params(C=0.5, seed=3).fit(X, [("x", "y", "z")[label] for label in labels])
    foreword.save(model, tmp_path / "model")
    loaded = foreword.load(tmp_path / "model")
    assert type(loaded) is type(model)
    assert loaded.get_params() == model.get_params()
    assert loaded.classes_.tolist() == ["x", "y", "z"]
    assert_array_equal(loaded.predict_log_proba(X), model.predict_log_proba(X))


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"weights": np.zeros((5, 2))}, "weights is float64"),
        ({"weights": np.zeros((5, 3), np.int64)}, "weights is int64"),
        ({"weights": np.full((5, 3), np.nan)}, "contains NaN"),
        ({"bias": np.zeros(2)}, "bias is"),
        ({"classes": [1, 1, 2]}, "occurs twice"),
        ({"classes": []}, "must be a list"),
        ({"C": -1.0}, "C is -1"),
        ({"tolerance": 0}, "tolerance"),
        ({"seed": -1}, "seed"),
    ],
)
def test_a_damaged_folder_is_refused(model: Any, change: dict[str, Any], complaint: str, random: Random) -> None:
    parts = model.fit(*texts(random, features=5, density=0.5)).to_parts()
    for name, value in change.items():
        (parts.arrays if isinstance(value, np.ndarray) else parts.settings)[name] = value
    with pytest.raises((ValueError, InputError, SettingError), match=complaint):
        type(model).from_parts(parts)


@pytest.mark.parametrize(
    ("X", "labels", "complaint"),
    [
        ([[1, 0], [0, 1]], ["a", "a"], "more than one class is needed"),
        ([[1, 0], [0, 1]], ["a"], "2 documents and 1 labels"),
        ([[1, 0], [0, np.nan]], ["a", "b"], "NaN or infinity"),
        ([[1, 0], [0, np.inf]], ["a", "b"], "NaN or infinity"),
        (np.zeros((0, 2)), [], "nothing to learn from"),
    ],
)
def test_complaints(model: Any, X: Any, labels: Any, complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        model.fit(X, labels)


def test_other_columns_at_predict(model: Any) -> None:
    model.fit([[1, 0], [0, 1]], ["a", "b"])
    with pytest.raises(InputError, match=f"X has 3 features, but {type(model).__name__} is expecting 2 features"):
        model.predict([[1, 0, 0]])


@pytest.mark.parametrize("name", ["C", "tolerance", "max_iterations", "seed"])
@pytest.mark.parametrize("value", [-1, 0.5, float("nan"), "much", True])
def test_settings_that_make_no_sense(model: Any, name: str, value: Any) -> None:
    if name in ("C", "tolerance") and value == 0.5:
        return
    with pytest.raises(SettingError, match=f"{name} is"):
        model.set_params(**{name: value}).fit([[1, 0], [0, 1]], ["a", "b"])


@pytest.mark.parametrize("settings", [{"alpha": 0}, {"alpha": -1}, {"floor": -1}, {"beta": 2}, {"beta": -0.1}])
def test_settings_of_the_weighted_form(settings: dict[str, Any]) -> None:
    with pytest.raises(SettingError, match=next(iter(settings))):
        NBLogistic(**settings).fit([[1, 0], [0, 1]], ["a", "b"])


def test_not_converging_is_told(model: Any, random: Random) -> None:
    X, labels = texts(random)
    model.set_params(max_iterations=1, tolerance=1e-6)
    with pytest.warns(NotConvergedWarning, match=f"{type(model).__name__} did not converge: after 1 passes"):
        model.fit(X, labels)
    assert model.gap_ > 1e-6
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.set_params(max_iterations=500).fit(X, labels)


def test_progress_is_told(model: Any, random: Random) -> None:
    told: list[tuple[str, int, int | None]] = []
    model.fit(*texts(random), meter=lambda phase, done, total: told.append((phase, done, total)))
    assert told == [("fitting", number, None) for number in range(1, model.n_iter_ + 1)]


def test_huge_values_do_not_break_it(model: Any) -> None:
    X = np.array([[1e15, 0], [0, 1e15], [1e15, 1], [1, 1e15]])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConvergedWarning)
        model.fit(X, ["a", "b", "a", "b"])
    assert np.isfinite(model.predict_proba(X)).all()
    assert model.score(X, ["a", "b", "a", "b"]) == 1


# --- weighted by naive Bayes


def test_ratios_by_hand() -> None:
    """Wang and Manning 2012, section 2: p = α + Σ f over one class, r = log (p / |p|₁) / (q / |q|₁)."""
    counts = np.array([[3.0, 0.0], [1.0, 1.0]])  # the first feature: three documents of class 0, none of class 1
    ratio = np.log((4 / 6) / (1 / 3))
    assert_allclose(log_count_ratios(counts, 1.0)[0], [ratio, -ratio])
    assert_allclose(log_count_ratios(counts, 1.0)[1], [np.log((2 / 6) / (2 / 3)), -np.log((2 / 6) / (2 / 3))])


@pytest.mark.parametrize("classes", [2, 4])
def test_the_kernel_squares_the_plain_ratios(random: Random, classes: int) -> None:
    X, y = texts(random, classes=classes)
    rows: SparseRows = rows_of(X, None)
    _, labels = read_labels(y, len(rows))
    counts = presence_counts(rows, labels, classes)
    assert_array_equal(counts.sum(axis=1), np.diff(X.tocsc().indptr))
    expected = 0.5 + log_count_ratios(counts, 0.7) ** 2
    assert_allclose(squared_ratios(counts, 0.7, 0.5, len(rows)), expected, rtol=1e-9)


@pytest.mark.parametrize("classes", [2, 3])
def test_it_is_logistic_regression_on_features_times_their_ratios(random: Random, classes: int) -> None:
    """With two classes the ratios differ in sign only; with three the objective says it."""
    X, labels = texts(random, classes=classes)
    model = NBLogistic(C=2.0, floor=0.0, tolerance=1e-12, max_iterations=2000).fit(X, labels)
    counts = presence_counts(rows_of(X, None), labels.astype(np.int32), classes)
    ratios = log_count_ratios(counts, 1.0)
    strength = 2.0 / ((X.multiply(X)).sum() / np.count_nonzero(np.diff(X.indptr)))
    if classes == 2:
        scaled = sparse.csr_array(X.multiply(np.abs(ratios[:, 0])))
        plain = LogisticRegression(C=2 * strength, tolerance=1e-12, max_iterations=2000).fit(scaled, labels)
        assert_allclose(model.weights_, plain.weights_ * np.abs(ratios[:, 0]), atol=1e-6)
        return
    value = objective(X.toarray(), labels, model.weights_.T, model.bias_, strength, ratios**2)
    for _ in range(30):
        moved = model.weights_.T + 1e-3 * ratios * random.standard_normal(ratios.shape)
        assert objective(X.toarray(), labels, moved, model.bias_, strength, ratios**2) > value


def test_between_it_and_naive_bayes(random: Random) -> None:
    X, labels = texts(random)
    as_found, mixed, bayes = (NBLogistic(beta=beta).fit(X, labels) for beta in (1.0, 0.25, 0.0))
    assert_allclose(mixed.weights_, 0.25 * as_found.weights_ + 0.75 * bayes.weights_, rtol=1e-9)
    counts = presence_counts(rows_of(X, None), labels.astype(np.int32), 3)
    ratios = log_count_ratios(counts, 1.0).T
    sizes = bayes.weights_ / ratios
    assert_allclose(sizes, sizes[:, :1] * np.ones_like(sizes), rtol=1e-9)
    assert (sizes > 0).all()


def test_it_does_not_depend_on_how_large_the_features_are(random: Random) -> None:
    X, labels = texts(random)
    small, large = (NBLogistic(tolerance=1e-8).fit(size * X, labels) for size in (1.0, 100.0))
    assert_allclose(small.predict_proba(X), large.predict_proba(100 * X), atol=1e-4)
