"""UTF-8 in buffers: what is valid, what is white space, and its Unicode form.

Validation works chunk by chunk. A character that a chunk cuts off waits for the next chunk, a byte order mark at the
start is dropped, and what is not text is an error that gives its offset in the file, or is replaced by U+FFFD.

White space is found without decoding: the characters for which ``str.isspace`` is true.
"""

from __future__ import annotations

import unicodedata
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE, utf_8_decode
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Literal, TypeAlias

import numpy as np

from foreword.arrays import Bools, Bytes, Longs
from foreword.errors import InputError, SettingError
from foreword.text.block import Block
from foreword.text.encodings import SAMPLE, as_utf8, guessed
from foreword.text.files import Chunk, chunk_of

Errors: TypeAlias = Literal["strict", "replace"]

SLICE_BYTES = 32 << 10
"""How much is decoded at a time to be checked. The string is discarded, so it should be small enough to stay in the
cache: on English Wikipedia slices of 32 KiB are checked at 2.3 GB/s, chunks of 4 MiB at 0.8."""

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


def valid_utf8(chunks: Iterator[Chunk], name: str, errors: Errors) -> Iterator[Chunk]:
    """Yield the same text in chunks of whole characters. ``name`` is the file's, for messages.

    errors: a ``Decoding`` is for text in another encoding than UTF-8.
    """
    chunks = as_utf8(chunks, name, errors)
    opening, offset = _opening(chunks, name)  # offset: where the next chunk begins in the file
    rest = opening.data[:0]
    for chunk in chain((opening,), chunks):
        joined = chunk.after(rest)
        text, length = _checked(joined, False, offset, name, errors)
        offset += length
        rest = joined.data[length:]
        if len(text):
            yield text
    if len(rest):  # the file breaks off within a character
        yield _checked(Chunk(rest, 0), True, offset, name, errors)[0]


def is_utf8(data: Bytes) -> bool:
    """Return whether the bytes are valid UTF-8."""
    return not _whole_characters(data, final=True)[1]


def _opening(chunks: Iterator[Chunk], name: str) -> tuple[Chunk, int]:
    """Return the first chunk without its byte order mark, and the length of the mark."""
    chunk = next(chunks, chunk_of(b""))
    while len(chunk) < len(BOM_UTF8) and (following := next(chunks, None)) is not None:
        chunk = following.after(chunk.data)
    mark = chunk.data[: len(BOM_UTF8)].tobytes()
    if mark.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
        raise InputError(f"{name}: this is UTF-16; --encoding utf-16 reads it")
    return (chunk.since(len(mark)), len(mark)) if mark == BOM_UTF8 else (chunk, 0)


