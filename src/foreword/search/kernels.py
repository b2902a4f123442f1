"""An inverted index, built and searched: for each term the documents that contain it, each with a weight.

Most terms have a list of postings, pairs of a document and a weight, in document order; the two are adjacent in memory,
since they are always needed together. A term of many documents has a row instead, a weight for every document, zero
where it does not occur: that takes no more memory, is added sixteen numbers at a time, and gives the weight in a
single document in one step. A document's score is the sum of (factor · weight) over the terms of the query.

Building is a counting sort in two passes: first the document frequency of each term, then each document's terms,
counted, weighted and appended to their postings. Documents come in order, so postings are in order.

Searching goes term by term, the rarest first, and adds into one float per document. It is fast because it stops early
(H. Turtle, J. Flood, "Query evaluation: strategies and optimizations", Information Processing & Management, 1995): once
k documents have more than all remaining terms could add together, no other document can enter the result. The long
lists of frequent terms, which were nearly all of the work, are then only searched for the few remaining candidates.
Nothing is approximate: the result is that of adding everything.

The k best documents are in a heap of integers: the bits of the score above, the document below, counted down. Floats
that are not negative are in the order of their bits, so one comparison of integers decides which document is worse, and
of two that are equally good the later one is.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from foreword.arrays import Bools, Doubles, Floats, Ids, Ints, Longs
from foreword.native.jit import inlined, kernel
from foreword.native.memory import prefetch

SATURATED, COSINE, LOG_COSINE = 0, 1, 2
"""How a count becomes a weight: as in BM25; times idf, documents of unit length; the same with 1 + ln count."""

LEAST = np.float32(1e-30)
"""The smallest weight: a score of zero means that nothing has been added to a document."""

ROUNDING = 2e-7
"""Relative rounding error of adding one more float32, with a margin, which bounds allow for."""

AHEAD = 16
"""Tokens between prefetching memory and using it."""

FEW = 8
"""Candidates per requested document below which they are not filtered again."""

NO_ROW = -1

LOW = np.int64(0xFFFFFFFF)
HALF = np.int64(32)

BLOCK = 64
"""Documents that are examined together when all have a score."""


class Index(NamedTuple):
    """The arrays of an index.

    offsets: int64 (terms + 1,); term t's postings are number ``offsets[t]`` to ``offsets[t + 1]``.
    documents, weights: two views of one memory, posting i at 2i and 2i + 1; documents rise within a term.
    row_of: int32 (terms,), the term's row, or NO_ROW. rows: float32 (rows, documents).
    bounds: float32 (terms,), the greatest weight of each term.
    """

    offsets: Longs
    documents: Ints
    weights: Floats
    row_of: Ints
    rows: Floats
    bounds: Floats


class QueryWorkspace(NamedTuple):
    """Buffers for one query at a time.

    scores: float32 (documents,), zeros between two queries; bits: the same memory as int32.
    touched, candidates, positions: int32 (documents + 1,): documents that have a score, documents that can still be
    among the best, and the position of a binary search for each of them.
    left: float64, one more than the longest query has terms: what the terms from each on can add.
    heap: int64 (k,), the best.
    """

    scores: Floats
    bits: Ints
    touched: Ints
    candidates: Ints
    positions: Ints
    left: Doubles
    heap: Longs


# Building


@kernel
def count_documents(ids: Ids, offsets: Longs, first: int, last: int, states: Longs) -> None:
    """Count in how many of the documents ``first`` to ``last`` each id occurs.

    states: (ids,), initially -2^32; then the last document with the id in the upper half, and the count in the lower.
    """
    for document in range(first, last):
        for place in range(offsets[document], offsets[document + 1]):
            prefetch(states, ids[min(place + AHEAD, len(ids) - 1)])
            state = states[ids[place]]
            is_new = np.int64((state >> HALF) != document)
            states[ids[place]] = (np.int64(document) << HALF) | ((state & LOW) + is_new)


@kernel
def fill_postings(
    ids: Ids,
    offsets: Longs,
    first: int,
    last: int,
    idf: Floats,
    weighing: int,
    k1: float,
    gain: float,
    shift: float,
    scales: Doubles,
    index: Index,
    heads: Longs,
    tally: Ints,
    distinct: Ints,
) -> None:
    """Write the postings and rows of the documents ``first`` to ``last``; an id whose idf is zero gets none.

    scales: (documents,), what BM25 multiplies counts by.
    heads: (ids,), the index of each term's next posting; advanced. tally: (ids,), zeros, and zeros again at the end.
    distinct: scratch, one more than the longest document has tokens.
    """
    base = gain * shift / (shift + k1) if shift > 0.0 else 0.0
    for document in range(first, last):
        found = 0
        for place in range(offsets[document], offsets[document + 1]):
            prefetch(tally, ids[min(place + AHEAD, len(ids) - 1)])
            term = np.int64(ids[place])
            count = tally[term]
            distinct[found] = term
            found += np.int64(count == 0)
            tally[term] = count + 1
        scale = scales[document]
        if weighing != SATURATED:
            scale = _unit_length(distinct, found, tally, idf, weighing)
        for place in range(found):
            term = distinct[place]
            count = tally[term]
            tally[term] = 0
            if idf[term] <= np.float32(0):
                continue
            if weighing == SATURATED:
                scaled = count * scale + shift
                weight = idf[term] * (gain * scaled / (scaled + k1) - base)
            else:
                weight = _damped(count, weighing) * idf[term] * scale
            row = index.row_of[term]
            if row != NO_ROW:
                index.rows[row, document] = max(np.float32(weight), LEAST)
            else:
                at = 2 * heads[term]
                index.documents[at] = document
                index.weights[at + 1] = max(np.float32(weight), LEAST)
                heads[term] += 1


@inlined
def _unit_length(distinct: Ints, found: int, tally: Ints, idf: Floats, weighing: int) -> float:
    """Return the factor that gives a document length one."""
    total = 0.0
    for place in range(found):
        term = distinct[place]
        total += (_damped(tally[term], weighing) * idf[term]) ** 2
    return 1.0 / np.sqrt(total) if total > 0.0 else 0.0


@inlined
def _damped(count: int, weighing: int) -> float:
    return 1.0 + np.log(np.float64(count)) if weighing == LOG_COSINE else np.float64(count)


@kernel
def greatest_weights(index: Index) -> None:
    """Fill the bounds: zero where no document contains a term."""
    for term in range(len(index.bounds)):
        greatest = np.float32(0)
        for at in range(index.offsets[term], index.offsets[term + 1]):
            greatest = max(greatest, index.weights[2 * at + 1])
        row = index.row_of[term]
        if row != NO_ROW:
            for document in range(index.rows.shape[1]):
                greatest = max(greatest, index.rows[row, document])
        index.bounds[term] = greatest


# Selecting the best


@inlined
def kth_best(scores: Floats, bits: Ints, listed: Ints, size: int, k: int, heap: Longs) -> float:
    """Return the k-th best score of the documents listed."""
    select(bits, listed, size, k, heap)
    return np.float64(scores[document_of(heap[0])])


@inlined
def select(bits: Ints, listed: Ints, size: int, k: int, heap: Longs) -> int:
    """Fill ``heap`` with the best ``k`` of the documents listed, the worst on top, and return how many there are."""
    number = min(size, k)
    for at in range(number):
        heap[at] = _key(bits, listed[at])
    for top in range(number // 2 - 1, -1, -1):
        sink(heap, top, number)
    for at in range(number, size):
        key = _key(bits, listed[at])
        if key > heap[0]:
            heap[0] = key
            sink(heap, 0, number)
    return number


@inlined
def select_of_all(bits: Ints, k: int, heap: Longs) -> int:
    """Fill ``heap`` with the best ``k`` of all documents that have a score, and return how many there are."""
    for at in range(k):
        heap[at] = 0
    for start in range(0, len(bits), BLOCK):
        stop = min(start + BLOCK, len(bits))
        best = np.int32(0)
        for document in range(start, stop):
            best = max(best, bits[document])
        if np.int64(best) > heap[0] >> HALF:
            for document in range(start, stop):
                if np.int64(bits[document]) > heap[0] >> HALF:
                    heap[0] = _key(bits, document)
                    sink(heap, 0, k)
    number = 0
    for at in range(k):  # remaining zeros are no documents
        heap[number] = heap[at]
        number += np.int64(heap[at] > 0)
    if number < k:
        for top in range(number // 2 - 1, -1, -1):
            sink(heap, top, number)
    return number


@inlined
def _key(bits: Ints, document: int) -> int:
    return (np.int64(bits[document]) << HALF) | (LOW - np.int64(document))


@inlined
def document_of(key: int) -> int:
    """Return the document of a key of the heap."""
    return LOW - (key & LOW)


@inlined
def sink(heap: Longs, at: int, size: int) -> None:
    """Restore the heap below ``at``."""
    key = heap[at]
    below = 2 * at + 1
    while below < size:
        below += np.int64(below + 1 < size and heap[below + 1] < heap[below])
        if heap[below] >= key:
            break
        heap[at] = heap[below]
        at = below
        below = 2 * at + 1
    heap[at] = key


# Searching


@kernel
def check_terms(index: Index, terms: Ids, checked: Bools) -> int:
    """Check the postings of these terms, once for each term: they may come from a file with any content.

    Return the first term whose documents do not rise or are too many, or whose weights are not above zero (in a row: or
    zero) and at most its bound; -1 if there is none.
    """
    for place in range(len(terms)):
        term = np.int64(terms[place])
        if checked[term]:
            continue
        bound = index.bounds[term]
        before = np.int32(-1)
        for at in range(index.offsets[term], index.offsets[term + 1]):
            if index.documents[2 * at] <= before or not LEAST <= index.weights[2 * at + 1] <= bound:
                return term
            before = index.documents[2 * at]
        if before >= index.rows.shape[1]:
            return term
        if index.row_of[term] != NO_ROW:
            for document in range(index.rows.shape[1]):
                weight = index.rows[index.row_of[term], document]
                if weight != np.float32(0) and not LEAST <= weight <= bound:
                    return term
        checked[term] = True
    return -1


@kernel
def merge_terms(index: Index, ids: Ids, starts: Longs, terms: Ints, counts: Floats, ends: Longs) -> None:
    """Write each query's distinct terms, those of the fewest documents first, and how often each occurs in the query.

    Terms that no document contains are left out. ``starts`` is where queries begin in ``ids``, and so where their terms
    begin in ``terms`` and ``counts``; ``ends`` becomes where those end.
    """
    for query in range(len(ends)):
        begin = starts[query]
        found = begin
        for place in range(begin, starts[query + 1]):
            terms[found] = ids[place]
            found += np.int64(_length(index, terms[found]) > 0)
        _sort_terms(index, terms, begin, found)
        merged = begin
        for place in range(begin, found):
            if merged > begin and terms[merged - 1] == terms[place]:
                counts[merged - 1] += np.float32(1)
            else:
                terms[merged] = terms[place]
                counts[merged] = np.float32(1)
                merged += 1
        ends[query] = merged


@inlined
def _length(index: Index, term: int) -> int:
    """Return the number of postings of a term; rows sort after all of them."""
    return LOW if index.row_of[term] != NO_ROW else index.offsets[term + 1] - index.offsets[term]


@inlined
def _sort_terms(index: Index, terms: Ints, begin: int, end: int) -> None:
    """Sort by length, then by id, with Shell's sort: queries are short, but one may be a whole book."""
    gap = 1
    while gap < (end - begin) // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for place in range(begin + gap, end):
            term = terms[place]
            length = _length(index, term)
            at = place
            while at >= begin + gap:
                other = terms[at - gap]
                longer = _length(index, other)
                if longer < length or (longer == length and other <= term):
                    break
                terms[at] = other
                at -= gap
            terms[at] = term
        gap //= 3


