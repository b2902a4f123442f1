"""The frozen embedder that a tagger or a classifier reads with, and how the two are saved together.

A folder has one vocabulary. A model that has its own stores the embedder's as arrays.
"""

from __future__ import annotations

import numpy as np

from foreword.arrays import Array
from foreword.checks import saveable
from foreword.errors import InputError
from foreword.protocols import Embedder, Parts
from foreword.storage.checkpoint import fingerprint
from foreword.storage.folder import load, nest, pack, unnest
from foreword.storage.joined import check_joined, decoded
from foreword.tokens.vocab import Vocab

EMBEDDER = "embedder"
WORDS, OFFSETS = "embedder_words", "embedder_words_offsets"


def resolve_embedder(embedder: object) -> Embedder | None:
    """Return the embedder given, or the one in the folder of that name; raise an InputError for anything else."""
    found = load(embedder) if isinstance(embedder, str) else embedder
    if found is not None and not isinstance(found, Embedder):
        raise InputError(f"embedder: a {type(found).__name__}, not an embedder such as ELMo")
    return found


def fingerprint_of(pretrained: object) -> list[Array]:
    """Return what identifies a pre-trained model, for the fingerprint of a run; nothing if there is none."""
    if pretrained is None:
        return []
    parts = pack(saveable(pretrained))
    vocab: list[Array] = [] if parts.vocab is None else [parts.vocab.data, parts.vocab.offsets]
    digest = fingerprint(parts.settings, *(parts.arrays[name] for name in sorted(parts.arrays)), *vocab)
    return [np.frombuffer(digest.encode(), np.uint8)]


def nest_embedder(embedder: Embedder, into: Parts, *, vocab_as_arrays: bool) -> None:
    """Add an embedder to the parts of a model that reads with it."""
    parts = saveable(embedder, ", nor a model that reads with it")
    if not vocab_as_arrays:
        nest(EMBEDDER, parts, into)
        return
    alone = Parts({})
    nest(EMBEDDER, parts, alone)
    into.settings.update(alone.settings)
    into.arrays.update(alone.arrays)
    if alone.vocab is not None:
        into.arrays.update({WORDS: alone.vocab.data, OFFSETS: alone.vocab.offsets})


def unnest_embedder(parts: Parts) -> Embedder | None:
    """Return what ``nest_embedder`` added, if anything."""
    if EMBEDDER not in parts.settings:
        return None
    if WORDS in parts.arrays:
        words = parts.arrays[WORDS], parts.arrays[OFFSETS]
        check_joined(*words, WORDS)
        parts = Parts(parts.settings, parts.arrays, Vocab(decoded(*words)))
    return resolve_embedder(unnest(EMBEDDER, parts))
