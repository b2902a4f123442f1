"""Exercises of lessons 7 to 12: word vectors, Bengio's network, recurrent cells, tags and CTC, attention.

Public functions ask the library for the answer; those with an underscore make the mistakes that students make.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from foreword.arrays import Reals
from foreword.lessons.course.checking import Exercise
from foreword.nn.cells import GRUCell, LSTMCell, RNNCell, sigmoid
from foreword.speech.search import collapsed
from foreword.tag.schemes import read_spans
from foreword.vectors.plain import pairs, skip_gram_softmax, softmax, window_step
from foreword.vectors.wordvectors import WordVectors

Array = Reals
random = np.random.default_rng(7)


# 7. Word vectors


def context_pairs(words: Sequence[str], window: int) -> list[tuple[str, str]]:
    """Return every (centre, context) pair within a window."""
    return [(words[centre], words[context]) for centre, context in pairs(len(words), window)]


def nearest(vectors: Array, row: int, k: int) -> list[int]:
    """Return the rows with the highest cosine similarity to one row."""
    names = [str(number) for number in range(len(vectors))]
    return [int(name) for name, _ in WordVectors.of_words(names, vectors.astype(np.float32)).nearest(str(row), k)]


def _nearest(vectors: Array, row: int, k: int, *, unit: bool, own: bool) -> list[int]:
    rows = vectors / np.linalg.norm(vectors, axis=1, keepdims=True) if unit else vectors
    order = np.argsort(-(rows @ rows[row]), kind="stable").tolist()
    return [each for each in order if own or each != row][:k]


def negative_sampling(centre: Array, context: Array, negatives: Array) -> float:
    """Return the loss of one true pair and its negative samples."""
    rows = np.vstack([context, negatives])
    return -window_step(centre[None].copy(), rows, [0], list(range(len(rows))), [1.0] + [0.0] * len(negatives), 0.0)


# 8. Bengio's network


def bengio(words: Sequence[int], E: Array, H: Array, d: Array, U: Array, b: Array) -> Array:
    """Return the probabilities of the next word by Bengio's network."""
    return softmax(b + U @ np.tanh(d + H @ E[list(words)].ravel()))


def output_error(scores: Array, target: int) -> Array:
    """Return ∂(−log p(target)) / ∂scores, which the library has as the gradient of its output vectors."""
    one = np.ones((1, 1))
    _, _, gradient = skip_gram_softmax(one, scores[:, None].copy(), 0, np.array([target]))
    return gradient[:, 0]


# 9. Recurrent networks


def rnn_step(x: Array, h: Array, W_x: Array, W_h: Array, b: Array) -> Array:
    """Return the next state of a simple recurrent network."""
    cell = RNNCell(len(x), len(h))
    cell.weights = {"W_x": W_x, "W_h": W_h, "b": b}
    ((new,), _) = cell.step(x[None], (h[None],))
    row: Array = new[0]
    return row


def gradient_back(d_h: Array, states: Array, W_h: Array) -> Array:
    """Return the gradient that reaches the state before the first of ``states`` from the last one's."""
    cell = RNNCell(1, len(d_h))
    cell.weights["W_h"] = W_h
    for h in states[::-1]:
        _, (d_before,) = cell.back((d_h[None],), (np.zeros((1, 1)), np.zeros((1, len(h))), h[None]))
        d_h = d_before[0]
    return d_h


def _gradient_back(d_h: Array, states: Array, W_h: Array, *, slope: bool, transposed: bool) -> Array:
    for h in states[::-1]:
        d_h = (W_h.T if transposed else W_h) @ (d_h * (1 - h**2) if slope else d_h)
    return d_h


def clip(gradients: Sequence[Array], limit: float) -> list[Array]:
    """Scale gradients so that their common norm is at most ``limit``."""
    import torch

    from foreword.training.gradients import clip_factor

    norm = torch.tensor(np.linalg.norm(np.concatenate([gradient.ravel() for gradient in gradients])))
    return [gradient * float(clip_factor(norm, limit)) for gradient in gradients]


def _clip_each(gradients: Sequence[Array], limit: float) -> list[Array]:
    return [gradient * min(1.0, limit / float(np.linalg.norm(gradient))) for gradient in gradients]


