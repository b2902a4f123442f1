"""A resumed run may train for longer, in epochs or in seconds; it may not learn from something else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from numpy.testing import assert_array_equal

from foreword.errors import InputError
from foreword.neural.recurrent import RecurrentLM
from foreword.storage.checkpoint import Checkpoint
from foreword.tokens.corpus import Corpus
from foreword.tokens.words import WordTokenizer
from foreword.training.settings import Training

TEXTS = ["the cat sat on the mat", "the dog sat on the log", "a cat and a dog"] * 4


def trained(epochs: int, checkpoint: Path | None = None, seconds: float = 0.0, **more: Any) -> RecurrentLM:
    words = WordTokenizer().fit(TEXTS)
    training = Training(
        epochs=epochs, batch=2, steps=4, rate=0.1, optimiser="sgd", schedule="constant", averages=(), seconds=seconds
    )
    model = RecurrentLM(embedding=4, hidden=4, layers=1, training=training, device="cpu", **more)
    saved = None if checkpoint is None else Checkpoint(checkpoint)
    for _ in model.train(Corpus.from_texts(TEXTS, words), checkpoint=saved):
        pass
    return model


def test_more_epochs_continue_the_same_run(tmp_path: Path) -> None:
    trained(2, tmp_path / "run")
    resumed, whole = trained(4, tmp_path / "run"), trained(4)
    for name, weights in whole.weights_.items():
        assert_array_equal(resumed.weights_[name].numpy(), weights.numpy())


def test_another_limit_of_seconds_is_no_other_run(tmp_path: Path) -> None:
    trained(1, tmp_path / "run")
    trained(2, tmp_path / "run", seconds=100.0)


def test_other_settings_are_another_run(tmp_path: Path) -> None:
    trained(1, tmp_path / "run")
    with pytest.raises(InputError, match="another run"):
        trained(2, tmp_path / "run", seed=1)
