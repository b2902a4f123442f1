"""Files of word vectors: real ones, all forms there and back, the two readers against each other, and bad input."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from tests.real_data import real

import foreword
from foreword.errors import ForewordError, InputError, SettingError
from foreword.vectors import word2vec_file as word2vec
from foreword.vectors.word2vec_file import Form, form_of, looks_like_vectors, read_vectors, write_vectors
from foreword.vectors.word2vec_file_plain import parse_line, read_binary_plain, read_text_plain
from foreword.vectors.wordvectors import WordVectors

FORMS: list[Form] = ["word2vec", "word2vec-binary", "glove"]
WORDS = ["the", "naïve", "日本", "<s>", "a_b", "3.14"]


def some_floats(rows: int, columns: int, seed: int = 0) -> NDArray[np.float32]:
    """Numbers of every size that a float32 can have, and some that look simple."""
    rng = np.random.default_rng(seed)
    bits = rng.integers(0, 1 << 32, 2 * rows * columns, dtype=np.uint32).view(np.float32)
    numbers = np.where(np.isfinite(bits), bits, np.float32(0.5))[: rows * columns]
    simple = [0, -0.0, 1, -2, 0.1, 1e-4, 1e-5, 1e9, 123456792, 3.4028235e38, 1e-45, 1.1754944e-38, 0.25, 9.999999e-5]
    numbers[: len(simple)] = simple[: len(numbers)]
    return numbers.reshape(rows, columns)


def example(rows: int = 6, columns: int = 20) -> WordVectors:
    return WordVectors.of_words(WORDS[:rows], some_floats(rows, columns))


def same_bits(one: WordVectors, other: WordVectors) -> bool:
    return one.words == other.words and np.array_equal(one.matrix.view(np.uint32), other.matrix.view(np.uint32))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_every_form_there_and_back_bit_for_bit(tmp_path: Path, form: Form, suffix: str) -> None:
    """Row E02: a loader for .vec, .bin and .txt."""
    vectors, path = example(), tmp_path / f"file{suffix}"
    assert write_vectors(vectors, path, form) == 0
    assert same_bits(read_vectors(path), vectors)
    loaded = foreword.load(path)
    assert isinstance(loaded, WordVectors)
    assert same_bits(loaded, vectors)
    plain = read_binary_plain if form == "word2vec-binary" else read_text_plain
    assert same_bits(plain(path), vectors)


def test_the_same_vectors_give_the_same_bytes(tmp_path: Path) -> None:
    for name in ("one.vec.gz", "two.vec.gz"):
        write_vectors(example(), tmp_path / name)
    assert (tmp_path / "one.vec.gz").read_bytes() == (tmp_path / "two.vec.gz").read_bytes()


def test_numbers_are_as_short_as_python_writes_them_or_a_digit_longer(tmp_path: Path) -> None:
    vectors = WordVectors.of_words([str(row) for row in range(300)], some_floats(300, 40, 3))
    write_vectors(vectors, tmp_path / "file.txt")
    longer = 0
    for line, row in zip((tmp_path / "file.txt").read_text().splitlines(), vectors.matrix, strict=True):
        for text, number in zip(line.split()[1:], row, strict=True):
            assert np.float32(text) == number
            shortest = np.format_float_scientific(number, unique=True, trim="-").partition("e")[0]
            longer += _digits(text) - _digits(shortest)
    assert 0 <= longer < 0.01 * vectors.matrix.size


def _digits(number: str) -> int:
    return len(number.lstrip("-").partition("e")[0].replace(".", "").strip("0"))


@pytest.mark.parametrize("stored", ["float16", "int8"])
@pytest.mark.parametrize("form", FORMS)
def test_smaller_precisions_are_written_as_the_floats_they_stand_for(tmp_path: Path, form: Form, stored: str) -> None:
    matrix = np.random.default_rng(0).normal(size=(6, 9)).astype(np.float32)
    small = WordVectors.of_words(WORDS, matrix).stored_as(stored)  # type: ignore[arg-type]
    write_vectors(small, tmp_path / "file", form)
    np.testing.assert_array_equal(read_vectors(tmp_path / "file").matrix, small.rows.floats(slice(None)))


def test_names_say_what_is_written() -> None:
    assert [form_of(name) for name in ("a.vec", "a.VEC.gz", "a.bin", "a.txt.gz", "model", "a.json")] == [
        "word2vec", "word2vec", "word2vec-binary", "glove", None, None,
    ]  # fmt: skip
    with pytest.raises(SettingError, match=r"expected a name in \.vec"):
        write_vectors(example(), "vectors.json")
    with pytest.raises(SettingError, match=r"plain or as \.gz"):
        write_vectors(example(), "vectors.vec.xz")


REAL = {
    "word2vec_pre_kv_c": (1750, 10, "the"),
    "euclidean_vectors.bin": (2747, 10, "the"),
    "high_precision.kv.bin": (2, 2, "kangaroo.n.01"),
    "high_precision.kv.txt": (2, 2, "kangaroo.n.01"),
    "test_glove.txt": (76, 50, "the"),
    "crime-and-punishment.vec": (291, 5, "и"),
    "lee_fasttext.vec": (1762, 10, "the"),
    "toy-model.vec": (22, 5, "the"),
    "EN.1-10.cbow1_wind5_hs0_neg10_size300_smpl1e-05.txt": (20, 300, "one"),
}


@pytest.mark.data
@pytest.mark.parametrize("name", REAL)
def test_real_files_are_read_by_both_roads(name: str) -> None:
    words, dimensions, first = REAL[name]
    path = real(f"formats/gensim/{name}")
    vectors = foreword.load(path)
    assert (len(vectors), vectors.dimensions, vectors.word(0)) == (words, dimensions, first)
    plain = read_binary_plain if name.endswith(".bin") else read_text_plain
    assert same_bits(plain(path), vectors)


@pytest.mark.data
def test_words_that_are_not_utf_8_stay_what_they_are(tmp_path: Path) -> None:
    path = real("formats/gensim/pang_lee_polarity_fasttext.vec")
    vectors = read_vectors(path)
    odd = next(word for word in vectors if any("\udc80" <= sign <= "\udcff" for sign in word))
    assert vectors.place(odd) >= 0
    write_vectors(vectors, tmp_path / "again.vec")
    assert same_bits(read_vectors(tmp_path / "again.vec"), vectors)
    before = [line.split(b" ")[0] for line in path.read_bytes().splitlines()]
    assert [line.split(b" ")[0] for line in (tmp_path / "again.vec").read_bytes().splitlines()] == before


@pytest.mark.data
def test_a_real_file_that_promises_too_much_is_refused() -> None:
    with pytest.raises(InputError, match="declares 3 words, but the file holds 1"):
        read_vectors(real("formats/gensim/pretrained.vec"))


def test_words_with_blanks_are_read_as_glove_has_them(tmp_path: Path) -> None:
    text = b", 0.5 1 2\n. . . 1 2 3\nat name@domain.com 4 5 6\r\n\xc2\xa0 7 8 9 \n 1 1 1\nthe\t1\t2\t3"
    (tmp_path / "glove.txt").write_bytes(text)
    vectors = read_vectors(tmp_path / "glove.txt")
    assert vectors.words == [",", ". . .", "at name@domain.com", "\xa0", "", "the"]
    np.testing.assert_array_equal(vectors["at name@domain.com"], [4, 5, 6])
    assert same_bits(read_text_plain(tmp_path / "glove.txt"), vectors)
    with pytest.raises(InputError, match=r"the word '\. \. \.' holds a blank"):
        write_vectors(vectors, tmp_path / "out.bin")
    assert not (tmp_path / "out.bin").exists()
    assert write_vectors(vectors, tmp_path / "out.bin", blanks="_") == 2
    assert read_vectors(tmp_path / "out.bin").words == [",", "._._.", "at_name@domain.com", "\xa0", "", "the"]


def test_a_word_that_stands_twice_counts_where_it_stands_first(tmp_path: Path) -> None:
    (tmp_path / "a.vec").write_text("3 2\nx 1 2\ny 3 4\nx 5 6\n")
    vectors = read_vectors(tmp_path / "a.vec")
    assert vectors.words == ["x", "y", "x"]
    np.testing.assert_array_equal(vectors["x"], [1, 2])


def test_a_limit_reads_the_first_words_only(tmp_path: Path) -> None:
    for form in FORMS:
        write_vectors(example(), tmp_path / "file", form)
        for limit in (0, 2, 6, 100):
            assert read_vectors(tmp_path / "file", limit=limit).words == WORDS[:limit]


def test_files_larger_than_a_block_and_without_a_declared_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(word2vec, "BLOCK_BYTES", 300)
    vectors = WordVectors.of_words([f"word{row}" for row in range(500)], some_floats(500, 3, 1))
    for form in FORMS:
        for suffix in ("", ".gz"):
            path = tmp_path / f"{form}{suffix}"
            write_vectors(vectors, path, form)
            assert same_bits(read_vectors(path), vectors)


BAD = {
    "too few": (b"2 3\na 1 2 3\nb 1 2\n", "line 3: 2 numbers after the word, expected 3"),
    "too many": (b"2 3\na 1 2 3\nb 1 2 3 4\n", "line 3: 4 numbers after the word, expected 3"),
    "too many, no header": (b"a 1 2 3\nb 1 2 3 4\n", "line 2: 4 numbers after the word, expected 3"),
    "no number": (b"a 1 2 3\n\nb 1 x 3\n", "line 3: 'x' is not a number"),
    "underscore": (b"a 1 2 3\nb 1 1_0 3\n", "line 2: '1_0' is not a number"),
    "nan": (b"1 3\na 1 nan 3\n", "line 2: 'nan' is not a number"),
    "infinite": (b"1 3\na 1 1e39 3\n", "line 2: '1e39' is not a number"),
    "short": (b"3 2\na 1 2\nb 3 4\n", "declares 3 words, but the file holds 2"),
    "long": (b"1 2\na 1 2\nb 3 4\n", "line 3 continues after the 1 words that line 1 declares"),
    "hostile": (b"1000000000 300\na 1 2\n" + b"x" * 1000, "declares 1,000,000,000 words of 300 dimensions, but"),
    "hostile binary": (b"1000000000 300\na \x00\x01" + b"\x00" * 1000, "declares 1,000,000,000 words"),
    "cut binary": (b"2 2\na " + b"\x00\x00\x80?" * 2 + b"b " + b"\x00\x00\x80?", "declares 2 words|within word 2 of"),
    "cut in the word": (b"2 1\na \x00\x00\x80?" + b"bbbbbbbbbbbb", "ends within word 2 of the 2"),
    "not finite": (b"1 2\na " + np.array([1, np.nan], "<f4").tobytes(), "word 1 holds a number that is not finite"),
    "goes on": (b"1 1\na \x00\x00\x80?\nrest", "the file continues after the 1 words"),
    "nothing": (b"", "no word vectors"),
    "counts": (b"the 5\nof 3\n", "no word vectors"),
    "table": (b"1 2 3\n4 5 6\n", "no word vectors"),
    "too wide": (b"1 99999999\na 1\n", "no word vectors"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_wrong_is_told_in_one_line(tmp_path: Path, name: str) -> None:
    data, expected = BAD[name]
    path = tmp_path / "file"
    path.write_bytes(data)
    with pytest.raises(InputError, match=expected) as caught:
        read_vectors(path)
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)
    with gzip.open(tmp_path / "file.gz", "wb") as packed:
        packed.write(data)
    with pytest.raises(InputError):
        read_vectors(tmp_path / "file.gz")


def test_a_vector_that_is_not_finite_is_not_written(tmp_path: Path) -> None:
    vectors = WordVectors.of_words(["a", "b"], np.array([[1, 2], [np.inf, 0]], np.float32))
    with pytest.raises(InputError, match="'b' holds a number that is not finite"):
        write_vectors(vectors, tmp_path / "file.vec")
    assert list(tmp_path.iterdir()) == []


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.from_regex(rb"[+-]?[0-9]{0,22}\.?[0-9]{0,22}([eE][+-]?[0-9]{1,3})?", fullmatch=True), min_size=2),
    st.binary(max_size=8),
)
def test_both_roads_read_any_number_alike(
    tmp_path_factory: pytest.TempPathFactory, numbers: list[bytes], word: bytes
) -> None:
    path = tmp_path_factory.mktemp("numbers") / "file"
    path.write_bytes(b"first" + b" 1" * len(numbers) + b"\n" + word + b" " + b" ".join(numbers) + b"\n")
    results: list[object] = []
    for road in (read_vectors, read_text_plain):
        try:
            vectors = road(path)
            results.append((vectors.words, vectors.matrix.tobytes()))
        except InputError as error:
            results.append(str(error))
    assert results[0] == results[1]


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=200), st.sampled_from([b"", b"2 3\n", b"1 1\n", b"a 1 2\n"]))
def test_no_bytes_break_the_reader(tmp_path_factory: pytest.TempPathFactory, data: bytes, head: bytes) -> None:
    path = tmp_path_factory.mktemp("fuzz") / "file"
    path.write_bytes(head + data)
    problem = ""
    try:
        vectors = read_vectors(path)
        assert looks_like_vectors(path)
        assert np.isfinite(vectors.matrix).all()
    except ForewordError as error:
        problem = str(error)
    assert "\n" not in problem


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_a_broken_copy_of_a_good_file_never_gives_other_vectors_silently(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """Cut anywhere, a file that declares its size is an error or, where only its last line end is gone, the same."""
    folder = tmp_path_factory.mktemp("cut")
    form = data.draw(st.sampled_from(FORMS[:2]))
    write_vectors(example(), folder / "whole", form)
    whole = (folder / "whole").read_bytes()
    cut = whole[: data.draw(st.integers(0, len(whole) - 1))]
    (folder / "cut").write_bytes(cut)
    try:
        found = read_vectors(folder / "cut")
    except InputError:
        return
    assert found.words == WORDS
    digits_lost = whole[len(cut) :].strip(b"\n")
    assert np.array_equal(found.matrix[:-1], example().matrix[:-1])
    assert form == "word2vec" or not digits_lost


def test_parse_line_takes_the_word_as_it_is() -> None:
    assert parse_line(b"a  b\t1 2\r\n", 2) == (b"a b", [1.0, 2.0])
    with pytest.raises(ValueError, match="0 numbers after the word, expected 2"):
        parse_line(b"alone", 2)
