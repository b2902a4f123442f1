r"""ARPA files: n-gram models as text, which every n-gram tool since the 1990s reads and writes.

    \data\
    ngram 1=37
    \1-grams:
    log10 p(w) <TAB> w [<TAB> log10 back-off]
    …
    \end\

Logs are to the base ten there and natural here. A file may leave out a back-off weight (it is 0 then), the unknown word
(its log10 is -100 then, as in KenLM), and shorter n-grams that longer ones contain; those are added with the
probability that backing off gives them, so that no score changes.

Kernels read and write ordinary entries, a block of lines at a time. Python handles the rest, headers, unusual entries
and errors, with the same functions that ``plain.read_arpa`` is made of. Memory is allocated only for what the file can
hold, whatever its header declares.
"""

from __future__ import annotations

import gzip
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from foreword.arrays import Bytes, Floats, Ints, Longs
from foreword.errors import InputError
from foreword.ngram.hash_layout import CHUNK, GrowingHash, OrderRows, Spelled
from foreword.ngram.kernels_arpa import (
    AT,
    ENOUGH,
    ENTRIES,
    FULL,
    LINE,
    MORE,
    ODD,
    PENDING,
    ROWS,
    WordArrays,
    batch_of,
    read_ngrams,
    read_unigrams,
    write_entries,
)
from foreword.ngram.log10 import NEVER, Log10Ngrams
from foreword.ngram.model import HIGHEST_ORDER, NgramLM
from foreword.ngram.smoothing import GIVEN, method
from foreword.protocols import Json, Parts
from foreword.storage.atomic import atomic_file
from foreword.text.block import BLOCK_BYTES
from foreword.text.compression import decompressed
from foreword.text.files import SourceFile, find_files, opened
from foreword.text.unicode import valid_utf8
from foreword.tokens.strings import StringTable, gather_strings
from foreword.tokens.vocab import END, UNKNOWN, Vocab

START = "<s>"
UPPER_UNKNOWN = "<UNK>"
"""The spelling of ``<unk>`` in some tools."""

NO_UNKNOWN = -100.0
"""KenLM's log10 probability of unknown words if a file has none."""

FOREWORD_LINES = 1000
"""Lines that may precede the data."""

LONGEST_LINE = 16 << 20
MOST_DIGITS = 18
"""Digits of a declared number of n-grams, so that it fits 64 bits."""

LOG10 = math.log(10)
_BLANKS = " \t\r"
"""The separators of words, as in KenLM; a no-break space or another blank of Unicode is part of its word."""

WORDS_AT_ONCE = 1 << 16
BYTES_AT_ONCE = 1 << 22

LEAST_BYTES = 4
"""The least size of an n-gram in a file: six bytes as text, and in xz files about five."""


def looks_like_arpa(path: str | Path) -> bool:
    """Return whether the line that begins an ARPA file's data is among the first ones."""
    try:
        lines = ArpaLines(path)
        while lines.number < FOREWORD_LINES:
            if lines.next("\\data\\").lower() == "\\data\\":
                return True
    except InputError:
        pass
    return False


# ArpaLines, headers and entries


