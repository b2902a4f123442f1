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


def transform(text: Sequence[int]) -> list[int]:
    """Return the Burrows-Wheeler transform: the token before each suffix in sorted order; -1 before the whole text."""
    return [text[begin - 1] if begin else -1 for begin in (len(text), *suffix_array(text))]


def count_backward(transformed: Sequence[int], run: Sequence[int]) -> int:
    """Count a run by the transform alone: narrow the range of its suffixes from its last token to its first.

    Suffixes that begin with a token are in the order of what follows it: the first of them is that before the first
    suffix, in sorted order, which the token comes before.
    """
    low, high = 0, len(transformed)
    for token in reversed(run):
        first = sum(other < token for other in transformed)
        low, high = (first + list(transformed[:end]).count(token) for end in (low, high))
    return high - low


def longest_match(text: Sequence[int], query: Sequence[int]) -> int:
    """Return how many of the last tokens of the query occur in the text, one after another."""
    return max(length for length in range(len(query) + 1) if count(text, query[len(query) - length :]))


def next_tokens(text: Sequence[int], context: Sequence[int]) -> Counter[int]:
    """Count the tokens that follow a context in the text."""
    length = len(context)
    begins = range(len(text) - length)
    return Counter(text[begin + length] for begin in begins if list(text[begin : begin + length]) == list(context))
