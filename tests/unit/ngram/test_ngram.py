"""N-gram models against the textbook: every formula once more, with dictionaries and recursion.

The reference counts in ``Text`` and smooths in the functions below it, one for each formula. ``Listed`` reads what
``estimate`` found as any back-off model is read, so that nothing here depends on how a model is stored.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from numpy.typing import NDArray

from foreword.errors import ForewordError, InputError, SettingError
from foreword.ngram.counts import count_ngrams
from foreword.ngram.estimate import Estimate, estimate
from foreword.ngram.model import NgramLM
from foreword.ngram.smoothing import FALLBACK, METHODS
from foreword.protocols import Parts
from foreword.storage.folder import load, save
from foreword.tokens.corpus import Corpus
from foreword.tokens.vocab import Vocab

Gram = tuple[int, ...]
Probability = Callable[[int, Gram], float]
Documents = Sequence[Sequence[int]]

VOCAB = Vocab(["<unk>", "</s>", *"abcdefghijklmnopqrstuvwx", "never"])
SIZE = len(VOCAB)
END, START, NEVER = VOCAB.end, SIZE, VOCAB.id("never")
WORDS = [id for id in range(SIZE) if id not in (END, NEVER)]
"""What the texts are made of: <unk> and letters."""

VARIED = (0, 2, 3)
"""Seeds of texts that have discounts of their own at every order."""

SMOOTHED = ("modified-kneser-ney", "kneser-ney", "absolute", "witten-bell", "laplace", "lidstone", "maximum-likelihood")
ALL = (*SMOOTHED, "stupid-backoff")

documents = st.lists(st.lists(st.sampled_from(WORDS[:5]), max_size=8), min_size=1, max_size=6)


def corpus_of(texts: Documents, vocab: Vocab = VOCAB) -> Corpus:
    return Corpus.from_ids([list(text) for text in texts], vocab)


def varied_text(seed: int, texts: int = 100) -> Documents:
    """Frequent and rare words, as in real text: their frequencies fall with a power of their rank."""
    random = np.random.default_rng(seed)
    shares = np.arange(1.0, len(WORDS) + 1) ** -1.6
    lengths = random.integers(0, 9, texts)
    return [random.choice(WORDS, length, p=shares / shares.sum()).tolist() for length in lengths]


class Text:
    """A text counted the plain way.

    times: how often each n-gram of one to ``order`` words was seen; ``<s>`` stands before every document.
    followers: for each context, how often each word came after it.
    """

    def __init__(self, texts: Documents, order: int) -> None:
        self.order = order
        self.texts = texts
        self.times: Counter[Gram] = Counter()
        for text in texts:
            padded = (START, *text, END)
            for stop in range(2, len(padded) + 1):
                for length in range(1, min(order, stop) + 1):
                    self.times[padded[stop - length : stop]] += 1
        self.followers = followers_of(self.times)

    def continuations(self) -> Counter[Gram]:
        """Kneser-Ney's counts: in how many contexts, except at the highest order and where nothing can stand before."""
        before = Counter(gram[1:] for gram in self.times if len(gram) > 1)
        return Counter(
            {
                gram: times if len(gram) == self.order or gram[0] == START else before[gram]
                for gram, times in self.times.items()
            }
        )

    def contexts(self) -> Iterator[Gram]:
        """Every context that was seen, the empty one first, then some that were not."""
        yield from sorted(self.followers, key=lambda context: (len(context), context))
        seen = max((context for context in self.followers), key=lambda context: (len(context), context))
        for context in ((NEVER,), (NEVER, *seen), (*seen, NEVER), (WORDS[0],) * 4):
            yield context[-(self.order - 1) :] if self.order > 1 else ()


def followers_of(counts: Counter[Gram]) -> dict[Gram, dict[int, int]]:
    followers: dict[Gram, dict[int, int]] = {}
    for (*context, word), count in counts.items():
        followers.setdefault(tuple(context), {})[word] = count
    return followers


# The formulas


