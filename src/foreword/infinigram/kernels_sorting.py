"""Kernels of induced sorting, in the order in which ``suffixes.py`` calls them.

A suffix is S-type if it is less than the suffix after it, else L-type; a leftmost S-type suffix (LMS) follows an
L-type one. The end of the text counts as the smallest token. A *bucket* is the range of the suffix array that holds
the suffixes of one first token: L-type ones first, then S-type ones.

text: the tokens (n,). suffixes: int32 (n,), the workspace that becomes the suffix array. starts, ends: int32 (tokens,),
the free end of each bucket, which the kernels move. In ``suffixes`` 0 is an empty entry, since suffix 0 induces
nothing, and ~j is suffix j set aside for the next pass.
"""

from __future__ import annotations

from foreword.arrays import Ids, Ints
from foreword.native.jit import inlined, kernel
from foreword.native.memory import prefetch

AHEAD = 24
"""Entries between a prefetch and its use."""


@kernel
def count_tokens(text: Ids, counts: Ints) -> None:
    """Count every token of the text."""
    for token in text:
        counts[token] += 1


@kernel
def place_lms(text: Ids, suffixes: Ints, ends: Ints, placed: Ints) -> int:
    """Put LMS suffixes at the ends of their buckets, in any order; return how many, and in ``placed`` of each token."""
    count = 0
    after, after_is_s = text[len(text) - 1], False
    for position in range(len(text) - 2, -1, -1):
        token = text[position]
        is_s = token < after or (token == after and after_is_s)
        if after_is_s and not is_s:
            ends[after] -= 1
            suffixes[ends[after]] = position + 1
            placed[after] += 1
            count += 1
        after, after_is_s = token, is_s
    return count


@inlined
def _prefetch_before(text: Ids, suffix: int) -> None:
    """Request the tokens before a suffix, whether it is set aside or not."""
    position = suffix if suffix > 0 else ~suffix
    prefetch(text, max(position - 1, 0))


@kernel
def induce_lms(text: Ids, suffixes: Ints, starts: Ints, ends: Ints) -> None:
    """Sort the LMS substrings: induce L-type suffixes from the placed LMS ones, and from these LMS ones again.

    What has induced is removed. At the end only the LMS suffixes are left, set aside, in the order of the substrings
    that run from each to the next.
    """
    n = len(text)
    last = text[n - 1]
    suffixes[starts[last]] = n - 1 if text[n - 2] >= last else ~(n - 1)
    starts[last] += 1
    for index in range(n):
        if index + AHEAD < n:
            _prefetch_before(text, suffixes[index + AHEAD])
        suffix = suffixes[index]
        if suffix > 0:
            suffixes[index] = 0
            suffix -= 1
            token = text[suffix]
            suffixes[starts[token]] = suffix if suffix > 0 and text[suffix - 1] >= token else ~suffix
            starts[token] += 1
        elif suffix < 0:
            suffixes[index] = ~suffix
    for index in range(n - 1, -1, -1):
        if index >= AHEAD:
            _prefetch_before(text, suffixes[index - AHEAD])
        suffix = suffixes[index]
        if suffix > 0:
            suffixes[index] = 0
            suffix -= 1
            token = text[suffix]
            ends[token] -= 1
            suffixes[ends[token]] = ~suffix if suffix > 0 and text[suffix - 1] > token else suffix


@kernel
def gather_lms(suffixes: Ints) -> None:
    """Move the LMS suffixes that ``induce_lms`` has left to the beginning, and mark all other entries with -1."""
    count = 0
    for index in range(len(suffixes)):
        suffix = suffixes[index]
        if suffix < 0:
            suffixes[count] = ~suffix
            count += 1
    for index in range(count, len(suffixes)):
        suffixes[index] = -1


