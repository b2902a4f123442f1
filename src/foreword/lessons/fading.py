"""How fast a hidden Markov model forgets: two readers with different initial beliefs who read the same words come to
the same belief.

The distance of their beliefs after each word is measured and compared with its theoretical bound:
R. L. Dobrushin, "Central limit theorem for nonstationary Markov chains", Theory of Probability and its Applications 1
(1956). Shapes: S = states, N = words.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from foreword.arrays import Doubles, Ids, Reals
from foreword.errors import SettingError
from foreword.hmm.model import HMM
from foreword.picture.axes import Scale, tick_name
from foreword.picture.picture import Picture, label, percent, readable, shorten, svg


@dataclass(frozen=True, slots=True)
class Fading:
    """The total variation between two beliefs after each word, (N,), and its upper bounds (N,)."""

    distances: Doubles
    bounds: Doubles


def total_variation(first: Reals, second: Reals) -> float:
    """Return ½ Σ |p − q|: 0 for equal distributions, 1 for disjoint ones."""
    return float(np.abs(np.subtract(first, second, dtype=np.float64)).sum() / 2)


def dobrushin(kernel: Reals) -> float:
    """Return the largest total variation between two rows of a stochastic matrix: one step reduces the distance of
    any two distributions by at least this factor (Dobrushin 1956).
    """
    return max((total_variation(row, other) for row in kernel for other in kernel), default=0.0)


def fading(model: HMM, ids: Ids, first: Reals, second: Reals) -> Fading:
    """Measure two readers with different initial beliefs, (S,) each, while they read the same words.

    Given all words up to the n-th the states still form a chain, whose step k is F_k(i, j) ∝ A_ij B_j(x_k) p(x_(k+1)
    … x_n | z_k = j). Both readers' beliefs about z_n pass through the same F_2 … F_n, so their total variation is at
    most the product of the Dobrushin coefficients (Cappé, Moulines and Rydén, "Inference in Hidden Markov Models",
    2005, section 4.3). That of A alone bounds only what happens where nothing is read.
    """
    distances, bounds = np.empty(len(ids)), np.empty(len(ids))
    one, other = first, second
    for index, id in enumerate(np.asarray(ids)):
        one, other = model.correct(one, int(id)), model.correct(other, int(id))
        distances[index] = total_variation(one, other)
        bounds[index] = math.prod(map(dobrushin, _conditional_steps(model, ids[: index + 1])))
        one, other = model.predict(one), model.predict(other)
    return Fading(distances, bounds)


def _conditional_steps(model: HMM, ids: Ids) -> Iterator[Reals]:
    """Yield the chain's steps given all the words, last first, without rows from which the rest has probability 0."""
    later = np.ones(model.states)
    for id in np.asarray(ids)[:0:-1]:
        step = model.transition_ * (model.emission_[:, id] * later)
        later = step.sum(axis=1)
        step = step[later > 0] / later[later > 0][:, None]
        later = later / later.max(initial=0, where=later > 0) if later.any() else np.ones(model.states)
        yield step


ROW, TOP = 24, 30
FIRST = 0.2
"""Position of the scale's beginning, as a share of the width; words stand before it."""

LEAST = 1e-15
"""Smaller differences between two numbers near one are rounding errors."""


def draw_fading(words: Sequence[str], distances: Sequence[float], bounds: Sequence[float]) -> Picture:
    """Draw a bar for the distance after each word, and a stroke for its bound, on a logarithmic scale."""
    if not words or not len(words) == len(distances) == len(bounds):
        raise SettingError(f"{len(words)} words, {len(distances)} distances and {len(bounds)} bounds: expected as many")
    powers = min(math.floor(math.log10(max(min(distances), LEAST))), -1)
    scale = Scale(10.0**powers, 1.0, FIRST, 1.0)
    every = max(1, round(-powers / 5))
    height = TOP + ROW * len(words)
    shapes = [
        *(_grid_line(scale, 10.0**power, height) for power in range(0, powers - 1, -every)),
        *(
            _bar_row(TOP + ROW * row, word, distance, bound, scale)
            for row, (word, distance, bound) in enumerate(zip(words, distances, bounds, strict=True))
        ),
    ]
    title = "How far apart two beliefs are after each word"
    caption = (
        f"After {len(words)} words the two differ by {readable(distances[-1])} in total variation; the strokes are the "
        f"Dobrushin bound, which no bar passes."
    )
    return Picture(svg(title, height, shapes), title, caption)


def _position(scale: Scale, value: float) -> str:
    return percent(max(FIRST, scale.position(max(value, LEAST))))


def _grid_line(scale: Scale, value: float, height: float) -> str:
    x = _position(scale, value)
    anchor = "end" if value == 1 else "middle"
    line = f'<line x1="{x}" x2="{x}" y1="{TOP - 8}" y2="{height}" stroke="var(--p-line)"/>'
    return line + label(tick_name(value), x, 12, anchor=anchor, colour="muted")


def _bar_row(top: int, word: str, distance: float, bound: float, scale: Scale) -> str:
    start, end, limit = percent(FIRST), _position(scale, distance), _position(scale, bound)
    middle = top + 8
    return (
        label(shorten(word, 18), "0", top + 13)
        + f'<line x1="{start}" x2="{end}" y1="{middle}" y2="{middle}" stroke="var(--p-accent)" stroke-width="10">'
        + f"<title>{readable(distance)}, at most {readable(bound)}</title></line>"
        + f'<line x1="{limit}" x2="{limit}" y1="{top}" y2="{top + 16}" stroke="var(--p-ink)" stroke-width="2"/>'
    )
