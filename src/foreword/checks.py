"""Checks that many modules share: texts, token ids, weights and settings."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from itertools import chain
from typing import Any, TypeVar

import numpy as np

from foreword.arrays import Array, Doubles, Ids
from foreword.errors import InputError, NotSaveableError, SettingError, VocabularyError
from foreword.protocols import Saveable

T = TypeVar("T")


def check_not_string(texts: T, expected: str = "a list of texts, one document each") -> T:
    """Return the texts; raise an InputError for a single string, which would be read character by character."""
    if isinstance(texts, str | bytes):
        raise InputError(f"expected {expected}, but got a single string: put it in a list")
    if not isinstance(texts, Iterable) and not hasattr(texts, "starts"):  # a block of texts is not iterable
        raise InputError(f"expected {expected}, but got {_named(texts)}")
    return texts


def check_corpus(corpus: Any, vocab: object = None) -> None:
    """Raise an InputError unless this is a corpus of ids, of the vocabulary if one is given: models know no text."""
    if not hasattr(corpus, "ids") or not hasattr(corpus, "vocab"):
        raise InputError(
            f"expected a Corpus of ids, not {_named(corpus)}: Corpus.from_texts(texts, tokenizer) makes one; "
            "TextLM and TextSearch take texts themselves"
        )
    if vocab is not None:
        corpus.check(vocab)


def check_held_out(corpus: Any, vocab: object = None) -> None:
    """Raise an InputError unless this is a corpus, as ``check_corpus`` does, by which settings can be chosen."""
    check_corpus(corpus, vocab)
    if len(corpus.ids) == 0:
        raise InputError("the held-out text is empty: there is nothing to choose by")


def check_text(text: object) -> None:
    """Raise an InputError unless this is one text, as a string or UTF-8."""
    if not isinstance(text, str | bytes):
        raise InputError(f"expected a text, but got {_named(text)}")


def check_sentences(sentences: object) -> None:
    """Raise an InputError unless this is a sequence of sentences, each a sequence of words."""
    if not isinstance(sentences, Collection) or isinstance(sentences, str | bytes):
        raise InputError(f"expected a list of sentences, each a list of words, but got {_named(sentences)}")
    for number, words in enumerate(sentences):
        if isinstance(words, str | bytes) or not isinstance(words, Collection):
            raise InputError(f"sentence {number} is {_named(words)}: expected a list of words")
    for kind in set(map(type, chain.from_iterable(sentences))):
        if not issubclass(kind, str):
            raise InputError(f"a word is a {kind.__name__}: expected a string")


def _named(value: object) -> str:
    name = type(value).__name__
    return "None" if value is None else f"{'an' if name[0].lower() in 'aeiou' else 'a'} {name}"


def list_of_texts(texts: Iterable[str]) -> list[str]:
    """Return the texts as a list; raise an InputError for a single string."""
    return list(check_not_string(texts))


def check_ids(ids: Ids, size: int) -> None:
    """Raise a VocabularyError unless every id is one of 0 to ``size - 1``."""
    if ids.size and not 0 <= ids.min() <= ids.max() < size:
        raise VocabularyError(size)


def saveable(part: object, consequence: str = "") -> Saveable:
    """Return ``part`` if it can be saved; raise a NotSaveableError if not."""
    if not isinstance(part, Saveable):
        raise NotSaveableError(part, consequence)
    return part


def check_weights(
    arrays: Mapping[str, Array], shapes: Mapping[str, tuple[int, ...]], prefix: str = "", *, finite: bool = True
) -> None:
    """Raise a ValueError unless every array ``prefix + name`` is float32, has the shape of ``name`` and is finite.

    Loading a network calls it before it allocates anything.
    """
    for name, shape in shapes.items():
        array = arrays[prefix + name]
        if array.dtype != np.float32 or array.shape != shape:
            raise ValueError(f"{name} is {array.dtype} {array.shape}, not float32 {shape}")
        if finite and not np.isfinite(array).all():
            raise ValueError(f"a number of {name} is not finite")


LARGEST = 1 << 63
"""Integers from here on do not fit NumPy's int64."""


def check_number(
    name: str,
    value: object,
    *,
    whole: bool = False,
    least: float = 0,
    above: float | None = None,
    most: float = math.inf,
    below: float = math.inf,
) -> None:
    """Raise a SettingError unless a value is a finite number in its range, ``above`` and ``below`` excluded."""
    kinds = (int, np.integer) if whole else (int, float, np.integer, np.floating)
    if isinstance(value, bool) or not isinstance(value, kinds):
        raise SettingError(f"{name} is {value!r}: expected a {'whole ' if whole else ''}number")
    if not whole and isinstance(value, int) and abs(value) >= LARGEST:
        raise SettingError(f"{name} is too large: expected a number below {LARGEST:.3g}")
    if not (least <= value <= most and value < below and (above is None or value > above)):
        lower = f"at least {least:g}" if above is None else f"more than {above:g}"
        upper = "" if most == math.inf else f" and at most {most:g}"
        upper = upper if below == math.inf else f" and less than {below:g}"
        raise SettingError(f"{name} is {value!r}: expected {lower}{upper}")


def check_numbers(
    settings: object, *names: str, whole: bool = False, least: float = 0, above: float | None = None,
    most: float = math.inf,
) -> None:  # fmt: skip
    """Check some attributes as ``check_number`` does."""
    for name in names:
        check_number(name, getattr(settings, name), whole=whole, least=least, above=above, most=most)


def check_choice(settings: object, name: str, choices: Iterable[object]) -> None:
    """Raise a SettingError unless the attribute ``name`` is one of the choices."""
    choices = list(choices)
    if (value := getattr(settings, name)) not in choices:
        raise SettingError(
            f"{name} is {value!r}: expected {' or '.join(str(each) for each in choices if each is not None)}"
        )


def grades_of(labels: Iterable[str]) -> Doubles:
    """Return labels as numbers; an InputError names one that is not a number."""
    grades = []
    for label in labels:
        try:
            grades.append(float(label))
        except ValueError:
            raise InputError(f"the label {label!r} is not a number: grades must be numbers") from None
    if not np.isfinite(grades).all():
        raise InputError("grades have to be finite numbers")
    return np.array(grades)
