"""Models that are held to the contracts: every kind of the registry, and variants of some.

A new kind joins by its entry in ``kinds.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, Self

from foreword import kinds
from foreword.classify.calibration import Calibrated
from foreword.classify.naive_bayes import NaiveBayes
from foreword.classify.one_vs_rest import OneVsRest
from foreword.infinigram.model import InfiniGramLM
from foreword.mix.combine import cached, interpolate
from foreword.mix.neural_cache import NeuralCache
from foreword.ngram.model import NgramLM
from foreword.ngram.unigram import UnigramLM
from foreword.protocols import TextTokenizer
from foreword.text.block import Block


@dataclass(frozen=True)
class Model:
    """A model of one kind. tolerance: relative, for what may differ by rounding; 1e-12 for computations in float64.
    sums: of the sum of a row of probabilities, where it is larger because they are stored in float32.
    """

    name: str
    kind: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    tolerance: float = 1e-12
    sums: float = 0.0

    def build(self) -> Any:
        return built(self.kind, self.settings)


def built(kind: str, settings: Mapping[str, Any]) -> Any:
    """Construct a small model: with one thread, for these matrices are too small to share out."""
    entry = kinds.KINDS[kind]
    if kind in COMPOSED:
        return COMPOSED[kind](**settings)
    small = SMALL.get(kind, {})
    if entry.network:
        import torch

        from foreword.training.settings import Training

        torch.set_num_threads(1)
        small = {**small, "device": "cpu"}
        if entry.task == "language-model":
            small["training"] = Training(epochs=2, batch=3, steps=4, rate=5.0)
    return kinds.build(entry, {**small, **settings})


class StreamTokenizer(TextTokenizer, Protocol):
    """Ours also learn from a stream of blocks, on several cores."""

    def fit_blocks(self, blocks: Iterable[Block], *, threads: int | None = None) -> Self: ...


@dataclass(frozen=True)
class Tokens(Model):
    """lossless: decodes any text exactly, whatever it was fitted on."""

    lossless: bool = False


# What is small, and what is made of other models

SMALL: dict[str, dict[str, Any]] = {
    "mogrifier": {"units": 4, "layers": 2, "rounds": 3, "rank": 2},
    "hmm": {"states": 3, "iterations": 5, "smoothing": 0.1},
    "bengio": {"order": 3, "embedding": 4, "hidden": 5},
    "recurrent": {"embedding": 4, "hidden": 6, "layers": 2},
    "awd-lstm": {"embedding": 4, "hidden": 6, "layers": 2},
    "transformer": {"units": 4, "layers": 2, "heads": 2, "context": 3},
    "bilstm-tagger": {
        "units": 6, "words": 5, "letter_units": 4, "spelling": 6, "epochs": 2
    },
    "recurrent-classifier": {
        "embedding": 4, "hidden": 6, "units": 4, "min_count": 1, "batch": 2, "epochs": 2
    },
    "fasttext-classifier": {"dimensions": 4, "epochs": 3, "buckets": 20},
    "elmo": {"units": 4, "letter_units": 3, "filters": 3, "epochs": 1},
    "word2vec": {"dimensions": 4, "epochs": 1},
    "fasttext": {"dimensions": 4, "epochs": 1, "min_n": 2, "max_n": 3, "buckets": 20},
    "glove": {"dimensions": 4, "epochs": 1},
    "bpe": {"vocab_size": 300},
    "sentencepiece": {"vocab_size": 150, "coverage": 1.0},
}  # fmt: skip
"""Settings that make a model of each kind small enough for a test; other kinds are small as they are."""

COMPOSED: dict[str, Callable[..., Any]] = {
    "mixture": lambda: interpolate([UnigramLM(), NgramLM(3)]),
    "matched-mixture": lambda: interpolate([NgramLM(3), InfiniGramLM(2)], by_length=True),
    "cached": lambda: cached(NgramLM(3), size=3),
    "neural-cache": lambda: NeuralCache(built("recurrent", {"layers": 1}), size=3, theta=1.0, weight=0.3),
    "calibrated": lambda: Calibrated(NaiveBayes(), folds=2),
    "one-vs-rest": lambda: OneVsRest(NaiveBayes()),
}

# Variants of kinds that have several forms

SMOOTHINGS = ("kneser-ney", "absolute", "witten-bell", "laplace", "lidstone", "maximum-likelihood")
"""All but stupid back-off, whose rows do not sum to one."""

VARIANTS = [
    Model("unigram-mle", "unigram", {"add": 0}),
    Model("unigram-lidstone", "unigram", {"add": 0.01}),
    Model("ngram-1", "ngram", {"order": 1}, sums=1e-6),
    Model("ngram-3", "ngram", {"order": 3}, sums=1e-6),
    Model("ngram-trie", "ngram", {"order": 4, "layout": "trie"}, sums=1e-6),
    Model("ngram-5-pruned", "ngram", {"order": 5, "prune": (0, 0, 1)}, sums=1e-6),
    *(Model(f"ngram-{name}", "ngram", {"order": 3, "smoothing": name}, sums=1e-6) for name in SMOOTHINGS),
    Model("infini-gram-2", "infini-gram", {"order": 2, "strength": 0.5}, sums=1e-6),
    Model("infini-gram-zeros", "infini-gram", {"order": 0}),
    Model("hmm-float32", "hmm", {"dtype": "float32"}, 1e-4),
    Model("mixture", "mixture", {}, sums=1e-6),
    Model("matched-mixture", "matched-mixture", {}, sums=1e-6),
    Model("cached", "cached", {}, sums=1e-6),
    Model("neural-cache", "neural-cache", {}, 1e-4),
    Model("lstm-untied", "recurrent", {"cell": "lstm", "layers": 1, "tied": False}, 1e-4),
    Model("mogrifier", "recurrent", {"cell": "lstm", "mogrify": 3}, 1e-4),
    Model("mixture-of-softmaxes", "awd-lstm", {"mogrify": 2, "softmaxes": 3}, 1e-4),
    Model("projected-mixture", "mogrifier", {"embedding": 3, "softmaxes": 2}, 1e-4),
    Model("bengio-direct", "bengio", {"order": 4, "direct": True}, 1e-4),
]

FLOAT32 = ("ngram", "infini-gram")
"""Kinds without a network whose probabilities are stored in float32, or rest on such."""


def _trained(*tasks: kinds.Task) -> list[Model]:
    """Return every model of a task that users can train, as the registry has them."""
    return [
        Model(
            name,
            kind.name,
            kind.names[name],
            1e-4 if kind.network else 1e-12,
            sums=1e-6 if kind.name in FLOAT32 else 0.0,
        )
        for name, kind in kinds.trained_as(*tasks).items()
    ]


LANGUAGE_MODELS = [*_trained("language-model"), *VARIANTS]

LOSSLESS = ("byte", "bpe")

TOKENIZERS = [
    *(Tokens(each.name, each.kind, each.settings, lossless=each.name in LOSSLESS) for each in _trained("tokenizer")),
    Tokens("word-min-count", "word", {"min_count": 2}),
    Tokens("word-lowercase", "word", {"lowercase": True, "max_size": 12}),
]

TAGGERS = [
    *_trained("tagger"),
    Model("hmm-2", "hmm-tagger", {"order": 2}),
    Model("features-no-history", "feature-tagger", {"features": ["word", "suffix", "neighbours"], "rounds": 3}),
    Model(
        "bilstm-lstm-no-crf", "bilstm-tagger",
        {"layers": 2, "characters": "lstm", "crf": False, "optimiser": "sgd", "rate": 0.05}, 1e-4,
    ),
    Model("lstm-one-way", "bilstm-tagger", {"both_ways": False, "crf": False, "characters": "none"}, 1e-4),
]  # fmt: skip

CLASSIFIERS = [
    *_trained("classifier"),
    Model("naive-bayes-complement", "naive-bayes", {"kind": "complement"}),
    Model("naive-bayes-bernoulli", "naive-bayes", {"kind": "bernoulli"}),
    Model("calibrated", "calibrated"),
]

RANKERS = [
    *(Model(name, name) for name in ("bm25", "cosine-search")),
    *(Model(f"bm25-{variant}", "bm25", {"variant": variant}) for variant in ("robertson", "atire", "bm25l", "bm25+")),
]

VECTORS = _trained("vectors")
