"""The inverted index: for each term the documents that contain it, each with a precomputed weight.

A query's score of a document is the sum of (factor · weight) over the terms that both contain; BM25 (``bm25.py``) and
the cosine of TF-IDF vectors (``cosine.py``) define weights and factors. Both versions are here: ``scores`` adds up
every posting, as a textbook would, and ``best`` finds the first k by ``kernels.py``, which reads few of them. The two
agree to the last bit, because both add a query's terms in the same order.

Shapes: V = tokens in the vocabulary, N = documents.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from typing import Self

import numpy as np

from foreword.arrays import Array, Bools, Doubles, Floats, Ids, Ints, Longs
from foreword.checks import check_corpus, check_number
from foreword.errors import InputError, NotFittedError, SettingError
from foreword.native.parallel import cores, ordered_map
from foreword.notebook import ShownInNotebook
from foreword.protocols import Json, Meter, Parts
from foreword.search import kernels
from foreword.tokens.corpus import Corpus
from foreword.tokens.vocab import Vocab

ROW_SHARE = 4
"""A term that more than one document in ROW_SHARE contains has a row. At 4 the rows of 20 Newsgroups take less memory
than their postings would; 8 and 16 took more, and queries were no faster."""

TOKENS_AT_ONCE = 1 << 22
"""Tokens that a thread indexes between two progress reports."""

QUERIES_AT_ONCE = 64
"""Queries that a thread takes at a time, where there are several threads."""


@dataclass(frozen=True, slots=True)
class Weighing:
    """How a term's count in a document becomes its weight there.

    idf: float32 (V,); a term with zero is not indexed.
    kind: SATURATED, COSINE or LOG_COSINE of ``search/kernels.py``. For the first, with c = count · scale:
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
"""From the document frequency of each token (V,) and the length of each document (N,) to weights."""


@dataclass(frozen=True, slots=True)
class QueryBatch:
    """Queries as the index takes them.

    terms: int32, factors: float32; query q's are at ``starts[q]`` to ``ends[q]``, rarest first, each once. The gaps
    between the end of one and the start of the next are zero.
    """

    terms: Ints
    factors: Floats
    starts: Longs
    ends: Longs

    def __len__(self) -> int:
        return len(self.ends)

    def __getitem__(self, queries: slice) -> QueryBatch:
        starts = self.starts[queries.start : queries.stop + 1]
        return QueryBatch(self.terms, self.factors, starts, self.ends[queries])

    def sums(self, values: Doubles) -> Doubles:
        """Sum (terms,) to (queries,)"""
        return np.add.reduceat(values, self.starts[:-1]) if len(self) else np.empty(0)


