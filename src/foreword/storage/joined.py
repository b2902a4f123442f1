"""Many strings in one buffer: their bytes one after another, and offsets, so that millions of them are two arrays that
map into memory. String i is ``data[offsets[i]:offsets[i + 1]]``; data is uint8, offsets int64 (strings + 1,).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from itertools import pairwise

import numpy as np

from foreword.arrays import Array, Bytes, Longs


def offsets_of(parts: Iterable[Collection[object]]) -> Longs:
    """Return where each of the parts begins if they are joined, and where the last ends."""
    return np.cumsum([0, *map(len, parts)], dtype=np.int64)


def joined(strings: Collection[bytes]) -> tuple[Bytes, Longs]:
    """Join strings; return their bytes and offsets."""
    return np.frombuffer(b"".join(strings), np.uint8), offsets_of(strings)


def encoded(strings: Iterable[str], errors: str = "strict") -> tuple[Bytes, Longs]:
    """Join strings as UTF-8."""
    return joined([string.encode("utf-8", errors) for string in strings])


def separated(data: Bytes, offsets: Longs) -> list[bytes]:
    """Return the strings as bytes."""
    blob = data.tobytes()
    return [blob[start:stop] for start, stop in pairwise(offsets.tolist())]


def decoded(data: Bytes, offsets: Longs, errors: str = "strict") -> list[str]:
    """Return the strings, whose bytes are UTF-8."""
    return [each.decode("utf-8", errors) for each in separated(data, offsets)]


def check_joined(data: Array, offsets: Array, what: str) -> None:
    """Raise a ValueError unless the two fit together, as those read from a file may not."""
    if data.dtype != np.uint8 or offsets.dtype != np.int64 or data.ndim != 1 or offsets.ndim != 1:
        raise ValueError(f"{what} are {data.dtype} {data.shape} and {offsets.dtype} {offsets.shape}, not bytes")
    if not len(offsets) or offsets[0] != 0 or offsets[-1] != len(data) or (offsets[1:] < offsets[:-1]).any():
        raise ValueError(f"the {what} do not fit their offsets, which rise from 0 to their end")
