"""The hidden Markov tagger: its states are the tags, observed in training, and it predicts the likeliest path.

    tags = argmax Π p(t_n | t_(n-2), t_(n-1)) p(w_n | t_n)

Transitions mix three orders, λ₁ p(t₃) + λ₂ p(t₃ | t₂) + λ₃ p(t₃ | t₁, t₂), with weights by deleted interpolation: each
trigram that occurred is removed once, and its count goes to the order that then predicts it best. With ``order=2`` the
first two are mixed. A tag is combined with whether its word is capitalised, which distinguishes sentence beginnings
from names, and the ends of a sentence are a tag of their own.

The emissions come from p(t | w) by Bayes' rule: p(w | t) ∝ p(t | w) / p(t). It is backed off in steps,
(count(w, t) + weight · p(t | shorter)) / (count(w) + weight), from the word to the lower-cased word, to its ending of
four letters, of three, and so on down to no letters; endings are counted in rare words, for only those are like unknown
ones. So an unknown word starts at the longest step that is known. All steps are tables made in ``fit``; tagging only
looks them up.

T. Brants, "TnT – a statistical part-of-speech tagger", ANLP 2000. There the steps of an ending weigh the same whatever
their counts, endings have up to ten letters, and words seen in training do not back off. On the validation part of UD
English-EWT four letters were better than six by 0.1 points, and the lower-cased step was worth 0.1.
Shapes: T = tags, N = words; a label is a tag with its capitalisation, or the outside of a sentence: 2T + 1 of them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import KW_ONLY, dataclass
from itertools import chain
from typing import Any, Self

import numpy as np

from foreword.arrays import Array, Doubles, Ints, Logs, Longs, frozen
from foreword.checks import check_choice, check_numbers
from foreword.hmm.model import HMM
from foreword.protocols import Json, Parts, Sentences, Tags
from foreword.tag import kernels_hmm as kernels
from foreword.tag.kernels_hmm import TagLexicon
from foreword.tag.tagger import (
    WordTagger,
    by_sentence,
    check_column,
    check_tag_names,
    numbered_tags,
    offsets_of,
    packed,
    unpacked,
)
from foreword.tokens.corpus import Corpus

FAR_BEHIND = 1e-3
"""A tag this many times less likely than a word's best is not tried. At 1e-5 nothing changed but the speed."""

LEAST_WEIGHT = 1e-4
"""Of an order. In a text of a few sentences the longest may always predict best, and nothing new would be possible."""


