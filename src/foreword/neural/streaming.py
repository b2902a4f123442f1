"""A recurrent language model one word at a time on the CPU, without torch: for generating, and for beam search.

A module of torch spends most of such a step on overhead: it packs its weights again at every call. Here each weight is
read once (``nn/kernels_inference.py``), so that a step takes as long as memory takes to deliver the weights. With
``int16=True`` it delivers half: every row of a matrix becomes whole numbers from −32,767 to 32,767 and one scale, and
is multiplied in float32 as before. With ``int8=True`` it delivers a quarter: the numbers go from −127 to 127; a
perplexity then changes by less than a thousandth, as measured on characters of Shakespeare.

``Streaming`` is a ``NextToken``: ``foreword.decode`` samples from it and searches with it. Where only the likeliest
tokens are needed, ``Screened`` scans the output matrix, most of what is read, in int8 first. A product of rounded
numbers is off by no more than

    | x · w − x̃ · w̃ |  ≤  |x| |w − w̃| + |x − x̃| |w̃|        (Cauchy and Schwarz)

so a row that cannot win even so is out, and the few that are left are multiplied in float32, to the bit as all of them
would have been. Shapes: n texts of a batch, V words.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, TypeGuard

import numpy as np

from foreword.arrays import Floats, Ids, Logs, Longs, Shorts, SignedBytes
from foreword.checks import check_ids
from foreword.errors import InputError, SettingError
from foreword.native.simd import LANES
from foreword.nn.kernels_inference import (
    ROWS_AT_ONCE,
    SMALL_STEP,
    gru_gates,
    log_softmax,
    lstm_gates,
    min_gru_gates,
    multiply_rows,
    multiply_short_rows,
    multiply_small_rows,
    rnn_gates,
    round_rows,
)
from foreword.nn.network import BIAS, EMBEDDING, MIXTURE, OUTPUT, TEMPERATURE
from foreword.nn.recurrent_layer import layer_names
from foreword.nn.recurrent_network import DOWN, UP, RecurrentNetwork
from foreword.protocols import RecurrentModel
from foreword.tokens.vocab import Vocab

REMEMBERED = 1 << 28
"""Bytes that the first layer's products with words may take; where all words would take more, none are kept."""


STREAMED = ("rnn", "irnn", "lstm", "gru", "min-gru")
"""Cells of which there are kernels for one step."""


def streams(network: object) -> TypeGuard[RecurrentNetwork]:
    """Return whether ``Streaming`` can run a network."""
    return isinstance(network, RecurrentNetwork) and network.cell in STREAMED