def _always_scale(gradients: Sequence[Array], limit: float) -> list[Array]:
    norm = np.sqrt(sum(float((gradient**2).sum()) for gradient in gradients))
    return [gradient * limit / norm for gradient in gradients]


# 10. LSTM and GRU


def lstm_step(x: Array, h: Array, c: Array, W_x: Array, W_h: Array, b: Array) -> tuple[Array, Array]:
    """Return the next hidden and cell state of an LSTM."""
    cell = LSTMCell(len(x), len(h))
    cell.weights = {"W_x": W_x, "W_h": W_h, "b": b}
    (new_h, new_c), _ = cell.step(x[None], (h[None], c[None]))
    return new_h[0], new_c[0]


def _lstm_step(
    x: Array, h: Array, c: Array, W_x: Array, W_h: Array, b: Array, *, order: str = "ifgo", squash: bool = True
) -> tuple[Array, Array]:
    parts = dict(zip(order, np.split(W_x @ x + W_h @ h + b, 4), strict=True))
    i, f, o = (sigmoid(parts[name]) for name in "ifo")
    new_c = f * c + i * np.tanh(parts["g"])
    return o * (np.tanh(new_c) if squash else new_c), new_c


def gru_step(x: Array, h: Array, W_x: Array, W_h: Array, b: Array, *, keeps: bool = True) -> Array:
    """Return the next state of a GRU."""
    cell = GRUCell(len(x), len(h), z_keeps=keeps)
    cell.weights = {"W_x": W_x, "W_h": W_h, "b": b, "b_h": np.zeros_like(b)}
    ((new,), _) = cell.step(x[None], (h[None],))
    row: Array = new[0]
    return row


def _reset_before(x: Array, h: Array, W_x: Array, W_h: Array, b: Array) -> Array:
    cell = GRUCell(len(x), len(h), reset="before")
    cell.weights = {"W_x": W_x, "W_h": W_h, "b": b, "b_h": np.zeros_like(b)}
    ((new,), _) = cell.step(x[None], (h[None],))
    row: Array = new[0]
    return row


def half_life(forget: float) -> float:
    """Return the steps after which half of a cell state is left; the product of equal gates is a power."""
    return float(np.log(0.5) / np.log(forget))


# 11. Taggers and CTC


def spans(tags: Sequence[str]) -> list[tuple[str, int, int]]:
    """Return (type, start, end) of every span of BIO tags."""
    return [(span.kind, span.start, span.stop) for span in read_spans(tags)]


def _spans(tags: Sequence[str], *, last_included: bool = False, b_begins: bool = True) -> list[tuple[str, int, int]]:
    found: list[tuple[str, int, int]] = []
    for index, tag in enumerate(tags):
        kind = tag[2:]
        follows = found and found[-1][0] == kind and found[-1][2] == index
        if kind and follows and not (tag.startswith("B") and b_begins):
            found[-1] = (kind, found[-1][1], index + 1)
        elif kind:
            found.append((kind, index, index + 1))
    return [(kind, first, last - last_included) for kind, first, last in found]


def collapse(symbols: Sequence[int], blank: int) -> list[int]:
    """Merge repeated symbols, then remove blanks."""
    return collapsed(symbols, blank)


def _blanks_first(symbols: Sequence[int], blank: int) -> list[int]:
    return collapsed([symbol for symbol in symbols if symbol != blank], blank)


# 12. Attention


def attention(query: Array, keys: Array, values: Array, *, scaled: bool = True) -> Array:
    """Return scaled dot-product attention: a weighted mean of the values for each query."""
    import torch

    from foreword.nn.attention import attend, dot_scores, scaled_scores

    q, k, v = (torch.tensor(each)[None] for each in (query, keys, values))
    return attend((scaled_scores if scaled else dot_scores)(q, k), v).context[0].numpy()


def causal_weights(scores: Array) -> Array:
    """Return attention weights in which no position sees a later one."""
    import torch

    from foreword.nn.attention import attend

    rows = torch.tensor(scores)[None]
    mask = torch.ones(rows.shape, dtype=torch.bool).tril()
    return attend(rows, torch.eye(len(scores), dtype=rows.dtype)[None], mask).weights[0].numpy()


