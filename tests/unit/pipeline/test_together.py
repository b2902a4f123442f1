"""Models with different vocabularies on one text: the same events for all, or a refusal."""

from __future__ import annotations

import math

import numpy as np
import pytest

from foreword.errors import InputError
from foreword.ngram.kenlm import KenlmLM
from foreword.ngram.kenlm_words import HashedWords
from foreword.ngram.kenlm_writing import build_kenlm
from foreword.ngram.log10 import log10_of
from foreword.ngram.model import NgramLM
from foreword.ngram.unigram import UnigramLM
from foreword.pipeline.language import TextLM
from foreword.pipeline.together import Together, measure_together
from foreword.tokens.bpe import BPETokenizer
from foreword.tokens.characters import ByteTokenizer
from foreword.tokens.words import WordTokenizer

TRAIN = ["the cat sat on the mat", "the dog sat on the log", "a cat and a dog ran", "one owl saw one mouse"] * 3 + [
    "hapax"
]
TEST = ["the owl sat on the log", "a zebra saw the hapax"] * 20


def together(**models: TextLM) -> Together:
    return measure_together(models, {name: model.corpus(TEST) for name, model in models.items()})


def words(min_count: int, model: UnigramLM | NgramLM) -> TextLM:
    return TextLM(WordTokenizer(min_count=min_count), model).fit(TRAIN)


def test_models_of_the_same_words_keep_their_numbers() -> None:
    one, other = words(1, UnigramLM()), words(1, NgramLM(2))
    found = together(one=one, other=other)
    assert (found.by, found.normalised) == ("perplexity", False)
    assert found.measures["one"] == one.measure(TEST)
    assert list(found.measures) == sorted(found.measures, key=lambda name: found.measures[name].perplexity)
    assert found.intervals is not None
    low, high = found.intervals["one"]
    assert low <= found.measures["one"].perplexity <= high


def test_what_a_smaller_vocabulary_calls_unknown_is_shared_out() -> None:
    """``hapax`` is unknown to one of the two, ``zebra`` to both: it has two words to share ``<unk>`` among."""
    all_words, fewer = words(1, UnigramLM()), words(2, UnigramLM())
    found = together(all=all_words, fewer=fewer)
    assert found.normalised
    assert found.measures["all"] == all_words.measure(TEST)
    logs, ids = fewer.model.logprobs(fewer.corpus(TEST)), fewer.corpus(TEST).ids
    unknown = ids == fewer.vocab.unknown
    assert np.count_nonzero(unknown) == 40
    expected = (logs.sum() - 40 * math.log(2)) / len(ids)
    assert found.measures["fewer"].perplexity == pytest.approx(math.exp(-expected))
    assert found.measures["fewer"].perplexity > fewer.perplexity(TEST)


def test_shared_out_probabilities_still_sum_to_one() -> None:
    known, fewer = words(1, UnigramLM()), words(2, UnigramLM())
    each = np.exp(fewer.model.logprobs(fewer.corpus([" ".join(known.vocab.tokens[2:]) + " zebra"])))
    *given, end = each.tolist()  # every known word, a new one, and the end
    count = len(set(known.vocab.tokens) - set(fewer.vocab.tokens)) + 1
    unknown = fewer.corpus([" ".join(known.vocab.tokens[2:]) + " zebra"]).ids[:-1] == fewer.vocab.unknown
    total = end + sum(p / count if is_unknown else p for p, is_unknown in zip(given, unknown, strict=True))
    assert total == pytest.approx(1)


def test_other_tokens_are_compared_by_bits_per_byte() -> None:
    bytes_, pairs = (TextLM(tokenizer, NgramLM(3)).fit(TRAIN) for tokenizer in (ByteTokenizer(), BPETokenizer(280)))
    found = together(bytes=bytes_, pairs=pairs)
    assert (found.by, found.intervals) == ("bits_per_byte", None)
    first, second = found.measures.values()
    assert first.bits_per_byte <= second.bits_per_byte


def test_other_tokens_with_unknown_words_are_refused() -> None:
    with pytest.raises(InputError, match=r"words cuts text into other tokens than bytes, and 20 of them are unknown"):
        together(bytes=TextLM(ByteTokenizer(), NgramLM(3)).fit(TRAIN), words=words(1, NgramLM(2)))
    lower = TextLM(WordTokenizer(lowercase=True), NgramLM(2)).fit(TRAIN)
    with pytest.raises(InputError, match="cuts text into other tokens"):
        together(lower=lower, words=words(1, NgramLM(2)))


def kenlm(model: TextLM) -> TextLM:
    assert isinstance(model.model, NgramLM)
    binary = KenlmLM(build_kenlm(log10_of(model.model)))
    return TextLM(binary.words, binary)


def test_a_kenlm_binary_has_words_like_any_other_model() -> None:
    """Its words are found by their hashes, and are divided by white space as ours are."""
    one, other = words(1, NgramLM(2)), words(2, NgramLM(2))
    found, expected = together(binary=kenlm(one), other=other), together(binary=one, other=other)
    assert (found.by, found.normalised) == ("perplexity", True)
    for name in expected.measures:
        assert found.measures[name].perplexity == pytest.approx(expected.measures[name].perplexity, rel=1e-5)
    assert together(a=kenlm(one), b=kenlm(one)).normalised is False


def test_a_kenlm_binary_divides_words_by_the_white_space_of_ascii_alone() -> None:
    models = {"binary": kenlm(words(1, NgramLM(2))), "words": words(1, NgramLM(2))}
    texts = ["the\u3000cat sat"]
    with pytest.raises(InputError, match="cuts text into other tokens"):
        measure_together(models, {name: model.corpus(texts) for name, model in models.items()})


def test_words_that_are_hashes_only_cannot_be_compared() -> None:
    binary = kenlm(words(1, NgramLM(2)))
    assert isinstance(binary.tokenizer, HashedWords)
    binary.tokenizer.has_words = False
    with pytest.raises(InputError, match=r"binary: its words are known only by their hashes, .* those of words"):
        together(words=words(1, NgramLM(2)), binary=binary)
