"""Decoding CTC: labels from the frames' probabilities, with a language model of the same symbols or without.

This search adds up the alignments of each text, as the textbook has it; the one in ``plain.py`` spells words and keeps
the rules of pyctcdecode, in which a beam is a text together with its last symbol.

``greedy`` takes the likeliest symbol of each frame. ``prefix_search`` adds up alignments: for every beginning of a text
that it keeps it knows the chance of all alignments that read so and end in a blank, and of those that do not, which is
all that the next frame needs. The best text is the one with the highest

    log p(text | frames) + weight · log p_LM(text, ``</s>``) + bonus · length

A. Hannun, A. Maas, D. Jurafsky and A. Ng, "First-pass large vocabulary continuous speech recognition using
bi-directional recurrent DNNs" (2014). Shapes: T frames, V symbols with the blank.
"""

from __future__ import annotations

import math
import sys
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from foreword.arrays import Logs
from foreword.checks import check_number
from foreword.errors import InputError, SettingError
from foreword.protocols import NextToken

Prefix = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Transcript:
    """A decoded text. logprob: of the alignments in the beam; score: with the language model's part."""

    ids: Prefix
    logprob: float
    score: float


def collapsed(symbols: Iterable[int], blank: int) -> list[int]:
    """Return the labels of an alignment: merge repetitions, then remove blanks."""
    labels, before = [], blank
    for symbol in symbols:
        if symbol not in (before, blank):
            labels.append(symbol)
        before = symbol
    return labels


def greedy(logs: Logs, *, blank: int = 0) -> list[int]:
    """Return the labels of the likeliest symbols of the frames; logs: (T, V)."""
    _check(logs, blank)
    return collapsed(logs.argmax(axis=1).tolist(), blank)


def prefix_search(
    logs: Logs,
    *,
    blank: int = 0,
    width: int = 16,
    model: NextToken[Any] | None = None,
    weight: float = 1.0,
    bonus: float = 0.0,
) -> list[Transcript]:
    """Return the best texts found, at most ``width``, best first; logs: (T, V), log-probabilities of one text's frames.

    With a model the symbols are its vocabulary's ids and the blank comes after them, ``blank=len(vocab)``; ``</s>`` is
    no label, but the model scores the end of a text. A beam wide enough to drop nothing finds the best text.
    """
    listener, beam = deque(_beams(logs, blank, width, _Listener(model, weight, bonus)), maxlen=1).pop()
    found = [
        Transcript(prefix, _added(*ways), _added(*ways) + listener.end(prefix) + listener.share(prefix))
        for prefix, ways in beam.items()
    ]
    return sorted(found, key=lambda text: -text.score)


def prefix_beams(
    logs: Logs,
    *,
    blank: int = 0,
    width: int = 16,
    model: NextToken[Any] | None = None,
    weight: float = 1.0,
    bonus: float = 0.0,
) -> Iterator[list[tuple[Prefix, float]]]:
    """Yield the beam of ``prefix_search`` after each frame: texts with their scores, their ends not yet scored."""
    beams = _beams(logs, blank, width, _Listener(model, weight, bonus))
    next(beams)
    for listener, beam in beams:
        yield [(prefix, _added(*ways) + listener.share(prefix)) for prefix, ways in beam.items()]


def _beams(logs: Logs, blank: int, width: int, listener: _Listener) -> Iterator[tuple[_Listener, dict[Prefix, Ways]]]:
    """Yield the beam before the first frame and after each."""
    _check(logs, blank)
    check_number("width", width, whole=True, least=1)
    labels = listener.labels(logs.shape[1], blank)
    beam: dict[Prefix, Ways] = {(): (0.0, -math.inf)}
    yield listener, beam
    for row in logs.tolist():
        beam = listener.best(_read(beam, row, labels, blank), width)
        yield listener, beam


Ways = tuple[float, float]
"""Log-probabilities of the alignments of a text that end in a blank, and of those that end in its last label."""


