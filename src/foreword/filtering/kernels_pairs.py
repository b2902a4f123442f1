"""Pieces of sentencepiece looked up as words of a KenLM model."""

from __future__ import annotations

import numpy as np

from foreword.arrays import Bytes, Ints, Longs
from foreword.native.jit import inlined, kernel
from foreword.ngram.kernels_kenlm import KenlmArrays, find_word, murmur


@inlined
def unknown_word(model: KenlmArrays, surface: Bytes, size: int, end: int) -> int:
    """Return our id of a word that is no piece: the file's, less one after that of ``<s>``; 0 if it is unknown."""
    word = find_word(model, murmur(surface, 0, size))
    if word <= 0 or word == model.begin:
        return 0
    word -= word > model.begin
    return 0 if word == end else word


@kernel
def piece_words(
    pieces: Ints, ends: Longs, words: Ints, model: KenlmArrays, end: int, surface: Bytes, ids: Ints, offsets: Longs
) -> int:
    """Write the word of each piece; bytes, whose ids follow those of the pieces, are joined to one word each.

    pieces: ids of all texts, each text with its end; ends: where each text stops. words: int32 (pieces,), the word of
    each. ids, offsets: out, the words and where each text begins. surface: scratch, as long as ``pieces``. Return how
    many words there are.
    """
    written, at, known = 0, 0, len(words)
    for text in range(len(ends)):
        offsets[text] = written
        while at < ends[text]:
            piece = np.int64(pieces[at])
            if piece < known:
                ids[written] = words[piece]
                at += 1
            else:
                size = 0
                while at < ends[text] and pieces[at] >= known:
                    surface[size] = pieces[at] - known
                    size += 1
                    at += 1
                ids[written] = unknown_word(model, surface, size, end)
            written += 1
    offsets[len(ends)] = written
    return written
