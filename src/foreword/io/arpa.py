r"""ARPA files: n-gram models as text, which every n-gram tool since the 1990s reads and writes.

    \data\
    ngram 1=37
    \1-grams:
    log10 p(w) <TAB> w [<TAB> log10 back-off]
    …
    \end\

Logs are to the base ten there and natural here. A file may leave out a back-off weight (it is 0 then), the unknown
word (its log10 is -100 then, as in KenLM), and shorter n-grams that longer ones contain; those are put in with the
probability that backing off gives them, so no score changes.
"""

from __future__ import annotations

import gzip
import math
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import numpy as np

from foreword.errors import InputError
from foreword.io.atomic import atomic_file
from foreword.lm.ngram import HIGHEST_ORDER, NgramLM
from foreword.lm.ngram_layouts import Logged
from foreword.lm.smoothing import method
from foreword.pipeline import TextLM
from foreword.protocols import Parts
from foreword.text.sources import Reading, read_lines
from foreword.tokens.vocab import END, UNKNOWN, Vocab
from foreword.tokens.words import WordTokenizer

START = "<s>"
NEVER = -99.0
"""What ARPA files write for log10 of zero."""

FOREWORD_LINES = 1000
"""Lines in which a file may say what it likes, before its data begin."""

_NO_UNKNOWN = -100.0
_LOG10 = math.log(10)
_BLANKS = " \t\r"
"""What divides words, as in KenLM; a no-break space or another blank of Unicode is part of its word."""


class _Orders:
    """N-grams as they are read: for each order a dictionary from (number of the prefix, last word) to a number."""

    def __init__(self, vocab_size: int) -> None:
        self.numbers: list[dict[tuple[int, int], int]] = [{}]
        self.parents: list[list[int]] = [[0] * (vocab_size + 1)]
        self.words: list[list[int]] = [list(range(vocab_size + 1))]
        self.logs: list[list[float]] = [[NEVER] * (vocab_size + 1)]
        self.backoffs: list[list[float]] = [[0.0] * (vocab_size + 1)]

    def open_order(self) -> None:
        self.numbers.append({})
        self.parents.append([])
        self.words.append([])
        self.logs.append([])
        self.backoffs.append([])

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
        """The number of an n-gram, which is put in if it is not there."""
        number = self.find(ngram)
        if number is None:
            self.add(ngram, self.backed_off(ngram), 0.0)
            number = self.find(ngram)
            assert number is not None
        return number

    def backed_off(self, ngram: tuple[int, ...]) -> float:
        """log10 of the probability that an n-gram has if it is not listed."""
        total = 0.0
        while (number := self.find(ngram)) is None:
            context = self.find(ngram[:-1])
            total += 0.0 if context is None else self.backoffs[len(ngram) - 2][context]
            ngram = ngram[1:]
        return total + self.logs[len(ngram) - 1][number]

    def logged(self) -> list[Logged]:
        def natural(values: list[float]) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
            return (np.array(values) * _LOG10).astype(np.float32)

        return [
            Logged(np.array(words, np.int32), np.array(parents, np.int32), natural(logs), natural(backoffs))
            for words, parents, logs, backoffs in zip(self.words, self.parents, self.logs, self.backoffs, strict=True)
        ]


class _Lines:
    """The lines of a file with their numbers, for messages."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.number = 0
        self._lines = read_lines(path, Reading())

    def next(self, expected: str) -> str:
        """The next line that is not blank."""
        for line in self._lines:
            self.number += 1
            if line := line.strip(_BLANKS):
                return line
        raise InputError(f"{self.path}: the file ends after line {self.number}, where {expected} was expected")

    def error(self, problem: str) -> InputError:
        return InputError(f"{self.path}: line {self.number}: {problem}")


def looks_like_arpa(path: str | Path) -> bool:
    """Whether the line that begins an ARPA file's data stands among the first ones."""
    try:
        return any(line.strip().lower() == "\\data\\" for line in islice(read_lines(path), FOREWORD_LINES))
    except InputError:
        return False


def load_arpa(path: str | Path) -> TextLM:
    """An ARPA file as a model that speaks text: words are what stands between white space."""
    model = read_arpa(path)
    tokenizer = WordTokenizer.from_parts(Parts({}, {}, model.vocab))
    return TextLM(tokenizer, model)


def read_arpa(path: str | Path) -> NgramLM:
    """Read an ARPA file, plain or compressed."""
    lines = _Lines(Path(path))
    sizes = _read_header(lines)
    tokens, logs, backoffs = _read_unigrams(lines, sizes[0])
    vocab = Vocab([UNKNOWN, END, *(token for token in tokens if token not in (UNKNOWN, END, START))])
    orders = _Orders(len(vocab))
    ids = {token: id for id, token in enumerate(vocab)} | {START: len(vocab)}
    orders.logs[0][ids[UNKNOWN]] = _NO_UNKNOWN
    for token, log, backoff in zip(tokens, logs, backoffs, strict=True):
        orders.logs[0][ids[token]], orders.backoffs[0][ids[token]] = log, backoff
    for order, size in enumerate(sizes[1:], 2):
        orders.open_order()
        _read_order(lines, order, size, ids, orders, highest=order == len(sizes))
    if lines.next("\\end\\").lower() != "\\end\\":
        raise lines.error("expected \\end\\: the header declares fewer n-grams than there are")
    return NgramLM.from_logs(vocab, orders.logged())


