"""What the reference shows, in addition to names without an underscore: mkdocs.yml asks for what is public.

Left out: a setting or field, which stands in its class's signature already; a constant that no docstring explains, a
matter of its module; ``to_parts`` and ``from_parts``, for ``save`` and ``load`` are what a reader calls.

Our docstrings explain settings in lines such as ``order: words, the next one included``. In Markdown they would run
together; here each becomes an item of a list.
"""

from __future__ import annotations

import re
from typing import Any

import griffe

SAVING = {"to_parts", "from_parts"}
SETTING = re.compile(r"((?:[a-z]\w*)(?:, [a-z]\w*)*): (?=\S)")


class WhatReadersCall(griffe.Extension):
    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = "\n\n".join(map(listed, obj.docstring.value.split("\n\n")))

    def on_attribute(self, *, attr: griffe.Attribute, **kwargs: Any) -> None:
        if attr.docstring is None and "property" not in attr.labels:
            attr.public = False

    def on_function(self, *, func: griffe.Function, **kwargs: Any) -> None:
        if func.name in SAVING or (func.is_special and func.name != "__init__"):
            func.public = False


def listed(paragraph: str) -> str:
    """A paragraph whose first line explains a setting, as a list of settings; any other as it is."""
    if not SETTING.match(paragraph):
        return paragraph
    lines = []
    for line in paragraph.split("\n"):
        found = SETTING.match(line)
        names = ", ".join(f"`{name}`" for name in found[1].split(", ")) if found else ""
        lines.append(f"- {names}: {line[found.end() :]}" if found else f"    {line.strip()}")
    return "\n".join(lines)