@dataclass(eq=False, repr=False)
class HMMTagger(WordTagger):
    """A supervised tagger of words.

    order: 3 conditions on the two tags before, 2 on the one before.
    ending: length of the longest suffix that is counted, in characters.
    rare: suffixes are counted in words seen at most this often.
    word_weight: weight, in counts, of the estimate for the lower-cased word in that for the word.
    folded_weight: weight, in counts, of the estimate for the suffix in that for the lower-cased word.
    ending_weight: weight, in counts, of the estimate for the next shorter suffix in that for a suffix.
    column: column of the tags in a CoNLL-U file.
    tags_: the tags, sorted. weights_: λ₁, λ₂ and, with order 3, λ₃.
    """

    order: int = 3
    _: KW_ONLY
    ending: int = 4
    rare: int = 10
    word_weight: float = 0.3
    folded_weight: float = 1.0
    ending_weight: float = 3.0
    column: str = "upos"

    def __repr__(self) -> str:
        return f"HMMTagger(order={self.order})"

    def fit(self, sentences: Sentences, tags: Tags) -> Self:
        """Count tags, words and endings of tagged sentences."""
        self._check_settings()
        found, numbers = numbered_tags(sentences, tags)
        weights, moves = self._transitions(sentences, numbers, len(found))
        steps = self._steps(list(chain.from_iterable(sentences)), numbers, len(found))
        lexicon = _lexicon((row for step in steps for row in step.values()), np.bincount(numbers) / len(numbers))
        return self._set_tables(found, weights, moves, lexicon, [list(step) for step in steps])

    def predict(self, sentences: Sentences) -> list[list[str]]:
        """Return the likeliest tags of each sentence."""
        names = np.array(self.tags_, dtype=object)
        codes, offsets = self._codes_of(sentences)
        numbers = np.empty(len(codes), np.int32)
        lattice = self._lattice(offsets)
        kernels.likeliest_tags(codes, offsets, self._lexicon, self._moves, len(names), lattice, numbers)
        return by_sentence(names[numbers].tolist(), offsets)

    def predict_log_proba(self, sentences: Sentences) -> list[Logs]:
        """Return (length, T) for each sentence: log p(t_n = t | the whole sentence), −∞ for tags that are not tried."""
        kinds = len(self.tags_)
        codes, offsets = self._codes_of(sentences)
        posteriors = np.zeros((len(codes), kinds))
        later, earlier = np.empty((kinds, kinds)), np.empty((kinds, kinds))
        chances, lattice = np.exp(self._moves), self._lattice(offsets)
        kernels.tag_posteriors(codes, offsets, self._lexicon, chances, kinds, lattice, later, earlier, posteriors)
        with np.errstate(divide="ignore"):
            return by_sentence(np.log(posteriors), offsets)

    def known_words(self) -> Collection[str]:
        """Return the words seen in training."""
        _ = self.tags_
        return self._codes.keys()

    # Learning

    def _transitions(self, sentences: Sentences, numbers: Ints, kinds: int) -> tuple[Doubles, Doubles]:
        """Return (order,) weights and (2T + 1,) ** 3 log-probabilities of the third label given the first two."""
        trigrams = _count_trigrams(sentences, numbers, kinds)
        bigrams, unigrams = trigrams.sum(axis=0), trigrams.sum(axis=(0, 1))
        weights = np.maximum(deleted_interpolation(trigrams)[: self.order], LEAST_WEIGHT)
        weights = weights / weights.sum()
        # Each label is counted once more, so that none is impossible: a capitalised tag may be new.
        chances = weights[0] * (unigrams + 1) / (unigrams + 1).sum() + weights[1] * _shares(bigrams)
        chances = np.broadcast_to(chances, trigrams.shape)
        if self.order == 3:
            chances = chances + weights[2] * _shares(trigrams)
        return weights, np.log(chances)

    def _steps(self, words: Sequence[str], numbers: Ints, kinds: int) -> tuple[_Step, _Step, _Step]:
        """Return p(t | word), p(t | lower-cased word) and p(t | ending), each backed off to the next."""
        exact, folded, endings = (defaultdict[str, Doubles](lambda: np.zeros(kinds)) for _ in range(3))
        for word, number in zip(words, numbers.tolist(), strict=True):
            exact[word][number] += 1
            folded[word.lower()][number] += 1
        for word, counts in exact.items():
            if counts.sum() <= self.rare:
                for ending in self._endings(word.lower()):
                    endings[ending] += counts
        if "" not in endings:  # no word is rare: then an unknown one is like any other
            endings[""] += np.bincount(numbers, minlength=kinds)
        by_ending: _Step = {}
        for ending in sorted(endings, key=len):
            shorter = by_ending[ending[1:]] if ending else np.full(kinds, 1 / kinds)
            by_ending[ending] = _backed_off(endings[ending], shorter, self.ending_weight)
        by_folded = {
            word: _backed_off(counts, self._at_longest_ending(word, by_ending), self.folded_weight)
            for word, counts in folded.items()
        }
        by_word = {
            word: _backed_off(counts, by_folded[word.lower()], self.word_weight) for word, counts in exact.items()
        }
        return by_word, by_folded, by_ending

    def _endings(self, folded: str) -> Iterable[str]:
        """Return the endings of a word, from the longest that is counted to the empty one."""
        return (folded[start:] for start in range(max(len(folded) - self.ending, 0), len(folded) + 1))

    def _at_longest_ending(self, folded: str, known: dict[str, Any]) -> Any:
        return next(known[ending] for ending in self._endings(folded) if ending in known)

    # Looking up

    def _codes_of(self, sentences: Sentences) -> tuple[Longs, Longs]:
        """Return the codes of words (N,), and where sentences begin (sentences + 1,)."""
        _ = self.tags_
        offsets = offsets_of(sentences)
        words = chain.from_iterable(sentences)
        return np.fromiter(map(self._codes.__getitem__, words), np.int64, int(offsets[-1])), offsets

    def _guess(self, word: str) -> int:
        """Return the code of a word that was not seen in this spelling."""
        folded = word.lower()
        entry = self._folded.get(folded)
        if entry is None:
            entry = self._at_longest_ending(folded, self._by_ending)
        return 2 * int(entry) + _capitalised(word)

    def _lattice(self, offsets: Longs) -> kernels.Lattice:
        return kernels.lattice(int(np.diff(offsets).max(initial=0)), len(self.tags_))

    # Saving

    def _set_tables(
        self, tags: list[str], weights: Doubles, moves: Doubles, lexicon: TagLexicon, names: Sequence[Sequence[str]]
    ) -> Self:
        """Store what was learnt. names: words, lower-cased words and endings, numbered through all three."""
        self._tags = tags
        self.weights_ = weights
        self._moves = frozen(moves)
        self._lexicon = TagLexicon(frozen(lexicon.rows), frozen(lexicon.tags), frozen(lexicon.logs))
        self._names = names
        words, folded, endings = names
        self._codes = _Codes(self._guess)
        self._codes.update((word, 2 * entry + _capitalised(word)) for entry, word in enumerate(words))
        self._folded = {word: entry for entry, word in enumerate(folded, len(words))}
        self._by_ending = {ending: entry for entry, ending in enumerate(endings, len(words) + len(folded))}
        return self

    def to_parts(self) -> Parts:
        """Return settings and arrays to be saved."""
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
        data, offsets = packed(chain.from_iterable(self._names))
        arrays: dict[str, Array] = {
            "weights": self.weights_,
            "moves": self._moves,
            "rows": self._lexicon.rows,
            "tags": self._lexicon.tags,
            "logs": self._lexicon.logs,
            "names": data,
            "name_offsets": offsets,
        }
        return Parts(settings, arrays)

    @classmethod
    def from_parts(cls, parts: Parts) -> Self:
        """Build a tagger from saved parts, all of them checked."""
        settings: dict[str, Any] = dict(parts.settings)
        tags, sizes = settings.pop("tags"), settings.pop("entries")
        model = cls(**settings)
        model._check_settings()
        arrays = {name: parts.arrays[name] for name in _ARRAYS}
        check_tag_names(tags)
        _check_arrays(arrays, model.order, len(tags))
        entries = len(arrays["rows"]) - 1
        if not (isinstance(sizes, list) and len(sizes) == 3 and sum(sizes) == entries and min(sizes) > 0):
            raise ValueError(f"'entries' must be three positive numbers that sum to {entries}")
        strings = unpacked(arrays["names"], arrays["name_offsets"], "names")
        if len(strings) != entries:
            raise ValueError("the names do not fit the entries")
        names = [strings[: sizes[0]], strings[sizes[0] : sizes[0] + sizes[1]], strings[sizes[0] + sizes[1] :]]
        if "" not in names[2]:
            raise ValueError("the empty ending is missing")
        lexicon = TagLexicon(arrays["rows"], arrays["tags"], arrays["logs"])
        return model._set_tables(tags, arrays["weights"], arrays["moves"], lexicon, names)

    def _check_settings(self) -> None:
        check_choice(self, "order", (2, 3))
        check_numbers(self, "ending", "rare", whole=True)
        check_numbers(self, "word_weight", "folded_weight", "ending_weight")
        check_column(self.column)


