from __future__ import annotations

import math

import numpy as np
import pytest

from foreword.lessons.keywords import (
    EVENNESS,
    Beginning,
    count_words,
    evenly_spread,
    is_common,
    keyness,
    own_common_words,
    words_in,
)
from foreword.text.block import blocks_of


def counted(*texts: str) -> dict[str, int]:
    return count_words(blocks_of(texts))


@pytest.mark.parametrize(
    ("token", "words"),
    [
        ("cat,", ["cat"]),
        ("(cat)—dog", ["cat", "dog"]),
        ("well-known", ["well-known"]),
        ("don’t", ["don't"]),
        ("king's", ["king"]),
        ("king’s.", ["king"]),
        ("word2vec", ["word2vec"]),
        ("5th", []),
        ("1984", []),
        ("a", []),
        ("x" * 41, []),
        ("https://example.org/cat", []),
        ("www.example.org", []),
        ("someone@example.org", []),
        ("<b>cat</b>", ["cat"]),
        ("naïve", ["naïve"]),
    ],
)
def test_words_are_letters_without_what_stands_around_them(token: str, words: list[str]) -> None:
    assert list(words_in(token)) == words


def test_case_makes_no_other_word_and_the_usual_spelling_is_shown() -> None:
    assert counted("Rome rome. The Rome", "the") == {"Rome": 3, "The": 2}  # of equals the first in the alphabet
    assert counted("Cat cat dog", "DOG cat") == {"cat": 3, "DOG": 2}


def test_unknown_words_of_a_prepared_text_are_no_word() -> None:
    assert counted("the <unk> sat", "<unk> sat") == {"sat": 2, "the": 1}


def test_no_text_has_no_words() -> None:
    assert counted() == {}
    assert counted("", " ") == {}


def test_where_words_are_not_divided_what_stands_together_is_a_word() -> None:
    found = counted("人人生而自由,在尊严和权利上一律平等。", "人人有权享有生命、自由和人身安全。", "法律之前人人平等。")
    assert {"人人": 3, "自由": 2, "平等": 2}.items() <= found.items()
    assert all(len(word) > 1 for word in found)


@pytest.mark.parametrize("word", ["the", "The", "of", "which", "she", "HIS", "I'll", "don't", "won't", "can't", "n't"])
def test_words_of_grammar_are_common(word: str) -> None:
    assert is_common(word)


@pytest.mark.parametrize("word", ["king", "whale", "object", "string", "server", "market", "t-shirt"])
def test_words_with_a_subject_are_not(word: str) -> None:
    assert not is_common(word)


def test_an_even_spread_is_told_from_bursts() -> None:
    """Both words occur 100 times in 100 passages: one in each of them, the other in ten."""
    passages = [["even", *["burst"] * (10 if place % 10 == 0 else 0), "filler"] for place in range(100)]
    found = evenly_spread(passages)
    assert "even" in found
    assert "burst" not in found
    assert EVENNESS * 100 * (1 - math.exp(-1)) > 10


def test_keyness_by_hand() -> None:
    """Of two words as frequent here, the one that the embedded text does not have weighs more."""
    weights = keyness({"xyzzy": 5, "object": 5})
    assert weights["xyzzy"] > weights["object"] > 0
    twice = keyness({"xyzzy": 10, "object": 10})
    assert twice["xyzzy"] == pytest.approx(2 * weights["xyzzy"])


def test_keyness_keeps_every_word() -> None:
    counts = counted("the cat sat on the mat and the object was a xyzzy")
    assert keyness(counts).keys() == counts.keys()
    assert all(weight > 0 for weight in keyness(counts).values())


def test_a_text_in_another_language_teaches_its_own_function_words() -> None:
    random = np.random.default_rng(0)
    function, content = ["che", "la", "di", "non", "per"], [f"parola{chr(97 + place)}" for place in range(20)]
    passages = []
    for place in range(60):  # each passage has its own topic, and the function words of all
        topic = content[place % 20]
        passages.append(" ".join(random.choice([*function * 3, topic, f"cosa{place}"], 500).tolist()))
    own = own_common_words(passages)
    assert set(function) <= own
    assert not own & set(content)
    assert is_common("La", own)
    assert is_common("l'che", own)
    assert not is_common("parolaa", own)


def test_english_teaches_nothing_new() -> None:
    assert own_common_words(["the king of the land said that he was not the one who had it"] * 200) == frozenset()
    assert own_common_words([]) == frozenset()


def test_only_the_beginning_is_retained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("foreword.lessons.keywords.LEARNT_FROM", 10)
    read = Beginning([*blocks_of(["uno due tre"]), *blocks_of(["quattro"])])
    assert count_words(read) == {"due": 1, "quattro": 1, "tre": 1, "uno": 1}
    assert list(read.texts()) == ["uno due tre"]