class ArpaLines:
    """The lines of an ARPA file: in blocks of whole lines for kernels, one by one for Python.

    data: uint8, the block, each line with its end. position: int64, where the next line is and the number of the one
    before it, at AT and LINE; the other places are the kernels'. stored: how many bytes the file has, 0 if unknown.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = path
        self.data = np.empty(0, np.uint8)
        self.position = np.zeros(5, np.int64)
        self._text = b""
        files = find_files(path)
        if len(files) != 1:
            raise InputError(f"{path}: expected one ARPA file, found {len(files)} files")
        self.stored = files[0].size or 0
        self._blocks = _blocks_of_lines(files[0])

    @property
    def number(self) -> int:
        """The number of the line read last."""
        return int(self.position[LINE])

    def fill(self) -> bool:
        """Read the next block; return False if there is none."""
        self.data, self._text = next(self._blocks, self.data[:0]), b""
        self.position[AT] = 0
        return len(self.data) > 0

    def next(self, expected: str) -> str:
        """Return the next line that is not blank, stripped."""
        while self.position[AT] < len(self.data) or self.fill():
            self._text = self._text or self.data.tobytes()
            at = int(self.position[AT])
            end = self._text.index(b"\n", at)
            self.position[AT] = end + 1
            self.position[LINE] += 1
            if line := self._text[at:end].decode().strip(_BLANKS):
                return line
        raise InputError(f"{self.path}: the file ends after line {self.number}, where {expected} was expected")

    def error(self, problem: str) -> InputError:
        """Return an error that names the file and the line read last."""
        return InputError(f"{self.path}: line {self.number}: {problem}")


def _blocks_of_lines(file: SourceFile) -> Iterator[Bytes]:
    with opened(file) as reader:
        rest = np.empty(0, np.uint8)
        for chunk in valid_utf8(decompressed(reader, BLOCK_BYTES), reader.name, "strict"):
            data = chunk.after(rest).data
            end = _last_line_end(data)
            rest = data[end:]
            if len(rest) > LONGEST_LINE:
                raise InputError(f"{file.name}: not an ARPA file: a line is longer than {LONGEST_LINE >> 20} MB")
            if end:
                yield data[:end]
        if len(rest):
            yield np.append(rest, np.uint8(ord("\n")))


def _last_line_end(data: Bytes) -> int:
    """Return the length of the part of whole lines, searching from the end, where it nearly always is."""
    window = 1 << 10
    while True:
        found = np.flatnonzero(data[max(0, len(data) - window) :] == ord("\n"))
        if len(found):
            return max(0, len(data) - window) + int(found[-1]) + 1
        if window >= len(data):
            return 0
        window *= 16


def read_header(lines: ArpaLines) -> list[int]:
    """Return how many n-grams of each order the file declares; the next line is the first unigram."""
    while lines.next("\\data\\").lower() != "\\data\\":
        if lines.number > FOREWORD_LINES:
            raise InputError(f"{lines.path}: not an ARPA file: there is no \\data\\ line")
    sizes: list[int] = []
    while (line := lines.next("\\1-grams:").lower()) != "\\1-grams:":
        head, _, count = line.partition("=")
        order, count = head.removeprefix("ngram").strip(), count.strip()
        numbers = order.isdecimal() and count.isdecimal() and max(len(order), len(count)) <= MOST_DIGITS
        if not head.startswith("ngram") or not numbers:
            raise lines.error(f"expected 'ngram {len(sizes) + 1}=COUNT', found {line[:60]!r}")
        if int(order) != len(sizes) + 1:
            raise lines.error(f"expected the number of {len(sizes) + 1}-grams, found that of {order}-grams")
        sizes.append(int(count))
    if not 1 <= len(sizes) <= HIGHEST_ORDER:
        raise lines.error(f"order {len(sizes)}: expected 1 to {HIGHEST_ORDER}")
    return sizes


def open_section(lines: ArpaLines, order: int) -> None:
    """Read the heading of an order's n-grams."""
    if lines.next(f"\\{order}-grams:").lower() != f"\\{order}-grams:":
        raise lines.error(f"expected \\{order}-grams:, the header declares fewer {order - 1}-grams than there are")


def read_end(lines: ArpaLines) -> None:
    """Read the last line of the data, and the rest of the file."""
    if lines.next("\\end\\").lower() != "\\end\\":
        raise lines.error("expected \\end\\: the header declares fewer n-grams than there are")
    while lines.fill():  # the rest means nothing, but a truncated file is not to be trusted
        pass


