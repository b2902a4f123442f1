"""scikit-learn's conventions without scikit-learn: settings by name, so that its pipelines, searches and clones work.

A constructor stores its keyword settings under their own names and does nothing else; ``fit`` checks them and learns;
learnt names end in ``_``. scikit-learn itself is imported in one method only, which only
scikit-learn calls.
"""

from __future__ import annotations

import inspect
from typing import Any, Self

from foreword.errors import NotFittedError, SettingError
from foreword.notebook import ShownInNotebook


class EstimatorNotFittedError(NotFittedError, AttributeError):
    """NotFittedError as scikit-learn expects it: ``hasattr(bag, "vocabulary_")`` is false before ``fit``."""


class Estimator(ShownInNotebook):
    """Base class with settings by name, those of the constructor's parameters.

    A constructor that takes ``**settings`` passes them on to that of its base class; the signature shows them all.
    """

    __signature__ = inspect.Signature()

    def __init_subclass__(cls) -> None:
        own = list(inspect.signature(cls.__init__).parameters.values())[1:]
        named = [each for each in own if each.kind is not each.VAR_KEYWORD]
        inherited = [] if len(named) == len(own) else list(cls.__base__.__signature__.parameters.values())  # type: ignore[union-attr]
        there = {each.name for each in named}
        cls.__signature__ = inspect.Signature([*(each for each in inherited if each.name not in there), *named])

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the settings as they were given; ``deep`` is for estimators made of others, which ours are not."""
        return {name: getattr(self, name) for name in self.__signature__.parameters}

    def set_params(self, **settings: Any) -> Self:
        """Change settings by name."""
        known = self.__signature__.parameters
        for name in settings:
            if name not in known:
                raise SettingError(f"a {type(self).__name__} has no setting {name!r}: expected {', '.join(known)}")
        for name, value in settings.items():
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        """Show the settings that differ from the defaults."""
        defaults = self.__signature__.parameters
        changed = ((name, value) for name, value in self.get_params().items() if value != defaults[name].default)
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in changed)})"

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import Tags, TargetTags

        return Tags(estimator_type=None, target_tags=TargetTags(required=False))
