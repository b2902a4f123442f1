"""The labels of an acoustic model: letters, or pieces of words (BPE), and which of them is CTC's blank.

Acoustic models name the same things differently. NeMo has letters and adds the blank at the end, wav2vec2 writes
``|`` for a space and ``<pad>`` for the blank, word pieces begin words with ``▁`` or continue them with ``##``. Here
the blank is ``""``, the space ``" "``, the beginning of a word ``▁`` and the unknown label ``⁇`` or ``▁⁇▁``, as in
pyctcdecode, whose ``alphabet.json`` this reads and writes.
"""

from __future__ import annotations

import json
import re
import warnings
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from foreword.errors import CTCInputError
from foreword.text.strict_json import parse_json, shown

BLANK = ""
BPE_TOKEN = "▁"
UNK_TOKEN = "⁇"
UNK_BPE_TOKEN = "▁⁇▁"

SPECIAL_TOKEN_PTN = re.compile(r"^[<\[].+[>\]]$")
BLANK_TOKEN_PTN = re.compile(r"^[<\[]pad[>\]]$", re.IGNORECASE)
UNK_TOKEN_PTN = re.compile(r"^[<\[]unk[>\]]$", re.IGNORECASE)

MOST_STRANGE = 0.2
"""Share of the characters of a word list that labels may lack before ``verify_alphabet_coverage`` warns."""


class Alphabet:
    """The labels of the columns of a logit matrix, normalised, "" for the blank. is_bpe: whether they are pieces."""

    def __init__(self, labels: list[str], is_bpe: bool) -> None:
        _check_labels(labels, often=(BLANK, UNK_TOKEN, UNK_BPE_TOKEN))  # for which models may have several names
        if BLANK not in labels or not isinstance(is_bpe, bool):
            raise CTCInputError('expected labels with "", the blank, among them, and is_bpe to be true or false')
        self._labels = labels
        self._is_bpe = is_bpe

    def __repr__(self) -> str:
        return f"Alphabet({len(self._labels)} {'pieces' if self._is_bpe else 'letters'})"

    @property
    def is_bpe(self) -> bool:
        """Whether labels are pieces of words."""
        return self._is_bpe

    @property
    def labels(self) -> list[str]:
        """A copy of the labels, the blank as an empty string."""
        return [*self._labels]

    @classmethod
    def build_alphabet(cls, labels: Sequence[str]) -> Alphabet:
        """Normalise the labels of an acoustic model; a blank is appended if there is none."""
        labels = list(labels)
        _check_labels(labels)
        is_bpe = any(label.startswith(("##", BPE_TOKEN)) for label in labels)
        if is_bpe and any(" " in label for label in labels):
            raise CTCInputError("a label holds a space, but others begin with ▁ or ##: expected pieces of words only")
        return cls(_pieces(labels) if is_bpe else _letters(labels), is_bpe)

    def dumps(self) -> str:
        """Return the alphabet as JSON."""
        return json.dumps({"labels": self._labels, "is_bpe": self._is_bpe})

    @classmethod
    def loads(cls, s: str) -> Alphabet:
        """Read an alphabet from JSON."""
        try:
            found = parse_json(s.encode())
        except ValueError as error:
            raise CTCInputError(f"alphabet.json is not JSON: {error}") from error
        if not isinstance(found, dict) or set(found) != {"is_bpe", "labels"}:
            raise CTCInputError("alphabet.json should be an object with the keys labels and is_bpe, and no others")
        return cls(found["labels"], found["is_bpe"])


def _check_labels(labels: Any, often: Collection[str] = ()) -> None:
    """Raise a CTCInputError unless labels are a list of distinct strings. often: those that may be repeated."""
    if not isinstance(labels, list) or not labels or not all(isinstance(label, str) for label in labels):
        raise CTCInputError(f"labels are {shown(labels)}: expected a list of strings, one for each column of logits")
    counts = Counter(labels)
    repeated = next((label for label in labels if counts[label] > 1 and label not in often), None)
    if repeated is not None:
        raise CTCInputError(f"label {repeated!r} appears twice among the labels: expected each once")


def _letters(labels: list[str]) -> list[str]:
    if " " not in labels:
        labels = _replaced(labels, {"|": " "})
    labels = ["" if BLANK_TOKEN_PTN.match(label) else label for label in labels]
    if "" not in labels:
        labels = _replaced(labels, {"_": ""})
    labels = [UNK_TOKEN if UNK_TOKEN_PTN.match(label) else label for label in labels]
    if " " not in labels:
        warnings.warn("no label is a space: all letters will be one word", UserWarning, stacklevel=4)
    return labels if "" in labels else [*labels, ""]


def _pieces(labels: list[str]) -> list[str]:
    if any(label.startswith("##") for label in labels):
        labels = [_from_continuation(label) for label in labels]
    labels = ["" if BLANK_TOKEN_PTN.match(label) else label for label in labels]
    labels = [UNK_BPE_TOKEN if UNK_TOKEN_PTN.match(label) else label for label in labels]
    return labels if "" in labels else [*labels, ""]


def _from_continuation(label: str) -> str:
    """Return a piece of the ## style, in which the beginning of a word is not marked, in the ▁ style."""
    if label.startswith("##"):
        return label[2:]
    special = SPECIAL_TOKEN_PTN.match(label) or label in ("", BPE_TOKEN, UNK_BPE_TOKEN)
    return label if special else BPE_TOKEN + label


def _replaced(labels: list[str], names: dict[str, str]) -> list[str]:
    return [names.get(label, label) for label in labels]


def verify_alphabet_coverage(alphabet: Alphabet, unigrams: Collection[str]) -> None:
    """Warn if words have many characters that no label has, as where one side is in capitals."""
    written = set().union(*unigrams)
    strange = written - _characters(alphabet)
    if len(strange) > MOST_STRANGE * len(written):
        unspelled = sum(1 for word in unigrams if not strange.isdisjoint(word)) / len(unigrams)
        shown = "".join(sorted(strange)[:8])
        warnings.warn(
            f"{unspelled:.1%} of the words cannot be spelled with the labels, which lack {shown!r}: is one of them "
            "upper case?",
            UserWarning,
            stacklevel=3,
        )


def _characters(alphabet: Alphabet) -> set[str]:
    labels: Iterable[str] = alphabet.labels
    return set().union(*labels)
