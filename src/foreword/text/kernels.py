r"""Two fields of JSON objects, one object per line, found and unescaped in place; rows copied to the output.

Python's ``json`` builds an object for every key and value of a row. Here the row is only scanned: the scanner checks
that it is JSON, records where the two fields are, and then undoes their escapes in place, which never makes a text
longer. Rare cases are left to Python: the scanner reports them and has changed nothing. It is never more lenient than
``json.loads``; ``tests/unit/text/test_jsonl.py`` compares the two. Measured on the rows of the filter benchmark: 2.1
times as fast as orjson, 3.7 times as fast as ``json``.
"""

from __future__ import annotations

import numpy as np

from foreword.arrays import Bytes, Longs
from foreword.native.jit import inlined, kernel
from foreword.native.memory import load_unaligned, lowest_one

FOUND, BLANK, LOOK = 0, 1, 2
"""The result for a line: both fields found; nothing but white space; left to Python."""

_QUOTE, _BACKSLASH, _COMMA, _COLON, _MINUS, _PLUS, _POINT = 0x22, 0x5C, 0x2C, 0x3A, 0x2D, 0x2B, 0x2E
_OPEN, _CLOSE, _OPEN_LIST, _CLOSE_LIST = 0x7B, 0x7D, 0x5B, 0x5D
_ZERO, _NINE = 0x30, 0x39
_NEWLINE, _SPACE = 0x0A, 0x20

_DEEPEST = 60  # one bit of a number for each level: whether it is an object
_LONGEST_NUMBER = 1000  # Python refuses whole numbers of more than 4,300 digits


@inlined
def is_white(byte: np.uint8) -> bool:
    """Return whether JSON takes the byte for white space."""
    return byte == 0x20 or byte == 0x09 or byte == 0x0A or byte == 0x0D


@inlined
def skip_white(data: Bytes, at: int, stop: int) -> int:
    """Return the first offset from ``at`` on that is not white space."""
    while at < stop and is_white(data[at]):
        at += 1
    return at


@inlined
def is_digit(data: Bytes, at: int, stop: int) -> bool:
    """Return whether there is a digit at ``at``."""
    return at < stop and _ZERO <= data[at] <= _NINE


@inlined
def hex_value(data: Bytes, at: int, stop: int) -> int:
    """Return the number that four hexadecimal digits at ``at`` spell, or -1."""
    if at + 4 > stop:
        return -1
    value = 0
    for each in range(at, at + 4):
        byte = np.int64(data[each])
        if 0x30 <= byte <= 0x39:
            digit = byte - 0x30
        elif 0x41 <= byte <= 0x46:
            digit = byte - 0x41 + 10
        elif 0x61 <= byte <= 0x66:
            digit = byte - 0x61 + 10
        else:
            return -1
        value = value * 16 + digit
    return value


@inlined
def plain_run(data: Bytes, at: int, stop: int) -> int:
    """Find the first quotation mark, backslash or control character from ``at`` on, eight bytes at a time."""
    low, high = np.uint64(0x0101010101010101), np.uint64(0x8080808080808080)
    limit = min(stop, len(data) - 8)
    while at < limit:
        word = load_unaligned(data, at)
        quote = word ^ np.uint64(0x2222222222222222)
        slash = word ^ np.uint64(0x5C5C5C5C5C5C5C5C)
        # A byte that is zero (in the first term: below 0x20) borrows into its own top bit; the lowest mark is exact.
        marks = ((word - np.uint64(0x2020202020202020)) & ~word) | ((quote - low) & ~quote) | ((slash - low) & ~slash)
        marks &= high
        if marks:
            return min(stop, at + (lowest_one(marks) >> 3))
        at += 8
    while at < stop:
        byte = data[at]
        if byte in (_QUOTE, _BACKSLASH) or byte < 0x20:
            return at
        at += 1
    return stop


@kernel
def string_end(data: Bytes, at: int, stop: int) -> tuple[int, bool, bool]:
    """Return where the string ends that begins at ``at``, after its quotation mark; -1 if it is no JSON string.

    Also return whether it has escapes, and whether one of them is half of a surrogate pair.
    """
    escaped = False
    halved = False
    while True:
        at = plain_run(data, at, stop)
        if at >= stop or data[at] < 0x20:
            return -1, escaped, halved
        if data[at] == _QUOTE:
            return at, escaped, halved
        escaped = True
        if at + 1 >= stop:
            return -1, escaped, halved
        byte = data[at + 1]
        if byte == 0x75:  # u
            value = hex_value(data, at + 2, stop)
            if value < 0:
                return -1, escaped, halved
            at += 6
            if 0xD800 <= value < 0xDC00 and at + 1 < stop and data[at] == _BACKSLASH and data[at + 1] == 0x75:
                low = hex_value(data, at + 2, stop)
                if 0xDC00 <= low < 0xE000:
                    at += 6
                    continue
            halved |= 0xD800 <= value < 0xE000
        elif byte in (_QUOTE, _BACKSLASH, 0x2F, 0x62, 0x66, 0x6E, 0x72, 0x74):  # / b f n r t
            at += 2
        else:
            return -1, escaped, halved