def _read(beam: dict[Prefix, Ways], row: list[float], labels: list[int], blank: int) -> dict[Prefix, Ways]:
    """Return every text of the beam after one more frame, unchanged and one label longer."""
    after: dict[Prefix, Ways] = {}

    def add(prefix: Prefix, in_blank: float, in_label: float) -> None:
        ways = after.get(prefix, (-math.inf, -math.inf))
        after[prefix] = _added(ways[0], in_blank), _added(ways[1], in_label)

    for prefix, (in_blank, in_label) in beam.items():
        both = _added(in_blank, in_label)
        last = prefix[-1] if prefix else blank
        add(prefix, both + row[blank], in_label + row[last] if prefix else -math.inf)
        for label in labels:
            if row[label] > -math.inf:
                # The same label once more is a new one only if a blank stood between.
                add((*prefix, label), -math.inf, (in_blank if label == last else both) + row[label])
    return after


class _Listener:
    """The language model's scores of the texts in the beam; without a model, only the bonus."""

    def __init__(self, model: NextToken[Any] | None, weight: float, bonus: float) -> None:
        check_number("weight", weight)
        check_number("bonus", bonus, least=-sys.float_info.max)
        self._model, self._weight, self._bonus = model, weight, bonus
        # Of each text: the model's state, its log-probability, and those of what may follow.
        self._heard: dict[Prefix, tuple[Any, float, Logs]] = {}
        if model is not None:
            state = model.start()
            self._heard[()] = state, 0.0, model.next_logprobs(state)[0]

    def labels(self, symbols: int, blank: int) -> list[int]:
        """Return the symbols that may be labels."""
        if self._model is None:
            return [symbol for symbol in range(symbols) if symbol != blank]
        size = len(self._model.vocab)
        if (symbols, blank) != (size + 1, size):
            raise InputError(
                f"{symbols} symbols with the blank at {blank}: the model's vocabulary takes {size + 1}, the blank last"
            )
        return [symbol for symbol in range(size) if symbol != self._model.vocab.end]

    def share(self, prefix: Prefix) -> float:
        """Return what is added for a text, without its end."""
        return self._weighted(self._logprob(prefix)) + self._bonus * len(prefix)

    def end(self, prefix: Prefix) -> float:
        """Return what the model adds for the end of a text."""
        if self._model is None:
            return 0.0
        return self._weighted(float(self._heard[prefix][2][self._model.vocab.end]))

    def best(self, texts: dict[Prefix, Ways], width: int) -> dict[Prefix, Ways]:
        """Return the best texts; of equals the one found first."""
        possible = [prefix for prefix, ways in texts.items() if max(ways) > -math.inf]
        ranked = sorted(possible, key=lambda prefix: -(_added(*texts[prefix]) + self.share(prefix)))
        kept = ranked[:width]
        if self._model is not None:
            self._heard = {prefix: self._hear(prefix) for prefix in kept}
        return {prefix: texts[prefix] for prefix in kept}

    def _weighted(self, logprob: float) -> float:
        return self._weight * logprob if self._weight else 0.0  # zero times −∞ would be no number

    def _logprob(self, prefix: Prefix) -> float:
        if self._model is None:
            return 0.0
        if prefix in self._heard:
            return self._heard[prefix][1]
        _, before, next_logprobs = self._heard[prefix[:-1]]
        return before + float(next_logprobs[prefix[-1]])

    def _hear(self, prefix: Prefix) -> tuple[Any, float, Logs]:
        if prefix in self._heard or self._model is None:
            return self._heard[prefix]
        state = self._model.advance(self._heard[prefix[:-1]][0], np.array([prefix[-1]]))
        return state, self._logprob(prefix), self._model.next_logprobs(state)[0]


def _added(a: float, b: float) -> float:
    high, low = (a, b) if a > b else (b, a)
    return high if low == -math.inf else high + math.log1p(math.exp(low - high))


def _check(logs: Logs, blank: int) -> None:
    if logs.ndim != 2:
        raise InputError(f"log-probabilities have the shape {logs.shape}, not (frames, symbols)")
    if not 0 <= blank < logs.shape[1]:
        raise SettingError(f"blank={blank} must be one of the symbols 0 to {logs.shape[1] - 1}")
    if np.isnan(logs).any():
        raise InputError("the log-probabilities hold NaN")
