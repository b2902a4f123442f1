"""What goes on inside a trained network of the ladder: how far back it is taught, and what its gates do.

Both read the recurrent layers through ``Layers`` (``gates.py``) and use the instruments of ``gradients.py``.
Shapes: T steps, B texts side by side, H units, V words.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from foreword.arrays import Doubles, Ids
from foreword.evaluate.compare.facts import Passage
from foreword.evaluate.compare.results import Gates
from foreword.evaluate.gates import NAMES, Layers, gate_traces, has_layers
from foreword.evaluate.gradients import input_gradient_by_lag
from foreword.nn.cells import cross_entropy
from foreword.tokens.corpus import Corpus

LAGS = 40
"""Steps back that a gradient is followed."""

WINDOWS = 32
"""Places of the text at which that is done; what is told is their mean."""

FEWEST_LAGS = 8
"""A text too short for so many steps has no picture of them."""

GATE_TOKENS = 18
"""Of the passage: a row each."""


def gradient_norms(layers: Layers, *texts: Corpus) -> tuple[float, ...]:
    """The mean of |∂L_T/∂x_(T−lag)| for lag 0, 1, …, with L_T the loss of predicting the word after step T alone.

    Of the texts the first that is long enough is read, as one stream; () where none is.
    """
    long_enough = (text for text in texts if len(text.ids) >= FEWEST_LAGS + 2)
    text = next(long_enough, None)
    if text is None:
        return ()
    windows = cut_windows(text.ids)
    inputs, targets = windows[:-1], windows[-1]
    said, kept = layers.read(inputs)
    _, d_scores = cross_entropy(layers.scores(said[-1][-1]), targets)
    d_last = len(targets) * (d_scores @ layers.output)  # of each text's own loss, not of their mean
    norms: Doubles = input_gradient_by_lag(layers.cells, kept, d_last)
    return tuple(norms.mean(axis=1).tolist())


def cut_windows(ids: Ids) -> Ids:
    """Stretches at even distances, (T + 1, B): as long as LAGS asks for, or as the text is."""
    length = min(LAGS + 2, len(ids))
    starts = np.unique(np.linspace(0, len(ids) - length, WINDOWS).astype(np.int64))
    windows: Ids = np.asarray(ids, np.int64)[starts + np.arange(length)[:, None]]
    return windows


def passage_gates(layers: Layers, passage: Passage, ids: Ids, end: int) -> Gates | None:
    """The gates of the last layer at the first words of the passage, after the ``</s>`` that every text begins with."""
    if not NAMES[layers.kind]:
        return None
    shown = min(GATE_TOKENS, len(passage.pieces))
    tokens = [piece.strip() or "␣" for piece in passage.pieces[:shown]]
    traces = gate_traces(layers, np.append(end, np.asarray(ids[:shown], np.int64)), ["", *tokens])
    return Gates(
        tuple(tokens),
        {name: tuple(map(tuple, np.round(values[1:], 3).tolist())) for name, values in traces.gates.items()},
    )


def layers_of(model: Any) -> Layers | None:
    """A recurrent model's layers; None for every other."""
    return Layers.of(model) if has_layers(model) else None