@inlined
def number_end(data: Bytes, at: int, stop: int) -> int:
    """Return where the number at ``at`` ends; -1 if there is none."""
    start = at
    if at < stop and data[at] == _MINUS:
        at += 1
    if not is_digit(data, at, stop):
        return -1
    if data[at] == _ZERO:
        at += 1
    else:
        while is_digit(data, at, stop):
            at += 1
    if at < stop and data[at] == _POINT:
        if not is_digit(data, at + 1, stop):
            return -1
        at += 1
        while is_digit(data, at, stop):
            at += 1
    if at < stop and (data[at] == 0x65 or data[at] == 0x45):  # e E
        at += 1
        if at < stop and (data[at] == _PLUS or data[at] == _MINUS):
            at += 1
        if not is_digit(data, at, stop):
            return -1
        while is_digit(data, at, stop):
            at += 1
    return at if at - start <= _LONGEST_NUMBER else -1


@inlined
def word_end(data: Bytes, at: int, stop: int) -> int:
    """Return where ``true``, ``false`` or ``null`` at ``at`` ends; -1 if it is none of them."""
    if at + 4 > stop:
        return -1
    first, second, third, fourth = data[at], data[at + 1], data[at + 2], data[at + 3]
    if first == 0x74 and second == 0x72 and third == 0x75 and fourth == 0x65:
        return at + 4
    if first == 0x6E and second == 0x75 and third == 0x6C and fourth == 0x6C:
        return at + 4
    if first == 0x66 and second == 0x61 and third == 0x6C and fourth == 0x73:
        return at + 5 if at + 5 <= stop and data[at + 4] == 0x65 else -1
    return -1


@inlined
def after_key(data: Bytes, at: int, stop: int) -> int:
    """Return where the value begins whose key begins at ``at``; -1 if there is no key."""
    if at >= stop or data[at] != _QUOTE:
        return -1
    end, _, _ = string_end(data, at + 1, stop)
    if end < 0:
        return -1
    at = skip_white(data, end + 1, stop)
    if at >= stop or data[at] != _COLON:
        return -1
    return skip_white(data, at + 1, stop)


@kernel
def value_end(data: Bytes, at: int, stop: int) -> int:
    """Return where the value at ``at`` ends, whatever is nested in it; -1 if it is not JSON, or too deep."""
    depth = 0
    objects = np.int64(0)
    while True:
        if at >= stop:
            return -1
        byte = data[at]
        if byte in (_OPEN, _OPEN_LIST):
            depth += 1
            if depth > _DEEPEST:
                return -1
            is_object = byte == _OPEN
            objects = objects << 1 | np.int64(is_object)
            at = skip_white(data, at + 1, stop)
            if at >= stop:
                return -1
            if data[at] != (_CLOSE if is_object else _CLOSE_LIST):
                if is_object:
                    at = after_key(data, at, stop)
                    if at < 0:
                        return -1
                continue
        elif byte == _QUOTE:
            end, _, _ = string_end(data, at + 1, stop)
            if end < 0:
                return -1
            at = end + 1
        else:
            at = number_end(data, at, stop) if byte == _MINUS or byte <= _NINE else word_end(data, at, stop)
            if at < 0:
                return -1
        while True:  # a value has ended: what it stands in may end too
            if depth == 0:
                return at
            at = skip_white(data, at, stop)
            if at >= stop:
                return -1
            is_object = objects & 1 == 1
            if data[at] == (_CLOSE if is_object else _CLOSE_LIST):
                objects >>= 1
                depth -= 1
                at += 1
            elif data[at] == _COMMA:
                at = skip_white(data, at + 1, stop)
                if is_object:
                    at = after_key(data, at, stop)
                    if at < 0:
                        return -1
                break
            else:
                return -1


