"""The vocabulary of the source, as arrays: a folder has one vocabulary, and that is the target's."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from foreword.arrays import Array
from foreword.protocols import Json
from foreword.tokens.vocab import Vocab

DATA, OFFSETS, COUNTS = "source.data", "source.offsets", "source.counts"


def to_arrays(vocab: Vocab) -> tuple[dict[str, Json], dict[str, Array]]:
    """What JSON can say of it, and the rest."""
    arrays: dict[str, Array] = {DATA: np.asarray(vocab.data), OFFSETS: np.asarray(vocab.offsets)}
    if vocab.counts is not None:
        arrays[COUNTS] = np.asarray(vocab.counts)
    return {"unknown": vocab.unknown, "end": vocab.end}, arrays


def from_arrays(facts: Any, arrays: dict[str, Array]) -> Vocab:
    """What ``to_arrays`` took apart; a ValueError, KeyError or TypeError where it is none."""
    data, offsets, counts = arrays[DATA], arrays[OFFSETS], arrays.get(COUNTS)
    if data.dtype != np.uint8 or data.ndim != 1 or offsets.dtype != np.int64 or offsets.ndim != 1 or len(offsets) < 2:
        raise ValueError(f"the source vocabulary is {data.dtype} {data.shape} with offsets {offsets.shape}")
    if offsets[0] != 0 or offsets[-1] != len(data) or (np.diff(offsets) < 0).any():
        raise ValueError("the offsets of the source vocabulary do not rise from its begin to its end")
    if counts is not None and (counts.dtype != np.int64 or counts.shape != (len(offsets) - 1,)):
        raise ValueError(f"the counts of the source vocabulary are {counts.dtype} {counts.shape}")
    blob = data.tobytes()
    tokens = [blob[begin:end].decode() for begin, end in pairwise(offsets.tolist())]
    unknown, end = facts["unknown"], facts["end"]
    for name, place in (("unknown", unknown), ("end", end)):
        if not (type(place) is int and 0 <= place < len(tokens)) and not (name == "unknown" and place is None):
            raise ValueError(f"{name} is {place!r}: expected a place in a vocabulary of {len(tokens)} tokens")
    return Vocab(tokens, counts, unknown=None if unknown is None else tokens[unknown], end=tokens[end])
