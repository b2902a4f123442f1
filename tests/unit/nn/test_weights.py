"""Weights to and from PyTorch and Keras: the layers say the same with them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from foreword.errors import InputError
from foreword.nn.cells import GRUCell, parameters, run, run_both_ways, sigmoid
from foreword.nn.layers import gru, lstm, rnn
from foreword.nn.weights import from_keras, from_torch, layer_count, to_keras, to_torch

T, B, X, H = 6, 3, 4, 5
GATES = {"rnn": 1, "gru": 3, "lstm": 4}
TORCH: dict[str, Any] = {"rnn": torch.nn.RNN, "gru": torch.nn.GRU, "lstm": torch.nn.LSTM}


def through(weights: dict[str, Any], cell: str, x: Any) -> Any:
    """Our layers, one after the other, on float64."""
    out = torch.tensor(x)
    for layer in range(layer_count(weights)):
        names = ("input", "recurrent", "input_bias", "recurrent_bias")
        parts = [torch.tensor(np.asarray(weights[f"layer{layer}.{name}"], np.float64)) for name in names]
        zeros = torch.zeros(x.shape[1], parts[1].shape[1], dtype=torch.float64)
        if cell == "lstm":
            out = lstm(out, zeros, zeros, parts)[0]
        else:
            out = gru(out, zeros, parts)[0] if cell == "gru" else rnn(out, zeros, parts)[0]
    return out.numpy()


def keras_forward(parts: list[Any], cell: str, x: Any) -> Any:
    """A Keras layer by its documented equations: x (T, B, I), kernels used as ``x @ kernel``."""
    kernel, recurrent, bias = parts
    h = c = np.zeros((x.shape[1], len(recurrent)))
    out = []
    for x_t in x:
        if cell == "rnn":
            h = np.tanh(x_t @ kernel + h @ recurrent + bias)
        elif cell == "lstm":
            i, f, candidate, o = np.split(x_t @ kernel + h @ recurrent + bias, 4, axis=1)
            c = sigmoid(f) * c + sigmoid(i) * np.tanh(candidate)
            h = sigmoid(o) * np.tanh(c)
        else:
            x_z, x_r, x_h = np.split(x_t @ kernel + bias[0], 3, axis=1)
            h_z, h_r, h_h = np.split(h @ recurrent + bias[1], 3, axis=1)
            z, r = sigmoid(x_z + h_z), sigmoid(x_r + h_r)
            h = z * h + (1 - z) * np.tanh(x_h + r * h_h)
        out.append(h)
    return np.stack(out)


def random_keras(cell: str, seed: int = 0) -> list[Any]:
    rng, wide = np.random.default_rng(seed), GATES[cell] * H
    shapes = [(X, wide), (H, wide), (2, wide) if cell == "gru" else (wide,)]
    return [rng.normal(size=shape) for shape in shapes]


@pytest.mark.parametrize("cell", GATES)
def test_keras_weights_say_the_same_here_and_come_back(cell: str) -> None:
    """Row L07: the convention switch is a matter of order, sign and shape, never of numbers."""
    theirs, x = random_keras(cell), np.random.default_rng(1).normal(size=(T, B, X))
    ours = from_keras(theirs, cell)
    np.testing.assert_allclose(through(ours, cell, x), keras_forward(theirs, cell, x), atol=1e-12)
    for before, after in zip(theirs, to_keras(ours, cell), strict=True):
        np.testing.assert_array_equal(before, after)


@pytest.mark.parametrize("cell", GATES)
def test_our_two_biases_become_keras_own(cell: str) -> None:
    module = TORCH[cell](X, H, dtype=torch.float64)
    ours = from_torch({name: part.detach() for name, part in module.state_dict().items()})
    x = np.random.default_rng(2).normal(size=(T, B, X))
    with torch.no_grad():
        expected = module(torch.tensor(x))[0].numpy()
    np.testing.assert_allclose(keras_forward(to_keras(ours, cell), cell, x), expected, atol=1e-12)


def test_a_keras_layer_without_bias() -> None:
    for cell in GATES:
        kernel, recurrent, bias = random_keras(cell)
        x = np.random.default_rng(3).normal(size=(T, B, X))
        expected = keras_forward([kernel, recurrent, np.zeros_like(bias)], cell, x)
        np.testing.assert_allclose(through(from_keras([kernel, recurrent], cell), cell, x), expected, atol=1e-12)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("cell", GATES)
def test_stacked_torch_modules_there_and_back(cell: str, bias: bool) -> None:
    """Row S01: two layers, the states of one the inputs of the next."""
    module = TORCH[cell](X, H, num_layers=2, bias=bias, dtype=torch.float64)
    state = {name: part.detach().numpy() for name, part in module.state_dict().items()}
    ours = from_torch(state)
    assert layer_count(ours) == 2
    x = np.random.default_rng(4).normal(size=(T, B, X))
    with torch.no_grad():
        expected = module(torch.tensor(x))[0].numpy()
    np.testing.assert_allclose(through(ours, cell, x), expected, atol=1e-12)
    for name, part in to_torch(ours).items():
        np.testing.assert_array_equal(part, state.get(name, np.zeros(GATES[cell] * H)))


def test_the_sources_gru_becomes_torchs() -> None:
    """Row L07, erratum Z03: with z′ = 1 − z, that is z's weights negated, and the reset after the product."""
    cell = GRUCell(X, H, z_keeps=False, seed=5)
    weights = {name: part.copy() for name, part in cell.weights.items()}
    for part in weights.values():
        part[H : 2 * H] *= -1
    names = {"W_x": "input", "W_h": "recurrent", "b": "input_bias", "b_h": "recurrent_bias"}
    x = np.random.default_rng(6).normal(size=(T, B, X))
    found = through({f"layer0.{names[name]}": part for name, part in weights.items()}, "gru", x)
    np.testing.assert_allclose(found, run(cell, x)[0], atol=1e-12)


