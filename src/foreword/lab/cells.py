"""Data of the panel of recurrent cells: weights and word vectors, as numbers for JSON.

The cells themselves run in the page, in ``static/cells.js``, a port of ``nn/cells.py``: the exported page must work
without a server. A browser test checks that the two agree to 1e-6. Random cells read words as numbers made of their
letters, so that any word has some; trained ones read the embedding that was learnt with them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from importlib.util import find_spec
from typing import TYPE_CHECKING

import numpy as np

from foreword.arrays import Doubles
from foreword.nn.cells import Cell, GRUCell, LSTMCell, RNNCell
from foreword.protocols import Json, Step

if TYPE_CHECKING:
    from foreword.lab.app import Lab
    from foreword.lab.trainings import Job
    from foreword.serve.routes import Service

UNITS = 8
"""Of each cell, and numbers that a word is read as: as many as can be shown one by one."""

KINDS = ("rnn", "lstm", "gru")
SENTENCE = "the cat that sat on the mat was not amused"

TRAINED_WORDS = 1500
"""Commonest words that the trained cells know; the exported page carries a vector for each."""

TRAINED_SECONDS = 4.0
"""For each of the three: at eight units they learn what they can in that time."""


def drawn_cells(seed: int = 0) -> dict[str, Cell]:
    """Return cells with random weights and a forget bias of 0: the page's slider says what is added."""
    return {
        "rnn": RNNCell(UNITS, UNITS, seed=seed),
        "lstm": LSTMCell(UNITS, UNITS, forget_bias=0.0, seed=seed + 1),
        "gru": GRUCell(UNITS, UNITS, seed=seed + 2),
    }


def word_input(word: str) -> Doubles:
    """Return (UNITS,) numbers from −1 to 1 for a word: FNV-1a over its bytes, then xorshift32."""
    state = 0x811C9DC5
    for byte in word.encode():
        state = ((state ^ byte) * 0x01000193) & 0xFFFFFFFF
    state = state or 1
    numbers = []
    for _ in range(UNITS + 2):
        state ^= (state << 13) & 0xFFFFFFFF
        state ^= state >> 17
        state ^= (state << 5) & 0xFFFFFFFF
        numbers.append(state / 2**31 - 1)
    return np.array(numbers[2:])  # the first two are still much like the hash


def page_data(trained: Json = None, sentence: str = SENTENCE) -> dict[str, Json]:
    """Return the data of the page; ``trained`` is the result of ``trained_cells``, if there is one."""
    drawn: dict[str, Json] = {kind: weights_json(cell) for kind, cell in drawn_cells().items()}
    return {"units": UNITS, "sentence": sentence, "drawn": drawn, "trained": trained}


def weights_json(cell: Cell) -> dict[str, Json]:
    """Return the weights of a cell as lists."""
    return {name: np.asarray(weight, np.float64).tolist() for name, weight in cell.weights.items()}


def trained_cells(texts: Sequence[str], seconds: float = TRAINED_SECONDS, seed: int = 0) -> dict[str, Json]:
    """Train three language models of eight units; return each cell's weights and the vectors of the words it knows.

    embedding: one row per word, in the order of ``words``; the first is the unknown word.
    """
    from foreword.evaluate.gates import Layers
    from foreword.neural.recurrent import RecurrentLM
    from foreword.tokens.corpus import Corpus
    from foreword.tokens.words import WordTokenizer

    tokenizer = WordTokenizer(max_size=TRAINED_WORDS).fit(texts)
    corpus = Corpus.from_texts(texts, tokenizer)
    training = replace(RecurrentLM.TRAINING, epochs=1000, steps=20, rate=1e-2, seconds=seconds, sampled=300)
    vocab = tokenizer.vocab
    words = [id for id in range(len(vocab)) if id not in (vocab.unknown, vocab.end)]
    rows = [vocab.unknown if vocab.unknown is not None else vocab.end, *words]
    made: dict[str, Json] = {"words": [vocab[id] for id in rows]}
    for kind in KINDS:
        model = RecurrentLM(kind, UNITS, UNITS, layers=1, training=training, seed=seed).fit(corpus)
        layers = Layers.of(model)
        embedding = np.round(layers.embedding[rows], 4)
        made[kind] = {"weights": weights_json(layers.cells[0]), "embedding": embedding.tolist()}
    return made


def inputs_of(words: Iterable[str]) -> Doubles:
    """Return (T, 1, UNITS), a sentence as the random cells read it."""
    return np.array([[word_input(word)] for word in words])


def prepare(lab: Lab) -> None:
    """Train the three cells, after the models that other panels need."""
    if find_spec("torch") is None:
        return

    def work(_: Job) -> Iterator[Step]:
        yield Step(0, 1)
        sentence = lab.text.examples["sentence"] if lab.text.own else SENTENCE
        lab.cells = page_data(trained_cells(lab.text.documents), sentence)
        yield Step(1, 1)

    lab.jobs.add("Cells of eight units", work, lambda: None, starter=True)


def add_routes(service: Service, lab: Lab) -> None:
    """Add the route of the panel."""
    service.get("/api/cells", lambda: lab.cells)


def answers(texts: Sequence[str], seconds: float) -> dict[str, Json]:
    """Return what the panel asks for; the cells are trained for some seconds each."""
    trained = trained_cells(texts, seconds) if seconds else None
    return {"/api/cells": page_data(trained)}
