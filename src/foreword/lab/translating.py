"""The panel of translation: where each word of the answer looks, and the beam that found it, as a tree."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from pydantic import Field

from foreword.errors import InputError
from foreword.lab.beams import beam_tree
from foreword.lab.dates import dates
from foreword.lab.jobs import Job, Jobs
from foreword.protocols import Step
from foreword.serve.bodies import Asked, Name
from foreword.serve.registry import Entry, Registry
from foreword.serve.routes import Service
from foreword.tokens.corpus import Corpus

if TYPE_CHECKING:
    from foreword.pipeline.translator import TextTranslator

DATES, SECONDS = 3000, 30.0
"""Dates that the two starters learn from, and seconds that each may take: on a machine at rest it takes seven."""

MOST_TOKENS = 60

Attention: TypeAlias = Literal["general", "none"]


class AskTranslation(Asked):
    """A text to translate. width: of the beam."""

    model: Name
    text: str = Field(min_length=1, max_length=400)
    width: int = Field(4, ge=1, le=12)


def translation_of(entry: Entry, text: str, width: int) -> dict[str, Any]:
    """The best translation, what it looked at, and the search. weights: (target, source), None without attention."""
    if entry.task != "translate":
        raise InputError(f"{entry.name} is no translator")
    translator: TextTranslator = entry.model
    sources = Corpus.from_texts([text], translator.source)
    if len(sources.ids) < 2:
        raise InputError("there is nothing to translate")
    vocab = translator.model.vocab
    tree = beam_tree(translator.model.condition(sources), width=width, max_tokens=MOST_TOKENS)
    nodes = [
        {"parent": node.parent, "step": node.step, "token": _shown(translator, node.id), "logprob": node.logprob,
         "finished": node.score is not None}
        for node in tree.nodes
    ]  # fmt: skip
    ids = [tree.nodes[place].id for place in tree.best]
    said = translator.target.decode([id for id in ids if id != vocab.end])
    told: dict[str, Any] = {"translation": said, "tree": {"nodes": nodes, "best": tree.best}, "weights": None}
    if translator.model.attention != "none":
        looked = translator.look(text, said)
        told |= {"source": looked.source, "target": looked.target, "weights": looked.weights.tolist()}
    return told


def _shown(translator: TextTranslator, id: int) -> str:
    vocab = translator.model.vocab
    return vocab[id] if id in (vocab.end, vocab.unknown) else translator.target.decode([id])


def start_translators(jobs: Jobs, registry: Registry) -> None:
    """Two small translators of dates, one that looks back at its source and one that cannot."""
    if find_spec("torch") is None:
        return
    _start(jobs, registry, "general", "dates", "Dates, with attention")
    _start(jobs, registry, "none", "dates-without", "Dates, without attention")


def _start(jobs: Jobs, registry: Registry, attention: Attention, name: str, title: str) -> None:
    built: list[Any] = []

    def work(_: Job) -> Iterator[Step]:
        built.append(date_translator(attention))
        yield from built[0].train(*dates(DATES))

    jobs.add(title, work, lambda: registry.add(name, built[0], title).name, starter=True)


def date_translator(attention: Attention, seconds: float = SECONDS) -> TextTranslator:
    """As measured, one seed: after six seconds of CPU time 200 of 200 new dates right with attention, 13 without."""
    from foreword.pipeline.translator import TextTranslator
    from foreword.tokens.characters import CharacterTokenizer
    from foreword.translate.seq2seq import Seq2Seq

    model = Seq2Seq(
        48, words=24, cell="gru", attention=attention, dropout=0.0, smoothing=0.0, rate=5e-3, epochs=12, batch=600,
        average=2.0, seconds=seconds, device="cpu",
    )  # fmt: skip
    return TextTranslator(CharacterTokenizer(), CharacterTokenizer(), model)


def add_routes(service: Service) -> None:
    """Add the route of the panel."""

    def translate(asked: AskTranslation) -> dict[str, Any]:
        entry = service.registry[asked.model]
        with entry.lock:
            return translation_of(entry, asked.text, asked.width)

    service.post("/api/translate/tree", AskTranslation, translate)
