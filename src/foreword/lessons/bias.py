"""Bias in word vectors: measured, removed along one direction, and measured again.

WEAT, the word embedding association test, asks whether target words X lie nearer to attributes A, and Y to B:

    s(w) = mean cos(w, a) − mean cos(w, b)            effect = (mean s(x) − mean s(y)) / deviation of s over X and Y

with a p-value from a permutation test over all divisions of the targets, or many (A. Caliskan, J. Bryson and
A. Narayanan, "Semantics derived automatically from language corpora contain human-like biases", 2017).

Hard debiasing finds a direction g, the first principal component of pairs such as she − he, takes it out of words that
should be neutral, and moves the two words of a pair until they differ in it alone (T. Bolukbasi et al., "Man is to
computer programmer as woman is to homemaker?", 2016). That is not the end of it: words that were biased alike still lie
together (H. Gonen and Y. Goldberg, "Lipstick on a pig", 2019), and ``clustering_bias`` measures how much.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from pathlib import Path

import numpy as np

from foreword.arrays import Array, Doubles, Floats, Longs
from foreword.errors import InputError, SettingError
from foreword.protocols import Json
from foreword.text.strict_json import parse_json
from foreword.vectors.wordvectors import WordVectors

Pairs = Sequence[Sequence[str]]

EXACT = 200_000
"""Number of divisions up to which all are tried, which takes a fraction of a second."""

SAMPLED = 100_000
"""Divisions that are sampled where there are more."""

BLOCK = 1 << 14
"""Rows that are converted to float64 at a time."""

ALIKE = 1e-9
"""Sums that differ by less than this are the same, added up in another order."""


@dataclass(frozen=True, slots=True)
class WordSets:
    """The four lists of an association test: targets x and y, attributes a and b, and what each is about."""

    x: tuple[str, ...]
    y: tuple[str, ...]
    a: tuple[str, ...]
    b: tuple[str, ...]
    names: tuple[str, str, str, str] = ("X", "Y", "A", "B")


@dataclass(frozen=True, slots=True)
class Association:
    """The result of WEAT. missing: words of the lists that have no vector. exact: whether all divisions were tried."""

    effect: float
    statistic: float
    p_value: float
    exact: bool
    sizes: tuple[int, int, int, int]
    missing: tuple[str, ...]

    def to_json(self) -> dict[str, Json]:
        """Return the result as JSON can hold it."""
        return asdict(self) | {"sizes": list(self.sizes), "missing": list(self.missing)}


def read_word_sets(path: str | Path) -> WordSets:
    """Read a file of the "sent-bias" collection: targ1, targ2, attr1 and attr2, each with its examples."""
    try:
        found = parse_json(Path(path).read_bytes())
        parts = [found[name] for name in ("targ1", "targ2", "attr1", "attr2")]
        lists = [tuple(str(word) for word in part["examples"]) for part in parts]
        names = [str(part["category"]) for part in parts]
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(
            f"{path}: expected a JSON object with targ1, targ2, attr1 and attr2, each with examples"
        ) from error
    return WordSets(lists[0], lists[1], lists[2], lists[3], (names[0], names[1], names[2], names[3]))


def known_words(vectors: WordVectors, words: Sequence[str]) -> list[str]:
    """Return the words that have a vector, each once, as they are spelled or else in lower case."""
    found: dict[str, None] = {}
    for word in words:
        spelled = next((each for each in (word, word.lower()) if each in vectors), None)
        if spelled is not None:
            found.setdefault(spelled)
    return list(found)


def weat(vectors: WordVectors, sets: WordSets, *, samples: int = SAMPLED, seed: int = 0) -> Association:
    """Measure the association of x with a and of y with b.

    The deviation is that of a sample (n − 1). The p-value is one-sided: the share of divisions of the targets, the
    given one among them, that are at least as far apart.
    """
    lists = [known_words(vectors, words) for words in (sets.x, sets.y, sets.a, sets.b)]
    x, y, a, b = (_directions(vectors, words) for words in lists)
    missing = [word for words in (sets.x, sets.y, sets.a, sets.b) for word in words if not known_words(vectors, [word])]
    if not (len(x) and len(y) and len(a) and len(b)) or len(x) + len(y) < 3:
        raise InputError(
            f"too few of the words have vectors: {', '.join(str(len(each)) for each in lists)} of the four lists"
        )
    of_x, of_y = associations(x, a, b), associations(y, a, b)
    together = np.concatenate((of_x, of_y))
    deviation = float(together.std(ddof=1))
    effect = float(of_x.mean() - of_y.mean()) / deviation if deviation > 0 else 0.0
    p_value, exact = _p_value(together, len(of_x), samples, seed)
    sizes = (len(x), len(y), len(a), len(b))
    return Association(effect, float(of_x.sum() - of_y.sum()), p_value, exact, sizes, tuple(missing))


def associations(targets: Array, a: Array, b: Array) -> Doubles:
    """Return s(w) of each target; all vectors have length one."""
    nearer: Doubles = (targets @ a.T).mean(axis=1) - (targets @ b.T).mean(axis=1)
    return nearer


def _p_value(scores: Doubles, first: int, samples: int, seed: int) -> tuple[float, bool]:
    """Return how often a random choice of ``first`` scores adds up to as much; the sum of all is fixed."""
    observed = scores[:first].sum() - ALIKE
    ways = math.comb(len(scores), first)
    if ways <= EXACT:
        chosen = np.array(list(combinations(range(len(scores)), first)), np.int64)
        return float((scores[chosen].sum(axis=1) >= observed).mean()), True
    rng = np.random.default_rng(seed)
    as_far = 1
    for begin in range(0, samples, 10_000):
        shuffled = rng.permuted(np.tile(scores, (min(10_000, samples - begin), 1)), axis=1)
        as_far += int((shuffled[:, :first].sum(axis=1) >= observed).sum())
    return as_far / (samples + 1), False


# The direction


def bias_direction(vectors: WordVectors, pairs: Pairs) -> Doubles:
    """Return the first principal component of the differences within the pairs, (d,), of length one.

    It points from the second words to the first: from he to she for pairs (she, he).
    """
    known = _known_pairs(vectors, pairs)
    if not known:
        raise InputError(f"none of the {len(pairs)} pairs has vectors for both words")
    first, second = (_directions(vectors, [pair[side] for pair in known]) for side in (0, 1))
    half = (first - second) / 2
    _, _, components = np.linalg.svd(np.concatenate((half, -half)), full_matrices=False)
    direction: Doubles = components[0]
    return direction if float(half.mean(axis=0) @ direction) >= 0 else -direction


def projections(vectors: WordVectors, words: Sequence[str], direction: Doubles) -> Doubles:
    """Return cos(w, g) of each word."""
    return _directions(vectors, words) @ direction


def direct_bias(vectors: WordVectors, words: Sequence[str], direction: Doubles, strictness: float = 1.0) -> float:
    """Return the mean of |cos(w, g)|^c over words that should be neutral; c < 1 gives small biases more weight."""
    known = known_words(vectors, words)
    if not known:
        raise InputError("none of the words has a vector")
    if strictness < 0:
        raise SettingError(f"strictness={strictness}: expected a number from 0 on")
    return float((np.abs(projections(vectors, known, direction)) ** strictness).mean())


# Removing it


def debias(vectors: WordVectors, direction: Doubles, specific: Sequence[str] = (), equal: Pairs = ()) -> WordVectors:
    """Return vectors of length one without the direction, except in words that are about it.

    specific: words that keep it, such as mother. equal: pairs that differ in it alone afterwards, and are equally far
    from every neutral word.
    """
    if direction.shape != (vectors.dimensions,):
        raise SettingError(f"a direction of shape {direction.shape} for vectors of {vectors.dimensions} dimensions")
    pairs = _known_pairs(vectors, equal)
    kept = [*known_words(vectors, specific), *(word for pair in pairs for word in pair)]
    neutral = np.ones(len(vectors), bool)
    neutral[vectors.places(kept)] = False
    matrix: Floats = vectors.directions()
    for begin in range(0, len(matrix), BLOCK):
        chosen = begin + np.flatnonzero(neutral[begin : begin + BLOCK])
        matrix[chosen] = _without(matrix[chosen].astype(np.float64), direction)
    for pair in pairs:
        places = vectors.places(pair)
        matrix[places] = _equalised(matrix[places].astype(np.float64), direction)
    return WordVectors(matrix, vectors.data, vectors.offsets, missing=vectors.missing)


def _without(rows: Doubles, direction: Doubles) -> Doubles:
    """Remove the component along a direction, and scale the rows to length one again."""
    left: Doubles = rows - np.outer(rows @ direction, direction)
    lengths = np.linalg.norm(left, axis=1, keepdims=True)
    left /= np.where(lengths > 0, lengths, 1)
    return left


def _equalised(pair: Doubles, direction: Doubles) -> Doubles:
    """Move both words to their mean without the direction, and as far apart along it as length one allows."""
    middle = pair.mean(axis=0)
    shared = middle - (middle @ direction) * direction
    reach = math.sqrt(max(0.0, 1 - float(shared @ shared)))
    sides = pair @ direction - middle @ direction
    apart: Doubles = shared + np.outer(np.sign(sides), direction) * reach
    return apart


def swapped(text: str, pairs: Pairs) -> str:
    """Return a text with the two words of each pair exchanged; a word in several pairs goes by the first.

    A text next to its swapped copy says of he what it says of she (J. Zhao et al., "Gender bias in coreference
    resolution", 2018).
    """
    other: dict[str, str] = {}
    for one, two in pairs:
        other.setdefault(one, two)
        other.setdefault(two, one)
    return " ".join(other.get(word, word) for word in text.split(" "))


# What is left


def clustering_bias(
    before: WordVectors, after: WordVectors, direction: Doubles, words: Sequence[str], count: int = 500, seed: int = 0
) -> float:
    """Return how well two clusters of debiased vectors still predict the side of a word: 0.5 not at all, 1 perfectly.

    The ``count`` words furthest to either side before debiasing are clustered by k-means on their vectors after it.
    """
    known = known_words(before, words)
    leaning = np.argsort(projections(before, known, direction), kind="stable")
    count = min(count, len(known) // 2)
    if count < 1:
        raise InputError("fewer than two of the words have vectors: nothing to divide")
    chosen = np.concatenate((leaning[:count], leaning[-count:]))
    side = np.repeat([0, 1], count)
    found = two_means(_directions(after, [known[index] for index in chosen]), seed)
    agreed = float((found == side).mean())
    return max(agreed, 1 - agreed)


def two_means(rows: Doubles, seed: int = 0, tries: int = 10, rounds: int = 100) -> Longs:
    """Return the cluster of each row, 0 or 1, by Lloyd's algorithm: the best of several random starts."""
    rng = np.random.default_rng(seed)
    best, least = np.zeros(len(rows), np.int64), math.inf
    for _ in range(tries):
        centres = rows[rng.choice(len(rows), 2, replace=False)]
        inside = np.full(len(rows), -1)
        for _ in range(rounds):
            distances = ((rows[:, None] - centres[None]) ** 2).sum(axis=2)
            nearer = distances.argmin(axis=1)
            if np.array_equal(nearer, inside):
                break
            inside = nearer
            centres = np.stack(
                [rows[inside == each].mean(axis=0) if (inside == each).any() else centres[each] for each in (0, 1)]
            )
        spread = float(distances.min(axis=1).sum())
        if spread < least:
            best, least = inside, spread
    return best


def _directions(vectors: WordVectors, words: Sequence[str]) -> Doubles:
    """Return the vectors (words, d), each of length one."""
    return vectors.directions(vectors.places(words)).astype(np.float64)


def _known_pairs(vectors: WordVectors, pairs: Pairs) -> list[tuple[str, str]]:
    known = []
    for pair in pairs:
        if len(pair) != 2:
            raise InputError(f"{list(pair)} is not a pair of words")
        found = [known_words(vectors, [word]) for word in pair]
        if found[0] and found[1] and found[0] != found[1]:
            known.append((found[0][0], found[1][0]))
    return known
