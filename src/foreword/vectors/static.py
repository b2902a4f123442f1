"""Static vectors as an ``Embedder``: every word's own, whatever sentence it stands in; zero where there is none."""

from __future__ import annotations

from typing import Self

import numpy as np

from foreword.arrays import Floats
from foreword.protocols import Parts, Sentences
from foreword.storage.folder import nest, unnest
from foreword.vectors.wordvectors import WordVectors


class StaticEmbedder:
    def __init__(self, vectors: WordVectors) -> None:
        self.vectors = vectors

    def __repr__(self) -> str:
        return f"StaticEmbedder({self.vectors!r})"

    @property
    def dimensions(self) -> int:
        return self.vectors.dimensions

    def embed(self, sentences: Sentences) -> list[Floats]:
        """(length, D) for each sentence."""
        found = []
        for words in sentences:
            rows = np.zeros((len(words), self.dimensions), np.float32)
            known = [place for place, word in enumerate(words) if word in self.vectors]
            if known:
                rows[known] = np.stack([self.vectors[words[place]] for place in known])
            found.append(rows)
        return found

    def to_parts(self) -> Parts:
        parts = Parts({})
        nest("vectors", self.vectors, parts)
        return parts

    @classmethod
    def from_parts(cls, parts: Parts) -> Self:
        vectors = unnest("vectors", parts)
        if not isinstance(vectors, WordVectors):
            raise ValueError(f"a {type(vectors).__name__} holds no word vectors")
        return cls(vectors)
