"""From counts to probabilities, order by order: every method of ``smoothing.py`` in one pass over the n-grams.

``estimate`` gives them in float64, for checking the formulas. ``estimate_logs``, which models are made of, overwrites
the tables of counts with natural logs in float32, so that it takes hardly any memory of its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from foreword.arrays import Bytes, Doubles, Floats, Ints, Longs
from foreword.checks import check_number
from foreword.errors import SettingError
from foreword.ngram import kernels_estimate as kernels
from foreword.ngram.counts import Order, Tabulated, count_continuations, find_ngram, tabulate
from foreword.ngram.kernels_count import COUNT, LOG, PARENT, WEIGHT, counts_of_counts, first_extension
from foreword.ngram.smoothing import Method, estimate_discounts
from foreword.protocols import Meter
from foreword.storage.scratch import Scratch
from foreword.tokens.corpus import Corpus

CHUNK = 1 << 15
"""Contexts that are processed together: they and their n-grams stay in the cache."""

Discounts = list[tuple[float, ...]]


@dataclass(slots=True)
class Estimate:
    """Probabilities of one order in float64, and the back-off weight of each of its n-grams as a context.

    words, parents: int32 (n,), the last word, and the number of the n-gram before it in the order below.
    """

    words: Ints
    parents: Ints
    probabilities: Doubles
    backoffs: Doubles


@dataclass(slots=True)
class EstimatedLogs:
    """Natural logs of all orders, ready to be packed.

    unigrams: float32 (words + 1, 2), of each word and of ``<s>``: probability, weight.
    tables: of each order from two on, int32 (n, 4): word, parent, and the same two as float32.
    """

    unigrams: Floats
    tables: list[Ints]


@dataclass(slots=True)
class EstimatedChunk:
    """The extensions of some contexts, n-grams from ``first`` up to ``last``."""

    first: int
    last: int
    probabilities: Doubles
    first_context: int
    last_context: int
    weights: Doubles


@dataclass(slots=True)
class CountedOrders:
    """Counts and discounts, the input of the formulas.

    kept: uint8 (n,) for each order from two on, zero for what is to be pruned; empty where nothing is.
    """

    unigrams: Longs
    orders: list[Order]
    kept: list[Bytes]
    discounts: Discounts


def estimate(
    corpus: Corpus | Tabulated,
    order: int,
    how: Method,
    *,
    prune: Sequence[int] = (),
    fallback: bool = True,
    meter: Meter | None = None,
) -> tuple[list[Estimate], Discounts]:
    """Return the probabilities of all orders in float64, and the discounts of each order.

    corpus: a text, or its counts; the tables of those are overwritten.
    prune: for each order, n-grams seen at most that often are left out; the last number holds for higher orders too.
    """
    scratch = Scratch()
    counted = count(corpus, order, how, prune, fallback, scratch, meter)
    found = [
        _unigram_estimate(counted.unigrams, how, counted.discounts[0]),
        *(
            Estimate(each.words.copy(), each.parents.copy(), np.empty(len(each)), np.ones(len(each)))
            for each in counted.orders
        ),
    ]

    def put(k: int, chunk: EstimatedChunk) -> None:
        found[k - 1].probabilities[chunk.first : chunk.last] = chunk.probabilities
        found[k - 2].backoffs[chunk.first_context : chunk.last_context] = chunk.weights

    smooth(counted, how, found[0].probabilities, scratch, put, meter)
    return _pruned(found, counted.kept), counted.discounts


def estimate_logs(
    corpus: Corpus | Tabulated,
    order: int,
    how: Method,
    *,
    prune: Sequence[int] = (),
    fallback: bool = True,
    scratch: Scratch | None = None,
    meter: Meter | None = None,
) -> tuple[EstimatedLogs, Discounts]:
    """Return the logs of all orders and their discounts, within the memory limit of ``scratch``."""
    scratch = scratch or Scratch()
    counted = count(corpus, order, how, prune, fallback, scratch, meter)
    lowest = _unigram_estimate(counted.unigrams, how, counted.discounts[0])
    unigrams = np.zeros((len(lowest.words), 2), np.float32)
    tables = [each.grams for each in counted.orders]
    as_logs = [each.view(np.float32) for each in tables]

    def put(k: int, chunk: EstimatedChunk) -> None:
        as_logs[k - 2][chunk.first : chunk.last, LOG] = np.log(chunk.probabilities, out=chunk.probabilities)
        weights = np.log(chunk.weights, out=chunk.weights)
        if k == 2:
            unigrams[chunk.first_context : chunk.last_context, 1] = weights
        else:
            as_logs[k - 3][chunk.first_context : chunk.last_context, WEIGHT] = weights
        if k == order:
            as_logs[k - 2][chunk.first : chunk.last, WEIGHT] = 0.0

    with np.errstate(divide="ignore"):
        unigrams[:, 0] = np.log(lowest.probabilities)
        smooth(counted, how, lowest.probabilities, scratch, put, meter)
    for each in counted.orders[:1]:  # those of the other orders are parts of the same arrays
        scratch.release(each.suffixes)
        scratch.release(each.continuations)
    return EstimatedLogs(unigrams, _drop_rare(tables, counted.kept, scratch)), counted.discounts


# Counts


def count(
    corpus: Corpus | Tabulated,
    order: int,
    how: Method,
    prune: Sequence[int],
    fallback: bool,
    scratch: Scratch,
    meter: Meter | None,
) -> CountedOrders:
    """Count the n-grams, mark those to prune, and estimate the discounts."""
    limits = prune_limits(prune, order)
    kenlm = how.continuations
    found = corpus if isinstance(corpus, Tabulated) else tabulate(corpus, order, scratch, meter, last=kenlm)
    unigrams, orders, last = found.unigrams, found.orders, found.last if kenlm else []
    kept = [_kept(each, limit, scratch) for each, limit in zip(orders, limits[1:], strict=True)]
    raw = _counts_of_ends(unigrams, orders, last)
    if how.continuations and orders:
        unigrams = count_continuations(len(unigrams), orders)
    tallies = _tallies(unigrams, orders)
    # KenLM tallies one n-gram of each lower order, the last in its sort, by how often it was seen instead of by how
    # many words stand before it. In a large text that is nothing; for equal digits in a small one we do the same.
    for tally, was, now in zip(tallies, raw, _counts_of_ends(unigrams, orders, last), strict=False):
        for number, change in ((now, -1), (was, 1)):
            if number < 5:
                tally[number] += change
    discounts = [
        estimate_discounts(tally.tolist(), how.discounts, order=k, fallback=fallback)
        for k, tally in enumerate(tallies, 1)
    ]
    return CountedOrders(unigrams, orders, kept, list(discounts))


def _kept(counted: Order, limit: int, scratch: Scratch) -> Bytes:
    kept = scratch.empty(len(counted) if limit else 0, np.uint8)
    if limit:
        kernels.mark_frequent(counted.grams, limit, kept)
    return kept


def _tallies(unigrams: Longs, orders: Sequence[Order]) -> Longs:
    """Return how many n-grams of each order have the count 1, 2, 3, 4: int64 (orders, 5)."""
    tallies = np.zeros((len(orders) + 1, 5), np.int64)
    tallies[0, 1:] = np.bincount(unigrams[(unigrams > 0) & (unigrams < 5)], minlength=5)[1:]
    for tally, counted in zip(tallies[1:], orders, strict=True):
        counts_of_counts(counted.grams, tally)
    return tallies


def _counts_of_ends(unigrams: Longs, orders: list[Order], ngram: list[int]) -> list[int]:
    """Return the counts of an n-gram's last word, of its last two words, and so on."""
    found = [int(unigrams[ngram[-1]])] if ngram else []
    for length in range(2, len(ngram) + 1):
        number = find_ngram(orders, ngram[-length:])
        found.append(int(orders[length - 2].grams[number, COUNT]))
    return found


