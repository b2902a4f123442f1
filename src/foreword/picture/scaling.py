"""Loss against size on two logarithmic axes: what was measured, and the power law through it (row X04)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from foreword.errors import SettingError
from foreword.picture.curves import curves
from foreword.picture.picture import Picture


def scaling(
    sizes: Sequence[int], losses: Mapping[str, Sequence[float]], fits: Mapping[str, Sequence[float]], caption: str
) -> Picture:
    """losses, fits: a model's name → one number for each size; the fitted ones are dashed."""
    if set(fits) - set(losses):
        raise SettingError(f"a fit for {sorted(set(fits) - set(losses))}, which was not measured")
    fitted = {f"{name}, fitted": values for name, values in fits.items()}
    lines = {**losses, **fitted}
    return curves(
        [_short(size) for size in sizes], lines, "Loss against parameters", caption, accent=losses, dashed=fitted
    )


def _short(size: int) -> str:
    """12,345 as 12k, 1,234,567 as 1.2M."""
    if size >= 1_000_000:
        return f"{size / 1e6:.1f}M"
    return f"{size / 1e3:.0f}k" if size >= 1000 else str(size)
