"""Sets of characters as ``tokenizers`` has them, written for the inside of a regular expression's ``[...]``.

Each of its parts has its own Unicode tables, some of them ten years old, and a tokenizer must not change with the
version of Python. ``huggingface_classes.txt`` has what was measured, code point by code point; tests measure again.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from foreword.tokens.pieces import WHITE_SPACE as SPACES

__all__ = ["SPACES", "characters_of"]


@cache
def characters_of(name: str) -> str:
    """Return a set by its name: a general category of Unicode, or one of ``huggingface_classes.txt``."""
    for table in ("unicode_classes.txt", "huggingface_classes.txt"):
        for line in files("foreword.tokens").joinpath(table).read_text("ascii").splitlines():
            if line.startswith(f"{name} "):
                spans = [span.partition("-") for span in line.split()[1:]]
                return "".join(f"\\U{first:0>8}-\\U{last or first:0>8}" for first, _, last in spans)
    raise KeyError(name)
