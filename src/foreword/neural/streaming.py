"""A recurrent model a word at a time on the CPU, without torch in the step: for generating, and for beams.

A module of torch spends most of such a step on getting ready: it packs its weights anew at every call. Here each weight
is read once, where it lies (``nn/kernels_inference.py``), so a step takes as long as memory takes to deliver the
weights. With ``int16=True`` it delivers half: every row of a matrix becomes whole numbers from −32,767 to 32,767 and
one scale, and is multiplied in float32 as before. With ``int8=True`` it delivers a quarter: the numbers go from −127 to
127; a perplexity then changes by less than a thousandth, as measured on characters of Shakespeare.

It is a ``NextToken``: ``foreword.decode`` samples from it and searches with it. Where only the likeliest tokens are
wanted the output matrix, most of what is read, is looked through in int8 first (``streaming_weights.py``).
Shapes: n texts side by side, V words.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from foreword.arrays import Floats, Ids, Logs, Longs
from foreword.checks import check_ids
from foreword.errors import InputError, SettingError
from foreword.neural.streaming_weights import Matrix, Screened, Whole, matrix
from foreword.nn.kernels_inference import gru_gates, log_softmax, lstm_gates, min_gru_gates, rnn_gates
from foreword.nn.network import BIAS, EMBEDDING, MIXTURE, OUTPUT
from foreword.nn.recurrent_network import RecurrentNetwork, layer_names, round_names
from foreword.protocols import RecurrentModel
from foreword.tokens.vocab import Vocab

REMEMBERED = 1 << 28
"""Bytes that the first layer's products with words may take; where all words would take more, none are kept."""


class Streaming:
    """A trained recurrent model as a NextToken. A state is float32 (n, Σ units): h, and c, of every layer.

    int16, int8: whole numbers for all matrices but the embedding. Matrices are copied, the embedding is the model's.
    """

    def __init__(self, model: RecurrentModel, *, int8: bool = False, int16: bool = False) -> None:
        if int8 and int16:
            raise SettingError("int8 and int16 are both true: expected one of them")
        network = model.network(model.vocab)
        if not isinstance(network, RecurrentNetwork):
            raise InputError(f"{type(model).__name__} is not recurrent: expected a RecurrentLM or an AWDLSTM")
        weights = {name: _on_host(part) for name, part in model.weights_.items()}
        self.int8, self.int16 = int8, int16
        kind = np.dtype(np.int8 if int8 else np.int16 if int16 else np.float32)
        self._vocab = model.vocab
        self._embedding = weights[EMBEDDING]
        self._output = matrix(weights.get(OUTPUT, self._embedding), weights[BIAS], kind)
        self._mixture = _Mixture(*(weights[name] for name in MIXTURE)) if MIXTURE[0] in weights else None
        self._layers, place = [], 0
        for layer, (_, units) in enumerate(network.layer_sizes()):
            w_x, w_h, b_x, b_h = layer_names(layer)
            from_x = matrix(weights[w_x], weights[b_x], kind)
            from_h = matrix(weights[w_h], weights[b_h], kind) if w_h in weights else None
            rounds = tuple(_without_bias(weights[name], kind) for name in round_names(layer, network.mogrify))
            self._layers.append(_Layer(network.cell, units, place, from_x, from_h, rounds))
            place += self._layers[-1].width
        self._width = place
        gates = len(weights[layer_names(0)[0]])
        fits = 4 * len(self._embedding) * gates <= REMEMBERED and not network.mogrify
        kept = len(self._embedding) if fits else 0
        # Zeros are not there before they are written to, so this takes the room of the words that were met.
        self._products, self._known = np.zeros((kept, gates), np.float32), np.zeros(kept, np.bool_)

    def __repr__(self) -> str:
        cell, units = self._layers[0].cell, [layer.units for layer in self._layers]
        return f"Streaming({cell}, units={units}, int8={self.int8}, int16={self.int16})"

    @property
    def vocab(self) -> Vocab:
        return self._vocab

    def start(self, n: int = 1) -> Floats:
        """Texts of which one ``</s>`` has been read, as the model itself begins."""
        return self.advance(np.zeros((n, self._width), np.float32), np.full(n, self.vocab.end))

    def next_logprobs(self, state: Floats) -> Logs:
        """float64 (n, V)."""
        if self._mixture is not None:
            return self._mixture.logs(self._hidden(state), self._output)
        scores = self._output.multiply(self._hidden(state))
        logs = np.empty(scores.shape)
        log_softmax(scores.reshape(-1), len(scores), len(self.vocab), logs.reshape(-1))
        return logs

    def shortlist(self, state: Floats, count: int) -> tuple[Ids, Logs]:
        """Of one text: tokens, rising, among which are the ``count`` likeliest, and their log-probabilities, each too
        high by the same number. The same float32 as in ``next_logprobs``, but most of the matrix is read as int8 only.
        """
        hidden = self._hidden(state)
        if self._mixture is not None:
            logs: Logs = self._mixture.logs(hidden, self._output)[0]
            return np.arange(len(logs)), logs
        if self._screened is None:
            scores = self._output.multiply(hidden)[0]
            return np.arange(len(scores)), scores.astype(np.float64)
        ids, scores = self._screened.largest(hidden[0], count)
        return ids, scores.astype(np.float64)

    @cached_property
    def _screened(self) -> Screened | None:
        """Made when it is first asked for; matrices of whole numbers are small enough as they are."""
        return Screened(self._output) if isinstance(self._output, Whole) else None

    def _hidden(self, state: Floats) -> Floats:
        """(n, D): what the next word is told from."""
        self._check(state)
        last = self._layers[-1]
        return np.ascontiguousarray(state[:, last.place : last.place + last.units], np.float32)

    def advance(self, state: Floats, ids: Ids) -> Floats:
        words = np.asarray(ids, np.int64)
        self._check(state)
        if len(words) != len(state):
            raise ValueError(f"{len(state)} texts but {len(words)} next tokens")
        check_ids(words, len(self.vocab))
        new = np.empty((len(state), self._width), np.float32)
        hidden = self._embedding[words]
        for layer in self._layers:
            x, h = layer.mogrified(hidden, layer.before(state))
            known = layer is self._layers[0] and not layer.rounds
            hidden = layer.step(self._from_words(words) if known else layer.from_x.multiply(x), h, state, new)
        return new

    def _check(self, state: Floats) -> None:
        if state.ndim != 2 or state.shape[1] != self._width:
            raise ValueError(f"a state is {state.shape}: expected (n, {self._width})")

    def _from_words(self, words: Longs) -> Floats:
        """The first layer's product with each word; it depends on nothing else, so it is computed once a word."""
        first = self._layers[0].from_x
        if not len(self._products):
            return first.multiply(self._embedding[words])
        if not self._known[words].all():
            new = np.unique(words[~self._known[words]])
            self._products[new] = first.multiply(self._embedding[new])
            self._known[new] = True
        found: Floats = self._products[words]
        return found


