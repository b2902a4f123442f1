"""scikit-learn's habits without scikit-learn: settings by name, so that its pipelines, searches and clones take ours.

A constructor stores its keyword settings under their own names and does nothing else; ``fit`` checks them and learns;
learnt names end in ``_``. That is all the protocol needs. scikit-learn itself is imported in one method only, which
nobody but scikit-learn calls.
"""

from __future__ import annotations

import inspect
from typing import Any, Self

from foreword.errors import NotFittedError, SettingError


class EstimatorNotFittedError(NotFittedError, AttributeError):
    """NotFittedError as scikit-learn expects it: ``hasattr(bag, "vocabulary_")`` is false before ``fit``."""


class Estimator:
    """Settings by name; the names are those of the constructor's arguments."""

    @classmethod
    def _setting_names(cls) -> list[str]:
        return [name for name in inspect.signature(cls.__init__).parameters if name != "self"]

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The settings as they were given; ``deep`` is for estimators made of others, which ours are not."""
        return {name: getattr(self, name) for name in self._setting_names()}

    def set_params(self, **settings: Any) -> Self:
        known = self._setting_names()
        for name in settings:
            if name not in known:
                raise SettingError(f"a {type(self).__name__} has no setting {name!r}: expected {', '.join(known)}")
        for name, value in settings.items():
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        """The settings that are not the default ones."""
        defaults = inspect.signature(type(self).__init__).parameters
        changed = ((name, value) for name, value in self.get_params().items() if value != defaults[name].default)
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in changed)})"

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import Tags, TargetTags

        return Tags(estimator_type=None, target_tags=TargetTags(required=False))
