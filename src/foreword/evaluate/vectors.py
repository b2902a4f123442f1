"""Evaluation of word vectors: analogy questions, and correlation with people's judgements of similarity.

Athens is to Greece as Oslo is to what? A question is right if the word with the best score is the expected one; the
three given words are no answers. Two scores, on vectors of length one:

    3CosAdd    cos(x, b) − cos(x, a) + cos(x, c)                          T. Mikolov, W. Yih and G. Zweig (2013)
    3CosMul    cos'(x, b) cos'(x, c) / (cos'(x, a) + ε)                   O. Levy and Y. Goldberg (2014)

with cos' = (1 + cos) / 2. All questions of Google's set ask about some 900 words, so their cosines with the vocabulary
are one matrix product, and each question is then three rows of it.

Similarity is Spearman's ρ between the cosine of each pair and the judgement of people: the correlation of the two
ranks, where ties share the mean of theirs (C. Spearman, "The proof and measurement of association between two things",
1904).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import get_args

import numpy as np

from foreword.arrays import Doubles, Floats, Longs, Reals
from foreword.errors import InputError, SettingError
from foreword.measures.perplexity import finite
from foreword.notebook import ShownInNotebook
from foreword.protocols import Json
from foreword.text.sources import read_lines
from foreword.vectors.kernels_nearest import best_answers
from foreword.vectors.wordvectors import MUL_EPSILON, Method, WordVectors


class KnownWords:
    """The first ``count`` words, which are the most frequent; if ``ignore_case``, of words that differ only in case the
    first represents all.

    groups: int64 (count,), the index of the word that represents each.
    """

    def __init__(self, vectors: WordVectors, count: int | None, *, ignore_case: bool) -> None:
        self._fold = str.casefold if ignore_case else str
        words = [self._fold(word) for word in (vectors if count is None else vectors.first(count)).words]
        self._indices: dict[str, int] = {}
        for index, word in enumerate(words):
            self._indices.setdefault(word, index)
        self.groups: Longs = np.array([self._indices[word] for word in words], np.int64)

    def __len__(self) -> int:
        return len(self.groups)

    def indices(self, words: Sequence[str]) -> list[int | None]:
        """Return the index of each word, None for an unknown one."""
        return [self._indices.get(self._fold(word)) for word in words]


Question = tuple[str, str, str, str]

VOCABULARY = 30_000
"""Answers are searched among the most frequent words, as many as word2vec's own script takes."""

SYNTACTIC = "gram"
"""Prefix of the names of Google's sections of grammar."""

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
        """The share of right answers among the questions that could be asked; 0 if none could."""
        return self.right / self.asked if self.asked else 0.0

    def to_json(self) -> dict[str, Json]:
        """Return the counts and the accuracy."""
        counts: dict[str, Json] = {"asked": self.asked, "right": self.right, "skipped": self.skipped}
        return {"name": self.name, "accuracy": self.accuracy, **counts}


