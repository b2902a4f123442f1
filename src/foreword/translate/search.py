"""Searching for translations: what ``decode.beam_search`` does, for many sources at once and on any device.

``Conditioned`` is a translator that has read its sources: a ``NextToken``, which the plain search in ``decode.py``
takes as it takes any model. ``search`` gives the same texts. All texts of all sources are continued by one step of the
network; only the few likeliest continuations come to the host, which keeps the books.

Several translators may write together, as an ensemble of M models: p(d_t | d_<t, e) = 1/M Σ_m p_m(d_t | d_<t, e).
Models that differ in their seed or size make different mistakes, and the mean of their probabilities makes fewer
(I. Sutskever, O. Vinyals and Q. Le, "Sequence to sequence learning with neural networks", 2014, section 3.6).

Shapes: B sources, S ids of the longest, W texts being written for each, V target words, n rows of a state.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import linear, log_softmax

from foreword.arrays import Array, Doubles, Floats, Ids, Logs, Longs
from foreword.decode import Goal, Hypothesis
from foreword.errors import SettingError
from foreword.nn.network import Weights
from foreword.protocols import Meter, Rows
from foreword.tokens.vocab import Vocab
from foreword.translate.network import EncoderMemory, State, TranslationNetwork

MOSTLY_DONE = 0.75
"""Where no more of the sources than this are still searched for, the others are put away."""


@dataclass(frozen=True, slots=True)
class ConditionedState:
    """readout (n, E): what the softmax reads. parts: what the decoder remembers. source: (n,) which source
    each text translates. covered (n, S): how much each source word was looked at, the next word included.
    """

    readout: Floats
    parts: tuple[Array, ...]
    source: Longs
    covered: Floats

    def __len__(self) -> int:
        return len(self.readout)

    def __getitem__(self, rows: Rows) -> ConditionedState:
        parts = tuple(part[rows] for part in self.parts)
        return ConditionedState(self.readout[rows], parts, self.source[rows], self.covered[rows])


class Conditioned:
    """p(target | these sources), a word at a time; ``start()`` has one row for each source."""

    def __init__(self, network: TranslationNetwork, weights: Weights, memory: EncoderMemory, vocab: Vocab) -> None:
        self.vocab = vocab
        self._network, self._weights, self._memory = network, weights, memory

    def start(self, n: int = 1) -> ConditionedState:
        """Return the start state, repeated ``n`` times for each source."""
        source = np.repeat(np.arange(len(self._memory.mask)), n)
        rows = torch.from_numpy(source).to(self._memory.mask.device)
        parts = tuple(part[rows].cpu().numpy() for part in self._memory.state)
        covered = np.zeros((len(source), self._memory.mask.shape[1]), np.float32)
        nothing = np.zeros((len(source), self._network.words), np.float32)
        return self.advance(ConditionedState(nothing, parts, source, covered), np.full(len(source), self.vocab.end))

    def next_logprobs(self, state: ConditionedState) -> Logs:
        """Return float64 (n, V)."""
        with torch.inference_mode():
            readout = torch.from_numpy(state.readout).to(self._memory.mask.device)
            scores = linear(readout, self._network.table(self._weights), self._weights["bias"])
            logs: Logs = log_softmax(scores.double(), 1).cpu().numpy()
        return logs

    def advance(self, state: ConditionedState, ids: Ids) -> ConditionedState:
        """Return the state after one more id of each text."""
        device = self._memory.mask.device
        with torch.inference_mode():
            parts = tuple(torch.from_numpy(part).to(device) for part in state.parts)
            memory = self._memory.take(torch.from_numpy(state.source).to(device))
            words = torch.from_numpy(np.asarray(ids, np.int64)).to(device)
            read = self._network.step(self._weights, memory, words, parts)
            covered = state.covered if read.weights is None else state.covered + read.weights[:, 0].cpu().numpy()
            kept = tuple(part.cpu().numpy() for part in read.state)
        return ConditionedState(read.readout[0].cpu().numpy(), kept, state.source, covered)

    def coverage(self, state: ConditionedState) -> Logs:
        """Return (n,) Σ_i log min(covered_i, 1) over the words of each source, its end left out."""
        if self._network.attention == "none":
            raise SettingError("a coverage penalty needs attention, and this model has none")
        words = _words(self._memory.mask).cpu().numpy()[state.source]
        with np.errstate(divide="ignore"):
            logs = np.log(np.minimum(state.covered, 1, dtype=np.float64))
        found: Logs = np.where(words, logs, 0).sum(1)
        return found


def _words(mask: Tensor) -> Tensor:
    """Return a mask of the source's words, its end excluded."""
    return torch.cat((mask[:, 1:], torch.zeros_like(mask[:, :1])), 1)


