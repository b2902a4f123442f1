"""A linear tagger with hand-made features: a conditional random field over the tags of a sentence.

    p(t_1 … t_N | words) ∝ exp Σ_n ( A[t_(n-1), t_n] + Σ_f W[f, t_n] )          f over the features of word n

Features (``attributes.py``) are the word, its ending, shape and neighbours, and what a lexicon or a rule says of it.
Each has a weight for every tag, learnt from tagged text. With the group ``history`` the tags of a sentence are decided
together: a linear-chain conditional random field. Without it the table A stays zero, and this is multinomial logistic
regression word by word.

With a scheme the tags are those of spans, such as names. They are learnt as BIOES, in which the last word of a name has
a tag of its own, only well-formed sequences are predicted, and neighbours' spellings are features too.

W and A follow the gradient of the log-likelihood one sentence at a time (AdaGrad), at rates that fall to zero at the
end, which acts as regularisation. Tags are found by Viterbi, their probabilities by the forward-backward algorithm.

J. Lafferty, A. McCallum and F. Pereira, "Conditional random fields", ICML 2001. A. Ratnaparkhi, "A maximum entropy
model for part-of-speech tagging", EMNLP 1996, for the features.
Shapes: T = tags, M = templates, F = features, N = words, A = attributes.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain, repeat
from typing import Any, Literal, NamedTuple, Self

import numpy as np

from foreword.arrays import Array, Doubles, Floats, Ints, Logs, Longs, ULongs, frozen
from foreword.checks import check_numbers
from foreword.errors import DivergedError, SettingError
from foreword.protocols import Json, Parts, Sentences, Step, Tags
from foreword.tag import kernels_features as kernels
from foreword.tag.attributes import (
    ATTRIBUTES,
    GROUPS,
    SPAN_GROUPS,
    UNLISTED,
    WORD_GROUPS,
    Template,
    attributes_of,
    feature_name,
    lexicon_of,
    templates_of,
)
from foreword.tag.kernels_features import ABSENT, FIRST_VALUE, PARTS, FeatureFinder, FeatureWeights
from foreword.tag.schemes import Scheme, letters_of
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

INSIDE = "bioes"
"""The scheme in which spans are learnt."""

WORD, LOWER, LEXICON = (ATTRIBUTES.index(name) for name in ("word", "lower", "lexicon"))
LARGEST_MOVE = 500.0
"""Beyond this its exponential might overflow; learnt moves stay below ten."""


class Reason(NamedTuple):
    """A feature of a word, and its contribution to the score of a tag."""

    feature: str
    weight: float


class FeatureTagger(WordTagger):
    """A supervised tagger of words.

    features: the groups to use, of ``word``, ``suffix``, ``prefix``, ``shape``, ``neighbours``, ``lexicon``, ``rules``,
        ``history`` and ``context``; None for all, without ``context`` where there is no scheme.
    rounds: passes over the training text. rate: initial learning rate; it decays to zero.
    lexicon_count: minimum count of a word in the lexicon. min_count: minimum count of a feature.
    prune: after training, drop features whose weights are all smaller than this. On UD English-EWT 0.05 halved the
        model without loss of accuracy; 0.2 began to cost.
    column: column of the tags in a file, by name for CoNLL-U, by number for CoNLL.
    scheme: "bio", "iob1" or "bioes", if the tags are spans; None for other tags.
    tags_: the tags, sorted. weights_: float32 (F, T). moves_: float64 (T + 1, T), the last row for the first word.
    """

    def __init__(
        self,
        features: Sequence[str] | None = None,
        *,
        rounds: int = 8,
        rate: float = 0.2,
        lexicon_count: int = 4,
        min_count: int = 1,
        prune: float = 0.05,
        seed: int = 0,
        column: str = "upos",
        scheme: Literal["bio", "iob1", "bioes"] | None = None,
    ) -> None:
        usual = WORD_GROUPS if scheme is None else SPAN_GROUPS
        self.features: Sequence[str] = usual if features is None else features
        self.rounds = rounds
        self.rate = rate
        self.lexicon_count = lexicon_count
        self.min_count = min_count
        self.prune = prune
        self.seed = seed
        self.column = column
        self.scheme = scheme

    def __repr__(self) -> str:
        usual = WORD_GROUPS if self.scheme is None else SPAN_GROUPS
        groups = [] if tuple(self.features) == usual else [repr(list(self.features))]
        scheme = [] if self.scheme is None else [f"scheme={self.scheme!r}"]
        return f"FeatureTagger({', '.join([*groups, *scheme])})"

    @property
    def tags_(self) -> list[str]:
        """The tags, sorted."""
        _ = super().tags_
        return self._scheme.outer

    # Learning

    def fit(self, sentences: Sentences, tags: Tags) -> Self:
        """Learn weights from tagged sentences."""
        for _ in self.train(sentences, tags):
            pass
        return self

    def train(self, sentences: Sentences, tags: Tags) -> Iterator[Step]:
        """Learn, yielding a Step after each round; the tagger is ready when the iteration ends."""
        self._check_settings()
        self._tags = None
        found, numbers = numbered_tags(sentences, tags)
        scheme = Scheme.learnt(self.scheme, INSIDE, tags)
        if self.scheme is not None:
            found, numbers = scheme.inner, np.concatenate(scheme.numbers(tags)).astype(np.int32)
            tags = by_sentence([found[number] for number in numbers.tolist()], offsets_of(tags))
        self._number_words(sentences, lexicon_of(sentences, tags, self.lexicon_count))
        codes, offsets, _ = self._codes_of(sentences)
        keys, features = _number_features(self._known, self._templates(), self.min_count, codes, offsets)
        model = FeatureWeights(np.zeros((len(keys), len(found)), np.float32), np.zeros((len(found) + 1, len(found))))
        yield from self._rounds(features, offsets, numbers, model)
        large = np.abs(model.weights).max(axis=1) >= self.prune
        self._set_weights(scheme, keys[large], FeatureWeights(model.weights[large], model.moves))

    def _rounds(self, features: Ints, offsets: Longs, numbers: Ints, model: FeatureWeights) -> Iterator[Step]:
        kinds = model.weights.shape[1]
        random = np.random.default_rng(self.seed)
        squares, move_squares = np.zeros(len(model.weights)), np.zeros(kinds + 1)
        workspace = kernels.workspace_for(int(np.diff(offsets).max()), features.shape[1], kinds)
        for done in range(self.rounds):
            rates = self.rate * (1 - np.array([done, done + 1]) / self.rounds)
            loss = kernels.learn_sentences(
                features, offsets, numbers, random.permutation(len(offsets) - 1), model,
                squares, move_squares, rates, "history" in self.features, workspace,
            )  # fmt: skip
            if not (math.isfinite(loss) and np.abs(model.moves).max() <= LARGEST_MOVE):
                raise DivergedError(f"training diverged at rate={self.rate}: try a lower rate")
            total = len(numbers) * self.rounds
            yield Step(len(numbers) * (done + 1), total, loss / len(numbers), float(rates[0]))

    def _number_words(self, sentences: Sentences, lexicon: dict[str, str]) -> None:
        """Number the training words, and the values of all their attributes."""
        words = dict.fromkeys(chain.from_iterable(sentences))
        values: list[dict[str, int]] = [{} for _ in ATTRIBUTES]
        rows = []
        for word in words:
            shown = zip(values, attributes_of(word, lexicon), strict=True)
            rows.append(
                [ABSENT if value is None else ids.setdefault(value, FIRST_VALUE + len(ids)) for ids, value in shown]
            )
        self._set_words(values, np.array(rows, np.int32))

    # Tagging

    def predict(self, sentences: Sentences) -> list[list[str]]:
        """Return the best tags of each sentence."""
        path, offsets = self._best_path(sentences)
        scheme = self._scheme
        if scheme.outside is None:
            return by_sentence(np.array(scheme.inner, dtype=object)[path].tolist(), offsets)
        return [scheme.names(numbers) for numbers in by_sentence(path.tolist(), offsets)]

    def _best_path(self, sentences: Sentences) -> tuple[Ints, Longs]:
        """Return the number of each word's inner tag (N,), and where sentences begin (sentences + 1,)."""
        _ = self.tags_
        codes, offsets, finder = self._codes_of(sentences)
        path = np.empty(len(codes), np.int32)
        kernels.tag_sentences(finder, self._allowed, codes, offsets, *self._workspace(offsets), path)
        return path, offsets

    def predict_log_proba(self, sentences: Sentences) -> list[Logs]:
        """Return (length, T) for each sentence: log p(t_n = t | the whole sentence)."""
        _ = self.tags_
        gathering = self._scheme.gathering()
        codes, offsets, finder = self._codes_of(sentences)
        posteriors = np.empty((len(codes), len(self._scheme.inner)))
        kernels.tag_posteriors(finder, self._allowed, codes, offsets, *self._workspace(offsets), posteriors)
        if gathering is not None:
            posteriors = posteriors @ gathering
        with np.errstate(divide="ignore"):
            return by_sentence(np.log(posteriors), offsets)

    def known_words(self) -> Collection[str]:
        """Return the words seen in training."""
        _ = self.tags_
        return self._codes.keys()

    def explain(self, words: Sequence[str], place: int, tag: str | None = None) -> list[Reason]:
        """Return the features and weights behind the tag of word ``place``, or behind another tag, the largest first.

        The weights, those of the neighbouring tags included, sum to the tag's score; a feature's weights over all tags
        sum to zero, so a positive weight supports the tag and a negative one opposes it. Tags of spans are those of
        BIOES.
        """
        path, names = self._best_path([words])[0].tolist(), self._scheme.inner
        chosen = path[place] if tag is None else names.index(tag)
        features, values = self._features_of(words)
        reasons = [
            Reason(feature_name(template, shown), float(self.weights_[row, chosen]))
            for template, shown, row in zip(self._templates(), values[place], features[place], strict=True)
            if row >= 0
        ]
        before = path[place - 1] if place % len(words) else len(names)
        reasons.append(Reason(f"tag[-1]={[*names, '<start>'][before]}", float(self.moves_[before, chosen])))
        if (place + 1) % len(words):
            after = path[place + 1]
            reasons.append(Reason(f"tag[+1]={names[after]}", float(self.moves_[chosen, after])))
        return sorted(reasons, key=lambda reason: -abs(reason.weight))

    def _features_of(self, words: Sequence[str]) -> tuple[Ints, list[list[list[str]]]]:
        """Return the features (n, M) of a sentence, and the values of each template, with or without a weight."""
        codes, offsets, finder = self._codes_of([words])
        features = np.empty((len(words), len(finder.templates)), np.int32)
        kernels.find_features(finder, codes, offsets, np.empty(len(finder.templates), np.uint64), features)
        shown = [attributes_of(word, self._lexicon) for word in words]

        def value(at: int, name: str) -> str:
            if not 0 <= at < len(words):
                return "<start>" if at < 0 else "<end>"
            return shown[at][ATTRIBUTES.index(name)] or ""

        names = [
            [[value(n + offset, name) for offset, name in template] for template in self._templates()]
            for n in range(len(words))
        ]
        return features, names

    def _codes_of(self, sentences: Sentences) -> tuple[Longs, Longs, FeatureFinder]:
        """Return the numbers of words (N,), where sentences begin (sentences + 1,), and the tables that features are
        found by, with the attributes of unknown words.
        """
        offsets = offsets_of(sentences)
        words = list(chain.from_iterable(sentences))
        codes = np.fromiter(map(self._codes.get, words, repeat(-1)), np.int64, len(words))
        new: dict[str, int] = {}
        for at in np.flatnonzero(codes < 0).tolist():
            codes[at] = new.setdefault(words[at], len(self._known) + len(new))
        rows = _attribute_rows(new, self._lexicon, self._values)
        return codes, offsets, self._finder._replace(new=rows) if new else self._finder

    def _workspace(self, offsets: Longs) -> tuple[ULongs, kernels.SentenceWorkspace]:
        templates = len(self._finder.templates)
        longest = int(np.diff(offsets).max(initial=0))
        return np.empty(templates, np.uint64), kernels.workspace_for(longest, templates, len(self._scheme.inner))

    def _templates(self) -> list[Template]:
        return templates_of(self.features)

    # Saving

    def _set_words(self, values: list[dict[str, int]], known: Ints) -> None:
        """Store the words. values: the number of each value, per attribute. known: (words, A) numbers of values."""
        self._values = values
        self._known = frozen(known)
        self._codes = {word: code for code, word in enumerate(values[WORD])}
        lower, listed = list(values[LOWER]), list(values[LEXICON])
        self._lexicon = {
            lower[row[0] - FIRST_VALUE]: listed[row[1] - FIRST_VALUE] for row in known[:, [LOWER, LEXICON]].tolist()
        }
        for word in [word for word, listed in self._lexicon.items() if listed == UNLISTED]:
            del self._lexicon[word]
        empty = _table(np.empty(0, np.uint64), 1)
        self._finder = FeatureFinder(_template_table(self._templates()), self._known, _no_words(), *empty)

    def _set_weights(self, scheme: Scheme, keys: ULongs, model: FeatureWeights) -> Self:
        self._tags, self._scheme = scheme.outer, scheme
        self._keys = keys
        self._model = self._allowed = FeatureWeights(frozen(model.weights), frozen(model.moves))
        if scheme.allowed is not None:  # what ends a sentence is not checked: a name is cut off there, and stays one
            there = np.vstack((scheme.allowed.moves, scheme.allowed.start))
            self._allowed = self._model._replace(moves=frozen(np.where(there, model.moves, -np.inf)))
        slots, rows = _table(keys, len(keys))
        self._finder = self._finder._replace(slots=slots, rows=rows)
        return self

    @property
    def weights_(self) -> Floats:
        """The weights of features, float32 (F, T)."""
        _ = self.tags_
        return self._model.weights

    @property
    def moves_(self) -> Doubles:
        """The scores of moves, float64 (T + 1, T), the last row for the first word."""
        _ = self.tags_
        return self._model.moves

    def to_parts(self) -> Parts:
        """Return settings and arrays to be saved."""
        settings: dict[str, Json] = {
            "tags": list[Json](self.tags_),
            "features": list[Json](self.features),
            "rounds": self.rounds,
            "rate": float(self.rate),
            "lexicon_count": self.lexicon_count,
            "min_count": self.min_count,
            "prune": float(self.prune),
            "seed": self.seed,
            "column": self.column,
            "scheme": self.scheme,
            "templates": _spelled(self._templates()),
            "values": {name: len(ids) for name, ids in zip(ATTRIBUTES, self._values, strict=True)},
        }
        data, offsets = packed(chain.from_iterable(self._values))
        arrays: dict[str, Array] = {
            "weights": self.weights_,
            "moves": self.moves_,
            "keys": self._keys,
            "known": self._known,
            "names": data,
            "name_offsets": offsets,
        }
        return Parts(settings, arrays)

    @classmethod
    def from_parts(cls, parts: Parts) -> Self:
        """Build a tagger from saved parts, all of them checked."""
        settings: dict[str, Any] = dict(parts.settings)
        tags, sizes, templates = (settings.pop(name) for name in ("tags", "values", "templates"))
        model = cls(**settings)
        model._check_settings()
        if templates != _spelled(model._templates()):
            raise ValueError("its features are not made as this version of Foreword makes them: train it again")
        arrays = {name: parts.arrays[name] for name in _ARRAYS}
        check_tag_names(tags)
        scheme = Scheme(model.scheme, INSIDE, tags)
        if scheme.outer != tags:
            raise ValueError("the tags are not those of the scheme, or not sorted")
        _check_arrays(arrays, len(scheme.inner))
        values = _values(sizes, arrays["names"], arrays["name_offsets"])
        _check_known(arrays["known"], values)
        model._set_words(values, arrays["known"])
        return model._set_weights(scheme, arrays["keys"], FeatureWeights(arrays["weights"], arrays["moves"]))

    def _check_settings(self) -> None:
        unknown = [group for group in self.features if group not in GROUPS]
        if isinstance(self.features, str) or unknown:
            raise SettingError(f"features={self.features!r} must be a list of {', '.join(GROUPS)}")
        check_numbers(self, "rounds", "lexicon_count", "min_count", whole=True, least=1)
        check_numbers(self, "seed", whole=True)
        check_numbers(self, "rate", above=0)
        check_numbers(self, "prune")
        check_column(self.column)
        if self.scheme is not None:
            letters_of(self.scheme)


