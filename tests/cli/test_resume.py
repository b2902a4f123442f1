"""``--resume`` of taggers, classifiers and translators: stopped at any step, a run ends in the same bytes."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from foreword.classify.recurrent import RecurrentClassifier
from foreword.errors import InputError
from foreword.neural.recurrent import RecurrentLM
from foreword.pipeline.language import TextLM
from foreword.protocols import Step
from foreword.storage.checkpoint import Checkpoint
from foreword.storage.folder import save
from foreword.tag.bilstm import BiLSTMTagger
from foreword.training.engine import Trainer
from foreword.vectors.wordvectors import StaticEmbedder, WordVectors

from .conftest import Foreword

TREEBANK = "1\tthe\tthe\tDET\t_\t_\t_\t_\t_\t_\n2\tcat\tcat\tNOUN\t_\t_\t_\t_\t_\t_\n\n" * 4
LABELLED = "text\tlabel\n" + "win a free prize\tspam\nlunch at nine\tham\n" * 3
LINES = "the cat sat\nthe dog ran\na cow slept\n" * 2
SMALL = {
    "tag": ("units=4", "words=4", "letter_units=2", "spelling=4", "batch=1", "epochs=3"),
    "classify": ("embedding=8", "hidden=8", "units=4", "min_count=1", "batch=2", "epochs=3"),
    "translate": ("units=8", "words=8", "batch=20", "epochs=3"),
}


def call(task: str, folder: Path) -> list[object]:
    """Return the training of a small network, without its output."""
    (folder / "train.conllu").write_text(TREEBANK)
    (folder / "data.tsv").write_text(LABELLED)
    (folder / "lines.txt").write_text(LINES)
    inputs: dict[str, list[object]] = {
        "tag": [folder / "train.conllu", "--kind", "bilstm", "--set", "device=cpu"],
        "classify": [folder / "data.tsv", "--kind", "lstm", "--set", "device=cpu"],
        "translate": [folder / "lines.txt", folder / "lines.txt", "--tokens", "word", "--device", "cpu"],
    }
    return [task, "train", *inputs[task], *(word for each in SMALL[task] for word in ("--set", each))]


@pytest.mark.parametrize("task", SMALL)
def test_ctrl_c_keeps_the_run_and_resume_ends_it_in_the_same_bytes(
    foreword: Foreword, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, task: str
) -> None:
    words = call(task, tmp_path)
    whole = foreword(*words, "-o", tmp_path / "whole")
    assert whole.exit_code == 0, whole.output
    steps = Trainer.steps

    def interrupted(*given: Any, **named: Any) -> Iterator[Step]:
        for place, step in enumerate(steps(*given, **named)):
            if place == 2:
                os.kill(os.getpid(), signal.SIGINT)
            yield step

    monkeypatch.setattr(Trainer, "steps", interrupted)
    stopped = foreword(*words, "-o", tmp_path / "stopped")
    monkeypatch.undo()
    assert (stopped.exit_code, (tmp_path / "stopped").exists()) == (130, False)
    assert "stopped.checkpoint: --resume continues" in stopped.stderr
    resumed = foreword(*words, "-o", tmp_path / "stopped", "--resume")
    assert resumed.exit_code == 0, resumed.output
    assert not (tmp_path / "stopped.checkpoint").exists()
    for file in ("model.json", "arrays.safetensors"):
        assert (tmp_path / "stopped" / file).read_bytes() == (tmp_path / "whole" / file).read_bytes()
    assert "nothing to resume" in foreword(*words, "-o", tmp_path / "stopped", "--resume").stderr


@pytest.mark.parametrize(("task", "kind"), [("tag", "hmm"), ("tag", "features"), ("classify", "naive-bayes")])
def test_what_is_trained_at_once_has_nothing_to_resume(
    foreword: Foreword, tmp_path: Path, task: str, kind: str
) -> None:
    result = foreword(task, "train", tmp_path / "data", "-o", tmp_path / "model", "--kind", kind, "--resume")
    assert result.exit_code == 2
    assert "--resume" in result.output


def begun(model: Any, data: Any, path: Path) -> None:
    """Make two steps of a training, with a checkpoint."""
    checkpoint = Checkpoint(path, every=0)
    steps = model.train(*data, checkpoint=checkpoint)
    next(steps)
    next(steps)
    steps.close()
    assert checkpoint.written


def vectors(seed: int) -> StaticEmbedder:
    rows = np.random.default_rng(seed).standard_normal((2, 3)).astype(np.float32)
    return StaticEmbedder(WordVectors.of_words(["the", "cat"], rows))


def test_a_run_of_another_embedder_is_refused(tmp_path: Path) -> None:
    """The folder has the same name, and another embedder is in it."""
    data = [["the", "cat"]] * 4, [["DET", "NOUN"]] * 4
    save(vectors(0), tmp_path / "embedder")

    def tagger() -> BiLSTMTagger:
        return BiLSTMTagger(4, embedder=str(tmp_path / "embedder"), words=4, batch=1, epochs=2, device="cpu")

    begun(tagger(), data, tmp_path / "run")
    begun(tagger(), data, tmp_path / "run")
    save(vectors(1), tmp_path / "embedder")
    with pytest.raises(InputError, match="another run"):
        begun(tagger(), data, tmp_path / "run")


def test_a_run_of_another_language_model_is_refused(tmp_path: Path) -> None:
    """The folder has the same name, and another language model is in it."""
    texts, labels = ["win a free prize", "lunch at nine"] * 3, ["spam", "ham"] * 3

    def language_model(seed: int) -> TextLM:
        return TextLM(None, RecurrentLM("lstm", 8, 8, 1, seed=seed, device="cpu")).fit(texts)

    def classifier() -> RecurrentClassifier:
        return RecurrentClassifier(str(tmp_path / "lm"), units=4, batch=2, epochs=2, unfreeze=1, device="cpu")

    save(language_model(0), tmp_path / "lm")
    begun(classifier(), (texts, labels), tmp_path / "run")
    begun(classifier(), (texts, labels), tmp_path / "run")
    save(language_model(1), tmp_path / "lm")
    with pytest.raises(InputError, match="another run"):
        begun(classifier(), (texts, labels), tmp_path / "run")
