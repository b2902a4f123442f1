from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from foreword.errors import InputError, SettingError
from foreword.protocols import Parts
from foreword.text.block import Block, blocks_of
from foreword.tokens.bpe import BPETokenizer
from foreword.tokens.characters import ByteTokenizer
from foreword.tokens.corpus import Corpus, id_type
from foreword.tokens.vocab import Vocab
from foreword.tokens.words import WordTokenizer

VOCAB = Vocab(["<unk>", "</s>", "a", "b", "c"])
DOCUMENTS = [[2, 3], [], [4], [2, 2, 2, 2], [3]]


@pytest.fixture
def corpus() -> Corpus:
    return Corpus.from_ids(DOCUMENTS, VOCAB, text_bytes=100)


def documents_of(corpus: Corpus) -> list[list[int]]:
    return [document.tolist() for document in corpus.documents()]


def test_every_document_ends_in_the_end(corpus: Corpus) -> None:
    assert documents_of(corpus) == [[*document, 1] for document in DOCUMENTS]
    assert len(corpus) == 5
    assert corpus.offsets.tolist() == [0, 3, 4, 6, 11, 13]
    assert corpus.byte_offsets.tolist() == [0, 20, 40, 60, 80, 100]
    assert corpus.text_bytes == 100


def test_ids_must_be_in_the_vocabulary() -> None:
    for wrong in (5, -1):
        with pytest.raises(SettingError, match="not in the vocabulary"):
            Corpus.from_ids([[wrong]], VOCAB)


@pytest.mark.parametrize("part", [slice(1, 3), slice(2), slice(-2, None), slice(3, 1), slice(9, 12), slice(None)])
def test_a_slice_is_a_view_of_whole_documents(corpus: Corpus, part: slice) -> None:
    sliced = corpus[part]
    assert documents_of(sliced) == documents_of(corpus)[part]
    assert sliced.offsets[0] == sliced.byte_offsets[0] == 0
    assert len(sliced.ids) == 0 or np.shares_memory(sliced.ids, corpus.ids)
    assert sliced.text_bytes == 20 * len(sliced)


def test_slices_go_in_steps_of_one(corpus: Corpus) -> None:
    with pytest.raises(SettingError, match="steps of one"):
        corpus[::2]


@given(st.lists(st.integers(0, 9), max_size=12), st.integers(1, 15))
def test_the_shards_together_are_the_whole(lengths: list[int], of: int) -> None:
    corpus = Corpus.from_ids([[2] * length for length in lengths], VOCAB, text_bytes=sum(lengths))
    shards = [corpus.shard(number, of) for number in range(of)]
    assert [document for shard in shards for document in documents_of(shard)] == documents_of(corpus)
    assert sum(shard.text_bytes for shard in shards) == corpus.text_bytes


