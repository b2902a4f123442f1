"""A printable character for every byte, as GPT-2 writes byte-level tokens (Radford et al., 2019).

Bytes that are printable by themselves stand for themselves, the others get the characters from U+0100 on, so that a
token is a string that any file can hold: a blank is written Ġ, a line end Ċ.
"""

from __future__ import annotations

_PRINTABLE = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
_OTHERS = [byte for byte in range(256) if byte not in _PRINTABLE]

CHARACTER_OF = [chr(byte) if byte in _PRINTABLE else chr(0x100 + _OTHERS.index(byte)) for byte in range(256)]
BYTE_OF = {character: byte for byte, character in enumerate(CHARACTER_OF)}

ALPHABET = sorted(range(256), key=lambda byte: CHARACTER_OF[byte])
"""All bytes in the order of their characters, which is the order of their ids in a byte-level tokenizer."""


def printable(spelling: bytes) -> str:
    return "".join(CHARACTER_OF[byte] for byte in spelling)


def spelling_of(token: str) -> bytes:
    """The bytes of a printable token. One with a character that stands for no byte is its own text, as it is to
    ``tokenizers``: vocabularies that others made hold such tokens, unused ones mostly.
    """
    if all(character in BYTE_OF for character in token):
        return bytes(BYTE_OF[character] for character in token)
    return token.encode()
