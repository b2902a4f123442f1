"""Bags of words: the fast road against the plain one, streams, files, and what is refused."""

from __future__ import annotations

import pickle
import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from foreword.errors import ForewordError, InputError, SettingError
from foreword.features.bag import BagOfWords, OneHot
from foreword.features.kernels_bag import alphabetical
from foreword.features.kernels_cut import word_characters
from foreword.features.plain import Split, bag_of, hashed
from foreword.features.tfidf import TfIdf
from foreword.features.vocabulary import HashedColumns
from foreword.protocols import Parts
from foreword.storage.folder import load, save
from foreword.text.block import Block, blocks_of
from foreword.text.sources import Reading, read_blocks
from foreword.tokens.words import WordTokenizer

TEXTS = [
    "The cat chases the mouse. The END",
    "",
    "A naïve café: ΣΊΣΥΦΟΣ pushed it UP, İstanbul's Ⱥ and Kelvin's K\u212a",
    "under_score x yy 1 22 333 a-b c.d",
    "tabs\tand\n\nlines\r\n  and \u3000 wide\u2003blanks\x85and\x1cseparators",
    "日本語のテキスト 한국어 русский ТЕКСТ हिन्दी emoji 🎉🎉 e\u0301",
    "a\x00b \x01control \x01 characters\x7f",
    "the the the the cat",
]

SETTINGS: list[tuple[Split, tuple[int, int]]] = [
    ("words", (1, 1)),
    ("words", (1, 3)),
    ("words", (2, 2)),
    ("space", (1, 1)),
    ("space", (1, 2)),
    ("punctuation", (1, 1)),
    ("punctuation", (2, 3)),
    ("characters", (1, 1)),
    ("characters", (2, 4)),
    ("characters in words", (1, 2)),
    ("characters in words", (3, 6)),
    ("whole", (1, 1)),
]

BAGS: dict[str, Callable[[], BagOfWords]] = {
    "bag": BagOfWords,
    "bag, pairs, chosen": lambda: BagOfWords(ngrams=(1, 2), min_documents=2, max_size=7),
    "bag, pairs only": lambda: BagOfWords(ngrams=(2, 2)),
    "bag, characters": lambda: BagOfWords(split="characters in words", ngrams=(2, 3), binary=True),
    "bag, hashed": lambda: BagOfWords(columns=64, signed=True),
    "tf-idf": lambda: TfIdf(sublinear=True),
    "tf-idf, hashed": lambda: TfIdf(columns=50, ngrams=(1, 2), norm="l1", idf="plain"),
    "one-hot": lambda: OneHot(lowercase=True),
}

every_bag = pytest.mark.parametrize("build", BAGS.values(), ids=BAGS)


def plain_counts(bag: BagOfWords, texts: list[str]) -> list[dict[str, int]]:
    return [bag_of(text, bag.split, bag.lowercase, bag.ngrams) for text in texts]


def decoded(bag: BagOfWords, matrix: Any) -> list[dict[str, Any]]:
    return [bag.decode(row) for row in matrix]


def assert_same(found: Any, wanted: Any) -> None:
    assert found.shape == wanted.shape
    assert found.dtype == wanted.dtype
    for name in ("indptr", "indices", "data"):
        assert_array_equal(getattr(found, name), getattr(wanted, name))


# The fast road and the plain one


@pytest.mark.parametrize(("split", "ngrams"), SETTINGS)
@pytest.mark.parametrize("lowercase", [True, False])
def test_the_fast_road_counts_what_the_plain_one_does(split: Split, ngrams: tuple[int, int], lowercase: bool) -> None:
    bag = BagOfWords(split=split, ngrams=ngrams, lowercase=lowercase)
    matrix = bag.fit_transform(TEXTS)
    expected = plain_counts(bag, TEXTS)
    assert decoded(bag, matrix) == expected
    assert list(bag.vocabulary_) == sorted(set().union(*expected))
    assert_array_equal(bag.document_counts_, [sum(term in row for row in expected) for term in bag.vocabulary_])
    assert_same(bag.transform(TEXTS), matrix)
    assert matrix.has_sorted_indices


