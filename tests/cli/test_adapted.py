"""``foreword evaluate --mc``, ``--neural-cache`` and ``--dynamic``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from .conftest import TEXT, Foreword

REPEATED = "the dog sat on the mat\n" * 12


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("adapted")


@pytest.fixture
def model(folder: Path, foreword: Foreword) -> Path:
    if not (folder / "model").exists():
        (folder / "train.txt").write_text(TEXT * 5)
        (folder / "test.txt").write_text(REPEATED)
        sizes = [f"--set={each}" for each in ("epochs=1", "batch=4", "steps=5", "embedding=4", "hidden=5", "layers=1")]
        made = foreword("train", "lstm", folder / "train.txt", "-o", folder / "model", "--device", "cpu", *sizes)
        assert made.exit_code == 0, made.stderr
    return folder / "model"


def told(foreword: Foreword, *arguments: Any) -> dict[str, Any]:
    result = foreword("evaluate", *arguments, "--json")
    assert result.exit_code == 0, result.stderr
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def test_both_lower_the_perplexity_and_say_that_they_adapted(foreword: Foreword, model: Path, folder: Path) -> None:
    test, train = folder / "test.txt", folder / "train.txt"
    plain = told(foreword, model, test, "--carry")
    assert "adaptation" not in plain
    assert plain["documents"] == 1
    cache = told(foreword, model, test, "--neural-cache", "--tune", test)
    assert cache["perplexity"] < 0.95 * plain["perplexity"]
    assert cache["adaptation"]["kind"] == "neural-cache"
    assert set(cache["adaptation"]) == {"kind", "size", "theta", "weight", "tuned_on"}
    dynamic = told(foreword, model, test, "--dynamic", "--gradients", train, "--set", "steps=4", "--set", "rate=0.5")
    assert dynamic["perplexity"] < 0.95 * plain["perplexity"]
    assert dynamic["adaptation"]["rate"] == 0.5
    assert dynamic["tokens"] == cache["tokens"] == plain["tokens"]


def test_without_effect_they_are_the_plain_model(foreword: Foreword, model: Path, folder: Path) -> None:
    plain = told(foreword, model, folder / "test.txt", "--carry")["perplexity"]
    for still in (("--neural-cache", "--set", "weight=0"), ("--dynamic", "--set", "rate=0")):
        assert told(foreword, model, folder / "test.txt", *still)["perplexity"] == pytest.approx(plain, rel=1e-5)


def test_people_are_told_too(foreword: Foreword, model: Path, folder: Path) -> None:
    shown = foreword("evaluate", model, folder / "test.txt", "--neural-cache").stdout
    assert "neural cache: size 500, theta 0.3, weight 0.1" in shown


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--neural-cache", "--dynamic"), "one or the other"),
        (("--mc", "8", "--dynamic"), "one or the other"),
        (("--mc", "0"), "0 samples: expected at least 1"),
        (("--mc", "some"), "Invalid value for '--mc'"),
        (("--mc", "2", "--set", "samples=3"), "no setting 'samples'"),
        (("--mc", "2", "--set", "scale=9"), "dropout of input is 1.8"),
        (("--mc", "2", "--set", "scale=0.5", "--tune", "x"), "only seed can be set"),
        (("--tune", "x"), "is for --mc, --neural-cache and --dynamic"),
        (("--set", "rate=1"), "is for --mc, --neural-cache and --dynamic"),
        (("--neural-cache", "--gradients", "x"), "is for --dynamic"),
        (("--dynamic", "--set", "theta=1"), "has no setting 'theta'"),
        (("--neural-cache", "--set", "theta=1", "--tune", "x"), "only size can be set"),
    ],
)
def test_options_that_do_not_go_together(
    foreword: Foreword, model: Path, folder: Path, options: tuple[str, ...], said: str
) -> None:
    result = foreword("evaluate", model, folder / "test.txt", *options)
    assert result.exit_code == 2
    assert said in " ".join(result.stderr.split())


def test_counts_cannot_adapt_that_way(foreword: Foreword, model: Path, folder: Path) -> None:
    assert foreword("train", "unigram", folder / "train.txt", "-o", folder / "counts").exit_code == 0
    result = foreword("evaluate", folder / "counts", folder / "test.txt", "--dynamic")
    assert result.exit_code != 0
    assert "needs a neural language model, not a UnigramLM" in result.stderr
    result = foreword("evaluate", folder / "counts", folder / "test.txt", "--mc", "2")
    assert result.exit_code == 2
    assert result.stderr.strip() == "foreword: Monte Carlo dropout needs a recurrent language model, not a UnigramLM"


def test_monte_carlo_gives_the_same_fields_and_says_how_it_sampled(
    foreword: Foreword, model: Path, folder: Path
) -> None:
    test = folder / "test.txt"
    plain = told(foreword, model, test)
    still = told(foreword, model, test, "--mc", "2", "--set", "scale=0")
    how = still.pop("monte_carlo")
    assert how == {"kind": "mc", "samples": 2, "scale": 0.0, "temperature": 1.0, "seed": 0, "tuned_on": None}
    assert set(still) == set(plain)
    assert (still["documents"], still["tokens"]) == (plain["documents"], plain["tokens"])
    assert still["perplexity"] == pytest.approx(plain["perplexity"], rel=1e-5)
    assert told(foreword, model, test, "--mc", "2", "--carry")["documents"] == 1
    tuned = told(foreword, model, test, "--mc", "3", "--tune", test, "--set", "seed=7")["monte_carlo"]
    assert (tuned["seed"], tuned["tuned_on"]) == (7, str(test))
    shown = foreword("evaluate", model, test, "--mc", "3").stdout
    assert "samples 3, scale 0.7, temperature 1, seed 0" in shown