@kernel
def name_lms(text: Ids, suffixes: Ints, count: int) -> int:
    """Name the sorted LMS substrings by rank, equal ones alike; return how many names there are.

    The names are written to the last ``count`` entries in the order of the text: the reduced text. On the way, entry
    ``count + position // 2`` holds the length, then the name, of the substring at a position: LMS suffixes are at least
    two apart.
    """
    n = len(text)
    after, after_is_s, end = text[n - 1], False, n  # the last substring ends one after the text, which no other does
    for position in range(n - 2, -1, -1):
        token = text[position]
        is_s = token < after or (token == after and after_is_s)
        if after_is_s and not is_s:
            suffixes[count + ((position + 1) >> 1)] = end - position
            end = position + 1
        after, after_is_s = token, is_s
    name = -1
    previous, previous_length = 0, -1
    for index in range(count):
        if index + AHEAD < count:
            prefetch(text, suffixes[index + AHEAD])
            prefetch(suffixes, count + (suffixes[index + AHEAD] >> 1))
        suffix = suffixes[index]
        length = suffixes[count + (suffix >> 1)]
        equal = length == previous_length and suffix + length <= n and previous + length <= n
        offset = 0
        while equal and offset < length:
            equal = text[suffix + offset] == text[previous + offset]
            offset += 1
        if not equal:
            name += 1
            previous, previous_length = suffix, length
        suffixes[count + (suffix >> 1)] = name
    free = n
    for index in range(count + (n >> 1) - 1 if n % 2 == 0 else count + (n >> 1), count - 1, -1):
        if index < n and suffixes[index] >= 0:
            free -= 1
            suffixes[free] = suffixes[index]
    return name + 1


@kernel
def invert(names: Ints, suffixes: Ints) -> None:
    """Sort suffixes of a reduced text whose names are all different."""
    for position in range(len(names)):
        suffixes[names[position]] = position


@kernel
def positions_of_lms(text: Ids, suffixes: Ints, count: int) -> None:
    """Turn the sorted suffixes of the reduced text, the first ``count`` entries, into the LMS suffixes of the text."""
    n = len(text)
    free = n
    after, after_is_s = text[n - 1], False
    for position in range(n - 2, -1, -1):
        token = text[position]
        is_s = token < after or (token == after and after_is_s)
        if after_is_s and not is_s:
            free -= 1
            suffixes[free] = position + 1
        after, after_is_s = token, is_s
    for index in range(count):
        suffixes[index] = suffixes[free + suffixes[index]]


@kernel
def place_sorted(suffixes: Ints, ends: Ints, placed: Ints, count: int) -> None:
    """Move the sorted LMS suffixes, the first ``count`` entries, to the ends of their buckets; empty all others."""
    empty_to = len(suffixes)
    for token in range(len(ends) - 1, -1, -1):
        number = placed[token]
        for index in range(empty_to - 1, ends[token] - 1, -1):
            suffixes[index] = 0
        for offset in range(1, number + 1):
            suffixes[ends[token] - offset] = suffixes[count - offset]
        count -= number
        empty_to = ends[token] - number
    for index in range(empty_to - 1, -1, -1):
        suffixes[index] = 0


@kernel
def induce(text: Ids, suffixes: Ints, starts: Ints, ends: Ints) -> None:
    """Sort all suffixes: L-type ones from the LMS ones that are in place, then S-type ones from those."""
    n = len(text)
    last = text[n - 1]
    suffixes[starts[last]] = n - 1 if text[n - 2] >= last else ~(n - 1)
    starts[last] += 1
    for index in range(n):
        if index + AHEAD < n:
            _prefetch_before(text, suffixes[index + AHEAD])
        suffix = suffixes[index]
        suffixes[index] = ~suffix
        if suffix > 0:
            suffix -= 1
            token = text[suffix]
            suffixes[starts[token]] = ~suffix if suffix > 0 and text[suffix - 1] < token else suffix
            starts[token] += 1
    for index in range(n - 1, -1, -1):
        if index >= AHEAD:
            _prefetch_before(text, suffixes[index - AHEAD])
        suffix = suffixes[index]
        if suffix > 0:
            suffix -= 1
            token = text[suffix]
            ends[token] -= 1
            suffixes[ends[token]] = ~suffix if suffix == 0 or text[suffix - 1] > token else suffix
        else:
            suffixes[index] = ~suffix