@settings(max_examples=150, deadline=None)
@given(
    texts=st.lists(
        st.text(st.sampled_from("aAbB_1 .,-\t\n\x00\x01\x1c\x85\u3000éÉßİΣσςǅ中🎉\u0301ⅷⅧ²½ª"), max_size=30), min_size=1
    ),
    setting=st.sampled_from(SETTINGS),
    lowercase=st.booleans(),
)
def test_any_text_is_counted_alike(texts: list[str], setting: tuple[Split, tuple[int, int]], lowercase: bool) -> None:
    bag = BagOfWords(split=setting[0], ngrams=setting[1], lowercase=lowercase)
    expected = plain_counts(bag, texts)
    if not any(expected):
        with pytest.raises(InputError, match="no term"):
            bag.fit(texts)
        return
    assert decoded(bag, bag.fit_transform(texts)) == expected
    assert list(bag.vocabulary_) == sorted(set().union(*expected))


def test_every_code_point_is_a_word_character_just_when_python_says_so() -> None:
    table = word_characters()
    assert len(table) == 0x110000
    for point in range(0x110000):
        assert bool(table[point]) == (chr(point).isalnum() or point == ord("_"))


def test_every_character_is_cut_and_lower_cased_as_python_does() -> None:
    """Every code point in the middle of a word, which shows both its class and its lower case."""
    points = [point for point in range(0x110000) if not 0xD800 <= point < 0xE000]
    for first in range(0, len(points), 1 << 16):
        text = " ".join(f"aa{chr(point)}bb" for point in points[first : first + (1 << 16)])
        bag = BagOfWords()
        row = bag.fit_transform([text])
        assert bag.decode(row) == dict(Counter(re.findall(r"\b\w\w+\b", text.lower())))


def test_punctuation_is_split_off_as_the_word_tokenizer_does() -> None:
    bag = BagOfWords(split="punctuation", lowercase=False).fit(TEXTS)
    tokenizer = WordTokenizer(split="punctuation").fit(TEXTS)
    assert sorted(bag.vocabulary_) == sorted(set(tokenizer.vocab) - {"<unk>", "</s>"})


def test_terms_are_sorted_as_strings_whatever_they_begin_with() -> None:
    rng = np.random.default_rng(0)
    stems = ["", "prefix", "a prefix of more than twenty-four bytes, as addresses have", "é" * 10, "\x00", "中"]
    strings = {
        stem + "".join(map(chr, rng.integers(0, 300, rng.integers(0, 12)))) for stem in stems for _ in range(400)
    }
    encoded = [string.encode() for string in strings]
    offsets = np.cumsum([0, *map(len, encoded)])
    order = alphabetical(np.frombuffer(b"".join(encoded), np.uint8), offsets)
    assert [encoded[number].decode() for number in order] == sorted(strings)


def test_many_and_long_terms_make_the_tables_grow() -> None:
    rng = np.random.default_rng(1)
    texts = [" ".join(f"w{number}" for number in rng.integers(0, 40_000, 2_000)) for _ in range(20)]
    texts.append(f"{'long' * 20_000} {'longer' * 30_000}")
    bag = BagOfWords(ngrams=(1, 2))
    assert decoded(bag, bag.fit_transform(texts)) == plain_counts(bag, texts)


# Settings


def test_limits_by_documents_and_by_size() -> None:
    texts = ["a b c d", "a b c", "a b", "a"]

    def kept(**chosen: Any) -> list[str]:
        return list(BagOfWords(split="space", **chosen).fit(texts).vocabulary_)

    assert kept(min_documents=2) == ["a", "b", "c"]
    assert kept(max_documents=3) == ["b", "c", "d"]
    assert kept(min_documents=0.5, max_documents=0.75) == ["b", "c"]
    assert kept(max_size=2) == ["a", "b"]
    assert kept(min_documents=2, max_documents=3, max_size=1) == ["b"]
    assert kept(ngrams=(2, 2), min_documents=2) == ["a b", "b c"]


