"""The ``pyctcdecode`` package 0.5, with Foreword behind it: ``import foreword.compat.pyctcdecode as pyctcdecode``.

The same names, arguments and results, without KenLM's compiler and without a limit on NumPy's version. ``install`` puts
it in the place of the original for programs that import that by name, such as ``transformers``.
"""

from __future__ import annotations

import sys

from foreword.compat.pyctcdecode import alphabet, constants, decoder, language_model
from foreword.speech.alphabet import Alphabet
from foreword.speech.decoder import BeamSearchDecoderCTC, build_ctcdecoder
from foreword.speech.lm import CTCLanguageModel as LanguageModel

__all__ = ["Alphabet", "BeamSearchDecoderCTC", "LanguageModel", "build_ctcdecoder", "install"]


def install() -> None:
    """Make ``import pyctcdecode`` find this package, in the whole process."""
    sys.modules["pyctcdecode"] = sys.modules[__name__]
    for module in (alphabet, constants, decoder, language_model):
        sys.modules[f"pyctcdecode.{module.__name__.rpartition('.')[2]}"] = module
