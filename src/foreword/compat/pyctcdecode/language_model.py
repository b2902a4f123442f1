"""The names of ``pyctcdecode.language_model``."""

from foreword.speech.lm import (
    AbstractLanguageModel,
    HotwordScorer,
    LanguageModel,
    MultiLanguageModel,
    load_unigram_set_from_arpa,
)

__all__ = [
    "AbstractLanguageModel",
    "HotwordScorer",
    "LanguageModel",
    "MultiLanguageModel",
    "load_unigram_set_from_arpa",
]
