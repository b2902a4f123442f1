"""Spoken digits (C03): 2,500 recordings of five speakers, recognised by a BiLSTM with CTC from log-mel frames.

    python recipes/spoken_digits.py [PART…]         all parts, or those named

``single``: train on recordings 5 to 49 of each digit and speaker, test on 0 to 4, the data set's own test part.
``george``, ``jackson``, ``lucas``, ``nicolas``, ``theo``: train on the four others, test on all recordings of this one.
``strings``: dates and times of three to eight digits, made of the recordings of one speaker with gaps of 20 to 300 ms
between them and white noise at 10 dB; the recogniser of ``single`` learns on from strings of any digits.
Decoded by the likeliest symbol of each frame, by a beam, by a beam with a bonus for each word, and with an n-gram model
of 20,000 other dates and times as well. Its weight is chosen on strings of the train part. What it mends is measured
on the same draws of test strings, against the beam alone and against the beam with the bonus.
``pictures``: one speaker, twelve epochs; a string of the test part as docs/speech.md shows it, in docs/pictures.

Results are written to docs/results/spoken_digits.json and into the table of docs/speech.md, part by part.
"""

from __future__ import annotations

import json
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import date, timedelta
from functools import partial
from pathlib import Path
from tempfile import gettempdir
from typing import Any

import numpy as np
import torch

from foreword import NgramLM, SpeechRecogniser, TextLM, WordTokenizer, load, save
from foreword.arrays import Floats
from foreword.measures.recognition import fewer_errors, word_errors
from foreword.picture.picture import Picture, write_standalone
from foreword.picture.sound import over_time, spectrogram
from foreword.speech.recogniser import Recogniser
from foreword.speech.recordings import Recording, spoken_digits
from foreword.speech.wav import Sound
from foreword.tokens.corpus import Corpus

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "speech.md"
RESULTS = ROOT / "docs" / "results" / "spoken_digits.json"
SPEAKERS = ("george", "jackson", "lucas", "nicolas", "theo")
SEED, RATE, DECIBELS, TUNED_DECIBELS = 0, 8000, 10.0, 5.0
TRAIN_STRINGS, TUNED_STRINGS, TEST_STRINGS, TEXTS = 400, 60, 400, 20_000
STRING_EPOCHS, WIDTH = 14, 32
WEIGHTS = (0.3, 0.6, 0.9, 1.2)


def learnt(recordings: Sequence[Recording], seed: int = SEED) -> tuple[SpeechRecogniser, float]:
    """Train the usual recogniser; return it and the seconds of CPU time that took."""
    recogniser = SpeechRecogniser(WordTokenizer())
    recogniser.model.seed = seed
    began = time.process_time()
    shown = 0.0
    for step in recogniser.train(recordings):
        if step.done / step.total >= shown + 0.1:
            shown += 0.1
            sys.stderr.write(f"{step.done / step.total:4.0%}  loss {step.loss:.3f}\n")
    return recogniser, time.process_time() - began


def speaker_of(recording: Recording) -> str:
    return recording.name.split("_")[1]


# Parts


def single(train: list[Recording], test: list[Recording]) -> dict[str, Any]:
    """Recognise one digit at a time, by speakers that were heard in training."""
    recogniser, seconds = learnt(train)
    save(recogniser, saved_digits())
    return {
        **recogniser.measure(test).to_json(),
        "cpu_seconds": seconds,
        "parameters": recogniser.model.parameter_count,
    }


def saved_digits() -> Path:
    """Return the folder in which the recogniser of ``single`` is kept for ``strings``."""
    return Path(gettempdir(), "foreword-spoken-digits")


def unseen(speaker: str, train: list[Recording], test: list[Recording]) -> dict[str, Any]:
    """Recognise a speaker who was not heard in training, all recordings of the others being learnt from."""
    everything = [*train, *test]
    recogniser, seconds = learnt([each for each in everything if speaker_of(each) != speaker])
    errors = recogniser.measure([each for each in everything if speaker_of(each) == speaker])
    return {**errors.to_json(), "cpu_seconds": seconds}


