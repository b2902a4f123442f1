"""What is learnt from, what is tuned on, and what is measured on: one fixed rule for any text.

Of every twenty documents the tenth is for tuning and the twentieth for the test; the other eighteen, 90 %, are learnt
from. A text of fewer documents, perhaps a single one, is cut at the same places within: a twentieth of its words before
the middle, and the last twentieth.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from foreword.errors import InputError

CYCLE = 20
VALID, TEST = 9, 19
"""Places within a cycle of twenty documents."""

LONGEST_MEAN_WORD = 20
"""Mean letters between spaces: English 5, Finnish 8, program code 10; above 20 nobody put spaces between words."""

# Thai to Myanmar; Khmer; kana, Han and what stands between them; Han beyond the first plane.
_SPACELESS = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
)


@dataclass(frozen=True, slots=True)
class Splits:
    """A text in three parts, each a list of documents."""

    train: Sequence[str]
    valid: Sequence[str]
    test: Sequence[str]


def split(texts: Sequence[str]) -> Splits:
    """Deal documents out by their place; blank ones are left out."""
    documents = [text for text in texts if text.strip()]
    if len(documents) < CYCLE:
        return cut("\n".join(documents))
    return Splits(
        [text for place, text in enumerate(documents) if place % CYCLE not in (VALID, TEST)],
        documents[VALID::CYCLE],
        documents[TEST::CYCLE],
    )


def cut(text: str) -> Splits:
    """The twentieth before the middle is for tuning, the last for the test, what is left is learnt from.

    Counted in words, or in characters where the text is written without spaces; at least one goes everywhere.
    """
    unit = r"\S" if written_without_spaces([text]) else r"\S+"
    starts = [match.start() for match in re.finditer(unit, text)]
    if len(starts) < 3:
        raise InputError("the text is too short to learn from one part and test on another: three words are the least")
    held = max(1, len(starts) // CYCLE)
    middle, last = max(held, len(starts) // 2), len(starts) - held
    edges = [0, *(starts[place] for place in (middle - held, middle, last)), len(text)]
    before, valid, after, test = (text[start:stop].strip() for start, stop in pairwise(edges))
    return Splits([run for run in (before, after) if run], [valid], [test])


def written_without_spaces(texts: Sequence[str], *, look_at: int = 100_000) -> bool:
    """Whether words cannot be told by white space, as in Chinese, Japanese or Thai; judged by the text's beginning."""
    sample = ""
    for text in texts:
        sample += text[:look_at] + " "
        if len(sample) >= look_at:
            break
    words = sample.split()
    letters = sum(map(len, words))
    return len(_SPACELESS.findall(sample)) > letters / 2 or letters > LONGEST_MEAN_WORD * len(words)
