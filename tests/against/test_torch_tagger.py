"""The neural tagger against the same network out of torch's own modules, a sentence and a word at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from torch import Tensor, nn
from torchcrf import CRF

from foreword.nn.weights import PARTS
from foreword.tag.bilstm import BiLSTMTagger
from foreword.tag.bilstm_network import WordTable

THEIRS = ("weight_ih_l", "weight_hh_l", "bias_ih_l", "bias_hh_l")
WORDS = ["the", "The", "cat", "sat", "1996", "on", "a", "x" * 50, "mat", "é"]


def sentences(count: int, seed: int) -> list[list[str]]:
    random = np.random.default_rng(seed)
    return [random.choice(WORDS, size).tolist() for size in random.integers(1, 20, count)]


def module(weights: Any, name: str, layers: int, inputs: int, units: int) -> nn.LSTM:
    """An nn.LSTM with our weights. name: of a layer, with its number left open."""
    found = nn.LSTM(inputs, units, layers, bidirectional=True)
    with torch.no_grad():
        for layer in range(layers):
            for way, suffix in (("ahead", ""), ("behind", "_reverse")):
                for ours, theirs in zip(PARTS, THEIRS, strict=True):
                    getattr(found, f"{theirs}{layer}{suffix}").copy_(weights[f"{name.format(layer)}.{way}.{ours}"])
    return found


def spelled(tagger: BiLSTMTagger, letters: list[int]) -> Tensor:
    weights = tagger.weights_
    x = weights["letters"][torch.tensor(letters)]
    if tagger.characters == "cnn":
        convolution = nn.Conv1d(tagger.letter_units, tagger.spelling, 3, padding=1)
        convolution.load_state_dict({"weight": weights["filters"], "bias": weights["filter_bias"]})
        found: Tensor = convolution(x.t()[None])[0]
        return torch.tanh(found.amax(1))
    last: Tensor
    _, (last, _) = module(weights, "spelling", 1, tagger.letter_units, tagger.spelling // 2)(x[:, None])
    return last[:, 0].flatten()


@pytest.mark.parametrize("characters", ["cnn", "lstm"])
def test_logits_are_those_of_torchs_modules(characters: Any) -> None:
    text = sentences(30, 0)
    tags = [["ABC"[len(word) % 3] for word in words] for words in text]
    sizes: dict[str, Any] = {"units": 20, "layers": 2, "words": 7, "letter_units": 5, "spelling": 8}
    tagger = BiLSTMTagger(**sizes, characters=characters, epochs=2, device="cpu").fit(text, tags)
    weights, lexicon = tagger.weights_, WordTable.of(text)
    network = module(weights, "layer{}", 2, 15, 20)
    asked = [*sentences(20, 1), ["unseen", "WordTable", "2014"]]
    for words, ours in zip(asked, tagger.logits(asked), strict=True):
        with torch.no_grad():
            rows = [weights["table"][lexicon.row(word)] for word in words]
            x = torch.stack(
                [
                    torch.cat((row, spelled(tagger, lexicon.spelled(word))))
                    for row, word in zip(rows, words, strict=True)
                ]
            )
            theirs = network(x[:, None])[0][:, 0] @ weights["output"].t() + weights["bias"]
        assert_allclose(ours, theirs, rtol=0, atol=1e-5)


def test_tags_are_those_of_pytorch_crf() -> None:
    """The tagger's own scores and moves, decoded by another."""
    text = sentences(40, 2)
    tags = [["ABC"[(len(word) + place) % 3] for place, word in enumerate(words)] for words in text]
    tagger = BiLSTMTagger(12, words=6, letter_units=4, spelling=6, epochs=4, rate=0.01, device="cpu").fit(text, tags)
    peer = CRF(3, batch_first=True)
    with torch.no_grad():
        for part, name in (
            (peer.start_transitions, "start"),
            (peer.transitions, "moves"),
            (peer.end_transitions, "end"),
        ):
            part.copy_(tagger.weights_[name])
    for words, ours, scores in zip(text, tagger.predict(text), tagger.logits(text), strict=True):
        mask = torch.ones(1, len(words), dtype=torch.bool)
        theirs = peer.decode(torch.from_numpy(scores)[None], mask)[0]
        assert [tagger.tags_[tag] for tag in theirs] == ours