def strings(train: list[Recording], test: list[Recording]) -> dict[str, Any]:
    """Recognise strings of digits in noise, with an n-gram model and without."""
    if not saved_digits().exists():
        single(train, test)
    recogniser: SpeechRecogniser = load(saved_digits())
    random = np.random.default_rng(SEED)
    heard, tuned, unheard = (
        [spoken(text(random), part, random, decibels) for _ in range(count)]
        for text, part, count, decibels in (
            (any_digits, train, TRAIN_STRINGS, DECIBELS),
            (moment, train, TUNED_STRINGS, TUNED_DECIBELS),  # more noise, as the network has learnt these recordings
            (moment, test, TEST_STRINGS, DECIBELS),
        )
    )
    recogniser.model.training = replace(recogniser.model.training, epochs=STRING_EPOCHS)
    began = time.process_time()
    recogniser.fit(heard)
    seconds = time.process_time() - began
    model = digit_model(recogniser, random)
    fused = {"width": WIDTH, "language_model": model}
    rates = {weight: recogniser.measure(tuned, **fused, weight=weight).rate for weight in WEIGHTS}
    weight = min(rates, key=rates.__getitem__)
    searches: dict[str, dict[str, Any]] = {
        "frames": {"width": 0},
        "beam": {"width": WIDTH},
        "bonus": {**fused, "weight": 0.0},
        "5-grams": {**fused, "weight": weight},
    }
    sounds, said = [each.sound for each in unheard], [each.text.split() for each in unheard]
    found = {
        name: [text.split() for text in recogniser.transcribe(sounds, **search)] for name, search in searches.items()
    }
    mended: dict[str, Any] = {}
    for name in ("beam", "bonus"):
        less, *ends = fewer_errors(found["5-grams"], found[name], said)
        mended[f"5-grams_mend_of_{name}"] = {"wer": less, "interval": ends}
    return {
        **{name: word_errors(texts, said).to_json() for name, texts in found.items()},
        **mended,
        "weight": weight,
        "cpu_seconds": seconds,
        "decibels": DECIBELS,
        "beam_width": WIDTH,
        "train_strings": TRAIN_STRINGS,
    }


def digit_model(recogniser: SpeechRecogniser, random: np.random.Generator) -> TextLM:
    """Train an n-gram model of dates and times, in the recogniser's symbols."""
    texts = Corpus.from_texts([moment(random) for _ in range(TEXTS)], recogniser.tokenizer)
    return TextLM(recogniser.tokenizer, NgramLM(5, "witten-bell").fit(texts))


def pictures(train: list[Recording], test: list[Recording]) -> dict[str, Any]:
    """Draw a string of the test part: its spectrogram, the predictions of the network, and its beam.

    One speaker and seconds of training, so that the pictures can be drawn anywhere.
    """
    train, test = ([each for each in part if speaker_of(each) == "theo"] for part in (train, test))
    random = np.random.default_rng(SEED)
    model = Recogniser(units=48, augment=False, rate=5e-3, epochs=12, batch=8)
    began = time.process_time()
    recogniser = SpeechRecogniser(WordTokenizer(), model).fit(train)
    seconds = time.process_time() - began
    digits = recogniser.measure(test)
    recogniser.fit([spoken(moment(random), train, random) for _ in range(250)])
    recording = spoken("2 0 2 6", test, random)
    heard = recogniser.look(recording.sound, width=8)
    step = heard.hop * heard.stack
    symbols = [n for n, symbol in enumerate(heard.symbols) if symbol.isdigit() or symbol == "blank"]
    said = "The network predicts each digit for a few steps, and a blank at most others: nobody told it where they are."
    drawn = {
        "speech-spectrogram": spectrogram(heard.frames, heard.hop, recogniser.rate),
        "speech-alignment": over_time(
            [heard.symbols[n] for n in symbols], heard.shares[:, symbols].T, step, "What it predicts at each step", said
        ),
        "speech-beam": beam_picture(heard.beams, step),
    }
    for name, picture in drawn.items():
        write_standalone(picture, ROOT / "docs" / "pictures" / f"{name}.svg")
    return {**digits.to_json(), "cpu_seconds": seconds, "said": recording.text, "heard": heard.text}


def beam_picture(beams: Sequence[Sequence[tuple[str, float]]], step: float) -> Picture:
    """Draw the texts that had a share of at least a tenth of the beam at some step, in the order of their coming."""
    shares: dict[str, Floats] = {}
    for place, beam in enumerate(beams):
        for text, share in beam:
            shares.setdefault(text, np.zeros(len(beams), np.float32))[place] += share
    texts = [text for text, each in shares.items() if each.max() >= 0.1]
    rows = [text or "(nothing yet)" for text in texts]
    said = "Each text's share of the beam's probability: every digit moves it to a longer text; others come and go."
    return over_time(rows, np.stack([shares[text] for text in texts]), step, "The beam", said)


def any_digits(random: np.random.Generator) -> str:
    """Return three to eight digits: the network learns nothing of dates, which the language model is for."""
    return " ".join(map(str, random.integers(10, size=random.integers(3, 9))))


