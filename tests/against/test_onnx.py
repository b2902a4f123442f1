"""onnxruntime as the oracle of what we export: the same log-probabilities and the same states."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

from foreword.errors import InputError
from foreword.neural.awd_lstm import AWDLSTM
from foreword.neural.recurrent import RecurrentLM
from foreword.nn.network import next_logs
from foreword.nn.onnx import write_onnx
from foreword.tokens.corpus import Corpus
from foreword.tokens.vocab import Vocab
from foreword.training.settings import Training

onnx: Any = pytest.importorskip("onnx", reason="onnx is not installed")
onnxruntime: Any = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")

torch.set_num_threads(1)
VOCAB = Vocab(["<unk>", "</s>", "ä\n", *(f"w{number}" for number in range(20))])
CORPUS = Corpus.from_ids([np.random.default_rng(0).integers(2, 23, 30) for _ in range(20)], VOCAB)
TRAINING = Training(epochs=2, batch=4, steps=10, rate=2.0, averages=())
CELLS = ("rnn", "irnn", "gru", "lstm", "awd-lstm")


@cache
def trained(cell: str) -> Any:
    if cell == "awd-lstm":
        return AWDLSTM(6, 9, 3, training=TRAINING, device="cpu").fit(CORPUS)
    return RecurrentLM(cell, 6, 9, 2, tied=False, training=TRAINING, device="cpu").fit(CORPUS)


def session(model: Any, path: Path) -> Any:
    write_onnx(model, path)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def blank(runtime: Any, texts: int) -> dict[str, Any]:
    """States of zeros, for every input that is one."""
    states = [given for given in runtime.get_inputs() if given.name != "ids"]
    return {given.name: np.zeros((1, texts, given.shape[2]), np.float32) for given in states}


def logs_of(model: Any, ids: Any) -> Any:
    """(steps, texts, V): what the model says after each word, begun from nothing."""
    state = model.network(VOCAB).start(ids.shape[1], torch.empty(0))
    hidden, _ = model.network(VOCAB).read(model.weights_, torch.from_numpy(ids), state)
    return next_logs(model.weights_, hidden.flatten(0, 1)).view(*ids.shape, -1).detach().numpy()


@pytest.mark.parametrize("cell", CELLS)
def test_a_whole_text_gives_the_models_numbers(cell: str, tmp_path: Path) -> None:
    model = trained(cell)
    runtime = session(model, tmp_path / "model.onnx")
    ids = np.random.default_rng(1).integers(0, len(VOCAB), (13, 4))
    found = runtime.run(["logprobs"], {"ids": ids, **blank(runtime, 4)})[0]
    assert_allclose(found, logs_of(model, ids), rtol=0, atol=1e-5)


@pytest.mark.parametrize("cell", CELLS)
def test_a_word_at_a_time_as_the_model_itself_steps(cell: str, tmp_path: Path) -> None:
    """Its states are fed again; the first id is ``</s>``, as in ``start``."""
    model = trained(cell)
    runtime = session(model, tmp_path / "model.onnx")
    state, held, names = model.start(2), blank(runtime, 2), [out.name for out in runtime.get_outputs()]
    words = [np.full(2, VOCAB.end), *np.random.default_rng(2).integers(0, len(VOCAB), (6, 2))]
    for step, ids in enumerate(words):
        out = dict(zip(names, runtime.run(names, {"ids": ids[None], **held}), strict=True))
        held = {name.removesuffix("_after"): part for name, part in out.items() if name.endswith("_after")}
        state = state if step == 0 else model.advance(state, ids)
        assert_allclose(out["logprobs"][0], model.next_logprobs(state), rtol=0, atol=1e-5)


@pytest.mark.parametrize("cell", CELLS)
def test_onnx_itself_finds_nothing_wrong(cell: str, tmp_path: Path) -> None:
    write_onnx(trained(cell), tmp_path / "model.onnx")
    model = onnx.load(str(tmp_path / "model.onnx"))
    onnx.checker.check_model(model, full_check=True)
    told = {entry.key: entry.value for entry in model.metadata_props}
    assert json.loads(told["vocab"]) == VOCAB.tokens
    assert int(told["end"]) == VOCAB.end


def test_what_onnx_has_no_operator_for_is_refused(tmp_path: Path) -> None:
    model = RecurrentLM("min-gru", 4, 5, 1, training=TRAINING, device="cpu").fit(CORPUS)
    with pytest.raises(InputError, match="not of min-gru"):
        write_onnx(model, tmp_path / "model.onnx")
    assert list(tmp_path.iterdir()) == []
