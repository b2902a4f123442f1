"""Graded quality: our regression loss and pooling against fastText's softmax, on ratings of films and of sentences.

fastText has no regression; what its users do is the expected grade Σ p(g) g of a softmax model, or the best label.
"""

from __future__ import annotations

import json
import lzma
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import spearmanr
from tests.real_data import real

from foreword.arrays import Doubles
from foreword.fasttext.classifier import FastTextClassifier

fasttext = pytest.importorskip("fasttext", reason="fasttext is not installed (it needs a C++ compiler)")

Rows = list[tuple[str, str]]


def plain(text: str) -> str:
    return " ".join(re.sub(r"([.!?,'/()\"])", r" \1 ", text.lower()).split())


def ratings(part: str) -> Rows:
    """IMDB's stars, 1 to 10 without 5 and 6."""
    with lzma.open(real(f"imdb/{part}.jsonl.xz"), "rt", encoding="utf-8") as lines:
        return [(plain(row["text"]), str(row["rating"])) for row in map(json.loads, lines)]


def sentiments(part: str) -> Rows:
    """The Stanford Sentiment Treebank's five grades of sentences, 0 to 4."""
    lines = real(f"sent-cls/stsa.fine.{part}").read_text("latin-1").splitlines()
    return [(plain(line[2:]), line[0]) for line in lines]


def measured(found: Doubles, rows: Rows) -> tuple[float, float]:
    """Return the mean squared error and Spearman's ρ."""
    truth = np.array([float(grade) for _, grade in rows])
    return float(np.mean((found - truth) ** 2)), float(spearmanr(found, truth)[0])


def theirs(train: Rows, test: Rows, path: Path) -> dict[str, Doubles]:
    path.write_text("".join(f"__label__{grade} {text}\n" for text, grade in train), encoding="utf-8")
    model = fasttext.train_supervised(
        str(path), dim=32, wordNgrams=2, bucket=200_000, lr=0.5, epoch=5, thread=1, verbose=0
    )
    expected, best = list[float](), list[float]()
    for text, _ in test:
        pairs = [(p, float(label.removeprefix("__label__"))) for p, label in model.f.predict(f"{text}\n", -1, 0.0, "")]
        expected.append(sum(p * grade for p, grade in pairs) / sum(p for p, _ in pairs))
        best.append(pairs[0][1])
    return {"fastText, expected grade": np.array(expected), "fastText, best label": np.array(best)}


def ours(train: Rows, test: Rows, **settings: Any) -> Doubles:
    model = FastTextClassifier(**{"dimensions": 32, "word_ngrams": 2, "buckets": 200_000, "epochs": 5} | settings)
    model.fit([text for text, _ in train], [grade for _, grade in train])
    return model.predict_grades([text for text, _ in test])


@pytest.mark.long
@pytest.mark.data
@pytest.mark.parametrize("read", [ratings, sentiments], ids=lambda read: read.__name__)
def test_grades_next_to_fasttext(
    read: Callable[[str], Rows], tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    """Issue 19, section 4: what the regression loss and the pooling gain, and what not."""
    train, test = read("train"), read("test")
    random.Random(0).shuffle(train)
    found = theirs(train, test, tmp_path / "train.txt") | {
        "softmax": ours(train, test, rate=0.5),
        "regression": ours(train, test, loss="regression", rate=1.0),
        "regression, mean-max-min": ours(train, test, loss="regression", pooling="mean-max-min", rate=0.3),
    }
    results = {name: measured(grades, test) for name, grades in found.items()}
    for name, (error, rho) in results.items():
        record_property(f"{read.__name__}: {name}", f"squared error {error:.3f}, Spearman's ρ {rho:.3f}")
        print(f"{read.__name__}: {name}: squared error {error:.3f}, ρ {rho:.3f}")
    assert results["regression"][0] < 0.9 * results["fastText, best label"][0]
    assert results["regression"][0] < 1.06 * results["fastText, expected grade"][0]
    assert results["regression"][1] > results["fastText, expected grade"][1] - 0.02
