"""The smallest units, characters and bytes: nothing is lost, but sequences are long.

Byte-level tokens are written as GPT-2 writes them (Radford et al., 2019): bytes that are printable by themselves stand
for themselves, the others get the characters from U+0100 on, so that a token is a string that any file can hold: a
blank is written Ġ, a line end Ċ.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from functools import cached_property
from typing import Self

import numpy as np

from foreword.arrays import Ints
from foreword.errors import InputError
from foreword.notebook import ShownInNotebook
from foreword.protocols import Parts
from foreword.text.block import Block, blocks_of
from foreword.text.unicode import Cleaning, Form
from foreword.tokens.corpus import Encoded, EncodesBlocks, encode_text, max_ids
from foreword.tokens.kernels import encode_symbols
from foreword.tokens.vocab import END, UNKNOWN, Vocab

CODE_POINTS = 0x110000
REPLACEMENT = "\ufffd"

_PRINTABLE = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
_OTHERS = [byte for byte in range(256) if byte not in _PRINTABLE]

CHARACTER_OF = [chr(byte) if byte in _PRINTABLE else chr(0x100 + _OTHERS.index(byte)) for byte in range(256)]
BYTE_OF = {character: byte for byte, character in enumerate(CHARACTER_OF)}

ALPHABET = sorted(range(256), key=lambda byte: CHARACTER_OF[byte])
"""All bytes in the order of their characters, which is the order of their ids in a byte-level tokenizer."""


def printable(spelling: bytes) -> str:
    """Return the bytes of a token as printable characters, one for each byte."""
    return "".join(CHARACTER_OF[byte] for byte in spelling)


def spelling_of(token: str) -> bytes:
    """Return the bytes of a printable token.

    A token with a character that stands for no byte is its own text, as in ``tokenizers``: vocabularies made by other
    tools hold such tokens, mostly unused ones.
    """
    if all(character in BYTE_OF for character in token):
        return bytes(BYTE_OF[character] for character in token)
    return token.encode()


class CharacterTokenizer(ShownInNotebook, EncodesBlocks):
    """A tokenizer of characters; those not seen in training are ``<unk>``, which decodes to U+FFFD."""

    def __init__(self, *, min_count: int = 1, lowercase: bool = False, form: Form | None = None) -> None:
        self.min_count = min_count
        self.cleaning = Cleaning(form, lowercase)

    def __repr__(self) -> str:
        return f"CharacterTokenizer(min_count={self.min_count})"

    def fit(self, texts: Iterable[str]) -> Self:
        """Learn which characters there are."""
        return self.fit_blocks(blocks_of(texts))

    def fit_blocks(self, blocks: Iterable[Block], *, threads: int | None = None) -> Self:
        """Learn which characters there are; they are numbered by code point."""
        counts: Counter[str] = Counter()
        documents = 0
        for block in blocks:
            documents += len(block) - block.open
            for text in self.cleaning.block(block).strings():
                counts.update(text)
        kept = sorted(character for character, count in counts.items() if count >= self.min_count)
        rare = counts.total() - sum(counts[character] for character in kept)
        self.vocab_ = Vocab([UNKNOWN, END, *kept], [rare, documents, *(counts[character] for character in kept)])
        self.__dict__.pop("_ids", None)
        return self

    def encode_block(self, block: Block) -> Encoded:
        """Encode a block of documents."""
        return _encode(self.cleaning.block(block), True, self._ids, self.vocab.end)

    def decode(self, ids: Iterable[int]) -> str:
        """Return the text of ids."""
        vocab = self.vocab
        return "".join(REPLACEMENT if id == vocab.unknown else vocab[int(id)] for id in ids if id != vocab.end)

    @cached_property
    def _ids(self) -> Ints:
        return character_ids(self.vocab)

    def to_parts(self) -> Parts:
        """Return settings and vocabulary for saving."""
        settings = {"min_count": self.min_count, "lowercase": self.cleaning.lowercase, "form": self.cleaning.form}
        return Parts(dict(settings), {}, self.vocab)

    @classmethod
    def from_parts(cls, parts: Parts) -> Self:
        """Build a saved tokenizer."""
        parts.check_flags("lowercase")
        tokenizer = cls(**parts.settings)  # type: ignore[arg-type]
        tokenizer.vocab_ = parts.needed_vocab(unknown=True)
        return tokenizer


class ByteTokenizer(ShownInNotebook, EncodesBlocks):
    """A tokenizer of bytes: a byte's value is its id; 256 ends a document. Nothing is learnt and nothing is unknown."""

    def __init__(self) -> None:
        self.vocab_ = Vocab([*CHARACTER_OF, END], unknown=None)

    def __repr__(self) -> str:
        return "ByteTokenizer()"

    def fit(self, texts: Iterable[str]) -> Self:
        """Do nothing: all bytes are known."""
        return self

    def fit_blocks(self, blocks: Iterable[Block], *, threads: int | None = None) -> Self:
        """Do nothing: all bytes are known."""
        return self

    def encode(self, text: str | bytes) -> Ints:
        """Return the ids of a text, or of any bytes."""
        return encode_text(self, text)

    def encode_block(self, block: Block) -> Encoded:
        """Encode a block of documents."""
        return _encode(block, False, np.arange(256, dtype=np.int32), self.vocab.end)

    def decode_bytes(self, ids: Iterable[int]) -> bytes:
        """Return the bytes of ids."""
        return bytes(int(id) for id in ids if id != self.vocab.end)

    def decode(self, ids: Iterable[int]) -> str:
        """Return the text of ids; bytes that are not UTF-8 become U+FFFD."""
        return self.decode_bytes(ids).decode("utf-8", "replace")

    def to_parts(self) -> Parts:
        """Return the vocabulary for saving."""
        return Parts({}, {}, self.vocab)

    @classmethod
    def from_parts(cls, parts: Parts) -> Self:
        """Build a saved tokenizer."""
        tokenizer = cls(**parts.settings)
        if parts.vocab != tokenizer.vocab:
            raise InputError("the vocabulary is not that of bytes")
        return tokenizer


def character_ids(vocab: Vocab) -> Ints:
    """Return the id of every code point: int32 (0x110000,), ``<unk>``'s where it has none."""
    ids = np.full(CODE_POINTS, vocab.unknown, np.int32)
    for id, token in enumerate(vocab):
        if len(token) == 1:
            ids[ord(token)] = id
    return ids


def _encode(block: Block, by_character: bool, ids: Ints, end: int) -> Encoded:
    out = np.empty(max_ids(block), np.int32)
    ends = np.empty(len(block), np.int64)
    written = encode_symbols(block.data, block.starts, block.stops, block.open, by_character, ids, end, out, ends)
    return Encoded(out[:written], ends[: len(ends) - block.open])
