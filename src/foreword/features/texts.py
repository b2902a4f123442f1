"""Whatever holds texts, as small blocks of whole documents, ready to be cut into terms."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import TypeAlias

import numpy as np

from foreword.checks import check_not_string
from foreword.errors import InputError
from foreword.text.block import Block

Texts: TypeAlias = "Iterable[str | Block] | Block"
"""Strings, one document each, or blocks of documents as ``read_blocks`` gives them."""

BATCH_BYTES = 128 << 10
"""Text that is counted at a time: with all that is made of it, it should stay in the cache. 64 KiB to 1 MiB made no
difference that could be measured."""


def document_blocks(texts: Texts, lowercase: bool) -> Iterator[Block]:
    """Blocks of about BATCH_BYTES, none of them open; what is not ASCII is in lower case already if it should be."""
    check_not_string(texts)
    batch: list[str] = []
    done = held = 0  # texts in earlier blocks, characters in this one
    begun: list[bytes] = []  # pieces of a document that goes on in the next block
    for text in [texts] if isinstance(texts, Block) else texts:
        if isinstance(text, str):
            batch.append(text)
            held += len(text) + 1
            if held < BATCH_BYTES:
                continue
        if batch:
            yield _packed(batch, lowercase, done)
            done, held, batch = done + len(batch), 0, []
        if isinstance(text, Block):
            yield from _small_blocks(text, lowercase, begun)
            done += 1
        elif not isinstance(text, str):
            raise InputError(f"text {done} (counted from 0) is a {type(text).__name__}, but should be a string")
    if begun:
        yield Block.from_texts([_lowered(b"".join(begun)) if lowercase else b"".join(begun)])
    if batch:
        yield _packed(batch, lowercase, done)


def _packed(texts: list[str], lowercase: bool, done: int) -> Block:
    """done: the number of the first text, for messages."""
    try:
        if lowercase:
            return Block.from_texts([(text if text.isascii() else text.lower()).encode() for text in texts])
        return Block.from_texts([text.encode() for text in texts])
    except UnicodeEncodeError as error:
        number = done + next(place for place, text in enumerate(texts) if error.object in (text, text.lower()))
        raise InputError(f"text {number} (counted from 0) is not valid Unicode: {error.reason}") from error


def _small_blocks(block: Block, lowercase: bool, begun: list[bytes]) -> Iterator[Block]:
    """A block in small ones. A document that goes on in the next block waits in ``begun`` until it is whole."""
    if begun or block.open or (lowercase and block.data.max(initial=0) >= 0x80):
        block = _rewritten(block, lowercase, begun)
    batches = np.cumsum(block.stops - block.starts) // BATCH_BYTES
    cuts = [0, *(np.flatnonzero(np.diff(batches)) + 1).tolist(), len(block)]
    for first, last in pairwise(cuts):
        if first < last:
            yield Block(block.data, block.starts[first:last], block.stops[first:last])


def _rewritten(block: Block, lowercase: bool, begun: list[bytes]) -> Block:
    view = np.ascontiguousarray(block.data).data
    pieces = [bytes(view[start:stop]) for start, stop in zip(block.starts.tolist(), block.stops.tolist(), strict=True)]
    if begun and pieces and (len(pieces) > 1 or not block.open):
        pieces[0] = b"".join([*begun, pieces[0]])
        begun.clear()
    if block.open and pieces:
        begun.append(pieces.pop())
    return Block.from_texts([_lowered(piece) for piece in pieces] if lowercase else pieces)


def _lowered(piece: bytes) -> bytes:
    return piece if piece.isascii() else piece.decode().lower().encode()
