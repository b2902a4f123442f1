"""Models of a ``tokenizer.json`` in their plain form: the ids of one piece. ``StepTokenizer`` caches them.

    WordPiece   the longest token that the piece begins with, then the longest ``##token`` that follows, and so on
                (Schuster and Nakajima, 2012); the whole piece is unknown where none fits
    BPE         with the prefixes and suffixes that mark a token's place in the word
    WordLevel   the piece itself

Unigram is the best path of ``SentencePieceTokenizer``.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

PieceModel: TypeAlias = Callable[[str], list[int]]


@dataclass(frozen=True, slots=True)
class WordPiece:
    """vocab: token -> id. prefix: of tokens that do not begin a word. longest: characters of a known word."""

    vocab: Mapping[str, int]
    unknown: int
    prefix: str = "##"
    longest: int = 100

    def __call__(self, piece: str) -> list[int]:
        """Return the ids of a piece."""
        ids: list[int] = []
        start = 0
        while start < len(piece) <= self.longest:
            prefix = self.prefix if start else ""
            for stop in range(len(piece), start, -1):
                if (id := self.vocab.get(prefix + piece[start:stop])) is not None:
                    ids.append(id)
                    start = stop
                    break
            else:
                return [self.unknown]
        return ids if len(piece) <= self.longest else [self.unknown]


@dataclass(frozen=True, slots=True)
class BPE:
    """Byte-pair encoding.

    merges: pairs of ids -> rank and merged id. unknown: id of a character without a token, None to leave it out.
    fuse: make one unknown token of adjacent ones. bytes_of: ids of the 256 bytes, which spell such a character instead;
    or empty. prefix, suffix: of tokens that do not begin a word, and that end one.
    whole: a piece that is a token is that token, whatever the merges make of it.
    """

    vocab: Mapping[str, int]
    merges: Mapping[tuple[int, int], tuple[int, int]]
    unknown: int | None = None
    fuse: bool = False
    bytes_of: Sequence[int] = ()
    prefix: str = ""
    suffix: str = ""
    whole: bool = False

    def __call__(self, piece: str) -> list[int]:
        """Return the ids of a piece: apply the merge of the lowest rank, leftmost first, until there is none."""
        if self.whole and piece in self.vocab:
            return [self.vocab[piece]]
        symbols = self._characters(piece)
        while pairs := [
            (self.merges[pair], at) for at, pair in enumerate(itertools.pairwise(symbols)) if pair in self.merges
        ]:
            (_, merged), at = min(pairs, key=lambda found: (found[0][0], found[1]))
            symbols[at : at + 2] = [merged]
        return symbols

    def _characters(self, piece: str) -> list[int]:
        symbols: list[int] = []
        pending = False  # an unknown character that the next one may join
        for number, character in enumerate(piece, 1):
            spelt = (self.prefix if number > 1 else "") + character + (self.suffix if number == len(piece) else "")
            id = self.vocab.get(spelt)
            if id is not None:
                symbols.append(id)
                pending = False
            elif self.bytes_of:
                symbols += [self.bytes_of[byte] for byte in spelt.encode()]
            elif self.unknown is not None:
                if not (pending and self.fuse):
                    symbols.append(self.unknown)
                pending = True
        return symbols


@dataclass(frozen=True, slots=True)
class WordLevel:
    """vocab: token -> id. unknown: id of any other piece."""

    vocab: Mapping[str, int]
    unknown: int

    def __call__(self, piece: str) -> list[int]:
        """Return the id of a piece."""
        return [self.vocab.get(piece, self.unknown)]
