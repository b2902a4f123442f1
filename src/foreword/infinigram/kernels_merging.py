"""Kernels that sort a text in chunks, from its end to its beginning: ``chunks.py`` has the method.

text: the tokens (n,). begin, end: of the chunk; the *tail* is what follows it. greater: uint8 (n // 8 + 1,), one bit
for each position, whether its suffix is greater than the tail. suffixes: int32 (m,), the sorted suffixes of the chunk,
by their positions in it.
"""

from __future__ import annotations

from foreword.arrays import Bytes, Ids, Ints, Longs
from foreword.native.jit import inlined, kernel
from foreword.native.memory import prefetch

SHIFT = 8
"""Ranks between two hints, as a power of two: between them, ranks differ in their last byte alone."""


@inlined
def _bit(bits: Bytes, position: int) -> bool:
    return (bits[position >> 3] >> (position & 7)) & 1 == 1


@inlined
def _set_bit(bits: Bytes, position: int, value: bool) -> None:
    mask = 1 << (position & 7)
    bits[position >> 3] = (bits[position >> 3] & ~mask) | (mask if value else 0)


@kernel
def compare_to_tail(text: Ids, begin: int, end: int, greater: Bytes, lengths: Ints) -> None:
    """Set ``greater`` for the positions of a chunk; that of the tail's own positions is known.

    The Z-algorithm gives the length of the common prefix of each suffix and the tail. Where it reaches the end of the
    chunk, the tail is compared with a suffix of itself. lengths: int32 (m,), workspace.
    """
    size = min(end - begin, len(text) - end)  # of the tail, as far as a comparison within the chunk can reach
    left, right = 0, 0
    for offset in range(1, size):
        length = min(lengths[offset - left], right - offset) if offset < right else 0
        while offset + length < size and text[end + offset + length] == text[end + length]:
            length += 1
        lengths[offset] = length
        if offset + length > right:
            left, right = offset, offset + length
    left, right = begin, begin
    for position in range(begin, end):
        length = 0
        if position < right:
            length = right - position
            if position - left < size and position > left:
                length = min(length, lengths[position - left])
        while length < size and position + length < end and text[position + length] == text[end + length]:
            length += 1
        if position + length > right:
            left, right = position, position + length
        if end + length == len(text):
            is_greater = True  # the tail is a prefix of the suffix
        elif position + length == end:
            is_greater = not _bit(greater, end + length)
        else:
            is_greater = text[position + length] > text[end + length]
        _set_bit(greater, position, is_greater)


@kernel
def rename(text: Ids, begin: int, end: int, greater: Bytes, renamed: Ids) -> int:
    """Rename the tokens of a chunk so that its suffixes sort as those of the whole text do; return how many are less
    than the tail.

    The last token becomes unique. Equal ones before it are less if what follows them is less than the tail, which is
    what follows the last one, and else greater.
    """
    last, less = text[end - 1], 0
    for position in range(begin, end):
        less += not _bit(greater, position)
        token = text[position]
        if token > last or (token == last and position + 1 < end and _bit(greater, position + 1)):
            token += 2
        renamed[position - begin] = token
    renamed[end - 1 - begin] = last + 1
    return less


@kernel
def link(suffixes: Ints, ranks: Ints, last: int) -> None:
    """Compute the rank of each suffix of the chunk, and replace each, in sorted order, by the rank of what follows it.

    last: the rank of the tail, which is what follows the last suffix.
    """
    for rank in range(len(suffixes)):
        if rank + 32 < len(suffixes):
            prefetch(ranks, suffixes[rank + 32])
        ranks[suffixes[rank]] = rank
    for rank in range(len(suffixes)):
        if rank + 32 < len(suffixes):
            prefetch(ranks, suffixes[rank + 32])
        suffix = suffixes[rank] + 1
        suffixes[rank] = ranks[suffix] if suffix < len(suffixes) else last


@kernel
def make_hints(after: Ints, firsts: Ints, hinted: Longs, hints: Ints) -> None:
    """Index ``after`` for frequent tokens: the first suffix of a token that a rank of b · 2^SHIFT or more follows.

    hinted: the tokens. hints: int32 (tokens, m >> SHIFT + 2).
    """
    for row in range(len(hinted)):
        index, stop = firsts[hinted[row]], firsts[hinted[row] + 1]
        for block in range(hints.shape[1]):
            while index < stop and after[index] < block << SHIFT:
                index += 1
            hints[row, block] = index


@inlined
def _compare(text: Ids, suffix: int, end: int, other: int, length: int, greater: Bytes) -> tuple[int, bool]:
    """Compare a suffix of the chunk with one of the tail, both equal up to ``length``.

    Return their common length, within the chunk, and whether the suffix of the chunk is less.
    """
    length = min(length, end - suffix)
    while suffix + length < end and other + length < len(text) and text[suffix + length] == text[other + length]:
        length += 1
    if other + length == len(text):
        return length, False
    if suffix + length == end:
        return length, _bit(greater, other + length)
    return length, text[suffix + length] < text[other + length]