def _attribute_rows(words: Iterable[str], lexicon: Mapping[str, str], values: Sequence[Mapping[str, int]]) -> Ints:
    """Return (words, A): the number of each attribute's value, ``ABSENT`` for a value without one."""
    rows = [
        [ABSENT if value is None else ids.get(value, ABSENT) for ids, value in zip(values, shown, strict=True)]
        for shown in (attributes_of(word, lexicon) for word in words)
    ]
    return np.array(rows, np.int32)


def _number_features(
    known: Ints, groups: Sequence[Template], min_count: int, codes: Longs, offsets: Longs
) -> tuple[ULongs, Ints]:
    """Return the keys of all frequent features, and their numbers at each word (N, M), -1 for none."""
    templates = _template_table(groups)
    features = np.empty((len(codes), len(templates)), np.int32)
    keys, counts = np.empty(0, np.uint64), np.empty(0, np.int64)
    position = np.zeros(2, np.int64)
    need = 1 << 16
    while need:
        size = int(position[1])
        keys, counts = _longer(keys, 2 * need), _longer(counts, 2 * need)
        finder = FeatureFinder(templates, known, _no_words(), *_table(keys[:size], 2 * need))
        need = kernels.number_features(finder, codes, offsets, keys, counts, features, position)
    size = int(position[1])
    frequent = counts[:size] >= min_count
    if frequent.all():
        return keys[:size].copy(), features
    renumbered = np.concatenate((np.where(frequent, np.cumsum(frequent) - 1, ABSENT), [ABSENT])).astype(np.int32)
    return keys[:size][frequent], renumbered[features]