_Step = dict[str, Doubles]


class _Codes(dict[str, int]):
    """Known words and their codes. Others are guessed again each time, so that no text makes it grow."""

    def __init__(self, guess: Callable[[str], int]) -> None:
        super().__init__()
        self._guess = guess

    def __missing__(self, word: str) -> int:
        return self._guess(word)


def deleted_interpolation(trigrams: Doubles) -> Doubles:
    """Return (3,) weights of unigrams, bigrams and trigrams, from the counts of trigrams (Brants 2000, figure 1)."""
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
    """Return the baseline: each word's most frequent tag in training, and the most frequent of all if unknown."""
    counts: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    overall: dict[str, int] = defaultdict(int)
    for word, tag in zip(chain.from_iterable(sentences), chain.from_iterable(tags), strict=True):
        counts[word][tag] += 1
        overall[tag] += 1
    best = {word: max(row, key=row.__getitem__) for word, row in counts.items()}
    usual = max(overall, key=overall.__getitem__)
    return [[best.get(word, usual) for word in words] for words in test]


def _count_trigrams(sentences: Sentences, numbers: Ints, kinds: int) -> Doubles:
    """Count (2T + 1,) ** 3 trigrams of labels; two labels stand outside before each sentence, one after it."""
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
    inside = np.flatnonzero(sequence[1:-1] != outside) + 1  # the trigrams that end at a word, and after the last
    np.add.at(counts, (sequence[inside - 2], sequence[inside - 1], sequence[inside]), 1)
    last = inside[sequence[inside + 1] == outside]
    np.add.at(counts, (sequence[last - 1], sequence[last], outside), 1)
    return counts


def _shares(counts: Doubles) -> Doubles:
    """Normalise each row; zeros where nothing was counted."""
    totals = counts.sum(axis=-1, keepdims=True)
    shares: Doubles = np.divide(counts, totals, out=np.zeros_like(counts), where=totals > 0)
    return shares


def _backed_off(counts: Doubles, below: Doubles, weight: float) -> Doubles:
    shares: Doubles = (counts + weight * below) / (counts.sum() + weight)
    return shares