def discounting(counts: Counter[Gram], discounts: Sequence[Sequence[float]]) -> Probability:
    """Chen and Goodman's interpolation: D is taken off every count, and the sum goes to the shorter context.

    p(w | c) = (n(c w) − D(n)) / N(c) + Σ D / N(c) · p(w | c without its first word)
    """
    followers = followers_of(counts)

    def probability(word: int, context: Gram) -> float:
        shorter = probability(word, context[1:]) if context else 1 / SIZE
        seen = followers.get(context)
        if seen is None:
            return shorter
        taken = discounts[len(context)]
        total = sum(seen.values())
        own = seen[word] - taken[min(seen[word], 3)] if word in seen else 0.0
        return own / total + sum(taken[min(count, 3)] for count in seen.values()) / total * shorter

    return probability


def estimated_discounts(text: Text, counts: Counter[Gram], number: int, *, kneser_ney: bool) -> list[list[float]]:
    """D(0) to D(3 and more) of each order."""
    found = []
    for length in range(1, text.order + 1):
        tallied = {gram: count for gram, count in counts.items() if len(gram) == length}
        if kneser_ney and length < text.order and (last := last_in_kenlms_sort(text, length)) is not None:
            tallied[last] = text.times[last]
        found.append(chen_goodman(Counter(tallied.values()), number))
    return found


def last_in_kenlms_sort(text: Text, length: int) -> Gram | None:
    """The one n-gram that KenLM tallies as it was seen: the last when sorted by last word, then the one before, …

    KenLM numbers words as they come, <s> and </s> before all others, and sorts documents as if many <s> stood before.
    """
    came = list(dict.fromkeys(word for document in text.texts for word in document))
    rank = {START: -2, END: -1} | {word: place for place, word in enumerate(came)}
    histories = [
        ((START,) * text.order + (*document, END))[place - text.order + 1 : place + 1]
        for document in text.texts
        for place in range(text.order, text.order + len(document) + 1)
    ]
    last = max(histories, key=lambda history: [rank[word] for word in reversed(history)])
    return None if START in last[1 - length :] and length > 1 else last[-length:]


def chen_goodman(tally: Counter[int], number: int) -> list[float]:
    """Equation 26 of Chen and Goodman (1999), or what KenLM uses where it has no solution."""
    if number == 1:
        share = tally[1] / (tally[1] + 2 * tally[2]) if tally[1] and tally[2] else 0.75
        return [0.0, share, share, share]
    if not all(tally[count] for count in (1, 2, 3)):
        return list(FALLBACK)
    share = tally[1] / (tally[1] + 2 * tally[2])
    found = [count - (count + 1) * share * tally[count + 1] / tally[count] for count in (1, 2, 3)]
    inside = all(0 <= discount <= count for count, discount in enumerate(found, 1))
    return [0.0, *found] if inside else list(FALLBACK)


def kneser_ney(text: Text, number: int) -> Probability:
    """Kneser and Ney (1995): lower orders count contexts, not occurrences."""
    counts = text.continuations()
    return discounting(counts, estimated_discounts(text, counts, number, kneser_ney=True))


def absolute(text: Text) -> Probability:
    """Ney, Essen and Kneser (1994): occurrences at every order, one discount."""
    return discounting(text.times, estimated_discounts(text, text.times, 1, kneser_ney=False))


def witten_bell(text: Text) -> Probability:
    """Witten and Bell (1991): as many chances for something new as there have been new words.

    p(w | c) = (n(c w) + T(c) p(w | c without its first word)) / (N(c) + T(c))
    """

    def probability(word: int, context: Gram) -> float:
        shorter = probability(word, context[1:]) if context else 1 / SIZE
        seen = text.followers.get(context)
        if seen is None:
            return shorter
        return (seen.get(word, 0) + len(seen) * shorter) / (sum(seen.values()) + len(seen))

    return probability


def additive(text: Text, add: float) -> Probability:
    """Laplace (1814), Lidstone (1920): ``add`` to every count; nothing added is maximum likelihood.

    A context that nothing was ever seen to follow says what its longest known end says.
    """

    def probability(word: int, context: Gram) -> float:
        seen = text.followers.get(context)
        if seen is None:
            return probability(word, context[1:])
        return (seen.get(word, 0) + add) / (sum(seen.values()) + add * SIZE)

    return probability


