"""What can be done with a list of beams: confidences, a lattice as JSON, and a second pass with another model.

The posterior of a beam is its share among the beams, softmax of their scores; that of a word is the sum over the beams
that hold the same word at the same time (F. Wessel, R. Schlüter, K. Macherey and H. Ney, "Confidence measures for large
vocabulary continuous speech recognition", 2001, on lists of sentences).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from foreword.arrays import Doubles
from foreword.checks import check_number
from foreword.errors import CTCInputError
from foreword.ngram.kenlm import KenlmLM
from foreword.protocols import Json, LanguageModel, TextModel
from foreword.speech.plain import Frames, OutputBeam
from foreword.tokens.corpus import Corpus


@dataclass(frozen=True, slots=True)
class WordConfidence:
    """A word of the best text: its frames, its posterior, and the posterior of each of its characters."""

    word: str
    frames: Frames
    posterior: float
    characters: tuple[float, ...]


def posteriors(beams: Sequence[OutputBeam]) -> Doubles:
    """Return the share of each beam."""
    if not beams:
        raise CTCInputError("there are no beams: expected those of decode_beams")
    scores = np.array([beam.lm_score for beam in beams])
    shares = np.exp(scores - scores.max())
    found: Doubles = shares / shares.sum()
    return found


def confidences(beams: Sequence[OutputBeam]) -> list[WordConfidence]:
    """Return how sure each word of the best text is, and each of its characters.

    A character's posterior is the share of the beams that have it at the same index of a word at the same time.
    """
    shares = posteriors(beams).tolist()
    found = []
    for word, frames in beams[0].text_frames:
        posterior, characters = 0.0, [0.0] * len(word)
        for beam, share in zip(beams, shares, strict=True):
            heard = [other for other, span in beam.text_frames if span[0] < frames[1] and frames[0] < span[1]]
            posterior += share * (word in heard)
            for index, character in enumerate(word):
                characters[index] += share * any(other[index : index + 1] == character for other in heard)
        found.append(WordConfidence(word, frames, posterior, tuple(characters)))
    return found


def lattice(beams: Sequence[OutputBeam]) -> dict[str, Json]:
    """Return the beams and the words of all of them as a graph, for ``json.dumps``.

    A node is the end of a word at a frame, node 0 the beginning; an edge is a word with the posterior of the beams that
    go there; ``ends`` has that of the texts that end in a node.
    """
    nodes: dict[tuple[str, int], int] = {("", 0): 0}
    edges: dict[tuple[int, int, str, int], float] = {}
    ends: dict[int, float] = {}
    listed: list[Json] = []
    for beam, share in zip(beams, posteriors(beams).tolist(), strict=True):
        at = 0
        for word, (first, last) in beam.text_frames:
            to = nodes.setdefault((word, last), len(nodes))
            edges[at, to, word, first] = edges.get((at, to, word, first), 0.0) + share
            at = to
        ends[at] = ends.get(at, 0.0) + share
        words: list[Json] = [{"word": word, "first": first, "end": last} for word, (first, last) in beam.text_frames]
        listed.append(
            {
                "text": beam.text,
                "words": words,
                "logit_score": beam.logit_score,
                "lm_score": beam.lm_score,
                "posterior": share,
            }
        )
    return {
        "beams": listed,
        "nodes": [{"node": node, "frame": frame} for (_, frame), node in nodes.items()],
        "edges": [
            {"from": at, "to": to, "word": word, "first": first, "posterior": share}
            for (at, to, word, first), share in edges.items()
        ],
        "ends": [{"node": node, "posterior": share} for node, share in ends.items()],
    }


def rescored(
    beams: Sequence[OutputBeam],
    model: LanguageModel[Any] | TextModel,
    *,
    weight: float = 0.5,
    bonus: float = 0.0,
    replace: bool = False,
) -> list[OutputBeam]:
    """Return the beams, best first, after a second pass with any language model: an LSTM, a mixture, a ``TextLM``.

    ``weight`` · log p(text) + ``bonus`` · words is added to each score, or with ``replace`` to that of the alignments
    alone. A model of words reads the words of the text; a ``TextLM`` reads the text with its own tokenizer.
    """
    check_number("weight", weight, least=0.0)
    texts = [beam.text for beam in beams]
    corpus, reader = _corpus(texts, model)
    logs = np.add.reduceat(reader.logprobs(corpus), corpus.offsets[:-1]).tolist() if texts else []
    found = [
        beam._replace(
            lm_score=(beam.logit_score if replace else beam.lm_score) + weight * log + bonus * len(beam.text.split())
        )
        for beam, log in zip(beams, logs, strict=True)
    ]
    return sorted(found, key=lambda beam: -beam.lm_score)


def _corpus(texts: list[str], model: Any) -> tuple[Corpus, LanguageModel[Any]]:
    if isinstance(model, TextModel):
        return Corpus.from_texts(texts, model.tokenizer), model.model
    if isinstance(model, KenlmLM):
        return Corpus.from_texts(texts, model.words), model
    if not isinstance(model, LanguageModel):
        raise CTCInputError(f"a {type(model).__name__} is not a language model")
    return Corpus.from_ids([model.vocab.ids(text.split()) for text in texts], model.vocab), model