@kernel
def rank_in_chunk(text: Ids, begin: int, end: int, greater: Bytes, suffixes: Ints, other: int) -> int:
    """Return how many suffixes of the chunk are less than a suffix of the tail, by binary search."""
    low, high, low_length, high_length = 0, len(suffixes), 0, 0
    while low < high:
        middle = (low + high) >> 1
        length, is_less = _compare(text, begin + suffixes[middle], end, other, min(low_length, high_length), greater)
        if is_less:
            low, low_length = middle + 1, length
        else:
            high, high_length = middle, length
    return low


@kernel
def rank_tail(
    text: Ids, firsts: Ints, after: Ints, last_bytes: Bytes, rows: Ints, hints: Ints, last: Longs, greater: Bytes,
    lanes: Longs, ranks: Longs, gaps: Ints, greater_than_chunk: Bytes,
) -> None:  # fmt: skip
    """Count, for every suffix of the chunk, the tail's suffixes that come just before it.

    The rank of a suffix of the tail among those of the chunk follows from the rank of the suffix after it: among the
    chunk's suffixes with the same first token, those are less that are followed by a lower rank. That is a walk from
    the end of the tail to its beginning, in which every step waits for memory: so several lanes walk at once.

    firsts: int32 (tokens + 1,), the chunk's suffixes of each first token. after: int32 (m,), see ``link``; last_bytes:
    uint8 (m,), of its numbers. rows: int32 (tokens,), the row of ``hints`` of a token, -1 if it has none. last: the
    token and the rank of the chunk's last suffix, the rank of the tail, and that of the chunk itself. lanes: int64
    (lanes + 1,), the borders of the lanes. ranks: int64 (lanes,), the rank of the suffix at the end of each. gaps:
    int32 (m + 1,), which is added to. greater_than_chunk: set to whether the suffixes of the tail are greater.
    """
    count = len(ranks)
    longest = 0
    for lane in range(count):
        longest = max(longest, lanes[lane + 1] - lanes[lane])
    last_token, last_rank, tail_rank, own = last[0], last[1], last[2], last[3]
    for step in range(longest + 1):
        for lane in range(count):  # what the last step has found, whose memory has arrived by now
            position = lanes[lane + 1] - step
            if step > 0 and position >= lanes[lane]:
                gaps[ranks[lane]] += 1
                _set_bit(greater_than_chunk, position, ranks[lane] > own)
            if position > lanes[lane]:
                row = rows[text[position - 1]]
                if row >= 0:
                    prefetch(last_bytes, hints[row, ranks[lane] >> SHIFT])
        for lane in range(count):
            position = lanes[lane + 1] - step - 1
            if position < lanes[lane]:
                continue
            token, rank = text[position], ranks[lane]
            row = rows[token]
            if row >= 0:
                low, high, last_byte = hints[row, rank >> SHIFT], hints[row, (rank >> SHIFT) + 1], rank & 255
                while low < high:
                    middle = (low + high) >> 1
                    if last_bytes[middle] < last_byte:
                        low = middle + 1
                    else:
                        high = middle
            else:
                low, high = firsts[token], firsts[token + 1]
                while low < high:
                    middle = (low + high) >> 1
                    if after[middle] < rank:
                        low = middle + 1
                    else:
                        high = middle
            if rank == tail_rank and token == last_token and _bit(greater, position + 1):
                low = last_rank + 1  # the tail, which follows the chunk's last suffix, is less than what follows here
            ranks[lane] = low
            prefetch(gaps, low)
            if position > lanes[lane]:
                row = rows[text[position - 1]]
                if row >= 0:
                    prefetch(hints, row * hints.shape[1] + (low >> SHIFT))


@kernel
def compare_to_chunk(suffixes: Ints, begin: int, greater: Bytes) -> None:
    """Set whether each suffix of the chunk is greater than the whole chunk: if it comes later in sorted order."""
    rank = 0
    while suffixes[rank] != 0:
        rank += 1
    for later in range(rank + 1, len(suffixes)):
        _set_bit(greater, begin + suffixes[later], True)


@kernel
def interleave(
    suffixes: Ints, gaps: Ints, borders: Longs, indices: Longs, waiting: Longs, first: int, merged: Ints
) -> None:
    """Merge the sorted chunks: write the next ``len(merged)`` suffixes of the text.

    Before the next suffix of a chunk come as many of the chunks to its right as its gap says. suffixes: int32 (n,),
    those of each chunk where it is in the text. gaps: int32 (n + chunks,), shifted by one more for each chunk.
    borders: int64 (chunks + 1,). indices, waiting: int64 (chunks,), the state: the next suffix of each chunk, and how
    much of its gap is left. first: whether this is the beginning of the merge.
    """
    chunks = len(indices)
    if first:
        for chunk in range(chunks):
            indices[chunk] = 0
            waiting[chunk] = gaps[borders[chunk] + chunk]
    for place in range(len(merged)):
        chunk = 0
        while chunk < chunks - 1 and waiting[chunk] > 0:
            waiting[chunk] -= 1
            chunk += 1
        begin = borders[chunk]
        merged[place] = begin + suffixes[begin + indices[chunk]]
        indices[chunk] += 1
        waiting[chunk] = gaps[begin + chunk + indices[chunk]]
