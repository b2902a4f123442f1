"""``--set NAME=VALUE``: the parameters of a model's constructor from the command line, checked before any work."""

from __future__ import annotations

import json
from collections.abc import Iterable
from inspect import signature
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import typer

HINT = "'--set'"
NAMES = {float: "a number", int: "a whole number", str: "a string", bool: "true or false", NoneType: "null"}


def settings_of(model: type) -> dict[str, Any]:
    """Return the name and type of every setting of a class: its constructor's parameters, those of an unpacked
    ``TypedDict`` one by one.
    """
    types = get_type_hints(model.__init__)  # type: ignore[misc]
    found: dict[str, Any] = {}
    for name, parameter in list(signature(model.__init__).parameters.items())[1:]:  # type: ignore[misc]
        if parameter.kind is parameter.VAR_KEYWORD:
            (group,) = get_args(types[name])
            found |= get_type_hints(group)
        else:
            found[name] = types.get(name, Any)
    return found


def parse_settings(settings: Iterable[str], kind: str, model: type) -> dict[str, Any]:
    """The settings as arguments for ``model``; ``kind`` is what the user calls it."""
    allowed = settings_of(model)
    return dict(_parse(setting, kind, allowed) for setting in settings)


def _parse(setting: str, kind: str, allowed: dict[str, Any]) -> tuple[str, Any]:
    name, equals, text = setting.partition("=")
    name = name.replace("-", "_")
    if not equals:
        raise typer.BadParameter(f"{setting!r} is not NAME=VALUE", param_hint=HINT)
    if name not in allowed:
        raise typer.BadParameter(
            f"{kind} has no setting {name!r}: expected {', '.join(allowed) or 'none'}", param_hint=HINT
        )
    value = _value(text)
    if not fits(value, allowed[name]):
        raise typer.BadParameter(f"{name} cannot be {text!r}: expected {spelled(allowed[name])}", param_hint=HINT)
    return name, value


def _value(text: str) -> Any:
    """JSON where it is that, else a string, so that words need no quotation marks."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def fits(value: Any, wanted: Any) -> bool:
    """Whether a value is what a parameter's annotation says, as far as that can be told simply."""
    origin = get_origin(wanted)
    if origin is Literal:
        return value in get_args(wanted)
    if origin in (Union, UnionType):
        return any(fits(value, one) for one in get_args(wanted))
    if isinstance(value, bool) and wanted in (int, float):
        return False  # to Python, but to nobody else, true is a number
    if wanted is float:
        return isinstance(value, int | float)
    if origin is not None:
        return isinstance(value, list | dict)
    return wanted is Any or not isinstance(wanted, type) or isinstance(value, wanted)


def spelled(wanted: Any) -> str:
    if get_origin(wanted) is Literal:
        return " or ".join(map(str, get_args(wanted)))
    if get_origin(wanted) in (Union, UnionType):
        return " or ".join(map(spelled, get_args(wanted)))
    return NAMES.get(wanted) or str(wanted)
