r"""Regular expressions of a ``tokenizer.json``, written for Oniguruma, as Python's.

The two engines agree on what such files use: literals, groups, alternatives, quantifiers, lookaround, and classes,
where these are spelt out. ``\p{L}`` and other categories and ``\s`` become the characters that they hold in Oniguruma;
``^`` and ``$`` match at every line. Anything else is refused by name.
"""

from __future__ import annotations

import re
from functools import cache

from foreword.errors import InputError
from foreword.protocols import Json
from foreword.text.strict_json import shown
from foreword.tokens.json_facts import described
from foreword.tokens.steps.characters import SPACES, characters_of

compiled = cache(re.compile)

_PARTS = re.compile(
    r"""
      \\[pP]\{(?P<category>[LMNPSZ][a-z]?|C[cfo])\} | \\x\{(?P<code>[0-9a-fA-F]{1,6})\} | \\(?P<space>[sS])
    | (?P<escaped>\\[rntfv] | \\x[0-9a-fA-F]{2} | \\[^a-zA-Z0-9])
    | (?P<open>\[\^?) | (?P<close>\]) | (?P<line>[$^]) | \(\?(?P<group>[:=!>] | <[=!] | i:)
    | \{(?P<count>\d+(?:,\d*)?)\} | (?P<refused>\\. | && | \(\? | \{ | \[:) | (?P<literal>.)
    """,
    re.VERBOSE | re.DOTALL,
)


def pattern_of(facts: Json) -> re.Pattern[str]:
    """Compile the pattern of a Split or Replace: a string, or a regular expression."""
    match facts:
        case {"String": str(text)}:
            return compiled(re.escape(text) or r"(?!)")
        case {"Regex": str(regex)}:
            try:
                return compiled(translated(regex))
            except (re.error, OverflowError) as error:
                raise InputError(f"the regular expression {shown(regex)} is not one: {error}") from None
    raise InputError(f"the pattern is {described(facts)}, expected a String or a Regex")


def translated(regex: str) -> str:
    """Return a regular expression of Oniguruma's as one of Python's."""
    written: list[str] = []
    inside = False
    for part in _PARTS.finditer(regex):
        kind, text = part.lastgroup, part[0]
        if kind == "refused" or (inside and kind == "open"):
            raise InputError(f"{shown(text)} of the regular expression {shown(regex)}: expected none")
        if kind in ("category", "space"):
            negated = text[1] in "PS"
            characters = SPACES if kind == "space" else _category(part["category"])
            if inside and negated:
                raise InputError(f"{shown(text)} within [...] of {shown(regex)}: expected none")
            text = characters if inside else f"[{'^' * negated}{characters}]"
        elif kind == "code":
            text = f"\\U{part['code']:0>8}"
        elif kind == "line" and not inside:
            text = f"(?m:{text})"
        elif kind in ("open", "close"):
            inside = kind == "open"
        elif kind == "literal" and inside and text in "|~":  # Python warns of set operations to come
            text = "\\" + text
        written.append(text)
    return "".join(written)


def _category(name: str) -> str:
    """Return the characters of a general category, or of all that begin with its letter."""
    groups = {"L": "ultmo", "M": "nce", "N": "dlo", "P": "cdseifo", "S": "mcko", "Z": "slp", "C": "cfo"}
    if name[1:] not in groups[name[0]]:
        raise InputError(f"{shown(name)} of a regular expression is no general category: expected one such as 'Lu'")
    return "".join(map(characters_of, [name] if len(name) == 2 else [name + each for each in groups[name]]))
