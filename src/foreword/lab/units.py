"""The panel of hidden units: what each unit of a character model does at every character of a text.

A character model is trained behind the page; it reads a text, and the page searches its units for those that follow a
pattern: quotes, digits, the length of a line, or an expression that the visitor types.

A. Karpathy, J. Johnson and L. Fei-Fei, "Visualizing and understanding recurrent networks" (2015); H. Strobelt et al.,
"LSTMVis: A tool for visual analysis of hidden state dynamics in recurrent neural networks" (2018).
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Sequence
from dataclasses import replace
from importlib.util import find_spec
from typing import TYPE_CHECKING

import numpy as np
from pydantic import Field

from foreword.arrays import Doubles
from foreword.lab.trainings import LearningText
from foreword.pipeline.language import TextLM
from foreword.protocols import Json, Step
from foreword.serve.bodies import Asked
from foreword.tokens.characters import CharacterTokenizer
from foreword.tokens.corpus import Corpus

if TYPE_CHECKING:
    from foreword.lab.app import Lab
    from foreword.lab.trainings import Job
    from foreword.serve.routes import Service

UNITS, EMBEDDING = 64, 24
SECONDS = 15.0
PASSAGE = 2000
"""Characters of a text that the units are shown for."""

TANH_OF_CELL = 7
"""The index of tanh(c) in what an LSTM cell caches of a step."""


class AskUnits(Asked):
    """Read a text with the character model; an empty one stands for a passage that it was not trained on."""

    text: str = Field("", max_length=PASSAGE)


class UnitReader:
    """A character model, and the passage that it reads first."""

    def __init__(self, lm: TextLM, passage: str) -> None:
        self.lm = lm
        self.passage = passage

    @classmethod
    def train(cls, documents: Sequence[str], seconds: float = SECONDS, seed: int = 0) -> UnitReader:
        """Train an LSTM on all but a passage; line ends are characters like others."""
        from foreword.neural.recurrent import RecurrentLM

        whole = "\n".join(documents)
        size = min(PASSAGE, -(-len(whole) // 5))
        texts = [whole[at : at + size] for at in range(0, len(whole), size)]
        passage = texts.pop(max(range(len(texts)), key=lambda at: _variety(texts[at])))
        tokenizer = CharacterTokenizer(min_count=2).fit(texts)
        training = replace(
            RecurrentLM.TRAINING, epochs=1000, steps=60, rate=1e-2, hold=0.5, last_rate=0.05, seconds=seconds
        )
        model = RecurrentLM(
            "lstm", hidden=UNITS, embedding=EMBEDDING, layers=1, tied=False, training=training, seed=seed, device="cpu"
        )
        return cls(TextLM(tokenizer, model.fit(Corpus.from_texts(texts, tokenizer))), passage)

    def states(self, text: str) -> Doubles:
        """Return tanh(c) of every unit after every character, (characters, units)."""
        from foreword.evaluate.gates import Layers

        _, caches = Layers.of(self.lm.model).read(self.lm.tokenizer.encode(text)[:, None])
        return np.array([step[TANH_OF_CELL][0] for step in caches[-1]])

    def to_json(self, text: str) -> dict[str, Json]:
        """Return a text and its states, each as one of 255 levels."""
        text = text or self.passage
        levels = np.round(127 * self.states(text)).astype(np.int8)
        return {"text": text, "units": levels.shape[1], "states": base64.b64encode(levels.tobytes()).decode()}


def _variety(text: str) -> int:
    """Return how often the rarest of quotes, digits, brackets and line ends occurs: a passage has to have them all."""
    quotes = sum(text.count(mark) for mark in '"`“«「')
    return min(quotes, sum(sign.isdigit() for sign in text), text.count("("), text.count("\n"))


def prepare(lab: Lab) -> None:
    """Train the character model, after everything else."""
    if find_spec("torch") is None:
        return

    def work(_: Job) -> Iterator[Step]:
        yield Step(0, 1)
        lab.units = UnitReader.train(lab.text.documents)
        yield Step(1, 1)

    lab.jobs.add("Character model", work, lambda: None, starter=True)


def add_routes(service: Service, lab: Lab) -> None:
    """Add the route of the panel."""

    def read(asked: AskUnits) -> dict[str, Json]:
        return {"text": None} if lab.units is None else lab.units.to_json(asked.text)

    service.post("/api/units", AskUnits, read)


def answers(texts: Sequence[str], seconds: float) -> dict[str, Json]:
    """Return what the panel asks for; without seconds to train in, the file says that there is no model."""
    documents = LearningText(lambda: texts).documents
    found: Json = UnitReader.train(documents, seconds).to_json("") if seconds else {"text": None}
    return {'/api/units {"text":""}': found}
