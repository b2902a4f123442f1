"""A labelled text, counted: the dictionary that fastText's classifier begins with, and each line's labels."""

from __future__ import annotations

import numpy as np

from foreword.arrays import Bytes, Ints, Longs
from foreword.errors import InputError
from foreword.fasttext.kernels_count import count_words
from foreword.fasttext.lines import END, PREFIX, Dictionary, joined
from foreword.text.block import Block
from foreword.tokens.counting import Counted
from foreword.tokens.strings import BATCH, StringTable
from foreword.vectors.words import frozen


def count_lines(block: Block, marks: list[list[str]], min_count: int) -> tuple[Dictionary, Ints, Longs]:
    """The dictionary of a text and its labels, and each line's labels as places among them."""
    data, offsets, counts = words_by_frequency(block, min_count)
    seen: dict[str, int] = {}
    for line in marks:
        for label in line:
            seen[label] = seen.get(label, 0) + 1
    names = sorted(seen, key=lambda label: -seen[label])
    for name in names:
        if not name or any(character.isspace() for character in name):
            raise InputError(f"the label {name!r} is empty or has a blank in it, which fastText's lines cannot hold")
    place = {name: number for number, name in enumerate(names)}
    ends = np.cumsum([0, *map(len, marks)], dtype=np.int64)
    flat = np.array([place[label] for line in marks for label in line], np.int32)
    label_data, label_offsets = joined([PREFIX + name.encode() for name in names])
    dictionary = Dictionary(
        np.concatenate((data, label_data)),
        np.concatenate((offsets, label_offsets[1:] + len(data))),
        np.concatenate((counts, np.array([seen[name] for name in names], np.int64))),
        len(names),
    )
    return dictionary, flat, ends


def words_by_frequency(block: Block, min_count: int) -> tuple[Bytes, Longs, Longs]:
    """The words between fastText's separators, by falling count, as data, offsets and counts; ``</s>``, which ends
    every line, is one of them.

    Words that look like labels are left out, as a line's own labels are given beside it.
    """
    table = StringTable()
    table.add(*joined([END]), np.zeros(1, np.int64), np.full(1, -1))  # number 1, before all that come as often
    position = np.array([0, 0, table.size], np.int64)
    batch, keys = np.empty(BATCH * 4, np.int64), np.empty(BATCH * 4, np.uint64)
    while need := count_words(
        frozen(block.data), block.starts, block.stops, table.slots, table.arena, table.starts, *table.tallies,
        batch, keys, position,
    ):  # fmt: skip
        table.grow(int(position[2]), need)
    table.size = int(position[2])
    counted = Counted.of(table)
    counted.counts[1] = len(block)
    kept = counted.counts >= min_count
    kept[0], kept[1] = False, True
    kept[_like_labels(counted)] = False
    order = counted.by_frequency(np.flatnonzero(kept))
    return *counted.gather(order), counted.counts[order]


def _like_labels(counted: Counted) -> list[int]:
    first, prefix = counted.offsets[:-1], np.frombuffer(PREFIX, np.uint8)
    long = np.flatnonzero(np.diff(counted.offsets) >= len(prefix))
    alike = long[counted.data[first[long]] == prefix[0]].tolist()
    return [number for number in alike if np.array_equal(counted.data[first[number] :][: len(prefix)], prefix)]
