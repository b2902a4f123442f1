"""The panel of speech in a real browser: a WAV file that is dropped, one that is chosen, and files that are none."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from foreword.lab.app import Lab
from foreword.lab.trainings import LearningText
from foreword.pipeline.speech import SpeechRecogniser
from foreword.serve.registry import Registry
from foreword.speech.recogniser import Recogniser
from foreword.speech.recordings import Recording
from foreword.speech.wav import Sound, read_wav, write_wav
from foreword.tokens.words import WordTokenizer

from .conftest import Running, Visit

PITCHES = {"low": 500, "high": 2300}


def said(text: str, random: np.random.Generator) -> Recording:
    tones = [0.4 * np.sin(2 * np.pi * PITCHES[word] * np.arange(900) / 8000) for word in text.split()]
    sound = np.concatenate([np.append(np.zeros(500), tone) for tone in tones])
    return Recording(text, Sound((sound + 0.01 * random.normal(size=len(sound))).astype(np.float32), 8000), text)


@pytest.fixture(scope="module")
def speaking(texts: list[str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    random, registry = np.random.default_rng(0), Registry()
    recordings = [said(" ".join(random.choice(list(PITCHES), random.integers(1, 4))), random) for _ in range(40)]
    model = Recogniser(units=16, stack=1, augment=False, rate=0.02, epochs=14)
    registry.add("tones", SpeechRecogniser(WordTokenizer(), model, hop=0.02).fit(recordings), "Tones")
    running = Running(Lab(registry, LearningText(lambda: texts), tmp_path_factory.mktemp("lab"), starters=False))
    yield running
    running.close()


@pytest.fixture
def tones(tmp_path: Path) -> Path:
    write_wav(said("low high high", np.random.default_rng(5)).sound, tmp_path / "tones.wav")
    return tmp_path / "tones.wav"


def test_a_file_is_shown_as_spectrogram_predictions_and_text(speaking: Running, visit: Visit, tones: Path) -> None:
    page = visit.open(speaking.address, "speech")
    with page.expect_response(
        lambda answer: "/api/speech/look" in answer.url and answer.request.post_data_json.get("wav")
    ):
        page.set_input_files("#speech-file", tones)
    page.locator("#speech-text strong", has_text="low high high").wait_for()
    visit.settle()
    assert "tones.wav" in page.inner_text("#speech-text")
    recogniser: SpeechRecogniser = speaking.lab.registry["tones"].model
    heard = recogniser.look(read_wav(tones), width=8)
    assert heard.text == "low high high"
    body = {"model": "tones", "wav": base64.b64encode(tones.read_bytes()).decode(), "width": 8}
    told = speaking.ask("api/speech/look", body)
    assert np.array(told["bands"]).shape == heard.frames.T.shape
    blank = told["symbols"].index("blank")
    np.testing.assert_allclose(told["shares"][blank], heard.shares[:, -1], atol=6e-4)
    assert told["texts"][0] == ""
    assert told["texts"][int(np.array(told["beam"])[:, -1].argmax())] == "low high high"
    # The canvases are painted as full as the numbers are large.
    painted = page.evaluate(
        """() => [...document.querySelectorAll('#speech-drop canvas')].map(canvas => {
             const data = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
             let sum = 0; for (let n = 3; n < data.length; n += 4) sum += data[n];
             return sum / 255 / (data.length / 4); })"""
    )
    np.testing.assert_allclose(painted, [np.mean(told[grid]) for grid in ("bands", "shares", "beam")], atol=0.02)
    assert visit.complaints == []


def test_a_file_is_dropped_on_the_page_and_a_bad_one_is_one_line(speaking: Running, visit: Visit, tones: Path) -> None:
    page = visit.open(speaking.address, "speech")
    visit.settle()
    drop = """([place, name, content]) => {
      const bytes = Uint8Array.from(atob(content), c => c.charCodeAt(0)), carried = new DataTransfer();
      carried.items.add(new File([bytes], name));
      const event = new DragEvent('drop', { dataTransfer: carried, bubbles: true, cancelable: true });
      document.querySelector(place).dispatchEvent(event); }"""
    content = tones.read_bytes()
    page.evaluate(drop, ["#speech-drop", "whole.wav", base64.b64encode(content).decode()])
    page.locator("#speech-text strong", has_text="low high high").wait_for()
    page.evaluate(drop, ["#speech-drop", "cut.wav", base64.b64encode(content[:-100]).decode()])
    page.locator(".trouble", has_text="cut short").wait_for()
    page.evaluate(drop, ["#speech-drop", "song.mp3", base64.b64encode(b"ID3 something else").decode()])
    page.locator(".trouble", has_text="expected a WAV file").wait_for()


@pytest.mark.data
def test_a_recording_of_the_data_set(speaking: Running, visit: Visit) -> None:
    page = visit.open(speaking.address, "speech")
    page.locator("#speech-text strong").wait_for()
    assert page.locator("#speech-recording option").count() == 250
    with page.expect_response(lambda answer: "/api/speech/look" in answer.url) as answered:
        page.select_option("#speech-recording", "7_theo_3")
    assert answered.value.json()["rate"] == 8000
    page.locator("#speech-text span", has_text="7_theo_3").wait_for()
    assert visit.complaints == []
