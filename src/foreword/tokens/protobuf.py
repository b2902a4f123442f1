"""The wire format of Protocol Buffers, as far as ``.model`` files of sentencepiece need it.

A message is a row of fields: a varint ``number << 3 | type``, then a varint (type 0), eight bytes (1), a varint length
and as many bytes (2), or four bytes (5). Every length is checked against the message before anything is read.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from foreword.errors import InputError

VARINT, EIGHT_BYTES, BYTES, FOUR_BYTES = 0, 1, 2, 5
_SIZES = {EIGHT_BYTES: 8, FOUR_BYTES: 4}

Field = tuple[int, int, int | memoryview]
"""Number, type and value: an integer for a varint, otherwise the bytes."""


def fields(message: memoryview) -> Iterator[Field]:
    """Yield the fields of a message in order; an InputError where it is not one."""
    index, stop = 0, len(message)
    while index < stop:
        key, index = _varint(message, index)
        number, kind = key >> 3, key & 7
        if number == 0:
            raise InputError(f"the field at byte {index - 1} has the number 0")
        if kind == VARINT:
            value, index = _varint(message, index)
            yield number, kind, value
            continue
        if kind == BYTES:
            length, index = _varint(message, index)
        elif kind in _SIZES:
            length = _SIZES[kind]
        else:
            raise InputError(f"field {number} has the unknown wire type {kind}")
        if length > stop - index:
            raise InputError(f"field {number} has {length} bytes, but only {stop - index} are left")
        yield number, kind, message[index : index + length]
        index += length


def _varint(message: memoryview, index: int) -> tuple[int, int]:
    """Return the number at ``index`` and where it ends; an InputError unless it ends within 64 bits."""
    value = 0
    for shift in range(0, 70, 7):
        if index >= len(message):
            raise InputError("a number goes beyond the end")
        byte = message[index]
        index += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFFFFFFFFFFFFFF, index
    raise InputError(f"the number before byte {index} is longer than 64 bits")


def varint(value: int) -> bytes:
    """Return a number as a varint; negative ones as 64-bit two's complement."""
    value &= 0xFFFFFFFFFFFFFFFF
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def number_field(number: int, value: int) -> bytes:
    """Return a field that holds an integer, a boolean or an enumeration."""
    return varint(number << 3 | VARINT) + varint(value)


def bytes_field(number: int, value: bytes) -> bytes:
    """Return a field that holds bytes, a string or another message."""
    return varint(number << 3 | BYTES) + varint(len(value)) + value


def float_field(number: int, value: float) -> bytes:
    """Return a field that holds a 32-bit floating-point number."""
    return varint(number << 3 | FOUR_BYTES) + struct.pack("<f", value)
