"""Rows as bytes: where a row's closing brace is, and rows copied out with something put in."""

from __future__ import annotations

from foreword.arrays import Bytes, Longs
from foreword.native.jit import kernel

_NEWLINE, _BLANK, _CLOSE = 0x0A, 0x20, 0x7D


@kernel
def closing_braces(data: Bytes, starts: Longs, stops: Longs, places: Longs) -> int:
    """Where the last ``}`` of each line is, if only white space follows it, else −1; how many have none.

    data: uint8 (bytes,); starts, stops: int64 (lines,); places: int64 (lines,), out.
    """
    without = 0
    for line in range(len(starts)):
        place = stops[line] - 1
        while place >= starts[line] and data[place] <= _BLANK:
            place -= 1
        found = place >= starts[line] and data[place] == _CLOSE
        places[line] = place if found else -1
        without += not found
    return without


@kernel
def copy_rows(
    data: Bytes, starts: Longs, cuts: Longs, stops: Longs, chosen: Longs, inserted: Bytes, ends: Longs, out: Bytes
) -> int:
    """Copy the chosen rows to ``out``, a line feed after each; how many bytes that are.

    Row i is ``data[starts[i]:stops[i]]``; before its byte ``cuts[i]`` comes what is inserted into the n-th chosen one,
    ``inserted[ends[n]:ends[n + 1]]``. Where ``ends`` is empty nothing is inserted.
    """
    place = 0
    for number in range(len(chosen)):
        row = chosen[number]
        begin, cut, stop = starts[row], cuts[row], stops[row]
        if len(ends):
            for source in range(begin, cut):
                out[place + source - begin] = data[source]
            place += cut - begin
            first, last = ends[number], ends[number + 1]
            for source in range(first, last):
                out[place + source - first] = inserted[source]
            place += last - first
            begin = cut
        for source in range(begin, stop):
            out[place + source - begin] = data[source]
        place += stop - begin
        out[place] = _NEWLINE
        place += 1
    return place


@kernel
def on_one_line(data: Bytes) -> None:
    """Line feeds become blanks, in place: some models read no further than the end of a line."""
    for place in range(len(data)):
        if data[place] == _NEWLINE:
            data[place] = _BLANK
