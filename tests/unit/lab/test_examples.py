"""What the panels show first is taken from the user's text, in its language."""

from __future__ import annotations

import pytest

from foreword.lab.examples import ENGLISH, examples_from
from foreword.lab.trainings import LearningText

ITALIAN = [
    "Nel mezzo del cammin di nostra vita mi ritrovai per una selva oscura,",
    "nel mezzo del mare, nel mezzo del bosco; che la diritta via era smarrita.",
    "Nel mezzo del cammin di nostra vita si ritrova chi cammina e camminando vede la selva.",
]


def test_examples_are_of_the_text() -> None:
    found = examples_from(ITALIAN)
    words = {word.strip(",.;") for text in ITALIAN for word in text.casefold().split()}
    assert found["prompt"] == "nel mezzo del"
    assert len(found["sentence"].split()) == 8
    for example in found.values():
        assert set(str(example).split()) <= words
    assert found["sentence"] in " ".join(text.casefold() for text in ITALIAN)


@pytest.mark.parametrize("texts", [["uno"], ["uno due"], ["1 2 3"], ["自由で平等な人間は自由で平等である"], []])
def test_texts_of_any_kind_have_examples(texts: list[str]) -> None:
    assert set(examples_from(texts)) == set(ENGLISH)


def test_the_embedded_text_keeps_its_examples() -> None:
    assert LearningText(lambda: ITALIAN * 40).examples is ENGLISH
    assert LearningText(lambda: ITALIAN * 40, own=True).examples == examples_from(ITALIAN * 40)
