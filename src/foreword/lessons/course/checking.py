"""Check a student's function: the same hidden cases for it and for the library, and a name for common mistakes.

An exercise knows the library's answer and, for each mistake that students make, a function that makes it. Where the
student's function fails and one of these gives the same wrong results in every case, that mistake is named.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from foreword.errors import SettingError
from foreword.notebook import MOST_LETTERS

TOLERANCE = 1e-5
"""Relative and absolute: n-gram models store their logarithms in single precision."""


@dataclass(frozen=True)
class Exercise:
    """number: lesson and position, as 4.2; name: the student's function; cases: the arguments of each call.

    answer: the library's own; mistakes: what went wrong → a function that goes wrong in that way.
    """

    number: str
    name: str
    cases: Sequence[tuple[Any, ...]]
    answer: Callable[..., Any]
    mistakes: Mapping[str, Callable[..., Any]] = field(default_factory=dict)

    @property
    def lesson(self) -> int:
        """The lesson it belongs to."""
        return int(self.number.partition(".")[0])


@dataclass(frozen=True)
class Verdict:
    """What the checker found; shown as its report."""

    number: str
    passed: bool
    report: str

    def __repr__(self) -> str:
        return self.report


def check(number: str, function: Callable[..., Any]) -> Verdict:
    """Compare a function with the library on the hidden cases of an exercise, such as "4.2"."""
    exercise = find_exercise(number)
    results = [_call(function, case) for case in exercise.cases]
    expected = [exercise.answer(*copy.deepcopy(case)) for case in exercise.cases]
    wrong = [index for index, pair in enumerate(zip(results, expected, strict=True)) if not same(*pair)]
    title = f"{number} {exercise.name}"
    if not wrong:
        return Verdict(number, True, f"{title}: right, all {len(results)} cases agree with the library")
    if all(result is None or result is Ellipsis for result in results):
        return Verdict(number, False, f"{title}: not written yet, it returns {results[0]}")
    first = wrong[0]
    lines = [
        f"{title}: {len(wrong)} of {len(results)} cases are wrong; case {first + 1} is",
        f"  {exercise.name}({', '.join(map(_shown, exercise.cases[first]))})",
        f"  expected  {_shown(expected[first])}",
        f"  got       {_shown(results[first])}",
    ]
    mistake = _mistake(exercise, results)
    return Verdict(number, False, "\n".join([*lines, f"  Likely mistake: {mistake}."] if mistake else lines))


def find_exercise(number: str) -> Exercise:
    """Return the exercise with that number."""
    found = {exercise.number: exercise for exercise in all_exercises()}
    if number not in found:
        raise SettingError(f"no exercise {number!r}: expected one of {', '.join(found)}")
    return found[number]


def all_exercises() -> list[Exercise]:
    """Return every exercise of the course, in order."""
    from foreword.lessons.course import exercises_counting, exercises_networks

    return [*exercises_counting.EXERCISES, *exercises_networks.EXERCISES]


def same(one: Any, other: Any) -> bool:
    """Return whether two results agree: numbers and arrays within the tolerance, containers item by item."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, BaseException) or isinstance(other, BaseException):
        return type(one) is type(other)
    numbers = [_numbers(value) for value in (one, other)]
    if all(array is not None for array in numbers):
        return numbers[0].shape == numbers[1].shape and np.allclose(
            numbers[0], numbers[1], TOLERANCE, TOLERANCE, equal_nan=True
        )
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    return type(one) is type(other) and bool(one == other)


def _numbers(value: Any) -> Any:
    """Return a number, or a regular nest of numbers, as an array, and None for anything else."""
    try:
        array = np.asarray(value)
    except ValueError:  # rows of different lengths
        return None
    return array if array.dtype.kind in "iuf" else None


def _call(function: Callable[..., Any], case: tuple[Any, ...]) -> Any:
    """Return the result, or the error that was raised; a function may change its arguments, so it gets a copy."""
    try:
        with np.errstate(all="ignore"):
            return function(*copy.deepcopy(case))
    except Exception as error:
        return error


def _mistake(exercise: Exercise, results: list[Any]) -> str:
    for name, wrong in exercise.mistakes.items():
        if all(same(result, _call(wrong, case)) for result, case in zip(results, exercise.cases, strict=True)):
            return name
    return ""


def _shown(value: Any) -> str:
    """Write a value on one line, shortened."""
    if isinstance(value, BaseException):
        return f"{type(value).__name__}: {value}"
    text = np.array2string(value, precision=4) if isinstance(value, np.ndarray) else repr(value)
    text = " ".join(text.split())
    return text if len(text) <= MOST_LETTERS else f"{text[: MOST_LETTERS - 1]}…"