def _template_table(templates: Sequence[Template]) -> Longs:
    """Return (M, 2 · PARTS): distance and attribute of each part, -1 where there is none."""
    table = np.full((len(templates), 2 * PARTS), -1, np.int64)
    for row, template in zip(table, templates, strict=True):
        for part, (offset, name) in enumerate(template):
            row[2 * part : 2 * part + 2] = offset, ATTRIBUTES.index(name)
    return table


def _spelled(templates: Sequence[Template]) -> list[Json]:
    """Return templates as JSON. A feature's key depends on its template's number, so a saved tagger lists them all."""
    return [[[offset, name] for offset, name in template] for template in templates]


def _table(keys: ULongs, most: int) -> tuple[ULongs, Ints]:
    """Return the slots and rows of ``FeatureFinder``, at most half full with ``most`` keys."""
    capacity = 1 << (2 * most + 1).bit_length()
    slots, rows = np.zeros(capacity, np.uint64), np.empty(capacity, np.int32)
    kernels.fill_slots(keys, slots, rows)
    return slots, rows


def _no_words() -> Ints:
    return np.empty((0, len(ATTRIBUTES)), np.int32)


def _longer(array: Array, length: int) -> Array:
    longer = np.empty(length, array.dtype)
    longer[: len(array)] = array
    return longer


