"""What is true of every tokenizer."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from foreword.protocols import Saveable, TextTokenizer
from foreword.storage.folder import load, save
from foreword.text.block import blocks_of
from foreword.tokens.corpus import Corpus

from .models import TOKENIZERS, Tokens

TEXTS = [
    "the cat sat on the mat",
    "The dog — größer, naïve — chased the cat.",
    "",
    "  spaces   and\ttabs  ",
    "数学は美しい 😀 👩‍👩‍👧",
    "the the the cat cat 3.14 don't",
]
ODD_TEXTS = ["", " ", "unseen wörds ☃", "a\u0301 combining", "\u200b\ufeff", "e" * 300, "\ufffd", "<unk> </s>"]

# No lone surrogates: they are not text, and UTF-8 cannot hold them.
any_text = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)


@pytest.fixture(params=TOKENIZERS, ids=lambda case: case.name)
def case(request: pytest.FixtureRequest) -> Tokens:
    assert isinstance(request.param, Tokens)
    return request.param


@pytest.fixture
def tokenizer(case: Tokens) -> TextTokenizer:
    fitted: TextTokenizer = case.build().fit(TEXTS)
    return fitted


def test_fit_returns_the_tokenizer(case: Tokens) -> None:
    tokenizer = case.build()
    assert tokenizer.fit(TEXTS) is tokenizer


def test_fit_reads_any_iterable_once(case: Tokens, tokenizer: TextTokenizer) -> None:
    assert case.build().fit(text for text in TEXTS).vocab == tokenizer.vocab


@pytest.mark.parametrize("text", TEXTS + ODD_TEXTS)
def test_ids_are_in_the_vocabulary_and_the_end_is_not_among_them(tokenizer: TextTokenizer, text: str) -> None:
    ids = tokenizer.encode(text)
    assert ids.ndim == 1
    assert np.issubdtype(ids.dtype, np.integer)
    assert all(0 <= id < len(tokenizer.vocab) and id != tokenizer.vocab.end for id in ids.tolist())


def test_nothing_encodes_to_nothing(tokenizer: TextTokenizer) -> None:
    assert len(tokenizer.encode("")) == 0
    assert tokenizer.decode([]) == ""


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=any_text)
@example(text="\r\n\x00 \u2028\u0085")
def test_a_lossless_tokenizer_gives_any_text_back(case: Tokens, tokenizer: TextTokenizer, text: str) -> None:
    if case.lossless:
        assert tokenizer.decode(tokenizer.encode(text)) == text
        assert tokenizer.vocab.unknown is None or tokenizer.vocab.unknown not in tokenizer.encode(text)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.one_of(st.sampled_from(TEXTS), any_text))
def test_known_tokens_decode_to_what_encodes_to_them(tokenizer: TextTokenizer, text: str) -> None:
    """A text of known tokens may lose its spacing or its capitals, but nothing more the second time."""
    ids = tokenizer.encode(text)
    if tokenizer.vocab.unknown not in ids.tolist():
        once = tokenizer.decode(ids.tolist())
        assert_array_equal(tokenizer.encode(once), ids)


def test_fitted_twice_it_is_the_same(case: Tokens, tokenizer: TextTokenizer) -> None:
    again = case.build().fit(TEXTS)
    assert again.vocab.tokens == tokenizer.vocab.tokens
    for text in TEXTS + ODD_TEXTS:
        assert_array_equal(again.encode(text), tokenizer.encode(text))


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_the_number_of_threads_and_the_cut_into_blocks_change_nothing(case: Tokens, threads: int) -> None:
    texts = TEXTS * 5
    once = case.build().fit(texts)
    again = case.build().fit_blocks(blocks_of(texts, size=50), threads=threads)
    assert again.vocab.tokens == once.vocab.tokens
    assert_array_equal(again.vocab.counts, once.vocab.counts)
    one, many = Corpus.from_texts(texts, once), Corpus.from_blocks(blocks_of(texts, size=50), again, threads=threads)
    assert_array_equal(many.ids, one.ids)
    assert_array_equal(many.offsets, one.offsets)
    assert_array_equal(many.byte_offsets, one.byte_offsets)


def test_saved_and_loaded_it_gives_the_same_ids(tokenizer: TextTokenizer, tmp_path: Path) -> None:
    assert isinstance(tokenizer, Saveable)
    save(tokenizer, tmp_path / "tokenizer")
    loaded = load(tmp_path / "tokenizer")
    assert type(loaded) is type(tokenizer)
    assert loaded.vocab == tokenizer.vocab
    for text in TEXTS + ODD_TEXTS:
        assert_array_equal(loaded.encode(text), tokenizer.encode(text))
        ids = tokenizer.encode(text).tolist()
        assert loaded.decode(ids) == tokenizer.decode(ids)


def test_a_corpus_is_the_texts_encoded_one_by_one(tokenizer: TextTokenizer) -> None:
    corpus = Corpus.from_texts(TEXTS, tokenizer)
    assert len(corpus) == len(TEXTS)
    for text, document in zip(TEXTS, corpus.documents(), strict=True):
        assert document.tolist() == [*tokenizer.encode(text).tolist(), tokenizer.vocab.end]
    assert corpus.text_bytes == sum(len(text.encode()) + 1 for text in TEXTS)
