"""The models of a server, by the names that its operator gave them. A client gives a name, never a path."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Any

from foreword import kinds
from foreword.errors import ForewordError, InputError
from foreword.ngram.kenlm import KenlmLM
from foreword.ngram.kenlm_words import HashedWords
from foreword.ngram.model import NgramLM
from foreword.pipeline.language import TextLM
from foreword.protocols import NextToken, QuickSteps
from foreword.vectors.wordvectors import WordVectors

TASKS = {"score": "text", "nearest": "vectors", "tag": "tags", "translate": "translate"}
"""What clients call a model, by what it can be asked; "other" for the rest."""

CHEAP_CELLS = 1 << 20
"""Numbers of a matrix of word vectors that is searched in less time than it takes to hand the work to a thread."""


class UnknownModelError(InputError):
    """A name that no model has."""


class CannotError(InputError):
    """A question that the kind of model cannot answer."""


class NotYetError(ForewordError):
    """A model that is still being loaded."""


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Entry:
    """A model and its name. task: "text", "vectors", "tags", "translate" or "other", by the requests it can answer.

    kind: as in ``KINDS``; can: the names of the routes that take it.
    steps: the version of a language model that is fastest for one token at a time. words: its word vectors, cached
    because a trained model rebuilds them at each call. lock: held while the model computes, because kernels write into
    its buffers.
    """

    name: str
    title: str
    model: Any
    task: str
    kind: str
    can: tuple[str, ...]
    steps: NextToken[Any] | None = None
    words: WordVectors | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def language_model(self) -> TextLM:
        """Return the model as a language model; raise an InputError if it is not one."""
        if not isinstance(self.model, TextLM):
            raise InputError(f"{self.name} is not a language model that reads text: its kind is {self.kind}")
        return self.model

    @property
    def vectors(self) -> WordVectors:
        """Return the word vectors of the model; raise an InputError if it has none."""
        if self.words is None:
            raise InputError(f"{self.name} has no word vectors: its kind is {self.kind}")
        return self.words

    def check(self, ability: str) -> None:
        """Raise a CannotError if the model does not have this ability."""
        if ability not in self.can:
            able, why = ", ".join(self.can) or "nothing", f"its kind is {self.kind}, which does"
            if ability in kinds.KINDS[self.kind].abilities:
                why = "its file holds no words, only their hashes; it does"
            raise CannotError(f"{self.name} cannot be asked to {ability}: {why} {able}")

    def is_cheap(self, ability: str) -> bool:
        """Return whether a short question takes less time than handing it to another thread."""
        if ability in ("score", "surprisal"):
            return isinstance(self.model, TextLM) and kinds.of(self.model.model).quick
        if ability in ("nearest", "analogy"):
            return len(self.vectors) * self.vectors.dimensions <= CHEAP_CELLS
        kind = kinds.of(self.model)
        return ability == "tokenize" or kind.quick or (ability == "embed" and not kind.network)


class Registry:
    """Models by name; any thread may look one up while another adds one.

    coming: names of models that are still being loaded.
    """

    def __init__(self) -> None:
        self._entries: dict[str, Entry] = {}
        self._lock = threading.Lock()
        self.coming: frozenset[str] = frozenset()

    def add(self, name: str, model: Any, title: str | None = None) -> Entry:
        """Add a model; one of the same name is replaced for new requests."""
        entry = entry_of(name, model, title)
        self.put(entry)
        return entry

    def put(self, entry: Entry) -> None:
        """Add an entry, or replace the one of the same name."""
        with self._lock:
            self._entries = {**self._entries, entry.name: entry}
            self.coming -= {entry.name}

    def __getitem__(self, name: str) -> Entry:
        found = self._entries.get(name)
        if found is None:
            if name in self.coming:
                raise NotYetError(f"{name} is still being loaded: ask again soon")
            there = ", ".join(self._entries) or "none yet"
            raise UnknownModelError(f"there is no model {name[:80]!r} here: there are {there}")
        return found

    def get(self, name: str) -> Entry | None:
        """Return an entry, or None."""
        return self._entries.get(name)

    def __len__(self) -> int:
        return len(self._entries)

    def entries(self, task: str | None = None) -> list[Entry]:
        """Return the entries, or those of one task."""
        return [entry for entry in self._entries.values() if task in (None, entry.task)]

    def able(self, ability: str) -> list[str]:
        """Return the names of the models with this ability."""
        return [entry.name for entry in self._entries.values() if ability in entry.can]

    def free_name(self, wanted: str) -> str:
        """Return the name, or the name with a number if it is taken."""
        taken = self._entries
        return next(
            name for name in (wanted, *(f"{wanted}-{n}" for n in range(2, len(taken) + 3))) if name not in taken
        )


def entry_of(name: str, model: Any, title: str | None = None) -> Entry:
    """Return the entry of a model."""
    steps = None
    if isinstance(model, TextLM):
        inner = model.model
        steps = inner.stepping() if isinstance(inner, QuickSteps) else inner
        if isinstance(inner, NgramLM | KenlmLM):
            inner.threads = 1  # a short text is scored sooner than a thread begins
    kind = kinds.of(model)
    task = next((TASKS[ability] for ability in kind.abilities if ability in TASKS), "other")
    words = vectors_of(model) if {"embed", "nearest"} & set(kind.abilities) else None
    return Entry(name, title or name, model, task, kind.name, abilities_of(model), steps, words)


def abilities_of(model: Any) -> tuple[str, ...]:
    """Return what a model can be asked for: what its kind can, but scores alone where it cannot name its words."""
    if isinstance(model, TextLM) and isinstance(model.tokenizer, HashedWords) and not model.tokenizer.has_words:
        return ("score",)
    return kinds.of(model).abilities


def vectors_of(model: Any) -> WordVectors | None:
    """Return a model's word vectors: the model itself, or its ``vectors``."""
    found = model if isinstance(model, WordVectors) else getattr(model, "vectors", None)
    return found if isinstance(found, WordVectors) else None
