"""Word vectors as a value: words and a matrix, however they were learnt.

Everything that asks about vectors, neighbours and analogies here, similarity and bias in ``evaluate/``, works on this
one class. Words are kept as bytes, as old files have them, and shown as text; bytes that are not UTF-8 become what
Python calls surrogate escapes, so that nothing is lost on the way back.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray

from foreword.errors import InputError, SettingError
from foreword.protocols import Parts
from foreword.tokens.vocab import Vocab
from foreword.vectors.subwords import ESCAPE, SubwordTable, check_lengths

Matrix = NDArray[np.float32]
Vector = NDArray[np.float32]


class WordVectors:
    """n words and a vector for each.

    matrix: float32 (n, d), one row a word; it may be mapped from a file and is never written to.
    data, offsets: the words as bytes; word i is ``data[offsets[i]:offsets[i + 1]]``.
    subwords: what makes a vector for a word that is not among them, where there is such a thing.
    """

    def __init__(
        self,
        matrix: Matrix,
        data: NDArray[np.uint8],
        offsets: NDArray[np.int64],
        subwords: SubwordTable | None = None,
    ) -> None:
        if matrix.ndim != 2 or len(matrix) != len(offsets) - 1:
            raise SettingError(f"{len(offsets) - 1} words but a matrix of shape {matrix.shape}")
        self.matrix = matrix
        self.data = data
        self.offsets = offsets
        self.subwords = subwords

    @classmethod
    def of_words(cls, words: Iterable[str | bytes], matrix: Matrix, *, subwords: SubwordTable | None = None) -> Self:
        encoded = [word if isinstance(word, bytes) else word.encode("utf-8", ESCAPE) for word in words]
        offsets = np.zeros(len(encoded) + 1, np.int64)
        np.cumsum([len(word) for word in encoded], out=offsets[1:])
        return cls(matrix, np.frombuffer(b"".join(encoded), np.uint8), offsets, subwords)

    @classmethod
    def of_vocab(cls, vocab: Vocab, matrix: Matrix, *, subwords: SubwordTable | None = None) -> Self:
        """The rows of a vocabulary's words; ``<unk>`` and ``</s>`` are no words and have none."""
        words = [id for id in range(len(vocab)) if id not in (vocab.unknown, vocab.end)]
        blob, offsets = vocab.data.tobytes(), vocab.offsets.tolist()
        return cls.of_words((blob[offsets[id] : offsets[id + 1]] for id in words), matrix[words], subwords=subwords)

    def __repr__(self) -> str:
        return f"WordVectors({len(self):,} words, {self.dimensions} dimensions)"

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def dimensions(self) -> int:
        return int(self.matrix.shape[1])

    def __contains__(self, word: object) -> bool:
        return word in self._places

    def __getitem__(self, word: str) -> Vector:
        """A word's vector; made of its parts where the word is not known and there are such; else a KeyError."""
        if word in self._places or self.subwords is None:
            vector: Vector = self.matrix[self.place(word)]
            return vector
        made = self.subwords.vector(word)
        if made is None:
            raise KeyError(word)
        return made

    def __iter__(self) -> Iterator[str]:
        return iter(self.words)

    def place(self, word: str) -> int:
        """The row of a word; a KeyError where there is none."""
        return self._places[word]

    def word(self, place: int) -> str:
        return bytes(self.data[self.offsets[place] : self.offsets[place + 1]]).decode("utf-8", ESCAPE)

    @cached_property
    def words(self) -> list[str]:
        blob, ends = self.data.tobytes(), self.offsets.tolist()
        return [blob[start:stop].decode("utf-8", ESCAPE) for start, stop in itertools.pairwise(ends)]

    @cached_property
    def _places(self) -> dict[str, int]:
        """Where each word is; the first place where one stands twice."""
        places: dict[str, int] = {}
        for place, word in enumerate(self.words):
            places.setdefault(word, place)
        return places

    @cached_property
    def norms(self) -> NDArray[np.float32]:
        """The length of each vector; 1 for a vector of zeros, so that it can be divided by."""
        lengths = np.sqrt(np.einsum("ij,ij->i", self.matrix, self.matrix, dtype=np.float32))
        return np.where(lengths > 0, lengths, 1).astype(np.float32)

    def similarity(self, one: str, other: str) -> float:
        """The cosine of the angle between two words."""
        a, b = self.place(one), self.place(other)
        return float(self.matrix[a] @ self.matrix[b] / (self.norms[a] * self.norms[b]))

    def nearest(
        self, query: str | Vector, k: int = 10, *, exclude: Sequence[str] | None = None
    ) -> list[tuple[str, float]]:
        """The k words with the largest cosine to a word or a vector, the nearest first.

        A word is not its own neighbour, unless ``exclude`` says what else to leave out.
        """
        vector = self[query] if isinstance(query, str) else np.asarray(query, np.float32)
        if vector.shape != (self.dimensions,):
            raise InputError(f"a vector of shape {vector.shape} among vectors of {self.dimensions} dimensions")
        left_out = exclude if exclude is not None else [query] if isinstance(query, str) else []
        cosines = self.matrix @ vector / (self.norms * max(float(np.linalg.norm(vector)), 1e-30))
        for word in left_out:
            if word in self:
                cosines[self.place(word)] = -np.inf
        best = _largest(cosines, k)
        return [(self.word(int(place)), float(cosines[place])) for place in best if np.isfinite(cosines[place])]

    def analogy(self, a: str, b: str, c: str, k: int = 1, *, include_inputs: bool = False) -> list[tuple[str, float]]:
        """What is to c as b is to a: the words nearest to ``b − a + c``, each of length one (3CosAdd).

        The three words themselves are left out, as is usual, unless asked for: they often are the nearest.
        """
        places = [self.place(word) for word in (a, b, c)]
        first, second, third = self.matrix[places] / self.norms[places, None]
        return self.nearest(second - first + third, k, exclude=[] if include_inputs else [a, b, c])

    def to_parts(self) -> Parts:
        parts = Parts({"subwords": None}, {"matrix": self.matrix, "words": self.data, "word_offsets": self.offsets})
        if self.subwords is not None:
            table = self.subwords
            parts.settings["subwords"] = {"least": table.least, "most": table.most, "buckets": table.buckets}
            parts.arrays["subwords"] = table.matrix
            if table.used is not None:
                parts.arrays["subword_buckets"] = table.used
        return parts

    @classmethod
    def from_parts(cls, parts: Parts) -> Self:
        matrix, data, offsets = (parts.arrays.get(name) for name in ("matrix", "words", "word_offsets"))
        if matrix is None or data is None or offsets is None:
            raise ValueError("expected the arrays 'matrix', 'words' and 'word_offsets'")
        if matrix.dtype != np.float32 or matrix.ndim != 2 or data.dtype != np.uint8 or data.ndim != 1:
            raise ValueError("expected a float32 matrix and words of bytes")
        if offsets.dtype != np.int64 or offsets.shape != (len(matrix) + 1,):
            raise ValueError(f"{len(matrix)} vectors but offsets of shape {offsets.shape}")
        if offsets[0] != 0 or offsets[-1] != len(data) or (np.diff(offsets) < 0).any():
            raise ValueError("the words' offsets must rise from 0 to the end of the words")
        return cls(matrix, data, offsets, _subwords_of(parts, matrix.shape[1]))


