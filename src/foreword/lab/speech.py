"""The panel of speech: a recording as a spectrogram, what the network predicts at each step, and the texts in the beam.

Recordings are those of the spoken digits' test part, where the data set is on this machine, or a WAV file that is
dropped on the page. Where it is, the lab also trains a recogniser of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import Field

from foreword.errors import InputError
from foreword.serve.answers import decoded_wav
from foreword.serve.bodies import Asked, Name
from foreword.serve.routes import Service
from foreword.speech.recordings import DIGITS, Recording, spoken_digits
from foreword.speech.wav import Sound
from foreword.text.datasets import availability, dataset

if TYPE_CHECKING:
    from foreword.lab.app import Lab
    from foreword.lab.trainings import Job
    from foreword.pipeline.speech import Heard, SpeechRecogniser
    from foreword.protocols import Step

TITLE, SECONDS = "Spoken digits, BiLSTM with CTC", 90.0
"""Name of the starter, and seconds that its training may take."""

TEXTS = 12
"""Texts of the beam that are shown: those that had the largest shares."""


class AskSpeech(Asked):
    """A recording to recognise: the name of one of the data set, or a WAV file in base64. width: of the beam."""

    model: Name
    recording: str = Field("", max_length=80)
    wav: str = Field("", max_length=1 << 20)
    width: int = Field(8, ge=1, le=32)


def is_here() -> bool:
    """Return whether the recordings are on this machine; nothing is downloaded."""
    return availability(dataset(DIGITS)).files > 0


@cache
def recordings() -> dict[str, Recording]:
    """Read the recordings of the test part, by name."""
    return {each.name: each for each in spoken_digits("test")} if is_here() else {}


def sound_of(asked: AskSpeech) -> Sound:
    """Return the recording that is asked for."""
    if asked.wav:
        return decoded_wav(asked.wav)
    if asked.recording not in recordings():
        raise InputError(f"there is no recording {asked.recording!r} here")
    return recordings()[asked.recording].sound


def answer_of(heard: Heard, sound: Sound) -> dict[str, Any]:
    """Return what the panel draws: grids of shares between 0 and 1, a row per band, symbol or text."""
    low, high = np.quantile(heard.frames, (0.02, 0.995))
    bands = np.clip((heard.frames - low) / max(high - low, 1e-9), 0, 1).T[::-1]
    seen = [n for n in range(len(heard.symbols)) if n == len(heard.symbols) - 1 or heard.shares[:, n].max() > 0.01]
    texts: dict[str, list[float]] = {}
    for step, beam in enumerate(heard.beams):
        for text, share in beam:
            texts.setdefault(text, [0.0] * len(heard.beams))[step] += share
    likely = sorted((text for text in texts if max(texts[text]) > 0.03), key=lambda text: -max(texts[text]))
    kept = sorted(likely[:TEXTS], key=list(texts).index)
    return {
        "text": heard.text,
        "seconds": sound.seconds,
        "rate": sound.rate,
        "bands": np.round(bands, 2).tolist(),
        "symbols": [heard.symbols[n] for n in seen],
        "shares": np.round(heard.shares[:, seen].T, 3).tolist(),
        "texts": kept,
        "beam": [[round(share, 3) for share in texts[text]] for text in kept],
    }


def prepare(lab: Lab) -> None:
    """Queue the training of a recogniser, if the recordings are here."""
    if find_spec("torch") is None or not is_here():
        return
    built: list[SpeechRecogniser] = []

    def work(_: Job) -> Iterator[Step]:
        from foreword.pipeline.speech import SpeechRecogniser
        from foreword.speech.recogniser import Recogniser
        from foreword.tokens.words import WordTokenizer

        built.append(SpeechRecogniser(WordTokenizer(), Recogniser(seconds=SECONDS)))
        yield from built[0].train(spoken_digits("train"))

    lab.jobs.add(TITLE, work, lambda: lab.registry.add("digits", built[0], TITLE).name, starter=True)


def add_routes(service: Service, lab: Lab) -> None:
    """Add the routes of the panel."""
    registry = service.registry

    def listed() -> dict[str, Any]:
        able = [registry[name] for name in registry.able("transcribe")]
        return {"models": [[entry.name, entry.title] for entry in able], "recordings": list(recordings())}

    def look(asked: AskSpeech) -> dict[str, Any]:
        entry = registry[asked.model]
        entry.check("transcribe")
        sound = sound_of(asked)
        with entry.lock:
            return answer_of(entry.model.look(sound, width=asked.width), sound)

    service.get("/api/speech", listed)
    service.post("/api/speech/look", AskSpeech, look)
