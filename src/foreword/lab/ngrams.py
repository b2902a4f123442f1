"""The panel of n-grams: a text as ids, and the discounts that modified Kneser-Ney has for it.

The page counts for itself, in ``static/smoothing.js``: a saved panel answers for any context. A browser test checks its
probabilities against ``NgramLM``.
"""

from __future__ import annotations

import base64
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from foreword.lab.trainings import LearningText
from foreword.ngram.model import NgramLM
from foreword.protocols import Json
from foreword.tokens.corpus import Corpus
from foreword.tokens.words import WordTokenizer

if TYPE_CHECKING:
    from foreword.lab.app import Lab
    from foreword.serve.routes import Service

HIGHEST = 5
MOST_TOKENS = 100_000
"""Tokens that the page counts in: a tenth of a second for each context, at most, and a third of a megabyte."""


def page_data(text: LearningText) -> dict[str, Json]:
    """Return the text, or every second, third ... document of a long one, and the discounts of models of each order."""
    corpus = shortened(text.train)
    vocab, start = corpus.vocab, len(corpus.vocab)
    ids = np.concatenate([[start, *document] for document in corpus.documents()]).astype("<u4")
    tokenizer = text.tokenizer
    discounts: list[Json] = [
        [list(found) for found in NgramLM(order).fit(corpus).discounts_] for order in range(1, HIGHEST + 1)
    ]
    return {
        "words": list(vocab),
        "ids": base64.b64encode(ids.tobytes() if start > 0xFFFE else ids.astype("<u2").tobytes()).decode(),
        "unknown": vocab.unknown,
        "end": vocab.end,
        "characters": not isinstance(tokenizer, WordTokenizer),
        "discounts": discounts,
        "prompt": text.examples["prompt"],
        "tokens": len(corpus.ids),
        "all_tokens": len(text.train.ids),
    }


def shortened(corpus: Corpus) -> Corpus:
    """Return every n-th document, so that there are at most ``MOST_TOKENS`` tokens."""
    every = -(-len(corpus.ids) // MOST_TOKENS)
    return (
        corpus
        if every == 1
        else Corpus.from_ids([document[:-1] for document in list(corpus.documents())[::every]], corpus.vocab)
    )


def add_routes(service: Service, lab: Lab) -> None:
    """Add the route of the panel."""
    lock = threading.Lock()
    found: list[dict[str, Json]] = []

    def data() -> dict[str, Json]:
        with lock:
            if not found:
                found.append(page_data(lab.text))
        return found[0]

    service.get("/api/ngrams", data)


def answers(texts: Sequence[str], seconds: float) -> dict[str, Json]:
    """Return what the panel asks for."""
    return {"/api/ngrams": page_data(LearningText(lambda: texts))}
