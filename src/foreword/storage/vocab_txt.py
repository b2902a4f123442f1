r"""The vocabulary as a text file: UTF-8, one token per line; a token's id is its line's number, from 0.

A token that holds a backslash, a newline, a carriage return or a NUL has them written as ``\\``, ``\n``, ``\r`` and
``\0``. Each token has exactly one spelling, so two lines are equal if and only if their tokens are.

Lines are processed many at once, so that a vocabulary of millions opens in a moment, and few enough that they stay in
the processor's cache: processing the whole buffer at once took three times as long. Tokens are decoded when first used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from foreword.arrays import Array, Bools, Bytes, Longs
from foreword.errors import InputError, SettingError
from foreword.text.strict_json import shown
from foreword.text.unicode import is_utf8

if TYPE_CHECKING:
    from foreword.tokens.vocab import Vocab

NEWLINE = ord("\n")
RETURN = ord("\r")
BACKSLASH = ord("\\")
ESCAPES = {"\\": "\\", "\n": "n", "\r": "r", "\0": "0"}
"""The letter after the backslash, for each character that has to be escaped."""

NEVER_WRITTEN = 0xFF
"""A byte that never occurs in UTF-8: the meaning of invalid escapes."""


PIECE = 128 << 10
"""Bytes, of whole lines, that are processed together."""


def write_vocab(path: str | Path, vocab: Vocab) -> None:
    """Write the tokens; the special ids and the counts are saved elsewhere."""
    text = _escaped(vocab.data, vocab.offsets)
    try:
        _check_text(text)
        _check_distinct(text)
    except ValueError as error:
        raise SettingError(f"the vocabulary cannot be saved: {error}") from error
    Path(path).write_bytes(text.data)


MANY = 100_000
"""Lines from which the search for duplicates takes longer than the rest of opening a model."""


def open_vocab(
    path: str | Path, *, tokens: int, unknown: int | None, end: int, counts: Array | None = None, thorough: bool = True
) -> Callable[[], tuple[Bytes, Longs]]:
    """Check the file, of ``tokens`` tokens, and return the function that reads them: their bytes and offsets.

    Unless ``thorough``, very many lines are not searched for duplicates: the checksum shows that they are as written.
    """
    try:
        text = _mapped(Path(path))
        found = _check_text(text)
        if thorough or tokens < MANY:
            _check_distinct(text)
        _check_facts(found, tokens, unknown, end, counts)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise InputError(f"{path}: not a valid vocabulary ({error})") from error
    return partial(_unescaped, text)


def _mapped(path: Path) -> Bytes:
    if path.stat().st_size == 0:  # which cannot be mapped
        return np.empty(0, np.uint8)
    return np.memmap(path, np.uint8, mode="r").view(np.ndarray)


def _pieces(text: Bytes) -> Iterator[Bytes]:
    """Yield the text in pieces of whole lines; a line longer than a piece is not cut."""
    at, length = 0, PIECE
    while at < len(text):
        stop = len(text) if at + length >= len(text) else at + text[at : at + length].tobytes().rfind(b"\n") + 1
        if stop > at:
            yield text[at:stop]
            at, length = stop, PIECE
        else:
            length *= 2


def _escaped(data: Bytes, offsets: Longs) -> Bytes:
    """Return the tokens as lines."""
    meanings = _table((character, written) for character, written in ESCAPES.items())
    special = np.flatnonzero(meanings[data] != NEVER_WRITTEN)
    plain = data.copy()
    plain[special] = meanings[data[special]]
    # Before a token that begins with a special byte, the newline comes before the backslash: np.insert preserves the
    # order of values for the same index.
    places = np.concatenate((offsets[1:], special))
    values = np.repeat(np.array([NEWLINE, BACKSLASH], np.uint8), [len(offsets) - 1, len(special)])
    return np.insert(plain, places, values)


def _unescaped(text: Bytes) -> tuple[Bytes, Longs]:
    """Return data and offsets, as ``Vocab.from_bytes`` takes them, of lines."""
    tokens, ends = [np.empty(0, np.uint8)], [np.zeros(1, np.int64)]
    for piece in _pieces(text):
        data, stops = _unescaped_piece(piece)
        tokens.append(data)
        ends.append(stops + ends[-1][-1])
    return np.concatenate(tokens), np.concatenate(ends)


def _unescaped_piece(text: Bytes) -> tuple[Bytes, Longs]:
    """Return the tokens of some lines, and where each ends."""
    newlines = np.flatnonzero(text == NEWLINE)
    kept = text != NEWLINE
    escapes = _escape_places(text)
    if len(escapes):
        kept[escapes] = False
        text = text.copy()
        text[escapes + 1] = _meanings(text[escapes + 1])
    return text[kept], newlines - np.arange(len(newlines)) - np.searchsorted(escapes, newlines)


def _escape_places(text: Bytes) -> Longs:
    r"""Return where escapes begin: in a run of backslashes at every second one, for ``\\`` is an escape."""
    places = np.flatnonzero(text == BACKSLASH)
    order = np.arange(len(places))
    opens_run = np.ones(len(places), np.bool_)
    opens_run[1:] = np.diff(places) != 1
    place_in_run = order - np.maximum.accumulate(np.where(opens_run, order, 0))
    odd: Bools = place_in_run % 2 == 1
    return places[~odd]


def _meanings(written: Bytes) -> Bytes:
    meant = _table((letter, character) for character, letter in ESCAPES.items())[written]
    wrong = np.flatnonzero(meant == NEVER_WRITTEN)
    if len(wrong):
        raise ValueError(
            f"a backslash is followed by byte {written[wrong[0]]:#04x}; only \\\\ \\n \\r \\0 have a meaning"
        )
    return meant


def _table(pairs: Iterable[tuple[str, str]]) -> Bytes:
    table = np.full(256, NEVER_WRITTEN, np.uint8)
    for key, value in pairs:
        table[ord(key)] = ord(value)
    return table


def _check_text(text: Bytes) -> int:
    """Return the number of lines; a ValueError unless the text is UTF-8, escaped, and ends its last line."""
    if len(text) and text[-1] != NEWLINE:
        raise ValueError("its last line is cut off")
    lines = 0
    for piece in _pieces(text):
        if not is_utf8(piece) or piece.min() == 0 or (piece == RETURN).any():
            raise ValueError(_fault(piece.tobytes(), lines))
        if (piece == BACKSLASH).any():
            _meanings(piece[_escape_places(piece) + 1])
        lines += int(np.count_nonzero(piece == NEWLINE))
    return lines


def _fault(text: bytes, before: int) -> str:
    """Return what is wrong with some lines; ``before``: the number of lines before them."""
    for number, line in enumerate(text.split(b"\n"), start=before + 1):
        for character in ("\r", "\0"):
            if character.encode() in line:
                return f"line {number} holds {character!r} as it is, not escaped"
        try:
            line.decode()
        except UnicodeDecodeError:
            return f"line {number} is not UTF-8"
    raise AssertionError("nothing is wrong")


def _check_distinct(text: Bytes) -> None:
    lines = text.tobytes().split(b"\n")[:-1]
    if len(set(lines)) == len(lines):
        return
    first: dict[bytes, int] = {}
    for number, line in enumerate(lines, start=1):
        if first.setdefault(line, number) != number:
            raise ValueError(f"line {number} is the same as line {first[line]}")


def _check_facts(found: int, tokens: int, unknown: int | None, end: int, counts: Array | None) -> None:
    if found != tokens:
        raise ValueError(f"it has {found} tokens, not {shown(tokens)}")
    for name, id in (("unknown", unknown), ("end", end)):
        if id is not None and not 0 <= id < found:
            raise ValueError(f"the {name} token's id {shown(id)} is not below {found}")
    if counts is None:
        return
    if counts.dtype != np.int64 or counts.shape != (found,):
        raise ValueError(f"its counts are {counts.dtype} of shape {counts.shape}, not int64 of shape ({found},)")
    if counts.min() < 0:
        raise ValueError("a count is negative")