@kernel
def search(
    index: Index, terms: Ints, factors: Floats, starts: Longs, ends: Longs, k: int, work: QueryWorkspace,
    found_documents: Ints, found_scores: Floats,
) -> None:  # fmt: skip
    """Find the ``k`` best documents of each query, ties in document order.

    terms, factors: query q's are at ``starts[q]`` to ``ends[q]``, as ``merge_terms`` sorts them, factors above zero.
    found_documents, found_scores: (queries, k), out; entries beyond the documents found are left unchanged.
    """
    for query in range(len(ends)):
        begin, end = starts[query], ends[query]
        _bound_terms(index, terms, factors, begin, end, work.left)
        slack = 1.0 + ROUNDING * (end - begin + 2)
        place, size, threshold = _add_lists(index, terms, factors, begin, end, slack, k, work)
        if threshold > 0.0:
            number = _add_to_candidates(index, terms, factors, begin, place, end, size, slack, threshold, k, work)
            number = select(work.bits, work.candidates, number, k, work.heap)
        elif place < end:
            _add_rows(index, terms, factors, place, end, work.scores)
            number = select_of_all(work.bits, k, work.heap)
            size = len(work.scores)
        else:
            number = select(work.bits, work.touched, size, k, work.heap)
        for rank in range(number - 1, -1, -1):
            worst = document_of(work.heap[0])
            found_documents[query, rank] = worst
            found_scores[query, rank] = work.scores[worst]
            work.heap[0] = work.heap[rank]
            sink(work.heap, 0, rank)
        _reset(work.scores, work.touched, size)


