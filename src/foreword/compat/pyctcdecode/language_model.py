"""The names of ``pyctcdecode.language_model``."""

from foreword.speech.lm import AbstractLanguageModel, HotwordScorer, MultiLanguageModel, load_unigram_set_from_arpa
from foreword.speech.lm import CTCLanguageModel as LanguageModel

__all__ = [
    "AbstractLanguageModel",
    "HotwordScorer",
    "LanguageModel",
    "MultiLanguageModel",
    "load_unigram_set_from_arpa",
]
