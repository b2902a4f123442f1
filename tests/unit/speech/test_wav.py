"""WAV files of every width, and those that are refused, each with one line."""

from __future__ import annotations

import io
import struct
import tarfile
import wave
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

from foreword.errors import InputError
from foreword.speech.recordings import read_recordings
from foreword.speech.wav import Sound, read_wav, write_wav

TONE = 0.5 * np.sin(np.arange(800) / 5)


def chunk(tag: bytes, content: bytes) -> bytes:
    return struct.pack("<4sI", tag, len(content)) + content + b"\0" * (len(content) % 2)


def riff(form: bytes, data: bytes, *others: bytes) -> bytes:
    body = b"WAVE" + chunk(b"fmt ", form) + b"".join(others) + chunk(b"data", data)
    return struct.pack("<4sI", b"RIFF", len(body)) + body


def form(tag: int = 1, channels: int = 1, bits: int = 16, rate: int = 8000) -> bytes:
    block = channels * bits // 8
    return struct.pack("<HHIIHH", tag, channels, rate, rate * block, block, bits)


def written(width: int, channels: int = 1, rate: int = 8000) -> bytes:
    """The tone as the standard library writes it, in every channel."""
    whole = np.round(TONE * (2.0 ** (8 * width - 1) - 1)).astype(np.int64)
    bytes_of = (whole + 128 if width == 1 else whole).astype("<i8").view(np.uint8).reshape(-1, 8)[:, :width]
    file = io.BytesIO()
    with wave.open(file, "wb") as out:
        out.setparams((channels, width, rate, 0, "NONE", ""))
        out.writeframes(np.repeat(bytes_of[:, None], channels, axis=1).tobytes())
    return file.getvalue()


@pytest.mark.parametrize("rate", [8000, 16000])
@pytest.mark.parametrize("channels", [1, 2])
@pytest.mark.parametrize("width", [1, 2, 3, 4])
def test_the_standard_librarys_files_of_every_width(width: int, channels: int, rate: int) -> None:
    sound = read_wav(written(width, channels, rate))
    assert sound.rate == rate
    assert sound.seconds == 800 / rate
    assert_allclose(sound.samples, TONE, atol=2.0 ** (2 - 8 * min(width, 3)))


def test_channels_are_averaged_and_chunks_of_odd_length_are_passed_over() -> None:
    samples = np.array([[100, 300], [-100, 100]], "<i2")
    sound = read_wav(riff(form(channels=2), samples.tobytes(), chunk(b"LIST", b"odd")))
    assert_allclose(sound.samples * 32768, [200, 0])


def test_floats_and_the_extensible_header() -> None:
    values = TONE.astype("<f4")
    assert_allclose(read_wav(riff(form(3, bits=32), values.tobytes())).samples, values)
    extensible = form(0xFFFE) + struct.pack("<HHIH", 22, 16, 4, 1) + b"\0" * 14
    whole = np.array([16384, -16384], "<i2")
    assert read_wav(riff(extensible, whole.tobytes())).samples.tolist() == [0.5, -0.5]


def test_what_is_written_is_read(tmp_path: Path) -> None:
    write_wav(Sound(TONE.astype(np.float32), 16000), tmp_path / "tone.wav")
    found = read_wav(tmp_path / "tone.wav")
    assert found.rate == 16000
    assert_allclose(found.samples, TONE, atol=1e-4)
    with wave.open(str(tmp_path / "tone.wav")) as other:
        assert (other.getnframes(), other.getframerate(), other.getsampwidth()) == (800, 16000, 2)


def test_a_tone_at_half_the_rate_is_the_same_tone() -> None:
    """What is above half the new rate is filtered out, not folded down."""
    seconds = np.arange(16000) / 16000
    low, high = np.sin(2 * np.pi * 440 * seconds), np.sin(2 * np.pi * 6000 * seconds)
    halved = Sound((low + high).astype(np.float32), 16000).at_rate(8000)
    assert halved.rate == 8000
    assert_allclose(halved.samples[100:-100], low[::2][100:-100], atol=0.02)


PCM = np.zeros(10, "<i2").tobytes()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "expected a WAV file"),
        (b"ID3\4 an MP3 file", "expected a WAV file"),
        (riff(form(), PCM)[:-4], "cut short: expected 20 bytes of samples but 16 are there"),
        (riff(form(), b""), "0 bytes of samples"),
        (riff(form(channels=2), PCM[:6]), "6 bytes of samples: expected a multiple of 4"),
        (riff(form(0x55), PCM), "compressed (MP3)"),
        (riff(form(6, bits=8), PCM), "compressed (A-law)"),
        (riff(form(0x1234), PCM), "compressed (format 0x1234)"),
        (riff(form(bits=12), PCM), "samples of 12 bits"),
        (riff(form(channels=0), PCM), "0 channels"),
        (riff(form(rate=3), PCM), "3 a second"),
        (riff(form()[:10], PCM), "fmt chunk has 10 bytes"),
        (riff(form(3, bits=32), np.array([np.nan], "<f4").tobytes()), "not finite"),
        (b"RIFF\0\0\0\0WAVE", "holds no samples"),
        (b"RIFF\0\0\0\0WAVE" + chunk(b"data", PCM), "before their format"),
    ],
)
def test_bad_files_are_refused_in_one_line(content: bytes, said: str, tmp_path: Path) -> None:
    (tmp_path / "bad.wav").write_bytes(content)
    with pytest.raises(InputError) as raised:
        read_wav(tmp_path / "bad.wav")
    assert said in str(raised.value)
    assert str(raised.value).startswith(str(tmp_path / "bad.wav"))
    assert "\n" not in str(raised.value)


def test_folders_archives_and_tables_of_recordings(tmp_path: Path) -> None:
    folder = tmp_path / "said"
    folder.mkdir()
    for name in ("7_theo_1", "3_lucas_0"):
        write_wav(Sound(TONE.astype(np.float32), 8000), folder / f"{name}.wav")
    with tarfile.open(tmp_path / "said.tar.xz", "w:xz") as archive:
        archive.add(folder, "said")
    (tmp_path / "table.tsv").write_text("said/7_theo_1.wav\tseven\n\nsaid/3_lucas_0.wav\tthree two\n")
    for source, texts in (
        ("said", {"7", "3"}),
        ("said.tar.xz", {"7", "3"}),
        ("table.tsv", {"seven", "three two"}),
    ):
        found = read_recordings(tmp_path / source)
        assert {each.name for each in found} == {"7_theo_1", "3_lucas_0"}
        assert {each.text for each in found} == texts
        assert {len(each.sound.samples) for each in found} == {800}


def test_bad_recordings(tmp_path: Path) -> None:
    (tmp_path / "none").mkdir()
    (tmp_path / "table.tsv").write_text("no text here\n")
    (tmp_path / "missing.tsv").write_text("missing.wav\tone\n")
    for source, said in (
        ("none", "no recording"),
        ("table.tsv", "line 1: expected the path"),
        ("missing.tsv", "cannot read"),
    ):
        with pytest.raises(InputError, match=said):
            read_recordings(tmp_path / source)
    whole = tmp_path / "whole.tar.gz"
    with tarfile.open(whole, "w:gz") as archive:
        header = tarfile.TarInfo("1_x_0.wav")
        header.size = len(written(2))
        archive.addfile(header, io.BytesIO(np.random.default_rng(0).bytes(header.size)))
    whole.write_bytes(whole.read_bytes()[:-500])
    with pytest.raises(InputError, match=r"whole\.tar\.gz"):
        read_recordings(whole)
