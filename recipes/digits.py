"""Spoken digits (C03): a BiLSTM with CTC, heard frame by frame, by a beam, and by a beam with an n-gram model.

    python recipes/digits.py                 speech by espeak-ng, which must be installed
    python recipes/digits.py --tones         the same on dial tones in noise: nothing needs to be installed

Numbers of three to six digits follow a rule that the language model can learn and the recogniser cannot know of: after
a digit d mostly comes d + 1, d + 3 or d + 7. Voices, speeds and pitches of the test part were not heard in training.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import wave
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from foreword import Corpus, NgramLM, Vocab
from foreword.speech.features import log_mel, normalised
from foreword.speech.recogniser import Recogniser, error_rate

WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
RATE = 8000
LOW, HIGH = (697, 770, 852, 941), (1209, 1336, 1477)
TRAIN_VOICES, TEST_VOICES = ("en-us", "en-us+m3", "en-us+f2", "en-gb", "en-gb+f4"), ("en-us+f5", "en-gb+m7")

Sound = NDArray[np.float64]


def numbers(count: int, seed: int) -> list[list[int]]:
    random = np.random.default_rng(seed)
    found = []
    for _ in range(count):
        digits = [int(random.integers(10))]
        for _ in range(int(random.integers(2, 6))):
            step = random.choice([1, 3, 7]) if random.random() < 0.9 else random.integers(10)
            digits.append(int((digits[-1] + step) % 10))
        found.append(digits)
    return found


def dialled(digits: Sequence[int], random: np.random.Generator, noise: float) -> Sound:
    """Every digit two tones at once, as a telephone dials it, between pauses, all in noise."""
    parts = []
    for digit in digits:
        row, column = (3, 1) if digit == 0 else divmod(digit - 1, 3)
        seconds = np.arange(int(RATE * random.uniform(0.06, 0.12))) / RATE
        tones = sum(
            np.sin(2 * np.pi * pitch * random.uniform(0.98, 1.02) * seconds) for pitch in (LOW[row], HIGH[column])
        )
        parts += [np.zeros(int(RATE * random.uniform(0.02, 0.08))), random.uniform(0.2, 0.5) * tones]
    sound = np.concatenate([*parts, np.zeros(RATE // 20)])
    return np.asarray(sound + noise * random.normal(size=len(sound)))


def spoken(digits: Sequence[int], random: np.random.Generator, voices: Sequence[str]) -> Sound:
    said = " ".join(WORDS[digit] for digit in digits)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "said.wav")
        speed, pitch = int(random.integers(120, 200)), int(random.integers(30, 70))
        call = [
            "espeak-ng",
            "-v",
            str(random.choice(voices)),
            "-s",
            str(speed),
            "-p",
            str(pitch),
            "-w",
            str(file),
            said,
        ]
        subprocess.run(call, check=True, capture_output=True)
        with wave.open(str(file)) as read:
            samples = np.frombuffer(read.readframes(read.getnframes()), "<i2") / 32768
            return np.asarray(resampled(samples, read.getframerate()))


def resampled(sound: Sound, rate: int) -> Sound:
    """At RATE: means of neighbours, then the nearest places on the line between them."""
    width = max(1, round(rate / RATE))
    smooth = np.convolve(sound, np.full(width, 1 / width), "same")
    line: Sound = np.interp(np.arange(0, len(sound) / rate, 1 / RATE), np.arange(len(sound)) / rate, smooth)
    return line


def run(count: int, held: int, epochs: int, *, tones: bool, noise: float, seed: int = 0) -> dict[str, float]:
    random = np.random.default_rng(seed)
    train, test = numbers(count, seed + 1), numbers(held, seed + 2)

    def frames(digits: Sequence[int], voices: Sequence[str]) -> NDArray[np.float32]:
        sound = dialled(digits, random, noise) if tones else spoken(digits, random, voices)
        return normalised(log_mel(sound, RATE, hop=0.02))

    heard, unheard = [frames(each, TRAIN_VOICES) for each in train], [frames(each, TEST_VOICES) for each in test]
    vocab = Vocab([*map(str, range(10)), "</s>"], unknown=None)
    model = NgramLM(2, "witten-bell").fit(Corpus.from_ids(numbers(2000, seed + 3), vocab))
    recogniser = Recogniser(len(vocab), stack=1, augment=False, seed=seed, epochs=epochs, rate=1e-2)
    for step in recogniser.train((heard, train)):
        if step.done % count < 8:
            sys.stderr.write(f"{step.done / step.total:4.0%}  loss {step.loss:.3f}\n")
    said = {
        "greedy": recogniser.hear(unheard),
        "beam": recogniser.hear(unheard, width=8),
        "beam and bigrams": recogniser.hear(unheard, width=8, model=model, weight=0.8),
    }
    return {name: error_rate(each, test) for name, each in said.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tones", action="store_true", help="dial tones instead of speech")
    parser.add_argument("--noise", type=float, default=0.25, help="of the tones")
    parser.add_argument("--numbers", type=int, default=300, help="to learn from")
    parser.add_argument("--held", type=int, default=100, help="to be measured on")
    parser.add_argument("--epochs", type=int, default=15)
    given = parser.parse_args()
    if not given.tones and shutil.which("espeak-ng") is None:
        sys.stderr.write("skipped: espeak-ng is not installed, so there is no speech; --tones runs without it\n")
        return
    torch.set_num_threads(1)
    rates = run(given.numbers, given.held, given.epochs, tones=given.tones, noise=given.noise)
    sys.stdout.write(json.dumps({"digit_error_rate": rates}) + "\n")


if __name__ == "__main__":
    main()
