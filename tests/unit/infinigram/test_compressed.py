"""The compressed index, against scans of the text."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foreword.errors import InputError
from foreword.infinigram import plain
from foreword.infinigram.compressed import CompressedIndex
from foreword.infinigram.index import SuffixIndex
from foreword.pipeline.compressed import CompressedTextIndex
from foreword.storage.folder import load, save
from foreword.text.embedded import embedded_text
from foreword.tokens.corpus import Corpus
from foreword.tokens.vocab import Vocab

VOCAB = Vocab(["<unk>", "</s>", "a", "b", "c", "d"])
IDS = st.integers(0, len(VOCAB) - 1).filter(lambda id: id != VOCAB.end)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.lists(IDS, max_size=30), min_size=1, max_size=6), st.lists(IDS, max_size=5), st.integers(1, 20))
def test_counts_are_those_of_a_scan(documents: list[list[int]], run: list[int], repeats: int) -> None:
    index = CompressedIndex.build(Corpus.from_ids(documents * repeats, VOCAB))
    text = [VOCAB.end, *(id for document in documents * repeats for id in (*document, VOCAB.end))]
    assert len(index) == len(documents) * repeats
    assert index.tokens == len(text) - 1
    assert index.count(np.array(run, np.int64)) == (plain.count(text, run) if run else len(text))
    once = [VOCAB.end, *(id for document in documents for id in (*document, VOCAB.end))]
    assert plain.count_backward(plain.transform(once), run) == plain.count(once, run)


def test_a_text_of_many_blocks_counts_as_the_suffix_array_does() -> None:
    """Of 100,000 bytes: several thousand blocks, and samples between them."""
    texts = [text for text in embedded_text() if text][:1500]
    index = CompressedTextIndex().fit(texts)
    corpus = Corpus.from_texts(texts, index.tokenizer)
    whole = SuffixIndex.build(corpus)
    rng = np.random.default_rng(0)
    runs = [corpus.ids[begin : begin + rng.integers(1, 12)] for begin in rng.integers(0, len(corpus.ids) - 12, 300)]
    runs += [rng.permutation(run) for run in runs]
    assert [index.index.count(run) for run in runs] == [whole.count(run) for run in runs]
    assert index.index.nbytes < 0.7 * sum(len(text.encode()) + 1 for text in texts)


def test_it_is_saved_and_refuses_arrays_that_do_not_fit(tmp_path: Path) -> None:
    index = CompressedTextIndex().fit(["to be or not to be", "that is the question"])
    save(index, tmp_path / "index")
    loaded = load(tmp_path / "index")
    assert (loaded.count("to be"), loaded.count("o be or"), loaded.count("be that"), len(loaded)) == (2, 1, 0, 2)
    with pytest.raises(InputError, match="no token"):
        loaded.count("")
    parts = index.index.to_parts()
    for name, wrong in parts.arrays.items():
        broken = {**parts.arrays, name: wrong[..., :0]}
        with pytest.raises(ValueError, match=r"fit|another type|count"):
            CompressedIndex.from_parts(type(parts)(parts.settings, broken, parts.vocab))


def test_damaged_bits_read_nothing_outside_the_arrays() -> None:
    index = CompressedTextIndex().fit(["to be or not to be, that is the question"] * 50).index
    parts, rng = index.to_parts(), np.random.default_rng(0)
    for _ in range(30):
        for name in ("classes", "offsets", "samples"):
            array = parts.arrays[name]
            noise = rng.integers(0, 256, array.nbytes).astype(np.uint8).view(array.dtype).reshape(array.shape)
            broken = CompressedIndex.from_parts(type(parts)(parts.settings, {**parts.arrays, name: noise}, parts.vocab))
            broken.count(np.frombuffer(b"to be or", np.uint8).astype(np.int64))


def test_a_large_vocabulary_and_an_empty_corpus_are_refused() -> None:
    with pytest.raises(InputError, match="expected 65,536 at most"):
        CompressedIndex.build(Corpus.from_ids([[2]], Vocab(["<unk>", "</s>", *map(str, range(1 << 16))])))
    with pytest.raises(InputError, match="empty"):
        CompressedIndex.build(Corpus.from_ids([], VOCAB))