def read_entry(lines: ArpaLines, order: int, index: int, declared: int) -> tuple[list[str], float, float]:
    """Read the next entry, number ``index`` of its section: its words, log10 of its probability and back-off weight."""
    line = lines.next(f"{order}-gram {index + 1} of {declared}")
    if line.startswith("\\"):
        raise lines.error(f"expected {declared} {order}-grams, found {index}")
    fields = [field for field in line.replace("\t", " ").split(" ") if field]
    if len(fields) not in (order + 1, order + 2):
        raise lines.error(f"expected a log, {order} words and perhaps a back-off weight, found {len(fields)} fields")
    try:
        log = float(fields[0])
        backoff = float(fields[order + 1]) if len(fields) == order + 2 else 0.0
    except ValueError:
        raise lines.error(f"a number was expected in {line[:60]!r}") from None
    if math.isnan(log) or math.isnan(backoff) or log > 0 or backoff == math.inf:
        raise lines.error(f"{fields[0]} is not a log-probability" if log > 0 or math.isnan(log) else "bad back-off")
    return [UNKNOWN if word == UPPER_UNKNOWN else word for word in fields[1 : order + 1]], log, backoff


def check_words(lines: ArpaLines, words: list[str], ids: Sequence[int]) -> None:
    """Raise an error unless all words of an n-gram are unigrams, -1 being none, and ``<s>`` is at most the first."""
    for word, id in zip(words, ids, strict=True):
        if id < 0:
            raise lines.error(f"the word {word!r} is not among the 1-grams")
    if START in words[1:]:
        raise lines.error("<s> stands inside an n-gram")


def repeated(lines: ArpaLines, words: list[str]) -> InputError:
    """Return the error for an n-gram that is listed twice."""
    return lines.error(f"the {len(words)}-gram {' '.join(words)!r} is listed twice")


def natural(log10: float, scale: float = LOG10) -> float:
    """Return the natural log, rounded to float32 as in a model; with ``scale`` 1 the log10 itself."""
    with np.errstate(over="ignore"):
        return float(np.float32(log10 * scale))


# Reading


def read_arpa(path: str | Path) -> NgramLM:
    """Read an ARPA file, plain or compressed."""
    return _read(path, LOG10)


def read_log10(path: str | Path) -> Log10Ngrams:
    """Read an ARPA file, plain or compressed, with log10 values as they are: no rounding but to float32."""
    model = _read(path, 1.0)
    return Log10Ngrams(model.vocab, model.sizes_, model.ngrams)


def _read(path: str | Path, scale: float) -> NgramLM:
    """Read an ARPA file; its logs are multiplied by ``scale``."""
    lines = ArpaLines(path)
    sizes = read_header(lines)
    words = _Unigrams(scale)
    words.read(lines, sizes[0])
    vocab, unigrams = words.finish()
    # A header is plausible if the file is long enough for what it declares, even if compressed.
    model = GrowingHash(unigrams, sizes[1:] if LEAST_BYTES * sum(sizes) <= lines.stored else ())
    for order, size in enumerate(sizes[1:], 2):
        open_section(lines, order)
        _Section(lines, order, size, highest=order == len(sizes)).read(words, model)
    read_end(lines)
    arrays = model.arrays()
    settings: dict[str, Json] = {"order": len(sizes), "smoothing": GIVEN, "sizes": [*model.sizes], "discounts": []}
    return NgramLM.from_parts(Parts(settings, arrays, vocab))


