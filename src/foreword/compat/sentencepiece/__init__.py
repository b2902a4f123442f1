"""The names of the ``sentencepiece`` module, with Foreword behind them.

``SentencePieceProcessor`` opens ``.model`` files, encodes, decodes and answers questions about pieces, with the
signatures, ids, pieces and texts of sentencepiece 0.2.2; ``SentencePieceTrainer`` trains unigram models. Each method
has its two spellings, as ``EncodeAsIds`` and ``encode_as_ids``. Sampling and protocol buffer objects are refused by
name, and so are the settings of training that Foreword does not have.
"""

from __future__ import annotations

from foreword.compat.sentencepiece.processor import SentencePieceProcessor
from foreword.compat.sentencepiece.questions import ModelNotFoundError
from foreword.compat.sentencepiece.trainer import SentencePieceTrainer

__all__ = [
    "ModelNotFoundError", "SentencePieceProcessor", "SentencePieceTrainer", "SetMinLogLevel", "set_min_log_level"
]  # fmt: skip

__version__ = "0.2.2"
"""The version of sentencepiece whose interface this is."""


def set_min_log_level(v: int) -> None:
    """Do nothing: nothing is logged."""


SetMinLogLevel = set_min_log_level
