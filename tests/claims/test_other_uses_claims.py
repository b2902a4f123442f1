"""Q15, C03: other uses of recurrent networks, each by the recipe that docs name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from importlib import util
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch

from foreword import SpeechRecogniser, WordTokenizer
from foreword.speech.recordings import DIGITS, spoken_digits
from foreword.text.datasets import availability, dataset

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


def test_q15_dialogue_asks_what_was_not_learnt() -> None:
    """Q15: the pairs that are asked are new, and every one has a question and an answer."""
    module = recipe("other_uses")
    random = module.np.random.default_rng(0)
    pairs = [module.dialogue(random).split(" | ") for _ in range(200)]
    assert all(len(pair) == 2 for pair in pairs)
    assert len({question for question, _ in pairs}) > 100
    answers: dict[str, str] = {}
    for question, answer in pairs:
        assert answers.setdefault(question, answer) == answer  # what is asked has one right answer


@pytest.mark.long
@pytest.mark.skipif(not availability(dataset(DIGITS)).files, reason="$FOREWORD_DATA has no spoken digits")
def test_c03_spoken_digits_and_strings_of_them(record_property: Callable[[str, Any], None]) -> None:
    """C03: ten epochs of real recordings, then four of strings in noise; the recipe trains for longer."""
    torch.set_num_threads(1)
    train, test = spoken_digits("train"), spoken_digits("test")
    recogniser = SpeechRecogniser(WordTokenizer())
    recogniser.model.training = replace(recogniser.model.training, epochs=10)
    digits = recogniser.fit(train).measure(test)
    record_property("C03 accuracy of spoken digits, ten epochs", digits.right / digits.texts)
    assert (digits.texts, digits.words) == (250, 250)
    assert digits.right / digits.texts > 0.93

    module = recipe("spoken_digits")
    random = np.random.default_rng(1)
    heard, unheard = (
        [module.spoken(text(random), part, random) for _ in range(count)]
        for text, part, count in ((module.any_digits, train, 150), (module.moment, test, 60))
    )
    recogniser.model.training = replace(recogniser.model.training, epochs=4)
    recogniser.fit(heard)
    model = module.digit_model(recogniser, random)
    alone = recogniser.measure(unheard)
    helped = recogniser.measure(unheard, language_model=model, weight=0.3)
    record_property("C03 word error rate of strings at 10 dB", alone.rate)
    record_property("C03 word error rate with 5-grams", helped.rate)
    assert alone.rate < 0.5
    assert helped.rate < alone.rate + 0.01  # it helps by little: see docs/results/spoken_digits.json
