"""What a text's own words say when they are counted in two ways: which are alike, and which parts they share.

``neighbourhoods`` trains small word vectors (skip-gram) on the text and asks for the words nearest to some of its
common ones. ``merged`` learns byte-pair merges from its characters and cuts one sentence with more and more of them.
Neither is one of the models compared; both are quick, and as large a text as is taken is not read for longer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from unicodedata import category

import numpy as np

from foreword.protocols import Json
from foreword.tokens.bpe import BPETokenizer
from foreword.tokens.corpus import Corpus
from foreword.vectors.word2vec import Word2Vec
from foreword.vectors.wordvectors import WordVectors

ASKED, ANSWERS = 12, 6
"""Words whose neighbours are told, and neighbours of each."""

TOO_COMMON, LEAST_SEEN = 40, 30
"""The commonest words stand beside everything, and a word seen less often than this has not found its place."""

LEAST_LETTERS = 4
"""Of a word that is asked about: shorter ones are mostly particles; where words are signs, one is enough."""

DIMENSIONS, WORDS_READ, MOST_EPOCHS = 64, 3_000_000, 15
"""Of the word vectors; words that are read for them, all epochs together, and epochs of a small text."""

MERGES, MERGE_BYTES = 2000, 2_000_000
"""That are learnt, and the text that they are learnt from."""

FIRST_MERGES, STAGES = 24, (0, 10, 50, 200, 1000, 2000)
"""Merges that are told one by one, and numbers of merges at which the sentence is shown."""

SENTENCE_LETTERS = 64


@dataclass(frozen=True, slots=True)
class Neighbourhood:
    """A word, and the words nearest to it with their cosines."""

    word: str
    nearest: tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True)
class Merged:
    """first: (left, right, how often the two stood side by side), in the order they were merged. learnt: how many in
    all. stages: (merges, the sentence in tokens) with more and more merges.
    """

    first: tuple[tuple[str, str, int], ...]
    learnt: int
    stages: tuple[tuple[int, tuple[str, ...]], ...]

    def to_json(self) -> dict[str, Json]:
        return {
            "first": [list(merge) for merge in self.first],
            "learnt": self.learnt,
            "stages": [{"merges": merges, "tokens": list(tokens)} for merges, tokens in self.stages],
        }


def neighbourhoods(train: Corpus, seed: int = 0) -> tuple[Neighbourhood, ...]:
    """Words spread over the common ones of the training part; none where no word is common enough to be placed."""
    asked = asked_words(train)
    if not asked:
        return ()
    taken = train if len(train.ids) <= WORDS_READ else train[: int(train.offsets.searchsorted(WORDS_READ))]
    epochs = int(np.clip(WORDS_READ // max(1, len(taken.ids)), 1, MOST_EPOCHS))
    vectors = Word2Vec(DIMENSIONS, window=5, negatives=5, sample=1e-3, epochs=epochs, seed=seed).fit(taken).vectors
    return tuple(Neighbourhood(word, tuple(_nearest(vectors, word))) for word in asked if word in vectors)


def _nearest(vectors: WordVectors, word: str) -> Iterator[tuple[str, float]]:
    """Other words, and not the same one with a capital or a comma."""
    told = {word.casefold()}
    for other, cosine in vectors.nearest(word, 8 * ANSWERS):
        if is_word(other) and other.casefold() not in told and len(told) <= ANSWERS:
            told.add(other.casefold())
            yield other, float(cosine)


def is_word(token: str) -> bool:
    """Letters alone, and the marks that belong to them."""
    return all(category(letter)[0] in "LM" for letter in token)


def asked_words(train: Corpus) -> list[str]:
    """A dozen, at ranks that grow by a constant factor: from common to middling, whatever the text is about."""
    counts = np.bincount(train.ids, minlength=len(train.vocab))
    counts[train.vocab.end] = 0
    if train.vocab.unknown is not None:
        counts[train.vocab.unknown] = 0
    ranked = [id for id in np.argsort(-counts, kind="stable").tolist() if counts[id] >= LEAST_SEEN][TOO_COMMON:]
    words = [word for word in (train.vocab[id] for id in ranked) if is_word(word)]
    long = [word for word in words if len(word) >= LEAST_LETTERS]
    words = long if len(long) >= ASKED else words
    ranks = np.unique(np.geomspace(1, max(1, len(words)), ASKED).round().astype(int))
    return [words[rank - 1] for rank in ranks.tolist()] if words else []


def merged(texts: Sequence[str], sentence: str) -> Merged | None:
    """Learnt from the beginning of the training part; None for a text in which no two characters recur together."""
    taken = list(_beginning(texts, MERGE_BYTES))
    alphabet = len({letter for text in taken for letter in text})
    tokenizer = BPETokenizer(alphabet + 2 + MERGES, kind="characters", min_frequency=2).fit(taken)
    learnt = [(tokenizer.vocab[step.left], tokenizer.vocab[step.right], step.count) for step in tokenizer.steps()]
    if not learnt:
        return None
    return Merged(tuple(learnt[:FIRST_MERGES]), len(learnt), tuple(_stages(tokenizer, len(learnt), _cut(sentence))))


def _beginning(texts: Iterable[str], most: int) -> Iterator[str]:
    left = most
    for text in texts:
        if left <= 0:
            return
        yield text[:left]
        left -= len(text.encode("utf-8", "replace")) + 1


def _cut(sentence: str) -> str:
    """Whole words where there are some."""
    sentence = " ".join(sentence.split())
    if len(sentence) <= SENTENCE_LETTERS:
        return sentence
    return sentence[:SENTENCE_LETTERS].rpartition(" ")[0] or sentence[:SENTENCE_LETTERS]


def _stages(tokenizer: BPETokenizer, learnt: int, sentence: str) -> Iterator[tuple[int, tuple[str, ...]]]:
    ranks = {pair: rank for rank, pair in enumerate(tokenizer.merge_names(), 1)}
    steps = [
        (0 if step["merge"] is None else ranks[step["merge"]], step["tokens"]) for step in tokenizer.replay(sentence)
    ]
    for merges in sorted({min(stage, learnt) for stage in STAGES}):
        # The replay names only the merges that change the sentence: the last one up to here.
        yield merges, tuple(max((step for step in steps if step[0] <= merges), key=lambda step: step[0])[1])