def moment(random: np.random.Generator) -> str:
    """Return a time of day, or a date from 1990 to 2029 in one of three orders: three to eight digits, no marks."""
    day = date(1990, 1, 1) + timedelta(int(random.integers(40 * 365)))
    second = int(random.integers(86_400))
    clock = f"{second // 3600:02}{second // 60 % 60:02}{second % 60:02}"
    forms = (clock[1:4], clock[:4], f"{day.month}{day.day:02}{day:%y}", clock, f"{day.day}{day:%m%Y}", f"{day:%Y%m%d}")
    return " ".join(forms[int(random.integers(len(forms)))])


def spoken(
    text: str, recordings: Sequence[Recording], random: np.random.Generator, decibels: float = DECIBELS
) -> Recording:
    """Join recordings of one speaker, with gaps and noise."""
    speaker = speaker_of(recordings[int(random.integers(len(recordings)))])
    parts: list[Floats] = []
    for digit in text.split():
        said = [each for each in recordings if each.text == digit and speaker_of(each) == speaker]
        parts += [silence(random), said[int(random.integers(len(said)))].sound.at_rate(RATE).samples]
    words, sound = np.concatenate(parts[1::2]), np.concatenate([*parts, silence(random)])
    noise = np.sqrt((words**2).mean() / 10 ** (decibels / 10))
    return Recording(speaker, Sound((sound + noise * random.normal(size=len(sound))).astype(np.float32), RATE), text)


def silence(random: np.random.Generator) -> Floats:
    return np.zeros(int(RATE * random.uniform(0.02, 0.3)), np.float32)


# Running

TITLES = {
    "single": "one digit, the data set's test part",
    **{name: f"one digit, all by {name}, who was not heard in training" for name in SPEAKERS},
    "strings.frames": "dates and times at 10 dB: likeliest symbol of each step",
    "strings.beam": "the same by a beam",
    "strings.bonus": "the same by a beam with a bonus for each word",
    "strings.5-grams": "the same by a beam with that bonus and a 5-gram model",
    "strings.5-grams_mend_of_beam": "the difference to the beam alone, on the same draws",
    "strings.5-grams_mend_of_bonus": "the difference to the beam with the bonus, on the same draws",
    "pictures": "one digit, one speaker, twelve epochs",
}
PARTS: dict[str, Callable[[list[Recording], list[Recording]], dict[str, Any]]] = {
    "single": single,
    **{speaker: partial(unseen, speaker) for speaker in SPEAKERS},
    "strings": strings,
    "pictures": pictures,
}


def write_table(stored: dict[str, Any]) -> None:
    """Write the results into the table of the page."""
    rows = ["| | word error rate | 95 % | CPU seconds of training |", "|---|---|---|---|"]
    for name, title in TITLES.items():
        part, _, inner = name.partition(".")
        if part in stored and (not inner or inner in stored[part]):
            found = stored[part][inner] if inner else stored[part]
            low, high = found["interval"]
            seconds = f"{stored[part]['cpu_seconds']:.0f}"
            rows.append(f"| {title} | {found['wer']:.1%} | {low:.1%} to {high:.1%} | {seconds} |")
    page = PAGE.read_text(encoding="utf-8")
    before, after = page.split("<!-- results -->")[0], page.split("<!-- end of results -->")[1]
    table = "\n".join(["<!-- results -->", "", *rows, "", "<!-- end of results -->"])
    PAGE.write_text(before + table + after, encoding="utf-8")


def main() -> None:
    names = sys.argv[1:] or list(PARTS)
    if unknown := [name for name in names if name not in PARTS]:
        sys.exit(f"no part {unknown[0]!r}: expected {', '.join(PARTS)}")
    torch.set_num_threads(1)
    train, test = spoken_digits("train"), spoken_digits("test")
    for name in names:
        began = time.perf_counter()
        found = PARTS[name](train, test)
        git = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False)
        facts = {
            "command": f"python recipes/spoken_digits.py {name}",
            "commit": git.stdout.strip(),
            "date": f"{date.today()}",
            "machine": f"{platform.machine()}, one core, Python {platform.python_version()}, torch {torch.__version__}",
            "seed": SEED,
            "seconds": round(time.perf_counter() - began, 1),
        }
        stored = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
        stored |= {name: {**found, **facts}}
        RESULTS.write_text(json.dumps(stored, indent=1) + "\n")
        write_table(stored)
        sys.stdout.write(json.dumps({name: found}) + "\n")


if __name__ == "__main__":
    main()
