"""The panel of longest matches: how much of what is typed the lab's text has seen, what followed there, and where."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import Field

from foreword.lab.trainings import Job, LearningText
from foreword.pipeline.index import TextIndex
from foreword.protocols import Step
from foreword.serve.bodies import Asked
from foreword.serve.routes import Service

if TYPE_CHECKING:
    from foreword.lab.app import Lab

NEXT_WORDS, PLACES = 8, 4
"""How many next words are shown, and how many places of each."""


class AskMatches(Asked):
    """A prefix. read: how many of its tokens have been read; without it, all."""

    text: str = Field(max_length=4000)
    read: int | None = Field(None, ge=0)


class Matcher:
    """An index of a text, built when it is first asked."""

    def __init__(self, text: LearningText) -> None:
        self._text = text
        self._lock = threading.Lock()
        self._index: TextIndex | None = None

    @property
    def index(self) -> TextIndex:
        """The index of the documents."""
        with self._lock:
            if self._index is None:
                self._index = TextIndex(self._text.tokenizer).fit(self._text.documents)
            return self._index

    def match(self, text: str, read: int | None = None) -> dict[str, Any]:
        """Return the tokens of a text with the longest match that ends at each, and what follows those ``read``."""
        index = self.index
        ids, matches = index.match(text)
        words = [index.vocab[id] for id in ids.tolist()]
        read = len(ids) if read is None else min(read, len(ids))
        length = int(matches.lengths[read - 1]) if read else 0
        found = index.index.context(ids[read - length : read])
        context, total = ids[read - found.length : read], int(found.counts.sum())
        return {
            "words": [
                {"word": word, "length": length, "count": count if length else 0}
                for word, length, count in zip(words, matches.lengths.tolist(), matches.counts.tolist(), strict=True)
            ],
            "read": read,
            "matched": found.length,
            "count": total,
            "distinct": len(found.tokens),
            "next": [
                {"word": index.vocab[id], "count": count, "p": count / total, "places": self._places([*context, id])}
                for id, count in found.likeliest(NEXT_WORDS)
            ],
        }

    def _places(self, run: Sequence[int]) -> list[dict[str, Any]]:
        return [asdict(place) for place in self.index.places(np.array(run, np.int64), PLACES)]


def prepare(lab: Lab) -> None:
    """Build the index of the lab's text before the panel asks."""

    def work(_: Job) -> Iterator[Step]:
        yield Step(0, 1)
        lab.matcher.match("the")
        yield Step(1, 1)

    lab.jobs.add("Longest matches", work, lambda: None, starter=True)


def add_routes(service: Service, lab: Lab) -> None:
    """Add the route of the panel."""
    service.post("/api/matches", AskMatches, lambda asked: lab.matcher.match(asked.text, asked.read))
