"""Word vectors as a value: words and a matrix, however they were learnt.

Neighbours and analogies are here, similarity and bias in ``evaluate/``; both work on this one class. Words are stored
as bytes, as in old files, and shown as text; bytes that are not UTF-8 become Python's surrogate escapes, so that
nothing is lost on the way back.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from typing import Any, Literal, Self, get_args

import numpy as np

from foreword.arrays import Array, Bytes, Floats, Ints, Longs
from foreword.errors import InputError, SettingError
from foreword.notebook import ShownInNotebook
from foreword.protocols import Parts, Sentences
from foreword.storage.folder import nest, unnest
from foreword.storage.joined import check_joined
from foreword.tokens.vocab import Vocab
from foreword.vectors.kernels_words import rows_for
from foreword.vectors.rows import NotFiniteError, Stored, VectorRows, unit
from foreword.vectors.words import SMALL, SubwordTable, Words, check_ngrams

Neighbours = list[tuple[str, float]]

Missing = Literal["error", "zero"]
"""Answer for a word without a vector: a KeyError, or zeros."""

Method = Literal["add", "mul"]
"""How an analogy is scored: 3CosAdd or 3CosMul."""

MUL_EPSILON = 1e-3
"""Keeps 3CosMul from dividing by zero, as in the paper."""


class WordVectors(ShownInNotebook):
    """n words and a vector for each.

    matrix: float32 (n, d), one row per word; it may be mapped from a file and is never written to. Or ``VectorRows``,
    which may also be float16 or int8.
    data, offsets: the words as bytes; word i is ``data[offsets[i]:offsets[i + 1]]``. Of equal words the first counts.
    subwords: vectors of character n-grams, for words that are not in the matrix.
    missing: what ``vectors[word]`` gives for a word without any vector.
    table: the hash table of the words, from a saved model; else it is built when many are looked up.
    """

    def __init__(
        self,
        matrix: Floats | VectorRows,
        data: Bytes,
        offsets: Longs,
        subwords: SubwordTable | None = None,
        *,
        missing: Missing = "error",
        table: Ints | None = None,
    ) -> None:
        rows = matrix if isinstance(matrix, VectorRows) else VectorRows(matrix)
        if len(rows) != len(offsets) - 1:
            raise SettingError(f"{len(offsets) - 1} words but a matrix of shape {rows.matrix.shape}")
        check_missing(missing)
        self.rows = rows
        self.subwords = subwords
        self.missing = missing
        self._words = Words(data, offsets, table)

    @classmethod
    def of_words(
        cls,
        words: Iterable[str | bytes],
        matrix: Floats | VectorRows,
        *,
        subwords: SubwordTable | None = None,
        missing: Missing = "error",
    ) -> Self:
        """Build vectors from a list of words and a matrix."""
        listed = Words.of(words)
        return cls(matrix, listed.data, listed.offsets, subwords, missing=missing)

    @classmethod
    def of_vocab(cls, vocab: Vocab, matrix: Floats, *, subwords: SubwordTable | None = None) -> Self:
        """Build vectors from a vocabulary and a matrix; ``<unk>`` and ``</s>`` are no words and are left out."""
        words = [id for id in range(len(vocab)) if id not in (vocab.unknown, vocab.end)]
        blob, offsets = vocab.data.tobytes(), vocab.offsets.tolist()
        return cls.of_words((blob[offsets[id] : offsets[id + 1]] for id in words), matrix[words], subwords=subwords)

    def __repr__(self) -> str:
        return f"WordVectors({len(self):,} words, {self.dimensions} dimensions, {self.rows.stored})"

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def dimensions(self) -> int:
        """Number of dimensions."""
        return self.rows.dimensions

    @property
    def matrix(self) -> Array:
        """The numbers as they are stored, (n, d)."""
        return self.rows.matrix

    @property
    def data(self) -> Bytes:
        """Words as UTF-8 in one buffer."""
        return self._words.data

    @property
    def offsets(self) -> Longs:
        """Offsets of the words in ``data``."""
        return self._words.offsets

    @property
    def norms(self) -> Floats:
        """The length of each vector; 1 for a vector of zeros, so that it can be divided by.

        A vector with NaN or an infinite number in it is an InputError that names its word.
        """
        try:
            return self.rows.norms
        except NotFiniteError as error:
            raise InputError(f"the vector of {self.word(error.row)!r} {error.what}: expected finite numbers") from None

    # Words

    def __contains__(self, word: object) -> bool:
        return isinstance(word, str) and self._words.indices([word])[0] >= 0

    def __iter__(self) -> Iterator[str]:
        return iter(self.words)

    @property
    def words(self) -> list[str]:
        """All words as strings."""
        return self._words.all

    def word(self, index: int) -> str:
        """Return the word of a row."""
        return self._words.word(index)

    def place(self, word: str) -> int:
        """Return the row of a word; raise a KeyError for an unknown one."""
        found = int(self._words.indices([word])[0])
        if found < 0:
            raise KeyError(word)
        return found

    def places(self, words: Sequence[str]) -> Longs:
        """Return the row of each word, -1 for an unknown one."""
        return self._words.indices(words)

    # Vectors

    def __getitem__(self, word: str) -> Floats:
        """Return a word's vector, made of its n-grams if the word is unknown and there are any.

        Without any, ``missing`` decides: a KeyError, or zeros.
        """
        found = self._vector(word)
        if found is not None:
            return found
        if self.missing == "zero":
            return np.zeros(self.dimensions, np.float32)
        raise KeyError(word)

    def _vector(self, word: str) -> Floats | None:
        index = int(self._words.indices([word])[0])
        if index >= 0:
            row: Floats = self.rows.floats([index])[0]
            return row
        return None if self.subwords is None else self.subwords.vector(word)

    def _known_vector(self, word: str) -> Floats:
        """Return a word's vector; raise a KeyError without one, even if ``missing`` is "zero"."""
        found = self._vector(word)
        if found is None:
            raise KeyError(word)
        return found

    def rows_of(self, words: Sequence[str]) -> Floats:
        """Return the vectors of several words, (words, d), each as ``vectors[word]``."""
        indices = self.places(words)
        rows = self.rows.floats(np.maximum(indices, 0)) if len(self) else np.zeros((len(words), self.dimensions))
        rows = np.array(rows, np.float32)  # a copy: it may be the whole matrix
        for number in np.flatnonzero(indices < 0).tolist():
            rows[number] = self[words[number]]
        return rows

    def directions(self, rows: slice | Longs | None = None) -> Floats:
        """Return vectors scaled to length one, (rows, d): all, or those of some rows."""
        chosen: slice | Longs = slice(None) if rows is None else rows
        ones: Floats = self.rows.floats(chosen) / self.norms[chosen][:, None]
        return ones

    def first(self, count: int) -> Self:
        """Return the first ``count`` words; in most files those are the most frequent."""
        scales = None if self.rows.scales is None else self.rows.scales[:count]
        rows = VectorRows(self.rows.matrix[:count], scales)
        offsets = self.offsets[: len(rows) + 1]
        return type(self)(rows, self.data[: offsets[-1]], offsets, self.subwords, missing=self.missing)

    def stored_as(self, stored: Stored) -> Self:
        """Return the vectors in another precision, subwords too: float16 takes half the memory, int8 a quarter."""
        rows, table = self.rows.stored_as(stored), self.subwords
        if table is not None:
            parts = VectorRows(table.matrix, table.scales).stored_as(stored)
            table = SubwordTable(parts.matrix, table.least, table.most, table.buckets, table.used, parts.scales)
        other = copy(self)  # which shares the words and their table
        other.rows, other.subwords = rows, table
        return other

    def with_missing(self, missing: Missing) -> Self:
        """Return the vectors with another answer for words that have none."""
        check_missing(missing)
        other = copy(self)
        other.missing = missing
        return other

    # Similarity

    def similarity(self, one: str, other: str) -> float:
        """Return the cosine of the angle between two words."""
        a, b = (unit(self._known_vector(word)) for word in (one, other))
        return float(a @ b)

    def nearest(self, query: str | Floats, k: int = 10, *, exclude: Sequence[str] | None = None) -> Neighbours:
        """Return the k words with the largest cosine to a word or a vector, the nearest first.

        A word is not its own neighbour, unless ``exclude`` lists other words to leave out.
        """
        left_out = exclude if exclude is not None else [query] if isinstance(query, str) else []
        vector = self._known_vector(query) if isinstance(query, str) else np.asarray(query, np.float32)
        if vector.shape != (self.dimensions,):
            raise InputError(f"a vector of shape {vector.shape} among vectors of {self.dimensions} dimensions")
        rows, cosines = self._nearest(vector[None], k + len(left_out))
        return self._listed(rows[0], cosines[0], self.places(left_out), k)

    def nearest_many(self, queries: Sequence[str] | Floats, k: int = 10) -> list[Neighbours]:
        """Return what ``nearest`` gives for each of many words or vectors (q, d), at a fraction of the cost."""
        if isinstance(queries, np.ndarray):
            own, rows = np.full(len(queries), -1), queries
        else:
            own, rows = self.places(queries), self.with_missing("error").rows_of(queries)
        neighbours, cosines = self._nearest(rows, k + 1)
        return [
            self._listed(near, scores, own[number : number + 1], k)
            for number, (near, scores) in enumerate(zip(neighbours, cosines, strict=True))
        ]

    def _nearest(self, queries: Floats, k: int) -> tuple[Longs, Floats]:
        _ = self.norms  # its error names the word of a vector that is not finite
        return self.rows.nearest(queries, k)

    def _listed(self, rows: Longs, cosines: Floats, left_out: Longs, k: int) -> Neighbours:
        pairs = zip(rows.tolist(), cosines.tolist(), strict=True)
        kept = [(row, cosine) for row, cosine in pairs if row not in left_out]
        return [(self.word(row), cosine) for row, cosine in kept[:k]]

    def analogy(
        self, a: str, b: str, c: str, k: int = 1, *, include_inputs: bool = False, method: Method = "add"
    ) -> Neighbours:
        """Return what is to c as b is to a: the words x with the largest

            add (3CosAdd)   cos(x, b − a + c), each of length one
            mul (3CosMul)   cos'(x, b) · cos'(x, c) / (cos'(x, a) + ε), with cos' = (1 + cos) / 2

        The three words themselves are left out, as is usual, unless asked for: they are often the nearest.

        T. Mikolov, W. Yih and G. Zweig (2013); O. Levy and Y. Goldberg, "Linguistic regularities in sparse and explicit
        word representations" (2014).
        """
        left_out = [] if include_inputs else [a, b, c]
        vectors = unit(np.stack([self._known_vector(word) for word in (a, b, c)]))
        if method == "add":
            return self.nearest(vectors[1] - vectors[0] + vectors[2], k, exclude=left_out)
        if method != "mul":
            raise SettingError(f"method={method!r}: expected one of {', '.join(get_args(Method))}")
        from_a, from_b, from_c = ((1 + self.rows.cosines(vector)) / 2 for vector in vectors)
        scores = (from_b * from_c / (from_a + MUL_EPSILON)).astype(np.float32)
        best = _largest(scores, k + len(left_out))
        return self._listed(best, scores[best], self.places(left_out), k)

    # Saving

    def to_parts(self) -> Parts:
        """Return words and vectors for a model folder."""
        parts = Parts(
            {"subwords": None, "missing": self.missing},
            {"matrix": self.rows.matrix, "words": self.data, "word_offsets": self.offsets, "norms": self.norms},
        )
        if len(self) > SMALL:  # so that processes that map the vectors share the table too
            parts.arrays["word_table"] = self._words.table
        if self.rows.scales is not None:
            parts.arrays["scales"] = self.rows.scales
        if self.subwords is not None:
            table = self.subwords
            parts.settings["subwords"] = {"least": table.least, "most": table.most, "buckets": table.buckets}
            parts.arrays["subwords"] = table.matrix
            if table.used is not None:
                parts.arrays["subword_buckets"] = table.used
            if table.scales is not None:
                parts.arrays["subword_scales"] = table.scales
        return parts

    @classmethod
    def from_parts(cls, parts: Parts) -> Self:
        """Build vectors from a model folder."""
        matrix, data, offsets = (parts.arrays.get(name) for name in ("matrix", "words", "word_offsets"))
        if matrix is None or data is None or offsets is None:
            raise ValueError("expected the arrays 'matrix', 'words' and 'word_offsets'")
        check_joined(data, offsets, "words")
        if len(offsets) != len(matrix) + 1:
            raise ValueError(f"{len(matrix)} vectors but offsets of shape {offsets.shape}")
        norms, scales = parts.arrays.get("norms"), parts.arrays.get("scales")
        for numbers in (norms, scales):
            if numbers is not None and not (np.isfinite(numbers).all() and (numbers >= 0).all()):
                raise ValueError("expected lengths and scales that are positive numbers")
        if norms is not None and not norms.all():
            raise ValueError("expected lengths that can be divided by")
        missing: Any = parts.settings.get("missing", "error")
        rows = VectorRows(matrix, scales, norms)
        table = parts.arrays.get("word_table")
        if table is not None and (table.dtype != np.int32 or table.shape != (rows_for(len(matrix)),)):
            raise ValueError(f"expected a table of the words, int32 {(rows_for(len(matrix)),)}")
        return cls(rows, data, offsets, _subwords_of(parts, rows.dimensions), missing=missing, table=table)


