from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from foreword.errors import ForewordError, SettingError
from foreword.text.block import Block, blocks_of
from foreword.tokens.corpus import Corpus
from foreword.tokens.vocab import Vocab
from foreword.tokens.words import WordTokenizer

some_text = st.text(st.sampled_from("abc éß漢.,'<>\t\n\u3000") | st.characters(exclude_categories=["Cs"]), max_size=30)
some_texts = st.lists(some_text, max_size=8)


def test_words_from_the_most_frequent_on_ties_as_they_first_came() -> None:
    tokenizer = WordTokenizer().fit(["b a b", "c a", ""])
    assert tokenizer.vocab.tokens == ["<unk>", "</s>", "b", "a", "c"]
    assert tokenizer.vocab.counts is not None
    assert tokenizer.vocab.counts.tolist() == [0, 3, 2, 2, 1]
    assert tokenizer.encode("c b zebra a").tolist() == [4, 2, 0, 3]
    assert tokenizer.decode([4, 2, 0]) == "c b <unk>"


@pytest.mark.parametrize(
    ("settings", "kept", "unknown"),
    [
        ({"min_count": 2}, ["a", "b"], 2),
        ({"min_count": 9}, [], 7),
        ({"max_size": 3}, ["a"], 4),
        ({"max_size": 2}, [], 7),
        ({"max_size": 4, "min_count": 3}, ["a"], 4),
    ],
)
def test_rare_words_are_unknown(settings: dict[str, int], kept: list[str], unknown: int) -> None:
    tokenizer = WordTokenizer(**settings).fit(["a b c", "a b d a"])  # type: ignore[arg-type]
    assert tokenizer.vocab.tokens == ["<unk>", "</s>", *kept]
    assert tokenizer.vocab.counts is not None
    assert tokenizer.vocab.counts[0] == unknown
    assert (tokenizer.encode("a b c d") == 0).sum() == 4 - len(kept)


def test_settings_that_make_no_sense_are_refused() -> None:
    with pytest.raises(SettingError, match="max_size=1"):
        WordTokenizer(max_size=1)
    with pytest.raises(SettingError, match="split='letters'"):
        WordTokenizer(split="letters")  # type: ignore[arg-type]
    with pytest.raises(SettingError, match="NFX"):
        WordTokenizer(form="NFX")  # type: ignore[arg-type]


def test_a_text_may_say_unk_but_cannot_say_the_end() -> None:
    tokenizer = WordTokenizer().fit(["<unk> a </s> <unk>"])
    assert tokenizer.vocab.tokens == ["<unk>", "</s>", "a"]
    assert tokenizer.vocab.counts is not None
    assert tokenizer.vocab.counts.tolist() == [3, 1, 1]
    assert tokenizer.encode("<unk> </s> a").tolist() == [0, 0, 2]


def test_lower_case_and_forms() -> None:
    assert WordTokenizer(lowercase=True).fit(["The THE Größe"]).vocab.tokens[2:] == ["the", "größe"]
    composed = WordTokenizer(form="NFC").fit(["e\u0301 é"])
    assert composed.vocab.tokens[2:] == ["é"]
    assert composed.encode("e\u0301 é").tolist() == [2, 2]
    assert WordTokenizer(form="NFKC").fit(["ﬁ"]).vocab.tokens[2:] == ["fi"]


def test_punctuation_is_split_off() -> None:
    tokenizer = WordTokenizer(split="punctuation").fit(["Don't stop—now, e\u0301a_b (ok)!?"])
    expected = ["Don", "'", "t", "stop", "—", "now", ",", "e\u0301a_b", "(", "ok", ")", "!", "?"]
    assert tokenizer.vocab.tokens[2:] == expected


def test_long_words_are_words() -> None:
    words = ["a" * 24, "a" * 25, "a" * 26, "a" * 25 + "b", "b" * 10_000, "ü" * 12, "ü" * 13]
    tokenizer = WordTokenizer().fit([" ".join(words)])
    assert tokenizer.vocab.tokens[2:] == words
    assert tokenizer.encode(" ".join(reversed(words))).tolist() == list(range(8, 1, -1))
    assert tokenizer.encode("a" * 27).tolist() == [0]


def test_unfitted_it_says_so() -> None:
    with pytest.raises(ForewordError, match="fit"):
        WordTokenizer().encode("a")


@settings(deadline=None)
@given(some_texts, st.integers(1, 3), st.sampled_from([None, 2, 4]))
def test_it_is_a_counter_over_str_split(texts: list[str], min_count: int, max_size: int | None) -> None:
    tokenizer = WordTokenizer(min_count=min_count, max_size=max_size).fit(texts)
    counts = Counter(word for text in texts for word in text.split())
    expected = Vocab.from_counts(counts, min_count=min_count, max_size=max_size, end_count=len(texts))
    assert tokenizer.vocab == expected
    assert_array_equal(tokenizer.vocab.counts, expected.counts)
    for text in texts:
        assert_array_equal(tokenizer.encode(text), expected.ids(text.split()))


@settings(deadline=None, max_examples=50)
@given(some_texts, st.sampled_from([1, 2, 4]), st.integers(1, 20))
def test_vocabulary_and_ids_in_one_pass_are_those_of_two(texts: list[str], threads: int, size: int) -> None:
    one = WordTokenizer(min_count=2, max_size=6)
    corpus = one.fit_corpus(blocks_of(texts, size), threads=threads)
    two = WordTokenizer(min_count=2, max_size=6).fit(texts)
    expected = Corpus.from_texts(texts, two)
    assert one.vocab == two.vocab
    assert_array_equal(one.vocab.counts, two.vocab.counts)
    for name in ("ids", "offsets", "byte_offsets"):
        assert_array_equal(getattr(corpus, name), getattr(expected, name))
    assert corpus.ids.dtype == expected.ids.dtype


def test_a_document_may_go_on_in_the_next_block() -> None:
    blocks = [Block.from_texts(["a b", "c"], open=True), Block.from_texts([" d", "e"])]
    corpus = WordTokenizer().fit_corpus(iter(blocks), threads=1)
    assert [[corpus.vocab[int(id)] for id in document] for document in corpus.documents()] == [
        ["a", "b", "</s>"],
        ["c", "d", "</s>"],
        ["e", "</s>"],
    ]
    assert corpus.byte_offsets.tolist() == [0, 4, 8, 10]


def test_fitting_again_forgets_what_was_learnt_before() -> None:
    tokenizer = WordTokenizer().fit(["a b"])
    assert tokenizer.encode("a").tolist() == [2]
    tokenizer.fit(["b a b"])
    assert tokenizer.encode("a b").tolist() == [3, 2]
