"""The character map of a ``.model`` file: which strings are replaced by which before a text is cut into pieces.

The file holds it compiled: the size of a trie in bytes (uint32), the trie, and the replacements, each ended by a NUL.
The trie is a double array (Aoe, 1989) as darts-clone lays it out, one uint32 per node:

    bits 0-7 and 31    label, the byte that leads to the node
    bit 8              whether a key ends here; then the unit at the offset holds where its replacement begins
    bits 10-30         offset: the child by byte b of node i is node ``i ^ offset ^ b``; times 256 if bit 9 is set

Of several keys that match, the longest counts. Equal tails share nodes, so the trie is an acyclic graph; a file may
hold anything, so that is checked, and that every node and replacement lies inside.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Self

import numpy as np

from foreword.arrays import Bools, Bytes, UInts
from foreword.errors import InputError, SettingError
from foreword.tokens.kernels_normalise import UNUSED_UNIT, check_map, compile_map

LONGEST_KEY = 256
"""Bytes of a key. The time to normalise a text grows with the longest that matches."""

_FAULTS = {
    1: "a node lies outside of it",
    2: "its nodes form a cycle",
    3: f"a key is longer than {LONGEST_KEY} bytes",
    4: "a replacement lies outside of it or begins within a character",
}


class CharacterMap:
    """A compiled character map, checked.

    units: uint32 (nodes,), the trie; strings: uint8 (bytes,), the replacements. Both are empty where there is no map.
    """

    def __init__(self, units: UInts, strings: Bytes) -> None:
        self.units = units
        self.strings = strings

    @classmethod
    def parse(cls, compiled: bytes) -> Self:
        """Parse and check ``precompiled_charsmap``; raise an InputError if it is invalid."""
        if not compiled:
            return cls(np.empty(0, np.uint32), np.empty(0, np.uint8))
        size = int.from_bytes(compiled[:4], "little")
        if len(compiled) < 8 or size % 4 or not 4 <= size <= len(compiled) - 4:
            raise InputError(f"the character map has {len(compiled)} bytes, and its trie {size}")
        units = np.frombuffer(compiled, "<u4", size // 4, 4).astype(np.uint32)
        replacements = compiled[4 + size :]
        try:
            replacements.decode()
        except UnicodeDecodeError as error:
            raise InputError(f"the replacements of the character map are not UTF-8: {error.reason}") from None
        if not replacements.endswith(b"\0"):
            raise InputError("the last replacement of the character map has no end")
        strings = np.frombuffer(replacements, np.uint8).copy()
        heights = np.full(len(units), -1, np.int32)
        fault = check_map(units, strings, heights, np.empty(4 * (LONGEST_KEY + 2), np.int64), LONGEST_KEY)
        if fault:
            raise InputError(f"the character map cannot be used: {_FAULTS[fault]}")
        return cls(units, strings)

    def match(self, text: bytes, index: int) -> tuple[int, bytes]:
        """Return the length of the longest key at ``index``, 0 if none is there, and its replacement."""
        found = (0, b"")
        for end, _, value in self._steps(text, index):
            if value >= 0:
                stop = value + self.strings[value:].tobytes().index(0)
                found = end - index, self.strings[value:stop].tobytes()
        return found

    def shortest(self, text: str) -> str | None:
        """Return the replacement of the shortest key that a text begins with, None if there is none."""
        for _, _, value in self._steps(text.encode(), 0):
            if value >= 0:
                return self.strings[value:].tobytes().partition(b"\0")[0].decode()
        return None

    def bytes_after(self, prefix: bytes) -> Bools:
        """Return which bytes follow a prefix in any key, bool (256,)."""
        found = np.zeros(256, np.bool_)
        nodes = [node for end, node, _ in self._steps(prefix, 0) if end == len(prefix)]
        if nodes:
            labels = np.arange(1, 256)
            children = nodes[0] ^ labels
            labels = labels[children < len(self.units)]
            found[labels] = self.units[nodes[0] ^ labels] & 0x800000FF == labels
        return found

    def _steps(self, text: bytes, index: int) -> Iterator[tuple[int, int, int]]:
        """Follow the bytes from ``index`` on; yield where each ends, where the children of its node are, and its
        replacement, -1 for none.
        """
        node = _offset(int(self.units[0])) if len(self.units) else 0
        for end in range(index, len(text)):
            node ^= text[end]
            if text[end] == 0 or node >= len(self.units):  # no key holds a NUL: there a node holds its value
                break
            unit = int(self.units[node])
            if unit & 0x800000FF != text[end]:
                break
            node ^= _offset(unit)
            yield end + 1, node, int(self.units[node]) & 0x7FFFFFFF if unit & 0x100 else -1


def _offset(unit: int) -> int:
    return unit >> 10 << ((unit & 0x200) >> 6)


BLOCK = 256
"""Nodes that a trie consists of a multiple of: the children of a node lie in one block."""


def compile_rules(rules: Mapping[str, str]) -> bytes:
    """Compile a character map: what each key is replaced by. Neither may hold a NUL."""
    keys = {key.encode(): replacement.encode() for key, replacement in rules.items() if key}
    if not keys:
        return b""
    ordered = sorted(keys)
    strings, starts = bytearray(), {}
    for replacement in sorted(set(keys.values())):
        starts[replacement] = len(strings)
        strings += replacement + b"\0"
    if any(b"\0" in text for text in (*keys, *starts)):
        raise SettingError("a rule of the character map holds a NUL")
    data = np.frombuffer(b"".join(ordered), np.uint8).copy()
    offsets = np.cumsum([0, *map(len, ordered)], dtype=np.int64)
    values = np.array([starts[keys[key]] for key in ordered], np.int32)
    nodes = BLOCK * (4 + len(data) // BLOCK)
    while True:
        units, bases = np.full(nodes, UNUSED_UNIT, np.uint32), np.zeros(nodes, np.uint8)
        stack, labels = np.empty(4 * (len(keys) + 2), np.int64), np.empty(2 * 258, np.int64)
        used = compile_map(data, offsets, values, units, bases, stack, labels)
        if used >= 0:
            break
        nodes *= 2
    blocks = -(-used // BLOCK)
    _label_unused(units[: blocks * BLOCK].reshape(-1, BLOCK), bases[: blocks * BLOCK].reshape(-1, BLOCK))
    trie = units[: blocks * BLOCK].astype("<u4").tobytes()
    return len(trie).to_bytes(4, "little") + trie + bytes(strings)


def _label_unused(units: UInts, bases: Bytes) -> None:
    """Give the nodes of each block that are not in use the labels of children of an offset that nobody has.

    sentencepiece refuses a trie with nodes that lead out of it, whether they are reached or not.
    """
    for block, taken in zip(units, bases, strict=True):
        unused = np.flatnonzero(block == UNUSED_UNIT)
        block[unused] = unused ^ int(np.flatnonzero(taken == 0)[0])
