import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foreword.arrays import Array
from foreword.errors import InputError
from foreword.storage.safetensors import DTYPES, HEADER_LIMIT, read_arrays, write_arrays
from foreword.text.strict_json import parse_json_object


def some_arrays() -> dict[str, Array]:
    arrays = {
        name: np.arange(5).astype(dtype).reshape(5, 1) if name != "BOOL" else np.array([True, False, True])
        for name, dtype in DTYPES.items()
    }
    return arrays | {
        "empty": np.zeros((0, 7), np.float32),
        "other empty": np.zeros(0, np.int64),
        "scalar": np.array(2.5),
        "naïve 名": np.arange(3, dtype=np.uint8),
    }


def assert_same(found: dict[str, Any], wanted: dict[str, Array]) -> None:
    assert found.keys() == wanted.keys()
    for name, array in wanted.items():
        assert found[name].dtype == array.dtype, name
        assert found[name].shape == array.shape, name
        np.testing.assert_array_equal(found[name], array, err_msg=name)


def file_with(folder: Path, header: object, data: bytes = b"", *, length: int | None = None) -> Path:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path = folder / "hostile.safetensors"
    path.write_bytes((len(text) if length is None else length).to_bytes(8, "little") + text + data)
    return path


def entry(shape: object, offsets: object, dtype: object = "U8") -> dict[str, object]:
    return {"dtype": dtype, "shape": shape, "data_offsets": offsets}


def test_arrays_come_back_as_they_were(tmp_path: Path) -> None:
    write_arrays(tmp_path / "a", some_arrays(), metadata={"made": "here"})
    assert_same(read_arrays(tmp_path / "a"), some_arrays())


def test_no_arrays_at_all(tmp_path: Path) -> None:
    write_arrays(tmp_path / "a", {})
    assert read_arrays(tmp_path / "a") == {}


def test_arrays_are_read_only_aligned_views_of_the_file(tmp_path: Path) -> None:
    write_arrays(tmp_path / "a", some_arrays())
    for array in read_arrays(tmp_path / "a").values():
        assert type(array) is np.ndarray
        assert array.flags.aligned
        assert not array.flags.writeable
        assert not array.flags.owndata
        base: object = array
        while isinstance(base, np.ndarray) and not isinstance(base, np.memmap):
            base = base.base
        assert isinstance(base, np.memmap)


def test_data_begins_at_a_cache_line(tmp_path: Path) -> None:
    for names in range(1, 9):
        write_arrays(tmp_path / "a", {"x" * names: np.zeros(3, np.int16)})
        blob = (tmp_path / "a").read_bytes()
        assert (8 + int.from_bytes(blob[:8], "little")) % 64 == 0
        assert len(blob) % 64 == 6


def test_same_arrays_same_bytes_in_whatever_order(tmp_path: Path) -> None:
    arrays = some_arrays()
    write_arrays(tmp_path / "a", arrays)
    write_arrays(tmp_path / "b", dict(reversed(arrays.items())))
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_any_memory_layout_and_byte_order(tmp_path: Path) -> None:
    grid = np.arange(3_000_000, dtype=np.int32).reshape(1500, 2000)  # more than one chunk
    arrays: dict[str, Array] = {
        "transposed": grid.T,
        "strided": grid[::3, 1::7],
        "backwards": grid[::-1],
        "big-endian": grid.astype(">i4"),
        "broadcast": np.broadcast_to(np.float16(0.5), (4, 5)),
    }
    write_arrays(tmp_path / "a", arrays)
    assert_same(
        read_arrays(tmp_path / "a"),
        {name: array.astype(array.dtype.newbyteorder("<")) for name, array in arrays.items()},
    )


def test_a_mapped_array_can_be_written_over_to_another_file(tmp_path: Path) -> None:
    write_arrays(tmp_path / "a", some_arrays())
    write_arrays(tmp_path / "b", read_arrays(tmp_path / "a"))
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_the_safetensors_package_reads_ours(tmp_path: Path) -> None:
    peer = pytest.importorskip("safetensors.numpy")
    write_arrays(tmp_path / "a", some_arrays(), metadata={"made": "here"})
    assert_same(peer.load_file(tmp_path / "a"), some_arrays())


