"""Exercises of lessons 1 to 6: tokens, bags, search, n-grams, hidden Markov models, byte-pair encoding.

Public functions ask the library for the answer; those with an underscore make the mistakes that students make.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from functools import cache, partial
from itertools import pairwise
from typing import Any

import numpy as np

from foreword.arrays import Doubles
from foreword.classify.naive_bayes import NaiveBayes
from foreword.features.plain import bag_of
from foreword.features.tfidf import TfIdf
from foreword.hmm import plain as hmm
from foreword.lessons.course.checking import Exercise
from foreword.ngram.model import NgramLM
from foreword.search.bm25 import BM25
from foreword.tokens.bpe import BPETokenizer
from foreword.tokens.corpus import Corpus
from foreword.tokens.merges import Merge
from foreword.tokens.plain import learn_merges
from foreword.tokens.words import WordTokenizer

Texts = list[str]
Pair = tuple[str, str]

PETS = ["the cat sat on the mat", "the dog sat on the cat", "a dog ran", "the cat ran home"]
LETTERS = ["b a a b", "c b c", "c b a", "d"]


# 1. Text and tokens


def vocabulary(texts: Texts, size: int) -> list[str]:
    """Return the most frequent words, most frequent first."""
    return list(WordTokenizer(max_size=size + 2).fit(texts).vocab)[2:]


def _by_letters(texts: Texts, size: int) -> list[str]:
    counts = Counter(" ".join(texts).split())
    return sorted(counts, key=lambda word: (-counts[word], word))[:size]


def unknown_share(train: Texts, test: Texts, min_count: int) -> float:
    """Return the share of test words seen fewer than ``min_count`` times in training."""
    words = WordTokenizer(min_count=min_count).fit(train)
    ids = Corpus.from_texts(test, words).ids
    return float((ids[ids != words.vocab.end] == words.vocab.unknown).mean())


def _unknown_share(train: Texts, test: Texts, min_count: int, *, types: bool = False) -> float:
    counts = Counter(" ".join(train).split())
    read = set(" ".join(test).split()) if types else " ".join(test).split()
    return sum(counts[word] < min_count for word in read) / len(read)


# 2. Bags and naive Bayes


def bag(text: str, words: Sequence[str]) -> list[int]:
    """Return how often each of ``words`` occurs in a text."""
    counts = bag_of(text, "space", False, (1, 1))
    return [counts.get(word, 0) for word in words]


def word_logs(counts: Doubles, alpha: float) -> Doubles:
    """Return log p(word | class) with add-alpha smoothing, one row per class."""
    logs: Doubles = NaiveBayes(alpha=alpha).fit(counts, list(range(len(counts)))).feature_log_prob_
    return logs


def _word_logs(counts: Doubles, alpha: float, smoothed_words: int) -> Doubles:
    logs: Doubles = np.log((counts + alpha) / (counts.sum(axis=1, keepdims=True) + alpha * smoothed_words))
    return logs


# 3. Search


def idf(word: str, documents: Texts) -> float:
    """Return the smoothed inverse document frequency of a word."""
    weights = TfIdf(lowercase=False).fit(documents)
    return float(weights.idf_[list(weights.get_feature_names_out()).index(word)])


def _idf(word: str, documents: Texts, *, occurrences: bool) -> float:
    found = " ".join(documents).split().count(word) if occurrences else sum(word in text for text in documents)
    return math.log((1 + len(documents)) / (1 + found)) + 1


def bm25(query: str, documents: Texts, k1: float, b: float) -> list[float]:
    """Return Lucene's BM25 score of every document."""
    words = WordTokenizer().fit(documents)
    ids = np.array(words.vocab.ids(query.split()))
    scores: list[float] = BM25(k1=k1, b=b).fit(Corpus.from_texts(documents, words)).scores(ids).tolist()
    return scores


# 4. N-grams