def _lexicon(rows: Iterable[Doubles], prior: Doubles) -> TagLexicon:
    """Return the tags worth trying of each entry."""
    table = np.array(list(rows))
    tried = (table > 0) & (table >= FAR_BEHIND * table.max(axis=1, keepdims=True))
    entries, tags = np.nonzero(tried)
    starts = np.concatenate((np.zeros(1, np.int64), np.cumsum(np.bincount(entries, minlength=len(table)))))
    return TagLexicon(starts, tags.astype(np.int32), np.log(table[tried] / prior[tags]))


def _capitalised(word: str) -> bool:
    return word[:1].isupper()


# Checks of a saved tagger: no kernel may read outside its arrays

_ARRAYS = {
    "weights": np.float64,
    "moves": np.float64,
    "rows": np.int64,
    "tags": np.int32,
    "logs": np.float64,
    "names": np.uint8,
    "name_offsets": np.int64,
}


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


# The trellis


@dataclass(frozen=True, slots=True)
class Trellis:
    """What an HMM computes word by word: predict, correct, and the likeliest path.

        predict   p(t_n | w_1 … w_(n−1)) = Σ p(t_n | t_(n−2), t_(n−1)) p(t_(n−2), t_(n−1) | w_1 … w_(n−1))
        correct   p(t_n | w_1 … w_n) ∝ p(w_n | t_n) p(t_n | w_1 … w_(n−1))

    predicted, corrected, smoothed: (N, S), each row sums to one; smoothed conditions on the words that follow, too.
    names: of the S tags or states. path: the likeliest sequence, (N,) indices of names.
    """

    names: list[str]
    predicted: Doubles
    corrected: Doubles
    smoothed: Doubles
    path: list[int]


def tagger_trellis(tagger: HMMTagger, words: Sequence[str]) -> Trellis:
    """Compute the trellis of one sentence, in plain code."""
    names, kinds = tagger.tags_, len(tagger.tags_)
    codes, _ = tagger._codes_of([list(words)])
    lexicon, moves = tagger._lexicon, np.exp(tagger._moves)
    outside = 2 * kinds
    belief = np.zeros((outside + 1, outside + 1))  # of the last two labels
    belief[outside, outside] = 1
    predicted, corrected = [], []
    for code in codes.tolist():
        ahead = np.einsum("ij,ijk->jk", belief, moves)
        by_label = ahead.sum(axis=0)[:outside]
        shares = by_label[:kinds] + by_label[kinds:]
        predicted.append(shares / shares.sum())
        row = slice(lexicon.rows[code >> 1], lexicon.rows[(code >> 1) + 1])
        labels = lexicon.tags[row] + kinds * (code & 1)
        likely = np.zeros(outside + 1)
        likely[labels] = np.exp(lexicon.logs[row])
        belief = ahead * likely
        belief /= belief.sum()
        by_label = belief.sum(axis=0)[:outside]
        corrected.append(by_label[:kinds] + by_label[kinds:])
    smoothed = np.exp(np.asarray(tagger.predict_log_proba([list(words)])[0], np.float64))
    path = [names.index(tag) for tag in tagger.predict([list(words)])[0]]
    return Trellis(list(names), np.array(predicted), np.array(corrected), smoothed, path)


def hmm_trellis(model: HMM, corpus: Corpus, shown: int = 3) -> Trellis:
    """Compute the trellis of one document under an HMM whose states were learnt; states are named by their words."""
    ids = corpus.ids[:-1]  # the end of the text is not a word
    predicted, corrected = [], []
    belief = np.asarray(model.start(), np.float64)
    for id in ids.tolist():
        predicted.append(_normalised(belief))
        belief = np.asarray(model.correct(belief, id), np.float64)
        corrected.append(_normalised(belief))
        belief = np.asarray(model.predict(belief), np.float64)
    smoothed = np.asarray(model.posteriors(corpus), np.float64)[: len(ids)]
    path = model.viterbi(corpus)[: len(ids)].tolist()
    return Trellis(state_names(model, shown), np.array(predicted), np.array(corrected), smoothed, path)


def state_names(model: HMM, shown: int = 3) -> list[str]:
    """Return the commonest words of each state."""
    vocab = model.vocab
    left_out = {id for id in (vocab.unknown, vocab.end) if id is not None}
    names = []
    for row in np.asarray(model.emission_):
        best = [id for id in np.argsort(-row, kind="stable")[: shown + 2].tolist() if id not in left_out]
        names.append(" ".join(vocab[id] for id in best[:shown]))
    return names


def _normalised(belief: Any) -> Doubles:
    row: Doubles = np.asarray(belief, np.float64).reshape(-1)
    shares: Doubles = row / row.sum()
    return shares
