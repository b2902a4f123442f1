"""The one vocabulary of a comparison, chosen so that few words of new text are unknown.

A model is not asked to spell ``<unk>``, so where many words are unknown its perplexity and its bits per byte look
better than they are. The first of these that fits is taken:

    characters            where the text is written without spaces
    words                 where the text is already split into tokens, as the Penn Treebank is
    words and punctuation where at most ``MOST_UNKNOWN`` of the text that is held out is then unknown
    byte-pair tokens      otherwise: every text can be spelled, and nothing is unknown
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from typing import TypeVar

import numpy as np

from foreword import kinds
from foreword.errors import SettingError
from foreword.evaluate.compare.facts import written_without_spaces
from foreword.protocols import TextTokenizer
from foreword.text.block import blocks_of
from foreword.tokens.bpe import BPETokenizer
from foreword.tokens.characters import CharacterTokenizer
from foreword.tokens.corpus import Corpus
from foreword.tokens.vocab import UNKNOWN, Vocab
from foreword.tokens.words import Split, WordTokenizer

FittedTokenizer = TypeVar("FittedTokenizer", bound=TextTokenizer)

MOST_UNKNOWN = 0.033
"""Share of unknown tokens above which words give way to byte-pair tokens: the documentation of programs has 0.03, which
may be a little more in another Python, novels have 0.035 to 0.1."""

FEWEST_MERGED, MOST_MERGED, BYTES_PER_TOKEN = 1000, 8000, 250
"""Size of a byte-pair vocabulary: bytes of text per token, and the limits of the size."""

TOKENISED_COMMAS, TOKENISED_ENDS = 0.005, 0.1
"""Shares of words that end in a comma or the like, and of documents that end in a full stop without a space before it,
below which a text was split into tokens before: the Penn Treebank has 0 and 0.02, running English 0.06 and 0.9."""

LOOKED_AT = 2000
"""Documents by which that is judged, from the beginning of the text."""


def fitted_tokenizer(
    train: Sequence[str], held_out: Sequence[str], min_count: int | None = None, max_size: int | None = None
) -> TextTokenizer:
    """Fit the one tokenizer of a comparison to its training part; by ``held_out`` it is seen what stays unknown.

    Who gives ``min_count`` or ``max_size`` wants words. Otherwise words seen once are ``<unk>``, unless that would turn
    more than half of a small text into it.
    """
    if written_without_spaces(train):
        if max_size is not None:
            raise SettingError(
                "max_size is for words, but this text is written without spaces and is read by characters"
            )
        return _most_frequent(lambda least: CharacterTokenizer(min_count=least).fit(train), min_count)
    tokenised = is_tokenised(train)
    split: Split = "space" if tokenised else "punctuation"
    words = _most_frequent(
        lambda least: WordTokenizer(split=split, min_count=least, max_size=max_size or kinds.MOST_WORDS).fit(train),
        min_count,
    )
    if tokenised or min_count is not None or max_size is not None or unknown_share(words, held_out) <= MOST_UNKNOWN:
        return words
    length = sum(len(text.encode("utf-8", "replace")) + 1 for text in train)
    size = int(np.clip(length // BYTES_PER_TOKEN, FEWEST_MERGED, MOST_MERGED))
    return BPETokenizer(size, min_frequency=2, prefix_space=True).fit_blocks(blocks_of(train))


def _most_frequent(fitted: Callable[[int], FittedTokenizer], min_count: int | None) -> FittedTokenizer:
    if min_count is not None:
        return fitted(min_count)
    tokenizer = fitted(2)
    return tokenizer if _counted_unknown(tokenizer.vocab) <= 0.5 else fitted(1)


def _counted_unknown(vocab: Vocab) -> float:
    """Return the share of unknown tokens in the text that a vocabulary was made of, without the ends."""
    if vocab.counts is None or vocab.unknown is None:
        return 0.0
    return float(vocab.counts[vocab.unknown] / max(vocab.counts.sum() - vocab.counts[vocab.end], 1))


def unknown_share(tokenizer: TextTokenizer, texts: Sequence[str]) -> float:
    """Return the share of tokens of some texts, one end per document included, that are ``<unk>``."""
    corpus = Corpus.from_texts(texts, tokenizer)
    unknown = tokenizer.vocab.unknown
    return 0.0 if unknown is None or not len(corpus.ids) else float((corpus.ids == unknown).mean())


def is_tokenised(texts: Sequence[str]) -> bool:
    """Return whether white space already separates punctuation from words, or there is none to separate."""
    documents = [words for text in islice(texts, LOOKED_AT) if (words := text.split())]
    count = max(1, sum(map(len, documents)))
    if any(UNKNOWN in words for words in documents):
        return True
    commas = sum(len(word) > 1 and word[-1] in ",;:!?،、" for words in documents for word in words)
    ends = sum(len(words[-1]) > 1 and words[-1][-1] in ".!?" for words in documents)
    return commas <= TOKENISED_COMMAS * count and ends <= TOKENISED_ENDS * len(documents)


def describe_tokens(tokenizer: TextTokenizer, given: bool) -> str:
    """Say in a few words what a token is."""
    if isinstance(tokenizer, BPETokenizer):
        kind = "byte-pair tokens"
    elif isinstance(tokenizer, WordTokenizer):
        kind = "words between spaces" if tokenizer.split == "space" else "words and punctuation marks"
    elif isinstance(tokenizer, CharacterTokenizer):
        kind = "characters"
    else:
        kind = "tokens"
    return f"{kind} of the tokenizer given" if given else kind