def prune_limits(prune: Sequence[int], order: int) -> list[int]:
    """Return the count up to which n-grams are pruned, for each order."""
    for limit in prune:
        check_number("a number of prune", limit, whole=True, least=-math.inf)
    limits = [*prune, *[prune[-1] if prune else 0] * order][:order]
    if any(limit < 0 for limit in limits) or limits != sorted(limits):
        raise SettingError(f"prune={list(prune)}: expected numbers that do not fall from order to order")
    if limits[0]:
        raise SettingError("prune: unigrams are not pruned; limit the vocabulary instead")
    return limits


# Probabilities


def smooth(
    counted: CountedOrders,
    how: Method,
    unigrams: Doubles,
    scratch: Scratch,
    put: Callable[[int, EstimatedChunk], None],
    meter: Meter | None,
) -> None:
    """Call ``put`` with the probabilities of every order from two on and the weights of their contexts, in chunks.

    The arrays of a chunk are reused for the next: ``put`` copies what it needs, and may overwrite them.
    """
    size = len(counted.unigrams)
    lower = unigrams
    for k, (each, kept) in enumerate(zip(counted.orders, counted.kept, strict=True), 2):
        own = scratch.empty(len(each) if k <= len(counted.orders) and not how.uniform else 0, np.float64)
        discounts = np.array(counted.discounts[k - 1])
        buffers = _Buffers()
        low = _Lower(each.suffixes, lower, scratch, 1 / size if how.uniform else None)
        for first, last, contexts in _chunks(each):
            totals, weights = buffers.of("totals", len(contexts)), buffers.of("weights", len(contexts))
            probabilities, shorter = buffers.of("probabilities", last - first), buffers.of("shorter", last - first)
            grams = each.grams[first:last]
            kernels.weigh_contexts(
                grams, kept[first:last], contexts.start, discounts, how.per_type, how.per_word * size, totals, weights
            )
            kernels.share_out(
                grams, contexts.start, discounts, how.backoff is None, totals, weights,
                low.take(first, last, shorter), probabilities,
            )  # fmt: skip
            if how.backoff is not None:
                weights[totals > 0] = how.backoff
            if len(own):
                own[first:last] = probabilities
            put(k, EstimatedChunk(first, last, probabilities, contexts.start, contexts.stop, weights))
        scratch.release(lower)
        lower = own
        if meter is not None:
            meter("estimating", k, len(counted.orders) + 1)


