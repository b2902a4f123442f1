"""The hidden Markov tagger: the states are tags, seen in training, and the likeliest path through them is the answer.

    tags = argmax Π p(t_n | t_(n-2), t_(n-1)) p(w_n | t_n)

Transitions mix three orders, λ₁ p(t₃) + λ₂ p(t₃ | t₂) + λ₃ p(t₃ | t₁, t₂), with weights by deleted interpolation: each
trigram that occurred is taken out once, and its weight goes to the order that would then have foreseen it best. With
``order=2`` the first two are mixed. A tag goes together with whether its word is capitalised, which tells sentence
beginnings from names, and the ends of a sentence are a tag of their own.

What is known of a word is p(t | w), turned round by Bayes: p(w | t) ∝ p(t | w) / p(t). It is backed off in steps,
(count(w, t) + weight · p(t | shorter)) / (count(w) + weight), from the word to the word in small letters, to its ending
of four letters, of three, and so on down to no letters, the endings being counted among rare words, for only those are
like unknown ones. So an unknown word starts at the longest step that is known. All steps are tables made in ``fit``;
tagging only looks them up.

T. Brants, "TnT – a statistical part-of-speech tagger", ANLP 2000. There the steps of an ending weigh the same whatever
their counts, endings have up to ten letters, and words seen in training do not back off. On the validation part of UD
English-EWT four letters were better than six by 0.1 points, and the step in small letters was worth 0.1.
Shapes: T = tags, N = words; a label is a tag with its capitalisation, or the place outside a sentence: 2T + 1 of them.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import chain, pairwise
from typing import Any, Self

import numpy as np

from foreword.arrays import Array, Bytes, Doubles, Logs, Longs
from foreword.errors import InputError, NotFittedError, SettingError
from foreword.protocols import Json, Parts, Sentences, Tags
from foreword.tag import kernels_hmm as kernels
from foreword.tag.accuracy import Accuracies, accuracies_of, check_pairs
from foreword.tag.conllu import column_place
from foreword.tag.kernels_hmm import Lexicon

FAR_BEHIND = 1e-3
"""A tag this many times less likely than a word's best is not tried. At 1e-5 nothing changed but the speed."""


LEAST_WEIGHT = 1e-4
"""Of an order. In a text of a few sentences the longest may always foresee best, and then nothing new were possible."""


