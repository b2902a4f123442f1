from __future__ import annotations

import re

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from foreword.fasttext.kernels_cut import SLACK, cut_lines
from foreword.text.block import Block

pieces = st.sampled_from([b" ", b"  ", b"\t", b"\0", b"\r", b"\x0b", b"\n", b"a", b"bc", b"\x1f", b"!", "é".encode()])
words = st.binary(min_size=1, max_size=70)
lines = st.lists(st.lists(pieces | words, max_size=30).map(b"".join), min_size=1, max_size=6)


def tokens_of(texts: list[bytes]) -> list[bytes]:
    block = Block.from_texts(texts)
    edges = np.full(block.text_bytes() + 3 * len(texts) + SLACK, -1, np.int64)
    count = cut_lines(block.data, block.starts, block.stops, 0, len(texts), edges)
    data, pairs = block.data.tobytes(), edges[: 2 * count].reshape(-1, 2).tolist()
    return [data[start:stop] for start, stop in pairs]


def plainly(text: bytes) -> list[bytes]:
    line = text.split(b"\n", 1)[0]
    return [*filter(None, re.split(rb"[\0\t-\r ]+", line)), b""]


@settings(deadline=None, max_examples=200)
@given(lines)
def test_tokens_are_cut_as_a_pattern_cuts_them(texts: list[bytes]) -> None:
    assert tokens_of(texts) == [token for text in texts for token in plainly(text)]


def test_tokens_that_end_where_sixty_four_bytes_do() -> None:
    for length in range(60, 132):
        for before in (0, 1, 3):
            texts = [b" " * before + b"x" * length, b"y" * length, b"z " * length]
            assert tokens_of(texts) == [token for text in texts for token in plainly(text)]


def test_what_follows_a_line_feed_is_not_read() -> None:
    assert tokens_of([b"one two\nthree " + b"x " * 100, b"\nfour", b"five"]) == [b"one", b"two", b"", b"", b"five", b""]
