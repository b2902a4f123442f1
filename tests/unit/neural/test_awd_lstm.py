"""The AWD-LSTM beyond the contract: its network, its regularisers, its files."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_array_equal

from foreword.errors import InputError, SettingError, install_command
from foreword.neural.awd_lstm import AWDLSTM
from foreword.nn.dropout import NO_DROPOUT, Dropout
from foreword.nn.network import output_weight
from foreword.nn.recurrent_layer import layer_names
from foreword.nn.recurrent_network import RecurrentNetwork
from foreword.protocols import Parts
from foreword.storage.folder import load, save
from foreword.tokens.corpus import Corpus
from foreword.tokens.vocab import Vocab
from foreword.training.gradients import new_flat, views
from foreword.training.settings import Training

torch.set_num_threads(1)
VOCAB = Vocab(["<unk>", "</s>", "a", "b", "c", "d"])
CORPUS = Corpus.from_ids([[2, 3, 4, 5] * 4 for _ in range(12)], VOCAB)
QUICK = Training(epochs=12, batch=4, steps=6, rate=5.0)


def small(**settings: Any) -> AWDLSTM:
    return AWDLSTM(8, 12, 2, **{"training": QUICK, "dropout": NO_DROPOUT, "device": "cpu", **settings})


def random_weights(shape: RecurrentNetwork) -> dict[str, torch.Tensor]:
    weights = views(new_flat(shape.tensors(), torch.device("cpu")), shape.tensors())
    shape.initialise(weights, torch.Generator().manual_seed(0))
    return weights


def test_the_network_is_torch_s_own_lstm_stacked() -> None:
    shape = RecurrentNetwork(6, 4, 5, 3)
    weights = random_weights(shape)
    ids = torch.randint(6, (7, 2), generator=torch.Generator().manual_seed(1))
    x = weights["embedding"][ids]
    for layer, (inputs, units) in enumerate(shape.layer_sizes()):
        peer = torch.nn.LSTM(inputs, units)
        with torch.no_grad():
            for theirs, name in zip(peer.parameters(), layer_names(layer), strict=True):
                theirs.copy_(weights[name])
        x, _ = peer(x)
    ours, _ = shape.read(weights, ids, shape.start(2, weights["bias"]))
    torch.testing.assert_close(ours, x)


def test_p01_reading_in_two_stretches_is_reading_at_once() -> None:
    """P01: states equal the full forward."""
    shape = RecurrentNetwork(6, 4, 5, 2)
    weights = random_weights(shape)
    ids = torch.randint(6, (9, 3), generator=torch.Generator().manual_seed(1))
    whole, last = shape.read(weights, ids, shape.start(3, weights["bias"]))
    first, state = shape.read(weights, ids[:4], shape.start(3, weights["bias"]))
    second, end = shape.read(weights, ids[4:], state)
    torch.testing.assert_close(torch.cat([first, second]), whole)
    torch.testing.assert_close(end, last)


def test_p05_tied_weights_are_one_tensor_and_save_a_vocabulary_of_parameters() -> None:
    """P05: one tensor; V · D parameters fewer."""
    tied, untied = (small(tied=tied).fit(CORPUS) for tied in (True, False))
    assert untied.parameter_count - tied.parameter_count == len(VOCAB) * 8
    assert output_weight(tied.weights_).data_ptr() == tied.weights_["embedding"].data_ptr()
    assert output_weight(untied.weights_).data_ptr() != untied.weights_["embedding"].data_ptr()
    assert "output" not in tied.to_parts().arrays


def test_p06_masks_hold_through_a_stretch_and_are_drawn_anew_for_the_next() -> None:
    """P06: seen from outside: with one word repeated and no recurrence to speak of, the units that are dropped between
    the layers are the same at every step. A word that is dropped is dropped wherever it stands.
    """
    shape = RecurrentNetwork(40, 16, 16, 2)
    like, random = torch.empty(0), torch.Generator().manual_seed(0)
    one, other = (shape.masks(Dropout(), 3, like, random) for _ in range(2))
    for mask in (one.input, one.output, *one.between):
        assert mask.shape == (1, 3, 16)
    assert not torch.equal(one.input, other.input)
    assert not torch.equal(one.recurrent[0], other.recurrent[0])
    assert one.words.shape == (40,)
    weights = random_weights(shape)
    unit_rows = {**weights, "embedding": torch.ones_like(weights["embedding"])}
    seen = unit_rows["embedding"][torch.zeros(5, 3, dtype=torch.int64)] * one.input
    assert all(torch.equal(step, seen[0]) for step in seen)


def test_dropping_weights_leaves_the_weights_alone() -> None:
    """DropConnect is computed and passed in: after reading with masks the weights are what they were, and a gradient
    reaches exactly those that were kept.
    """
    shape = RecurrentNetwork(6, 4, 4, 1)
    weights = {name: part.clone().requires_grad_() for name, part in random_weights(shape).items()}
    before = {name: part.detach().clone() for name, part in weights.items()}
    only = Dropout(0.0, 0.0, 0.0, 0.0, 0.5)
    masks = shape.masks(only, 2, weights["bias"].detach(), torch.Generator().manual_seed(0))
    hidden, _ = shape.read(weights, torch.arange(6).view(3, 2), shape.start(2, before["bias"]), masks)
    (gradient,) = torch.autograd.grad(hidden.square().sum(), [weights["layer0.recurrent"]])
    assert_array_equal((gradient != 0).numpy(), (masks.recurrent[0] != 0).numpy())
    assert all(torch.equal(weights[name], before[name]) for name in before)


def test_it_learns_a_text_that_repeats_itself_and_the_steps_tell() -> None:
    model = small(training=Training(epochs=40, batch=4, steps=6, rate=20.0))
    steps = list(model.train(CORPUS, valid=CORPUS))
    assert steps[-1].done == steps[-1].total
    assert steps[-1].loss < steps[0].loss / 2
    assert math.exp(-model.score(CORPUS)) < 2
    assert steps[0].rate == 20.0
    assert steps[-1].rate == pytest.approx(8.0, abs=0.1)


def test_the_held_out_text_chooses_the_best_average() -> None:
    """Each look takes over what is better and nothing else, so the score that is kept never falls."""
    model, seen = small(training=Training(epochs=12, batch=4, steps=6, rate=5.0, averages=(0.0, 5.0))), [-np.inf]
    for _ in model.train(CORPUS, valid=CORPUS[:3]):
        assert model.valid_score_ >= seen[-1]
        seen.append(model.valid_score_)
    assert seen[-1] > seen[2]


def test_another_seed_gives_another_model() -> None:
    assert small(seed=0).fit(CORPUS).score(CORPUS) != small(seed=1).fit(CORPUS).score(CORPUS)


def test_documents_longer_than_one_block_are_scored_as_they_are_stepped(monkeypatch: pytest.MonkeyPatch) -> None:
    model = small().fit(CORPUS)
    whole = model.logprobs(CORPUS)
    monkeypatch.setattr("foreword.neural.model.READ_AT_ONCE", 5)
    np.testing.assert_allclose(model.logprobs(CORPUS), whole, rtol=1e-5)


def test_a_gpu_that_is_not_there_is_said_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(SettingError, match="finds no GPU"):
        small(device="cuda").fit(CORPUS)
    with pytest.raises(SettingError, match="needs a GPU"):
        small(training=Training(precision="float16")).fit(CORPUS)


def test_a_held_out_text_in_another_vocabulary_is_refused() -> None:
    other = Corpus.from_ids([[0]], Vocab(["<unk>", "</s>"]))
    with pytest.raises(InputError, match="another vocabulary"):
        small().fit(CORPUS, valid=other)


@pytest.mark.parametrize("name", ["embedding", "hidden", "layers"])
def test_sizes_below_one_are_refused_by_name(name: str) -> None:
    sizes: dict[str, Any] = {name: 0}
    with pytest.raises(SettingError, match=name):
        AWDLSTM(**sizes).fit(CORPUS)


def broken(parts: Parts, where: str) -> Parts:
    arrays, settings = dict(parts.arrays), dict(parts.settings)
    if where == "missing array":
        del arrays["bias"]
    elif where == "wrong shape":
        arrays["embedding"] = arrays["embedding"][:-1]
    elif where == "wrong dtype":
        arrays["bias"] = arrays["bias"].astype(np.float64)
    elif where == "wrong size":
        settings["hidden"] = 13
    elif where == "no number":
        settings["layers"] = "2"
    elif where == "other setting":
        settings["colour"] = "red"
    return Parts(settings, arrays, parts.vocab)


@pytest.mark.parametrize(
    "where", ["missing array", "wrong shape", "wrong dtype", "wrong size", "no number", "other setting"]
)
def test_a_file_that_does_not_fit_is_refused(where: str) -> None:
    parts = small(training=Training(epochs=1)).fit(CORPUS).to_parts()
    with pytest.raises((ValueError, TypeError)):
        AWDLSTM.from_parts(broken(parts, where))


def test_without_torch_foreword_imports_and_the_model_says_what_to_install() -> None:
    code = (
        "import sys; sys.modules['torch'] = None; import foreword\n"
        "try: import foreword.neural.awd_lstm\n"
        "except foreword.ForewordError as error: print(error)"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout == f"a neural language model needs torch: {install_command('neural')}\n"


def test_the_defaults_are_the_recipe_and_older_ones_stay_with_their_models(tmp_path: Path) -> None:
    """Half precision on a GPU, two averages; a model and a run of the defaults before keep what they had."""
    new = AWDLSTM().training
    assert (new.averages, new.precision, new.epochs) == ((3.0, 10.0), "auto", 40)
    before = Training(epochs=1, batch=4, steps=6, unknown=0.5)  # as all networks, in float32
    model = AWDLSTM(6, 8, 2, training=before, device="cpu").fit(CORPUS)
    save(model, tmp_path / "model")
    stored = json.loads((tmp_path / "model" / "model.json").read_text())["settings"]["training"]
    assert (stored["averages"], stored["precision"]) == ([8.0], "float32")
    again = load(tmp_path / "model")
    assert again.training == before
    assert again.run_id(CORPUS, None).startswith("9c40ccf7ea5da042")  # as it was: its checkpoints still resume
