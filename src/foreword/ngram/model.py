"""N-gram language models: the next word given the last few (Shannon, 1948).

    p(w_i | w_1 … w_(i-1)) ≈ p(w_i | w_(i-n+1) … w_(i-1))

Counts of the longest contexts are the sharpest and the rarest, so every method of ``smoothing.py`` mixes them with
those of shorter ones. The default, modified Kneser-Ney (Chen and Goodman, 1999), gives KenLM's estimates
(Heafield et al., 2013: https://aclanthology.org/P13-2121) to the last digit KenLM prints.

Counting is in ``counts.py``, the estimates, in float64, in ``estimate.py``. A fitted model stores natural logs as
float32 in a few flat arrays (``hash_layout.py``, ``trie_layout.py``), which are saved and mapped into memory as they
are.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, Literal, Self

import numpy as np

from foreword.arrays import Bytes, Doubles, Floats, Ids, Ints, Logs, Longs
from foreword.checks import check_corpus, check_ids, check_number
from foreword.errors import ForewordError, InputError, NotFittedError, SettingError
from foreword.measures.perplexity import MeanScore
from foreword.native.parallel import cores, ordered_map
from foreword.ngram import kernels_query as kernels
from foreword.ngram.counts import Tabulated
from foreword.ngram.estimate import estimate_logs, prune_limits
from foreword.ngram.hash_layout import HashLayout, LoggedOrder, Spelled, hash_arrays, in_order, most_rows, table_of
from foreword.ngram.smoothing import GIVEN, method
from foreword.ngram.trie_layout import TrieLayout, trie_arrays
from foreword.notebook import ShownInNotebook
from foreword.protocols import Json, Meter, Parts
from foreword.storage.scratch import Scratch
from foreword.tokens.corpus import Corpus
from foreword.tokens.vocab import Vocab

HIGHEST_ORDER = 10

MANY_WORDS, MOST_CACHED = 100, 1 << 20
"""Extensions of contexts with at least MANY_WORDS words are cached while a model generates text, up to MOST_CACHED
words (16 MB) in all."""


class NgramLM(ShownInNotebook, MeanScore):
    """An n-gram model: the next word given the last ``order`` - 1.

    smoothing: "modified-kneser-ney", "kneser-ney", "absolute", "witten-bell", "laplace", "lidstone",
    "maximum-likelihood" or "stupid-backoff". add: added to each count, for smoothing="lidstone". prune: for each order,
    drop n-grams seen at most this often, e.g. (0, 0, 1). discount_fallback: use KenLM's fixed discounts where the text
    is too small to estimate them; otherwise raise an error. layout: "hash" is the fastest, "trie" the smallest;
    quantize: store each log-probability in eight bits, in a trie. threads: for scoring; None is all cores. memory:
    memory limit of training in bytes, which includes the vocabulary and 16 bytes per document; None is no limit. What
    does not fit goes to files in ``scratch``, by default the system's temporary folder. The result is the same.
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
        memory: int | None = None,
        scratch: str | None = None,
    ) -> None:
        check_number("order", order, whole=True, least=-math.inf)
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
        self.memory = memory
        self.scratch = scratch
        prune_limits(self.prune, order)
        Scratch(memory)

    def __repr__(self) -> str:
        return f"NgramLM(order={self.order}, smoothing={self.smoothing!r})"

    @property
    def vocab(self) -> Vocab:
        """The vocabulary of the training text."""
        if not hasattr(self, "vocab_"):
            raise NotFittedError(self, "corpus")
        return self.vocab_

    # Learning

    def fit(self, corpus: Corpus, *, valid: Corpus | None = None, meter: Meter | None = None) -> Self:
        """Learn from a corpus; ``valid`` is not used."""
        check_corpus(corpus)
        self._check_fittable()
        if len(corpus.ids) == 0:
            raise ForewordError("there is nothing to learn from: the corpus is empty")
        if len(corpus.ids) + len(corpus) >= 1 << 31:
            raise ForewordError("a corpus of more than two thousand million tokens is too large: prune or shard it")
        scratch = Scratch(self.memory, self.scratch)
        # Counting is over before the finished tables are built: one block is enough for both.
        scratch.reserve(16 * (self.order - 1) * most_rows(len(corpus.ids)) if self.layout == "hash" else 0)
        return self._estimate(corpus, scratch, meter)

    def fit_tabulated(self, tabulated: Tabulated, *, meter: Meter | None = None) -> Self:
        """Learn from n-grams of this order that were counted elsewhere; the tables are overwritten."""
        self._check_fittable()
        if len(tabulated.orders) != self.order - 1:
            raise SettingError(f"counts of order {len(tabulated.orders) + 1} for a model of order {self.order}")
        return self._estimate(tabulated, Scratch(self.memory, self.scratch), meter)

    def _check_fittable(self) -> None:
        if self.smoothing == GIVEN:
            raise ForewordError("this model was read from a file and cannot be fitted: make a new NgramLM")

    def _estimate(self, counted: Corpus | Tabulated, scratch: Scratch, meter: Meter | None) -> Self:
        found, discounts = estimate_logs(
            counted, self.order, self._method, prune=self.prune, fallback=self.discount_fallback,
            scratch=scratch, meter=meter,
        )  # fmt: skip
        self._pack(counted.vocab, found.unigrams, found.tables, scratch, meter)
        self.discounts_ = discounts
        return self

    def _pack(
        self, vocab: Vocab, unigrams: Floats, tables: Sequence[Ints], scratch: Scratch, meter: Meter | None = None
    ) -> None:
        sizes = [len(unigrams), *map(len, tables)]
        self.layout_: HashLayout | TrieLayout
        if self.layout == "hash":
            arrays = hash_arrays(unigrams, tables, scratch, meter)
            self.layout_ = HashLayout.open(arrays, sizes, len(vocab), self._method.uniform)
        else:
            arrays = trie_arrays(unigrams, tables, scratch, quantize=self.quantize, meter=meter)
            self.layout_ = TrieLayout.open(arrays, sizes, len(vocab), self._method.uniform)
        self.vocab_ = vocab

    @classmethod
    def from_logs(
        cls,
        vocab: Vocab,
        orders: Sequence[LoggedOrder],
        *,
        layout: Literal["hash", "trie"] = "hash",
        quantize: bool = False,
    ) -> Self:
        """Make a model of given probabilities, such as those of an ARPA file; it cannot be fitted again."""
        model = cls(len(orders), GIVEN, layout=layout, quantize=quantize)
        model.discounts_ = []
        orders = in_order(orders) if layout == "trie" else orders
        unigrams = np.stack((orders[0].probabilities, orders[0].backoffs), axis=1)
        model._pack(vocab, unigrams, [table_of(order) for order in orders[1:]], Scratch())
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
        """Return the states, (n, order - 1), of n texts of which only ``<s>`` has been read."""
        return np.tile(self._start, (n, 1))

    def advance(self, state: Longs, ids: Ids) -> Longs:
        """Return the states after one more word each."""
        new, words = np.array(state, np.int64), np.asarray(ids, np.int64)
        if words.shape != (len(new),):
            raise SettingError(f"{len(new)} texts need as many next words, not {words.size}")
        check_ids(words, len(self.vocab))
        kernels.advance(self.layout_.model, new.reshape(-1), words, self.order - 1)
        return new

    def logprobs(self, corpus: Corpus) -> Logs:
        """Return the log-probability of every id, float64 (tokens,)."""
        return self.full_scores(corpus, matched=False)[0]

    def full_scores(self, corpus: Corpus, *, matched: bool = True) -> tuple[Doubles, Bytes]:
        """Return the log-probability of every id, and the order of the n-gram that matched, 1 for a word on its own."""
        check_corpus(corpus, self.vocab)
        logs = np.empty(len(corpus.ids))
        orders = np.empty(len(corpus.ids) if matched else 0, np.uint8)

        def work(part: tuple[int, int]) -> None:
            states = np.empty(kernels.LANES * (self.order - 1), np.int64)
            at = np.empty(kernels.LANES * 2, np.int64)
            kernels.score(
                self.layout_.model, self._start, corpus.ids, corpus.offsets, part[0], part[1], states, at, logs, orders
            )

        for _ in ordered_map(work, corpus.ranges(self.threads or cores()), self.threads):
            pass
        return logs, orders

    def next_logprobs(self, state: Longs) -> Logs:
        """Return (n, words): the unigrams, overwritten by what each longer known context has."""
        contexts = np.asarray(state, np.int64)
        logs = np.empty((len(contexts), len(self.vocab)))
        for row, known in zip(logs, contexts, strict=True):
            self._fill_next(known, row)
        return logs

    def _fill_next(self, contexts: Longs, logs: Doubles) -> None:
        layout = self.layout_
        known = [(length, context) for length, context in enumerate(contexts.tolist()) if context >= 0]
        weights = [layout.backoff(length, context) for length, context in known]
        unigrams = layout.model.unigrams[: 2 * len(self.vocab) : 2]
        if self._method.uniform and known:
            logs[:] = layout.model.floor + weights[-1]
            known, weights = known[-1:], weights[-1:]
        else:
            np.add(unigrams, _sum_in_order(weights), out=logs, dtype=np.float64)
        for index, (length, context) in enumerate(known):
            words, values = self._extensions(length, context)
            logs[words] = values + _sum_in_order(weights[index + 1 :])

    def _extensions(self, length: int, context: int) -> tuple[Longs, Doubles]:
        """Return the words seen after a context, and their log-probabilities.

        A text meets the same few contexts with many words again and again, and gathering those from a table larger than
        the cache is most of the work: they are cached.
        """
        if self.__dict__.get("_cached_layout") is not self.layout_:
            self._cached_layout, self._cached_words = self.layout_, 0
            self._cached: dict[tuple[int, int], tuple[Longs, Doubles]] = {}
        found = self._cached.get((length, context))
        if found is None:
            found = self.layout_.extensions(length, context)
            if found[0].max(initial=0) >= len(self.vocab):
                raise InputError("the n-grams name a word that is not in the vocabulary")
            if len(found[0]) >= MANY_WORDS:
                if self._cached_words > MOST_CACHED:
                    self._cached, self._cached_words = {}, 0
                self._cached[length, context] = found
                self._cached_words += len(found[0])
        return found

    def normalisation_loss(self, steps: int = 200, seed: int = 0) -> float:
        """Return how far from one the probabilities of all next words sum to, at worst, in contexts met while sampling.

        Float32 costs about 1e-6; eight bits for each log cost what this returns.
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
        """Yield each order: its number, the words (n, order) sorted, log-probabilities and log back-off weights."""
        return self.layout_.ngrams()

    # Saving

    def to_parts(self) -> Parts:
        """Return settings, arrays and vocabulary for saving."""
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
        """Build a saved model."""
        settings: dict[str, Any] = dict(parts.settings)
        sizes, discounts = settings.pop("sizes"), settings.pop("discounts")
        model = cls(**settings)
        if len(sizes) != model.order or not all(type(size) is int for size in sizes):
            raise InputError("the numbers of n-grams do not fit the order")
        layout = HashLayout if model.layout == "hash" else TrieLayout
        model.vocab_ = parts.needed_vocab()
        model.layout_ = layout.open(parts.arrays, sizes, len(model.vocab_), model._method.uniform)
        model.discounts_ = [tuple(found) for found in discounts]
        return model


def _sum_in_order(weights: Sequence[float]) -> float:
    """Add weights from the shortest context to the longest, the kernel's order, so that both agree to the last bit."""
    total = 0.0
    for weight in weights:
        total += weight
    return total
