"""Where each character of a normalised text, and each piece, comes from in the original text."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

from foreword.tokens.normaliser import Normaliser
from foreword.tokens.plain_sentencepiece import replacements
from foreword.tokens.sentencepiece import Piece
from foreword.tokens.sentencepiece_file import SPACE


def normalise_with_offsets(normaliser: Normaliser, text: str) -> tuple[str, list[int]]:
    """Return a text normalised, and the byte of the original at which each of its characters begins, and its end.

    The same steps as ``plain_sentencepiece.normalise``, with the origin of every character.
    """
    how, blank = normaliser.how, SPACE if normaliser.how.escape else " "
    parts = list(replacements(normaliser, text.encode()))
    while how.collapse and parts and parts[0][0] == " ":
        del parts[0]
    if not parts:
        return "", [0]
    kept: list[tuple[str, int]] = []
    prefixed = how.dummy_prefix and not how.suffix and not (how.prefix_once and parts[0][0][:1] in (" ", SPACE))
    if prefixed:
        kept.append((" ", parts[0][1]))
    blank_before = how.collapse
    for part, origin, _ in parts:
        part = part.lstrip(" ") if blank_before else part
        kept += [(sign, origin) for sign in part]
        if part:
            blank_before = how.collapse and part.endswith(" ")
    end = parts[-1][2]
    kept = [(blank if sign == " " else sign, origin) for sign, origin in kept]
    while how.collapse and kept and kept[-1][0] == blank:
        end = kept.pop()[1]
    if how.dummy_prefix and how.suffix:
        kept.append((blank, end))
    return "".join(sign for sign, _ in kept), [*(origin for _, origin in kept), end]


def in_characters(text: str, offsets: Iterable[int]) -> list[int]:
    """Return offsets in bytes of the UTF-8 of a text as offsets in characters."""
    numbers: dict[int, int] = {}
    place = 0
    for number, sign in enumerate(text):
        numbers[place] = number
        place += len(sign.encode())
    numbers[place] = len(text)
    return [numbers[offset] for offset in offsets]


def spans_of(pieces: Iterable[tuple[Piece, bool]], offsets: list[int]) -> list[tuple[int, int]]:
    """Return where each piece begins and ends in the original; of the bytes of a character, the last one covers it.

    pieces: each with whether it stands for a byte. offsets: of every character of the normalised text, and its end.
    """
    spans, place, held = list[tuple[int, int]](), 0, b""
    for piece, is_byte in pieces:
        size = 0 if is_byte else len(piece.text)
        if is_byte:
            held += bytes([int(piece.text[3:5], 16)])
            with suppress(UnicodeDecodeError):
                held.decode()
                size, held = 1, b""
        spans.append((offsets[place], offsets[place + size]))
        place += size
    return spans