class _Unigrams:
    """The unigrams of a file. A word's number in the table is one more than its entry's in the file.

    ids: int32, by number, what the model calls each string. scale: what logs are multiplied by.
    """

    def __init__(self, scale: float) -> None:
        self.scale = scale
        self.table = StringTable()
        self.ids = np.empty(0, np.int32)
        self._values: list[Floats] = []

    def read(self, lines: ArpaLines, declared: int) -> None:
        """Read the section of unigrams, of which the header declared ``declared``."""
        position = lines.position
        position[ENTRIES] = position[ROWS] = 0
        offsets, numbers = np.empty(WORDS_AT_ONCE + 1, np.int64), np.empty(WORDS_AT_ONCE, np.int64)
        values, spelled = np.empty(2 * WORDS_AT_ONCE, np.float32), np.empty(0, np.uint8)
        spans, logs = np.empty(2, np.int64), np.empty(2)
        status = MORE
        while status != ENOUGH:
            if len(spelled) < len(lines.data):
                spelled = np.empty(len(lines.data), np.uint8)
            status = read_unigrams(
                lines.data, declared, spelled, offsets, values, numbers, spans, logs, self.scale, position
            )
            count = int(position[ROWS])
            position[ROWS] = 0
            self._add(lines, spelled, offsets[: count + 1], values[: 2 * count].copy(), numbers)
            if status == ODD or (status == MORE and not lines.fill()):
                words, log, backoff = read_entry(lines, 1, int(position[ENTRIES]), declared)
                word = np.frombuffer(bytearray(words[0].encode()), np.uint8)
                single = np.array([natural(log, self.scale), natural(backoff, self.scale)], np.float32)
                self._add(lines, word, np.array([0, len(word)]), single, np.array([lines.number]))
                position[ENTRIES] += 1

    def _add(self, lines: ArpaLines, words: Bytes, offsets: Longs, values: Floats, numbers: Longs) -> None:
        before, none = self.table.size, np.zeros(len(offsets) - 1, np.int64)
        places = self.table.add(words, offsets, none, none)
        again = np.flatnonzero(places != np.arange(before, before + len(places)))
        if len(again):
            lines.position[LINE] = numbers[again[0]]
            raise repeated(lines, [bytes(words[offsets[again[0]] : offsets[again[0] + 1]]).decode()])
        self._values.append(values)

    def finish(self) -> tuple[Vocab, Floats]:
        """Number the words; return the vocabulary, and the logs of its words and of ``<s>`` for ``GrowingHash``."""
        table, listed = self.table, np.arange(1, self.table.size)
        special = [name.encode() for name in (UNKNOWN, UPPER_UNKNOWN, END, START)]
        unknown, upper, end, start = table.add(*_packed(special), np.zeros(4, np.int64), np.zeros(4, np.int64)).tolist()
        ordinary = np.setdiff1d(listed, [unknown, end, start], assume_unique=True)
        self.ids = np.empty(table.size, np.int32)
        self.ids[ordinary] = np.arange(2, len(ordinary) + 2)
        self.ids[[0, unknown, upper]], self.ids[end], self.ids[start] = 0, 1, len(ordinary) + 2
        unigrams = np.zeros(2 * (len(ordinary) + 3), np.float32)
        unigrams[::2] = natural(NEVER, self.scale)
        unigrams[0] = natural(NO_UNKNOWN, self.scale)
        values = np.concatenate(self._values)
        unigrams[2 * self.ids[listed]], unigrams[2 * self.ids[listed] + 1] = values[::2], values[1::2]
        numbers = np.concatenate((np.array([unknown, end]), ordinary))
        offsets = np.concatenate((np.zeros(1, np.int64), np.cumsum(np.diff(table.offsets)[numbers])))
        data = np.empty(int(offsets[-1]), np.uint8)
        gather_strings(table.arena, table.offsets, numbers, data, 0)
        return Vocab.from_bytes(data, offsets, unknown=0, end=1), unigrams

    def ids_of(self, words: list[str]) -> Ints:
        """Return the ids of words, -1 for those that are not among the unigrams."""
        numbers = self.table.ids_of(*_packed([word.encode() for word in words]))
        return np.where(numbers >= 0, self.ids[numbers], np.int32(-1))


def _packed(strings: list[bytes]) -> tuple[Bytes, Longs]:
    offsets = np.zeros(len(strings) + 1, np.int64)
    np.cumsum([len(string) for string in strings], out=offsets[1:])
    return np.frombuffer(bytearray(b"".join(strings)), np.uint8), offsets


