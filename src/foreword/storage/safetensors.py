"""Named arrays in one file: the safetensors format, read without copying and checked before use.

The file is eight bytes (the header's length, little-endian), a JSON header, and the arrays' bytes one after another::

    {"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, ..., "__metadata__": {"key": "value"}}

Foreword has its own reader because arrays should be views of a memory-mapped file, shared by every process that opens
it, and because a hostile file must end in a one-line error. The ``safetensors`` package reads these files, and vice
versa.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from math import prod
from pathlib import Path
from typing import Any, Protocol, TypeGuard, cast

import numpy as np

from foreword.arrays import Array, Bytes
from foreword.errors import InputError
from foreword.protocols import Json
from foreword.text.strict_json import parse_json_object, shown

DTYPES: dict[str, np.dtype[Any]] = {
    "BOOL": np.dtype("?"),
    "U8": np.dtype("u1"),
    "I8": np.dtype("i1"),
    "U16": np.dtype("<u2"),
    "I16": np.dtype("<i2"),
    "U32": np.dtype("<u4"),
    "I32": np.dtype("<i4"),
    "U64": np.dtype("<u8"),
    "I64": np.dtype("<i8"),
    "F16": np.dtype("<f2"),
    "F32": np.dtype("<f4"),
    "F64": np.dtype("<f8"),
}
DTYPE_NAMES = {dtype: name for name, dtype in DTYPES.items()}

METADATA = "__metadata__"
LENGTH_BYTES = 8
HEADER_LIMIT = 100_000_000
"""The same limit as in the ``safetensors`` package."""
ALIGNMENT = 64
"""The data begins at a multiple of this, a cache line and the widest vector register."""
CHUNK_ITEMS = 1 << 16
MAX_DIMENSIONS = 32
"""NumPy 1's own limit; NumPy 2 takes 64, but no model needs either."""
LARGEST = 2**63 - 1


def write_arrays(
    path: str | Path,
    arrays: Mapping[str, Array],
    *,
    metadata: Mapping[str, str] | None = None,
    digest: Digest | None = None,
) -> None:
    """Write the arrays, a chunk at a time, so that a memory-mapped one never has to fit in memory.

    Wider items come first: then each array begins at a multiple of its item size without any padding between.
    digest: updated with everything that is written, while it is still in the cache.
    """
    ordered = dict(sorted(arrays.items(), key=lambda item: (-item[1].itemsize, item[0])))
    header = _render_header(ordered, metadata)
    with Path(path).open("wb") as file:
        head: list[bytes | memoryview] = [len(header).to_bytes(LENGTH_BYTES, "little"), header]
        for written in chain(head, *map(_chunks, ordered.values())):
            file.write(written)
            if digest is not None:
                digest.update(written)


def read_arrays(path: str | Path) -> dict[str, Array]:
    """Return the arrays by name, as read-only views of the mapped file; an InputError for an invalid file."""
    try:
        data = np.memmap(path, np.uint8, mode="r").view(np.ndarray)
        return _arrays_in(data)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise InputError(f"{path}: not a valid safetensors file ({error})") from error


def _render_header(arrays: Mapping[str, Array], metadata: Mapping[str, str] | None) -> bytes:
    header: dict[str, object] = {METADATA: dict(metadata)} if metadata else {}
    end = 0
    for name, array in arrays.items():
        if name == METADATA:
            raise ValueError(f"an array cannot be called {METADATA}")
        start, end = end, end + array.nbytes
        header[name] = {"dtype": _dtype_name(name, array), "shape": array.shape, "data_offsets": (start, end)}
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    return text + b" " * (-(LENGTH_BYTES + len(text)) % ALIGNMENT)


def _dtype_name(name: str, array: Array) -> str:
    try:
        return DTYPE_NAMES[array.dtype.newbyteorder("<")]
    except KeyError:
        raise TypeError(f"array {name!r} has dtype {array.dtype}, which safetensors cannot hold") from None


class Digest(Protocol):
    """A hash object of ``hashlib``."""

    def update(self, data: Any, /) -> None: ...


def _chunks(array: Array) -> Iterator[memoryview]:
    """Return the array's items in row-major little-endian chunks; only arrays stored otherwise are copied."""
    little = array.dtype.newbyteorder("<")
    pieces = np.nditer(
        array,
        flags=["external_loop", "buffered", "zerosize_ok"],
        op_dtypes=little,
        casting="equiv",
        order="C",
        buffersize=CHUNK_ITEMS,
    )
    return (np.ascontiguousarray(piece).data for piece in cast(Iterator[Array], iter(pieces)))


