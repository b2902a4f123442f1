"""Kernels that search a suffix array.

text: the tokens. suffixes: the positions of its suffixes in sorted order. Both are *packed*, in as few bits as the
numbers need: uint8 (n / 8 + 1, bits), where every row holds eight numbers, and the last one none (``packed`` in
``index.py``). The text holds each token plus one, so that the zeros after its end read as -1, less than any token.
Index files of infini-gram are uint8 (n, 1, width) instead: tokens big-endian, and suffixes the byte where each begins
in the text, little-endian. Numba compiles one of the two branches, by the number of dimensions.

firsts: int32 (tokens + 1,); the suffixes that begin with token t are ``suffixes[firsts[t]:firsts[t + 1]]``; or (0,), if
unknown. The occurrences of a *run* of tokens are a range of the suffix array, low to high; one more token narrows it by
binary search for that token alone.

Whatever a damaged file holds, nothing outside the arrays is read.
"""

from __future__ import annotations

import numpy as np

from foreword.arrays import Bytes, Ids, Ints, Longs
from foreword.native.jit import inlined, kernel
from foreword.native.memory import prefetch
from foreword.ngram.kernels_query import read_bits

FEW = 1 << 14
"""Occurrences that are read in batches, which is faster than searching where most differ."""

BATCH = 512
"""Occurrences whose memory is requested together."""

STEP = 16
"""From one occurrence that is always read to the next; those between are not, if the two have the same next token."""


@inlined
def _position(text: Bytes, suffixes: Bytes, index: int) -> int:
    """Return where a suffix begins."""
    if suffixes.ndim == 3:
        byte = 0
        for place in range(suffixes.shape[2] - 1, -1, -1):
            byte = (byte << 8) | suffixes[index, 0, place]
        return byte // text.shape[2]
    return read_bits(suffixes, 0, index, suffixes.shape[1])


@inlined
def _at(text: Bytes, position: int) -> int:
    """Return the token at a position; -1 outside the text."""
    if text.ndim == 3:
        if not 0 <= position < len(text):
            return -1
        token = 0
        for place in range(text.shape[2]):
            token = (token << 8) | text[position, 0, place]
        return token
    if not 0 <= position < 8 * (len(text) - 1):
        return -1
    return read_bits(text, 0, position, text.shape[1]) - 1


@inlined
def _token(text: Bytes, suffixes: Bytes, index: int, depth: int) -> int:
    """Return the token of a suffix at ``depth``; -1, less than any token, where the text has ended."""
    return _at(text, _position(text, suffixes, index) + depth)


@inlined
def _request(text: Bytes, suffixes: Bytes, index: int, depth: int) -> None:
    """Prefetch what ``_token`` will read of the text."""
    position = _position(text, suffixes, index) + depth
    prefetch(text, position * text.shape[2] if text.ndim == 3 else (position * text.shape[1]) >> 3)


@inlined
def _first_not_less(text: Bytes, suffixes: Bytes, low: int, high: int, depth: int, token: int) -> int:
    while low < high:
        middle = (low + high) >> 1
        if _token(text, suffixes, middle, depth) < token:
            low = middle + 1
        else:
            high = middle
    return low


@inlined
def _narrow(text: Bytes, suffixes: Bytes, low: int, high: int, depth: int, token: int) -> tuple[int, int]:
    """Return the range of the suffixes in a range, equal up to ``depth``, whose token there is ``token``."""
    low = _first_not_less(text, suffixes, low, high, depth, token)
    return low, _after(text, suffixes, low, high, depth, token)


@inlined
def _after(text: Bytes, suffixes: Bytes, low: int, high: int, depth: int, token: int) -> int:
    """Return the end of the suffixes from ``low`` on whose token at ``depth`` is ``token``."""
    # Most runs are rare: look near the beginning first.
    step, last = 1, low
    while last < high and _token(text, suffixes, last, depth) == token:
        low_side = last + 1
        last += step
        step *= 2
        if last >= high or _token(text, suffixes, last, depth) != token:
            return _first_not_less(text, suffixes, low_side, min(last, high), depth, token + 1)
    return low


