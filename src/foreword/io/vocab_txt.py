r"""The vocabulary as a text file: UTF-8, one token a line, a token's id is its line's number counted from 0.

A token that holds a backslash, a newline, a carriage return or a NUL has them written as ``\\``, ``\n``, ``\r`` and
``\0``. There is one way only to write a token, so two lines are equal just when their tokens are.

Everything is done on the whole buffer at once, so that a vocabulary of millions opens in a moment.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from foreword.errors import InputError, SettingError
from foreword.io.safetensors import shown
from foreword.protocols import Array
from foreword.tokens.vocab import Vocab

Bytes = NDArray[np.uint8]

NEWLINE = ord("\n")
BACKSLASH = ord("\\")
ESCAPES = {"\\": "\\", "\n": "n", "\r": "r", "\0": "0"}
"""What is written after a backslash for each character that cannot stand in a line as it is."""

NEVER_WRITTEN = 0xFF
"""A byte that UTF-8 never holds: what the unknown escapes mean."""


def write_vocab(path: str | Path, vocab: Vocab) -> None:
    """Write the tokens; the special ids and the counts are kept elsewhere."""
    text = _escaped(vocab.data, vocab.offsets).tobytes()
    try:
        _check_tokens(text)
        _check_distinct(text.split(b"\n")[:-1])
    except ValueError as error:
        raise SettingError(f"the vocabulary cannot be saved: {error}") from error
    Path(path).write_bytes(text)


MANY = 100_000
"""Lines from which looking for one that stands there twice takes longer than all the rest of opening a model."""


def read_vocab(
    path: str | Path,
    *,
    tokens: int,
    unknown: int | None,
    end: int,
    counts: Array | None = None,
    thorough: bool = True,
) -> Vocab:
    """Read the tokens, of which there must be ``tokens``; the special ids and the counts come from elsewhere.

    Unless ``thorough``, no line is looked for twice among very many: a checksum has vouched for what was written.
    """
    try:
        text = Path(path).read_bytes()
        _check_tokens(text)
        if thorough or tokens < MANY:
            _check_distinct(text.split(b"\n")[:-1])
        data, offsets = _unescaped(np.frombuffer(text, np.uint8))
        _check_facts(len(offsets) - 1, tokens, unknown, end, counts)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise InputError(f"{path}: not a valid vocabulary ({error})") from error
    return Vocab.from_bytes(data, offsets, counts, unknown=unknown, end=end)


def _escaped(data: Bytes, offsets: NDArray[np.int64]) -> Bytes:
    """The tokens as lines."""
    meanings = _table((character, written) for character, written in ESCAPES.items())
    special = np.flatnonzero(meanings[data] != NEVER_WRITTEN)
    plain = data.copy()
    plain[special] = meanings[data[special]]
    # Where a token that begins with a special byte follows, the newline comes before the backslash: np.insert keeps
    # the order in which things for the same place are given.
    places = np.concatenate((offsets[1:], special))
    values = np.repeat(np.array([NEWLINE, BACKSLASH], np.uint8), [len(offsets) - 1, len(special)])
    return np.insert(plain, places, values)


def _unescaped(text: Bytes) -> tuple[Bytes, NDArray[np.int64]]:
    """Data and offsets as ``Vocab.from_bytes`` takes them, out of lines."""
    newlines = np.flatnonzero(text == NEWLINE)
    escapes = _escape_places(text)
    kept = np.ones(len(text), np.bool_)
    kept[newlines] = kept[escapes] = False
    if len(escapes):
        text = text.copy()
        text[escapes + 1] = _meanings(text[escapes + 1])
    offsets = np.zeros(len(newlines) + 1, np.int64)
    offsets[1:] = newlines - np.arange(len(newlines)) - np.searchsorted(escapes, newlines)
    return text[kept], offsets


def _escape_places(text: Bytes) -> NDArray[np.int64]:
    r"""Where an escape begins: in a run of backslashes at the first, the third and so on, for ``\\`` is an escape."""
    places = np.flatnonzero(text == BACKSLASH)
    order = np.arange(len(places))
    opens_run = np.ones(len(places), np.bool_)
    opens_run[1:] = np.diff(places) != 1
    place_in_run = order - np.maximum.accumulate(np.where(opens_run, order, 0))
    odd: NDArray[np.bool_] = place_in_run % 2 == 1
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


def _check_tokens(text: bytes) -> None:
    """The whole text is UTF-8 with every line ended, and nothing in it that should be escaped."""
    try:
        text.decode()
    except UnicodeDecodeError as error:
        line = text.count(b"\n", 0, error.start) + 1
        raise ValueError(f"line {line} is not UTF-8") from None
    if text and not text.endswith(b"\n"):
        raise ValueError("its last line is cut off")
    for character in ("\r", "\0"):
        if character.encode() in text:
            line = text.count(b"\n", 0, text.index(character.encode())) + 1
            raise ValueError(f"line {line} holds {character!r} as it is, not escaped")


def _check_distinct(lines: list[bytes]) -> None:
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