def check_missing(missing: str) -> None:
    """Raise a SettingError unless the answer for missing words is known."""
    if missing not in get_args(Missing):
        raise SettingError(f"missing={missing!r}: expected one of {', '.join(get_args(Missing))}")


def _subwords_of(parts: Parts, dimensions: int) -> SubwordTable | None:
    """Build the subwords from a model folder; None if it has none."""
    lengths = parts.settings.get("subwords")
    if lengths is None:
        return None
    names = ("subwords", "subword_buckets", "subword_scales")
    matrix, used, scales = (parts.arrays.get(name) for name in names)
    if not isinstance(lengths, dict) or matrix is None:
        raise ValueError("expected the lengths of the subwords and their matrix")
    checked = VectorRows(matrix, scales)
    least, most, buckets = (lengths.get(name) for name in ("least", "most", "buckets"))
    if not (isinstance(least, int) and isinstance(most, int) and isinstance(buckets, int)):
        raise ValueError("the subwords' lengths and buckets must be whole numbers")
    check_ngrams(least, most, buckets)
    rows = buckets if used is None else len(used)
    if matrix.shape != (rows, dimensions):
        raise ValueError(f"subwords of shape {matrix.shape}, expected {(rows, dimensions)}")
    if used is not None and (used.dtype != np.int32 or used.ndim != 1 or (np.diff(used) <= 0).any()):
        raise ValueError("the subwords' buckets must be int32 and rise")
    return SubwordTable(checked.matrix, least, most, buckets, used, checked.scales)


