"""Blocks of documents cut into the pieces that are counted; the kernels are in ``features/kernels_cut.py``."""

from __future__ import annotations

from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from foreword.arrays import Bytes, Longs
from foreword.features import kernels_cut as kernels
from foreword.features.plain import Split
from foreword.text.block import Block
from foreword.tokens.pieces import character_classes

Scalar = TypeVar("Scalar", bound=np.generic)

OF_CHARACTERS = ("characters", "characters in words")


class Pieces(NamedTuple):
    """Piece i is ``text[spans[2 * i]:spans[2 * i + 1]]``; document d has ended when there were ``ends[d]`` pieces."""

    text: Bytes
    spans: Longs
    ends: Longs
    total: int


class Cutting(NamedTuple):
    """How a text is cut; the settings of ``BagOfWords``."""

    split: Split
    lowercase: bool
    ngrams: tuple[int, int]

    @property
    def runs(self) -> tuple[int, int]:
        """How many pieces make a term, at least and at most; runs of characters are cut as one piece."""
        return (1, 1) if self.split in OF_CHARACTERS else self.ngrams


class Cutter:
    """Cuts blocks. What ``cut`` returns lies in buffers that the next call writes over."""

    def __init__(self, cutting: Cutting) -> None:
        self.cutting = cutting
        self.text, self.marks = np.empty(0, np.uint8), np.empty(0, np.uint8)
        self.heads, self.spans = np.empty(0, np.int64), np.empty(0, np.int64)

    def cut(self, block: Block) -> Pieces:
        split, lowercase, (shortest, longest) = self.cutting
        bounds, ends = np.zeros(len(block) + 1, np.int64), np.empty(len(block), np.int64)
        text = self.text = room(self.text, block.text_bytes() + 2 * len(block) + kernels.PADDING)
        folds = {"characters": kernels.fold_runs_of_space, "characters in words": kernels.fold_words}
        folds.get(split, kernels.fold)(block.data, block.starts, block.stops, lowercase, text, bounds)
        size = int(bounds[-1])
        runs = longest - shortest + 1 if split in OF_CHARACTERS else 1
        spans = self.spans = room(self.spans, 2 * (runs * size + 1))
        if split == "words":
            marks = self.marks = room(self.marks, len(text))
            kernels.mark_words(text, size, kernels.word_characters(), marks)
            total = kernels.cut_words(text, bounds, marks, spans, ends)
        elif split == "space":
            total = kernels.cut_space(text, bounds, spans, ends)
        elif split == "punctuation":
            total = kernels.cut_punctuation(text, bounds, character_classes(), spans, ends)
        elif split == "whole":
            total = kernels.cut_nothing(bounds, spans, ends)
        else:
            heads = self.heads = room(self.heads, size + 1)
            cuts = {"characters": kernels.cut_characters, "characters in words": kernels.cut_characters_in_words}
            total = cuts[split](text, bounds, shortest, longest, heads, spans, ends)
        return Pieces(text, spans, ends, total)


def room(buffer: NDArray[Scalar], size: int) -> NDArray[Scalar]:
    """The buffer, or a larger one if it is too small; what it held does not matter."""
    return buffer if len(buffer) >= size else np.empty(size + size // 2, buffer.dtype)
