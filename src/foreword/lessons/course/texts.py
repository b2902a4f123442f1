"""The text of a lesson: the reader's own, in any language, or the embedded one."""

from __future__ import annotations

import re

from foreword.errors import InputError
from foreword.text.embedded import embedded_text

SHARE = 4
"""Of the embedded text every fourth document is used: enough to see each idea, and seconds instead of minutes."""

FEW = 20
"""A text of fewer lines is cut into sentences, to hold some out; one of fewer words is refused."""

SENTENCE = re.compile(r"(?<=[.!?…])\s+|(?<=[。！？।။])\s*|\n+")
NO_SPACES = re.compile(
    r"([\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]|[\u0e01-\u0e30\u0e32\u0e33\u0e40-\u0e46])"
)
"""Signs of scripts that put no blanks between words: each is taken for a word here."""


def own_text(text: str = "") -> tuple[list[str], list[str]]:
    """Return documents to learn from and documents to test on; an empty text stands for the embedded one."""
    if not text.strip():
        return embedded_text("train")[::SHARE], embedded_text("test")
    spaced = NO_SPACES.sub(r" \1 ", text)
    lines = [line for line in spaced.splitlines() if line.strip()]
    documents = lines if len(lines) >= FEW else SENTENCE.split(spaced)
    documents = [" ".join(document.split()) for document in documents if document.strip()]
    words = spaced.split()
    if len(words) < FEW:
        raise InputError(f"TEXT has {len(words)} words: expected at least {FEW}")
    if len(documents) < 4:
        documents = [" ".join(words[at : at + 5]) for at in range(0, len(words), 5)]
    return [document for index, document in enumerate(documents) if index % 10], documents[::10]
