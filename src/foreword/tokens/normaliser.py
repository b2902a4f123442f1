"""Normalising texts as sentencepiece does, block by block; ``kernels_normalise.py`` has the loops."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from foreword.arrays import Bytes
from foreword.text.block import Block
from foreword.tokens.character_map import CharacterMap
from foreword.tokens.kernels_normalise import BLANK, COPY, SEARCH, normalise
from foreword.tokens.kernels_trie import build_trie
from foreword.tokens.sentencepiece_file import SPACE, Normalisation


class Normaliser:
    """The normalisation of a model with its tables. symbols: user-defined ones, which stay as they are."""

    def __init__(self, how: Normalisation, symbols: Iterable[str] = ()) -> None:
        self.how = how
        self.map = CharacterMap.parse(how.character_map)
        self.symbols = sorted(symbol.encode() for symbol in symbols)
        self._trie = build_trie(dict.fromkeys(self.symbols, 0))
        replacements = self.map.strings.tobytes().split(b"\0")
        self._longest = max(4, *map(len, replacements), *map(len, self.symbols), 0)
        self._ascii = self._actions()

    def _actions(self) -> Bytes:
        """Return what becomes of each byte that one below 0x80 follows."""
        actions = np.full(256, SEARCH, np.uint8)
        starts = {symbol[0] for symbol in self.symbols}
        for byte in range(128):
            if byte in starts or self.map.bytes_after(bytes([byte]))[:128].any():
                continue
            length, replacement = self.map.match(bytes([byte]), 0)
            if length == 0:
                replacement = bytes([byte])
            if replacement in (b" ", bytes([byte])):
                actions[byte] = BLANK if replacement == b" " else COPY
        return actions

    def block(self, block: Block) -> Block:
        """Return the documents of a block normalised, each ▁ as a blank."""
        how = self.how
        begins, ends = np.zeros(len(block), np.int64), np.zeros(len(block), np.int64)
        out = np.empty(int(1.1 * block.text_bytes()) + 2 * len(block) + 4 * self._longest + 256, np.uint8)
        position = np.zeros(2, np.int64)
        while normalise(
            block.data, block.starts, block.stops, self.map.units, self.map.strings, self._trie, self._ascii,
            self._longest, how.dummy_prefix, how.collapse, how.escape, how.suffix, how.prefix_once, out, begins, ends,
            position,
        ):  # fmt: skip
            longer = np.empty(2 * len(out), np.uint8)
            longer[: position[1]] = out[: position[1]]
            out = longer
        return Block(out, begins, ends, block.open)

    def text(self, text: str | bytes) -> bytes:
        """Return one text normalised, as UTF-8 with each ▁ as a blank."""
        block = self.block(Block.from_texts([text]))
        return block.data[block.starts[0] : block.stops[0]].tobytes()

    def inner(self, piece: str) -> bytes | None:
        """Return a piece as it stands in normalised text; None where it cannot: a blank is always written as ▁."""
        if not self.how.escape:
            return piece.encode()
        return None if " " in piece else piece.replace(SPACE, " ").encode()

    def outer(self, text: bytes) -> str:
        """Return normalised text as sentencepiece writes it."""
        return (text.replace(b" ", SPACE.encode()) if self.how.escape else text).decode("utf-8", "replace")
