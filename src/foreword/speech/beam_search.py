"""The beam search of the CTC decoder on flat arrays: what ``plain.py`` does, by ``kernels_decoding.py``.

The arrays of a search start small. When one is full, nodes that no beam needs are dropped, words that all beams share
are written down as text, and an array that is still half full is doubled: an hour of frames takes no more memory than a
minute, but for its text, which ``pop_settled`` hands out.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise
from typing import Any, TypeVar

import numpy as np

from foreword.arrays import Array, Doubles, Ints, Longs
from foreword.errors import CTCInputError
from foreword.ngram.kenlm_words import full_table
from foreword.ngram.kernels_kenlm import FULL, KenlmArrays
from foreword.speech import kernels_beams as trees
from foreword.speech import kernels_decoding as kernels
from foreword.speech.alphabet import BPE_TOKEN, Alphabet
from foreword.speech.kernels_decoding import Labels, Scorers
from foreword.speech.lm import NO_TRIE, CTCLanguageModel, HotwordScorer, KenlmWords, codes_of
from foreword.speech.plain import BeamSettings, Frames, OutputBeam

FIRST_NODES = 16
"""Nodes of each tree for each beam at first."""

Tree = TypeVar("Tree", trees.PartNodes, trees.TextNodes, trees.FrameNodes)

_NO_MODEL = KenlmArrays(np.frombuffer(bytes(16), np.uint8), 0, 2, 0, 0, 0, 0, np.zeros((2, 1), np.int64))


class LabelTable:
    """The labels of an alphabet, as kernels take them."""

    def __init__(self, alphabet: Alphabet) -> None:
        names = alphabet.labels
        lengths = np.cumsum([0, *map(len, names)])
        whole = np.stack((lengths[:-1], lengths[1:]), axis=1).astype(np.int32)
        leads = np.array([name.startswith(BPE_TOKEN) for name in names], np.uint8)
        trails = np.array([name.endswith(BPE_TOKEN) for name in names], np.uint8)
        clean = whole.copy()
        clean[:, 0] += leads
        clean[:, 1] = np.maximum(clean[:, 0], clean[:, 1] - trails)
        kind = [kernels.BLANK if not name else kernels.SPACE if name == " " else kernels.LETTERS for name in names]
        first: dict[str, int] = {}
        same = np.array([first.setdefault(name, index) for index, name in enumerate(names)], np.int32)
        self.labels = Labels(
            np.array(kind, np.uint8), same, codes_of("".join(names)), whole, clean, leads, trails, alphabet.is_bpe
        )
        self.longest = max(map(len, names))
        self.ordered = alphabet.is_bpe and bool(trails.any())


class BeamSearch:
    """One search. models: language models over KenLM binaries, whose scores are averaged; start: a state of each."""

    def __init__(
        self,
        table: LabelTable,
        models: Sequence[CTCLanguageModel],
        hotwords: HotwordScorer,
        settings: BeamSettings,
        start: Sequence[Any] | None = None,
    ) -> None:
        self.table, self.settings = table, settings
        self._files = [model.scorer for model in models if isinstance(model.scorer, KenlmWords)]
        self.scorers = _scorers(models, self._files, hotwords)
        width = settings.beam_width
        nodes = FIRST_NODES * width
        size = int(self.scorers.sizes[-1])
        self._width, self._size = width, size
        letters, columns = nodes * table.longest, max(1, len(models))
        self.beams = trees.Beams._make(_zeros(2 * width, [*6 * [np.int32], np.float64]))
        self.words = trees.PartNodes._make(
            _zeros(letters, 4 * [np.int32])
            + _zeros((letters, columns), 2 * [np.int32])
            + _zeros(letters, [np.float64, np.uint64])
        )
        kinds = [np.int32, np.int32, np.int32, np.float64, np.uint64, np.uint64]
        self.texts = trees.TextNodes._make([*_zeros(nodes, kinds), np.zeros(nodes * size, np.int32), _table(nodes)])
        self.chains = trees.FrameNodes._make(_zeros(nodes, 3 * [np.int32]))
        self.counters = np.zeros(trees.COUNTERS, np.int64)
        self._found: trees.Candidates | None = None
        self._arrays: trees.SearchArrays | None = None
        self._said, self._spans = "", np.empty((0, 2), np.int32)
        self._begin(models, start)

    def _begin(self, models: Sequence[CTCLanguageModel], start: Sequence[Any] | None) -> None:
        if start is not None and len(start) != len(models):
            raise CTCInputError(f"lm_start_state holds {len(start)} states: expected one for each language model")
        for index, (file, model) in enumerate(zip(self._files, models, strict=True)):
            row = file.starts[bool(model.score_boundary)] if start is None else file.row(start[index])
            at = int(self.scorers.sizes[index])
            self.texts.states[at : at + row.shape[1]] = row[0]
        self.texts.hash[0] = self.texts.recent[0] = self.words.hash[0] = kernels.ROOT
        self.words.ids[0] = FULL  # not looked up yet
        self.beams.last[0] = self.beams.first[0] = self.beams.end[0] = -1
        for counter in (trees.BEAMS, trees.WORDS, trees.TEXTS, trees.CHAINS):
            self.counters[counter] = 1

    def _search(self, labels: int = 1) -> trees.SearchArrays:
        """Return all arrays, with room for candidates of frames with that many likely labels."""
        room = self._width * labels
        if self._found is None or len(self._found.source) < room:
            slots = 16 << max(0, (2 * room - 1).bit_length() - 4)
            self._found = trees.Candidates(
                np.empty(room, np.int32), np.empty(room, np.int32), np.empty(room, np.uint8), np.empty(room, np.int32),
                np.empty(room, np.int32), np.empty(room), np.empty(2 * room), np.empty(room), np.empty(room, np.int32),
                np.empty(room, np.int32), np.empty(slots, np.uint64), np.empty(slots, np.int32),
                np.zeros(slots, np.int32),
            )  # fmt: skip
            self.counters[trees.STAMP] = 0
            self._arrays = None
        if self._arrays is None:
            nodes = max(len(self.words.parent), len(self.texts.parent), len(self.chains.parent))
            self._arrays = trees.SearchArrays(
                self.counters, self.beams, self.words, self.texts, self.chains, self._found,
                np.empty(self._width, np.int32), np.empty(4 * kernels.LONGEST + 8, np.uint8),
                np.empty(nodes, np.int32),
            )  # fmt: skip
        return self._arrays

    def read(self, logs: Doubles) -> None:
        """Read frames of log-probabilities, (T, V)."""
        likely, offsets = np.empty(logs.size, np.int32), np.empty(len(logs) + 1, np.int64)
        most = kernels.likely_labels(logs, self.settings.token_min_logp, likely, offsets)
        if self.table.ordered:
            _order_as_sets(likely, offsets)
        search = self._search(most)
        frame = 0
        while frame < len(logs):
            frame = kernels.advance(
                self.table.labels, self.scorers, search, logs, likely, offsets, self.table.longest,
                float(self.settings.beam_prune_logp), bool(self.settings.prune_history), frame,
            )  # fmt: skip
            if frame == FULL:
                raise full_table(self._files[0].model.name)
            if frame < len(logs):
                self._compact(search)
                self._grow()
                search = self._search(most)

    def _compact(self, search: trees.SearchArrays) -> None:
        """Write down the words that all beams share, and drop the nodes that no beam needs."""
        out = trees.FinishedBeams._make([*_zeros(1, [*6 * [np.int32], np.float64, np.float64]), np.empty(0, np.int32)])
        counts = np.empty((1, 2), np.int64)
        if trees.settle(search, self.scorers.history, out, counts):
            words, spans = next(self._spelled_words(out, counts))
            self._said += " ".join([*words, ""])
            self._spans = np.concatenate((self._spans, np.array(spans, np.int32)))
        trees.compact(search, int(out.text[0]), int(out.chain[0]))

    def pop_settled(self) -> list[tuple[str, Frames]]:
        """Return the words that all beams share and forget them, as ``PlainSearch.pop_settled`` does."""
        self._compact(self._search())
        found = list(zip(self._said.split(), map(_span, self._spans.tolist()), strict=False))
        self._said, self._spans = "", self._spans[:0]
        return found

    def _grow(self) -> None:
        """Double the trees that are still half full."""
        counts = self.counters.tolist()
        self._arrays = None
        if 2 * counts[trees.WORDS] > len(self.words.parent):
            self.words = _doubled(self.words)
        if 2 * counts[trees.CHAINS] > len(self.chains.parent):
            self.chains = _doubled(self.chains)
        if 2 * counts[trees.TEXTS] > len(self.texts.parent):
            self.texts = _doubled(self.texts)
            trees.index_texts(self._search())

    def finish(self, most: int | None = None) -> list[OutputBeam]:
        """Return the beams with the ends of their texts scored, best first; the search can go on after."""
        search, width = self._search(), self._width
        states = np.empty((width + 1) * self._size, np.int32)
        out = trees.FinishedBeams._make([*_zeros(width, [*6 * [np.int32], np.float64, np.float64]), states])
        counts = np.empty((width, 2), np.int64)
        kept = kernels.finish(
            self.scorers, search, float(self.settings.beam_prune_logp), width if most is None else most, out, counts
        )
        if kept == FULL:
            raise full_table(self._files[0].model.name)
        rows, logits, scores = (column[:kept].tolist() for column in (out.row, out.logit, out.score))
        size = self._size
        found, before = [], list(map(_span, self._spans.tolist()))
        for at, (words, spans) in enumerate(self._spelled_words(out, counts[:kept])):
            text = " ".join((self._said + " ".join(words)).split())
            frames = list(zip(text.split(), before + spans, strict=False))
            state = self._state(states[rows[at] * size : (rows[at] + 1) * size])
            found.append(OutputBeam(text, state, frames, logits[at], scores[at]))
        return found

    def _spelled_words(self, out: trees.FinishedBeams, counts: Longs) -> Iterator[tuple[list[str], list[Frames]]]:
        """Yield the words of each beam and their frames."""
        sizes = counts.tolist()
        rows, size = sum(count for count, _ in sizes), sum(size for _, size in sizes)
        lengths, chars, frames = np.empty(rows, np.int32), np.empty(size, np.int32), np.empty((rows, 2), np.int32)
        trees.spell(self.words, self.texts, self.chains, out, counts, lengths, chars, frames)
        whole, ends = chars.tobytes().decode("utf-32-le", "surrogatepass"), list(accumulate(lengths.tolist()))
        words = [whole[first:last] for first, last in zip([0, *ends], ends, strict=False)]
        spans = list(map(_span, frames.tolist()))
        first = 0
        for count, _ in sizes:
            yield words[first : first + count], spans[first : first + count]
            first += count

    def _state(self, row: Ints) -> Any:
        """Return the states of the models, one as it is, several as a list."""
        if not self._files:
            return None
        sizes = self.scorers.sizes.tolist()
        states = [file.state(row[first:last]) for file, (first, last) in zip(self._files, pairwise(sizes), strict=True)]
        return states[0] if len(states) == 1 else states


def _scorers(models: Sequence[CTCLanguageModel], files: Sequence[KenlmWords], hotwords: HotwordScorer) -> Scorers:
    # A kernel is compiled for each number of models: for one, four, sixteen.
    spare = 4 ** math.ceil(math.log(max(1, len(models)), 4)) - len(models)
    arrays = tuple(file.arrays for file in files)
    weights = [
        [model.alpha, model.beta, model.unk_score_offset, model.score_boundary, bool(model._unigram_set)]
        for model in models
    ]
    if not all(map(math.isfinite, (hotwords.weight, *(weight for row in weights for weight in row)))):
        raise CTCInputError("a weight of a language model or of hotwords is not finite")
    return Scorers(
        arrays + spare * (_NO_MODEL,),
        tuple(model.trie for model in models) + spare * (NO_TRIE,),
        len(models),
        np.array(weights, np.float64).reshape(-1, 5),
        np.array([0, *accumulate(2 * file.order - 1 for file in files)], np.int64),
        np.array([file.final for file in files], np.int64),
        max(1, max((file.order for file in files), default=1) - 1),
        hotwords.trie,
        hotwords.weight,
    )


def _span(row: list[int]) -> Frames:
    return row[0], row[1]


def _zeros(shape: int | tuple[int, int], types: Sequence[Any]) -> list[Any]:
    return [np.zeros(shape, kind) for kind in types]


def _table(nodes: int) -> Longs:
    """Return an empty table of ``native.hashing`` for ``nodes`` keys."""
    return np.zeros(4 << (nodes - 1).bit_length(), np.int64)


def _doubled(tree: Tree) -> Tree:
    """Return a tree with room for twice as many nodes; a table of texts comes back empty."""
    nodes = len(tree[0])
    parts: list[Array] = []
    for array in tree:
        if array.dtype == np.int64:
            parts.append(_table(2 * nodes))
        else:
            parts.append(np.concatenate((array, np.zeros_like(array))))
    return type(tree)._make(parts)


def _order_as_sets(likely: Ints, offsets: Longs) -> None:
    """Put the labels of each frame in the order in which Python iterates over a set of them.

    Where a piece makes the next one begin a word, whatever beam it is in, the order of labels matters, and this is the
    one that pyctcdecode has.
    """
    for first, last in pairwise(offsets.tolist()):
        labels = likely[first:last].tolist()
        likely[first:last] = list(set(labels) | {labels[0]})  # the union copies, which may change the order
