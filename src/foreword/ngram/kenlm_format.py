"""KenLM's binary files, format version 5: where each part of a file is.

    88 bytes    magic and reference values, by which another version or byte order is recognised
    20 bytes    order, probing multiplier, type of model, whether the words are stored, search version
    8 · order   number of n-grams of each order, then padding to a multiple of 8
    ...         vocabulary: a hash table (probing) or sorted hashes (trie)
    ...         the n-grams, see ``kernels_kenlm``
    ...         the words, each ended by a NUL, in the order of their ids, where they are stored

Only sizes are read here, and checked against the length of the file, so that a file of any size opens at once and no
kernel is ever sent outside it. What the parts hold is checked while it is read.

K. Heafield, "KenLM: Faster and Smaller Language Model Queries", WMT 2011 (https://aclanthology.org/W11-2123).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from foreword.arrays import Bytes, Longs
from foreword.errors import InputError

FAMILY = b"mmap lm http://kheafield.com/code"
VERSION = b" format version "
MAGIC = FAMILY + VERSION + b"5\n\0"
REFERENCE = struct.pack("<3f3IQ", 0.0, 1.0, -0.5, 1, 0xFFFFFFFF, 0, 1)
"""Numbers that a reader compares with its own, so that a file of another byte order is not misread."""

REFERENCE_AT, PARAMETERS_AT, COUNTS_AT = 56, 88, 108
PARAMETERS = struct.Struct("<B3xfiB3xI")

PROBING, REST_PROBING, TRIE, QUANT_TRIE, ARRAY_TRIE, QUANT_ARRAY_TRIE = range(6)
TYPES = ("probing", "rest probing", "trie", "quantized trie", "array trie", "quantized array trie")
QUANT_VERSION = 2

HIGHEST_ORDER = 16
MOST_NGRAMS = 1 << 48
"""Enough for any file that exists, and few enough that no offset overflows 64 bits."""

HASHED_WORD = 12
"""Bytes of an entry of the hashed vocabulary: the word's hash and its id."""

(
    START,  # offset in the file
    SIZE,  # records, or slots of a hash table
    RECORD,  # bytes of a slot, or bits of a record
    WORD_BITS,
    LOG_AT,  # bits before the log-probability in a record
    LOG_BITS,
    WEIGHT_AT,
    WEIGHT_BITS,
    NEXT_AT,
    NEXT_BITS,
    LOG_TABLE,  # offset of the table of quantized values
    WEIGHT_TABLE,
    HIGH_START,  # offset of the array of high parts of pointers
    HIGHS,
    COLUMNS,
) = range(15)
"""Columns of ``Layout.shapes``."""


@dataclass(frozen=True, slots=True)
class Header:
    """The header of a file. kind: an index of TYPES; counts: n-grams of each order; end: where parts begin."""

    order: int
    multiplier: float
    kind: int
    has_words: bool
    counts: tuple[int, ...]
    end: int

    @property
    def is_trie(self) -> bool:
        """Return whether the n-grams are in a trie, and the vocabulary in a sorted list."""
        return self.kind >= TRIE

    @property
    def is_quantized(self) -> bool:
        """Return whether logs are indices of tables."""
        return self.kind in (QUANT_TRIE, QUANT_ARRAY_TRIE)

    @property
    def has_arrays(self) -> bool:
        """Return whether the high bits of pointers are in arrays."""
        return self.kind in (ARRAY_TRIE, QUANT_ARRAY_TRIE)


@dataclass(frozen=True, slots=True)
class FileLayout:
    """Where the parts of a file are.

    vocabulary: offset of the hashes; hashes: how many slots or sorted hashes there are; bound: all ids are below it.
    shapes: int64 (orders, COLUMNS). end: where the last part but the words ends.
    """

    header: Header
    vocabulary: int
    hashes: int
    bound: int
    shapes: Longs
    end: int

    @property
    def words(self) -> int | None:
        """Return where the words begin; None if they are not stored."""
        return self.end if self.header.has_words else None


def looks_like_kenlm(path: str | Path) -> bool:
    """Return whether a file begins like a KenLM binary, of whatever version."""
    with Path(path).open("rb") as file:
        return file.read(len(FAMILY)) == FAMILY


def read_layout(data: Bytes, name: str, size: int | None = None) -> FileLayout:
    """Check the header and the sizes of a mapped file. name: of the file, for messages.

    size: of the file, if ``data`` is only its beginning.
    """
    header = read_header(data, name)
    sizes = _Sizes(data, header.end, name, len(data) if size is None else size)
    if header.is_trie:
        return _trie_layout(header, sizes)
    return _probing_layout(header, sizes)


