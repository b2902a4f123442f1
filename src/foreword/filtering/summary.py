"""What a run has seen: documents, what was kept, what was rejected by which rule, and how the scores are spread."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from foreword.filtering.scoring import Column
from foreword.picture.picture import Picture, label, percent, readable, svg

PER_POWER = 8
"""Bins of a histogram for each power of ten."""

SHARES = 50
"""Bins of a histogram of probabilities."""


@dataclass(slots=True)
class Tally:
    """Sums over documents, which add up from shard to shard.

    documents: rows that are no blank lines; rejected: by the first rule that each failed; bytes_in, bytes_out: as they
    are stored. histograms: for each column how many values are in each bin, by the bin's number as JSON has keys.
    """

    documents: int = 0
    kept: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    rejected: dict[str, int] = field(default_factory=dict)
    histograms: dict[str, dict[str, int]] = field(default_factory=dict)

    def add(self, other: Tally) -> None:
        self.documents += other.documents
        self.kept += other.kept
        self.bytes_in += other.bytes_in
        self.bytes_out += other.bytes_out
        add_counts(self.rejected, other.rejected)
        for name, counts in other.histograms.items():
            add_counts(self.histograms.setdefault(name, {}), counts)

    def count(self, columns: Sequence[Column]) -> None:
        """Enter a batch's scores: names by themselves, probabilities in fiftieths, the rest in eighths of a power."""
        for column in columns:
            bins = self.histograms.setdefault(column.name, {})
            if column.names is not None:
                places, counts = np.unique(column.values[column.values >= 0], return_counts=True)
                names = [column.names[place] for place in places.tolist()]
            elif column.values.dtype == np.float64:
                found, counts = np.unique(bin_of(column), return_counts=True)
                names = list(map(str, found.tolist()))
            else:
                continue
            add_counts(bins, dict(zip(names, counts.tolist(), strict=True)))

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, facts: Mapping[str, Any]) -> Tally:
        return cls(**facts)


def add_counts(into: dict[str, int], more: Mapping[str, int]) -> None:
    for name, count in more.items():
        into[name] = into.get(name, 0) + count


def is_share(name: str) -> bool:
    return name.endswith("probability")


def bin_of(column: Column) -> Any:
    """The numbers of the bins that the column's finite values fall into; log-probabilities by their size."""
    values = np.abs(column.values[np.isfinite(column.values)])
    if is_share(column.name):
        return np.minimum((values * SHARES).astype(np.int64), SHARES - 1)
    return np.floor(np.log10(np.maximum(values, 1e-9)) * PER_POWER).astype(np.int64)


def edges(name: str, place: int) -> tuple[float, float]:
    """Where a bin begins and ends."""
    if is_share(name):
        return place / SHARES, (place + 1) / SHARES
    return 10 ** (place / PER_POWER), 10 ** ((place + 1) / PER_POWER)


def described(tally: Tally, seconds: float | None = None, done_before: int = 0) -> list[str]:
    """For a person, a line each. seconds: what this run took; done_before: bytes that an earlier run had read."""
    share = f" ({percent(tally.kept / tally.documents)})" if tally.documents else ""
    lines = [f"{tally.documents:,} documents, {tally.kept:,} kept{share}"]
    lines += [f"{count:,} rejected by {rule}" for rule, count in tally.rejected.items() if count]
    lines.append(f"{tally.bytes_in / 1e6:,.1f} MB read, {tally.bytes_out / 1e6:,.1f} MB written")
    if seconds:
        lines[-1] += f", {(tally.bytes_in - done_before) / 1e6 / seconds:,.1f} MB/s"
    return lines + spread(tally)


BLOCKS, MOST_BLOCKS, FEW_LABELS = "▁▂▃▄▅▆▇█", 40, 5


def spread(tally: Tally) -> list[str]:
    """How the values of each column are spread, a line each. A score says what its perplexity says."""
    bins = {name: found for name, found in tally.histograms.items() if found and not name.endswith("score")}
    width = max(map(len, bins), default=0)
    return [
        f"{name:{width}}  {_blocks(name, found) if _is_number(next(iter(found))) else _most_frequent(found)}"
        for name, found in bins.items()
    ]