@kernel
def unescaped(data: Bytes, start: int, stop: int) -> int:
    """Undo the escapes of a string in place; return its new end. It must be one that ``string_end`` accepted."""
    into = at = plain_run(data, start, stop)
    while at < stop:
        byte = data[at]
        if byte != _BACKSLASH:
            data[into] = byte
            into += 1
            at += 1
            continue
        byte = data[at + 1]
        at += 2
        if byte == 0x75:
            value = hex_value(data, at, stop)
            at += 4
            if 0xD800 <= value < 0xDC00:
                value = 0x10000 + ((value - 0xD800) << 10) + hex_value(data, at + 2, stop) - 0xDC00
                at += 6
            into += put_character(data, into, value)
            continue
        if byte == 0x6E:
            byte = np.uint8(0x0A)
        elif byte == 0x74:
            byte = np.uint8(0x09)
        elif byte == 0x72:
            byte = np.uint8(0x0D)
        elif byte == 0x62:
            byte = np.uint8(0x08)
        elif byte == 0x66:
            byte = np.uint8(0x0C)
        data[into] = byte
        into += 1
    return into


@inlined
def put_character(data: Bytes, at: int, point: int) -> int:
    """Write a code point as UTF-8; return the number of bytes."""
    if point < 0x80:
        data[at] = point
        return 1
    if point < 0x800:
        data[at] = 0xC0 | point >> 6
        data[at + 1] = 0x80 | point & 0x3F
        return 2
    if point < 0x10000:
        data[at] = 0xE0 | point >> 12
        data[at + 1] = 0x80 | point >> 6 & 0x3F
        data[at + 2] = 0x80 | point & 0x3F
        return 3
    data[at] = 0xF0 | point >> 18
    data[at + 1] = 0x80 | point >> 12 & 0x3F
    data[at + 2] = 0x80 | point >> 6 & 0x3F
    data[at + 3] = 0x80 | point & 0x3F
    return 4


@inlined
def equal(data: Bytes, start: int, stop: int, wanted: Bytes) -> bool:
    """Return whether a span of the data is ``wanted``."""
    if stop - start != len(wanted):
        return False
    for at in range(len(wanted)):  # noqa: SIM110 - Numba knows no generators here
        if data[start + at] != wanted[at]:
            return False
    return True


@kernel
def find_fields(data: Bytes, starts: Longs, stops: Longs, text: Bytes, label: Bytes, spans: Longs, fate: Bytes) -> int:
    """Find and unescape the fields ``text`` and ``label`` of each line; return how many lines are left to Python.

    data: uint8 (bytes,), valid UTF-8, changed in place; starts, stops: int64 (lines,).
    text, label: the fields' names; an empty ``label`` is not looked for. The text must be a string, the label a
    string, a number, true or false, which are taken as they are spelled.
    spans: int64 (lines, 4), filled with the start and stop of the text and of the label.
    fate: uint8 (lines,), filled with FOUND, BLANK or LOOK.
    """
    left = 0
    for line in range(len(starts)):
        fate[line] = row_fields(data, starts[line], stops[line], text, label, spans[line])
        left += fate[line] == LOOK
    return left


@kernel
def row_fields(data: Bytes, at: int, stop: int, text: Bytes, label: Bytes, span: Longs) -> int:
    """Find the fields of one line; see ``find_fields``."""
    at = skip_white(data, at, stop)
    if at == stop:
        return BLANK
    if data[at] != _OPEN:
        return LOOK
    text_start, label_start = -1, -1
    text_stop, label_stop = -1, -1
    text_escaped, label_escaped = False, False
    at = skip_white(data, at + 1, stop)
    while True:
        if at >= stop or data[at] != _QUOTE:
            return LOOK  # an empty object has no text either
        key = at + 1
        key_stop, escaped, _ = string_end(data, key, stop)
        if key_stop < 0 or escaped:  # an escaped key may be one of ours
            return LOOK
        at = skip_white(data, key_stop + 1, stop)
        if at >= stop or data[at] != _COLON:
            return LOOK
        at = skip_white(data, at + 1, stop)
        if at >= stop:
            return LOOK
        is_text = equal(data, key, key_stop, text)
        is_label = len(label) > 0 and equal(data, key, key_stop, label)
        if data[at] == _QUOTE:
            start = at + 1
            end, escaped, halved = string_end(data, start, stop)
            if end < 0 or (halved and (is_text or is_label)):
                return LOOK
            at = end + 1
            if is_text:
                text_start, text_stop, text_escaped = start, end, escaped
            if is_label:
                label_start, label_stop, label_escaped = start, end, escaped
        else:
            start = at
            at = value_end(data, start, stop)
            if at < 0 or is_text:
                return LOOK
            if is_label:
                if data[start] == _OPEN or data[start] == _OPEN_LIST or data[start] == 0x6E:  # null
                    return LOOK
                label_start, label_stop, label_escaped = start, at, False
        at = skip_white(data, at, stop)
        if at >= stop:
            return LOOK
        if data[at] == _CLOSE:
            break
        if data[at] != _COMMA:
            return LOOK
        at = skip_white(data, at + 1, stop)
    if skip_white(data, at + 1, stop) != stop or text_start < 0 or (len(label) > 0 and label_start < 0):
        return LOOK
    if text_escaped:
        text_stop = unescaped(data, text_start, text_stop)
    # Where both names are the same field, it has been unescaped once already.
    if label_start == text_start:
        label_stop = text_stop
    elif label_escaped:
        label_stop = unescaped(data, label_start, label_stop)
    span[0] = text_start
    span[1] = text_stop
    span[2] = label_start
    span[3] = label_stop
    return FOUND


