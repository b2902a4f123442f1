"""The models that a server holds, by the names its operator gave them. A client says a name, never a path."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Any

from foreword.errors import InputError
from foreword.io.folder import kind_of
from foreword.pipeline import TextLM
from foreword.protocols import NextToken, QuickSteps, Tagger
from foreword.vectors.wordvectors import WordVectors


class UnknownModelError(InputError):
    """A name that nothing on the shelf has."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A model and what it is called. task: "text", "vectors", "tags", "translate" or "other", by what it can be asked.

    steps: the form of a language model that is quickest for one token at a time. lock: held by who works with the
    model, for kernels write into room that belongs to it.
    """

    name: str
    title: str
    model: Any
    task: str
    steps: NextToken[Any] | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def language_model(self) -> TextLM:
        if not isinstance(self.model, TextLM):
            raise InputError(f"{self.name} is no language model that reads text: its kind is {kind_of(self.model)}")
        return self.model

    @property
    def vectors(self) -> WordVectors:
        found = vectors_of(self.model)
        if found is None:
            raise InputError(f"{self.name} has no word vectors: its kind is {kind_of(self.model)}")
        return found


class Shelf:
    """Names to models; any thread may look while another adds."""

    def __init__(self) -> None:
        self._entries: dict[str, Entry] = {}
        self._lock = threading.Lock()

    def add(self, name: str, model: Any, title: str | None = None) -> Entry:
        """Put a model there; one of the same name is replaced for whoever asks from now on."""
        steps = None
        if isinstance(model, TextLM):
            inner = model.model
            steps = inner.stepping() if isinstance(inner, QuickSteps) else inner
        entry = Entry(name, title or name, model, task_of(model), steps)
        with self._lock:
            self._entries = {**self._entries, name: entry}
        return entry

    def __getitem__(self, name: str) -> Entry:
        found = self._entries.get(name)
        if found is None:
            there = ", ".join(self._entries) or "none yet"
            raise UnknownModelError(f"there is no model {name[:80]!r} here: there are {there}")
        return found

    def __len__(self) -> int:
        return len(self._entries)

    def entries(self, task: str | None = None) -> list[Entry]:
        return [entry for entry in self._entries.values() if task in (None, entry.task)]

    def free_name(self, wanted: str) -> str:
        """The name itself, or with a number behind it where it is taken."""
        taken = self._entries
        return next(
            name for name in (wanted, *(f"{wanted}-{n}" for n in range(2, len(taken) + 3))) if name not in taken
        )


def task_of(model: Any) -> str:
    if isinstance(model, TextLM):
        return "text"
    if isinstance(model, Tagger):
        return "tags"
    if hasattr(model, "translate") and hasattr(model, "look"):  # its class would bring torch along
        return "translate"
    return "other" if vectors_of(model) is None else "vectors"


def vectors_of(model: Any) -> WordVectors | None:
    """A model's word vectors: the value itself, or that of what was trained."""
    found = model if isinstance(model, WordVectors) else getattr(model, "vectors", None)
    return found if isinstance(found, WordVectors) else None
