"""An index of every run of words in texts: a tokenizer, a suffix index of its ids, and the names of the documents.

It answers what occurs verbatim in a corpus: how often, where, what follows, and which parts of another text do.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Self

import numpy as np

from foreword.arrays import Bools, Doubles, Ids, Longs
from foreword.checks import check_not_string, saveable
from foreword.errors import InputError
from foreword.infinigram.index import Matches, SuffixIndex
from foreword.infinigram.infini_gram_files import read_infini_gram
from foreword.notebook import ShownInNotebook
from foreword.protocols import Meter, Parts, TextTokenizer
from foreword.search.documents import Names, NameTable
from foreword.storage.atomic import nearest_existing
from foreword.storage.folder import nest, unnest
from foreword.storage.scratch import Scratch
from foreword.text.block import Block, blocks_of
from foreword.tokens.corpus import Corpus
from foreword.tokens.vocab import UNKNOWN, Vocab
from foreword.tokens.words import WordTokenizer


@dataclass(frozen=True, slots=True)
class Place:
    """An occurrence of a sequence of tokens. offset: in its document, in tokens. before, text, after: an extract."""

    document: int
    name: str
    offset: int
    before: str
    text: str
    after: str


@dataclass(frozen=True, slots=True)
class NextWords:
    """What follows the longest suffix of a text that occurs in the index.

    matched: that suffix, of ``length`` tokens. count: how often any token follows it. words: the most frequent next
    tokens, with their counts.
    """

    matched: str
    length: int
    count: int
    words: list[tuple[str, int]]


@dataclass(frozen=True, slots=True)
class CopiedSpan:
    """A part of a text that occurs verbatim in the index, and is not contained in a longer one.

    begin, end: in tokens of the text. count: its number of occurrences. document, name, offset: the first of them;
    ``places`` shows the text around it.
    """

    begin: int
    end: int
    text: str
    count: int
    document: int
    name: str
    offset: int


AROUND = 8
"""Tokens of an extract on either side of a run."""


class TextIndex(ShownInNotebook):
    """An index of every run of words in texts.

    tokenizer: words between white space by default, which are learnt from the texts. One that keeps every byte, such as
    ``ByteTokenizer``, finds any string; others find runs of their own tokens.
    """

    def __init__(self, tokenizer: TextTokenizer | None = None) -> None:
        self.tokenizer = WordTokenizer() if tokenizer is None else tokenizer
        self.names_: NameTable | None = None

    def __repr__(self) -> str:
        return f"TextIndex({self.tokenizer!r}, {getattr(self, 'index_', None)!r})"

    def __len__(self) -> int:
        """Return the number of documents."""
        return len(self.index)

    @property
    def index(self) -> SuffixIndex:
        """The index of ids."""
        if not hasattr(self, "index_"):
            raise InputError("this TextIndex is empty: call fit(texts) first")
        return self.index_

    @property
    def vocab(self) -> Vocab:
        """The vocabulary of the index."""
        return self.index.vocab

    # Building

    def fit(self, texts: Iterable[str], names: Iterable[str] | None = None) -> Self:
        """Index texts, one document each; the default names are their numbers."""
        return self.fit_blocks(blocks_of(check_not_string(texts)), Names.of(names), threads=1)

    def fit_blocks(
        self,
        blocks: Iterable[Block],
        names: Names | None = None,
        *,
        threads: int | None = None,
        memory: int | None = None,
        folder: Path | None = None,
        meter: Meter | None = None,
    ) -> Self:
        """Index a stream of documents. names: may be filled while the blocks are read.

        memory, folder: a limit of the working memory, and where the rest goes, see ``SuffixIndex.build``.
        """
        corpus = encode_corpus(blocks, self.tokenizer, threads, memory, folder)
        self.index_ = SuffixIndex.build(corpus, memory=memory, folder=folder, meter=meter)
        self.names_ = _table(names, len(corpus))
        return self

    def append(self, texts: Iterable[str], names: Iterable[str] | None = None) -> Self:
        """Add texts after the others, as a segment of their own."""
        return self.append_blocks(blocks_of(check_not_string(texts)), Names.of(names), threads=1)

    def append_blocks(self, blocks: Iterable[Block], names: Names | None = None, *, threads: int | None = None) -> Self:
        """Add a stream of documents after the others, as a segment of their own. New words get new ids."""
        if isinstance(self.tokenizer, WordTokenizer):
            corpus = self._with_new_words(blocks, threads)
        else:
            corpus = Corpus.from_blocks(blocks, self.tokenizer, threads=threads)
        more = SuffixIndex.build(corpus)
        table = _joined(self.names_, _table(names, len(corpus)))
        segments = [segment.extended(len(corpus.vocab)) for segment in self.index.segments]
        self.index_, self.names_ = SuffixIndex([*segments, *more.segments], corpus.vocab), table
        return self

    def _with_new_words(self, blocks: Iterable[Block], threads: int | None) -> Corpus:
        """Encode documents, and extend the vocabulary by their new words."""
        assert isinstance(self.tokenizer, WordTokenizer)
        fresh = self.tokenizer.without_vocab()
        corpus = fresh.fit_corpus(blocks, threads=threads)
        known = self.tokenizer.vocab
        vocab = Vocab([*known, *(word for word in fresh.vocab if word not in known)])
        parts = self.tokenizer.to_parts()
        self.tokenizer = WordTokenizer.from_parts(Parts(parts.settings, {}, vocab))
        ids = vocab.ids(fresh.vocab)[corpus.ids]
        return Corpus(ids, corpus.offsets, corpus.byte_offsets, vocab)

    @classmethod
    def read_infini_gram(cls, folder: str | Path, tokenizer: TextTokenizer) -> Self:
        """Open an index of the infini-gram package, which was built with this tokenizer."""
        index = cls(tokenizer)
        index.index_ = read_infini_gram(folder, tokenizer.vocab)
        return index

    @classmethod
    def joined(cls, indexes: Sequence[TextIndex]) -> TextIndex:
        """Return indexes that were built with one tokenizer as one; documents have names only if all have."""
        index = cls(indexes[0].tokenizer)
        index.index_ = SuffixIndex.joined([each.index for each in indexes])
        tables = [each.names_ for each in indexes]
        index.names_ = None if None in tables else reduce(_joined, tables)
        return index

    # Queries

    def count(self, text: str) -> int:
        """Return how often a text occurs in the index, as a sequence of tokens."""
        ids, unknown = encode_run(text, self.tokenizer, self.vocab)
        return 0 if np.count_nonzero(unknown) else self.index.count(ids)

    def find(self, text: str, limit: int | None = 10) -> list[Place]:
        """Return the first ``limit`` occurrences of a text."""
        ids, unknown = encode_run(text, self.tokenizer, self.vocab)
        return [] if unknown.any() else self.places(ids, limit)

    def places(self, ids: Ids, limit: int | None = 10) -> list[Place]:
        """Return the first ``limit`` occurrences of a sequence of ids."""
        return [self._place(each.document, each.offset, len(ids)) for each in self.index.find(ids, limit)]

    def context(self, text: str, k: int = 10) -> NextWords:
        """Return the k most frequent tokens after the longest suffix of a text that occurs in the index."""
        ids, unknown = encode(text, self.tokenizer, self.vocab)
        found = self.index.context(ids[np.flatnonzero(unknown)[-1] + 1 :] if unknown.any() else ids)
        words = [(self.vocab[id], count) for id, count in found.likeliest(k)]
        matched = self.tokenizer.decode(ids[len(ids) - found.length :])
        return NextWords(matched, found.length, int(found.counts.sum()), words)

    def spans(self, text: str, least: int = 1) -> list[CopiedSpan]:
        """Return the longest parts of a text that occur verbatim in the index, those of at least ``least`` tokens."""
        array, matches = self.match(text)
        spans, ids, decode = matches.spans(least), array.tolist(), self.tokenizer.decode
        ends = np.array([end - 1 for _, end in spans], np.int64)
        counts, firsts = matches.counts[ends].tolist(), self.index.find_first(matches, ends)
        return [
            CopiedSpan(
                begin, end, decode(ids[begin:end]), count, first.document, self.name(first.document), first.offset
            )
            for (begin, end), count, first in zip(spans, counts, firsts, strict=True)
        ]

    def match(self, text: str) -> tuple[Ids, Matches]:
        """Return the ids of a text, and the longest run that ends at each of them and occurs."""
        ids, unknown = encode(text, self.tokenizer, self.vocab)
        borders = np.unique(np.concatenate(([0], np.flatnonzero(unknown), np.flatnonzero(unknown) + 1, [len(ids)])))
        matches = self.index.match(ids, borders)
        matches.begins[unknown] = np.flatnonzero(unknown) + 1
        return ids, matches

    def coverage(self, texts: Block, least: int) -> Doubles:
        """Return the fraction of each text that occurs verbatim in the index, in spans of at least ``least`` tokens.

        Float64 (documents,), NaN for a text without a token. A word that is not in the index ends a span.
        """
        encoded = self.tokenizer.encode_block(texts)
        ids, ends = np.asarray(encoded.ids, np.int64), encoded.ends
        outside = (ids == self.vocab.end) | (ids == (-1 if self.vocab.unknown is None else self.vocab.unknown))
        places = np.flatnonzero(outside)
        borders = np.unique(np.concatenate(([0, len(ids)], places, places + 1)))
        inside = self.index.match(ids, borders).covered(least) & ~outside
        starts = np.concatenate((np.zeros(1, np.int64), ends))[:-1]
        covered = np.concatenate((np.zeros(1, np.int64), inside.cumsum()))
        tokens = ends - starts - 1  # without </s>
        with np.errstate(invalid="ignore"):
            shares: Doubles = (covered[ends] - covered[starts]) / tokens
        return shares

    def document(self, number: int) -> str:
        """Return the text of a document, decoded from its tokens."""
        return self.tokenizer.decode(self.index.document(number).tolist())

    def name(self, document: int) -> str:
        """Return the name of a document, or its number."""
        return str(document) if self.names_ is None else self.names_[document]

    def _place(self, document: int, offset: int, length: int) -> Place:
        before = min(offset, AROUND)
        ids = self.index.document(document, offset - before, offset + length + AROUND).tolist()
        decode, end = self.tokenizer.decode, before + length
        texts = decode(ids[:before]), decode(ids[before:end]), decode(ids[end:])
        return Place(document, self.name(document), offset, *texts)

    # Saving

    def to_parts(self) -> Parts:
        """Return the settings, arrays and vocabulary to save."""
        parts = Parts({})
        nest("tokenizer", saveable(self.tokenizer), parts)
        nest("index", self.index, parts)
        if self.names_ is not None:
            parts.arrays |= self.names_.to_arrays()
        return parts

    @classmethod
    def from_parts(cls, parts: Parts) -> Self:
        """Rebuild the index from what was saved."""
        tokenizer, index = unnest("tokenizer", parts), unnest("index", parts)
        if not isinstance(tokenizer, TextTokenizer) or not isinstance(index, SuffixIndex):
            raise ValueError(f"a {type(tokenizer).__name__} and a {type(index).__name__} make no text index")
        found = cls(tokenizer)
        found.index_, found.names_ = index, NameTable.from_arrays(parts.arrays, len(index))
        return found


def encode(text: str, tokenizer: TextTokenizer, vocab: Vocab) -> tuple[Longs, Bools]:
    """Return the ids of a text, and which of them are of words that are not in the index: bool (n,).

    A text may contain the word ``<unk>``, as the Penn Treebank does.
    """
    ids = np.asarray(tokenizer.encode(text), np.int64)
    unknown = ids == (-1 if vocab.unknown is None else vocab.unknown)
    number = np.count_nonzero(unknown)
    if number and number == text.split().count(UNKNOWN):
        unknown[:] = False
    return ids, unknown


def encode_run(text: str, tokenizer: TextTokenizer, vocab: Vocab) -> tuple[Longs, Bools]:
    """Return what ``encode`` does; an InputError if there is no token to look for."""
    ids, unknown = encode(text, tokenizer, vocab)
    if len(ids) == 0:
        raise InputError(f"{text!r} has no token: expected words to look for")
    return ids, unknown


def encode_corpus(
    blocks: Iterable[Block], tokenizer: TextTokenizer, threads: int | None, memory: int | None, folder: Path | None
) -> Corpus:
    """Encode a stream of documents; a word tokenizer without a vocabulary learns one. With a limit ids go to disk."""
    scratch = Scratch(memory, None if folder is None else nearest_existing(folder))
    if isinstance(tokenizer, WordTokenizer) and not hasattr(tokenizer, "vocab_"):
        return tokenizer.fit_corpus(blocks, threads=threads, scratch=scratch)
    return Corpus.from_blocks(blocks, tokenizer, threads=threads, scratch=scratch)


def _table(names: Names | None, documents: int) -> NameTable | None:
    """Return the names of documents as a table; an InputError if their numbers differ."""
    if names is not None and len(names) != documents:
        raise InputError(f"{len(names)} names for {documents} documents")
    return None if names is None else names.finished()


def _joined(one: NameTable | None, other: NameTable | None) -> NameTable | None:
    """Return the names of two indexes as one table."""
    if one is None or other is None:
        if one is not other:
            raise InputError("either all documents of an index have names, or none has")
        return None
    return one.followed_by(other)
