"""The words of a labelled text, counted by a kernel, against Python's own way of splitting and counting."""

from __future__ import annotations

import itertools
import re
from collections import Counter

import numpy as np
import pytest

from foreword.fasttext.model import count_lines, words_by_frequency
from foreword.text.block import Block

LINES = [
    "the cat\tsat on  the mat",
    "",
    " the\x00dog\x0bbarked </s> \r\n__label__x a__label__ \x1c",
    "naïve\u00a0cafe\u0085 the " + "long" * 20,
    "_ __label_ __label__ mat",
    " ".join(f"w{number * number % 997}" for number in range(3000)),
]


@pytest.mark.parametrize("min_count", [1, 2, 4])
def test_words_stand_between_fasttexts_separators(min_count: int) -> None:
    data, offsets, counts = words_by_frequency(Block.from_texts(LINES), min_count)
    words = [bytes(data[start:stop]) for start, stop in itertools.pairwise(offsets.tolist())]
    found = Counter(word for line in LINES for word in re.split(rb"[\x00\t-\r ]+", line.encode()) if word)
    plain = {word: n for word, n in found.items() if n >= min_count and not word.startswith(b"__label__")}
    assert dict(zip(words, counts.tolist(), strict=True)) == plain | {b"</s>": len(LINES)}
    assert (np.diff(counts) <= 0).all()
    order = {word: place for place, word in enumerate([b"</s>", *(word for word in found if word != b"</s>")])}
    for one, other, same in zip(words[:-1], words[1:], np.diff(counts) == 0, strict=True):
        assert not same or order[one] < order[other]  # as often, then as they came


def test_labels_follow_the_words() -> None:
    dictionary, flat, ends = count_lines(Block.from_texts(["a b", "a", "c"]), [["x"], ["y", "x"], []], 1)
    assert dictionary.words == [b"</s>", b"a", b"b", b"c", b"__label__x", b"__label__y"]
    assert dictionary.counts.tolist() == [3, 2, 1, 1, 2, 1]
    assert (flat.tolist(), ends.tolist(), dictionary.labels) == ([0, 1, 0], [0, 1, 3, 3], 2)