def conditional(texts: Texts, before: str, word: str, *, smoothing: str, order: int = 2) -> float:
    """Return p(word | before), where ``<s>`` is the beginning of a text."""
    words = WordTokenizer().fit(texts)
    model: Any = NgramLM(order, smoothing=smoothing).fit(Corpus.from_texts(texts, words))
    state = model.start(1) if before == "<s>" else model.advance(model.start(1), np.array(words.vocab.ids([before])))
    return float(np.exp(model.next_logprobs(state)[0, words.vocab.ids([word])[0]]))


def _bigram(texts: Texts, before: str, word: str, *, ends: str = "<s> {} </s>", one_text: bool = False) -> float:
    read = [" ".join(texts)] if one_text else texts
    pairs = Counter(pair for text in read for pair in pairwise(ends.format(text).split()))
    total = sum(count for (first, _), count in pairs.items() if first == before)
    return pairs[before, word] / total if total else 0.0


def _joint(texts: Texts, before: str, word: str) -> float:
    pairs = Counter(pair for text in texts for pair in pairwise(f"<s> {text} </s>".split()))
    return pairs[before, word] / pairs.total()


def witten_bell(texts: Texts, before: str, word: str, lower: float) -> float:
    """Return the Witten-Bell probability of a word after another, given its unigram probability."""
    return conditional(texts, before, word, smoothing="witten-bell")


def _witten_bell(texts: Texts, before: str, word: str, lower: float, *, occurrences: bool) -> float:
    """Take the number of words for that of different words, or mix without making room for the lower order."""
    after = Counter(b for text in texts for a, b in pairwise(f"<s> {text} </s>".split()) if a == before)
    if occurrences:
        return (after[word] + after.total() * lower) / (2 * after.total())
    return (after[word] + len(after) * lower) / after.total()


def perplexity(logs: Sequence[float]) -> float:
    """Return exp of minus the mean log-probability."""
    return float(np.exp(-np.mean(logs)))


BIGRAMS = [(PETS, "the", "cat"), (PETS, "<s>", "the"), (PETS, "ran", "</s>"), (PETS, "cat", "dog"), (LETTERS, "b", "a")]


# 5. Hidden Markov models


def likelihood(start: Doubles, transition: Doubles, emission: Doubles, ids: Sequence[int]) -> float:
    """Return p(ids) of a hidden Markov model by the forward algorithm."""
    return float(hmm.filtered(start, transition, emission.T, np.array(ids))[1].prod())


def viterbi(start: Doubles, transition: Doubles, emission: Doubles, ids: Sequence[int]) -> list[int]:
    """Return the most likely states."""
    path: list[int] = hmm.viterbi(np.log(start), np.log(transition), np.log(emission.T), np.array(ids)).tolist()
    return path


def _best_path_only(start: Doubles, transition: Doubles, emission: Doubles, ids: Sequence[int]) -> float:
    path = viterbi(start, transition, emission, ids)
    moves = math.prod(float(transition[a, b]) for a, b in pairwise(path))
    return float(start[path[0]]) * moves * math.prod(float(emission[z, x]) for z, x in zip(path, ids, strict=True))


def _greedy(start: Doubles, transition: Doubles, emission: Doubles, ids: Sequence[int]) -> list[int]:
    path: list[int] = []
    for id in ids:
        path.append(int(np.argmax((transition[path[-1]] if path else start) * emission[:, id])))
    return path


def _posterior(start: Doubles, transition: Doubles, emission: Doubles, ids: Sequence[int]) -> list[int]:
    path: list[int] = hmm.smoothed(start, transition, emission.T, np.array(ids))[0].argmax(axis=1).tolist()
    return path


WEATHER = (np.array([0.6, 0.4]), np.array([[0.7, 0.3], [0.4, 0.6]]), np.array([[0.1, 0.4, 0.5], [0.6, 0.3, 0.1]]))
CHAIN = (
    np.array([0.4, 0.35, 0.25]),
    np.array([[0.4, 0.3, 0.3], [0.05, 0.9, 0.05], [0.1, 0.1, 0.8]]),
    np.array([[0.5, 0.5], [0.45, 0.55], [0.6, 0.4]]),
)
READINGS = [(*WEATHER, [0, 1, 2]), (*WEATHER, [0]), (*WEATHER, [2, 2, 0, 0, 1]), (*CHAIN, [0, 1, 1]), (*CHAIN, [1, 0])]