@inlined
def _bound_terms(index: Index, terms: Ints, factors: Floats, begin: int, end: int, left: Doubles) -> None:
    """Compute the most that the terms from each on can add to a document, and prefetch their postings."""
    left[end - begin] = 0.0
    for place in range(end - 1, begin - 1, -1):
        bound = np.float64(factors[place]) * np.float64(index.bounds[terms[place]])
        left[place - begin] = left[place - begin + 1] + bound
        prefetch(index.documents, 2 * index.offsets[terms[place]])


@inlined
def _add_lists(
    index: Index, terms: Ints, factors: Floats, begin: int, end: int, slack: float, k: int, work: QueryWorkspace
) -> tuple[int, int, float]:
    """Add terms to the scores until no other document can enter the result, the next term has a row, or all are added.

    Return the index of the next term, how many documents have a score, and in the first case the score that k of them
    have already; else zero.
    """
    size = 0
    threshold = 0.0
    for place in range(begin, end):
        could = work.left[place - begin] * slack
        # The terms so far gave a document no more than this: if that is too little, no selection is needed.
        if size >= k and work.left[0] - work.left[place - begin] > could:
            if threshold <= could:
                threshold = kth_best(work.scores, work.bits, work.touched, size, k, work.heap)
            if threshold > could:
                return place, size, threshold
        if index.row_of[terms[place]] != NO_ROW:
            return place, size, 0.0
        factor = factors[place]
        for at in range(2 * index.offsets[terms[place]], 2 * index.offsets[terms[place] + 1], 2):
            document = index.documents[at]
            score = work.scores[document]
            work.touched[size] = document
            size += np.int64(score == np.float32(0))
            work.scores[document] = score + factor * index.weights[at + 1]
    return end, size, 0.0


