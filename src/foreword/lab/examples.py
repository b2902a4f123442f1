"""What the lab's panels show first: examples from the user's text, or English ones for the embedded text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TypedDict

from foreword.evaluate.compare.facts import written_without_spaces
from foreword.tokens.words import WordTokenizer

LOOKED_AT = 200_000
"""Characters from which examples are taken."""

PROMPT_WORDS, SENTENCE_WORDS, MERGE_WORDS = 3, 8, 12


class Examples(TypedDict):
    """prompt: for the next word; sentence: for windows of words; merges: for byte-pair encoding."""

    prompt: str
    sentence: str
    merges: str


ENGLISH: Examples = {
    "prompt": "the list of",
    "sentence": "the method returns a new list of strings",
    "merges": "the lowest newer widest lower newest wide low new the newest and the lowest",
}


def examples_from(documents: Sequence[str]) -> Examples:
    """Return the most frequent beginning, a sentence of common words, and common words that share parts."""
    texts, left = [], LOOKED_AT
    for document in documents:
        if left <= 0:
            break
        texts.append(document[:left].casefold())
        left -= len(document)
    joint = "" if written_without_spaces(texts) else " "
    units = [_units(text, joint) for text in texts]
    prompts = Counter(
        tuple(words[start : start + PROMPT_WORDS])
        for words in units
        for start in range(len(words) - PROMPT_WORDS)  # a word follows it
        if all(word.isalpha() for word in words[start : start + PROMPT_WORDS])
    )
    counts = Counter(word for words in units for word in words if word.isalpha())
    prompt = prompts.most_common(1)[0][0] if prompts else [word for word, _ in counts.most_common(1)]
    return {
        "prompt": joint.join(prompt),
        "sentence": joint.join(_sentence(units, counts)),
        "merges": joint.join(_related(counts)),
    }


def _units(text: str, joint: str) -> list[str]:
    """Return the words of a text, or its characters where there are no spaces."""
    return WordTokenizer(split="punctuation").pieces(text) if joint else [letter for letter in text if letter.strip()]


def _sentence(units: Sequence[Sequence[str]], counts: Counter[str]) -> Sequence[str]:
    """Return the sequence of words between punctuation marks whose rarest word is commonest."""
    found: list[Sequence[str]] = []
    for words in units:
        for start in range(0, max(1, len(words) - SENTENCE_WORDS + 1)):
            window = words[start : start + SENTENCE_WORDS]
            if all(word.isalpha() for word in window) and len(set(window)) == len(window):
                found.append(window)
    return max(found, key=lambda window: (len(window), min(counts[word] for word in window)), default=())


def _related(counts: Counter[str]) -> list[str]:
    """Return common words of several letters, those that begin alike next to each other, the first ones twice."""
    common = [word for word, _ in counts.most_common(200) if len(word) > 3] or [
        word for word, _ in counts.most_common(30)
    ]
    heads = Counter(word[:3] for word in common)
    chosen = sorted(common, key=lambda word: (-heads[word[:3]], word))[:MERGE_WORDS]
    return [*chosen, *chosen[:3]]
