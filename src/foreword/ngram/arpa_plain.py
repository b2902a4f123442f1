r"""ARPA files the plain way: how they are read and written, line by line, to be read by people.

    \data\
    ngram 1=37
    \1-grams:
    log10 p(w) <TAB> w [<TAB> log10 back-off]
    …
    \end\

``arpa.py`` does the same with kernels. It asks this module about everything that is not an ordinary entry, headers and
mistakes above all, so both say the same of the same file, and tests hold their models equal.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from foreword.arrays import Bytes, Floats, Longs
from foreword.errors import InputError
from foreword.ngram.kernels_arpa import AT, LINE
from foreword.ngram.layouts import Logged
from foreword.ngram.model import HIGHEST_ORDER, NgramLM
from foreword.text.block import BLOCK_BYTES
from foreword.text.compression import decompressed
from foreword.text.files import SourceFile, find_files, opened
from foreword.text.unicode import valid_utf8
from foreword.tokens.vocab import END, UNKNOWN, Vocab

START = "<s>"
UPPER_UNKNOWN = "<UNK>"
"""What some tools write for ``<unk>``."""

NEVER = -99.0
"""What ARPA files write for log10 of zero."""

NO_UNKNOWN = -100.0
"""KenLM's log10 probability of unknown words if a file has none."""

FOREWORD_LINES = 1000
"""Lines in which a file may say what it likes, before its data begin."""

LONGEST_LINE = 16 << 20
MOST_DIGITS = 18
"""Of a number of n-grams, so that it fits 64 bits."""

LOG10 = math.log(10)
_BLANKS = " \t\r"
"""What divides words, as in KenLM; a no-break space or another blank of Unicode is part of its word."""


