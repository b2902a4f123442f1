"""Split text into documents: lines, paragraphs or whole files, in blocks.

Chunks of text come in, blocks go out. An incomplete document waits for the next chunk, up to one block; a longer
document is emitted in pieces, so that memory stays flat on a line of a gigabyte. Splitting looks at whole buffers with
NumPy: Python's share of the work is the same for one line and for a hundred thousand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Literal, TypeAlias

import numpy as np

from foreword.arrays import Bools, Bytes, Longs
from foreword.text.block import Block
from foreword.text.files import Chunk
from foreword.text.lines import Split, line_spans
from foreword.text.unicode import IS_ASCII_WHITE, blank, character_start, first_dark, last_dark

Document: TypeAlias = Literal["line", "blank-line", "file"]

GROWTH = 16
"""How many blocks a document without a good cut point may fill before it is cut at a worse one."""

WHITE_LIMIT = 1 << 20
"""How much white space, or ``GROWTH`` blocks if that is more, is buffered until it is known what it belongs to. Beyond
that it is emitted: only then may a document be white space alone, or a paragraph end in it."""

_WINDOW = 64 << 10
_NEWLINE, _RETURN, _SPACE = 10, 13, 32

_IS_ASCII_WORD: Bools = np.zeros(256, np.bool_)
_IS_ASCII_WORD[[byte for byte in range(128) if chr(byte).isalnum()]] = True
_IS_ASCII_GRAPHIC: Bools = np.zeros(256, np.bool_)
_IS_ASCII_GRAPHIC[0x21:0x7F] = True


def text_blocks(chunks: Iterable[Chunk], document: Document, block_bytes: int) -> Iterator[Block]:
    """Yield blocks of documents from chunks of valid UTF-8 that hold whole characters. Blank documents are skipped."""
    split = _SPLITTERS[document]
    rest: Bytes = np.empty(0, np.uint8)
    begun = False  # whether rest continues a document whose first pieces were emitted already
    for chunk in chunks:
        data = chunk.after(rest).data
        starts, stops, after = split(data, begun, False)
        begun = begun and not len(starts)
        rest = data[after:]
        length = _cut(rest, begun, GROWTH * block_bytes) if len(rest) >= block_bytes else 0
        if length:
            yield Block(data, np.append(starts, after), np.append(stops, after + length), open=True)
            begun, rest = True, rest[length:]
        elif len(starts):
            yield Block(data, starts, stops)
    if len(rest):
        starts, stops, _ = split(rest, begun, True)
        if len(starts):
            yield Block(rest, starts, stops)


# --- where documents end


def _split_lines(data: Bytes, begun: bool, final: bool) -> Split:
    starts, stops, after = line_spans(data, final)
    kept = ~_blank(data, starts, stops, begun)
    return starts[kept], stops[kept], after


def _split_paragraphs(data: Bytes, begun: bool, final: bool) -> Split:
    starts, stops, after = line_spans(data, final)
    inside = ~_blank(data, starts, stops, begun)
    edges = np.diff(inside.astype(np.int8), prepend=0, append=0)
    first, last = np.flatnonzero(edges == 1), np.flatnonzero(edges == -1) - 1
    if not final and len(inside) and inside[-1]:  # no blank line yet: the paragraph may continue
        after = int(starts[first[-1]])
        first, last = first[:-1], last[:-1]
    return starts[first], stops[last], after


def _split_files(data: Bytes, begun: bool, final: bool) -> Split:
    starts, stops = np.zeros(int(final), np.int64), np.full(int(final), len(data), np.int64)
    kept = ~_blank(data, starts, stops, begun)
    return starts[kept], stops[kept], 0


_SPLITTERS: dict[Document, Callable[[Bytes, bool, bool], Split]] = {
    "line": _split_lines,
    "blank-line": _split_paragraphs,
    "file": _split_files,
}


def _blank(data: Bytes, starts: Longs, stops: Longs, begun: bool) -> Bools:
    """Return which lines are blank. The rest of a document that has begun is part of it, whatever it holds."""
    found = blank(data, starts, stops)
    if begun:
        found[:1] = False
    return found


# --- where a long document is cut


def _cut(data: Bytes, begun: bool, limit: int) -> int:
    """Return the length of the piece to emit now; 0 to wait for more text.

    At best the cut changes nothing: see ``_before_word``. A document that grew to ``limit`` bytes without such a
    position is cut before other ASCII white space, or else between two characters. Both sides keep a character that is
    not white space, so that no piece is blank, and the line end still to come is not taken for text.
    """
    good = _before_word(data)
    if good or len(data) < limit:
        return good
    least = 0 if begun else first_dark(data)
    last = last_dark(data)
    for position in (_before_white(data, last), last):
        if position > least:
            return position
    return _anywhere(data) if len(data) >= max(limit, WHITE_LIMIT) else 0


def _before_word(data: Bytes) -> int:
    r"""Find the last space between a visible ASCII character and an ASCII letter or digit; 0 if there is none.

    Cutting before that space cannot change what GPT-2's or cl100k's pre-tokenisation gives. In both, no token goes
    from other characters on to a space, so one ends there anyway; and what follows is matched without looking back.
    The character before must not be white space: cl100k takes white space at the very end of a text in one token
    (``\s++$``), which it would not have done had more text followed.
    """
    for start, stop in _windows(1, len(data) - 1):
        spaces = start + np.flatnonzero(data[start:stop] == _SPACE)
        good = spaces[_IS_ASCII_GRAPHIC[data[spaces - 1]] & _IS_ASCII_WORD[data[spaces + 1]]]
        if len(good):
            return int(good[-1])
    return 0


def _before_white(data: Bytes, end: int) -> int:
    r"""Find the last ASCII white space before ``end``, but never between ``\r`` and ``\n``; 0 if there is none."""
    for start, stop in _windows(1, end):
        white = np.flatnonzero(IS_ASCII_WHITE[data[start:stop]])
        if len(white):
            return _not_in_line_end(data, start + int(white[-1]))
    return 0


def _anywhere(data: Bytes) -> int:
    return _not_in_line_end(data, character_start(data, len(data) - 1))


def _not_in_line_end(data: Bytes, at: int) -> int:
    return at - 1 if data[at] == _NEWLINE and data[at - 1] == _RETURN else at


def _windows(start: int, stop: int) -> Iterator[tuple[int, int]]:
    """Yield spans from the end to the start: a good cut point is nearly always near the end."""
    while stop > start:
        yield max(start, stop - _WINDOW), stop
        stop -= _WINDOW
