"""Draw docs/pictures/layers.svg, the picture of docs/architecture.md, from the table of folders in CONTRIBUTING.md.

python recipes/architecture_page.py
"""

from __future__ import annotations

import re
from itertools import groupby
from pathlib import Path

from foreword.picture.picture import Picture, label, svg, write_standalone

ROOT = Path(__file__).parents[1]
ROW = re.compile(r"^\| (\d) \| `([\w.]+/?)` \|", re.MULTILINE)
MEANING = {
    0: "what everything stands on",
    1: "bytes in, bytes out",
    2: "documents become ids",
    3: "parts that models share",
    4: "model families",
    5: "models made of models",
    6: "measured and drawn",
    7: "taught",
    8: "whole models at work",
    9: "the command line",
}
HEIGHT, GAP = 46, 8


def band(layer: int, folders: list[str], top: float) -> str:
    """Draw one layer: its number, what it means, and its folders."""
    frame = f'<rect x="0" y="{top:g}" width="100%" height="{HEIGHT}" rx="4" fill="none" stroke="var(--p-line)"/>'
    number = label(str(layer), "12px", top + 28, colour="accent", weight=600)
    meaning = label(MEANING[layer], "34px", top + 18, colour="muted")
    return frame + number + meaning + label("  ".join(folders), "34px", top + 36)


def main() -> None:
    rows = ROW.findall((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"))
    layers = [(int(layer), [name for _, name in group]) for layer, group in groupby(rows, key=lambda row: row[0])]
    bands = [band(layer, names, place * (HEIGHT + GAP)) for place, (layer, names) in enumerate(reversed(layers))]
    title = "The layers: imports point down"
    drawing = svg(title, len(layers) * (HEIGHT + GAP), bands)
    caption = "Every folder of the package in its layer; a folder imports from its own layer or from those below it."
    write_standalone(Picture(drawing, title, caption), ROOT / "docs" / "pictures" / "layers.svg", width=920)


if __name__ == "__main__":
    main()
