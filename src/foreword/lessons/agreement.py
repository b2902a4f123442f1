"""Does a model keep the subject in mind until its verb? "The book that the professors assigned was …"

Sentences are generated: a subject, then phrases about it with nouns of their own, then a verb that has to agree with
the subject. Nouns in between whose number is the other one are *attractors*: who only remembers the last few words
agrees with them. A model is right where it gives the right form of the verb more probability than the wrong one.

T. Linzen, E. Dupoux and Y. Goldberg, "Assessing the ability of LSTMs to learn syntax-sensitive dependencies" (2016).

What the layers of a stacked network know: a linear probe on the states of each.

    Ŷ = [X, 1] W,    W = argmin |[X, 1] W − Y|² + ridge |W|²        Y: one-hot labels

A probe is as plain as can be, so that what it finds was there already. The answer for a word is
the largest number of its row. X: states (n, H), one row a word.

G. Alain and Y. Bengio, "Understanding intermediate layers using linear classifier probes" (2016); Y. Belinkov and
J. Glass, "Analysis methods in neural language processing" (2019).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from foreword.arrays import Ids, Reals
from foreword.errors import InputError, SettingError
from foreword.protocols import NextToken

NOUNS = ("book", "author", "picture", "student", "teacher", "letter", "doctor", "garden", "farmer", "table")
"""Singular; the plural has an s."""

VERBS = (("was", "were"), ("is", "are"), ("has been", "have been"), ("seems", "seem"), ("looks", "look"))
ADJECTIVES = ("good", "old", "new", "strange", "famous", "small")
PREPOSITIONS = ("near", "behind", "beside", "under")
ACTIONS = ("assigned", "praised", "remembered", "noticed")


@dataclass(frozen=True, slots=True)
class Sentence:
    """verb: its place among ``words``; wrong: the form that would not agree. between: how many other nouns stand before
    the verb; attractors: how many of those have the other number.
    """

    words: list[str]
    verb: int
    wrong: str
    between: int
    attractors: int


@dataclass(frozen=True, slots=True)
class Agreement:
    """The share of sentences in which the right form was the likelier one, by number of attractors; ``sentences`` says
    of how many. Half is what guessing gives.
    """

    attractors: list[int]
    right: list[float]
    sentences: list[int]

    @property
    def overall(self) -> float:
        return sum(map(float.__mul__, self.right, map(float, self.sentences))) / sum(self.sentences)


def generate_sentences(count: int, seed: int = 0, most: int = 3) -> list[Sentence]:
    """So many sentences with 0 to ``most`` phrases between subject and verb; numbers are tossed for each noun."""
    if count < 0 or most < 0:
        raise SettingError(f"count={count}, most={most}: expected 0 or more")
    random = np.random.default_rng(seed)
    return [_sentence(random, int(random.integers(most + 1))) for _ in range(count)]


def texts_of(sentences: Iterable[Sentence]) -> list[str]:
    """What a model is trained on."""
    return [" ".join(sentence.words) for sentence in sentences]


def agreement(model: NextToken[Any], sentences: Sequence[Sentence]) -> Agreement:
    """Ask a model, at the place of each verb, which form it holds the likelier."""
    groups: dict[int, list[Sentence]] = defaultdict(list)
    for sentence in sentences:
        groups[sentence.verb].append(sentence)  # those whose verbs stand at one place are read side by side
    right: dict[int, list[bool]] = defaultdict(list)
    for place, group in groups.items():
        for sentence, hit in zip(group, _agrees(model, group, place), strict=True):
            right[sentence.attractors].append(hit)
    found = sorted(right)
    return Agreement(found, [float(np.mean(right[n])) for n in found], [len(right[n]) for n in found])


def _agrees(model: NextToken[Any], group: Sequence[Sentence], place: int) -> list[bool]:
    vocab = model.vocab
    ids = np.array([vocab.ids([*sentence.words[: place + 1], sentence.wrong]) for sentence in group])
    missing = [sentence.words[place] for sentence, row in zip(group, ids, strict=True) if row[-1] == row[-2]]
    if missing:
        raise InputError(f"the model does not know the verb {missing[0]!r} in both its forms: train it on texts_of(…)")
    state = model.start(len(group))
    for step in range(place):
        state = model.advance(state, ids[:, step])
    logs = model.next_logprobs(state)
    rows = np.arange(len(group))
    agrees: list[bool] = (logs[rows, ids[:, -2]] > logs[rows, ids[:, -1]]).tolist()
    return agrees


def _sentence(random: np.random.Generator, phrases: int) -> Sentence:
    plural = bool(random.integers(2))
    words = ["the", _noun(random, plural)]
    attractors = 0
    for _ in range(phrases):
        other = bool(random.integers(2))
        attractors += other != plural
        if random.integers(2):
            words += [_one(random, PREPOSITIONS), "the", _noun(random, other)]
        else:
            words += ["that", "the", _noun(random, other), _one(random, ACTIONS)]
    forms = VERBS[int(random.integers(len(VERBS)))]
    right, *rest = forms[plural].split()
    verb = len(words)
    words += [right, *rest, _one(random, ADJECTIVES), "."]
    return Sentence(words, verb, forms[not plural].split()[0], phrases, attractors)


def _noun(random: np.random.Generator, plural: bool) -> str:
    return _one(random, NOUNS) + "s" * plural


def _one(random: np.random.Generator, words: Sequence[str]) -> str:
    return words[int(random.integers(len(words)))]


@dataclass(frozen=True, slots=True)
class Probed:
    """right: what was asked → the share of right answers from each layer, lowest first, on rows that were not learnt
    from. most_frequent: what always giving the commonest label would have right.
    """

    right: dict[str, list[float]]
    most_frequent: dict[str, float]


def probe(layers: list[Reals], asked: Mapping[str, Ids], *, train: float = 0.5, ridge: float = 1e-3) -> Probed:
    """layers: the states of each, (n, H); asked: labels (n,) of the same n words. The first share of them is learnt
    from, the rest answered.
    """
    rows = {len(states) for states in layers} | {len(labels) for labels in asked.values()}
    if len(rows) != 1:
        raise InputError(f"states and labels of {sorted(rows)} words: expected as many of each")
    count = rows.pop()
    cut = int(train * count)
    if not 0 < cut < count:
        raise InputError(f"{count} words: expected enough to learn from some and answer others")
    right: dict[str, list[float]] = {}
    common: dict[str, float] = {}
    for name, labels in asked.items():
        right[name] = [_right(states, labels, cut, ridge) for states in layers]
        common[name] = float((labels[cut:] == np.bincount(labels[:cut]).argmax()).mean())
    return Probed(right, common)


def _right(states: Reals, labels: Ids, cut: int, ridge: float) -> float:
    x = np.concatenate((np.asarray(states, np.float64), np.ones((len(states), 1))), axis=1)
    wanted = np.eye(int(labels.max()) + 1)[labels[:cut]]
    learnt = x[:cut]
    weights = np.linalg.solve(learnt.T @ learnt + ridge * cut * np.eye(x.shape[1]), learnt.T @ wanted)
    return float(((x[cut:] @ weights).argmax(axis=1) == labels[cut:]).mean())
