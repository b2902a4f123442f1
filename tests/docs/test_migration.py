"""The migration note: what it calls gone is gone, and what it points to is there."""

from __future__ import annotations

import re
from pathlib import Path

import foreword

PACKAGE = Path(foreword.__file__).parent
NOTE = Path(__file__).parents[2] / "docs" / "migration.md"
ROWS = [line.split("|")[1:3] for line in NOTE.read_text(encoding="utf-8").splitlines() if line.startswith("| `")]


def exists(module: str) -> bool:
    path = PACKAGE.joinpath(*module.split("."))
    return path.with_suffix(".py").is_file() or (path / "__init__.py").is_file()


def test_old_modules_are_gone_and_new_ones_are_there() -> None:
    assert len(ROWS) > 100
    for old, new in ROWS:
        [before] = re.findall(r"`([\w.]+)`", old)
        assert not exists(before), before
        after = re.findall(r"`([\w.]+)`", new)
        assert after or "gone" in new, before
        assert all(map(exists, after)), after


def test_the_public_names_of_0_1_are_still_public() -> None:
    assert {"NgramLM", "TextClassifier", "TextLM", "TextTranslator", "load", "perplexity"} <= set(foreword.__all__)
