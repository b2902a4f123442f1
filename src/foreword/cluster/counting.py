"""Words counted on Ray: each task counts a segment of the text, and counts are merged, a few at a time.

The counts of a text are the sums of those of its segments, and the first occurrence of a word is recorded as a segment
and an offset in it; so vocabularies and tokenizers made of them are those of one machine, to the byte.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from foreword.cluster.connect import change_folder, connected, ray_module, result_of, wait_for_all
from foreword.protocols import Meter
from foreword.text.block import Block
from foreword.text.segments import SEGMENT_BYTES, FileSegment, read_segment, segments_of
from foreword.text.sources import Reading, no_text
from foreword.tokens.bpe import DEFAULT_MEMORY, BPETokenizer
from foreword.tokens.counting import Counted, count_pieces_of, merge_counted
from foreword.tokens.merges import Vetoed
from foreword.tokens.words import WordTokenizer

SEGMENT_SHIFT = 40
"""A first occurrence is the number of its segment times 2⁴⁰ plus an offset: eight million segments of a terabyte."""

TOGETHER = 8
"""How many counts one task merges."""


class PieceTokenizer(Protocol):
    """A tokenizer that learns from counts: words, and byte-pair encoding."""

    @property
    def piece_pattern(self) -> int:
        """Return which pattern cuts a text into pieces."""

    def prepare(self, block: Block) -> Block:
        """Clean a block before it is cut."""


def fit_tokenizer(
    tokenizer: BPETokenizer | WordTokenizer,
    names: Sequence[str],
    reading: Reading,
    *,
    address: str | None = None,
    memory: int = DEFAULT_MEMORY,
    segment_bytes: int = SEGMENT_BYTES,
    veto: Vetoed | None = None,
    meter: Meter | None = None,
) -> int:
    """Do what ``fit_blocks`` does, from files that the cluster at ``address`` counts; return the bytes of text."""
    with connected(address):
        segments = segments_of(names, reading, segment_bytes)
        counted, size = count_on_ray(tokenizer, segments, reading, meter)
    if not counted.counts[0]:
        raise no_text(list(names))
    if isinstance(tokenizer, BPETokenizer):
        tokenizer.fit_counted(counted, memory=memory, veto=veto, meter=meter)
    else:
        tokenizer.fit_counted(counted)
    return size


def count_on_ray(
    tokenizer: PieceTokenizer, segments: Sequence[FileSegment], reading: Reading, meter: Meter | None = None
) -> tuple[Counted, int]:
    """Return every distinct piece of the text with its count, and the bytes of the text. Ray must be connected."""
    ray = ray_module()
    count, merge = ray.remote(_count).options(num_returns=2, scheduling_strategy="SPREAD"), ray.remote(_merge)
    rest = ray.put(tokenizer), os.getcwd(), reading  # noqa: PTH109
    counting = [count.remote(segment, *rest) for segment in segments]
    refs, sizes = [each[0] for each in counting], [each[1] for each in counting]
    wait_for_all(sizes, meter, "counting words")
    del counting
    while len(refs) > 1:
        refs = [merge.remote(*refs[first : first + TOGETHER]) for first in range(0, len(refs), TOGETHER)]
    found: Counted = result_of(refs[0])
    return own(found), sum(map(result_of, sizes))


def own(counted: Counted) -> Counted:
    """Copy the counts: arrays that Ray shares are read-only, and kernels would be compiled again for them."""
    parts: list[Any] = [counted.data, counted.offsets, counted.counts, counted.firsts]
    return Counted(*map(np.array, parts))


# On a worker


def _count(segment: FileSegment, tokenizer: PieceTokenizer, folder: str, reading: Reading) -> tuple[Counted, int]:
    change_folder(folder)
    size = 0

    def prepared() -> Iterator[Block]:
        nonlocal size
        for block in read_segment(segment, reading):
            size += block.text_bytes()
            yield tokenizer.prepare(block)

    counted = count_pieces_of(prepared(), tokenizer.piece_pattern, threads=1)
    return replace(counted, firsts=counted.firsts + (segment.number << SEGMENT_SHIFT)), size


def _merge(*parts: Any) -> Counted:
    return merge_counted(map(own, parts))
