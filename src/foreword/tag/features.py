"""A linear tagger with hand-made features: logistic regression over the tags of a sentence.

    p(t_1 … t_N | words) ∝ exp Σ_n ( A[t_(n-1), t_n] + Σ_f W[f, t_n] )          f over the features of word n

Features are what somebody thought might tell (``attributes.py``): the word, its ending, its shape, its neighbours, what
a lexicon or a rule says of it. Each has a weight for every tag, and learning finds how far to trust it. Without the
group ``history`` the table A stays zero, the words fall apart, and this is multinomial logistic regression word by
word. With it, the tags of a sentence are decided together: a linear-chain conditional random field.

W and A climb the gradient of the log-likelihood a sentence at a time, at rates that fall for features seen often and
towards zero at the end, which does what regularisation would do. Tags are found by Viterbi, their probabilities by the
forward-backward algorithm.

J. Lafferty, A. McCallum and F. Pereira, "Conditional random fields", ICML 2001. A. Ratnaparkhi, "A maximum entropy
model for part-of-speech tagging", EMNLP 1996, for the features.
Shapes: T = tags, M = templates, F = features, N = words, A = attributes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, pairwise, repeat
from typing import Any, NamedTuple, Self

import numpy as np

from foreword.arrays import Array, Bytes, Doubles, Floats, Ints, Logs, Longs, ULongs
from foreword.errors import ForewordError, InputError, NotFittedError, SettingError
from foreword.protocols import Json, Parts, Sentences, Step, Tags
from foreword.tag import kernels_features as kernels
from foreword.tag.accuracy import Accuracies, accuracies_of, check_pairs
from foreword.tag.attributes import (
    ATTRIBUTES,
    GROUPS,
    UNLISTED,
    Template,
    attributes_of,
    feature_name,
    lexicon_of,
    templates_of,
)
from foreword.tag.conllu import column_place
from foreword.tag.kernels_features import ABSENT, FIRST_VALUE, PARTS, Model, Sight

ALL_GROUPS: tuple[str, ...] = tuple(GROUPS)
WORD, LOWER, LEXICON = (ATTRIBUTES.index(name) for name in ("word", "lower", "lexicon"))
LARGEST_MOVE = 500.0
"""Beyond this its exponential might overflow; what is learnt stays below ten."""


class Reason(NamedTuple):
    """A feature of a word, and what it adds to the score of a tag."""

    feature: str
    weight: float


class FeatureTagger:
    """A supervised tagger of words.

    features: which groups to look at, of ``word``, ``suffix``, ``prefix``, ``shape``, ``neighbours``, ``lexicon``,
        ``rules`` and ``history``.
    rounds: how often the training text is read. rate: of learning, at the beginning; it falls to zero.
    lexicon_count: words seen at least so often make the lexicon. min_count: features seen less often are left out.
    prune: features with no weight as large as this are dropped in the end. On UD English-EWT 0.05 halved the model and
        changed nothing; 0.2 began to cost.
    column: which column of a CoNLL-U file the tags are; only files care.
    tags_: the tags, sorted. weights_: float32 (F, T). moves_: float64 (T + 1, T), the last row for the first word.
    """

    def __init__(
        self,
        features: Sequence[str] = ALL_GROUPS,
        *,
        rounds: int = 8,
        rate: float = 0.2,
        lexicon_count: int = 4,
        min_count: int = 1,
        prune: float = 0.05,
        seed: int = 0,
        column: str = "upos",
    ) -> None:
        self.features = features
        self.rounds = rounds
        self.rate = rate
        self.lexicon_count = lexicon_count
        self.min_count = min_count
        self.prune = prune
        self.seed = seed
        self.column = column
        self._tags: list[str] | None = None

    def __repr__(self) -> str:
        groups = "" if tuple(self.features) == ALL_GROUPS else repr(list(self.features))
        return f"FeatureTagger({groups})"

    @property
    def tags_(self) -> list[str]:
        if self._tags is None:
            raise NotFittedError(self, "sentences, tags")
        return self._tags

    # Learning

    def fit(self, sentences: Sentences, tags: Tags) -> Self:
        for _ in self.train(sentences, tags):
            pass
        return self

    def train(self, sentences: Sentences, tags: Tags) -> Iterator[Step]:
        """Learn, and tell after every round how it went; the tagger is ready when there is nothing more to tell."""
        self._check_settings()
        check_pairs(sentences, tags)
        self._tags = None
        names = list(chain.from_iterable(tags))
        if not names:
            raise InputError("the training text is empty: a tagger needs at least one sentence with its tags")
        found = sorted(set(names))
        number = {name: place for place, name in enumerate(found)}
        numbers = np.array([number[name] for name in names], np.int32)
        self._see(sentences, lexicon_of(sentences, tags, self.lexicon_count))
        codes, offsets, _ = self._codes_of(sentences)
        keys, features = self._number(codes, offsets)
        model = Model(np.zeros((len(keys), len(found)), np.float32), np.zeros((len(found) + 1, len(found))))
        yield from self._climb(features, offsets, numbers, model)
        kept = np.abs(model.weights).max(axis=1) >= self.prune
        self._take(found, keys[kept], Model(model.weights[kept], model.moves))

    def _climb(self, features: Ints, offsets: Longs, numbers: Ints, model: Model) -> Iterator[Step]:
        kinds = model.weights.shape[1]
        random = np.random.default_rng(self.seed)
        squares, move_squares = np.zeros(len(model.weights)), np.zeros(kinds + 1)
        room = kernels.room_for(int(np.diff(offsets).max()), features.shape[1], kinds)
        for done in range(self.rounds):
            rates = self.rate * (1 - np.array([done, done + 1]) / self.rounds)
            loss = kernels.learn_sentences(
                features, offsets, numbers, random.permutation(len(offsets) - 1), model,
                squares, move_squares, rates, "history" in self.features, room,
            )  # fmt: skip
            if not (math.isfinite(loss) and np.abs(model.moves).max() <= LARGEST_MOVE):
                raise ForewordError(f"learning at rate={self.rate} leads nowhere: try a smaller one")
            total = len(numbers) * self.rounds
            yield Step(len(numbers) * (done + 1), total, loss / len(numbers), float(rates[0]))

    def _see(self, sentences: Sentences, lexicon: dict[str, str]) -> None:
        """Number the values of all attributes of the training words, and the words themselves."""
        words = dict.fromkeys(chain.from_iterable(sentences))
        values: list[dict[str, int]] = [{} for _ in ATTRIBUTES]
        rows = []
        for word in words:
            shown = zip(values, attributes_of(word, lexicon), strict=True)
            rows.append(
                [ABSENT if value is None else ids.setdefault(value, FIRST_VALUE + len(ids)) for ids, value in shown]
            )
        self._know(values, np.array(rows, np.int32))

    def _number(self, codes: Longs, offsets: Longs) -> tuple[ULongs, Ints]:
        """The keys of all features that are frequent enough, and (N, M) their numbers at each word, -1 for none."""
        templates = _template_table(self._templates())
        features = np.empty((len(codes), len(templates)), np.int32)
        keys, counts = np.empty(0, np.uint64), np.empty(0, np.int64)
        position = np.zeros(2, np.int64)
        need = 1 << 16
        while need:
            size = int(position[1])
            keys, counts = _longer(keys, 2 * need), _longer(counts, 2 * need)
            sight = Sight(templates, self._known, _no_words(), *_table(keys[:size], 2 * need))
            need = kernels.number_features(sight, codes, offsets, keys, counts, features, position)
        size = int(position[1])
        kept = counts[:size] >= self.min_count
        if kept.all():
            return keys[:size].copy(), features
        renumbered = np.concatenate((np.where(kept, np.cumsum(kept) - 1, ABSENT), [ABSENT])).astype(np.int32)
        return keys[:size][kept], renumbered[features]

    # Tagging

    def predict(self, sentences: Sentences) -> list[list[str]]:
        names = np.array(self.tags_, dtype=object)
        codes, offsets, sight = self._codes_of(sentences)
        path = np.empty(len(codes), np.int32)
        kernels.tag_sentences(sight, self._model, codes, offsets, *self._room(offsets), path)
        tags: list[str] = names[path].tolist()
        return [tags[start:stop] for start, stop in pairwise(offsets.tolist())]

    def predict_log_proba(self, sentences: Sentences) -> list[Logs]:
        """(length, T) for each sentence: log p(t_n = t | the whole sentence)."""
        kinds = len(self.tags_)
        codes, offsets, sight = self._codes_of(sentences)
        posteriors = np.empty((len(codes), kinds))
        kernels.tag_posteriors(sight, self._model, codes, offsets, *self._room(offsets), posteriors)
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

    def explain(self, words: Sequence[str], place: int, tag: str | None = None) -> list[Reason]:
        """Why a word gets its tag, or what speaks for another one: features and weights, the strongest first.

        The weights, those of the tags beside it included, sum to the tag's score; a feature's weights over all tags sum
        to zero, so what is positive speaks for the tag and what is negative against it.
        """
        path = [self.tags_.index(name) for name in self.predict([words])[0]]
        chosen = path[place] if tag is None else self.tags_.index(tag)
        features, values = self._features_of(words)
        reasons = [
            Reason(feature_name(template, shown), float(self.weights_[row, chosen]))
            for template, shown, row in zip(self._templates(), values[place], features[place], strict=True)
            if row >= 0
        ]
        before = path[place - 1] if place % len(words) else len(self.tags_)
        reasons.append(Reason(f"tag[-1]={[*self.tags_, '<start>'][before]}", float(self.moves_[before, chosen])))
        if (place + 1) % len(words):
            after = path[place + 1]
            reasons.append(Reason(f"tag[+1]={self.tags_[after]}", float(self.moves_[chosen, after])))
        return sorted(reasons, key=lambda reason: -abs(reason.weight))

    def _features_of(self, words: Sequence[str]) -> tuple[Ints, list[list[list[str]]]]:
        """The features (n, M) of a sentence, and in words what each template saw, whether or not there is a weight."""
        codes, offsets, sight = self._codes_of([words])
        features = np.empty((len(words), len(sight.templates)), np.int32)
        kernels.find_features(sight, codes, offsets, np.empty(len(sight.templates), np.uint64), features)
        shown = [attributes_of(word, self._lexicon) for word in words]

        def value(place: int, name: str) -> str:
            if not 0 <= place < len(words):
                return "<start>" if place < 0 else "<end>"
            return shown[place][ATTRIBUTES.index(name)] or ""

        places = range(len(words))
        names = [[[value(n + offset, name) for offset, name in parts] for parts in self._templates()] for n in places]
        return features, names

    def _codes_of(self, sentences: Sentences) -> tuple[Longs, Longs, Sight]:
        """(N,) numbers of words, (sentences + 1,) where sentences begin, and how features are found, with these words'
        attributes where they are new.
        """
        lengths = np.fromiter(map(len, sentences), np.int64, len(sentences))
        offsets = np.concatenate((np.zeros(1, np.int64), np.cumsum(lengths)))
        words = list(chain.from_iterable(sentences))
        codes = np.fromiter(map(self._codes.get, words, repeat(-1)), np.int64, len(words))
        new: dict[str, int] = {}
        for place in np.flatnonzero(codes < 0).tolist():
            codes[place] = new.setdefault(words[place], len(self._known) + len(new))
        return codes, offsets, self._sight._replace(new=self._rows_of(new)) if new else self._sight

    def _rows_of(self, words: Iterable[str]) -> Ints:
        rows = [
            [
                ABSENT if value is None else ids.get(value, ABSENT)
                for ids, value in zip(self._values, shown, strict=True)
            ]
            for shown in (attributes_of(word, self._lexicon) for word in words)
        ]
        return np.array(rows, np.int32)

    def _room(self, offsets: Longs) -> tuple[ULongs, kernels.Room]:
        templates = len(self._sight.templates)
        longest = int(np.diff(offsets).max(initial=0))
        return np.empty(templates, np.uint64), kernels.room_for(longest, templates, len(self.tags_))

    def _templates(self) -> list[Template]:
        return templates_of(self.features)

    # Keeping and saving

    def _know(self, values: list[dict[str, int]], known: Ints) -> None:
        """values: the number of each value, for each attribute. known: (words, A), in the order of their numbers."""
        self._values = values
        self._known = _frozen(known)
        self._codes = {word: code for code, word in enumerate(values[WORD])}
        lower, listed = list(values[LOWER]), list(values[LEXICON])
        self._lexicon = {
            lower[row[0] - FIRST_VALUE]: listed[row[1] - FIRST_VALUE] for row in known[:, [LOWER, LEXICON]].tolist()
        }
        for word in [word for word, said in self._lexicon.items() if said == UNLISTED]:
            del self._lexicon[word]
        self._sight = Sight(
            _template_table(self._templates()), self._known, _no_words(), *_table(np.empty(0, np.uint64), 1)
        )

    def _take(self, tags: list[str], keys: ULongs, model: Model) -> Self:
        self._tags = tags
        self._keys = keys
        self._model = Model(_frozen(model.weights), _frozen(model.moves))
        slots, rows = _table(keys, len(keys))
        self._sight = self._sight._replace(slots=slots, rows=rows)
        return self

    @property
    def weights_(self) -> Floats:
        _ = self.tags_
        return self._model.weights

    @property
    def moves_(self) -> Doubles:
        _ = self.tags_
        return self._model.moves

    def to_parts(self) -> Parts:
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
            "templates": _spelled(self._templates()),
            "values": {name: len(ids) for name, ids in zip(ATTRIBUTES, self._values, strict=True)},
        }
        strings = [value.encode(errors="surrogatepass") for value in chain.from_iterable(self._values)]
        arrays: dict[str, Array] = {
            "weights": self.weights_,
            "moves": self.moves_,
            "keys": self._keys,
            "known": self._known,
            "names": np.frombuffer(b"".join(strings), np.uint8),
            "name_offsets": np.cumsum([0, *map(len, strings)], dtype=np.int64),
        }
        return Parts(settings, arrays)

    @classmethod
    def from_parts(cls, parts: Parts) -> Self:
        settings: dict[str, Any] = dict(parts.settings)
        tags, sizes, templates = (settings.pop(name) for name in ("tags", "values", "templates"))
        model = cls(**settings)
        model._check_settings()
        if templates != _spelled(model._templates()):
            raise ValueError("its features are made in another way than this Foreword makes them: train it anew")
        arrays = {name: parts.arrays[name] for name in _ARRAYS}
        _check_tags(tags)
        _check_arrays(arrays, len(tags))
        values = _values(sizes, arrays["names"], arrays["name_offsets"])
        _check_known(arrays["known"], values)
        model._know(values, arrays["known"])
        return model._take(tags, arrays["keys"], Model(arrays["weights"], arrays["moves"]))

    def _check_settings(self) -> None:
        unknown = [group for group in self.features if group not in GROUPS]
        if isinstance(self.features, str) or unknown:
            raise SettingError(f"features={self.features!r} must be a list of {', '.join(GROUPS)}")
        for name, least in (("rounds", 1), ("lexicon_count", 1), ("min_count", 1), ("seed", 0)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise SettingError(f"{name}={value} must be a whole number, at least {least}")
        if not (isinstance(self.rate, int | float) and math.isfinite(self.rate) and self.rate > 0):
            raise SettingError(f"rate={self.rate} must be a positive number")
        if not (isinstance(self.prune, int | float) and math.isfinite(self.prune) and self.prune >= 0):
            raise SettingError(f"prune={self.prune} must be zero or a positive number")
        column_place(self.column)


def _template_table(templates: Sequence[Template]) -> Longs:
    """(M, 2 · PARTS): distance and attribute of each part, -1 where there is none."""
    table = np.full((len(templates), 2 * PARTS), -1, np.int64)
    for row, template in zip(table, templates, strict=True):
        for part, (offset, name) in enumerate(template):
            row[2 * part : 2 * part + 2] = offset, ATTRIBUTES.index(name)
    return table


def _spelled(templates: Sequence[Template]) -> list[Json]:
    """Templates as JSON has them. A feature is known by its template's number, so a saved tagger names them all."""
    return [[[offset, name] for offset, name in template] for template in templates]


