"""A few words of a document around what was asked for."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

WIDTH = 160
"""Characters: two lines of a terminal."""

BEFORE = 30
"""Characters shown before the first match at least, where there are as many."""

_MOST_MATCHES = 10_000
"""A long document that repeats a word for ever is not read to its end for the sake of a snippet."""


@dataclass(frozen=True, slots=True)
class Snippet:
    """text: on one line. marks: where words of the query stand in it, as (start, stop), rising."""

    text: str
    marks: tuple[tuple[int, int], ...] = ()


def snippet(text: str, words: Iterable[str], *, any_case: bool = True, width: int = WIDTH) -> Snippet:
    """The stretch of about ``width`` characters that holds the most different words; the beginning if it holds none."""
    pattern = _pattern(words, any_case)
    matches = _matches(pattern, text) if pattern else []
    start, stop = _stretch(text, matches, width)
    shown = " ".join(text[start:stop].split())
    shown = ("… " if text[:start].strip() else "") + shown + (" …" if text[stop:].strip() else "")
    return Snippet(shown, tuple(found.span() for found in pattern.finditer(shown)) if pattern else ())


def _pattern(words: Iterable[str], any_case: bool) -> re.Pattern[str] | None:
    """Any of the words, whole: a word character is not followed or preceded by another."""
    spelled = sorted({word.strip() for word in words} - {""}, key=lambda word: (-len(word), word))
    if not spelled:
        return None
    choice = "|".join(
        (r"\b" if re.match(r"\w", word) else "") + re.escape(word) + (r"\b" if re.search(r"\w\Z", word) else "")
        for word in spelled
    )
    return re.compile(choice, re.IGNORECASE if any_case else 0)


def _matches(pattern: re.Pattern[str], text: str) -> list[tuple[int, int, str]]:
    found = []
    for match in pattern.finditer(text):
        found.append((*match.span(), match.group().lower()))
        if len(found) == _MOST_MATCHES:
            break
    return found


def _stretch(text: str, matches: list[tuple[int, int, str]], width: int) -> tuple[int, int]:
    best, start, stop = 0, 0, 0
    last = 0
    counts: dict[str, int] = {}
    for first, (begin, end, _) in enumerate(matches):
        last = max(last, first)
        while last < len(matches) and matches[last][1] - begin <= max(width - BEFORE, end - begin):
            counts[matches[last][2]] = counts.get(matches[last][2], 0) + 1
            last += 1
        if len(counts) > best:
            best, start, stop = len(counts), begin, matches[last - 1][1]
        word = matches[first][2]
        counts[word] -= 1
        if not counts[word]:
            del counts[word]
    start = max(0, start - max(BEFORE, (width - (stop - start)) // 2))
    return _at_word(text, start, 0), _at_word(text, max(stop, min(start + width, len(text))), len(text))


def _at_word(text: str, place: int, edge: int) -> int:
    """The place itself, or a little further out if it is inside a word."""
    step = -1 if edge == 0 else 1
    for _ in range(BEFORE):
        if place == edge or text[place - 1].isspace() or text[place : place + 1].isspace():
            break
        place += step
    return place
