"""JSON from strangers: bounded before it is parsed, strict when it is.

A parser builds an object for every bracket and every value, and a few bytes can make it build many: ``[[],[],…`` takes
twenty times its size, and deep nesting exhausts the stack. So brackets, commas and colons are counted first. What is
accepted takes at most ten times its size plus 64 MB; the counting itself takes no more than two copies of the text.
"""

from __future__ import annotations

import json
from reprlib import Repr
from typing import Any

import numpy as np

from foreword.protocols import Json

MAX_DEPTH = 64
"""Levels of nesting; the deepest model of ours (a mixture of mixtures) has nine."""

OBJECT_BYTES, MEMBER_BYTES = 64, 160
"""Memory of a small Python object in a container, and what a member of an object takes in addition: its name, its
place in the table and, while names are compared, its pair."""

MEMORY_PER_BYTE, MEMORY_BASE = 10, 64 << 20
"""Memory limit of a parsed text: a factor of its size, plus a base."""

SHORT = 64 << 10
"""Bytes up to which the values of a text are not counted: whatever it holds, it takes a few megabytes."""

_CHUNK = 1 << 20
_STEP = np.zeros(256, np.int8)
_STEP[[*b"[{"]], _STEP[[*b"]}"]] = 1, -1


def parse_json_object(text: bytes) -> dict[str, Json]:
    """Parse a strict JSON object: UTF-8, no duplicate keys, no NaN, bounded; a ValueError for anything else."""
    check_json_size(text)
    value = json.loads(text.decode(), object_pairs_hook=_distinct_pairs, parse_constant=_refuse_constant)
    if not isinstance(value, dict):
        raise ValueError("its JSON is not an object")
    return value


def parse_json(text: bytes, *, object_bytes: int = OBJECT_BYTES, **options: Any) -> Any:
    """Parse any JSON, bounded; a ValueError for anything else. options: those of ``json.loads``."""
    if len(text) > SHORT or (len(text) > MAX_DEPTH and text.count(b"[") + text.count(b"{") > MAX_DEPTH):
        check_json_size(text, object_bytes)
    return json.loads(text.decode(), **options)


def check_json_size(text: bytes, object_bytes: int = OBJECT_BYTES) -> None:
    """Raise a ValueError for JSON that nests too deeply, or that would take much more memory than its size."""
    opened = text.count(b"[") + text.count(b"{")
    values, members = opened + text.count(b","), text.count(b":")
    memory = _string_bytes(text) + object_bytes * values + MEMBER_BYTES * members
    if memory > MEMORY_PER_BYTE * len(text) + MEMORY_BASE:
        raise ValueError(f"its JSON has {values:,} values in {len(text):,} bytes, which would take too much memory")
    if opened > MAX_DEPTH and _depth(text) > MAX_DEPTH:
        raise ValueError(f"its JSON is nested more than {MAX_DEPTH} levels deep")


def _string_bytes(text: bytes) -> int:
    """Return an upper bound of the memory of the decoded text and of the strings in it."""
    widest = np.frombuffer(text, np.uint8).max(initial=0)
    width = 1 if widest < 0x80 else 2 if widest < 0xF0 else 4  # bytes that Python takes for a character
    return len(text) * (width + (4 if b"\\u" in text else width))


def _depth(text: bytes) -> int:
    """Return the deepest nesting of brackets outside strings."""
    text = text.replace(b"\\\\", b"").replace(b'\\"', b"")  # then every quotation mark begins or ends a string
    depth = deepest = quotes = 0
    for start in range(0, len(text), _CHUNK):
        part = np.frombuffer(text, np.uint8, min(_CHUNK, len(text) - start), start)
        quoted = np.cumsum(part == ord('"'), dtype=np.uint8) + np.uint8(quotes) & 1
        depths = np.cumsum(np.where(quoted, np.int8(0), _STEP[part]), dtype=np.int32)
        deepest = max(deepest, depth + int(depths.max()))
        depth, quotes = depth + int(depths[-1]), int(quoted[-1])
    return deepest


def shown(value: object) -> str:
    """Return an unchecked value from a file, shortened and escaped for an error message."""
    return _SHORT.repr(value)


_SHORT = Repr()
_SHORT.maxstring = _SHORT.maxother = _SHORT.maxlong = 80


def _distinct_pairs(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    together = dict(pairs)
    if len(together) != len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise ValueError(f"its JSON holds the key {shown(twice)} twice")
    return together


def _refuse_constant(name: str) -> Json:
    raise ValueError(f"its JSON holds {name}, which is not a number")