def _largest(values: Floats, k: int) -> Longs:
    """Return the indices of the k largest values, the largest first, ties in their order."""
    k = min(k, len(values))
    if k <= 0:
        return np.empty(0, np.int64)
    best = np.argpartition(-values, k - 1)[:k]
    return best[np.lexsort((best, -values[best]))].astype(np.int64)


class StaticEmbedder:
    """Static vectors as an ``Embedder``: every word's own vector, whatever the sentence; zero for an unknown word."""

    def __init__(self, vectors: WordVectors) -> None:
        self.vectors = vectors

    def __repr__(self) -> str:
        return f"StaticEmbedder({self.vectors!r})"

    @property
    def dimensions(self) -> int:
        """Number of dimensions."""
        return self.vectors.dimensions

    def embed(self, sentences: Sentences) -> list[Floats]:
        """Return (length, D) for each sentence."""
        found = []
        for words in sentences:
            rows = np.zeros((len(words), self.dimensions), np.float32)
            known = [position for position, word in enumerate(words) if word in self.vectors]
            if known:
                rows[known] = np.stack([self.vectors[words[position]] for position in known])
            found.append(rows)
        return found

    def to_parts(self) -> Parts:
        """Return the vectors for a model folder."""
        parts = Parts({})
        nest("vectors", self.vectors, parts)
        return parts

    @classmethod
    def from_parts(cls, parts: Parts) -> Self:
        """Build an embedder from a model folder."""
        vectors = unnest("vectors", parts)
        if not isinstance(vectors, WordVectors):
            raise ValueError(f"a {type(vectors).__name__} holds no word vectors")
        return cls(vectors)
