"""Settings for a fastText classifier, found on a validation set within a time budget.

Each trial changes the best settings so far, by steps that shrink as the time runs out: wide at first, close to the best
at the end. The caller may stop at any trial; the best one so far is always available.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from foreword.errors import InputError, SettingError
from foreword.fasttext.classifier import FastTextClassifier


@dataclass(frozen=True, slots=True)
class Trial:
    """One set of settings and its accuracy; ``best`` if none before was better."""

    number: int
    settings: dict[str, Any]
    accuracy: float
    seconds: float
    best: bool
    classifier: FastTextClassifier


START: dict[str, Any] = {"dimensions": 50, "epochs": 5, "rate": 0.5, "word_ngrams": 1, "min_n": 0, "max_n": 0}


def autotune(
    texts: Sequence[str],
    labels: Sequence[str],
    valid_texts: Sequence[str],
    valid_labels: Sequence[str],
    *,
    seconds: float = 300.0,
    seed: int = 0,
    **fixed: Any,
) -> Iterator[Trial]:
    """Yield trials until the time is over; the first always runs, and a trial that has begun is finished.

    fixed: settings of ``FastTextClassifier`` that stay as they are.
    """
    if not len(texts) or not len(valid_texts):
        raise InputError("there must be texts to train on and texts to try the settings on")
    if not seconds > 0:
        raise SettingError(f"seconds={seconds}: expected a positive number")
    rng = np.random.default_rng(seed)
    began = time.monotonic()
    best: Trial | None = None
    number = 0
    while number == 0 or time.monotonic() - began < seconds:
        left = max(0.0, 1 - (time.monotonic() - began) / seconds)
        settings = {**START, **fixed} if best is None else {**_changed(best.settings, left, rng), **fixed}
        since = time.monotonic()
        classifier = FastTextClassifier(**settings, seed=seed)
        try:
            accuracy = classifier.fit(texts, labels).score(valid_texts, valid_labels)
        except InputError:
            if best is None:
                raise
            accuracy = 0.0  # training diverged
        trial = Trial(
            number, settings, accuracy, time.monotonic() - since, best is None or accuracy > best.accuracy, classifier
        )
        best = trial if trial.best else best
        number += 1
        yield trial


def _changed(settings: dict[str, Any], reach: float, rng: np.random.Generator) -> dict[str, Any]:
    """Return settings near the given ones; the larger ``reach`` (1 to 0), the farther."""
    reach = 0.2 + 0.8 * reach
    characters = settings["max_n"] > 0
    if rng.random() < 0.3 * reach:
        characters = not characters
    return {
        **settings,
        "dimensions": int(np.clip(settings["dimensions"] * 2 ** rng.normal(0, reach), 8, 300)),
        "epochs": int(np.clip(round(settings["epochs"] * 2 ** rng.normal(0, reach)), 1, 100)),
        "rate": float(np.clip(settings["rate"] * 2 ** rng.normal(0, 1.5 * reach), 0.01, 5.0)),
        "word_ngrams": int(np.clip(settings["word_ngrams"] + rng.integers(-1, 2), 1, 5)),
        "min_n": 3 if characters else 0,
        "max_n": 6 if characters else 0,
    }
