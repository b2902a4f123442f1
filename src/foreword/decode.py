"""Decoding: sampling and beam search for anything that has a next token.

``generate`` samples one token after another; ``beam_search`` looks for the likeliest whole text instead. Both use only
``start``, ``next_logprobs`` and ``advance``, so they work for an n-gram table, a recurrent network, and a translator
that has read its source. ``pieces`` turns the ids into text as they come.

A. Holtzman, J. Buys, L. Du, M. Forbes and Y. Choi, "The curious case of neural text degeneration", ICLR 2020.
I. Sutskever, O. Vinyals and Q. V. Le, "Sequence to sequence learning with neural networks", NeurIPS 2014.
Shapes: V = tokens in the vocabulary, L = texts still being written.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, get_args

import numpy as np

from foreword.arrays import Bools, Doubles, Logs, Longs
from foreword.checks import check_choice, check_number, check_numbers
from foreword.errors import ForewordError, InputError, SettingError
from foreword.protocols import Covering, Drafter, NextToken, ReadsAhead, S, Shortlisting, Tokenizer
from foreword.tokens.vocab import Vocab

INCOMPLETE = "\ufffd"
"""What a byte-level tokenizer decodes half a character to."""


Normalisation = Literal["power", "gnmt"]

# Sampling


def generate(
    model: NextToken[S],
    prompt: Sequence[int] = (),
    *,
    max_tokens: int = 100,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    seed: int = 0,
    drafter: Drafter | None = None,
    acceptance: Acceptance | None = None,
) -> Iterator[int]:
    """Yield token ids until the model ends the document (``</s>`` itself is not yielded) or after ``max_tokens``.

    The prompt is read, not repeated. Each token is sampled from p(w)^(1/temperature), normalised over the ``top_k``
    likeliest tokens: a low temperature favours likely tokens, and zero always takes the likeliest (the lowest id among
    equals). Of these, ``top_p`` keeps the nucleus: the fewest tokens that together have at
    least that probability (Holtzman et al., 2020). The same seed gives the same text.

    A ``drafter`` guesses the next tokens, which a model that reads ahead checks in one step: each is sampled as ever,
    and the first that differs from the guess ends the step. The text is the same, up to rounding. acceptance: filled.
    """
    check_number("max_tokens", max_tokens, whole=True)
    _check_sampling(temperature, top_k, top_p, seed)
    _check_prompt(prompt, model.vocab)
    random = np.random.Generator(np.random.PCG64(seed))
    pick = partial(choose, random=random, temperature=temperature, top_k=top_k, top_p=top_p)
    count = 1 if temperature == 0 else top_k
    if drafter is not None and isinstance(model, ReadsAhead):
        return _sample_drafts(model, prompt, max_tokens, drafter, acceptance or Acceptance(), pick)
    if count is not None and isinstance(model, Shortlisting):
        return _sample_shortlist(model, prompt, max_tokens, count, pick)
    # The checks are outside the generator so that they are raised by the call, not by the first token.
    return _sample(model, prompt, max_tokens, pick)


def _sample(model: NextToken[S], prompt: Sequence[int], max_tokens: int, pick: Callable[[Logs], int]) -> Iterator[int]:
    """Sample token by token from all log-probabilities."""
    state = _read(model, prompt)
    for _ in range(max_tokens):
        id = pick(model.next_logprobs(state)[0])
        if id == model.vocab.end:
            return
        yield id
        state = model.advance(state, np.array([id]))


def _sample_shortlist(
    model: Any, prompt: Sequence[int], max_tokens: int, count: int, pick: Callable[[Logs], int]
) -> Iterator[int]:
    """Sample from the likeliest tokens only; the result is that of ``_sample``, which would drop the others."""
    state = _read(model, prompt)
    for _ in range(max_tokens):
        ids, logs = model.shortlist(state, count)
        id = int(ids[pick(logs)])
        if id == model.vocab.end:
            return
        yield id
        state = model.advance(state, np.array([id]))


DRAFTED = 8
"""Tokens of a draft. Longer ones are seldom right to their end."""


@dataclass(slots=True)
class Acceptance:
    """How far drafts were right. steps: calls of the model; tokens: what was sampled in them, ``</s>`` included."""

    steps: int = 0
    tokens: int = 0

    @property
    def length(self) -> float:
        """The number of tokens per step of the model; 1 without drafts."""
        return self.tokens / max(self.steps, 1)


def _sample_drafts(
    model: Any, prompt: Sequence[int], max_tokens: int, drafter: Drafter, acceptance: Acceptance,
    pick: Callable[[Logs], int],
) -> Iterator[int]:  # fmt: skip
    """Sample from what the model says after each token of a draft, as long as the draft is what was sampled."""
    # Tokens are read again until a draft was right to its end, since only then is the state after them known.
    text, state, unread = list(prompt), _read(model, prompt[:-1]), list(prompt[-1:])
    logs = None if unread else model.next_logprobs(state)
    written = 0
    while written < max_tokens:
        draft: list[int] = []
        if unread:
            drafts = len(unread) <= 2 * DRAFTED
            draft = list(drafter.propose(text, min(DRAFTED, max_tokens - written - 1))) if drafts else []
            read, after = model.read_ahead(state, np.array(unread + draft))
            logs = read[len(unread) - 1 :]
        assert logs is not None
        acceptance.steps += 1
        sampled: list[int] = []
        for row, guess in zip(logs, [*draft, None], strict=True):
            id = pick(row)
            acceptance.tokens += 1
            written += 1
            if id == model.vocab.end:
                return
            yield id
            text.append(id)
            sampled.append(id)
            if id != guess or written == max_tokens:
                break
        if unread and len(sampled) == len(draft) + 1:
            state, unread = after, sampled[-1:]
        else:
            unread += sampled


def _read(model: NextToken[S], prompt: Sequence[int]) -> S:
    """Return the state after the prompt, which is the same in every row."""
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
    """Sample one id from the log-probabilities of all tokens, (V,)."""
    logs = np.asarray(logprobs, np.float64)
    best = int(logs.argmax())  # the first of the largest; NaN counts as larger than all
    peak = float(logs[best])
    _check_possible(peak)
    if temperature == 0 or top_k == 1:
        return best
    # What is dropped has weight zero: without it the sums are the same and the arrays are short.
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
        nucleus = np.flatnonzero(in_nucleus(weights, top_p))
        ids, weights = nucleus if ids is None else ids[nucleus], weights[nucleus]
    index = invert_cumulative(weights, random.random())
    return index if ids is None else int(ids[index])


def among_largest(values: Doubles, k: int) -> Bools:
    """Return a mask of the k largest values; of equal values, the lower ids."""
    floor = _below_the_largest(values, k)
    threshold = np.partition(values[values >= floor], -k)[-k]
    among: Bools = values > threshold
    equals = np.flatnonzero(values == threshold)
    among[equals[: k - np.count_nonzero(among)]] = True
    return among


def _below_the_largest(values: Doubles, k: int) -> float:
    """Return a lower bound of the k largest values that few others reach, so that few values must be sorted.

    Cut into columns the values have a largest in each, and k of these are k values. Enough columns, and two of the
    k largest seldom meet in one.
    """
    columns = 8 * k
    rows = len(values) // columns
    if rows < 4:  # too few values to be worth it
        return -math.inf
    tops = values[: rows * columns].reshape(rows, columns).max(axis=0)
    return float(np.partition(tops, -k)[-k])


def nucleus_size(weights: Doubles, share: float) -> int:
    """Return how many of the largest weights make up this share, less than one, of their sum."""
    edges = np.sort(weights)[::-1].cumsum()
    return int(edges.searchsorted(share * edges[-1])) + 1


def in_nucleus(weights: Doubles, share: float) -> Bools:
    """Return ``among_largest(weights, nucleus_size(weights, share))`` without sorting all weights (none is negative).

    The first bits of a positive float, exponent and two more, rise with it. They divide the weights into bins: those
    above the bin where the share is reached are in the nucleus, those below are not, and only within it is sorted.
    """
    bins = weights.view(np.int64) >> 50
    sums = np.bincount(bins, weights)[::-1].cumsum()
    wanted = share * sums[-1]
    rank = int(sums.searchsorted(wanted))
    bin = len(sums) - 1 - rank
    within = np.sort(weights[bins == bin])[::-1]
    edges = within.cumsum() + (sums[rank - 1] if rank else 0.0)
    size = min(int(edges.searchsorted(wanted)) + 1, len(within))  # the same sum in another order may be a bit less
    threshold = within[size - 1]
    among: Bools = weights > threshold
    equals = np.flatnonzero(weights == threshold)
    among[equals[: size - np.count_nonzero(within > threshold)]] = True
    return among


CHUNK = 256
"""Weights that are summed at once: adding one at a time waits for every addition."""


def invert_cumulative(weights: Doubles, uniform: float) -> int:
    """Return the id at a point of [0, 1) of the cumulative distribution of the weights, (V,).

    First find the chunk of the point, then its index in the chunk.
    """
    whole = len(weights) // CHUNK * CHUNK
    sums = np.append(weights[:whole].reshape(-1, CHUNK).sum(axis=1), weights[whole:].sum())
    ends = sums.cumsum()
    point = uniform * ends[-1]
    chunk = int(ends.searchsorted(point, side="right"))  # right: a token of weight zero is never hit
    if chunk == len(ends):  # uniform · total was rounded up to the total
        return int(np.flatnonzero(weights)[-1])
    first = chunk * CHUNK
    within = weights[first : first + CHUNK]
    edges = within.cumsum() + (ends[chunk - 1] if chunk else 0.0)
    index = int(edges.searchsorted(point, side="right"))
    if index == len(edges):  # the same sum in another order was a bit less
        index = int(np.flatnonzero(within)[-1])
    return first + index


# Searching


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """A text found by beam search.

    ids: its tokens, without the prompt and without ``</s>``.
    logprob: natural log-probability of all of them given the prompt, and of ``</s>`` where the text is finished.
    score: what hypotheses are ranked by: logprob / length^length_penalty, or GNMT's.
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
    """Return the ``n_best`` likeliest texts found, best first: one list for each row of ``model.start()``.

    At every step each text that is still being written is continued with every token, and the ``width`` likeliest
    continuations are kept. One that ends in ``</s>`` is finished: it leaves the beam, and the next likeliest unfinished
    text takes its place. Texts of different lengths are compared by

        score = log p(w_1 … w_l) / l^length_penalty,    l counts every token, ``</s>`` too

    0 compares probabilities, which favours short texts, for every token costs; 1 compares the mean per token. With
    ``normalisation="gnmt"`` it is divided by ((5 + l) / 6)^length_penalty instead. With ``coverage`` a finished text
    pays for what it has left out of its source, coverage · Σ_i log min(attention paid to i, 1) (models with
    attention only). The search ends when ``width`` texts are finished, when nothing unfinished can overtake the
    ``n_best``, or after ``max_tokens`` steps. Finished texts come before unfinished ones, whatever their scores.

    Width 1 is greedy: the likeliest token at each step, the lowest id among equals. A beam so wide that nothing is
    ever dropped finds the best text there is.
    """
    _check_prompt(prompt, model.vocab)
    goal = Goal(width, n_best, max_tokens, length_penalty, model.vocab.end, normalisation, coverage)
    if coverage and not isinstance(model, Covering):
        raise SettingError(f"coverage={coverage}: a {type(model).__name__} attends to no source")
    state = _read(model, prompt)
    beams = [Beam(goal) for _ in range(len(state))]
    for _ in range(max_tokens):
        covered = model.coverage(state) if coverage and isinstance(model, Covering) else np.zeros(len(state))
        rows = _extend(beams, model.next_logprobs(state), covered)
        if len(rows) == 0:
            break
        ids = np.concatenate([beam.ids[:, -1] for beam in beams if len(beam)])
        state = model.advance(state[rows], ids)
    return [beam.ranked()[:n_best] for beam in beams]