# Checks of a saved tagger: no kernel may read outside its arrays

_ARRAYS: dict[str, tuple[type, int]] = {
    "weights": (np.float32, 2),
    "moves": (np.float64, 2),
    "keys": (np.uint64, 1),
    "known": (np.int32, 2),
    "names": (np.uint8, 1),
    "name_offsets": (np.int64, 1),
}
"""Their dtypes and numbers of dimensions."""


def _check_arrays(arrays: dict[str, Array], kinds: int) -> None:
    for name, array in arrays.items():
        dtype, dimensions = _ARRAYS[name]
        if array.dtype != dtype or array.ndim != dimensions:
            raise ValueError(f"{name} is {array.dtype} {array.shape}, not {np.dtype(dtype)} of {dimensions} dimensions")
    weights, moves, keys = arrays["weights"], arrays["moves"], arrays["keys"]
    if weights.shape != (len(keys), kinds) or moves.shape != (kinds + 1, kinds):
        raise ValueError(f"weights {weights.shape} and moves {moves.shape} do not fit {len(keys)} keys, {kinds} tags")
    if (keys == kernels.ABSENT_KEY).any():
        raise ValueError("a key is zero")
    if not (np.isfinite(weights).all() and (np.abs(moves) <= LARGEST_MOVE).all()):
        raise ValueError("a weight is not a number, or out of bounds")


