"""What a language model knows of syntax: subject-verb agreement, and linear probes of its layers.

Agreement: "The book that the professors assigned was …". Sentences are generated: a subject, then phrases about it with
nouns of their own, then a verb that has to agree with the subject. Nouns in between of the other number are
*attractors*: a model that only remembers the last few words agrees with them. A model is right where it gives the right
form of the verb more probability than the wrong one.

T. Linzen, E. Dupoux and Y. Goldberg, "Assessing the ability of LSTMs to learn syntax-sensitive dependencies" (2016).

Probes: what the states of each layer of a stacked network encode.

    Ŷ = [X, 1] W,    W = argmin |[X, 1] W − Y|² + ridge |W|²        Y: one-hot labels

A probe is linear, so that what it finds was there already. Its answer for a word is the largest number of the word's
row. X: states (n, H), one row per word.

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
class AgreementSentence:
    """A sentence. verb: its index in ``words``; wrong: the form that would not agree. between: the number of other
    nouns before the verb; attractors: the number of those that have the other grammatical number.
    """

    words: list[str]
    verb: int
    wrong: str
    between: int
    attractors: int


@dataclass(frozen=True, slots=True)
class Agreement:
    """The share of sentences in which the right form was the likelier one, by number of attractors, and the number of
    those sentences. Guessing gives half.
    """

    attractors: list[int]
    right: list[float]
    sentences: list[int]

    @property
    def overall(self) -> float:
        """The share over all sentences."""
        return sum(map(float.__mul__, self.right, map(float, self.sentences))) / sum(self.sentences)


def generate_sentences(count: int, seed: int = 0, most: int = 3) -> list[AgreementSentence]:
    """Generate sentences with 0 to ``most`` phrases between subject and verb; each noun's number is random."""
    if count < 0 or most < 0:
        raise SettingError(f"count={count}, most={most}: expected 0 or more")
    random = np.random.default_rng(seed)
    return [_sentence(random, int(random.integers(most + 1))) for _ in range(count)]


def texts_of(sentences: Iterable[AgreementSentence]) -> list[str]:
    """Return the sentences as texts to train a model on."""
    return [" ".join(sentence.words) for sentence in sentences]


def agreement(model: NextToken[Any], sentences: Sequence[AgreementSentence]) -> Agreement:
    """Measure which form of each verb a model holds to be the likelier."""
    groups: dict[int, list[AgreementSentence]] = defaultdict(list)
    for sentence in sentences:
        groups[sentence.verb].append(sentence)  # verbs at the same index: one batch
    right: dict[int, list[bool]] = defaultdict(list)
    for verb, group in groups.items():
        for sentence, hit in zip(group, _agrees(model, group, verb), strict=True):
            right[sentence.attractors].append(hit)
    found = sorted(right)
    return Agreement(found, [float(np.mean(right[n])) for n in found], [len(right[n]) for n in found])


def _agrees(model: NextToken[Any], group: Sequence[AgreementSentence], verb: int) -> list[bool]:
    vocab = model.vocab
    ids = np.array([vocab.ids([*sentence.words[: verb + 1], sentence.wrong]) for sentence in group])
    missing = [sentence.words[verb] for sentence, row in zip(group, ids, strict=True) if row[-1] == row[-2]]
    if missing:
        raise InputError(f"the model does not know the verb {missing[0]!r} in both its forms: train it on texts_of(…)")
    state = model.start(len(group))
    for step in range(verb):
        state = model.advance(state, ids[:, step])
    logs = model.next_logprobs(state)
    rows = np.arange(len(group))
    agrees: list[bool] = (logs[rows, ids[:, -2]] > logs[rows, ids[:, -1]]).tolist()
    return agrees


def _sentence(random: np.random.Generator, phrases: int) -> AgreementSentence:
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
    return AgreementSentence(words, verb, forms[not plural].split()[0], phrases, attractors)


def _noun(random: np.random.Generator, plural: bool) -> str:
    return _one(random, NOUNS) + "s" * plural


def _one(random: np.random.Generator, words: Sequence[str]) -> str:
    return words[int(random.integers(len(words)))]


# Probes


@dataclass(frozen=True, slots=True)
class Probed:
    """The accuracy of probes. right: task → the accuracy of each layer, lowest first, on held-out rows. most_frequent:
    task → the accuracy of always answering the most frequent label.
    """

    right: dict[str, list[float]]
    most_frequent: dict[str, float]


def probe(layers: list[Reals], asked: Mapping[str, Ids], *, train: float = 0.5, ridge: float = 1e-3) -> Probed:
    """Fit a linear probe to each layer for each task.

    layers: the states of each, (n, H); asked: task → labels (n,) of the same n words. train: the share of the words,
    the first, that is learnt from; the rest is answered.
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
