from __future__ import annotations

import math

import pytest

from foreword.errors import InputError, SettingError
from foreword.measures.translation import bleu, chrf, sentence_bleu, sentence_chrf, tokens_13a


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("Hello, world.", "Hello , world ."),
        ("It's 1,000.5 km; 3-4 or well-known...", "It's 1,000.5 km ; 3 - 4 or well-known . . ."),
        ("a&amp;b &quot;c&quot; &lt;d&gt;", 'a & b " c " < d >'),
        ("(x/y) [z] $5.", "( x / y ) [ z ] $ 5 ."),
        ("..12 is odd", ". .12 is odd"),
        (".5 and 5.", ". 5 and 5 ."),
        ("broken-\nword and\nmore <skipped>", "brokenword and more"),
        ("  ", ""),
    ],
)
def test_13a_by_hand(line: str, words: str) -> None:
    assert tokens_13a(line) == words.split()


def test_bleu_by_hand() -> None:
    """The cat of the paper's kind: 5 of 6 words, 3 of 5 pairs, 1 of 4 triples, and no four: half of one of three."""
    score = bleu(["the cat sat on the mat"], ["the cat is on the mat"])
    assert score.precisions == pytest.approx((500 / 6, 60, 25, 50 / 3))
    assert score.brevity == 1
    assert score.score == pytest.approx(math.exp(sum(map(math.log, score.precisions)) / 4))
    assert score.signature.startswith("nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:foreword-")
    assert str(score).startswith("BLEU|nrefs:1")
    assert str(score).endswith(f" = {score.score:.2f}")


def test_a_short_translation_pays_for_it() -> None:
    score = bleu(["a b c d"], ["a b c d e f g h"])
    assert score.precisions == pytest.approx([100] * 4)
    assert score.score == pytest.approx(100 * math.exp(1 - 8 / 4))
    assert (score.length, score.reference_length) == (4, 8)


def test_the_nearest_length_counts_and_a_word_only_as_often_as_in_one_reference() -> None:
    score = sentence_bleu("the the the the", "the cat", "the dog the house is here")
    assert score.reference_length == 2  # both are two words away: the shorter
    assert score.precisions[0] == 50


def test_a_sentence_of_two_words_has_no_triples() -> None:
    assert sentence_bleu("good morning", "good morning").score == pytest.approx(100)
    assert bleu(["good morning"], ["good morning"]).score == 0  # as the formula has it
    assert sentence_bleu("", "good morning").score == sentence_bleu("bad night", "good morning").score == 0


def test_chrf_by_hand() -> None:
    """ab against abc: all of 2 and 1 n-grams are right, of 3, 2 and 1; triples are in one only and do not count."""
    precision, recall = 1.0, (2 / 3 + 1 / 2) / 2
    assert sentence_chrf("a b", "abc").score == pytest.approx(100 * 5 * precision * recall / (4 * precision + recall))
    assert chrf(["x"], ["x"]).score == 100
    assert sentence_chrf("a", "b").score == sentence_chrf("", "b").score == 0
    assert chrf(["x"], ["x"], word_order=2).name == "chrF2++"


def test_what_does_not_fit_together_is_refused() -> None:
    with pytest.raises(InputError, match="2 lines are translated but the references have 2 and 3: no pair for line 3"):
        bleu(["a", "b"], ["a", "b"], ["a", "b", "c"])
    with pytest.raises(InputError, match="no pair for line 2"):
        chrf(["a", "b"], ["a"])
    with pytest.raises(InputError, match="no line to score"):
        bleu([], [])
    with pytest.raises(InputError, match="single string"):
        bleu("a b", "a b")
    with pytest.raises(InputError, match="at least one reference"):
        sentence_bleu("a")
    with pytest.raises(SettingError, match="word_order=-1"):
        chrf(["a"], ["a"], word_order=-1)
