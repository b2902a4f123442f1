"""The tables of a hidden Markov model: its parameters, and the counts that they are learnt from.

Shapes: S = states, K = words in the vocabulary. The emission table is stored a row a word, (K, S), so that a word reads
S numbers that lie side by side.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from foreword.arrays import Doubles, Ids, Reals
from foreword.errors import SettingError
from foreword.tokens.corpus import Corpus

AXES = (0, 1, 0)
"""Along which a state's distribution lies, in start, transition and emission."""


class Counts(NamedTuple):
    """How often each state began a document (S,), followed another (S, S), and emitted each word (K, S)."""

    start: Doubles
    transition: Doubles
    emission: Doubles


class Parameters(NamedTuple):
    """π (S,), A (S, S) and B, the latter a row a word: (K, S)."""

    start: Reals
    transition: Reals
    emission: Reals


def check_shapes(tables: Parameters | Counts, states: int, words: int) -> None:
    start, transition, emission = tables
    for name, table, shape in (
        ("start", start, (states,)),
        ("transition", transition, (states, states)),
        ("emission", emission.T, (states, words)),
    ):
        if table.shape != shape:
            raise SettingError(f"{name} is {table.shape}, not {shape}")


def frozen(table: Reals) -> Reals:
    kept = np.ascontiguousarray(table).view()
    kept.flags.writeable = False
    return kept


def count_paths(corpus: Corpus, path: Ids, states: int) -> Counts:
    """Count what ``from_counts`` learns from: the states (tokens,) behind the words of a corpus."""
    moves, words = np.zeros((states, states)), np.zeros((len(corpus.vocab), states))
    states_of = np.asarray(path)
    if states_of.shape != corpus.ids.shape:
        raise SettingError(f"{len(corpus.ids)} words but {states_of.shape} states")
    if len(states_of) and not 0 <= states_of.min() <= states_of.max() < states:
        raise SettingError(f"a state is not one of the {states}, which are counted from 0")
    first = np.zeros(len(states_of), bool)
    first[corpus.offsets[:-1][np.diff(corpus.offsets) > 0]] = True
    within = np.flatnonzero(~first)
    np.add.at(moves, (states_of[within - 1], states_of[within]), 1)
    np.add.at(words, (corpus.ids, states_of), 1)
    return Counts(np.bincount(states_of[first], minlength=states).astype(np.float64), moves, words.T)
