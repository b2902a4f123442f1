"""The suffix array: all suffixes of a text, by their positions, in lexicographic order of their tokens.

It is sorted in linear time by induced sorting (G. Nong, S. Zhang and W. H. Chan, "Linear suffix array construction by
almost pure induced-sorting", DCC 2009): sort the LMS substrings, name them by rank, sort the text of these names by
the same method, and induce the order of all suffixes from that of the LMS ones. No memory is taken but the array
itself, the counts of the tokens and the array of the reduced text, which lies within that of the text.
"""

from __future__ import annotations

import numpy as np

from foreword.arrays import Ids, Ints
from foreword.infinigram import kernels_sorting as kernels


def suffix_array(text: Ids, tokens: int) -> Ints:
    """Return the positions of the sorted suffixes, int32 (n,). tokens: the ids are 0 to ``tokens`` - 1."""
    suffixes = np.empty(len(text), np.int32)
    sort_suffixes(text, tokens, suffixes)
    return suffixes


def token_counts(text: Ids, tokens: int) -> Ints:
    """Count every token of a text, int32 (tokens,)."""
    counts = np.zeros(tokens, np.int32)
    kernels.count_tokens(text, counts)
    return counts


def sort_suffixes(text: Ids, tokens: int, suffixes: Ints) -> None:
    """Fill ``suffixes``, as long as the text, with the positions of the sorted suffixes."""
    if len(text) < 2:
        suffixes[:] = 0
        return
    counts = token_counts(text, tokens)
    ends = counts.cumsum(dtype=np.int32)
    placed = np.zeros(tokens, np.int32)
    suffixes[:] = 0
    count = kernels.place_lms(text, suffixes, ends.copy(), placed)
    if count > 1:
        kernels.induce_lms(text, suffixes, ends - counts, ends.copy())
        kernels.gather_lms(suffixes)
        names = kernels.name_lms(text, suffixes, count)
        reduced, sorted_lms = suffixes[-count:], suffixes[:count]
        if names < count:
            sort_suffixes(reduced, names, sorted_lms)
        else:
            kernels.invert(reduced, sorted_lms)
        kernels.positions_of_lms(text, suffixes, count)
    elif count == 1:
        suffixes[0] = suffixes[np.flatnonzero(suffixes)[0]]
    kernels.place_sorted(suffixes, ends, placed, count)
    kernels.induce(text, suffixes, ends - counts, ends.copy())