def _table(keys: ULongs, room: int) -> tuple[ULongs, Ints]:
    """The slots and rows of ``Sight``, at most half full with ``room`` keys."""
    capacity = 1 << (2 * room + 1).bit_length()
    slots, rows = np.zeros(capacity, np.uint64), np.empty(capacity, np.int32)
    kernels.fill_slots(keys, slots, rows)
    return slots, rows


def _no_words() -> Ints:
    return np.empty((0, len(ATTRIBUTES)), np.int32)


def _longer(array: Array, length: int) -> Array:
    longer = np.empty(length, array.dtype)
    longer[: len(array)] = array
    return longer


def _frozen(array: Array) -> Array:
    kept = np.ascontiguousarray(array).view()
    kept.flags.writeable = False
    return kept


# What a saved tagger must be, for no kernel may read outside its arrays

_ARRAYS: dict[str, tuple[type, int]] = {
    "weights": (np.float32, 2),
    "moves": (np.float64, 2),
    "keys": (np.uint64, 1),
    "known": (np.int32, 2),
    "names": (np.uint8, 1),
    "name_offsets": (np.int64, 1),
}
"""Their dtypes and numbers of dimensions."""


def _check_tags(tags: Any) -> None:
    if not (isinstance(tags, list) and tags and all(isinstance(tag, str) for tag in tags)):
        raise ValueError("'tags' must be a list of names")


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
        raise ValueError(f"known is {known.shape}, not one row a word and one column an attribute")
    if (known < ABSENT).any() or (known >= limits).any() or (known[:, [LOWER, LEXICON]] < FIRST_VALUE).any():
        raise ValueError("a word has an attribute that does not exist")


def _values(sizes: Any, data: Bytes, offsets: Longs) -> list[dict[str, int]]:
    """The number of each value, for each attribute."""
    if not (isinstance(sizes, dict) and set(sizes) == set(ATTRIBUTES)):
        raise ValueError(f"'values' must give a number for each of {', '.join(ATTRIBUTES)}")
    counts = [sizes[name] for name in ATTRIBUTES]
    if not all(type(count) is int and count >= 0 for count in counts) or len(offsets) != sum(counts) + 1:
        raise ValueError("the names do not fit 'values'")
    if offsets[0] != 0 or offsets[-1] != len(data) or (np.diff(offsets) < 0).any():
        raise ValueError("the names do not fit their offsets")
    blob = data.tobytes()
    strings = (blob[start:stop].decode(errors="surrogatepass") for start, stop in pairwise(offsets.tolist()))
    values = [{next(strings): FIRST_VALUE + place for place in range(count)} for count in counts]
    if [len(ids) for ids in values] != counts:
        raise ValueError("a value stands there twice")
    return values
