"""``--set NAME=VALUE``: the parameters of a model's constructor from the command line, checked before any work."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from inspect import signature
from types import NoneType, UnionType
from typing import Any, Literal, Union, Unpack, get_args, get_origin, get_type_hints

import typer

from foreword import kinds
from foreword.cli.source_settings import settings_in_source

HINT = "'--set'"
_PLURALS = {float: "numbers", int: "whole numbers", str: "strings"}
_EXAMPLES = {float: "0,0.5", int: "0,1", str: '"a","b"'}
NAMES = {float: "a number", int: "a whole number", str: "a string", bool: "true or false", NoneType: "null"}


def parse_settings(
    settings: Iterable[str] | None, kind: str, *models: type | str, without: Iterable[str] = ()
) -> dict[str, Any]:
    """Return the settings of ``--set`` as arguments of ``models``; ``kind`` is what the user calls them.

    models: classes, or their homes, ``"module:Class"``, which are imported once their sources allow the settings.
    without: arguments that ``--set`` cannot change, because another option or the kind itself says them.
    """
    given = list(settings or [])
    aliases = kinds.aliases_at(*map(_home, models))
    ours = [model for model in models if isinstance(model, str) and model.startswith("foreword.")]
    if ours:  # a kind of another package may be anywhere: its class is imported
        read = [
            settings_in_source(model) if isinstance(model, str) and model in ours else settings_of(_class_of(model))
            for model in models
        ]
        _parse_all(given, kind, read, without, aliases)
    classes = [_class_of(model) for model in models]
    return _parse_all(given, kind, [settings_of(each) for each in classes], without, aliases)


def _class_of(model: type | str) -> type:
    return kinds.resolve(model) if isinstance(model, str) else model


def _home(model: type | str) -> str:
    return model if isinstance(model, str) else f"{model.__module__}:{model.__qualname__}"


def _parse_all(
    given: list[str], kind: str, known: list[dict[str, Any]], without: Iterable[str], aliases: dict[str, str]
) -> dict[str, Any]:
    allowed = {name: wanted for each in known for name, wanted in each.items() if name not in without}
    return dict(_parse(setting, kind, allowed, aliases) for setting in given)


def settings_of(model: type) -> dict[str, Any]:
    """Return every setting of a model with its type: of its constructor, and of its training and dropout.

    The settings of a ``TypedDict`` that the constructor unpacks are listed one by one.
    """
    types = get_type_hints(model.__init__)  # type: ignore[misc]
    for name, wanted in list(types.items()):
        if get_origin(wanted) is Unpack:
            types |= get_type_hints(*get_args(types.pop(name)))
    nested = kinds.nested_settings(model)
    named = [name for name, each in signature(model).parameters.items() if each.kind is not each.VAR_KEYWORD]
    found = {name: types.get(name, Any) for name in dict.fromkeys([*named, *types]) if name not in (*nested, "return")}
    if "training" in nested:
        found = {**get_type_hints(type(nested["training"])), **found}
    if "dropout" in nested:
        places = get_type_hints(type(nested["dropout"]))
        found |= {"dropout": float, **{f"dropout.{name}": wanted for name, wanted in places.items()}}
    return found


def _parse(setting: str, kind: str, allowed: dict[str, Any], aliases: dict[str, str]) -> tuple[str, Any]:
    typed, equals, text = setting.partition("=")
    typed = typed.replace("-", "_")
    name = aliases.get(typed, typed)
    if not equals:
        raise typer.BadParameter(f"{setting!r} is not NAME=VALUE", param_hint=HINT)
    if name not in allowed:
        shared = {own: each for each, own in aliases.items()}
        known = [shared.get(each, each) for each in allowed]
        meant = "".join(f" (did you mean {each}?)" for each in get_close_matches(typed, known, 1))
        listed = ", ".join(known) or "none"
        raise typer.BadParameter(f"{kind} has no setting {typed!r}{meant}: expected {listed}", param_hint=HINT)
    value = _value(text)
    if not fits(value, allowed[name]):
        raise typer.BadParameter(f"{typed} cannot be {text!r}: expected {spelled(allowed[name])}", param_hint=HINT)
    return name, tuple(value) if isinstance(value, list) else value


def _value(text: str) -> Any:
    """Parse a value as JSON, or return it as a string, so that words need no quotation marks."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def fits(value: Any, wanted: Any) -> bool:
    """Return whether a value fits a parameter's annotation, as far as a simple check can tell."""
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
    """Return a setting's type in words."""
    if get_origin(wanted) is Literal:
        return " or ".join(map(str, get_args(wanted)))
    if get_origin(wanted) in (Union, UnionType):
        return " or ".join(map(spelled, get_args(wanted)))
    inner = [each for each in get_args(wanted) if each is not ...]
    if inner and isinstance(get_origin(wanted), type) and issubclass(get_origin(wanted), Sequence):
        return f"a list of {_PLURALS.get(inner[0], 'values')}, such as [{_EXAMPLES.get(inner[0], '')}]"
    return NAMES.get(wanted) or str(wanted)