class Streaming:
    """A trained recurrent model as a NextToken. A state is float32 (n, Σ units): h, and c, of every layer.

    int16, int8: whole numbers for all matrices but the embedding. Matrices are copied, the embedding is the model's.
    """

    def __init__(self, model: RecurrentModel, *, int8: bool = False, int16: bool = False) -> None:
        if int8 and int16:
            raise SettingError("int8 and int16 are both true: expected one of them")
        network = model.network(model.vocab)
        if not streams(network):
            raise InputError(
                f"{model!r} has no kernels for single steps: expected a RecurrentLM of {', '.join(STREAMED)}, an "
                "AWDLSTM or a Mogrifier"
            )
        weights = {name: _on_host(part) for name, part in model.weights_.items()}
        self.int8, self.int16 = int8, int16
        kind = np.dtype(np.int8 if int8 else np.int16 if int16 else np.float32)
        self._vocab = model.vocab
        self._embedding = weights[EMBEDDING]
        self._summed, self._temperature = network.variant.summed, float(weights.get(TEMPERATURE, np.ones(1))[0])
        bias = weights[BIAS] / np.float32(self._temperature)
        self._output = matrix(weights.get(OUTPUT, self._embedding), bias, kind)
        self._mixture = None
        if MIXTURE[0] in weights:
            prior, latent, latent_bias = (weights[name] for name in MIXTURE)
            self._mixture = _Mixture(prior, latent, latent_bias, self._temperature)
        self._up, self._down = (_product(weights, name, kind) if name in weights else None for name in (UP, DOWN))
        self._layers, place = [], 0
        for layer, (_, units) in enumerate(network.layer_sizes()):
            w_x, w_h, b_x, b_h = layer_names(layer)
            from_x = matrix(weights[w_x], weights[b_x], kind)
            from_h = matrix(weights[w_h], weights[b_h], kind) if w_h in weights else None
            rounds = tuple(_product(weights, name, kind) for name in network.rounds().names(layer))
            cell = "capped" if network.variant.capped else network.cell
            self._layers.append(_StreamedLayer(cell, units, place, from_x, from_h, rounds))
            place += self._layers[-1].width
        self._width = place
        gates = len(weights[layer_names(0)[0]])
        fits = 4 * len(self._embedding) * gates <= REMEMBERED and not network.mogrify
        kept = len(self._embedding) if fits else 0
        # Pages of zeros take no memory until they are written to: only words that were met cost any.
        self._products, self._known = np.zeros((kept, gates), np.float32), np.zeros(kept, np.bool_)

    def __repr__(self) -> str:
        cell, units = self._layers[0].cell, [layer.units for layer in self._layers]
        return f"Streaming({cell}, units={units}, int8={self.int8}, int16={self.int16})"

    @property
    def vocab(self) -> Vocab:
        """The vocabulary of the model."""
        return self._vocab

    def start(self, n: int = 1) -> Floats:
        """Return the state of ``n`` texts after one ``</s>``, as the model itself begins."""
        return self.advance(np.zeros((n, self._width), np.float32), np.full(n, self.vocab.end))

    def next_logprobs(self, state: Floats) -> Logs:
        """Return log-probabilities of the next token, float64 (n, V)."""
        if self._mixture is not None:
            return self._mixture.logs(self._hidden(state), self._output)
        scores = self._output.multiply(self._hidden(state))
        logs = np.empty(scores.shape)
        log_softmax(scores.reshape(-1), len(scores), len(self.vocab), logs.reshape(-1))
        return logs

    def shortlist(self, state: Floats, count: int) -> tuple[Ids, Logs]:
        """Return, for one text, tokens in increasing order that include the ``count`` likeliest, and their
        log-probabilities up to a constant: the same float32 as in ``next_logprobs``, but most of the matrix is read as
        int8 only.
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
        """Build the int8 screen on first use; None for matrices of integers, which are small already."""
        return Screened(self._output) if isinstance(self._output, Whole) else None

    def _hidden(self, state: Floats) -> Floats:
        """Return what the softmax reads, (n, D)."""
        self._check(state)
        read = self._layers if self._summed else self._layers[-1:]
        outputs = [state[:, layer.place : layer.place + layer.units] for layer in read]
        hidden = np.ascontiguousarray(np.sum(outputs, axis=0) if self._summed else outputs[0], np.float32)
        hidden = hidden if self._down is None else self._down.multiply(hidden)
        whole = self._temperature == 1 or self._mixture is not None  # a mixture divides what each softmax reads
        return hidden if whole else hidden / np.float32(self._temperature)

    def advance(self, state: Floats, ids: Ids) -> Floats:
        """Return the state after one more id of each text."""
        words = np.asarray(ids, np.int64)
        self._check(state)
        if len(words) != len(state):
            raise ValueError(f"{len(state)} texts but {len(words)} next tokens")
        check_ids(words, len(self.vocab))
        new = np.empty((len(state), self._width), np.float32)
        hidden = self._vectors(words)
        for layer in self._layers:
            x, h = layer.mogrified(hidden, layer.before(state))
            known = layer is self._layers[0] and not layer.rounds
            hidden = layer.step(self._from_words(words) if known else layer.from_x.multiply(x), h, state, new)
        return new

    def _vectors(self, words: Longs) -> Floats:
        """Return what the first layer reads of each word."""
        vectors = self._embedding[words]
        return vectors if self._up is None else self._up.multiply(vectors)

    def _check(self, state: Floats) -> None:
        if state.ndim != 2 or state.shape[1] != self._width:
            raise ValueError(f"a state is {state.shape}: expected (n, {self._width})")

    def _from_words(self, words: Longs) -> Floats:
        """Return the first layer's product with each word, computed once per word."""
        first = self._layers[0].from_x
        if not len(self._products):
            return first.multiply(self._vectors(words))
        if not self._known[words].all():
            new = np.unique(words[~self._known[words]])
            self._products[new] = first.multiply(self._vectors(new))
            self._known[new] = True
        found: Floats = self._products[words]
        return found


