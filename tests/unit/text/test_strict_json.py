"""JSON from strangers takes a bounded amount of memory, and so does finding that out."""

from __future__ import annotations

import json
import random
import tracemalloc
from collections.abc import Callable
from itertools import islice, product
from string import ascii_letters

import pytest

from foreword.text.strict_json import (
    MAX_DEPTH,
    MEMORY_BASE,
    MEMORY_PER_BYTE,
    SHORT,
    _depth,
    check_json_size,
    parse_json,
    parse_json_object,
)


def many(item: str) -> Callable[[int], str]:
    return lambda count: '{"a":[' + ",".join([item] * count) + "]}"


def members(value: str) -> Callable[[int], str]:
    def object_of(count: int) -> str:
        names = islice(product(ascii_letters, repeat=4), count)
        return "{" + ",".join(f'"{"".join(name)}":{value}' for name in names) + "}"

    return object_of


@pytest.mark.parametrize(
    "shape",
    [
        pytest.param(many("{}"), id="objects"),
        pytest.param(many("1"), id="digits"),
        pytest.param(many('"ab"'), id="strings"),
        pytest.param(members("1"), id="members"),
        pytest.param(many("[]"), id="lists", marks=pytest.mark.long),
        pytest.param(many("[1]"), id="full lists", marks=pytest.mark.long),
        pytest.param(many("1.5"), id="numbers", marks=pytest.mark.long),
        pytest.param(many('{"a":1}'), id="full objects", marks=pytest.mark.long),
    ],
)
def test_what_is_accepted_takes_ten_times_its_size_plus_64_mb(shape: Callable[[int], str]) -> None:
    """Two million members of an object once took 430 MB, where 247 were promised."""
    count = 1_600_000
    while not accepted(text := shape(count).encode()):
        count = count * 4 // 5
    assert peak_of(lambda: parse_json_object(text)) < MEMORY_PER_BYTE * len(text) + MEMORY_BASE


def accepted(text: bytes) -> bool:
    try:
        check_json_size(text)
    except ValueError:
        return False
    return True


def peak_of(call: Callable[[], object]) -> int:
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("string", ["a" * (4 << 20), "\\n" * (2 << 20), "[" * (4 << 20)], ids=["a", "escapes", "["])
def test_the_check_takes_little_itself(string: str) -> None:
    """A string of 20 MB took 2.8 GB: the regular expression that looked for its end kept every character."""
    text = ('{"a": ["😀", "' + string + '"]}').encode()
    assert peak_of(lambda: check_json_size(text) if b"[[" not in text else _depth(text)) < 4 * len(text) + (8 << 20)


def test_nesting_is_counted_outside_strings() -> None:
    random.seed(0)
    for _ in range(200):
        value: object = "".join(random.choices('[]{}"\\a', k=random.randrange(9)))
        for _ in range(depth := random.randrange(1, 90)):
            value = random.choice([[value], ["]\\", value, '"'], {'[{"\\': value}])
        text = json.dumps(value).encode()
        assert _depth(text) == depth
        assert accepted(text) == (depth <= MAX_DEPTH)


def test_long_texts_are_counted_in_chunks() -> None:
    inner = '["' + "[" * (3 << 20) + '\\"", [[]]]'
    assert _depth(inner.encode()) == 3


def test_short_texts_are_bounded_in_depth() -> None:
    assert parse_json(b"[" * MAX_DEPTH + b"]" * MAX_DEPTH + b" " * SHORT)
    for deep in (b"[" * 65 + b"]" * 65, b"[" * 65 + b" " * SHORT, b"[" * 20_000):
        with pytest.raises(ValueError, match="nested more than 64 levels"):
            parse_json(deep)
    assert parse_json(json.dumps(["["] * 100).encode()) == ["["] * 100
