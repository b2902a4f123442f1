"""Logistic regression on sparse matrices, against scikit-learn's L-BFGS, down to the same value of the objective."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import logsumexp
from sklearn.linear_model import LogisticRegression as TheirRegression

from benchmarks.measure import FEW_PAIRS, PAIRS, interleaved, one_core
from benchmarks.progress import say
from benchmarks.report import Row, compared
from foreword.classify.logistic import LogisticRegression
from foreword.features.bag import BagOfWords
from foreword.features.tfidf import TfIdf
from foreword.text.datasets import labelled

TITLE = "Logistic regression"
HOW = (
    "From a CSR matrix in memory to weights, C = 1. scikit-learn runs `lbfgs` with its default tolerance and as many "
    "iterations as that takes. Ours runs to a tolerance of 1e-6 of the objective, and the value of the objective that "
    "both minimise must be no higher than scikit-learn's by more than a millionth of it."
)

BAR = 3
PRECISION = 1e-6


def run(quick: bool) -> list[Row]:
    jobs: list[tuple[str, str, Any, int]] = [("20newsgroups", "20 Newsgroups, TF-IDF", TfIdf(), PAIRS)]
    if not quick:
        jobs += [
            ("imdb", "IMDB, TF-IDF of words and pairs", TfIdf(ngrams=(1, 2)), PAIRS),
            ("imdb", "IMDB, counts of words and pairs", BagOfWords(ngrams=(1, 2), dtype="float64"), FEW_PAIRS),
        ]
    with one_core():
        return [_row(*job) for job in jobs]


def _row(name: str, job: str, vectoriser: Any, pairs: int) -> Row:
    say(f"reading {name}:train")
    labels, texts = zip(*labelled(f"{name}:train"), strict=True)
    X, y = vectoriser.fit_transform(texts), list(labels)
    measured = interleaved(
        job,
        lambda: LogisticRegression(tolerance=PRECISION, max_iterations=2000).fit(X, y),
        lambda: TheirRegression(max_iter=10_000).fit(X, y),
        lambda ours, theirs: agree(X, y, ours, theirs),
        pairs=pairs,
    )
    return compared(f"{job}, {X.shape[0]:,} × {X.shape[1]:,}", "lbfgs", measured, bar=BAR)


def agree(X: Any, y: Sequence[str], ours: Any, theirs: Any) -> bool:
    weights, bias = theirs.coef_, theirs.intercept_
    if len(weights) == 1:
        weights, bias = np.concatenate((-weights, weights)) / 2, np.concatenate((-bias, bias)) / 2
    value, their_value = objective(X, y, ours.weights_, ours.bias_), objective(X, y, weights, bias)
    say(f"the objective is {value:.6f}, and scikit-learn's {their_value:.6f}")
    return value <= their_value * (1 + PRECISION)


def objective(X: Any, y: Sequence[str], weights: Any, bias: Any) -> float:
    """Σ −log p(y | x) + ½ ‖W‖², with two classes ½ ‖w‖² of the difference."""
    scores = X @ weights.T + bias
    classes = {label: number for number, label in enumerate(sorted(set(y)))}
    right = scores[np.arange(len(y)), [classes[label] for label in y]]
    penalised = weights[1] - weights[0] if len(weights) == 2 else weights
    return float((logsumexp(scores, axis=1) - right).sum() + 0.5 * (penalised**2).sum())
