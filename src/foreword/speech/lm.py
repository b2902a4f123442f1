"""What scores words while speech is decoded: n-gram files, any language model of words, several at once, hotwords.

    score(word) = alpha · ln p(word | words before) + beta,    unknown words: log10 p + unk_score_offset

A word that is not finished yet costs nothing while a known word begins so, and ``unk_score_offset`` otherwise. The
classes have the names, arguments and numbers of pyctcdecode. ARPA and KenLM files, our n-gram models and anything
with a ``path`` are queried as KenLM binaries, by kernels; other models of words work too, in the plain search.
"""

from __future__ import annotations

import itertools
import json
import math
import os
import shutil
import warnings
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from foreword.arrays import Ints, frozen
from foreword.errors import CTCInputError, SettingError, explained
from foreword.ngram.arpa import looks_like_arpa, read_log10
from foreword.ngram.kenlm import KenlmLM
from foreword.ngram.kenlm_format import looks_like_kenlm
from foreword.ngram.kenlm_writing import build_kenlm
from foreword.ngram.log10 import log10_of
from foreword.ngram.model import NgramLM
from foreword.ngram.smoothing import method
from foreword.protocols import NextToken, TextModel
from foreword.speech.kernels_decoding import AVERAGE_LENGTH, LN10
from foreword.speech.kernels_tries import Trie, count_nodes, fill_trie, walk
from foreword.storage.folder import load
from foreword.text.sources import read_lines
from foreword.text.strict_json import parse_json
from foreword.tokens.vocab import END

FEWEST_KNOWN = 0.1
"""Share of a word list that a language model has to know, or ``CTCLanguageModel`` warns."""

UNLIMITED = 1 << 30
"""The order of a model that remembers all words."""


# Words


def codes_of(text: str) -> Ints:
    """Return the code points of a text."""
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.int32)


NO_TRIE = Trie(np.zeros(2, np.int64), np.zeros(1, np.uint8), np.zeros(1, np.int32))


def build_trie(words: Collection[str]) -> Trie:
    """Return a trie of words."""
    if not words:
        return NO_TRIE
    ordered = sorted(set(words))
    offsets = np.zeros(len(ordered) + 1, np.int64)
    np.cumsum([len(word) for word in ordered], out=offsets[1:])
    codes = codes_of("".join(ordered))
    nodes = count_nodes(codes, offsets)
    slots = np.zeros(2 << (2 * nodes - 1).bit_length(), np.int64)
    trie = Trie(slots, np.zeros(nodes, np.uint8), np.zeros(nodes, np.int32))
    fill_trie(trie, codes, offsets)
    return trie


class HotwordScorer:
    """Scores hotwords: ``weight`` for each whole one, and a share of it while one is spelled. words: single words."""

    def __init__(self, words: Iterable[str] = (), weight: float = 10.0) -> None:
        self.words = frozenset(words)
        self.weight = _checked_weight("hotword_weight", weight)
        self.trie = build_trie(self.words)

    @classmethod
    def build_scorer(cls, hotwords: Iterable[str] | None = None, weight: float = 10.0) -> HotwordScorer:
        """Make a scorer of words and phrases; the words of a phrase count one by one."""
        if isinstance(hotwords, str):
            raise CTCInputError(f"hotwords={hotwords!r}: expected a list of words")
        phrases = [] if hotwords is None else list(hotwords)
        strange = [phrase for phrase in phrases if not isinstance(phrase, str)]
        if strange:
            raise CTCInputError(f"hotwords hold {strange[0]!r}: expected a list of words")
        return cls((word for phrase in phrases for word in phrase.split()), weight)

    def __contains__(self, item: str) -> bool:
        return bool(self.words) and walk(self.trie, codes_of(item)) >= 0

    def score(self, text: str) -> float:
        """Return the score of the hotwords in a text."""
        return self.weight * sum(word in self.words for word in text.split())

    def score_partial_token(self, token: str) -> float:
        """Return the score of a beginning of a word: its share of the shortest hotword that begins so."""
        node = walk(self.trie, codes_of(token)) if self.words else -1
        return self.weight * len(token) / int(self.trie.shortest[node]) if node >= 0 else 0.0


