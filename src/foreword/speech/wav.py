"""WAV files: chunks of RIFF, of which ``fmt `` says how samples are written and ``data`` holds them.

Read are whole numbers of 8, 16, 24 and 32 bits and float32 (PCM, by its own tag or by ``WAVE_FORMAT_EXTENSIBLE``), at
any rate. Channels are averaged. A file that is cut short or compressed is refused, never guessed at.
Microsoft and IBM, "Multimedia programming interface and data specifications 1.0" (1991).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from math import gcd
from pathlib import Path

import numpy as np
from scipy.signal import resample_poly

from foreword.arrays import Floats
from foreword.errors import InputError
from foreword.storage.atomic import atomic_file

PCM, FLOAT, EXTENSIBLE = 1, 3, 0xFFFE
NAMES = {0x2: "ADPCM", 0x6: "A-law", 0x7: "µ-law", 0x11: "ADPCM", 0x31: "GSM", 0x50: "MPEG", 0x55: "MP3", 0x161: "WMA"}
RATES = range(1000, 400_000)
"""Sample rates, in Hz, that are accepted."""


@dataclass(frozen=True, slots=True, eq=False)
class Sound:
    """A recording. samples: (N,), from −1 to 1; rate: samples a second."""

    samples: Floats
    rate: int

    @property
    def seconds(self) -> float:
        """Return how long it lasts."""
        return len(self.samples) / self.rate

    def at_rate(self, rate: int) -> Sound:
        """Return the sound at another rate, low-pass filtered where that is lower."""
        if rate == self.rate:
            return self
        shared = gcd(rate, self.rate)
        samples: Floats = resample_poly(self.samples, rate // shared, self.rate // shared).astype(np.float32)
        return Sound(samples, rate)


def read_wav(file: str | Path | bytes, name: str | None = None) -> Sound:
    """Read a WAV file, or its bytes; ``name`` is what errors call it."""
    name = name or ("a recording" if isinstance(file, bytes) else str(file))
    try:
        content = file if isinstance(file, bytes) else Path(file).read_bytes()
    except OSError as error:
        raise InputError(f"cannot read {name}: {error.strerror}") from error
    if content[:4] != b"RIFF" or content[8:12] != b"WAVE":
        raise InputError(f"{name}: expected a WAV file, which begins with RIFF and WAVE")
    form: tuple[int, int, int, int] | None = None
    for tag, begin, size in _chunks(content):
        if tag == b"fmt ":
            form = _form(content[begin : begin + size], name)
        elif tag == b"data":
            if form is None:
                raise InputError(f"{name}: its samples come before their format: expected a fmt chunk first")
            if begin + size > len(content):
                there = len(content) - begin
                raise InputError(f"{name}: cut short: expected {size:,} bytes of samples but {there:,} are there")
            return _decoded(content[begin : begin + size], *form, name)
    raise InputError(f"{name}: holds no samples: expected a data chunk after a fmt chunk")


def write_wav(sound: Sound, path: str | Path) -> None:
    """Write a mono WAV file of 16 bits; samples beyond ±1 are clipped."""
    data = np.round(np.clip(sound.samples, -1, 1) * 32767).astype("<i2").tobytes()
    form = struct.pack("<HHIIHH", PCM, 1, sound.rate, 2 * sound.rate, 2, 16)
    header = struct.pack("<4sI4s4sI", b"RIFF", 36 + len(data), b"WAVE", b"fmt ", 16)
    with atomic_file(path) as new:
        new.write_bytes(header + form + struct.pack("<4sI", b"data", len(data)) + data)


def _chunks(content: bytes) -> Iterator[tuple[bytes, int, int]]:
    """Yield the name, the beginning and the size of each chunk; every chunk begins at an even place."""
    place = 12
    while place + 8 <= len(content):
        tag, size = struct.unpack_from("<4sI", content, place)
        yield tag, place + 8, size
        place += 8 + size + size % 2


def _form(chunk: bytes, name: str) -> tuple[int, int, int, int]:
    """Return the encoding, the number of channels, the rate and the bits of a sample."""
    if len(chunk) < 16:
        raise InputError(f"{name}: its fmt chunk has {len(chunk)} bytes: expected at least 16")
    tag, channels, rate, _, block, bits = struct.unpack_from("<HHIIHH", chunk)
    if tag == EXTENSIBLE and len(chunk) >= 26:
        tag = int.from_bytes(chunk[24:26], "little")
    if tag not in (PCM, FLOAT):
        called = NAMES.get(tag, f"format {tag:#06x}")
        raise InputError(f"{name}: compressed ({called}): expected PCM, samples as plain numbers")
    if bits not in ((8, 16, 24, 32) if tag == PCM else (32,)):
        raise InputError(f"{name}: samples of {bits} bits: expected 8, 16, 24 or 32, or 32 for floating point")
    if not channels or block != channels * bits // 8 or rate not in RATES:
        raise InputError(
            f"{name}: {channels} channels of {bits} bits in {block} bytes, {rate} a second: expected a WAV header"
        )
    return tag, channels, rate, bits


def _decoded(data: bytes, tag: int, channels: int, rate: int, bits: int, name: str) -> Sound:
    """Return the samples, the mean of the channels."""
    width = bits // 8
    if not data or len(data) % (width * channels):
        raise InputError(
            f"{name}: {len(data):,} bytes of samples: expected a multiple of {width * channels}, and more than none"
        )
    if tag == FLOAT:
        samples = np.frombuffer(data, "<f4").astype(np.float64)
        if not np.isfinite(samples).all():
            raise InputError(f"{name}: a sample is not finite")
    elif bits == 8:
        samples = (np.frombuffer(data, np.uint8) - 128.0) / 128
    elif bits == 24:
        wide = np.zeros((len(data) // 3, 4), np.uint8)
        wide[:, 1:] = np.frombuffer(data, np.uint8).reshape(-1, 3)
        samples = wide.view("<i4").ravel() / 2.0**31
    else:
        samples = np.frombuffer(data, f"<i{width}") / 2.0 ** (bits - 1)
    return Sound(samples.reshape(-1, channels).mean(1).astype(np.float32), rate)
