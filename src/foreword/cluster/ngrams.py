"""N-grams counted on Ray: the model is that of one machine, byte for byte.

    words       counted by segments, unless a tokenizer is given: the vocabulary        (counting.py)
    map         a segment as ids, its distinct windows sorted, cut by ranges of first words
    merge       a range's windows of a few segments as one list, until one is left
    tables      a range's n-grams of all orders
    here        the ranges one behind the other, suffixes, and the estimates

``ngram/merge.py`` explains windows, and why ranges are independent of each other. Per distinct window, 4 bytes for each
word and 8 for the count are sent. Estimates need all tables at once, so the program that was started has to hold them:
16 bytes for each n-gram of each order, and 8 more for its suffix and continuations; in files where the model has a
limit of memory.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np

from foreword.arrays import Longs
from foreword.cluster.connect import change_folder, cluster_cores, connected, ray_module, result_of, wait_for_all
from foreword.cluster.counting import TOGETHER, count_on_ray
from foreword.ngram.counts import Tabulated
from foreword.ngram.merge import (
    RangeTables,
    Windows,
    first_places,
    join_tables,
    last_in_kenlms_sort,
    merge_windows,
    tables_of,
    windows_of,
)
from foreword.ngram.model import NgramLM
from foreword.protocols import Meter, TextTokenizer
from foreword.storage.scratch import Scratch
from foreword.text.segments import SEGMENT_BYTES, FileSegment, read_segment, segments_of
from foreword.text.sources import Reading, no_text
from foreword.tokens.corpus import Corpus
from foreword.tokens.words import WordTokenizer

RANGES_A_CORE = 2
"""Ranges of first words per core: no range holds much more than its share, and none waits for the largest."""

MOST_RANGES = 64
"""Every segment gives an object per range, all of which Ray has to track."""


@dataclass(frozen=True, slots=True)
class Seen:
    """The words of a segment in the order of their first occurrence, and how many tokens and documents it has."""

    words: Longs
    tokens: int
    documents: int


def fit_ngrams(
    model: NgramLM,
    names: Sequence[str],
    reading: Reading,
    tokenizer: TextTokenizer,
    *,
    learn: bool = True,
    address: str | None = None,
    ranges: int | None = None,
    segment_bytes: int = SEGMENT_BYTES,
    meter: Meter | None = None,
) -> Seen:
    """Train an n-gram model on files that the cluster at ``address`` counts; return what was seen in all.

    tokenizer: words that are to be learnt from the text, or with ``learn=False`` any fitted tokenizer.
    """
    with connected(address) as ray:
        segments = segments_of(names, reading, segment_bytes)
        if learn:
            assert isinstance(tokenizer, WordTokenizer)
            counted, _ = count_on_ray(tokenizer, segments, reading, meter)
            if not counted.counts[0]:
                raise no_text(list(names))
            tokenizer.fit_counted(counted)
        scratch = Scratch(model.memory, model.scratch)
        ranges = ranges or min(RANGES_A_CORE * cluster_cores(ray), MOST_RANGES)
        found, seen = tabulate_on_ray(tokenizer, segments, reading, model.order, ranges, scratch, meter)
    if not seen.documents:
        raise no_text(list(names))
    model.fit_tabulated(found, meter=meter)
    return seen


def tabulate_on_ray(
    tokenizer: TextTokenizer,
    segments: Sequence[FileSegment],
    reading: Reading,
    order: int,
    ranges: int,
    scratch: Scratch,
    meter: Meter | None = None,
) -> tuple[Tabulated, Seen]:
    """Count all n-grams of the text. Ray must be connected."""
    ray = ray_module()
    cuts = range_cuts(tokenizer, ranges)
    ranges = len(cuts) - 1
    count = ray.remote(_count).options(num_returns=ranges + 1, scheduling_strategy="SPREAD")
    merge, tabulate = ray.remote(_merge), ray.remote(_tabulate).options(num_returns=2)
    reference = [ray.put(tokenizer)]  # in a list it stays a reference, and each worker fetches it once
    rest = reference, os.getcwd(), reading, order, cuts  # noqa: PTH109
    mapped = [count.remote(segment, *rest) for segment in segments]
    wait_for_all([each[-1] for each in mapped], meter, "counting n-grams")
    seen = _all_seen([result_of(each[-1]) for each in mapped])
    size = len(tokenizer.vocab)
    merged = []
    for index in range(ranges):
        lists = [each[index] for each in mapped]
        while len(lists) > TOGETHER:
            lists = [merge.remote(order, *lists[at : at + TOGETHER]) for at in range(0, len(lists), TOGETHER)]
        merged.append(tabulate.remote(order, size, *lists))
    del mapped
    wait_for_all([each[1] for each in merged], meter, "merging")
    sizes = np.sum([result_of(each[1]) for each in merged], axis=0).tolist()
    unigrams, orders = join_tables((result_of(each[0]) for each in merged), sizes, size, scratch)
    last = last_in_kenlms_sort(orders, seen.words, tokenizer.vocab.end, size) if orders and seen.tokens else []
    return Tabulated(tokenizer.vocab, unigrams, orders, last), seen


def range_cuts(tokenizer: TextTokenizer, ranges: int) -> list[int]:
    """Return where ranges of first words begin and the last one ends, as windows number words.

    Each has about the same number of tokens, by the counts of the vocabulary, or by Zipf's law where it has none.
    """
    vocab = tokenizer.vocab
    weights = np.array(vocab.counts, np.float64) if vocab.counts is not None else 1 / np.arange(10.0, 10 + len(vocab))
    before = np.append(0, np.cumsum(np.append(weights, weights[vocab.end])))  # as many documents begin as end
    cuts = np.searchsorted(before, np.linspace(0, before[-1], ranges + 1)[1:-1])
    return sorted({1, *(int(cut) + 1 for cut in cuts if 0 < cut <= len(vocab)), len(vocab) + 2})


def _all_seen(parts: Sequence[Seen]) -> Seen:
    words = np.concatenate([np.empty(0, np.int64), *(part.words for part in parts)])
    return Seen(first_places(words), sum(part.tokens for part in parts), sum(part.documents for part in parts))


# On a worker


def _count(
    segment: FileSegment, reference: list[Any], folder: str, reading: Reading, order: int, cuts: list[int]
) -> tuple[Windows | Seen, ...]:
    change_folder(folder)
    tokenizer = _fetched(reference[0])
    corpus = Corpus.from_blocks(read_segment(segment, reading), tokenizer, threads=1)
    seen = Seen(first_places(corpus.ids), len(corpus.ids), len(corpus))
    windows = windows_of(corpus, order)
    bounds = np.searchsorted(windows.rows[:, 0], cuts).tolist()
    return *(windows[first:last] for first, last in pairwise(bounds)), seen


@lru_cache(maxsize=1)
def _fetched(ref: Any) -> Any:
    """Return a tokenizer, fetched once per worker, with its caches."""
    return ray_module().get(ref)


def _merge(order: int, *parts: Windows) -> Windows:
    return merge_windows(list(map(_own, parts)), order)


def _tabulate(order: int, vocab_size: int, *parts: Windows) -> tuple[RangeTables, list[int]]:
    """Return the tables of a range, and the length of each."""
    found = tables_of(merge_windows(list(map(_own, parts)), order), vocab_size)
    return found, [len(table) for table in found.tables]


def _own(windows: Windows) -> Windows:
    """Copy the windows: arrays that Ray shares are read-only, and kernels would be compiled again for them."""
    return Windows(np.array(windows.rows), np.array(windows.counts))