def _subwords_of(parts: Parts, dimensions: int) -> SubwordTable | None:
    lengths = parts.settings.get("subwords")
    if lengths is None:
        return None
    matrix, used = parts.arrays.get("subwords"), parts.arrays.get("subword_buckets")
    if not isinstance(lengths, dict) or matrix is None or matrix.dtype != np.float32 or matrix.ndim != 2:
        raise ValueError("expected the lengths of the subwords and their float32 matrix")
    least, most, buckets = (lengths.get(name) for name in ("least", "most", "buckets"))
    if not (isinstance(least, int) and isinstance(most, int) and isinstance(buckets, int)):
        raise ValueError("the subwords' lengths and buckets must be whole numbers")
    check_lengths(least, most, buckets)
    rows = buckets if used is None else len(used)
    if matrix.shape != (rows, dimensions):
        raise ValueError(f"subwords of shape {matrix.shape}, expected {(rows, dimensions)}")
    if used is not None and (used.dtype != np.int32 or used.ndim != 1 or (np.diff(used) <= 0).any()):
        raise ValueError("the subwords' buckets must be int32 and rise")
    return SubwordTable(matrix, least, most, buckets, used)


def _largest(values: NDArray[np.float32], k: int) -> NDArray[np.int64]:
    """The places of the k largest values, the largest first, ties in their order."""
    k = min(k, len(values))
    if k <= 0:
        return np.empty(0, np.int64)
    best = np.argpartition(-values, k - 1)[:k]
    return best[np.lexsort((best, -values[best]))].astype(np.int64)
