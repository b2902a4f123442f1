"""An inverted index, built and searched: for each term the documents that hold it, each with a weight.

Most terms have a list of postings, pairs of a document and a weight, in document order; the two stand side by side in
memory, since whoever needs one needs the other. A term that many documents hold has a row instead, a weight for every
document, zero where it does not stand: that takes no more room, is added sixteen numbers at a time, and says what a
single document has in one step. A document's score is the sum of (factor · weight) over the terms of the query.

Building is a counting sort in two passes: how many documents hold each term, then each document's terms, counted,
weighed and put behind the postings that are there already. Documents come in order, so postings are in order.

Searching goes term by term, the rarest first, and adds into one float a document. What makes it fast is that it stops
(H. Turtle, J. Flood, "Query evaluation: strategies and optimizations", Information Processing & Management, 1995): once
k documents have more than all terms that are left could add together, no other document can come in. The long lists of
frequent terms, which were nearly all of the work, are then only asked about the few documents that are still in the
race. Nothing is approximate: the result is that of adding everything.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from foreword.arrays import Bools, Doubles, Floats, Ids, Ints, Longs
from foreword.native.jit import inlined, kernel
from foreword.native.memory import prefetch
from foreword.search.kernels_best import HALF, LOW, document_of, kth_best, select, select_of_all, sink

SATURATED, COSINE, LOG_COSINE = 0, 1, 2
"""How a count becomes a weight: as BM25 has it; times idf, documents of unit length; the same with 1 + ln count."""

LEAST = np.float32(1e-30)
"""No weight is smaller, for zero is how a document is known that nothing has been added to."""

ROUNDING = 2e-7
"""What adding one more float32 can change a sum by, and some more; bounds leave room for it."""

AHEAD = 16
"""How many tokens ahead memory is asked for."""

FEW = 8
"""So many documents for each place among the best may stay in the race without asking again who is out of it."""

NO_ROW = -1


class Index(NamedTuple):
    """What is searched in.

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


class Room(NamedTuple):
    """Where one query at a time is worked out.

    scores: float32 (documents,), zeros between two queries; bits: the same memory as int32.
    touched, racing, places: int32 (documents + 1,): documents that have a score, documents that can still be among the
    best, where a search for each has come to.
    left: float64, a place more than the longest query has terms: what the terms from each on can add.
    heap: int64 (k,), the best.
    """

    scores: Floats
    bits: Ints
    touched: Ints
    racing: Ints
    places: Ints
    left: Doubles
    heap: Longs


# Building


@kernel
def count_documents(ids: Ids, offsets: Longs, first: int, last: int, states: Longs) -> None:
    """In how many of the documents ``first`` to ``last`` each id stands.

    states: (ids,), -2^32 each; then the last document that held the id in the upper half, and the count in the lower.
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
    heads: (ids,), where each term's next posting goes; moved on. tally: (ids,), zeros, and zeros again at the end.
    distinct: scratch, a place more than the longest document has tokens.
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
    """Fill the bounds: zero where no document holds a term."""
    for term in range(len(index.bounds)):
        greatest = np.float32(0)
        for at in range(index.offsets[term], index.offsets[term + 1]):
            greatest = max(greatest, index.weights[2 * at + 1])
        row = index.row_of[term]
        if row != NO_ROW:
            for document in range(index.rows.shape[1]):
                greatest = max(greatest, index.rows[row, document])
        index.bounds[term] = greatest


# Asking


@kernel
def check_terms(index: Index, terms: Ids, checked: Bools) -> int:
    """Look at the postings of these terms, once for each term: they may come from a file that holds anything.

    Returns the first term whose documents do not rise or are too many, or whose weights are not what they should be:
    above zero (in a row: or zero) and at most its bound. -1 if there is none.
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
    """Each query's distinct terms, those of the fewest documents first, and how often it says them.

    Terms that no document holds are left out. ``starts`` says where queries begin in ``ids``, and so where their terms
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
    """How many postings a term has; rows come after all of them."""
    return LOW if index.row_of[term] != NO_ROW else index.offsets[term + 1] - index.offsets[term]


@inlined
def _sort_terms(index: Index, terms: Ints, begin: int, end: int) -> None:
    """By length, then by id. Shell's sort: queries are short, but somebody will ask with a whole book."""
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
    index: Index, terms: Ints, factors: Floats, starts: Longs, ends: Longs, k: int, room: Room,
    found_documents: Ints, found_scores: Floats,
) -> None:  # fmt: skip
    """The ``k`` best documents of each query, ties in document order.

    terms, factors: query q's are at ``starts[q]`` to ``ends[q]``, as ``merge_terms`` sorts them, factors above zero.
    found_documents, found_scores: (queries, k), out; what is beyond the documents found is left as it is.
    """
    for query in range(len(ends)):
        begin, end = starts[query], ends[query]
        _bound_terms(index, terms, factors, begin, end, room.left)
        slack = 1.0 + ROUNDING * (end - begin + 2)
        place, size, threshold = _add_lists(index, terms, factors, begin, end, slack, k, room)
        if threshold > 0.0:
            racing = _race(index, terms, factors, begin, place, end, size, slack, threshold, k, room)
            number = select(room.bits, room.racing, racing, k, room.heap)
        elif place < end:
            _add_rows(index, terms, factors, place, end, room.scores)
            number = select_of_all(room.bits, k, room.heap)
            size = len(room.scores)
        else:
            number = select(room.bits, room.touched, size, k, room.heap)
        for rank in range(number - 1, -1, -1):
            worst = document_of(room.heap[0])
            found_documents[query, rank] = worst
            found_scores[query, rank] = room.scores[worst]
            room.heap[0] = room.heap[rank]
            sink(room.heap, 0, rank)
        _forget(room.scores, room.touched, size)


