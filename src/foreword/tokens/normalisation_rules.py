"""The rules of normalisation that models are trained with, made from Python's Unicode tables.

``nmt_nfkc`` is NFKC (Unicode Standard Annex 15) as a character map: every code point that NFKC changes, and every
sequence that it composes; control characters are removed, and separators that are no blank become one.
"""

from __future__ import annotations

import sys
import unicodedata
from functools import cache
from typing import Literal

from foreword.tokens.character_map import compile_rules
from foreword.tokens.sentencepiece_file import Normalisation

Rules = Literal["nmt_nfkc", "identity"]

_REMOVED = [*range(0x01, 0x09), 0x0B, *range(0x0E, 0x20), 0x7F, 0x8F, 0x9F]
_BLANKS = [0x09, 0x0A, 0x0C, 0x0D, 0x85, 0x1680, 0x200B, 0x200E, 0x200F, 0x2028, 0x2029, 0x2581, 0xFEFF, 0xFFFD]


@cache
def normalisation_of(rules: Rules) -> Normalisation:
    """Return a normalisation by its name, as sentencepiece calls them."""
    return Normalisation(compile_rules(nmt_nfkc()) if rules == "nmt_nfkc" else b"", name=rules)


def nmt_nfkc() -> dict[str, str]:
    """Return what ``nmt_nfkc`` replaces, and by what."""
    rules: dict[str, str] = {}
    for point in range(1, sys.maxunicode + 1):
        sign = chr(point)
        if 0xD800 <= point < 0xE000 or unicodedata.is_normalized("NFKD", sign):
            continue
        whole = unicodedata.normalize("NFKC", sign)
        for key in (sign, unicodedata.normalize("NFD", sign), unicodedata.normalize("NFKD", sign)):
            composed = unicodedata.normalize("NFKC", key)
            if key != composed:
                rules[key] = composed
        if whole != sign:
            rules[sign] = whole
    rules |= {chr(point): "" for point in _REMOVED}
    return rules | {chr(point): " " for point in _BLANKS}
