"""A hash layout that is filled order by order with n-grams in any sequence, as files of others have them.

The table that is being made is also what finds the contexts of the next order's n-grams, so reading a model takes
little more memory than having it. A file may list an n-gram and not its shorter ends, which searching upwards relies
on; those are put in here with the probability that backing off gives them:

    p(w | c) = b(c) p(w | c without its first word)

so that no score changes. They make the tables below larger, so those are made anew; few files need that.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from foreword.arrays import Array, Floats, Ints, Longs, ULongs
from foreword.ngram.kernels_arpa import Tables, contexts_of, find_rows, insert_rows, rename_contexts
from foreword.ngram.layouts import homes_of, mixed_keys, most_rows, word_bits

CHUNK = 1 << 18
"""Rows that are held together while an order is read: 4 MB, from where on NumPy asks for huge pages."""


class Entries:
    """The n-grams of one order as they are read.

    chunk: uint64 (2 * CHUNK,), rows of the table to be, as many as have been filled.
    """

    def __init__(self, order: int) -> None:
        self.order = order
        self.chunks: list[ULongs] = []
        self._ngrams: list[Ints] = []
        self._places: list[Longs] = []

    def __len__(self) -> int:
        return sum(len(chunk) for chunk in self.chunks) // 2

    def add(self, rows: ULongs, pending: Ints, places: Longs) -> None:
        """Some more. Those of which a shorter end is missing have no key yet, but stand in ``pending``, (n, order);
        places: their rows.
        """
        if len(places):
            self._ngrams.append(pending)
            self._places.append(places + len(self))
        self.chunks.append(rows)

    def give_keys(self, keys_of: Callable[[Ints], ULongs]) -> None:
        """Now that all shorter ends are known."""
        ngrams, places = self.pending()
        keys = keys_of(ngrams)
        first = 0
        for chunk in self.chunks:
            here = (first <= places) & (places < first + len(chunk) // 2)
            chunk[2 * (places[here] - first)] = keys[here]
            first += len(chunk) // 2

    def pending(self) -> tuple[Ints, Longs]:
        """The n-grams without a key, and their places among all."""
        return (
            np.concatenate([np.empty((0, self.order), np.int32), *self._ngrams]),
            np.concatenate([np.empty(0, np.int64), *self._places]),
        )


class GrowingHash:
    """Tables of the orders read so far, in the form of ``HashLayout``: one after another in one array.

    unigrams: float32 (2 * (words + 1),), log-probability and log back-off weight of each word and of ``<s>``.
    firsts, homes: int64 (orders,), where each order's table begins, and how many homes its keys have.
    """

    def __init__(self, unigrams: Floats, expected: Sequence[int] = ()) -> None:
        """expected: how many n-grams the orders from two on will have, if that can be believed: then nothing is moved.

        Memory that is set aside costs nothing before it is written to.
        """
        self.unigrams = unigrams
        self.vocab_size = len(unigrams) // 2 - 1
        self.bits = word_bits(self.vocab_size)
        self._begin(expected)

    def _begin(self, expected: Sequence[int]) -> None:
        self.table = np.empty(2 * sum(map(most_rows, expected)), np.uint64)
        self.sizes = [self.vocab_size + 1]
        self.rows = [0]
        self.firsts = np.zeros(1, np.int64)
        self.homes = np.zeros(1, np.int64)

    def arrays(self) -> dict[str, Array]:
        """As ``HashLayout.open`` takes them."""
        table = self.table[: 2 * sum(self.rows)]
        return {"unigrams": self.unigrams, "table": table, "rows": np.array(self.rows, np.int64)}

    def add_order(self, entries: Entries) -> int | None:
        """Put in all n-grams of the next order, and what they need; the number of one that is there twice, if any."""
        ngrams, _ = entries.pending()
        if len(ngrams):
            self._add_missing(entries, self._missing(ngrams))
            entries.give_keys(self.keys)
        return self._add_table(entries.chunks, len(entries))

    def keys(self, ngrams: Ints) -> ULongs:
        """What the table stores for n-grams, (n, words), whose contexts are all known."""
        return mixed_keys(self.contexts(ngrams[:, :-1]), ngrams[:, -1], self.bits)

    def tables(self) -> Tables:
        """As kernels take them."""
        return Tables(self.table, self.firsts, self.homes, self.vocab_size, self.bits)

    def contexts(self, ngrams: Ints) -> Longs:
        """What each n-gram, (n, words), is called as a context; -1 for one that is not known."""
        out = np.empty(len(ngrams), np.int64)
        contexts_of(np.ascontiguousarray(ngrams), self.tables(), out)
        return out

    def values(self, ngrams: Ints) -> tuple[Floats, Floats]:
        """Log-probabilities and log back-off weights of n-grams that are all known."""
        places = self.contexts(ngrams)
        if ngrams.shape[1] == 1:
            return self.unigrams[2 * places], self.unigrams[2 * places + 1]
        singles, at = self.table.view(np.float32), 4 * (places - self.vocab_size - 1)
        return singles[at + 2], singles[at + 3]

    def _add_table(self, chunks: Sequence[ULongs], size: int) -> int | None:
        first, homes = sum(self.rows), homes_of(size)
        self.firsts, self.homes = np.append(self.firsts, first), np.append(self.homes, homes)
        for room in (most_rows(size), homes + size + 1):  # the second is enough for the worst of keys
            self._make_room(first, first + room)
            before = 0
            for chunk in chunks:
                done = insert_rows(self.table, first, homes, first + room - 1, chunk)
                if done < 0:
                    break
                if done < len(chunk) // 2:
                    return before + done
                before += done
            else:
                break
        behind = self.table[2 * (first + homes) : 2 * (first + room) : 2]
        used = int(np.flatnonzero(behind).max(initial=-1)) + 1
        self.rows.append(homes + used + 1)
        self.sizes.append(size)
        return None

    def _make_room(self, first: int, last: int) -> None:
        """Free rows from ``first`` to ``last``."""
        if 2 * last > len(self.table):
            larger = np.empty(2 * last, np.uint64)  # not resized: that would lose the huge pages
            larger[: 2 * first] = self.table[: 2 * first]
            self.table = larger
        self.table[2 * first : 2 * last] = 0

    def _add_missing(self, entries: Entries, missing: dict[int, Ints]) -> None:
        """Make the tables anew with some more n-grams in them; ``entries`` are told their new contexts."""
        if not any(len(ngrams) for ngrams in missing.values()):
            return
        old, old_rows, old_sizes = self.table, self.rows, self.sizes
        names = np.empty(0, np.int64)  # what the rows of the old tables are called now
        self._begin([size + len(ngrams) for size, ngrams in zip(old_sizes[1:], missing.values(), strict=True)])
        for order, (rows, size) in enumerate(zip(old_rows[1:], old_sizes[1:], strict=True), 2):
            first = sum(old_rows[: order - 1])
            kept = old[2 * first : 2 * (first + rows)]
            rename_contexts(kept, names, self.vocab_size, self.bits)
            added = self._backed_off(missing[order])
            self._add_table([kept, added], size + len(added) // 2)
            now = np.empty(rows, np.int64)
            find_rows(kept, self.table, int(self.firsts[-1]), int(self.homes[-1]), now)
            names = np.append(names, now + self.vocab_size + 1)
        for chunk in entries.chunks:
            rename_contexts(chunk, names, self.vocab_size, self.bits)

    def _missing(self, ngrams: Ints) -> dict[int, Ints]:
        """By order, from two on, the ends of ``ngrams``, and the ends of those, that are not in the tables."""
        found: dict[int, Ints] = {}
        for order in range(ngrams.shape[1] - 1, 1, -1):
            ends = np.concatenate((ngrams[:, :-1], ngrams[:, 1:]))
            ngrams = np.unique(ends[self.contexts(ends) < 0], axis=0)
            found[order] = ngrams
        return dict(sorted(found.items()))

    def _backed_off(self, ngrams: Ints) -> ULongs:
        """Rows for n-grams that no file lists; their ends are all known."""
        rows = np.zeros(2 * len(ngrams), np.uint64)
        if len(ngrams):
            weights, logs = self.values(ngrams[:, :-1])[1], self.values(ngrams[:, 1:])[0]
            rows.view(np.float32)[2::4] = weights.astype(np.float64) + logs
            rows[::2] = self.keys(ngrams)
        return rows
