"""Pieces of long documents, percentiles, histograms: what stands beside the models."""

from __future__ import annotations

import math

import numpy as np
import pytest

from foreword.classify.naive_bayes import NaiveBayes
from foreword.fasttext.classifier import FastTextClassifier
from foreword.filtering.columns import Column, find_column
from foreword.filtering.pieces import batches_of, cut
from foreword.filtering.scoring import scorer_of
from foreword.filtering.summary import VALUE, Tally, best_shares, described, edges, histogram, sortable, unsortable
from foreword.ngram.model import NgramLM
from foreword.pipeline.classifier import TextClassifier
from foreword.pipeline.language import TextLM
from foreword.text.block import Block
from foreword.tokens.words import WordTokenizer

TEXTS = ["the cat sat on the mat", "der Hund lag auf der Matte", "a dog and a cat", "ein Hund und eine Katze"]


def test_long_documents_are_cut_at_white_space() -> None:
    texts = ["a bc def ghij klmno", "", "ééééééééé", "x", "word " * 50]
    pieces, owners = cut(Block.from_texts(texts), 8)
    assert owners is not None
    found: dict[int, list[str]] = {}
    for owner, piece in zip(owners.tolist(), pieces.strings(), strict=True):
        assert len(piece.encode()) <= 8
        found.setdefault(owner, []).append(piece)
    assert ["".join(found[number]) for number in range(5)] == texts
    assert found[0] == ["a bc ", "def ", "ghij ", "klmno"]
    assert found[2] == ["éééé", "éééé", "é"]
    assert cut(Block.from_texts(["short"]), 8)[1] is None


def test_batches_hold_all_documents_in_order() -> None:
    block = Block.from_texts([str(number) * (number % 7) for number in range(100)])
    parts = list(batches_of(block, 20))
    assert [text for part in parts for text in part.strings()] == list(block.strings())
    assert max(part.text_bytes() for part in parts) <= 20
    assert [len(part) for part in batches_of(Block.from_texts([]), 20)] == [0]


def test_pieces_of_a_language_model_are_weighted_by_tokens() -> None:
    model = TextLM(WordTokenizer(), NgramLM(2, "witten-bell")).fit(TEXTS)
    long = "the cat sat on the dog " * 300
    scorer = scorer_of(model, "", "", 1024)
    score, tokens, _, perplexity = scorer.columns(Block.from_texts(["the cat", long, " "]))
    pieces, _ = cut(Block.from_texts([long]), 1024)
    logs = [model.score(text) for text in pieces.strings()]
    assert score.values[1] == pytest.approx(sum(logs))
    assert tokens.values.tolist() == [3, 1800 + len(logs), 0]
    assert perplexity.values[1] == pytest.approx(math.exp(-sum(logs) / tokens.values[1]))
    assert score.values[0] == pytest.approx(model.score("the cat"))
    assert math.isnan(perplexity.values[2])


@pytest.mark.parametrize("kind", ["fasttext", "naive-bayes"])
def test_pieces_of_a_classifier_are_weighted_by_bytes(kind: str) -> None:
    labels = ["en", "de", "en", "de"]
    model: FastTextClassifier | TextClassifier
    if kind == "fasttext":
        model = FastTextClassifier(4, epochs=100, rate=0.5, buckets=50).fit(TEXTS, labels)
    else:
        model = TextClassifier(model=NaiveBayes()).fit(TEXTS, labels)
    long = "the cat sat\n" * 100 + "der Hund lag\n" * 30
    label, probability = scorer_of(model, "", "lid_", 1024).columns(Block.from_texts(["ein Hund", long, "\n"]))
    assert (label.name, probability.name) == ("lid_label", "lid_probability")
    pieces, _ = cut(Block.from_texts([long.replace("\n", " ")]), 1024)
    weights = np.array([len(text.encode()) for text in pieces.strings()])
    chances = weights @ np.exp(model.predict_log_proba(list(pieces.strings()))) / weights.sum()
    assert model.classes_[label.values[1]] == model.classes_[chances.argmax()]
    assert probability.values[1] == pytest.approx(chances.max(), abs=1e-4)
    assert [model.classes_[place] for place in label.values[:1]] == model.predict(["ein Hund"])
    assert label.values[2] == -1
    assert math.isnan(probability.values[2])


