"""The inverted index: for each term the documents that hold it, each with a weight computed ahead.

A query's score of a document is the sum of (factor · weight) over the terms that both hold; what the weights and the
factors are, BM25 (``bm25.py``) and the cosine of TF-IDF vectors (``cosine.py``) each say for themselves. Both roads are
here: ``scores`` adds up every posting, as a textbook would, and ``best`` finds the first k by ``kernels_postings.py``,
which looks at few of them. The two agree to the last bit, because both add a query's terms in the same order.

Shapes: V = tokens in the vocabulary, N = documents.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from typing import Self

import numpy as np

from foreword.arrays import Array, Bools, Doubles, Floats, Ints, Longs
from foreword.errors import InputError, SettingError
from foreword.native.parallel import cores, ordered_map
from foreword.protocols import Meter, Parts
from foreword.search import kernels_postings as postings
from foreword.tokens.corpus import Corpus
from foreword.tokens.vocab import Vocab

ROW_SHARE = 4
"""A term that more than one document in so many holds has a row. At 4 the rows of 20 Newsgroups take less room than
their postings would; 8 and 16 took more, and queries were no faster."""

TOKENS_AT_ONCE = 1 << 22
"""What a thread indexes before it says how far it is."""

QUERIES_AT_ONCE = 64
"""What a thread answers before it takes the next, where there are several."""


@dataclass(frozen=True, slots=True)
class Weighing:
    """How a term's count in a document becomes its weight there.

    idf: float32 (V,); a term with zero is not indexed.
    kind: SATURATED, COSINE or LOG_COSINE of ``search/kernels_postings.py``. For the first, with c = count · scale:
    weight = idf · (gain · (c + shift) / (c + shift + k1) − gain · shift / (shift + k1)).
    scales: float64 (N,).
    """

    idf: Floats
    kind: int
    scales: Doubles
    k1: float = 0.0
    gain: float = 0.0
    shift: float = 0.0


Weigh = Callable[[Longs, Longs], Weighing]
"""From in how many documents each token stands (V,), and how many tokens each document has (N,)."""


@dataclass(frozen=True, slots=True)
class Questions:
    """Queries as the index takes them.

    terms: int32, factors: float32; query q's are at ``starts[q]`` to ``ends[q]``, rarest first, each once. What lies
    between the end of one and the start of the next is zero.
    """

    terms: Ints
    factors: Floats
    starts: Longs
    ends: Longs

    def __len__(self) -> int:
        return len(self.ends)

    def __getitem__(self, queries: slice) -> Questions:
        starts = self.starts[queries.start : queries.stop + 1]
        return Questions(self.terms, self.factors, starts, self.ends[queries])

    def sums(self, values: Doubles) -> Doubles:
        """(terms,) → (queries,)"""
        return np.add.reduceat(values, self.starts[:-1]) if len(self) else np.empty(0)


@dataclass(frozen=True, slots=True)
class Found:
    """The best documents of some queries, the best first, ties in document order.

    documents: int32 (queries, k), -1 where a query has fewer than k documents that hold one of its terms.
    scores: float32 (queries, k), 0 there.
    """

    documents: Ints
    scores: Floats

    def __len__(self) -> int:
        return len(self.documents)


@dataclass(frozen=True, slots=True, eq=False)
class InvertedIndex:
    """Terms to weighted documents.

    vocab: what the terms are. idf: float32 (V,), zero for those that cannot be searched for.
    offsets: int64 (V + 1,); term t's postings are ``pairs[offsets[t]:offsets[t + 1]]``.
    pairs: int32 (postings, 2), a document and the bits of its float32 weight, documents rising.
    row_terms: int32 (rows,), rising: the terms that have a row instead. rows: float32 (rows, N).
    bounds: float32 (V,), the greatest weight of each term.
    """

    vocab: Vocab
    idf: Floats
    offsets: Longs
    pairs: Ints
    row_terms: Ints
    rows: Floats
    bounds: Floats
    _searched: postings.Index = field(init=False, repr=False)
    _checked: Bools = field(init=False, repr=False)
    _rooms: SimpleQueue[postings.Room] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        row_of = _row_of(self.row_terms, len(self.bounds))
        for array in (self.offsets, self.pairs, row_of, self.rows, self.bounds):
            array.flags.writeable = False  # as a mapped one is: so the kernels are compiled for one kind only
        flat = self.pairs.reshape(-1)
        searched = postings.Index(self.offsets, flat, flat.view(np.float32), row_of, self.rows, self.bounds)
        object.__setattr__(self, "_searched", searched)
        object.__setattr__(self, "_checked", np.zeros(len(self.bounds), np.bool_))
        object.__setattr__(self, "_rooms", SimpleQueue())

    @property
    def documents(self) -> int:
        return int(self.rows.shape[1])

    # Building

    @classmethod
    def build(cls, corpus: Corpus, weigh: Weigh, *, threads: int | None = 1, meter: Meter | None = None) -> Self:
        """Index a corpus; the same at any number of threads. ``<unk>`` and ``</s>`` are no terms."""
        if not 0 < len(corpus) < 1 << 31:
            raise InputError(f"an index holds from 1 to 2^31 - 1 documents, not {len(corpus)}")
        corpus.check_ids()
        parts = _parts(corpus, threads or cores())
        tell = _Progress(meter, 2 * len(corpus.ids))
        frequencies = _document_frequencies(corpus, parts, tell)
        total = np.sum(frequencies, axis=0)
        weighing = weigh(total, np.diff(corpus.offsets) - 1)
        weighing.idf[total == 0] = 0  # <unk> and </s> among them
        total[weighing.idf <= 0] = 0
        row_terms = np.flatnonzero(total * ROW_SHARE > len(corpus)).astype(np.int32)
        total[row_terms] = 0
        index = _new_index(total, row_terms, len(corpus))
        heads = index.offsets[:-1]
        starts = [heads + sum(frequencies[:part], np.zeros_like(heads)) for part in range(len(parts))]

        def fill(part: int) -> None:
            _fill(corpus, parts[part], weighing, starts[part], index, tell)

        for _ in ordered_map(fill, range(len(parts)), len(parts)):
            pass
        postings.greatest_weights(index)
        pairs = index.documents.reshape(-1, 2)
        built = cls(corpus.vocab, weighing.idf, index.offsets, pairs, row_terms, index.rows, index.bounds)
        built._checked[:] = True
        return built

    # Asking

    def questions(self, queries: Corpus) -> Questions:
        """Documents as queries: each distinct term once, its factor how often it is said."""
        if queries.vocab != self.vocab:
            raise InputError("the queries were turned into ids with another vocabulary than the index")
        queries.check_ids()
        terms, counts = np.zeros(len(queries.ids), np.int32), np.zeros(len(queries.ids), np.float32)
        ends = np.empty(len(queries), np.int64)
        ids = queries.ids.astype(np.int32)
        starts = np.ascontiguousarray(queries.offsets)
        postings.merge_terms(self._searched, ids, starts, terms, counts, ends)
        return Questions(terms, counts, starts, ends)

    def scores(self, questions: Questions, query: int = 0) -> Floats:
        """(N,): the score of every document, by adding all postings of the query's terms. The plain road."""
        scores = np.zeros(self.documents, np.float32)
        for place in range(questions.starts[query], questions.ends[query]):
            documents, weights = self.postings(int(questions.terms[place]))
            scores[documents] += questions.factors[place] * weights
        return scores

    def postings(self, term: int) -> tuple[Ints, Floats]:
        """The documents that hold a term, rising, and its weight in each."""
        self._check(np.array([term], np.int32))
        if self._searched.row_of[term] != postings.NO_ROW:
            row = self.rows[self._searched.row_of[term]]
            documents = np.flatnonzero(row).astype(np.int32)
            return documents, row[documents]
        listed = self.pairs[self.offsets[term] : self.offsets[term + 1]]
        return listed[:, 0], listed.view(np.float32)[:, 1]

    def contributions(self, questions: Questions, document: int, absent: float = 0.0) -> dict[str, float]:
        """What each term of the first query adds to the score of a document; ``absent`` times idf where it is not."""
        if not 0 <= document < self.documents:
            raise SettingError(f"document {document}: expected 0 to {self.documents - 1}")
        found: dict[str, float] = {}
        for place in range(questions.starts[0], questions.ends[0]):
            term, factor = int(questions.terms[place]), float(questions.factors[place])
            documents, weights = self.postings(term)
            weight = float(weights[documents == document].sum()) + absent * float(self.idf[term])
            found[self.vocab[term]] = factor * weight
        return found

    def best(self, questions: Questions, k: int = 10, *, threads: int | None = 1) -> Found:
        """The k best documents of each query, or as many as there are. The fast road."""
        if k < 1:
            raise SettingError(f"k={k}: expected 1 or more")
        k = min(k, self.documents)
        self._check(questions.terms)
        documents = np.full((len(questions), k), -1, np.int32)
        scores = np.zeros((len(questions), k), np.float32)
        threads = min(threads or cores(), -(-len(questions) // QUERIES_AT_ONCE)) or 1
        step = len(questions) if threads == 1 else QUERIES_AT_ONCE

        def work(start: int) -> None:
            stop = min(start + step, len(questions))
            self._search(questions[start:stop], k, documents[start:stop], scores[start:stop])

        for _ in ordered_map(work, range(0, len(questions), max(step, 1)), threads):
            pass
        return Found(documents, scores)

    def _search(self, questions: Questions, k: int, documents: Ints, scores: Floats) -> None:
        try:
            room = self._rooms.get_nowait()
        except Empty:
            room = _new_room(self.documents)
        longest = int(np.diff(questions.starts).max())
        with_ends = room._replace(left=np.empty(longest + 1), heap=np.empty(k, np.int64))
        postings.search(
            self._searched, questions.terms, questions.factors, questions.starts, questions.ends,
            k, with_ends, documents, scores,
        )  # fmt: skip
        self._rooms.put(room)

    def _check(self, terms: Ints) -> None:
        bad = postings.check_terms(self._searched, terms, self._checked)
        if bad >= 0:
            raise InputError(f"the index is damaged: the postings of {self.vocab[bad]!r} are not in order")

    # Saving

    def arrays(self) -> dict[str, Array]:
        """What a saved model keeps of it."""
        return {
            "idf": self.idf,
            "offsets": self.offsets,
            "pairs": self.pairs,
            "row_terms": self.row_terms,
            "rows": self.rows,
            "bounds": self.bounds,
        }

    @classmethod
    def from_parts(cls, parts: Parts) -> Self:
        """Take it up again. Postings are left unread, for they may be many; a term's are checked when it is first
        asked for.
        """
        if parts.vocab is None:
            raise InputError("an index needs its vocabulary")
        arrays = [parts.arrays[name] for name in ("idf", "offsets", "pairs", "row_terms", "rows", "bounds")]
        idf, offsets, pairs, row_terms, rows, bounds = arrays
        tokens, documents = len(parts.vocab), rows.shape[-1] if rows.ndim else 0
        shapes = ((tokens,), (tokens + 1,), (len(pairs), 2), (len(rows),), (len(rows), documents), (tokens,))
        types = (np.float32, np.int64, np.int32, np.int32, np.float32, np.float32)
        for array, shape, kind in zip(arrays, shapes, types, strict=True):
            if array.dtype != kind or array.shape != shape or not array.flags.c_contiguous:
                raise ValueError(f"an array of the index is {array.dtype} {array.shape}, not {kind.__name__} {shape}")
        if not 0 < documents < 1 << 31:
            raise ValueError("an index needs at least one document")
        lengths = np.diff(offsets)
        if offsets[0] != 0 or offsets[-1] != len(pairs) or (lengths < 0).any():
            raise ValueError("the offsets of the postings do not rise from zero to their number")
        if len(row_terms) and not 0 <= row_terms[0] <= row_terms[-1] < tokens:
            raise ValueError("a row's term is not in the vocabulary")
        if (np.diff(row_terms) <= 0).any() or lengths[row_terms].any():
            raise ValueError("a term has two rows, or a row and postings")
        for numbers in (idf, bounds):
            if not (np.isfinite(numbers) & (numbers >= 0)).all():
                raise ValueError("an idf or a bound is negative or not a number")
        return cls(parts.vocab, idf, offsets, pairs, row_terms, rows, bounds)


def _new_index(totals: Longs, row_terms: Ints, documents: int) -> postings.Index:
    """Room for so many postings of each term, and rows of zeros."""
    offsets = np.concatenate((np.zeros(1, np.int64), np.cumsum(totals)))
    flat = np.empty(2 * int(offsets[-1]), np.int32)
    rows = np.zeros((len(row_terms), documents), np.float32)
    bounds = np.empty(len(totals), np.float32)
    return postings.Index(offsets, flat, flat.view(np.float32), _row_of(row_terms, len(totals)), rows, bounds)


def _row_of(row_terms: Ints, tokens: int) -> Ints:
    row_of = np.full(tokens, postings.NO_ROW, np.int32)
    row_of[row_terms] = np.arange(len(row_terms))
    return row_of


def _new_room(documents: int) -> postings.Room:
    scores = np.zeros(documents, np.float32)
    touched, racing, places = (np.empty(documents + 1, np.int32) for _ in range(3))
    return postings.Room(scores, scores.view(np.int32), touched, racing, places, np.empty(0), np.empty(0, np.int64))


class _Progress:
    """Tells a meter how many tokens are done. Threads may tell at the same moment and one be lost: it is a bar."""

    def __init__(self, meter: Meter | None, total: int) -> None:
        self.meter, self.total, self.done = meter, total, 0

    def __call__(self, tokens: int) -> None:
        self.done += tokens
        if self.meter:
            self.meter("indexing", self.done, self.total)


Part = tuple[int, int]
"""Documents from the first to before the second."""


def _parts(corpus: Corpus, threads: int) -> list[Part]:
    """A range of documents for each thread, of about as many tokens."""
    cuts = np.searchsorted(corpus.offsets, np.linspace(0, len(corpus.ids), threads + 1)[1:-1]).tolist()
    return list(zip([0, *cuts], [*cuts, len(corpus)], strict=True))


def _pieces(corpus: Corpus, part: Part, tell: _Progress) -> Iterator[Part]:
    """A part in pieces, each told of when it is done."""
    first, last = part
    while first < last:
        until = int(np.searchsorted(corpus.offsets, corpus.offsets[first] + TOKENS_AT_ONCE))
        stop = min(max(until, first + 1), last)
        yield first, stop
        tell(int(corpus.offsets[stop] - corpus.offsets[first]))
        first = stop


def _document_frequencies(corpus: Corpus, parts: list[Part], tell: _Progress) -> list[Longs]:
    """For each part: in how many of its documents each token stands."""
    vocab = corpus.vocab

    def count(part: Part) -> Longs:
        states = np.full(len(vocab), -1 << 32, np.int64)
        for first, last in _pieces(corpus, part, tell):
            postings.count_documents(corpus.ids, corpus.offsets, first, last, states)
        states &= 0xFFFFFFFF
        states[vocab.end] = 0
        if vocab.unknown is not None:
            states[vocab.unknown] = 0
        return states

    return list(ordered_map(count, parts, len(parts)))


def _fill(corpus: Corpus, part: Part, weighing: Weighing, heads: Longs, index: postings.Index, tell: _Progress) -> None:
    tally = np.zeros(len(corpus.vocab), np.int32)
    longest = int(np.diff(corpus.offsets[part[0] : part[1] + 1]).max(initial=0))
    distinct: Array = np.empty(longest + 1, np.int32)
    for first, last in _pieces(corpus, part, tell):
        postings.fill_postings(
            corpus.ids, corpus.offsets, first, last, weighing.idf, weighing.kind, weighing.k1, weighing.gain,
            weighing.shift, weighing.scales, index, heads, tally, distinct,
        )  # fmt: skip
