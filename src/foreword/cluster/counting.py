"""Words counted on Ray: each task counts a stretch of the text, and counts are merged, a few at a time.

The counts of a text are the sums of its parts', whatever way it is cut, and where a word was first seen is kept as the
stretch and the place in it; so vocabularies and tokenizers made of them are those of one machine, to the byte.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from foreword.cluster.connect import connected, ray_module
from foreword.cluster.gather import result_of, stand_in, wait_for_all
from foreword.cluster.segments import STRETCH_BYTES, Stretch, read_stretch, stretches_of
from foreword.protocols import Meter
from foreword.text.block import Block
from foreword.text.sources import Reading, no_text
from foreword.tokens.bpe import DEFAULT_MEMORY, BPETokenizer
from foreword.tokens.counting import Counted, count_pieces_of, merge_counted
from foreword.tokens.words import WordTokenizer

STRETCH_SHIFT = 40
"""A first place is the number of its stretch times 2⁴⁰, and a byte of it: eight million stretches of a terabyte."""

TOGETHER = 8
"""Counts that one task merges."""


class PieceTokenizer(Protocol):
    """A tokenizer that learns from counts: words, and byte-pair encoding."""

    @property
    def piece_pattern(self) -> int: ...
    def prepare(self, block: Block) -> Block: ...


def fit_tokenizer(
    tokenizer: BPETokenizer | WordTokenizer,
    names: Sequence[str],
    reading: Reading,
    *,
    address: str | None = None,
    memory: int = DEFAULT_MEMORY,
    stretch_bytes: int = STRETCH_BYTES,
    meter: Meter | None = None,
) -> int:
    """What ``fit_blocks`` does, from files that the cluster at ``address`` counts; the bytes of their text."""
    with connected(address):
        stretches = stretches_of(names, reading, stretch_bytes)
        counted, size = count_on_ray(tokenizer, stretches, reading, meter)
    if not counted.counts[0]:
        raise no_text(list(names))
    if isinstance(tokenizer, BPETokenizer):
        tokenizer.fit_counted(counted, memory=memory, meter=meter)
    else:
        tokenizer.fit_counted(counted)
    return size


def count_on_ray(
    tokenizer: PieceTokenizer, stretches: Sequence[Stretch], reading: Reading, meter: Meter | None = None
) -> tuple[Counted, int]:
    """Every distinct piece of the text with its count, and the bytes of the text; Ray has to be connected."""
    ray = ray_module()
    count, merge = ray.remote(_count).options(num_returns=2, scheduling_strategy="SPREAD"), ray.remote(_merge)
    rest = ray.put(tokenizer), os.getcwd(), reading  # noqa: PTH109
    counting = [count.remote(stretch, *rest) for stretch in stretches]
    refs, sizes = [each[0] for each in counting], [each[1] for each in counting]
    wait_for_all(sizes, meter, "counting words")
    del counting
    while len(refs) > 1:
        refs = [merge.remote(*refs[first : first + TOGETHER]) for first in range(0, len(refs), TOGETHER)]
    found: Counted = result_of(refs[0])
    return own(found), sum(map(result_of, sizes))


def own(counted: Counted) -> Counted:
    """A copy: what Ray shares may not be written to, and kernels would be compiled once more for such arrays."""
    parts: list[Any] = [counted.data, counted.offsets, counted.counts, counted.firsts]
    return Counted(*map(np.array, parts))


# What a worker does


def _count(stretch: Stretch, tokenizer: PieceTokenizer, folder: str, reading: Reading) -> tuple[Counted, int]:
    stand_in(folder)
    size = 0

    def prepared() -> Iterator[Block]:
        nonlocal size
        for block in read_stretch(stretch, reading):
            size += block.text_bytes()
            yield tokenizer.prepare(block)

    counted = count_pieces_of(prepared(), tokenizer.piece_pattern, threads=1)
    return replace(counted, firsts=counted.firsts + (stretch.number << STRETCH_SHIFT)), size


def _merge(*parts: Any) -> Counted:
    return merge_counted(map(own, parts))