def read_header(data: Bytes, name: str) -> Header:
    """Read the header; an InputError for another version, byte order or type."""
    start = data[: COUNTS_AT + 8 * HIGHEST_ORDER].tobytes()
    if not start.startswith(MAGIC):
        raise InputError(f"{name}: {_other_magic(start)}")
    if start[REFERENCE_AT:PARAMETERS_AT] != REFERENCE[: len(start) - REFERENCE_AT]:
        raise InputError(f"{name}: a KenLM binary of another byte order or machine: build it again on this one")
    if len(start) < COUNTS_AT:
        raise _cut(name, COUNTS_AT, len(data))
    order, multiplier, kind, has_words, version = PARAMETERS.unpack_from(start, PARAMETERS_AT)
    if not 0 <= kind < len(TYPES):
        raise InputError(f"{name}: a KenLM binary of type {kind}: expected 0 to {len(TYPES) - 1}")
    if version != (kind >= TRIE):
        raise InputError(f"{name}: search version {version} of a KenLM {TYPES[kind]}: expected {int(kind >= TRIE)}")
    if not 2 <= order <= HIGHEST_ORDER:
        raise InputError(f"{name}: order {order}: expected 2 to {HIGHEST_ORDER}")
    if kind < TRIE and not 1.0 < multiplier < 1e6:
        raise InputError(f"{name}: hash tables {multiplier:g} times as large as what they hold: expected more than 1")
    if COUNTS_AT + 8 * order > len(data):
        raise _cut(name, COUNTS_AT + 8 * order, len(data))
    counts = struct.unpack_from(f"<{order}Q", start, COUNTS_AT)
    if max(counts) > MOST_NGRAMS or counts[0] == 0:
        raise InputError(f"{name}: {' / '.join(map(str, counts))} n-grams cannot be: the file is damaged")
    return Header(order, multiplier, kind, bool(has_words), counts, header_end(order))


def _other_magic(start: bytes) -> str:
    after = start[len(FAMILY) :]
    if not start.startswith(FAMILY) or not after.startswith(VERSION):
        return "an unfinished or unknown KenLM binary: expected format version 5"
    version = after[len(VERSION) :].split(b"\n")[0][:8].decode("ascii", "replace")
    return f"a KenLM binary of format version {version}: expected 5; build it again from its ARPA file"


def _cut(name: str, needed: int, found: int) -> InputError:
    return InputError(f"{name}: the file is cut: it should have at least {needed:,} bytes, it has {found:,}")