@dataclass(frozen=True, slots=True)
class Found:
    """The best documents of some queries, the best first, ties in document order.

    documents: int32 (queries, k), -1 where a query has fewer than k documents that contain one of its terms.
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
    row_terms: int32 (rows,), rising: the terms that have a row instead of postings. rows: float32 (rows, N).
    bounds: float32 (V,), the greatest weight of each term.
    """

    vocab: Vocab
    idf: Floats
    offsets: Longs
    pairs: Ints
    row_terms: Ints
    rows: Floats
    bounds: Floats
    _searched: kernels.Index = field(init=False, repr=False)
    _checked: Bools = field(init=False, repr=False)
    _workspaces: SimpleQueue[kernels.QueryWorkspace] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        row_of = _row_of(self.row_terms, len(self.bounds))
        for array in (self.offsets, self.pairs, row_of, self.rows, self.bounds):
            array.flags.writeable = False  # as a mapped one is, so that the kernels are compiled once
        flat = self.pairs.reshape(-1)
        searched = kernels.Index(self.offsets, flat, flat.view(np.float32), row_of, self.rows, self.bounds)
        object.__setattr__(self, "_searched", searched)
        object.__setattr__(self, "_checked", np.zeros(len(self.bounds), np.bool_))
        object.__setattr__(self, "_workspaces", SimpleQueue())

    @property
    def documents(self) -> int:
        """Number of documents."""
        return int(self.rows.shape[1])

    # Building

    @classmethod
    def build(cls, corpus: Corpus, weigh: Weigh, *, threads: int | None = 1, meter: Meter | None = None) -> Self:
        """Index a corpus; the same at any number of threads. ``<unk>`` and ``</s>`` are no terms."""
        if not 0 < len(corpus) < 1 << 31:
            raise InputError(f"an index holds from 1 to 2^31 - 1 documents, not {len(corpus)}")
        corpus.check_ids()
        parts = _parts(corpus, threads or cores())
        report = _Report(meter, 2 * len(corpus.ids))
        frequencies = _document_frequencies(corpus, parts, report)
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
            _fill(corpus, parts[part], weighing, starts[part], index, report)

        for _ in ordered_map(fill, range(len(parts)), len(parts)):
            pass
        kernels.greatest_weights(index)
        pairs = index.documents.reshape(-1, 2)
        built = cls(corpus.vocab, weighing.idf, index.offsets, pairs, row_terms, index.rows, index.bounds)
        built._checked[:] = True
        return built

    # Searching

    def batch(self, queries: Corpus) -> QueryBatch:
        """Prepare queries: each distinct term once, its factor the number of times it occurs in the query."""
        if queries.vocab != self.vocab:
            raise InputError("the queries were turned into ids with another vocabulary than the index")
        queries.check_ids()
        terms, counts = np.zeros(len(queries.ids), np.int32), np.zeros(len(queries.ids), np.float32)
        ends = np.empty(len(queries), np.int64)
        ids = queries.ids.astype(np.int32)
        starts = np.ascontiguousarray(queries.offsets)
        kernels.merge_terms(self._searched, ids, starts, terms, counts, ends)
        return QueryBatch(terms, counts, starts, ends)

    def scores(self, batch: QueryBatch, query: int = 0) -> Floats:
        """Return the score of every document, (N,), by adding all postings of the query's terms: the plain version."""
        scores = np.zeros(self.documents, np.float32)
        for place in range(batch.starts[query], batch.ends[query]):
            documents, weights = self.postings(int(batch.terms[place]))
            scores[documents] += batch.factors[place] * weights
        return scores

    def postings(self, term: int) -> tuple[Ints, Floats]:
        """Return the documents that contain a term, rising, and its weight in each."""
        self._check(np.array([term], np.int32))
        if self._searched.row_of[term] != kernels.NO_ROW:
            row = self.rows[self._searched.row_of[term]]
            documents = np.flatnonzero(row).astype(np.int32)
            return documents, row[documents]
        listed = self.pairs[self.offsets[term] : self.offsets[term + 1]]
        return listed[:, 0], listed.view(np.float32)[:, 1]

    def contributions(self, batch: QueryBatch, document: int, absent: float = 0.0) -> dict[str, float]:
        """Return what each term of the first query adds to the score of a document, ``absent`` · idf included."""
        if not 0 <= document < self.documents:
            raise SettingError(f"document {document}: expected 0 to {self.documents - 1}")
        found: dict[str, float] = {}
        for place in range(batch.starts[0], batch.ends[0]):
            term, factor = int(batch.terms[place]), float(batch.factors[place])
            documents, weights = self.postings(term)
            weight = float(weights[documents == document].sum()) + absent * float(self.idf[term])
            found[self.vocab[term]] = factor * weight
        return found

    def best(self, batch: QueryBatch, k: int = 10, *, threads: int | None = 1) -> Found:
        """Return the k best documents of each query, or as many as there are: the fast version."""
        check_number("k", k, whole=True, least=1)
        k = min(k, self.documents)
        self._check(batch.terms)
        documents = np.full((len(batch), k), -1, np.int32)
        scores = np.zeros((len(batch), k), np.float32)
        threads = min(threads or cores(), -(-len(batch) // QUERIES_AT_ONCE)) or 1
        step = len(batch) if threads == 1 else QUERIES_AT_ONCE

        def work(start: int) -> None:
            stop = min(start + step, len(batch))
            self._search(batch[start:stop], k, documents[start:stop], scores[start:stop])

        for _ in ordered_map(work, range(0, len(batch), max(step, 1)), threads):
            pass
        return Found(documents, scores)

    def _search(self, batch: QueryBatch, k: int, documents: Ints, scores: Floats) -> None:
        try:
            workspace = self._workspaces.get_nowait()
        except Empty:
            workspace = _new_workspace(self.documents)
        longest = int(np.diff(batch.starts).max())
        sized = workspace._replace(left=np.empty(longest + 1), heap=np.empty(k, np.int64))
        kernels.search(
            self._searched, batch.terms, batch.factors, batch.starts, batch.ends,
            k, sized, documents, scores,
        )  # fmt: skip
        self._workspaces.put(workspace)

    def _check(self, terms: Ints) -> None:
        bad = kernels.check_terms(self._searched, terms, self._checked)
        if bad >= 0:
            raise InputError(f"the index is damaged: the postings of {self.vocab[bad]!r} are not in order")

    # Saving

    def arrays(self) -> dict[str, Array]:
        """Return the arrays of a model folder."""
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
        """Build an index from a model folder. Postings are not read, for they may be many: a term's are checked when it
        is first searched for.
        """
        vocab = parts.needed_vocab()
        arrays = [parts.arrays[name] for name in ("idf", "offsets", "pairs", "row_terms", "rows", "bounds")]
        idf, offsets, pairs, row_terms, rows, bounds = arrays
        tokens, documents = len(vocab), rows.shape[-1] if rows.ndim else 0
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
        return cls(vocab, idf, offsets, pairs, row_terms, rows, bounds)


class IndexedRanker(ShownInNotebook):
    """Base of the rankers: an inverted index over a corpus, searched with weighted queries.

    A ranker supplies ``_weigh``, the weights of documents, and may change the factors of queries (``_batch``).
    index_: the weights, and the idf.
    """

    _index: InvertedIndex | None = None
    _absent = 0.0
    """What a term adds to a document that does not contain it, as a share of its idf; it is not in the index."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self._settings().items())})"

    def __len__(self) -> int:
        """Return the number of documents in the index."""
        return self.index_.documents

    @property
    def index_(self) -> InvertedIndex:
        """Index of the documents that were fitted."""
        if self._index is None:
            raise NotFittedError(self, "corpus")
        return self._index

    @property
    def vocab(self) -> Vocab:
        """Terms of the index."""
        return self.index_.vocab

    def fit(self, corpus: Corpus, *, threads: int | None = 1, meter: Meter | None = None) -> Self:
        """Index the documents of a corpus."""
        check_corpus(corpus)
        self._index = InvertedIndex.build(corpus, self._weigh, threads=threads, meter=meter)
        return self

    def search(self, queries: Corpus, k: int = 10, *, threads: int | None = 1) -> Found:
        """Return for each query the k best of the documents that contain one of its words."""
        check_corpus(queries)
        batch = self._batch(queries)
        found = self.index_.best(batch, k, threads=threads)
        if self._absent:
            found.scores[...] += np.where(found.documents >= 0, self._given_to_all(batch)[:, None], np.float32(0))
        return found

    def scores(self, query: Ids) -> Floats:
        """Return the score of every document, (N,), for one query of ids."""
        batch = self._batch(Corpus.from_ids([query], self.vocab))
        return self.index_.scores(batch) + self._given_to_all(batch)

    def contributions(self, query: Ids, document: int) -> dict[str, float]:
        """Return what each term of the query adds to the score of a document."""
        batch = self._batch(Corpus.from_ids([query], self.vocab))
        return self.index_.contributions(batch, document, self._absent)

    def _given_to_all(self, batch: QueryBatch) -> Floats:
        """Return what each query adds to every document, whether it contains the terms or not, (queries,)."""
        idf = self.index_.idf[batch.terms].astype(np.float64)
        return batch.sums(self._absent * idf * batch.factors).astype(np.float32)

    def _weigh(self, frequencies: Longs, lengths: Longs) -> Weighing:
        raise NotImplementedError

    def _batch(self, queries: Corpus) -> QueryBatch:
        return self.index_.batch(queries)

    def _settings(self) -> dict[str, Json]:
        raise NotImplementedError

    def to_parts(self) -> Parts:
        """Return settings and index for a model folder."""
        return Parts(self._settings(), self.index_.arrays(), self.vocab)

    @classmethod
    def from_parts(cls, parts: Parts) -> Self:
        """Build a ranker from a model folder."""
        model = cls(**parts.settings)
        model._index = InvertedIndex.from_parts(parts)
        return model


def _new_index(totals: Longs, row_terms: Ints, documents: int) -> kernels.Index:
    """Allocate the postings of each term, and rows of zeros."""
    offsets = np.concatenate((np.zeros(1, np.int64), np.cumsum(totals)))
    flat = np.empty(2 * int(offsets[-1]), np.int32)
    rows = np.zeros((len(row_terms), documents), np.float32)
    bounds = np.empty(len(totals), np.float32)
    return kernels.Index(offsets, flat, flat.view(np.float32), _row_of(row_terms, len(totals)), rows, bounds)


def _row_of(row_terms: Ints, tokens: int) -> Ints:
    row_of = np.full(tokens, kernels.NO_ROW, np.int32)
    row_of[row_terms] = np.arange(len(row_terms))
    return row_of


def _new_workspace(documents: int) -> kernels.QueryWorkspace:
    scores = np.zeros(documents, np.float32)
    touched, candidates, positions = (np.empty(documents + 1, np.int32) for _ in range(3))
    bits = scores.view(np.int32)
    return kernels.QueryWorkspace(scores, bits, touched, candidates, positions, np.empty(0), np.empty(0, np.int64))


class _Report:
    """Reports the tokens done to a meter. Of simultaneous reports one may be lost, which a progress bar can bear."""

    def __init__(self, meter: Meter | None, total: int) -> None:
        self.meter, self.total, self.done = meter, total, 0

    def __call__(self, tokens: int) -> None:
        self.done += tokens
        if self.meter:
            self.meter("indexing", self.done, self.total)


Part = tuple[int, int]
"""A range of documents, the second number excluded."""


def _parts(corpus: Corpus, threads: int) -> list[Part]:
    """Return one range of documents per thread, of about equally many tokens."""
    cuts = np.searchsorted(corpus.offsets, np.linspace(0, len(corpus.ids), threads + 1)[1:-1]).tolist()
    return list(zip([0, *cuts], [*cuts, len(corpus)], strict=True))


def _pieces(corpus: Corpus, part: Part, report: _Report) -> Iterator[Part]:
    """Yield a part in pieces and report each one when it is done."""
    first, last = part
    while first < last:
        until = int(np.searchsorted(corpus.offsets, corpus.offsets[first] + TOKENS_AT_ONCE))
        stop = min(max(until, first + 1), last)
        yield first, stop
        report(int(corpus.offsets[stop] - corpus.offsets[first]))
        first = stop


def _document_frequencies(corpus: Corpus, parts: list[Part], report: _Report) -> list[Longs]:
    """Return the document frequency of each token, part by part."""
    vocab = corpus.vocab

    def count(part: Part) -> Longs:
        states = np.full(len(vocab), -1 << 32, np.int64)
        for first, last in _pieces(corpus, part, report):
            kernels.count_documents(corpus.ids, corpus.offsets, first, last, states)
        states &= 0xFFFFFFFF
        states[vocab.end] = 0
        if vocab.unknown is not None:
            states[vocab.unknown] = 0
        return states

    return list(ordered_map(count, parts, len(parts)))


def _fill(corpus: Corpus, part: Part, weighing: Weighing, heads: Longs, index: kernels.Index, report: _Report) -> None:
    tally = np.zeros(len(corpus.vocab), np.int32)
    longest = int(np.diff(corpus.offsets[part[0] : part[1] + 1]).max(initial=0))
    distinct: Array = np.empty(longest + 1, np.int32)
    for first, last in _pieces(corpus, part, report):
        kernels.fill_postings(
            corpus.ids, corpus.offsets, first, last, weighing.idf, weighing.kind, weighing.k1, weighing.gain,
            weighing.shift, weighing.scales, index, heads, tally, distinct,
        )  # fmt: skip
