"""Analogy questions: Athens is to Greece as Oslo is to what?

A question is right if the one word with the best score is the one expected; the three that were given do not count as
answers. Two scores, on vectors of length one:

    3CosAdd    cos(x, b) − cos(x, a) + cos(x, c)                          T. Mikolov, W. Yih and G. Zweig (2013)
    3CosMul    cos'(x, b) cos'(x, c) / (cos'(x, a) + ε)                   O. Levy and Y. Goldberg (2014)

with cos' = (1 + cos) / 2. All questions of Google's set ask about some 900 words, so their cosines with the vocabulary
are one matrix product, and each question is then three rows of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

import numpy as np

from foreword.arrays import Longs
from foreword.errors import InputError, SettingError
from foreword.evaluate.folding import KnownWords
from foreword.evaluate.kernels_analogies import best_answers
from foreword.protocols import Json
from foreword.text.sources import read_lines
from foreword.vectors.wordvectors import MUL_EPSILON, Method, WordVectors

Question = tuple[str, str, str, str]

VOCABULARY = 30_000
"""Answers are looked for among so many words, the most frequent: what word2vec's own script does."""

SYNTACTIC = "gram"
"""How the names of Google's sections of grammar begin."""

BLOCK = 2048


@dataclass(frozen=True, slots=True)
class Section:
    """Questions of one kind. skipped: those with a word that is not in the vocabulary."""

    name: str
    asked: int
    right: int
    skipped: int

    @property
    def accuracy(self) -> float:
        """The share of right answers among the questions that could be asked; 0 where none could."""
        return self.right / self.asked if self.asked else 0.0

    def to_json(self) -> dict[str, Json]:
        return {
            "name": self.name,
            "accuracy": self.accuracy,
            "asked": self.asked,
            "right": self.right,
            "skipped": self.skipped,
        }


@dataclass(frozen=True, slots=True)
class AnalogyMeasures:
    """How well vectors answer analogy questions, section by section."""

    method: Method
    vocabulary: int
    sections: tuple[Section, ...]

    @property
    def total(self) -> Section:
        return _sum("total", self.sections)

    @property
    def semantic(self) -> Section:
        return _sum("semantic", [section for section in self.sections if not section.name.startswith(SYNTACTIC)])

    @property
    def syntactic(self) -> Section:
        return _sum("syntactic", [section for section in self.sections if section.name.startswith(SYNTACTIC)])

    @property
    def accuracy(self) -> float:
        return self.total.accuracy

    def to_json(self) -> dict[str, Json]:
        total = self.total
        return {
            "accuracy": total.accuracy,
            "asked": total.asked,
            "right": total.right,
            "skipped": total.skipped,
            "semantic": self.semantic.accuracy,
            "syntactic": self.syntactic.accuracy,
            "method": self.method,
            "vocabulary": self.vocabulary,
            "sections": [section.to_json() for section in self.sections],
        }


def read_questions(path: str | Path) -> dict[str, list[Question]]:
    """Google's format: sections that begin with a colon and a name, then four words a line."""
    sections: dict[str, list[Question]] = {}
    name = ""
    for number, line in enumerate(read_lines(path), 1):
        words = line.split()
        if line.startswith(":"):
            name = line[1:].strip()
            sections.setdefault(name, [])
        elif len(words) == 4:
            sections.setdefault(name, []).append((words[0], words[1], words[2], words[3]))
        elif words:
            raise InputError(f"{path}: line {number}: {len(words)} words, expected four, or a colon and a name")
    if not any(sections.values()):
        raise InputError(f"{path}: no questions: expected four words a line below lines that begin with a colon")
    return sections


def measure_analogies(
    vectors: WordVectors,
    sections: dict[str, list[Question]],
    *,
    method: Method = "add",
    vocabulary: int | None = VOCABULARY,
    ignore_case: bool = True,
    include_inputs: bool = False,
    epsilon: float = MUL_EPSILON,
) -> AnalogyMeasures:
    """Ask all questions whose words are among the first ``vocabulary``, and count the right answers.

    include_inputs: let a, b and c be answers too, which they then often are.
    """
    if method not in get_args(Method):
        raise SettingError(f"method={method!r}: expected one of {', '.join(get_args(Method))}")
    known = KnownWords(vectors, vocabulary, ignore_case=ignore_case)
    measured = []
    asked = {name: _known_questions(known, questions) for name, questions in sections.items()}
    every = np.concatenate([*asked.values(), np.empty((0, 4), np.int64)])
    answers = iter(best_words(vectors, every[:, :3], known.groups, method, exclude=not include_inputs, epsilon=epsilon))
    for name, questions in sections.items():
        wanted = asked[name][:, 3]
        found = np.fromiter(answers, np.int64, len(wanted))
        right = int((known.groups[found] == wanted).sum()) if len(wanted) else 0
        measured.append(Section(name, len(wanted), right, len(questions) - len(wanted)))
    return AnalogyMeasures(method, len(known), tuple(measured))


def best_words(
    vectors: WordVectors,
    questions: Longs,
    groups: Longs,
    method: Method,
    *,
    exclude: bool = True,
    epsilon: float = MUL_EPSILON,
) -> Longs:
    """The answer to each question (q, 3) of places a, b, c, among the first ``len(groups)`` words."""
    distinct, rows = np.unique(questions, return_inverse=True)
    rows = np.concatenate((rows.reshape(-1, 3), groups[questions].reshape(-1, 3)), axis=1).astype(np.int64)
    asked = vectors.directions(distinct)
    best = np.full(len(questions), -np.inf, np.float32)
    answers = np.zeros(len(questions), np.int64)
    product = method == "mul"
    for begin in range(0, len(groups) if len(questions) else 0, BLOCK):
        cosines = asked @ vectors.directions(slice(begin, min(begin + BLOCK, len(groups)))).T
        if product:
            cosines = (cosines + np.float32(1)) / np.float32(2)
        best_answers(cosines, begin, rows, groups, product, np.float32(epsilon), exclude, best, answers)
    return answers


def best_word_plain(
    vectors: WordVectors, question: Sequence[int], count: int, method: Method, epsilon: float = MUL_EPSILON
) -> int:
    """The same for one question, as the formula has it."""
    cosines = vectors.directions(slice(0, count)) @ vectors.directions(np.array(question)).T
    if method == "add":
        scores = cosines[:, 1] - cosines[:, 0] + cosines[:, 2]
    else:
        near = (1 + cosines) / 2
        scores = near[:, 1] * near[:, 2] / (near[:, 0] + epsilon)
    scores[list(question)] = -np.inf
    return int(scores.argmax())


def _known_questions(known: KnownWords, questions: list[Question]) -> Longs:
    """(questions, 4) places of those whose words are all known."""
    rows = (known.places(question) for question in questions)
    return np.array([row for row in rows if None not in row], np.int64).reshape(-1, 4)


def _sum(name: str, sections: Sequence[Section]) -> Section:
    columns = [(section.asked, section.right, section.skipped) for section in sections]
    return Section(name, *(sum(column) for column in zip(*columns, (0, 0, 0), strict=True)))