def _checked(chunk: Chunk, final: bool, offset: int, name: str, errors: Errors) -> tuple[Chunk, int]:
    """Return the whole characters of the chunk, and how many of its bytes they stand for."""
    data = chunk.data
    length, flawed = _whole_characters(data, final)
    has_nul = len(data) > 0 and data.min() == 0
    if not flawed and not has_nul:
        return chunk.until(length), length
    if errors == "replace":
        replaced, length = utf_8_decode(data.data, "replace", final)
        return chunk_of(replaced.replace("\0", REPLACEMENT).encode()), length
    if has_nul:  # reported first, though bad UTF-8 may precede it: it shows what kind of file this is
        raise InputError(f"{name}: NUL at byte {offset + int(data.argmin())}; it looks like a binary file")
    around = data[max(0, length - SAMPLE // 2) : length + SAMPLE // 2].tobytes()
    raise InputError(
        f"{name}: invalid UTF-8 at byte {offset + length} (0x{data[length]:02x}); --errors replace reads on, "
        f"--encoding {guessed(around)} may be right"
    )


def _whole_characters(data: Bytes, final: bool) -> tuple[int, bool]:
    """Return how many bytes are whole characters, and whether the next byte is invalid."""
    at = 0
    while at < len(data):
        stop = at + SLICE_BYTES
        try:
            at += utf_8_decode(data[at:stop].data, "strict", final and stop >= len(data))[1]
        except UnicodeDecodeError as error:
            return at + error.start, True
        if stop >= len(data):
            break
    return at, False


# --- white space

WHITE_CHARACTERS = [chr(code) for code in range(0x3001) if chr(code).isspace()]
"""U+3000, the ideographic space, is the last."""

_ENCODED = [character.encode() for character in WHITE_CHARACTERS]

IS_ASCII_WHITE: Bools = np.zeros(256, np.bool_)
IS_ASCII_WHITE[[each[0] for each in _ENCODED if len(each) == 1]] = True

_MAY_START_WHITE: Bools = np.zeros(256, np.bool_)
_MAY_START_WHITE[[each[0] for each in _ENCODED]] = True

_PAIRS = np.array([int.from_bytes(each) for each in _ENCODED if len(each) == 2], np.int64)
_TRIPLES = np.array([int.from_bytes(each) for each in _ENCODED if len(each) == 3], np.int64)

_VECTOR_STEPS = 32
"""Characters of indentation that all lines are scanned for together; deeper indentation is rare enough for a loop."""

_WINDOW = 64 << 10


def blank(data: Bytes, starts: Longs, stops: Longs) -> Bools:
    """Return which of the spans are empty or white space only: bool (spans,). Each span is valid UTF-8.

    Nearly every line is decided by its first byte. The rest advance together, one character per step, until they meet
    a letter or their end.
    """
    result: Bools = starts == stops
    if not len(data):
        return result
    open_spans = np.flatnonzero(_MAY_START_WHITE[data[np.minimum(starts, len(data) - 1)]] & ~result)
    at = starts[open_spans]
    for _ in range(_VECTOR_STEPS):
        if not len(open_spans):
            return result
        width = _white_width(data, at)
        at = at + width
        ended = at >= stops[open_spans]
        result[open_spans[ended & (width > 0)]] = True
        going = (width > 0) & ~ended
        open_spans, at = open_spans[going], at[going]
    for span, start, stop in zip(open_spans.tolist(), at.tolist(), stops[open_spans].tolist(), strict=True):
        result[span] = first_dark(data[start:stop]) == stop - start
    return result


def first_dark(data: Bytes) -> int:
    """Return where the first character starts that is not white space; the end if there is none."""
    start = 0
    while start < len(data):
        stop = start + _WINDOW
        stop = character_start(data, stop) if stop < len(data) else len(data)
        text = str(data[start:stop].data, "utf-8").lstrip()
        if text:
            return stop - len(text.encode())
        start = stop
    return start


def last_dark(data: Bytes) -> int:
    """Return where the last character starts that is not white space; -1 if there is none."""
    stop = len(data)
    while stop:
        start = character_start(data, max(0, stop - _WINDOW))
        text = str(data[start:stop].data, "utf-8").rstrip()
        if text:
            return start + len(text[:-1].encode())
        stop = start
    return -1


def character_start(data: Bytes, at: int) -> int:
    """Return where the character starts that byte ``at`` belongs to."""
    while at and data[at] & 0xC0 == 0x80:
        at -= 1
    return at


def _white_width(data: Bytes, at: Longs) -> Longs:
    """Return the length of the white space character at each offset, 0 where another character is."""
    first = data[at].astype(np.int64)
    width: Longs = IS_ASCII_WHITE[first].astype(np.int64)
    if (first < 0x80).all():
        return width
    last = len(data) - 1
    pair = first << 8 | data[np.minimum(at + 1, last)]
    triple = pair << 8 | data[np.minimum(at + 2, last)]
    width += 2 * _any_of(pair, _PAIRS) + 3 * _any_of(triple, _TRIPLES)
    return width


def _any_of(values: Longs, wanted: Longs) -> Bools:
    """Return what ``np.isin`` does; for such small arrays that would spend its time on preparations."""
    found: Bools = (values[:, None] == wanted).any(axis=1)
    return found


# --- normalisation

Form = Literal["NFC", "NFD", "NFKC", "NFKD"]

_LOWER = np.arange(256, dtype=np.uint8)
_LOWER[ord("A") : ord("Z") + 1] += 32


@dataclass(frozen=True, slots=True)
class Cleaning:
    """What is done to a text before it is cut into tokens: first the Unicode form, then lower case."""

    form: Form | None = None
    lowercase: bool = False

    def __post_init__(self) -> None:
        if self.form not in (None, "NFC", "NFD", "NFKC", "NFKD"):
            raise SettingError(f"form={self.form!r}: expected NFC, NFD, NFKC, NFKD or none")

    def text(self, text: str) -> str:
        """Clean a string."""
        if self.form is not None:
            text = unicodedata.normalize(self.form, text)
        return text.lower() if self.lowercase else text

    def block(self, block: Block) -> Block:
        """Clean a block. ASCII has no other form, and its lower case is one table look-up."""
        if self.form is None and not self.lowercase:
            return block
        if block.data.max(initial=0) < 0x80:
            return Block(_LOWER[block.data], block.starts, block.stops, block.open) if self.lowercase else block
        return Block.from_texts([self.text(text) for text in block.strings()], open=block.open)