def _aligned(offset: int) -> int:
    return -(-offset // 8) * 8


class _Sizes:
    """Assigns parts of a file one after another, and refuses one that reaches beyond its end."""

    def __init__(self, data: Bytes, at: int, name: str, size: int) -> None:
        self.data = data
        self.size = size
        self.at = at
        self.name = name

    def take(self, size: int) -> int:
        """Return where the next part, of ``size`` bytes, begins."""
        start, self.at = self.at, self.at + size
        if self.at > self.size:
            raise _cut(self.name, self.at, self.size)
        return start

    def number(self, offset: int, form: str) -> int:
        """Return the number at an offset that has been taken."""
        size = struct.calcsize(form)
        found: int = struct.unpack(form, self.data[offset : offset + size].tobytes())[0]
        return found

    def error(self, problem: str) -> InputError:
        """Return the error that says what is damaged."""
        return InputError(f"{self.name}: {problem}: the file is damaged")


def render_header(header: Header) -> bytes:
    """Return the bytes of a header."""
    version = int(header.is_trie)
    parameters = PARAMETERS.pack(header.order, header.multiplier, header.kind, header.has_words, version)
    counts = struct.pack(f"<{header.order}Q", *header.counts)
    return (MAGIC.ljust(REFERENCE_AT, b"\0") + REFERENCE + parameters + counts).ljust(header.end, b"\0")


def header_end(order: int) -> int:
    """Return where the header of a file ends."""
    return _aligned(COUNTS_AT + 8 * order)


# Hash tables


def _probing_layout(header: Header, sizes: _Sizes) -> FileLayout:
    start = sizes.take(8)
    if sizes.number(start, "<I") != 0:
        raise sizes.error(f"vocabulary version {sizes.number(start, '<I')}, not 0")
    bound = sizes.number(start + 4, "<I")
    if not 0 < bound <= header.counts[0] + 1:
        raise sizes.error(f"{bound:,} words, but {header.counts[0]:,} unigrams")
    slots = slots_of(header.counts[0], header.multiplier)
    vocabulary = sizes.take(HASHED_WORD * slots)
    shapes = np.zeros((header.order, COLUMNS), np.int64)
    rest = 4 if header.kind == REST_PROBING else 0
    shapes[0, :3] = sizes.take((8 + rest) * (header.counts[0] + 1)), header.counts[0] + 1, 8 + rest
    for k, count in enumerate(header.counts[1:], 1):
        record = 16 + rest if k + 1 < header.order else 12
        shapes[k, :3] = sizes.take(record * slots_of(count, header.multiplier)), 0, record
        shapes[k, SIZE] = slots_of(count, header.multiplier)
    return FileLayout(header, vocabulary, slots, bound, shapes, sizes.at)


def slots_of(count: int, multiplier: float) -> int:
    """Return the number of slots of a table of ``count`` entries, computed in float32 as KenLM does."""
    return max(count + 1, int(np.float32(multiplier) * np.float32(count)))


# Tries


def _trie_layout(header: Header, sizes: _Sizes) -> FileLayout:
    counts = header.counts
    start = sizes.take(8 + 8 * counts[0])
    hashes = sizes.number(start, "<Q")
    if hashes > counts[0]:
        raise sizes.error(f"{hashes:,} words, but {counts[0]:,} unigrams")
    if hashes + 1 >= 1 << 32:
        raise sizes.error("more words than 32 bits count")
    shapes = np.zeros((header.order, COLUMNS), np.int64)
    shapes[:, LOG_BITS], shapes[:, WEIGHT_BITS] = 31, 32
    if header.is_quantized:
        _take_tables(header, sizes, shapes)
    shapes[0, :3] = sizes.take(16 * (counts[0] + 2)), counts[0] + 2, 128
    for k in range(1, header.order):
        _take_order(header, sizes, shapes, k)
    return FileLayout(header, start + 8, hashes, hashes + 1, shapes, sizes.at)


def _take_tables(header: Header, sizes: _Sizes, shapes: Longs) -> None:
    """Assign the tables of quantized values: for each order log-probabilities, and but for the last also weights."""
    start = sizes.take(8)
    version, log_bits, weight_bits = (sizes.number(start + index, "<B") for index in range(3))
    if version != QUANT_VERSION:
        raise sizes.error(f"quantization version {version}, not {QUANT_VERSION}")
    if not (1 <= log_bits <= 25 and 1 <= weight_bits <= 25):
        raise sizes.error(f"quantized to {log_bits} and {weight_bits} bits")
    for k in range(1, header.order):
        shapes[k, LOG_BITS], shapes[k, LOG_TABLE] = log_bits, sizes.take(4 << log_bits)
        if k + 1 < header.order:
            shapes[k, WEIGHT_BITS], shapes[k, WEIGHT_TABLE] = weight_bits, sizes.take(4 << weight_bits)


def _take_order(header: Header, sizes: _Sizes, shapes: Longs, k: int) -> None:
    """Assign the records of the n-grams of ``k`` + 1 words: packed bits, and one record more than there are n-grams."""
    counts, shape = header.counts, shapes[k]
    shape[WORD_BITS] = counts[0].bit_length()
    if k + 1 == header.order:
        shape[LOG_AT], shape[WEIGHT_BITS] = shape[WORD_BITS], 0
    else:
        # Quantized records hold the weight first.
        weight_first = header.is_quantized
        shape[LOG_AT] = shape[WORD_BITS] + (shape[WEIGHT_BITS] if weight_first else 0)
        shape[WEIGHT_AT] = shape[WORD_BITS] + (0 if weight_first else shape[LOG_BITS])
        shape[NEXT_AT] = shape[WORD_BITS] + shape[LOG_BITS] + shape[WEIGHT_BITS]
        shape[NEXT_BITS] = counts[k + 1].bit_length()
        if header.has_arrays:
            _take_highs(header, sizes, shape, k)
    bits = int(shape[WORD_BITS] + shape[LOG_BITS] + shape[WEIGHT_BITS] + shape[NEXT_BITS])
    shape[RECORD], shape[SIZE] = bits, counts[k] + 1
    shape[START] = sizes.take(((counts[k] + 1) * bits + 7) // 8 + 8)


def _take_highs(header: Header, sizes: _Sizes, shape: Longs, k: int) -> None:
    """Assign the array of high parts of pointers, which leaves fewer bits of each in its record.

    Its header begins where the part before it ends, the array itself at the next multiple of eight after that.
    """
    start = sizes.at
    if start + 8 > sizes.size:
        raise _cut(sizes.name, start + 8, sizes.size)
    version, most = sizes.number(start, "<B"), sizes.number(start + 1, "<B")
    if version != 0:
        raise sizes.error(f"pointer arrays of version {version} at byte {start}, not 0")
    bits = int(shape[NEXT_BITS])
    high = high_bits(header.counts[k], header.counts[k + 1], most)
    shape[NEXT_BITS], shape[HIGHS] = bits - high, (header.counts[k + 1] >> (bits - high)) + 1
    sizes.take(8 * (1 + int(shape[HIGHS])) + 7)
    shape[HIGH_START] = _aligned(start) + 8


def high_bits(count: int, largest: int, most: int) -> int:
    """Return how many bits of each of ``count`` + 1 pointers up to ``largest`` go to the array: the fewest of those
    that make the file smallest.
    """
    bits = largest.bit_length()
    return min(range(min(bits, most) + 1), key=lambda high: 64 * (largest >> (bits - high)) - (count + 1) * high)