@dataclass(frozen=True, slots=True)
class AnalogyMeasures(ShownInNotebook):
    """The accuracy of vectors on analogy questions, by section."""

    method: Method
    vocabulary: int
    sections: tuple[Section, ...]

    @property
    def total(self) -> Section:
        """All sections together."""
        return _sum("total", self.sections)

    @property
    def semantic(self) -> Section:
        """The sections on meaning."""
        return _sum("semantic", [section for section in self.sections if not section.name.startswith(SYNTACTIC)])

    @property
    def syntactic(self) -> Section:
        """The sections on grammar."""
        return _sum("syntactic", [section for section in self.sections if section.name.startswith(SYNTACTIC)])

    @property
    def accuracy(self) -> float:
        """The accuracy over all sections."""
        return self.total.accuracy

    def to_json(self) -> dict[str, Json]:
        """Return the totals and every section."""
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
    """Read Google's format: sections that begin with a colon and a name, then four words per line."""
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
        raise InputError(f"{path}: no questions: expected four words per line below lines that begin with a colon")
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
    """Answer all questions whose words are among the first ``vocabulary``, and count the right answers.

    include_inputs: allow a, b and c as answers, which they then often are.
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
    """Return the answer to each question (q, 3), indices of a, b and c, among the first ``len(groups)`` words."""
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


def plain_best_word(
    vectors: WordVectors, question: Sequence[int], count: int, method: Method, epsilon: float = MUL_EPSILON
) -> int:
    """Return the answer to one question by the formula."""
    cosines = vectors.directions(slice(0, count)) @ vectors.directions(np.array(question)).T
    if method == "add":
        scores = cosines[:, 1] - cosines[:, 0] + cosines[:, 2]
    else:
        near = (1 + cosines) / 2
        scores = near[:, 1] * near[:, 2] / (near[:, 0] + epsilon)
    scores[list(question)] = -np.inf
    return int(scores.argmax())


def _known_questions(known: KnownWords, questions: list[Question]) -> Longs:
    """Return the indices (questions, 4) of those whose words are all known."""
    rows = (known.indices(question) for question in questions)
    return np.array([row for row in rows if None not in row], np.int64).reshape(-1, 4)


def _sum(name: str, sections: Sequence[Section]) -> Section:
    columns = [(section.asked, section.right, section.skipped) for section in sections]
    return Section(name, *(sum(column) for column in zip(*columns, (0, 0, 0), strict=True)))


Pair = tuple[str, str, float]


@dataclass(frozen=True, slots=True)
class SimilarityMeasures(ShownInNotebook):
    """Correlations with people's judgements; NaN where fewer than two pairs are known, or all are alike.

    pairs: the number of pairs compared; oov: of pairs with a word without a vector.
    """

    name: str
    spearman: float
    pearson: float
    pairs: int
    oov: int

    def to_json(self) -> dict[str, Json]:
        """Return the measures with null for NaN."""
        return asdict(self) | {"spearman": finite(self.spearman), "pearson": finite(self.pearson)}


def read_pairs(path: str | Path) -> list[Pair]:
    """Read two words and a number per line, separated by white space; lines that begin with # are comments."""
    pairs: list[Pair] = []
    for number, line in enumerate(read_lines(path), 1):
        fields = line.split()
        if not fields or line.startswith("#"):
            continue
        try:
            first, second, score = fields
            pairs.append((first, second, float(score)))
        except ValueError:
            raise InputError(f"{path}: line {number}: expected two words and a number, found {line[:60]!r}") from None
    return pairs


def measure_similarity(
    vectors: WordVectors,
    pairs: Sequence[Pair],
    *,
    name: str = "",
    vocabulary: int | None = None,
    ignore_case: bool = True,
    compose: bool = False,
) -> SimilarityMeasures:
    """Compare the cosines of all pairs that have vectors with people's judgements.

    vocabulary: the number of words, the first, that count as known. compose: build the vectors of unknown words from
    their subwords if possible.
    """
    known = KnownWords(vectors, vocabulary, ignore_case=ignore_case)
    cosines, judged = [], []
    for first, second, score in pairs:
        one, other = (_direction(vectors, known, word, compose) for word in (first, second))
        if one is not None and other is not None:
            cosines.append(float(one @ other))
            judged.append(score)
    found = np.array(cosines), np.array(judged)
    return SimilarityMeasures(name, spearman(*found), pearson(*found), len(judged), len(pairs) - len(judged))


def _direction(vectors: WordVectors, known: KnownWords, word: str, compose: bool) -> Floats | None:
    index = known.indices([word])[0]
    if index is not None:
        row: Floats = vectors.directions(np.array([index]))[0]
        return row
    made = vectors.subwords.vector(word) if compose and vectors.subwords is not None else None
    return None if made is None else (made / max(float(np.linalg.norm(made)), 1e-30)).astype(np.float32)


def spearman(one: Reals, other: Reals) -> float:
    """Return the rank correlation ρ, from −1 to 1."""
    return pearson(ranks(one), ranks(other))


def ranks(values: Reals) -> Doubles:
    """Return the ranks, 1 for the least; ties have the mean of their ranks."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    means: Doubles = (ends - (counts - 1) / 2)[inverse]
    return means


def pearson(one: Reals, other: Reals) -> float:
    """Return the correlation r; NaN for fewer than two numbers or constant ones."""
    if len(one) < 2:
        return float("nan")
    a, b = one - one.mean(), other - other.mean()
    spread = float(np.sqrt((a * a).sum() * (b * b).sum()))
    return float((a * b).sum() / spread) if spread > 0 else float("nan")
