"""Text out of a model: written once, for anything that has a next token.

``generate`` draws one token after another; ``beam_search`` looks for the likeliest whole text instead. Both know the
model only through ``start``, ``next_logprobs`` and ``advance``, so an n-gram table, a recurrent net and a translator
that has read its source all speak through them. ``pieces`` turns the ids into text as they come.

A. Holtzman, J. Buys, L. Du, M. Forbes and Y. Choi, "The curious case of neural text degeneration", ICLR 2020.
I. Sutskever, O. Vinyals and Q. V. Le, "Sequence to sequence learning with neural networks", NeurIPS 2014.
Shapes: V = tokens in the vocabulary, L = texts still being written.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

import numpy as np

from foreword.arrays import Bools, Doubles, Logs, Longs
from foreword.errors import ForewordError, SettingError
from foreword.protocols import Covering, NextToken, S, Shortlisting, Tokenizer
from foreword.tokens.vocab import Vocab

INCOMPLETE = "\ufffd"
"""What a byte-level tokenizer decodes half a character to."""


Normalisation = Literal["power", "gnmt"]

# Drawing


def generate(
    model: NextToken[S],
    prompt: Sequence[int] = (),
    *,
    max_tokens: int = 100,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    seed: int = 0,
) -> Iterator[int]:
    """Yield token ids until the model ends the document (``</s>`` itself is not yielded) or ``max_tokens`` are out.

    The prompt is read, not repeated. Each token is drawn from  p(w)^(1/temperature), normalised over the ``top_k``
    likeliest tokens: a low temperature is careful, zero always takes the likeliest (the lowest id among equals), a
    high one is wild. Of what those two leave, ``top_p`` keeps the nucleus: the fewest tokens that together have at
    least that probability (Holtzman et al., 2020). The same seed gives the same text.
    """
    _check_max_tokens(max_tokens)
    _check_sampling(temperature, top_k, top_p, seed)
    _check_prompt(prompt, model.vocab)
    random = np.random.Generator(np.random.PCG64(seed))
    pick = partial(choose, random=random, temperature=temperature, top_k=top_k, top_p=top_p)
    count = 1 if temperature == 0 else top_k
    if count is not None and isinstance(model, Shortlisting):
        return _draw_from_few(model, prompt, max_tokens, count, pick)
    # The checks stand outside the generator so that they speak at the call, not at the first token.
    return _draw(model, prompt, max_tokens, pick)


def _draw(model: NextToken[S], prompt: Sequence[int], max_tokens: int, pick: Callable[[Logs], int]) -> Iterator[int]:
    state = _read(model, prompt)
    for _ in range(max_tokens):
        id = pick(model.next_logprobs(state)[0])
        if id == model.vocab.end:
            return
        yield id
        state = model.advance(state, np.array([id]))


def _draw_from_few(
    model: Any, prompt: Sequence[int], max_tokens: int, count: int, pick: Callable[[Logs], int]
) -> Iterator[int]:
    """The same tokens as ``_draw`` finds: what is not among the likeliest would have been dropped."""
    state = _read(model, prompt)
    for _ in range(max_tokens):
        ids, logs = model.shortlist(state, count)
        id = int(ids[pick(logs)])
        if id == model.vocab.end:
            return
        yield id
        state = model.advance(state, np.array([id]))


def _read(model: NextToken[S], prompt: Sequence[int]) -> S:
    """What the model remembers after the prompt, the same one in every row."""
    state = model.start()
    for id in prompt:
        state = model.advance(state, np.full(len(state), id))
    return state


def choose(
    logprobs: Logs,
    random: np.random.Generator,
    *,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
) -> int:
    """One id from the log-probabilities of all of them, (V,)."""
    logs = np.asarray(logprobs, np.float64)
    best = int(logs.argmax())  # the first of the largest; NaN counts as larger than all
    peak = float(logs[best])
    _check_possible(peak)
    if temperature == 0 or top_k == 1:
        return best
    # Whatever is dropped has weight zero: left out of the arrays it changes no sum, and what follows is short work.
    ids = None
    if top_k is not None and top_k < len(logs):
        ids = np.flatnonzero(among_largest(logs, top_k))
        logs = logs[ids]
    weights = logs - peak
    with np.errstate(over="ignore"):  # a tiny temperature sends everything but the best to minus infinity, rightly
        if temperature != 1:
            weights /= temperature
        np.exp(weights, out=weights)
    if top_p is not None and top_p < 1:
        kept = np.flatnonzero(in_nucleus(weights, top_p))
        ids, weights = kept if ids is None else ids[kept], weights[kept]
    place = invert_cumulative(weights, random.random())
    return place if ids is None else int(ids[place])


def among_largest(values: Doubles, k: int) -> Bools:
    """Which are the k largest; of equals the lower ids."""
    floor = _below_the_largest(values, k)
    threshold = np.partition(values[values >= floor], -k)[-k]
    among: Bools = values > threshold
    equals = np.flatnonzero(values == threshold)
    among[equals[: k - np.count_nonzero(among)]] = True
    return among


def _below_the_largest(values: Doubles, k: int) -> float:
    """A number that the k largest reach and few others do, so that those few are all that must be sorted.

    Cut into columns the values have a largest in each, and k of these are k values. Enough columns, and two of the
    k largest seldom meet in one.
    """
    columns = 8 * k
    rows = len(values) // columns
    if rows < 4:  # not enough values to be worth the while
        return -math.inf
    tops = values[: rows * columns].reshape(rows, columns).max(axis=0)
    return float(np.partition(tops, -k)[-k])


def nucleus_size(weights: Doubles, share: float) -> int:
    """How many of the largest weights it takes to hold this share, less than one, of them all."""
    edges = np.sort(weights)[::-1].cumsum()
    return int(edges.searchsorted(share * edges[-1])) + 1


def in_nucleus(weights: Doubles, share: float) -> Bools:
    """``among_largest(weights, nucleus_size(weights, share))`` without sorting them all; weights are not negative.

    The first bits of a positive float, exponent and two more, rise with it. They divide the weights into bins: those
    above the bin where the share is reached are in the nucleus, those below are not, and only within it is sorted.
    """
    bins = weights.view(np.int64) >> 50
    held = np.bincount(bins, weights)[::-1].cumsum()
    wanted = share * held[-1]
    place = int(held.searchsorted(wanted))
    bin = len(held) - 1 - place
    within = np.sort(weights[bins == bin])[::-1]
    edges = within.cumsum() + (held[place - 1] if place else 0.0)
    size = min(int(edges.searchsorted(wanted)) + 1, len(within))  # the same sum in another order may be a bit less
    threshold = within[size - 1]
    among: Bools = weights > threshold
    equals = np.flatnonzero(weights == threshold)
    among[equals[: size - np.count_nonzero(within > threshold)]] = True
    return among


STRETCH = 256
"""Weights whose sum is taken at once: adding one at a time waits for every addition."""


def invert_cumulative(weights: Doubles, uniform: float) -> int:
    """The id under which a point of [0, 1) falls when the weights, (V,), are laid end to end.

    First the stretch that it falls into, then the place there.
    """
    whole = len(weights) // STRETCH * STRETCH
    sums = np.append(weights[:whole].reshape(-1, STRETCH).sum(axis=1), weights[whole:].sum())
    ends = sums.cumsum()
    point = uniform * ends[-1]
    stretch = int(ends.searchsorted(point, side="right"))  # right: a token of weight zero is never hit
    if stretch == len(ends):  # uniform · total was rounded up to the total
        return int(np.flatnonzero(weights)[-1])
    first = stretch * STRETCH
    within = weights[first : first + STRETCH]
    edges = within.cumsum() + (ends[stretch - 1] if stretch else 0.0)
    place = int(edges.searchsorted(point, side="right"))
    if place == len(edges):  # the same sum in another order was a bit less
        place = int(np.flatnonzero(within)[-1])
    return first + place


# Searching


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """A text that a search has found.

    ids: its tokens, without the prompt and without ``</s>``.
    logprob: natural log-probability of all of them given the prompt, and of ``</s>`` where the text is finished.
    score: logprob / length^length_penalty, or as ``beam_search`` was told, by which hypotheses are compared.
    finished: whether the model ended it; if not, it was cut off at ``max_tokens``.
    """

    ids: tuple[int, ...]
    logprob: float
    score: float
    finished: bool


def beam_search(
    model: NextToken[S],
    *,
    width: int = 5,
    max_tokens: int = 100,
    length_penalty: float = 1.0,
    normalisation: Normalisation = "power",
    coverage: float = 0.0,
    n_best: int = 1,
    prompt: Sequence[int] = (),
) -> list[list[Hypothesis]]:
    """The ``n_best`` likeliest texts found, best first: one list for each row of ``model.start()``.

    At every step each text that is still being written is continued with every token, and the ``width`` likeliest
    continuations are kept. One of them that ends in ``</s>`` is finished: it is put apart, and the next likeliest that
    goes on takes its place. Texts of different lengths are compared by

        score = log p(w_1 … w_l) / l^length_penalty,    l counts every token, ``</s>`` too

    0 compares probabilities, which favours short texts, for every token costs; 1 compares the mean per token. With
    ``normalisation="gnmt"`` it is divided by ((5 + l) / 6)^length_penalty instead. With ``coverage`` a finished text
    pays for what it has left out of its source, coverage · Σ_i log min(attention paid to i, 1), where the model looks
    at one. The search ends when ``width`` texts are finished, when nothing unfinished can overtake the ``n_best``, or
    after ``max_tokens`` steps. Finished texts come before those that were cut off, whatever their scores.

    Width 1 is greedy: the likeliest token at each step, the lowest id among equals. A beam so wide that nothing is
    ever dropped finds the best text there is.
    """
    _check_prompt(prompt, model.vocab)
    goal = Goal(width, n_best, max_tokens, length_penalty, model.vocab.end, normalisation, coverage)
    if coverage and not isinstance(model, Covering):
        raise SettingError(f"coverage={coverage}: a {type(model).__name__} looks at no source")
    state = _read(model, prompt)
    beams = [_Beam(goal) for _ in range(len(state))]
    for _ in range(max_tokens):
        covered = model.coverage(state) if coverage and isinstance(model, Covering) else np.zeros(len(state))
        rows = _extend(beams, model.next_logprobs(state), covered)
        if len(rows) == 0:
            break
        ids = np.concatenate([beam.ids[:, -1] for beam in beams if len(beam)])
        state = model.advance(state[rows], ids)
    return [beam.ranked()[:n_best] for beam in beams]


def _extend(beams: Sequence[_Beam], logprobs: Logs, covered: Logs) -> Longs:
    """Continue all texts by a token. The model reads them side by side: rows of the first beam, of the second, …

    Gives, for each text that goes on, the row of the one it continues.
    """
    for best in logprobs.max(axis=1, initial=-np.inf).tolist():
        _check_possible(best)
    first = 0
    rows = [np.empty(0, np.int64)]
    for beam in beams:
        last = first + len(beam)
        if last > first:
            rows.append(first + beam.extend(logprobs[first:last], covered[first:last]))
        first = last
    return np.concatenate(rows)


@dataclass(frozen=True, slots=True)
class Goal:
    """What is searched for; the settings of ``beam_search``, and the end."""

    width: int
    n_best: int
    max_tokens: int
    length_penalty: float
    end: int
    normalisation: Normalisation = "power"
    coverage: float = 0.0

    def __post_init__(self) -> None:
        _check_max_tokens(self.max_tokens)
        _check_search(self.width, self.length_penalty, self.n_best)
        if self.normalisation not in ("power", "gnmt"):
            raise SettingError(f"normalisation={self.normalisation!r} must be 'power' or 'gnmt'")
        if not (math.isfinite(self.coverage) and self.coverage >= 0):
            raise SettingError(f"coverage={self.coverage} must be zero or a positive number")

    def score(self, logprob: float, length: int) -> float:
        if self.normalisation == "gnmt":
            return logprob / gnmt_length_penalty(length, self.length_penalty)
        # Not a division: a power too large to hold is an error, one too small is zero. An empty text counts as one.
        share: float = float(max(length, 1)) ** -self.length_penalty
        return logprob * share

    def hypothesis(self, ids: list[int], logprob: float, *, finished: bool, covered: float = 0.0) -> Hypothesis:
        """covered: Σ_i log min(attention paid to i, 1)."""
        score = self.score(logprob, len(ids) + finished) + (self.coverage * covered if self.coverage else 0.0)
        return Hypothesis(tuple(ids), logprob, score, finished)

    def is_decided(self, scores: Sequence[float], likeliest_unfinished: float) -> bool:
        """scores: of the texts that are finished."""
        if len(scores) < self.n_best:
            return False
        if len(scores) >= self.width:
            return True
        # At best an unfinished text loses nothing more and becomes as long as can be.
        return self.score(likeliest_unfinished, self.max_tokens) < sorted(scores)[-self.n_best]


@dataclass(slots=True)
class _Beam:
    """The search for one text.

    ids: int64 (L, tokens so far), the texts still being written, likeliest first; logprobs: float64 (L,), theirs.
    """

    goal: Goal
    ids: Longs = field(default_factory=lambda: np.empty((1, 0), np.int64))
    logprobs: Doubles = field(default_factory=lambda: np.zeros(1))
    finished: list[Hypothesis] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.ids)

    def extend(self, logprobs: Logs, covered: Logs) -> Longs:
        """Continue by a token whose log-probabilities are (L, V); for each text that goes on, the row it continues."""
        width = self.goal.width
        totals = self.logprobs[:, None] + logprobs
        # Each text can end in one way only, so twice the width always holds enough that go on.
        rows, ids = likeliest(totals, logprobs, 2 * width)
        ends = ids == self.goal.end
        for row in rows[:width][ends[:width]].tolist():
            ids_so_far, total = self.ids[row].tolist(), float(totals[row, self.goal.end])
            self.finished.append(self.goal.hypothesis(ids_so_far, total, finished=True, covered=float(covered[row])))
        on = np.flatnonzero(~ends)[:width]
        rows, ids = rows[on], ids[on]
        if self.goal.is_decided([text.score for text in self.finished], float(totals[rows, ids].max(initial=-np.inf))):
            rows, ids = rows[:0], ids[:0]
        self.ids, self.logprobs = np.column_stack((self.ids[rows], ids)), totals[rows, ids]
        return rows

    def ranked(self) -> list[Hypothesis]:
        """Best first; of equals the one found first. What was cut off has not paid for its end, so it comes last."""
        unfinished = [
            self.goal.hypothesis(ids, logprob, finished=False)
            for ids, logprob in zip(self.ids.tolist(), self.logprobs.tolist(), strict=True)
        ]
        return sorted([*self.finished, *unfinished], key=lambda text: (text.finished, text.score), reverse=True)


def likeliest(totals: Doubles, steps: Logs, count: int) -> tuple[Longs, Longs]:
    """Rows and columns of the largest of ``totals``, (L, V), largest first, without those of minus infinity.

    Where rounding has made two sums equal the larger last step goes first, as greedy would have it; then the upper row
    and the lower id.
    """
    flat = totals.ravel()
    threshold = np.partition(flat, -count)[-count] if count < len(flat) else -np.inf
    places = np.flatnonzero((flat >= threshold) & (flat > -np.inf))
    order = np.lexsort((-steps.ravel()[places], -flat[places]))[:count]
    rows, ids = np.divmod(places[order], totals.shape[1])
    return rows, ids


def gnmt_length_penalty(length: int, alpha: float) -> float:
    """What to divide a text's log-probability by: ((5 + length) / 6)^alpha, after Y. Wu et al., "Google's neural
    machine translation system" (2016). 0 changes nothing; 0.2 is theirs.
    """
    if length < 0 or not (math.isfinite(alpha) and alpha >= 0):
        raise SettingError(f"length={length} and alpha={alpha} must not be negative")
    return float(((5 + length) / 6) ** alpha)


def gnmt_coverage_penalty(weights: Logs, beta: float) -> float:
    """What to add for the source words that were left out, at most 0: β Σ_i log min(Σ_j weights_ji, 1).

    weights: (target, source), the attention each target word paid. A source word that got one word's worth of it costs
    nothing; one that got none makes the text impossible. 0.2 is theirs.
    """
    if weights.ndim != 2 or not (math.isfinite(beta) and beta >= 0):
        raise SettingError(
            f"weights of shape {weights.shape} and beta={beta}: expected a matrix and no negative number"
        )
    covered = np.minimum(weights.sum(axis=0, dtype=np.float64), 1)
    with np.errstate(divide="ignore"):
        return float(beta * np.log(covered).sum()) if beta else 0.0


def gnmt_score(logprob: float, weights: Logs, *, alpha: float, beta: float) -> float:
    """What GNMT ranks by: log p(target | source) / length penalty + coverage penalty; weights: (target, source)."""
    return logprob / gnmt_length_penalty(len(weights), alpha) + gnmt_coverage_penalty(weights, beta)


# Spelling


def pieces(tokenizer: Tokenizer, ids: Iterable[int], *, after: Sequence[int] = ()) -> Iterator[str]:
    """Decode token by token, one piece each, so that the pieces joined are the text that follows ``after``.

    Only the last few tokens are decoded again each time: enough to know the space between two words. A token that
    ends within a character gives an empty piece, and the token that completes it the whole character; one that is
    never completed makes one more piece at the end.
    """
    window = list(after[-1:])
    told = tokenizer.decode(window)
    for id in ids:
        window.append(id)
        text = tokenizer.decode(window)
        if text.endswith(INCOMPLETE) and len(window) < 8:  # no character takes more than four bytes
            yield ""
            continue
        yield text[len(told) :]
        window = window[-1:]
        told = tokenizer.decode(window)
    if len(window) > 1:
        yield tokenizer.decode(window)[len(told) :]  # an unfinished character, as the tokenizer shows one


# Checks


def _check_max_tokens(max_tokens: int) -> None:
    if max_tokens < 0:
        raise SettingError(f"max_tokens={max_tokens} must not be negative")


def _check_sampling(temperature: float, top_k: int | None, top_p: float | None, seed: int) -> None:
    if not (math.isfinite(temperature) and temperature >= 0):
        raise SettingError(f"temperature={temperature} must be zero (greedy) or a positive number")
    if top_k is not None and top_k < 1:
        raise SettingError(f"top_k={top_k} must be at least 1, or None for every token")
    if top_p is not None and not 0 < top_p <= 1:
        raise SettingError(f"top_p={top_p} must be above 0 and at most 1, or None for every token")
    if seed < 0:
        raise SettingError(f"seed={seed} must not be negative")


def _check_search(width: int, length_penalty: float, n_best: int) -> None:
    if width < 1:
        raise SettingError(f"width={width} must be at least 1")
    if not (math.isfinite(length_penalty) and length_penalty >= 0):
        raise SettingError(f"length_penalty={length_penalty} must be zero (no normalisation) or a positive number")
    if not 1 <= n_best <= width:
        raise SettingError(f"n_best={n_best} must be at least 1 and at most the width, {width}")


def _check_prompt(prompt: Sequence[int], vocab: Vocab) -> None:
    for id in prompt:
        if not 0 <= id < len(vocab):
            raise SettingError(f"prompt holds id {id}, but the model's vocabulary ends at {len(vocab) - 1}")


def _check_possible(best: float) -> None:
    if not math.isfinite(best):
        raise ForewordError(f"the model gives no next token a probability (the best log-probability is {best})")
