"""What the sources say of n-gram models, run."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Sequence
from functools import cache
from itertools import islice

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from numpy.typing import NDArray

from foreword.arrays import Logs
from foreword.decode import generate
from foreword.errors import ForewordError, SettingError
from foreword.evaluate.compare.facts import ORDERS, free_parameters, ngram_growth, step_parameters
from foreword.measures.perplexity import perplexity
from foreword.ngram.estimate import estimate
from foreword.ngram.model import NgramLM
from foreword.ngram.smoothing import METHODS
from foreword.text.datasets import lookup
from foreword.text.embedded import embedded_text
from foreword.text.sources import read_documents
from foreword.tokens.corpus import Corpus
from foreword.tokens.vocab import Vocab
from foreword.tokens.words import WordTokenizer

TEXTS = [
    "i want to eat a piece of cake",
    "i want to eat a slice of bread",
    "she ate a slice of pizza",
    "the cat sat on the mat",
    "the dog sat on the cat",
]
SMOOTHED = ("modified-kneser-ney", "kneser-ney", "absolute", "witten-bell", "laplace", "lidstone")


def documents_of(spec: str, most: int | None = None) -> list[str]:
    """The documents of a dataset that is on this machine; nothing is downloaded."""
    dataset, file = lookup(spec)
    try:
        path = dataset.path(file.split, download=False)
    except ForewordError as error:
        pytest.skip(str(error))
    return list(islice(read_documents(path), most))


def words_corpus(texts: Sequence[str], tokenizer: WordTokenizer | None = None) -> Corpus:
    return Corpus.from_texts(texts, tokenizer or WordTokenizer().fit(texts))


def state_after(model: NgramLM, text: str) -> NDArray[np.int64]:
    """The state of a model that has read these words and knows of nothing before them."""
    state: NDArray[np.int64] = np.full((1, model.order - 1), -1, np.int64)
    for word in text.split():
        state = model.advance(state, np.array([model.vocab.id(word)]))
    return state


def probability(model: NgramLM, word: str, after: str) -> float:
    return math.exp(model.next_logprobs(state_after(model, after))[0, model.vocab.id(word)])


# N02


@pytest.mark.parametrize(("vocabulary", "length"), [(3, 4), (2, 6), (5, 3), (1, 4)])
def test_n02_the_table_size_law_counted_out(vocabulary: int, length: int) -> None:
    """N02: for each context of each step, one number a word, the last of which follows from the others."""
    words = range(vocabulary)
    for step in range(1, length + 1):
        contexts = list(itertools.product(words, repeat=step - 1))
        free = [(context, word) for context in contexts for word in words[1:]]
        assert step_parameters(vocabulary, step) == len(free) == (vocabulary - 1) * vocabulary ** (step - 1)
    cells = list(itertools.product(words, repeat=length))
    assert free_parameters(vocabulary, length) == len(cells) - 1 == vocabulary**length - 1


def test_n02_three_words_four_steps_are_eighty_numbers() -> None:
    """N02: K = 3, N = 4: 2 + 6 + 18 + 54 = 80."""
    assert [step_parameters(3, step) for step in range(1, 5)] == [2, 6, 18, 54]
    assert free_parameters(3, 4) == 80


def test_n02_the_integers_are_exact_however_large() -> None:
    assert free_parameters(50_257, 100) == 50_257**100 - 1
    assert free_parameters(10, 0) == 0


@pytest.mark.parametrize(("vocabulary", "step"), [(0, 1), (3, 0), (-1, 2)])
def test_n02_there_is_no_table_without_words(vocabulary: int, step: int) -> None:
    with pytest.raises(SettingError, match="positive"):
        step_parameters(vocabulary, step)


# N03


@pytest.mark.parametrize("order", [1, 2, 3, 4, 5])
def test_n03_maximum_likelihood_is_what_one_counts_by_hand(order: int) -> None:
    """N03: p(w | context) = times the n-gram was seen / times its context was, for any n, at any position."""
    model = NgramLM(order, "maximum-likelihood").fit(words_corpus(TEXTS))
    padded = [["<s>", *text.split(), "</s>"] for text in TEXTS]
    spans = [
        (sentence[max(0, stop - order + 1) : stop], sentence[stop])
        for sentence in padded
        for stop in range(1, len(sentence))
    ]
    ngrams = Counter((*context, word) for context, word in spans)
    contexts = Counter(tuple(context) for context, _ in spans)
    expected = [math.log(ngrams[*context, word] / contexts[*context,]) for context, word in spans]
    assert model.logprobs(words_corpus(TEXTS)) == pytest.approx(expected, rel=1e-6, abs=1e-7)


def test_n03_bigrams_and_trigrams_by_hand() -> None:
    """N03: "the" is followed by cat, mat, dog, cat; "sat on the" by mat and cat; "a" by piece, slice, slice."""
    bigram, trigram = (NgramLM(order, "maximum-likelihood").fit(words_corpus(TEXTS)) for order in (2, 3))
    assert probability(bigram, "cat", "the") == pytest.approx(2 / 4, rel=1e-6)
    assert probability(bigram, "slice", "a") == pytest.approx(2 / 3, rel=1e-6)
    assert probability(trigram, "cat", "on the") == pytest.approx(1 / 2, rel=1e-6)
    assert probability(trigram, "to", "i want") == pytest.approx(1, rel=1e-6)


def test_n03_the_table_is_shared_over_positions() -> None:
    """N03: the same two words predict the same third, wherever they stand."""
    vocab = Vocab(["<unk>", "</s>", "a", "b", "c"])
    model = NgramLM(3).fit(Corpus.from_ids([[2, 3, 4], [4, 2, 3, 4, 2, 3, 2]], vocab))
    corpus = Corpus.from_ids([[2, 3, 4], [4, 4, 2, 3, 4], [3, 2, 3, 4]], vocab)
    logs = model.logprobs(corpus)
    assert logs[2] == logs[4 + 4] == logs[4 + 6 + 3]


# N04


@pytest.mark.data
def test_n04_thank_you_very_is_followed_by_much() -> None:
    """N04, on the first 3,000 posts of 20 Newsgroups: "much" has 0.86, nothing else a fiftieth."""
    texts = documents_of("20newsgroups:train", 3000)
    tokenizer = WordTokenizer(lowercase=True, split="punctuation").fit(texts)
    model = NgramLM(4).fit(words_corpus(texts, tokenizer))
    row = np.exp(model.next_logprobs(state_after(model, "thank you very"))[0])
    best, second = np.argsort(-row)[:2].tolist()
    assert tokenizer.vocab[best] == "much"
    assert row[best] > 0.8
    assert row[second] < 0.02


# N05


@pytest.mark.parametrize("order", [2, 3, 4])
def test_n05_what_was_never_seen_is_impossible_until_it_is_smoothed(order: int) -> None:
    """N05: "a slice of" was never followed by "cake", though cake is a known word and slices are eaten."""
    after = "i want to eat a slice of" if order > 2 else "slice"
    plain = NgramLM(order, "maximum-likelihood").fit(words_corpus(TEXTS))
    assert probability(plain, "cake", after) == 0
    for smoothing in SMOOTHED:
        model = NgramLM(order, smoothing).fit(words_corpus(TEXTS))
        seen = "bread" if order > 2 else "of"
        assert 0 < probability(model, "cake", after) < probability(model, seen, after) < 1


def test_n05_one_unseen_word_makes_a_whole_text_impossible() -> None:
    tokenizer = WordTokenizer().fit(TEXTS)
    train, test = words_corpus(TEXTS, tokenizer), words_corpus(["i want to eat a slice of cake"], tokenizer)
    assert perplexity(NgramLM(3, "maximum-likelihood").fit(train), test) == math.inf
    assert perplexity(NgramLM(3).fit(train), test) < 10


# N06


@pytest.mark.parametrize("smoothing", SMOOTHED)
def test_n06_smoothing_moves_mass_from_what_was_seen_to_what_was_not(smoothing: str) -> None:
    """N06: what was seen gets less than its share of the counts, what was not more than nothing; rows sum to one.

    ``tests/unit/ngram/test_ngram.py`` holds each formula to 1e-12, ``tests/against/test_kenlm.py`` to KenLM's files.
    """
    smooth, plain = (NgramLM(2, name).fit(words_corpus(TEXTS)) for name in (smoothing, "maximum-likelihood"))
    for word in ("the", "a", "sat", "of"):
        rows = [np.exp(model.next_logprobs(state_after(model, word))[0]) for model in (smooth, plain)]
        seen = rows[1] > 0
        assert rows[0][seen].sum() < rows[1][seen].sum()
        assert (rows[0][~seen] > 0).all()
        assert rows[0].sum() == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("smoothing", [*SMOOTHED, "maximum-likelihood"])
def test_n06_as_estimated_every_row_of_bigrams_sums_to_one(smoothing: str) -> None:
    """N06: ±1e-12 for every context, in float64, of the text that every Python carries with it."""
    corpus = words_corpus(embedded_text("test"))
    how = METHODS[smoothing]
    unigrams, bigrams = estimate(corpus, 2, how)[0]
    size = len(corpus.vocab)
    lower = np.full(size, 1 / size) if how.uniform else unigrams.probabilities[:size]
    assert unigrams.probabilities[:size].sum() == pytest.approx(1, abs=1e-12)
    listed = np.bincount(bigrams.parents, bigrams.probabilities, size + 1)
    covered = np.bincount(bigrams.parents, lower[bigrams.words], size + 1)
    contexts = np.unique(bigrams.parents)
    sums = listed + unigrams.backoffs * (1 - covered)
    np.testing.assert_allclose(sums[contexts], 1, rtol=0, atol=1e-12)


def test_n06_stupid_back_off_alone_does_not_sum_to_one() -> None:
    model = NgramLM(3, "stupid-backoff").fit(words_corpus(TEXTS))
    assert np.exp(model.next_logprobs(state_after(model, "slice of"))[0]).sum() > 1.01


# N07


@cache
def embedded_corpus() -> Corpus:
    return words_corpus(embedded_text("valid"))


@pytest.mark.parametrize("order", [1, 2, 3, 4, 5])
def test_n07_the_same_seed_gives_the_same_text(order: int) -> None:
    """N07: and another seed another."""
    model = NgramLM(order).fit(embedded_corpus())
    texts = [list(generate(model, seed=seed, max_tokens=30)) for seed in (1, 1, 2)]
    assert texts[0] == texts[1] != texts[2]


@pytest.mark.parametrize("order", [1, 2, 3, 4, 5])
def test_n07_maximum_likelihood_says_only_what_it_has_read(order: int) -> None:
    """N07: every n-gram of what it says, its beginning and end included, stands in the training text."""
    corpus = embedded_corpus()
    model = NgramLM(order, "maximum-likelihood").fit(corpus)
    start = len(corpus.vocab)
    seen = {ngram for document in corpus.documents() for ngram in ngrams_of([start, *document.tolist()], order)}
    for seed in range(20):
        said = list(generate(model, seed=seed, max_tokens=500))
        assert len(said) < 500  # it came to an end by itself
        assert set(ngrams_of([start, *said, corpus.vocab.end], order)) <= seen


def ngrams_of(ids: Sequence[int], order: int) -> list[tuple[int, ...]]:
    return [tuple(ids[max(0, stop - order) : stop]) for stop in range(2, len(ids) + 1)]


# N08


def test_n08_tables_grow_and_new_text_is_ever_less_covered() -> None:
    """N08, n = 1..6 on the text that every Python carries: longer n-grams are seen once, and few are seen again."""
    tokenizer = WordTokenizer().fit(embedded_text("train"))
    train, test = (words_corpus(embedded_text(split), tokenizer) for split in ("train", "test"))
    rows = ngram_growth(train, test)
    assert [row.order for row in rows] == list(ORDERS)
    assert [row.possible for row in rows] == [len(tokenizer.vocab) ** order for order in ORDERS]
    assert rows[0].seen < rows[1].seen < rows[2].seen < rows[3].seen
    assert all(row.seen < len(train.ids) for row in rows)  # no text fills more of a table than it has words
    assert_rising([row.unseen_share for row in rows])
    assert_rising([row.once / row.seen for row in rows])
    assert rows[0].unseen_share < 0.1
    assert rows[5].unseen_share > 0.8
    assert rows[5].once / rows[5].seen > 0.9


def assert_rising(values: Sequence[float]) -> None:
    assert all(before < after for before, after in itertools.pairwise(values))


def test_n08_by_hand() -> None:
    """N08: trained on "a b a" and tested on "a b b", each with ``<s>`` before it and ``</s>`` after it."""
    vocab = Vocab(["<unk>", "</s>", "a", "b"])
    train, test = Corpus.from_ids([[2, 3, 2]], vocab), Corpus.from_ids([[2, 3, 3]], vocab)
    one, two, three, four, five, six = ngram_growth(train, test)
    assert (one.seen, one.once, one.unseen_share) == (3, 2, 0.0)
    assert (two.seen, two.once, two.unseen_share) == (4, 4, 0.5)  # b b and b </s> are new
    assert (three.seen, three.once) == (3, 3)  # <s> a b, a b a, b a </s>
    assert three.unseen_share == pytest.approx(2 / 3)
    assert four.unseen_share == 1
    assert (five.seen, five.unseen_share) == (1, 1)
    assert six.seen == 0
    assert math.isnan(six.unseen_share)


def test_n08_a_text_is_wholly_covered_by_itself() -> None:
    corpus = words_corpus(TEXTS)
    assert [row.unseen_share for row in ngram_growth(corpus, corpus, (1, 2, 3, 8))] == [0.0] * 4


# N09


@pytest.mark.parametrize("smoothing", [*SMOOTHED, "maximum-likelihood", "stupid-backoff"])
def test_n09_a_word_by_another_name_is_predicted_the_same(smoothing: str) -> None:
    """N09: words are atomic symbols. "feline" in the place of "cat": the same table to the last bit."""
    renamed = [text.replace("cat", "feline") for text in TEXTS]
    one, other = (NgramLM(3, smoothing).fit(words_corpus(texts)) for texts in (TEXTS, renamed))
    assert [word.replace("cat", "feline") for word in one.vocab] == list(other.vocab)
    for after in ("the", "on the", "the cat", "cat", "slice of", ""):
        under_another_name = after.replace("cat", "feline")
        assert_array_equal(
            one.next_logprobs(state_after(one, after)),
            other.next_logprobs(state_after(other, under_another_name)),
        )


def test_n09_of_a_new_word_that_means_the_same_it_knows_nothing() -> None:
    """N09: "no concept that cat and feline are related": after "the" a feline is as likely as any other new word."""
    tokenizer = WordTokenizer().fit([*TEXTS, "feline helicopter"])
    model = NgramLM(3).fit(words_corpus(TEXTS, tokenizer))
    assert probability(model, "feline", "on the") == probability(model, "helicopter", "on the")
    assert probability(model, "cat", "on the") > 5 * probability(model, "feline", "on the")


# N10


@pytest.mark.data
@pytest.mark.parametrize(("order", "expected"), [(3, 148.281), (5, 141.186)])
def test_n10_penn_treebank_perplexity(order: int, expected: float) -> None:
    """N10: "over 140 (well-tuned trigram)".

    The convention: a line is a document, ``</s>`` is predicted and counted, ``<s>`` is neither, and the text's
    ``<unk>`` is the vocabulary's own unknown word. With ``<unk>`` as an ordinary word beside an unknown one that never
    occurs, as KenLM has it, the fourth digit after the point differs; see ``tests/against/test_kenlm.py``.
    """
    train, test = documents_of("ptb:train"), documents_of("ptb:test")
    tokenizer = WordTokenizer().fit(train)
    assert len(tokenizer.vocab) == 10_000
    model = NgramLM(order).fit(words_corpus(train, tokenizer))
    corpus = words_corpus(test, tokenizer)
    assert len(corpus.ids) == 82_430
    assert round(perplexity(model, corpus), 3) == expected


# N11


@pytest.mark.parametrize("order", [1, 2, 3, 5])
@pytest.mark.parametrize("smoothing", [*SMOOTHED, "stupid-backoff"])
def test_n11_words_further_back_than_n_minus_1_change_nothing(smoothing: str, order: int) -> None:
    """N11: "memory is limited to N-1 words": bit-identical whatever stood before, and nearer words do matter."""
    vocab = Vocab(["<unk>", "</s>", *"abcdefgh"])
    random = np.random.default_rng(order)
    texts = random.integers(2, 10, (60, 12)).tolist()
    model = NgramLM(order, smoothing).fit(Corpus.from_ids(texts, vocab))
    text = texts[0]
    before = model.next_logprobs(last_state(model, text))
    changed = {place for place in range(12) for word in (0, 2, 5, 9) if differs(model, text, place, word, before)}
    assert changed == set(range(12 - (order - 1), 12))


def differs(model: NgramLM, text: list[int], place: int, word: int, before: Logs) -> bool:
    other = [*text[:place], word, *text[place + 1 :]]
    return not np.array_equal(model.next_logprobs(last_state(model, other)), before)


def last_state(model: NgramLM, text: Sequence[int]) -> NDArray[np.int64]:
    state = model.start()
    for word in text:
        state = model.advance(state, np.array([word]))
    return state