def stupid_backoff(text: Text, weight: float = 0.4) -> Probability:
    """Brants et al. (2007): a share where there is one, else what the shorter context says, times ``weight``.

    As in every table of back-off weights, a context that was never seen costs nothing.
    """

    def probability(word: int, context: Gram) -> float:
        seen = text.followers.get(context)
        if seen is None:
            return probability(word, context[1:])
        if word in seen:
            return seen[word] / sum(seen.values())
        return weight * (probability(word, context[1:]) if context else 1 / SIZE)

    return probability


REFERENCES: dict[str, Callable[[Text], Probability]] = {
    "modified-kneser-ney": lambda text: kneser_ney(text, 3),
    "kneser-ney": lambda text: kneser_ney(text, 1),
    "absolute": absolute,
    "witten-bell": witten_bell,
    "laplace": lambda text: additive(text, 1.0),
    "lidstone": lambda text: additive(text, 0.1),
    "maximum-likelihood": lambda text: additive(text, 0.0),
    "stupid-backoff": stupid_backoff,
}


# What ours found, read plainly


class Listed:
    """Estimates by n-gram, and how a back-off model reads them."""

    def __init__(self, found: Sequence[Estimate], *, uniform: bool) -> None:
        self.uniform = uniform
        self.probabilities: dict[Gram, float] = {}
        self.backoffs: dict[Gram, float] = {}
        below: list[Gram] = []
        for place, order in enumerate(found):
            words, parents = order.words.tolist(), order.parents.tolist()
            grams = [
                (word,) if place == 0 else (*below[parent], word) for word, parent in zip(words, parents, strict=True)
            ]
            self.probabilities |= zip(grams, order.probabilities.tolist(), strict=True)
            self.backoffs |= zip(grams, order.backoffs.tolist(), strict=True)
            below = grams

    def __call__(self, word: int, context: Gram) -> float:
        if (*context, word) in self.probabilities:
            return self.probabilities[*context, word]
        if self.uniform and self.backoffs.get(context, 1.0) != 1.0:
            return self.backoffs[context] / SIZE
        return self.backoffs.get(context, 1.0) * self(word, context[1:])


def listed(texts: Documents, order: int, smoothing: str, prune: Sequence[int] = ()) -> Listed:
    how = METHODS[smoothing]
    return Listed(estimate(corpus_of(texts), order, how, prune=prune)[0], uniform=how.uniform)


def row_of(probability: Probability, context: Gram) -> list[float]:
    return [probability(word, context) for word in range(SIZE)]


def state_after(model: NgramLM, context: Gram) -> NDArray[np.int64]:
    """The state of a model that has read only the context; ``<s>`` in it begins a document."""
    nothing = np.full((1, model.order - 1), -1, np.int64)
    state, rest = (model.start(), context[1:]) if context[:1] == (START,) else (nothing, context)
    for word in rest:
        state = model.advance(state, np.array([word]))
    return state


def stored_row(model: NgramLM, context: Gram) -> NDArray[np.float64]:
    return np.exp(np.asarray(model.next_logprobs(state_after(model, context))[0], np.float64))


# Counts


@settings(max_examples=60, deadline=None)
@given(texts=documents, order=st.integers(1, 6))
def test_counts_are_those_of_a_dictionary(texts: Documents, order: int) -> None:
    plain = Text(texts, order)
    unigrams, orders = count_ngrams(corpus_of(texts), order)
    found: dict[Gram, int] = {(word,): count for word, count in enumerate(unigrams.tolist()) if count}
    below: list[Gram] = [(word,) for word in range(SIZE + 1)]
    for counted in orders:
        grams = [
            (*prefix, word)
            for prefix, (first, last) in zip(below, pairwise(counted.children.tolist()), strict=True)
            for word in counted.words[first:last].tolist()
        ]
        assert grams == sorted(grams)
        assert [gram[1:] for gram in grams] == [below[suffix] for suffix in counted.suffixes.tolist()]
        found |= zip(grams, counted.counts.tolist(), strict=True)
        below = grams
    assert found == plain.times


def test_empty_documents_count_their_ends() -> None:
    unigrams, (bigrams,) = count_ngrams(corpus_of([[], [], []]), 2)
    assert unigrams[END] == unigrams.sum() == 3
    assert bigrams.words.tolist() == [END]
    assert bigrams.counts.tolist() == [3]