def _checked_weight(name: str, value: Any) -> float:
    """Return a weight of the decoder; a CTCInputError unless it is a finite number."""
    if not isinstance(value, int | float | np.integer | np.floating) or not math.isfinite(value):
        raise CTCInputError(f"{name}={value!r}: expected a number")
    return float(value)


class WordScorer(Protocol):
    """A model of words that gives log10 of one word after another. A state is an opaque value."""

    @property
    def order(self) -> int: ...
    def __contains__(self, word: str, /) -> bool: ...
    def start(self, boundary: bool, /) -> Any: ...  # after <s>, or with nothing known
    def step(self, state: Any, word: str, /) -> tuple[float, Any]: ...
    def end(self, state: Any, /) -> float: ...


class KenlmWords:
    """A KenLM binary as a scorer. States are tuples of numbers: they compare, hash, and go through JSON."""

    def __init__(self, model: KenlmLM) -> None:
        self.model = model
        self.order = model.order
        self.final = int(model.words.file_ids([END.encode()])[0])
        self.arrays = model.model._replace(data=frozen(model.model.data))
        self.starts = (model.null_state(), model.state_after_start())

    def __contains__(self, word: str) -> bool:
        return bool(self.ids([word])[0])

    def ids(self, words: Collection[str]) -> Ints:
        """Return the file's ids, 0 for unknown words."""
        return self.model.words.file_ids([word.encode("utf-8", "surrogatepass") for word in words])

    def start(self, boundary: bool) -> tuple[int, ...]:
        """Return the state after ``<s>``, or that of no context."""
        return self.state(self.starts[boundary][0])

    def state(self, row: Ints) -> tuple[int, ...]:
        """Return the words of a state and their back-off weights, without what the model does not look at."""
        used = int(row[0])
        return (*row[1 : 1 + used].tolist(), *row[self.order : self.order + used].tolist())

    def row(self, state: Any) -> Ints:
        """Return a state as the model takes it."""
        row = self.model.null_state()
        try:
            used = len(state) // 2
            row[0, 0], row[0, 1 : 1 + used], row[0, self.order : self.order + used] = used, state[:used], state[used:]
            self.model.step(row, np.zeros(1, np.int64))
        except (TypeError, ValueError, OverflowError, SettingError) as error:
            raise CTCInputError(f"lm_start_state={state!r:.60}: expected a state that this decoder returned") from error
        return row

    def _read(self, state: Any, id: int) -> tuple[float, tuple[int, ...]]:
        new, logs, _ = self.model.step(self.row(state), np.array([id], np.int64))
        return float(logs[0]), self.state(new[0])

    def step(self, state: Any, word: str) -> tuple[float, tuple[int, ...]]:
        """Return log10 of a word, and the state after it."""
        return self._read(state, int(self.ids([word])[0]))

    def end(self, state: Any) -> float:
        """Return log10 of the end of the text."""
        return self._read(state, self.final)[0]


class _Read:
    """A state of a ``NextToken`` model, with what may follow, which is computed once."""

    def __init__(self, model: NextToken[Any], state: Any) -> None:
        self.model, self.state = model, state

    @cached_property
    def logs(self) -> Any:
        return self.model.next_logprobs(self.state)[0] / LN10


class TokenWords:
    """Any language model of words as a scorer."""

    def __init__(self, model: NextToken[Any]) -> None:
        self.model = model
        self.order = int(getattr(model, "order", UNLIMITED))

    def __contains__(self, word: str) -> bool:
        return word in self.model.vocab

    def start(self, boundary: bool) -> _Read:
        """Return the state after ``<s>``; such models have no other."""
        return _Read(self.model, self.model.start())

    def step(self, state: Any, word: str) -> tuple[float, _Read]:
        """Return log10 of a word, and the state after it."""
        id = self.model.vocab.id(word)
        return float(state.logs[id]), _Read(self.model, self.model.advance(state.state, np.array([id])))

    def end(self, state: Any) -> float:
        """Return log10 of the end of the text."""
        return float(state.logs[self.model.vocab.end])