@dataclass(frozen=True, slots=True)
class _StreamedLayer:
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
        """The length of a state."""
        return 2 * self.units if self.cell in ("lstm", "capped") else self.units

    def before(self, state: Floats) -> Floats:
        """Return a copy of the layer's h (n, units)."""
        return np.array(state[:, self.place : self.place + self.units], np.float32, order="C")

    def mogrified(self, x: Floats, h: Floats) -> tuple[Floats, Floats]:
        """Return input and state after the rounds of a Mogrifier."""
        for number, weight in enumerate(self.rounds):
            if number % 2 == 0:
                x = x * _gate(weight.multiply(h))
            else:
                h = h * _gate(weight.multiply(x))
        return x, h

    def step(self, from_x: Floats, h: Floats, state: Floats, new: Floats) -> Floats:
        """Return the layer's new h (n, units), from the product with its input; its part of ``new`` is written. h: the
        one before, which becomes the new one in place.
        """
        texts, middle = len(from_x), self.place + self.units
        a = from_x.reshape(-1)
        b = a if self.from_h is None else self.from_h.multiply(h).reshape(-1)
        if self.cell in ("lstm", "capped"):
            c = np.array(state[:, middle : middle + self.units], np.float32, order="C")
            if self.cell == "lstm":
                lstm_gates(a, b, h.reshape(-1), c.reshape(-1), texts, self.units)
            else:
                h[:], c[:] = _capped_gates((a + b).reshape(texts, 4, self.units), c)
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
    """Of K softmaxes, see ``nn/mixture.py``: P (K, H), L (K · D, H), l (K · D,), and a temperature."""

    prior: Floats
    latent: Floats
    bias: Floats
    temperature: float

    def logs(self, hidden: Floats, output: Matrix) -> Logs:
        """Return log-probabilities (n, V) from hidden (n, D)."""
        shares = _log_softmax((hidden @ self.prior.T).astype(np.float64))
        z = np.tanh(hidden @ self.latent.T + self.bias) / np.float32(self.temperature)
        scores = output.multiply(z.reshape(len(hidden) * len(self.prior), -1))
        each = np.empty(scores.shape)
        log_softmax(scores.reshape(-1), len(scores), scores.shape[1], each.reshape(-1))
        joint = each.reshape(len(hidden), len(self.prior), scores.shape[1]) + shares[:, :, None]
        mixed: Logs = np.logaddexp.reduce(joint, axis=1)
        return mixed


def _log_softmax(scores: Logs) -> Logs:
    logs: Logs = scores - np.logaddexp.reduce(scores, axis=1, keepdims=True)
    return logs


def _gate(scores: Floats) -> Floats:
    """Return 2 σ(scores) as 1 + tanh(scores / 2), which never overflows."""
    gate: Floats = 1 + np.tanh(scores / 2)
    return gate


def _capped_gates(scores: Floats, c: Floats) -> tuple[Floats, Floats]:
    """Return h and c of an LSTM whose input gate is at most 1 − f; scores (n, 4, units) in the order i, f, g, o."""
    i, f, o = (_gate(scores[:, gate]) / 2 for gate in (0, 1, 3))
    now = np.asarray(f * c + np.minimum(1 - f, i) * np.tanh(scores[:, 2]), np.float32)
    return np.asarray(o * np.tanh(now), np.float32), now


def _product(weights: dict[str, Floats], name: str, kind: np.dtype[Any]) -> Matrix:
    """Return a matrix, multiplied out if it is stored as two thin ones, and its bias, zeros where it has none."""
    weight = weights[name] if name in weights else weights[f"{name}.left"] @ weights[f"{name}.right"]
    bias = weights.get(f"{name}_bias", np.zeros(len(weight), np.float32))
    return matrix(np.ascontiguousarray(weight), bias, kind)


def _on_host(tensor: Any) -> Floats:
    array: Floats = np.ascontiguousarray(tensor.detach().cpu().numpy(), np.float32)
    return array


# Matrices: in float32, or in whole numbers with a scale for each row


class Matrix(Protocol):
    def multiply(self, x: Floats) -> Floats: ...  # (n, columns) to (n, rows), the bias added


@dataclass(frozen=True, slots=True)
class Whole:
    """values (rows, columns), flat; bias (rows,)."""

    values: Floats
    bias: Floats

    def multiply(self, x: Floats) -> Floats:
        """Return the products of n rows with the matrix, the bias added."""
        texts, columns = x.shape
        out = np.empty((texts, len(self.bias)), np.float32)
        multiply_rows(self.values, self.bias, x.reshape(-1), texts, len(self.bias), columns, out.reshape(-1))
        return out


@dataclass(frozen=True, slots=True)
class Short:
    """values: int16 (rows, columns), padded with zeros to a multiple of 16, flat; scales and bias (rows,)."""

    values: Shorts
    scales: Floats
    bias: Floats
    padded: int

    def multiply(self, x: Floats) -> Floats:
        """Return the products of n rows with the matrix, the bias added."""
        texts, columns = x.shape
        wide = x
        if columns != self.padded:
            wide = np.zeros((texts, self.padded), np.float32)
            wide[:, :columns] = x
        out = np.empty((texts, len(self.bias)), np.float32)
        multiply_short_rows(
            self.values, self.scales, self.bias, wide.reshape(-1), texts, len(self.bias), self.padded, out.reshape(-1)
        )
        return out


