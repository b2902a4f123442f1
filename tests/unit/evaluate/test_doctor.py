"""The checklist on models whose trouble is known, because it was put there."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from foreword.errors import InputError
from foreword.evaluate.doctor import WARM_UP, Check, Diagnosis, examine
from foreword.neural.recurrent import MODEST, RecurrentLM
from foreword.tokens.corpus import Corpus
from foreword.tokens.vocab import Vocab

torch.set_num_threads(1)
VOCAB = Vocab(["<unk>", "</s>", *"abcdefgh"])
CORPUS = Corpus.from_ids([np.random.default_rng(row).integers(2, 10, size=30).tolist() for row in range(12)], VOCAB)
QUICK = replace(MODEST, epochs=1, batch=4, steps=10)


def fitted(cell: str = "lstm", **settings: Any) -> RecurrentLM:
    return RecurrentLM(cell, 8, 8, 2, training=QUICK, device="cpu", **settings).fit(CORPUS)


def found_in(model: Any, **how: Any) -> dict[str, Check]:
    return {check.name: check for check in examine(model, CORPUS, steps=20, windows=6, **how).checks}


@pytest.mark.parametrize("cell", ["rnn", "irnn", "gru", "lstm", "min-gru"])
def test_p08_every_kind_of_cell_is_examined(cell: str) -> None:
    """P08: the list on a real run; what does not apply to a kind of cell is left out."""
    checks = found_in(fitted(cell))
    assert {"weights", "loss", "gradient by lag", "truncation", "radius of a step", "dead units"} <= set(checks)
    assert {"clipping", "learning rate"} <= set(checks)
    assert ("memory" in checks) == (cell in ("gru", "lstm", "min-gru"))
    assert ("saturated units" in checks) == (cell != "min-gru")
    assert checks["weights"].verdict == "good"


def changed(model: RecurrentLM, name: str, factor: float | None = None, value: float | None = None) -> RecurrentLM:
    weight = model.weights_[name]
    with torch.no_grad():
        if factor is not None:
            weight.mul_(factor)
        if value is not None:
            weight.fill_(value)
    return model


def test_weights_that_are_no_numbers_end_the_examination() -> None:
    """R18: the tensor is named."""
    diagnosis = examine(changed(fitted(), "layer1.recurrent", value=float("nan")), CORPUS)
    assert [check.verdict for check in diagnosis.checks] == ["bad"]
    assert "layer1.W_h" in diagnosis.checks[0].value
    assert diagnosis.worst == "bad"


def test_large_weights_are_told_as_saturation() -> None:
    sick = changed(changed(fitted("rnn"), "layer0.input", factor=500), "layer1.input", factor=100)
    check = found_in(sick)["saturated units"]
    assert check.verdict == "bad"
    assert "lower rate" in check.advice
    assert found_in(fitted("rnn"))["saturated units"].verdict == "good"


def test_r18_a_vanishing_gradient_is_told_although_nothing_else_shows_it() -> None:
    """R18: recurrent weights near zero; the loss is as good as ever, and the report says that nothing is carried."""
    model = fitted("rnn")
    healthy = found_in(model)["loss"].numbers["loss"]
    sick = changed(changed(model, "layer0.recurrent", factor=0.01), "layer1.recurrent", factor=0.01)
    checks = found_in(sick)
    assert checks["loss"].numbers["loss"] == pytest.approx(healthy, rel=0.05)
    assert checks["gradient by lag"].verdict == "watch"
    assert "silently" in checks["gradient by lag"].advice
    assert checks["gradient by lag"].numbers["silent_from"] == 2
    assert checks["radius of a step"].verdict == "watch"


def test_an_exploding_gradient_is_bad() -> None:
    model = fitted("irnn")
    # The matrix begins as a tenth of the identity, whose eigenvalues become 2.5.
    sick = changed(changed(model, "layer0.recurrent", factor=25), "layer1.recurrent", factor=25)
    assert found_in(sick)["gradient by lag"].verdict == "bad"


def test_gates_that_let_go_are_told() -> None:
    model = fitted("lstm")
    for layer in range(2):
        bias = model.weights_[f"layer{layer}.input_bias"]
        with torch.no_grad():
            bias[8:16] = -6.0
    check = found_in(model)["memory"]
    assert check.verdict == "watch"
    assert "forget bias" in check.advice
    kept = found_in(fitted("lstm"))["memory"].numbers["kept"]
    assert isinstance(kept, list)
    assert all(isinstance(share, float) and 0.5 < share < 0.95 for share in kept)


def test_dead_units_are_counted() -> None:
    model = fitted("gru")
    for name in ("input", "recurrent", "input_bias", "recurrent_bias"):
        weight = model.weights_[f"layer0.{name}"]
        with torch.no_grad():
            weight[16:20] = 0.0  # half the candidates are always zero, and so is what they are mixed with
    check = found_in(model)["dead units"]
    assert check.numbers["dead"] == [0.5, 0.0]
    assert check.verdict == "bad"


def test_clipping_and_rate_follow_the_training_s_settings() -> None:
    model = fitted("lstm")
    model.training = replace(QUICK, clip=1e-6, rate=5.0)
    checks = found_in(model)
    assert checks["clipping"].verdict == "watch"
    assert checks["clipping"].numbers["clipped"] == 1.0
    assert checks["learning rate"].verdict == "watch"
    assert checks["learning rate"].advice.startswith("high as such go: try 0.0")
    model.training = replace(QUICK, optimiser="sgd", clip=5.0, rate=1e-9)
    assert found_in(model)["learning rate"].advice.startswith("low")


def test_the_gradient_of_the_weights_is_that_of_autograd() -> None:
    """The norm that clipping is told by, for tied weights, against PyTorch."""
    model = fitted("lstm")
    model.training = replace(QUICK, steps=20)
    told = found_in(model)["clipping"].numbers["gradient_norm"]
    ids = torch.from_numpy(np.asarray(CORPUS.ids, np.int64))
    starts = np.linspace(0, len(ids) - 21 - WARM_UP, 6).astype(int)
    inputs = torch.stack([ids[start : start + 20] for start in starts], 1)
    targets = torch.stack([ids[start + 1 : start + 21] for start in starts], 1)
    weights = {name: weight.detach().double().requires_grad_() for name, weight in model.weights_.items()}
    network = model.network(VOCAB)
    state = network.start(6, weights["bias"])
    hidden, _ = network.read(weights, inputs, state)
    scores = torch.nn.functional.linear(hidden, weights["embedding"], weights["bias"])
    loss = torch.nn.functional.cross_entropy(scores.flatten(0, 1), targets.flatten())
    gradients = torch.autograd.grad(loss, list(weights.values()))
    by_name = dict(zip(weights, gradients, strict=True))
    # The cells add their two biases up, so that one of the two gradients is theirs.
    total = sum(float((part**2).sum()) for name, part in by_name.items() if not name.endswith("recurrent_bias"))
    assert isinstance(told, list)
    assert told == pytest.approx([total**0.5], rel=1e-5)


def test_short_texts_and_progress() -> None:
    said: list[str] = []
    small = Corpus.from_ids([[2, 3, 4]], VOCAB)
    assert examine(fitted(), small, meter=lambda phase, done, total: said.append(phase)).gradients.shape == (3,)
    assert said[0] == "reading windows"
    with pytest.raises(InputError, match="another vocabulary"):
        examine(fitted(), Corpus.from_ids([[2]], Vocab(["<unk>", "</s>", "z"])))
    with pytest.raises(InputError, match="expected at least 3"):
        examine(fitted(), Corpus.from_ids([[2]], VOCAB))


def test_json_has_no_numbers_that_json_has_not() -> None:
    diagnosis = Diagnosis([Check("a", "b", "watch")], np.array([1.0, np.inf]))
    assert diagnosis.to_json()["gradient_by_lag"] == [1.0, None]
    assert diagnosis.to_json()["verdict"] == "watch"
    assert Diagnosis([Check("a", "b", "good")], np.empty(0)).worst == "good"
