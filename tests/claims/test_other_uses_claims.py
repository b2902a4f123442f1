"""Q15: other uses of recurrent networks, each by the recipe that docs name."""

from __future__ import annotations

import sys
from importlib import util
from pathlib import Path
from types import ModuleType

import pytest
import torch

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


def test_c03_speech_is_skipped_with_a_clear_line_where_nothing_speaks(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """C03: without espeak-ng the recipe of digits says what is missing, and what runs without it."""
    module = recipe("digits")
    monkeypatch.setattr(sys, "argv", ["digits.py"])
    monkeypatch.setattr(module.shutil, "which", lambda _: None)
    module.main()
    assert capsys.readouterr().err == (
        "skipped: espeak-ng is not installed, so there is no speech; --tones runs without it\n"
    )
