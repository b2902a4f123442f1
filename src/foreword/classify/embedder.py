"""The embedder that a classifier reads with, and how the two are saved together.

A folder holds one vocabulary, and that is the classifier's own; an embedder's goes among the arrays.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from foreword.arrays import Array
from foreword.checks import saveable
from foreword.errors import InputError
from foreword.protocols import Embedder, Parts
from foreword.storage.folder import nest, unnest
from foreword.tokens.vocab import Vocab

EMBEDDER = "embedder"
WORDS, OFFSETS = "embedder_words", "embedder_words_offsets"


def checked(found: object) -> Embedder | None:
    if found is not None and not isinstance(found, Embedder):
        raise InputError(f"embedder: a {type(found).__name__}, not an embedder such as ELMo")
    return found


def put(embedder: Embedder, into: Parts) -> None:
    alone = Parts({})
    nest(EMBEDDER, saveable(embedder, ", nor what reads with it"), alone)
    into.settings.update(alone.settings)
    into.arrays.update(alone.arrays)
    if alone.vocab is not None:
        into.arrays.update({WORDS: alone.vocab.data, OFFSETS: alone.vocab.offsets})


def taken(parts: Parts) -> Embedder | None:
    """What ``put`` has put there, if anything."""
    if EMBEDDER not in parts.settings:
        return None
    vocab = _vocab(parts.arrays[WORDS], parts.arrays[OFFSETS]) if WORDS in parts.arrays else None
    return checked(unnest(EMBEDDER, Parts(parts.settings, parts.arrays, vocab)))


def _vocab(data: Array, offsets: Array) -> Vocab:
    if data.dtype != np.uint8 or offsets.dtype != np.int64 or data.ndim != 1 or offsets.ndim != 1 or not len(offsets):
        raise ValueError(f"{WORDS} are {data.dtype} {data.shape} and {offsets.dtype} {offsets.shape}, not bytes")
    if offsets[0] != 0 or offsets[-1] != len(data) or (np.diff(offsets) < 0).any():
        raise ValueError(f"{OFFSETS} do not fit {WORDS}")
    blob = data.tobytes()
    return Vocab(blob[start:stop].decode() for start, stop in pairwise(offsets.tolist()))
