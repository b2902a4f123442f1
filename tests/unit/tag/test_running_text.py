"""Running text is split as the words of the treebank show."""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate

import pytest

from foreword.tag.conllu import read_conllu
from foreword.tag.running_text import Splitter
from foreword.text.datasets import find
from foreword.text.sources import read_lines

ENGLISH = {"it", "'s", "do", "n't", "etc.", "U.S.", "o'clock", "well-known", "e-mail", "re-use", "dog"}
ITALIAN = {"dell'", "opera", "l'", "un", "po'", "è"}


@pytest.mark.parametrize(
    ("chunk", "words"),
    [
        ("It's", ["It", "'s"]),
        ("don't!", ["do", "n't", "!"]),
        ("Anna's", ["Anna", "'s"]),
        ("o'clock.", ["o'clock", "."]),
        ("well-known,", ["well-known", ","]),
        ("(etc.)", ["(", "etc.", ")"]),
        ("U.S.", ["U.S."]),
        ("A.B.C.,", ["A.B.C.", ","]),
        ('"what?!"', ['"', "what", "?!", '"']),
        ("wait...", ["wait", "..."]),
        ("$5,000.50", ["$", "5,000.50"]),
        ("3.14.", ["3.14", "."]),
        ("https://example.org/a-b.", ["https://example.org/a-b", "."]),
        ("*****", ["*****"]),
        ("—", ["—"]),
    ],
)
def test_english(chunk: str, words: list[str]) -> None:
    found = Splitter.of(ENGLISH).split(chunk)
    assert "".join(found) == chunk
    assert found == words


def test_italian() -> None:
    splitter = Splitter.of(ITALIAN)
    assert list(splitter.sentences("L'opera dell'anno. È un po' lunga!")) == [
        ["L'", "opera", "dell'", "anno", "."],
        ["È", "un", "po'", "lunga", "!"],
    ]


def test_hyphens_are_cut_where_the_treebank_has_none() -> None:
    assert Splitter.of({f"word{n}x" for n in range(60)} | {"-"}).split("well-known") == ["well", "-", "known"]
    assert Splitter.of(ENGLISH).split("long-lost") == ["long-lost"]


def test_a_sentence_goes_on_after_an_abbreviation() -> None:
    splitter = Splitter.of({"Dr.", "No."})
    assert [len(words) for words in splitter.sentences("Dr. Smith left. No. 5 stayed… he said! Yes.")] == [4, 7, 2]


def _pieces(words: list[str]) -> set[tuple[int, int]]:
    """Return where each word begins and ends among the characters of a sentence without blanks."""
    ends = list(accumulate(map(len, words)))
    return set(zip([0, *ends[:-1]], ends, strict=True))


@pytest.mark.data
def test_ud_english_words_from_raw_text(record_property: Callable[[str, object], None]) -> None:
    train, path = find("ud_english_ewt:train"), find("ud_english_ewt:test")
    splitter = Splitter.of({word for sentence in read_conllu(train).sentences for word in sentence})
    texts = [line.removeprefix("# text = ") for line in read_lines(path) if line.startswith("# text = ")]
    right = total = 0
    for text, words in zip(texts, read_conllu(path).sentences, strict=True):
        ours, theirs = _pieces([word for found in splitter.sentences(text) for word in found]), _pieces(words)
        right, total = right + len(ours & theirs), total + len(ours) + len(theirs)
    record_property("F1 of words from raw text", 2 * right / total)
    assert 2 * right / total > 0.975
