"""N-gram language models: the next word given the last few (Shannon, 1948).

    p(w_i | w_1 … w_(i-1)) ≈ p(w_i | w_(i-n+1) … w_(i-1))

Counts of the longest contexts are the sharpest and the rarest, so every method of ``smoothing.py`` mixes them with
those of shorter ones. The default, modified Kneser-Ney (Chen and Goodman, 1999), gives KenLM's estimates
(Heafield et al., 2013: https://aclanthology.org/P13-2121) to the last digit KenLM prints.

``estimate`` works in float64. A fitted model keeps natural logs as float32 in one hash table, which is what is saved
and mapped into memory again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from foreword.errors import ForewordError, InputError, SettingError
from foreword.kernels import ngram_query
from foreword.kernels.ngram_count import (
    count_left_extensions,
    counts_of_counts,
    last_in_suffix_order,
    pad_documents,
    rank_by_first_place,
    refine,
    sort_by_word,
)
from foreword.kernels.ngram_table import discounted
from foreword.lm.ngram_layouts import HashLayout, Logged, Spelled, TrieLayout
from foreword.lm.smoothing import GIVEN, Method, estimate_discounts, method
from foreword.protocols import Ids, Json, Logs, Meter, Parts
from foreword.tokens.corpus import Corpus
from foreword.tokens.parallel import cores, ordered_map
from foreword.tokens.vocab import Vocab

Ints = NDArray[np.int32]
Longs = NDArray[np.int64]
Floats = NDArray[np.float64]

HIGHEST_ORDER = 10


@dataclass(slots=True)
class Order:
    """All k-grams of one order, sorted by their words.

    words: int32 (n,), the last word of each; parents, suffixes: int32 (n,), the (k-1)-grams without the last and
    without the first word.
    children: int64 ((k-1)-grams + 1,), the k-grams that extend (k-1)-gram g are ``children[g]`` to ``children[g + 1]``.
    raw: int32 (n,), how often each was seen; counts: int32 (n,), what smoothing works with.
    """

    words: Ints
    parents: Ints
    suffixes: Ints
    children: Longs
    raw: Ints
    counts: Ints


@dataclass(slots=True)
class Estimate:
    """Probabilities of one order in float64, and the back-off weight of each of its n-grams as a context.

    words, parents: int32 (n,), the last word, and the number of the n-gram before it in the order below.
    """

    words: Ints
    parents: Ints
    probabilities: Floats
    backoffs: Floats


def count_ngrams(corpus: Corpus, order: int, *, meter: Meter | None = None) -> tuple[Longs, list[Order]]:
    """How often each word was seen, int64 (words,), and the n-grams of orders 2 to ``order``."""
    start = len(corpus.vocab)
    text = np.empty(len(corpus.ids) + len(corpus), np.int32)
    pad_documents(corpus.ids, corpus.offsets, start, text)
    unigrams = np.bincount(corpus.ids, minlength=start).astype(np.int64)
    if order == 1:
        return unigrams, []
    places = np.zeros(start + 3, np.int64)
    sorted_places = np.empty(len(text), np.int32)
    sort_by_word(text, places, sorted_places)
    begins, ending = places[: start + 2].copy(), text
    largest = int(np.diff(begins).max(initial=0))
    keys, spare, tally = np.empty(largest, np.int64), np.empty(largest, np.int64), np.empty(2049, np.int64)
    orders: list[Order] = []
    for _ in range(2, order + 1):
        new_places, new_ending, words, parents, suffixes, raw = (np.empty(len(text), np.int32) for _ in range(6))
        new_begins = np.empty(len(text) + 1, np.int64)
        children = np.empty(len(begins), np.int64)
        size = refine(
            text, start, sorted_places, begins, ending, new_places, new_ending, words, parents, suffixes, raw,
            new_begins, children, keys, spare, tally,
        )  # fmt: skip
        begins, sorted_places, ending = new_begins[: size + 1], new_places, new_ending
        orders.append(Order(words[:size], parents[:size], suffixes[:size], children, raw[:size], raw[:size]))
        if meter is not None:
            meter("counting", len(orders), order - 1)
    return unigrams, orders


def count_continuations(vocab_size: int, orders: Sequence[Order]) -> Longs:
    """Replace the counts of all but the highest order by the number of different words before each n-gram.

    What begins with ``<s>`` keeps its count, for nothing stands before it. Returns the unigrams' new counts.
    """
    after_start = vocab_size  # the number of <s> as a context; n-grams that begin with it come last
    for below, above in pairwise(orders):
        after_start = int(below.children[after_start])
        counts = np.zeros(len(below.words), np.int32)
        count_left_extensions(above.suffixes, counts)
        counts[after_start:] = below.raw[after_start:]
        below.counts = counts
    unigrams = np.zeros(vocab_size + 1, np.int32)
    count_left_extensions(orders[0].suffixes, unigrams)
    return unigrams[:vocab_size].astype(np.int64)


def estimate(
    corpus: Corpus,
    order: int,
    how: Method,
    *,
    prune: Sequence[int] = (),
    fallback: bool = True,
    meter: Meter | None = None,
) -> tuple[list[Estimate], list[tuple[float, ...]]]:
    """Probabilities of all orders in float64, and the discounts of each order.

    prune: for each order, n-grams seen at most that often are left out; the last number goes on for higher orders.
    """
    size = len(corpus.vocab)
    unigrams, orders = count_ngrams(corpus, order, meter=meter)
    if how.continuations and orders:
        unigrams = count_continuations(size, orders)
    limits = _prune_limits(prune, order)
    discounts = _all_discounts(corpus, unigrams, orders, how, fallback)
    found = [_unigram_estimate(unigrams, how, discounts[0])]
    for k, counted in enumerate(orders, 2):
        probabilities = np.empty(len(counted.words))
        below = found[-1]
        lower = np.full(size + 1, 1 / size) if how.uniform else below.probabilities
        suffixes = np.zeros(len(counted.words), np.int32) if how.uniform else counted.suffixes
        discounted(
            counted.children, counted.counts, counted.raw, suffixes, lower, np.array(discounts[k - 1]),
            how.per_type, how.per_word * size, limits[k - 1], how.backoff is None, probabilities, below.backoffs,
        )  # fmt: skip
        if how.backoff is not None:
            below.backoffs[np.diff(counted.children) > 0] = how.backoff
        found.append(Estimate(counted.words, counted.parents, probabilities, np.ones(len(counted.words))))
        if meter is not None:
            meter("estimating", k, order)
    return _pruned(found, [counted.raw for counted in orders], limits), discounts


def _all_discounts(
    corpus: Corpus, unigrams: Longs, orders: Sequence[Order], how: Method, fallback: bool
) -> list[tuple[float, ...]]:
    """The discounts of each order, from how many n-grams have the count 1, 2, 3 and 4.

    KenLM tallies one n-gram of each lower order, the last in its sort, by how often it was seen instead of by how many
    words stand before it. In a large text that is nothing; for equal digits in a small one we do the same.
    """
    tallies = np.zeros((len(orders) + 1, 5), np.int64)
    counts_of_counts(unigrams, tallies[0])
    for tally, counted in zip(tallies[1:], orders, strict=True):
        counts_of_counts(counted.counts, tally)
    if how.continuations and orders:
        for tally, (adjusted, raw) in zip(tallies, _last_in_kenlms_sort(corpus, unigrams, orders), strict=False):
            for count, change in ((adjusted, -1), (raw, 1)):
                if count < 5:
                    tally[count] += change
    return [
        estimate_discounts(tally[:5].tolist(), how.discounts, order=order, fallback=fallback)
        for order, tally in enumerate(tallies, 1)
    ]


def _last_in_kenlms_sort(corpus: Corpus, unigrams: Longs, orders: Sequence[Order]) -> Iterator[tuple[int, int]]:
    """For each order below the highest: the smoothing count and the raw count of the n-gram that KenLM has last."""
    start = len(corpus.vocab)
    text = np.empty(len(corpus.ids) + len(corpus), np.int32)
    pad_documents(corpus.ids, corpus.offsets, start, text)
    ranks = np.full(start + 1, -1, np.int32)
    word = rank_by_first_place(corpus.ids, ranks, corpus.vocab.end)
    place = last_in_suffix_order(text, ranks, word, len(orders) + 1)
    for length in range(1, len(orders) + 1):
        ngram = text[place - length + 1 : place + 1].tolist()
        if length == 1:
            yield int(unigrams[word]), int((corpus.ids == word).sum())
            continue
        number = ngram[0]
        for counted, following in zip(orders, ngram[1:], strict=False):
            first, last = counted.children[number : number + 2].tolist()
            number = first + int(np.searchsorted(counted.words[first:last], following))
        yield int(orders[length - 2].counts[number]), int(orders[length - 2].raw[number])
        if ngram[0] == start:
            return


def _unigram_estimate(counts: Longs, how: Method, discounts: tuple[float, ...]) -> Estimate:
    """Unigrams are mixed with the uniform distribution, of which every word has one part, ``<unk>`` too."""
    size = len(counts)
    taken = np.array(discounts)[np.minimum(counts, 3)]
    extra = how.per_type * int((counts > 0).sum()) + how.per_word * size
    total = counts.sum() + extra
    if how.backoff is not None:
        probabilities = np.where(counts > 0, counts / total, how.backoff / size)
    else:
        probabilities = (counts - taken) / total + (taken.sum() + extra) / total / size
    # <s> is never predicted; its row is there because it is a context.
    return Estimate(
        np.arange(size + 1, dtype=np.int32), np.zeros(size + 1, np.int32), np.append(probabilities, 0.0),
        np.ones(size + 1),
    )  # fmt: skip


def _prune_limits(prune: Sequence[int], order: int) -> list[int]:
    limits = [*prune, *[prune[-1] if prune else 0] * order][:order]
    if any(limit < 0 for limit in limits) or limits != sorted(limits):
        raise SettingError(f"prune={list(prune)}: expected numbers that do not fall from order to order")
    if limits[0]:
        raise SettingError("prune: unigrams are not pruned; limit the vocabulary instead")
    return limits


def _pruned(found: list[Estimate], raw: Sequence[Ints], limits: Sequence[int]) -> list[Estimate]:
    """Leave out rare n-grams. Limits do not fall with the order, so what a kept n-gram needs is kept too."""
    kept = found[:1]
    renumbered: Ints | None = None
    for counts, limit, order in zip(raw, limits[1:], found[1:], strict=True):
        keep = counts > limit
        if not limit:
            kept.append(order)
            continue
        parents = order.parents[keep] if renumbered is None else renumbered[order.parents[keep]]
        kept.append(Estimate(order.words[keep], parents, order.probabilities[keep], order.backoffs[keep]))
        renumbered = (np.cumsum(keep) - 1).astype(np.int32)
    return kept


class NgramLM:
    """The next word given the last ``order`` - 1.

    smoothing: a name from ``smoothing.METHODS``; add: Lidstone's addition, for smoothing="lidstone".
    prune: for each order, n-grams seen at most that often are left out, e.g. (0, 0, 1).
    discount_fallback: use KenLM's fixed discounts where the text is too small to estimate them; else that is an error.
    layout: "hash" is the fastest, "trie" the smallest (see ``ngram_layouts``); quantize: eight bits for each log, in a
    trie. threads: for scoring; None is all cores.
    """

    def __init__(
        self,
        order: int = 5,
        smoothing: str = "modified-kneser-ney",
        *,
        add: float | None = None,
        prune: Sequence[int] = (),
        discount_fallback: bool = True,
        layout: Literal["hash", "trie"] = "hash",
        quantize: bool = False,
        threads: int | None = None,
    ) -> None:
        if not 1 <= order <= HIGHEST_ORDER:
            raise SettingError(f"order={order}: expected 1 to {HIGHEST_ORDER}")
        if layout not in ("hash", "trie"):
            raise SettingError(f"layout={layout!r}: expected 'hash' or 'trie'")
        if quantize and layout != "trie":
            raise SettingError("quantize is for layout='trie' only")
        self._method = method(smoothing, add)
        self.layout = layout
        self.quantize = quantize
        self.order = order
        self.smoothing = smoothing
        self.add = add
        self.prune = tuple(prune)
        self.discount_fallback = discount_fallback
        self.threads = threads
        _prune_limits(self.prune, order)

    def __repr__(self) -> str:
        return f"NgramLM(order={self.order}, smoothing={self.smoothing!r})"

    @property
    def vocab(self) -> Vocab:
        if not hasattr(self, "vocab_"):
            raise ForewordError("this NgramLM has learnt nothing yet: call fit(corpus) first")
        return self.vocab_

    # Learning

    def fit(self, corpus: Corpus, *, valid: Corpus | None = None, meter: Meter | None = None) -> Self:
        if self.smoothing == GIVEN:
            raise ForewordError("this model was read from a file and cannot be fitted: make a new NgramLM")
        if len(corpus.ids) == 0:
            raise ForewordError("there is nothing to learn from: the corpus is empty")
        if len(corpus.ids) + len(corpus) >= 1 << 31:
            raise ForewordError("a corpus of more than two thousand million tokens is too large: prune or shard it")
        corpus.check_ids()
        found, self.discounts_ = estimate(
            corpus, self.order, self._method, prune=self.prune, fallback=self.discount_fallback, meter=meter
        )
        self._pack(corpus.vocab, found)
        return self

    def _pack(self, vocab: Vocab, found: Sequence[Estimate]) -> None:
        with np.errstate(divide="ignore"):
            self._enter(vocab, [_logged(order) for order in found])

    def _enter(self, vocab: Vocab, orders: Sequence[Logged]) -> None:
        uniform = self._method.uniform
        self.vocab_ = vocab
        self.layout_: HashLayout | TrieLayout
        if self.layout == "hash":
            self.layout_ = HashLayout.build(orders, len(vocab), uniform)
        else:
            self.layout_ = TrieLayout.build(orders, len(vocab), uniform, quantized=self.quantize)

    @classmethod
    def from_logs(
        cls,
        vocab: Vocab,
        orders: Sequence[Logged],
        *,
        layout: Literal["hash", "trie"] = "hash",
        quantize: bool = False,
    ) -> Self:
        """A model whose probabilities come from elsewhere, such as an ARPA file; it cannot be fitted again."""
        model = cls(len(orders), GIVEN, layout=layout, quantize=quantize)
        model.discounts_ = []
        model._enter(vocab, orders)
        return model

    @property
    def sizes_(self) -> list[int]:
        """How many n-grams there are of each order; ``<s>`` counts as a unigram."""
        return self.layout_.sizes

    # Reading

    @property
    def _start(self) -> Longs:
        start = np.full(self.order - 1, -1, np.int64)
        start[:1] = len(self.vocab)
        return start

    def start(self, n: int = 1) -> Longs:
        return np.tile(self._start, (n, 1))

    def advance(self, state: Longs, ids: Ids) -> Longs:
        new, words = np.array(state, np.int64), np.asarray(ids, np.int64)
        if words.shape != (len(new),):
            raise SettingError(f"{len(new)} texts need as many next words, not {words.size}")
        if len(words) and not 0 <= words.min() <= words.max() < len(self.vocab):
            raise SettingError(f"an id is not in the vocabulary of {len(self.vocab)} tokens")
        ngram_query.advance(self.layout_.model, new.reshape(-1), words, self.order - 1)
        return new

    def logprobs(self, corpus: Corpus) -> Logs:
        return self.full_scores(corpus, matched=False)[0]

    def full_scores(self, corpus: Corpus, *, matched: bool = True) -> tuple[Floats, NDArray[np.uint8]]:
        """Log-probability of every id, and the order of the n-gram that matched, 1 for a word on its own."""
        if corpus.vocab != self.vocab:
            raise ForewordError("the corpus was made with another vocabulary than the model")
        corpus.check_ids()
        logs = np.empty(len(corpus.ids))
        orders = np.empty(len(corpus.ids) if matched else 0, np.uint8)

        def work(part: tuple[int, int]) -> None:
            states = np.empty(ngram_query.LANES * (self.order - 1), np.int64)
            at = np.empty(ngram_query.LANES * 2, np.int64)
            ngram_query.score(
                self.layout_.model, self._start, corpus.ids, corpus.offsets, part[0], part[1], states, at, logs, orders
            )

        for _ in ordered_map(work, _parts(corpus, self.threads or cores()), self.threads):
            pass
        return logs, orders

    def score(self, corpus: Corpus) -> float:
        if len(corpus.ids) == 0:
            raise ForewordError("there is nothing to score: the corpus is empty")
        return float(self.logprobs(corpus).mean())

    def next_logprobs(self, state: Longs) -> Logs:
        """(n, words): unigrams first, then what each longer known context says, over it."""
        rows = [self._next(row) for row in np.asarray(state, np.int64)]
        return np.stack(rows) if rows else np.empty((0, len(self.vocab)))

    def _next(self, contexts: Longs) -> Floats:
        layout = self.layout_
        known = [(length, context) for length, context in enumerate(contexts.tolist()) if context >= 0]
        weights = [layout.backoff(length, context) for length, context in known]
        logs = layout.model.unigrams[: 2 * len(self.vocab) : 2].astype(np.float64)
        if self._method.uniform and known:
            logs[:] = layout.model.floor + weights[-1]
            known, weights = known[-1:], weights[-1:]
        elif known:
            logs += _sum_in_order(weights)
        for place, (length, context) in enumerate(known):
            words, values = layout.extensions(length, context)
            logs[words] = values + _sum_in_order(weights[place + 1 :])
        return logs

    def normalisation_loss(self, steps: int = 200, seed: int = 0) -> float:
        """How far from one the probabilities of all next words sum up to, at worst, in contexts met while sampling.

        Float32 costs about 1e-6; eight bits for each log cost what this says.
        """
        random = np.random.default_rng(seed)
        state, worst = self.start(), 0.0
        for _ in range(steps):
            shares = np.exp(self.next_logprobs(state)[0])
            total = float(shares.sum())
            worst = max(worst, abs(total - 1))
            word = int(random.choice(len(shares), p=shares / total))
            state = self.start() if word == self.vocab.end else self.advance(state, np.array([word]))
        return worst

    def ngrams(self) -> Iterator[Spelled]:
        """For each order: its number, the words (n, order) sorted, log-probabilities and log back-off weights."""
        return self.layout_.ngrams()

    # Saving

    def to_parts(self) -> Parts:
        settings: dict[str, Json] = {
            "order": self.order,
            "smoothing": self.smoothing,
            "add": self.add,
            "prune": list(self.prune),
            "discount_fallback": self.discount_fallback,
            "layout": self.layout,
            "quantize": self.quantize,
            "sizes": list(self.sizes_),
            "discounts": [list(found) for found in self.discounts_],
        }
        return Parts(settings, self.layout_.arrays(), self.vocab)

    @classmethod
    def from_parts(cls, parts: Parts) -> Self:
        settings: dict[str, Any] = dict(parts.settings)
        sizes, discounts = settings.pop("sizes"), settings.pop("discounts")
        model = cls(**settings)
        if parts.vocab is None:
            raise InputError("an n-gram model needs its vocabulary")
        if len(sizes) != model.order or not all(type(size) is int for size in sizes):
            raise InputError("the numbers of n-grams do not fit the order")
        layout = HashLayout if model.layout == "hash" else TrieLayout
        model.vocab_ = parts.vocab
        model.layout_ = layout.open(parts.arrays, sizes, len(parts.vocab), model._method.uniform)
        model.discounts_ = [tuple(found) for found in discounts]
        return model


def _logged(found: Estimate) -> Logged:
    """Natural logs in float32. They are taken in place: fresh memory costs as much as the logarithms do."""
    logs = [np.log(each, out=each).astype(np.float32) for each in (found.probabilities, found.backoffs)]
    return Logged(found.words, found.parents, *logs)


def _sum_in_order(weights: Sequence[float]) -> float:
    """From the shortest context to the longest, as the kernel adds them, so that both roads agree to the last bit."""
    total = 0.0
    for weight in weights:
        total += weight
    return total


def _parts(corpus: Corpus, threads: int) -> list[tuple[int, int]]:
    """Ranges of documents of about the same number of ids."""
    pieces = 1 if threads == 1 else 8 * threads
    cuts = np.searchsorted(corpus.offsets, np.linspace(0, len(corpus.ids), pieces + 1)[1:-1])
    cuts = np.unique(np.concatenate(([0], cuts, [len(corpus)])))
    return list(zip(cuts.tolist(), cuts[1:].tolist(), strict=False))
