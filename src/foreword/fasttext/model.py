"""fastText's classifier as a value: a dictionary, two matrices, lines in, labels out; counted, saved, and as a file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from typing import Any, Self

import numpy as np

from foreword.arrays import Array, Bytes, Floats, Ints, Longs, ULongs, frozen
from foreword.errors import InputError, SettingError
from foreword.fasttext.files import (
    END,
    HIERARCHICAL,
    LABEL,
    SOFTMAX,
    SUPERVISED,
    WORD,
    FastTextFile,
    QuantizedMatrix,
    Settings,
    check_sizes,
)
from foreword.fasttext.kernels_cut import count_words
from foreword.fasttext.kernels_lines import LineReader, LineWorkspace, make_line_workspace
from foreword.fasttext.kernels_model import Answers, Question, make_best, predict_lines, read_rows
from foreword.protocols import Json, Parts
from foreword.storage.joined import check_joined, joined, offsets_of, separated
from foreword.text.block import Block
from foreword.tokens.counting import Counted
from foreword.tokens.strings import BATCH, StringTable
from foreword.vectors.kernels_training import Paths
from foreword.vectors.training import checked, padded, widened

PREFIX = b"__label__"

CACHED_BYTES = 1 << 20
"""Workspaces for lines up to this long are cached for the next call."""

CODED = ("inputs", "outputs")
"""The matrices that may be quantised."""


# The dictionary


@dataclass(frozen=True, eq=False)
class Dictionary:
    """Words first, then labels with their prefix, each by falling count.

    data, offsets: entry i is ``data[offsets[i]:offsets[i + 1]]``; counts: int64; labels: how many entries are labels.
    """

    data: Bytes
    offsets: Longs
    counts: Longs
    labels: int

    @classmethod
    def of(cls, words: Sequence[bytes], counts: Longs, labels: int) -> Self:
        """Build a dictionary from a list of entries."""
        return cls(*joined(words), counts, labels)

    @classmethod
    def from_parts(cls, parts: Parts, labels: int) -> Self:
        """Build a dictionary from a model folder; raise a ValueError if it is malformed."""
        data, offsets = parts.arrays["words"], parts.arrays["word_offsets"]
        check_joined(data, offsets, "words")
        if not 0 < labels < len(offsets):
            raise ValueError(f"{labels} labels among {len(offsets) - 1} words")
        return cls(data, offsets, checked(parts.arrays, "counts", np.int64, (len(offsets) - 1,)), labels)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Dictionary):
            return NotImplemented
        pairs = ((self.data, other.data), (self.offsets, other.offsets), (self.counts, other.counts))
        return self.labels == other.labels and all(np.array_equal(one, two) for one, two in pairs)

    __hash__ = None  # type: ignore[assignment]

    @property
    def size(self) -> int:
        """Number of words."""
        return len(self.offsets) - 1 - self.labels

    @property
    def words(self) -> list[bytes]:
        """All entries."""
        return self._entries(0)

    @property
    def label_words(self) -> list[bytes]:
        """The labels, with their prefix."""
        return self._entries(self.size)

    def _entries(self, first: int) -> list[bytes]:
        return separated(self.data, self.offsets[first:])

    def index_of_end(self) -> int:
        """Return the entry of ``</s>``, or −1; it is nearly always the first, for no word is more frequent."""
        offsets, mark = self.offsets, np.frombuffer(END, np.uint8)
        for entry in np.flatnonzero(np.diff(offsets) == len(END)).tolist():
            if np.array_equal(self.data[offsets[entry] : offsets[entry + 1]], mark):
                return int(entry)
        return -1


def count_lines(block: Block, marks: list[list[str]], min_count: int) -> tuple[Dictionary, Ints, Longs]:
    """Return the dictionary of a text and its labels, each line's labels as indices among them, and where they end."""
    data, offsets, counts = words_by_frequency(block, min_count)
    seen: dict[str, int] = {}
    for line in marks:
        for label in line:
            seen[label] = seen.get(label, 0) + 1
    names = sorted(seen, key=lambda label: -seen[label])
    for name in names:
        if any(character.isspace() for character in name):
            raise InputError(f"the label {name!r} has a blank in it, which fastText's lines cannot hold")
    number = {name: index for index, name in enumerate(names)}
    ends = offsets_of(marks)
    flat = np.array([number[label] for line in marks for label in line], np.int32)
    label_data, label_offsets = joined([PREFIX + name.encode() for name in names])
    dictionary = Dictionary(
        np.concatenate((data, label_data)),
        np.concatenate((offsets, label_offsets[1:] + len(data))),
        np.concatenate((counts, np.array([seen[name] for name in names], np.int64))),
        len(names),
    )
    return dictionary, flat, ends