def _chunks(counted: Order) -> Iterator[tuple[int, int, range]]:
    """Yield ranges of n-grams and of the contexts they extend, few of both unless one context has many."""
    first = context = 0
    grams = counted.grams
    while context < counted.below:
        next_context = min(context + CHUNK, counted.below)
        if first + 2 * CHUNK < len(grams):
            next_context = min(next_context, max(context + 1, int(grams[first + 2 * CHUNK, PARENT])))
        last = first_extension(grams[first:], next_context) + first
        yield first, last, range(context, next_context)
        first, context = last, next_context


class _Buffers:
    """Arrays that are reused, and grow when they have to."""

    def __init__(self) -> None:
        self._held: dict[str, Doubles] = {}

    def of(self, name: str, size: int) -> Doubles:
        """Return the named buffer with ``size`` numbers, which are arbitrary at first."""
        if name not in self._held or len(self._held[name]) < size:
            self._held[name] = np.empty(max(size, 2 * CHUNK))
        return self._held[name][:size]


class _Lower:
    """The probability of each n-gram's suffix in the order below.

    If the order below does not fit into memory, all are looked up in advance, one range at a time.
    """

    def __init__(self, suffixes: Ints, lower: Doubles, scratch: Scratch, constant: float | None) -> None:
        self.suffixes = suffixes
        self.lower = lower
        self.constant = constant
        ranges = list(scratch.ranges(len(lower), 8))
        self.found: Doubles | None = None
        if len(ranges) > 1 and constant is None:
            self.found = scratch.empty(len(suffixes), np.float64)
            for first, last in ranges:
                kernels.look_up_lower(suffixes, first, last, lower[first:last], self.found)

    def take(self, first: int, last: int, out: Doubles) -> Doubles:
        """Write the probabilities for n-grams from ``first`` up to ``last`` to ``out``, and return it."""
        if self.constant is not None:
            out.fill(self.constant)
        elif self.found is None:
            kernels.look_up_lower(self.suffixes[first:last], 0, len(self.lower), self.lower, out)
        else:
            out[:] = self.found[first:last]
        return out


def _unigram_estimate(counts: Longs, how: Method, discounts: tuple[float, ...]) -> Estimate:
    """Estimate the unigrams, interpolated with the uniform distribution over all words, ``<unk>`` included."""
    size = len(counts)
    taken = np.array(discounts)[np.minimum(counts, 3)]
    extra = how.per_type * int((counts > 0).sum()) + how.per_word * size
    total = counts.sum() + extra
    if how.backoff is not None:
        probabilities = np.where(counts > 0, counts / total, how.backoff / size)
    else:
        probabilities = (counts - taken) / total + (taken.sum() + extra) / total / size
    # <s> is never predicted; its row is there because it is a context.
    return Estimate(
        np.arange(size + 1, dtype=np.int32), np.zeros(size + 1, np.int32), np.append(probabilities, 0.0),
        np.ones(size + 1),
    )  # fmt: skip


# Pruning. Limits do not fall with the order, so what a kept n-gram needs is kept too.


def _pruned(found: list[Estimate], kept: Sequence[Bytes]) -> list[Estimate]:
    left = found[:1]
    renumbered: Ints | None = None
    for marks, order in zip(kept, found[1:], strict=True):
        if not len(marks):
            left.append(order)
            continue
        keep = marks == 1
        parents = order.parents[keep] if renumbered is None else renumbered[order.parents[keep]]
        left.append(Estimate(order.words[keep], parents, order.probabilities[keep], order.backoffs[keep]))
        renumbered = (np.cumsum(keep) - 1).astype(np.int32)
    return left


def _drop_rare(tables: Sequence[Ints], kept: Sequence[Bytes], scratch: Scratch) -> list[Ints]:
    """Drop pruned n-grams from the tables in place."""
    left = []
    below = np.empty(0, np.int32)
    for grams, marks in zip(tables, kept, strict=True):
        if not len(marks):
            left.append(grams)
            continue
        renumbered = scratch.empty(len(grams), np.int32)
        left.append(grams[: kernels.drop_rare(grams, marks, below, renumbered)])
        scratch.release(below)
        scratch.release(marks)
        below = renumbered
    scratch.release(below)
    return left