def test_max_size_keeps_the_most_frequent_and_binary_those_in_most_documents() -> None:
    texts = ["aa aa aa bb", "bb cc"]
    assert list(BagOfWords(max_size=1).fit(texts).vocabulary_) == ["aa"]
    assert list(BagOfWords(max_size=1, binary=True).fit(texts).vocabulary_) == ["bb"]
    assert list(BagOfWords(max_size=1, dtype="uint8").fit(texts).vocabulary_) == ["aa"]
    assert BagOfWords(binary=True).fit_transform(texts).toarray().tolist() == [[1, 1, 0], [0, 1, 1]]


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize(("split", "ngrams"), SETTINGS)
def test_hashed_columns_are_those_of_the_stated_hash(split: Split, ngrams: tuple[int, int], signed: bool) -> None:
    bag = BagOfWords(split=split, ngrams=ngrams, columns=37, signed=signed)
    matrix = bag.transform(TEXTS)  # there is nothing to fit
    expected = np.zeros((len(TEXTS), 37), np.int64)
    for row, counts in enumerate(plain_counts(bag, TEXTS)):
        for term, count in counts.items():
            column, sign = hashed(term, 37)
            expected[row, column] += sign * count if signed else count
    assert_array_equal(matrix.toarray(), expected)
    assert_same(bag.fit_transform(TEXTS), matrix)
    assert matrix.has_sorted_indices


def test_the_hash_is_fnv_1a() -> None:
    """FNV-1a's published values: 0xcbf29ce484222325 for nothing, 0xaf63dc4c8601ec8c for "a", 0x85944171f73967e8 for
    "foobar".
    """
    for term, value in {"": 0xCBF29CE484222325, "a": 0xAF63DC4C8601EC8C, "foobar": 0x85944171F73967E8}.items():
        assert hashed(term, 2**31 - 1) == ((value ^ value >> 32) % (2**31 - 1), -1 if value >> 63 else 1)


@pytest.mark.parametrize("kind", ["int64", "int32", "uint8", "float32", "float64", np.int16])
def test_the_matrix_has_the_kind_of_number_that_was_asked_for(kind: Any) -> None:
    matrix = BagOfWords(dtype=kind).fit_transform(TEXTS)
    assert matrix.dtype == np.dtype(kind)
    assert_array_equal(matrix.toarray(), BagOfWords().fit_transform(TEXTS).toarray())


def test_a_count_that_does_not_fit_is_an_error_not_a_wrong_number() -> None:
    with pytest.raises(InputError, match="a count of 300 does not fit into dtype uint8"):
        BagOfWords(dtype="uint8").fit_transform(["aa " * 300])


@pytest.mark.parametrize(
    ("chosen", "said"),
    [
        ({"split": "letters"}, "split is 'letters': expected words or space"),
        ({"ngrams": (2, 1)}, r"ngrams=\(2, 1\)"),
        ({"ngrams": (0, 1)}, "1 <= shortest"),
        ({"ngrams": 2}, "ngrams=2"),
        ({"ngrams": (1, 101)}, "longest <= 100"),
        ({"split": "whole", "ngrams": (1, 2)}, "whole text"),
        ({"min_documents": 0}, "min_documents=0: expected a number of documents, 1 or more, or a share"),
        ({"max_documents": 1.5}, "max_documents=1.5"),
        ({"max_documents": "all"}, "max_documents='all'"),
        ({"max_size": 0}, "max_size=0"),
        ({"columns": -4}, "columns=-4"),
        ({"columns": 2**31}, "columns=2147483648"),
        ({"columns": 8, "max_size": 4}, "choose terms"),
        ({"signed": True}, "signed=True needs hashed columns"),
        ({"dtype": "U5"}, "dtype='U5'"),
        ({"dtype": "number"}, "dtype='number': expected a type of number"),
        ({"min_documents": 9}, "min_documents=9 is more than max_documents=1.0 for 8 texts"),
        ({"min_documents": 4}, "min_documents=4, max_documents=1.0 leave none of the terms"),
    ],
)
def test_settings_that_make_no_sense_are_named(chosen: dict[str, Any], said: str) -> None:
    with pytest.raises(SettingError, match=said):
        BagOfWords(**chosen).fit(TEXTS)


