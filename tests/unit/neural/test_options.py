"""The Mogrifier and a mixture of softmaxes as options of the recurrent models: they learn, adapt, are kept, refuse."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal

from foreword.classify.recurrent import RecurrentClassifier
from foreword.errors import InputError, SettingError
from foreword.evaluate.gates import has_layers
from foreword.neural.awd_lstm import AWDLSTM
from foreword.neural.dynamic import DynamicEvaluation
from foreword.neural.recurrent import RecurrentLM
from foreword.nn.dropout import NO_DROPOUT, Dropout
from foreword.nn.network import MIXTURE, next_logs
from foreword.nn.onnx import write_onnx
from foreword.pipeline.language import TextLM
from foreword.protocols import Parts
from foreword.tokens.corpus import Corpus
from foreword.tokens.vocab import Vocab
from foreword.tokens.words import WordTokenizer
from foreword.training.settings import Training

torch.set_num_threads(1)
VOCAB = Vocab(["<unk>", "</s>", "a", "b", "c", "d"])
CORPUS = Corpus.from_ids([[2, 3, 4, 5] * 4 for _ in range(12)], VOCAB)
QUICK = replace(RecurrentLM.TRAINING, epochs=16, batch=4, steps=6, rate=0.04)
OPTIONS: list[dict[str, Any]] = [{"mogrify": 5}, {"softmaxes": 3}, {"mogrify": 2, "softmaxes": 4}]


def small(**settings: Any) -> RecurrentLM:
    return RecurrentLM("lstm", 8, 10, 2, **{"training": QUICK, "dropout": NO_DROPOUT, "device": "cpu", **settings})


@pytest.mark.parametrize("options", [*OPTIONS, {"softmaxes": 2, "tied": False}], ids=str)
def test_they_learn_a_text_that_repeats_itself(options: dict[str, Any]) -> None:
    model = small(**options).fit(CORPUS, valid=CORPUS)
    assert math.exp(-model.score(CORPUS)) < 1.5
    assert_allclose(model.score(CORPUS), model.valid_score_, atol=0.2)


def test_all_that_can_be_dropped_is_dropped() -> None:
    """Every place of an AWD-LSTM's dropout, the mixture's units too, and it learns nonetheless."""
    training = Training(epochs=30, batch=4, steps=6, rate=10.0)
    dropout = Dropout(0.05, 0.1, 0.1, 0.1, 0.2)
    settings: dict[str, Any] = {"training": training, "dropout": dropout, "device": "cpu"}
    model = AWDLSTM(8, 12, 2, mogrify=2, softmaxes=3, **settings).fit(CORPUS)
    assert math.exp(-model.score(CORPUS)) < 4
    network = model.network(VOCAB)
    masks = network.masks(Dropout(), 5, torch.empty(0), torch.Generator().manual_seed(0))
    assert masks.latent is not None
    assert masks.latent.shape == (1, 5, 3 * 8)
    assert 0.1 < float((masks.latent == 0).float().mean()) < 0.5


def test_without_options_nothing_is_drawn_and_nothing_is_added() -> None:
    plain, named = small(), small(mogrify=0, softmaxes=1)
    assert plain.network(VOCAB).tensors() == named.network(VOCAB).tensors()
    assert not any("mogrify" in name or "mixture" in name for name in plain.network(VOCAB).tensors())


def test_parameters_are_counted() -> None:
    """A round of a layer is a matrix of input by state; a mixture has K shares and K layers of D units."""
    plain = small(tied=False, training=replace(QUICK, epochs=1)).fit(CORPUS).parameter_count
    mogrified = small(tied=False, mogrify=3, training=replace(QUICK, epochs=1)).fit(CORPUS).parameter_count
    mixed = small(tied=False, softmaxes=4, training=replace(QUICK, epochs=1)).fit(CORPUS).parameter_count
    assert mogrified - plain == 3 * (8 * 10 + 10 * 10)
    assert mixed - plain == 4 * 10 + 4 * (10 * 10 + 10)


def test_a_mixture_whose_softmaxes_are_one_is_that_one() -> None:
    """With L = 0 all of them read tanh(l_k), whatever the context: shares do not matter where the l are alike."""
    model = small(softmaxes=2, training=replace(QUICK, epochs=1)).fit(CORPUS)
    weights = {name: part.clone() for name, part in model.weights_.items()}
    weights[MIXTURE[1]].zero_()
    weights[MIXTURE[2]].copy_(torch.full_like(weights[MIXTURE[2]], 0.3))
    logs = next_logs(weights, torch.randn(3, 8)).numpy()
    scores = math.tanh(0.3) * weights["embedding"].sum(1) + weights["bias"]
    assert_allclose(logs, np.tile(torch.log_softmax(scores.double(), 0).numpy(), (3, 1)), rtol=1e-5)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_dynamic_evaluation_takes_them(options: dict[str, Any]) -> None:
    model = small(training=replace(QUICK, epochs=2), **options).fit(CORPUS)
    assert_allclose(DynamicEvaluation(model, rate=0.0).logprobs(CORPUS), model.logprobs(CORPUS), rtol=1e-4)
    stutter = Corpus.from_ids([[2] * 60], VOCAB)
    for dynamic in (DynamicEvaluation(model, rate=0.2), DynamicEvaluation(model, rate=0.05).measure_gradients(CORPUS)):
        assert dynamic.score(stutter) > model.score(stutter)


def test_models_saved_before_there_were_options_are_taken_up() -> None:
    model = small(training=replace(QUICK, epochs=1)).fit(CORPUS)
    parts = model.to_parts()
    older = {name: value for name, value in parts.settings.items() if name not in ("mogrify", "softmaxes")}
    again = RecurrentLM.from_parts(Parts(older, parts.arrays, parts.vocab))
    assert_array_equal(again.logprobs(CORPUS), model.logprobs(CORPUS))
    with pytest.raises(ValueError, match="settings"):
        RecurrentLM.from_parts(Parts({**older, "other": 1}, parts.arrays, parts.vocab))
    with pytest.raises(ValueError, match="arrays"):
        RecurrentLM.from_parts(Parts({**older, "softmaxes": 2}, parts.arrays, parts.vocab))


def test_what_cannot_be_is_said_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="mogrify is 2, which is for cell 'lstm', not 'gru'"):
        RecurrentLM("gru", 4, 6, 1, mogrify=2, device="cpu").fit(CORPUS)
    with pytest.raises(SettingError, match="softmaxes is 0: expected at least 1"):
        small(softmaxes=0).fit(CORPUS)
    with pytest.raises(SettingError, match="mogrify is -1: expected at least 0"):
        small(mogrify=-1).fit(CORPUS)
    with pytest.raises(SettingError, match="expected sampled=0"):
        small(softmaxes=2, training=replace(QUICK, sampled=3)).fit(CORPUS)
    model = small(mogrify=2, training=replace(QUICK, epochs=1)).fit(CORPUS)
    with pytest.raises(InputError, match="without a Mogrifier"):
        write_onnx(model, tmp_path / "model.onnx")
    assert not has_layers(model)
    assert has_layers(small(training=replace(QUICK, epochs=1)).fit(CORPUS))


def test_a_classifier_takes_a_mixture_over_without_it_and_refuses_a_mogrifier() -> None:
    texts, labels = ["a b c d"] * 6 + ["d c b a"] * 6, ["up"] * 6 + ["down"] * 6
    once = replace(QUICK, epochs=1)
    lm = TextLM(WordTokenizer(), small(softmaxes=2, training=once)).fit(texts)
    classifier = RecurrentClassifier(lm, epochs=2, device="cpu").fit(texts, labels)
    assert set(classifier.predict(texts)) <= {"up", "down"}
    other = TextLM(WordTokenizer(), small(mogrify=2, training=once)).fit(texts)
    with pytest.raises(InputError, match="without mogrify"):
        RecurrentClassifier(other, epochs=2, device="cpu").fit(texts, labels)
