"""Tasks that need memory and nothing else, made as they are asked for: recall, copying, adding.

    recall   a symbol, then ``lag`` distractors, then a question mark: which symbol was it?
    copying  several symbols, ``lag`` blanks, then as many question marks: say the symbols again, in order
    adding   numbers between 0 and 1 of which two are marked, one in each half: what is their sum?

S. Hochreiter and J. Schmidhuber, "Long short-term memory" (1997) for the last two. Shapes: T steps, B examples side by
side, I inputs, n steps at the end that are scored.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from foreword.arrays import Array, Floats, Ids
from foreword.errors import SettingError


@dataclass(frozen=True, slots=True)
class Examples:
    """x (T, B, I), float32. wanted (n, B): what the last n steps should say, a symbol (int64) or a number (float32)."""

    x: Floats
    wanted: Array


class Task(Protocol):
    """lag: how far apart what matters stands. inputs, outputs: sizes of what is read and of what is said."""

    @property
    def lag(self) -> int: ...
    @property
    def inputs(self) -> int: ...
    @property
    def outputs(self) -> int: ...
    def draw(self, examples: int, random: np.random.Generator, lag: int | None = None) -> Examples: ...


@dataclass(frozen=True, slots=True)
class Recall:
    """Distractors are drawn from as many other symbols, so that there is always something to be confused by."""

    lag: int
    symbols: int = 8

    @property
    def inputs(self) -> int:
        return 2 * self.symbols + 1

    @property
    def outputs(self) -> int:
        return self.symbols

    def draw(self, examples: int, random: np.random.Generator, lag: int | None = None) -> Examples:
        steps = _checked(self.lag if lag is None else lag)
        first = random.integers(self.symbols, size=(1, examples))
        others = self.symbols + random.integers(self.symbols, size=(steps, examples))
        question = np.full((1, examples), 2 * self.symbols)
        return Examples(one_hot(np.concatenate((first, others, question)), self.inputs), first)


@dataclass(frozen=True, slots=True)
class Copying:
    """items: how many symbols are to be said again. With ``lag=0`` what is asked is how much a state can hold."""

    lag: int
    items: int = 4
    symbols: int = 8

    @property
    def inputs(self) -> int:
        return self.symbols + 2

    @property
    def outputs(self) -> int:
        return self.symbols

    def draw(self, examples: int, random: np.random.Generator, lag: int | None = None) -> Examples:
        steps = _checked(self.lag if lag is None else lag)
        items = random.integers(self.symbols, size=(self.items, examples))
        blanks = np.full((steps, examples), self.symbols)
        questions = np.full((self.items, examples), self.symbols + 1)
        return Examples(one_hot(np.concatenate((items, blanks, questions)), self.inputs), items)


@dataclass(frozen=True, slots=True)
class Adding:
    """``lag + 1`` numbers; what is wanted is the sum of the two marked ones, less 1, so that guessing the mean is 0."""

    lag: int

    @property
    def inputs(self) -> int:
        return 2

    @property
    def outputs(self) -> int:
        return 1

    def draw(self, examples: int, random: np.random.Generator, lag: int | None = None) -> Examples:
        steps = _checked(self.lag if lag is None else lag) + 1
        x = np.zeros((max(steps, 2), examples, 2), np.float32)
        steps, columns = len(x), np.arange(examples)
        x[:, :, 0] = random.random((steps, examples))
        first = random.integers(steps // 2, size=examples)
        second = random.integers(steps // 2, steps, size=examples)
        x[first, columns, 1] = x[second, columns, 1] = 1
        total = x[first, columns, 0] + x[second, columns, 0] - 1
        return Examples(x, total[None].astype(np.float32))


def one_hot(ids: Ids, size: int) -> Floats:
    """(…) to (…, size): a one where the id says, zeros elsewhere."""
    rows: Floats = np.eye(size, dtype=np.float32)[ids]
    return rows


def _checked(lag: int) -> int:
    if lag < 0:
        raise SettingError(f"lag={lag}: expected 0 or more")
    return lag
