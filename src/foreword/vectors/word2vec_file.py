"""Word vectors in the files of other tools: word2vec's text and binary, fastText's ``.vec``, GloVe's text.

A line of text is a word and its numbers, separated by blanks; word2vec and fastText begin with a line that declares the
number of words and dimensions, GloVe does not. A binary file has, after such a line, for each word the word, a blank,
its numbers as float32, and perhaps a line end. The format is detected from the content, compressed or not.

Words are bytes and stay as they are. GloVe's largest files have words with blanks in them, which are read; any other
fault is an error: a line with too many or too few numbers, one that is no finite number, fewer or more words than were
declared. No memory is allocated for words that a first line only promises.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain, pairwise
from pathlib import Path
from typing import IO, Literal, cast, get_args

import numpy as np

from foreword.arrays import Bytes, Floats, frozen
from foreword.errors import InputError, SettingError
from foreword.protocols import Meter
from foreword.storage.atomic import atomic_file
from foreword.storage.joined import joined
from foreword.text.block import BLOCK_BYTES
from foreword.text.compression import COMPRESSIONS, decompressed, without_suffix
from foreword.text.files import Reader, opened
from foreword.tokens.strings import longer
from foreword.vectors.kernels_text import (
    AT,
    FULL,
    LINE,
    MORE,
    NUMBER_BYTES,
    ODD,
    ROW,
    USED,
    read_binary,
    read_text,
    write_text,
)
from foreword.vectors.word2vec_file_plain import (
    Shape,
    check_count,
    cut_short,
    parse_line,
    plain_size,
    shape_of,
    source_of,
)
from foreword.vectors.wordvectors import WordVectors

Form = Literal["word2vec", "word2vec-binary", "glove"]
"""Format of a file: text below a line with its sizes, binary, or text alone."""

NAMES: dict[str, Form] = {".vec": "word2vec", ".bin": "word2vec-binary", ".txt": "glove"}
"""Format of a file to be written, by the suffix of its name."""

LONGEST_WORD = 1 << 20
LONGEST_LINE = 64 << 20
ROWS_AT_ONCE = 4096


def read_vectors(path: str | Path, *, limit: int | None = None, meter: Meter | None = None) -> WordVectors:
    """Read a file of vectors, compressed or not; ``limit`` reads only the first words."""
    shape = shape_of(path)
    if shape is None:
        raise InputError(
            f"{path}: no word vectors: expected lines of a word and its numbers, or word2vec's binary file"
        )
    return _VectorReader(path, shape, limit).read(meter)


def looks_like_vectors(path: str | Path) -> bool:
    """Return whether a file is one of word vectors, judged by its beginning."""
    return shape_of(path) is not None


def form_of(name: str | Path) -> Form | None:
    """Return the format of a file name; None if it is not the name of a file of vectors."""
    return NAMES.get(Path(without_suffix(str(name))).suffix.lower())


def write_vectors(
    vectors: WordVectors, path: str | Path, form: Form | None = None, *, blanks: str | None = None
) -> int:
    """Write vectors so that gensim, fastText and word2vec's own tools read them; a name in ``.gz`` is compressed.

    form: by default that of the name. blanks: replaces a blank or line end within a word, which would end the word;
    without it such a word is an error. Return how many words had one. Numbers are written in as few digits as give the
    same float32 again.
    """
    form = form or form_of(path)
    if form is None or form not in get_args(Form):
        raise SettingError(f"{path}: expected a name in {', '.join(NAMES)}, or one of {', '.join(get_args(Form))}")
    packed = next((each.suffix for each in COMPRESSIONS if str(path).lower().endswith(each.suffix)), "")
    if packed not in ("", ".gz"):
        raise SettingError(f"{path}: vectors are written plain or as .gz")
    words, changed = _writable_words(vectors, blanks)
    with atomic_file(path) as new, _open_to_write(new, compress=packed == ".gz") as file:
        if form != "glove":
            file.write(b"%d %d\n" % (len(vectors), vectors.dimensions))
        for begin in range(0, len(vectors), ROWS_AT_ONCE):
            rows = vectors.rows.floats(slice(begin, begin + ROWS_AT_ONCE))
            wrong = np.flatnonzero(~np.isfinite(rows).all(axis=1))
            if len(wrong):
                raise InputError(
                    f"the vector of {vectors.word(begin + int(wrong[0]))!r} holds a number that is not finite"
                )
            file.write(_rendered(rows, words[begin : begin + len(rows)], form))
    return changed


# Reading


class _VectorReader:
    """Reads a file into a matrix and its words."""

    def __init__(self, path: str | Path, shape: Shape, limit: int | None) -> None:
        self.path = path
        self.shape = shape
        self.wanted = shape.words if limit is None else min(limit, shape.words)
        self.all = limit is None or limit >= shape.words
        self.source = source_of(path)
        self.matrix = np.empty((self._first_rows(), shape.dimensions), np.float32)
        self.ends = np.empty(len(self.matrix), np.int64)
        self.done = 0
        self.words: list[Bytes] = []
        self.word_bytes = 0
        self.buffer = np.empty(0, np.uint8)
        self.position = np.zeros(4, np.int64)
        self.position[LINE] = 1 if shape.header else 0

    def _first_rows(self) -> int:
        """Return the number of rows to allocate first: the declared one, which was compared with the file's size, or an
        estimate. Rows are added as they are needed.
        """
        stored = plain_size(self.source)
        if stored is None:
            return min(1024, self.wanted)
        return min(self.wanted, stored // self.shape.least + 1 if self.shape.header else stored // self._usual + 16)

    @property
    def _usual(self) -> int:
        """Bytes of a typical line."""
        return 6 * self.shape.dimensions + 6

    def read(self, meter: Meter | None) -> WordVectors:
        """Read the file to its end, or to the limit."""
        with opened(self.source) as reader:
            for block in self._entries(reader) if self.shape.binary else self._lines(reader):
                self._read_block(block)
                if meter:
                    meter("reading vectors", reader.taken, self.source.size)
                if self.done == self.wanted and not self.all:
                    break
        if self.shape.binary and self.done < self.wanted:
            raise cut_short(self.path, self.done, self.shape)
        if self.all:
            check_count(self.path, self.shape, self.done)
        data = np.concatenate([np.empty(0, np.uint8), *self.words])
        offsets = np.concatenate((np.zeros(1, np.int64), self.ends[: self.done]))
        return WordVectors(self.matrix[: self.done], data, offsets)

    def _lines(self, reader: Reader) -> Iterator[Bytes]:
        """Yield blocks of whole lines without the header."""
        rest, skip = np.empty(0, np.uint8), self.shape.header
        for chunk in decompressed(reader, BLOCK_BYTES):
            data = chunk.after(rest).data
            end = _last_line_end(data)
            if skip and end:
                data, end, skip = data[skip:], end - skip, 0
            rest = data[end:]
            if len(rest) > LONGEST_LINE:
                raise InputError(f"{self.path}: no word vectors: a line has over {LONGEST_LINE >> 20} MB")
            yield data[:end]
        yield np.append(rest[skip:], np.uint8(ord("\n")))

    def _entries(self, reader: Reader) -> Iterator[Bytes]:
        """Yield blocks that begin with the remainder of the last one."""
        rest, skip = np.empty(0, np.uint8), self.shape.header
        for chunk in decompressed(reader, BLOCK_BYTES):
            data = chunk.after(rest).data
            if len(data) >= skip:
                data, skip = data[skip:], 0
                yield data
                data = data[self.position[AT] :]
            rest = data
            if len(rest) > 4 * self.shape.dimensions + LONGEST_WORD:
                raise InputError(f"{self.path}: word {self.done + 1:,}: no blank ends it within {LONGEST_WORD:,} bytes")

    def _read_block(self, data: Bytes) -> None:
        """Read a block; unusual lines are read by Python, and rows are added when they run out."""
        if len(self.buffer) < len(data):
            self.buffer = np.empty(len(data), np.uint8)
        self.position[AT] = self.position[USED] = 0
        before = self.done
        status = MORE
        while True:
            status = self._run(frozen(data))
            if status == ODD:
                self._read_one(data)
            elif status == FULL and self.done < self.wanted:
                self._grow()
            else:
                break
        if status == FULL and self.all:
            self._refuse_more(data)
        self._check_finite(before)
        self.words.append(self.buffer[: self.position[USED]].copy())
        self.word_bytes += int(self.position[USED])

    def _run(self, data: Bytes) -> int:
        """Run the kernel on the rows that are still empty."""
        matrix, ends, size = self.matrix[self.done :], self.ends[self.done :], self.shape.dimensions
        self.position[ROW] = 0
        if self.shape.binary:
            status = read_binary(data, matrix.view(np.uint8).reshape(-1), 4 * size, self.buffer, ends, self.position)
        else:
            status = read_text(data, matrix.reshape(-1), size, self.buffer, ends, self.position)
        ends[: self.position[ROW]] += self.word_bytes
        self.done += int(self.position[ROW])
        return int(status)

    def _read_one(self, data: Bytes) -> None:
        """Read a line that the kernel left to Python: it is wrong, or only unusual."""
        at, used = int(self.position[AT]), int(self.position[USED])
        line = data[at : at + 1 + int(np.argmax(data[at:] == ord("\n")))].tobytes()
        self.position[AT] += len(line)
        self.position[LINE] += 1
        if not line.strip(b" \t\r\n"):
            return
        try:
            word, self.matrix[self.done] = parse_line(line, self.shape.dimensions)
        except ValueError as error:
            raise InputError(f"{self.path}: line {self.position[LINE]}: {error}") from error
        self.buffer[used : used + len(word)] = np.frombuffer(word, np.uint8)
        self.position[USED] += len(word)
        self.ends[self.done] = self.word_bytes + self.position[USED]
        self.done += 1

    def _grow(self) -> None:
        """Double the rows."""
        rows = min(2 * len(self.matrix) + 16, self.wanted)
        self.matrix, self.ends = longer(self.matrix, rows), longer(self.ends, rows)

    def _refuse_more(self, data: Bytes) -> None:
        """Raise an InputError if anything but line ends follows the declared words."""
        if data[self.position[AT] :].tobytes().strip(b" \t\r\n"):
            where = "the file" if self.shape.binary else f"line {self.position[LINE] + 1}"
            raise InputError(f"{self.path}: {where} continues after the {self.wanted:,} words that line 1 declares")

    def _check_finite(self, begin: int) -> None:
        """Raise an InputError for a binary number that is not finite; the text reader accepts none."""
        if self.shape.binary:
            wrong = np.flatnonzero(~np.isfinite(self.matrix[begin : self.done]).all(axis=1))
            if len(wrong):
                raise InputError(f"{self.path}: word {begin + wrong[0] + 1:,} holds a number that is not finite")


def _last_line_end(data: Bytes) -> int:
    """Return the length of the whole lines, searching their end from the end of the data."""
    window = 1 << 12
    while True:
        begin = max(0, len(data) - window)
        found = np.flatnonzero(data[begin:] == ord("\n"))
        if len(found) or not begin:
            return begin + int(found[-1]) + 1 if len(found) else 0
        window *= 8


# Writing


@contextmanager
def _open_to_write(path: Path, *, compress: bool) -> Iterator[IO[bytes]]:
    with path.open("wb") as file:
        if not compress:
            yield file
            return
        # Without name and time, so that the same vectors give the same bytes.
        with gzip.GzipFile("", "wb", compresslevel=6, fileobj=file, mtime=0) as packed:
            yield cast(IO[bytes], packed)


def _writable_words(vectors: WordVectors, blanks: str | None) -> tuple[list[bytes], int]:
    """Return the words as bytes, and how many were changed: a blank or a line end would end the word."""
    blob, ends = vectors.data.tobytes(), vectors.offsets.tolist()
    words = [blob[start:stop] for start, stop in pairwise(ends)]
    if not any(mark in blob for mark in b" \t\n\r"):
        return words, 0
    divided = [index for index, word in enumerate(words) if any(mark in word for mark in b" \t\n\r")]
    if blanks is None and divided:
        raise InputError(f"the word {vectors.word(divided[0])!r} holds a blank, which ends a word in these files")
    for index in divided:
        words[index] = re.sub(rb"[ \t\r\n]", (blanks or "").encode(), words[index])
    return words, len(divided)


def _rendered(rows: Floats, words: list[bytes], form: Form) -> bytes:
    """Return rows and their words as the bytes of a file."""
    if form == "word2vec-binary":
        raw = rows.astype("<f4", copy=False).tobytes()
        size = 4 * rows.shape[1]
        return b"".join(
            chain.from_iterable(
                (word, b" ", raw[row * size : row * size + size], b"\n") for row, word in enumerate(words)
            )
        )
    data, offsets = joined(words)
    out = np.empty(len(data) + len(words) + NUMBER_BYTES * rows.size, np.uint8)
    length = write_text(frozen(rows), data, offsets, out)
    return out[:length].tobytes()
