"""Full-text search: a tokenizer, an index, and the names and texts of the documents."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Self

import numpy as np

from foreword.arrays import Bools, Ids, Longs
from foreword.checks import check_not_string, saveable
from foreword.errors import ForewordError, InputError, SettingError
from foreword.notebook import ShownInNotebook
from foreword.protocols import Json, Meter, Parts, Ranker, TextTokenizer
from foreword.search.bm25 import BM25
from foreword.search.documents import Names, NameTable, Snippet, Strings, TextBuffer, blocks_of_strings, snippet
from foreword.storage.folder import nest, unnest
from foreword.text.block import Block, blocks_of
from foreword.tokens.corpus import Corpus
from foreword.tokens.vocab import Vocab
from foreword.tokens.words import WordTokenizer

QUERIES_AT_ONCE = 4096
"""Queries that ``stream`` answers at once."""


@dataclass(frozen=True, slots=True)
class Hit:
    """A document that was found.

    rank: from 1; document: its index, from 0; name: as given, or the index.
    snippet: an extract of its text, empty if texts are not stored; marks: where the words of the query are in it.
    """

    rank: int
    score: float
    document: int
    name: str
    snippet: str
    marks: tuple[tuple[int, int], ...] = ()


class TextSearch(ShownInNotebook):
    """Full-text search: a tokenizer, a ranker, and the names and texts of the documents.

    tokenizer: by default a word is a run of letters, digits and underscores, or a punctuation mark, in lower case. A
    tokenizer without a vocabulary learns it from the documents.
    ranker: ``BM25()`` by default.
    keep_text: whether to store the texts of all documents with the index.
    stop_words: words that are left out of queries; none by default, since a low idf gives them little weight.
    """

    def __init__(
        self,
        tokenizer: TextTokenizer | None = None,
        ranker: Ranker | None = None,
        *,
        keep_text: bool = True,
        stop_words: Sequence[str] = (),
    ) -> None:
        self.tokenizer = WordTokenizer(split="punctuation", lowercase=True) if tokenizer is None else tokenizer
        self.ranker = BM25() if ranker is None else ranker
        self.keep_text = keep_text
        self.stop_words = [stop_words] if isinstance(stop_words, str) else list(stop_words)
        self.texts_: Strings | None = None
        self.names_: NameTable | None = None

    def __repr__(self) -> str:
        return f"TextSearch({self.tokenizer!r}, {self.ranker!r})"

    def __len__(self) -> int:
        """Return the number of documents."""
        return len(self.ranker)

    @property
    def vocab(self) -> Vocab:
        """Return the vocabulary of the index."""
        return self.ranker.vocab

    # Indexing

    def fit(self, texts: Iterable[str], names: Iterable[str] | None = None) -> Self:
        """Index texts, one document each; the default names are their indices."""
        check_not_string(texts)
        if not self._has_vocab() and not isinstance(self.tokenizer, WordTokenizer):
            texts = list(texts)
            self.tokenizer.fit(texts)
        return self.fit_blocks(blocks_of(texts), Names.of(names), threads=1)

    def fit_blocks(
        self,
        blocks: Iterable[Block],
        names: Names | None = None,
        *,
        threads: int | None = None,
        scratch: str | Path | None = None,
        meter: Meter | None = None,
    ) -> Self:
        """Index a stream of documents in one pass, on all cores.

        names: may be filled while the blocks are read.
        scratch: a folder for the texts, which are otherwise in memory until the index is saved.
        """
        with TextBuffer(Path(scratch) if scratch is not None and self.keep_text else None) as buffer:
            corpus = self._corpus(_store_texts(blocks, buffer) if self.keep_text else blocks, threads)
            if names is not None and len(names) != len(corpus):
                raise InputError(f"{len(names)} names for {len(corpus)} documents")
            self.ranker.fit(corpus, threads=threads, meter=meter)
            self.texts_ = buffer.finished() if self.keep_text else None
        self.names_ = None if names is None else names.finished()
        return self

    def add(self, texts: Iterable[str], names: Iterable[str] | None = None) -> Self:
        """Add documents after the others; a document that is there under the same name is replaced.

        The result is the index of all documents, as if they had been indexed together: see ``add_blocks``.
        """
        return self.add_blocks(blocks_of(texts), Names.of(names), threads=1)

    def add_blocks(
        self, blocks: Iterable[Block], names: Names | None = None, *, threads: int | None = None,
        meter: Meter | None = None,
    ) -> Self:  # fmt: skip
        """Add a stream of documents, which fits in memory, to those that are stored, and index all of them again.

        Where a name covers several documents, as that of a file does its lines, all of them are replaced.
        """
        stored, new = self._stored_texts(), list(blocks)
        if names is None and self.names_ is not None:
            raise InputError("the documents of this index have names: give names of the new ones")
        kept = np.arange(len(self))
        if names is not None:
            owned = set(names.given)
            kept = np.array([each for each in range(len(self)) if not self._names(each) & owned], np.int64)
        joined = None if names is None else self._names_of(kept).extended(names)
        return self._index_again(chain(blocks_of_strings(stored, kept), new), joined, threads, meter)

    def remove(self, names: Iterable[str], *, threads: int | None = 1, meter: Meter | None = None) -> Self:
        """Remove documents by their names; the name of a file removes all documents that were read from it."""
        stored, unwanted = self._stored_texts(), set(map(str, check_not_string(names, "a list of names")))
        mine = [self._names(index) for index in range(len(self))]
        if unknown := unwanted - set().union(*mine):
            raise InputError(f"no document is named {min(unknown)!r}")
        kept = np.array([index for index, known in enumerate(mine) if not known & unwanted], np.int64)
        if not len(kept):
            raise InputError("an index without documents: expected at least one to stay")
        return self._index_again(blocks_of_strings(stored, kept), self._names_of(kept), threads, meter)

    def _stored_texts(self) -> Strings:
        if self.texts_ is None:
            raise SettingError("this index stores no texts, so that its documents cannot be changed: index them again")
        return self.texts_

    def _names(self, index: int) -> set[str]:
        """Return the name of a document, and that of its file."""
        return {self.name(index)} if self.names_ is None else {self.name(index), self.names_.owner(index)}

    def _names_of(self, kept: Longs) -> Names:
        """Return the names of these documents, one by one: in a file that loses one, the others keep their numbers."""
        names = Names()
        for index in kept.tolist():
            names.add(self.name(index))
        return names

    def _index_again(
        self, blocks: Iterable[Block], names: Names | None, threads: int | None, meter: Meter | None
    ) -> Self:
        """Index all documents, new words included where the tokenizer learnt its words from the documents."""
        if isinstance(self.tokenizer, WordTokenizer):
            self.tokenizer = self.tokenizer.without_vocab()
        return self.fit_blocks(blocks, names, threads=threads, meter=meter)

    def _corpus(self, blocks: Iterable[Block], threads: int | None) -> Corpus:
        if self._has_vocab():
            return Corpus.from_blocks(blocks, self.tokenizer, threads=threads)
        if isinstance(self.tokenizer, WordTokenizer):
            return self.tokenizer.fit_corpus(blocks, threads=threads)
        raise SettingError(f"this {type(self.tokenizer).__name__} has no vocabulary yet: fit it first")

    def _has_vocab(self) -> bool:
        try:
            return len(self.tokenizer.vocab) > 0
        except ForewordError:
            return False

    # Searching

    def query(self, text: str, k: int = 10) -> list[Hit]:
        """Return the k best documents that contain a word of the query; fewer if fewer do."""
        return self.query_batch([text], k)[0]

    def query_batch(self, texts: Sequence[str], k: int = 10, *, threads: int | None = 1) -> list[list[Hit]]:
        """Return the hits of many queries, far faster than one by one."""
        queries = self._queries(check_not_string(texts, "a list of queries"))
        found = self.ranker.search(queries, k, threads=threads)
        return [
            self._hits(ids, documents, scores)
            for ids, documents, scores in zip(
                queries.documents(), found.documents.tolist(), found.scores.tolist(), strict=True
            )
        ]

    def stream(self, texts: Iterable[str], k: int = 10, *, threads: int | None = 1) -> Iterator[list[Hit]]:
        """Yield the hits of each query of a stream, some thousand queries at a time."""
        texts = iter(texts)
        while batch := list(islice(texts, QUERIES_AT_ONCE)):
            yield from self.query_batch(batch, k, threads=threads)

    def explain(self, text: str, document: int) -> dict[str, float]:
        """Return what each word of the query adds to a document's score, without words that no document contains."""
        return self.ranker.contributions(self._queries([text]).ids[:-1], document)

    def name(self, document: int) -> str:
        """Return the name of a document."""
        self._check_number(document)
        return str(document) if self.names_ is None else self.names_[document]

    def text(self, document: int) -> str:
        """Return the text of a document."""
        self._check_number(document)
        if self.texts_ is None:
            raise SettingError("this index stores no texts")
        return self.texts_[document]

    def _check_number(self, document: int) -> None:
        if not 0 <= document < len(self):
            raise SettingError(f"document {document}: expected 0 to {len(self) - 1}")

    def _queries(self, texts: Sequence[str]) -> Corpus:
        """Return queries as documents of ids, without stop words and, unless there is nothing else, punctuation."""
        corpus = Corpus.from_texts(texts, self.tokenizer)
        stopped = np.concatenate([np.empty(0, np.int64), *(self.tokenizer.encode(word) for word in self.stop_words)])
        dropped = np.isin(corpus.ids, stopped) & (corpus.ids != corpus.vocab.end)
        if isinstance(self.tokenizer, WordTokenizer):
            dropped |= _punctuation(corpus)
        if not dropped.any():
            return corpus
        before = np.concatenate((np.zeros(1, np.int64), np.cumsum(dropped)))
        offsets = corpus.offsets - before[corpus.offsets]
        return Corpus(corpus.ids[~dropped], offsets, corpus.byte_offsets, corpus.vocab)

    def _hits(self, ids: Ids, documents: list[int], scores: list[float]) -> list[Hit]:
        vocab = self.vocab
        query = [vocab[id] for id in sorted(set(ids.tolist()) - {vocab.end, vocab.unknown})]
        words = [word for word in query if any(map(str.isalnum, word))] or query  # punctuation is everywhere
        hits = []
        for rank, (document, score) in enumerate(zip(documents, scores, strict=True), 1):
            if document < 0:
                break
            shown = self._snippet(document, words)
            hits.append(Hit(rank, score, document, self.name(document), shown.text, shown.marks))
        return hits

    def _snippet(self, document: int, words: list[str]) -> Snippet:
        if self.texts_ is None:
            return Snippet("")
        cleaning = getattr(self.tokenizer, "cleaning", None)
        return snippet(self.texts_[document], words, any_case=bool(cleaning and cleaning.lowercase))

    # Saving

    def to_parts(self) -> Parts:
        """Return the settings, arrays and vocabulary to save."""
        stop_words: list[Json] = [*self.stop_words]
        parts = Parts({"keep_text": self.keep_text, "stop_words": stop_words})
        for prefix, part in (("tokenizer", self.tokenizer), ("ranker", self.ranker)):
            nest(prefix, saveable(part), parts)
        if self.texts_ is not None:
            parts.arrays |= {"texts": self.texts_.data, "text_offsets": self.texts_.offsets}
        if self.names_ is not None:
            parts.arrays |= self.names_.to_arrays()
        return parts

    @classmethod
    def from_parts(cls, parts: Parts) -> Self:
        """Rebuild the model from what was saved."""
        keep_text, stop_words = parts.settings["keep_text"], parts.settings["stop_words"]
        if not isinstance(keep_text, bool) or not isinstance(stop_words, list):
            raise ValueError("keep_text should be true or false, and stop_words a list")
        tokenizer, ranker = unnest("tokenizer", parts), unnest("ranker", parts)
        if not isinstance(tokenizer, TextTokenizer) or not isinstance(ranker, Ranker):
            raise ValueError(f"a {type(tokenizer).__name__} and a {type(ranker).__name__} make no text search")
        search = cls(tokenizer, ranker, keep_text=keep_text, stop_words=[str(word) for word in stop_words])
        arrays = parts.arrays
        if "texts" in arrays:
            search.texts_ = Strings(arrays["texts"], arrays["text_offsets"])
            search.texts_.check("texts")
            if len(search.texts_) != len(search):
                raise ValueError(f"{len(search.texts_)} texts for {len(search)} documents")
        search.names_ = NameTable.from_arrays(arrays, len(search))
        return search


def _punctuation(queries: Corpus) -> Bools:
    """Return which tokens of queries have neither letter nor digit, but none in a query of such tokens only: (ids,)."""
    vocab = queries.vocab
    marks = [
        id for id in set(queries.ids.tolist()) - {vocab.end, vocab.unknown} if not any(map(str.isalnum, vocab[id]))
    ]
    is_mark = np.isin(queries.ids, np.array(marks, np.int64))
    if not is_mark.any():
        return is_mark
    words = np.add.reduceat(~is_mark & (queries.ids != vocab.end), queries.offsets[:-1])
    return is_mark & np.repeat(words > 0, np.diff(queries.offsets))


def _store_texts(blocks: Iterable[Block], buffer: TextBuffer) -> Iterator[Block]:
    """Pass the blocks on and store their texts."""
    for block in blocks:
        buffer.add(block)
        yield block
