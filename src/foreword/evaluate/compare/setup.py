"""What every model of a comparison is given: the same parts of a text, the same vocabulary, the same passage.

Whatever is too much for the time there is is made smaller here, and told: a text by ``sampling.py``, its tuning and
test parts where networks would need too long to read them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from foreword.errors import InputError, SettingError
from foreword.evaluate.compare.facts import TextFacts, describe, passage_place, read_passage
from foreword.evaluate.compare.sampling import Sampled, Streams, evenly, together
from foreword.evaluate.compare.splits import Splits, split, written_without_spaces
from foreword.protocols import TextTokenizer
from foreword.tokens.characters import CharacterTokenizer
from foreword.tokens.corpus import Corpus
from foreword.tokens.vocab import Vocab
from foreword.tokens.words import WordTokenizer

MOST_BYTES = 20_000_000
"""Of a text that is taken: WikiText-2 whole, and about as much as two cores learn something from in minutes."""

MOST_WORDS = 50_000
"""Of a vocabulary that is made here, unless a size is given: what comes once or twice in a large text is ``<unk>``."""

HELD_SHARE = 0.1
"""Of ``most_bytes`` that a tuning or a test part may take which others split off."""


@dataclass(frozen=True, slots=True)
class Taken:
    """A text in three parts, all that was taken of it, and how much that is."""

    splits: Splits
    whole: Sequence[str]
    sampled: Sampled


@dataclass(frozen=True, slots=True)
class Bench:
    """splits: the texts themselves. passage: the test document that everybody is shown reading."""

    facts: TextFacts
    splits: Splits
    tokenizer: TextTokenizer
    train: Corpus
    valid: Corpus | None
    test: Corpus
    passage: Corpus


def take(texts: Iterable[str] | Splits | Streams, most_bytes: int) -> Taken:
    """Read a text, as much of it as may be, in its parts; those that came split stay as they are."""
    if isinstance(texts, Splits | Streams):
        limits = [most_bytes, *2 * [max(1, round(HELD_SHARE * most_bytes))]]
        parts = [
            evenly(part, limit) for part, limit in zip((texts.train, texts.valid, texts.test), limits, strict=True)
        ]
        splits = Splits(*(kept for kept, _ in parts))
        whole, sampled = [*splits.train, *splits.valid, *splits.test], together(told for _, told in parts)
    else:
        whole, sampled = evenly(texts, most_bytes)
        splits = split(whole)
    if not (any(map(str.strip, splits.train)) and any(map(str.strip, splits.test))):
        raise InputError("a part of the text is empty: there must be something to learn from and something to test on")
    return Taken(splits, whole, sampled)


def prepare(
    name: str,
    taken: Taken,
    tokenizer: TextTokenizer | None,
    min_count: int | None,
    max_size: int | None,
    most_scores: float | None,
) -> Bench:
    """most_scores: how many numbers a network may be asked for in a reading of the test part, tokens times vocabulary;
    of longer parts as many documents are taken, evenly. None for all of it.
    """
    splits = taken.splits
    if tokenizer is None:
        tokenizer = fitted_tokenizer(splits.train, min_count, max_size)
    train = Corpus.from_texts(splits.train, tokenizer, threads=None)
    test_share = 1.0
    if most_scores is not None:
        limit = max(1, int(most_scores / len(tokenizer.vocab) * train.text_bytes / max(1, len(train.ids))))
        held, (tested, told) = evenly(splits.valid, limit)[0], evenly(splits.test, limit)
        splits, test_share = Splits(splits.train, held, tested), told.kept_bytes / told.bytes
    valid, test = (Corpus.from_texts(part, tokenizer, threads=None) for part in (splits.valid, splits.test))
    place = passage_place(test)
    passage = test[place : place + 1]
    shown = read_passage(tokenizer, splits.test[place], passage.ids)
    facts = describe(name, taken.whole, (train, valid, test), shown, test_share)
    return Bench(facts, splits, tokenizer, train, valid if len(valid) else None, test, passage)


def fitted_tokenizer(
    train: Sequence[str], min_count: int | None, max_size: int | None
) -> WordTokenizer | CharacterTokenizer:
    """The one vocabulary of a comparison, made of its training part.

    With no ``min_count`` given it is two, and one where that would turn more than half of a small text into ``<unk>``.
    """
    if min_count is not None:
        return _tokenizer(train, min_count, max_size)
    tokenizer = _tokenizer(train, 2, max_size)
    return tokenizer if _unknown_share(tokenizer.vocab) <= 0.5 else _tokenizer(train, 1, max_size)


def _tokenizer(train: Sequence[str], min_count: int, max_size: int | None) -> WordTokenizer | CharacterTokenizer:
    if not written_without_spaces(train):
        return WordTokenizer(min_count=min_count, max_size=max_size or MOST_WORDS).fit(train)
    if max_size is not None:
        raise SettingError("max_size is for words, but this text is written without spaces and is read by characters")
    return CharacterTokenizer(min_count=min_count).fit(train)


def _unknown_share(vocab: Vocab) -> float:
    if vocab.counts is None or vocab.unknown is None:
        return 0.0
    return float(vocab.counts[vocab.unknown] / max(vocab.counts.sum() - vocab.counts[vocab.end], 1))
