"""WordVectors: words and rows, three precisions, the nearest by the fast road and the plain one, what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
from numpy.typing import NDArray

import foreword
from foreword.errors import InputError, SettingError
from foreword.protocols import Parts
from foreword.vectors import words as words_module
from foreword.vectors.rows import MANY, Stored, VectorRows
from foreword.vectors.words import SubwordTable
from foreword.vectors.wordvectors import WordVectors

STORED: tuple[Stored, ...] = get_args(Stored)
CLOSE = {"float32": 2e-6, "float16": 2e-6, "int8": 3e-5}
"""How far the fast road may be from the plain one, on the same stored numbers."""


def random_vectors(rows: int, dimensions: int, seed: int = 0) -> WordVectors:
    matrix = np.random.default_rng(seed).normal(size=(rows, dimensions)).astype(np.float32)
    return WordVectors.of_words([f"w{row}" for row in range(rows)], matrix)


def square() -> WordVectors:
    """Royal, female, human: man and woman, king and queen at the corners of a square; an apple elsewhere."""
    corners = [[0, 0, 1], [0, 1, 1], [1, 0, 1], [1, 1, 1], [-1, -0.5, -0.2]]
    return WordVectors.of_words(["man", "woman", "king", "queen", "apple"], np.array(corners, np.float32))


SHAPES = [(1, 3, 1), (7, 5, 2), (1025, 33, 1), (2050, 32, 4), (1500, 17, 70), (5000, 300, 5), (4100, 16, 1)]


@pytest.mark.parametrize("stored", STORED)
@pytest.mark.parametrize(("rows", "dimensions", "queries"), SHAPES)
def test_the_fast_road_finds_what_the_plain_one_does(stored: Stored, rows: int, dimensions: int, queries: int) -> None:
    held = random_vectors(rows, dimensions).rows.stored_as(stored)
    asked = np.random.default_rng(1).normal(size=(queries, dimensions)).astype(np.float32)
    places, cosines = held.nearest(asked, 10)
    assert places.shape == (queries, min(10, rows))
    for query, found, scores in zip(asked, places, cosines, strict=True):
        plain = held.cosines(query)
        np.testing.assert_allclose(np.sort(plain)[::-1][:10], scores, atol=CLOSE[stored])
        np.testing.assert_allclose(plain[found], scores, atol=CLOSE[stored])
        assert len(set(found.tolist())) == len(found)


@pytest.mark.parametrize("stored", STORED)
def test_many_neighbours_and_none(stored: Stored) -> None:
    held = random_vectors(MANY + 50, 4).rows.stored_as(stored)
    query = np.ones((1, 4), np.float32)
    few, many = held.nearest(query, MANY), held.nearest(query, MANY + 49)
    np.testing.assert_allclose(few[1][0], many[1][0, :MANY], atol=CLOSE[stored])
    assert held.nearest(query, 0)[0].shape == (1, 0)
    assert held.nearest(query[:0], 3)[0].shape == (0, 3)


@pytest.mark.parametrize("stored", STORED)
def test_equals_stand_in_their_order(stored: Stored) -> None:
    matrix = np.tile(np.array([[1, 2, 3]], np.float32), (3000, 1))
    places, _ = VectorRows(matrix).stored_as(stored).nearest(np.ones((2, 3), np.float32), 5)
    assert places.tolist() == [[0, 1, 2, 3, 4]] * 2


def test_a_quarter_of_the_room_moves_a_cosine_by_less_than_a_hundredth() -> None:
    exact = random_vectors(3000, 100)
    query = exact["w0"]
    for stored, share, most in (("float16", 0.5, 1e-3), ("int8", 0.26, 1e-2)):
        small = exact.stored_as(stored)  # type: ignore[arg-type]
        assert small.rows.nbytes <= share * exact.rows.nbytes
        np.testing.assert_allclose(small.rows.cosines(query), exact.rows.cosines(query), atol=most)
        assert small.stored_as(stored) is not small  # type: ignore[arg-type]
        assert [word for word, _ in small.nearest("w0", 3)] == [word for word, _ in exact.nearest("w0", 3)]
        np.testing.assert_allclose(small["w7"], exact["w7"], atol=0.02)


def test_every_float16_is_read_as_numpy_reads_it() -> None:
    every = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    finite = every[np.isfinite(every)]
    for width in (1, 3, 16, 37):
        halves = finite[: len(finite) // width * width].reshape(-1, width)
        np.testing.assert_array_equal(VectorRows(halves).floats(slice(None)), halves.astype(np.float32))


def test_words_are_found_with_and_without_a_table(monkeypatch: pytest.MonkeyPatch) -> None:
    names: list[str | bytes] = ["the", "th", "then", "", "naïve", b"\xff\xfe", "the", "a" * 40, "a" * 41]
    matrix = np.arange(len(names), dtype=np.float32)[:, None]
    monkeypatch.setattr(words_module, "SMALL", 0)
    expected = {"the": 0, "th": 1, "then": 2, "": 3, "naïve": 4, "\udcff\udcfe": 5, "a" * 40: 7, "a" * 41: 8, "no": -1}
    expected |= {"\ud800": -1, "a" * 42: -1}
    for few in (0, 1000):
        monkeypatch.setattr(words_module, "FEW", few)
        vectors = WordVectors.of_words(names, matrix)
        assert vectors.places(list(expected)).tolist() == list(expected.values())
        assert vectors._words.has_table == (few == 0)
        assert "the" in vectors
        assert "no" not in vectors
        assert 5 not in vectors
        assert vectors.words[5] == "\udcff\udcfe"
    without = WordVectors.of_words(["a", "b"], matrix[:2])
    assert without.places(["", "b"]).tolist() == [-1, 1]


def test_a_saved_table_of_words_is_mapped_and_trusted_with_nothing() -> None:
    """A file may hold any numbers: a word is then found where it stands, or not at all."""
    count = words_module.SMALL + 1
    vectors = WordVectors.of_words([f"w{number}" for number in range(count)], np.ones((count, 1), np.float32))
    parts = vectors.to_parts()
    asked = ["w0", "w7", f"w{count - 1}", f"w{count}", ""]
    loaded = WordVectors.from_parts(parts)
    assert loaded._words.table is parts.arrays["word_table"]
    assert loaded.places(asked).tolist() == vectors.places(asked).tolist() == [0, 7, count - 1, -1, -1]
    rng = np.random.default_rng(0)
    for table in (np.full(1 << 15, -5), np.full(1 << 15, count + 1), rng.integers(-(1 << 31), 1 << 31, 1 << 15)):
        parts.arrays["word_table"] = table.astype(np.int32)
        assert WordVectors.from_parts(parts).places(asked).max() < count
    for wrong in (np.zeros(1 << 14, np.int32), np.zeros(1 << 15, np.int64)):
        parts.arrays["word_table"] = wrong
        with pytest.raises(ValueError, match="table of the words"):
            WordVectors.from_parts(parts)


@pytest.mark.parametrize("stored", STORED)
def test_saved_and_mapped_it_is_the_same(tmp_path: Path, stored: Stored) -> None:
    vectors = random_vectors(200, 20).stored_as(stored).with_missing("zero")
    foreword.save(vectors, tmp_path / "vectors")
    loaded = foreword.load(tmp_path / "vectors")
    assert repr(loaded) == repr(vectors)
    assert not loaded.matrix.flags.writeable
    np.testing.assert_array_equal(loaded.matrix, vectors.matrix)
    assert loaded.nearest("w3", 5) == vectors.nearest("w3", 5)
    assert loaded.nearest_many(["w3", "w4"], 5) == vectors.nearest_many(["w3", "w4"], 5)
    assert not loaded["nothing"].any()


def test_a_word_without_a_vector_is_an_error_or_zeros() -> None:
    """Row E11: GloVe has no vector for eatable; it raises or gives zeros, as configured."""
    vectors = square()
    with pytest.raises(KeyError, match="eatable"):
        vectors["eatable"]
    with pytest.raises(KeyError, match="eatable"):
        vectors.rows_of(["man", "eatable"])
    zero = vectors.with_missing("zero")
    np.testing.assert_array_equal(zero["eatable"], np.zeros(3))
    np.testing.assert_array_equal(zero.rows_of(["man", "eatable"]), [[0, 0, 1], [0, 0, 0]])
    with pytest.raises(KeyError, match="eatable"):
        zero.nearest("eatable")  # zeros have no neighbours
    with pytest.raises(SettingError, match="missing='guess': expected one of error, zero"):
        vectors.with_missing("guess")  # type: ignore[arg-type]


@pytest.mark.parametrize("stored", STORED)
def test_a_word_nobody_has_seen_is_made_of_its_parts(tmp_path: Path, stored: Stored) -> None:
    matrix = np.random.default_rng(0).normal(size=(50, 8)).astype(np.float32)
    table = SubwordTable(matrix, 3, 4, 50)
    exact = WordVectors.of_words(["eat", "run"], matrix[:2], subwords=table)
    vectors = exact.stored_as(stored)
    assert vectors.subwords is not None
    assert str(vectors.subwords.matrix.dtype) == stored
    np.testing.assert_allclose(vectors["eatable"], exact["eatable"], atol=0.02)
    assert {word for word, _ in vectors.nearest("eatable")} == {"eat", "run"}
    foreword.save(vectors, tmp_path / "vectors")
    np.testing.assert_array_equal(foreword.load(tmp_path / "vectors")["eatable"], vectors["eatable"])


@pytest.mark.parametrize("method", ["add", "mul"])
def test_king_minus_man_plus_woman(method: Any) -> None:
    """Row E13: the answer is queen; with its inputs allowed an analogy often answers with one of them."""
    vectors = square()
    assert vectors.analogy("man", "king", "woman", method=method)[0][0] == "queen"
    with_inputs = vectors.analogy("man", "king", "woman", 5, include_inputs=True, method=method)
    assert len(with_inputs) == 5
    assert {word for word, _ in with_inputs[:2]} <= {"queen", "king", "woman"}


def test_analogies_follow_their_formulas() -> None:
    vectors = random_vectors(40, 6)
    unit = vectors.directions()
    a, b, c = unit[3], unit[5], unit[8]
    by_add = dict(vectors.analogy("w3", "w5", "w8", 40, include_inputs=True))
    target = b - a + c
    for row in range(40):
        assert by_add[f"w{row}"] == pytest.approx(float(unit[row] @ target / np.linalg.norm(target)), abs=1e-5)
    by_mul = dict(vectors.analogy("w3", "w5", "w8", 40, include_inputs=True, method="mul"))
    shifted = (1 + unit @ np.stack([a, b, c]).T) / 2
    for row in range(40):
        expected = shifted[row, 1] * shifted[row, 2] / (shifted[row, 0] + 1e-3)
        assert by_mul[f"w{row}"] == pytest.approx(float(expected), abs=1e-4)
    assert not {"w3", "w5", "w8"} & {word for word, _ in vectors.analogy("w3", "w5", "w8", 40)}
    with pytest.raises(SettingError, match="expected one of add, mul"):
        vectors.analogy("w3", "w5", "w8", method="divide")  # type: ignore[arg-type]


def test_neighbours_of_many_are_those_of_each() -> None:
    vectors = random_vectors(300, 12)
    names = ["w5", "w9", "w200"]
    for one, other in zip(vectors.nearest_many(names, 4), [vectors.nearest(name, 4) for name in names], strict=True):
        assert [word for word, _ in one] == [word for word, _ in other]
        np.testing.assert_allclose([cosine for _, cosine in one], [cosine for _, cosine in other], atol=1e-5)
    assert vectors.nearest_many(vectors.matrix[:2], 1)[1][0][0] == "w1"
    assert dict(vectors.nearest(vectors["w1"], 1))["w1"] == pytest.approx(1)
    assert vectors.nearest("w1", 1, exclude=[])[0][0] == "w1"
    assert vectors.similarity("w5", "w9") == pytest.approx(dict(vectors.nearest("w5", 300))["w9"], abs=1e-5)


def test_the_first_words() -> None:
    vectors = random_vectors(30, 4).stored_as("int8")
    first = vectors.first(10)
    assert first.words == vectors.words[:10]
    np.testing.assert_array_equal(first["w9"], vectors["w9"])
    assert len(vectors.first(100)) == 30
    assert "w10" not in first


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
def test_vectors_that_are_not_finite_are_refused_by_name(tmp_path: Path, number: float) -> None:
    matrix = np.ones((3, 4), np.float32)
    matrix[1, 2] = number
    vectors = WordVectors.of_words(["good", "bad", "fine"], matrix)
    for question in (
        lambda: vectors.nearest("good"),
        lambda: vectors.nearest_many(["good", "fine"]),
        lambda: foreword.save(vectors, tmp_path / "vectors"),
    ):
        with pytest.raises(InputError, match=r"the vector of 'bad' holds .*(nan|inf) in dimension 3"):
            question()
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(InputError, match="not finite"):
        vectors.stored_as("int8")
    with pytest.raises(InputError, match="not finite"):
        square().nearest(np.array([1, np.nan, 0], np.float32))


def test_large_and_empty_vectors() -> None:
    large = WordVectors.of_words(["a", "b"], np.array([[1e30, 0], [1e30, 1e30]], np.float32))
    assert dict(large.nearest("a"))["b"] == pytest.approx(2**-0.5)
    with pytest.raises(InputError, match="try int8"):
        large.stored_as("float16")
    assert dict(large.stored_as("int8").nearest("a"))["b"] == pytest.approx(2**-0.5, abs=1e-3)
    zeros = WordVectors.of_words(["a", "b"], np.zeros((2, 3), np.float32))
    for stored in STORED:
        assert zeros.stored_as(stored).nearest("a") == [("b", 0.0)]
    empty = WordVectors.of_words([], np.zeros((0, 3), np.float32))
    for stored in STORED:
        assert empty.stored_as(stored).nearest(np.ones(3, np.float32)) == []
    assert empty.with_missing("zero").rows_of(["x"]).shape == (1, 3)
    with pytest.raises(KeyError):
        empty["x"]
    one = WordVectors.of_words(["only"], np.ones((1, 3), np.float32))
    assert one.nearest("only") == []


def test_a_query_of_another_size_is_refused() -> None:
    with pytest.raises(InputError, match=r"shape \(2,\) among vectors of 3 dimensions"):
        square().nearest(np.ones(2, np.float32))
    with pytest.raises(InputError, match=r"queries of shape \(1, 2\)"):
        square().nearest_many(np.ones((1, 2), np.float32))
    with pytest.raises(SettingError, match="5 words but a matrix"):
        WordVectors.of_words("abcde", np.ones((2, 2), np.float32))
    with pytest.raises(SettingError, match="float64"):
        WordVectors.of_words(["a"], np.ones((1, 2)))  # type: ignore[arg-type]


def parts_of(**changes: NDArray[Any] | None) -> Parts:
    parts = random_vectors(5, 4).stored_as("int8").to_parts()
    for name, array in changes.items():
        if array is None:
            del parts.arrays[name]
        else:
            parts.arrays[name] = array
    return parts


@pytest.mark.parametrize(
    "changes",
    [
        {"matrix": None},
        {"matrix": np.zeros((5, 4))},
        {"matrix": np.zeros(20, np.int8)},
        {"words": np.zeros(3, np.int8)},
        {"word_offsets": np.array([0, 2, 4, 6, 8, 100])},
        {"word_offsets": np.array([0, 4, 2, 6, 8, 10])},
        {"word_offsets": np.array([-1, 2, 4, 6, 8, 10])},
        {"scales": None},
        {"scales": np.ones(4, np.float32)},
        {"scales": np.full(5, np.nan, np.float32)},
        {"norms": np.zeros(5, np.float32)},
        {"norms": np.full(5, np.inf, np.float32)},
        {"norms": np.ones(5)},
    ],
)
def test_parts_that_do_not_fit_are_refused(changes: dict[str, NDArray[Any] | None]) -> None:
    with pytest.raises((ValueError, SettingError)):
        WordVectors.from_parts(parts_of(**changes))
