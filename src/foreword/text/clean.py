"""Unicode normalisation and lower-casing, document by document, where a tokenizer asks for them."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from typing import Literal

import numpy as np

from foreword.errors import SettingError
from foreword.text.block import Block

Form = Literal["NFC", "NFD", "NFKC", "NFKD"]

_LOWER = np.arange(256, dtype=np.uint8)
_LOWER[ord("A") : ord("Z") + 1] += 32


@dataclass(frozen=True, slots=True)
class Cleaning:
    """What to do to a text before it is cut into tokens: first the Unicode form, then lower case."""

    form: Form | None = None
    lowercase: bool = False

    def __post_init__(self) -> None:
        if self.form not in (None, "NFC", "NFD", "NFKC", "NFKD"):
            raise SettingError(f"form={self.form!r}: expected NFC, NFD, NFKC, NFKD or none")

    def text(self, text: str) -> str:
        if self.form is not None:
            text = unicodedata.normalize(self.form, text)
        return text.lower() if self.lowercase else text

    def block(self, block: Block) -> Block:
        """The same for a block. Plain ASCII has no other form, and its lower case is one table look-up."""
        if self.form is None and not self.lowercase:
            return block
        if block.data.max(initial=0) < 0x80:
            return Block(_LOWER[block.data], block.starts, block.stops, block.open) if self.lowercase else block
        return Block.from_texts([self.text(text) for text in block.strings()], open=block.open)
