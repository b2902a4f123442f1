"""scikit-learn's conventions without scikit-learn: settings by name, so that its pipelines, searches and clones work.

A constructor stores its keyword settings under their own names and does nothing else; ``fit`` checks them and learns;
learnt names end in ``_``. Settings of an estimator inside another one are named as there: ``model__C``. scikit-learn
itself is imported in one method only, which only scikit-learn calls; pandas only where ``set_output`` asks for it.
"""

from __future__ import annotations

import inspect
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from foreword.errors import MissingExtraError, NotFittedError, SettingError
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
        """Return the settings as they were given; deep: also those of the estimators among them, as ``model__C``."""
        own = {name: getattr(self, name) for name in self.__signature__.parameters}
        return {**own, **_inner_settings(own)} if deep else own

    def set_params(self, **settings: Any) -> Self:
        """Change settings by name; ``model__C`` is the setting C of the estimator ``model``."""
        known = self.__signature__.parameters
        inner: dict[str, dict[str, Any]] = {}
        for name in settings:
            if name.partition("__")[0] not in known:
                raise SettingError(f"a {type(self).__name__} has no setting {name!r}: expected {', '.join(known)}")
        for name, value in settings.items():
            outer, is_inner, setting = name.partition("__")
            if is_inner:
                inner.setdefault(outer, {})[setting] = value
            else:
                setattr(self, name, value)
        for name, given in inner.items():
            if not hasattr(part := getattr(self, name), "set_params"):
                raise SettingError(f"{name} is {part!r}, which has no settings: {', '.join(given)}")
            part.set_params(**given)
        return self

    def __repr__(self) -> str:
        """Show the settings that differ from the defaults."""
        defaults = self.__signature__.parameters
        given = self.get_params(deep=False)
        changed = ((name, value) for name, value in given.items() if value != defaults[name].default)
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in changed)})"

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import Tags, TargetTags

        return Tags(estimator_type=None, target_tags=TargetTags(required=False))


def _inner_settings(settings: dict[str, Any]) -> dict[str, Any]:
    """Return the settings of the estimators among these settings, named ``estimator__setting``."""
    return {
        f"{name}__{inner}": value
        for name, part in settings.items()
        if hasattr(part, "get_params") and not isinstance(part, type)
        for inner, value in part.get_params().items()
    }


class Transformer(Estimator):
    """An estimator whose result is a matrix with named columns: an array, or a data frame where ``set_output`` asks."""

    _frames = False

    def set_output(self, *, transform: str | None = None) -> Self:
        """Return "pandas" data frames from ``transform``, or "default" matrices; sparse ones stay sparse."""
        if transform not in (None, "default", "pandas"):
            raise SettingError(f"transform is {transform!r}: expected default or pandas")
        if transform is not None:
            self._frames = transform == "pandas"
        return self

    def _output(self, matrix: Any, source: Any) -> Any:
        """Return the result of ``transform`` as ``set_output`` asked; a data frame as source passes on its index."""
        if not self._frames:
            return matrix
        try:
            import pandas
        except ImportError:
            raise MissingExtraError("pandas", "data", "set_output(transform='pandas')") from None
        index, names = getattr(source, "index", None), self.get_feature_names_out()
        index = index if isinstance(index, pandas.Index) else None
        if isinstance(matrix, np.ndarray):
            return pandas.DataFrame(matrix, index=index, columns=names)
        return pandas.DataFrame.sparse.from_spmatrix(matrix, index=index, columns=names)

    def get_feature_names_out(self, input_features: object = None) -> NDArray[np.object_]:
        """Return the names of the columns."""
        raise NotImplementedError


def without_frame(X: Any) -> Any:
    """Return a data frame with sparse columns, as ``set_output`` makes them, as a sparse matrix; others as is."""
    return X.sparse.to_coo() if hasattr(X, "iloc") and hasattr(X, "sparse") else X
