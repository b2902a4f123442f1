"""JSON from strangers: bounded before it is parsed, strict when it is.

A parser builds an object for every bracket and every value, and a few bytes can make it build many: ``[[],[],…`` takes
twenty times its size, and deep nesting exhausts the stack. So brackets and commas are counted first. What is accepted
takes at most ten times its size plus 64 MB.
"""

from __future__ import annotations

import json
import re
from reprlib import Repr

import numpy as np

from foreword.protocols import Json

MAX_DEPTH = 64
"""Levels of nesting; the deepest model of ours (a mixture of mixtures) has nine."""

OBJECT_BYTES = 64
"""Memory of a small Python object in a container."""

MEMORY_PER_BYTE, MEMORY_BASE = 10, 64 << 20
"""Memory limit of a parsed text: a factor of its size, plus a base."""

_STRING = re.compile(rb'"(?:[^"\\]|\\.)*"?', re.DOTALL)
_STEP = np.zeros(256, np.int8)
_STEP[[*b"[{"]], _STEP[[*b"]}"]] = 1, -1


def parse_json_object(text: bytes) -> dict[str, Json]:
    """Parse a strict JSON object: UTF-8, no duplicate keys, no NaN, bounded; a ValueError for anything else."""
    check_json_size(text)
    value = json.loads(text.decode(), object_pairs_hook=_distinct_pairs, parse_constant=_refuse_constant)
    if not isinstance(value, dict):
        raise ValueError("its JSON is not an object")
    return value


def check_json_size(text: bytes) -> None:
    """Raise a ValueError for JSON that nests too deeply, or that would take much more memory than its size."""
    values = text.count(b"[") + text.count(b"{") + text.count(b",")
    if values * OBJECT_BYTES > MEMORY_PER_BYTE * len(text) + MEMORY_BASE:
        raise ValueError(f"its JSON has {values:,} values in {len(text):,} bytes, which would take too much memory")
    steps = _STEP[np.frombuffer(_STRING.sub(b"", text), np.uint8)]
    if np.cumsum(steps[steps != 0], dtype=np.int32).max(initial=0) > MAX_DEPTH:
        raise ValueError(f"its JSON is nested more than {MAX_DEPTH} levels deep")


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
