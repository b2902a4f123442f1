"""fastText's own files, ``.bin`` and ``.ftz``, both ways.

Little-endian throughout. A file is settings, a dictionary, and two matrices: rows of inputs (words, then buckets of
n-grams) and of outputs (words or labels). In a ``.ftz`` either may be quantised: a row is then a code of one byte for
every few columns, looked up in a table of 256 centroids, and perhaps a code for its length.

Files from before the format had a version begin with the settings; they are read too. Whatever a file declares is
compared with its remaining size before anything is allocated.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

import numpy as np

from foreword.arrays import Array, Bytes, Floats, Ints, Longs, SignedBytes
from foreword.errors import InputError
from foreword.storage.atomic import atomic_file

MAGIC = 793712314
VERSION = 12

END = b"</s>"

CBOW, SKIP_GRAM, SUPERVISED = 1, 2, 3
HIERARCHICAL, NEGATIVE, SOFTMAX, ONE_VS_ALL = 1, 2, 3, 4

WORD, LABEL = 0, 1
CENTROIDS = 256
ROWS_AT_ONCE = 1 << 16

_SETTINGS = struct.Struct("<12id")


@dataclass(frozen=True, slots=True)
class Settings:
    """fastText's settings, under its own names and in its own order."""

    dim: int
    ws: int
    epoch: int
    minCount: int  # noqa: N815
    neg: int
    wordNgrams: int  # noqa: N815
    loss: int
    model: int
    bucket: int
    minn: int
    maxn: int
    lrUpdateRate: int  # noqa: N815
    t: float

    def __iter__(self) -> Iterator[int | float]:
        return (getattr(self, name) for name in self.__slots__)


@dataclass(frozen=True, slots=True)
class ProductQuantizer:
    """centroids: float32 (dim * 256,): 256 for each part of ``dsub`` columns (the last has ``lastdsub``)."""

    dim: int
    nsubq: int
    dsub: int
    lastdsub: int
    centroids: Floats


