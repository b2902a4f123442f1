"""Networks that learn from pairs, a tagger and a classifier, stopped anywhere: they end as if they never were."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from foreword.classify.recurrent import RecurrentClassifier
from foreword.errors import InputError
from foreword.neural.recurrent import RecurrentLM
from foreword.pipeline.language import TextLM
from foreword.tag.bilstm import BiLSTMTagger
from foreword.tokens.words import WordTokenizer
from foreword.training.checkpoint import Checkpoint
from foreword.training.settings import Training

torch.set_num_threads(1)
RANDOM = np.random.default_rng(0)
WORDS = ["the", "cat", "sat", "on", "a", "mat", "dog", "ran", "far", "away"]
SENTENCES = [[WORDS[k] for k in RANDOM.integers(0, len(WORDS), RANDOM.integers(1, 7))] for _ in range(12)]
TAGGED = SENTENCES, [["N" if len(word) > 2 else "D" for word in words] for words in SENTENCES]
TEXTS = [" ".join(words) for words in SENTENCES]
LABELLED = TEXTS, ["x" if "cat" in text else "y" for text in TEXTS]
LABELLED[1][:2] = ["x", "y"]


def language_model() -> TextLM:
    training = Training(epochs=1, batch=2, steps=5, optimiser="adam", rate=0.01)
    model: TextLM = TextLM(WordTokenizer(), RecurrentLM("lstm", 4, 4, 2, training=training, device="cpu"))
    return model.fit(TEXTS)


RUNS: dict[str, Any] = {
    "tagger": (lambda: BiLSTMTagger(4, words=4, letter_units=3, spelling=4, epochs=2, batch=4, device="cpu"), TAGGED),
    "without averages": (
        lambda: BiLSTMTagger(4, 2, crf=False, characters="none", optimiser="sgd", average=-1, epochs=2, batch=4,
                             device="cpu"),
        TAGGED,
    ),
    "classifier": (
        lambda: RecurrentClassifier(embedding=4, hidden=4, units=3, min_count=1, epochs=2, batch=4, device="cpu"),
        LABELLED,
    ),
    "classifier in stages": (
        lambda: RecurrentClassifier(language_model(), units=3, epochs=1, batch=4, device="cpu"),
        LABELLED,
    ),
}  # fmt: skip


def weights_of(trained: Any) -> list[bytes]:
    return [array.tobytes() for name, array in sorted(trained.to_parts().arrays.items()) if name.startswith("weights")]


@pytest.mark.parametrize("name", RUNS)
@pytest.mark.parametrize("updates", [1, 4, 5])
def test_a_stopped_run_ends_in_the_same_bits(tmp_path: Path, name: str, updates: int) -> None:
    """In the middle of an epoch, at its end, and with a stage of its own in between."""
    build, data = RUNS[name]
    valid = data[0][:5], data[1][:5]
    whole = build().fit(*data, valid=valid)
    checkpoint = Checkpoint(tmp_path / "run", every=0)
    for _ in build().train(*data, valid=valid, checkpoint=checkpoint):
        if checkpoint.written == updates:
            break
    resumed = build()
    steps = list(resumed.train(data, valid=valid, checkpoint=Checkpoint(tmp_path / "run")))
    assert steps
    assert weights_of(resumed) == weights_of(whole)
    assert resumed.valid_score_ == whole.valid_score_


@pytest.mark.parametrize("name", ["tagger", "classifier"])
def test_the_checkpoint_of_other_data_is_refused(tmp_path: Path, name: str) -> None:
    build, (first, second) = RUNS[name]
    list(build().train(first, second, checkpoint=Checkpoint(tmp_path / "run", every=0)))
    with pytest.raises(InputError, match="another run"):
        next(build().train(first[::-1], second[::-1], checkpoint=Checkpoint(tmp_path / "run")))
