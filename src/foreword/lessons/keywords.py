"""Keywords: what a text is about, by comparing its words with those of the embedded text.

A word with the share p here and q in the embedded text weighs

    keyness = count · log₂(1 + p / q)

so that of two words equally frequent here the one that is rare there weighs more, and no weight is negative.

Function words are left out without a list of them: a function word is spread evenly over a text, a content word comes
in bursts (K. W. Church and W. A. Gale, "Inverse document frequency (IDF): a measure
of deviations from Poisson", 1995). If n occurrences fell evenly on N passages, 1 − e^(−n/N) of them would have one; a
word is common if nearly as many passages of the embedded text have it. Documentation speaks of nobody, so only the
words for persons have to be listed. A text in another language, in which the embedded text's function words are rare,
teaches its own by the same rule.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import chain

import numpy as np

from foreword.evaluate.compare.facts import written_without_spaces
from foreword.text.block import Block
from foreword.text.embedded import embedded_text
from foreword.tokens.bpe import BPETokenizer
from foreword.tokens.words import WordTokenizer

PASSAGE_WORDS = 500
EVENNESS = 0.8
LEAST_COUNT = 40
"""A word is common if it has LEAST_COUNT occurrences in the embedded text, in at least EVENNESS of the passages that an
even spread would give. Chosen by hand: a lower share lets nouns in, a higher one leaves prepositions out."""

_PERSONS = (
    "i me my mine myself we us our ours ourselves you your yours yourself he him his himself she her hers herself they "
    "them their theirs themselves who whom whose am was were had did n't"
)
PERSONS = frozenset(_PERSONS.split())

ADDRESS = re.compile(r"://|^www\.|@\w")
_WORD = re.compile(r"(?<!\w)[^\W\d_]\w*(?:['’-]\w+)*")
_POSSESSIVE = re.compile(r"['’]s$")

OTHER_LANGUAGE = 0.2
"""Share of English function words below which a text is in another language: English has 0.4 to 0.5, Dutch 0.06."""

LEARNT_FROM = 2_000_000
"""Bytes of a text from which its own function words are learnt."""

LONGEST = 40
"""Letters of the longest word; anything longer is none."""

LEARNT_WORDS = 8000
"""Size of the vocabulary that is learnt where a text is written without spaces."""


def count_words(blocks: Iterable[Block]) -> dict[str, int]:
    """Count each word, whatever its case, under its most frequent spelling; most frequent first.

    A word begins with a letter and may have hyphens and apostrophes inside; addresses and single letters are none.
    Where words are not divided by spaces, frequent strings of characters are taken for words.
    """
    spellings: dict[str, Counter[str]] = {}
    for token, count in _tokens(blocks):
        for word in words_in(token):
            spellings.setdefault(word.casefold(), Counter())[word] += count
    counts = {_usual(seen): seen.total() for seen in spellings.values()}
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def words_in(token: str) -> Iterator[str]:
    """Yield the words within a string without spaces."""
    if ADDRESS.search(token):
        return
    for found in _WORD.findall(token):
        word = _POSSESSIVE.sub("", found.replace("’", "'"))
        if 1 < len(word) <= LONGEST:
            yield word


def _usual(seen: Counter[str]) -> str:
    return min(seen, key=lambda word: (-seen[word], word))


def _tokens(blocks: Iterable[Block]) -> Iterator[tuple[str, int]]:
    blocks = iter(blocks)
    first = next(blocks, None)
    if first is None:
        return iter(())
    all_blocks = chain([first], blocks)
    return _learnt(all_blocks) if written_without_spaces(list(first.strings())) else _between_spaces(all_blocks)


def _between_spaces(blocks: Iterable[Block]) -> Iterator[tuple[str, int]]:
    vocab = WordTokenizer().fit_blocks(blocks).vocab
    assert vocab.counts is not None
    # The first two are <unk>, which a prepared text may hold, and the ends of documents.
    return zip(vocab.tokens[2:], vocab.counts[2:].tolist(), strict=True)


def _learnt(blocks: Iterable[Block]) -> Iterator[tuple[str, int]]:
    """Yield the merges of byte-pair encoding over characters, which are its frequent strings, and their counts."""
    tokenizer = BPETokenizer(LEARNT_WORDS, kind="characters", min_frequency=2)
    counted = tokenizer.count(blocks)
    tokenizer.fit_counted(counted)
    encoded = tokenizer.encode_block(Block(counted.data, counted.offsets[:-1], counted.offsets[1:]))
    times = np.repeat(counted.counts, np.diff(encoded.ends, prepend=0))
    counts = np.bincount(encoded.ids, times, len(tokenizer.vocab)).astype(np.int64).tolist()
    return ((token, count) for token, count in zip(tokenizer.vocab.tokens, counts, strict=True) if count)


# The reference


@cache
def _embedded() -> tuple[Counter[str], frozenset[str]]:
    """Return the counts of the embedded text's words, in lower case, and the set of common ones."""
    words = [word.casefold() for text in embedded_text() for token in text.split() for word in words_in(token)]
    passages = [words[start : start + PASSAGE_WORDS] for start in range(0, len(words), PASSAGE_WORDS)]
    return Counter(words), PERSONS | evenly_spread(passages)


def evenly_spread(passages: Sequence[Sequence[str]], least: int = LEAST_COUNT) -> set[str]:
    """Return the words that occur in nearly as many of the passages, of equal length, as an even spread would give.

    least: occurrences that a word must have.
    """
    counts = Counter(chain.from_iterable(passages))
    found = Counter(word for passage in passages for word in set(passage))
    n = len(passages)
    return {
        word
        for word, count in counts.items()
        if count >= least and found[word] >= EVENNESS * n * -math.expm1(-count / n)
    }


def own_common_words(texts: Iterable[str]) -> frozenset[str]:
    """Return the function words of a text in another language, in lower case; none of an English or a spaceless one."""
    words = [word.casefold() for text in texts for token in text.split() for word in words_in(token)]
    english = _embedded()[1]
    if not words or sum(word in english for word in words) >= OTHER_LANGUAGE * len(words):
        return frozenset()
    passages = [words[start : start + PASSAGE_WORDS] for start in range(0, len(words), PASSAGE_WORDS)]
    least = max(10, min(LEAST_COUNT, len(words) // 1000))
    return frozenset(evenly_spread(passages, least))


class Beginning:
    """Blocks that pass through, the first of which are retained, ``LEARNT_FROM`` bytes of them."""

    def __init__(self, blocks: Iterable[Block]) -> None:
        self._blocks = blocks
        self.kept: list[Block] = []

    def __iter__(self) -> Iterator[Block]:
        size = 0
        for block in self._blocks:
            if size < LEARNT_FROM:
                self.kept.append(block)
                size += len(block.data)
            yield block

    def texts(self) -> Iterator[str]:
        """Yield the retained documents; one that is cut by the end of a block is two."""
        for block in self.kept:
            yield from block.strings()


def is_common(word: str, own: frozenset[str] = frozenset()) -> bool:
    """Return whether this is a function word, or begins with one: I'll, she'd, can't. own: those of the text itself."""
    small = word.casefold()
    head, _, tail = small.partition("'")
    common = _embedded()[1]
    return small in common or head in common or tail == "t" or small in own or bool(tail and {head, tail} & own)


def keyness(counts: Mapping[str, int]) -> dict[str, float]:
    """Return the weight of each word, given its count."""
    here, there = sum(counts.values()), _embedded()[0]
    total = there.total() + 0.5
    return {
        word: count * math.log2(1 + count / here * total / (there[word.casefold()] + 0.5))
        for word, count in counts.items()
    }