def test_shards_are_about_the_same_size() -> None:
    corpus = Corpus.from_ids([[2] * 9 for _ in range(1000)], VOCAB)
    assert {len(corpus.shard(number, 7).ids) // 100 for number in range(7)} == {14}


@pytest.mark.parametrize(("number", "of"), [(-1, 3), (3, 3), (0, 0)])
def test_a_shard_that_there_is_not_is_refused(corpus: Corpus, number: int, of: int) -> None:
    with pytest.raises(SettingError, match=f"shard {number} of {of}"):
        corpus.shard(number, of)


def test_the_type_is_as_small_as_the_vocabulary_allows() -> None:
    assert (id_type(2), id_type(65_536), id_type(65_537)) == (np.uint16, np.uint16, np.int32)
    for extra, wanted in ((65_534, np.uint16), (65_535, np.int32)):
        vocab = Vocab(["<unk>", "</s>", *map(str, range(extra))])
        last = len(vocab) - 1
        corpus = Corpus.from_ids([[last]], vocab)
        assert corpus.ids.dtype == wanted
        assert corpus.ids.tolist() == [last, 1]
        tokenizer = WordTokenizer().fit([" ".join(map(str, range(extra)))])
        assert Corpus.from_texts(["0 1"], tokenizer).ids.dtype == wanted
        assert WordTokenizer().fit_corpus(blocks_of([" ".join(map(str, range(extra)))])).ids.dtype == wanted


def test_open_blocks_are_one_document() -> None:
    blocks = [
        Block.from_texts(["one", "tw"], open=True),
        Block.from_texts(["o, still tw"], open=True),
        Block.from_texts(["o", "", "three"]),
    ]
    corpus = Corpus.from_blocks(blocks, ByteTokenizer(), threads=2)
    texts = ["one", "two, still two", "", "three"]
    expected = Corpus.from_texts(texts, ByteTokenizer())
    assert_array_equal(corpus.ids, expected.ids)
    assert_array_equal(corpus.offsets, expected.offsets)
    assert_array_equal(corpus.byte_offsets, expected.byte_offsets)
    assert corpus.text_bytes == sum(len(text) + 1 for text in texts)


@settings(deadline=None, max_examples=40)
@given(st.lists(st.text(st.sampled_from("ab é漢"), max_size=12), max_size=10), st.integers(1, 30), st.integers(1, 3))
def test_the_cut_into_blocks_and_the_threads_change_nothing(texts: list[str], size: int, threads: int) -> None:
    tokenizer = BPETokenizer(280).fit(texts)
    corpus = Corpus.from_blocks(blocks_of(texts, size), tokenizer, threads=threads)
    expected = Corpus.from_texts(texts, tokenizer)
    for name in ("ids", "offsets", "byte_offsets"):
        assert_array_equal(getattr(corpus, name), getattr(expected, name))


@pytest.mark.parametrize("texts", [[], [""], ["a b", "", "c a"] * 50], ids=["none", "empty", "some"])
def test_built_on_disk_it_is_the_same(texts: list[str], tmp_path: Path) -> None:
    tokenizer = WordTokenizer().fit(["a b c"])
    built = Corpus.from_blocks(blocks_of(texts, 16), tokenizer, threads=2, folder=tmp_path / "new" / "corpus")
    expected = Corpus.from_texts(texts, tokenizer)
    for name in ("ids", "offsets", "byte_offsets"):
        assert_array_equal(getattr(built, name), getattr(expected, name))
        assert getattr(built, name).dtype == getattr(expected, name).dtype
    assert built.vocab == expected.vocab
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["corpus"]


def test_a_corpus_on_disk_is_mapped_not_read(tmp_path: Path) -> None:
    built = Corpus.from_blocks(blocks_of(["ab"] * 10), ByteTokenizer(), folder=tmp_path / "corpus")
    assert not built.ids.flags.owndata
    assert not built.ids.flags.writeable


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"ids": np.zeros(13, np.int32)}, "type that the vocabulary"),
        ({"ids": np.zeros((13, 1), np.uint16)}, "type that the vocabulary"),
        ({"ids": np.zeros(12, np.uint16)}, "do not fit"),
        ({"offsets": np.array([0, 3, 4, 6, 11, 13], np.int32)}, "offsets must be int64"),
        ({"offsets": np.array([1, 3, 4, 6, 11, 13])}, "begin with 0"),
        ({"offsets": np.array([0, 4, 3, 6, 11, 13])}, "must rise"),
        ({"offsets": np.array([], np.int64)}, "begin with 0"),
        ({"offsets": np.array([0, 13])}, "do not fit"),
        ({"byte_offsets": np.array([0, 5, 4, 6, 7, 8])}, "byte_offsets must rise"),
        ({"byte_offsets": np.array([[0, 5]])}, "byte_offsets must be int64"),
    ],
)
def test_parts_that_do_not_fit_are_refused(corpus: Corpus, change: dict[str, np.ndarray], message: str) -> None:
    parts = corpus.to_parts()
    assert documents_of(Corpus.from_parts(parts)) == documents_of(corpus)
    with pytest.raises(InputError, match=message):
        Corpus.from_parts(Parts(parts.settings, {**parts.arrays, **change}, parts.vocab))


def test_a_corpus_needs_its_vocabulary(corpus: Corpus) -> None:
    parts = corpus.to_parts()
    with pytest.raises(InputError, match="vocabulary"):
        Corpus.from_parts(Parts(parts.settings, parts.arrays, None))
