"""Search by BM25, index and queries, against bm25s with its Numba backend."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from functools import cache
from typing import Any

import bm25s
import numpy as np

from benchmarks.measure import Pairs, interleaved, one_core
from benchmarks.progress import say
from benchmarks.report import Row, compared
from foreword.search.bm25 import BM25
from foreword.search.inverted import Found
from foreword.text.block import blocks_of
from foreword.text.datasets import labelled
from foreword.tokens.corpus import Corpus
from foreword.tokens.words import WordTokenizer

TITLE = "Search"
HOW = (
    "20 Newsgroups with headers, every run of letters and digits a word, and every punctuation mark, in lower case; "
    "Lucene's BM25. Queries are of the test part: its subject lines, and five words drawn from each document. Both "
    'sides have the same ids. bm25s with `backend="numba"`; from text it splits with the regular expression that '
    "gives these words."
)

WORD = r"\w+|[^\w\s]"
"""What WordTokenizer(split="punctuation") cuts, as a regular expression."""

BUILDING_BAR, ASKING_BAR = 2.0, 1.0
TOLERANCE = 1e-5


@dataclass(frozen=True, slots=True)
class Collection:
    """Documents and queries, as text and as ids."""

    texts: list[str]
    tokenizer: WordTokenizer
    corpus: Corpus
    lists: list[list[int]]
    vocab: dict[str, int]
    subjects: list[str]
    words: list[str]


def run(quick: bool) -> list[Row]:
    logging.getLogger("bm25s").setLevel(logging.ERROR)
    collection = read(quick)
    model, peer = build(collection), build_peer(collection)
    with one_core():
        return [
            _building(collection),
            _building_from_text(collection),
            _asking("subject lines, k = 10", collection, collection.subjects, model, peer, 10, ASKING_BAR),
            _asking("five words, k = 10", collection, collection.words, model, peer, 10, ASKING_BAR),
            _asking("five words, k = 100", collection, collection.words, model, peer, 100, None),
            _asking_from_text(collection, model, peer),
        ]


@cache
def read(quick: bool) -> Collection:
    say("reading 20 Newsgroups")
    parts = {part: [text for _, text in labelled(f"20newsgroups:{part}")] for part in ("train", "test")}
    texts = parts["test"] if quick else parts["train"] + parts["test"]
    tokenizer = WordTokenizer(split="punctuation", lowercase=True)
    corpus = tokenizer.fit_corpus(blocks_of(texts), threads=1)
    rng = np.random.default_rng(0)
    return Collection(
        texts,
        tokenizer,
        corpus,
        [document[:-1].tolist() for document in corpus.documents()],
        {token: id for id, token in enumerate(corpus.vocab)},
        [text.partition("Subject:")[2].partition("\n")[0].strip() or "none" for text in parts["test"]],
        [" ".join(rng.choice(text.split(), 5)) for text in parts["test"]],
    )


# Building


def build(collection: Collection) -> BM25:
    return BM25().fit(collection.corpus)


def build_peer(collection: Collection) -> Any:
    peer = bm25s.BM25(backend="numba")
    peer.index((collection.lists, dict(collection.vocab)), show_progress=False)
    return peer


def _building(collection: Collection) -> Row:
    job = f"index of {len(collection.corpus):,} documents, from ids"
    pairs = interleaved(job, lambda: build(collection), lambda: build_peer(collection), same_index)
    return compared(job, "bm25s", pairs, bar=BUILDING_BAR)


def _building_from_text(collection: Collection) -> Row:
    texts = collection.texts
    job = f"index of {len(texts):,} documents, from text"

    def ours() -> BM25:
        return BM25().fit(WordTokenizer(split="punctuation", lowercase=True).fit_corpus(blocks_of(texts), threads=1))

    def theirs() -> Any:
        peer = bm25s.BM25(backend="numba")
        peer.index(tokens_by_peer(texts), show_progress=False)
        return peer

    return compared(job, "bm25s", interleaved(job, ours, theirs, same_size), bar=BUILDING_BAR)


def tokens_by_peer(texts: list[str]) -> Any:
    return bm25s.tokenize(texts, token_pattern=WORD, stopwords=None, show_progress=False)


def same_index(model: BM25, peer: Any) -> bool:
    """Every weight of every hundredth term."""
    starts, weights = peer.scores["indptr"], peer.scores["data"]
    for term in range(0, len(model.vocab), 100):
        ours, theirs = model.index_.postings(term)[1], weights[starts[term] : starts[term + 1]]
        if not np.allclose(ours, theirs, rtol=TOLERANCE):
            return False
    return True


def same_size(model: BM25, peer: Any) -> bool:
    """As many (term, document) weights, and the same sum of them: the peer numbers its terms otherwise."""
    listed, rows, data = model.index_.pairs.view(np.float32)[:, 1], model.index_.rows, peer.scores["data"]
    total = listed.sum(dtype=np.float64) + rows.sum(dtype=np.float64)
    same_number = len(listed) + np.count_nonzero(rows) == len(data)
    return bool(same_number and np.isclose(total, data.sum(dtype=np.float64), rtol=TOLERANCE))


# Asking


def _asking(
    job: str, collection: Collection, texts: list[str], model: BM25, peer: Any, k: int, bar: float | None
) -> Row:
    queries = Corpus.from_texts(texts, collection.tokenizer)
    lists = [document[:-1].tolist() for document in queries.documents()]

    def theirs() -> Any:
        return peer.retrieve(lists, k=k, n_threads=1, show_progress=False)

    pairs = interleaved(job, lambda: model.search(queries, k), theirs, same_scores)
    return _paced(job, pairs, len(texts), bar)


def _asking_from_text(collection: Collection, model: BM25, peer: Any) -> Row:
    """Words in place of ids. The peer looks each up in its vocabulary."""
    texts = collection.words

    def ours() -> Found:
        return model.search(Corpus.from_texts(texts, collection.tokenizer), 10)

    def theirs() -> Any:
        words = bm25s.tokenize(texts, token_pattern=WORD, stopwords=None, show_progress=False, return_ids=False)
        return peer.retrieve(words, k=10, n_threads=1, show_progress=False)

    job = "five words as text, k = 10"
    return _paced(job, interleaved(job, ours, theirs, same_scores), len(texts), None)


def same_scores(found: Found, retrieved: Any) -> bool:
    """Rank by rank. Where fewer than k documents hold a word of the query, the peer fills up with others of score 0."""
    return bool(np.allclose(found.scores, retrieved.scores, rtol=TOLERANCE, atol=1e-7))


def _paced(job: str, pairs: Pairs, queries: int, bar: float | None) -> Row:
    """Thousands of queries a second, where other subjects have megabytes."""
    row = compared(job, "bm25s", pairs, bar=bar)
    ours, theirs = (queries / np.median(taken) for taken in (pairs.ours, pairs.theirs))
    note = f"{ours:,.0f} queries a second against {theirs:,.0f}"
    return Row(row.job, row.ours, row.peer, row.ratio, row.of_medians, row.bar, row.met, note, row.figures)