def words_by_frequency(block: Block, min_count: int) -> tuple[Bytes, Longs, Longs]:
    """Return the words between fastText's separators, by falling count, as data, offsets and counts; ``</s>``, which
    ends every line, is one of them.

    Words that look like labels are left out, since the labels of a line are given separately.
    """
    table = StringTable()
    table.add(*joined([END]), np.zeros(1, np.int64), np.full(1, -1))  # number 1, before all of equal count
    position = np.array([0, 0, table.size], np.int64)
    batch, keys = np.empty(BATCH * 4, np.int64), np.empty(BATCH * 4, np.uint64)
    while need := count_words(
        frozen(block.data), block.starts, block.stops, table.slots, table.arena, table.starts, *table.tallies,
        batch, keys, position,
    ):  # fmt: skip
        table.grow(int(position[2]), need)
    table.size = int(position[2])
    counted = Counted.of(table)
    counted.counts[1] = len(block)
    kept = counted.counts >= min_count
    kept[0], kept[1] = False, True
    kept[_like_labels(counted)] = False
    order = counted.by_frequency(np.flatnonzero(kept))
    return *counted.gather(order), counted.counts[order]


def _like_labels(counted: Counted) -> list[int]:
    """Return the words that begin with the prefix of labels."""
    first, prefix = counted.offsets[:-1], np.frombuffer(PREFIX, np.uint8)
    long = np.flatnonzero(np.diff(counted.offsets) >= len(prefix))
    alike = long[counted.data[first[long]] == prefix[0]].tolist()
    return [number for number in alike if np.array_equal(counted.data[first[number] :][: len(prefix)], prefix)]


# The model


