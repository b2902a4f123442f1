"""What every model of a comparison is given: one text, one split, one vocabulary.

A large text is made small: every second document, every fourth, every eighth, until what is left fits. Documents are
taken from a stream, so that never more than the limit is in memory, and evenly, so that a text which changes on its way
(letters of one year after those of another) is seen in all its parts. A single document that is too long is cut at a
space.

One fixed rule splits any text: of every twenty documents the tenth is for tuning and the twentieth for the test; the
other eighteen, 90 %, are learnt from. A text of fewer documents, perhaps a single one, is cut at the same positions
within: a twentieth of its words before the middle, and the last twentieth.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from foreword.checks import check_text
from foreword.errors import InputError
from foreword.evaluate.compare.facts import describe, passage_index, read_passage, written_without_spaces
from foreword.evaluate.compare.results import Sampled, TextFacts
from foreword.evaluate.compare.vocabulary import describe_tokens, fitted_tokenizer
from foreword.protocols import TextTokenizer
from foreword.tokens.corpus import Corpus

MOST_BYTES = 20_000_000
"""Size of a text that is taken whole: WikiText-2 is, and two cores learn something from that much in minutes."""

HELD_OUT_SHARE = 0.1
"""Share of ``most_bytes`` for each of a tuning and a test part that came already split off."""

CYCLE, VALID, TEST = 20, 9, 19
"""Length of a cycle of documents, and the positions in it of those for tuning and for the test."""


@dataclass(frozen=True, slots=True)
class Splits:
    """A text in three parts, each a list of documents."""

    train: Sequence[str]
    valid: Sequence[str]
    test: Sequence[str]


@dataclass(frozen=True, slots=True)
class Streams:
    """A text that comes in three parts, each a stream that is read once."""

    train: Iterable[str]
    valid: Iterable[str]
    test: Iterable[str]


@dataclass(frozen=True, slots=True)
class SampledText:
    """A text in three parts, the documents of all of them, and how much of the text they are."""

    splits: Splits
    whole: Sequence[str]
    sampled: Sampled


@dataclass(frozen=True, slots=True)
class PreparedText:
    """The text as the models are given it. passage: the test document that every model is shown reading."""

    facts: TextFacts
    splits: Splits
    tokenizer: TextTokenizer
    train: Corpus
    valid: Corpus | None
    test: Corpus
    passage: Corpus


# Sampling


def read_text(texts: Iterable[str] | Splits | Streams, most_bytes: int) -> SampledText:
    """Read at most ``most_bytes`` of a text and split it; parts that came split stay as they are."""
    if isinstance(texts, Splits | Streams):
        limits = [most_bytes, *2 * [max(1, round(HELD_OUT_SHARE * most_bytes))]]
        parts = [
            sample_evenly(part, limit)
            for part, limit in zip((texts.train, texts.valid, texts.test), limits, strict=True)
        ]
        splits = Splits(*(documents for documents, _ in parts))
        whole, sampled = [*splits.train, *splits.valid, *splits.test], add_sampled(size for _, size in parts)
    else:
        whole, sampled = sample_evenly(texts, most_bytes)
        splits = split(whole)
    if not (any(map(str.strip, splits.train)) and any(map(str.strip, splits.test))):
        raise InputError("a part of the text is empty: there must be something to learn from and something to test on")
    return SampledText(splits, whole, sampled)


def sample_evenly(documents: Iterable[str], most_bytes: int) -> tuple[list[str], Sampled]:
    """Return a subset of the documents that fits in ``most_bytes``: every one, or every 2nd, 4th, 8th, …."""
    kept: list[str] = []
    every = 1
    seen = seen_bytes = kept_bytes = 0
    for document in documents:
        length = _bytes_of(document)
        seen, seen_bytes = seen + 1, seen_bytes + length
        if (seen - 1) % every:
            continue
        kept.append(document)
        kept_bytes += length
        while kept_bytes > most_bytes and len(kept) > 1:
            kept, every = kept[::2], 2 * every
            kept_bytes = sum(map(_bytes_of, kept))
        if kept_bytes > most_bytes:
            kept = [shortened(kept[0], most_bytes)]
            kept_bytes = _bytes_of(kept[0])
    return kept, Sampled(seen, seen_bytes, len(kept), kept_bytes)


def add_sampled(parts: Iterable[Sampled]) -> Sampled:
    """Add up the sizes of several parts."""
    columns = zip(*((part.documents, part.bytes, part.kept_documents, part.kept_bytes) for part in parts), strict=True)
    return Sampled(*map(sum, columns))


def shortened(document: str, most_bytes: int) -> str:
    """Return the beginning of a document, to the last space that fits."""
    beginning = document.encode("utf-8", "surrogatepass")[: max(1, most_bytes - 1)].decode("utf-8", "ignore")
    return beginning.rpartition(" ")[0] or beginning


def _bytes_of(document: str) -> int:
    check_text(document)
    return (len(document) if document.isascii() else len(document.encode("utf-8", "surrogatepass"))) + 1


# Splitting


def split(texts: Sequence[str]) -> Splits:
    """Split documents by their index; blank ones are left out."""
    documents = [text for text in texts if text.strip()]
    if len(documents) < CYCLE:
        return cut("\n".join(documents))
    return Splits(
        [text for index, text in enumerate(documents) if index % CYCLE not in (VALID, TEST)],
        documents[VALID::CYCLE],
        documents[TEST::CYCLE],
    )


def cut(text: str) -> Splits:
    """Split one text: the twentieth before the middle is for tuning, the last for the test, the rest is learnt from.

    Counted in words, or in characters where the text is written without spaces; each part has at least one.
    """
    unit = r"\S" if written_without_spaces([text]) else r"\S+"
    starts = [match.start() for match in re.finditer(unit, text)]
    if len(starts) < 3:
        raise InputError("the text is too short to learn from one part and test on another: three words are the least")
    held_out = max(1, len(starts) // CYCLE)
    middle, last = max(held_out, len(starts) // 2), len(starts) - held_out
    edges = [0, *(starts[index] for index in (middle - held_out, middle, last)), len(text)]
    before, valid, after, test = (text[start:stop].strip() for start, stop in pairwise(edges))
    return Splits([part for part in (before, after) if part], [valid], [test])


# The vocabulary


def prepare(
    name: str,
    text: SampledText,
    tokenizer: TextTokenizer | None,
    min_count: int | None,
    max_size: int | None,
    most_scores: float | None,
) -> PreparedText:
    """Encode a text and describe it.

    most_scores: how many numbers a network may be asked for in one pass over the test part, tokens times vocabulary;
    longer parts are sampled evenly. None for no limit.
    """
    splits, given = text.splits, tokenizer is not None
    if tokenizer is None:
        tokenizer = fitted_tokenizer(splits.train, [*splits.valid, *splits.test], min_count, max_size)
    train = Corpus.from_texts(splits.train, tokenizer, threads=None)
    test_share = 1.0
    if most_scores is not None:
        limit = max(1, int(most_scores / len(tokenizer.vocab) * train.text_bytes / max(1, len(train.ids))))
        tuned, (tested, size) = sample_evenly(splits.valid, limit)[0], sample_evenly(splits.test, limit)
        splits, test_share = Splits(splits.train, tuned, tested), size.kept_bytes / size.bytes
    valid, test = (Corpus.from_texts(part, tokenizer, threads=None) for part in (splits.valid, splits.test))
    index = passage_index(test)
    passage = test[index : index + 1]
    shown = read_passage(tokenizer, splits.test[index], passage.ids)
    facts = describe(name, text.whole, (train, valid, test), shown, test_share, describe_tokens(tokenizer, given))
    return PreparedText(facts, splits, tokenizer, train, valid if len(valid) else None, test, passage)
