"""Statistics of a run: documents, kept and rejected by which rule, histograms and percentiles of the scores."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from foreword.arrays import Array, Bools, Doubles, Longs, ULongs
from foreword.filtering.columns import Column, holds_names, is_share
from foreword.picture.picture import Picture, label, percent, plural, readable, svg

PER_POWER = 8
"""Bins of a histogram for each power of ten."""

SHARES = 50
"""Bins of a histogram of probabilities."""

SMALLEST = 1e-9
"""Smaller values are in the bin of 0."""

ZERO = math.floor(math.log10(SMALLEST) * PER_POWER)


@dataclass(slots=True)
class Tally:
    """Sums over documents, which add up from shard to shard.

    documents: rows that are not blank lines; rejected: by the first rule that each failed; bytes_in, bytes_out: as
    stored. histograms: for each column how many values are in each bin, by the bin's number as a string, as in JSON.
    fields: for each field that a rule reads, how many documents have it. unscored: for each column of models that are
    chosen by a label, the labels without a model, and how many documents have each.
    """

    documents: int = 0
    kept: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    rejected: dict[str, int] = field(default_factory=dict)
    histograms: dict[str, dict[str, int]] = field(default_factory=dict)
    fields: dict[str, int] = field(default_factory=dict)
    unscored: dict[str, dict[str, int]] = field(default_factory=dict)

    def add(self, other: Tally) -> None:
        """Add another tally to this one."""
        self.documents += other.documents
        self.kept += other.kept
        self.bytes_in += other.bytes_in
        self.bytes_out += other.bytes_out
        add_counts(self.rejected, other.rejected)
        for name, counts in other.histograms.items():
            add_counts(self.histograms.setdefault(name, {}), counts)
        add_counts(self.fields, other.fields)
        for name, counts in other.unscored.items():
            add_counts(self.unscored.setdefault(name, {}), counts)

    def count(self, columns: Sequence[Column]) -> None:
        """Count a batch: names as they are, probabilities in fiftieths, others by decades in eighths."""
        for column in columns:
            bins = self.histograms.setdefault(column.name, {})
            if column.names is not None:
                indices, counts = np.unique(column.values[column.values >= 0], return_counts=True)
                names = [column.names[index] for index in indices.tolist()]
            elif column.values.dtype == np.float64:
                found, counts = np.unique(bin_of(column), return_counts=True)
                names = list(map(str, found.tolist()))
            else:
                continue
            add_counts(bins, dict(zip(names, counts.tolist(), strict=True)))

    def count_fields(self, fields: Iterable[Column], present: Bools) -> None:
        """Count the documents of a batch that have each field."""
        add_counts(self.fields, {each.name: int(np.count_nonzero(present & ~each.missing)) for each in fields})

    def count_unscored(self, column: Column, labels: Column) -> None:
        """Count the documents of a batch that have a label, but no score by the model of that label."""
        assert labels.names is not None
        indices, counts = np.unique(labels.values[column.missing & ~labels.missing], return_counts=True)
        names = [labels.names[index] for index in indices.tolist()]
        if names:
            add_counts(self.unscored.setdefault(column.name, {}), dict(zip(names, counts.tolist(), strict=True)))

    def to_json(self) -> dict[str, Any]:
        """Return the tally as a JSON object."""
        return asdict(self)

    @classmethod
    def from_json(cls, facts: Mapping[str, Any]) -> Tally:
        """Rebuild a tally from its JSON object."""
        return cls(**facts)


def add_counts(into: dict[str, int], more: Mapping[str, int]) -> None:
    """Add counts by name."""
    for name, count in more.items():
        into[name] = into.get(name, 0) + count


def bin_of(column: Column) -> Any:
    """Return the bins that the column's finite values fall into; log-probabilities by their magnitude."""
    values = np.abs(column.values[np.isfinite(column.values)])
    if is_share(column.name):
        return np.minimum((values * SHARES).astype(np.int64), SHARES - 1)
    return np.floor(np.log10(np.maximum(values, SMALLEST)) * PER_POWER).astype(np.int64)


def edges(name: str, index: int) -> tuple[float, float]:
    """Return where a bin begins and ends."""
    if is_share(name):
        return index / SHARES, (index + 1) / SHARES
    if index == ZERO:
        return 0.0, 0.0
    return 10 ** (index / PER_POWER), 10 ** ((index + 1) / PER_POWER)


def described(tally: Tally, seconds: float | None = None, done_before: int = 0) -> list[str]:
    """Describe a tally in lines. seconds: of this run; done_before: bytes that an earlier run had read."""
    share = f" ({percent(tally.kept / tally.documents)})" if tally.documents else ""
    lines = [f"{plural(tally.documents, 'document')}, {tally.kept:,} kept{share}"]
    lines += [f"{count:,} rejected by {rule}" for rule, count in tally.rejected.items() if count]
    lines += [_without_model(name, labels) for name, labels in tally.unscored.items()]
    lines.append(f"{tally.bytes_in / 1e6:,.1f} MB read, {tally.bytes_out / 1e6:,.1f} MB written")
    if seconds:
        lines[-1] += f", {(tally.bytes_in - done_before) / 1e6 / seconds:,.1f} MB/s"
    return lines + spread(tally)