class _Section:
    """The section of n-grams of one order, two or more.

    rows, pending, places: buffers that ``read_ngrams`` fills.
    """

    def __init__(self, lines: ArpaLines, order: int, declared: int, *, highest: bool) -> None:
        self.lines = lines
        self.order = order
        self.declared = declared
        self.highest = highest
        self.entries = OrderRows(order)
        self.rows = np.empty(2 * CHUNK, np.uint64)
        self.pending = np.empty((CHUNK, order), np.int32)
        self.places = np.empty(CHUNK, np.int64)

    def read(self, words: _Unigrams, model: GrowingHash) -> None:
        """Read all n-grams into the model's tables."""
        self.lines.position[[ENTRIES, ROWS, PENDING]] = 0
        try:
            self._read(words, model)
        except InputError:
            self._enter(model)  # report an n-gram listed twice before an error further down
            raise
        self._enter(model)

    def _read(self, words: _Unigrams, model: GrowingHash) -> None:
        lines, batch = self.lines, batch_of(self.order)
        # Of more n-grams than can exist, one is listed twice: a small compressed file cannot hold any number of them.
        enough = min(self.declared, (model.vocab_size + 1) ** self.order + 1)
        strings = WordArrays(words.table.slots, words.table.arena, words.table.starts, words.ids)
        status = MORE
        while status != ENOUGH:
            status = read_ngrams(
                lines.data, enough, self.order, self.highest, strings, model.tables(),
                self.rows, self.rows.view(np.float32), self.pending.reshape(-1), self.places, batch, words.scale,
                lines.position,
            )  # fmt: skip
            if status == FULL:
                self._store()
            if status == ODD or (status == MORE and not lines.fill()):
                self._read_one(words)

    def _read_one(self, words: _Unigrams) -> None:
        """Read an entry that the kernel left to Python because it is wrong or unusual."""
        position = self.lines.position
        spelled, log, backoff = read_entry(self.lines, self.order, int(position[ENTRIES]), self.declared)
        ids = words.ids_of(spelled)
        check_words(self.lines, spelled, ids.tolist())
        row, index = position[ROWS], position[PENDING]
        self.rows[2 * row] = 0
        weight = 0.0 if self.highest else natural(backoff, words.scale)
        self.rows[2 * row + 1 : 2 * row + 2].view(np.float32)[:] = natural(log, words.scale), weight
        self.pending[index], self.places[index] = ids, row
        position[[ENTRIES, ROWS, PENDING]] += 1

    def _store(self) -> None:
        rows, pending = self.lines.position[[ROWS, PENDING]].tolist()
        self.entries.add(self.rows[: 2 * rows], self.pending[:pending].copy(), self.places[:pending].copy())
        self.rows = np.empty(2 * CHUNK, np.uint64)
        self.lines.position[[ROWS, PENDING]] = 0

    def _enter(self, model: GrowingHash) -> None:
        self._store()
        number = model.add_order(self.entries)
        if number is not None:
            raise self._repeated(number)

    def _repeated(self, number: int) -> InputError:
        """Return the error for entry ``number``, listed twice, reading the file again up to its line."""
        lines = ArpaLines(self.lines.path)
        sizes = read_header(lines)
        for order in range(1, self.order + 1):
            for _ in range(sizes[order - 1] if order < self.order else number):
                lines.next("an entry")
            if order < self.order:
                open_section(lines, order + 1)
        return repeated(lines, read_entry(lines, self.order, number, self.declared)[0])


# Writing


