"""``foreword train`` for models that need torch."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from foreword.errors import install_command
from foreword.kinds import trained_as
from foreword.neural.model import NeuralLM
from foreword.protocols import Step

from .conftest import TEXT, Foreword

SMALL = ("--set", "epochs=2", "--set", "batch=4", "--set", "steps=5", "--device", "cpu")
SIZES = {
    "mogrifier": ("--set", "units=4", "--set", "layers=1", "--set", "rounds=2", "--set", "rank=2"),
    "bengio": ("--set", "embedding=4", "--set", "hidden=5", "--set", "order=3"),
    "transformer": ("--set", "units=4", "--set", "layers=1", "--set", "heads=2", "--set", "context=6"),
}
LAYERS = ("--set", "embedding=4", "--set", "hidden=5", "--set", "layers=1")


@pytest.fixture
def poem(tmp_path: Path) -> Path:
    path = tmp_path / "poem.txt"
    path.write_text(TEXT * 5)
    return path


@pytest.mark.parametrize("kind", [name for name, kind in trained_as("language-model").items() if kind.network])
def test_every_kind_is_trained_evaluated_scored_and_generates(
    foreword: Foreword, poem: Path, tmp_path: Path, kind: str, listing: Callable[[Path], list[str]]
) -> None:
    sizes = SIZES.get(kind, LAYERS)
    trained = foreword("train", kind, poem, "-o", tmp_path / "model", *SMALL, *sizes, "--valid", poem)
    assert trained.exit_code == 0, trained.stderr
    assert trained.stderr.splitlines()[-1].startswith(f"{kind}: 190 tokens, a vocabulary of 12")
    assert "model.checkpoint" not in listing(tmp_path)
    told = json.loads(foreword("evaluate", tmp_path / "model", poem, "--json").stdout)
    assert 1 < told["perplexity"] < 30
    assert float(foreword("score", tmp_path / "model", input="the cat sat\n").stdout.split()[0]) < 0
    said = [foreword("generate", tmp_path / "model", "--max-tokens", 5, "--seed", 1).stdout for _ in range(2)]
    assert said[0] == said[1] != ""


def test_characters(foreword: Foreword, poem: Path, tmp_path: Path) -> None:
    assert foreword("tokenize", "train", poem, "-o", tmp_path / "signs", "--kind", "character").exit_code == 0
    made = foreword("train", "gru", poem, "-o", tmp_path / "model", *SMALL, *LAYERS, "--tokenizer", tmp_path / "signs")
    assert made.exit_code == 0, made.stderr
    assert foreword("generate", tmp_path / "model", "--prompt", "the ", "--max-tokens", 9).exit_code == 0


def test_settings_reach_training_and_dropout(foreword: Foreword, poem: Path, tmp_path: Path) -> None:
    chosen = ("optimiser=sgd", "rate=0.5", "averages=[0,2]", "dropout=0.25", "dropout.recurrent=0.1", "forget-bias=2")
    words = [word for setting in chosen for word in ("--set", setting)]
    made = foreword("train", "lstm", poem, "-o", tmp_path / "model", *SMALL, *LAYERS, *words)
    assert made.exit_code == 0, made.stderr
    settings = json.loads((tmp_path / "model" / "model.json").read_text())["settings"]["model"]["settings"]
    assert settings["cell"] == "lstm"
    assert settings["forget_bias"] == 2
    assert settings["training"]["optimiser"] == "sgd"
    assert settings["training"]["averages"] == [0, 2]
    assert settings["dropout"] == {"words": 0, "input": 0.25, "between": 0.25, "output": 0.25, "recurrent": 0.1}


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (("--set", "colour=red"), 2, "no setting 'colour'"),
        (("--set", "cell=gru"), 2, "no setting 'cell'"),
        (("--set", "epochs=many"), 2, "a whole number"),
        (("--set", "dropout.input=lots"), 2, "a number"),
        (("--set", "dropout=1.5"), 2, "dropout of input is 1.5"),
        (("--set", "rate=-1"), 2, "rate is -1"),
        (("--set", "hidden=0"), 2, "hidden is 0"),
        (("--set", "patience=2"), 2, "held-out text"),
        (("--device", "tpu"), 2, "device is 'tpu'"),
        (("--set", "optimiser=sgd", "--set", "rate=1e30", "--set", "clip=0"), 1, "rate than 1e+30"),
    ],
)
def test_wrong_settings_leave_nothing(
    foreword: Foreword,
    poem: Path,
    tmp_path: Path,
    words: tuple[str, ...],
    status: int,
    said: str,
    listing: Callable[[Path], list[str]],
) -> None:
    result = foreword("train", "rnn", poem, "-o", tmp_path / "model", *SMALL, *LAYERS, *words)
    assert result.exit_code == status
    assert said in " ".join(result.stderr.replace("│", " ").split())
    if status == 1:
        assert result.stderr.count("\n") == 1
    assert listing(tmp_path) == ["poem.txt"]


@pytest.mark.parametrize("typed", ["hidden", "units"])
def test_a_refused_setting_has_the_name_that_was_typed(
    foreword: Foreword, poem: Path, tmp_path: Path, typed: str
) -> None:
    """The constructor says units; both names are accepted."""
    result = foreword("train", "transformer", poem, "-o", tmp_path / "model", "--set", f"{typed}=-3")
    assert (result.exit_code, result.stderr) == (2, f"foreword: {typed} is -3: expected at least 1\n")
    result = foreword("train", "transformer", poem, "-o", tmp_path / "model", "--set", f"{typed}=3.5")
    assert f"{typed} cannot be '3.5'" in result.stderr


def test_device_is_for_neural_models(foreword: Foreword, poem: Path, tmp_path: Path) -> None:
    assert foreword("train", "unigram", poem, "-o", tmp_path / "model", "--device", "cpu").exit_code == 2


def test_no_gpu_where_one_is_asked_for(
    foreword: Foreword, poem: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    result = foreword("train", "lstm", poem, "-o", tmp_path / "model", *SMALL, *LAYERS, "--device", "cuda")
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
    assert "no GPU" in result.stderr


def test_without_torch_one_line_says_what_to_install(poem: Path, tmp_path: Path) -> None:
    code = "import sys; sys.modules['torch'] = None; from foreword.cli import main; main()"
    words = [sys.executable, "-c", code, "train", "lstm", str(poem), "-o", str(tmp_path / "model")]
    told = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (told.returncode, told.stdout) == (1, "")
    assert told.stderr == f"foreword: a neural language model needs torch: {install_command('neural')}\n"


def test_ctrl_c_keeps_the_run_and_resume_ends_it_as_if_nothing_had_been(
    foreword: Foreword, poem: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("train", "rnn", poem, *SMALL, *LAYERS, "--set", "epochs=20", "--valid", poem)
    assert foreword(*words, "-o", tmp_path / "whole").exit_code == 0
    train = NeuralLM.train

    def interrupted(*given: Any, **named: Any) -> Iterator[Step]:
        for place, step in enumerate(train(*given, **named)):
            if place == 2:
                os.kill(os.getpid(), signal.SIGINT)
            yield step

    monkeypatch.setattr(NeuralLM, "train", interrupted)
    result = foreword(*words, "-o", tmp_path / "stopped")
    monkeypatch.undo()
    assert result.exit_code == 130
    assert result.stderr.count("\n") == 1
    assert "stopped.checkpoint: --resume continues" in result.stderr
    assert not (tmp_path / "stopped").exists()
    resumed = foreword(*words, "-o", tmp_path / "stopped", "--resume")
    assert resumed.exit_code == 0, resumed.stderr
    assert not (tmp_path / "stopped.checkpoint").exists()
    arrays = [(tmp_path / name / "arrays.safetensors").read_bytes() for name in ("whole", "stopped")]
    assert arrays[0] == arrays[1]
    again = foreword(*words, "-o", tmp_path / "stopped", "--resume")
    assert (again.exit_code, again.stderr.count("\n")) == (0, 1)
    assert "nothing to resume" in again.stderr


def test_resume_refuses_the_run_of_other_settings(foreword: Foreword, poem: Path, tmp_path: Path) -> None:
    from foreword.storage.checkpoint import Checkpoint

    Checkpoint(tmp_path / "model.checkpoint").write({}, "RecurrentLM", "another")
    result = foreword("train", "rnn", poem, "-o", tmp_path / "model", *SMALL, *LAYERS, "--resume")
    assert (result.exit_code, result.stderr.count("\n")) == (1, 1)
    assert "the checkpoint of another run" in result.stderr
