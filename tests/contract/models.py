"""Who is held to the contracts. A new model or tokenizer joins by adding its line."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol, Self

from foreword.lm.unigram import UnigramLM
from foreword.pipeline import TextTokenizer
from foreword.protocols import LanguageModel
from foreword.text.block import Block
from foreword.tokens.bpe import BPETokenizer
from foreword.tokens.characters import ByteTokenizer, CharacterTokenizer
from foreword.tokens.words import WordTokenizer


@dataclass(frozen=True)
class Model:
    """tolerance: relative, for what may differ by rounding; 1e-12 for whoever computes in float64."""

    name: str
    build: Callable[[], LanguageModel[Any]]
    tolerance: float = 1e-12


class StreamTokenizer(TextTokenizer, Protocol):
    """Ours also learn from a stream of blocks, on several cores."""

    def fit_blocks(self, blocks: Iterable[Block], *, threads: int | None = None) -> Self: ...


@dataclass(frozen=True)
class Tokens:
    """lossless: gives any text back to the letter, whatever it was fitted on."""

    name: str
    build: Callable[[], StreamTokenizer]
    lossless: bool = False


LANGUAGE_MODELS = [
    Model("unigram", UnigramLM),
    Model("unigram-mle", lambda: UnigramLM(add=0)),
    Model("unigram-lidstone", lambda: UnigramLM(add=0.01)),
]

TOKENIZERS = [
    Tokens("word", WordTokenizer),
    Tokens("word-min-count", lambda: WordTokenizer(min_count=2)),
    Tokens("word-lowercase", lambda: WordTokenizer(lowercase=True, max_size=12)),
    Tokens("character", CharacterTokenizer),
    Tokens("byte", ByteTokenizer, lossless=True),
    Tokens("bpe", lambda: BPETokenizer(vocab_size=300, kind="bytes"), lossless=True),
    Tokens("bpe-characters", lambda: BPETokenizer(vocab_size=60, kind="characters")),
]
