"""The ``kenlm`` module of KenLM, with Foreword behind it: ``import foreword.compat.kenlm as kenlm``.

The same names, arguments, results to the last bit, and types of errors as the ``kenlm`` module 0.3.0, and no compiler
to install it. Binary files are mapped, ARPA files (also compressed) are read into memory.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import total_ordering
from typing import Any

import numpy as np

from foreword.arrays import Bytes, Floats, Ints
from foreword.errors import ForewordError
from foreword.ngram.arpa import read_log10
from foreword.ngram.kenlm import KenlmLM
from foreword.ngram.kenlm_format import looks_like_kenlm
from foreword.ngram.kenlm_words import full_table
from foreword.ngram.kenlm_writing import build_kenlm
from foreword.ngram.kernels_kenlm import FULL, score_sentence

__all__ = ["ARPALoadComplain", "Config", "FullScoreReturn", "LanguageModel", "LoadMethod", "Model", "State"]


class LoadMethod:
    """How a file is loaded. All values mean the same here: binary files are always mapped."""

    LAZY = 0
    POPULATE_OR_LAZY = 1
    POPULATE_OR_READ = 2
    READ = 3
    PARALLEL_READ = 4


class ARPALoadComplain:
    """Which warnings an ARPA file causes. There are none here."""

    ALL = 0
    EXPENSIVE = 1
    NONE = 2


@dataclass
class Config:
    """Options of ``Model``; accepted, and without effect."""

    load_method: int = LoadMethod.POPULATE_OR_READ
    show_progress: bool = True
    arpa_complain: int = ARPALoadComplain.ALL


@dataclass(frozen=True)
class FullScoreReturn:
    """log_prob: log10 of the probability; ngram_length: of what matched; oov: whether the word is unknown."""

    log_prob: float
    ngram_length: int
    oov: bool

    def __repr__(self) -> str:
        return f"FullScoreReturn({self.log_prob}, {self.ngram_length}, {self.oov})"


@total_ordering
class State:
    """The words that a model remembers of a text. States compare and hash by these words."""

    __slots__ = ("row",)

    def __init__(self) -> None:
        self.row: Ints = np.zeros((1, 1), np.int32)

    @property
    def words(self) -> tuple[int, ...]:
        """Return the ids of the words that count, the latest first."""
        return tuple(self.row[0, 1 : 1 + self.row[0, 0]].tolist())

    def __eq__(self, other: object) -> bool:
        return self.words == other.words if isinstance(other, State) else NotImplemented

    def __lt__(self, other: State) -> bool:
        return (len(self.words), self.words) < (len(other.words), other.words)

    def __hash__(self) -> int:
        return hash(self.words)

    def __copy__(self) -> State:
        copied = State()
        copied.row = self.row.copy()
        return copied

    def __deepcopy__(self, memo: dict[int, Any]) -> State:
        return self.__copy__()


class Model:
    """A language model, from a KenLM binary or an ARPA file."""

    def __init__(self, path: str | bytes, config: Config | None = None) -> None:
        self.path = os.path.abspath(os.fsencode(path))  # noqa: PTH100
        name = os.fsdecode(self.path)
        try:
            if looks_like_kenlm(name):
                self._model = KenlmLM.open(name, threads=1)
            else:
                self._model = KenlmLM(build_kenlm(read_log10(name)), name, threads=1)
        except (ForewordError, OSError) as error:
            raise OSError(f"Cannot read model '{os.fsdecode(path)}' ({error})") from error
        self._config = config
        self._begin, self._null = self._model.state_after_start(), self._model.null_state()
        self._end = int(self._model.words.file_ids([b"</s>"])[0])

    def __repr__(self) -> str:
        return f"<Model from {os.path.basename(self.path)!r}>"  # noqa: PTH119

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.path, self._config)

    def __contains__(self, word: str | bytes) -> bool:
        return bool(self._model.words.file_ids([_c_string(word)])[0])

    @property
    def order(self) -> int:
        """Return the order of the model."""
        return self._model.order

    def score(self, sentence: str | bytes, bos: bool = True, eos: bool = True) -> float:
        """Return log10 of the probability of a sentence, by default with its end, after its beginning."""
        text = _c_string(sentence) if bos and eos else sentence
        return float(self._scores(text, bos, eos)[3])

    def perplexity(self, sentence: str | bytes) -> float:
        """Return the perplexity of a sentence, its end included."""
        words = len(_bytes_of(sentence).split()) + 1
        return float(10.0 ** (-self.score(sentence) / words))

    def full_scores(
        self, sentence: str | bytes, bos: bool = True, eos: bool = True
    ) -> Iterator[tuple[float, int, bool]]:
        """Yield log10, the length of the n-gram that matched, and whether it is unknown, for each word."""
        logs, lengths, known, _ = self._scores(sentence, bos, eos)
        yield from zip(logs.tolist(), lengths.tolist(), (known == 0).tolist(), strict=True)

    def BeginSentenceWrite(self, state: State) -> None:  # noqa: N802
        """Change a state to that after ``<s>``."""
        state.row = self._begin

    def NullContextWrite(self, state: State) -> None:  # noqa: N802
        """Set a state to that of no context, not even ``<s>``."""
        state.row = self._null

    def BaseScore(self, in_state: State, word: str, out_state: State) -> float:  # noqa: N802
        """Return log10 of a word after a state, and write the state after the word."""
        return self.BaseFullScore(in_state, word, out_state).log_prob

    def BaseFullScore(self, in_state: State, word: str, out_state: State) -> FullScoreReturn:  # noqa: N802
        """Return all facts of a word after a state, and write the state after the word."""
        if not isinstance(word, str):
            raise TypeError(f"Argument 'word' has incorrect type (expected str, got {type(word).__name__})")
        row = in_state.row if in_state.row.shape == self._null.shape else self._null
        ids = self._model.words.file_ids([_c_string(word)])
        out_state.row, logs, matched = self._model.step(row, ids.astype(np.int64))
        return FullScoreReturn(float(logs[0]), int(matched[0]), not ids[0])

    def _scores(self, sentence: str | bytes, bos: bool, eos: bool) -> tuple[Floats, Bytes, Ints, np.float32]:
        """Return log10, matched length and id of every word, and the sum of the first."""
        data = np.frombuffer(_bytes_of(sentence), np.uint8)
        size = len(data) // 2 + 2
        logs, lengths, ids = np.empty(size + 1, np.float32), np.empty(size, np.uint8), np.empty(size, np.int32)
        states = np.empty(2 * self._null.shape[1], np.int32)
        states[: len(states) // 2] = self._begin[0] if bos else self._null[0]
        keys, end = np.empty(size, np.uint64), self._end if eos else -1
        written = score_sentence(self._model.model, data, end, states, keys, logs, lengths, ids)
        if written == FULL:
            raise full_table(self._model.name)
        return logs[:written], lengths[:written], ids[:written], logs[size]


class LanguageModel(Model):
    """The old name of ``Model``."""


def _bytes_of(text: str | bytes) -> bytes:
    """Return a text as UTF-8."""
    if isinstance(text, bytes):
        return text
    if isinstance(text, str):
        return text.encode()
    raise TypeError(f"Cannot convert {type(text)} to string")


def _c_string(text: str | bytes) -> bytes:
    """Return a text up to its first NUL, where the original, which passes C strings, ends it."""
    return _bytes_of(text).split(b"\0", 1)[0]
