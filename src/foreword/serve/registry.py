"""The models of a server, by the names that its operator gave them. A client gives a name, never a path."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Any

from foreword import kinds
from foreword.errors import ForewordError, InputError
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
    """A model and what it is called. task: "text", "vectors", "tags", "translate" or "other", by what it can be asked.

    kind: as in ``KINDS``; can: the names of the routes that take it.
    steps: the form of a language model that is quickest for one token at a time. lock: held by who works with the
    model, for kernels write into room that belongs to it.
    """

    name: str
    title: str
    model: Any
    task: str
    kind: str
    can: tuple[str, ...]
    steps: NextToken[Any] | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def language_model(self) -> TextLM:
        if not isinstance(self.model, TextLM):
            raise InputError(f"{self.name} is no language model that reads text: its kind is {self.kind}")
        return self.model

    @property
    def vectors(self) -> WordVectors:
        found = vectors_of(self.model)
        if found is None:
            raise InputError(f"{self.name} has no word vectors: its kind is {self.kind}")
        return found

    def check(self, ability: str) -> None:
        if ability not in self.can:
            able = ", ".join(self.can) or "nothing"
            raise CannotError(f"{self.name} cannot be asked to {ability}: its kind is {self.kind}, which does {able}")

    def is_cheap(self, ability: str) -> bool:
        """Whether a short question takes less time than handing it to another thread would."""
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
        """Put a model there; one of the same name is replaced for whoever asks from now on."""
        entry = entry_of(name, model, title)
        self.put(entry)
        return entry

    def put(self, entry: Entry) -> None:
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
        return self._entries.get(name)

    def __len__(self) -> int:
        return len(self._entries)

    def entries(self, task: str | None = None) -> list[Entry]:
        return [entry for entry in self._entries.values() if task in (None, entry.task)]

    def able(self, ability: str) -> list[str]:
        """The names of those that can be asked this."""
        return [entry.name for entry in self._entries.values() if ability in entry.can]

    def free_name(self, wanted: str) -> str:
        """The name itself, or with a number behind it where it is taken."""
        taken = self._entries
        return next(
            name for name in (wanted, *(f"{wanted}-{n}" for n in range(2, len(taken) + 3))) if name not in taken
        )


def entry_of(name: str, model: Any, title: str | None = None) -> Entry:
    steps = None
    if isinstance(model, TextLM):
        inner = model.model
        steps = inner.stepping() if isinstance(inner, QuickSteps) else inner
        if isinstance(inner, NgramLM):
            inner.threads = 1  # a short text is scored sooner than a thread begins
    kind = kinds.of(model)
    task = next((TASKS[ability] for ability in kind.abilities if ability in TASKS), "other")
    return Entry(name, title or name, model, task, kind.name, kind.abilities, steps)


def vectors_of(model: Any) -> WordVectors | None:
    """A model's word vectors: the value itself, or that of what was trained."""
    found = model if isinstance(model, WordVectors) else getattr(model, "vectors", None)
    return found if isinstance(found, WordVectors) else None
