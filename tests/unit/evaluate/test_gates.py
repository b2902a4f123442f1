"""Gates read off a trained model: the NumPy copy says what the model says, and its gates are those of the equations."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from numpy.testing import assert_allclose

from foreword.errors import InputError, SettingError
from foreword.evaluate.gates import Layers, gate_traces, gates_of, kept_shares
from foreword.evaluate.gradients import step_jacobians
from foreword.ngram.unigram import UnigramLM
from foreword.nn.cells import LSTMCell, run, run_back, sigmoid
from foreword.picture.heat import gates
from foreword.tokens.corpus import Corpus
from foreword.tokens.vocab import Vocab

VOCAB = Vocab(["<unk>", "</s>", "a", "b", "c"])
NAMES = ("input", "recurrent", "input_bias", "recurrent_bias")


class Model:
    """Random weights under the names that the recurrent language models use."""

    def __init__(self, gate_count: int, layers: int = 2, units: int = 4, cell: str = "") -> None:
        random = np.random.default_rng(0)
        self.cell = cell
        self.weights_: dict[str, Any] = {"embedding": random.normal(size=(5, units)), "bias": random.normal(size=5)}
        for layer in range(layers):
            size = gate_count * units
            shapes = [(size, units), (size, units), (size,), (size,)]
            for name, shape in zip(NAMES, shapes, strict=True):
                self.weights_[f"layer{layer}.{name}"] = random.normal(size=shape)


@pytest.mark.parametrize(
    ("gate_count", "kind", "torch_name"), [(1, "rnn", "RNN"), (3, "gru", "GRU"), (4, "lstm", "LSTM")]
)
def test_a_model_taken_apart_reads_as_torch_does(gate_count: int, kind: str, torch_name: str) -> None:
    torch = pytest.importorskip("torch")
    model = Model(gate_count)
    layers = Layers.of(model)
    assert layers.kind == kind
    ids = np.random.default_rng(1).integers(5, size=(6, 3))
    twin = getattr(torch.nn, torch_name)(4, 4, num_layers=2, dtype=torch.float64)
    with torch.no_grad():
        for layer in range(2):
            for theirs, ours in zip(("weight_ih", "weight_hh", "bias_ih", "bias_hh"), NAMES, strict=True):
                getattr(twin, f"{theirs}_l{layer}").copy_(torch.tensor(model.weights_[f"layer{layer}.{ours}"]))
        expected, _ = twin(torch.tensor(model.weights_["embedding"][ids]))
    said, kept = layers.read(ids)
    assert_allclose(said[-1], expected.numpy(), atol=1e-12)
    assert len(kept) == 2
    assert_allclose(layers.scores(said[-1][-1]), said[-1][-1] @ model.weights_["embedding"].T + model.weights_["bias"])


def test_a_trained_awd_lstm_taken_apart_says_the_same() -> None:
    pytest.importorskip("torch")
    from foreword.neural.awd_lstm import AWDLSTM
    from foreword.training.settings import Training

    corpus = Corpus.from_ids([[2, 3, 4] * 4 for _ in range(6)], VOCAB)
    model = AWDLSTM(6, 8, 2, training=Training(epochs=2, batch=2, steps=6, rate=5.0), device="cpu").fit(corpus)
    layers = Layers.of(model)
    state = model.start()
    for id in (2, 3):
        state = model.advance(state, np.array([id]))
    end = VOCAB.ids(["</s>"])[0]  # what such a model reads for <s>
    said, _ = layers.read(np.array([[end], [2], [3]]))
    scores = layers.scores(said[-1][-1])[0]
    logs = scores - np.log(np.exp(scores).sum())
    assert_allclose(logs, model.next_logprobs(state)[0], atol=1e-5)


def test_l05_gate_traces_are_the_gates_of_each_token() -> None:
    """L05: arrays that can be exported, a row a token; the first layer's first step by hand."""
    model = Model(4)
    traces = gate_traces(Layers.of(model), np.array([2, 3, 4, 2]), ["a", "b", "c", "a"], layer=0)
    assert set(traces.gates) == {"input", "forget", "output"}
    assert {values.shape for values in traces.gates.values()} == {(4, 4)}
    a = (
        model.weights_["layer0.input"] @ model.weights_["embedding"][2]
        + model.weights_["layer0.input_bias"]
        + model.weights_["layer0.recurrent_bias"]
    )
    assert_allclose(traces.gates["input"][0], sigmoid(a[:4]))
    assert_allclose(traces.gates["forget"][0], sigmoid(a[4:8]))
    assert_allclose(traces.gates["output"][0], sigmoid(a[12:]))
    assert_allclose(traces.means()["forget"], traces.gates["forget"].mean(axis=1))