def write_arpa(model: NgramLM | Log10Ngrams, path: str | Path) -> None:
    """Write a model as ARPA text, compressed if the name ends in ``.gz``.

    Numbers have nine digits, which give every float32 back to the last bit.
    """
    if isinstance(model, NgramLM):
        check_backing_off(model, "an ARPA file")
        names, sizes = _Names(model.vocab), model.sizes_
    else:
        names, sizes = _Names(model.vocab, 1.0), model.sizes
    opener = gzip.open if str(path).endswith(".gz") else open
    with atomic_file(Path(path)) as temporary, opener(temporary, "wb") as file:
        file.write(b"\\data\\\n")
        file.writelines(f"ngram {order}={size}\n".encode() for order, size in enumerate(sizes, 1))
        for spelled in model.ngrams():
            file.write(f"\n\\{spelled[0]}-grams:\n".encode())
            file.writelines(names.lines(spelled, highest=spelled[0] == len(sizes)))
        file.write(b"\n\\end\\\n")


def check_backing_off(model: NgramLM, target: str) -> None:
    """Raise an error for a model that does not ask shorter contexts, as all readers of ``target`` would."""
    if method(model.smoothing, model.add).uniform:
        raise InputError(
            f"a model with smoothing={model.smoothing} cannot be {target}: what a context does not know is spread "
            "evenly there, and readers would ask shorter contexts"
        )


class _Names:
    """The spellings of a model's words, ``<s>`` after the last. scale: what logs are divided by."""

    def __init__(self, vocab: Vocab, scale: float = LOG10) -> None:
        self.vocab = vocab
        self.scale = scale
        self.data = np.append(vocab.data, np.frombuffer(START.encode(), np.uint8))
        self.offsets = np.append(vocab.offsets, vocab.offsets[-1] + len(START))
        wrong = np.flatnonzero(np.isin(self.data, np.frombuffer(b" \t\r\n", np.uint8)))
        bad = np.union1d(
            np.searchsorted(self.offsets, wrong, side="right") - 1, np.flatnonzero(np.diff(self.offsets) == 0)
        )
        if len(bad):
            raise InputError(f"the token {vocab[int(bad[0])]!r} has white space in it, which an ARPA file cannot hold")
        self._out = np.empty(max(BYTES_AT_ONCE, HIGHEST_ORDER * (int(np.diff(self.offsets).max()) + 64)), np.uint8)

    def lines(self, spelled: Spelled, *, highest: bool) -> Iterator[memoryview | bytes]:
        """Yield the lines of one order, many at a time."""
        _, ngrams, logs, weights = spelled
        if not 0 <= ngrams.min(initial=0) <= ngrams.max(initial=0) <= len(self.vocab):
            raise InputError("the model holds a word that is not in its vocabulary")
        logs, weights = np.ascontiguousarray(logs), np.ascontiguousarray(weights)
        position = np.zeros(2, np.int64)
        status = FULL
        while status != ENOUGH:
            status = write_entries(
                ngrams, logs, weights, highest, self.data, self.offsets, NEVER, self.scale, self._out, position
            )
            yield self._out[: position[1]].data
            position[1] = 0
            if status == ODD:
                number = int(position[0])
                one = slice(number, number + 1)
                named = {word: self._name(word) for word in ngrams[number].tolist()}
                yield "".join(entry_lines(named, ngrams[one], logs[one], weights[one], highest, self.scale)).encode()
                position[0] += 1

    def _name(self, word: int) -> str:
        return START if word == len(self.vocab) else self.vocab[word]


def entry_lines(
    names: Sequence[str] | Mapping[int, str], ngrams: Longs, logs: Floats, backoffs: Floats, highest: bool,
    scale: float = LOG10,
) -> Iterator[str]:  # fmt: skip
    """Yield the lines of n-grams. Nine digits restore every float32 to the last bit."""
    for words, log, backoff in zip(ngrams.tolist(), logs.tolist(), backoffs.tolist(), strict=True):
        shown = NEVER if log == -math.inf else log / scale
        line = f"{shown:.9g}\t{' '.join(names[word] for word in words)}"
        yield line + "\n" if highest else f"{line}\t{max(backoff / scale, NEVER):.9g}\n"
