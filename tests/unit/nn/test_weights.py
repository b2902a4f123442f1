"""Weights to and from PyTorch and Keras: the layers say the same with them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from foreword.errors import InputError
from foreword.evaluate.gates import Layers
from foreword.neural.recurrent import RecurrentLM
from foreword.nn.cells import GRUCell, parameters, run, run_both_ways, sigmoid
from foreword.nn.gated import run_gated
from foreword.nn.layers import gru, lstm, rnn
from foreword.nn.weights import flip_update_gate, from_keras, from_torch, layer_count, to_keras, to_torch
from foreword.tokens.corpus import Corpus
from foreword.tokens.words import WordTokenizer

T, B, X, H = 6, 3, 4, 5
GATES = {"rnn": 1, "gru": 3, "lstm": 4}
TWO_EPOCHS = replace(RecurrentLM.TRAINING, epochs=2)
KERAS = (*GATES, "gru-before")
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
        elif cell == "gru-before":
            out = run_gated(cell, out, (zeros,), parts)[0]
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
        elif cell == "gru-before":  # reset_after=False
            x_z, x_r, x_h = np.split(x_t @ kernel + bias, 3, axis=1)
            u_z, u_r, u_h = np.split(recurrent, 3, axis=1)
            z, r = sigmoid(x_z + h @ u_z), sigmoid(x_r + h @ u_r)
            h = z * h + (1 - z) * np.tanh(x_h + (r * h) @ u_h)
        else:
            x_z, x_r, x_h = np.split(x_t @ kernel + bias[0], 3, axis=1)
            h_z, h_r, h_h = np.split(h @ recurrent + bias[1], 3, axis=1)
            z, r = sigmoid(x_z + h_z), sigmoid(x_r + h_r)
            h = z * h + (1 - z) * np.tanh(x_h + r * h_h)
        out.append(h)
    return np.stack(out)


def random_keras(cell: str, seed: int = 0) -> list[Any]:
    rng, wide = np.random.default_rng(seed), GATES[cell.removesuffix("-before")] * H
    shapes = [(X, wide), (H, wide), (2, wide) if cell == "gru" else (wide,)]
    return [rng.normal(size=shape) for shape in shapes]


@pytest.mark.parametrize("cell", KERAS)
def test_keras_weights_say_the_same_here_and_come_back(cell: str) -> None:
    """Row L07: Keras' equations, reset_after=True ("gru") and False ("gru-before"); Keras is not run."""
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
    for cell in KERAS:
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


def printed_gru(gates: dict[str, Any], x: Any) -> Any:
    """The sources' GRU, one text at a time: a matrix (H, H + X) and a bias for each gate, on [h; x]."""
    out = np.zeros((len(x), x.shape[1], H))
    for text in range(x.shape[1]):
        h = np.zeros(H)
        for t, x_t in enumerate(x[:, text]):
            r, z = (sigmoid(gates[name][0] @ np.append(h, x_t) + gates[name][1]) for name in "rz")
            candidate = np.tanh(gates["h"][0] @ np.append(r * h, x_t) + gates["h"][1])
            h = out[t, text] = (1 - z) * h + z * candidate
    return out


def sources_cell(seed: int = 5) -> tuple[dict[str, Any], GRUCell]:
    """Weights as the sources print them, N(0, 1/√Z) and biases, and the cell that has them."""
    rng = np.random.default_rng(seed)
    gates = {name: (rng.normal(0, (H + X) ** -0.5, (H, H + X)), rng.normal(size=H)) for name in "rzh"}
    cell = GRUCell(X, H, reset="before", z_keeps=False)
    cell.weights["W_h"] = np.concatenate([gates[name][0][:, :H] for name in "rzh"])
    cell.weights["W_x"] = np.concatenate([gates[name][0][:, H:] for name in "rzh"])
    cell.weights["b"] = np.concatenate([gates[name][1] for name in "rzh"])
    return gates, cell


def layers_of(cell: GRUCell) -> dict[str, Any]:
    names = {"W_x": "input", "W_h": "recurrent", "b": "input_bias", "b_h": "recurrent_bias"}
    return {f"layer0.{names[name]}": part for name, part in cell.weights.items()}