def _read_header(lines: _Lines) -> list[int]:
    while lines.next("\\data\\").lower() != "\\data\\":
        if lines.number > FOREWORD_LINES:
            raise InputError(f"{lines.path}: not an ARPA file: there is no \\data\\ line")
    sizes: list[int] = []
    while (line := lines.next("\\1-grams:").lower()) != "\\1-grams:":
        head, _, count = line.partition("=")
        order = head.removeprefix("ngram").strip()
        if not head.startswith("ngram") or not order.isdecimal() or not count.strip().isdecimal():
            raise lines.error(f"expected 'ngram {len(sizes) + 1}=COUNT', found {line[:60]!r}")
        if int(order) != len(sizes) + 1:
            raise lines.error(f"expected the number of {len(sizes) + 1}-grams, found that of {order}-grams")
        sizes.append(int(count))
    if not 1 <= len(sizes) <= HIGHEST_ORDER:
        raise lines.error(f"order {len(sizes)}: expected 1 to {HIGHEST_ORDER}")
    return sizes


def _read_unigrams(lines: _Lines, size: int) -> tuple[list[str], list[float], list[float]]:
    found: dict[str, tuple[float, float]] = {}
    for words, log, backoff in _read_entries(lines, 1, size):
        word = UNKNOWN if words[0] == "<UNK>" else words[0]
        if word in found:
            raise lines.error(f"the 1-gram {word!r} stands there twice")
        found[word] = (log, backoff)
    return list(found), [log for log, _ in found.values()], [backoff for _, backoff in found.values()]


def _read_order(lines: _Lines, order: int, size: int, ids: dict[str, int], orders: _Orders, *, highest: bool) -> None:
    if lines.next(f"\\{order}-grams:").lower() != f"\\{order}-grams:":
        raise lines.error(f"expected \\{order}-grams:, the header declares fewer {order - 1}-grams than there are")
    for words, log, backoff in _read_entries(lines, order, size):
        try:
            ngram = tuple(ids[UNKNOWN if word == "<UNK>" else word] for word in words)
        except KeyError as error:
            raise lines.error(f"the word {error.args[0]!r} is not among the 1-grams") from None
        if START in words[1:]:
            raise lines.error("<s> stands inside an n-gram")
        if not orders.add(ngram, log, 0.0 if highest else backoff):
            raise lines.error(f"the {order}-gram {' '.join(words)!r} stands there twice")


def _read_entries(lines: _Lines, order: int, size: int) -> Iterator[tuple[list[str], float, float]]:
    for place in range(size):
        line = lines.next(f"{order}-gram {place + 1} of {size}")
        if line.startswith("\\"):
            raise lines.error(f"expected {size} {order}-grams, found {place}")
        fields = [field for field in line.replace("\t", " ").split(" ") if field]
        if len(fields) not in (order + 1, order + 2):
            raise lines.error(
                f"expected a log, {order} words and perhaps a back-off weight, found {len(fields)} fields"
            )
        try:
            log = float(fields[0])
            backoff = float(fields[order + 1]) if len(fields) == order + 2 else 0.0
        except ValueError:
            raise lines.error(f"a number was expected in {line[:60]!r}") from None
        if math.isnan(log) or math.isnan(backoff) or log > 0 or backoff == math.inf:
            raise lines.error(f"{fields[0]} is no log-probability" if log > 0 or math.isnan(log) else "bad back-off")
        yield fields[1 : order + 1], log, backoff


def write_arpa(model: NgramLM, path: str | Path) -> None:
    """Write a model as ARPA text, to a ``.gz`` if the name says so.

    Numbers have nine digits, which give every float32 back to the last bit.
    """
    if method(model.smoothing, model.add).uniform:
        raise InputError(
            f"a model with smoothing={model.smoothing} cannot be an ARPA file: what a context does not know is spread "
            "evenly there, and readers of ARPA would ask shorter contexts"
        )
    names = [*model.vocab, START]
    for name in names:
        if not name or any(blank in name for blank in " \t\r\n"):
            raise InputError(f"the token {name!r} has white space in it, which an ARPA file cannot hold")
    with atomic_file(Path(path)) as temporary:
        opener = gzip.open if str(path).endswith(".gz") else open
        with opener(temporary, "wt", encoding="utf-8") as file:
            file.write("\\data\\\n")
            file.writelines(f"ngram {order}={size}\n" for order, size in enumerate(model.sizes_, 1))
            for order, ngrams, logs, backoffs in model.ngrams():
                file.write(f"\n\\{order}-grams:\n")
                highest = order == model.order
                file.writelines(_entries(names, ngrams, logs, backoffs, highest))
            file.write("\n\\end\\\n")


def _entries(
    names: list[str],
    ngrams: np.ndarray[tuple[int, int], np.dtype[np.int64]],
    logs: np.ndarray[tuple[int], np.dtype[np.float32]],
    backoffs: np.ndarray[tuple[int], np.dtype[np.float32]],
    highest: bool,
) -> Iterator[str]:
    for words, log, backoff in zip(ngrams.tolist(), logs.tolist(), backoffs.tolist(), strict=True):
        shown = NEVER if log == -math.inf else log / _LOG10
        line = f"{shown:.9g}\t{' '.join(names[word] for word in words)}"
        yield line + "\n" if highest else f"{line}\t{max(backoff / _LOG10, NEVER):.9g}\n"
