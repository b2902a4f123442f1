"""Kernels of the CTC decoder: the frames of a recording extend prefix beams, which language models score.

Every frame extends every beam by every label that is likely enough; candidates that read alike are added up, scored,
and the best kept. Candidates get no nodes: a 64-bit hash of what they read distinguishes them, and only the ones
that survive the frame are written to the trees of ``kernels_beams.py``. A text does get its node when the first
candidate asks for it, with the states of the language models after it, so that each is asked once for each word.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from foreword.arrays import Bytes, Doubles, Ints, Longs
from foreword.native.hashing import find_slot, fold, mix
from foreword.native.jit import inlined, kernel
from foreword.ngram.kernels_kenlm import FULL, KenlmArrays, find_word, murmur, step
from foreword.speech.kernels_beams import (
    BEAMS,
    CHAINS,
    FORCED,
    FRAME,
    STAMP,
    TEXTS,
    TURN,
    WORDS,
    Candidates,
    FinishedBeams,
    SearchArrays,
    count_words,
)
from foreword.speech.kernels_tries import Trie, child

BLANK, SPACE, LETTERS = range(3)
"""What a label is."""

STAY, SAME, BREAK, BOUNDARY, EXTEND = range(5)
"""How a candidate arose: a blank, the same label once more, a piece that begins a word, a space, more of the word."""

ALPHA, BETA, UNKNOWN, BOUNDED, RESTRICTED = range(5)
"""Columns of the weights of a language model: its weight, that of a word, the offset of unknown words, whether
``</s>`` is scored, and whether words are limited to its trie."""

AVERAGE_LENGTH = 6
"""Unknown parts that are longer than this many characters lose more."""

LONGEST = 4096
"""Characters of a word that is looked up in a language model; longer ones are unknown."""

LN10 = 1.0 / np.log10(np.e)
ROOT = np.uint64(0x9E3779B97F4A7C15)


class Labels(NamedTuple):
    """The labels. kind, same: (V,), what each is, and the first label that is written alike.

    chars: int32, the characters of all labels; whole, clean: int32 (V, 2), the range of each label in it, with and
    without its ▁; leads, trails: uint8 (V,), whether it has one in front, and behind.
    """

    kind: Bytes
    same: Ints
    chars: Ints
    whole: Ints
    clean: Ints
    leads: Bytes
    trails: Bytes
    bpe: bool


class Scorers(NamedTuple):
    """What scores text. models, tries: of the language models; those after the first ``count`` are not used.

    weights: float64 (count, 5); sizes: int64 (count + 1,), where each model's state begins; ends: int64 (count,), the
    id of ``</s>``. history: how many words
    of a text count for ``prune_history``. hot: the trie of hotwords; hot_weight: of one.
    """

    models: tuple[KenlmArrays, ...]
    tries: tuple[Trie, ...]
    count: int
    weights: Doubles
    sizes: Longs
    ends: Longs
    history: int
    hot: Trie
    hot_weight: float


# Frames


@kernel
def likely_labels(logs: Doubles, least: float, labels: Ints, offsets: Longs) -> int:
    """List the labels of each frame that are at least that likely, and the likeliest in any case; return how many a
    frame has at most.
    """
    written, most = 0, 1
    offsets[0] = 0
    for frame in range(len(logs)):
        best = 0
        for label in range(logs.shape[1]):
            if logs[frame, label] > logs[frame, best]:
                best = label
        for label in range(logs.shape[1]):
            if logs[frame, label] >= least or label == best:
                labels[written] = label
                written += 1
        offsets[frame + 1] = written
        most = max(most, written - offsets[frame])
    return most


# Scores


@inlined
def part_score(
    scorers: Scorers, search: SearchArrays, part: int, chars: Ints, first: int, last: int, fresh: bool
) -> float:
    """Return what the word being spelled adds after some more characters. fresh: it begins with these."""
    words = search.words
    length = last - first + (0 if fresh else words.length[part])
    if length == 0:
        return 0.0
    hot = 0 if fresh else np.int64(words.hot[part])
    for at in range(first, last):
        hot = child(scorers.hot, hot, chars[at])
    if hot >= 0:
        return scorers.hot_weight * length / scorers.hot.shortest[hot]
    total = 0.0
    for model in range(scorers.count):
        node = 0 if fresh else np.int64(words.places[part, model])
        for at in range(first, last):
            node = child(scorers.tries[model], node, chars[at])
        if node < 0 or not scorers.weights[model, RESTRICTED]:
            unknown = scorers.weights[model, UNKNOWN]
            total += unknown * length / AVERAGE_LENGTH if length > AVERAGE_LENGTH else unknown
    return total / scorers.count if scorers.count else 0.0


@inlined
def spelled_hash(hash: np.uint64, chars: Ints, first: int, last: int) -> np.uint64:
    """Return the hash of a part after some more characters."""
    for at in range(first, last):
        hash = fold(hash, mix(np.uint64(chars[at]) + np.uint64(1)))
    return hash


@inlined
def look_up(models: tuple[KenlmArrays, ...], model: int, search: SearchArrays, part: int) -> int:
    """Return the id of a word in a model, 0 if it is unknown, FULL for a damaged file."""
    words, spelled = search.words, search.spelled
    length = words.length[part]
    if length > LONGEST:
        return 0
    stop = len(spelled) - 8
    at = stop
    node = np.int64(part)
    for _ in range(length):
        code = np.uint32(words.char[node])
        if code < 0x80:
            at -= 1
            spelled[at] = code
        else:
            tail = 1 if code < 0x800 else 2 if code < 0x10000 else 3
            for _ in range(tail):
                at -= 1
                spelled[at] = 0x80 | (code & np.uint32(0x3F))
                code >>= np.uint32(6)
            at -= 1
            spelled[at] = (0xF00 >> tail & 0xFF) | code
        node = np.int64(words.parent[node])
    return find_word(models[model], murmur(spelled, at, stop))


@inlined
def word_score(
    scorers: Scorers, search: SearchArrays, text: int, part: int, model: int, out: Ints, row: int
) -> tuple[float, int]:
    """Return log10 of a word after a text, with the offset of unknown words, and the status; writes the state after."""
    words = search.words
    if words.ids[part, model] == -2:
        words.ids[part, model] = look_up(scorers.models, model, search, part)
    id = np.int64(words.ids[part, model])
    if id == FULL:
        return 0.0, FULL
    at = scorers.sizes[model]
    size = scorers.sizes[scorers.count]
    log, matched = step(scorers.models[model], search.texts.states, text * size + at, id, out, row * size + at)
    if matched == FULL:
        return 0.0, FULL
    place = words.places[part, model]
    known = id != 0
    if scorers.weights[model, RESTRICTED] and (place < 0 or not scorers.tries[model].ends[place]):
        known = False
    return np.float64(log) + (0.0 if known else scorers.weights[model, UNKNOWN]), 0


@inlined
def is_hot(scorers: Scorers, search: SearchArrays, part: int) -> int:
    """Return 1 if a word is a hotword, else 0."""
    node = search.words.hot[part]
    return 1 if node > 0 and scorers.hot.ends[node] else 0


@kernel
def completed(scorers: Scorers, search: SearchArrays, text: int, part: int) -> int:
    """Return the node of a text one word longer, a new one if need be; FULL for a damaged model."""
    texts, words, counters = search.texts, search.words, search.counters
    if words.length[part] == 0:
        return text
    hash = fold(texts.hash[text], words.hash[part])
    key = np.int64(hash | np.uint64(1))
    slot = find_slot(texts.slots, key)
    if texts.slots[slot] != 0:
        return texts.slots[slot + 1]
    node = counters[TEXTS]
    total = 0.0
    for model in range(scorers.count):
        log, status = word_score(scorers, search, text, part, model, texts.states, node)
        if status == FULL:
            return FULL
        total += scorers.weights[model, ALPHA] * log * LN10 + scorers.weights[model, BETA]
    texts.slots[slot], texts.slots[slot + 1] = key, node
    counters[TEXTS] = node + 1
    texts.parent[node], texts.word[node] = text, part
    texts.hot[node] = texts.hot[text] + is_hot(scorers, search, part)
    texts.raw[node] = texts.raw[text] + (total / scorers.count if scorers.count else 0.0)
    texts.hash[node] = hash
    recent, at = ROOT, np.int64(node)
    for _ in range(scorers.history):
        if at == 0:
            break
        recent = fold(recent, words.hash[texts.word[at]])
        at = np.int64(texts.parent[at])
    texts.recent[node] = recent
    return node


# The search


@inlined
def add(search: SearchArrays, key: np.uint64, stamp: int, mask: int, count: int, logit: float) -> tuple[int, bool]:
    """Return the candidate with a key, and whether it is new; what it already has is added to the log-probability."""
    found = search.found
    slot = np.int64(mix(key)) & mask
    while found.stamps[slot] == stamp:
        if found.keys[slot] == key:
            item = np.int64(found.items[slot])
            one, other = found.logit[item], logit
            high, low = (one, other) if one >= other else (other, one)
            found.logit[item] = high + np.log(1.0 + np.exp(low - high))
            return item, False
        slot = (slot + 1) & mask
    found.stamps[slot], found.keys[slot], found.items[slot] = stamp, key, count
    found.logit[count] = logit
    return count, True


@inlined
def extend(
    labels: Labels,
    scorers: Scorers,
    search: SearchArrays,
    likely: Ints,
    first: int,
    last: int,
    logs: Doubles,
    frame: int,
) -> int:
    """List the candidates of a frame; return how many, or FULL."""
    counters, beams, words, texts, found = search.counters, search.beams, search.words, search.texts, search.found
    width = len(search.done)
    base = counters[TURN] * width
    size = counters[BEAMS]
    counters[STAMP] += 1
    stamp = counters[STAMP]
    slots = 16
    while slots < 2 * size * (last - first):
        slots *= 2
    mask = slots - 1
    for beam in range(size):
        search.done[beam] = -1
    count = np.int64(0)
    for at in range(first, last):
        label = likely[at]
        kind = labels.kind[label]
        same = labels.same[label]
        added = logs[frame, label]
        for beam in range(size):
            here = base + beam
            text, part = np.int64(beams.text[here]), np.int64(beams.part[here])
            begin, stop = np.int64(0), np.int64(0)
            fresh = False
            if kind == BLANK:
                case = STAY
            elif beams.last[here] == same:
                case = SAME
            elif labels.bpe and (labels.leads[label] or counters[FORCED]):
                case, fresh = BREAK, True
                counters[FORCED] = labels.trails[label]
                begin, stop = np.int64(labels.clean[label, 0]), np.int64(labels.clean[label, 1])
            elif not labels.bpe and kind == SPACE:
                case, fresh = BOUNDARY, True
            else:
                case = EXTEND
                begin, stop = np.int64(labels.whole[label, 0]), np.int64(labels.whole[label, 1])
            if fresh:
                if search.done[beam] < 0:
                    node = completed(scorers, search, text, part)
                    if node == FULL:
                        return FULL
                    search.done[beam] = node
                text = np.int64(search.done[beam])
            hash = spelled_hash(ROOT if fresh else words.hash[part], labels.chars, begin, stop)
            key = fold(fold(texts.hash[text], hash), np.uint64(same))
            item, new = add(search, key, stamp, mask, count, beams.logit[here] + added)
            if new:
                count += 1
                extra = texts.raw[text] + scorers.hot_weight * texts.hot[text]
                found.extra[item] = extra + (
                    part_score(scorers, search, part, labels.chars, begin, stop, fresh)
                    if begin < stop
                    else 0.0
                    if fresh
                    else words.score[part]
                )
                found.part[item] = -1
            found.source[item], found.label[item], found.case[item], found.text[item] = beam, label, case, text
            if begin == stop:
                found.part[item] = 0 if fresh else part
    return count


@inlined
def nth_largest(values: Doubles, scratch: Doubles, count: int, n: int) -> float:
    """Return the n-th largest of the first values, from one on, by quickselect."""
    for at in range(count):
        scratch[at] = values[at]
    low, high, wanted = 0, count - 1, n - 1
    while low < high:
        pivot = scratch[(low + high) >> 1]
        left, right = low, high
        while left <= right:
            while scratch[left] > pivot:
                left += 1
            while scratch[right] < pivot:
                right -= 1
            if left <= right:
                scratch[left], scratch[right] = scratch[right], scratch[left]
                left += 1
                right -= 1
        if wanted <= right:
            high = right
        elif wanted >= left:
            low = left
        else:
            break
    return scratch[wanted]


@inlined
def sort_by_score(found: Candidates, count: int) -> None:
    """Sort ``order[:count]`` from the highest score to the lowest, equal ones in the order they have, by merging."""
    run = 1
    while run < count:
        for begin in range(0, count, 2 * run):
            middle, stop = min(begin + run, count), min(begin + 2 * run, count)
            left, right = begin, middle
            for at in range(begin, stop):
                if left < middle and (
                    right == stop or found.score[found.order[left]] >= found.score[found.order[right]]
                ):
                    found.spare[at] = found.order[left]
                    left += 1
                else:
                    found.spare[at] = found.order[right]
                    right += 1
        for at in range(count):
            found.order[at] = found.spare[at]
        run *= 2


@inlined
def best(found: Candidates, count: int, width: int, prune: float) -> int:
    """Write the best candidates, at most ``width``, to ``order``, best first; return how many."""
    high = -np.inf
    for item in range(count):
        found.score[item] = found.logit[item] + found.extra[item]
        high = max(high, found.score[item])
    least = high + prune
    kept = 0
    for item in range(count):
        if found.score[item] >= least:
            found.order[kept] = item
            found.extra[kept] = found.score[item]
            kept += 1
    if kept > width:
        # What ``extra`` held is in the scores, so that it serves as scratch.
        last = nth_largest(found.extra, found.extra[kept:], kept, width)
        above = 0
        for at in range(kept):
            above += found.extra[at] > last
        equal = width - above
        written = 0
        for at in range(kept):
            value = found.extra[at]
            if value > last or (value == last and equal > 0):
                equal -= value == last
                found.order[written] = found.order[at]
                written += 1
        kept = written
    sort_by_score(found, kept)
    return kept


@inlined
def add_word(labels: Labels, scorers: Scorers, search: SearchArrays, part: int, first: int, last: int) -> int:
    """Return the node of a part that is some characters longer."""
    words, counters = search.words, search.counters
    for at in range(first, last):
        node = counters[WORDS]
        counters[WORDS] = node + 1
        code = labels.chars[at]
        words.parent[node], words.char[node], words.length[node] = part, code, words.length[part] + 1
        words.hot[node] = child(scorers.hot, np.int64(words.hot[part]), code)
        for model in range(scorers.count):
            words.places[node, model] = child(scorers.tries[model], np.int64(words.places[part, model]), code)
            words.ids[node, model] = -2
        words.hash[node] = spelled_hash(words.hash[part], labels.chars, at, at + 1)
        words.score[node] = 0.0
        if at == last - 1:
            words.score[node] = part_score(
                scorers, search, node, labels.chars, np.int64(0), np.int64(0), np.bool_(False)
            )
        part = node
    return part


@inlined
def seen_before(search: SearchArrays, text: int, hash: np.uint64, label: int, stamp: int, mask: int) -> bool:
    """Return whether a better beam has the same recent words, part and last label."""
    found = search.found
    key = fold(fold(search.texts.recent[text], hash), np.uint64(label))
    slot = np.int64(mix(key)) & mask
    while found.stamps[slot] == stamp:
        if found.keys[slot] == key:
            return True
        slot = (slot + 1) & mask
    found.stamps[slot], found.keys[slot] = stamp, key
    return False


@inlined
def keep(labels: Labels, scorers: Scorers, search: SearchArrays, kept: int, frame: int, distinct: bool) -> None:
    """Make the best candidates the next beams. distinct: drop those that differ only in words long past."""
    counters, beams, chains, found = search.counters, search.beams, search.chains, search.found
    width = len(search.done)
    base, other = counters[TURN] * width, (1 - counters[TURN]) * width
    counters[STAMP] += 1
    slots = 16
    while slots < 2 * kept:
        slots *= 2
    written = 0
    for at in range(kept):
        item = np.int64(found.order[at])
        here = base + np.int64(found.source[item])
        label, case = np.int64(found.label[item]), found.case[item]
        part = np.int64(found.part[item])
        whole, before = np.int64(beams.part[here]), np.int64(beams.part[here])
        begin, stop = np.int64(0), np.int64(0)
        if case == BREAK:
            before = np.int64(0)
            begin, stop = np.int64(labels.clean[label, 0]), np.int64(labels.clean[label, 1])
        elif case == EXTEND:
            begin, stop = np.int64(labels.whole[label, 0]), np.int64(labels.whole[label, 1])
        elif case == BOUNDARY:
            before = np.int64(0)
        if distinct:
            hash = spelled_hash(search.words.hash[before], labels.chars, begin, stop)
            if seen_before(search, found.text[item], hash, labels.same[label], counters[STAMP], slots - 1):
                continue
        to = other + written
        written += 1
        beams.part[to] = part if part >= 0 else add_word(labels, scorers, search, before, begin, stop)
        beams.text[to], beams.last[to], beams.logit[to] = found.text[item], labels.same[label], found.logit[item]
        first, end, chain = beams.first[here], beams.end[here], beams.chain[here]
        if case == SAME:
            end = np.int32(frame + 1)
        elif case == EXTEND:
            first, end = np.int32(first if first >= 0 else frame), np.int32(frame + 1)
        elif case != STAY:
            if search.words.length[whole]:
                node = counters[CHAINS]
                counters[CHAINS] = node + 1
                chains.parent[node], chains.first[node], chains.end[node] = chain, first, end
                chain = np.int32(node)
            first, end = np.int32(-1), np.int32(-1)
            if case == BREAK:
                first, end = np.int32(frame), np.int32(frame + 1)
        beams.first[to], beams.end[to], beams.chain[to] = first, end, chain
    counters[TURN] = 1 - counters[TURN]
    counters[BEAMS] = written


@kernel
def advance(
    labels: Labels, scorers: Scorers, search: SearchArrays, logs: Doubles, likely: Ints, offsets: Longs, longest: int,
    prune: float, distinct: bool, start: int,
) -> int:  # fmt: skip
    """Read frames from ``start`` on; return the frame for which an array is too small, or how many frames there are,
    or FULL for a damaged language model. longest: characters of the longest label.
    """
    counters = search.counters
    width = len(search.done)
    for frame in range(start, len(logs)):
        if (
            counters[WORDS] + width * longest > len(search.words.parent)
            or counters[TEXTS] + width > len(search.texts.parent)
            or counters[CHAINS] + width > len(search.chains.parent)
        ):
            return frame
        count = extend(labels, scorers, search, likely, offsets[frame], offsets[frame + 1], logs, frame)
        if count == FULL:
            return FULL
        kept = best(search.found, count, width, prune)
        keep(labels, scorers, search, kept, counters[FRAME], distinct)
        counters[FRAME] += 1
    return len(logs)


@kernel
def finish(scorers: Scorers, search: SearchArrays, prune: float, most: int, out: FinishedBeams, counts: Longs) -> int:
    """Score the ends of texts; write the beams, best first, at most ``most``; return how many, or FULL.

    counts: int64 (width, 2), out, how many words and characters each beam has. The search can go on after.
    """
    counters, beams, words, texts, found = search.counters, search.beams, search.words, search.texts, search.found
    base = counters[TURN] * len(search.done)
    counters[STAMP] += 1
    slots = 16
    while slots < 2 * counters[BEAMS]:
        slots *= 2
    count = np.int64(0)
    for beam in range(counters[BEAMS]):
        here = base + beam
        text, part = np.int64(beams.text[here]), np.int64(beams.part[here])
        key = fold(texts.hash[text], words.hash[part]) if words.length[part] else texts.hash[text]
        item, new = add(search, key, counters[STAMP], slots - 1, count, beams.logit[here])
        count += new
        found.source[item] = beam
    for item in range(count):
        here = base + np.int64(found.source[item])
        text, part = np.int64(beams.text[here]), np.int64(beams.part[here])
        total = 0.0
        for model in range(scorers.count):
            log, status = word_score(scorers, search, text, part, model, out.states, item)
            if status == FULL:
                return FULL
            if scorers.weights[model, BOUNDED]:
                at, size = scorers.sizes[model], scorers.sizes[scorers.count]
                last, matched = step(
                    scorers.models[model], out.states, item * size + at, scorers.ends[model], out.states,
                    len(search.done) * size + at,
                )  # fmt: skip
                if matched == FULL:
                    return FULL
                log += np.float64(last)
            total += scorers.weights[model, ALPHA] * log * LN10 + scorers.weights[model, BETA]
        raw = texts.raw[text] + (total / scorers.count if scorers.count else 0.0)
        hot = texts.hot[text] + is_hot(scorers, search, part)
        found.extra[item] = raw + scorers.hot_weight * hot
    kept = min(most, best(found, count, len(search.done), prune))
    for at in range(kept):
        item = np.int64(found.order[at])
        here = base + np.int64(found.source[item])
        out.text[at], out.part[at], out.chain[at] = beams.text[here], beams.part[here], beams.chain[here]
        out.first[at], out.end[at] = beams.first[here], beams.end[here]
        out.logit[at], out.score[at] = found.logit[item], found.score[item]
        out.row[at] = item
        counts[at, 0], counts[at, 1] = count_words(search, np.int64(out.text[at]), np.int64(out.part[at]))
    return kept