@inlined
def _bound_terms(index: Index, terms: Ints, factors: Floats, begin: int, end: int, left: Doubles) -> None:
    """What the terms from each on can add to a document at most; their postings are asked for on the way."""
    left[end - begin] = 0.0
    for place in range(end - 1, begin - 1, -1):
        bound = np.float64(factors[place]) * np.float64(index.bounds[terms[place]])
        left[place - begin] = left[place - begin + 1] + bound
        prefetch(index.documents, 2 * index.offsets[terms[place]])


@inlined
def _add_lists(
    index: Index, terms: Ints, factors: Floats, begin: int, end: int, slack: float, k: int, room: Room
) -> tuple[int, int, float]:
    """Add terms to the scores until no other document can come in, or the next term has a row, or all are added.

    Returns the place of the next term, how many documents are touched, and in the first case the score that k of them
    have already; else zero.
    """
    size = 0
    threshold = 0.0
    for place in range(begin, end):
        could = room.left[place - begin] * slack
        # The terms so far gave a document no more than this: if that is too little, there is no need to look.
        if size >= k and room.left[0] - room.left[place - begin] > could:
            if threshold <= could:
                threshold = kth_best(room.scores, room.bits, room.touched, size, k, room.heap)
            if threshold > could:
                return place, size, threshold
        if index.row_of[terms[place]] != NO_ROW:
            return place, size, 0.0
        factor = factors[place]
        for at in range(2 * index.offsets[terms[place]], 2 * index.offsets[terms[place] + 1], 2):
            document = index.documents[at]
            score = room.scores[document]
            room.touched[size] = document
            size += np.int64(score == np.float32(0))
            room.scores[document] = score + factor * index.weights[at + 1]
    return end, size, 0.0


@inlined
def _race(
    index: Index, terms: Ints, factors: Floats, begin: int, place: int, end: int, size: int,
    slack: float, threshold: float, k: int, room: Room,
) -> int:  # fmt: skip
    """Add the other terms to those of the documents touched that can still be among the best; how many those are."""
    scores, racing = room.scores, room.racing
    number = _still_racing(scores, room.touched, size, room.left[place - begin], slack, threshold, racing)
    while place < end:
        row, factor = index.row_of[terms[place]], factors[place]
        if row != NO_ROW:
            for at in range(number):
                scores[racing[at]] += factor * index.rows[row, racing[at]]
        else:
            _add_to_racing(index, terms[place], factor, scores, racing, number, room.places)
        place += 1
        if place < end and number > FEW * k:
            threshold = kth_best(scores, room.bits, racing, number, k, room.heap)
            number = _still_racing(scores, racing, number, room.left[place - begin], slack, threshold, racing)
    return number


@inlined
def _still_racing(
    scores: Floats, listed: Ints, size: int, could: float, slack: float, threshold: float, kept: Ints
) -> int:
    """Keep the documents that can reach the threshold; how many."""
    number = 0
    for at in range(size):
        document = listed[at]
        kept[number] = document
        number += np.int64((scores[document] + could) * slack >= threshold)
    return number


@inlined
def _add_to_racing(
    index: Index, term: int, factor: float, scores: Floats, racing: Ints, number: int, places: Ints
) -> None:
    """Add a term to the scores of some documents: by looking each up, or where that takes longer by adding to all that
    have a score.
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
    # All searches side by side, one step of each in turn: their waits for memory overlap.
    for at in range(number):
        places[at] = 0
    while length > 1:
        half = length >> 1
        for at in range(number):
            further = places[at] + half
            places[at] = further if documents[2 * (first + further)] <= racing[at] else places[at]
        length -= half
    for at in range(number):
        place = 2 * (first + places[at])
        more = factor * weights[place + 1]
        scores[racing[at]] += more if documents[place] == racing[at] else np.float32(0)


@inlined
def _add_rows(index: Index, terms: Ints, factors: Floats, place: int, end: int, scores: Floats) -> None:
    """Add terms that all have rows to the scores of all documents."""
    for each in range(place, end):
        row, factor = index.row_of[terms[each]], factors[each]
        for document in range(len(scores)):
            scores[document] += factor * index.rows[row, document]


@inlined
def _forget(scores: Floats, touched: Ints, size: int) -> None:
    if size == len(scores):
        for document in range(size):
            scores[document] = np.float32(0)
    else:
        for at in range(size):
            scores[touched[at]] = np.float32(0)