def test_l05_a_gru_s_update_gate_at_one_keeps_the_state() -> None:
    model = Model(3, layers=1)
    model.weights_["layer0.input_bias"][4:8] = 100
    traces = gate_traces(Layers.of(model), np.array([2, 3]), ["a", "b"])
    assert_allclose(traces.gates["update"], 1)
    said, kept = Layers.of(model).read(np.array([[2], [3]]))
    assert_allclose(said[0], 0, atol=1e-12)  # kept at what it was: zero
    assert gates_of("gru", kept[0])["reset"].shape == (2, 1, 4)


def test_a_relu_model_is_read_with_relu() -> None:
    assert (Layers.of(Model(1, cell="irnn")).read(np.array([[2], [3]]))[0][0] >= 0).all()


def test_a_minimal_gru_s_jacobian_is_what_it_keeps() -> None:
    model = Model(2, layers=2, cell="min-gru")
    for layer in range(2):
        del model.weights_[f"layer{layer}.recurrent"], model.weights_[f"layer{layer}.recurrent_bias"]
    layers = Layers.of(model)
    ids = np.random.default_rng(0).integers(5, size=(6, 2))
    said, kept = layers.read(ids)
    shares = kept_shares("min-gru", kept[1])
    assert_allclose(step_jacobians(layers.cells[1], kept[1], text=1), [np.diag(row) for row in shares[:, 1]])
    torch = pytest.importorskip("torch")
    from foreword.nn.layers import min_gru

    x = torch.tensor(model.weights_["embedding"][ids])
    for layer in range(2):
        weights = [torch.tensor(model.weights_[f"layer{layer}.{name}"]) for name in ("input", "input_bias")]
        x, _ = min_gru(x, torch.zeros(2, 4, dtype=torch.float64), weights)
    assert_allclose(said[-1], x.numpy(), atol=1e-12)
    cell = layers.cells[1]
    d_x, _ = run_back(cell, np.ones((6, 2, 4)), kept[1])
    tiny, below = 1e-6, said[0]
    for place in ((0, 0, 1), (3, 1, 2)):
        moved = below.copy()
        moved[place] += tiny
        slope = (run(cell, moved)[0].sum() - run(cell, below)[0].sum()) / tiny
        assert d_x[place] == pytest.approx(slope, rel=1e-4)
    with pytest.raises(InputError, match="no gate that keeps"):
        kept_shares("rnn", kept[1])


def test_what_has_no_gates_says_so() -> None:
    with pytest.raises(InputError, match="UnigramLM has no recurrent layers"):
        Layers.of(UnigramLM().fit(Corpus.from_ids([[2, 3]], VOCAB)))
    with pytest.raises(InputError, match="no gates"):
        gate_traces(Layers.of(Model(1)), np.array([2]), ["a"])
    with pytest.raises(InputError, match="2 ids but 1 tokens"):
        gate_traces(Layers.of(Model(4)), np.array([2, 3]), ["a"])
    with pytest.raises(InputError, match=r"layer0.recurrent has shape \(8, 4\)"):
        Layers.of(Model(2))


def test_the_picture_shows_every_token_and_the_units_that_vary_most() -> None:
    random = np.random.default_rng(0)
    values = np.full((3, 20), 0.5)
    values[:, 7] = [0.0, 1.0, 0.25]
    picture = gates(["the", "<cat>", "sat"], {"forget": values, "input": random.random((3, 20))}, units=2)
    tree = ElementTree.fromstring(picture.markup)
    squares = list(tree.iter("{http://www.w3.org/2000/svg}rect"))
    assert len(squares) == 3 * 2 * 2
    assert [rect.attrib["fill-opacity"] for rect in squares[:6:2]] == ["0.00", "1.00", "0.25"]  # unit 7 is first
    texts = ["".join(text.itertext()) for text in tree.iter("{http://www.w3.org/2000/svg}text")]
    assert texts[:3] == ["the", "<cat>", "sat"]
    assert "most open at “<cat>”" in picture.caption
    with pytest.raises(SettingError, match="3 tokens but 2 rows"):
        gates(["a", "b", "c"], {"forget": np.zeros((2, 4))})
    with pytest.raises(SettingError, match="at least one"):
        gates([], {})


def test_lstm_cells_keep_their_gates_where_the_traces_look() -> None:
    cell = LSTMCell(3, 4)
    x = np.random.default_rng(0).normal(size=(1, 3))
    i, f, _, o = cell.gates(x, np.zeros((1, 4)))
    _, kept = cell.step(x, cell.start(1))
    found = gates_of("lstm", [kept])
    for name, expected in (("input", i), ("forget", f), ("output", o)):
        assert_allclose(found[name][0], expected)
