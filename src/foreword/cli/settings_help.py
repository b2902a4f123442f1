"""The settings of a kind, for ``--help``: their names, defaults and meanings, read from the classes themselves.

A docstring explains settings as ``name: meaning.`` or ``one, other: meaning.``, several to a paragraph or one to a
line; that is all there is to maintain.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal, get_args, get_origin

from foreword import kinds
from foreword.cli.settings import settings_of

NULL = "null"
"""How ``--set`` spells None."""

OLD_NAMES = ("average", "every")
"""Settings that have another name now, and work under both."""

OPTIONS = ("device", "memory", "scratch", "threads")
"""Settings that are options of the commands."""

COMMON = {
    "seed": "random seed; the same seed gives the same model",
    "order": "length of the longest n-gram, the predicted word included",
    "dimensions": "size of the word vectors",
    "hidden": "units per layer",
    "embedding": "size of the word embedding",
    "layers": "number of layers",
    "cell": "recurrent cell of each layer",
    "window": "context words on each side of a word",
    "negatives": "negative samples per word",
    "sample": "subsample words with a relative frequency above this; 0 for none",
    "epochs": "passes over the data",
    "rate": "initial learning rate",
    "lowercase": "convert text to lower case first",
    "form": "Unicode form that text is converted to first: NFC, NFD, NFKC or NFKD",
    "min_count": "minimum count of a word in the vocabulary",
    "max_size": "size of the vocabulary, the most frequent words",
    "min_n": "length of the shortest character n-gram",
    "max_n": "length of the longest character n-gram; 0 for none",
    "buckets": "number of hash buckets of n-grams",
    "dtype": "data type of the numbers",
    "loss": "training objective",
    "model": "skip-gram or cbow",
    "kind": "multinomial, complement or bernoulli",
    "pooling": "how the vectors of a text are combined",
    "variant": "scoring formula",
    "truth": "share of the words that are read from the translation, not from the network's own output",
    "dropout": "dropout rate; one number for all places",
    "dropout.words": "whole words, everywhere in the batch",
}
"""What a setting means wherever its class has nothing to add."""

NAME = r"(?!None\b)[A-Za-z_]\w*"
"""The name of a setting; ``None: 5`` within a meaning is part of it."""

EXPLAINED = re.compile(rf"(?:^|(?<=[.;,:] )|(?<=\n))({NAME}(?:, {NAME})*(?:,? and {NAME})?): ", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Described:
    """A setting: its name, default and meaning."""

    name: str
    default: str
    meaning: str


def described_settings(name: str, kind: kinds.Kind, usual: kinds.Settings | None = None) -> list[Described]:
    """Return the settings of a kind that users train by this name, without those that the name stands for.

    usual: other defaults than those of the class.
    """
    model = kinds.resolve(kind.home)
    built = kinds.build(kind, {**kind.names.get(name, {}), **(usual or {})})
    fixed = {*kind.names.get(name, {}), *OPTIONS, *OLD_NAMES}
    types = settings_of(model)
    names = [setting for setting in types if setting not in fixed]
    nested = kinds.nested_settings(model)
    found = {**COMMON, **meanings([*inspect.getmro(model), *map(type, nested.values())], names)}
    spelled = {own: name for name, own in kind.aliases.items()}
    return [
        Described(
            spelled.get(each, each), _shown(_default(built, each)), _with_choices(found.get(each, ""), types[each])
        )
        for each in names
    ]


def print_settings(name: str, kind: kinds.Kind) -> None:
    """Print the settings of a kind as a table, and in another those of the features that a classifier reads."""
    _print_table(name, described_settings(name, kind))
    if kind.features is not None:
        features, usual = kind.features
        _print_table(f"its features, {features}", described_settings(features, kinds.KINDS[features], usual))


def _print_table(what: str, settings: Iterable[Described]) -> None:
    from foreword.cli.printing import plain_table, print_table

    table = plain_table("setting", "default", "meaning", title=f"Settings of {what}: --set NAME=VALUE")
    for each in settings:
        table.add_row(each.name, each.default, each.meaning)
    print_table(table)


def meanings(classes: Iterable[type], names: Iterable[str]) -> dict[str, str]:
    """Return what docstrings say of settings; that of the first class counts."""
    wanted = {each.rpartition(".")[2]: each for each in names} | {each: each for each in names}
    found: dict[str, str] = {}
    for each in classes:
        if not each.__module__.startswith("foreword."):
            continue
        for setting, meaning in explained(inspect.getdoc(each) or "", wanted).items():
            found.setdefault(wanted[setting], meaning)
    return found


def explained(text: str, wanted: Iterable[str]) -> dict[str, str]:
    """Return the explanations ``name: meaning`` in a docstring."""
    found: dict[str, str] = {}
    known = set(wanted)
    for paragraph in text.split("\n\n"):
        joined = re.sub(r"\n +", " ", paragraph)
        joined = re.sub(rf"\n(?!{NAME}(?:, {NAME})*(?:,? and {NAME})?: )", " ", joined)
        matches = list(EXPLAINED.finditer(joined))
        ends = [*(each.start() for each in matches), len(joined)][1:]
        for match, end in zip(matches, ends, strict=True):
            meaning = " ".join(joined[match.end() : end].split()).rstrip(" .;,").replace("``", "")
            for name in _names(match[1]):
                if name in known:
                    found.setdefault(name, meaning)
    return found


def _names(joined: str) -> list[str]:
    return re.split(r",? and |, ", joined)


def _with_choices(meaning: str, wanted: Any) -> str:
    """Return a meaning as ``--set`` takes the values: null for None, and every choice where it does not list them."""
    meaning = re.sub(r"\bNone\b", NULL, meaning)
    choices = [each for one in (wanted, *get_args(wanted)) if get_origin(one) is Literal for each in get_args(one)]
    words = [each for each in choices if isinstance(each, str)]
    if all(re.search(rf"\b{re.escape(each)}(?!\w)", meaning) for each in words):
        return meaning
    *first, last = words
    return f"{meaning} ({', '.join(first)} or {last})" if first else f"{meaning} ({last})"


def _default(model: Any, setting: str) -> Any:
    """Return the value of a setting in a model that was built without it."""
    outer, dot, place = setting.partition(".")
    if dot:
        return getattr(getattr(model, outer), place)
    training = getattr(model, "training", None)
    if hasattr(model, setting):
        value = getattr(model, setting)
        return getattr(value, "output", value) if setting == "dropout" else value
    return getattr(training, setting, "")


def _shown(value: Any) -> str:
    if isinstance(value, tuple | list):
        return f"[{','.join(map(_shown, value))}]"
    if value is None or isinstance(value, bool):
        return {None: NULL, True: "true", False: "false"}[value]
    return f"{value:g}" if isinstance(value, float) else str(value)