def test_both_ways_are_torchs_bidirectional_module() -> None:
    """Row S02: torch keeps the second direction under the suffix ``_reverse``; its outputs stand beside the first's."""
    module = torch.nn.GRU(X, H, bidirectional=True, dtype=torch.float64)
    cells = GRUCell(X, H), GRUCell(X, H)
    for cell, suffix in zip(cells, ("", "_reverse"), strict=True):
        for ours, theirs in (("W_x", "weight_ih"), ("W_h", "weight_hh"), ("b", "bias_ih"), ("b_h", "bias_hh")):
            cell.weights[ours] = getattr(module, f"{theirs}_l0{suffix}").detach().numpy()
    x = np.random.default_rng(7).normal(size=(T, B, X))
    with torch.no_grad():
        expected = module(torch.tensor(x))[0].numpy()
    np.testing.assert_allclose(run_both_ways(*cells, x), expected, atol=1e-12)
    assert sum(part.numel() for part in module.parameters()) == 2 * parameters(cells[0])


def test_parameter_counts_with_torchs_two_biases() -> None:
    """Row L08: 427,008 and 569,344 without biases, 428,544 and 571,392 with torch's two."""
    for kind, without, gates in ((torch.nn.GRU, 427_008, 3), (torch.nn.LSTM, 569_344, 4)):
        counted = sum(part.numel() for part in kind(300, 256).parameters())
        assert counted == without + 2 * gates * 256
        kept = from_torch({name: part.detach() for name, part in kind(300, 256).state_dict().items()})
        assert sum(part.size for part in kept.values()) == counted


@pytest.mark.parametrize(
    ("convert", "told"),
    [
        (lambda: from_torch(torch.nn.GRU(2, 3, bidirectional=True).state_dict()), "bias_hh_l0_reverse"),
        (lambda: from_torch(torch.nn.LSTM(2, 3, proj_size=2).state_dict()), "weight_hr_l0"),
        (lambda: from_torch({}), "found nothing"),
        (lambda: from_torch({"weight_hh_l0": np.zeros((3, 3))}), "weight_ih_l0 is missing"),
        (lambda: to_torch({"embedding": np.zeros((2, 2))}), "no recurrent layer"),
        (lambda: from_keras([np.zeros((2, 9)), np.zeros((3, 9)), np.zeros(9)], "gru"), "reset_after=True"),
        (lambda: from_keras([np.zeros((2, 9)), np.zeros((3, 12))], "lstm"), "expected \\(I, 12\\)"),
        (lambda: from_keras([np.zeros((2, 9))], "lstm"), "1 arrays"),
        (lambda: to_keras(from_torch(torch.nn.RNN(2, 3).state_dict()), "mgu"), "'mgu'"),
    ],
)
def test_what_cannot_be_converted_is_refused(convert: Any, told: str) -> None:
    with pytest.raises(InputError, match=told):
        convert()
