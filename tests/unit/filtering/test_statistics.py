"""Statistics of texts: the kernel against the plain version, and by hand."""

from __future__ import annotations

import random

import numpy as np
import pytest

from foreword.filtering.plain import text_statistics
from foreword.filtering.statistics import NAMES, StatisticsScorer
from foreword.text.block import Block


def measured(texts: list[str], names: tuple[str, ...] = NAMES) -> dict[str, list[float]]:
    return {column.name: column.values.tolist() for column in StatisticsScorer(names).columns(Block.from_texts(texts))}


def test_by_hand() -> None:
    found = {name: values[0] for name, values in measured(["- the cat…\nthe cat\n\nthe cat\n# of 12"]).items()}
    assert found["words"] == 10
    assert found["characters"] == 35
    assert found["lines"] == 4
    assert found["mean_word_length"] == pytest.approx(2.5)
    assert found["symbol_ratio"] == pytest.approx(0.1)
    assert found["alphabetic_words"] == pytest.approx(0.7)
    assert found["stop_words"] == 2
    assert found["bullet_lines"] == found["ellipsis_lines"] == found["duplicate_lines"] == 0.25
    assert found["duplicate_line_characters"] == pytest.approx(7 / 35)
    assert found["top_2_gram"] == pytest.approx(2 * 7 / 35)
    assert found["duplicate_5_grams"] == 0


def test_the_kernel_agrees_with_the_plain_version() -> None:
    rng = random.Random(1)
    words = ["the", "of", "a", "to", "cat", "…", "...", "#", "-", "•", "é", "ß", "日本", "word,", "x1", "42", "\x1c"]
    texts = ["", " ", "a", "the " * 12]
    for _ in range(300):
        spaces = [" ", "  ", "\n", " \n\n", "\u3000", "\t"]
        texts.append("".join(rng.choice(words) + rng.choice(spaces) for _ in range(rng.randint(1, 80))))
    found, expected = measured(texts), list(map(text_statistics, texts))
    assert list(found) == list(expected[0])
    for name, values in found.items():
        np.testing.assert_allclose(values, [each[name] for each in expected], rtol=1e-12, err_msg=name)


def test_only_what_is_asked_for_is_returned_in_that_order() -> None:
    assert list(measured(["a b"], ("top_3_gram", "words"))) == ["top_3_gram", "words"]
    assert StatisticsScorer.of(["perplexity", "words", "label", "words"]).names == ("words",)
    assert StatisticsScorer(()).columns(Block.from_texts(["a"])) == []