class Lines:
    """The lines of a file: in blocks of whole ones for kernels, one by one for Python.

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
        """That of the line read last."""
        return int(self.position[LINE])

    def fill(self) -> bool:
        """Go on to the next block; False if there is none."""
        self.data, self._text = next(self._blocks, self.data[:0]), b""
        self.position[AT] = 0
        return len(self.data) > 0

    def next(self, expected: str) -> str:
        """The next line that is not blank, without blanks around it."""
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
    """How long the part of whole lines is; looked for from the end, where it nearly always is."""
    window = 1 << 10
    while True:
        found = np.flatnonzero(data[max(0, len(data) - window) :] == ord("\n"))
        if len(found):
            return max(0, len(data) - window) + int(found[-1]) + 1
        if window >= len(data):
            return 0
        window *= 16


# Headers and entries


def read_header(lines: Lines) -> list[int]:
    """How many n-grams of each order the file declares; the next line is the first unigram."""
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


def open_section(lines: Lines, order: int) -> None:
    if lines.next(f"\\{order}-grams:").lower() != f"\\{order}-grams:":
        raise lines.error(f"expected \\{order}-grams:, the header declares fewer {order - 1}-grams than there are")


def read_end(lines: Lines) -> None:
    if lines.next("\\end\\").lower() != "\\end\\":
        raise lines.error("expected \\end\\: the header declares fewer n-grams than there are")
    while lines.fill():  # what follows means nothing, but a file that breaks off is not to be trusted
        pass


def read_entry(lines: Lines, order: int, place: int, declared: int) -> tuple[list[str], float, float]:
    """The next entry, number ``place`` of its section: its words, log10 of its probability and back-off weight."""
    line = lines.next(f"{order}-gram {place + 1} of {declared}")
    if line.startswith("\\"):
        raise lines.error(f"expected {declared} {order}-grams, found {place}")
    fields = [field for field in line.replace("\t", " ").split(" ") if field]
    if len(fields) not in (order + 1, order + 2):
        raise lines.error(f"expected a log, {order} words and perhaps a back-off weight, found {len(fields)} fields")
    try:
        log = float(fields[0])
        backoff = float(fields[order + 1]) if len(fields) == order + 2 else 0.0
    except ValueError:
        raise lines.error(f"a number was expected in {line[:60]!r}") from None
    if math.isnan(log) or math.isnan(backoff) or log > 0 or backoff == math.inf:
        raise lines.error(f"{fields[0]} is no log-probability" if log > 0 or math.isnan(log) else "bad back-off")
    return [UNKNOWN if word == UPPER_UNKNOWN else word for word in fields[1 : order + 1]], log, backoff


def check_words(lines: Lines, words: list[str], ids: Sequence[int]) -> None:
    """All words of an n-gram must be among the unigrams, where -1 says they are not; ``<s>`` only begins one."""
    for word, id in zip(words, ids, strict=True):
        if id < 0:
            raise lines.error(f"the word {word!r} is not among the 1-grams")
    if START in words[1:]:
        raise lines.error("<s> stands inside an n-gram")


def twice(lines: Lines, words: list[str]) -> InputError:
    return lines.error(f"the {len(words)}-gram {' '.join(words)!r} stands there twice")


def natural(log10: float) -> float:
    """A natural log as a model holds it, in float32."""
    with np.errstate(over="ignore"):
        return float(np.float32(log10 * LOG10))


# Reading


def read_arpa_plainly(path: str | Path) -> NgramLM:
    """What ``read_arpa`` does, an entry at a time; some thirty times slower."""
    lines = Lines(path)
    sizes = read_header(lines)
    found: dict[str, tuple[float, float]] = {}
    for place in range(sizes[0]):
        words, log, backoff = read_entry(lines, 1, place, sizes[0])
        if words[0] in found:
            raise twice(lines, words)
        found[words[0]] = natural(log), natural(backoff)
    vocab = Vocab([UNKNOWN, END, *(token for token in found if token not in (UNKNOWN, END, START))])
    ids = {token: id for id, token in enumerate(vocab)} | {START: len(vocab)}
    orders = _Orders(len(vocab))
    orders.logs[0][ids[UNKNOWN]] = natural(NO_UNKNOWN)
    for token, (log, backoff) in found.items():
        orders.logs[0][ids[token]], orders.backoffs[0][ids[token]] = log, backoff
    for order, size in enumerate(sizes[1:], 2):
        open_section(lines, order)
        orders.open_order()
        for place in range(size):
            words, log, backoff = read_entry(lines, order, place, size)
            ngram = tuple(ids.get(word, -1) for word in words)
            check_words(lines, words, ngram)
            if not orders.add(ngram, natural(log), 0.0 if order == len(sizes) else natural(backoff)):
                raise twice(lines, words)
    read_end(lines)
    return NgramLM.from_logs(vocab, orders.logged())


class _Orders:
    """N-grams as they are read: for each order a dictionary from (number of the prefix, last word) to a number."""

    def __init__(self, vocab_size: int) -> None:
        self.numbers: list[dict[tuple[int, int], int]] = [{}]
        self.parents: list[list[int]] = [[0] * (vocab_size + 1)]
        self.words: list[list[int]] = [list(range(vocab_size + 1))]
        self.logs: list[list[float]] = [[natural(NEVER)] * (vocab_size + 1)]
        self.backoffs: list[list[float]] = [[0.0] * (vocab_size + 1)]

    def open_order(self) -> None:
        self.numbers.append({})
        for values in (self.parents, self.words, self.logs, self.backoffs):
            values.append([])

    def find(self, ngram: tuple[int, ...]) -> int | None:
        number: int | None = ngram[0]
        for depth, word in enumerate(ngram[1:], 1):
            if number is None:
                return None
            number = self.numbers[depth].get((number, word))
        return number

    def add(self, ngram: tuple[int, ...], log: float, backoff: float) -> bool:
        """Enter an n-gram, and its shorter ends where they are missing; False if it is there already."""
        depth = len(ngram) - 1
        parent = self.require(ngram[:-1])
        self.require(ngram[1:])
        key = (parent, ngram[-1])
        if key in self.numbers[depth]:
            return False
        self.numbers[depth][key] = len(self.words[depth])
        self.parents[depth].append(parent)
        self.words[depth].append(ngram[-1])
        self.logs[depth].append(log)
        self.backoffs[depth].append(backoff)
        return True

    def require(self, ngram: tuple[int, ...]) -> int:
        """The number of an n-gram, which is put in, as backing off has it, if it is not there."""
        number = self.find(ngram)
        if number is None:
            context, shorter = self.require(ngram[:-1]), self.require(ngram[1:])
            log = self.backoffs[len(ngram) - 2][context] + self.logs[len(ngram) - 2][shorter]
            self.add(ngram, float(np.float32(log)), 0.0)
            number = self.find(ngram)
            assert number is not None
        return number

    def logged(self) -> list[Logged]:
        return [
            Logged(
                np.array(words, np.int32),
                np.array(parents, np.int32),
                np.array(logs, np.float32),
                np.array(backoffs, np.float32),
            )
            for words, parents, logs, backoffs in zip(self.words, self.parents, self.logs, self.backoffs, strict=True)
        ]


# Writing


def plain_entries(
    names: Sequence[str] | Mapping[int, str], ngrams: Longs, logs: Floats, backoffs: Floats, highest: bool
) -> Iterator[str]:
    """The lines of one order. Nine digits give every float32 back to the last bit."""
    for words, log, backoff in zip(ngrams.tolist(), logs.tolist(), backoffs.tolist(), strict=True):
        shown = NEVER if log == -math.inf else log / LOG10
        line = f"{shown:.9g}\t{' '.join(names[word] for word in words)}"
        yield line + "\n" if highest else f"{line}\t{max(backoff / LOG10, NEVER):.9g}\n"