def test_l07_the_sources_gru_as_printed() -> None:
    """Row L07: reset before the product, z = 1 replaces: the printed formula, our NumPy cell, and, with z flipped, our
    PyTorch layer and Keras' equations with reset_after=False. The kernels are held to the PyTorch layer in test_gated.
    """
    gates, cell = sources_cell()
    x = np.random.default_rng(6).normal(size=(T, B, X))
    expected = printed_gru(gates, x)
    np.testing.assert_allclose(run(cell, x)[0], expected, atol=1e-12)
    flipped = flip_update_gate(layers_of(cell))
    np.testing.assert_allclose(through(flipped, "gru-before", x), expected, atol=1e-12)
    np.testing.assert_allclose(keras_forward(to_keras(flipped, "gru-before"), "gru-before", x), expected, atol=1e-12)


def test_l07_the_sources_gru_is_no_other_gru() -> None:
    """Row L07: the reset after the product, with the same numbers, is another function, as soon as there is a state."""
    gates, cell = sources_cell()
    x = np.random.default_rng(6).normal(size=(T, B, X))
    other = through(flip_update_gate(layers_of(cell)), "gru", x)
    np.testing.assert_allclose(other[0], printed_gru(gates, x)[0], atol=1e-12)  # the first state is zero
    assert np.abs(other - printed_gru(gates, x)).max() > 0.01


@pytest.mark.parametrize("reset", ["before", "after"])
def test_l07_flipping_the_update_gate_changes_its_sense_and_nothing_else(reset: Any) -> None:
    """Row L07, erratum Z03: z′ = 1 − z; twice is once around, and other weights are left alone."""
    replaces, keeps = (GRUCell(X, H, reset=reset, z_keeps=sense, seed=5) for sense in (False, True))
    keeps.weights = flip_update_gate(replaces.weights)
    x = np.random.default_rng(6).normal(size=(T, B, X))
    np.testing.assert_allclose(run(keeps, x)[0], run(replaces, x)[0], atol=1e-12)
    if reset == "after":
        np.testing.assert_allclose(through(layers_of(keeps), "gru", x), run(replaces, x)[0], atol=1e-12)
    for name, part in flip_update_gate(keeps.weights).items():
        np.testing.assert_array_equal(part, replaces.weights[name])
    assert (flip_update_gate({"embedding": np.ones((3, 2))})["embedding"] == 1).all()


def test_l07_a_language_model_of_the_sources_gru() -> None:
    """Row L07: ``RecurrentLM("gru-before")`` reads as the printed formula does, with its weights flipped."""
    texts = ["a b c d e a b", "e d c b a a c"] * 5
    corpus = Corpus.from_texts(texts, WordTokenizer().fit(texts))
    model = RecurrentLM("gru-before", X, H, 1, tied=False, training=TWO_EPOCHS, device="cpu").fit(corpus)
    layers = Layers.of(model)
    ids = np.array([corpus.vocab.end, 4, 3, 5, 6, 2])
    flipped = flip_update_gate(layers.cells[0].weights)
    parts = [np.split(flipped[name], 3) for name in ("W_h", "W_x", "b", "b_h")]
    gates = {
        name: (np.concatenate((w_h, w_x), axis=1), b + b_h)
        for name, w_h, w_x, b, b_h in zip("rzh", *parts, strict=True)
    }
    states = printed_gru(gates, layers.embedding[ids][:, None])[:, 0]
    scores = layers.scores(states)
    logs = scores - np.log(np.exp(scores).sum(1, keepdims=True))
    state = model.start()
    for number, expected in enumerate(logs):
        state = model.advance(state, ids[number : number + 1]) if number else state
        np.testing.assert_allclose(model.next_logprobs(state)[0], expected, atol=1e-5)


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
        (
            lambda: from_keras([np.zeros((2, 9)), np.zeros((3, 9)), np.zeros(9)], "gru"),
            "reset_after=False is a gru-before",
        ),
        (lambda: to_torch(layers_of(GRUCell(2, 3)), "gru-before"), "PyTorch has no gru-before"),
        (lambda: flip_update_gate({"W_x": np.zeros((4, 2))}), "W_x has 4 rows"),
        (lambda: from_keras([np.zeros((2, 9)), np.zeros((3, 12))], "lstm"), "expected \\(I, 12\\)"),
        (lambda: from_keras([np.zeros((2, 9))], "lstm"), "1 arrays"),
        (lambda: to_keras(from_torch(torch.nn.RNN(2, 3).state_dict()), "mgu"), "'mgu'"),
    ],
)
def test_what_cannot_be_converted_is_refused(convert: Any, told: str) -> None:
    with pytest.raises(InputError, match=told):
        convert()
