"""The index, against scans of the text."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foreword.errors import ForewordError, InputError
from foreword.infinigram import plain
from foreword.infinigram.index import SuffixIndex
from foreword.storage.folder import load, save
from foreword.tokens.corpus import Corpus
from foreword.tokens.vocab import Vocab

VOCAB = Vocab(["<unk>", "</s>", "a", "b", "c", "d"])
END = VOCAB.end
IDS = st.integers(0, len(VOCAB) - 1).filter(lambda id: id != END)
DOCUMENTS = st.lists(st.lists(IDS, max_size=8), min_size=1, max_size=6)
RUNS = st.lists(IDS, max_size=6)


def corpus_of(documents: list[list[int]], vocab: Vocab = VOCAB) -> Corpus:
    return Corpus.from_ids(documents, vocab)


def index_of(documents: list[list[int]], segments: int = 1) -> SuffixIndex:
    """An index of the documents in that many segments, or fewer if there are fewer documents."""
    size = -(-len(documents) // segments)
    parts = [documents[first : first + size] for first in range(0, len(documents), size)]
    return SuffixIndex.joined([SuffixIndex.build(corpus_of(part)) for part in parts])


def texts_of(index: SuffixIndex) -> list[list[int]]:
    return [segment.read(0, segment.size).tolist() for segment in index.segments]


@settings(max_examples=200, deadline=None)
@given(DOCUMENTS, RUNS.filter(bool), st.integers(1, 3))
def test_counts_and_places_are_those_of_a_scan(documents: list[list[int]], run: list[int], segments: int) -> None:
    index = index_of(documents, segments)
    places = [
        (number, offset)
        for number, document in enumerate(documents)
        for offset in range(len(document) - len(run) + 1)
        if document[offset : offset + len(run)] == run
    ]
    assert index.count(np.array(run)) == len(places)
    found = [(each.document, each.offset) for each in index.find(np.array(run))]
    assert found == places
    assert index.find(np.array(run), limit=2) == index.find(np.array(run))[:2]


@settings(max_examples=200, deadline=None)
@given(DOCUMENTS, st.lists(IDS, min_size=1, max_size=20), st.integers(1, 3))
def test_longest_matches_are_those_of_a_scan(documents: list[list[int]], query: list[int], segments: int) -> None:
    index = index_of(documents, segments)
    matches = index.match(np.array(query))
    texts = texts_of(index)
    for end, length, count in zip(range(1, len(query) + 1), matches.lengths, matches.counts, strict=True):
        assert length == max(plain.longest_match(text, query[:end]) for text in texts)
        if length:
            assert count == index.count(np.array(query[end - length : end]))
    ends = np.flatnonzero(matches.lengths)
    runs = [
        np.array(query[end + 1 - length : end + 1]) for end, length in zip(ends, matches.lengths[ends], strict=True)
    ]
    assert index.find_first(matches, ends) == [index.find(run, limit=1)[0] for run in runs]
    for begin, end in matches.spans(2):
        assert end - begin >= 2
        assert index.count(np.array(query[begin:end])) > 0
        assert end == len(query) or not index.count(np.array(query[begin : end + 1]))
        assert begin == 0 or not index.count(np.array(query[begin - 1 : end]))


@settings(max_examples=200, deadline=None)
@given(DOCUMENTS, RUNS, st.integers(1, 3))
def test_next_tokens_are_those_of_a_scan(documents: list[list[int]], context: list[int], segments: int) -> None:
    index = index_of(documents, segments)
    found = index.context(np.array(context, np.int64))
    tail = context[len(context) - found.length :]
    texts = [text if tail else text[1:] for text in texts_of(index)]  # nothing comes before the first token
    expected = sum((plain.next_tokens(text, tail) for text in texts), Counter[int]())
    assert dict(zip(found.tokens.tolist(), found.counts.tolist(), strict=True)) == dict(expected)
    assert found.likeliest(2) == sorted(expected.items(), key=lambda item: (-item[1], item[0]))[:2]
    if found.length < len(context):
        assert index.count(np.array(context[len(context) - found.length - 1 :])) == 0


@pytest.mark.parametrize("size", [1, 15, 16, 17, 511, 512, 513, 1100, 16_384, 16_385, 40_000])
def test_next_tokens_of_frequent_contexts_are_those_of_a_scan(size: int) -> None:
    """Of few occurrences not all are read, in batches of 512; those of many are searched."""
    rng = np.random.default_rng(size)
    vocab = Vocab(["<unk>", "</s>", *map(str, range(998))])
    for skew in (1.0, 3.0):
        following = 3 + (996 * rng.random(size) ** skew).astype(np.int64)
        corpus = corpus_of([np.column_stack((np.full(size, 2), following)).ravel().tolist()], vocab)
        found = SuffixIndex.build(corpus).context(np.array([2]))
        tokens, counts = np.unique(following, return_counts=True)
        assert np.array_equal(found.tokens, tokens)
        assert np.array_equal(found.counts, counts)


@pytest.mark.parametrize("tokens", [255, 256, 65_535, 65_536, 70_000])
def test_numbers_are_packed_in_as_few_bits_as_the_vocabulary_needs(tokens: int) -> None:
    vocab = Vocab(["<unk>", "</s>", *map(str, range(tokens - 2))])
    document = np.random.default_rng(0).integers(2, tokens, 1000)
    document[[7, 500]] = tokens - 1
    index = SuffixIndex.build(corpus_of([document.tolist()], vocab))
    assert index.segments[0].text.shape == (1002 // 8 + 2, tokens.bit_length())
    assert index.segments[0].suffixes.shape == (1002 // 8 + 2, 10)
    assert np.array_equal(index.document(0), document)
    assert index.count(np.array([tokens - 1])) == (document == tokens - 1).sum() >= 2
    assert index.count(document[400:600]) == 1


def test_documents_come_back_as_they_were() -> None:
    documents = [[2, 3], [], [4], [5, 5, 5], [2]]
    index = index_of(documents, segments=2)
    assert len(index.segments) == 2
    assert [index.document(number).tolist() for number in range(len(index))] == documents
    with pytest.raises(InputError, match="document 5: expected 0 to 4"):
        index.document(5)


@pytest.mark.parametrize("documents", [[[]], [[2]], [[3] * 1000], [[2, 3, 4, 5]]], ids=["empty", "one", "equal", "all"])
def test_small_and_uniform_texts(documents: list[list[int]]) -> None:
    index = index_of(documents)
    longer = np.array([3] * 1001)
    assert index.count(longer) == 0
    assert index.match(longer).lengths.max() == (1000 if len(documents[0]) == 1000 else int(3 in documents[0]))
    assert index.count(np.array([3])) == documents[0].count(3)


def test_an_empty_corpus_and_foreign_ids_are_refused() -> None:
    with pytest.raises(ForewordError, match="empty"):
        SuffixIndex.build(corpus_of([]))
    index = index_of([[2, 3]])
    with pytest.raises(ForewordError, match="not in the vocabulary of 6 tokens"):
        index.count(np.array([6]))
    other = Vocab(["<unk>", "</s>", "x", "y", "z", "w"])
    with pytest.raises(InputError, match="share one vocabulary"):
        SuffixIndex.joined([index, SuffixIndex.build(corpus_of([[2]], other))])


def test_a_damaged_index_is_refused_or_answers_within_its_arrays(tmp_path: Path) -> None:
    index = index_of([[2, 3, 4], [2, 3, 5]])
    save(index, tmp_path / "index")
    loaded = load(tmp_path / "index")
    assert loaded.count(np.array([2, 3])) == 2
    arrays = tmp_path / "index" / "arrays.safetensors"
    content = bytearray(arrays.read_bytes())
    content[-8] ^= 1
    arrays.write_bytes(content)
    with pytest.raises(InputError, match="damaged"):
        load(tmp_path / "index")
    arrays.write_bytes(content[:-4])
    with pytest.raises(InputError, match="damaged"):
        load(tmp_path / "index")


def test_arrays_that_do_not_fit_together_are_refused() -> None:
    parts = index_of([[2, 3, 4], [2, 3, 5]]).to_parts()
    for name in ("0.suffixes", "0.firsts", "0.offsets"):
        wrong = {**parts.arrays, name: parts.arrays[name][:-1]}
        with pytest.raises(ValueError, match=r"fit|rise"):
            SuffixIndex.from_parts(type(parts)(parts.settings, wrong, parts.vocab))


def test_suffixes_outside_the_text_read_nothing_there() -> None:
    """Large files are mapped without being read, so a flipped bit reaches the kernels."""
    index = index_of([[2, 3, 4], [2, 3, 5]])
    parts = index.to_parts()
    rng = np.random.default_rng(0)
    for _ in range(50):
        suffixes = rng.integers(0, 256, parts.arrays["0.suffixes"].shape).astype(np.uint8)
        broken = SuffixIndex.from_parts(type(parts)(parts.settings, {**parts.arrays, "0.suffixes": suffixes}, VOCAB))
        broken.match(np.array([2, 3, 4, 2, 3]))
        broken.context(np.array([2, 3]))
        broken.count(np.array([2, 3, 4]))
