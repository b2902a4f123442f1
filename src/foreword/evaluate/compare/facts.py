"""What there is to know of a text before any model has seen it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np

from foreword.arrays import Ids, Longs
from foreword.decode import pieces
from foreword.errors import SettingError
from foreword.evaluate.compare.splits import written_without_spaces
from foreword.protocols import Json, Tokenizer
from foreword.tokens.characters import CharacterTokenizer
from foreword.tokens.corpus import Corpus
from foreword.tokens.vocab import Vocab
from foreword.tokens.words import WordTokenizer

PASSAGE_TOKENS = 80
"""A passage that is read at a glance."""

POINTS = 240
"""So many ranks draw a curve of frequencies as well as a million."""


@dataclass(frozen=True, slots=True)
class Passage:
    """Some text, token by token.

    pieces: one for each token, that spell the text when joined; a token that ends within a character has an empty one.
    unknown: places of the pieces that are words outside the vocabulary.
    """

    pieces: tuple[str, ...]
    unknown: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TextFacts:
    """A text in numbers.

    unit: what is counted, ``word``, or ``character`` where the text is written without spaces.
    documents: how many came, blank ones left out. bytes: their UTF-8, and one for the end of each line.
    units, types, once: how many units, different ones, and different ones that occur a single time.
    frequencies: (rank, count) from the commonest unit to the rarest, thinned out.
    landmarks: (rank, unit) at ranks 1, 10, 100, ...
    vocabulary: tokens every model may predict, ``<unk>`` and ``</s>`` among them.
    train_tokens, valid_tokens, test_tokens: how many ids each part has, one ``</s>`` a document included.
    test_share: how much of the test part is read, where the networks have no time for all of it.
    passage: the beginning of a test document, for every model to read.
    """

    name: str
    unit: str
    documents: int
    bytes: int
    units: int
    types: int
    once: int
    frequencies: tuple[tuple[int, int], ...]
    landmarks: tuple[tuple[int, str], ...]
    vocabulary: int
    train_tokens: int
    valid_tokens: int
    test_tokens: int
    test_share: float
    passage: Passage

    def to_json(self) -> dict[str, Json]:
        return asdict(self)


def describe(
    name: str, texts: Sequence[str], parts: tuple[Corpus, Corpus, Corpus], passage: Passage, test_share: float = 1.0
) -> TextFacts:
    """Count a text as it came, and its three parts as the models are given them."""
    train, valid, test = parts
    spaceless = written_without_spaces(texts)
    counted = (CharacterTokenizer() if spaceless else WordTokenizer()).fit(texts).vocab
    ids, counts = by_rank(counted)
    landmarks = [10**power for power in range(len(str(len(ids))))]
    ranks = np.union1d(np.geomspace(1, len(ids), POINTS).round().astype(np.int64), landmarks)
    return TextFacts(
        name=name,
        unit="character" if spaceless else "word",
        documents=sum(not text.isspace() and text != "" for text in texts),
        bytes=sum(len(text.encode()) + 1 for text in texts),
        units=int(counts.sum()),
        types=len(ids),
        once=int(np.count_nonzero(counts == 1)),
        frequencies=tuple(zip(ranks.tolist(), counts[ranks - 1].tolist(), strict=True)),
        landmarks=tuple((rank, counted[int(ids[rank - 1])]) for rank in landmarks),
        vocabulary=len(train.vocab),
        train_tokens=len(train.ids),
        valid_tokens=len(valid.ids),
        test_tokens=len(test.ids),
        test_share=test_share,
        passage=passage,
    )


def by_rank(counted: Vocab) -> tuple[Longs, Longs]:
    """Ids and counts of the tokens that occur, the commonest first, equals by id; ends of documents are left out."""
    if counted.counts is None:
        raise SettingError("a vocabulary without counts has no ranks")
    counts = counted.counts.copy()
    counts[counted.end] = 0
    ids = np.argsort(-counts, kind="stable")[: np.count_nonzero(counts)]
    return ids, counts[ids]


def passage_place(test: Corpus) -> int:
    """Which test document to show: the first that fills a passage, or else the longest."""
    lengths = np.diff(test.offsets)
    return int(np.minimum(lengths, PASSAGE_TOKENS).argmax())


def read_passage(tokenizer: Tokenizer, text: str, ids: Ids) -> Passage:
    """The beginning of a document, its words as written even where the models only see ``<unk>``."""
    body, end = ids[:-1].tolist(), int(ids[-1])
    words = text.split()
    if _one_by_one(tokenizer, words, body):
        spelled = [word if place == 0 else f" {word}" for place, word in enumerate(words)]
    elif _one_by_one(tokenizer, list(text), body):
        spelled = list(text)
    else:
        spelled = list(pieces(tokenizer, body))[: len(body)]
    shown = [*spelled, f" {tokenizer.vocab[end]}"][:PASSAGE_TOKENS]
    unknown = np.flatnonzero(ids[: len(shown)] == (-1 if tokenizer.vocab.unknown is None else tokenizer.vocab.unknown))
    return Passage(tuple(shown), tuple(unknown.tolist()))


def _one_by_one(tokenizer: Tokenizer, units: Sequence[str], ids: Sequence[int]) -> bool:
    """Whether each id stands for the unit at its place, or is ``<unk>`` there."""
    return len(units) == len(ids) and all(
        id == tokenizer.vocab.unknown or tokenizer.decode([id]).casefold() == unit.casefold()
        for id, unit in zip(ids, units, strict=True)
    )
