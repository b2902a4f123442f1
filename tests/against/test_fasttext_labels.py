"""Probabilities of every label against fastText itself: all losses, restricted and not, and OpenLID's cleaning."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("fasttext", reason="fasttext is not installed (it needs a C++ compiler)")

import fasttext
from tests.against.test_fasttext import LANGUAGES, lines

from foreword.fasttext.classifier import FastTextClassifier
from foreword.fasttext.files import write_fasttext
from foreword.fasttext.quantize import quantize
from foreword.filtering.columns import find_column
from foreword.filtering.scoring import scorer_of
from foreword.filtering.settings import LabelSettings
from foreword.text.block import Block
from foreword.text.cleaning import Cleaner, clean_text


@pytest.fixture(scope="module", params=["softmax", "one-vs-all", "hierarchical-softmax", "quantised"])
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, FastTextClassifier]:
    """A model of 38 languages with each loss, in a file that both open."""
    path = tmp_path_factory.mktemp("labels") / ("model.ftz" if request.param == "quantised" else "model.bin")
    texts = [line.split("\t") for line in LANGUAGES.read_text(encoding="utf-8").splitlines()]
    loss: Any = "softmax" if request.param == "quantised" else request.param
    model = FastTextClassifier(8, loss=loss, epochs=30, rate=0.2, min_n=2, max_n=3, buckets=2000)
    model.fit([text for _, text in texts], [label for label, _ in texts])
    if request.param == "quantised":
        write_fasttext(quantize(model), path)
    else:
        model.write(path)
    return fasttext.load_model(str(path)), FastTextClassifier.load(path)


def all_of(model: Any, text: str) -> dict[str, float]:
    """Return what ``model.predict(text, k=-1)`` would if it worked under NumPy 2."""
    return {label.removeprefix("__label__"): p for p, label in model.f.predict(text + "\n", -1, 0.0, "strict")}


def test_the_probability_of_every_label_is_fasttexts(pair: tuple[Any, FastTextClassifier]) -> None:
    """Issue 19, section 4: all labels' probabilities equal fasttext's to 1e-6."""
    theirs, ours = pair
    texts = [text.replace("\n", " ") for _, text in lines() if text.strip() and "\0" not in text]
    names = tuple(ours.classes_)
    columns = scorer_of(ours, "", "lid_", 1 << 20, LabelSettings(3, names)).columns(Block.from_texts(texts))
    found = np.array([find_column(columns, f"lid_p({name})").values for name in names]).T
    for row, text in enumerate(texts):
        wanted = all_of(theirs, text)
        if not wanted:
            assert np.isnan(found[row]).all()
            continue
        expected = np.array([wanted.get(name, 0.0) for name in names])
        assert np.abs(found[row] - expected).max() <= 1e-6
        best = sorted(wanted.items(), key=lambda item: -item[1])[:3]
        for rank, (_, p) in enumerate(best):
            after = f"_{rank + 1}" if rank else ""
            column = find_column(columns, f"lid_label{after}")
            label = names[column.values[row]]
            assert wanted[label] == pytest.approx(p, abs=1e-6)
            assert find_column(columns, f"lid_probability{after}").values[row] == pytest.approx(p, abs=1e-6)


def test_labels_are_restricted_before_or_after_the_softmax(pair: tuple[Any, FastTextClassifier]) -> None:
    theirs, ours = pair
    some = ("deu", "fra", "nld") if "deu" in ours.classes_ else tuple(sorted(ours.classes_)[3:9:2])
    texts = [text.replace("\n", " ") for _, text in lines()[:400] if text.strip()]
    is_tree = ours.model.answers.tree
    modes = (False,) if is_tree else (False, True)
    for before in modes:
        settings = LabelSettings(1, some, some, before)
        columns = scorer_of(ours, "", "", 1 << 20, settings).columns(Block.from_texts(texts))
        label, probability = find_column(columns, "label"), find_column(columns, "probability")
        for row, text in enumerate(texts):
            chances = {name: all_of(theirs, text)[name] - 1e-5 for name in some}
            total = sum(chances.values()) if before and ours.model.answers.softmax else 1.0
            best = max(chances, key=lambda name: chances[name])
            named = {name: find_column(columns, f"p({name})").values[row] for name in some}
            for name in some:
                assert named[name] == pytest.approx(chances[name] / total + 1e-5, rel=2e-4, abs=2e-6)
            assert named[str(ours.classes_[label.values[row]])] >= named[best] - 2e-6
            assert probability.values[row] == pytest.approx(max(named.values()), abs=1e-6)


def test_cleaning_is_openlids() -> None:
    """Its two regular expressions, by the package that it uses, on every character there is and on random texts."""
    regex = pytest.importorskip("regex", reason="regex is not installed")
    import unicodedata

    other, spaces = regex.compile(r"[^\p{Word}\p{Zs}]|\d"), regex.compile(r"\s\s+")

    def theirs(text: str) -> str:
        return str(other.sub("", spaces.sub(" ", text.strip().replace("\n", " ").lower())))

    # Characters that this Python does not know yet are left out: the other package is newer.
    known = [chr(code) for code in range(0x110000) if unicodedata.category(chr(code)) not in ("Cn", "Cs")]
    assert [each for each in known if clean_text(f"a{each}b", "openlid") != theirs(f"a{each}b")] == []
    rng, pool = random.Random(3), known[:0x500] + list(" \n\t\u3000\u2028Σ1.") * 40
    texts = ["".join(rng.choices(pool, k=rng.randint(0, 30))) for _ in range(2000)]
    assert list(Cleaner("openlid")(Block.from_texts(texts)).strings()) == list(map(theirs, texts))


def test_predictions_of_cleaned_texts(pair: tuple[Any, FastTextClassifier], tmp_path: Path) -> None:
    """A text that OpenLID's step has cleaned is classified as fastText classifies the cleaned text."""
    from foreword.filtering.scoring import CleanedScorer

    theirs, ours = pair
    texts = [text for _, text in lines()[:200]]
    scorer = CleanedScorer(scorer_of(ours, "", "", 1 << 20), Cleaner("openlid"))
    label, probability = scorer.columns(Block.from_texts(texts))[:2]
    for row, text in enumerate(texts):
        cleaned = clean_text(text, "openlid")
        wanted = theirs.f.predict(cleaned + "\n", 1, 0.0, "strict") if cleaned.strip() else []
        assert (label.values[row] >= 0) == bool(wanted)
        if wanted:
            assert probability.values[row] == pytest.approx(wanted[0][0], abs=1e-6)
