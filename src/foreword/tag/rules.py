"""A tagger written by hand: a list of function words, and rules such as "words ending in -ing are verbs".

The first rule that matches a word decides, and the context is ignored. Every rule has exceptions (thing, during,
morning), which can be learnt: the words of a training text that the rules get wrong more often than not, with the tag
they should have had. ``FeatureTagger`` takes the name of a word's rule as one feature among others and learns its
weight.

The tags are those of Universal Dependencies, the rules those of English.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

from foreword.protocols import Sentences, Tags
from foreword.tag.tagger import check_pairs

LITTLE_WORDS = {
    "ADP": "of in for on with at from by about as into than after before between through over against under per upon "
    "among within without during via toward towards across along around behind beyond near despite off out up down",
    "AUX": "is was are were be been being am 's 're 'm has have had having do does did can could will would shall "
    "should may might must ca wo 'll 'd 've",
    "CCONJ": "and or but nor & either neither plus",
    "DET": "the a an this these those every each some any no all both another",
    "INTJ": "yes please oh hello hi ok okay thanks yeah wow hey",
    "PART": "to not n't nt",
    "PRON": "i you he she it we they me him her us them my your his its our their mine yours myself yourself himself "
    "herself itself ourselves themselves who whom whose which what there something anything nothing someone anyone "
    "everyone everything nobody that",
    "SCONJ": "if because while whether although since unless though until",
}
"""The closed classes: few words, very frequent, hardly ever a new one. A word of several classes is listed in its
commonest."""

ENDINGS = {
    "ing": "VERB",
    "ed": "VERB",
    "ize": "VERB",
    "ly": "ADV",
    "tion": "NOUN",
    "sion": "NOUN",
    "ment": "NOUN",
    "ness": "NOUN",
    "ity": "NOUN",
    "ship": "NOUN",
    "ism": "NOUN",
    "ance": "NOUN",
    "ence": "NOUN",
    "ous": "ADJ",
    "ful": "ADJ",
    "less": "ADJ",
    "able": "ADJ",
    "ible": "ADJ",
    "ive": "ADJ",
    "ic": "ADJ",
    "al": "ADJ",
    "est": "ADJ",
}

_WORTH_SHOWING = 5


class Rule(NamedTuple):
    """A rule: its name, such as ``-ing``, and its tag."""

    name: str
    tag: str


@dataclass(frozen=True, slots=True)
class RuleReport:
    """The accuracy of a rule on a text: how often it decided, how often it was right, and its commonest exceptions."""

    rule: str
    tag: str
    decided: int
    right: int
    exceptions: list[tuple[str, str]]

    @property
    def share(self) -> float:
        """The share of its decisions that were right."""
        return self.right / self.decided


LITTLE = {word: Rule(f"little {tag}", tag) for tag, words in LITTLE_WORDS.items() for word in words.split()}
DIGITS, MARKS, CAPITAL = Rule("digits", "NUM"), Rule("marks", "PUNCT"), Rule("capital", "PROPN")
BY_ENDING = {ending: Rule(f"-{ending}", tag) for ending, tag in ENDINGS.items()}
OTHERWISE = Rule("otherwise", "NOUN")

RULES: tuple[Rule, ...] = (*dict.fromkeys(LITTLE.values()), DIGITS, MARKS, CAPITAL, *BY_ENDING.values(), OTHERWISE)
"""In the order in which ``rule_of`` tries them."""

_NUMBER = re.compile(r"[\d.,:/$%+\-]*\d[\d.,:/$%+\-]*")
_SIGNS = re.compile(r"[^\w\s]+")


def rule_of(word: str) -> Rule:
    """Return the rule that decides about a word."""
    folded = word.lower()
    if folded in LITTLE:
        return LITTLE[folded]
    if _NUMBER.fullmatch(word):
        return DIGITS
    if _SIGNS.fullmatch(word):
        return MARKS
    if word[:1].isupper():
        return CAPITAL
    for length in (4, 3, 2):  # no ending is the end of another, so this order decides nothing
        if len(word) > length + 1 and folded[-length:] in BY_ENDING:
            return BY_ENDING[folded[-length:]]
    return OTHERWISE


def tags_by_rule(sentences: Sentences, exceptions: Mapping[str, str] | None = None) -> list[list[str]]:
    """Tag sentences by the rules, except for the words of ``exceptions``, which maps words to tags."""
    known = exceptions or {}
    decided: dict[str, str] = {}
    for word in set(chain.from_iterable(sentences)):
        decided[word] = known.get(word) or rule_of(word).tag
    return [[decided[word] for word in words] for words in sentences]


def learn_exceptions(sentences: Sentences, tags: Tags) -> dict[str, str]:
    """Return the words whose most frequent tag is not that of their rule, with that tag."""
    usual = {word: max(counts, key=counts.__getitem__) for word, counts in _tags_of_words(sentences, tags).items()}
    return {word: tag for word, tag in usual.items() if rule_of(word).tag != tag}


def judge_rules(sentences: Sentences, tags: Tags) -> list[RuleReport]:
    """Measure each rule on a tagged text, in the order of ``RULES``; rules that decided nothing are left out."""
    decided: dict[Rule, dict[str, Counter[str]]] = defaultdict(dict)
    for word, counts in _tags_of_words(sentences, tags).items():
        decided[rule_of(word)][word] = counts
    return [_judge(rule, decided[rule]) for rule in RULES if rule in decided]


def _judge(rule: Rule, words: Mapping[str, Counter[str]]) -> RuleReport:
    wrong = Counter({(word, tag): n for word, tags in words.items() for tag, n in tags.items() if tag != rule.tag})
    decided = sum(counts.total() for counts in words.values())
    common = [pair for pair, _ in wrong.most_common(_WORTH_SHOWING)]
    return RuleReport(rule.name, rule.tag, decided, decided - wrong.total(), common)


def _tags_of_words(sentences: Sentences, tags: Tags) -> dict[str, Counter[str]]:
    check_pairs(sentences, tags)
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for word, tag in zip(chain.from_iterable(sentences), chain.from_iterable(tags), strict=True):
        counts[word][tag] += 1
    return counts
