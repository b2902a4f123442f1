"""Recordings to text. ``build_ctcdecoder`` is imported on first use, so that the package stays light."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from foreword.speech.alphabet import Alphabet
    from foreword.speech.decoder import BeamSearchDecoderCTC, build_ctcdecoder
    from foreword.speech.lm import CTCLanguageModel, MultiLanguageModel
    from foreword.speech.nbest import confidences, lattice, rescored
    from foreword.speech.tuning import tune

_HOMES = {
    "Alphabet": "alphabet",
    "BeamSearchDecoderCTC": "decoder",
    "CTCLanguageModel": "lm",
    "MultiLanguageModel": "lm",
    "build_ctcdecoder": "decoder",
    "confidences": "nbest",
    "lattice": "nbest",
    "rescored": "nbest",
    "tune": "tuning",
}

__all__ = [
    "Alphabet",
    "BeamSearchDecoderCTC",
    "CTCLanguageModel",
    "MultiLanguageModel",
    "build_ctcdecoder",
    "confidences",
    "lattice",
    "rescored",
    "tune",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"foreword.speech.{_HOMES[name]}"), name)