# 6. Byte-pair encoding


def best_pair(words: dict[str, int]) -> Pair:
    """Return what the library merges first; ids follow the alphabet, so ties go to the first pair in it."""
    letters = sorted(set("".join(words)))
    spelled = [[letters.index(letter) for letter in word] for word in words]
    spellings = [letter.encode() for letter in letters]
    merge: Merge = next(learn_merges(spelled, list(words.values()), spellings, len(letters) + 1))
    return letters[merge.left], letters[merge.right]


def _unweighted_pair(words: dict[str, int]) -> Pair:
    pairs = Counter(pair for word in words for pair in pairwise(word))
    return min(pairs, key=lambda pair: (-pairs[pair], pair))


@cache
def learnt() -> BPETokenizer:
    """Return a tokenizer that has learnt from the words."""
    return BPETokenizer(257 + 30, pattern="gpt2").fit(
        ["lowlow lower lowest newer newest slower slowest", "aaa aaaa low"]
    )


def learnt_merges() -> list[Pair]:
    """Return the merges that the library learns."""
    vocab = learnt().vocab
    return [(vocab[left], vocab[right]) for left, right, _ in learnt().merges_.tolist()]


def segment(word: str, merges: Sequence[Pair]) -> list[str]:
    """Apply merges to a word in the order in which they were learnt."""
    return [learnt().vocab[id] for id in learnt().encode(word)]


def _leftmost_first(word: str, merges: Sequence[Pair]) -> list[str]:
    pieces = list(word)
    while at := [index for index, pair in enumerate(pairwise(pieces)) if pair in merges]:
        pieces[at[0] : at[0] + 2] = ["".join(pieces[at[0] : at[0] + 2])]
    return pieces


def _one_merge(word: str, merges: Sequence[Pair]) -> list[str]:
    pieces = list(word)
    for pair in merges:
        if pair in pairwise(pieces):
            at = list(pairwise(pieces)).index(pair)
            pieces[at : at + 2] = ["".join(pair)]
    return pieces


