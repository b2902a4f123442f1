"""What a feature tagger sees: the attributes of a word, and the features made of them.

An *attribute* is a property of a word by itself: its letters, its last three, its shape, its entry in the lexicon. A
*feature* is one attribute, or two or three together, at given distances from the word to be tagged: "the word before is
*to*", "it ends in -ing", "the word before is capitalised, and so is this one". Features come in named groups, so that
the effect of leaving one out can be measured (``FeatureTagger(features=...)``, ``evaluate.tagging.ablation``).

The choice follows A. Ratnaparkhi, "A maximum entropy model for part-of-speech tagging", EMNLP 1996, who had words,
prefixes and suffixes, digits, capitals and hyphens, and the tags before. The lexicon, the pairs and the shapes of
neighbours were added where they helped on the validation part of UD English-EWT.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from itertools import chain, groupby
from typing import TypeAlias

from foreword.protocols import Sentences, Tags
from foreword.tag.rules import rule_of

ENDS = (1, 2, 3, 4)
"""Lengths of prefixes and suffixes."""

ATTRIBUTES: tuple[str, ...] = (
    "word",
    "lower",
    *(f"suffix{length}" for length in ENDS),
    *(f"prefix{length}" for length in ENDS),
    "outline",
    "shape",
    "marks",
    "lexicon",
    "stem",
    "rule",
)

Template: TypeAlias = tuple[tuple[int, str], ...]
"""The attributes of a feature, each with its distance from the word to be tagged; () is a feature of every word."""

GROUPS: dict[str, tuple[Template, ...]] = {
    "word": (((0, "word"),), ((0, "lower"),)),
    "suffix": tuple(((0, f"suffix{length}"),) for length in ENDS),
    "prefix": tuple(((0, f"prefix{length}"),) for length in ENDS),
    "shape": (
        ((0, "outline"),),
        ((0, "shape"),),
        ((0, "marks"),),
        ((-1, "shape"), (0, "shape")),
        ((0, "shape"), (1, "shape")),
        ((-1, "shape"), (0, "shape"), (1, "shape")),
    ),
    "neighbours": (
        ((-2, "lower"),),
        ((-1, "lower"),),
        ((1, "lower"),),
        ((2, "lower"),),
        ((-1, "lower"), (0, "lower")),
        ((0, "lower"), (1, "lower")),
    ),
    "lexicon": (
        ((0, "lexicon"),),
        ((0, "stem"),),
        ((-2, "lexicon"),),
        ((-1, "lexicon"),),
        ((1, "lexicon"),),
        ((2, "lexicon"),),
        ((-1, "lexicon"), (1, "lexicon")),
        ((-1, "lexicon"), (0, "lower")),
        ((0, "lower"), (1, "lexicon")),
    ),
    "rules": (((0, "rule"),),),
    "history": (),
    "context": (
        *(((offset, name),) for name in ("shape", "suffix3", "prefix3", "outline") for offset in (-1, 1)),
        ((-2, "shape"),),
        ((2, "shape"),),
        ((-2, "lower"), (-1, "lower")),
        ((1, "lower"), (2, "lower")),
        ((-1, "lower"), (0, "shape")),
        ((0, "shape"), (1, "lower")),
        ((-1, "lower"), (1, "lower")),
    ),
}
"""The groups by name. ``history``, the tag before, has no template: it links the decisions of a sentence. ``context``
is for spans: whether a name begins or ends here shows in the spelling of its neighbours.
"""

WORD_GROUPS: tuple[str, ...] = tuple(group for group in GROUPS if group != "context")
SPAN_GROUPS: tuple[str, ...] = tuple(GROUPS)
"""The groups that taggers of words and of spans use by default."""

ALWAYS: Template = ()

STEMS = (
    ("ies", "y"), ("ied", "y"), ("ing", ""), ("ing", "e"), ("ers", ""), ("est", ""), ("ness", ""), ("n't", ""),
    ("es", ""), ("ed", ""), ("ed", "e"), ("ly", ""), ("er", ""), ("'s", ""), ("s", ""), ("d", ""), ("y", ""),
)  # fmt: skip
"""Endings, and what they may have replaced: *tried* was *try*."""

OUTLINE_LENGTH, SHAPE_LENGTH = 10, 8


def templates_of(groups: Iterable[str]) -> list[Template]:
    """Return all templates of the groups, in the order of ``GROUPS``; the one that every word has comes first."""
    wanted = set(groups)
    return [ALWAYS, *chain.from_iterable(GROUPS[group] for group in GROUPS if group in wanted)]


def feature_name(template: Template, values: Iterable[str]) -> str:
    """Return a readable name, such as ``suffix3=ing`` or ``lower[-1]=to & lower=run``."""
    parts = zip(template, values, strict=True)
    return " & ".join(f"{name}{f'[{offset:+d}]' if offset else ''}={value}" for (offset, name), value in parts) or "any"


def lexicon_of(sentences: Sentences, tags: Tags, least: int) -> dict[str, str]:
    """Return the tags that each lower-cased word had in training, as ``NOUN|VERB``.

    Words seen fewer than ``least`` times are left out: from them the tagger learns what words outside the lexicon are
    like.
    """
    counts: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for word, tag in zip(chain.from_iterable(sentences), chain.from_iterable(tags), strict=True):
        counts[word.lower()][tag] += 1
    return {word: "|".join(sorted(found)) for word, found in counts.items() if sum(found.values()) >= least}


UNLISTED = "?"
"""The lexicon attribute of a word that is not in the lexicon."""


def attributes_of(word: str, lexicon: Mapping[str, str]) -> list[str | None]:
    """Return a value for each of ``ATTRIBUTES``; None where the word has none, such as a fourth letter."""
    folded = word.lower()
    length = len(folded)
    outline = word.translate(_SIGNS)
    return [
        word,
        folded,
        *(folded[-end:] if end <= length else None for end in ENDS),
        *(folded[:end] if end <= length else None for end in ENDS),
        outline[:OUTLINE_LENGTH],
        "".join(sign for sign, _ in groupby(outline))[:SHAPE_LENGTH],
        marks_of(word),
        lexicon.get(folded, UNLISTED),
        stem_of(folded, lexicon),
        rule_of(word).name,
    ]


def marks_of(word: str) -> str:
    """Return C for an initial capital, U for capitals only, D for a digit, H for a hyphen."""
    marks = "C" if word[:1].isupper() else ""
    if len(word) > 1 and word.isupper():
        marks += "U"
    if any(sign.isdigit() for sign in word):
        marks += "D"
    return marks + "H" if "-" in word else marks


def stem_of(folded: str, lexicon: Mapping[str, str]) -> str | None:
    """Return an ending with the lexicon entry of the word without it."""
    for ending, instead in STEMS:
        if folded.endswith(ending) and len(folded) > len(ending) + 1:
            listed = lexicon.get(folded[: len(folded) - len(ending)] + instead)
            if listed:
                return f"{ending}={listed}"
    return None


class _Signs(dict[int, str]):
    """A translation table: letters become X or x, digits d, the rest stays. Only ASCII is stored, so it never grows."""

    def __missing__(self, code: int) -> str:
        sign = chr(code)
        return "X" if sign.isupper() else "x" if sign.islower() else "d" if sign.isdigit() else sign


_SIGNS = _Signs()
_SIGNS.update({code: _SIGNS[code] for code in range(128)})