def _blocks(name: str, bins: Mapping[str, int]) -> str:
    """Bars of text side by side, from the lowest value to the highest; any that is not empty can be seen."""
    places = {int(key): count for key, count in bins.items()}
    first, last = min(places), max(places)
    step = -(-(last - first + 1) // MOST_BLOCKS)
    bars = [0] * ((last - first) // step + 1)
    for place, count in places.items():
        bars[(place - first) // step] += count
    most = max(bars)
    drawn = "".join(BLOCKS[(len(BLOCKS) * bar - 1) // most] if bar else " " for bar in bars)
    low, high = edges(name, first)[0], edges(name, last)[1]
    return f"{readable(low)} {drawn} {readable(high)}, half below {readable(_middle(name, places))}"


def _most_frequent(bins: Mapping[str, int]) -> str:
    ranked, total = sorted(bins.items(), key=lambda item: (-item[1], item[0])), sum(bins.values())
    shown = ", ".join(f"{each} {percent(count / total)}" for each, count in ranked[:FEW_LABELS])
    return shown + (f", {len(ranked) - FEW_LABELS:,} others" if len(ranked) > FEW_LABELS else "")


HEIGHT, BAR_ROW, LABEL_ROWS = 150, 24, 20


def histogram(tally: Tally, name: str) -> Picture:
    """How a column's values are spread: bars side by side for numbers, one below the other for labels."""
    bins = tally.histograms[name]
    return _labels(name, bins) if bins and not _is_number(next(iter(bins))) else _numbers(name, bins)


def _is_number(key: str) -> bool:
    return key.removeprefix("-").isdecimal()


def _numbers(name: str, bins: Mapping[str, int]) -> Picture:
    places = {int(key): count for key, count in bins.items()}
    first, last = (min(places), max(places)) if places else (0, 0)
    most, width = max(places.values(), default=1), last - first + 1
    shapes = [
        f'<rect x="{percent((place - first) / width)}" width="{percent(0.9 / width)}" '
        f'y="{HEIGHT - height:.1f}" height="{height:.1f}" fill="var(--p-accent)">'
        f"<title>{count:,}: {readable(low)} to {readable(high)}</title></rect>"
        for place, count in sorted(places.items())
        for low, high in [edges(name, place)]
        for height in [max(1.0, HEIGHT * count / most)]
    ]
    low, high = edges(name, first)[0], edges(name, last)[1]
    shapes.append(f'<line x1="0" x2="100%" y1="{HEIGHT}" y2="{HEIGHT}" stroke="var(--p-line)"/>')
    shapes.append(label(readable(low), "0", HEIGHT + 18, colour="muted"))
    shapes.append(label(readable(high), "100%", HEIGHT + 18, anchor="end", colour="muted"))
    total = sum(places.values())
    scale = "" if is_share(name) else ", on a logarithmic scale"
    title = f"How {'the size of ' if name.endswith('score') else ''}{name} is spread"
    caption = f"{total:,} documents; half of them are below {readable(_middle(name, places))}{scale}."
    return Picture(svg(title, HEIGHT + 24, shapes), title, caption)


def _middle(name: str, places: Mapping[int, int]) -> float:
    """The upper end of the bin that holds the median."""
    half, seen = sum(places.values()) / 2, 0
    for place, count in sorted(places.items()):
        seen += count
        if seen >= half:
            return edges(name, place)[1]
    return math.nan


def _labels(name: str, bins: Mapping[str, int]) -> Picture:
    ranked = sorted(bins.items(), key=lambda item: (-item[1], item[0]))
    total, shown = sum(bins.values()), ranked[:LABEL_ROWS]
    shapes = [
        label(each, "0", row * BAR_ROW + 14)
        + f'<rect x="20%" y="{row * BAR_ROW + 4}" height="12" width="{percent(0.65 * count / shown[0][1])}" '
        'fill="var(--p-accent)"/>' + label(f"{count:,}", "100%", row * BAR_ROW + 14, anchor="end", colour="muted")
        for row, (each, count) in enumerate(shown)
    ]
    title = f"How {name} is spread"
    rest = f"; {len(ranked) - len(shown):,} rarer ones are not drawn" if len(ranked) > len(shown) else ""
    caption = f"{shown[0][0]} is the most frequent, {percent(shown[0][1] / total)} of {total:,} documents{rest}."
    return Picture(svg(title, BAR_ROW * len(shown), shapes), title, caption)