@dataclass(frozen=True, slots=True)
class QuantizedMatrix:
    """codes: uint8 (rows * nsubq,); norms: a code for each row's length and its quantizer, or None."""

    rows: int
    columns: int
    codes: Bytes
    quantizer: ProductQuantizer
    norm_codes: Bytes | None
    norm_quantizer: ProductQuantizer | None

    def to_floats(self) -> Floats:
        """Return the rows as fastText reads them."""
        pq = self.quantizer
        codes = self.codes.reshape(self.rows, pq.nsubq)
        parts = []
        for part in range(pq.nsubq):
            width = pq.lastdsub if part == pq.nsubq - 1 else pq.dsub
            start = part * CENTROIDS * pq.dsub
            table = pq.centroids[start : start + CENTROIDS * width].reshape(CENTROIDS, width)
            parts.append(table[codes[:, part]])
        matrix = np.concatenate(parts, axis=1)
        if self.norm_codes is not None and self.norm_quantizer is not None:
            with np.errstate(over="ignore"):
                matrix = matrix * self.norm_quantizer.centroids[self.norm_codes][:, None]
            if not np.isfinite(matrix).all():
                raise InputError("a quantised row times its length is not finite: the file is damaged")
        return np.ascontiguousarray(matrix, np.float32)

    def to_arrays(self, name: str) -> dict[str, Array]:
        """Return the arrays of a model folder, with names that begin with ``name``."""
        arrays: dict[str, Array] = {f"{name}_codes": self.codes, f"{name}_centroids": self.quantizer.centroids}
        if self.norm_codes is not None and self.norm_quantizer is not None:
            arrays |= {f"{name}_norms": self.norm_codes, f"{name}_norm_centroids": self.norm_quantizer.centroids}
        return arrays

    @classmethod
    def from_arrays(
        cls, arrays: Mapping[str, Array], name: str, rows: int, columns: int, width: int
    ) -> QuantizedMatrix:
        """Build a matrix from a model folder; raise a ValueError if malformed. width: columns that share a code."""
        if not 0 < width <= columns:
            raise ValueError(f"{width} of {columns} columns cannot share a code")
        parts = -(-columns // width)
        quantizer = ProductQuantizer(
            columns, parts, width, columns - (parts - 1) * width, _fitting(arrays, f"{name}_centroids", columns)
        )
        codes = _fitting(arrays, f"{name}_codes", rows * parts)
        if f"{name}_norms" not in arrays:
            return cls(rows, columns, codes, quantizer, None, None)
        norms = ProductQuantizer(1, 1, 1, 1, _fitting(arrays, f"{name}_norm_centroids", 1))
        return cls(rows, columns, codes, quantizer, _fitting(arrays, f"{name}_norms", rows), norms)


def _fitting(arrays: Mapping[str, Array], name: str, size: int) -> Array:
    """Return codes, one byte each, or centroids, 256 per column; raise a ValueError unless their size fits."""
    array = arrays.get(name)
    dtype, shape = (np.float32, (size * CENTROIDS,)) if name.endswith("centroids") else (np.uint8, (size,))
    if array is None or array.dtype != dtype or array.shape != shape:
        raise ValueError(f"expected {name!r} of {dtype.__name__} and the shape {shape}")
    return array


Matrix = Floats | QuantizedMatrix


@dataclass(frozen=True, slots=True)
class FastTextFile:
    """The content of a file.

    words: every entry of the dictionary as bytes, in its order; counts: int64; types: int8, 0 a word, 1 a label.
    prune: int32 (n, 2), the buckets that have a row and their rows, or None if all have.
    """

    settings: Settings
    words: list[bytes]
    counts: Longs
    types: SignedBytes
    tokens: int
    prune: Ints | None
    inputs: Matrix
    outputs: Matrix

    @property
    def number_of_words(self) -> int:
        """Number of entries that are words."""
        return int((self.types == WORD).sum())

    @property
    def number_of_labels(self) -> int:
        """Number of entries that are labels."""
        return int((self.types == LABEL).sum())

    def check(self) -> None:
        """Raise a ValueError unless every row that the dictionary refers to exists: nothing may be read beyond a
        matrix.
        """
        if ((self.types != WORD) & (self.types != LABEL)).any() or (np.diff(self.types) < 0).any():
            raise ValueError("the dictionary's labels do not follow its words")
        rows = rows_of(self.inputs), rows_of(self.outputs)
        check_sizes(self.settings, self.number_of_words, self.number_of_labels, self.prune, *rows)
        for matrix in (self.inputs, self.outputs):
            columns = matrix.columns if isinstance(matrix, QuantizedMatrix) else matrix.shape[1]
            if columns != self.settings.dim:
                raise ValueError(f"a matrix of {columns} columns in a model of {self.settings.dim}")


def check_sizes(settings: Settings, words: int, labels: int, prune: Ints | None, inputs: int, outputs: int) -> None:
    """Raise a ValueError unless there are enough rows of inputs and outputs."""
    if not _sensible(settings):
        raise ValueError("not a fastText model: its settings make no sense")
    buckets = settings.bucket if prune is None else _pruned_rows(prune, settings.bucket)
    uses_buckets = settings.maxn > 0 or (settings.model == SUPERVISED and settings.wordNgrams > 1)
    if inputs < words or (uses_buckets and inputs < words + buckets):
        raise ValueError(f"{inputs} rows of inputs for {words} words and {buckets} buckets")
    wanted = labels if settings.model == SUPERVISED else words
    if settings.model == SUPERVISED and not wanted:
        raise ValueError("a classifier without labels")
    if outputs < wanted - (settings.loss == HIERARCHICAL):
        raise ValueError(f"{outputs} rows of outputs for {wanted}")


MOST_PRUNED = 1 << 27
"""Most buckets of a pruned model, each of which takes a bit and a half of memory; fastText's default is two million."""


def _pruned_rows(prune: Ints, buckets: int) -> int:
    """Return the number of rows that the remaining buckets need."""
    if prune.ndim != 2 or prune.shape[1] != 2 or prune.dtype != np.int32:
        raise ValueError("the pruned buckets must be pairs of int32")
    if buckets > MOST_PRUNED:
        raise ValueError(f"{buckets} buckets: a pruned model has at most {MOST_PRUNED}")
    if not len(prune):
        return 0
    if prune.min() < 0 or prune[:, 0].max() >= buckets or len(np.unique(prune[:, 0])) < len(prune):
        raise ValueError("a pruned bucket is out of range, or occurs twice")
    return int(prune[:, 1].max()) + 1


def rows_of(matrix: Matrix) -> int:
    """Return the number of rows."""
    return matrix.rows if isinstance(matrix, QuantizedMatrix) else len(matrix)


def looks_like_fasttext(path: Path) -> bool:
    """Return whether a file begins as fastText's do: a magic number or, in old files, plausible settings."""
    with path.open("rb") as file:
        head = file.read(64)
    if len(head) >= 8 and struct.unpack_from("<i", head)[0] == MAGIC:
        return True
    if len(head) < _SETTINGS.size:
        return False
    return _sensible(Settings(*_SETTINGS.unpack_from(head)))


def _sensible(settings: Settings) -> bool:
    return (
        1 <= settings.dim <= 1 << 16
        and settings.loss in (HIERARCHICAL, NEGATIVE, SOFTMAX, ONE_VS_ALL)
        and settings.model in (CBOW, SKIP_GRAM, SUPERVISED)
        and 0 <= settings.bucket < 1 << 31
        and 0 <= settings.minn <= 1000
        and 0 <= settings.maxn <= 1000
        and 0 <= settings.wordNgrams <= 1000
    )


def read_fasttext(path: str | Path) -> FastTextFile:
    """Read a whole file. Matrices are views of it, so that nothing is in memory twice."""
    path = Path(path)
    try:
        with path.open("rb") as file:
            if not path.stat().st_size:
                raise InputError(f"{path}: the file is empty")
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    return _Reader(path, mapped).read()


class _Reader:
    """Reads a file from front to back; every failure names the file and what was being read."""

    def __init__(self, path: Path, file: mmap.mmap) -> None:
        self.path = path
        self.file = file
        self.data = np.frombuffer(file, np.uint8)
        self.at = 0

    def read(self) -> FastTextFile:
        """Return the content of the file."""
        settings, version = self._settings()
        words, counts, types, tokens, prune = self._dictionary(version)
        quantised = version > 0 and self._number("<B", "whether the inputs are quantised") == 1
        inputs = self._quantised("inputs") if quantised else self._matrix("inputs")
        if prune is not None and not quantised:
            self._fail("a pruned dictionary needs quantised inputs")
        outputs_too = version > 0 and self._number("<B", "whether the outputs are quantised") == 1
        outputs = self._quantised("outputs") if quantised and outputs_too else self._matrix("outputs")
        file = FastTextFile(settings, words, counts, types, tokens, prune, inputs, outputs)
        try:
            file.check()
        except ValueError as error:
            self._fail(str(error))
        return file

    def _settings(self) -> tuple[Settings, int]:
        version = 0
        if len(self.data) >= 8 and self._number("<i", "the magic number") == MAGIC:
            version = self._number("<i", "the version")
            if version not in (11, 12):
                self._fail(f"version {version} of the format is not known: expected 11 or 12")
        else:
            self.at = 0
        settings = Settings(*_SETTINGS.unpack(self._read(_SETTINGS.size, "the settings").tobytes()))
        if not _sensible(settings):
            self._fail("not a fastText model: its settings make no sense")
        if version == 11 and settings.model == SUPERVISED:
            settings = replace(settings, maxn=0)
        return settings, version

    def _dictionary(self, version: int) -> tuple[list[bytes], Longs, SignedBytes, int, Ints | None]:
        size, words, labels = (self._number("<i", "the size of the dictionary") for _ in range(3))
        tokens = self._number("<q", "the number of tokens")
        pruned = self._number("<q", "the number of pruned buckets") if version else -1
        if min(size, words, labels) < 0 or words + labels != size:
            self._fail(f"a dictionary of {size} entries with {words} words and {labels} labels")
        if size * 10 > len(self.data) - self.at:
            self._fail(f"{size} entries declared, more than fit into the file")
        found: list[bytes] = []
        counts, types = np.empty(size, np.int64), np.empty(size, np.int8)
        for entry in range(size):
            end = self.file.find(b"\0", self.at)
            if end < 0:
                self._fail("a word of the dictionary does not end")
            found.append(self.file[self.at : end])
            self.at = end + 1
            counts[entry], types[entry] = struct.unpack("<qb", self._read(9, f"entry {entry}").tobytes())
        if (types == LABEL).sum() != labels:
            self._fail(f"{labels} labels declared but {(types == LABEL).sum()} there")
        prune = None
        if pruned >= 0:
            prune = self._array(np.dtype("<i4"), pruned * 2, "the pruned buckets").reshape(-1, 2)
        return found, counts, types, tokens, prune

    def _matrix(self, name: str) -> Floats:
        rows, columns = self._number("<q", f"the rows of the {name}"), self._number("<q", f"the columns of the {name}")
        if rows < 0 or not 0 < columns <= 1 << 16:
            self._fail(f"{name} of {rows} rows and {columns} columns")
        matrix = self._array(np.dtype("<f4"), rows * columns, f"the {name}").reshape(rows, columns)
        for first in range(0, rows, ROWS_AT_ONCE):
            if not np.isfinite(matrix[first : first + ROWS_AT_ONCE]).all():
                self._fail(f"the {name} hold a number that is not finite")
        return matrix

    def _quantised(self, name: str) -> QuantizedMatrix:
        with_norms = self._number("<B", f"the norms of the {name}") == 1
        rows, columns = self._number("<q", f"the rows of the {name}"), self._number("<q", f"the columns of the {name}")
        size = self._number("<i", f"the codes of the {name}")
        codes = self._array(np.dtype("u1"), size, f"the codes of the {name}")
        quantizer = self._quantizer(name)
        if quantizer.dim != columns or rows < 0 or rows * quantizer.nsubq != size:
            self._fail(f"{size} codes for {rows} rows of {columns} columns in {quantizer.nsubq} parts")
        if not with_norms:
            return QuantizedMatrix(rows, columns, codes, quantizer, None, None)
        norm_codes = self._array(np.dtype("u1"), rows, f"the norms of the {name}")
        norms = self._quantizer(f"norms of the {name}")
        if norms.dim != 1:
            self._fail(f"norms of {norms.dim} columns")
        return QuantizedMatrix(rows, columns, codes, quantizer, norm_codes, norms)

    def _quantizer(self, name: str) -> ProductQuantizer:
        dim, parts, width, last = (self._number("<i", f"the quantizer of the {name}") for _ in range(4))
        if not (0 < dim <= 1 << 16 and 0 < width <= dim and 0 < last <= width and (parts - 1) * width + last == dim):
            self._fail(f"a quantizer of {dim} columns in {parts} parts of {width} and {last}")
        centroids = self._array(np.dtype("<f4"), dim * CENTROIDS, f"the centroids of the {name}")
        if not np.isfinite(centroids).all():
            self._fail(f"the centroids of the {name} hold a number that is not finite")
        return ProductQuantizer(dim, parts, width, last, centroids)

    def _number(self, form: str, what: str) -> int:
        size = struct.calcsize(form)
        return int(struct.unpack(form, self._read(size, what).tobytes())[0])

    def _array(self, dtype: np.dtype[Any], count: int, what: str) -> Array:
        if count < 0 or count > (len(self.data) - self.at) // dtype.itemsize:
            self._fail(f"{what}: {count} numbers declared, more than the file has left")
        return self._read(count * dtype.itemsize, what).view(dtype)

    def _read(self, size: int, what: str) -> Bytes:
        if size > len(self.data) - self.at:
            self._fail(f"the file ends within {what}")
        read = self.data[self.at : self.at + size]
        self.at += size
        return read

    def _fail(self, what: str) -> NoReturn:
        raise InputError(f"{self.path}: {what} (byte {self.at})")


def write_fasttext(file: FastTextFile, path: str | Path) -> None:
    """Write version 12, which every fastText since 2017 reads; quantised matrices make it a ``.ftz``."""
    with atomic_file(path) as new, new.open("wb") as out:
        out.write(struct.pack("<ii", MAGIC, VERSION))
        out.write(_SETTINGS.pack(*file.settings))
        _write_dictionary(file, out)
        out.write(struct.pack("<B", isinstance(file.inputs, QuantizedMatrix)))
        _write_matrix(file.inputs, out)
        out.write(struct.pack("<B", isinstance(file.outputs, QuantizedMatrix)))
        _write_matrix(file.outputs, out)


def _write_dictionary(file: FastTextFile, out: BinaryIO) -> None:
    pruned = -1 if file.prune is None else len(file.prune)
    sizes = (len(file.words), file.number_of_words, file.number_of_labels, file.tokens, pruned)
    out.write(struct.pack("<iiiqq", *sizes))
    for word, count, kind in zip(file.words, file.counts.tolist(), file.types.tolist(), strict=True):
        if b"\0" in word:
            raise InputError(f"the word {word!r} has a NUL in it, which fastText's files cannot hold")
        out.write(word + b"\0" + struct.pack("<qb", count, kind))
    if file.prune is not None:
        out.write(np.ascontiguousarray(file.prune, "<i4").data)


def _write_matrix(matrix: Matrix, out: BinaryIO) -> None:
    if not isinstance(matrix, QuantizedMatrix):
        out.write(struct.pack("<qq", *matrix.shape))
        out.write(np.ascontiguousarray(matrix, "<f4").data)
        return
    out.write(struct.pack("<Bqqi", matrix.norm_codes is not None, matrix.rows, matrix.columns, len(matrix.codes)))
    out.write(np.ascontiguousarray(matrix.codes).data)
    _write_quantizer(matrix.quantizer, out)
    if matrix.norm_codes is not None and matrix.norm_quantizer is not None:
        out.write(np.ascontiguousarray(matrix.norm_codes).data)
        _write_quantizer(matrix.norm_quantizer, out)


def _write_quantizer(quantizer: ProductQuantizer, out: BinaryIO) -> None:
    out.write(struct.pack("<4i", quantizer.dim, quantizer.nsubq, quantizer.dsub, quantizer.lastdsub))
    out.write(np.ascontiguousarray(quantizer.centroids, "<f4").data)
