"""Sounds to text: a recogniser of tones that is trained, saved, loaded, helped by a language model, and looked into."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

from foreword import NgramLM, SpeechRecogniser, TextLM, WordTokenizer, load, save
from foreword.speech.recogniser import Recogniser
from foreword.speech.recordings import Recording
from foreword.speech.wav import Sound
from foreword.tokens.corpus import Corpus

PITCHES = {"low": 500, "middle": 1100, "high": 2300}


def said(text: str, random: np.random.Generator, rate: int = 8000) -> Recording:
    parts = [np.zeros(rate // 20)]
    for word in text.split():
        seconds = np.arange(int(rate * random.uniform(0.08, 0.14))) / rate
        parts += [0.4 * np.sin(2 * np.pi * PITCHES[word] * seconds), np.zeros(rate // 20)]
    samples = np.concatenate(parts)
    return Recording(text, Sound((samples + 0.01 * random.normal(size=len(samples))).astype(np.float32), rate), text)


def some(count: int, seed: int) -> list[Recording]:
    random = np.random.default_rng(seed)
    return [said(" ".join(random.choice(list(PITCHES), random.integers(1, 4))), random) for _ in range(count)]


@pytest.fixture(scope="module")
def recogniser() -> SpeechRecogniser:
    torch.set_num_threads(1)
    model = Recogniser(units=16, stack=1, augment=False, rate=0.02, epochs=12)
    return SpeechRecogniser(WordTokenizer(), model, hop=0.02).fit(some(60, 0))


def test_words_are_recognised_at_either_rate(recogniser: SpeechRecogniser) -> None:
    errors = recogniser.measure(some(30, 1))
    assert errors.rate < 0.1
    assert errors.low <= errors.rate <= errors.high
    random = np.random.default_rng(2)
    texts = ["low high", "middle", "high low middle"]
    assert recogniser.transcribe([said(text, random, 16000).sound for text in texts]) == texts


def test_it_is_saved_and_loaded(recogniser: SpeechRecogniser, tmp_path: Path) -> None:
    save(recogniser, tmp_path / "model")
    loaded = load(tmp_path / "model")
    sound = some(1, 3)[0].sound
    assert isinstance(loaded, SpeechRecogniser)
    assert (loaded.hop, loaded.rate) == (0.02, 8000)
    logs, same = (each.model.logs([each.frames(sound)])[0] for each in (recogniser, loaded))
    assert np.array_equal(logs, same)
    assert loaded.transcribe([sound]) == recogniser.transcribe([sound])
    save(loaded, tmp_path / "again")
    one, two = ({file.name: file.read_bytes() for file in (tmp_path / name).iterdir()} for name in ("model", "again"))
    assert one == two


def test_the_beam_is_that_of_the_search(recogniser: SpeechRecogniser) -> None:
    sound = some(1, 4)[0].sound
    heard = recogniser.look(sound)
    assert len(heard.frames) == len(heard.shares) == len(heard.beams)
    assert_allclose(heard.shares.sum(1), 1, rtol=1e-5)
    assert heard.symbols[-1] == "blank"
    assert heard.beams[-1][0][0] == heard.text == recogniser.transcribe([sound])[0]
    for beam in heard.beams:
        shares = [share for _, share in beam]
        assert sum(shares) == pytest.approx(1)
        assert shares == sorted(shares, reverse=True)


def test_a_language_model_decides_where_the_sound_does_not(recogniser: SpeechRecogniser) -> None:
    """A model that has only read “low” finds other texts unlikely."""
    numbers = Corpus.from_texts(["low"] * 50, recogniser.tokenizer)
    model = TextLM(recogniser.tokenizer, NgramLM(2, "witten-bell").fit(numbers))
    sounds = [each.sound for each in some(10, 5)]
    plain = recogniser.transcribe(sounds)
    assert recogniser.transcribe(sounds, language_model=model, weight=0.0, bonus=0.0) == plain
    helped = recogniser.transcribe(sounds, language_model=model, weight=30.0)
    assert helped != plain
    assert len(" ".join(helped).split()) < len(" ".join(plain).split())


def test_characters_as_symbols_and_the_usual_network() -> None:
    from foreword import CharacterTokenizer

    usual = SpeechRecogniser(CharacterTokenizer())
    assert (usual.model.stack, usual.model.augment) == (2, True)
    small = SpeechRecogniser(CharacterTokenizer(), Recogniser(units=8, stack=1, epochs=1), hop=0.005).fit(some(4, 6))
    assert small.model.symbols == len(small.tokenizer.vocab)
    assert isinstance(small.transcribe([some(1, 7)[0].sound], width=0)[0], str)