# Every smoothing against its formula


@pytest.mark.parametrize("smoothing", ALL)
@settings(max_examples=25, deadline=None)
@given(texts=documents, order=st.integers(1, 5))
def test_estimates_follow_the_textbook_on_any_text(smoothing: str, texts: Documents, order: int) -> None:
    text = Text(texts, order)
    expected, found = REFERENCES[smoothing](text), listed(texts, order, smoothing)
    for context in text.contexts():
        assert_allclose(row_of(found, context), row_of(expected, context), rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("order", [1, 2, 3, 4])
@pytest.mark.parametrize("smoothing", ALL)
def test_estimates_follow_the_textbook_where_there_is_text_enough(smoothing: str, order: int) -> None:
    for seed in VARIED:
        text = Text(varied_text(seed), order)
        expected, found = REFERENCES[smoothing](text), listed(text.texts, order, smoothing)
        for context in text.contexts():
            assert_allclose(row_of(found, context), row_of(expected, context), rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("layout", ["hash", "trie"])
@pytest.mark.parametrize("smoothing", ALL)
def test_what_is_stored_is_what_was_estimated(smoothing: str, layout: Literal["hash", "trie"]) -> None:
    text = Text(varied_text(VARIED[0]), 3)
    expected = REFERENCES[smoothing](text)
    model = NgramLM(3, smoothing, layout=layout).fit(corpus_of(text.texts))
    for context in text.contexts():
        assert_allclose(stored_row(model, context), row_of(expected, context), rtol=0, atol=1e-6)


@pytest.mark.parametrize("seed", VARIED)
def test_the_varied_texts_have_discounts_of_their_own(seed: int) -> None:
    """Else the tests above would only ever see the fallback."""
    assert FALLBACK not in NgramLM(4).fit(corpus_of(varied_text(seed))).discounts_


@pytest.mark.parametrize("seed", range(4))
def test_discounts_are_kenlms_also_where_one_document_has_every_word(seed: int) -> None:
    """KenLM numbers ``</s>`` before all words, so it is never the last of its sort."""
    long = [word for document in varied_text(seed, 150) for word in document]
    text = Text([long, *varied_text(seed + 10, 5)], 3)
    expected = estimated_discounts(text, text.continuations(), 3, kneser_ney=True)
    assert_allclose(NgramLM(3).fit(corpus_of(text.texts)).discounts_, expected, rtol=1e-12)


def test_lidstones_addition_is_a_setting() -> None:
    text = Text(varied_text(2), 2)
    model = NgramLM(2, "lidstone", add=0.5).fit(corpus_of(text.texts))
    for context in text.contexts():
        assert_allclose(stored_row(model, context), row_of(additive(text, 0.5), context), rtol=0, atol=1e-6)


@pytest.mark.parametrize("layout", ["hash", "trie"])
@pytest.mark.parametrize("smoothing", ["laplace", "lidstone"])
def test_a_context_that_nothing_came_after_is_not_asked_however_long_it_is(
    smoothing: str, layout: Literal["hash", "trie"]
) -> None:
    """One word or several: what its longest known end says, and that of a single word is what unigrams say."""
    model = NgramLM(3, smoothing, layout=layout).fit(corpus_of(varied_text(2)))
    unigrams = np.exp(model.next_logprobs(np.full((1, 2), -1, np.int64))[0])
    for context in ((NEVER,), (WORDS[1], NEVER), (NEVER, NEVER)):
        assert_array_equal(stored_row(model, context), unigrams)
    assert_array_equal(stored_row(model, (NEVER, WORDS[1])), stored_row(model, (WORDS[1],)))
    assert len(set(unigrams)) > 2


# Rows


@pytest.mark.parametrize("prune", [(), (0, 1), (0, 0, 1), (0, 1, 2, 3)], ids=str)
@pytest.mark.parametrize("smoothing", SMOOTHED)
def test_every_row_sums_to_one(smoothing: str, prune: tuple[int, ...]) -> None:
    """Within 1e-12 as estimated and 1e-6 as stored, whatever was pruned."""
    for order in (1, 2, 4):
        text = Text(varied_text(3), order)
        found = listed(text.texts, order, smoothing, prune)
        model = NgramLM(order, smoothing, prune=prune).fit(corpus_of(text.texts))
        for context in text.contexts():
            assert math.fsum(row_of(found, context)) == pytest.approx(1, abs=1e-12)
            assert stored_row(model, context).sum() == pytest.approx(1, abs=1e-6)


@settings(max_examples=40, deadline=None)
@given(texts=documents, smoothing=st.sampled_from(SMOOTHED), limits=st.lists(st.integers(0, 3), max_size=3))
def test_every_row_sums_to_one_on_any_text(texts: Documents, smoothing: str, limits: list[int]) -> None:
    prune = (0, *sorted(limits))
    found = listed(texts, 4, smoothing, prune)
    for context in Text(texts, 4).contexts():
        assert math.fsum(row_of(found, context)) == pytest.approx(1, abs=1e-12)


def test_stupid_backoff_does_not_sum_to_one() -> None:
    text = Text(varied_text(3), 3)
    found = listed(text.texts, 3, "stupid-backoff")
    assert max(abs(math.fsum(row_of(found, context)) - 1) for context in text.contexts()) > 0.1


def test_pruning_leaves_out_what_was_seen_too_rarely() -> None:
    text = Text(varied_text(4), 4)
    model = NgramLM(4, prune=(0, 1, 2)).fit(corpus_of(text.texts))
    for (order, grams, _, _), limit in zip(model.ngrams(), (0, 1, 2, 2), strict=True):
        if order > 1:
            kept = {gram for gram, times in text.times.items() if len(gram) == order and times > limit}
            assert set(map(tuple, grams.tolist())) == kept
    assert model.sizes_ == [SIZE + 1, *(len(grams) for order, grams, _, _ in model.ngrams() if order > 1)]


# Unknown words


@pytest.mark.parametrize("order", [1, 2, 5])
def test_the_unknown_word_has_one_part_of_the_uniform_distribution(order: int) -> None:
    """As in KenLM: what the discounts take from the unigrams is shared evenly by all words, ``<unk>`` one of them."""
    texts = [[word for word in text if word != VOCAB.unknown] for text in varied_text(5)]
    found, discounts = estimate(corpus_of(texts), order, METHODS["modified-kneser-ney"])
    counts = [count for gram, count in Text(texts, order).continuations().items() if len(gram) == 1]
    share = sum(discounts[0][min(count, 3)] for count in counts) / sum(counts) / SIZE
    assert found[0].probabilities[0] == pytest.approx(share, rel=1e-14)
    assert found[0].probabilities[NEVER] == found[0].probabilities[0]


# Scoring


def held_out() -> Corpus:
    return corpus_of([*varied_text(77), [], [NEVER, WORDS[1], NEVER, NEVER], [WORDS[2]] * 12])


@pytest.mark.parametrize("layout", ["hash", "trie"])
@pytest.mark.parametrize("order", [1, 2, 3, 5])
def test_full_scores_tell_the_longest_ngram_that_was_seen(order: int, layout: Literal["hash", "trie"]) -> None:
    text, corpus = Text(varied_text(6), order), held_out()
    model = NgramLM(order, layout=layout).fit(corpus_of(text.texts))
    logs, matched = model.full_scores(corpus)
    expected = []
    for document in corpus.documents():
        padded = (START, *document.tolist())
        for stop in range(2, len(padded) + 1):
            seen = [n for n in range(2, min(order, stop) + 1) if padded[stop - n : stop] in text.times]
            expected.append(max(seen, default=1))
    assert matched.tolist() == expected
    assert_array_equal(logs, model.logprobs(corpus))


@pytest.mark.parametrize("smoothing", ALL)
def test_threads_change_nothing(smoothing: str) -> None:
    one, two = (NgramLM(3, smoothing, threads=threads).fit(corpus_of(varied_text(7))) for threads in (1, 2))
    corpus = held_out()
    for ours, theirs in zip(one.full_scores(corpus), two.full_scores(corpus), strict=True):
        assert_array_equal(ours, theirs)


@pytest.mark.parametrize("smoothing", ALL)
def test_both_layouts_score_alike_to_the_last_bit(smoothing: str) -> None:
    train = corpus_of(varied_text(8))
    hashed, trie = NgramLM(4, smoothing).fit(train), NgramLM(4, smoothing, layout="trie").fit(train)
    for ours, theirs in zip(hashed.full_scores(held_out()), trie.full_scores(held_out()), strict=True):
        assert_array_equal(ours, theirs)


@pytest.mark.parametrize("layout", ["hash", "trie"])
@pytest.mark.parametrize("smoothing", ALL)
def test_logprobs_equal_stepping_to_the_last_bit(smoothing: str, layout: Literal["hash", "trie"]) -> None:
    model = NgramLM(4, smoothing, layout=layout).fit(corpus_of(varied_text(9)))
    corpus = held_out()
    stepped = []
    for document in corpus.documents():
        state = model.start()
        for id in document.tolist():
            stepped.append(model.next_logprobs(state)[0, id])
            state = model.advance(state, np.array([id]))
    assert_array_equal(model.logprobs(corpus), stepped)


def test_a_state_is_the_known_contexts_of_the_last_words() -> None:
    model = NgramLM(4).fit(corpus_of([[2, 3, 4], [2, 3]]))
    state = model.start(2)
    assert state.tolist() == [[START, -1, -1]] * 2
    state = model.advance(state, np.array([2, NEVER]))
    assert (state >= 0).tolist() == [[True, True, False], [True, False, False]]
    after = model.advance(state[[0, 0]], np.array([3, 2]))
    assert (after >= 0).tolist() == [[True, True, True], [True, False, False]]
    assert (state >= 0).tolist() == [[True, True, False], [True, False, False]]  # an old state stays good


def test_a_unigram_model_has_nothing_to_remember() -> None:
    model = NgramLM(1).fit(corpus_of(varied_text(1)))
    state = model.start(3)
    assert state.shape == (3, 0)
    after = model.advance(state, np.array([2, 3, 4]))
    assert_array_equal(model.next_logprobs(after), model.next_logprobs(state))


@pytest.mark.parametrize("id", [-1, SIZE, 1 << 40])
def test_a_word_outside_the_vocabulary_is_refused(id: int) -> None:
    model = NgramLM(3).fit(corpus_of(varied_text(1)))
    with pytest.raises((ForewordError, ValueError, IndexError)):
        model.advance(model.start(), np.array([id]))


def test_each_text_needs_one_next_word() -> None:
    model = NgramLM(3).fit(corpus_of(varied_text(1)))
    with pytest.raises((ForewordError, ValueError)):
        model.advance(model.start(2), np.array([2]))
    with pytest.raises((ForewordError, ValueError)):
        model.advance(model.start(1), np.array([2, 3]))


# Settings and small texts


@pytest.mark.parametrize("order", [-1, 0, 11])
def test_orders_are_one_to_ten(order: int) -> None:
    with pytest.raises(SettingError, match=f"order={order}: expected 1 to 10"):
        NgramLM(order)


@pytest.mark.parametrize(
    ("prune", "complaint"),
    [((1,), "unigrams"), ((0, 2, 1), "do not fall"), ((0, -1), "do not fall")],
    ids=str,
)
def test_pruning_must_make_sense(prune: tuple[int, ...], complaint: str) -> None:
    with pytest.raises(SettingError, match=complaint):
        NgramLM(3, prune=prune)


def test_nothing_is_learnt_from_nothing() -> None:
    with pytest.raises(ForewordError, match="the corpus is empty"):
        NgramLM(3).fit(corpus_of([]))


@pytest.mark.parametrize("layout", ["hash", "trie"])
@pytest.mark.parametrize("smoothing", ALL)
@pytest.mark.parametrize("texts", [[[]], [[2]], [[2, 3]]], ids=str)
def test_a_text_shorter_than_the_order_makes_a_model(
    texts: Documents, smoothing: str, layout: Literal["hash", "trie"]
) -> None:
    model = NgramLM(10, smoothing, layout=layout).fit(corpus_of(texts))
    longest = len(texts[0]) + 2
    assert [size > 0 for size in model.sizes_] == [order <= longest for order in range(1, 11)]
    expected = REFERENCES[smoothing](Text(texts, 10))
    for context in ((START, *texts[0]), (START,), (NEVER,)):
        assert_allclose(stored_row(model, context), row_of(expected, context), rtol=0, atol=1e-6)


def test_without_a_fallback_a_small_text_is_an_error_that_says_what_to_do() -> None:
    with pytest.raises(ForewordError, match=r"order 1: use discount_fallback=True, or a lower order"):
        NgramLM(3, discount_fallback=False).fit(corpus_of([[2, 3]]))


def test_a_text_in_another_vocabulary_is_refused() -> None:
    model = NgramLM(2).fit(corpus_of([[2, 3]]))
    other = Vocab([*VOCAB.tokens[:-1], "other"])
    with pytest.raises(ForewordError, match="another vocabulary"):
        model.logprobs(corpus_of([[2, 3]], other))


@pytest.mark.parametrize("words", [2, 50])
def test_fitted_again_with_another_vocabulary_nothing_of_the_old_one_is_left(words: int) -> None:
    other = Vocab(["<unk>", "</s>", *map(str, range(words))])
    corpus = corpus_of([[2, 3, 2], [3]], other)
    model = NgramLM(3).fit(corpus_of(varied_text(1)))
    model.logprobs(held_out())
    model.next_logprobs(model.start())
    fresh = NgramLM(3).fit(corpus)
    assert_array_equal(model.fit(corpus).logprobs(corpus), fresh.logprobs(corpus))
    assert_array_equal(model.next_logprobs(model.start()), fresh.next_logprobs(fresh.start()))


def test_fitting_that_fails_leaves_the_model_as_it_was() -> None:
    model = NgramLM(3, discount_fallback=False).fit(corpus_of(varied_text(VARIED[0])))
    before, discounts = model.logprobs(held_out()), model.discounts_
    with pytest.raises(ForewordError, match="too little text"):
        model.fit(corpus_of([[2]]))
    assert_array_equal(model.logprobs(held_out()), before)
    assert model.discounts_ == discounts


def test_a_meter_hears_every_order() -> None:
    heard: list[tuple[str, int, int | None]] = []
    NgramLM(4).fit(corpus_of(varied_text(1)), meter=lambda *told: heard.append(told))
    for phase in ("counting", "estimating"):
        steps = [(done, total) for name, done, total in heard if name == phase]
        assert steps
        assert steps == sorted(steps)
        assert steps[-1][0] == steps[-1][1]


# Saving


@pytest.mark.parametrize("layout", ["hash", "trie"])
@pytest.mark.parametrize("smoothing", ALL)
def test_saved_and_loaded_it_is_the_same(smoothing: str, layout: Literal["hash", "trie"], tmp_path: Path) -> None:
    model = NgramLM(4, smoothing, prune=(0, 0, 1), layout=layout).fit(corpus_of(varied_text(10)))
    save(model, tmp_path / "model")
    loaded = load(tmp_path / "model")
    for name in ("order", "smoothing", "prune", "sizes_", "discounts_", "layout"):
        assert getattr(loaded, name) == getattr(model, name)
    for ours, theirs in zip(model.full_scores(held_out()), loaded.full_scores(held_out()), strict=True):
        assert_array_equal(ours, theirs)
    for ours, theirs in zip(model.ngrams(), loaded.ngrams(), strict=True):
        for mine, other in zip(ours, theirs, strict=True):
            assert_array_equal(mine, other)


@cache
def good_parts(layout: Literal["hash", "trie"] = "hash") -> Parts:
    return NgramLM(4, layout=layout).fit(corpus_of(varied_text(11))).to_parts()


def broken(good: Parts, **changes: Any) -> Parts:
    """Parts of a good model with some arrays or settings changed; None takes them out."""
    settings, arrays = dict(good.settings), dict(good.arrays)
    for name, value in changes.items():
        kept: dict[str, Any] = arrays if name in arrays else settings
        if value is None:
            kept.pop(name)
        else:
            kept[name] = value
    return Parts(settings, arrays, good.vocab)


def full_tables() -> NDArray[np.uint64]:
    return np.ones_like(good_parts().arrays["table"])


def wrapping_rows() -> NDArray[np.int64]:
    """Sizes of tables that add up to the right number only because a sum of 64 bits starts again from below."""
    right = int(good_parts().arrays["rows"].sum())
    most = np.iinfo(np.int64).max
    return np.array([0, most, most, right + 2])


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"table": full_tables}, "no free row"),
        ({"table": lambda: np.zeros(2, np.uint64)}, "do not fit"),
        ({"table": lambda: full_tables()[:-1]}, "do not fit"),
        ({"table": lambda: full_tables().reshape(-1, 2)}, "wrong form"),
        ({"table": lambda: full_tables().astype(np.int64)}, "wrong form"),
        ({"rows": lambda: np.zeros(4, np.int64)}, "do not fit"),
        ({"rows": lambda: -good_parts().arrays["rows"]}, "do not fit"),
        ({"rows": wrapping_rows}, "do not fit"),
        ({"rows": lambda: good_parts().arrays["rows"][:-1]}, "wrong form"),
        ({"unigrams": lambda: np.zeros(5, np.float32)}, "unigrams do not fit"),
        ({"unigrams": lambda: np.zeros(2 * (SIZE + 1))}, "unigrams do not fit"),
        ({"order": 11}, "order=11"),
        ({"order": 3}, "n-grams"),
        ({"smoothing": "magic"}, "smoothing='magic'"),
        ({"layout": "magic"}, "layout='magic'"),
        ({"layout": "trie"}, "words"),
        ({"sizes": [1]}, "numbers of n-grams"),
        ({"sizes": [SIZE + 1, -1, -1, -1]}, "n-grams"),
        ({"sizes": [1 << 62] * 4}, "n-grams"),
        ({"table": None}, "table"),
        ({"unigrams": None}, "unigrams"),
        ({"sizes": None}, "sizes"),
    ],
)
def test_what_is_no_ngram_model_is_refused(changes: dict[str, Any], complaint: str) -> None:
    made = {name: value() if callable(value) else value for name, value in changes.items()}
    with pytest.raises((ForewordError, KeyError), match=complaint):
        NgramLM.from_parts(broken(good_parts(), **made))


