"""The compact layouts: the same scores in less room, and what eight bits cost."""

from pathlib import Path

import numpy as np
import pytest

from foreword.errors import InputError
from foreword.ngram.arpa import write_arpa
from foreword.ngram.hash_layout import mixed_keys, word_bits
from foreword.ngram.model import NgramLM
from foreword.protocols import Parts
from foreword.storage.folder import load, save
from foreword.text.embedded import embedded_text
from foreword.tokens.corpus import Corpus
from foreword.tokens.words import WordTokenizer


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    texts = embedded_text("test")
    return Corpus.from_texts(texts, WordTokenizer().fit(texts))


def test_a_trie_says_what_the_hash_says_to_the_last_bit(corpus: Corpus) -> None:
    hashed, trie = (NgramLM(5, layout=layout).fit(corpus) for layout in ("hash", "trie"))
    logs, matched = hashed.full_scores(corpus)
    trie_logs, trie_matched = trie.full_scores(corpus)
    assert np.array_equal(logs, trie_logs)
    assert np.array_equal(matched, trie_matched)
    for (_, *ours), (_, *theirs) in zip(hashed.ngrams(), trie.ngrams(), strict=True):
        for one, other in zip(ours, theirs, strict=True):
            np.testing.assert_array_equal(one, other)


def test_rows_sum_to_one_but_for_what_the_numbers_are_rounded_to(corpus: Corpus) -> None:
    exact = NgramLM(3, layout="trie").fit(corpus)
    coarse = NgramLM(3, layout="trie", quantize=True).fit(corpus)
    assert exact.normalisation_loss(50) < 1e-5
    assert 1e-5 < coarse.normalisation_loss(50) < 0.3


def test_eight_bits_hardly_change_the_perplexity(corpus: Corpus) -> None:
    train, test = corpus[: len(corpus) * 9 // 10], corpus[len(corpus) * 9 // 10 :]
    exact = NgramLM(3).fit(train).score(test)
    coarse = NgramLM(3, layout="trie", quantize=True).fit(train).score(test)
    assert coarse == pytest.approx(exact, abs=0.02)


@pytest.mark.long
def test_each_layout_is_smaller_than_the_one_before_and_comes_back_the_same(corpus: Corpus, tmp_path: Path) -> None:
    sizes = []
    for layout, quantize in (("hash", False), ("trie", False), ("trie", True)):
        model = NgramLM(4, layout=layout, quantize=quantize).fit(corpus)  # type: ignore[arg-type]
        save(model, tmp_path / "model")
        again = load(tmp_path / "model")
        assert np.array_equal(again.logprobs(corpus), model.logprobs(corpus))
        sizes.append((tmp_path / "model" / "arrays.safetensors").stat().st_size / sum(model.sizes_))
    assert sizes[0] < 24
    assert sizes[1] < sizes[0] / 2
    assert sizes[2] < sizes[1] / 1.5


def test_quantizing_a_hash_is_refused() -> None:
    with pytest.raises(Exception, match="trie"):
        NgramLM(3, quantize=True)


def with_first_bigram(model: NgramLM, context: int, word: int) -> NgramLM:
    """The model as a hostile file would have it: its first bigram is another one."""
    parts = model.to_parts()
    table = parts.arrays["table"].copy()
    row = int(np.flatnonzero(table[::2])[0])
    bits = word_bits(len(model.vocab))
    table[2 * row] = mixed_keys(np.array([context]), np.array([word]), bits)[0]
    return NgramLM.from_parts(Parts(parts.settings, {**parts.arrays, "table": table}, parts.vocab))


def test_a_context_that_does_not_exist_is_told_when_ngrams_are_listed(corpus: Corpus) -> None:
    model = NgramLM(3).fit(corpus)
    for context in (1 << 40, len(corpus.vocab) + 1):  # beyond everything, and a bigram in the place of a word
        with pytest.raises(InputError, match="context that does not exist"):
            list(with_first_bigram(model, context, 2).ngrams())


def test_a_word_that_does_not_exist_is_not_written(corpus: Corpus, tmp_path: Path) -> None:
    """Nothing outside the names is read, and no file is left."""
    word = (1 << word_bits(len(corpus.vocab))) - 1
    assert word > len(corpus.vocab)
    with pytest.raises(InputError, match="a word that is not in its vocabulary"):
        write_arpa(with_first_bigram(NgramLM(3).fit(corpus), 2, word), tmp_path / "model.arpa")
    assert list(tmp_path.iterdir()) == []