def test_the_constructor_only_stores() -> None:
    bag = BagOfWords(split="nonsense", ngrams=[3, 1])  # type: ignore[arg-type]
    assert bag.get_params()["split"] == "nonsense"
    assert bag.set_params(split="words", ngrams=(1, 2)) is bag
    assert repr(bag) == "BagOfWords(ngrams=(1, 2))"
    with pytest.raises(SettingError, match="a BagOfWords has no setting 'color': expected split, lowercase"):
        bag.set_params(color="blue")


# What cannot be counted


def test_texts_that_are_none_are_told_with_their_number() -> None:
    with pytest.raises(InputError, match="single string"):
        BagOfWords().fit("the cat")
    with pytest.raises(InputError, match=r"text 1 \(counted from 0\) is a float, but should be a string"):
        BagOfWords().fit(["a cat", float("nan")])  # type: ignore[list-item]
    with pytest.raises(InputError, match=r"text 2 .* not valid Unicode: surrogates not allowed"):
        BagOfWords().fit(["aa", "bb", "cc\ud800"])
    for empty in ([], ["", "."]):
        with pytest.raises(InputError, match=f"no term in {len(empty)} texts"):
            BagOfWords().fit(empty)


def test_a_failed_fit_leaves_what_was_learnt_before() -> None:
    bag = BagOfWords().fit(["one two"])
    with pytest.raises(InputError):
        bag.fit(["three", 4])  # type: ignore[list-item]
    assert list(bag.vocabulary_) == ["one", "two"]


def test_a_first_partial_fit_that_fails_has_learnt_nothing() -> None:
    bag = BagOfWords()
    with pytest.raises(InputError):
        bag.partial_fit([None])  # type: ignore[list-item]
    assert not hasattr(bag, "documents_")


def test_nothing_is_known_before_fit() -> None:
    bag = BagOfWords()
    assert not hasattr(bag, "vocabulary_")
    with pytest.raises(ForewordError, match="this BagOfWords has learnt nothing yet"):
        bag.transform(["a"])
    with pytest.raises(ForewordError, match="this TfIdf has learnt nothing yet"):
        TfIdf(columns=16).transform(["a"])


def test_new_terms_and_empty_texts_have_no_entries() -> None:
    bag = BagOfWords(ngrams=(1, 2)).fit(["the cat sat"])
    assert decoded(bag, bag.transform(["a dog", "", "the dog sat", "cat sat"])) == [
        {},
        {},
        {"the": 1, "sat": 1},
        {"cat": 1, "cat sat": 1, "sat": 1},
    ]
    assert bag.transform([]).shape == (0, 5)


def test_hashed_columns_have_no_names() -> None:
    bag = BagOfWords(columns=8).fit(TEXTS)
    with pytest.raises(SettingError, match="columns=8 are hashed"):
        bag.get_feature_names_out()
    with pytest.raises(InputError, match="expected one row of 7 columns"):
        BagOfWords(ngrams=(1, 2)).fit(["aa bb cc dd"]).decode(bag.transform(["x"]))


# Streams


def parts_of(texts: list[str]) -> Iterator[list[str]]:
    for first in range(0, len(texts), 3):
        yield texts[first : first + 3]


@every_bag
def test_partial_fit_in_any_parts_is_fit_of_the_whole(build: Callable[[], BagOfWords]) -> None:
    whole, parts = build(), build()
    matrix = whole.fit_transform(TEXTS)
    for place, part in enumerate(parts_of(TEXTS)):
        assert parts.partial_fit(part) is parts
        if place:
            assert parts.transform(part).shape[0] == len(part)  # to look in between changes nothing
    assert parts.documents_ == whole.documents_ == len(TEXTS)
    assert_array_equal(parts.document_counts_, whole.document_counts_)
    assert_same(parts.transform(TEXTS), matrix)
    assert_same(build().fit(TEXTS).transform(TEXTS), matrix)