def _extend(beams: Sequence[Beam], logprobs: Logs, covered: Logs) -> Longs:
    """Extend all texts by a token. The rows of the state are those of the first beam, of the second, …

    Returns, for each text that continues, the row of the one it continues.
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
    """The settings of ``beam_search``, and the id of ``</s>``."""

    width: int
    n_best: int
    max_tokens: int
    length_penalty: float
    end: int
    normalisation: Normalisation = "power"
    coverage: float = 0.0

    def __post_init__(self) -> None:
        check_numbers(self, "max_tokens", whole=True)
        check_numbers(self, "width", whole=True, least=1)
        check_numbers(self, "n_best", whole=True, least=1, most=self.width)
        check_numbers(self, "length_penalty", "coverage")
        check_choice(self, "normalisation", get_args(Normalisation))

    def score(self, logprob: float, length: int) -> float:
        """Return the length-normalised score of a text."""
        if self.normalisation == "gnmt":
            return logprob / gnmt_length_penalty(length, self.length_penalty)
        # Not a division: a power too large to hold is an error, one too small is zero. An empty text counts as one.
        share: float = float(max(length, 1)) ** -self.length_penalty
        return logprob * share

    def hypothesis(self, ids: list[int], logprob: float, *, finished: bool, covered: float = 0.0) -> Hypothesis:
        """Return a scored text. covered: Σ_i log min(attention paid to i, 1)."""
        score = self.score(logprob, len(ids) + finished) + (self.coverage * covered if self.coverage else 0.0)
        return Hypothesis(tuple(ids), logprob, score, finished)

    def is_decided(self, scores: Sequence[float], likeliest_unfinished: float) -> bool:
        """Return whether no unfinished text can overtake the best ones. scores: of the finished texts."""
        if len(scores) < self.n_best:
            return False
        if len(scores) >= self.width:
            return True
        # At best an unfinished text loses nothing more and becomes as long as can be.
        return self.score(likeliest_unfinished, self.max_tokens) < sorted(scores)[-self.n_best]


@dataclass(slots=True)
class Beam:
    """The beam of one text.

    ids: int64 (L, tokens so far), the texts still being written, likeliest first; logprobs: float64 (L,), theirs.
    """

    goal: Goal
    ids: Longs = field(default_factory=lambda: np.empty((1, 0), np.int64))
    logprobs: Doubles = field(default_factory=lambda: np.zeros(1))
    finished: list[Hypothesis] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.ids)

    def extend(self, logprobs: Logs, covered: Logs) -> Longs:
        """Extend the texts by one token, logprobs (L, V); return the rows of those that continue."""
        width = self.goal.width
        totals = self.logprobs[:, None] + logprobs
        # Each text can end in one way only, so twice the width always has enough that continue.
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
        """Return all texts, best first; unfinished ones come last, because they lack the cost of ``</s>``."""
        unfinished = [
            self.goal.hypothesis(ids, logprob, finished=False)
            for ids, logprob in zip(self.ids.tolist(), self.logprobs.tolist(), strict=True)
        ]
        return sorted([*self.finished, *unfinished], key=lambda text: (text.finished, text.score), reverse=True)


def likeliest(totals: Doubles, steps: Logs, count: int) -> tuple[Longs, Longs]:
    """Return rows and columns of the ``count`` largest of ``totals``, (L, V), largest first, without −∞.

    Where rounding has made two sums equal the larger last step goes first, as greedy would have it; then the upper row
    and the lower id.
    """
    flat = totals.ravel()
    threshold = np.partition(flat, -count)[-count] if count < len(flat) else -np.inf
    indices = np.flatnonzero((flat >= threshold) & (flat > -np.inf))
    order = np.lexsort((-steps.ravel()[indices], -flat[indices]))[:count]
    rows, ids = np.divmod(indices[order], totals.shape[1])
    return rows, ids


def gnmt_length_penalty(length: int, alpha: float) -> float:
    """Return the divisor of a text's log-probability: ((5 + length) / 6)^alpha, after Y. Wu et al., "Google's neural
    machine translation system" (2016). 0 changes nothing; 0.2 is theirs.
    """
    if length < 0 or not (math.isfinite(alpha) and alpha >= 0):
        raise SettingError(f"length={length} and alpha={alpha} must not be negative")
    return float(((5 + length) / 6) ** alpha)


def gnmt_coverage_penalty(weights: Logs, beta: float) -> float:
    """Return the penalty for source words that were left out, at most 0: β Σ_i log min(Σ_j weights_ji, 1).

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
    """Return GNMT's score: log p(target | source) / length penalty + coverage penalty; weights: (target, source)."""
    return logprob / gnmt_length_penalty(len(weights), alpha) + gnmt_coverage_penalty(weights, beta)


