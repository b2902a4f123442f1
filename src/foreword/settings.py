"""Settings of models: the parameters of their constructors by name, and the checks that all of them share."""

from __future__ import annotations

import math
from inspect import signature
from numbers import Integral, Real
from typing import Any, get_args, get_type_hints

from foreword.errors import SettingError


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


def check_choice(model: object, name: str, choices: tuple[str | None, ...]) -> None:
    """Raise a SettingError unless a setting is one of the choices."""
    if getattr(model, name) not in choices:
        raise SettingError(f"{name}={getattr(model, name)!r}: expected one of {', '.join(map(str, choices))}")


def check_whole(model: object, **limits: int | tuple[int, int]) -> None:
    """Raise a SettingError unless each named setting is a whole number within its limits, or at least its limit."""
    for name, limit in limits.items():
        value = getattr(model, name)
        least, most = limit if isinstance(limit, tuple) else (limit, math.inf)
        if isinstance(value, bool) or not isinstance(value, Integral) or not least <= int(value) <= most:
            wanted = f"from {least} to {most}" if isinstance(limit, tuple) else f"of at least {least}"
            raise SettingError(f"{name}={value!r}: expected a whole number {wanted}")


def check_numbers(model: object, **limits: tuple[float, float]) -> None:
    """Raise a SettingError unless each named setting is a finite number within its limits."""
    for name, (least, most) in limits.items():
        value = getattr(model, name)
        if not is_finite(value) or not least <= value <= most:
            wanted = f"from {least:g} to {most:g}" if most < math.inf else f"of at least {least:g}"
            raise SettingError(f"{name}={value!r}: expected a number {wanted}")


def check_positive(model: object, *names: str) -> None:
    """Raise a SettingError unless each named setting is a finite number above zero."""
    for name in names:
        value = getattr(model, name)
        if not is_finite(value) or value <= 0:
            raise SettingError(f"{name}={value!r}: expected a positive number")


def is_finite(value: object) -> bool:
    """Whether a value is a real number, neither infinite nor NaN; true and false are no numbers here."""
    return not isinstance(value, bool) and isinstance(value, Real) and math.isfinite(value)
