"""The beam search of the CTC decoder, to be read: strings, dictionaries, and any language model of words.

``search.py`` is the textbook's search over symbols, exhaustive when wide enough; this one spells words, as follows.

At every frame each beam is extended by each likely label. Beams that read alike, (text, part of a word, last label),
are added up; the best by

    log p(alignments) + what the language model and hotwords add for the words, and for the word being spelled

are kept. ``kernels_decoding.py`` does the same with numbers for strings, and the test says that the two agree. The
rules, and what happens where they are odd, are those of pyctcdecode 0.5: of beams that are merged, the last one found
gives the frames of words; a text that ends in a space has an empty last word, which is unknown; a piece such as ``▁⁇▁``
makes the next piece that is read, in whatever beam, begin a word.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator
from itertools import takewhile
from typing import Any, NamedTuple

import numpy as np

from foreword.arrays import Doubles
from foreword.speech.alphabet import BPE_TOKEN, Alphabet
from foreword.speech.lm import AbstractLanguageModel, HotwordScorer

Frames = tuple[int, int]
NO_FRAMES: Frames = (-1, -1)


class OutputBeam(NamedTuple):
    """A decoded text, the state of the language model after it, the frames of its words, and its scores.

    logit_score: log-probability of its alignments in the beam; lm_score: with all that language model and hotwords add.
    """

    text: str
    lm_state: Any
    text_frames: list[tuple[str, Frames]]
    logit_score: float
    lm_score: float


class BeamSettings(NamedTuple):
    """beam_width: beams kept; beam_prune_logp: how far below the best one; token_min_logp: labels less likely than
    this are skipped; prune_history: drop beams that differ only in words that the language model has forgotten.
    """

    beam_width: int = 100
    beam_prune_logp: float = -10.0
    token_min_logp: float = -5.0
    prune_history: bool = False


class _Beam(NamedTuple):
    """words: the complete ones; part: the word being spelled; spans: frames of words; frames: of the part."""

    words: tuple[str, ...]
    part: str
    last: str | None
    spans: tuple[Frames, ...]
    frames: Frames
    logit: float


class PlainSearch:
    """One search. start: the state of the language model before the first word."""

    def __init__(
        self,
        alphabet: Alphabet,
        model: AbstractLanguageModel | None,
        hotwords: HotwordScorer,
        settings: BeamSettings,
        start: Any = None,
    ) -> None:
        self.labels, self.is_bpe = alphabet.labels, alphabet.is_bpe
        self.model, self.hotwords, self.settings = model, hotwords, settings
        if start is None and model is not None:
            start = model.get_start_state()
        self._scores: dict[tuple[str, ...], tuple[float, Any]] = {(): (0.0, start)}
        self._parts: dict[str, float] = {}
        self._beams = [_Beam((), "", None, (), NO_FRAMES, 0.0)]
        self._break_next = False
        self._frame = 0
        self._popped_hot = 0.0

    def read(self, logs: Doubles) -> None:
        """Read frames of log-probabilities, (T, V)."""
        for row in logs:
            likely = set(np.flatnonzero(row >= self.settings.token_min_logp).tolist()) | {int(row.argmax())}
            found = [
                self._extended(beam, self.labels[label], float(row[label])) for label in likely for beam in self._beams
            ]
            merged = _merged(found, lambda beam: (beam.words, beam.part, beam.last))
            self._beams = [beam for beam, _ in self._best([(beam, self._score(beam)) for beam in merged])]
            if self.settings.prune_history:
                self._beams = list(self._distinct())
            self._frame += 1

    def _extended(self, beam: _Beam, label: str, log: float) -> _Beam:
        """Return a beam after one more frame."""
        logit, now = beam.logit + log, self._frame
        if label == "":
            return beam._replace(last=label, logit=logit)
        if label == beam.last:
            return beam._replace(frames=(beam.frames[0], now + 1), logit=logit)
        words, spans = beam.words, beam.spans
        if beam.part:
            words, spans = (*words, beam.part), (*spans, beam.frames)
        if self.is_bpe and (label.startswith(BPE_TOKEN) or self._break_next):
            self._break_next = label.endswith(BPE_TOKEN)
            part = label.removeprefix(BPE_TOKEN).removesuffix(BPE_TOKEN)
            return _Beam(words, part, label, spans, (now, now + 1), logit)
        if not self.is_bpe and label == " ":
            return _Beam(words, "", label, spans, NO_FRAMES, logit)
        first = beam.frames[0] if beam.frames[0] >= 0 else now
        return beam._replace(part=beam.part + label, last=label, frames=(first, now + 1), logit=logit)

    def _score(self, beam: _Beam) -> float:
        return beam.logit + (self._text_score(beam.words)[0] + self._hot(beam.words) + self._part_score(beam.part))

    def _text_score(self, words: tuple[str, ...]) -> tuple[float, Any]:
        """Return what the language model adds for words, and its state after them."""
        if words not in self._scores:
            before, state = self._text_score(words[:-1])
            added, after = (0.0, None) if self.model is None else self.model.score(state, words[-1])
            self._scores[words] = before + added, after
        return self._scores[words]

    def _hot(self, words: tuple[str, ...]) -> float:
        return self._popped_hot + self.hotwords.weight * sum(word in self.hotwords.words for word in words)

    def _part_score(self, part: str) -> float:
        if part and part not in self._parts:
            model = None if part in self.hotwords else self.model
            self._parts[part] = (
                self.hotwords.score_partial_token(part) if model is None else model.score_partial_token(part)
            )
        return self._parts[part] if part else 0.0

    def _best(self, scored: list[tuple[_Beam, float]]) -> list[tuple[_Beam, float]]:
        least = max(score for _, score in scored) + self.settings.beam_prune_logp
        near = [pair for pair in scored if pair[1] >= least]
        return heapq.nlargest(self.settings.beam_width, near, key=lambda pair: pair[1])

    def _distinct(self) -> Iterator[_Beam]:
        """Yield the beams that no better one equals in all that the language model remembers."""
        seen = set()
        for beam in self._beams:
            key = beam.words[-self._remembered() :], beam.part, beam.last
            if key not in seen:
                seen.add(key)
                yield beam

    def _remembered(self) -> int:
        """Return how many words the language model looks back, at least one."""
        return max(1, (1 if self.model is None else self.model.order) - 1)

    def pop_settled(self) -> list[tuple[str, Frames]]:
        """Return the words that all beams share, but for those that the language model looks back at, and forget them:
        no frame can change them, and the texts of ``finish`` and of the next call begin after them.
        """
        count = _shared([beam.words for beam in self._beams]) - self._remembered()
        count = max(0, min(count, _shared([beam.spans for beam in self._beams])))
        words, spans = self._beams[0].words[:count], self._beams[0].spans[:count]
        self._popped_hot = self._hot(words)
        self._scores = {text[count:]: found for text, found in self._scores.items() if text[:count] == words}
        self._beams = [beam._replace(words=beam.words[count:], spans=beam.spans[count:]) for beam in self._beams]
        return list(zip(words, spans, strict=True))

    def finish(self, most: int | None = None) -> list[OutputBeam]:
        """Return the beams with the ends of their texts scored, best first; the search can go on after."""
        merged = _merged(self._beams, lambda beam: (*beam.words, beam.part) if beam.part else beam.words)
        ends = {beam: self._end(beam) for beam in merged}
        found = []
        for beam, score in self._best([(beam, beam.logit + ends[beam][0]) for beam in merged]):
            words, spans = beam.words, beam.spans
            if beam.part:
                words, spans = (*words, beam.part), (*spans, beam.frames)
            text = " ".join(" ".join(words).split())
            found.append(
                OutputBeam(text, ends[beam][1], list(zip(text.split(), spans, strict=False)), beam.logit, score)
            )
        return found[:most]

    def _end(self, beam: _Beam) -> tuple[float, Any]:
        """Return what language model and hotwords add to a whole text, and the state after it."""
        score, state = self._text_score(beam.words)
        added, after = (0.0, None) if self.model is None else self.model.score(state, beam.part, is_last_word=True)
        return score + added + self._hot((*beam.words, beam.part)), after


def _shared(lists: list[tuple[Any, ...]]) -> int:
    """Return how many items all lists begin with alike."""
    return sum(1 for _ in takewhile(lambda items: len(set(items)) == 1, zip(*lists, strict=False)))


def _merged(beams: list[_Beam], key: Any) -> list[_Beam]:
    """Return one beam for each key: the last one, with the log-probabilities added."""
    found: dict[Any, _Beam] = {}
    for beam in beams:
        read = key(beam)
        found[read] = beam._replace(logit=_added(found[read].logit, beam.logit)) if read in found else beam
    return list(found.values())


def _added(one: float, other: float) -> float:
    high, low = (one, other) if one >= other else (other, one)
    return high + math.log(1 + math.exp(low - high))
