"""Sound as frames that a recogniser reads: log-mel energies, and the cepstrum of them.

    mel(f) = 2595 log₁₀(1 + f / 700)            the ear's scale: pitches a step apart sound equally far apart
    frame → window → |FFT|² → triangles on that scale → log → (cosine transform: MFCC)

S. Davis and P. Mermelstein, "Comparison of parametric representations for monosyllabic word recognition" (1980).
Shapes: N samples, F frames, M bands, C coefficients.
"""

from __future__ import annotations

import numpy as np
from scipy.fft import dct

from foreword.arrays import Doubles, Floats, Reals
from foreword.errors import InputError, SettingError

FLOOR = 1e-8
"""Added before the logarithm is taken: what is that silent is silence."""


def log_mel(sound: Reals, rate: int, *, bands: int = 26, window: float = 0.025, hop: float = 0.010) -> Floats:
    """Return (F, M): the log energy in each mel band, one frame every ``hop`` seconds. sound: (N,), from −1 to 1."""
    sound = np.asarray(sound, np.float64)
    if sound.ndim != 1 or not np.isfinite(sound).all():
        raise InputError(f"a sound is {sound.shape}, or not finite: expected samples one after another")
    size, step = round(rate * window), round(rate * hop)
    if size < 2 or step < 1 or bands < 1:
        raise SettingError(f"window={window}, hop={hop}, bands={bands} at {rate} samples a second: expected more")
    padded = np.concatenate((sound, np.zeros(max(0, size - len(sound)))))
    frames = np.lib.stride_tricks.sliding_window_view(padded, size)[::step] * np.hanning(size)
    points = 1 << (size - 1).bit_length()
    power = np.abs(np.fft.rfft(frames, points)) ** 2 / size
    return np.log(power @ mel_bands(bands, points, rate).T + FLOOR).astype(np.float32)


def mfcc(sound: Reals, rate: int, *, coefficients: int = 13, bands: int = 26) -> Floats:
    """Return (F, C): the first cosine coefficients of ``log_mel``: the spectral envelope, without the pitch."""
    if not 1 <= coefficients <= bands:
        raise SettingError(f"coefficients={coefficients}: expected 1 to the number of bands, {bands}")
    found: Floats = dct(log_mel(sound, rate, bands=bands), type=2, norm="ortho", axis=1)[:, :coefficients]
    return found.astype(np.float32)


def mel_bands(bands: int, points: int, rate: int) -> Doubles:
    """Return (M, points / 2 + 1): triangular filters, evenly spaced on the mel scale from 0 to half the sample rate."""
    highest = 2595 * np.log10(1 + rate / 2 / 700)
    corners = 700 * (10 ** (np.linspace(0, highest, bands + 2) / 2595) - 1)
    places = np.fft.rfftfreq(points, 1 / rate)
    rising = (places - corners[:-2, None]) / np.diff(corners)[:-1, None]
    falling = (corners[2:, None] - places) / np.diff(corners)[1:, None]
    return np.maximum(0, np.minimum(rising, falling))


RANGE = 9.0
"""Nats below the loudest band of a recording that count, 39 dB; below that is the noise of a room."""


def normalised(frames: Floats) -> Floats:
    """Return frames with mean 0 and variance 1 over the recording, quiet bands raised to ``RANGE`` below the loudest.

    One mean and one variance for all bands: those of each band, over a single word, would depend on the word.
    """
    loud = np.maximum(frames, frames.max() - RANGE)
    even: Floats = (loud - loud.mean()) / (loud.std() + 1e-3)
    return even.astype(np.float32)


STRETCH, WARP, COLOUR, MASK = 0.1, 0.1, 0.15, 10
"""Greatest change of speed and of the length of the vocal tract, as logarithms; standard deviation of the three cosines
that colour a spectrum; the largest mask is 1 / MASK.
"""


def augmented(frames: Floats, random: np.random.Generator) -> Floats:
    """Return normalised frames as another speaker might have said them: (F, M) → (F′, M).

    Faster or slower, by a longer or shorter vocal tract, which scales all formants, into another microphone, which
    changes bands smoothly, with a span of time and a few bands missing. N. Jaitly and G. Hinton, "Vocal tract length
    perturbation (VTLP) improves speech recognition" (2013); D. Park et al., "SpecAugment" (2019). A word is short:
    with masks of up to a quarter of it, and stronger changes of speed, fewer digits of known speakers were right.
    """
    count, bands = frames.shape
    speed, tract = np.exp(random.uniform((-STRETCH, -WARP), (STRETCH, WARP)))
    found = _between(frames, np.linspace(0, count - 1, max(2, round(count * speed))))
    found = _between(found.T, np.clip(np.arange(bands) * tract, 0, bands - 1)).T
    waves = np.cos(np.pi * np.outer((1, 2, 3), (np.arange(bands) + 0.5) / bands))
    found = found + random.normal(0, COLOUR, 3) @ waves
    for part in (found, found.T):
        width = int(random.integers(0, len(part) // MASK + 1))
        begin = int(random.integers(0, len(part) - width + 1))
        part[begin : begin + width] = 0
    return found.astype(np.float32)


def _between(rows: Reals, places: Doubles) -> Doubles:
    """Return the rows at these places, those between two rows on the line between them."""
    low = np.minimum(places.astype(np.int64), len(rows) - 1)
    share = (places - low)[:, None]
    found: Doubles = rows[low] * (1 - share) + rows[np.minimum(low + 1, len(rows) - 1)] * share
    return found
