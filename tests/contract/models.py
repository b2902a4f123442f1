"""Who is held to the contracts. A new model or tokenizer joins by adding its line."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol, Self

from foreword.hmm.model import HMM
from foreword.mix.combine import cached, interpolate
from foreword.ngram.model import NgramLM
from foreword.ngram.unigram import UnigramLM
from foreword.protocols import LanguageModel, TextTokenizer
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


def _neural(name: str, *sizes: Any, **settings: Any) -> LanguageModel[Any]:
    """Imported here, since torch takes a second. One thread: these matrices are too small to share out."""
    import torch

    import foreword
    from foreword.training.settings import Training

    torch.set_num_threads(1)
    training = Training(epochs=2, batch=3, steps=4, rate=5.0)
    model: LanguageModel[Any] = getattr(foreword, name)(*sizes, training=training, device="cpu", **settings)
    return model


def _with_neural_cache() -> LanguageModel[Any]:
    from foreword.mix.neural_cache import NeuralCache

    model: Any = _neural("RecurrentLM", "lstm", 4, 6, 1)
    return NeuralCache(model, size=3, theta=1.0, weight=0.3)


SMOOTHINGS = ("kneser-ney", "absolute", "witten-bell", "laplace", "lidstone", "maximum-likelihood")
"""All but stupid back-off, whose rows do not sum to one."""

CELLS = ("rnn", "irnn", "lstm", "gru", "min-gru")

LANGUAGE_MODELS = [
    Model("unigram", UnigramLM),
    Model("unigram-mle", lambda: UnigramLM(add=0)),
    Model("unigram-lidstone", lambda: UnigramLM(add=0.01)),
    Model("ngram-1", lambda: NgramLM(1), 1e-6),
    Model("ngram-3", lambda: NgramLM(3), 1e-6),
    Model("ngram-trie", lambda: NgramLM(4, layout="trie"), 1e-6),
    Model("ngram-5-pruned", lambda: NgramLM(5, prune=(0, 0, 1)), 1e-6),
    *(Model(f"ngram-{name}", lambda name=name: NgramLM(3, name), 1e-6) for name in SMOOTHINGS),  # type: ignore[misc]
    Model("hmm", lambda: HMM(3, iterations=5, smoothing=0.1)),
    Model("hmm-float32", lambda: HMM(3, iterations=5, smoothing=0.1, dtype="float32"), 1e-4),
    Model("mixture", lambda: interpolate([UnigramLM(), NgramLM(3)]), 1e-6),
    Model("cached", lambda: cached(NgramLM(3), size=3), 1e-6),
    Model("awd-lstm", lambda: _neural("AWDLSTM", 4, 6, 2), 1e-4),
    *(Model(cell, lambda cell=cell: _neural("RecurrentLM", cell, 4, 6, 2), 1e-4) for cell in CELLS),  # type: ignore[misc]
    Model("lstm-untied", lambda: _neural("RecurrentLM", "lstm", 4, 6, 1, tied=False), 1e-4),
    Model("mogrifier", lambda: _neural("RecurrentLM", "lstm", 4, 6, 2, mogrify=3), 1e-4),
    Model("mixture-of-softmaxes", lambda: _neural("AWDLSTM", 4, 6, 2, mogrify=2, softmaxes=3), 1e-4),
    Model("neural-cache", _with_neural_cache, 1e-4),
    Model("bengio", lambda: _neural("BengioLM", 3, 4, 5), 1e-4),
    Model("bengio-direct", lambda: _neural("BengioLM", 4, 4, 5, direct=True), 1e-4),
    Model("transformer", lambda: _neural("TransformerLM", 4, 2, 2, 3), 1e-4),
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