class Decoder:
    """One network that writes all texts of a search: its memory of the sources, and its state after each text.

    memory: of the sources that are still searched for. state: (B · W, …). covered: (B, W, S), how much each source word
    was attended to; (B, W, 0) where nobody asks for it.
    """

    def __init__(self, network: TranslationNetwork, weights: Weights, memory: EncoderMemory) -> None:
        self.network, self.weights, self.memory = network, weights, memory
        self.state: State = memory.state
        self.covered = memory.values.new_zeros(0, 0, 0)

    def begin(self, width: int, *, covering: bool) -> None:
        """Repeat the start state for ``width`` texts of each source. covering: whether to record coverage."""
        sources, words = self.memory.mask.shape
        self.state = tuple(part.repeat_interleave(width, 0) for part in self.memory.state)
        self.covered = self.memory.values.new_zeros(sources, width, words if covering else 0)

    def next_logprobs(self, words: Tensor) -> Tensor:
        """Read one word of each text, (B · W,); return log-probabilities of the next, (B · W, V)."""
        read = self.network.step(self.weights, self.memory, words, self.state)
        self.state = read.state
        if read.weights is not None and self.covered.shape[2]:
            self.covered = self.covered + read.weights.view(self.covered.shape)
        scores = linear(read.readout[0], self.network.table(self.weights), self.weights["bias"])
        return log_softmax(scores.float(), 1)

    def coverage(self) -> Tensor:
        """Return (B, W) Σ_i log min(covered_i, 1) over the words of each source."""
        seen = self.covered.clamp(max=1).log().masked_fill(~_words(self.memory.mask)[:, None], 0)
        return seen.sum(2)

    def select(self, texts: Tensor, sources: Tensor | None) -> None:
        """Keep the states of some texts; ``sources``: which sources are left, None for all."""
        if sources is not None:
            self.memory = self.memory.take(sources)
        left, width, words = len(self.memory.mask), self.covered.shape[1], self.covered.shape[2]
        self.state = tuple(part.index_select(0, texts) for part in self.state)
        self.covered = self.covered.flatten(0, 1).index_select(0, texts).view(left, width, words)


def longest_first(documents: Sequence[Longs]) -> list[int]:
    """Return the indices of documents by falling length, so that those searched together are of similar length."""
    return sorted(range(len(documents)), key=lambda place: -len(documents[place]))


def search(
    read: Callable[[Sequence[Longs]], Sequence[Decoder]],
    documents: Sequence[Longs],
    goal: Goal,
    at_once: int,
    meter: Meter | None = None,
) -> list[list[Hypothesis]]:
    """Return the ``goal.n_best`` likeliest targets found for each source, best first, as ``beam_search`` does.

    read: encodes some of the sources, ``at_once`` at most, for one decoder or for several, which then write together:
    p is the mean of their probabilities.
    """
    order = longest_first(documents)
    found: list[list[Hypothesis]] = [[] for _ in documents]
    for begin in range(0, len(order), at_once):
        group = order[begin : begin + at_once]
        for place, texts in zip(group, _Search(read([documents[k] for k in group]), goal).run(), strict=True):
            found[place] = texts
        if meter is not None:
            meter("translating", begin + len(group), len(order))
    return found


