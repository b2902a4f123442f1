"""BLEU and chrF: how much of a translation its references contain, from 0 to 100.

    BLEU = min(1, exp(1 − r / h)) · (Π_(n≤4) p_n)^(1/4)

p_n: the share of the translation's n-grams that are in a reference, each counted as often as there at most, over the
whole text; h and r: its length and that of the references nearest in length. The text is tokenized as by NIST's
mteval-v13a, and a share of zero becomes 1 / 2, the next 1 / 4, … of an n-gram (``exp`` smoothing).

    chrF = (1 + β²) P R / (β² P + R),    β = 2

P and R: precision and recall of character n-grams, n up to 6, blanks left out, averaged over n; chrF++ has words and
pairs of words as well. Of several references each sentence uses the one that fits best.

K. Papineni, S. Roukos, T. Ward and W.-J. Zhu, "BLEU" (2002); C.-Y. Lin and F. Och, "Orange" (2004) and B. Chen and
C. Cherry, "A systematic comparison of smoothing techniques for sentence-level BLEU" (2014) for smoothing; M. Popović,
"chrF" (2015) and "chrF++" (2017); M. Post, "A call for clarity in reporting BLEU scores" (2018) for the signature,
which says how a score was made.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, NamedTuple

import numpy as np

import foreword
from foreword.errors import InputError, SettingError
from foreword.measures.bootstrap import interval, resampled_sums

ORDER = 4
"""BLEU's longest n-grams."""

Lines = Sequence[str]

# mteval-v13a's own passes, in its order: each takes the line as the one before has left it, and a sign that one match
# has used up begins no other, so that of two points before a digit the second stays with it.
_CUTS = (
    (re.compile(r"""[!"#$%&()*+/:;<=>?@[\\\]^_`{|}~]"""), r" \g<0> "),
    (re.compile(r"([^0-9])([.,])"), r"\1 \2 "),
    (re.compile(r"([.,])([^0-9])"), r" \1 \2"),
    (re.compile(r"(?<=[0-9])-"), " - "),
)
_ENTITIES = (("&quot;", '"'), ("&amp;", "&"), ("&lt;", "<"), ("&gt;", ">"))
_PUNCTUATION = frozenset("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")


@dataclass(frozen=True, slots=True)
class Score:
    """A score from 0 to 100 and its signature."""

    name: str
    score: float
    signature: str

    def __str__(self) -> str:
        return f"{self.name}|{self.signature} = {self.score:.2f}"


@dataclass(frozen=True, slots=True)
class BLEU(Score):
    """BLEU. precisions: of 1- to 4-grams, in percent, smoothed; lengths in words."""

    precisions: tuple[float, ...]
    brevity: float
    length: int
    reference_length: int


class _Matches(NamedTuple):
    """N-gram statistics that add up over sentences: lengths, and for each n the matching and all n-grams."""

    length: int
    reference_length: int
    right: tuple[int, ...]
    total: tuple[int, ...]


def tokens_13a(line: str) -> list[str]:
    """Split a line as mteval-v13a does.

    Punctuation stands alone, but for apostrophes, dashes that follow no digit, and points and commas between digits.
    """
    line = line.replace("<skipped>", "").replace("-\n", "").replace("\n", " ")
    for entity, sign in _ENTITIES:
        line = line.replace(entity, sign)
    line = f" {line} "
    for pattern, cut in _CUTS:
        line = pattern.sub(cut, line)
    return line.split()


def bleu(translations: Lines, *references: Lines, lowercase: bool = False) -> BLEU:
    """Return the BLEU of a text, line by line against one or more references of the same length."""
    matches = [_matches(line, *others, lowercase=lowercase) for line, *others in _aligned(translations, references)]
    return _bleu(_added(matches), len(references), lowercase, effective=False)


def sentence_bleu(translation: str, *references: str, lowercase: bool = False) -> BLEU:
    """Return the BLEU of one sentence; n-grams longer than the sentence are left out of the mean."""
    _check_references(references)
    return _bleu(_matches(translation, *references, lowercase=lowercase), len(references), lowercase, effective=True)