def _check_known(known: Ints, values: list[dict[str, int]]) -> None:
    limits = np.array([FIRST_VALUE + len(ids) for ids in values])
    if known.shape != (len(values[WORD]), len(values)) or len(known) == 0:
        raise ValueError(f"known is {known.shape}, not one row per word and one column per attribute")
    if (known < ABSENT).any() or (known >= limits).any() or (known[:, [LOWER, LEXICON]] < FIRST_VALUE).any():
        raise ValueError("a word has an attribute that does not exist")


def _values(sizes: Any, data: Array, offsets: Array) -> list[dict[str, int]]:
    """Return the number of each value, for each attribute."""
    if not (isinstance(sizes, dict) and set(sizes) == set(ATTRIBUTES)):
        raise ValueError(f"'values' must give a number for each of {', '.join(ATTRIBUTES)}")
    counts = [sizes[name] for name in ATTRIBUTES]
    if not all(type(count) is int and count >= 0 for count in counts) or len(offsets) != sum(counts) + 1:
        raise ValueError("the names do not fit 'values'")
    strings = iter(unpacked(data, offsets, "names"))
    values = [{next(strings): FIRST_VALUE + number for number in range(count)} for count in counts]
    if [len(ids) for ids in values] != counts:
        raise ValueError("a value appears twice")
    return values