def test_we_read_what_the_safetensors_package_writes(tmp_path: Path) -> None:
    peer = pytest.importorskip("safetensors.numpy")
    peer.save_file(some_arrays(), tmp_path / "a", metadata={"made": "there"})
    assert_same(read_arrays(tmp_path / "a"), some_arrays())


def test_an_unaligned_array_is_copied_into_line(tmp_path: Path) -> None:
    data = b"\x07" + np.arange(3, dtype="<i8").tobytes()
    path = file_with(tmp_path, {"a": entry([1], [0, 1]), "b": entry([3], [1, 25], "I64")}, data)
    arrays = read_arrays(path)
    assert arrays["b"].tolist() == [0, 1, 2]
    assert arrays["b"].flags.aligned
    assert not arrays["b"].flags.writeable


@pytest.mark.parametrize("array", [np.zeros(1, complex), np.array(["a"]), np.array([None])])
def test_what_the_format_cannot_hold_is_not_written(tmp_path: Path, array: Array) -> None:
    with pytest.raises(TypeError, match="'a' has dtype"):
        write_arrays(tmp_path / "a", {"a": array})
    with pytest.raises(ValueError, match="__metadata__"):
        write_arrays(tmp_path / "a", {"__metadata__": np.zeros(1)})


DATA = bytes(range(8))
HOSTILE: dict[str, tuple[object, str]] = {
    "not JSON": (b"{nonsense}", "Expecting"),
    "not UTF-8": (b'{"\xff": 1}', "utf-8"),
    "a list": (b"[1]", "begin with"),
    "leading space": (b" {}", "begin with"),
    "empty": (b"", "begin with"),
    "deep": (b'{"a":' + b"[" * 200_000, "deep"),
    "long number": (b'{"a":' + b"9" * 5000 + b"}", "limit"),
    "NaN": (b'{"a":NaN}', "NaN"),
    "twice": (b'{"a":1,"a":1}', "'a' twice"),
    "twice inside": (b'{"a":{"dtype":"U8","dtype":"U8"}}', "'dtype' twice"),
    "not an entry": ({"a": 3}, "'a' should have"),
    "missing shape": ({"a": {"dtype": "U8", "data_offsets": [0, 8]}}, "'a' should have"),
    "something more": ({"a": {**entry([8], [0, 8]), "x": 1}}, "nothing else"),
    "unknown dtype": ({"a": entry([8], [0, 8], "F8")}, "dtype 'F8'"),
    "dtype a list": ({"a": entry([8], [0, 8], ["U8"])}, "dtype"),
    "shape a number": ({"a": entry(8, [0, 8])}, "shape 8"),
    "shape of fractions": ({"a": entry([8.0], [0, 8])}, "shape"),
    "shape of truth": ({"a": entry([True, 8], [0, 8])}, "shape"),
    "negative shape": ({"a": entry([-1, -8], [0, 8])}, "shape"),
    "huge shape": ({"a": entry([2**62, 4], [0, 8], "F64")}, "shape"),
    "overflowing shape": ({"a": entry([2**32, 2**32], [0, 0])}, "shape"),
    "empty huge shape": ({"a": entry([0, 2**62, 2**62], [0, 0])}, "shape"),
    "many dimensions": ({"a": entry([1] * 65, [0, 1])}, "shape"),
    "shape too small": ({"a": entry([7], [0, 8])}, "does not fill"),
    "shape too large": ({"a": entry([2], [0, 8], "F64")}, "does not fill"),
    "odd span": ({"a": entry([1], [0, 3], "F32"), "b": entry([5], [3, 8])}, "does not fill"),
    "three offsets": ({"a": entry([8], [0, 8, 9])}, "offsets"),
    "negative offsets": ({"a": entry([8], [-8, 0])}, "offsets"),
    "falling offsets": ({"a": entry([8], [8, 0])}, "does not fill"),
    "hole at the start": ({"a": entry([7], [1, 8])}, "hole"),
    "hole between": ({"a": entry([3], [0, 3]), "b": entry([4], [4, 8])}, "hole"),
    "overlap": ({"a": entry([5], [0, 5]), "b": entry([4], [4, 8])}, "overlap"),
    "the same place": ({"a": entry([8], [0, 8]), "b": entry([8], [0, 8])}, "overlap"),
    "too short": ({"a": entry([7], [0, 7])}, "end at byte 7"),
    "too long": ({"a": entry([9], [0, 9])}, "end at byte 9"),
    "no arrays but data": ({}, "end at byte 0"),
    "metadata of numbers": ({"__metadata__": {"a": 1}}, "__metadata__"),
    "metadata a list": ({"__metadata__": []}, "__metadata__"),
    "wild truth values": ({"a": entry([8], [0, 8], "BOOL")}, "truth"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_headers(tmp_path: Path, case: str) -> None:
    header, message = HOSTILE[case]
    path = file_with(tmp_path, header, DATA)
    with pytest.raises(InputError, match=message) as raised:
        read_arrays(path)
    assert str(path) in str(raised.value)
    assert "\n" not in str(raised.value)
    assert len(str(raised.value)) < len(str(path)) + 400


@pytest.mark.parametrize("length", [9, 1000, HEADER_LIMIT, HEADER_LIMIT + 1, 2**63, 2**64 - 1])
def test_a_header_longer_than_the_file(tmp_path: Path, length: int) -> None:
    with pytest.raises(InputError, match="header claims"):
        read_arrays(file_with(tmp_path, b"{}", b"", length=length))


@pytest.mark.parametrize("size", range(8))
def test_a_file_too_short_for_anything(tmp_path: Path, size: int) -> None:
    (tmp_path / "a").write_bytes(bytes(size))
    with pytest.raises(InputError):
        read_arrays(tmp_path / "a")


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="No such file"):
        read_arrays(tmp_path / "a")
    with pytest.raises(InputError, match="directory"):
        read_arrays(tmp_path)


def test_every_cut_is_found(tmp_path: Path) -> None:
    write_arrays(tmp_path / "a", {"x": np.arange(4), "y": np.ones(3, np.float32)})
    blob = (tmp_path / "a").read_bytes()
    for size in range(len(blob)):
        (tmp_path / "cut").write_bytes(blob[:size])
        with pytest.raises(InputError):
            read_arrays(tmp_path / "cut")


def test_a_flipped_byte_never_ends_in_another_exception(tmp_path: Path) -> None:
    write_arrays(tmp_path / "a", {"x": np.arange(2), "y": np.ones((1, 3), np.float32), "z": np.array([True])})
    blob = bytearray((tmp_path / "a").read_bytes())
    for place in range(len(blob)):
        for flip in (0x01, 0x04, 0x10, 0x80):
            blob[place] ^= flip
            (tmp_path / "flipped").write_bytes(blob)
            blob[place] ^= flip
            try:
                arrays = read_arrays(tmp_path / "flipped")
            except InputError:
                continue
            assert sum(array.nbytes for array in arrays.values()) == 2 * 8 + 3 * 4 + 1


@settings(max_examples=200, deadline=None)
@given(
    st.dictionaries(
        st.sampled_from(["a", "b", "c"]),
        st.fixed_dictionaries(
            {
                "dtype": st.sampled_from(list(DTYPES)),
                "shape": st.lists(st.integers(-1, 5) | st.integers(-(2**70), 2**70), max_size=3),
                "data_offsets": st.tuples(st.integers(-1, 20), st.integers(-1, 20)),
            }
        ),
    ),
    st.binary(max_size=20),
)
def test_any_header_gives_arrays_within_the_file_or_one_error(
    tmp_path_factory: pytest.TempPathFactory, header: dict[str, object], data: bytes
) -> None:
    path = file_with(tmp_path_factory.getbasetemp(), header, data)
    try:
        arrays = read_arrays(path)
    except InputError:
        return
    assert sum(len(array.tobytes()) for array in arrays.values()) == len(data)


@given(st.binary(max_size=60))
def test_any_bytes(tmp_path_factory: pytest.TempPathFactory, blob: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "any"
    path.write_bytes(blob)
    with pytest.raises(InputError):
        read_arrays(path)


@given(st.binary(max_size=40))
def test_json_is_an_object_or_a_value_error(text: bytes) -> None:
    with suppress(ValueError):
        assert isinstance(parse_json_object(text), dict)
