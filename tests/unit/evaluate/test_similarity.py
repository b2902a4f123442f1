"""Word similarity: ranks, correlations, and words without a vector."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from foreword.errors import InputError
from foreword.evaluate.vectors import measure_similarity, pearson, ranks, read_pairs, spearman
from foreword.vectors.subwords import SubwordTable
from foreword.vectors.wordvectors import WordVectors


def some_vectors() -> WordVectors:
    rows = [[1, 0], [0.9, 0.1], [0, 1], [-1, 0.2]]
    return WordVectors.of_words(["cat", "dog", "sky", "Rock"], np.array(rows, np.float32))


def test_equals_share_their_ranks() -> None:
    assert ranks(np.array([3.0, 1, 3, 2, 3])).tolist() == [4, 1, 4, 2, 4]
    assert ranks(np.array([])).tolist() == []


def test_correlations_are_scipys() -> None:
    stats = pytest.importorskip("scipy.stats")
    rng = np.random.default_rng(0)
    for _ in range(20):
        one, other = rng.integers(0, 9, 30).astype(float), rng.normal(size=30)
        assert spearman(one, other) == pytest.approx(stats.spearmanr(one, other)[0], abs=1e-12)
        assert pearson(one, other) == pytest.approx(stats.pearsonr(one, other)[0], abs=1e-12)


def test_nothing_to_compare_is_not_a_number() -> None:
    assert math.isnan(spearman(np.array([1.0]), np.array([2.0])))
    assert math.isnan(spearman(np.array([1.0, 1]), np.array([2.0, 3])))
    found = measure_similarity(some_vectors(), [("cat", "nobody", 1.0)])
    assert math.isnan(found.spearman)
    assert found.to_json()["spearman"] is None


def test_words_without_a_vector_are_counted() -> None:
    pairs = [("cat", "dog", 9.0), ("cat", "sky", 2.0), ("CAT", "rock", 1.0), ("cat", "zebra", 5.0)]
    found = measure_similarity(some_vectors(), pairs, name="some")
    assert (found.name, found.pairs, found.oov) == ("some", 3, 1)
    assert found.spearman == pytest.approx(1)
    assert measure_similarity(some_vectors(), pairs, ignore_case=False).oov == 2
    assert measure_similarity(some_vectors(), pairs, vocabulary=2).oov == 3


def test_parts_of_words_help_only_if_asked() -> None:
    table = SubwordTable(np.random.default_rng(0).normal(size=(50, 2)).astype(np.float32), 3, 4, 50)
    known = some_vectors()
    vectors = WordVectors(known.rows, known.data, known.offsets, table)
    pairs = [("cat", "dog", 9.0), ("cat", "catlike", 8.0), ("sky", "dog", 1.0)]
    assert measure_similarity(vectors, pairs).oov == 1
    assert measure_similarity(vectors, pairs, compose=True).oov == 0


def test_pairs_are_read_or_the_line_is_told(tmp_path: Path) -> None:
    path = tmp_path / "pairs.txt"
    path.write_text("# remark\ncat\tdog\t9.5\n\ncat sky 2\n")
    assert read_pairs(path) == [("cat", "dog", 9.5), ("cat", "sky", 2.0)]
    for bad in ("cat dog\n", "cat dog much\n", "cat dog 1 2\n"):
        path.write_text(f"cat sky 2\n{bad}")
        with pytest.raises(InputError, match="line 2: expected two words and a number"):
            read_pairs(path)
