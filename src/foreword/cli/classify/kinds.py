"""Which classifiers can be trained, and their settings from the command line."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from inspect import signature
from typing import Any, Literal, TypeAlias

import typer

from foreword import kinds

FeaturesName: TypeAlias = Literal["bag-of-words", "tf-idf"]

KINDS = kinds.trained_as("classifier")
FEATURES = kinds.trained_as("features")

BEST = "nb-logistic"


def maker(
    kind: str, features: FeaturesName | None, settings: Iterable[str], *, calibrate: bool = False, seed: int = 0
) -> Callable[[], Any]:
    """What makes a fresh text classifier of this kind; the settings are shared out between features and model."""
    from foreword.classify.calibration import Calibrated
    from foreword.cli.settings import parse_settings
    from foreword.pipeline.classifier import TextClassifier

    chosen = KINDS[kind]
    model_class = kinds.resolve(chosen.home)
    if chosen.features is None:
        for given, option in ((features is not None, "--features"), (calibrate, "--calibrate")):
            if given:
                raise typer.BadParameter(f"means nothing to {kind}, which reads text itself", param_hint=f"'{option}'")
        own = parse_settings(settings, kind, model_class)
        return lambda: kinds.build(chosen, own)
    name: str = features or chosen.features[0]
    features_class = kinds.resolve(FEATURES[name].home)
    given = parse_settings(settings, kind, model_class, features_class)
    known = signature(features_class).parameters
    usual = {key: value for key, value in chosen.features[1].items() if key in known}
    for_features = usual | {key: value for key, value in given.items() if key in known}
    for_model = {key: value for key, value in given.items() if key not in known}

    def make() -> TextClassifier:
        model = model_class(**for_model)
        return TextClassifier(features_class(**for_features), Calibrated(model, seed=seed) if calibrate else model)

    return make
