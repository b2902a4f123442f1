"""What the sources say of the unigram model and of perplexity, run."""

from __future__ import annotations

import itertools
import math
import random

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from foreword.measures.perplexity import measure, perplexity, surprisal
from foreword.ngram.unigram import UnigramLM
from foreword.tokens.characters import ByteTokenizer
from foreword.tokens.corpus import Corpus
from foreword.tokens.vocab import Vocab
from foreword.tokens.words import WordTokenizer

TEXTS = ["the cat chases the mouse", "the dog bites the man", "man bites dog"]


def words_corpus(texts: list[str]) -> Corpus:
    return Corpus.from_texts(texts, WordTokenizer().fit(TEXTS))


def test_t08_the_maximum_likelihood_table_is_each_word_s_share_of_the_text() -> None:
    """T08: MLE = fraction of occurrences. 13 words and 3 ends: "the" 4 of 16, "dog" 2 of 16, "cat" 1 of 16."""
    model = UnigramLM(add=0).fit(words_corpus(TEXTS))
    probability = {word: math.exp(log) for word, log in zip(model.vocab, model.log_probabilities_, strict=True)}
    expected = {"the": 4, "</s>": 3, "dog": 2, "bites": 2, "man": 2, "cat": 1, "chases": 1, "mouse": 1, "<unk>": 0}
    assert probability == pytest.approx({word: count / 16 for word, count in expected.items()}, rel=1e-15)


def test_t08_no_other_table_makes_the_training_text_likelier() -> None:
    """T08: what maximum likelihood means, against a thousand tables near and far."""
    corpus = words_corpus(TEXTS)
    model = UnigramLM(add=0).fit(corpus)
    seen = model.counts_ > 0
    best = float(model.counts_[seen] @ model.log_probabilities_[seen])
    share = model.counts_[seen] / model.counts_.sum()
    rng = np.random.default_rng(0)
    for concentration in (1.0, 10.0, 1000.0):
        tables = rng.dirichlet(share * concentration + 0.1, size=333)
        assert (np.log(np.maximum(tables, 1e-300)) @ model.counts_[seen]).max() < best


def test_t08_the_log_likelihood_does_not_care_about_order() -> None:
    """T08: invariant under permutation, to the last bit when the sum itself is exact."""
    words = " ".join(TEXTS).split()
    model = UnigramLM(add=0).fit(words_corpus(TEXTS))
    corpus = words_corpus([" ".join(words)])
    expected = math.fsum(model.logprobs(corpus))
    for seed in range(20):
        shuffled = random.Random(seed).sample(words, len(words))
        assert math.fsum(model.logprobs(words_corpus([" ".join(shuffled)]))) == expected
    # "dog bites man" and "man bites dog" are one and the same to it, as their bags of words are.
    pair = [words_corpus([text]) for text in ("dog bites man", "man bites dog")]
    assert math.fsum(model.logprobs(pair[0])) == math.fsum(model.logprobs(pair[1]))
    assert not np.array_equal(pair[0].ids, pair[1].ids)


@pytest.mark.parametrize("add", [0.0, 0.5, 1.0])
def test_n01_the_probabilities_of_all_texts_of_a_length_are_what_the_chain_rule_makes_them(add: float) -> None:
    """N01: p(x1..xN) = Π p(xn | x<n); over all texts of N words these sum to (1 − p(</s>))^N · p(</s>)."""
    vocab = Vocab(["<unk>", "</s>", "a", "b"])
    model = UnigramLM(add=add).fit(Corpus.from_ids([[2, 2, 3], [0], []], vocab))
    end = math.exp(model.log_probabilities_[vocab.end])
    for length in range(4):
        texts = [list(words) for words in itertools.product([0, 2, 3], repeat=length)]
        corpus = Corpus.from_ids(texts, vocab)
        logs = model.logprobs(corpus)
        totals = [math.fsum(logs[start:stop]) for start, stop in itertools.pairwise(corpus.offsets.tolist())]
        assert math.fsum(map(math.exp, totals)) == pytest.approx((1 - end) ** length * end, rel=1e-12)


@pytest.mark.parametrize("size", [2, 3, 10, 1000, 50_257])
def test_m01_a_uniform_model_over_v_tokens_has_perplexity_v(size: int) -> None:
    """M01: perplexity is exp of the mean negative log-likelihood; uniform over V gives V exactly."""
    vocab = Vocab(["</s>", *map(str, range(1, size))], unknown=None)
    uniform = UnigramLM(add=0).fit(Corpus.from_ids([list(range(1, size))], vocab))
    rng = np.random.default_rng(size)
    corpus = Corpus.from_ids([rng.integers(1, size, length).tolist() for length in (0, 1, 17, 4000)], vocab)
    assert perplexity(uniform, corpus) == pytest.approx(size, rel=1e-12)
    assert_allclose(surprisal(uniform, corpus), math.log2(size), rtol=1e-12)


def test_m01_perplexity_is_the_exponential_of_the_cross_entropy() -> None:
    """M01: a half, a quarter, a quarter: one and a half bits a token on its own text, perplexity 2^1.5."""
    vocab = Vocab(["</s>", "a", "b"], unknown=None)
    text = Corpus.from_ids([[1, 1, 2]], vocab)
    assert perplexity(UnigramLM(add=0).fit(text), text) == pytest.approx(2**1.5, rel=1e-14)


def test_m01_bits_per_byte_compare_where_perplexities_cannot() -> None:
    """M01: a uniform model over bytes pays log2(V) bits a byte; bytes put one over words on the same scale."""
    text = ["aaaa aaaa aaaa"]
    tokenizer = ByteTokenizer()
    bytes_corpus = Corpus.from_texts(text, tokenizer)
    every_byte = [id for id in range(len(tokenizer.vocab)) if id != tokenizer.vocab.end]
    uniform = UnigramLM(add=0).fit(Corpus.from_ids([every_byte], tokenizer.vocab))
    measured = measure(uniform, bytes_corpus)
    assert measured.tokens == bytes_corpus.text_bytes == 15
    assert measured.bits_per_byte == pytest.approx(math.log2(len(tokenizer.vocab)), rel=1e-12)

    vocab = Vocab(["</s>", "aaaa"], unknown=None)
    one_token_a_word = Corpus(
        np.array([1, 1, 1, 0], np.int32), np.array([0, 4]), np.array([0, bytes_corpus.text_bytes]), vocab
    )
    words = measure(UnigramLM(add=0).fit(one_token_a_word), one_token_a_word)
    assert words.perplexity == pytest.approx((4 / 3) ** 0.75 * 4**0.25, rel=1e-14)
    assert words.bits_per_byte == pytest.approx((3 * math.log2(4 / 3) + 2) / 15, rel=1e-14)


def test_t08_counts_add_up() -> None:
    """T08: the table is made of counts and nothing else, so a text read twice gives the same table."""
    once, twice = words_corpus(TEXTS), words_corpus(TEXTS * 2)
    assert_array_equal(UnigramLM(add=0).fit(once).log_probabilities_, UnigramLM(add=0).fit(twice).log_probabilities_)
