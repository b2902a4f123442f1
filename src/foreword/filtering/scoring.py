"""Columns of scores for blocks of documents, by any model that reads text: named, with one value per row.

A language model gives ``score`` (natural log-probability, the end included), ``tokens``, ``oov`` and ``perplexity``,
as ``foreword score`` does; a classifier gives ``label``, the likeliest, and its ``probability``, rounded to six places.

A document longer than ``piece_bytes`` is cut at white space and scored in pieces. Log-probabilities and tokens of its
pieces are added, so that its perplexity is that of the mean log-probability of all tokens, each piece's end included.
A classifier's probabilities are averaged over the pieces, weighted by their bytes, and then the best label is taken.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol

import numpy as np

from foreword import kinds
from foreword.arrays import Array, Bools, Bytes, Doubles, Ints, Longs
from foreword.errors import InputError
from foreword.filtering.settings import PIECE_BYTES
from foreword.pipeline.scoring import DocumentScores, score_documents
from foreword.storage.folder import load
from foreword.text.block import Block
from foreword.text.unicode import IS_ASCII_WHITE, blank, character_start

if TYPE_CHECKING:
    from foreword.classify.recurrent import RecurrentClassifier
    from foreword.fasttext.classifier import FastTextClassifier
    from foreword.pipeline.classifier import TextClassifier
    from foreword.pipeline.language import TextLM


NETWORK_BYTES = 64 << 10
"""How much text a network reads at a time: it needs kilobytes per token."""

MATRIX_CELLS = 4 << 20
"""How many probabilities of a classifier are in memory at a time: 32 MB."""

LABEL, PROBABILITY, PERPLEXITY = "label", "probability", "perplexity"
LOWER_IS_BETTER = ("perplexity", "oov")


@dataclass(frozen=True, slots=True)
class Column:
    """Values, one per row: float64, NaN if missing; int64; or with ``names`` int32 indices of them, −1 if missing."""

    name: str
    values: Array
    names: Sequence[str] | None = None

    def __len__(self) -> int:
        return len(self.values)

    @property
    def missing(self) -> Bools:
        """Return which rows have no value."""
        if self.names is not None:
            return np.asarray(self.values < 0)
        if self.values.dtype == np.float64:
            return np.asarray(np.isnan(self.values))
        return np.zeros(len(self.values), np.bool_)

    def at(self, rows: Array) -> Column:
        """Return the values of some rows."""
        return Column(self.name, self.values[rows], self.names)

    def spelled(self, nothing: str, quoted: bool) -> list[str]:
        """Return every value as JSON, or unquoted as plain text; missing and infinite values are ``nothing``."""
        if self.names is not None:
            words = [json.dumps(name, ensure_ascii=False) if quoted else name for name in self.names]
            words.append(nothing)  # at index −1
            return [words[index] for index in self.values.tolist()]
        spelled = list(map(repr, self.values.tolist()))
        for row in np.flatnonzero(~np.isfinite(self.values)).tolist():
            spelled[row] = nothing
        return spelled

    def to_arrow(self) -> Any:
        """Return the column as an Arrow array; missing values are null."""
        import pyarrow

        if self.names is None:
            kind = pyarrow.float64() if self.values.dtype == np.float64 else pyarrow.int64()
            return arrow_numbers(kind, self.values, self.missing)  # NaN is null
        indices = arrow_numbers(pyarrow.int32(), self.values, self.missing)
        return pyarrow.DictionaryArray.from_arrays(indices, pyarrow.array(self.names, pyarrow.string())).cast("string")


def arrow_numbers(kind: Any, values: Array, missing: Bools) -> Any:
    """Return an Arrow array over these values. ``pyarrow.array`` would import all of pandas, to see whether an array is
    one of its own, which takes longer than to filter ten megabytes.
    """
    import pyarrow

    valid = arrow_bits(~missing) if missing.any() else None
    return pyarrow.Array.from_buffers(kind, len(values), [valid, pyarrow.py_buffer(np.ascontiguousarray(values))])


def arrow_mask(rows: Bools) -> Any:
    """Return an Arrow array of truth values."""
    import pyarrow

    return pyarrow.Array.from_buffers(pyarrow.bool_(), len(rows), [None, arrow_bits(rows)])


def arrow_bits(truths: Bools) -> Any:
    """Return truth values as Arrow packs them, eight to a byte."""
    import pyarrow

    return pyarrow.py_buffer(np.packbits(truths, bitorder="little"))


class Scorer(Protocol):
    """A model that gives columns of scores."""

    def columns(self, texts: Block) -> list[Column]:
        """Score documents; a blank document has no values."""
        ...


def open_scorer(path: str | Path, prefix: str = "", piece_bytes: int = PIECE_BYTES) -> Scorer:
    """Load a model that reads text; ``prefix`` is put before the names of its columns."""
    return scorer_of(load(path), str(path), prefix, piece_bytes)


def scorer_of(model: Any, name: str, prefix: str, piece_bytes: int) -> Scorer:
    """Wrap a model; ``name`` is its path, for messages."""
    # The cores are busy with other shards, and torch adds in another order with more threads.
    if (torch := sys.modules.get("torch")) is not None:
        torch.set_num_threads(1)
    kind = kinds.of(model)
    if "score" in kind.abilities:
        counting = kinds.of(model.model).name == "ngram"
        if counting:
            model.model.threads = 1
        return LanguageScorer(model, prefix, piece_bytes, counting)
    if "classify" not in kind.abilities:
        raise InputError(f"{name}: its kind is {kind.name}, which neither scores a text nor labels one")
    if kind.network:
        return NetworkClassScorer(model, prefix, piece_bytes)
    # By kind and not by class: only the modules of the model at hand are loaded, in every process.
    scorer = FastTextScorer if kind.name == "fasttext-classifier" else ClassScorer
    return scorer(model, prefix, piece_bytes)


# --- language models


@dataclass(frozen=True)
class LanguageScorer:
    """A language model. counting: whether it needs only eight bytes per token, so that it reads whole blocks."""

    model: TextLM
    prefix: str
    piece_bytes: int
    counting: bool

    def columns(self, texts: Block) -> list[Column]:
        """Return score, tokens, oov and perplexity of each text."""
        pieces, owners = cut(texts, self.piece_bytes)
        size = texts.text_bytes() if self.counting else NETWORK_BYTES
        found = [score_documents(self.model, part) for part in batches_of(pieces, size)]
        logs = np.concatenate([part.logprobs for part in found])
        tokens = np.concatenate([part.tokens for part in found])
        oov = np.concatenate([part.oov for part in found])
        if owners is not None:
            logs = np.bincount(owners, np.nan_to_num(logs, nan=0.0, neginf=-np.inf), len(texts))
            tokens, oov = (np.bincount(owners, each, len(texts)).astype(np.int64) for each in (tokens, oov))
            logs[tokens == 0] = np.nan
        scores = DocumentScores(logs, tokens, oov)
        values = {"score": logs, "tokens": tokens, "oov": oov, PERPLEXITY: scores.perplexities}
        return [Column(self.prefix + name, value) for name, value in values.items()]


# --- classifiers


@dataclass(frozen=True)
class ClassScorer:
    """A classifier of text."""

    model: TextClassifier
    prefix: str
    piece_bytes: int

    def columns(self, texts: Block) -> list[Column]:
        """Return the likeliest label of each text and its probability."""
        names = [str(label) for label in self.model.classes_]
        long = texts.stops - texts.starts > self.piece_bytes
        if long.any():
            labels, shares = np.empty(len(texts), np.int32), np.empty(len(texts))
            labels[~long], shares[~long] = self.best(_some(texts, ~long))
            labels[long], shares[long] = self._best_of_pieces(_some(texts, long))
        else:
            labels, shares = self.best(texts)
        labels[blank(texts.data, texts.starts, texts.stops)] = -1
        shares = np.where(labels >= 0, np.round(shares, 6), np.nan)
        return [Column(self.prefix + LABEL, labels, names), Column(self.prefix + PROBABILITY, shares)]

    def best(self, texts: Block) -> tuple[Ints, Doubles]:
        """Return the likeliest label of each text and its probability, a bounded number of texts at a time."""
        labels, shares = [np.empty(0, np.int32)], [np.empty(0)]
        rows = max(1, MATRIX_CELLS // len(self.model.classes_))
        for first in range(0, len(texts), rows):
            chances = np.exp(self.model.predict_log_proba([_some(texts, slice(first, first + rows))]))
            labels.append(chances.argmax(axis=1).astype(np.int32))
            shares.append(chances.max(axis=1))
        return np.concatenate(labels), np.concatenate(shares)

    def chances(self, text: Block) -> Doubles:
        """Return the probability of every label for one text."""
        return np.exp(np.asarray(self.model.predict_log_proba([text])[0], np.float64))

    def _best_of_pieces(self, texts: Block) -> tuple[Ints, Doubles]:
        """Return what ``best`` does for long texts, one after another."""
        labels, shares = np.empty(len(texts), np.int32), np.empty(len(texts))
        for text in range(len(texts)):
            pieces, _ = cut(_some(texts, slice(text, text + 1)), self.piece_bytes)
            weights = (pieces.stops - pieces.starts) / pieces.text_bytes()
            found = [self.chances(_some(pieces, slice(piece, piece + 1))) for piece in range(len(pieces))]
            chances = weights @ np.array(found)
            labels[text], shares[text] = chances.argmax(), chances.max()
        return labels, shares


@dataclass(frozen=True)
class FastTextScorer(ClassScorer):
    """fastText, which reads a text up to the end of its line and may give it no label."""

    model: FastTextClassifier  # type: ignore[assignment]

    def columns(self, texts: Block) -> list[Column]:
        """Return label and probability of each text, read as one line as fastText does."""
        return super().columns(one_line(texts))

    def best(self, texts: Block) -> tuple[Ints, Doubles]:
        """Return the index of the likeliest label of each text, and its probability."""
        labels, shares = self.model.model.predict(texts, 1, 0.0)
        return labels[:, 0], shares[:, 0].astype(np.float64)

    def chances(self, text: Block) -> Doubles:
        """Return the probability of every label for one text."""
        classes = len(self.model.classes_)
        labels, shares = self.model.model.predict(text, classes, 0.0)
        chances = np.zeros(classes)
        chances[labels[labels >= 0]] = shares[labels >= 0]
        return chances


@dataclass(frozen=True)
class NetworkClassScorer(ClassScorer):
    """A network, which reads strings, and a little text at a time."""

    model: RecurrentClassifier  # type: ignore[assignment]

    def best(self, texts: Block) -> tuple[Ints, Doubles]:
        """Return the index of the likeliest label of each text, and its probability."""
        parts = [np.exp(self.model.predict_log_proba(part.strings())) for part in batches_of(texts, NETWORK_BYTES)]
        chances = np.concatenate([np.empty((0, len(self.model.classes_))), *parts])
        return chances.argmax(axis=1).astype(np.int32), chances.max(axis=1, initial=0.0)

    def chances(self, text: Block) -> Doubles:
        """Return the probability of every label for one text."""
        found: Doubles = np.exp(self.model.predict_log_proba(text.strings())[0])
        return found


# --- blocks


def one_line(texts: Block) -> Block:
    """Return the same texts, each on one line, as fastText reads them."""
    from foreword.text.kernels import on_one_line

    if not len(texts):
        return texts
    first, last = int(texts.starts[0]), int(texts.stops.max())
    data = texts.data[first:last].copy()
    on_one_line(data)
    return Block(data, texts.starts - first, texts.stops - first)


def cut(texts: Block, limit: int) -> tuple[Block, Longs | None]:
    """Cut documents longer than ``limit`` bytes; return the pieces and the document of each, None if none was cut."""
    if not len(texts) or int((texts.stops - texts.starts).max()) <= limit:
        return texts, None
    pieces: list[tuple[int, int, int]] = []
    for owner, (start, stop) in enumerate(zip(texts.starts.tolist(), texts.stops.tolist(), strict=True)):
        while stop - start > limit:
            end = _cut_before(texts.data, start, start + limit)
            pieces.append((start, end, owner))
            start = end
        pieces.append((start, stop, owner))
    starts, stops, owners = np.array(pieces, np.int64).T.copy()
    return Block(texts.data, starts, stops), owners


def _cut_before(data: Bytes, start: int, stop: int) -> int:
    """Return the offset after the last ASCII white space, or before the last character where there is none."""
    white = np.flatnonzero(IS_ASCII_WHITE[data[start:stop]])
    if len(white):
        return start + int(white[-1]) + 1
    end = character_start(data, stop)
    return end if end > start else stop


def batches_of(texts: Block, size: int) -> Iterator[Block]:
    """Yield consecutive documents of about ``size`` bytes together; at least one block, even if it is empty."""
    ends = np.cumsum(texts.stops - texts.starts)
    first = 0
    while True:
        before = int(ends[first - 1]) if first else 0
        last = max(first + 1, int(np.searchsorted(ends, before + size, "right")))
        yield _some(texts, slice(first, last))
        first = last
        if first >= len(texts):
            return


def _some(texts: Block, which: slice | Bools) -> Block:
    return Block(texts.data, texts.starts[which], texts.stops[which])


# --- columns


def find_column(columns: Iterable[Column], name: str) -> Column:
    """Return the column of that name."""
    return next(column for column in columns if column.name == name)


def main_column(columns: Sequence[Column]) -> str:
    """Return the default column of percentiles and buckets: a perplexity, else a probability."""
    for wanted in (PERPLEXITY, PROBABILITY):
        for column in columns:
            if column.name.endswith(wanted):
                return column.name
    raise AssertionError("every scorer has one of the two")


def label_column(columns: Sequence[Column]) -> str | None:
    """Return the name of the first column of labels, if there is one."""
    return next((column.name for column in columns if column.names is not None), None)


def lower_is_better(name: str) -> bool:
    """Return whether low values of a column are the good ones."""
    return name.endswith(LOWER_IS_BETTER)


def write_columns(file: BinaryIO, columns: Sequence[Column]) -> None:
    """Write the columns of a batch for the second pass."""
    for column in columns:
        np.save(file, column.values, allow_pickle=False)


def read_columns(file: BinaryIO, like: Sequence[Column], rows: int) -> list[Column]:
    """Read the columns of the next batch, named as those of ``like``."""
    try:
        found = [Column(each.name, np.load(file, allow_pickle=False), each.names) for each in like]
    except (ValueError, EOFError) as error:
        raise InputError("the scores of the first pass are damaged; --restart begins again") from error
    if any(len(column) != rows for column in found):
        raise InputError("the file has changed between the two passes; --restart begins again")
    return found
