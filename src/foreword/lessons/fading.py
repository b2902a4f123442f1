"""How fast a hidden Markov model forgets: two readers who differ in what they believe at the beginning, and then read
the same words, come to believe the same.

How far apart they still are after each word is measured, and held against what theory says they cannot exceed:
R. L. Dobrushin, "Central limit theorem for nonstationary Markov chains", Theory of Probability and its Applications 1
(1956). Shapes: S = states, N = words.

How fast two readers who began apart come to agree, word by word (row H07).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from foreword.arrays import Doubles, Ids, Reals
from foreword.errors import SettingError
from foreword.hmm.model import HMM
from foreword.picture.axes import tick_name
from foreword.picture.picture import Picture, label, percent, readable, svg


@dataclass(frozen=True, slots=True)
class Fading:
    """distances (N,): how far apart two beliefs are after each word. bounds (N,): what they cannot exceed."""

    distances: Doubles
    bounds: Doubles


def total_variation(first: Reals, second: Reals) -> float:
    """½ Σ |p − q|: 0 for the same distribution, 1 for two that have nothing in common."""
    return float(np.abs(np.subtract(first, second, dtype=np.float64)).sum() / 2)


def dobrushin(kernel: Reals) -> float:
    """The largest total variation between two rows of a stochastic matrix: one step brings any two distributions
    together by at least this factor (Dobrushin 1956).
    """
    return max((total_variation(row, other) for row in kernel for other in kernel), default=0.0)


def fading(model: HMM, ids: Ids, first: Reals, second: Reals) -> Fading:
    """Two readers who differ in what they believe at the beginning, (S,) each, read the same words.

    Given all words up to the n-th the states still form a chain, whose step k is F_k(i, j) ∝ A_ij B_j(x_k) p(x_(k+1)
    … x_n | z_k = j). Both readers' beliefs about z_n pass through the same F_2 … F_n, so their total variation is at
    most the product of the Dobrushin coefficients (Cappé, Moulines and Rydén, "Inference in Hidden Markov Models",
    2005, section 4.3). That of A alone bounds only what happens where nothing is read.
    """
    distances, bounds = np.empty(len(ids)), np.empty(len(ids))
    one, other = first, second
    for place, id in enumerate(np.asarray(ids)):
        one, other = model.correct(one, int(id)), model.correct(other, int(id))
        distances[place] = total_variation(one, other)
        bounds[place] = math.prod(map(dobrushin, _conditional_steps(model, ids[: place + 1])))
        one, other = model.predict(one), model.predict(other)
    return Fading(distances, bounds)


def _conditional_steps(model: HMM, ids: Ids) -> Iterator[Reals]:
    """The chain's steps given all the words, from the last to the first; only rows from where they can be read."""
    later = np.ones(model.states)
    for id in np.asarray(ids)[:0:-1]:
        step = model.transition_ * (model.emission_[:, id] * later)
        later = step.sum(axis=1)
        step = step[later > 0] / later[later > 0][:, None]
        later = later / later.max(initial=0, where=later > 0) if later.any() else np.ones(model.states)
        yield step


ROW, TOP = 24, 30
FIRST = 0.2
"""Where the scale begins, as a share of the width; words stand before it."""

LONGEST_WORD = 18
LEAST = 1e-15
"""Below this a difference between two numbers near one is rounding."""


def draw_fading(words: Sequence[str], distances: Sequence[float], bounds: Sequence[float]) -> Picture:
    """A bar for the distance after each word, and a stroke for what it cannot exceed; the scale is logarithmic."""
    if not words or not len(words) == len(distances) == len(bounds):
        raise SettingError(f"{len(words)} words, {len(distances)} distances and {len(bounds)} bounds: expected as many")
    powers = math.floor(math.log10(max(min(distances), LEAST)))
    powers = min(powers, -1)
    every = max(1, round(-powers / 5))
    height = TOP + ROW * len(words)
    shapes = [
        *(_scale(10.0**power, powers, height) for power in range(0, powers - 1, -every)),
        *(
            _bar_row(place, word, distance, bound, powers)
            for place, (word, distance, bound) in enumerate(zip(words, distances, bounds, strict=True))
        ),
    ]
    title = "How far apart two beliefs are after each word"
    caption = (
        f"After {len(words)} words the two differ by {readable(distances[-1])} in total variation; the strokes are the "
        f"Dobrushin bound, which no bar passes."
    )
    return Picture(svg(title, height, shapes), title, caption)


def _bar_end(value: float, powers: int) -> str:
    """The scale runs from the least power of ten, at the left, to one."""
    share = max(0.0, 1 - math.log10(max(value, LEAST)) / powers)
    return percent(FIRST + (1 - FIRST) * share)


def _scale(value: float, powers: int, height: float) -> str:
    x = _bar_end(value, powers)
    anchor = "end" if value == 1 else "middle"
    line = f'<line x1="{x}" x2="{x}" y1="{TOP - 8}" y2="{height}" stroke="var(--p-line)"/>'
    return line + label(tick_name(value), x, 12, anchor=anchor, colour="muted")


def _bar_row(place: int, word: str, distance: float, bound: float, powers: int) -> str:
    top = TOP + ROW * place
    short = word if len(word) <= LONGEST_WORD else f"{word[: LONGEST_WORD - 1]}…"
    start, end, limit = percent(FIRST), _bar_end(distance, powers), _bar_end(bound, powers)
    middle = top + 8
    return (
        label(short, "0", top + 13)
        + f'<line x1="{start}" x2="{end}" y1="{middle}" y2="{middle}" stroke="var(--p-accent)" stroke-width="10">'
        + f"<title>{readable(distance)}, at most {readable(bound)}</title></line>"
        + f'<line x1="{limit}" x2="{limit}" y1="{top}" y2="{top + 16}" stroke="var(--p-ink)" stroke-width="2"/>'
    )
