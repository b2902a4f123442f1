"""What is not text must be cut too; ``tests/against`` holds the patterns to their engines on what is."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from foreword.text.block import Block
from foreword.tokens.pieces import (
    CL100K,
    GPT2,
    LETTER,
    MARK,
    NUMBER,
    OTHER,
    PUNCTUATION,
    QWEN2,
    SPACE,
    SPACE_BEFORE,
    WHOLE,
    WORDS,
    character_classes,
)
from foreword.tokens.strings import StringTable

TILING = [GPT2, CL100K, QWEN2, SPACE_BEFORE, WHOLE]
hard_bytes = st.lists(
    st.sampled_from([b"a", b" ", b"\n", b"1", b"'s", b"\xc3", b"\xa9", b"\xe2\x80", b"\xf0\x9f", b"\xff", b"\x80"])
)


def pieces(data: bytes, pattern: int) -> list[bytes]:
    table = StringTable()
    block = Block.from_texts([data], open=True)
    numbers = table.count(block, pattern, out=np.empty(len(data) + 1, np.int32))
    offsets, arena = table.offsets.tolist(), table.arena.tobytes()
    return [arena[offsets[number] : offsets[number + 1]] for number in numbers.tolist()]


@settings(deadline=None, max_examples=200)
@given(data=st.binary(max_size=30) | hard_bytes.map(b"".join))
@example(data=b"\xe2\x80")
@example(data=b"\xf4\x90\x80\x80 \xf8\x88")
@pytest.mark.parametrize("pattern", TILING)
def test_any_bytes_are_cut_into_pieces_that_tile_them(pattern: int, data: bytes) -> None:
    found = pieces(data, pattern)
    assert b"".join(found) == data
    assert b"" not in found


@settings(deadline=None, max_examples=200)
@given(data=st.binary(max_size=30) | hard_bytes.map(b"".join))
@pytest.mark.parametrize("pattern", [WORDS, PUNCTUATION])
def test_words_of_any_bytes_lose_nothing_but_white_space(pattern: int, data: bytes) -> None:
    found = pieces(data, pattern)
    kept = b"".join(found)
    assert b"" not in found
    assert not set(kept) & set(b" \t\n\r\x0b\x0c\x1c\x1d\x1e\x1f")
    assert len(kept) <= len(data)


def test_classes_cover_all_code_points() -> None:
    classes = character_classes()
    assert classes.shape == (0x110000,)
    assert not classes.flags.writeable
    found = {c: int(classes[ord(c)]) for c in "aé漢1½Ⅷ \u3000_\u0301.😀\x1c"}
    letters, numbers, marks = (
        dict.fromkeys("aé漢", LETTER),
        dict.fromkeys("1½Ⅷ", NUMBER),
        dict.fromkeys("_\u0301", MARK),
    )
    others = dict.fromkeys(".😀\x1c", OTHER)
    assert found == letters | numbers | marks | others | dict.fromkeys(" \u3000", SPACE)
    assert int(classes[0xD800]) == OTHER
