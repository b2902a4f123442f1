"""Q15, C03: other uses of recurrent networks, each by the recipe that docs name."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from importlib import util
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from tests.real_data import real

from foreword import SpeechRecogniser, WordTokenizer
from foreword.speech.recordings import spoken_digits
from foreword.text.sources import read_lines

RECIPES = Path(__file__).parents[2] / "recipes"


def recipe(name: str) -> ModuleType:
    found = util.spec_from_file_location(name, RECIPES / f"{name}.py")
    assert found is not None
    assert found.loader is not None
    module = util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def test_q15_a_summary_of_reports_that_were_not_learnt_from() -> None:
    """Q15: headlines of new reports, to the letter."""
    torch.set_num_threads(1)
    right, said = recipe("other_uses").run("summary", 250, 12)
    assert right > 0.8
    assert len(said) == 100


@pytest.mark.long
def test_q15_a_dialogue_that_was_not_learnt() -> None:
    """Q15: answers to new questions of the same forms, to the letter, and each question has one right answer."""
    torch.set_num_threads(1)
    module = recipe("other_uses")
    right, said = module.run("dialogue", 400, 20)
    assert len(said) == len({line.split(" | ")[0] for line in said}) == 100
    assert right > 0.6


@pytest.mark.long
@pytest.mark.data
def test_q15_replies_learnt_from_plays(record_property: Callable[[str, object], None]) -> None:
    """Q15: a dialogue model learnt from 1,500 short turns of Shakespeare finds new replies likelier than their words
    alone would be; what it is told before them hardly counts.
    """
    torch.set_num_threads(1)
    text = "\n".join(read_lines(real("tinyshakespeare/input.txt.xz")))
    found = recipe("other_uses").plays(text, 1500, 5)
    told = f"{found.right:.1f}, {found.other:.1f}, {found.unigram:.1f}"
    record_property("Q15 perplexity of replies, after their turn, after another, by a unigram model", told)
    assert len(found.said) == 150
    assert found.right < 0.8 * found.unigram
    assert found.right < 1.02 * found.other


@pytest.mark.long
@pytest.mark.data
def test_c03_spoken_digits_and_strings_of_them(record_property: Callable[[str, Any], None]) -> None:
    """C03: ten epochs of real recordings, then ten of strings in noise; the recipe trains for longer."""
    torch.set_num_threads(1)
    train, test = spoken_digits("train"), spoken_digits("test")
    recogniser = SpeechRecogniser(WordTokenizer())
    recogniser.model.training = replace(recogniser.model.training, epochs=10)
    digits = recogniser.fit(train).measure(test)
    record_property("C03 accuracy of spoken digits, ten epochs", digits.right / digits.texts)
    assert (digits.texts, digits.words) == (250, 250)
    assert digits.right / digits.texts > 0.95

    module = recipe("spoken_digits")
    random = np.random.default_rng(1)
    heard, unheard = (
        [module.spoken(text(random), part, random) for _ in range(count)]
        for text, part, count in ((module.any_digits, train, 250), (module.moment, test, 60))
    )
    recogniser.model.training = replace(recogniser.model.training, epochs=10)
    recogniser.fit(heard)
    model = module.digit_model(recogniser, random)
    alone = recogniser.measure(unheard)
    helped = recogniser.measure(unheard, language_model=model, weight=0.6)
    record_property("C03 word error rate of strings at 10 dB", alone.rate)
    record_property("C03 word error rate with 5-grams", helped.rate)
    assert max(alone.rate, helped.rate) < 0.25  # 60 strings are too few to tell them apart; the recipe has 400
    stored = json.loads(Path(module.RESULTS).read_text("utf-8"))["strings"]
    assert stored["5-grams_mend_of_beam"]["interval"][0] > 0