# Text


def pieces(tokenizer: Tokenizer, ids: Iterable[int], *, after: Sequence[int] = ()) -> Iterator[str]:
    """Decode token by token, one piece each, so that the pieces joined are the text that follows ``after``.

    Only the last few tokens are decoded again each time: enough to know the space between two words. A token that
    ends within a character gives an empty piece, and the token that completes it the whole character; one that is
    never completed makes one more piece at the end.
    """
    window = list(after[-1:])
    known = tokenizer.decode(window)
    for id in ids:
        window.append(id)
        text = tokenizer.decode(window)
        if text.endswith(INCOMPLETE) and len(window) < 8:  # no character takes more than four bytes
            yield ""
            continue
        yield text[len(known) :]
        window = window[-1:]
        known = tokenizer.decode(window)
    if len(window) > 1:
        yield tokenizer.decode(window)[len(known) :]  # an unfinished character, as the tokenizer shows one


# Checks


def _check_sampling(temperature: float, top_k: int | None, top_p: float | None, seed: int) -> None:
    check_number("temperature", temperature)
    if top_k is not None:
        check_number("top_k", top_k, whole=True, least=1)
    if top_p is not None:
        check_number("top_p", top_p, above=0, most=1)
    check_number("seed", seed, whole=True)


def _check_prompt(prompt: Sequence[int], vocab: Vocab) -> None:
    if isinstance(prompt, str | bytes) or not isinstance(prompt, Iterable):
        raise InputError(
            f"expected a prompt of token ids, not {prompt!r}: tokenizer.encode(text) makes some; "
            "TextLM.generate takes text itself"
        )
    for id in prompt:
        check_number("an id of the prompt", id, whole=True, least=-math.inf)
        if not 0 <= id < len(vocab):
            raise SettingError(f"prompt holds id {id}, but the model's vocabulary ends at {len(vocab) - 1}")


def _check_possible(best: float) -> None:
    if not math.isfinite(best):
        raise ForewordError(f"the model gives no next token a probability (the best log-probability is {best})")
