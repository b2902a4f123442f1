"""NLTK's language models: the numbers of its own tests, and the package itself where it is installed.

NLTK counts ``<s>`` like any word and puts order − 1 of it before a sentence, and as many ``</s>`` after. Here the
sentences hold that padding as ordinary words: ``<s>`` is an ordinary token of the vocabulary, and NLTK's last ``</s>``
is the one with which every document of ours ends. What our models read before a document, which is no token, then
stands before NLTK's first ``<s>`` and changes no count that is asked for here.

- Maximum likelihood, Laplace and Lidstone: ``NgramLM`` itself, with the settings of the same names.
- Witten-Bell and Kneser-Ney: the formula of ``smoothing.py`` on our counts, because NLTK leaves the unigrams as they
  are where ours are mixed with the uniform distribution, and takes a discount that is set where ours is estimated.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from numpy.typing import NDArray

from foreword.ngram.counts import count_continuations, count_ngrams
from foreword.ngram.model import NgramLM
from foreword.ngram.smoothing import METHODS, Method
from foreword.tokens.corpus import Corpus
from foreword.tokens.vocab import Vocab

VOCAB = Vocab(["<UNK>", "</s>", "<s>", "a", "b", "c", "d", "z"], unknown="<UNK>")
SENTENCES = ["a b c d", "e g a d b e"]

Counts = Mapping[tuple[str, ...], int]


def padded(sentence: str, order: int) -> list[int]:
    """As NLTK pads it, but for the last ``</s>``, which the corpus adds."""
    words = ["<s>"] * (order - 1) + sentence.split() + ["</s>"] * (order - 2)
    return [VOCAB.id(word) for word in words]


def corpus_of(order: int, sentences: Sequence[str] = SENTENCES) -> Corpus:
    return Corpus.from_ids([padded(sentence, order) for sentence in sentences], VOCAB)


def probability(model: NgramLM, word: str, context: Sequence[str] = ()) -> float:
    state: NDArray[np.int64] = np.full((1, model.order - 1), -1, np.int64)  # nothing read, not even a beginning
    for read in context:
        state = model.advance(state, np.array([VOCAB.id(read)]))
    return math.exp(model.next_logprobs(state)[0, VOCAB.id(word)])


def entropy(model: NgramLM, text: str) -> float:
    """Bits a word over the bigrams of a text that begins with ``<s>``; what leads to that ``<s>`` is not asked."""
    corpus = Corpus.from_ids([[VOCAB.id(word) for word in text.split()[:-1]]], VOCAB)
    return -float(model.logprobs(corpus)[1:].mean()) / math.log(2)


# Numbers of NLTK's own tests


@pytest.mark.parametrize(
    ("order", "smoothing", "word", "context", "expected"),
    [
        (2, "maximum-likelihood", "d", "c", 1),
        (2, "maximum-likelihood", "a", "", 2 / 14),
        (2, "maximum-likelihood", "y", "", 3 / 14),
        (3, "maximum-likelihood", "d", "b c", 1),
        (3, "maximum-likelihood", "a", "", 2 / 18),
        (3, "maximum-likelihood", "y", "", 3 / 18),
        (2, "lidstone", "d", "c", 1.1 / 1.8),
        (2, "lidstone", "a", "", 2.1 / 14.8),
        (2, "lidstone", "z", "", 0.1 / 14.8),
        (2, "lidstone", "y", "", 3.1 / 14.8),
        (2, "laplace", "d", "c", 2 / 9),
        (2, "laplace", "a", "", 3 / 22),
        (2, "laplace", "z", "", 1 / 22),
        (2, "laplace", "y", "", 4 / 22),
    ],
)
def test_n06_a_probability(order: int, smoothing: str, word: str, context: str, expected: float) -> None:
    model = NgramLM(order, smoothing).fit(corpus_of(order))
    assert probability(model, word, context.split()) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize(
    ("smoothing", "text", "bits", "perplexity"),
    [
        ("laplace", "<s> a c <UNK> d c </s>", 3.1275, 8.7393),
        ("lidstone", "<s> a c <UNK> d c </s>", 4.0917, 17.0504),
        ("maximum-likelihood", "<s> a b <UNK> a d </s>", 1.0975, 2.1398),
    ],
)
def test_n06_entropy_and_perplexity_of_bigrams(smoothing: str, text: str, bits: float, perplexity: float) -> None:
    found = entropy(NgramLM(2, smoothing).fit(corpus_of(2)), text)
    assert found == pytest.approx(bits, abs=1e-4)
    assert 2**found == pytest.approx(perplexity, abs=1e-3)


# Witten-Bell and Kneser-Ney


def padded_corpus(order: int, sentences: Sequence[str], how: Method) -> Corpus:
    """With continuations, what we read before a document is NLTK's first ``<s>``: it must not stand before another."""
    first = 1 if how.continuations else 0
    return Corpus.from_ids([padded(sentence, order)[first:] for sentence in sentences], VOCAB)


