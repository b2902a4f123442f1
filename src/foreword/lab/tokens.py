"""The panel of tokens: byte-pair merges replayed on the user's text, and how far they shorten it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from pydantic import Field

from foreword.serve.bodies import Asked
from foreword.serve.routes import Service
from foreword.tokens.bpe import BPETokenizer

if TYPE_CHECKING:
    from foreword.lab.app import Lab

Source = Literal["text", "corpus"]

MERGES = 4000
"""That are learnt from the lab's text; the slider goes through as many as change what is typed."""


class AskMerges(Asked):
    """Replay merges on a text. source: what they are learnt from, the text itself or the lab's."""

    text: str = Field(min_length=1, max_length=2000)
    source: Source = "text"
    merges: int = Field(60, ge=0, le=500)


class LearntTokenizer(NamedTuple):
    """A tokenizer with the rank and the count of each merge."""

    tokenizer: BPETokenizer
    ranks: dict[tuple[str, str], int]
    counts: dict[tuple[str, str], int]

    @classmethod
    def of(cls, tokenizer: BPETokenizer) -> LearntTokenizer:
        """Return a tokenizer with the record of its training."""
        vocab = tokenizer.vocab
        ranks = {pair: rank for rank, pair in enumerate(tokenizer.merge_names(), 1)}
        counts = {(vocab[merge.left], vocab[merge.right]): merge.count for merge in tokenizer.steps()}
        return cls(tokenizer, ranks, counts)


class Merges:
    """Byte-pair merges of characters, learnt once from the lab's text, or each time from what was typed."""

    def __init__(self, texts: Callable[[], Sequence[str]]) -> None:
        self._texts = texts
        self._lock = threading.Lock()
        self._learnt: LearntTokenizer | None = None

    def replay(self, text: str, source: Source, merges: int) -> dict[str, Any]:
        """Return for each step the pair, its count in the text it was learnt from, and the tokens after it."""
        learnt = self._from_corpus() if source == "corpus" else self._from(text, merges)
        alphabet = len(learnt.tokenizer.vocab) - len(learnt.ranks)
        steps: list[dict[str, Any]] = []
        for step in islice(learnt.tokenizer.replay(text), merges + 1):
            pair = step["merge"]
            rank, count = (0, None) if pair is None else (learnt.ranks.get(pair, 0), learnt.counts.get(pair))
            steps.append({"merge": pair, "count": count, "tokens": step["tokens"], "vocabulary": alphabet + rank})
        return {"steps": steps, "learnt": len(learnt.ranks), "characters": len(text)}

    def _from(self, text: str, merges: int) -> LearntTokenizer:
        size = len(set(text)) + 2 + merges  # the end and the unknown one are in the vocabulary, too
        return LearntTokenizer.of(BPETokenizer(size, kind="characters", min_frequency=2).fit([text]))

    def _from_corpus(self) -> LearntTokenizer:
        with self._lock:
            if self._learnt is None:
                tokenizer = BPETokenizer(MERGES, kind="characters", min_frequency=2)
                self._learnt = LearntTokenizer.of(tokenizer.fit(self._texts()))
            return self._learnt


def add_routes(service: Service, lab: Lab) -> None:
    """Add the route of the panel."""
    service.post("/api/merges", AskMerges, lambda asked: lab.merges.replay(asked.text, asked.source, asked.merges))
