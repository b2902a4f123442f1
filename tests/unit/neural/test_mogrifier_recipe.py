"""recipes/mogrifier.py on a text of a few words: its switches, and what a row says of them."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from foreword.tokens.corpus import Corpus
from foreword.tokens.vocab import Vocab

RECIPE = Path(__file__).parents[3] / "recipes" / "mogrifier.py"
TINY = ("--updates", "4", "--units", "8", "--rank", "2", "--batch", "4")
WORDS = ["the", "cat", "sat", "on", "the", "mat", "and", "the", "dog", "ran", "to", "the", "<unk>", "cat"]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    for split, lines in (("train", 60), ("valid", 12), ("test", 12)):
        text = "\n".join(" ".join(WORDS[at % 7 :]) for at in range(lines))
        (tmp_path / f"{split}.txt").write_text(text + "\n")
    return tmp_path


def run(data: Path, *options: str) -> dict[str, Any]:
    """Run the recipe; return its last row."""
    out = data / "rows.json"
    command = [sys.executable, str(RECIPE), "--data", str(data), "--out", str(out), *TINY, *options]
    done = subprocess.run(
        command, capture_output=True, text=True, env={"CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1"}
    )
    assert done.returncode == 0, done.stderr
    row: dict[str, Any] = json.loads(out.read_text())["rows"][-1]
    return row


@pytest.mark.long
def test_a_trial_records_what_it_changed_and_reads_no_test_text(data: Path) -> None:
    """Not by Monte Carlo either."""
    (data / "test.txt").write_text("")  # nothing to read
    changed = (
        "--two-tailed",
        "--dropout-scale",
        "0.5",
        "--l2-scale",
        "2",
        "--mc",
        "3",
        "--dropout",
        "input=0.6,state=0.3",
    )
    row = run(data, *changed)
    assert (row["updates"], row["without"]) == (4, "nothing")
    assert (row["two_tailed"], row["dropout_scale"], row["l2_scale"], row["batch"]) == (True, 0.5, 2.0, 4)
    assert row["dropout"] == {"input": 0.6, "state": 0.3}
    assert row["mc_valid"] > 1
    assert not [name for name in row if "test" in name]
    assert "--dropout-scale 0.5" in row["command"]


@pytest.mark.long
def test_words_may_have_fewer_units_than_the_layers_and_several_softmaxes(data: Path) -> None:
    wide, thin = run(data), run(data, "--embedding", "4", "--softmaxes", "2", "--rate", "0.003")
    assert (thin["embedding"], thin["softmaxes"], thin["rate"]) == (4, 2, 0.003)
    assert not {"embedding", "softmaxes", "rate", "dropout"} & set(wide)
    assert thin["parameters"] != wide["parameters"]


@pytest.mark.long
def test_the_rounds_have_no_bias_and_the_cuts_no_jitter(data: Path) -> None:
    usual, biasless, same = (run(data, "--without", each) for each in ("nothing", "bias", "jitter"))
    assert usual["parameters"] - biasless["parameters"] == 2 * 5 * 8  # layers, rounds, units
    assert usual["parameters"] == same["parameters"]
    assert same["without"] == "jitter"
    assert not {"two_tailed", "dropout_scale", "l2_scale"} & set(usual)


def test_without_jitter_every_epoch_is_cut_at_the_same_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(RECIPE.parent))
    recipe = importlib.import_module("mogrifier")
    vocab = Vocab(["<unk>", "</s>", "a", "b", "c", "d"])
    corpus = Corpus.from_ids([np.arange(500) % 5 % 4 + 2], vocab)
    training = replace(recipe.RECIPE, batch=4, steps=6)
    cut = []
    for kind in (recipe.Mogrifier, recipe.WithoutJitter):
        trainer = kind(8, 2, rank=2, training=training, device="cpu").trainer(corpus)
        for epoch in (1, 2):
            trainer.begin_epoch(epoch)
            cut.append(trainer.task.inputs.clone())
    assert not torch.equal(cut[0], cut[1])
    assert torch.equal(cut[2], cut[3])
