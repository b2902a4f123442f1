"""Sound to frames to symbols: features by hand, and a recogniser of generated tones; C03."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from numpy.typing import NDArray

from foreword.errors import InputError, SettingError
from foreword.measures.recognition import word_errors
from foreword.ngram.model import NgramLM
from foreword.speech.features import augmented, log_mel, mel_bands, mfcc, normalised
from foreword.speech.recogniser import Recogniser
from foreword.storage.checkpoint import Checkpoint
from foreword.storage.folder import load, save
from foreword.tokens.corpus import Corpus
from foreword.tokens.vocab import Vocab

RATE = 8000
PITCHES = (500, 900, 1500, 2500)


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


def tone(pitch: float, seconds: float = 0.1) -> NDArray[np.float64]:
    return np.asarray(np.sin(2 * np.pi * pitch * np.arange(int(RATE * seconds)) / RATE))


def melody(symbols: list[int], random: np.random.Generator, noise: float = 0.05) -> NDArray[np.float32]:
    parts = [part for symbol in symbols for part in (np.zeros(400), tone(PITCHES[symbol], random.uniform(0.06, 0.12)))]
    sound = np.concatenate([*parts, np.zeros(400)])
    return normalised(log_mel(sound + noise * random.normal(size=len(sound)), RATE, hop=0.02))


def test_a_tone_is_loudest_in_its_band() -> None:
    for pitch in (300, 1000, 3000):
        frames = log_mel(tone(pitch), RATE, bands=20)
        bands = mel_bands(20, 256, RATE)
        wanted = bands[:, round(pitch * 256 / RATE)].argmax()
        assert frames.shape == (8, 20)
        assert set(frames.argmax(1).tolist()) == {wanted}


def test_bands_by_hand() -> None:
    """Triangles that meet at their corners: between the first corner and the last but one they sum to one."""
    bands = mel_bands(10, 512, RATE)
    corners = 700 * (10 ** (np.linspace(0, 2595 * np.log10(1 + 4000 / 700), 12) / 2595) - 1)
    places = np.fft.rfftfreq(512, 1 / RATE)
    inside = (places >= corners[1]) & (places <= corners[10])
    assert_allclose(bands.sum(0)[inside], 1, atol=1e-12)
    assert_allclose(bands.max(1), 1, atol=0.2)


def test_the_cepstrum_is_the_cosine_transform_by_hand() -> None:
    sound = np.random.default_rng(0).normal(size=2000)
    logs = log_mel(sound, RATE).astype(np.float64)
    n, bands = np.arange(26), 26
    for k in range(13):
        scale = np.sqrt((1 if k == 0 else 2) / bands)
        wanted = scale * (logs * np.cos(np.pi * k * (n + 0.5) / bands)).sum(1)
        assert_allclose(mfcc(sound, RATE)[:, k], wanted, rtol=1e-3, atol=1e-4)


def test_silence_and_very_short_sounds_are_frames_too() -> None:
    assert np.isfinite(normalised(log_mel(np.zeros(1000), RATE))).all()
    assert log_mel(np.zeros(3), RATE).shape == (1, 26)


def test_c03_a_recogniser_of_tones() -> None:
    """C03: BiLSTM and CTC, told what was played and never when; a language model helps where noise hides a tone."""
    random = np.random.default_rng(1)

    def played(count: int) -> list[list[int]]:
        """Up by one, mostly: after the last pitch comes the first."""
        first = random.integers(0, 4, count).tolist()
        return [[(begin + step) % 4 for step in range(int(random.integers(2, 5)))] for begin in first]

    train, test = played(60), played(30)
    model = Recogniser(5, units=16, stack=1, augment=False, rate=0.02, epochs=12)
    losses = [step.loss for step in model.train(([melody(each, random) for each in train], train))]
    assert losses[-1] < 0.5 * losses[0]
    clear, noisy = ([melody(each, random, noise) for each in test] for noise in (0.05, 0.6))
    assert word_errors(model.hear(clear), test).rate < 0.1
    assert word_errors(model.hear(clear, width=4), test).rate < 0.1
    vocab = Vocab([*"abcd", "</s>"], unknown=None)
    bigrams = NgramLM(2, "witten-bell").fit(Corpus.from_ids(played(300), vocab))
    alone = word_errors(model.hear(noisy, width=8), test).rate
    helped = word_errors(model.hear(noisy, width=8, model=bigrams, weight=0.5), test).rate
    assert helped < alone


def test_one_sound_or_many_are_heard_the_same() -> None:
    random = np.random.default_rng(0)
    model = Recogniser(5, units=8, layers=2, stack=3)
    sounds = [melody([0, 1, 2], random), melody([3], random)]
    together, frames = model.frame_logs(model.weights_, sounds)
    for column, alone in enumerate(model.logs(sounds)):
        assert_allclose(together[: int(frames[column]), column].detach(), alone, rtol=0, atol=1e-5)
        assert_allclose(np.exp(alone).sum(1), 1, rtol=1e-5)


def test_the_best_epoch_is_that_of_the_likeliest_texts() -> None:
    """After its first epoch a network may err less often by luck; its texts are not likelier."""
    random = np.random.default_rng(0)
    texts = [[int(each) for each in random.integers(0, 4, 3)] for _ in range(24)]
    data = ([melody(each, random) for each in texts], texts)
    model = Recogniser(5, units=8, stack=1, augment=False, rate=0.02, epochs=6)
    scores = [model.valid_score_ for _ in model.train(data, valid=data)]
    assert scores == sorted(scores)
    assert model.valid_score_ == model.log_likelihood(*data)
    losses = [
        torch.nn.functional.ctc_loss(
            torch.tensor(logs), torch.tensor(text), torch.tensor(len(logs)), torch.tensor(3), blank=model.blank
        )
        for logs, text in zip(model.logs(data[0]), texts, strict=True)
    ]
    assert_allclose(model.valid_score_, -np.mean(losses), rtol=1e-5)


def test_bad_input() -> None:
    with pytest.raises(InputError, match="samples one after another"):
        log_mel(np.zeros((2, 3)), RATE)
    with pytest.raises(InputError, match="samples one after another"):
        log_mel(np.array([0.0, np.nan]), RATE)
    with pytest.raises(SettingError, match="coefficients=30"):
        mfcc(np.zeros(100), RATE, coefficients=30)
    with pytest.raises(InputError, match="2 sounds and 1 texts"):
        next(Recogniser(3).train(([np.zeros((2, 26), np.float32)] * 2, [[1]])))
    with pytest.raises(InputError, match="expected frames of 26 bands"):
        Recogniser(3).hear([np.zeros((2, 5), np.float32)])


def test_frames_are_those_of_the_formula() -> None:
    """Hann window, discrete Fourier transform, triangles on the mel scale, logarithm: each written out by hand."""
    sound, size, step, points, bands = np.random.default_rng(3).normal(size=700), 200, 80, 256, 8
    corners = [700 * (10 ** (k * 2595 * np.log10(1 + 4000 / 700) / (bands + 1) / 2595) - 1) for k in range(bands + 2)]
    frames = log_mel(sound, RATE, bands=bands)
    assert frames.shape == (7, bands)
    for frame in (0, 6):
        windowed = [sound[frame * step + n] * 0.5 * (1 - np.cos(2 * np.pi * n / (size - 1))) for n in range(size)]
        energies = np.zeros(bands)
        for k in range(points // 2 + 1):
            turns = np.exp(-2j * np.pi * k * np.arange(size) / points)
            power, pitch = abs(np.dot(windowed, turns)) ** 2 / size, k * RATE / points
            for band in range(bands):
                low, middle, high = corners[band : band + 3]
                share = (pitch - low) / (middle - low) if pitch <= middle else (high - pitch) / (high - middle)
                energies[band] += power * max(0.0, share)
        assert_allclose(frames[frame], np.log(energies + 1e-8), rtol=1e-4, atol=1e-4)


def test_augmented_frames_differ_each_time_and_stay_in_range() -> None:
    frames = melody([0, 1, 2, 3], np.random.default_rng(0))
    one, same, other = (augmented(frames, np.random.default_rng(seed)) for seed in (1, 1, 2))
    assert np.array_equal(one, same)
    assert one.shape != other.shape or not np.allclose(one, other)
    for each in (one, other):
        assert each.dtype == np.float32
        assert each.shape[1] == frames.shape[1]
        assert 0.75 * len(frames) < len(each) < 1.35 * len(frames)
        assert np.abs(each).max() < np.abs(frames).max() + 3  # three cosines of a deviation of 0.3


def test_a_training_with_distortions_resumes_to_the_bit(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    said = [[0, 1], [2], [3, 0], [1, 1]]
    data = ([melody(each, random) for each in said], said)
    whole = Recogniser(4, units=6, stack=1, epochs=4, batch=2).fit(data)
    stopped = Recogniser(4, units=6, stack=1, epochs=4, batch=2)
    checkpoint = Checkpoint(tmp_path / "run")
    for step in stopped.train(data, checkpoint=checkpoint):
        if step.done == 6:
            checkpoint.ask()
        if step.done == 10:
            break
    resumed = Recogniser(4, units=6, stack=1, epochs=4, batch=2)
    first = next(steps := resumed.train(data, checkpoint=Checkpoint(tmp_path / "run")))
    assert first.done > 6
    for _ in steps:
        pass
    assert torch.equal(resumed.flat_weights(), whole.flat_weights())


def test_a_text_that_needs_more_frames_is_refused() -> None:
    frames = np.zeros((3, 26), np.float32)
    with pytest.raises(InputError, match="sound 0 has 3 steps of 1 frames: its text needs 4 or more"):
        Recogniser(4, stack=1).fit(([frames], [[1, 1, 2]]))


def test_a_saved_recogniser_hears_the_same(tmp_path: Path) -> None:
    sounds = [melody([0, 1], np.random.default_rng(0))]
    model = Recogniser(units=5, layers=2, epochs=1).fit((sounds, [[3, 1]]))
    assert model.symbols == 4
    save(model, tmp_path / "model")
    assert np.array_equal(model.logs(sounds)[0], load(tmp_path / "model").logs(sounds)[0])