def counts_of(corpus: Corpus, order: int, how: Method) -> Counts:
    """Our counts by n-gram, as seen or, where the method says so, in how many contexts."""
    unigrams, orders = count_ngrams(corpus, order)
    if how.continuations:
        unigrams = count_continuations(len(corpus.vocab), orders)
    found: dict[tuple[str, ...], int] = {
        (word,): count for word, count in zip(corpus.vocab, unigrams.tolist(), strict=True)
    }
    spelled: list[tuple[str, ...]] = [
        (word,) for word in (*corpus.vocab, "")
    ]  # the last is what we read before every document
    for counted in orders:
        lengths = np.diff(counted.children).tolist()
        prefixes = [prefix for prefix, length in zip(spelled, lengths, strict=True) for _ in range(length)]
        spelled = [(*prefix, corpus.vocab[word]) for prefix, word in zip(prefixes, counted.words.tolist(), strict=True)]
        found |= zip(spelled, counted.counts.tolist(), strict=True)
    return found


def smoothed(counts: Counts, how: Method, discount: float, word: str, context: tuple[str, ...]) -> float:
    """The formula of ``smoothing.py``; unigrams are shares of the counts, as NLTK has them."""
    seen = {gram[-1]: count for gram, count in counts.items() if gram[:-1] == context and count}
    total = float(sum(seen.values()))
    if not context:
        return seen.get(word, 0) / total
    shorter = smoothed(counts, how, discount, word, context[1:])
    if not seen:
        return shorter
    total += how.per_type * len(seen)
    left = how.per_type * len(seen) + discount * len(seen)
    return max(0.0, seen.get(word, 0) - discount) / total + left / total * shorter


@pytest.mark.parametrize(
    ("smoothing", "word", "context", "expected"),
    [
        ("witten-bell", "c", "b", 0.25 + 0.5 / 18),
        ("witten-bell", "c", "a b", 0.5 + 0.5 * (0.25 + 0.5 / 18)),
        ("kneser-ney", "c", "", 1 / 14),
        ("kneser-ney", "<UNK>", "", 3 / 14),
        ("kneser-ney", "c", "b", 0.125 + 0.75 / 14),
        ("kneser-ney", "c", "a b", 0.25 + 0.75 * (0.125 + 0.75 / 14)),
    ],
)
def test_n06_the_formula_on_our_counts(smoothing: str, word: str, context: str, expected: float) -> None:
    how = METHODS[smoothing]
    counts = counts_of(padded_corpus(3, SENTENCES, how), 3, how)
    discount = 0.75 if how.discounts else 0.0
    assert smoothed(counts, how, discount, word, tuple(context.split())) == pytest.approx(expected, rel=1e-14)


# The package itself


TEXTS = ["a b c d", "e g a d b e", "a b a b c", "d", "c c c a", "z b a"]


def nltk_model(kind: str, order: int, **settings: float) -> Any:
    models = pytest.importorskip("nltk.lm", reason="nltk is not installed; it is in the extra 'test'")
    pipeline = pytest.importorskip("nltk.lm.preprocessing")
    vocabulary = models.Vocabulary(VOCAB.tokens[1:], unk_cutoff=1)  # it adds <UNK> itself
    model = getattr(models, kind)(order=order, vocabulary=vocabulary, **settings)
    sentences = [list(pipeline.pad_both_ends(text.split(), order)) for text in TEXTS]
    model.fit([list(pipeline.everygrams(sentence, max_len=order)) for sentence in sentences])
    return model


@pytest.mark.parametrize(
    ("kind", "settings", "smoothing", "add"),
    [
        ("MLE", {}, "maximum-likelihood", None),
        ("Laplace", {}, "laplace", None),
        ("Lidstone", {"gamma": 0.5}, "lidstone", 0.5),
    ],
)
@pytest.mark.parametrize("order", [2, 3])
def test_n06_nltk_gives_the_same_probabilities(
    kind: str, settings: dict[str, float], smoothing: str, add: float | None, order: int
) -> None:
    """After every context that was seen. After others NLTK's maximum likelihood gives nothing any probability."""
    theirs = nltk_model(kind, order, **settings)
    model = NgramLM(order, smoothing, add=add).fit(corpus_of(order, TEXTS))
    contexts = [tuple(text.split()[place : place + order - 1]) for text in TEXTS for place in range(3)]
    for context in {tuple(VOCAB[VOCAB.id(word)] for word in context) for context in contexts} | {()}:
        if context and not sum(theirs.context_counts(context).values()):
            continue
        found = [probability(model, word, context) for word in VOCAB]
        assert_allclose(found, [theirs.score(word, context) for word in VOCAB], rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize(
    ("kind", "settings", "smoothing"),
    [("WittenBellInterpolated", {}, "witten-bell"), ("KneserNeyInterpolated", {"discount": 0.3}, "kneser-ney")],
)
def test_n06_nltk_gives_what_the_formula_gives(kind: str, settings: dict[str, float], smoothing: str) -> None:
    theirs = nltk_model(kind, 2, **settings)
    counts = counts_of(padded_corpus(2, TEXTS, METHODS[smoothing]), 2, METHODS[smoothing])
    for context in ("a", "b", "c", "d"):
        found = [
            smoothed(counts, METHODS[smoothing], settings.get("discount", 0.0), word, (context,)) for word in "abcd"
        ]
        assert_allclose(found, [theirs.score(word, [context]) for word in "abcd"], rtol=1e-12)