@dataclass(frozen=True, slots=True)
class _Layer:
    """place: where in a state its h begins; c follows in an LSTM. A minimal GRU has no product with h. rounds: the
    matrices by which input and state gate each other first, see ``nn/layers.py``.
    """

    cell: str
    units: int
    place: int
    from_x: Matrix
    from_h: Matrix | None
    rounds: tuple[Matrix, ...] = ()

    @property
    def width(self) -> int:
        return 2 * self.units if self.cell == "lstm" else self.units

    def before(self, state: Floats) -> Floats:
        """Its h (n, units), a copy."""
        return np.array(state[:, self.place : self.place + self.units], np.float32, order="C")

    def mogrified(self, x: Floats, h: Floats) -> tuple[Floats, Floats]:
        for number, weight in enumerate(self.rounds):
            if number % 2 == 0:
                x = x * _gate(weight.multiply(h))
            else:
                h = h * _gate(weight.multiply(x))
        return x, h

    def step(self, from_x: Floats, h: Floats, state: Floats, new: Floats) -> Floats:
        """The layer's h (n, units) after what the product with its input says; its part of ``new`` is written. h: the
        one before, which becomes the new one in place.
        """
        texts, middle = len(from_x), self.place + self.units
        a = from_x.reshape(-1)
        b = a if self.from_h is None else self.from_h.multiply(h).reshape(-1)
        if self.cell == "lstm":
            c = np.array(state[:, middle : middle + self.units], np.float32, order="C")
            lstm_gates(a, b, h.reshape(-1), c.reshape(-1), texts, self.units)
            new[:, middle : middle + self.units] = c
        elif self.cell == "gru":
            gru_gates(a, b, h.reshape(-1), texts, self.units)
        elif self.cell == "min-gru":
            min_gru_gates(a, h.reshape(-1), texts, self.units)
        else:
            rnn_gates(a, b, h.reshape(-1), texts, self.units, self.cell == "irnn")
        new[:, self.place : middle] = h
        return h


@dataclass(frozen=True, slots=True)
class _Mixture:
    """Of K softmaxes, see ``nn/mixture.py``: P (K, D), L (K · D, D), l (K · D,)."""

    prior: Floats
    latent: Floats
    bias: Floats

    def logs(self, hidden: Floats, output: Matrix) -> Logs:
        """(n, D) to log-probabilities (n, V)."""
        shares = _log_softmax((hidden @ self.prior.T).astype(np.float64))
        z = np.tanh(hidden @ self.latent.T + self.bias).reshape(-1, hidden.shape[1])
        scores = output.multiply(z)
        each = np.empty(scores.shape)
        log_softmax(scores.reshape(-1), len(scores), scores.shape[1], each.reshape(-1))
        joint = each.reshape(len(hidden), len(self.prior), scores.shape[1]) + shares[:, :, None]
        mixed: Logs = np.logaddexp.reduce(joint, axis=1)
        return mixed


def _log_softmax(scores: Logs) -> Logs:
    logs: Logs = scores - np.logaddexp.reduce(scores, axis=1, keepdims=True)
    return logs


def _gate(scores: Floats) -> Floats:
    """2 σ(scores) = 1 + tanh(scores / 2), which overflows nowhere."""
    gate: Floats = 1 + np.tanh(scores / 2)
    return gate


def _without_bias(weight: Floats, kind: np.dtype[Any]) -> Matrix:
    return matrix(weight, np.zeros(len(weight), np.float32), kind)


def _on_host(tensor: Any) -> Floats:
    array: Floats = np.ascontiguousarray(tensor.detach().cpu().numpy(), np.float32)
    return array