def open_scorer(model: Any) -> WordScorer:
    """Return the scorer of a model, an ARPA file, a KenLM binary, one of our folders, or an object with a ``path``."""
    model = opened(model)
    if isinstance(model, Path):
        if looks_like_kenlm(model):
            return KenlmWords(KenlmLM.open(model, threads=1))
        return KenlmWords(KenlmLM(build_kenlm(read_log10(model)), str(model), threads=1))
    if isinstance(model, KenlmLM):
        return KenlmWords(model)
    if isinstance(model, NgramLM):
        if model.order > 1 and model.vocab.unknown == 0 and not method(model.smoothing, model.add).uniform:
            return KenlmWords(KenlmLM(build_kenlm(log10_of(model)), "the model", threads=1))
        return TokenWords(model)
    return TokenWords(model)


def opened(model: Any) -> Any:
    """Return the path of an ARPA file or KenLM binary as it is, and for anything else the model."""
    path = getattr(model, "path", model)
    if isinstance(path, str | bytes | os.PathLike):
        path = Path(os.fsdecode(path))
        if path.is_file() and (looks_like_kenlm(path) or looks_like_arpa(path)):
            return path
        model = load(path)
    model = model.model if isinstance(model, TextModel) else model
    if not isinstance(model, NextToken):
        raise CTCInputError(f"a {type(model).__name__} is not a language model of words, nor a file of one")
    return model


def load_unigram_set_from_arpa(arpa_path: str) -> set[str]:
    """Return the words of an ARPA file that have a back-off weight, as pyctcdecode does."""
    found = set()
    for line in itertools.takewhile(lambda line: line.strip() != "\\2-grams:", read_lines(arpa_path)):
        fields = line.strip().split("\t")
        if len(fields) == 3:
            found.add(fields[1])
    if not found:
        raise CTCInputError(f"{arpa_path}: no 1-gram has a back-off weight: expected an ARPA file")
    return found


def words_of(model: Any) -> Collection[str] | None:
    """Return the words that a model, as ``opened`` returns it, lists; None for KenLM binaries, which need not."""
    if isinstance(model, Path) and looks_like_arpa(model):
        return load_unigram_set_from_arpa(str(model))
    return None if isinstance(model, Path | KenlmLM) else list(model.vocab)


# Language models


class AbstractLanguageModel(ABC):
    """What the search asks of a language model. Subclasses of your own are searched by the plain version."""

    @property
    @abstractmethod
    def order(self) -> int:
        """How many words, the next one included, a score depends on."""

    @abstractmethod
    def get_start_state(self) -> Any:
        """Return the state before the first word."""

    @abstractmethod
    def score_partial_token(self, partial_token: str) -> float:
        """Return what a word that is not finished adds."""

    @abstractmethod
    def score(self, prev_state: Any, word: str, is_last_word: bool = False) -> tuple[float, Any]:
        """Return what a word adds after a state, and the state after the word."""

    def save_to_dir(self, filepath: str) -> None:
        """Save the model in a folder."""
        raise NotImplementedError

    @classmethod
    def load_from_dir(cls, filepath: str) -> AbstractLanguageModel:
        """Open a saved model."""
        raise NotImplementedError

    def reset_params(self, **params: Any) -> None:  # noqa: B027 - a model without weights has nothing to change
        """Change weights."""