class HMMTagger:
    """A supervised tagger of words.

    order: 3 looks at the two tags before, 2 at the one before.
    ending: letters of the longest ending that is counted.
    rare: a word seen at most this often shows what unknown words are like.
    word_weight, folded_weight, ending_weight: how much each step listens to the one below it, in counts.
    column: which column of a CoNLL-U file the tags are; only files care.
    tags_: the tags, sorted. weights_: λ₁, λ₂ and, with order 3, λ₃.
    """

    def __init__(
        self,
        order: int = 3,
        *,
        ending: int = 4,
        rare: int = 10,
        word_weight: float = 0.3,
        folded_weight: float = 1.0,
        ending_weight: float = 3.0,
        column: str = "upos",
    ) -> None:
        self.order = order
        self.ending = ending
        self.rare = rare
        self.word_weight = word_weight
        self.folded_weight = folded_weight
        self.ending_weight = ending_weight
        self.column = column
        self._tags: list[str] | None = None

    def __repr__(self) -> str:
        return f"HMMTagger(order={self.order})"

    @property
    def tags_(self) -> list[str]:
        if self._tags is None:
            raise NotFittedError(self, "sentences, tags")
        return self._tags

    def fit(self, sentences: Sentences, tags: Tags) -> Self:
        self._check_settings()
        check_pairs(sentences, tags)
        words, names = list(chain.from_iterable(sentences)), list(chain.from_iterable(tags))
        if not words:
            raise InputError("the training text is empty: a tagger needs at least one sentence with its tags")
        found = sorted(set(names))
        number = {name: place for place, name in enumerate(found)}
        numbers = np.array([number[name] for name in names])
        weights, moves = self._transitions(sentences, numbers, len(found))
        steps = self._steps(words, numbers, len(found))
        lexicon = _lexicon((row for step in steps for row in step.values()), np.bincount(numbers) / len(numbers))
        return self._take(found, weights, moves, lexicon, [list(step) for step in steps])

    def predict(self, sentences: Sentences) -> list[list[str]]:
        names = np.array(self.tags_, dtype=object)
        codes, offsets = self._codes_of(sentences)
        numbers = np.empty(len(codes), np.int32)
        kernels.likeliest_tags(codes, offsets, self._lexicon, self._moves, len(names), self._room(offsets), numbers)
        tags: list[str] = names[numbers].tolist()
        return [tags[start:stop] for start, stop in pairwise(offsets.tolist())]

    def predict_log_proba(self, sentences: Sentences) -> list[Logs]:
        """(length, T) for each sentence: log p(t_n = t | the whole sentence), minus infinity for tags not tried."""
        kinds = len(self.tags_)
        codes, offsets = self._codes_of(sentences)
        posteriors = np.zeros((len(codes), kinds))
        later, earlier = np.empty((kinds, kinds)), np.empty((kinds, kinds))
        chances, room = np.exp(self._moves), self._room(offsets)
        kernels.tag_posteriors(codes, offsets, self._lexicon, chances, kinds, room, later, earlier, posteriors)
        with np.errstate(divide="ignore"):
            logs = np.log(posteriors)
        return [logs[start:stop] for start, stop in pairwise(offsets.tolist())]

    def score(self, sentences: Sentences, tags: Tags) -> float:
        """The share of tags that are right."""
        return self.accuracies(sentences, tags).all

    def accuracies(self, sentences: Sentences, tags: Tags) -> Accuracies:
        """The share of tags that are right, known and unknown words apart."""
        check_pairs(sentences, tags)
        return accuracies_of(self.predict(sentences), sentences, tags, self.knows)

    def knows(self, word: str) -> bool:
        """Whether the word, written like this, was seen in training."""
        _ = self.tags_
        return word in self._codes

    # Learning

    def _transitions(self, sentences: Sentences, numbers: Longs, kinds: int) -> tuple[Doubles, Doubles]:
        """(order,) weights and (2T + 1,) ** 3 log-probabilities, the third label's given the first and the second."""
        trigrams = _count_trigrams(sentences, numbers, kinds)
        bigrams, unigrams = trigrams.sum(axis=0), trigrams.sum(axis=(0, 1))
        weights = np.maximum(deleted_interpolation(trigrams)[: self.order], LEAST_WEIGHT)
        weights = weights / weights.sum()
        # One more of each label, so that none is impossible: a capitalised tag may be new.
        chances = weights[0] * (unigrams + 1) / (unigrams + 1).sum() + weights[1] * _shares(bigrams)
        chances = np.broadcast_to(chances, trigrams.shape)
        if self.order == 3:
            chances = chances + weights[2] * _shares(trigrams)
        return weights, np.log(chances)

    def _steps(self, words: Sequence[str], numbers: Longs, kinds: int) -> tuple[_Step, _Step, _Step]:
        """p(t | word), p(t | word in small letters) and p(t | ending), each backed off to the next."""
        exact, folded, endings = (defaultdict[str, Doubles](lambda: np.zeros(kinds)) for _ in range(3))
        for word, number in zip(words, numbers.tolist(), strict=True):
            exact[word][number] += 1
            folded[word.lower()][number] += 1
        for word, counts in exact.items():
            if counts.sum() <= self.rare:
                for ending in self._endings(word.lower()):
                    endings[ending] += counts
        if "" not in endings:  # no word is rare: then an unknown one is like any
            endings[""] += np.bincount(numbers, minlength=kinds)
        by_ending: _Step = {}
        for ending in sorted(endings, key=len):
            shorter = by_ending[ending[1:]] if ending else np.full(kinds, 1 / kinds)
            by_ending[ending] = _backed_off(endings[ending], shorter, self.ending_weight)
        by_folded = {
            word: _backed_off(counts, self._longest(word, by_ending), self.folded_weight)
            for word, counts in folded.items()
        }
        by_word = {
            word: _backed_off(counts, by_folded[word.lower()], self.word_weight) for word, counts in exact.items()
        }
        return by_word, by_folded, by_ending

    def _endings(self, folded: str) -> Iterable[str]:
        """From the longest that is counted to the empty one."""
        return (folded[start:] for start in range(max(len(folded) - self.ending, 0), len(folded) + 1))

    def _longest(self, folded: str, known: dict[str, Any]) -> Any:
        return next(known[ending] for ending in self._endings(folded) if ending in known)

    # Looking up

    def _codes_of(self, sentences: Sentences) -> tuple[Longs, Longs]:
        """(N,) what the kernels know words by, and (sentences + 1,) where sentences begin."""
        _ = self.tags_
        lengths = np.fromiter(map(len, sentences), np.int64, len(sentences))
        offsets = np.concatenate((np.zeros(1, np.int64), np.cumsum(lengths)))
        words = chain.from_iterable(sentences)
        return np.fromiter(map(self._codes.__getitem__, words), np.int64, int(offsets[-1])), offsets

    def _guess(self, word: str) -> int:
        """The code of a word that was not seen written like this."""
        folded = word.lower()
        entry = self._folded.get(folded)
        if entry is None:
            entry = self._longest(folded, self._by_ending)
        return 2 * int(entry) + _capitalised(word)

    def _room(self, offsets: Longs) -> kernels.Lattice:
        return kernels.lattice(int(np.diff(offsets).max(initial=0)), len(self.tags_))

    # Keeping and saving

    def _take(
        self, tags: list[str], weights: Doubles, moves: Doubles, lexicon: Lexicon, names: Sequence[Sequence[str]]
    ) -> Self:
        """names: the words, the words in small letters, and the endings; entries are numbered through all of them."""
        self._tags = tags
        self.weights_ = weights
        self._moves = _frozen(moves)
        self._lexicon = Lexicon(_frozen(lexicon.rows), _frozen(lexicon.tags), _frozen(lexicon.logs))
        self._names = names
        words, folded, endings = names
        self._codes = _Codes(self._guess)
        self._codes.update((word, 2 * entry + _capitalised(word)) for entry, word in enumerate(words))
        self._folded = {word: entry for entry, word in enumerate(folded, len(words))}
        self._by_ending = {ending: entry for entry, ending in enumerate(endings, len(words) + len(folded))}
        return self

    def to_parts(self) -> Parts:
        settings: dict[str, Json] = {
            "tags": list[Json](self.tags_),
            "order": self.order,
            "ending": self.ending,
            "rare": self.rare,
            "word_weight": float(self.word_weight),
            "folded_weight": float(self.folded_weight),
            "ending_weight": float(self.ending_weight),
            "column": self.column,
            "entries": [len(names) for names in self._names],
        }
        strings = [name.encode(errors="surrogatepass") for name in chain.from_iterable(self._names)]
        arrays = {
            "weights": self.weights_,
            "moves": self._moves,
            "rows": self._lexicon.rows,
            "tags": self._lexicon.tags,
            "logs": self._lexicon.logs,
            "names": np.frombuffer(b"".join(strings), np.uint8),
            "name_offsets": np.cumsum([0, *map(len, strings)], dtype=np.int64),
        }
        return Parts(settings, arrays)

    @classmethod
    def from_parts(cls, parts: Parts) -> Self:
        settings: dict[str, Any] = dict(parts.settings)
        tags, sizes = settings.pop("tags"), settings.pop("entries")
        model = cls(**settings)
        model._check_settings()
        arrays = {name: parts.arrays[name] for name in _ARRAYS}
        _check_tags(tags)
        _check_arrays(arrays, model.order, len(tags))
        entries = len(arrays["rows"]) - 1
        if not (isinstance(sizes, list) and len(sizes) == 3 and sum(sizes) == entries and min(sizes) > 0):
            raise ValueError(f"'entries' must be three positive numbers that sum to {entries}")
        strings = _strings(arrays["names"], arrays["name_offsets"], entries)
        names = [strings[: sizes[0]], strings[sizes[0] : sizes[0] + sizes[1]], strings[sizes[0] + sizes[1] :]]
        if "" not in names[2]:
            raise ValueError("the empty ending is missing")
        lexicon = Lexicon(arrays["rows"], arrays["tags"], arrays["logs"])
        return model._take(tags, arrays["weights"], arrays["moves"], lexicon, names)

    def _check_settings(self) -> None:
        if self.order not in (2, 3):
            raise SettingError(f"order={self.order} must be 2 or 3")
        for name, least in (("ending", 0), ("rare", 0)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise SettingError(f"{name}={value} must be a whole number, at least {least}")
        for name in ("word_weight", "folded_weight", "ending_weight"):
            value = getattr(self, name)
            if not (isinstance(value, int | float) and math.isfinite(value) and value >= 0):
                raise SettingError(f"{name}={value} must be zero or a positive number")
        column_place(self.column)


_Step = dict[str, Doubles]


class _Codes(dict[str, int]):
    """Known words and their codes. Others are guessed anew each time, so that no text makes it grow."""

    def __init__(self, guess: Any) -> None:
        super().__init__()
        self._guess = guess

    def __missing__(self, word: str) -> int:
        code: int = self._guess(word)
        return code


def deleted_interpolation(trigrams: Doubles) -> Doubles:
    """(3,) weights of unigrams, bigrams and trigrams, from the counts of trigrams alone (Brants 2000, figure 1)."""
    bigrams, unigrams = trigrams.sum(axis=0), trigrams.sum(axis=(0, 1))
    first, second, third = np.nonzero(trigrams)
    counts = trigrams[first, second, third]
    without = np.stack(
        [
            (unigrams[third] - 1) / max(unigrams.sum() - 1, 1),
            (bigrams[second, third] - 1) / np.maximum(bigrams.sum(axis=1)[second] - 1, 1),
            (counts - 1) / np.maximum(trigrams.sum(axis=2)[first, second] - 1, 1),
        ]
    )
    longest_best = 2 - without[::-1].argmax(axis=0)  # among equals the longest
    weights = np.bincount(longest_best, weights=counts, minlength=3)
    shares: Doubles = weights / weights.sum()
    return shares


def most_frequent_tags(sentences: Sentences, tags: Tags, test: Sentences) -> list[list[str]]:
    """The baseline: each word's most frequent tag in training, and the most frequent of all for a word not seen."""
    counts: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    overall: dict[str, int] = defaultdict(int)
    for word, tag in zip(chain.from_iterable(sentences), chain.from_iterable(tags), strict=True):
        counts[word][tag] += 1
        overall[tag] += 1
    best = {word: max(row, key=row.__getitem__) for word, row in counts.items()}
    usual = max(overall, key=overall.__getitem__)
    return [[best.get(word, usual) for word in words] for words in test]


def _count_trigrams(sentences: Sentences, numbers: Longs, kinds: int) -> Doubles:
    """(2T + 1,) ** 3: labels of each place and the two before it; two outside a sentence before it, one behind it."""
    outside = 2 * kinds
    counts = np.zeros((outside + 1,) * 3)
    labels: list[int] = []
    at = 0
    for words in sentences:
        here = numbers[at : at + len(words)].tolist()
        labels += [outside, outside]
        labels += [tag + kinds * _capitalised(word) for tag, word in zip(here, words, strict=True)]
        at += len(words)
    labels += [outside, outside]
    sequence = np.array(labels)
    inside = np.flatnonzero(sequence[1:-1] != outside) + 1  # the trigrams that end here, and behind the last word
    np.add.at(counts, (sequence[inside - 2], sequence[inside - 1], sequence[inside]), 1)
    last = inside[sequence[inside + 1] == outside]
    np.add.at(counts, (sequence[last - 1], sequence[last], outside), 1)
    return counts


def _shares(counts: Doubles) -> Doubles:
    """Each row's shares; zeros where nothing was counted."""
    totals = counts.sum(axis=-1, keepdims=True)
    shares: Doubles = np.divide(counts, totals, out=np.zeros_like(counts), where=totals > 0)
    return shares


def _backed_off(counts: Doubles, below: Doubles, weight: float) -> Doubles:
    shares: Doubles = (counts + weight * below) / (counts.sum() + weight)
    return shares


def _lexicon(rows: Iterable[Doubles], prior: Doubles) -> Lexicon:
    """The tags worth trying of each entry."""
    table = np.array(list(rows))
    kept = (table > 0) & (table >= FAR_BEHIND * table.max(axis=1, keepdims=True))
    entries, tags = np.nonzero(kept)
    starts = np.concatenate((np.zeros(1, np.int64), np.cumsum(np.bincount(entries, minlength=len(table)))))
    return Lexicon(starts, tags.astype(np.int32), np.log(table[kept] / prior[tags]))


def _capitalised(word: str) -> bool:
    return word[:1].isupper()


def _frozen(array: Array) -> Array:
    kept = np.ascontiguousarray(array).view()
    kept.flags.writeable = False
    return kept


# What a saved tagger must be, for no kernel may read outside its arrays

_ARRAYS = {
    "weights": np.float64,
    "moves": np.float64,
    "rows": np.int64,
    "tags": np.int32,
    "logs": np.float64,
    "names": np.uint8,
    "name_offsets": np.int64,
}


def _check_tags(tags: Any) -> None:
    if not (isinstance(tags, list) and tags and all(isinstance(tag, str) for tag in tags)):
        raise ValueError("'tags' must be a list of names")


def _check_arrays(arrays: dict[str, Array], order: int, kinds: int) -> None:
    for name, array in arrays.items():
        shape = (2 * kinds + 1,) * 3 if name == "moves" else (order,) if name == "weights" else (array.size,)
        if array.dtype != _ARRAYS[name] or array.shape != shape:
            raise ValueError(f"{name} is {array.dtype} {array.shape}, not {np.dtype(_ARRAYS[name])} {shape}")
    rows, tags = arrays["rows"], arrays["tags"]
    widths = np.diff(rows)
    if len(rows) < 2 or rows[0] != 0 or rows[-1] != len(tags) or len(tags) != len(arrays["logs"]):
        raise ValueError("the rows do not fit the tags")
    if not (1 <= widths.min() <= widths.max() <= kinds and 0 <= tags.min() <= tags.max() < kinds):
        raise ValueError("an entry has no tags, too many, or one that does not exist")
    if np.isnan(arrays["logs"]).any() or np.isnan(arrays["moves"]).any():
        raise ValueError("a probability is not a number")


def _strings(data: Bytes, offsets: Longs, count: int) -> list[str]:
    if len(offsets) != count + 1 or offsets[0] != 0 or offsets[-1] != len(data) or (np.diff(offsets) < 0).any():
        raise ValueError("the names do not fit the entries")
    blob = data.tobytes()
    return [blob[start:stop].decode(errors="surrogatepass") for start, stop in pairwise(offsets.tolist())]
