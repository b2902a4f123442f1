"""Which classifiers can be trained, and their settings from the command line."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Literal, TypeAlias

import typer

from foreword.cli.settings import settings_of

FeaturesName: TypeAlias = Literal["bag-of-words", "tf-idf"]

FEATURES: dict[FeaturesName, str] = {
    "bag-of-words": "foreword.features.bag:BagOfWords",
    "tf-idf": "foreword.features.tfidf:TfIdf",
}


@dataclass(frozen=True, slots=True)
class Kind:
    """A classifier. home: its class. features: what it learns from, with their settings; None if it reads text."""

    home: str
    features: FeaturesName | None
    settings: dict[str, Any] = field(default_factory=dict)


WORDS_AND_PAIRS = {"split": "punctuation", "ngrams": (1, 2), "sublinear": True}

KINDS = {
    "nb-logistic": Kind("foreword.classify.logistic:NBLogistic", "tf-idf", WORDS_AND_PAIRS),
    "naive-bayes": Kind("foreword.classify.naive_bayes:NaiveBayes", "bag-of-words"),
    "logistic": Kind("foreword.classify.logistic:LogisticRegression", "tf-idf", WORDS_AND_PAIRS),
    "lstm": Kind("foreword.classify.recurrent:RecurrentClassifier", None),
    "fasttext": Kind("foreword.fasttext.classifier:FastTextClassifier", None),
}
"""A kind joins by adding its line."""

BEST = "nb-logistic"


def check_kind(kind: str) -> str:
    if kind not in KINDS:
        raise typer.BadParameter(f"no kind {kind!r}: expected {', '.join(KINDS)}")
    return kind


def maker(
    kind: str, features: FeaturesName | None, settings: Iterable[str], *, calibrate: bool = False, seed: int = 0
) -> Callable[[], Any]:
    """What makes a fresh text classifier of this kind; the settings are shared out between features and model."""
    from foreword.classify.calibration import Calibrated
    from foreword.cli.settings import HINT, parse_settings
    from foreword.pipeline.classifier import TextClassifier

    chosen = KINDS[kind]
    model_class = class_of(chosen.home)
    name = features or chosen.features
    if chosen.features is None or name is None:
        for given, option in ((features is not None, "--features"), (calibrate, "--calibrate")):
            if given:
                raise typer.BadParameter(f"means nothing to {kind}, which reads text itself", param_hint=f"'{option}'")
        own = tupled(parse_settings(settings, kind, model_class))
        return lambda: model_class(**own)
    features_class = class_of(FEATURES[name])
    of_features: list[str] = []
    of_model: list[str] = []
    for setting in settings:
        key = setting.partition("=")[0].replace("-", "_")
        for known, into in ((features_class, of_features), (model_class, of_model)):
            if key in settings_of(known):
                into.append(setting)
                break
        else:
            names = [*settings_of(model_class), *settings_of(features_class)]
            raise typer.BadParameter(f"{kind} has no setting {key!r}: expected {', '.join(names)}", param_hint=HINT)
    defaults = {key: value for key, value in chosen.settings.items() if key in settings_of(features_class)}
    for_features = defaults | tupled(parse_settings(of_features, name, features_class))
    for_model = tupled(parse_settings(of_model, kind, model_class))

    def make() -> TextClassifier:
        model = model_class(**for_model)
        return TextClassifier(features_class(**for_features), Calibrated(model, seed=seed) if calibrate else model)

    return make


def class_of(home: str) -> Any:
    module, name = home.split(":")
    return getattr(import_module(module), name)


def tupled(settings: dict[str, Any]) -> dict[str, Any]:
    """JSON has no tuples."""
    return {name: tuple(value) if isinstance(value, list) else value for name, value in settings.items()}
