"""The vocabulary: which tokens there are, in which order, and how often each was seen.

``<unk>`` and ``</s>`` are defined here. Both are ordinary ids: ``<unk>`` stands for every token that is not in
the vocabulary, ``</s>`` ends a document. ``<s>`` is not here, because nothing ever predicts or stores it.

The tokens live as UTF-8 in one buffer, as they do on disk, so that a vocabulary of millions opens without making
millions of Python strings; those are made on first use.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import ClassVar, Self

import numpy as np

from foreword.arrays import Bytes, Ints, Longs
from foreword.errors import InputError, NotFittedError, SettingError
from foreword.storage.joined import encoded

Reader = Callable[[], tuple[Bytes, Longs]]

UNKNOWN = "<unk>"
END = "</s>"


class Vocab:
    """A frozen, ordered list of distinct tokens; a token's index is its id.

    data: uint8 (bytes,), the tokens one after another as UTF-8.
    offsets: int64 (tokens + 1,); token i is ``data[offsets[i]:offsets[i + 1]]``.
    counts: int64 (tokens,), or None if they are unknown.
    """

    _read: Reader

    def __init__(
        self,
        tokens: Iterable[str],
        counts: Sequence[int] | Longs | None = None,
        *,
        unknown: str | None = UNKNOWN,
        end: str = END,
    ) -> None:
        self._store(*encoded(tokens), counts, unknown, end)
        if len(self._ids) != len(self):
            repeated = next(token for index, token in enumerate(self) if self._ids[token] != index)
            raise SettingError(f"token {repeated!r} appears twice in the vocabulary")

    @classmethod
    def from_bytes(
        cls, data: Bytes, offsets: Longs, counts: Longs | None = None, *, unknown: int | None, end: int
    ) -> Self:
        """Make a vocabulary of existing buffers, without copying or reading them."""
        vocab = cls.__new__(cls)
        vocab._keep(data, offsets, counts, unknown, end)
        return vocab

    @classmethod
    def from_reader(
        cls, tokens: int, read: Reader, counts: Longs | None = None, *, unknown: int | None, end: int
    ) -> Self:
        """Make a vocabulary of which only the size is known; on first use ``read`` returns data and offsets."""
        vocab = cls.__new__(cls)
        vocab._tokens, vocab._read = tokens, read
        vocab.counts, vocab.unknown, vocab.end = counts, unknown, end
        return vocab

    @classmethod
    def from_counts(
        cls, counts: Mapping[str, int], *, min_count: int = 1, max_size: int | None = None, end_count: int = 0
    ) -> Self:
        """Make a vocabulary of ``<unk>``, ``</s>``, then words from the most to the least frequent, ties in order.

        ``max_size`` counts the two special tokens; what is left out is counted as ``<unk>``.
        """
        words = {word: count for word, count in counts.items() if word not in (UNKNOWN, END)}
        kept = sorted((word for word, count in words.items() if count >= min_count), key=lambda word: -words[word])
        if max_size is not None:
            if max_size < 2:
                raise SettingError(f"max_size={max_size} has no room for {UNKNOWN} and {END}")
            kept = kept[: max_size - 2]
        unknown = sum(words.values()) - sum(words[word] for word in kept)
        unknown += counts.get(UNKNOWN, 0) + counts.get(END, 0)
        return cls([UNKNOWN, END, *kept], [unknown, end_count, *(words[word] for word in kept)])

    def _store(
        self, data: Bytes, offsets: Longs, counts: Sequence[int] | Longs | None, unknown: str | None, end: str
    ) -> None:
        array = None if counts is None else np.asarray(counts, np.int64)
        if array is not None and len(array) != len(offsets) - 1:
            raise SettingError(f"{len(offsets) - 1} tokens but {len(array)} counts")
        self._keep(data, offsets, array, None, -1)
        for token in (unknown, end):
            if token is not None and token not in self._ids:
                raise SettingError(f"the vocabulary has no {token!r}, which it must hold")
        self.unknown = None if unknown is None else self._ids[unknown]
        self.end = self._ids[end]

    def _keep(self, data: Bytes, offsets: Longs, counts: Longs | None, unknown: int | None, end: int) -> None:
        self._tokens = len(offsets) - 1
        self._buffers = data, offsets
        self.counts = counts
        self.unknown = unknown
        self.end = end

    @cached_property
    def _buffers(self) -> tuple[Bytes, Longs]:
        data, offsets = self._read()
        if len(offsets) != self._tokens + 1:  # others count on it, kernels among them
            raise InputError(
                f"the vocabulary had {self._tokens} tokens when it was opened, now it has {len(offsets) - 1}"
            )
        return data, offsets

    @property
    def data(self) -> Bytes:
        """The tokens one after another as UTF-8, uint8 (bytes,)."""
        return self._buffers[0]

    @property
    def offsets(self) -> Longs:
        """Where each token begins in ``data``, int64 (tokens + 1,)."""
        return self._buffers[1]

    def __len__(self) -> int:
        return self._tokens

    def __getitem__(self, id: int) -> str:
        token = self._spelt.get(id)
        if token is None:
            if not 0 <= id < len(self):
                raise IndexError(f"id {id} is not in a vocabulary of {len(self)} tokens")
            token = self._spelt[id] = bytes(self.data[self.offsets[id] : self.offsets[id + 1]]).decode()
        return token

    def __iter__(self) -> Iterator[str]:
        return iter(self.tokens)

    def __contains__(self, token: object) -> bool:
        return token in self._ids

    def __eq__(self, other: object) -> bool:
        """Return whether tokens, their order and the special ones are equal; counts are not compared."""
        if not isinstance(other, Vocab):
            return NotImplemented
        return self is other or (
            (self.unknown, self.end) == (other.unknown, other.end)
            and np.array_equal(self.offsets, other.offsets)
            and np.array_equal(self.data, other.data)
        )

    def __hash__(self) -> int:
        return hash((len(self), self.unknown, self.end))

    def __repr__(self) -> str:
        shown = ", ".join(repr(self[id]) for id in range(min(len(self), 6)))
        return f"Vocab({len(self):,} tokens: {shown}{', …' if len(self) > 6 else ''})"

    def id(self, token: str) -> int:
        """Return the token's id, or that of ``<unk>`` if it has none; without an ``<unk>`` a KeyError."""
        found = self._ids.get(token, self.unknown)
        if found is None:
            raise KeyError(token)
        return found

    def ids(self, tokens: Iterable[str]) -> Ints:
        """Return the ids of tokens, int32 (n,)."""
        return np.fromiter((self.id(token) for token in tokens), np.int32)

    @cached_property
    def _spelt(self) -> dict[int, str]:
        """The tokens that were asked for by their ids."""
        return {}

    @cached_property
    def tokens(self) -> list[str]:
        """All tokens as strings, made on first use."""
        blob, ends = self.data.tobytes(), self.offsets.tolist()
        return [blob[start:stop].decode() for start, stop in itertools.pairwise(ends)]

    @cached_property
    def _ids(self) -> dict[str, int]:
        return {token: index for index, token in enumerate(self.tokens)}


class LearntVocab:
    """A model with the vocabulary of the text that it has learnt from. NEEDS: what ``fit`` takes, for messages."""

    NEEDS: ClassVar[str] = "corpus"
    _vocab: Vocab | None = None

    @property
    def vocab(self) -> Vocab:
        """The vocabulary of the training text."""
        if self._vocab is None:
            raise NotFittedError(self, self.NEEDS)
        return self._vocab