@inlined
def _equal_to(text: Bytes, suffixes: Bytes, index: int, run: Ids, begin: int, end: int, known: int) -> int:
    """Return how many tokens a suffix shares with ``run[begin:end]``; it shares at least ``known``."""
    position, length = _position(text, suffixes, index), end - begin
    while known < length and _at(text, position + known) == run[begin + known]:
        known += 1
    return known


@inlined
def _find(text: Bytes, suffixes: Bytes, firsts: Ints, run: Ids, begin: int, end: int) -> tuple[int, int]:
    """Return the range of the suffixes that begin with ``run[begin:end]``, which is not empty.

    Whole runs are compared: the range of each shorter one would have to be bisected twice.
    """
    if len(firsts):
        low, high = firsts[run[begin]], firsts[run[begin] + 1]
    else:
        low, high = _narrow(text, suffixes, 0, len(suffixes), 0, run[begin])
    length, low_shares, high_shares, stop = end - begin, np.int64(1), np.int64(1), high
    if length == 1:
        return low, high
    while low < high:
        middle = (low + high) >> 1
        shared = _equal_to(text, suffixes, middle, run, begin, end, min(low_shares, high_shares))
        if shared < length and _token(text, suffixes, middle, shared) < run[begin + shared]:
            low, low_shares = middle + 1, shared
        else:
            high, high_shares = middle, shared
    if low >= stop or high_shares < length:
        return low, low
    step, last = 1, low  # as in _after, of which this is the form for whole runs
    while last < stop and _equal_to(text, suffixes, last, run, begin, end, np.int64(1)) == length:
        high, last, step = last + 1, last + step, 2 * step
    stop = min(last, stop)
    while high < stop:
        middle = (high + stop) >> 1
        if _equal_to(text, suffixes, middle, run, begin, end, np.int64(1)) == length:
            high = middle + 1
        else:
            stop = middle
    return low, high


@kernel
def find(text: Bytes, suffixes: Bytes, firsts: Ints, run: Ids) -> tuple[int, int]:
    """Return the range of the suffixes that begin with a run of tokens, which is not empty."""
    return _find(text, suffixes, firsts, run, 0, len(run))


@kernel
def any_outside(ids: Ids, tokens: int) -> bool:
    """Return whether an id is less than 0, or not less than ``tokens``."""
    outside = False
    for index in range(len(ids)):
        outside |= not 0 <= ids[index] < tokens
    return outside


@kernel
def unpack(packed: Bytes, begin: int, out: Longs) -> None:
    """Read the numbers of a packed array from ``begin`` on; there must be as many."""
    for index in range(len(out)):
        out[index] = read_bits(packed, 0, begin + index, packed.shape[1])


@kernel
def match(
    text: Bytes, suffixes: Bytes, firsts: Ints, query: Ids, borders: Longs, begins: Longs, lows: Longs, highs: Longs
) -> None:
    """For each position of a query find the longest run of its tokens that ends there and occurs in the text.

    borders: no run crosses one; the first is 0 and the last the query's length. begins: where each run begins, one
    after its position if not even its one token occurs. lows, highs: its occurrences.

    A run is extended by a token as long as it occurs. Where that fails, tokens are dropped from its beginning, one,
    two, four and so on, until it does, and the last step is bisected: what a run contains occurs wherever it does.
    """
    size = firsts[-1] if len(firsts) else len(suffixes)
    for border in range(len(borders) - 1):
        begin = borders[border]
        low, high = 0, size
        for position in range(borders[border], borders[border + 1]):
            failed = begin - 1
            if position > begin:
                low, high = _narrow(text, suffixes, low, high, position - begin, query[position])
                if low >= high:
                    failed = begin
            if failed == begin or position == begin:
                step = 1
                fits = failed
                low, high = 0, 0
                while low >= high and fits < position:
                    fits = min(fits + step, position)
                    step *= 2
                    low, high = _find(text, suffixes, firsts, query, fits, position + 1)
                    if low >= high:
                        failed = fits
                if low >= high:
                    fits, low, high = position + 1, 0, size
                while fits - failed > 1:
                    middle = (fits + failed) >> 1
                    other_low, other_high = _find(text, suffixes, firsts, query, middle, position + 1)
                    if other_low < other_high:
                        fits, low, high = middle, other_low, other_high
                    else:
                        failed = middle
                begin = fits
            begins[position], lows[position], highs[position] = begin, low, high


