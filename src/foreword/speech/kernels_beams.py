"""Arrays of a CTC beam search, and the kernels that read texts out of them and drop what no beam needs.

A beam is a prefix: the words that are complete (a text), the word being spelled (a part), the label of the last frame,
and the log-probability of all alignments in the beam that read so. Texts, parts and lists of word frames are trees of
nodes, each node one step longer than its parent, so a beam is a few numbers and nothing is copied. Nodes are numbered
in the order in which they are made, parents first. When an array is full, ``compact`` drops nodes that no beam needs,
in place, and what all beams have in common becomes the root.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from foreword.arrays import Bytes, Doubles, Ints, Longs, ULongs
from foreword.native.hashing import find_slot
from foreword.native.jit import inlined, kernel

BEAMS, TURN, WORDS, TEXTS, CHAINS, FORCED, STAMP, FRAME = range(8)
"""Counters: how many beams there are and which half of their arrays they are in, nodes of each tree, whether the next
piece begins a word whatever it is, the stamp of the merge table, and the frame that comes next."""
COUNTERS = 8


class Beams(NamedTuple):
    """Beams, the present ones and the next in turn, (2 * width,) each; last: -1 before the first frame."""

    text: Ints
    part: Ints
    last: Ints
    chain: Ints
    first: Ints
    end: Ints
    logit: Doubles


class PartNodes(NamedTuple):
    """Parts of words. parent, char, length, hot, known: int32; ids, places: int32 (nodes, models): the word in each
    model, -2 before it is looked up, and its node in each trie, -1 outside. score: what it adds while unfinished.
    """

    parent: Ints
    char: Ints
    length: Ints
    hot: Ints
    places: Ints
    ids: Ints
    score: Doubles
    hash: ULongs


class TextNodes(NamedTuple):
    """Texts. word: the node of the last one; hot: how many are hotwords; raw: what the models add, hotwords left out.

    recent: hash of the last words; states: int32 (nodes * size,); slots: hash -> node, a table of ``native.hashing``.
    """

    parent: Ints
    word: Ints
    hot: Ints
    raw: Doubles
    hash: ULongs
    recent: ULongs
    states: Ints
    slots: Longs


class FrameNodes(NamedTuple):
    """Lists of word frames."""

    parent: Ints
    first: Ints
    end: Ints


class Candidates(NamedTuple):
    """Candidates of a frame, and the table that merges them: hash, candidate, and in which frame it was written."""

    source: Ints
    label: Ints
    case: Bytes
    text: Ints
    part: Ints
    logit: Doubles
    extra: Doubles
    score: Doubles
    order: Ints
    spare: Ints
    keys: ULongs
    items: Ints
    stamps: Ints


class SearchArrays(NamedTuple):
    """All arrays of one search. done: int32 (width,), scratch; spelled: uint8, scratch; mark: int32, scratch."""

    counters: Longs
    beams: Beams
    words: PartNodes
    texts: TextNodes
    chains: FrameNodes
    found: Candidates
    done: Ints
    spelled: Bytes
    mark: Ints


class FinishedBeams(NamedTuple):
    """Beams with their ends, (width,): text and part as nodes, chain, frames of the part, row of the state, scores.

    states: int32 ((width + 1) * size,).
    """

    text: Ints
    part: Ints
    chain: Ints
    first: Ints
    end: Ints
    row: Ints
    logit: Doubles
    score: Doubles
    states: Ints


# Reading results


@inlined
def count_words(search: SearchArrays, text: int, part: int) -> tuple[int, int]:
    """Return how many words a beam has, and how many characters they have together."""
    words, texts = search.words, search.texts
    size = np.int64(words.length[part])
    count = np.int64(size > 0)
    while text:
        count += 1
        size += words.length[texts.word[text]]
        text = np.int64(texts.parent[text])
    return count, size


@kernel
def spell(
    words: PartNodes,
    texts: TextNodes,
    chains: FrameNodes,
    out: FinishedBeams,
    counts: Longs,
    lengths: Ints,
    chars: Ints,
    frames: Ints,
) -> None:
    """Write the words of beams: the length of each, its characters, and its first frame and the one after its last.

    counts: int64 (beams, 2), words and characters of each; frames: int32 (words, 2).
    """
    row = place = np.int64(0)
    for at in range(len(counts)):
        text, part, chain = np.int64(out.text[at]), np.int64(out.part[at]), np.int64(out.chain[at])
        row += counts[at, 0]
        place += counts[at, 1]
        to, write = row, place
        last = words.length[part] > 0
        for _ in range(counts[at, 0]):
            to -= 1
            node = part if last else np.int64(texts.word[text])
            lengths[to] = words.length[node]
            if last:
                frames[to, 0], frames[to, 1] = out.first[at], out.end[at]
            else:
                frames[to, 0], frames[to, 1] = chains.first[chain], chains.end[chain]
                chain = np.int64(chains.parent[chain])
                text = np.int64(texts.parent[text])
            last = False
            for _ in range(words.length[node]):
                write -= 1
                chars[write] = words.char[node]
                node = np.int64(words.parent[node])


# Memory


@inlined
def shared_node(parents: Ints, nodes: Ints) -> int:
    """Return the deepest node that is each of these or above it."""
    top = np.int64(nodes[0])
    for at in range(1, len(nodes)):
        other = np.int64(nodes[at])
        while top != other:
            if top > other:
                top = np.int64(parents[top])
            else:
                other = np.int64(parents[other])
    return top


@inlined
def depth(parents: Ints, node: int) -> int:
    """Return how many nodes are above a node."""
    count = 0
    while node:
        node = np.int64(parents[node])
        count += 1
    return count


@kernel
def settle(search: SearchArrays, history: int, out: FinishedBeams, counts: Longs) -> int:
    """Write the words that all beams share to the first row of ``out``, with an empty part; return how many words.

    The last ``history`` of them stay, as language models and ``prune_history`` look back at them. counts: as in
    ``spell``.
    """
    texts, chains = search.texts, search.chains
    first = search.counters[TURN] * len(search.done)
    last = first + search.counters[BEAMS]
    text = shared_node(texts.parent, search.beams.text[first:last])
    chain = shared_node(chains.parent, search.beams.chain[first:last])
    for _ in range(history):
        text = np.int64(texts.parent[text])
    words, spans = depth(texts.parent, text), depth(chains.parent, chain)
    for _ in range(spans, words):
        text = np.int64(texts.parent[text])
    for _ in range(words, spans):
        chain = np.int64(chains.parent[chain])
    out.text[0], out.part[0], out.chain[0] = text, 0, chain
    counts[0, 0], counts[0, 1] = count_words(search, text, np.int64(0))
    return counts[0, 0]


@inlined
def renumber(mark: Ints, parents: Ints, count: int, root: int) -> int:
    """Give the marked nodes new numbers, which replace the marks; unmarked ones have -1. ``root`` will be 0."""
    for node in range(count - 1, root, -1):
        if mark[node]:
            mark[parents[node]] = 1
    mark[root] = 1
    used = 0
    for node in range(count):
        if mark[node]:
            mark[node] = used
            used += 1
        else:
            mark[node] = -1
    return used


@kernel
def compact(search: SearchArrays, text: int, chain: int) -> None:
    """Drop all nodes that no beam needs, and those above ``text`` and ``chain``, which all beams share."""
    counters, beams, words, texts, chains, mark = (
        search.counters, search.beams, search.words, search.texts, search.chains, search.mark
    )  # fmt: skip
    first = counters[TURN] * len(search.done)
    last = first + counters[BEAMS]
    mark[: counters[CHAINS]] = 0
    for beam in range(first, last):
        mark[beams.chain[beam]] = 1
    used = renumber(mark, chains.parent, counters[CHAINS], chain)
    for node in range(counters[CHAINS]):
        to = mark[node]
        if to >= 0:
            chains.parent[to] = max(0, mark[chains.parent[node]])
            chains.first[to], chains.end[to] = chains.first[node], chains.end[node]
    for beam in range(first, last):
        beams.chain[beam] = mark[beams.chain[beam]]
    counters[CHAINS] = used

    mark[: counters[TEXTS]] = 0
    for beam in range(first, last):
        mark[beams.text[beam]] = 1
    used = renumber(mark, texts.parent, counters[TEXTS], text)
    size = len(texts.states) // len(texts.parent)
    for node in range(counters[TEXTS]):
        to = mark[node]
        if to >= 0:
            texts.parent[to], texts.word[to] = max(0, mark[texts.parent[node]]), texts.word[node]
            texts.hot[to], texts.raw[to] = texts.hot[node], texts.raw[node]
            texts.hash[to], texts.recent[to] = texts.hash[node], texts.recent[node]
            for item in range(size):
                texts.states[to * size + item] = texts.states[node * size + item]
    for beam in range(first, last):
        beams.text[beam] = mark[beams.text[beam]]
    counters[TEXTS] = used

    mark[: counters[WORDS]] = 0
    for beam in range(first, last):
        mark[beams.part[beam]] = 1
    for node in range(1, used):
        mark[texts.word[node]] = 1
    used = renumber(mark, words.parent, counters[WORDS], 0)
    for node in range(counters[WORDS]):
        to = mark[node]
        if to >= 0:
            words.parent[to], words.char[to] = mark[words.parent[node]], words.char[node]
            words.length[to], words.hot[to] = words.length[node], words.hot[node]
            words.score[to], words.hash[to] = words.score[node], words.hash[node]
            for model in range(words.ids.shape[1]):
                words.ids[to, model], words.places[to, model] = words.ids[node, model], words.places[node, model]
    for beam in range(first, last):
        beams.part[beam] = mark[beams.part[beam]]
    for node in range(1, counters[TEXTS]):
        texts.word[node] = mark[texts.word[node]]
    counters[WORDS] = used
    index_texts(search)


@kernel
def index_texts(search: SearchArrays) -> None:
    """Write the table of texts."""
    texts = search.texts
    texts.slots[:] = 0
    for node in range(1, search.counters[TEXTS]):
        key = np.int64(texts.hash[node] | np.uint64(1))
        slot = find_slot(texts.slots, key)
        texts.slots[slot], texts.slots[slot + 1] = key, node
