"""A run that was stopped ends as one that never was."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_array_equal

from foreword.errors import ForewordError, InputError
from foreword.neural.awd_lstm import AWDLSTM
from foreword.neural.model import NeuralLM
from foreword.neural.recurrent import MODEST, RecurrentLM
from foreword.neural.transformer import TransformerLM
from foreword.storage.checkpoint import Checkpoint
from foreword.storage.safetensors import read_arrays, write_arrays
from foreword.tokens.corpus import Corpus
from foreword.tokens.vocab import Vocab
from foreword.training.settings import Training

torch.set_num_threads(1)
CORPUS = Corpus.from_ids([[2, 3, 4] * 3 for _ in range(6)], Vocab(["<unk>", "</s>", "a", "b", "c"]))


def model(seed: int = 0) -> AWDLSTM:
    return AWDLSTM(4, 6, 2, training=Training(epochs=5, batch=3, steps=4, rate=5.0), seed=seed, device="cpu")


def stopped(path: Path, epochs: int) -> None:
    checkpoint = Checkpoint(path, every=0)
    for _ in model().train(CORPUS, valid=CORPUS, checkpoint=checkpoint):
        if checkpoint.written == epochs:
            return


@pytest.mark.parametrize("epochs", [1, 3])
def test_stopped_and_taken_up_again_it_ends_in_the_same_bits(tmp_path: Path, epochs: int) -> None:
    whole = model().fit(CORPUS, valid=CORPUS)
    stopped(tmp_path / "run", epochs)
    resumed = model()
    steps = list(resumed.train(CORPUS, valid=CORPUS, checkpoint=Checkpoint(tmp_path / "run")))
    assert steps[-1].done == steps[-1].total
    for name, weight in whole.to_parts().arrays.items():
        assert_array_equal(resumed.to_parts().arrays[name], weight)
    assert resumed.valid_score_ == whole.valid_score_


def test_the_checkpoint_of_another_run_is_refused(tmp_path: Path) -> None:
    stopped(tmp_path / "run", 1)
    with pytest.raises(InputError, match="another run"):
        next(model(seed=1).train(CORPUS, valid=CORPUS, checkpoint=Checkpoint(tmp_path / "run")))
    with pytest.raises(InputError, match="another run"):
        next(model().train(CORPUS[:5], valid=CORPUS, checkpoint=Checkpoint(tmp_path / "run")))


def test_a_checkpoint_that_was_cut_short_is_refused(tmp_path: Path) -> None:
    stopped(tmp_path / "run", 1)
    whole = (tmp_path / "run").read_bytes()
    (tmp_path / "run").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InputError):
        next(model().train(CORPUS, valid=CORPUS, checkpoint=Checkpoint(tmp_path / "run")))


TINY = replace(MODEST, epochs=4, batch=3, steps=4, rate=0.01)
RUNS: dict[str, Any] = {
    "adam": lambda: RecurrentLM("gru", 4, 6, 1, training=TINY, device="cpu"),
    "plateau": lambda: RecurrentLM("rnn", 4, 6, 1, training=replace(TINY, schedule="plateau", wait=1), device="cpu"),
    "nt-asgd": lambda: RecurrentLM(
        "lstm", 4, 6, 1, training=replace(TINY, schedule="nt-asgd", wait=1, averages=(0.0,)), device="cpu"
    ),
    "vary": lambda: RecurrentLM("lstm", 4, 6, 1, training=replace(TINY, vary=True, steps=6), device="cpu"),
    "sampled": lambda: RecurrentLM("lstm", 4, 6, 1, training=replace(TINY, sampled=2), device="cpu"),
    "mogrifier and mixture": lambda: AWDLSTM(4, 6, 2, mogrify=2, softmaxes=2, training=TINY, device="cpu"),
    "transformer": lambda: TransformerLM(4, 1, 2, 3, training=TINY, device="cpu"),
}


def weights_of(trained: NeuralLM) -> Iterator[bytes]:
    for array in trained.to_parts().arrays.values():
        yield array.tobytes()


@pytest.mark.parametrize("name", RUNS)
@pytest.mark.parametrize("updates", [1, 5, 8])
def test_stopped_in_the_middle_of_an_epoch_it_ends_in_the_same_bits(tmp_path: Path, name: str, updates: int) -> None:
    """Optimiser, recurrent state, random numbers and place in the text are all kept."""
    build = RUNS[name]
    whole = build().fit(CORPUS, valid=CORPUS[:2])
    checkpoint = Checkpoint(tmp_path / "run", every=0)
    for _ in build().train(CORPUS, valid=CORPUS[:2], checkpoint=checkpoint):
        if checkpoint.written == updates:
            break
    resumed = build()
    for _ in resumed.train(CORPUS, valid=CORPUS[:2], checkpoint=Checkpoint(tmp_path / "run")):
        pass
    assert list(weights_of(resumed)) == list(weights_of(whole))
    assert resumed.valid_score_ == whole.valid_score_


def test_a_run_that_had_ended_has_nothing_left_to_do(tmp_path: Path) -> None:
    first, second = RUNS["adam"](), RUNS["adam"]()
    assert list(first.train(CORPUS, checkpoint=Checkpoint(tmp_path / "run")))
    assert list(second.train(CORPUS, checkpoint=Checkpoint(tmp_path / "run"))) == []
    assert list(weights_of(first)) == list(weights_of(second))


def damaged(path: Path, what: str) -> None:
    arrays = {name: np.array(array) for name, array in read_arrays(path).items()}
    if what == "version":
        arrays["about"] = np.frombuffer(json.dumps({"version": 99, "kind": "AWDLSTM", "run": ""}).encode(), np.uint8)
    elif what == "no checkpoint":
        del arrays["about"]
    elif what == "shape":
        arrays["weights"] = arrays["weights"][:-1]
    elif what == "place":
        arrays["where"][1] = 10_000
    else:
        arrays["where"][0] = -3
    write_arrays(path, arrays)


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ("version", "version 99"),
        ("no checkpoint", "not a checkpoint"),
        ("shape", "weights is not float32"),
        ("place", "no update 10000"),
        ("epoch", "no epoch -3"),
    ],
)
def test_a_checkpoint_that_cannot_be_gone_on_from_says_why_in_one_line(tmp_path: Path, what: str, said: str) -> None:
    stopped(tmp_path / "run", 1)
    damaged(tmp_path / "run", what)
    with pytest.raises(InputError, match=said) as told:
        next(model().train(CORPUS, valid=CORPUS, checkpoint=Checkpoint(tmp_path / "run")))
    assert str(tmp_path / "run") in str(told.value)
    assert "\n" not in str(told.value)


def test_a_checkpoint_with_states_in_float16_is_resumed(tmp_path: Path) -> None:
    """Older versions carried all states in half precision; now all but h are float32."""
    checkpoint = Checkpoint(tmp_path / "run", every=0)
    for _ in RUNS["vary"]().train(CORPUS, checkpoint=checkpoint):
        if checkpoint.written:
            break
    arrays = {name: np.array(array) for name, array in read_arrays(tmp_path / "run").items()}
    arrays["state1"] = arrays["state1"].astype(np.float16)
    write_arrays(tmp_path / "run", arrays)
    steps = list(RUNS["vary"]().train(CORPUS, checkpoint=Checkpoint(tmp_path / "run")))
    assert steps[-1].done == steps[-1].total


def test_the_checkpoint_of_another_model_is_refused(tmp_path: Path) -> None:
    stopped(tmp_path / "run", 1)
    with pytest.raises(ForewordError, match="another model: 'AWDLSTM', not 'RecurrentLM'"):
        next(RUNS["adam"]().train(CORPUS, checkpoint=Checkpoint(tmp_path / "run")))


def test_training_stops_when_the_time_is_up_and_keeps_what_it_has() -> None:
    quick = RecurrentLM("lstm", 4, 6, 1, training=replace(TINY, epochs=100_000, seconds=0.5), device="cpu")
    began = time.monotonic()
    steps = list(quick.train(CORPUS, valid=CORPUS))
    assert time.monotonic() - began < 10
    assert steps[-1].rate < 0.5 * steps[0].rate
    assert steps[-1].total < 2 * steps[-1].done
    assert quick.valid_score_ > -np.log(5)


def test_training_stops_when_the_held_out_text_gets_no_better() -> None:
    """Trained on one text and tuned on its reverse: what is kept is the best look, not the last."""
    other = Corpus.from_ids([[4, 3, 2] * 3 for _ in range(6)], CORPUS.vocab)
    settings = replace(TINY, epochs=500, rate=0.05, schedule="constant", patience=3)
    early = RecurrentLM("lstm", 4, 6, 1, training=settings, device="cpu")
    steps = list(early.train(CORPUS, valid=other))
    assert steps[-1].done < steps[-1].total / 2
    assert early.valid_score_ == pytest.approx(early.score(other), abs=0.2)
