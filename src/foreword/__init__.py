"""Foreword: every language model that came before the Transformer, in one fast Python package.

The names below are the public ones. They are imported when first used, so that ``import foreword`` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from foreword.decode import beam_search, generate
    from foreword.errors import ForewordError
    from foreword.evaluate.compare import compare
    from foreword.evaluate.perplexity import Measures, measure, perplexity
    from foreword.io.folder import load, save
    from foreword.lm.combine import cached, interpolate
    from foreword.lm.hmm import HMM
    from foreword.lm.ngram import NgramLM
    from foreword.lm.unigram import UnigramLM
    from foreword.pipeline import TextLM
    from foreword.tag.hmm import HMMTagger
    from foreword.text.datasets import dataset
    from foreword.text.embedded import embedded_text
    from foreword.text.sources import read_documents
    from foreword.tokens.bpe import BPETokenizer
    from foreword.tokens.characters import ByteTokenizer, CharacterTokenizer
    from foreword.tokens.corpus import Corpus
    from foreword.tokens.vocab import Vocab
    from foreword.tokens.words import WordTokenizer

__version__ = "0.1.0"

_HOME = {
    "BPETokenizer": "foreword.tokens.bpe",
    "ByteTokenizer": "foreword.tokens.characters",
    "CharacterTokenizer": "foreword.tokens.characters",
    "Corpus": "foreword.tokens.corpus",
    "Measures": "foreword.evaluate.perplexity",
    "ForewordError": "foreword.errors",
    "HMM": "foreword.lm.hmm",
    "HMMTagger": "foreword.tag.hmm",
    "NgramLM": "foreword.lm.ngram",
    "TextLM": "foreword.pipeline",
    "UnigramLM": "foreword.lm.unigram",
    "Vocab": "foreword.tokens.vocab",
    "WordTokenizer": "foreword.tokens.words",
    "beam_search": "foreword.decode",
    "cached": "foreword.lm.combine",
    "compare": "foreword.evaluate.compare",
    "dataset": "foreword.text.datasets",
    "embedded_text": "foreword.text.embedded",
    "measure": "foreword.evaluate.perplexity",
    "perplexity": "foreword.evaluate.perplexity",
    "generate": "foreword.decode",
    "interpolate": "foreword.lm.combine",
    "load": "foreword.io.folder",
    "read_documents": "foreword.text.sources",
    "save": "foreword.io.folder",
}

__all__ = [  # noqa: RUF022 - it would put HMM first, taking it for a constant
    "BPETokenizer",
    "ByteTokenizer",
    "CharacterTokenizer",
    "Corpus",
    "ForewordError",
    "HMM",
    "HMMTagger",
    "Measures",
    "NgramLM",
    "TextLM",
    "UnigramLM",
    "Vocab",
    "WordTokenizer",
    "beam_search",
    "cached",
    "compare",
    "dataset",
    "embedded_text",
    "generate",
    "interpolate",
    "load",
    "measure",
    "perplexity",
    "read_documents",
    "save",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'foreword' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