@every_bag
def test_blocks_are_read_like_texts(build: Callable[[], BagOfWords], tmp_path: Path) -> None:
    lines = [text.replace("\n", " ").replace("\r", " ") for text in TEXTS if text and "\x00" not in text]
    (tmp_path / "texts").write_text("\n".join(lines), encoding="utf-8")
    matrix = build().fit_transform(lines)
    bag = build().partial_fit(read_blocks(tmp_path / "texts"))
    assert_same(bag.transform(read_blocks(tmp_path / "texts", Reading(block_bytes=40))), matrix)
    assert_same(build().fit_transform(blocks_of(lines, 50)), matrix)
    assert_same(bag.transform(Block.from_texts(lines)), matrix)
    assert_same(bag.transform([lines[0], Block.from_texts(lines[1:-1]), lines[-1]]), matrix)


def test_a_document_may_go_on_from_block_to_block() -> None:
    pieces = ["The first half of a wo", "rd, ΣΊΣΥΦ", "ΟΣ", " and the end", "Another one"]
    blocks = [
        Block.from_texts(["before", pieces[0]], open=True),
        Block.from_texts([pieces[1]], open=True),
        Block.from_texts([pieces[2]], open=True),
        Block.from_texts([pieces[3], pieces[4]]),
        Block.from_texts(["cut off at the"], open=True),
        Block.from_texts([" end"], open=True),
    ]
    bag = BagOfWords(ngrams=(1, 2))
    texts = ["before", "".join(pieces[:4]), pieces[4], "cut off at the end"]
    assert decoded(bag, bag.fit_transform(blocks)) == plain_counts(bag, texts)


def test_memory_is_flat_with_hashed_columns_and_grows_with_the_vocabulary_without() -> None:
    rng = np.random.default_rng(0)
    texts = (" ".join(f"w{number}" for number in rng.integers(0, 1_000_000, 1000)) for _ in range(60))
    bag = TfIdf(columns=1024)
    sizes = set()
    for text in texts:
        memory = bag.partial_fit([text])._memory
        assert isinstance(memory, HashedColumns)
        sizes.add(memory.tally.tallies.nbytes)
    assert sizes == {3 * 8 * 1024}
    assert len(pickle.dumps(bag)) < 100_000


def test_partial_fit_after_fit_goes_on_from_the_vocabulary() -> None:
    bag = BagOfWords(min_documents=2).fit(["rare common", "common"])
    bag.partial_fit(["rare common"])
    assert bag.document_counts_.tolist() == [3]  # "rare" was forgotten by fit, and has been seen once since
    assert bag.partial_fit(["rare"]).vocabulary_ == {"common": 0, "rare": 1}
    assert bag.documents_ == 4


# Files


@every_bag
def test_saved_and_loaded_it_counts_the_same(build: Callable[[], BagOfWords], tmp_path: Path) -> None:
    bag = build()
    matrix = bag.fit_transform(TEXTS)
    save(bag, tmp_path / "bag")
    again = load(tmp_path / "bag", verify=True)
    assert type(again) is type(bag)
    assert again.get_params() == {**bag.get_params(), "dtype": np.dtype(bag.dtype).name}
    assert_same(again.transform(TEXTS), matrix)
    assert again.documents_ == len(TEXTS)
    assert_array_equal(again.document_counts_, bag.document_counts_)


def test_learning_goes_on_after_loading(tmp_path: Path) -> None:
    chosen: dict[str, Any]
    for chosen in ({"ngrams": (1, 2)}, {"columns": 99}):
        save(TfIdf(**chosen).fit(TEXTS[:4]), tmp_path / "bag")
        bag = load(tmp_path / "bag").partial_fit(TEXTS[4:])
        assert_same(bag.transform(TEXTS), TfIdf(**chosen).fit_transform(TEXTS))


