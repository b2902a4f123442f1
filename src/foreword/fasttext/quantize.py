"""Smaller classifiers: product quantisation and pruning, as fastText has them (Joulin et al., "FastText.zip", 2016).

A row is cut into parts of a few columns, and each part becomes the number of the nearest of 256 centroids: one byte
for two columns is an eighth of their size. Pruning keeps the rows with the largest norms, the most informative ones.
The result can be written as a ``.ftz`` that fastText reads.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from foreword.arrays import Bytes, Floats
from foreword.errors import SettingError
from foreword.fasttext.classifier import FastTextClassifier
from foreword.fasttext.files import CENTROIDS, END, LABEL, WORD, FastTextFile, ProductQuantizer, QuantizedMatrix
from foreword.fasttext.kernels_model import assign

SAMPLE = 1 << 14
"""Rows that the centroids are learnt from; four times as many changed the error by less than a hundredth."""

ROUNDS = 20


def quantize(
    classifier: FastTextClassifier,
    *,
    cutoff: int | None = None,
    part: int = 2,
    norms: bool = True,
    outputs: bool = False,
    seed: int = 0,
) -> FastTextFile:
    """Return a quantised copy of a classifier's file.

    cutoff: keep this many rows, those with the largest norms; part: columns that share a byte; norms: store each row's
    length in a byte of its own; outputs: quantise the labels' rows too, which pays only if there are many.
    """
    file = classifier.to_file()
    if not isinstance(file.inputs, np.ndarray) or not isinstance(file.outputs, np.ndarray) or file.prune is not None:
        raise SettingError("the classifier is quantised already")
    if part < 1 or (cutoff is not None and cutoff < 1):
        raise SettingError(f"cutoff={cutoff}, part={part}: expected positive numbers")
    if cutoff is not None and cutoff < len(file.inputs):
        file = _pruned(file, cutoff)
    rng = np.random.default_rng(seed)
    inputs = quantize_matrix(np.ascontiguousarray(file.inputs), part, norms, rng)
    answers = quantize_matrix(np.ascontiguousarray(file.outputs), 2, norms, rng) if outputs else file.outputs
    return replace(file, inputs=inputs, outputs=answers)


def _pruned(file: FastTextFile, cutoff: int) -> FastTextFile:
    """Keep only the rows with the largest norms, and ``</s>``, and what they need of the dictionary and the buckets."""
    assert isinstance(file.inputs, np.ndarray)
    lengths = np.linalg.norm(file.inputs, axis=1)
    if END in file.words:
        lengths[file.words.index(END)] = np.inf
    kept = np.sort(np.argsort(-lengths, kind="stable")[:cutoff])
    size = file.number_of_words
    words, buckets = kept[kept < size], kept[kept >= size] - size
    entries = np.concatenate((words, np.arange(size, len(file.words))))
    return replace(
        file,
        words=[file.words[entry] for entry in entries],
        counts=file.counts[entries],
        types=np.array([WORD] * len(words) + [LABEL] * file.number_of_labels, np.int8),
        prune=np.stack((buckets, np.arange(len(buckets))), axis=1).astype(np.int32),
        inputs=file.inputs[kept],
    )


def quantize_matrix(matrix: Floats, part: int, norms: bool, rng: np.random.Generator) -> QuantizedMatrix:
    """Quantise a matrix, also one of word vectors; ``to_floats`` gives back its approximation."""
    rows, columns = matrix.shape
    norm_codes, norm_quantizer = None, None
    if norms:
        lengths = np.linalg.norm(matrix, axis=1).astype(np.float32)
        matrix = (matrix / np.where(lengths > 0, lengths, 1)[:, None]).astype(np.float32)
        norm_quantizer = _learn(lengths[:, None], 1, rng)
        norm_codes = _codes(lengths[:, None], norm_quantizer)
    quantizer = _learn(matrix, min(part, columns), rng)
    return QuantizedMatrix(rows, columns, _codes(matrix, quantizer), quantizer, norm_codes, norm_quantizer)


def _learn(matrix: Floats, part: int, rng: np.random.Generator) -> ProductQuantizer:
    """Learn 256 centroids for every part of the columns, by k-means from rows drawn at random."""
    columns = matrix.shape[1]
    sample = matrix if len(matrix) <= SAMPLE else matrix[np.sort(rng.choice(len(matrix), SAMPLE, replace=False))]
    sample = np.ascontiguousarray(sample, np.float32)
    tables = [
        _k_means(sample, first, min(part, columns - first), rng).T.reshape(-1) for first in range(0, columns, part)
    ]
    parts = len(tables)
    return ProductQuantizer(columns, parts, part, columns - (parts - 1) * part, np.concatenate(tables))


def _k_means(points: Floats, first: int, width: int, rng: np.random.Generator) -> Floats:
    """Return the centroids of a part, (width, 256). A centroid without points moves to a random one."""
    chosen = points[rng.integers(0, max(1, len(points)), CENTROIDS), first : first + width]
    table = np.ascontiguousarray(chosen.T, np.float32)
    codes, distances = np.empty(len(points), np.uint8), np.empty(CENTROIDS, np.float32)
    for _ in range(ROUNDS):
        assign(points, first, width, table, codes, distances)
        counts = np.bincount(codes, minlength=CENTROIDS)
        for k in range(width):
            sums = np.bincount(codes, points[:, first + k], CENTROIDS)
            table[k, counts > 0] = (sums[counts > 0] / counts[counts > 0]).astype(np.float32)
        empty = np.flatnonzero(counts == 0)
        table[:, empty] = points[rng.integers(0, max(1, len(points)), len(empty)), first : first + width].T
    return table


def _codes(matrix: Floats, quantizer: ProductQuantizer) -> Bytes:
    """Return the nearest centroid of every part of every row, row by row."""
    codes = np.empty((quantizer.nsubq, len(matrix)), np.uint8)
    distances = np.empty(CENTROIDS, np.float32)
    matrix = np.ascontiguousarray(matrix, np.float32)
    for number in range(quantizer.nsubq):
        width = quantizer.lastdsub if number == quantizer.nsubq - 1 else quantizer.dsub
        start = number * CENTROIDS * quantizer.dsub
        table = quantizer.centroids[start : start + CENTROIDS * width].reshape(CENTROIDS, width).T
        assign(matrix, number * quantizer.dsub, width, np.ascontiguousarray(table), codes[number], distances)
    return np.ascontiguousarray(codes.T).reshape(-1)
