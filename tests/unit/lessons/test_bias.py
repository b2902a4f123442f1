"""Bias: WEAT by hand, p-values by counting, a direction taken out, pairs made equal, clusters that remain."""

from __future__ import annotations

import json
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from foreword.errors import InputError, SettingError
from foreword.lessons.bias import (
    EXACT,
    WordSets,
    bias_direction,
    clustering_bias,
    debias,
    direct_bias,
    known_words,
    projections,
    read_word_sets,
    swapped,
    two_means,
    weat,
)
from foreword.text.datasets import dataset
from foreword.vectors.wordvectors import WordVectors

ANGLES: dict[str, float] = {
    "rose": 10,
    "lily": 20,
    "wasp": 80,
    "flea": 60,
    "love": 0,
    "peace": 30,
    "hate": 90,
    "ugly": 100,
}
GARDEN = WordSets(("rose", "lily"), ("wasp", "flea"), ("love", "peace"), ("hate", "ugly"))


def at_angles(angles: dict[str, float]) -> WordVectors:
    turned = np.radians(list(angles.values()))
    return WordVectors.of_words(angles, np.stack((np.cos(turned), np.sin(turned)), axis=1).astype(np.float32) * 3)


def cosine(one: str, other: str) -> float:
    return float(np.cos(np.radians(ANGLES[one] - ANGLES[other])))