def chrf(translations: Lines, *references: Lines, word_order: int = 0, lowercase: bool = False) -> Score:
    """Return the chrF of a text; with ``word_order=2`` it is chrF++."""
    _check_word_order(word_order)
    rows = [_best_counts(line, others, word_order, lowercase) for line, *others in _aligned(translations, references)]
    added = [tuple(sum(column) for column in zip(*orders, strict=True)) for orders in zip(*rows, strict=True)]
    return _chrf(added, len(references), word_order, lowercase)


def sentence_chrf(translation: str, *references: str, word_order: int = 0, lowercase: bool = False) -> Score:
    """Return the chrF of one sentence."""
    _check_word_order(word_order)
    _check_references(references)
    return _chrf(_best_counts(translation, references, word_order, lowercase), len(references), word_order, lowercase)


def bleu_interval(translations: Lines, *references: Lines, seed: int = 0) -> tuple[float, float]:
    """Return the 95 % interval of BLEU, by the bootstrap over lines."""
    matches = [_matches(line, *others, lowercase=False) for line, *others in _aligned(translations, references)]
    rows = np.array([[each.length, each.reference_length, *each.right, *each.total] for each in matches], np.float64)
    scores = []
    for length, reference_length, *counts in (draw.astype(int).tolist() for draw in resampled_sums(rows, seed=seed)):
        drawn = _Matches(length, reference_length, tuple(counts[:ORDER]), tuple(counts[ORDER:]))
        scores.append(_bleu(drawn, len(references), lowercase=False, effective=False).score)
    return interval(scores)


def chrf_interval(translations: Lines, *references: Lines, seed: int = 0) -> tuple[float, float]:
    """Return the 95 % interval of chrF, by the bootstrap over lines."""
    rows = [_best_counts(line, others, 0, False) for line, *others in _aligned(translations, references)]
    return interval([_f_score(draw.tolist()) for draw in resampled_sums(np.array(rows, np.float64), seed=seed)])


# BLEU


def _matches(line: str, *references: str, lowercase: bool) -> _Matches:
    """Count the n-grams of a line and those that match a reference."""
    words, *others = (tokens_13a((text.lower() if lowercase else text).rstrip()) for text in (line, *references))
    right = []
    for n in range(1, ORDER + 1):
        most: Counter[tuple[str, ...]] = Counter()
        for other in others:
            most |= Counter(_ngrams(other, n))
        right.append((Counter(_ngrams(words, n)) & most).total())
    nearest = min((len(other) for other in others), key=lambda length: (abs(length - len(words)), length))
    total = tuple(max(len(words) - n, 0) for n in range(ORDER))
    return _Matches(len(words), nearest, tuple(right), total)


def _ngrams(words: Sequence[str], n: int) -> Iterator[tuple[str, ...]]:
    """Count the n-grams of words."""
    return zip(*(words[start:] for start in range(n)), strict=False)


def _added(matches: Sequence[_Matches]) -> _Matches:
    """Add up the statistics of sentences."""
    lengths, references, right, total = zip(*matches, strict=True)
    return _Matches(sum(lengths), sum(references), _summed(right), _summed(total))


def _summed(rows: Iterable[tuple[int, ...]]) -> tuple[int, ...]:
    """Add up columns."""
    return tuple(sum(column) for column in zip(*rows, strict=True))


def _bleu(matches: _Matches, references: int, lowercase: bool, *, effective: bool) -> BLEU:
    """Return BLEU from the statistics of a text."""
    length, reference_length, right, total = matches
    precisions = _smoothed(right, total)
    brevity = 1.0
    if length < reference_length:
        brevity = math.exp(1 - reference_length / length) if length else 0.0
    counted = precisions[: sum(count > 0 for count in total)] if effective else precisions
    score = 0.0
    if counted and all(counted):
        score = brevity * math.exp(sum(map(math.log, counted)) / len(counted))
    return BLEU(
        "BLEU",
        score,
        _signature(references, lowercase, f"eff:{'yes' if effective else 'no'}", "tok:13a", "smooth:exp"),
        precisions,
        brevity,
        length,
        reference_length,
    )