@kernel
def find_value(data: Bytes, starts: Longs, stops: Longs, name: Bytes, spans: Longs) -> None:
    """Find the value of one field of each line, as it is spelled, quotation marks included.

    spans: int64 (lines, 2), filled with its start and stop: 0 and 0 where the line has no such field, −1 and −1 for a
    line that is left to Python. Of two fields of that name the last one counts, as for Python.
    """
    for line in range(len(starts)):
        spans[line, 0], spans[line, 1] = row_value(data, starts[line], stops[line], name)


@kernel
def row_value(data: Bytes, at: int, stop: int, name: Bytes) -> tuple[int, int]:
    """Find the value of one field of one line; see ``find_value``."""
    at = skip_white(data, at, stop)
    if at == stop:
        return 0, 0
    if data[at] != _OPEN:
        return -1, -1
    found_start, found_stop = 0, 0
    at = skip_white(data, at + 1, stop)
    while at < stop and data[at] != _CLOSE:
        if data[at] == _COMMA:
            at = skip_white(data, at + 1, stop)
        if at >= stop or data[at] != _QUOTE:
            return -1, -1
        key = at + 1
        key_stop, escaped, _ = string_end(data, key, stop)
        if key_stop < 0 or escaped:
            return -1, -1
        at = skip_white(data, key_stop + 1, stop)
        if at >= stop or data[at] != _COLON:
            return -1, -1
        start = skip_white(data, at + 1, stop)
        at = value_end(data, start, stop)
        if at < 0:
            return -1, -1
        if equal(data, key, key_stop, name):
            found_start, found_stop = start, at
        at = skip_white(data, at, stop)
    return found_start, found_stop


# --- rows copied out


@kernel
def closing_braces(data: Bytes, starts: Longs, stops: Longs, offsets: Longs) -> int:
    """Find the last ``}`` of each line, if only white space follows it, else −1; return how many have none.

    data: uint8 (bytes,); starts, stops: int64 (lines,); offsets: int64 (lines,), out.
    """
    without = 0
    for line in range(len(starts)):
        at = stops[line] - 1
        while at >= starts[line] and data[at] <= _SPACE:
            at -= 1
        found = at >= starts[line] and data[at] == _CLOSE
        offsets[line] = at if found else -1
        without += not found
    return without


@kernel
def copy_rows(
    data: Bytes, starts: Longs, cuts: Longs, stops: Longs, chosen: Longs, inserted: Bytes, ends: Longs, out: Bytes
) -> int:
    """Copy the chosen rows to ``out``, a line feed after each; return the number of bytes.

    Row i is ``data[starts[i]:stops[i]]``; before its byte ``cuts[i]`` comes what is inserted into the n-th chosen one,
    ``inserted[ends[n]:ends[n + 1]]``. Where ``ends`` is empty nothing is inserted.
    """
    at = 0
    for number in range(len(chosen)):
        row = chosen[number]
        begin, cut, stop = starts[row], cuts[row], stops[row]
        if len(ends):
            for source in range(begin, cut):
                out[at + source - begin] = data[source]
            at += cut - begin
            first, last = ends[number], ends[number + 1]
            for source in range(first, last):
                out[at + source - first] = inserted[source]
            at += last - first
            begin = cut
        for source in range(begin, stop):
            out[at + source - begin] = data[source]
        at += stop - begin
        out[at] = _NEWLINE
        at += 1
    return at


@kernel
def on_one_line(data: Bytes) -> None:
    """Replace line feeds by spaces, in place: some models stop at the end of a line."""
    for at in range(len(data)):
        if data[at] == _NEWLINE:
            data[at] = _SPACE