@inlined
def _add_to_candidates(
    index: Index, terms: Ints, factors: Floats, begin: int, place: int, end: int, size: int,
    slack: float, threshold: float, k: int, work: QueryWorkspace,
) -> int:  # fmt: skip
    """Add the remaining terms to the documents that can still be among the best, and return how many those are."""
    scores, candidates = work.scores, work.candidates
    number = _filter(scores, work.touched, size, work.left[place - begin], slack, threshold, candidates)
    while place < end:
        row, factor = index.row_of[terms[place]], factors[place]
        if row != NO_ROW:
            for at in range(number):
                scores[candidates[at]] += factor * index.rows[row, candidates[at]]
        else:
            _add_list(index, terms[place], factor, scores, candidates, number, work.positions)
        place += 1
        if place < end and number > FEW * k:
            threshold = kth_best(scores, work.bits, candidates, number, k, work.heap)
            number = _filter(scores, candidates, number, work.left[place - begin], slack, threshold, candidates)
    return number


@inlined
def _filter(scores: Floats, listed: Ints, size: int, could: float, slack: float, threshold: float, kept: Ints) -> int:
    """Keep the documents that can reach the threshold, and return how many."""
    number = 0
    for at in range(size):
        document = listed[at]
        kept[number] = document
        number += np.int64((scores[document] + could) * slack >= threshold)
    return number


@inlined
def _add_list(
    index: Index, term: int, factor: float, scores: Floats, candidates: Ints, number: int, positions: Ints
) -> None:
    """Add a term to the scores of the candidates: by binary search, or where that takes longer by adding to all
    documents that have a score.
    """
    documents, weights = index.documents, index.weights
    first, length = index.offsets[term], index.offsets[term + 1] - index.offsets[term]
    steps = 1
    while length >> steps:
        steps += 1
    if number * steps > length:
        for at in range(2 * first, 2 * (first + length), 2):
            score = scores[documents[at]]
            more = factor * weights[at + 1]
            scores[documents[at]] = score + (more if score > np.float32(0) else np.float32(0))
        return
    # All searches in parallel, one step of each in turn: their waits for memory overlap.
    for at in range(number):
        positions[at] = 0
    while length > 1:
        half = length >> 1
        for at in range(number):
            further = positions[at] + half
            positions[at] = further if documents[2 * (first + further)] <= candidates[at] else positions[at]
        length -= half
    for at in range(number):
        place = 2 * (first + positions[at])
        more = factor * weights[place + 1]
        scores[candidates[at]] += more if documents[place] == candidates[at] else np.float32(0)


@inlined
def _add_rows(index: Index, terms: Ints, factors: Floats, place: int, end: int, scores: Floats) -> None:
    """Add terms that all have rows to the scores of all documents."""
    for each in range(place, end):
        row, factor = index.row_of[terms[each]], factors[each]
        for document in range(len(scores)):
            scores[document] += factor * index.rows[row, document]


@inlined
def _reset(scores: Floats, touched: Ints, size: int) -> None:
    """Set the scores of a query back to zero."""
    if size == len(scores):
        for document in range(size):
            scores[document] = np.float32(0)
    else:
        for at in range(size):
            scores[touched[at]] = np.float32(0)
