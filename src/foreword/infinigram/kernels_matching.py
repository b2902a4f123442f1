"""Kernels that search a suffix array.

text: the tokens (n,), or *packed*, uint8 (n, width), each token big-endian. suffixes: int32 (n,), the positions of its
suffixes in sorted order; or packed, uint8 (n, width), each the byte where it begins in a packed text, little-endian.
firsts: int32 (tokens + 1,); the suffixes that begin with token t are ``suffixes[firsts[t]:firsts[t + 1]]``; or (0,), if
unknown. The occurrences of a *run* of tokens are a range of the suffix array, low to high; one more token narrows it by
binary search for that token alone.

Whatever a damaged file holds, nothing outside the arrays is read.
"""

from __future__ import annotations

from foreword.arrays import Ids, Ints, Longs
from foreword.native.jit import inlined, kernel
from foreword.native.memory import prefetch

FEW = 1 << 14
"""Occurrences that are read one after another, which is faster than searching where most differ."""

AHEAD = 32
"""Occurrences between a prefetch and its use."""


@inlined
def _position(text: Ids, suffixes: Ints, index: int) -> int:
    """Return where a suffix begins; Numba compiles one of the two branches, by the dimensions."""
    if suffixes.ndim == 2:
        byte = 0
        for place in range(suffixes.shape[1] - 1, -1, -1):
            byte = (byte << 8) | suffixes[index, place]
        return byte // text.shape[1]
    return suffixes[index]


@inlined
def _at(text: Ids, position: int) -> int:
    if text.ndim == 2:
        token = 0
        for place in range(text.shape[1]):
            token = (token << 8) | text[position, place]
        return token
    return text[position]


@inlined
def _token(text: Ids, suffixes: Ints, index: int, depth: int) -> int:
    """Return the token of a suffix at ``depth``; -1, less than any token, where the text has ended."""
    position = _position(text, suffixes, index) + depth
    return _at(text, position) if 0 <= position < len(text) else -1


@inlined
def _first_not_less(text: Ids, suffixes: Ints, low: int, high: int, depth: int, token: int) -> int:
    while low < high:
        middle = (low + high) >> 1
        if _token(text, suffixes, middle, depth) < token:
            low = middle + 1
        else:
            high = middle
    return low


@inlined
def _narrow(text: Ids, suffixes: Ints, low: int, high: int, depth: int, token: int) -> tuple[int, int]:
    """Return the range of the suffixes in a range, equal up to ``depth``, whose token there is ``token``."""
    low = _first_not_less(text, suffixes, low, high, depth, token)
    return low, _after(text, suffixes, low, high, depth, token)


@inlined
def _after(text: Ids, suffixes: Ints, low: int, high: int, depth: int, token: int) -> int:
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
def _find(text: Ids, suffixes: Ints, firsts: Ints, run: Ids, begin: int, end: int) -> tuple[int, int]:
    """Return the range of the suffixes that begin with ``run[begin:end]``, which is not empty."""
    if len(firsts):
        low, high = firsts[run[begin]], firsts[run[begin] + 1]
    else:
        low, high = _narrow(text, suffixes, 0, len(suffixes), 0, run[begin])
    for position in range(begin + 1, end):
        if low >= high:
            break
        low, high = _narrow(text, suffixes, low, high, position - begin, run[position])
    return low, high


@kernel
def find(text: Ids, suffixes: Ints, firsts: Ints, run: Ids) -> tuple[int, int]:
    """Return the range of the suffixes that begin with a run of tokens, which is not empty."""
    return _find(text, suffixes, firsts, run, 0, len(run))


@kernel
def match(
    text: Ids, suffixes: Ints, firsts: Ints, query: Ids, borders: Longs, begins: Longs, lows: Longs, highs: Longs
) -> None:
    """For each position of a query find the longest run of its tokens that ends there and occurs in the text.

    borders: no run crosses one; the first is 0 and the last the query's length. begins: where each run begins, one
    after its position if not even its one token occurs. lows, highs: its occurrences.

    A run is extended by a token as long as it occurs. Where that fails, tokens are dropped from its beginning, one,
    two, four and so on, until it does, and the last step is bisected: what a run contains occurs wherever it does.
    """
    for border in range(len(borders) - 1):
        begin = borders[border]
        low, high = 0, len(suffixes)
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
                    fits, low, high = position + 1, 0, len(suffixes)
                while fits - failed > 1:
                    middle = (fits + failed) >> 1
                    other_low, other_high = _find(text, suffixes, firsts, query, middle, position + 1)
                    if other_low < other_high:
                        fits, low, high = middle, other_low, other_high
                    else:
                        failed = middle
                begin = fits
            begins[position], lows[position], highs[position] = begin, low, high


@inlined
def _continued(text: Ids, suffixes: Ints, low: int, high: int, depth: int) -> int:
    """Return the first suffix of a range that has a token at ``depth``: at most one, the first, has not."""
    return low + 1 if low < high and _token(text, suffixes, low, depth) < 0 else low


@kernel
def count_next(
    text: Ids, suffixes: Ints, lows: Longs, highs: Longs, depths: Longs, tokens: Ids, contexts: Longs, counts: Longs
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
    text: Ids, suffixes: Ints, low: int, high: int, depth: int, limit: int, tokens: Longs, counts: Longs
) -> int:
    """List the tokens, less than ``limit``, that follow a run, in ascending order, with counts; return how many."""
    found = 0
    low = _continued(text, suffixes, low, high, depth)
    few = high - low <= FEW
    while low < high and found < len(tokens):
        token = _token(text, suffixes, low, depth)
        if not 0 <= token < limit:
            break
        if few:
            after = low
            while after < high and _token(text, suffixes, after, depth) == token:
                if after + AHEAD < high:
                    position = min(max(_position(text, suffixes, after + AHEAD) + depth, 0), len(text) - 1)
                    prefetch(text, position * (text.size // len(text)))
                after += 1
        else:
            after = _after(text, suffixes, low, high, depth, token)
        tokens[found], counts[found] = token, after - low
        found += 1
        low = max(after, low + 1)
    return found