class CTCLanguageModel(AbstractLanguageModel):
    """A model of words with its weights.

    kenlm_model: a path, a model or a folder, as ``open_scorer`` takes it. unigrams: the words that are known; without
    them, no unfinished word is. alpha: weight of the model; beta: added for each word; unk_score_offset: added to the
    log10 of unknown words; score_boundary: whether texts begin with ``<s>`` and end with ``</s>``.
    """

    JSON_ATTRS = ("alpha", "beta", "unk_score_offset", "score_boundary")
    _ATTRS_SERIALIZED_FILENAME = "attrs.json"
    _UNIGRAMS_SERIALIZED_FILENAME = "unigrams.txt"

    def __init__(
        self,
        kenlm_model: Any,
        unigrams: Collection[str] | None = None,
        alpha: float = 0.5,
        beta: float = 1.5,
        unk_score_offset: float = -10.0,
        score_boundary: bool = True,
    ) -> None:
        for name, value in (("alpha", alpha), ("beta", beta), ("unk_score_offset", unk_score_offset)):
            _checked_weight(name, value)
        self._kenlm_model = kenlm_model
        self.scorer = open_scorer(kenlm_model)
        self._unigram_set = frozenset(() if unigrams is None else self._known(unigrams))
        self.trie = build_trie(self._unigram_set)
        self.alpha, self.beta = alpha, beta
        self.unk_score_offset, self.score_boundary = unk_score_offset, score_boundary

    def _known(self, unigrams: Collection[str]) -> Collection[str]:
        words = [*{*unigrams}]
        if isinstance(self.scorer, KenlmWords):
            ids = self.scorer.ids(words).tolist()
            known = [word for word, id in zip(words, ids, strict=True) if id]
        else:
            known = [word for word in words if word in self.scorer]
        if len(known) < FEWEST_KNOWN * len(words):
            share = 1 - len(known) / len(words)
            warnings.warn(
                f"{share:.1%} of the {len(words):,} unigrams are unknown to the language model: is it of another "
                "language, or upper case?",
                UserWarning,
                stacklevel=4,
            )
        return known

    def reset_params(self, **params: Any) -> None:
        """Change alpha, beta, unk_score_offset or score_boundary; None changes nothing."""
        for name in self.JSON_ATTRS:
            value, kind = params.get(name), bool if name == "score_boundary" else float
            if value is not None:
                if not isinstance(value, kind):
                    raise CTCInputError(f"{name}={value!r}: expected a {kind.__name__}")
                _checked_weight(name, value)
                setattr(self, name, value)

    @property
    def order(self) -> int:
        """The order of the n-gram model."""
        return self.scorer.order

    def get_start_state(self) -> Any:
        """Return the state before the first word."""
        return self.scorer.start(self.score_boundary)

    def score_partial_token(self, partial_token: str) -> float:
        """Return 0 if a known word begins so, else the offset of unknown words, more for long ones."""
        if self._unigram_set and walk(self.trie, codes_of(partial_token)) >= 0:
            return 0.0
        return self.unk_score_offset * max(1.0, len(partial_token) / AVERAGE_LENGTH)

    def score(self, prev_state: Any, word: str, is_last_word: bool = False) -> tuple[float, Any]:
        """Return what a word adds after a state, and the state after the word."""
        log10, state = self.scorer.step(prev_state, word)
        if (self._unigram_set and word not in self._unigram_set) or word not in self.scorer:
            log10 += self.unk_score_offset
        if is_last_word and self.score_boundary:
            log10 += self.scorer.end(state)
        return self.alpha * log10 * LN10 + self.beta, state

    # Files

    @property
    def serializable_attrs(self) -> dict[str, Any]:
        """The weights."""
        return {name: getattr(self, name) for name in self.JSON_ATTRS}

    def save_to_dir(self, filepath: str, unigram_encoding: str | None = None) -> None:
        """Save weights, unigrams and the n-gram file in a folder, in the layout of Hugging Face."""
        folder, path = Path(filepath), self._path()
        (folder / self._ATTRS_SERIALIZED_FILENAME).write_text(json.dumps(self.serializable_attrs), "utf-8")
        lines = "".join(f"{word}\n" for word in sorted(self._unigram_set))
        (folder / self._UNIGRAMS_SERIALIZED_FILENAME).write_text(lines, unigram_encoding or "utf-8")
        if path is not None and path.suffix in MODEL_SUFFIXES:
            shutil.copy2(path, folder / path.name)
        elif isinstance(self.scorer, KenlmWords):
            (folder / "language_model.bin").write_bytes(self.scorer.model.model.data.tobytes())
        else:
            raise CTCInputError(f"a {type(self._kenlm_model).__name__} cannot be saved as an n-gram file")

    def _path(self) -> Path | None:
        path = getattr(self._kenlm_model, "path", self._kenlm_model)
        found = Path(os.fsdecode(path)) if isinstance(path, str | bytes | os.PathLike) else None
        return found if found is not None and found.is_file() else None

    @staticmethod
    def parse_directory_contents(filepath: str) -> dict[str, str]:
        """Return the paths of the three files of a folder: attributes, unigrams and the n-gram file."""
        names = {path.name for path in Path(filepath).iterdir() if not path.name.startswith((".", "__"))}
        wanted = {CTCLanguageModel._ATTRS_SERIALIZED_FILENAME, CTCLanguageModel._UNIGRAMS_SERIALIZED_FILENAME}
        rest = sorted(names - wanted)
        if not wanted <= names or len(rest) != 1 or Path(rest[0]).suffix not in MODEL_SUFFIXES:
            raise CTCInputError(
                f"{filepath}: holds {', '.join(sorted(names)) or 'nothing'}: expected attrs.json, unigrams.txt and one "
                f"file that ends in {', '.join(MODEL_SUFFIXES)}"
            )
        paths = (os.path.join(filepath, name) for name in (*sorted(wanted), *rest))  # noqa: PTH118
        return dict(zip(("json_attrs", "unigrams", "kenlm"), paths, strict=True))

    @classmethod
    def load_from_dir(cls, filepath: str, unigram_encoding: str | None = None) -> CTCLanguageModel:
        """Open what ``save_to_dir`` wrote."""
        files = cls.parse_directory_contents(filepath)
        with explained(f"{filepath}: cannot be read", catch=Exception, raises=CTCInputError):
            weights = parse_json(Path(files["json_attrs"]).read_bytes())
            unigrams = Path(files["unigrams"]).read_text(unigram_encoding or "utf-8").splitlines()
        if not isinstance(weights, dict) or set(weights) != set(cls.JSON_ATTRS):
            raise CTCInputError(f"{files['json_attrs']}: expected an object with {', '.join(cls.JSON_ATTRS)}")
        return cls(files["kenlm"], unigrams, **weights)


MODEL_SUFFIXES = (".arpa", ".bin", ".binary")


class MultiLanguageModel(AbstractLanguageModel):
    """Several language models; their scores are averaged."""

    def __init__(self, language_models: list[CTCLanguageModel]) -> None:
        if len(language_models) < 2:
            raise CTCInputError(f"{len(language_models)} language models: expected at least two")
        self._language_models = language_models

    @property
    def order(self) -> int:
        """The highest order."""
        return max(model.order for model in self._language_models)

    def get_start_state(self) -> list[Any]:
        """Return the state of each model."""
        return [model.get_start_state() for model in self._language_models]

    def score_partial_token(self, partial_token: str) -> float:
        """Return the mean of what an unfinished word adds."""
        scores = [model.score_partial_token(partial_token) for model in self._language_models]
        return math.fsum(scores) / len(scores)

    def score(self, prev_state: Any, word: str, is_last_word: bool = False) -> tuple[float, list[Any]]:
        """Return the mean of what a word adds, and the state of each model."""
        found = [
            model.score(state, word, is_last_word)
            for state, model in zip(prev_state, self._language_models, strict=True)
        ]
        return sum(score for score, _ in found) / len(found), [state for _, state in found]