def people(words: int = 200, dimensions: int = 12) -> tuple[WordVectors, list[tuple[str, str]], list[str]]:
    """Words that lean to either side of the first dimension, and those of the left half along the second too."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(words, dimensions)) * 0.3
    side = np.repeat([-1.0, 1.0], words // 2)
    rows[:, 0] += side * rng.uniform(0.3, 0.6, words)
    rows[:, 1] += side * 1.5
    pairs = [("she", "he"), ("woman", "man"), ("girl", "boy")]
    for number in range(len(pairs)):
        base = rng.normal(size=dimensions)
        for sign in (1.0, -1.0):
            row = base.copy()
            row[0] += 2 * sign + 0.1 * number
            rows = np.vstack((rows, row))
    neutral = [f"word{row}" for row in range(words)]
    return (
        WordVectors.of_words([*neutral, *(w for pair in pairs for w in pair)], rows.astype(np.float32)),
        pairs,
        neutral,
    )


def test_weat_is_what_the_formula_gives_by_hand() -> None:
    """Row E17: every number of the test from cosines of known angles."""
    score = {
        word: (cosine(word, "love") + cosine(word, "peace")) / 2 - (cosine(word, "hate") + cosine(word, "ugly")) / 2
        for word in (*GARDEN.x, *GARDEN.y)
    }
    found = weat(at_angles(ANGLES), GARDEN)
    values = np.array(list(score.values()))
    assert found.statistic == pytest.approx(score["rose"] + score["lily"] - score["wasp"] - score["flea"], abs=1e-6)
    assert found.effect == pytest.approx((values[:2].mean() - values[2:].mean()) / values.std(ddof=1), abs=1e-6)
    assert found.exact
    assert found.p_value == pytest.approx(1 / 6)  # of six ways to divide four words, this one lies furthest apart
    assert found.to_json()["sizes"] == [2, 2, 2, 2]
    turned = weat(at_angles(ANGLES), WordSets(GARDEN.y, GARDEN.x, GARDEN.a, GARDEN.b))
    assert turned.effect == pytest.approx(-found.effect)
    assert turned.p_value == 1


def test_p_values_count_divisions_all_or_many() -> None:
    rng = np.random.default_rng(1)
    names = [f"w{number}" for number in range(44)]
    vectors = WordVectors.of_words(names, rng.normal(size=(44, 5)).astype(np.float32))
    small = WordSets(tuple(names[:6]), tuple(names[6:12]), tuple(names[12:16]), tuple(names[16:20]))
    found = weat(vectors, small)
    unit = vectors.directions().astype(np.float64)
    score = (unit[:12] @ unit[12:16].T).mean(axis=1) - (unit[:12] @ unit[16:20].T).mean(axis=1)
    sums = [score[list(chosen)].sum() for chosen in combinations(range(12), 6)]
    assert found.p_value == pytest.approx(np.mean(np.array(sums) >= score[:6].sum() - 1e-9))
    large = WordSets(tuple(names[:20]), tuple(names[20:40]), tuple(names[40:42]), tuple(names[42:]))
    sampled = weat(vectors, large, samples=20_000)
    assert not sampled.exact
    assert 0 < sampled.p_value < 1
    assert sampled == weat(vectors, large, samples=20_000)
    assert sampled.p_value == pytest.approx(weat(vectors, large, samples=20_000, seed=1).p_value, abs=0.02)


def test_words_without_vectors_are_told_and_too_few_refused() -> None:
    vectors = at_angles(ANGLES)
    found = weat(vectors, WordSets(("Rose", "lily", "tulip"), GARDEN.y, GARDEN.a, GARDEN.b))
    assert found.missing == ("tulip",)
    assert found.sizes == (2, 2, 2, 2)
    with pytest.raises(InputError, match="too few of the words have vectors: 0, 2, 2, 2"):
        weat(vectors, WordSets(("tulip",), GARDEN.y, GARDEN.a, GARDEN.b))
    assert known_words(vectors, ["Rose", "rose", "tulip"]) == ["rose"]


def test_the_direction_is_what_pairs_differ_in() -> None:
    vectors, pairs, _ = people()
    direction = bias_direction(vectors, pairs)
    assert np.linalg.norm(direction) == pytest.approx(1)
    assert direction[0] > 0.95
    assert bias_direction(vectors, [pair[::-1] for pair in pairs])[0] < -0.95
    with pytest.raises(InputError, match="none of the 1 pairs"):
        bias_direction(vectors, [("nobody", "he")])
    with pytest.raises(InputError, match="is not a pair of words"):
        bias_direction(vectors, [("she", "he", "they")])


def test_direct_bias_by_hand() -> None:
    """Row E17: the mean of |cos| to the power c."""
    vectors = at_angles({"nurse": 0, "doctor": 60, "clerk": 90})
    along = np.array([1.0, 0.0])
    assert direct_bias(vectors, ["nurse", "doctor", "clerk", "nobody"], along) == pytest.approx(0.5, abs=1e-6)
    assert direct_bias(vectors, ["nurse", "doctor"], along, strictness=2) == pytest.approx((1 + 0.25) / 2, abs=1e-6)
    with pytest.raises(InputError, match="none of the words"):
        direct_bias(vectors, ["nobody"], along)
    with pytest.raises(SettingError, match="strictness=-1"):
        direct_bias(vectors, ["nurse"], along, strictness=-1)


def test_neutral_words_lose_the_direction_and_pairs_become_equal() -> None:
    """Row E18: components below 1e-6; the two of a pair as far from every neutral word; words about it keep it."""
    vectors, pairs, neutral = people()
    direction = bias_direction(vectors, pairs)
    after = debias(vectors, direction, specific=["word0"], equal=pairs[:2])
    rest = neutral[1:]
    assert np.abs(projections(after, rest, direction)).max() < 1e-6
    assert direct_bias(after, rest, direction) < 1e-6 < direct_bias(vectors, rest, direction)
    np.testing.assert_allclose(after["word0"], vectors.directions()[0], atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(after.matrix, axis=1), 1, atol=1e-6)
    for she, he in pairs[:2]:
        assert projections(after, [she], direction)[0] == pytest.approx(-projections(after, [he], direction)[0])
        for word in rest[:20]:
            assert after.similarity(word, she) == pytest.approx(after.similarity(word, he), abs=1e-6)
    assert abs(projections(after, ["girl"], direction)[0]) < 1e-6  # a word like any other, if nobody says so
    with pytest.raises(SettingError, match=r"a direction of shape \(3,\)"):
        debias(vectors, np.ones(3))


def test_words_that_leaned_alike_still_lie_together() -> None:
    """Row E18: one direction is gone, and clusters still tell the sides apart."""
    vectors, pairs, neutral = people()
    direction = bias_direction(vectors, pairs)
    after = debias(vectors, direction, equal=pairs)
    assert clustering_bias(vectors, vectors, direction, neutral, 60) > 0.95
    assert clustering_bias(vectors, after, direction, neutral, 60) > 0.95
    rng = np.random.default_rng(0)
    noise = WordVectors.of_words(vectors.words, rng.normal(size=vectors.matrix.shape).astype(np.float32))
    assert clustering_bias(vectors, noise, direction, neutral, 60) < 0.7
    with pytest.raises(InputError, match="fewer than two"):
        clustering_bias(vectors, after, direction, ["word0"])


def test_two_means_finds_two_heaps() -> None:
    rng = np.random.default_rng(0)
    rows = np.concatenate((rng.normal(size=(30, 3)), rng.normal(size=(50, 3)) + 8))
    found = two_means(rows)
    assert len(set(found[:30].tolist())) == len(set(found[30:].tolist())) == 1
    assert found[0] != found[-1]


@pytest.mark.data
def test_the_published_lists_are_read() -> None:
    bias = dataset("bias")
    for split, sizes in (("weat1", (25, 25, 25, 25)), ("weat6", (8, 8, 8, 8)), ("weat7", (8, 8, 8, 8))):
        sets = read_word_sets(bias.path(split, download=False))
        assert tuple(map(len, (sets.x, sets.y, sets.a, sets.b))) == sizes
    assert sets.names == ("Math", "Arts", "MaleTerms", "FemaleTerms")
    assert len(json.loads(bias.path("definitional-pairs", download=False).read_text())) == 10
    assert EXACT > 12870  # the ways to divide 16 words in two: most of the lists are tested exactly


def test_a_file_that_holds_no_lists_is_one_line(tmp_path: Path) -> None:
    for text in ("", "[]", '{"targ1": {}}', '{"targ1": 3, "targ2": 3, "attr1": 3, "attr2": 3}'):
        (tmp_path / "sets.json").write_text(text)
        with pytest.raises(InputError, match="expected a JSON object with targ1"):
            read_word_sets(tmp_path / "sets.json")


def test_two_words_of_a_pair_change_places() -> None:
    pairs = [("he", "she"), ("his", "her"), ("him", "her")]
    assert swapped("she gave him her book and he his", pairs) == "he gave her his book and she her"
    assert swapped(swapped("he and she", pairs), pairs) == "he and she"
