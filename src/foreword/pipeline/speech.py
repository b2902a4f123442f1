"""Sound in, text out: log-mel frames, a network that predicts symbols, and the search for the text they spell.

    recording → ``log_mel`` → ``normalised`` → ``Recogniser`` → ``build_ctcdecoder``, with a language model or without

The symbols are the tokens of a tokenizer: words where there are few, as of digits, or else characters.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from foreword.arrays import Doubles, Floats
from foreword.checks import check_numbers, saveable
from foreword.measures.recognition import WordErrors, word_errors
from foreword.notebook import ShownInNotebook
from foreword.protocols import Meter, Parts, Step, TextTokenizer
from foreword.speech.alphabet import BPE_TOKEN
from foreword.speech.decoder import BeamSearchDecoderCTC, build_ctcdecoder
from foreword.speech.features import log_mel, normalised
from foreword.speech.recogniser import Recogniser, Recordings
from foreword.speech.recordings import Recording
from foreword.speech.search import Prefix, greedy, prefix_beams
from foreword.speech.wav import Sound
from foreword.storage.checkpoint import Checkpoint
from foreword.storage.folder import nest, unnest
from foreword.tokens.characters import CharacterTokenizer
from foreword.tokens.vocab import Vocab

BEAM, PRUNED = 16, (-20.0, -10.0)
"""Width of the beam, and the scores below which texts and symbols are not followed: as there are few symbols, low."""

MARGIN = 0.05
"""Seconds of silence that are added on both sides, as a window needs sound before and after its frame."""


@dataclass(frozen=True, slots=True)
class Heard:
    """What was made of a recording.

    frames: (F, M), normalised; hop: seconds between two of them; stack: how many of them are one step of the network.
    symbols: V and, the last, the blank; shares: (T, V + 1), their probabilities at each step. beams: after each step
    the texts in the beam and the share of each, best first.
    """

    text: str
    frames: Floats
    hop: float
    stack: int
    symbols: list[str]
    shares: Doubles
    beams: list[list[tuple[str, float]]]


class SpeechRecogniser(ShownInNotebook):
    """A recogniser of speech that takes sounds and gives text.

    tokenizer: of the symbols. rate: samples a second that sounds are converted to. hop: seconds between two frames.
    """

    def __init__(
        self, tokenizer: TextTokenizer, model: Recogniser | None = None, *, rate: int = 8000, hop: float = 0.010
    ) -> None:
        self.tokenizer, self.rate, self.hop = tokenizer, rate, hop
        self.model = model or Recogniser()
        check_numbers(self, "rate", whole=True, least=1000)
        check_numbers(self, "hop", above=0, most=0.1)

    def __repr__(self) -> str:
        return f"SpeechRecogniser({self.tokenizer!r}, {self.model!r}, rate={self.rate}, hop={self.hop})"

    # Learning

    def fit(
        self, recordings: Sequence[Recording], *, valid: Sequence[Recording] | None = None, meter: Meter | None = None
    ) -> Self:
        """Learn the symbols, then the network."""
        for step in self.train(recordings, valid=valid):
            if meter is not None:
                meter(f"training, loss {step.loss:.3f}", step.done, step.total)
        return self

    def train(
        self,
        recordings: Sequence[Recording],
        *,
        valid: Sequence[Recording] | None = None,
        checkpoint: Checkpoint | None = None,
    ) -> Iterator[Step]:
        """Train, yielding progress. valid: recordings on which the best epoch is chosen."""
        if not hasattr(self.tokenizer, "vocab_"):
            self.tokenizer.fit([each.text for each in recordings])
        if self.model.symbols != len(self.tokenizer.vocab):
            self.model.set_symbols(len(self.tokenizer.vocab))
        held_out = None if valid is None else self._data(valid)
        yield from self.model.train(self._data(recordings), valid=held_out, checkpoint=checkpoint)

    def _data(self, recordings: Sequence[Recording]) -> Recordings:
        texts = [self.tokenizer.encode(each.text).tolist() for each in recordings]
        return [self.frames(each.sound) for each in recordings], texts

    # Recognising

    def frames(self, sound: Sound) -> Floats:
        """Return normalised log-mel frames, (T, M)."""
        samples = np.pad(sound.at_rate(self.rate).samples, round(MARGIN * self.rate))
        return normalised(log_mel(samples, self.rate, bands=self.model.bands, hop=self.hop))

    def transcribe(
        self,
        sounds: Sequence[Sound],
        *,
        width: int = BEAM,
        language_model: Any = None,
        weight: float = 0.5,
        bonus: float = 1.0,
        meter: Meter | None = None,
    ) -> list[str]:
        """Return what is said in each recording.

        width: of the beam; 0 takes the likeliest symbol of each step. language_model: of words, whatever
        ``build_ctcdecoder`` takes; its log-probabilities count ``weight`` times, and each word earns the ``bonus``.
        """
        found = []
        for text in self.transcribe_stream(
            sounds, width=width, language_model=language_model, weight=weight, bonus=bonus
        ):
            found.append(text)
            if meter:
                meter("transcribing", len(found), len(sounds))
        return found

    def transcribe_stream(
        self,
        sounds: Iterable[Sound],
        *,
        width: int = BEAM,
        language_model: Any = None,
        weight: float = 0.5,
        bonus: float = 1.0,
    ) -> Iterator[str]:
        """Yield what is said in each recording as soon as it is decoded; options as in ``transcribe``."""
        decoder = self.decoder(language_model, weight, bonus) if width else None
        columns = [*_words(self.tokenizer.vocab), self.model.blank]
        for sound in sounds:
            logs = self.model.logs([self.frames(sound)])[0]
            if decoder is None:
                yield self.tokenizer.decode(greedy(logs, blank=self.model.blank))
            else:
                yield decoder.decode(logs[:, columns], width, *PRUNED)

    def decoder(self, language_model: Any = None, weight: float = 0.5, bonus: float = 1.0) -> BeamSearchDecoderCTC:
        """Return the decoder of the network's symbols: every token a word, or for characters their spelling."""
        begin = "" if isinstance(self.tokenizer, CharacterTokenizer) else BPE_TOKEN
        labels = [f"{begin}{word}" for word in _words(self.tokenizer.vocab).values()]
        vocab = getattr(language_model, "vocab", None)
        words = None if vocab is None else [*_words(vocab).values()]
        return build_ctcdecoder([*labels, ""], language_model, words, alpha=weight, beta=bonus)

    def measure(self, recordings: Sequence[Recording], **search: object) -> WordErrors:
        """Return the word error rate of ``transcribe``, which takes the same options."""
        said = self.transcribe([each.sound for each in recordings], **search)  # type: ignore[arg-type]
        return word_errors([text.split() for text in said], [each.text.split() for each in recordings])

    def look(self, sound: Sound, *, width: int = BEAM) -> Heard:
        """Return the frames, the probabilities of symbols and the beam while a recording is transcribed."""
        frames = self.frames(sound)
        logs = self.model.logs([frames])[0]
        beams = [
            [(self.tokenizer.decode(prefix), share) for prefix, share in _shares(beam)]
            for beam in prefix_beams(logs, blank=self.model.blank, width=width)
        ]
        symbols = [self.tokenizer.vocab[id] for id in range(len(self.tokenizer.vocab))]
        return Heard(beams[-1][0][0], frames, self.hop, self.model.stack, [*symbols, "blank"], np.exp(logs), beams)

    # Saving

    def to_parts(self) -> Parts:
        """Return settings, the symbols and the network to be saved."""
        parts = Parts({"rate": self.rate, "hop": self.hop})
        nest("tokenizer", saveable(self.tokenizer), parts)
        nest("model", self.model, parts)
        return parts

    @classmethod
    def from_parts(cls, parts: Parts) -> Self:
        """Build a recogniser from saved parts, all of them checked."""
        tokenizer, model = unnest("tokenizer", parts), unnest("model", parts)
        if not isinstance(model, Recogniser) or not isinstance(tokenizer, TextTokenizer):
            raise ValueError(f"a {type(tokenizer).__name__} and a {type(model).__name__} make no recogniser of speech")
        if model.symbols != len(tokenizer.vocab):
            raise ValueError(f"{model.symbols} symbols, but {len(tokenizer.vocab)} tokens: expected as many")
        rate, hop = parts.settings["rate"], parts.settings["hop"]
        return cls(tokenizer, model, rate=rate, hop=hop)  # type: ignore[arg-type]


def _words(vocab: Vocab) -> dict[int, str]:
    """Return the words of a vocabulary that can be said, by id."""
    return {id: vocab[id] for id in range(len(vocab)) if id not in (vocab.end, vocab.unknown)}


def _shares(beam: list[tuple[Prefix, float]]) -> list[tuple[Prefix, float]]:
    """Return the texts of a beam and their shares of its probability."""
    odds = np.exp(np.array([score for _, score in beam]) - beam[0][1])
    return [(prefix, float(share)) for (prefix, _), share in zip(beam, odds / odds.sum(), strict=True)]
