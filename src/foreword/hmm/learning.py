"""Learning the parameters of a hidden Markov model: from counts of states that are known, or by EM where they are not.

A round of EM (Baum-Welch) computes the expected counts of each event given the text, and makes them the new
probabilities; the likelihood never falls. With ``smoothing`` each count is that much larger, which is EM for the
posterior under a Dirichlet prior; then the posterior never falls.

Shapes: S = states, K = words in the vocabulary. The emission table is stored one row per word, (K, S), so that a word
reads S adjacent numbers.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from foreword.arrays import Doubles, Ids, Reals, frozen
from foreword.errors import InputError, SettingError
from foreword.hmm import kernels
from foreword.tokens.corpus import Corpus

AXES = (0, 1, 0)
"""The axis of one distribution in start, transition and emission."""

ROW_TOLERANCE = {"float64": 1e-9, "float32": 1e-5}
"""How far from one the sum of a row of parameters may be."""


class Counts(NamedTuple):
    """How often each state began a document (S,), followed another (S, S), and emitted each word (K, S)."""

    start: Doubles
    transition: Doubles
    emission: Doubles


class Parameters(NamedTuple):
    """π (S,), A (S, S) and B, the latter one row per word: (K, S)."""

    start: Reals
    transition: Reals
    emission: Reals


def check_shapes(tables: Parameters | Counts, states: int, words: int) -> None:
    """Raise a ``SettingError`` unless the tables have the shapes of ``states`` states and ``words`` words."""
    start, transition, emission = tables
    for name, table, shape in (
        ("start", start, (states,)),
        ("transition", transition, (states, states)),
        ("emission", emission.T, (states, words)),
    ):
        if table.shape != shape:
            raise SettingError(f"{name} is {table.shape}, not {shape}")


def checked(parameters: Parameters, states: int, words: int) -> Parameters:
    """Return the parameters as read-only arrays; a ``SettingError`` unless every row is a distribution."""
    check_shapes(parameters, states, words)
    for name, table, axis in zip(Parameters._fields, parameters, AXES, strict=True):
        sums = table.sum(axis=axis, dtype=np.float64)
        if not (table.min() >= 0 and np.abs(sums - 1).max() <= ROW_TOLERANCE[table.dtype.name]):
            raise SettingError(f"{name} has a row that is not a distribution: negative, or not summing to one")
    return Parameters(*(frozen(table) for table in parameters))


def count_paths(corpus: Corpus, path: Ids, states: int) -> Counts:
    """Count what ``HMM.from_counts`` learns from: the states (tokens,) behind the words of a corpus."""
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


def random_counts(corpus: Corpus, states: int, seed: int) -> Counts:
    """Return counts in which EM can distinguish the states: each word's count, divided among them at random."""
    random = np.random.default_rng(seed)
    seen = np.bincount(corpus.ids, minlength=len(corpus.vocab))
    shares = random.standard_exponential((len(seen), states))
    shares *= (seen / shares.sum(axis=1))[:, None]
    start = len(corpus) * random.dirichlet(np.ones(states))
    return Counts(start, len(corpus.ids) * random.dirichlet(np.ones(states), states), shares)


def expected_counts(parameters: Parameters, corpus: Corpus, threads: int | None) -> tuple[Counts, float]:
    """Return the expected counts given the text, and its log-likelihood: the E step.

    Sums are taken in the order of the batches, so that they do not depend on the number of threads.
    """
    states = len(parameters.start)
    counts = Counts(np.zeros(states), np.zeros((states, states)), np.zeros((len(corpus.vocab), states)))
    log_likelihood = 0.0
    for batch, found in kernels.map_batches(kernels.expect_batch, parameters, corpus.ids, corpus.offsets, threads):
        if not found.scales.all():
            position = int(batch.places[np.flatnonzero(found.scales == 0)].min())
            document = int(np.searchsorted(corpus.offsets, position, side="right")) - 1
            raise InputError(f"document {document} has no probability under this model, so EM cannot learn from it")
        log_likelihood += float(np.log(found.scales, dtype=np.float64).sum())
        counts.start[:] += found.start
        counts.transition[:] += found.pairs
        kernels.add_rows(counts.emission, found.words, found.rows)
    counts.transition[:] *= parameters.transition
    return counts, log_likelihood


def normalised(counts: Counts, smoothing: float, dtype: str, before: Parameters | None = None) -> Parameters:
    """Return counts as probabilities: the M step. A state without counts keeps the parameters it had ``before``."""
    shares = []
    for number, (table, axis) in enumerate(zip(counts, AXES, strict=True)):
        smoothed = table + smoothing
        totals = smoothed.sum(axis=axis, keepdims=True)
        if before is not None:
            smoothed = np.where(totals > 0, smoothed, before[number])
            totals = np.where(totals > 0, totals, 1)
        elif not totals.all():
            raise SettingError("a state was never seen, and without smoothing nothing is known of it")
        shares.append((smoothed / totals).astype(dtype, copy=False))
    return Parameters(*shares)


def log_prior(parameters: Parameters, smoothing: float) -> float:
    """Return the log-density of the Dirichlet prior that ``smoothing`` stands for, up to a constant."""
    if smoothing == 0:
        return 0.0
    return smoothing * sum(float(np.log(table, dtype=np.float64).sum()) for table in parameters)
