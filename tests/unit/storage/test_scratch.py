from __future__ import annotations

import mmap
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from foreword.errors import InputError, SettingError
from foreword.storage.scratch import LEAST, LINE, Scratch


def test_without_a_limit_everything_fits_and_nothing_is_on_disk() -> None:
    scratch = Scratch()
    assert not scratch.on_disk
    assert list(scratch.ranges(1000, 1 << 40)) == [(0, 1000)]


def test_ranges_follow_each_other_and_fit_into_half_the_limit() -> None:
    scratch = Scratch(LEAST)
    ranges = list(scratch.ranges(1_000_000, 8))
    assert ranges[0][0] == 0
    assert ranges[-1][1] == 1_000_000
    assert all(last == first for (_, last), (first, _) in pairwise(ranges))
    assert max(last - first for first, last in ranges) * 8 == LEAST // 2
    assert list(scratch.ranges(0, 8)) == []
    assert scratch.fits(LEAST, least=3) == 3


@pytest.mark.parametrize("memory", [0, LEAST - 1])
def test_too_little_is_refused(memory: int) -> None:
    with pytest.raises(SettingError, match="at least"):
        Scratch(memory)


@pytest.mark.parametrize("memory", [None, LEAST])
def test_arrays_have_the_shape_and_type_that_was_asked_for(memory: int | None, tmp_path: Path) -> None:
    scratch = Scratch(memory, tmp_path)
    for shape in (0, 5, (0, 4), (3, 4)):
        for array in (scratch.empty(shape, np.int64), scratch.buffer(shape, np.int64)):
            assert array.shape == (shape if isinstance(shape, tuple) else (shape,))
            assert array.dtype == np.int64
            array[:] = 7
            assert (array == 7).all()
    assert list(tmp_path.iterdir()) == []  # the files have no name


def test_what_grows_is_read_back() -> None:
    growing = Scratch(LEAST).growing(2, np.int32)
    growing.append(np.arange(6, dtype=np.int32).reshape(3, 2))
    growing.append(np.empty((0, 2), np.int32))
    growing.append(np.arange(20, dtype=np.int32).reshape(5, 4)[:, :2])  # not contiguous
    assert growing.rows == 8
    found = growing.finish()
    assert_array_equal(found[:3].ravel(), np.arange(6))
    assert_array_equal(found[3:], np.arange(20).reshape(5, 4)[:, :2])
    found[0, 0] = 9
    assert Scratch(LEAST).growing(3, np.uint8).finish().shape == (0, 3)


@pytest.mark.parametrize("memory", [None, LEAST])
def test_pieces_come_back_as_they_were(memory: int | None) -> None:
    pieces = Scratch(memory).array_list(np.int32)
    given = [np.arange(length, dtype=np.int32) for length in (3, 0, 5)]
    for piece in given:
        pieces.append(piece)
    for found, piece in zip(pieces.finish(), given, strict=True):
        assert_array_equal(found, piece)


def test_released_memory_is_used_again_and_never_twice_at_once() -> None:
    scratch = Scratch()
    scratch.reserve(10 * LINE)
    first, second = scratch.empty(LINE, np.uint8), scratch.empty(3, np.int64)
    first[:], second[:] = 1, 2
    assert (first == 1).all()
    start = first.ctypes.data
    assert second.ctypes.data == start + LINE
    scratch.release(first[:1])  # a view of its beginning will do
    assert scratch.empty(2 * LINE, np.uint8).ctypes.data == start + 2 * LINE  # it does not fit where the first was
    assert scratch.empty(LINE, np.uint8).ctypes.data == start
    scratch.release(second)
    assert scratch.empty(100 * LINE, np.uint8).size == 100 * LINE  # more than there is comes fresh


def test_all_of_a_block_comes_back_when_all_its_parts_did() -> None:
    scratch = Scratch()
    scratch.reserve(6 * LINE)
    parts = [scratch.empty(2 * LINE, np.uint8) for _ in range(3)]
    start = parts[0].ctypes.data
    for place in (1, 2, 0):
        scratch.release(parts[place])
    scratch.release(parts[0])  # twice does nothing
    scratch.release(np.empty(8))  # nor does what is not ours
    assert scratch.empty(6 * LINE, np.uint8).ctypes.data == start


def test_what_is_kept_does_not_hold_on_to_much_else() -> None:
    scratch = Scratch()
    scratch.reserve(10 * LINE)
    scratch.release(scratch.empty(9 * LINE, np.uint8))
    array = scratch.empty(8 * LINE, np.uint8)
    assert scratch.compact(array) is array
    small = array[: 4 * LINE]
    assert scratch.compact(small).base is None
    assert_array_equal(scratch.compact(small), small)
    alone = np.empty(3)
    assert scratch.compact(alone) is alone


def test_parts_of_an_array_apart_are_discarded_and_the_rest_stays() -> None:
    scratch = Scratch()
    pages = 16 * mmap.PAGESIZE // 8
    array = scratch.discardable((3, pages), np.int64)
    array[:] = 7
    scratch.discard(array[1])
    assert (array[[0, 2]] == 7).all()
    if sys.platform == "linux":
        assert (array[1] == 0).all()
    array[:] = 5
    scratch.discard(array[1, 1:-1])  # whole pages only
    assert (array[[0, 2]] == 5).all()
    assert array[1, 0] == array[1, -1] == 5
    scratch.discard(np.ones(pages))  # not ours
    assert scratch.discardable(0, np.int8).shape == (0,)


def test_a_folder_that_is_missing_is_one_line() -> None:
    scratch = Scratch(LEAST, "not/there")
    told = "cannot write temporary files in not/there: No such file"
    with pytest.raises(InputError, match=told):
        scratch.empty(3, np.int8)
    with pytest.raises(InputError, match=told):
        scratch.growing(1, np.int8)


FULL = """
import resource, sys
import numpy as np
from foreword.errors import InputError
from foreword.storage.scratch import Scratch

resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, 1 << 16))
scratch = Scratch(1 << 20, sys.argv[1])
for use in (lambda: scratch.empty(1 << 20, np.uint8), lambda: scratch.growing(1, np.uint8).append(np.zeros(1 << 20))):
    try:
        use()
    except InputError as error:
        print(error)
"""


def test_a_full_disk_is_one_line(tmp_path: Path) -> None:
    pytest.importorskip("resource")
    done = subprocess.run([sys.executable, "-c", FULL, str(tmp_path)], capture_output=True, text=True, check=True)
    assert done.stdout == f"cannot write temporary files in {tmp_path}: File too large\n" * 2