def test_a_saved_bag_is_mapped_not_read(tmp_path: Path) -> None:
    save(BagOfWords().fit(TEXTS), tmp_path / "bag")
    data = load(tmp_path / "bag")._terms.data
    while data.base is not None and not isinstance(data, np.memmap):
        data = data.base
    assert isinstance(data, np.memmap) or type(data).__name__ in ("mmap", "memoryview")


@every_bag
def test_pickled_it_counts_the_same_and_learns_on(build: Callable[[], BagOfWords]) -> None:
    bag = build()
    matrix = bag.fit_transform(TEXTS)
    assert_same(pickle.loads(pickle.dumps(bag)).transform(TEXTS), matrix)
    bag = pickle.loads(pickle.dumps(build().partial_fit(TEXTS[:5])))
    assert_same(bag.partial_fit(TEXTS[5:]).transform(TEXTS), matrix)


def damaged(**arrays: Any) -> Parts:
    parts = BagOfWords(ngrams=(1, 2)).fit(["aa bb", "bb cc"]).to_parts()
    parts.arrays.update(arrays)
    return parts


def terms(*strings: bytes) -> dict[str, Any]:
    n = len(strings)
    return {
        "terms": np.frombuffer(b"".join(strings), np.uint8),
        "offsets": np.cumsum([0, *map(len, strings)]),
        "document_counts": np.ones(n, np.int64),
        "counts": np.ones(n, np.int64),
    }


@pytest.mark.parametrize(
    "arrays",
    [
        {"offsets": np.array([0, 2, 3, 9, 12, 11], np.int64)},
        {"offsets": np.array([1, 2, 3, 4, 5, 14], np.int64)},
        {"offsets": np.array([0.0, 14.0])},
        {"offsets": np.zeros(0, np.int64)},
        {"offsets": np.array([0, 1 << 40], np.int64)},
        {"terms": np.zeros(14, np.int8)},
        {"document_counts": np.ones(4, np.int64)},
        {"document_counts": np.full(5, 3, np.int64)},
        {"document_counts": np.full(5, -1, np.int64)},
        {"counts": np.zeros(5, np.int64)},
        {"counts": np.ones((5, 1), np.int64)},
        terms(b"aa", b"b\xff"),
        terms(b"\xc3", b"\xa9"),
    ],
)
def test_damaged_arrays_are_refused(arrays: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"term|count|offset"):
        BagOfWords.from_parts(damaged(**arrays))


@pytest.mark.parametrize("strings", [(b"aa", b"aa"), (b"aa bb", b"aa bb"), (b"aa bb cc",), (b"aa ",), (b" ",)])
def test_terms_that_the_settings_cannot_give_are_refused(strings: tuple[bytes, ...]) -> None:
    with pytest.raises(ValueError, match=r"twice|runs of 1 to 2 words"):
        BagOfWords.from_parts(damaged(**terms(*strings)))


def test_damaged_settings_are_refused() -> None:
    parts = BagOfWords().fit(["aa bb"]).to_parts()
    wrong: dict[str, Any] = {"documents": -1, "split": "x", "ngrams": [0, 1], "dtype": "nonsense", "colour": 1}
    for name, value in wrong.items():
        with pytest.raises((ValueError, SettingError, TypeError)):
            BagOfWords.from_parts(Parts({**parts.settings, name: value}, parts.arrays))
    hashes = BagOfWords(columns=4).fit(["aa bb"]).to_parts()
    for counts in (np.zeros(3, np.int64), np.full(4, 2, np.int64), np.zeros(4)):
        with pytest.raises(ValueError, match="column"):
            BagOfWords.from_parts(Parts(hashes.settings, {"document_counts": counts}))


# One-hot rows


def test_one_hot_rows_are_whole_words_and_new_ones_are_empty() -> None:
    words = OneHot().fit(["New York", "York", "new york", ""])
    assert list(words.vocabulary_) == ["New York", "York", "new york"]
    assert words.transform(["York", "york", "", "New York"]).toarray().tolist() == [
        [0, 1, 0],
        [0] * 3,
        [0] * 3,
        [1, 0, 0],
    ]
    assert words.get_params() == {"lowercase": False, "min_documents": 1, "max_size": None, "dtype": "float64"}