@kernel
def first_positions(text: Bytes, suffixes: Bytes, lows: Longs, highs: Longs, lengths: Longs, positions: Longs) -> None:
    """Find where runs, of ``lengths`` tokens, occur first in the text. lows, highs: their ranges; -1 for empty ones.

    A frequent run occurs near the beginning of the text: the first positions are compared with it, as many as it has
    occurrences.
    """
    for index in range(len(lows)):
        low, high, length, first = lows[index], highs[index], lengths[index], -1
        if low < high:
            any = _position(text, suffixes, low)
            for position in range(high - low):
                shared = 0
                while shared < length and _at(text, position + shared) == _at(text, any + shared):
                    shared += 1
                if shared == length:
                    first = position
                    break
            for other in range(low, high if first < 0 else low):
                position = _position(text, suffixes, other)
                if other == low or position < first:
                    first = position
        positions[index] = first


@inlined
def _continued(text: Bytes, suffixes: Bytes, low: int, high: int, depth: int) -> int:
    """Return the first suffix of a range that has a token at ``depth``: at most one, the first, has not."""
    return low + 1 if low < high and _token(text, suffixes, low, depth) < 0 else low


@kernel
def count_next(
    text: Bytes, suffixes: Bytes, lows: Longs, highs: Longs, depths: Longs, tokens: Ids, contexts: Longs, counts: Longs
) -> None:
    """Count how often runs, of ``depths`` tokens, are followed by any token, and by ``tokens``.

    contexts, counts: what is found is added to them.
    """
    for index in range(len(tokens)):
        low = _continued(text, suffixes, lows[index], highs[index], depths[index])
        contexts[index] += highs[index] - low
        low, high = _narrow(text, suffixes, low, highs[index], depths[index], tokens[index])
        counts[index] += high - low


@kernel
def next_tokens(
    text: Bytes, suffixes: Bytes, low: int, high: int, depth: int, limit: int, tokens: Longs, counts: Longs,
    batch: Longs,
) -> int:  # fmt: skip
    """List the tokens, less than ``limit``, that follow a run, in ascending order, with counts; return how many.

    batch: int64 (BATCH + STEP,), workspace.
    """
    low = _continued(text, suffixes, low, high, depth)
    if high - low <= FEW:
        return _next_of_few(text, suffixes, low, high, depth, limit, tokens, counts, batch)
    found = 0
    while low < high and found < len(tokens):
        token = _token(text, suffixes, low, depth)
        if not 0 <= token < limit:
            break
        after = _after(text, suffixes, low, high, depth, token)
        tokens[found], counts[found] = token, after - low
        found += 1
        low = max(after, low + 1)
    return found


@inlined
def _next_of_few(
    text: Bytes, suffixes: Bytes, low: int, high: int, depth: int, limit: int, tokens: Longs, counts: Longs,
    batch: Longs,
) -> int:  # fmt: skip
    """Do so in batches: read every STEP-th occurrence, then again and again the middle between two that differ.

    All that is read is requested before, so that the requests wait for memory together.
    """
    found, last, ending = -1, -1, high - 1
    for begin in range(low, high, BATCH):
        size = min(BATCH, high - begin)
        for index in range(0, size + STEP, STEP):
            _request(text, suffixes, min(begin + index, ending), depth)
        for index in range(0, size + STEP, STEP):
            batch[index] = _token(text, suffixes, min(begin + index, ending), depth)
        step = STEP
        while step > 1:
            half = step >> 1
            for reading in range(2):
                for block in range(0, size, STEP):
                    if batch[block] == batch[block + STEP]:
                        continue
                    for index in range(block, block + STEP, step):
                        middle = min(begin + index + half, ending)
                        if batch[index] == batch[index + step]:
                            batch[index + half] = batch[index]
                        elif reading:
                            batch[index + half] = _token(text, suffixes, middle, depth)
                        else:
                            _request(text, suffixes, middle, depth)
            step = half
        for block in range(0, size, STEP):
            stop = min(block + STEP, size)
            step = stop - block if batch[block] == batch[block + STEP] else 1
            for index in range(block, stop, step):
                if batch[index] != last:
                    last = batch[index]
                    if not 0 <= last < limit or found + 1 == len(tokens):
                        return found + 1
                    found += 1
                    tokens[found], counts[found] = last, 0
                counts[found] += step
    return found + 1