@pytest.mark.parametrize("name", sorted(good_parts("trie").arrays))
def test_a_trie_with_a_part_of_another_size_is_refused(name: str) -> None:
    array = good_parts("trie").arrays[name]
    for wrong in (array[:-1], np.append(array, array[:1]), array.astype(np.complex128)):
        with pytest.raises(ForewordError, match=r"wrong form|do not fit"):
            NgramLM.from_parts(broken(good_parts("trie"), **{name: wrong}))


@pytest.mark.parametrize("layout", ["hash", "trie"])
def test_a_model_without_its_vocabulary_is_refused(layout: Literal["hash", "trie"]) -> None:
    good = good_parts(layout)
    with pytest.raises(InputError, match="vocabulary"):
        NgramLM.from_parts(Parts(good.settings, good.arrays, None))


def test_tables_of_keys_that_nobody_asks_for_still_answer() -> None:
    """A hostile file may fill its tables up to the one free row that each must have: every search ends there."""
    rows = good_parts().arrays["rows"]
    table = full_tables()
    table[2 * (np.cumsum(rows)[1:] - 1)] = 0
    logs, matched = NgramLM.from_parts(broken(good_parts(), table=table)).full_scores(held_out())
    assert len(logs) == len(matched) == len(held_out().ids)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("layout", ["hash", "trie"])
def test_whatever_the_arrays_hold_every_question_is_answered(layout: Literal["hash", "trie"], seed: int) -> None:
    """The right form and random content: nonsense may come out, but nothing hangs and nothing is read outside."""
    random = np.random.default_rng(seed)
    good = good_parts(layout)
    noise = {
        name: np.frombuffer(random.bytes(array.nbytes), array.dtype)
        for name, array in good.arrays.items()
        if name not in ("rows", "unigrams")
    }
    if layout == "hash":
        noise["table"] = noise["table"].copy()
        noise["table"][2 * (np.cumsum(good.arrays["rows"])[1:] - 1)] = 0
    model = NgramLM.from_parts(broken(good, **noise))
    logs, matched = model.full_scores(held_out())
    assert len(logs) == len(matched) == len(held_out().ids)
