"""Pre-tokenizers of a ``tokenizer.json``: pieces in, smaller pieces out."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from itertools import groupby
from typing import Any, TypeAlias

from foreword.errors import InputError
from foreword.protocols import Json
from foreword.tokens.characters import printable
from foreword.tokens.json_facts import described, of_type
from foreword.tokens.pieces import GPT2_REGEX
from foreword.tokens.steps.characters import SPACES, characters_of
from foreword.tokens.steps.patterns import compiled, pattern_of, translated

PreTokenizer: TypeAlias = Callable[[list[str]], list[str]]

NAMES = (
    "ByteLevel, Metaspace, Whitespace, WhitespaceSplit, Split, BertPreTokenizer, Digits, Punctuation, "
    "CharDelimiterSplit or Sequence"
)


def pre_tokenizer_of(facts: Json, *, first: bool = True) -> PreTokenizer:
    """Return the pre-tokenizer that a file describes. first: whether it sees the text before any other."""
    match facts:
        case None:
            return list
        case {"type": "Sequence", "pretokenizers": [*steps]}:
            return _in_turn([pre_tokenizer_of(step, first=first and number == 0) for number, step in enumerate(steps)])
        case {"type": "WhitespaceSplit"}:
            return _matches(f"[^{SPACES}]+")
        case {"type": "Whitespace"}:
            word = characters_of("word")
            return _matches(f"[{word}]+|[^{word}{SPACES}]+")
        case {"type": "BertPreTokenizer"}:
            marks = characters_of("punctuation")
            return _matches(f"[{marks}]|[^{marks}{SPACES}]+")
        case {"type": "Digits", "individual_digits": bool(individual)}:
            return _split(compiled(translated(r"\p{N}")), "Isolated" if individual else "Contiguous")
        case {"type": "Punctuation", **rest}:
            behavior = of_type(rest.get("behavior", "Isolated"), str, "the behavior")
            return _split(compiled(f"[{characters_of('punctuation')}]"), behavior)
        case {"type": "CharDelimiterSplit", "delimiter": str(delimiter)}:
            return _split(pattern_of({"String": delimiter}), "Removed")
        case {"type": "Split", "pattern": pattern, "behavior": str(behavior), "invert": bool(invert)}:
            return _split(pattern_of(pattern), behavior, invert)
        case {"type": "Metaspace", "replacement": str(mark), **rest}:
            return _metaspace(rest, mark, first)
        case {"type": "ByteLevel", "add_prefix_space": bool(prefix), **rest}:
            return _byte_level(prefix, of_type(rest.get("use_regex", True), bool, "use_regex"))
    raise InputError(f"the pre_tokenizer is {described(facts)}, expected {NAMES}")


def _in_turn(steps: list[PreTokenizer]) -> PreTokenizer:
    def split(pieces: list[str]) -> list[str]:
        for step in steps:
            pieces = step(pieces)
        return pieces

    return split


def _matches(regex: str) -> PreTokenizer:
    find = compiled(regex).findall
    return lambda pieces: [found for piece in pieces for found in find(piece)]


def _split(pattern: re.Pattern[str], behavior: str, invert: bool = False) -> PreTokenizer:
    if behavior not in _JOINED:
        raise InputError(f"the behavior of a Split is {behavior!r}, expected {', '.join(_JOINED)}")
    join = _JOINED[behavior]
    return lambda pieces: [part for piece in pieces for part in join(_spans(pattern, piece, invert)) if part]


Spans: TypeAlias = list[tuple[str, bool]]


def _spans(pattern: re.Pattern[str], text: str, invert: bool) -> Spans:
    """Return the parts that a text consists of, and whether each is a match."""
    spans: Spans = []
    end = 0
    for match in pattern.finditer(text):
        spans += [(text[end : match.start()], invert), (match[0], not invert)]
        end = match.end()
    return [(part, matched) for part, matched in [*spans, (text[end:], invert)] if part]


def _merged(spans: Spans, to_next: bool) -> list[str]:
    """Join each match to the part before it, or after it; the first of several matches, seen from there."""
    joined: list[str] = []
    after_match = False
    for part, matched in reversed(spans) if to_next else spans:
        if matched and not after_match and joined:
            joined[-1] = part + joined[-1] if to_next else joined[-1] + part
        else:
            joined.append(part)
        after_match = matched
    return joined[::-1] if to_next else joined


_JOINED: dict[str, Callable[[Spans], list[str]]] = {
    "Removed": lambda spans: [part for part, matched in spans if not matched],
    "Isolated": lambda spans: [part for part, _ in spans],
    "Contiguous": lambda spans: ["".join(part for part, _ in run) for _, run in groupby(spans, lambda span: span[1])],
    "MergedWithPrevious": lambda spans: _merged(spans, to_next=False),
    "MergedWithNext": lambda spans: _merged(spans, to_next=True),
}


def _metaspace(settings: Mapping[Any, Any], mark: str, first: bool) -> PreTokenizer:
    scheme = settings.get("prepend_scheme", "always" if settings.get("add_prefix_space", True) else "never")
    if scheme not in ("always", "never", "first") or (scheme == "first" and not first):
        raise InputError(f"prepend_scheme is {scheme!r} after another pre_tokenizer, expected 'always' or 'never'")
    split = _split(pattern_of({"String": mark}), "MergedWithNext") if settings.get("split", True) is True else list

    def pre_tokenize(pieces: list[str]) -> list[str]:
        marked = [piece.replace(" ", mark) for piece in pieces if piece]
        if scheme != "never":
            marked = [piece if piece.startswith(mark) else mark + piece for piece in marked]
        return split(marked)

    return pre_tokenize


def _byte_level(prefix: bool, use_regex: bool) -> PreTokenizer:
    split = _matches(translated(GPT2_REGEX)) if use_regex else list

    def pre_tokenize(pieces: list[str]) -> list[str]:
        if prefix:
            pieces = [piece if piece.startswith(" ") else f" {piece}" for piece in pieces if piece]
        return [printable(piece.encode()) for piece in split(pieces)]

    return pre_tokenize
