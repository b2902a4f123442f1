"""Pictures over time: a spectrogram, what a recogniser predicts at each step, and the texts in its beam.

All three are one grid: a row per band, symbol or text, a column per step, as full of colour as the number is large.
Neighbours of the same shade are one rectangle, so that a recording of a few seconds stays a small file.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

import numpy as np

from foreword.arrays import Reals
from foreword.errors import SettingError
from foreword.picture.axes import UNITS, even_ticks
from foreword.picture.picture import Picture, label, percent, shorten, svg

FIRST, TOP, FOOT = 0.14, 4, 26
SHADES = 12


def spectrogram(frames: Reals, hop: float, rate: int) -> Picture:
    """Draw log-mel frames, (F, M), low bands at the bottom; hop: seconds between frames; rate: samples a second."""
    low, high = np.quantile(frames, (0.02, 0.995)).tolist()
    shares = np.clip((frames - low) / max(high - low, 1e-9), 0, 1)
    bands = frames.shape[1]
    highest = 2595 * np.log10(1 + rate / 1400)
    names = [""] * bands
    for pitch in (300, 1000, 2000, 3000):
        band = round(2595 * np.log10(1 + pitch / 700) / highest * (bands + 1)) - 1
        if 0 <= band < bands:
            names[band] = f"{pitch:,} Hz"
    said = f"Energy in {bands} bands of the mel scale, a column every {1000 * hop:g} ms: darker is louder."
    return over_time(names[::-1], shares.T[::-1], hop, "What the recogniser reads", said, row=7)


def over_time(rows: Sequence[str], shares: Reals, hop: float, title: str, caption: str, *, row: float = 18) -> Picture:
    """Draw shares between 0 and 1, (rows, steps); hop: seconds between steps; row: height of a row in pixels."""
    if shares.ndim != 2 or shares.shape[0] != len(rows) or not shares.size:
        raise SettingError(f"shares are {shares.shape} for {len(rows)} rows: expected a row for each, and steps")
    steps = shares.shape[1]
    height, right = row * len(rows), 1 - FIRST
    shapes = [
        label(shorten(name), percent(FIRST - 0.012), TOP + row * (number + 0.5) + 4, anchor="end", colour="muted")
        for number, name in enumerate(rows)
        if name
    ]
    shapes.append(
        f'<svg x="{percent(FIRST)}" y="{TOP}" width="{percent(right)}" height="{height:g}" '
        f'viewBox="0 0 {UNITS} {len(rows)}" preserveAspectRatio="none">'
        f'<rect width="{UNITS}" height="{len(rows)}" fill="var(--p-line)" fill-opacity="0.35"/>{_shaded(shares)}</svg>'
    )
    for tick in even_ticks(0, steps * hop):
        place = percent(FIRST + right * tick / (steps * hop))
        name = f"{tick:g} s"
        shapes.append(label(name, place, TOP + height + 18, anchor="middle" if tick else "start", colour="muted"))
    return Picture(svg(title, TOP + height + FOOT, shapes), title, caption)


def _shaded(shares: Reals) -> str:
    """Return a path per shade, each of the runs of neighbours that have it."""
    paths: dict[int, list[str]] = {}
    steps = shares.shape[1]
    for number, line in enumerate(np.round(np.clip(shares, 0, 1) * SHADES).astype(int).tolist()):
        begin = 0
        for shade, run in groupby(line):
            end = begin + len(list(run))
            left, right = round(UNITS * begin / steps, 1), round(UNITS * end / steps, 1)
            paths.setdefault(shade, []).append(f"M{left:g} {number}H{right:g}v1H{left:g}z")
            begin = end
    return "".join(
        f'<path fill="var(--p-accent)" fill-opacity="{shade / SHADES:.2f}" d="{"".join(path)}"/>'
        for shade, path in sorted(paths.items())
        if shade
    )
