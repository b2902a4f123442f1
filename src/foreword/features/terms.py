"""Many distinct strings as UTF-8 in one buffer, so that millions of terms do not become millions of Python objects."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from foreword.arrays import Bytes, Longs
from foreword.text.unicode import is_utf8


@dataclass(frozen=True)
class Terms:
    """Term i is ``data[offsets[i]:offsets[i + 1]]``. data: uint8 (bytes,); offsets: int64 (terms + 1,)."""

    data: Bytes
    offsets: Longs

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, number: int) -> str:
        return bytes(self.data[self.offsets[number] : self.offsets[number + 1]]).decode()

    @cached_property
    def strings(self) -> list[str]:
        """All terms, made on first use."""
        blob, ends = self.data.tobytes(), self.offsets.tolist()
        return [blob[start:stop].decode() for start, stop in pairwise(ends)]

    @cached_property
    def places(self) -> dict[str, int]:
        return {term: place for place, term in enumerate(self.strings)}

    def check(self) -> None:
        """Raise a ValueError unless the arrays fit together, as those read from a file may not."""
        if self.data.dtype != np.uint8 or self.offsets.dtype != np.int64 or self.data.ndim != 1:
            raise ValueError("terms should be bytes with 64-bit offsets")
        if self.offsets.ndim != 1 or len(self.offsets) == 0 or self.offsets[0] != 0:
            raise ValueError("the terms' offsets should begin with 0")
        if (np.diff(self.offsets) <= 0).any() or self.offsets[-1] != len(self.data):
            raise ValueError("the terms' offsets should rise to the end of their bytes")
        if not is_utf8(self.data) or ((self.data[self.offsets[:-1]] & 0xC0) == 0x80).any():
            raise ValueError("the terms are not valid UTF-8")
