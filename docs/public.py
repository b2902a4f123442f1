"""What the reference leaves out, beside names with an underscore: mkdocs.yml asks for what is public.

A setting or field stands in its class's signature already, and a constant that no docstring explains is a matter of
its module. ``to_parts`` and ``from_parts`` are how models are saved: ``save`` and ``load`` are what a reader calls.
"""

from typing import Any

import griffe

SAVING = {"to_parts", "from_parts"}


class WhatReadersCall(griffe.Extension):
    def on_attribute(self, *, attr: griffe.Attribute, **kwargs: Any) -> None:
        if attr.docstring is None and "property" not in attr.labels:
            attr.public = False

    def on_function(self, *, func: griffe.Function, **kwargs: Any) -> None:
        if func.name in SAVING or (func.is_special and func.name != "__init__"):
            func.public = False