def _arrays_in(file: Bytes) -> dict[str, Array]:
    header, data = _split(file)
    _check_metadata(header.pop(METADATA, {}))
    entries = [_parse_entry(name, facts) for name, facts in header.items()]
    _check_cover(entries, len(data))
    return {entry.name: _view(data, entry) for entry in entries}


def _split(file: Bytes) -> tuple[dict[str, Json], Bytes]:
    if len(file) < LENGTH_BYTES:
        raise ValueError(f"{len(file)} bytes are too few for a header")
    length = int.from_bytes(file[:LENGTH_BYTES].tobytes(), "little")
    if length > HEADER_LIMIT:
        raise ValueError(f"its header claims {length} bytes, more than {HEADER_LIMIT}")
    start = LENGTH_BYTES + length
    if start > len(file):
        raise ValueError(f"its header claims {length} bytes, but the file has only {len(file)}")
    text = file[LENGTH_BYTES:start].tobytes()
    if not text.startswith(b"{"):
        raise ValueError("its header does not begin with '{'")
    return parse_json_object(text), file[start:]


def _check_metadata(metadata: Json) -> None:
    if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
        raise ValueError(f"{METADATA} should map strings to strings")


@dataclass(frozen=True, slots=True)
class _Entry:
    """The header's entry of one array; its bytes are ``data[start:end]``."""

    name: str
    dtype: np.dtype[Any]
    shape: list[int]
    start: int
    end: int


def _parse_entry(name: str, facts: Json) -> _Entry:
    """Check what can be checked of an array by itself."""
    if not isinstance(facts, dict) or facts.keys() != {"dtype", "shape", "data_offsets"}:
        raise ValueError(f"array {shown(name)} should have dtype, shape and data_offsets, and nothing else")
    dtype, shape, offsets = facts["dtype"], facts["shape"], facts["data_offsets"]
    if not isinstance(dtype, str) or dtype not in DTYPES:
        raise ValueError(f"array {shown(name)} has the unknown dtype {shown(dtype)}")
    if not _are_sizes(offsets) or len(offsets) != 2:
        raise ValueError(f"array {shown(name)} has the impossible offsets {shown(offsets)}")
    item = DTYPES[dtype].itemsize
    # NumPy multiplies the sizes in 64 bits and, even where one of them is zero, refuses a product that overflows.
    if not _are_sizes(shape) or len(shape) > MAX_DIMENSIONS or prod(size or 1 for size in shape) * item > LARGEST:
        raise ValueError(f"array {shown(name)} has the impossible shape {shown(shape)}")
    start, end = offsets
    if prod(shape) * item != end - start:
        raise ValueError(f"array {shown(name)} of shape {shown(shape)} does not fill its offsets {shown(offsets)}")
    return _Entry(name, DTYPES[dtype], shape, start, end)


def _view(data: Bytes, entry: _Entry) -> Array:
    raw = data[entry.start : entry.end]
    if entry.dtype == np.bool_ and raw.max(initial=0) > 1:
        # NumPy counts a mask's true items by adding up its bytes, and trusts the sum when it writes.
        raise ValueError(f"array {shown(entry.name)} holds a truth value that is neither 0 nor 1")
    array = raw.view(entry.dtype).reshape(entry.shape)
    if not array.flags.aligned:  # by a writer that did not order by item size; compiled kernels need alignment
        array = array.copy()
        array.flags.writeable = False
    return array


def _are_sizes(value: Json) -> TypeGuard[list[int]]:
    """Return whether a value is a list of whole numbers from 0 on; booleans are not numbers here."""
    return isinstance(value, list) and all(type(size) is int and size >= 0 for size in value)


def _check_cover(entries: list[_Entry], size: int) -> None:
    """Raise a ValueError unless the arrays cover the data without a gap or an overlap."""
    end = 0
    for entry in sorted(entries, key=lambda entry: (entry.start, entry.end)):
        if entry.start != end:
            fault = "leaves a hole" if entry.start > end else "overlaps another"
            raise ValueError(f"array {shown(entry.name)} {fault}: it starts at {shown(entry.start)}, not at {end}")
        end = entry.end
    if end != size:
        raise ValueError(f"its arrays end at byte {shown(end)} of the data, which has {size}")
