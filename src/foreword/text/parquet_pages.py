"""How large the pages of a Parquet file are, seen while it is read and before they are unpacked.

A page is the least that can be read, and nothing but its own header says how large it is: the footer knows row groups.
So the stream that Arrow reads from looks at the headers as they pass by. Arrow has to read in buffers, column by
column from front to back (``pre_buffer`` off), so that a read goes on where an earlier one stopped, or begins a column.

A header is a struct of Thrift's compact protocol (parquet-format, ``PageHeader``): 1 type, 2 and 3 the size unpacked
and packed, then one of 5, 7, 8, a struct whose field 1 is the number of values.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

DICTIONARY = 2
MOST_HEADER = 16 << 10
"""Statistics may hold two values of any length; a header that is longer is not followed further."""


class LargePagesError(Exception):
    """What would have to be held at a time is more than is allowed."""

    def __init__(self, size: int, columns: int) -> None:
        super().__init__(f"pages of {columns} columns that take {size:,} bytes")
        self.size, self.columns = size, columns


class LongRowsError(Exception):
    """Rows of a page are so long that fewer have to be read at a time."""

    def __init__(self, rows: int) -> None:
        super().__init__(f"{rows} rows at a time")
        self.rows = rows


@dataclass(frozen=True, slots=True)
class Page:
    kind: int
    unpacked: int
    packed: int
    values: int
    header: int


class WatchedPages:
    """A stream of a Parquet file. most: bytes that the pages of all columns may take at a time, packed and not."""

    def __init__(self, stream: BinaryIO, most: int) -> None:
        self._stream, self._most = stream, most
        self._columns: dict[int, _Column] | None = None  # by where each is to be read next
        self._finished = self._rows = 0
        self._few = self._bytes = 0

    def begin(self, rows: int, few: int, size: int) -> None:
        """A row group of so many rows is read next, ``few`` at a time, which should be about ``size`` bytes."""
        self._columns, self._finished, self._rows = {}, 0, rows
        self._few, self._bytes = few, size

    def read(self, size: int = -1) -> bytes:
        if self._columns is None:
            return self._stream.read(size)
        place = self._stream.tell()
        data = self._stream.read(size)
        column = self._columns.pop(place, None)
        if column is None or (column.next_page == place and column.values >= self._rows):
            self._finished += column.held if column else 0
            column = _Column(place)
        self._columns[place + len(data)] = column
        for page in column.pages(place, data):
            self._check(page)
        return data

    def _check(self, page: Page) -> None:
        assert self._columns is not None
        held = self._finished + sum(column.held for column in self._columns.values())
        if held > self._most:
            raise LargePagesError(held, len(self._columns))
        wanted = max(1, self._bytes * page.values // max(1, page.unpacked))
        if page.unpacked > 16 * self._bytes and self._few > 4 * wanted:
            raise LongRowsError(wanted)

    # What else Arrow asks of a stream

    def seek(self, place: int, whence: int = 0) -> int:
        return self._stream.seek(place, whence)

    def tell(self) -> int:
        return self._stream.tell()

    def seekable(self) -> bool:
        return True

    def readable(self) -> bool:
        return True

    def writable(self) -> bool:
        return False

    @property
    def closed(self) -> bool:
        return self._stream.closed

    def close(self) -> None:
        """Whoever opened it closes it."""


class _Column:
    """A column's pages as its bytes pass by."""

    def __init__(self, place: int) -> None:
        self.next_page: int | None = place
        self.values = self._dictionary = self._page = 0
        self._begun = b""  # of a header that the last read has cut

    @property
    def held(self) -> int:
        return self._dictionary + self._page

    def pages(self, place: int, data: bytes) -> Iterator[Page]:
        """The pages whose headers are in these bytes, which lie at ``place``."""
        if self._begun:
            data, place, self._begun = self._begun + data, place - len(self._begun), b""
        while self.next_page is not None and self.next_page < place + len(data):
            inside = self.next_page - place
            try:
                page = page_header(data[inside : inside + MOST_HEADER])
            except IndexError:
                if len(data) - inside < MOST_HEADER:
                    self._begun = data[inside:]
                else:
                    self.next_page = None
                return
            except ValueError:  # damaged, which Arrow will say better
                self.next_page = None
                return
            self.next_page += page.header + page.packed
            if page.kind == DICTIONARY:
                self._dictionary = 2 * page.unpacked  # its bytes, and what is made of them
                self._page = page.packed
            else:
                self.values += page.values
                self._page = page.packed + page.unpacked
            yield page


def page_header(data: bytes) -> Page:
    """Raise IndexError if it is cut off, ValueError if it is none."""
    reader = _Thrift(data)
    fields = reader.struct({5, 7, 8})
    kind, unpacked, packed = (fields.get(number, -1) for number in (1, 2, 3))
    if not 0 <= kind <= 3 or unpacked < 0 or packed < 0:
        raise ValueError("not a page header")
    return Page(kind, unpacked, packed, max(0, fields.get(-1, 0)), reader.place)


class _Thrift:
    """As much of the compact protocol as it takes to read past anything."""

    def __init__(self, data: bytes) -> None:
        self._data, self.place = data, 0

    def struct(self, inner: set[int], depth: int = 0) -> dict[int, int]:
        """Whole numbers by field; field 1 of a struct that is a field in ``inner`` is found under −1."""
        if depth > 8:
            raise ValueError("too deep")
        found: dict[int, int] = {}
        number = 0
        while (head := self._byte()) != 0:
            kind, step = head & 15, head >> 4
            number = number + step if step else _signed(self._number())
            if kind in (4, 5, 6):
                found[number] = _signed(self._number())
            elif kind == 12:
                within = self.struct(set(), depth + 1)
                if number in inner:
                    found[-1] = within.get(1, 0)
            else:
                self._skip(kind, depth)
        return found

    def _skip(self, kind: int, depth: int) -> None:
        if kind in (1, 2):  # true and false, which are in the head
            return
        if kind == 3:
            self.place += 1
        elif kind == 7:
            self.place += 8
        elif kind == 8:
            length = self._number()
            self.place += length
        elif kind in (9, 10):
            self._skip_list(depth)
        else:
            raise ValueError("no such type")

    def _skip_list(self, depth: int) -> None:
        head = self._byte()
        length = head >> 4 if head >> 4 < 15 else self._number()
        for _ in range(length):
            if head & 15 in (1, 2):
                self.place += 1
            elif head & 15 in (4, 5, 6):
                self._number()
            elif head & 15 == 12:
                self.struct(set(), depth + 1)
            else:
                self._skip(head & 15, depth + 1)
            self._data[self.place - 1]

    def _byte(self) -> int:
        byte = self._data[self.place]
        self.place += 1
        return byte

    def _number(self) -> int:
        value = shift = 0
        while True:
            byte = self._byte()
            value |= (byte & 127) << shift
            if byte < 128:
                return value
            shift += 7
            if shift > 63:
                raise ValueError("too long a number")


def _signed(value: int) -> int:
    """Zigzag: 0, −1, 1, −2, …"""
    return (value >> 1) ^ -(value & 1)