class _Search:
    """Beam search for a batch of sources.

    live: (B,) which sources are still searched for. ids: (B, W, tokens so far) and logprobs (B, W), likeliest first,
    minus infinity where there are fewer texts.
    """

    def __init__(self, decoders: Sequence[Decoder], goal: Goal) -> None:
        if goal.coverage and any(each.network.attention == "none" for each in decoders):
            raise SettingError("a coverage penalty needs attention, and this model has none")
        mask = decoders[0].memory.mask
        self.decoders, self.goal, self.device = decoders, goal, mask.device
        sources, width = len(mask), goal.width
        self.live = np.arange(sources)
        self.finished: list[list[Hypothesis]] = [[] for _ in range(sources)]
        self.unfinished: list[list[Hypothesis]] = [[] for _ in range(sources)]
        self.ids = np.empty((sources, width, 0), np.int64)
        self.logprobs = np.full((sources, width), -np.inf)
        self.logprobs[:, 0] = 0
        self.done = np.zeros(sources, bool)
        self.words = torch.full((sources * width,), goal.end, device=self.device)
        for decoder in decoders:
            decoder.begin(width, covering=bool(goal.coverage))

    def run(self) -> list[list[Hypothesis]]:
        """Search until every source has its translations."""
        for _ in range(self.goal.max_tokens):
            if len(self.live) == 0:
                break
            self._extend()
        for place, source in enumerate(self.live.tolist()):
            if not self.done[place]:
                self._cut_off(place, source)
        best = self.goal.n_best
        return [self._ranked(source)[:best] for source in range(len(self.finished))]

    def _extend(self) -> None:
        goal, vocab = self.goal, len(self.decoders[0].weights["bias"])
        totals, places, costs = self._continuations()
        rows, ids = np.divmod(places, vocab)
        ends = (ids == goal.end) & (totals > -np.inf)
        for place, column in zip(*np.nonzero(ends[:, : goal.width] & ~self.done[:, None]), strict=True):
            row = rows[place, column]
            text, total = self.ids[place, row].tolist(), float(totals[place, column])
            found = goal.hypothesis(text, total, finished=True, covered=float(costs[place, row]))
            self.finished[self.live[place]].append(found)
        on = np.argsort(ends, axis=1, kind="stable")[:, : goal.width]
        rows, ids, self.logprobs = (np.take_along_axis(each, on, 1) for each in (rows, ids, totals))
        self.ids = np.concatenate((np.take_along_axis(self.ids, rows[:, :, None], 1), ids[:, :, None]), 2)
        for place in np.flatnonzero(~self.done).tolist():
            texts = self.finished[self.live[place]]
            self.done[place] = goal.is_decided([text.score for text in texts], float(self.logprobs[place, 0]))
        self._select_states(rows, ids)

    def _continuations(self) -> tuple[Doubles, Longs, Doubles]:
        """Return the 2 W likeliest continuations of each source: log-probabilities, indices into (W, V), and coverage
        penalties.
        """
        sources, width = self.logprobs.shape
        logs = self._next_logprobs() + torch.from_numpy(self.logprobs.reshape(-1, 1)).to(self.device, torch.float32)
        most = min(2 * width, width * logs.shape[1])
        top = logs.view(sources, -1).topk(most, 1)
        costs = np.zeros((sources, width))
        if self.goal.coverage:
            penalties = [decoder.coverage().double() for decoder in self.decoders]
            costs = torch.stack(penalties).mean(0).cpu().numpy()
        return top.values.double().cpu().numpy(), top.indices.cpu().numpy(), costs

    def _next_logprobs(self) -> Tensor:
        """Return (B · W, V): the log of the mean probability of each next word."""
        logs = [decoder.next_logprobs(self.words) for decoder in self.decoders]
        return logs[0] if len(logs) == 1 else torch.stack(logs).logsumexp(0) - math.log(len(logs))

    def _select_states(self, rows: Longs, ids: Longs) -> None:
        """Select the states of the hypotheses that the surviving ones continue."""
        kept, left = np.arange(len(self.live)), None
        if (~self.done).sum() <= MOSTLY_DONE * len(self.done):
            kept = np.flatnonzero(~self.done)
            self.live, self.done = self.live[kept], self.done[kept]
            self.ids, self.logprobs = self.ids[kept], self.logprobs[kept]
            left = torch.from_numpy(kept).to(self.device)
        texts = torch.from_numpy((kept[:, None] * self.goal.width + rows[kept]).reshape(-1)).to(self.device)
        for decoder in self.decoders:
            decoder.select(texts, left)
        self.words = torch.from_numpy(ids[kept].reshape(-1)).to(self.device)

    def _cut_off(self, place: int, source: int) -> None:
        for row in np.flatnonzero(self.logprobs[place] > -np.inf).tolist():
            text, total = self.ids[place, row].tolist(), float(self.logprobs[place, row])
            self.unfinished[source].append(self.goal.hypothesis(text, total, finished=False))

    def _ranked(self, source: int) -> list[Hypothesis]:
        both: list[Any] = [*self.finished[source], *self.unfinished[source]]
        return sorted(both, key=lambda text: (text.finished, text.score), reverse=True)