@dataclass(frozen=True)
class LineModel:
    """A trained classifier.

    settings: under fastText's names; pools: 1 for the mean of a line's rows, 3 for mean, largest and smallest;
    distinct: whether a row counts once in a line however often it comes.

    inputs: float32 (rows, stride), stride a multiple of sixteen; outputs: float32 (labels, pools * stride).
    prune: int32 (n, 2), the buckets of n-grams that have a row and their rows, or None if all have.
    slots: the dictionary's hash table, if it was saved; else it is built on first use.
    weights: float32 (rows,), the weight of each row in the mean, or None if all are equal.
    codes: the quantised inputs and outputs, if there are any; only a ``.ftz`` is written from them.
    """

    settings: Settings
    dictionary: Dictionary
    inputs: Floats
    outputs: Floats
    prune: Ints | None = None
    pools: int = 1
    distinct: bool = False
    slots: ULongs | None = None
    codes: tuple[QuantizedMatrix | None, QuantizedMatrix | None] = (None, None)
    prefix: bytes = PREFIX
    weights: Floats | None = None

    @cached_property
    def label_names(self) -> list[str]:
        """The labels without their prefix."""
        names = self.dictionary.label_words
        return [name.removeprefix(self.prefix).decode("utf-8", "surrogateescape") for name in names]

    @cached_property
    def table(self) -> ULongs:
        """The hash table of the dictionary, in which entry i has the number i + 1."""
        return (
            StringTable.over(self.dictionary.data, self.dictionary.offsets).slots if self.slots is None else self.slots
        )

    @cached_property
    def reader(self) -> LineReader:
        """What turns lines into rows."""
        settings, dictionary = self.settings, self.dictionary
        kept, ranks, rows = _kept_buckets(settings.bucket, self.prune)
        least, most = (settings.minn, settings.maxn) if settings.bucket else (0, 0)
        return LineReader(
            frozen(self.table), frozen(dictionary.data), frozen(dictionary.offsets), dictionary.size,
            dictionary.index_of_end(), least, most, settings.wordNgrams, settings.bucket, self.prune is not None, kept,
            ranks, rows, np.frombuffer(self.prefix, np.uint8), self.distinct,
        )  # fmt: skip

    @cached_property
    def _workspaces(self) -> list[LineWorkspace]:
        """Workspaces that no thread is using."""
        return []

    @cached_property
    def answers(self) -> Answers:
        """What turns hidden vectors into labels."""
        tree = self.settings.loss == HIERARCHICAL
        left, right = label_tree(self.label_counts) if tree else ([-1], [-1])
        return Answers(
            self.pools, self.outputs.reshape(-1), self.dictionary.labels, tree, np.array(left, np.int32),
            np.array(right, np.int32), self.settings.loss == SOFTMAX, self.weights is not None,
            np.ones(1, np.float32) if self.weights is None else self.weights, np.empty(0, np.float32),
        )  # fmt: skip

    @property
    def label_counts(self) -> list[int]:
        """How often each label occurred in training."""
        counts: list[int] = self.dictionary.counts[self.dictionary.size :].tolist()
        return counts

    @cached_property
    def _parents(self) -> Ints:
        """The parent of each node of the tree, −1 for the root; empty where there is no tree."""
        left, right = self.answers.left, self.answers.right
        parents = np.full(len(left) if self.answers.tree else 0, -1, np.int32)
        for node in range(self.dictionary.labels, len(parents)):
            parents[left[node]] = parents[right[node]] = node
        return parents

    def predict(self, block: Block, k: int, threshold: float) -> tuple[Ints, Floats]:
        """Return the k likeliest labels of each line (lines, k), −1 where there are fewer, and their probabilities."""
        return self.probabilities(block, k, threshold)[:2]

    def probabilities(
        self,
        block: Block,
        k: int,
        threshold: float = 0.0,
        *,
        wanted: Sequence[int] = (),
        only: Sequence[int] | None = None,
        before: bool = False,
    ) -> tuple[Ints, Floats, Floats]:
        """Return what ``predict`` does, and the probabilities of the labels ``wanted``: float32 (lines, wanted), NaN
        for a line without a known word.

        only: labels that can be among the best. before: restrict to them before the softmax, so that their
        probabilities sum to one, instead of after it.
        """
        stride, every = self.inputs.shape[1], np.arange(self.dictionary.labels, dtype=np.int32)
        if before and self.answers.tree:
            raise SettingError("a hierarchical softmax cannot be restricted to some labels before, only after it")
        ranked = every if only is None else np.array(only, np.int32)
        question = Question(
            k, threshold, ranked if before else every, ranked, np.array(wanted, np.int32), only is None, self._parents
        )
        if before and not np.isin(question.wanted, ranked).all():
            raise SettingError("a label that the softmax leaves out has no probability")
        labels, best = np.empty((len(block), k), np.int32), np.empty((len(block), k), np.float32)
        shares = np.empty((len(block), len(wanted)), np.float32)
        workspace = self._workspace(int((block.stops - block.starts).max(initial=0)))
        answers = self.answers._replace(outputs=frozen(self.answers.outputs), weights=frozen(self.answers.weights))
        predict_lines(
            frozen(block.data), block.starts, block.stops, self.reader, frozen(self.inputs.reshape(-1)), stride,
            answers, question, workspace, np.empty(3 * stride, np.float32), make_best(self.dictionary.labels, k),
            labels, best, shares,
        )  # fmt: skip
        if workspace.size <= CACHED_BYTES:
            self._workspaces.append(workspace)
        return labels, best, shares

    def _workspace(self, longest: int) -> LineWorkspace:
        """Return a workspace for lines of that size: a cached one, with the n-grams of words in it, or a new one."""
        try:
            workspace = self._workspaces.pop()
        except IndexError:
            return make_line_workspace(longest, self.reader, self.inputs.shape[1])
        large = workspace.size >= longest
        return workspace if large else make_line_workspace(longest, self.reader, self.inputs.shape[1])

    def rows_of_lines(self, block: Block, workspace: LineWorkspace) -> tuple[Ints, Longs]:
        """Return every line's rows, found once for all epochs: four bytes per row, less than the text as strings."""
        ends = np.zeros(len(block) + 1, np.int64)
        rows = np.empty(max(1024, block.text_bytes() // 2), np.int32)
        line = 0
        while True:
            line = read_rows(
                frozen(block.data), block.starts, block.stops, line, self.reader, workspace, rows, ends
            )  # fmt: skip
            if line == len(block):
                return rows[: ends[-1]], ends
            rows = np.concatenate((rows[: ends[line]], np.empty(len(rows) + len(workspace.rows), np.int32)))

    # Files and folders

    @classmethod
    def from_file(cls, file: FastTextFile) -> Self:
        """Build a model from a fastText file."""
        if file.settings.model != SUPERVISED:
            raise InputError("these are word vectors, not a classifier: a classifier is trained with labels")
        inputs, outputs = (
            matrix.to_floats() if isinstance(matrix, QuantizedMatrix) else matrix
            for matrix in (file.inputs, file.outputs)
        )
        codes = (
            file.inputs if isinstance(file.inputs, QuantizedMatrix) else None,
            file.outputs if isinstance(file.outputs, QuantizedMatrix) else None,
        )
        dictionary = Dictionary.of(file.words, file.counts, file.number_of_labels)
        prune = None if file.prune is None else np.array(file.prune, np.int32)
        return cls(file.settings, dictionary, widened(inputs), widened(outputs), prune, codes=codes)

    def to_file(self) -> FastTextFile:
        """Return the model as in a fastText file; fastText has no pooling but the mean."""
        if self.pools != 1 or self.distinct:
            raise InputError("fastText knows no pooling but the mean: this model cannot be one of its files")
        words, counts, labels = self.dictionary.words, self.dictionary.counts, self.dictionary.labels
        types = np.repeat(np.array([WORD, LABEL], np.int8), [self.dictionary.size, labels])
        d = self.settings.dim
        tokens = int(counts[: self.dictionary.size].sum())
        inputs, outputs = self.codes
        return FastTextFile(
            self.settings, words, counts, types, tokens, self.prune,
            self.inputs[:, :d] if inputs is None else inputs, self.outputs[:, :d] if outputs is None else outputs,
        )  # fmt: skip

    def to_parts(self) -> Parts:
        """Return everything that predicting needs in the form it is used, so that a large model opens at once."""
        arrays: dict[str, Array] = {
            "inputs": self.inputs,
            "outputs": self.outputs,
            "words": self.dictionary.data,
            "word_offsets": self.dictionary.offsets,
            "counts": self.dictionary.counts,
            "table": self.table,
        }
        arrays |= {name: array for name in ("prune", "weights") if (array := getattr(self, name)) is not None}
        settings: dict[str, Any] = asdict(self.settings)
        settings |= {"labels": self.dictionary.labels, "pools": self.pools, "distinct": self.distinct, "codes": {}}
        for name, matrix in zip(CODED, self.codes, strict=True):
            if matrix is not None:
                settings["codes"][name] = matrix.quantizer.dsub
                arrays |= matrix.to_arrays(name)
        return Parts(settings, arrays)

    @classmethod
    def from_parts(cls, parts: Parts) -> Self:
        """Build a model from a folder; raise a ValueError if it is malformed."""
        settings: dict[str, Any] = dict(parts.settings)
        labels, pools, distinct = (settings.pop(name, None) for name in ("labels", "pools", "distinct"))
        widths = settings.pop("codes", {})
        if set(settings) != {field.name for field in fields(Settings)} or pools not in (1, 3):
            raise ValueError("expected fastText's settings, the numbers 'labels' and 'pools', and 'distinct'")
        # Kernels are compiled for the types they are called with: for others it would take half a minute.
        whole = [value for name, value in settings.items() if name != "t"]
        if not all(type(value) is int for value in (*whole, pools)) or type(settings["t"]) not in (int, float):
            raise ValueError("a setting is not an integer")
        if not isinstance(labels, int) or type(distinct) is not bool:
            raise ValueError("expected a number of 'labels', and 'distinct' true or false")
        made = Settings(**settings)
        dictionary = Dictionary.from_parts(parts, labels)
        stride = padded(made.dim)
        rows = {name: len(parts.arrays[name]) if name in parts.arrays else 0 for name in CODED}
        inputs = checked(parts.arrays, "inputs", np.float32, (rows["inputs"], stride))
        outputs = checked(parts.arrays, "outputs", np.float32, (rows["outputs"], pools * stride))
        prune, slots = parts.arrays.get("prune"), parts.arrays.get("table")
        if slots is not None and (slots.dtype != np.uint64 or slots.ndim != 1 or not _is_power_of_two(len(slots) // 4)):
            raise ValueError("expected a table of 64-bit words, four times a power of two")
        check_sizes(made, dictionary.size, labels, prune, rows["inputs"], rows["outputs"])
        codes = _codes_of(parts, widths, rows, made.dim)
        weights = checked(parts.arrays, "weights", np.float32, (len(inputs),)) if "weights" in parts.arrays else None
        return cls(made, dictionary, inputs, outputs, prune, pools, distinct, slots, codes, weights=weights)


def _codes_of(
    parts: Parts, widths: Json, rows: dict[str, int], columns: int
) -> tuple[QuantizedMatrix | None, QuantizedMatrix | None]:
    """Build the quantised matrices of a folder. widths: the number of columns that share a code, by matrix."""
    if not isinstance(widths, dict):
        raise ValueError("expected 'codes' to give the number of columns that share one")

    def matrix(name: str) -> QuantizedMatrix | None:
        width = widths.get(name, 0)
        if not isinstance(width, int):
            raise ValueError(f"{name}: the number of columns that share a code must be a whole number")
        return QuantizedMatrix.from_arrays(parts.arrays, name, rows[name], columns, width) if width else None

    return matrix("inputs"), matrix("outputs")


def _is_power_of_two(number: int) -> bool:
    return number > 0 and number & (number - 1) == 0


def rarity(rows: Ints, lines: int, size: int) -> Floats:
    """Return the weight of each row: log((n + 2) / (f + 1)) if f of n lines have it.

    rows: those of all lines, each once per line. A row of every line has a weight near zero, a row of none the largest.
    """
    found = np.bincount(rows, minlength=size)
    return np.log((lines + 2) / (found + 1)).astype(np.float32)


def _kept_buckets(buckets: int, prune: Ints | None) -> tuple[ULongs, Ints, Ints]:
    """Return a bit for each bucket with a row, the number before each 64 bits, and the rows in the buckets' order."""
    size = -(-max(1, buckets) // 64) if prune is not None else 1
    kept, counts, rows = np.zeros(size, np.uint64), np.zeros(size, np.int32), np.zeros(1, np.int32)
    if prune is not None and len(prune):
        order = np.argsort(prune[:, 0], kind="stable")
        words, bits = np.divmod(prune[order, 0], 64)
        np.bitwise_or.at(kept, words, np.uint64(1) << bits.astype(np.uint64))
        counts = np.bincount(words, minlength=size).astype(np.int32)
        rows = np.ascontiguousarray(prune[order, 1])
    return kept, np.cumsum(counts, dtype=np.int32) - counts, rows


# The tree of the hierarchical softmax


def label_tree(counts: list[int]) -> tuple[list[int], list[int]]:
    """Return the children of each node of fastText's Huffman tree: leaves 0 to n − 1 are the labels, the root is 2n −
    2.

    Labels come with falling counts, so the two rarest nodes are always the last leaf left or the first inner node left.
    """
    n = len(counts)
    weights = [*counts, *([int(1e15)] * (n - 1))]
    left, right = [-1] * (2 * n - 1), [-1] * (2 * n - 1)
    leaf, node = n - 1, n
    for parent in range(n, 2 * n - 1):
        pair = []
        for _ in range(2):
            if leaf >= 0 and (node >= parent or weights[leaf] < weights[node]):
                pair.append(leaf)
                leaf -= 1
            else:
                pair.append(node)
                node += 1
        left[parent], right[parent] = pair
        weights[parent] = weights[pair[0]] + weights[pair[1]]
    return left, right


def label_paths(counts: list[int]) -> Paths:
    """Return each label's path from the root: the inner nodes, counted from 0, and 1 where it turns right."""
    left, right = label_tree(counts)
    n = len(counts)
    steps: list[list[tuple[int, int]]] = [[] for _ in range(2 * n - 1)]
    for node in range(2 * n - 2, n - 1, -1):
        steps[left[node]] = [*steps[node], (node - n, 0)]
        steps[right[node]] = [*steps[node], (node - n, 1)]
    flat = [step for path in steps[:n] for step in path]
    offsets = offsets_of(steps[:n])
    nodes = np.array([node for node, _ in flat], np.int32)
    return Paths(nodes, np.array([turn for _, turn in flat], np.uint8), offsets)
