"""Learning the merges of byte-pair encoding from counted words.

    merges = []
    repeat:  (a, b) = the most frequent adjacent pair; on a tie the one with the smaller ids
             merges.append((a, b)); in every word replace a b by ab
    until the vocabulary is full

Words are sequences of first symbols (bytes or characters); pairs never reach over a word's end. Gage (1994) had the
idea for compression, Sennrich, Haddow and Birch (2016) for words: https://aclanthology.org/P16-1162. ``plain.py`` does
just that; ``kernels_merges.py`` explains what makes the fast version fast.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from foreword.arrays import Bytes, Ints, Longs, ULongs
from foreword.errors import SettingError
from foreword.protocols import Meter
from foreword.tokens.characters import ALPHABET, CODE_POINTS
from foreword.tokens.counting import Counted
from foreword.tokens.kernels import fill_merges
from foreword.tokens.kernels_merges import initial_pairs, learn_merges, next_pair, symbols_of_characters
from foreword.tokens.strings import add_strings, empty_rows

Kind = Literal["bytes", "characters"]

Veto = Callable[[bytes, bytes], bool]
"""Whether a pair of tokens, by their spellings, must not be merged."""

Vetoed = Callable[[str, str], bool] | Collection[str]
"""Merges that are refused: by a function of two tokens, or by the tokens they would make."""


@dataclass(frozen=True, slots=True)
class Merge:
    """One step of the training: the two ids, the id of the token they make, and the count of the pair."""

    left: int
    right: int
    merged: int
    count: int


class LearntMerges(NamedTuple):
    """The result of training.

    spellings: of the alphabet and the learnt tokens. record: int64 (merges, 4), the fields of each ``Merge``.
    left_out: how many distinct pieces did not fit in memory.
    """

    spellings: list[bytes]
    record: Longs
    left_out: int


def veto_by_spelling(vetoed: Vetoed | None, name: Callable[[bytes], str]) -> Veto | None:
    """Return the refused merges as a function of spellings, of which ``name`` makes names of the vocabulary."""
    if vetoed is None:
        return None
    if isinstance(vetoed, str):
        raise SettingError(f"veto={vetoed!r}: expected a function of two tokens, or a collection of tokens")
    if callable(vetoed):
        refuses = vetoed
        return lambda left, right: refuses(name(left), name(right))
    refused = frozenset(vetoed)
    return lambda left, right: name(left + right) in refused


def learn_from_counts(
    counted: Counted,
    kind: Kind,
    names: Sequence[str],
    size: int,
    *,
    least: int,
    memory: int,
    veto: Veto | None = None,
    meter: Meter | None = None,
) -> LearntMerges:
    """Learn merges from counted pieces until there are ``size`` tokens, ``names``, which stand for themselves,
    included.

    Pieces that do not fit in ``memory`` bytes are left out, rarest first. Pairs that ``veto`` refuses are passed over.
    """
    numbers, left_out = _most_frequent(counted, np.arange(1, len(counted)), memory)
    spellings, symbols, begins = _first_symbols(kind, names, *counted.gather(numbers))
    first = len(names)
    if size < len(spellings):
        raise SettingError(
            f"vocab_size={size} is smaller than the alphabet: "
            f"{len(spellings) - first} {kind} and {first} special tokens"
        )
    # A text may spell </s>. Hugging Face's trainer then merges up to the special token itself, and so do we with
    # bytes; characters are free to go round it.
    reserved = first if kind == "characters" else 0
    counts = counted.counts[numbers]
    found = merges_of(symbols, begins, counts, spellings, size, least=least, reserved=reserved, veto=veto, meter=meter)
    record = np.array([[m.left, m.right, m.merged, m.count] for m in found], np.int64).reshape(-1, 4)
    return LearntMerges(spellings[first:], record, left_out)


def _first_symbols(kind: Kind, names: Sequence[str], data: Bytes, offsets: Longs) -> tuple[list[bytes], Ints, Longs]:
    """Return the spellings of all first tokens, the words as symbols, and where each begins."""
    special = [_special_spelling(name) for name in names]
    first = len(special)
    if kind == "bytes":
        ids = np.empty(256, np.int32)
        ids[ALPHABET] = np.arange(first, first + 256)
        return [*special, *(bytes([byte]) for byte in ALPHABET)], ids[data], offsets
    seen = np.zeros(CODE_POINTS, np.int32)
    begins = np.empty(len(offsets), np.int64)
    symbols = np.empty(len(data), np.int32)
    used = symbols_of_characters(data, offsets, seen, symbols, begins)
    alphabet = np.flatnonzero(seen)
    seen[alphabet] = np.arange(first, first + len(alphabet))
    spellings = [*special, *(chr(point).encode() for point in alphabet.tolist())]
    return spellings, seen[symbols[:used]], begins


def _special_spelling(name: str) -> bytes:
    """Return the spelling of a special token: its text, where a merge might spell it, so that no two tokens have one
    name; otherwise marked by 0xFF, which never occurs in UTF-8.
    """
    return name.encode() if name.isascii() and name.isprintable() and " " not in name else b"\xff" + name.encode()


BYTES_A_SYMBOL = 14
"""Training's memory per symbol of each distinct piece: the symbol itself (4), its entry in the lists of words (4, and
half as much again when they grow), and the text it came from."""


def _most_frequent(counted: Counted, numbers: Longs, memory: int) -> tuple[Longs, int]:
    """Return the pieces to train with, the most frequent that fit in ``memory``, and how many are left out."""
    lengths = np.diff(counted.offsets)[numbers]
    if int(lengths.sum()) * BYTES_A_SYMBOL + 40 * len(numbers) <= memory:
        return numbers, 0
    order = counted.by_frequency(numbers)
    costs = np.cumsum(np.diff(counted.offsets)[order] * BYTES_A_SYMBOL + 40)
    kept = int(np.searchsorted(costs, memory))
    return np.sort(order[:kept]), len(numbers) - kept


MERGES_A_CALL = 500
"""Merges between two calls of the meter, and two chances for Ctrl-C."""


def merges_of(
    symbols: Ints,
    begins: Longs,
    counts: Longs,
    spellings: list[bytes],
    size: int,
    *,
    least: int = 1,
    reserved: int = 0,
    veto: Veto | None = None,
    meter: Meter | None = None,
) -> Iterator[Merge]:
    """Yield the merges of words until there are ``size`` tokens; arguments as in ``plain.learn_merges``.

    symbols: int32 (symbols,), all words one after another; they are rewritten in place.
    begins: int64 (words + 1,), where each word starts; counts: int64 (words,).
    """
    lengths = np.diff(begins).astype(np.int32)
    least = max(1, least)
    pairs, heap, entries, sizes, pool = initial_pairs(symbols, begins, lengths, counts)
    slots, arena, starts = _spelling_table(spellings, size)
    tokens, first = len(spellings), spellings[:reserved]
    found = np.empty((MERGES_A_CALL, 4), np.int64)
    made = 0
    while tokens < size and made >= 0:
        if veto is not None:  # one merge per call, of a pair that was asked about
            refused = False
            while pair := next_pair(pairs, heap, sizes, least, refused):
                left, right = (spellings[id] for id in divmod(pair - 1, 1 << 32))
                refused = left + right in first or veto(left, right)
                if not refused:
                    break
        pairs, heap, entries, pool, arena, tokens, made = learn_merges(
            size, MERGES_A_CALL if veto is None else 1, least, reserved, symbols, begins, lengths, counts,
            pairs, heap, entries, sizes, pool, slots, arena, starts, tokens, found,
        )  # fmt: skip
        for left, right, merged, count in found[: made if made >= 0 else -1 - made].tolist():
            if merged == len(spellings):
                spellings.append(arena[starts[merged] : starts[merged + 1]].tobytes())
            yield Merge(left, right, merged, count)
        if meter is not None and (veto is None or tokens % MERGES_A_CALL == 0):
            meter("merging", tokens, size)


def _spelling_table(spellings: list[bytes], size: int) -> tuple[ULongs, Bytes, Longs]:
    """Return a string table whose ids are the token ids, with rows for ``size`` tokens."""
    rows = 1 << (2 * max(size, len(spellings)) + 2).bit_length()
    slots = empty_rows(rows)
    arena = np.empty(sum(map(len, spellings)) + 16 * size, np.uint8)
    starts = np.zeros(max(size, len(spellings)) + 2, np.int64)
    add_strings(spellings, slots, arena, starts, 0)
    return slots, arena, starts


def merge_table(merges: Ints, ranks: Ints) -> Longs:
    """Return merges as a hash table, pair -> rank << 32 | merged id. merges: int32 (merges, 3), left, right, merged."""
    table = np.zeros(2 << (2 * len(merges) + 2).bit_length(), np.int64)
    lefts, rights, merged = (np.ascontiguousarray(merges[:, column]) for column in range(3))
    fill_merges(table, lefts, rights, merged, ranks)
    return table
