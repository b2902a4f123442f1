"""What the sources say of GloVe: rows E07 and E08."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest

from foreword.text.datasets import find
from foreword.text.embedded import embedded_text
from foreword.text.sources import read_documents
from foreword.tokens.corpus import Corpus
from foreword.tokens.words import WordTokenizer
from foreword.vectors.cooccurrence import Cooccurrence
from foreword.vectors.glove import GloVe, residuals

Report = Callable[[str, object], None]

PAPER = {"solid": 8.9, "gas": 0.085, "water": 1.36, "fashion": 0.96}
"""P(word | ice) / P(word | steam) in a text of six thousand million words (Pennington et al. 2014, table 1)."""


def test_e07_two_vectors_and_two_biases_make_the_log_of_the_count(record_property: Report) -> None:
    """E07: w_i·w̃_j + b_i + b̃_j = log X_ij, by weighted least squares: the loss falls, and what is left of frequent
    pairs is small beside what there was to explain.
    """
    texts = list(embedded_text())
    corpus = Corpus.from_texts(texts, WordTokenizer(lowercase=True, min_count=10).fit(texts))
    model = GloVe(50, window=5, epochs=15)
    X = model.count(corpus)
    losses = [step.loss for step in model.train(X)]
    per_epoch = len(losses) // model.epochs
    means = [float(np.mean(losses[first : first + per_epoch])) for first in range(0, len(losses), per_epoch)]
    frequent = residuals(model, X, least=model.x_max)
    spread = float(np.std(np.log(X.counts[X.counts >= model.x_max])))
    explained = 1 - (frequent.weighted / spread) ** 2
    record_property("E07 loss in the first and the last epoch", f"{means[0]:.4f}, {means[-1]:.4f}")
    record_property("E07 residual of pairs seen 10 times and more", f"{frequent.weighted:.3f} of {frequent.pairs}")
    record_property("E07 share of the variance of their logs explained", f"{explained:.1%}")
    assert means == sorted(means, reverse=True)
    assert means[-1] < means[0] / 2
    assert explained > 0.75


@pytest.mark.data
def test_e08_ice_steam_and_what_stands_near_them(record_property: Report) -> None:
    """E08: solid goes with ice, gas with steam, water with both, fashion with neither.

    Only documents that have one of the two words matter for what is counted here, so only they are counted. In sixteen
    million words "fashion" stands near neither, so that it has no ratio; that common words have one near 1 is shown by
    some which there are many of.
    """
    either = re.compile(r"\b(?:ice|steam)\b", re.IGNORECASE)
    texts = [text for text in read_documents(str(find("enwiki:all"))) if either.search(text)]
    tokenizer = WordTokenizer(split="punctuation", lowercase=True).fit(texts)
    X = Cooccurrence.of(Corpus.from_texts(texts, tokenizer), 15)
    ratios = {}
    for word in (*PAPER, "snow", "engine", "of", "and"):
        near = X[word, "ice"], X[word, "steam"]
        given = X.probability(word, "ice"), X.probability(word, "steam")
        ratios[word] = given[0] / given[1] if given[1] else None
        shown = "no ratio" if ratios[word] is None else f"{ratios[word]:.3g}"
        record_property(f"E08 {word}", f"{shown} (X {near[0]:.2f} and {near[1]:.2f}; paper {PAPER.get(word, '–')})")
    assert ratios["solid"] is not None
    assert ratios["solid"] > 2
    assert ratios["gas"] is not None
    assert ratios["gas"] < 0.25
    assert ratios["water"] == pytest.approx(PAPER["water"], rel=0.25)
    assert X["fashion", "ice"] == X["fashion", "steam"] == 0.0
    assert ratios["snow"] is not None
    assert ratios["snow"] > 10
    assert ratios["engine"] is not None
    assert ratios["engine"] < 0.02
    assert ratios["of"] == pytest.approx(1, rel=0.1)
    assert ratios["and"] == pytest.approx(1, rel=0.1)
