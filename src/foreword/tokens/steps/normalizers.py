"""Normalizers of a ``tokenizer.json``: text in, text out.

``tokenizers`` decides character by character, by the Unicode tables that were current when each of its parts was
written; ``characters.py`` has them. Lower case does not look at neighbours: a sigma at the end of a word stays σ.
"""

from __future__ import annotations

import base64
import binascii
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from functools import partial, reduce
from typing import Any, Literal, TypeAlias

from foreword.errors import InputError
from foreword.protocols import Json
from foreword.text.strict_json import shown
from foreword.tokens.character_map import CharacterMap
from foreword.tokens.json_facts import described
from foreword.tokens.steps.characters import SPACES, characters_of
from foreword.tokens.steps.patterns import compiled, pattern_of

Normalizer: TypeAlias = Callable[[str], str]

NAMES = (
    "NFC, NFD, NFKC, NFKD, Lowercase, StripAccents, Replace, Prepend, Strip, Nmt, Precompiled, BertNormalizer "
    "or Sequence"
)
_IDEOGRAPHS = (
    r"\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0002a6df\U0002a700-\U0002b81f\U0002b920-\U0002ceaf"
    r"\U0002f800-\U0002fa1f"
)
_NMT = dict.fromkeys([*range(1, 9), 0x0B, *range(0x0E, 0x20), 0x7F, 0x8F, 0x9F], "") | dict.fromkeys(
    [9, 0x0A, 0x0C, 0x0D, 0x1680, *range(0x200B, 0x2010), 0x2028, 0x2029, 0x2581, 0xFEFF, 0xFFFD], " "
)


def normalizer_of(facts: Json) -> Normalizer:
    """Return the normalizer that a file describes."""
    match facts:
        case None:
            return str
        case {"type": "Sequence", "normalizers": [*steps]}:
            return partial(_in_turn, [normalizer_of(step) for step in steps])
        case {"type": "NFC" | "NFD" | "NFKC" | "NFKD" as form}:
            return partial(_form, form)
        case {"type": "Lowercase"}:
            return _lower
        case {"type": "StripAccents"}:
            return partial(compiled(f"[{characters_of('mark')}]").sub, "")
        case {"type": "Prepend", "prepend": str(prefix)}:
            return lambda text: prefix + text if text else text
        case {"type": "Strip", "strip_left": bool(left), "strip_right": bool(right)}:
            ends = [rf"\A[{SPACES}]+"] * left + [rf"[{SPACES}]+\Z"] * right
            return partial(compiled("|".join(ends) or r"(?!)").sub, "")
        case {"type": "Replace", "pattern": pattern, "content": str(content)}:
            return partial(pattern_of(pattern).sub, lambda _: content)
        case {"type": "Nmt"}:
            return lambda text: text.translate(_NMT)
        case {"type": "Precompiled", "precompiled_charsmap": str(encoded)}:
            return _precompiled(encoded)
        case {"type": "BertNormalizer", **rest}:
            return _bert(rest)
    raise InputError(f"the normalizer is {described(facts)}, expected {NAMES}")


def _in_turn(steps: Sequence[Normalizer], text: str) -> str:
    return reduce(lambda done, step: step(done), steps, text)


def _lower(text: str) -> str:
    return text.replace("Σ", "σ").lower()


def _form(form: Literal["NFC", "NFD", "NFKC", "NFKD"], text: str) -> str:
    """Return a Unicode form, that of Unicode 9: characters that came later are left as they are."""
    if unicodedata.is_normalized(form, text):
        return text
    parts = compiled(f"([{characters_of('younger')}])").split(text)
    return "".join(part if index % 2 else unicodedata.normalize(form, part) for index, part in enumerate(parts))


def _bert(settings: Mapping[Any, Any]) -> Normalizer:
    """Clean, put blanks around Chinese characters, remove accents (as a rule where it lowers), and lower."""
    match settings:
        case {
            "clean_text": bool(clean), "handle_chinese_chars": bool(chinese), "lowercase": bool(lowercase),
            "strip_accents": bool() | None as accents,
        }:  # fmt: skip
            steps: list[Normalizer] = []
            if clean:
                steps.append(partial(compiled(f"[{characters_of('control')}]").sub, ""))
                steps.append(partial(compiled(f"[{SPACES}]").sub, " "))
            if chinese:
                steps.append(partial(compiled(f"[{_IDEOGRAPHS}]").sub, r" \g<0> "))
            if lowercase if accents is None else accents:
                steps.append(partial(_form, "NFD"))
                steps.append(partial(compiled(f"[{characters_of('accent')}]").sub, ""))
            return partial(_in_turn, [*steps, _lower] if lowercase else steps)
    raise InputError(f"the settings of the BertNormalizer are {shown(settings)}, expected four of true and false")


def _precompiled(encoded: str) -> Normalizer:
    """Return the character map of sentencepiece, as ``tokenizers`` applies it: to graphemes, not to the longest match.

    A grapheme of less than six bytes that begins with a key becomes the replacement of the shortest such key, whatever
    follows it. In others each character is looked up by itself.
    """
    try:
        characters = CharacterMap.parse(base64.b64decode(encoded, validate=True))
    except binascii.Error as error:
        raise InputError(f"precompiled_charsmap is not base64: {error}") from None
    known: dict[str, str] = {}

    def replaced(found: re.Match[str]) -> str:
        grapheme = found[0]
        if grapheme not in known:
            if len(known) > 100_000:
                known.clear()
            parts = [grapheme] if len(grapheme.encode()) < 6 and characters.shortest(grapheme) else grapheme
            known[grapheme] = "".join(_first_of(characters.shortest(part), part) for part in parts)
        return known[grapheme]

    keys = "".join(re.escape(chr(byte)) for byte in range(1, 128) if characters.shortest(chr(byte)) is not None)
    before, after, alone = (characters_of(name) for name in ("prepended", "extending", "separate"))
    return partial(
        re.compile(
            rf"\r\n|[{before}]+[^{alone}]?[{after}]*|[^{alone}][{after}]+|[^\x00-\x7f]" + (f"|[{keys}]" if keys else "")
        ).sub,
        replaced,
    )


def _first_of(replacement: str | None, otherwise: str) -> str:
    return otherwise if replacement is None else replacement
