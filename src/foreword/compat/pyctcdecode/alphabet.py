"""The names of ``pyctcdecode.alphabet``."""

from foreword.speech.alphabet import (
    BLANK_TOKEN_PTN,
    BPE_TOKEN,
    SPECIAL_TOKEN_PTN,
    UNK_BPE_TOKEN,
    UNK_TOKEN,
    UNK_TOKEN_PTN,
    Alphabet,
    verify_alphabet_coverage,
)

__all__ = [
    "BLANK_TOKEN_PTN",
    "BPE_TOKEN",
    "SPECIAL_TOKEN_PTN",
    "UNK_BPE_TOKEN",
    "UNK_TOKEN",
    "UNK_TOKEN_PTN",
    "Alphabet",
    "verify_alphabet_coverage",
]