def _causal_weights(scores: Array, *, below: int = 0, zero: bool = False) -> Array:
    seen = np.tri(len(scores), k=below, dtype=bool)
    if zero:
        weights: Array = np.where(seen, np.array([softmax(row) for row in scores]), 0)
        return weights
    return np.array([softmax(np.where(mask, row, -np.inf)) for mask, row in zip(seen, scores, strict=True)])


def _cases(*shapes: tuple[int, ...], count: int = 3) -> list[tuple[Any, ...]]:
    """Return the arguments of several calls, each an array of normal numbers of one of these shapes."""
    return [tuple(random.normal(size=shape) for shape in shapes) for _ in range(count)]


GRADIENTS = [([each[0], each[1]], limit) for each, limit in zip(_cases((2, 3), (3,)), (0.5, 100.0, 1.0), strict=True)]
FRAMES = [([1, 1, 0, 1, 2, 2], 0), ([0, 0], 0), ([3, 3, 3], 0), ([2, 1, 2, 2, 1, 1], 1), ([], 0)]

EXERCISES = [
    Exercise(
        "7.1",
        "context_pairs",
        [(["the", "cat", "sat", "down"], 1), (["a", "b", "c", "a"], 2), (["alone"], 3)],
        context_pairs,
        {
            "the word itself is no context of its own": lambda words, window: [
                (words[i], word) for i in range(len(words)) for word in words[max(0, i - window) : i + window + 1]
            ],
            "only the words before are used: a window reaches to both sides": lambda words, window: [
                (words[i], word) for i in range(len(words)) for word in words[max(0, i - window) : i]
            ],
        },
    ),
    Exercise(
        "7.2",
        "nearest",
        [(random.normal(size=(6, 3)) * random.uniform(0.2, 5, (6, 1)), row, k) for row, k in ((0, 2), (3, 3), (5, 1))],
        nearest,
        {
            "the word itself is the nearest of all: leave it out": partial(_nearest, unit=True, own=True),
            "the products are not divided by the lengths of the vectors": partial(_nearest, unit=False, own=False),
        },
    ),
    Exercise(
        "7.3",
        "negative_sampling",
        _cases((4,), (4,), (2, 4)),
        negative_sampling,
        {
            "the sign is missing for the negatives: log σ(−u · v)": lambda centre, context, negatives: float(
                -np.log(sigmoid(np.vstack([context, negatives]) @ centre)).sum()
            ),
            "the log-likelihood is returned; the loss is minus that": lambda centre, context, negatives: (
                -negative_sampling(centre, context, negatives)
            ),
        },
    ),
    Exercise(
        "8.1",
        "bengio",
        [
            ([2, 0], *random.normal(size=(5, 3)).reshape(1, 5, 3), *weights)
            for weights in _cases((4, 6), (4,), (5, 4), (5,))
        ],
        bengio,
        {
            "the scores are returned: a softmax makes them probabilities": lambda words, E, H, d, U, b: (
                b + U @ np.tanh(d + H @ E[words].ravel())
            ),
            "the vectors are in the wrong order: the first word comes first": lambda words, E, H, d, U, b: bengio(
                words[::-1], E, H, d, U, b
            ),
            "the hidden layer has no tanh": lambda words, E, H, d, U, b: softmax(b + U @ (d + H @ E[words].ravel())),
        },
    ),
    Exercise(
        "8.2",
        "softmax",
        [(np.array([1.0, 2.0, 3.0]),), (np.zeros(4),), (np.array([1000.0, 999.0, 0.0]),)],
        softmax,
        {
            "exp overflows for large scores: subtract the largest score first": lambda scores: (
                np.exp(scores) / np.exp(scores).sum()
            ),
            "scores are divided by their sum without exp": lambda scores: scores / scores.sum(),
        },
    ),
    Exercise(
        "8.3",
        "output_error",
        [(random.normal(size=5), target) for target in (0, 3, 4)],
        output_error,
        {
            "the sign is wrong: p minus 1 at the target": lambda scores, target: -output_error(scores, target),
            "1 has to be subtracted at the target": lambda scores, target: softmax(scores),
        },
    ),
    Exercise(
        "9.1",
        "rnn_step",
        _cases((3,), (4,), (4, 3), (4, 4), (4,)),
        rnn_step,
        {
            "tanh is missing": lambda x, h, W_x, W_h, b: W_x @ x + W_h @ h + b,
            "the state before is not used": lambda x, h, W_x, W_h, b: np.tanh(W_x @ x + b),
            "the bias is missing": lambda x, h, W_x, W_h, b: np.tanh(W_x @ x + W_h @ h),
            "W_h is transposed": lambda x, h, W_x, W_h, b: np.tanh(W_x @ x + W_h.T @ h + b),
        },
    ),
    Exercise(
        "9.2",
        "gradient_back",
        [(d_h, np.tanh(states), W_h) for d_h, states, W_h in _cases((3,), (4, 3), (3, 3))],
        gradient_back,
        {
            "the slope of tanh, 1 − h², is missing": partial(_gradient_back, slope=False, transposed=True),
            "backwards the matrix is transposed": partial(_gradient_back, slope=True, transposed=False),
        },
    ),
    Exercise(
        "9.3",
        "clip",
        GRADIENTS,
        clip,
        {
            "each array is clipped by its own norm: the norm is that of all together": _clip_each,
            "every number is clipped: that changes the direction": lambda gradients, limit: [
                np.clip(gradient, -limit, limit) for gradient in gradients
            ],
            "gradients below the limit are made larger: leave them as they are": _always_scale,
        },
    ),
    Exercise(
        "10.1",
        "lstm_step",
        _cases((3,), (2,), (2,), (8, 3), (8, 2), (8,)),
        lstm_step,
        {
            "input and forget gate are swapped: the order is i, f, g, o": partial(_lstm_step, order="figo"),
            "the order of the rows is i, f, g, o, not i, f, o, g": partial(_lstm_step, order="ifog"),
            "h is o · tanh(c): the tanh is missing": partial(_lstm_step, squash=False),
        },
    ),
    Exercise(
        "10.2",
        "gru_step",
        _cases((3,), (2,), (6, 3), (6, 2), (6,)),
        gru_step,
        {
            "z and 1 − z are swapped: here z = 1 keeps the old state": partial(gru_step, keeps=False),
            "the reset gate is applied before the matrix: here after it, r · (W_h h)": _reset_before,
        },
    ),
    Exercise(
        "10.3",
        "half_life",
        [(0.5,), (0.9,), (0.99,)],
        half_life,
        {"a product of gates falls as a power, not by the same amount each step": lambda forget: 0.5 / (1 - forget)},
    ),
    Exercise(
        "11.1",
        "spans",
        [(tags.split(),) for tags in ("O B-PER I-PER O", "B-LOC B-LOC", "B-PER I-PER B-LOC", "O O", "B-X I-X B-X")],
        spans,
        {
            "the end is not included: a span of one word at 3 is (kind, 3, 4)": partial(_spans, last_included=True),
            "B- begins a new span, also next to one of the same kind": partial(_spans, b_begins=False),
        },
    ),
    Exercise(
        "11.2",
        "collapse",
        FRAMES,
        collapse,
        {
            "blanks are removed before repetitions: 1 1 _ 1 is 1 1, not 1": _blanks_first,
            "repetitions are not merged": lambda symbols, blank: [symbol for symbol in symbols if symbol != blank],
        },
    ),
    Exercise(
        "12.1",
        "attention",
        _cases((2, 4), (5, 4), (5, 3)),
        attention,
        {
            "the scores are not divided by √d": partial(attention, scaled=False),
            "the softmax is over the queries: it is over the keys, row by row": lambda query, keys, values: (
                np.array([softmax(column) for column in (query @ keys.T / np.sqrt(keys.shape[1])).T]).T @ values
            ),
        },
    ),
    Exercise(
        "12.2",
        "causal_weights",
        _cases((4, 4), count=2),
        causal_weights,
        {
            "a word sees the next one: row i ends at column i": partial(_causal_weights, below=1),
            "masked weights are set to 0 after the softmax, so rows do not sum to one": partial(
                _causal_weights, zero=True
            ),
        },
    ),
]