@dataclass(frozen=True, slots=True)
class Small:
    """values: int8 (rows, columns), padded with zeros to multiples of 2 and 64, flat; scales and bias (rows,).

    limit: how large a text's whole numbers may be, so that no sum of products leaves int32.
    """

    values: SignedBytes
    scales: Floats
    bias: Floats
    padded: int
    limit: int

    def multiply(self, x: Floats) -> Floats:
        """Return the products of n rows with the matrix, the bias added."""
        texts, columns = x.shape
        rounded, x_scales = np.empty(texts * self.padded, np.int16), np.empty(texts, np.float32)
        round_rows(x.reshape(-1), texts, columns, self.limit, rounded, self.padded, x_scales)
        out = np.empty((texts, len(self.bias)), np.float32)
        multiply_small_rows(
            self.values, self.scales, self.bias, rounded, x_scales, texts, len(self.bias), self.padded,
            np.empty(4, np.int32), out.reshape(-1),
        )  # fmt: skip
        return out


def matrix(weight: Floats, bias: Floats, kind: np.dtype[Any]) -> Matrix:
    """Store a matrix and its bias as float32, int16 or int8."""
    if kind == np.float32:
        values = np.empty(weight.size, np.float32)  # NumPy asks for huge pages, torch does not: a fourth of the time
        values[:] = weight.reshape(-1)
        return Whole(values, bias)
    if kind == np.int8:
        return small_matrix(weight, bias)
    values, scales, padded = _rounded(weight, np.dtype(np.int16), 1, LANES)
    return Short(values, scales, bias, padded)


def small_matrix(weight: Floats, bias: Floats) -> Small:
    """Return a matrix in int8."""
    values, scales, padded = _rounded(weight, np.dtype(np.int8), ROWS_AT_ONCE, SMALL_STEP)
    limit = min((1 << 15) - 1, ((1 << 31) - 1) // (127 * weight.shape[1]))
    return Small(values, scales, bias, padded, limit)


def _rounded(weight: Floats, kind: np.dtype[Any], together: int, step: int) -> tuple[Any, Floats, int]:
    """Return the weights as padded integers, flat, with row scales and the number of columns with padding."""
    rows, columns = weight.shape
    sizes = np.abs(weight).max(axis=1)
    scales = np.where(sizes > 0, sizes / np.iinfo(kind).max, 1).astype(np.float32)
    padded = -(-columns // step) * step
    small = np.empty((-(-rows // together) * together, padded), kind)  # not zeros: see tokens/strings.py
    small.fill(0)
    small[:rows, :columns] = np.rint(weight / scales[:, None])
    return small.reshape(-1), scales, padded


WORTH = 8
"""Rows for each that is asked for, at least: with fewer it is as well to multiply all of them."""

HALF, LOST = 0.5001, 2.0**-22
"""A rounded number is off by half a step, and a little for the division; what one operation in float32 loses, fourfold.
"""


class Screened:
    """A matrix in float32 and also in int8: a quarter more memory, a quarter to read."""

    def __init__(self, exact: Whole) -> None:
        self._exact, self._small = exact, None
        rows = exact.values.reshape(len(exact.bias), -1)
        self._lost = LOST * (rows.shape[1] + 8)
        self._sizes = (1 + self._lost) * np.linalg.norm(rows, axis=1)
        if not (np.isfinite(self._sizes).all() and np.isfinite(exact.bias).all()):
            return
        self._small = rounded = small_matrix(rows, exact.bias)
        again = rounded.values.reshape(-1, rounded.padded)[: len(rows), : rows.shape[1]] * rounded.scales[:, None]
        self._away = (1 + self._lost) * np.linalg.norm(rows - again, axis=1)
        self._of_bias = 2 * LOST * np.abs(exact.bias)

    def largest(self, x: Floats, count: int) -> tuple[Longs, Floats]:
        """Return rows that include those of the ``count`` largest products with x (columns,), in increasing order, and
        the products.
        """
        rows, columns = len(self._exact.bias), len(x)
        size = float(np.linalg.norm(x))
        if self._small is None or count * WORTH > rows or not np.isfinite(size):
            return np.arange(rows), self._exact.multiply(x[None])[0]
        about = self._small.multiply(x[None])[0]
        off = HALF * float(np.abs(x).max()) / self._small.limit * columns**0.5
        radius = (size + off) * self._away + (off + self._lost * size) * self._sizes + self._of_bias
        lower = about - radius
        floor = lower.max() if count == 1 else np.partition(lower, -count)[-count]
        few = np.flatnonzero(about + radius >= floor)
        chosen = self._exact.values.reshape(rows, columns)[few]
        return few, Whole(chosen.reshape(-1), self._exact.bias[few]).multiply(x[None])[0]