def _without_model(column: str, labels: Mapping[str, int]) -> str:
    """Describe how many documents have no score, because their label has no model."""
    ranked, total = sorted(labels, key=lambda label: (-labels[label], label)), sum(labels.values())
    shown = ", ".join(ranked[:FEW_LABELS]) + (" …" if len(ranked) > FEW_LABELS else "")
    return f"{plural(total, 'document has', 'documents have')} no {column}: no model for {shown}"


def missing_fields(tally: Tally) -> list[str]:
    """Describe the fields that rules read and no document has: a misspelt one rejects all of them."""
    return [
        f"no document has the field of {name}: is it misspelt?"
        for name, count in tally.fields.items()
        if tally.documents and not count
    ]


BLOCKS, MOST_BLOCKS, FEW_LABELS = "▁▂▃▄▅▆▇█", 40, 5


def spread(tally: Tally) -> list[str]:
    """Describe the distribution of each column in one line; scores are left to their perplexities."""
    bins = {name: found for name, found in tally.histograms.items() if found and not name.endswith("score")}
    width = max(map(len, bins), default=0)
    return [
        f"{name:{width}}  {_most_frequent(found) if holds_names(name) else _blocks(name, found)}"
        for name, found in bins.items()
    ]


def _blocks(name: str, bins: Mapping[str, int]) -> str:
    """Draw a histogram in characters, from the lowest value to the highest; no bin that has values is invisible."""
    numbered = {int(key): count for key, count in bins.items()}
    first, last = min(numbered), max(numbered)
    step = -(-(last - first + 1) // MOST_BLOCKS)
    bars = [0] * ((last - first) // step + 1)
    for index, count in numbered.items():
        bars[(index - first) // step] += count
    most = max(bars)
    drawn = "".join(BLOCKS[(len(BLOCKS) * bar - 1) // most] if bar else " " for bar in bars)
    low, high = edges(name, first)[0], edges(name, last)[1]
    return f"{readable(low)} {drawn} {readable(high)}, half {_below_middle(name, numbered)}"


def _most_frequent(bins: Mapping[str, int]) -> str:
    ranked, total = sorted(bins.items(), key=lambda item: (-item[1], item[0])), sum(bins.values())
    shown = ", ".join(f"{each} {percent(count / total)}" for each, count in ranked[:FEW_LABELS])
    return shown + (f", {len(ranked) - FEW_LABELS:,} others" if len(ranked) > FEW_LABELS else "")


HEIGHT, BAR_ROW, LABEL_ROWS = 150, 24, 20


def histogram(tally: Tally, name: str) -> Picture:
    """Draw the distribution of a column: vertical bars for numbers, horizontal bars for labels."""
    bins = tally.histograms[name]
    return _labels(name, bins) if bins and holds_names(name) else _numbers(name, bins)


def _numbers(name: str, bins: Mapping[str, int]) -> Picture:
    numbered = {int(key): count for key, count in bins.items()}
    first, last = (min(numbered), max(numbered)) if numbered else (0, 0)
    most, width = max(numbered.values(), default=1), last - first + 1
    shapes = [
        f'<rect x="{percent((index - first) / width)}" width="{percent(0.9 / width)}" '
        f'y="{HEIGHT - height:.1f}" height="{height:.1f}" fill="var(--p-accent)">'
        f"<title>{count:,}: {readable(low)} to {readable(high)}</title></rect>"
        for index, count in sorted(numbered.items())
        for low, high in [edges(name, index)]
        for height in [max(1.0, HEIGHT * count / most)]
    ]
    low, high = edges(name, first)[0], edges(name, last)[1]
    shapes.append(f'<line x1="0" x2="100%" y1="{HEIGHT}" y2="{HEIGHT}" stroke="var(--p-line)"/>')
    shapes.append(label(readable(low), "0", HEIGHT + 18, colour="muted"))
    shapes.append(label(readable(high), "100%", HEIGHT + 18, anchor="end", colour="muted"))
    total = sum(numbered.values())
    scale = "" if is_share(name) else ", on a logarithmic scale"
    title = f"How {'the size of ' if name.endswith('score') else ''}{name} is spread"
    caption = f"{plural(total, 'document')}; half of them are {_below_middle(name, numbered)}{scale}."
    return Picture(svg(title, HEIGHT + 24, shapes), title, caption)


def _below_middle(name: str, numbered: Mapping[int, int]) -> str:
    """Describe the lower half of the values: ``below 1.78``, or ``0``."""
    middle = _middle(name, numbered)
    return "0" if middle == 0 else f"below {readable(middle)}"


def _middle(name: str, numbered: Mapping[int, int]) -> float:
    """Return the upper end of the bin that holds the median."""
    half, seen = sum(numbered.values()) / 2, 0
    for index, count in sorted(numbered.items()):
        seen += count
        if seen >= half:
            return edges(name, index)[1]
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
    caption = (
        f"{shown[0][0]} is the most frequent, {percent(shown[0][1] / total)} of {plural(total, 'document')}{rest}."
    )
    return Picture(svg(title, BAR_ROW * len(shown), shapes), title, caption)


# --- percentiles
#
# The k-th best of very many numbers on disk, exactly, in memory that does not grow with them. A float64 is mapped to an
# integer that sorts in the same order. Its first 16 bits are counted, the bin with the k-th number is found, then the
# next 16 bits of those in the bin are counted, and so on: four passes, and 512 KB per label for ``GROUPS`` labels.

VALUE = np.dtype([("value", "<f8"), ("label", "<i4")])
"""A document's score and the index of its label, −1 where there is none."""

DIGIT = 16
"""Bits that are counted in one pass."""

BINS = 1 << DIGIT
GROUPS = 64
READ_VALUES = 1 << 20

Values = Callable[[], Iterable[Array]]
"""Returns some VALUEs at a time, from the beginning at every call."""


def values_in(paths: Sequence[Path]) -> Values:
    """Return a function that reads the values of files."""

    def read() -> Iterator[Array]:
        for path in paths:
            with path.open("rb") as file:
                while len(part := np.fromfile(file, VALUE, READ_VALUES)):
                    yield part

    return read


def best_shares(
    values: Values, percents: Sequence[float], low: bool, labels: Sequence[str] | None
) -> dict[str, tuple[float, ...]]:
    """Return for each label that occurs, or for all under ``*``, the worst value among the best p percent.

    That is the value than which ⌈n · p / 100⌉ of n are no worse. low: whether low values are the good ones.
    """
    names = ["*"] if labels is None else list(labels)
    found: dict[str, tuple[float, ...]] = {}
    for first in range(0, len(names), GROUPS):
        some = names[first : first + GROUPS]
        grouped = _grouped(values, None if labels is None else first, len(some))
        sizes = sum((np.bincount(group, minlength=len(some)) for group, _ in grouped()), np.zeros(len(some), np.int64))
        limits = [_limits(grouped, sizes, percent, low) for percent in percents]
        for index in np.flatnonzero(sizes).tolist():
            found[some[index]] = tuple(float(limit[index]) for limit in limits)
    return found


Grouped = Callable[[], Iterable[tuple[Longs, Doubles]]]


def _grouped(values: Values, first: int | None, groups: int) -> Grouped:
    """Return the values of ``groups`` labels from ``first`` on, with the group of each."""

    def read() -> Iterator[tuple[Longs, Doubles]]:
        for part in values():
            numbers = np.ascontiguousarray(part["value"])
            if first is None:
                yield np.zeros(len(part), np.int64), numbers
                continue
            group = part["label"].astype(np.int64) - first
            inside = (group >= 0) & (group < groups)
            yield group[inside], numbers[inside]

    return read


def _limits(grouped: Grouped, sizes: Longs, percent: float, low: bool) -> Doubles:
    """Return the threshold of each group that is not empty."""
    wanted = np.array([max(1, math.ceil(size * percent / 100)) for size in sizes.tolist()])
    rank = wanted - 1 if low else sizes - wanted  # from below
    prefix = np.zeros(len(sizes), np.uint64)
    for shift in range(64 - DIGIT, -1, -DIGIT):
        counts = np.zeros(len(sizes) * BINS, np.int64)
        for group, numbers in grouped():
            keys = sortable(numbers)
            if shift + DIGIT < 64:
                inside = keys >> np.uint64(shift + DIGIT) == prefix[group]
                group, keys = group[inside], keys[inside]
            digits = ((keys >> np.uint64(shift)) & np.uint64(BINS - 1)).astype(np.int64)
            counts += np.bincount(group * BINS + digits, minlength=len(counts))
        ends = np.cumsum(counts.reshape(-1, BINS), axis=1)
        digit = np.minimum((ends <= rank[:, None]).sum(axis=1), BINS - 1)
        before = ends[np.arange(len(sizes)), digit] - counts.reshape(-1, BINS)[np.arange(len(sizes)), digit]
        rank = rank - before
        prefix = prefix << np.uint64(DIGIT) | digit.astype(np.uint64)
    return unsortable(prefix)


_SIGN = np.uint64(1 << 63)


def sortable(values: Doubles) -> ULongs:
    """Map values to integers of the same order: the sign bit is flipped, and all other bits of negative numbers too."""
    bits = values.view(np.uint64)
    return np.where(bits & _SIGN, ~bits, bits | _SIGN)


def unsortable(keys: ULongs) -> Doubles:
    """Undo ``sortable``."""
    return np.where(keys & _SIGN, keys ^ _SIGN, ~keys).view(np.float64)