def _smoothed(right: Sequence[int], total: Sequence[int]) -> tuple[float, ...]:
    """Return percentages; the first zero counts as half an n-gram, the next as a quarter. All zero if all are."""
    precisions, part = [], 1.0
    for matched, count in zip(right, total, strict=True):
        if count == 0 or not any(right):
            precisions.append(0.0)
            continue
        part /= 1 if matched else 2
        precisions.append(100 * (matched or part) / count)
    return tuple(precisions)


# chrF

CHARACTERS, BETA = 6, 2

_Counts = Sequence[tuple[int, ...]]
"""For each order: n-grams in the translation, in the reference, in both."""


def _best_counts(line: str, references: Sequence[str], word_order: int, lowercase: bool) -> _Counts:
    own, *others = (_grams(text.lower() if lowercase else text, word_order) for text in (line, *references))
    choices = [[_compared(*pair) for pair in zip(own, other, strict=True)] for other in others]
    return max(choices, key=_f_score)


def _grams(line: str, word_order: int) -> list[Counter[Any]]:
    letters, words = "".join(line.split()), list(_cut_words(line))
    found: list[Counter[Any]] = [
        Counter(letters[start : start + n] for start in range(len(letters) - n + 1)) for n in range(1, CHARACTERS + 1)
    ]
    return found + [Counter(_ngrams(words, n)) for n in range(1, word_order + 1)]


def _cut_words(line: str) -> Iterator[str]:
    """Split into words, with one punctuation mark cut off each: the last, or if there is none the first."""
    for word in line.split():
        if len(word) > 1 and word[-1] in _PUNCTUATION:
            yield from (word[:-1], word[-1])
        elif len(word) > 1 and word[0] in _PUNCTUATION:
            yield from (word[0], word[1:])
        else:
            yield word


def _compared(own: Counter[Any], other: Counter[Any]) -> tuple[int, ...]:
    """Count the n-grams of the translation (0 where the reference has none), of the reference, and of both."""
    right = sum(min(count, other[gram]) for gram, count in own.items() if gram in other)
    return own.total() if other else 0, other.total(), right


def _f_score(counts: _Counts) -> float:
    """Return the F score averaged over n, rounded as sacreBLEU's: that decides between references that fit alike."""
    pairs = [(right / own, right / other) for own, other, right in counts if own and other]
    precision, recall = (sum(column) / len(pairs) for column in zip(*pairs, strict=True)) if pairs else (0.0, 0.0)
    weighted = BETA**2 * precision + recall
    return 100 * ((1 + BETA**2) * precision * recall / weighted) if weighted else 0.0


def _chrf(counts: _Counts, references: int, word_order: int, lowercase: bool) -> Score:
    parts = ("eff:yes", f"nc:{CHARACTERS}", f"nw:{word_order}", "space:no")
    return Score(f"chrF{BETA}{'+' * word_order}", _f_score(counts), _signature(references, lowercase, *parts))


# Both


def _signature(references: int, lowercase: bool, *parts: str) -> str:
    """Return the signature in sacreBLEU's terms, so that scores can be compared; the version is ours."""
    case = "lc" if lowercase else "mixed"
    return "|".join([f"nrefs:{references}", f"case:{case}", *parts, f"version:foreword-{foreword.__version__}"])


def _aligned(translations: Lines, references: Sequence[Lines]) -> Iterator[tuple[str, ...]]:
    """Yield each translation with its references."""
    _check_references(references)
    if isinstance(translations, str) or any(isinstance(lines, str) for lines in references):
        raise InputError("expected lists of lines but got a single string: for one sentence there is sentence_bleu")
    if not translations:
        raise InputError("there is no line to score")
    for number, row in enumerate(zip_longest(translations, *references), 1):
        if None in row:
            sizes = " and ".join(str(len(lines)) for lines in references)
            raise InputError(
                f"{len(translations)} lines are translated but the references have {sizes}: no pair for line {number}"
            )
        yield row


def _check_references(references: Sequence[object]) -> None:
    if not references:
        raise InputError("expected at least one reference")


def _check_word_order(word_order: int) -> None:
    if word_order < 0:
        raise SettingError(f"word_order={word_order} must be 0 for chrF, 2 for chrF++, or another positive number")
