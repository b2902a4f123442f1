"""Quality by the length of the source, with and without attention (row Q09)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from foreword.picture.curves import curves
from foreword.picture.picture import Picture, readable


def bottleneck(lengths: Sequence[int], perplexity: Mapping[str, Sequence[float]]) -> Picture:
    """perplexity: a kind of attention → a number for each length; "none" is the one without."""
    names = {kind: "no attention" if kind == "none" else f"{kind} attention" for kind in perplexity}
    lines = {names[kind]: list(values) for kind, values in perplexity.items()}
    at_last = ", ".join(f"{readable(values[-1])} with {name}" for name, values in lines.items())
    return curves(
        [str(length) for length in lengths],
        lines,
        "What one vector can hold",
        f"Perplexity of a target token by the number of source words: at {lengths[-1]} words {at_last}.",
        accent=[name for kind, name in names.items() if kind != "none"],
    )