EXERCISES = [
    Exercise(
        "1.1",
        "vocabulary",
        [(PETS, 3), (LETTERS, 2), (["b b a a c"], 2), (PETS, 100)],
        vocabulary,
        {
            "ties are in the order of the alphabet; the library has them in the order of the text": _by_letters,
            "the first words of the text are returned, not the most frequent": lambda texts, size: list(
                dict.fromkeys(" ".join(texts).split())
            )[:size],
        },
    ),
    Exercise(
        "1.2",
        "unknown_share",
        [(PETS, ["the cat flew flew"], 1), (PETS, ["the dog ran", "a bird"], 2), (LETTERS, ["a b e"], 3)],
        unknown_share,
        {
            "different words are counted, not words: an unknown word that occurs twice counts twice": partial(
                _unknown_share, types=True
            ),
            "min_count is not used": lambda train, test, min_count: _unknown_share(train, test, 1),
            "a word seen exactly min_count times is known: compare with <, not <=": lambda train, test, least: (
                _unknown_share(train, test, least + 1)
            ),
        },
    ),
    Exercise(
        "2.1",
        "bag",
        [("the cat the mat", ["the", "cat", "dog"]), ("", ["a"]), ("category cat", ["cat"]), ("a b a", ["b", "a"])],
        bag,
        {
            "presence is returned, 0 or 1, instead of a count": lambda text, words: [
                int(word in text.split()) for word in words
            ],
            "parts of words are counted: split the text first": lambda text, words: [
                text.count(word) for word in words
            ],
        },
    ),
    Exercise(
        "2.2",
        "word_logs",
        [(np.array([[3.0, 0, 1], [0, 2, 2]]), 1.0), (np.array([[1.0, 5], [4, 0]]), 0.5), (np.eye(3), 0.1)],
        word_logs,
        {
            "alpha is added to each count but only once to the total: add it once per word of the vocabulary": partial(
                _word_logs, smoothed_words=1
            ),
            "alpha is missing in the total, so the probabilities do not sum to one": partial(
                _word_logs, smoothed_words=0
            ),
            "probabilities are returned, not their logarithms": lambda counts, alpha: np.exp(word_logs(counts, alpha)),
        },
    ),
    Exercise(
        "3.1",
        "idf",
        [("the", PETS), ("cat", PETS), ("mat", PETS), ("on", [*PETS, "one stone"])],
        idf,
        {
            "occurrences are counted, not documents": partial(_idf, occurrences=True),
            "parts of words are counted: split each document first": partial(_idf, occurrences=False),
        },
    ),
    Exercise(
        "3.2",
        "bm25",
        [("cat the", PETS, 1.5, 0.75), ("dog", PETS, 1.2, 0.0), ("ran ran home", PETS, 2.0, 1.0)],
        bm25,
        {
            "the length of the document is not used: multiply k1 by 1 − b + b · length / mean length": (
                lambda query, documents, k1, b: bm25(query, documents, k1, 0.0)
            ),
            "each word of the query is counted once: one that is asked twice counts twice": (
                lambda query, documents, k1, b: bm25(" ".join(dict.fromkeys(query.split())), documents, k1, b)
            ),
        },
    ),
    Exercise(
        "4.1",
        "bigram",
        BIGRAMS,
        partial(conditional, smoothing="maximum-likelihood"),
        {
            "the end of a text, </s>, is not counted as a word": partial(_bigram, ends="<s> {}"),
            "the beginning of a text, <s>, is not counted": partial(_bigram, ends="{} </s>"),
            "pairs go across the end of a text: each begins with <s> and ends with </s>": partial(
                _bigram, one_text=True
            ),
            "the joint probability of the pair is returned: divide by the count of its first word": _joint,
        },
    ),
    Exercise(
        "4.2",
        "witten_bell",
        [(*case, conditional(*case, smoothing="witten-bell", order=1)) for case in BIGRAMS],
        witten_bell,
        {
            "the number of words after the context is used for the weight, not of different ones": partial(
                _witten_bell, occurrences=True
            ),
            "the number of different words is missing in the denominator": partial(_witten_bell, occurrences=False),
        },
    ),
    Exercise(
        "4.3",
        "perplexity",
        [([-1.0, -2.0, -3.0],), ([math.log(0.25)] * 4,), ([0.0, -0.5],)],
        perplexity,
        {
            "the sum of the logarithms is used, not their mean": lambda logs: math.exp(-sum(logs)),
            "the mean of the probabilities is not the probability of the mean: average the logarithms": (
                lambda logs: 1 / float(np.mean(np.exp(logs)))
            ),
            "the logarithms are natural: use exp, not a power of two": lambda logs: 2 ** -float(np.mean(logs)),
        },
    ),
    Exercise(
        "5.1",
        "likelihood",
        READINGS,
        likelihood,
        {
            "the probability of the best path is returned, not the sum over all paths": _best_path_only,
            "transition is transposed: a row is the state before": lambda start, transition, emission, ids: likelihood(
                start, transition.T, emission, ids
            ),
        },
    ),
    Exercise(
        "5.2",
        "viterbi",
        READINGS,
        viterbi,
        {
            "each step takes its own best state: keep the best path to every state and choose at the end": _greedy,
            "the likeliest state of each step is not on the likeliest path": _posterior,
            "the transitions are not used": lambda start, transition, emission, ids: (
                emission[:, ids].argmax(axis=0).tolist()
            ),
        },
    ),
    Exercise(
        "6.1",
        "best_pair",
        [({"low": 5, "lower": 2, "newest": 6},), ({"ab": 1, "bc": 1},), ({"aab": 3, "bab": 1, "cab": 1, "bb": 9},)],
        best_pair,
        {"each different word counts once: multiply by how often it occurs": _unweighted_pair},
    ),
    Exercise(
        "6.2",
        "segment",
        [(word, learnt_merges()) for word in ("lowest", "newest", "aaaa", "slowlow", "xyz", "nlowerer")],
        segment,
        {
            "the leftmost pair is merged first: the earliest merge of the list comes first": _leftmost_first,
            "each merge is applied once: apply it wherever its pair stands": _one_merge,
        },
    ),
]
