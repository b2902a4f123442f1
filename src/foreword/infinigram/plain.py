"""What the kernels compute, for readers: sort all suffixes, and count by scanning the text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence


def suffix_array(text: Sequence[int]) -> list[int]:
    """Return the positions of the suffixes in sorted order; a suffix comes before those that it is the beginning of."""
    return sorted(range(len(text)), key=lambda position: list(text[position:]))


def count(text: Sequence[int], run: Sequence[int]) -> int:
    """Return how often a run of tokens occurs in the text."""
    return sum(list(text[begin : begin + len(run)]) == list(run) for begin in range(len(text) - len(run) + 1))


def longest_match(text: Sequence[int], query: Sequence[int]) -> int:
    """Return how many of the last tokens of the query occur in the text, one after another."""
    return max(length for length in range(len(query) + 1) if count(text, query[len(query) - length :]))


def next_tokens(text: Sequence[int], context: Sequence[int]) -> Counter[int]:
    """Count the tokens that follow a context in the text."""
    length = len(context)
    begins = range(len(text) - length)
    return Counter(text[begin + length] for begin in begins if list(text[begin : begin + length]) == list(context))
