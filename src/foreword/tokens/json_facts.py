"""What a ``tokenizer.json`` holds, read with checks; and steps described for error messages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple, TypeVar, cast

import numpy as np

from foreword.arrays import Longs
from foreword.errors import InputError
from foreword.protocols import Json
from foreword.text.strict_json import shown

T = TypeVar("T")


def of_type(found: object, kind: type[T], what: str) -> T:
    """Return a value; an InputError unless it has that type. Booleans are not numbers."""
    names = {int: "a whole number", str: "a string", dict: "an object", list: "a list", bool: "true or false"}
    expect(type(found) is kind, what, found, names[kind])
    return cast(T, found)


def expect(right: bool, what: str, found: object, expected: str) -> None:
    """Raise an InputError that names what was found unless it is right."""
    if not right:
        raise InputError(f"{what} is {shown(found)}, expected {expected}")


def described(found: Json) -> str:
    """Describe a step in a few words."""
    match found:
        case {"type": "Sequence", **rest}:
            steps = next((value for value in rest.values() if isinstance(value, list)), [])
            return f"Sequence of {', '.join(described(step) for step in steps[:4])}"
        case {"type": "Split", "pattern": pattern}:
            return f"Split by {shown(pattern)}"
        case {"type": str(name), **rest} if rest:
            return f"{name} with {shown(rest)}"
        case {"type": name}:
            return shown(name)
    return shown(found)


class Added(NamedTuple):
    """One of the ``added_tokens``."""

    id: int
    content: str
    special: bool
    normalized: bool
    single_word: bool
    lstrip: bool
    rstrip: bool


def read_added(found: Json) -> list[Added]:
    """Return the ``added_tokens``."""
    return [_read_added(token) for token in of_type([] if found is None else found, list, "added_tokens")]


def _read_added(found: Json) -> Added:
    token = of_type(found, dict, "an added token")
    content = of_type(token.get("content"), str, "an added token's content")
    expect(content != "", "an added token", content, "some text")
    id = of_type(token.get("id"), int, f"the id of {shown(content)}")
    return Added(id, content, *(of_type(token.get(flag, False), bool, flag) for flag in Added._fields[2:]))


def read_vocab(found: Json) -> dict[str, int]:
    """Return the ids of the tokens of a vocab."""
    vocab = of_type(found, dict, "the model's vocab")
    for token, id in vocab.items():
        if type(id) is not int:
            raise InputError(f"the id of {shown(token)} is {shown(id)}, expected a whole number")
    return vocab


def names_of(vocab: Mapping[str, int], added: Iterable[Added]) -> list[str]:
    """Return all tokens in the order of their ids, which must be 0, 1, 2 and so on."""
    ids = dict(vocab)
    for token in added:
        held = ids.setdefault(token.content, token.id)
        expect(held == token.id, f"the id of the added token {shown(token.content)}", token.id, f"{held}, as in vocab")
    order = sorted(ids, key=ids.__getitem__)
    for index, name in enumerate(order):
        if ids[name] != index:
            raise InputError(f"the id of {shown(name)} is {shown(ids[name])}, expected {index}: no gap, no id twice")
    return order


def read_merges(found: Json, vocab: dict[str, int], prefix: str = "") -> Longs:
    """Return the merges as ``BPETokenizer`` records them: left, right and merged id, and a count of 0.

    prefix: of tokens that do not begin a word; what is merged has only that of its left part.
    """
    merges = of_type(found, list, "the model's merges")
    record = np.zeros((len(merges), 4), np.int64)
    kept = 0
    for number, (left, right) in _pairs_of(merges):
        names = left, right, left + right.removeprefix(prefix)
        if lacking := [name for name in names if name not in vocab]:
            raise InputError(f"merge {number} needs {shown(lacking[0])}, expected a token of the vocab")
        record[kept, :3] = [vocab[name] for name in names]
        kept += 1
    return record[:kept]


def _pairs_of(merges: list[Json]) -> Iterator[tuple[int, tuple[str, str]]]:
    """Yield every merge with its number: two tokens, or, as until 2024, one string with a blank between them."""
    for number, merge in enumerate(merges):
        match merge:
            case [str(left), str(right)]:
                yield number, (left, right)
            case str(line) if line.startswith("#version"):  # the heading of the merges.txt it was made from
                continue
            case str(line) if line.count(" ") == 1:
                left, right = line.split(" ")
                yield number, (left, right)
            case _:
                raise InputError(f"merge {number} is {shown(merge)}, expected two tokens")


def read_scores(found: Json) -> tuple[dict[str, int], list[float]]:
    """Return the ids of a Unigram vocab, and the score of each."""
    ids: dict[str, int] = {}
    scores: list[float] = []
    for number, entry in enumerate(of_type(found, list, "the model's vocab")):
        match entry:
            case [str(token), int() | float() as score] if not isinstance(score, bool):
                ids.setdefault(token, number)
                scores.append(float(score))
            case _:
                raise InputError(f"token {number} of the vocab is {shown(entry)}, expected a text and its score")
    return ids, scores