@pytest.mark.parametrize("low", [True, False])
def test_percentiles_are_those_of_sorting(low: bool) -> None:
    rng = np.random.default_rng(0)
    values = np.zeros(5000, VALUE)
    values["value"] = np.concatenate(
        (rng.normal(size=2500), rng.integers(-3, 3, 2400), [np.inf, -np.inf, 0.0, -0.0] * 25)
    )
    values["label"] = rng.integers(-1, 200, 5000)
    names = [f"l{number}" for number in range(200)]

    def read() -> list[np.ndarray]:
        return [values[:1000], values[1000:1000], values[1000:]]

    def wanted(numbers: np.ndarray, percent: float) -> float:
        ranked = np.sort(numbers) if low else np.sort(numbers)[::-1]
        return float(ranked[max(1, math.ceil(len(numbers) * percent / 100)) - 1])

    percents = (0.001, 10.0, 33.3, 60.0, 100.0)
    assert best_shares(read, percents, low, None) == {"*": tuple(wanted(values["value"], p) for p in percents)}
    found = best_shares(read, (30.0, 60.0), low, names)
    for place, name in enumerate(names):
        mine = values["value"][values["label"] == place]
        assert found[name] == (wanted(mine, 30.0), wanted(mine, 60.0))
    assert best_shares(lambda: [], (10.0,), low, None) == {}


def test_sortable_numbers_sort_as_the_values_do() -> None:
    values = np.array([-np.inf, -1e300, -1.5, -1e-300, 0.0, 1e-300, 1.5, np.inf])
    assert (np.diff(sortable(values).astype(object)) > 0).all()
    assert np.array_equal(unsortable(sortable(values)), values)


def test_tallies_add_up_and_are_drawn() -> None:
    columns = [
        Column("label", np.array([0, 1, 0, -1], np.int32), ["en", "d&e"]),
        Column("probability", np.array([0.5, 1.0, 0.0, np.nan])),
        Column("perplexity", np.array([10.0, 99.9, np.inf, np.nan])),
        Column("tokens", np.array([1, 2, 3, 4])),
    ]
    tally = Tally(documents=4)
    tally.count(columns)
    assert tally.histograms["label"] == {"en": 2, "d&e": 1}
    assert tally.histograms["probability"] == {"0": 1, "25": 1, "49": 1}
    assert tally.histograms["perplexity"] == {"8": 1, "15": 1}
    low, high = edges("perplexity", 15)
    assert low <= 99.9 < high
    whole = Tally.from_json(tally.to_json())
    whole.add(tally)
    assert whole.documents == 8
    assert whole.histograms["label"] == {"en": 4, "d&e": 2}
    for name in ("label", "probability", "perplexity"):
        assert "<svg" in histogram(whole, name).markup
    assert "d&amp;e" in histogram(whole, "label").markup
    assert find_column(columns, "tokens") is columns[3]


def test_the_spread_of_scores_is_told_in_a_line_each() -> None:
    labels = dict(zip("abcdefg", (60, 20, 10, 5, 3, 1, 1), strict=True))
    tally = Tally(
        100, 10, histograms={"m_label": labels, "p_perplexity": {"8": 1, "9": 80, "11": 40}, "p_score": {"8": 9}}
    )
    *_, of_labels, of_numbers = described(tally)
    assert of_labels == "m_label       a 60%, b 20%, c 10%, d 5%, e 3%, 2 others"
    assert of_numbers == "p_perplexity  10.0 ▁█ ▄ 31.6, half below 17.8"
    wide = described(Tally(histograms={"perplexity": {"0": 1, "399": 1}}))[-1]
    assert wide.count("█") == 2
    assert wide.count(" " * 38) == 1


@pytest.mark.parametrize("name", ["label", "q_label", "label_2", "q_label_10", "bucket"])
def test_labels_that_are_numbers_are_counted_and_not_taken_for_bins(name: str) -> None:
    """A column is one of labels by its name; labels may be numbers, such as FineWeb-Edu's grades, or words, or both."""
    tally = Tally(documents=4)
    tally.count([Column(name, np.array([0, 0, 1, 0], np.int32), ["1", "spam"])])
    assert described(tally)[-1] == f"{name}  1 75%, spam 25%"
    assert "1 is the most frequent, 75% of 4 documents." in histogram(tally, name).caption
    only = Tally(histograms={name: {"1": 7}})
    assert described(only)[-1] == f"{name}  1 100%"
    assert "logarithmic" not in histogram(only, name).caption


def test_a_median_of_nothing_is_shown_as_nothing() -> None:
    tally = Tally(documents=3)
    tally.count([Column("symbol_ratio", np.array([0.0, 0.0, 0.5]))])
    assert described(tally)[-1].startswith("symbol_ratio  0.00 ")
    assert described(tally)[-1].endswith(", half 0")
    assert "half of them are 0, on" in histogram(tally, "symbol_ratio").caption


def test_one_document_is_not_documents() -> None:
    assert described(Tally(documents=1, kept=1))[0] == "1 document, 1 kept (100%)"
