"""Every interface of the package, in three screens.

Logarithms are natural; a higher ``score`` is better. ``<s>`` is read, never predicted and never stored; ``</s>`` is an
ordinary id that ends a document. A document is what is scored on its own: a sentence, or a whole test set if the state
should carry through it. One law ties these interfaces together: ``logprobs(corpus)``, by whatever fast path, equals
stepping with ``advance`` and reading ``next_logprobs``. The slow path is the reference; ``tests/contract`` checks the
law for every model.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeAlias, TypeVar, runtime_checkable

from foreword.arrays import Array, Floats, Ids, Logs, Longs
from foreword.errors import MissingVocabularyError

if TYPE_CHECKING:
    from foreword.search.inverted import Found
    from foreword.text.block import Block
    from foreword.tokens.corpus import Corpus, Encoded
    from foreword.tokens.vocab import Vocab

Json: TypeAlias = "str | int | float | bool | list[Json] | dict[str, Json] | None"
Counts: TypeAlias = Any  # a scipy.sparse CSR matrix (documents, features); SciPy has no type annotations
Labels: TypeAlias = "Sequence[str] | Array"  # one label per document
Sentences: TypeAlias = Sequence[Sequence[str]]  # words
Tags: TypeAlias = Sequence[Sequence[str]]  # one tag per word
Rows: TypeAlias = "Ids | Sequence[int] | slice"

# Progress

Meter: TypeAlias = Callable[[str, int, int | None], None]
"""Progress callback of long work: ``meter(phase, done, total)``; ``total`` is None where it is unknown."""


@dataclass(frozen=True, slots=True)
class Step:
    """Progress of a training run. ``train()`` is a generator of these; progress bars, checkpoints and tests read it.

    done, total: tokens over all epochs; loss: mean since the previous step, NaN if there is none; rate: the learning
    rate, 0 if there is none.
    """

    done: int
    total: int
    loss: float = math.nan
    rate: float = 0.0

    @property
    def share(self) -> float:
        """Return the fraction of the run that is done, 0 to 1."""
        return min(1.0, self.done / max(self.total, 1))


# Language models


class State(Protocol):
    """What a model remembers of n texts. An array with one row per text is a state."""

    def __len__(self) -> int: ...
    def __getitem__(self, rows: Any, /) -> Self: ...  # select, drop or repeat rows: all that a beam search needs


S = TypeVar("S", bound=State)


@runtime_checkable
class NextToken(Protocol[S]):
    """A distribution over the next token: enough to sample, search, mix and plot."""

    @property
    def vocab(self) -> Vocab:
        """The tokens that are predicted."""

    def start(self, n: int = 1) -> S:
        """Return the state of ``n`` texts that have read ``<s>``."""

    def next_logprobs(self, state: S) -> Logs:
        """Return log-probabilities of the next token, (n, len(vocab)); the probabilities of a row sum to one."""

    def advance(self, state: S, ids: Ids) -> S:
        """Return the state after one more token per text; the old state stays valid."""


@runtime_checkable
class LanguageModel(NextToken[S], Protocol[S]):
    """A NextToken that learns from a corpus and scores one."""

    def fit(self, corpus: Corpus, *, valid: Corpus | None = None) -> Self:
        """Learn from a corpus; held-out text chooses what the model leaves open."""

    def logprobs(self, corpus: Corpus) -> Logs:
        """Return the log-probability of every id in ``corpus.ids``."""

    def score(self, corpus: Corpus) -> float:
        """Return the mean log-probability of an id; perplexity is exp(-score)."""


@runtime_checkable
class Iterative(Protocol):
    """A language model whose training yields a ``Step`` at a time; ``fit`` runs it to its end."""

    def train(self, corpus: Corpus, *, valid: Corpus | None = None) -> Iterator[Step]:
        """Train, yielding progress."""


@runtime_checkable
class QuickSteps(Protocol):
    """A model with a faster version for one token at a time; its numbers are equal up to rounding."""

    def stepping(self) -> NextToken[Any]:
        """Return the version for one token at a time."""


@runtime_checkable
class Shortlisting(Protocol):
    """A NextToken that finds the ``count`` likeliest tokens without computing all log-probabilities.

    ``shortlist`` takes a state of one row. It returns ids in ascending order that include the ``count`` likeliest, and
    their log-probabilities up to a constant.
    """

    def shortlist(self, state: Any, count: int, /) -> tuple[Longs, Logs]:
        """Return ids that include the ``count`` likeliest, and their log-probabilities up to a constant."""


@runtime_checkable
class ReadsAhead(Protocol):
    """A NextToken that reads several tokens of one text in one step, as networks do.

    ``read_ahead`` takes a state of one row and ids (k,). It returns what ``next_logprobs`` would after each of them,
    (k, V), up to rounding, and the state after all of them.
    """

    def read_ahead(self, state: Any, ids: Ids, /) -> tuple[Logs, Any]:
        """Return log-probabilities after each of the ids, and the state after all of them."""


@runtime_checkable
class Drafter(Protocol):
    """Guesses how a text continues, so that a model that reads ahead checks several tokens in one step."""

    def propose(self, ids: Sequence[int], count: int) -> Sequence[int]:
        """Return at most ``count`` ids that may follow; none is a fair guess."""


@runtime_checkable
class Covering(Protocol):
    """A model that attends to a source. coverage: (n,) Σ_i log min(attention paid to i, 1), for ``beam_search``."""

    def coverage(self, state: Any, /) -> Logs:
        """Return the coverage of each text's source."""


class RecurrentModel(Protocol):
    """A trained recurrent language model: ``RecurrentLM`` or ``AWDLSTM``."""

    @property
    def vocab(self) -> Vocab:
        """The tokens that are predicted."""

    @property
    def weights_(self) -> Any:
        """The learnt tensors by name."""

    def network(self, vocab: Vocab, /) -> Any:
        """Return the network for a vocabulary."""


@runtime_checkable
class Translator(Protocol):
    """A NextToken for each batch of sources, so that ``generate`` and ``beam_search`` are written once."""

    @property
    def source_vocab(self) -> Vocab:
        """The vocabulary of the source."""

    @property
    def vocab(self) -> Vocab:
        """The vocabulary of the target."""

    def condition(self, sources: Corpus) -> NextToken[Any]:
        """Return the model after it has read the sources; its ``start(n)`` needs n = number of sources."""

    def translate(self, sources: Corpus, *, width: int = 5) -> list[Ids]:
        """Return the best target found for each source, searching with a beam of ``width``."""


# Text


@runtime_checkable
class Tokenizer(Protocol):
    """Text to ids and back. Byte level: ``decode(encode(text)) == text`` for any text."""

    @property
    def vocab(self) -> Vocab:
        """The tokens by id."""

    def fit(self, texts: Iterable[str]) -> Self:
        """Learn the vocabulary."""

    def encode(self, text: str) -> Ids:
        """Return the ids of a text."""

    def decode(self, ids: Iterable[int]) -> str:
        """Return the text of ids."""


@runtime_checkable
class TextTokenizer(Tokenizer, Protocol):
    """A tokenizer that also encodes a block of documents at once, as all tokenizers of the package do."""

    def encode_block(self, block: Block) -> Encoded:
        """Encode a block of documents; several threads may do so at once."""


@runtime_checkable
class TextModel(Protocol):
    """A tokenizer and the model of its ids, as ``TextLM`` joins them."""

    tokenizer: Any
    model: Any


@runtime_checkable
class Ranker(Protocol):
    """A ranking of documents for queries: ``BM25`` and ``CosineSearch``."""

    @property
    def vocab(self) -> Vocab:
        """The terms of the index."""

    def __len__(self) -> int: ...
    def fit(self, corpus: Corpus, *, threads: int | None = 1, meter: Meter | None = None) -> Self:
        """Index documents."""

    def search(self, queries: Corpus, k: int = 10, *, threads: int | None = 1) -> Found:
        """Return the ``k`` best documents for each query."""

    def contributions(self, query: Ids, document: int) -> dict[str, float]:
        """Return what each term of a query adds to the score of a document."""


# Words


@runtime_checkable
class Tagger(Protocol):
    """One tag per word. A sentence is a list of words."""

    @property
    def tags_(self) -> Sequence[str]:
        """The tags that were learnt."""

    def fit(self, sentences: Sentences, tags: Tags) -> Self:
        """Learn from tagged sentences."""

    def predict(self, sentences: Sentences) -> Tags:
        """Return the tags of each sentence."""

    def predict_log_proba(self, sentences: Sentences) -> list[Logs]:
        """Return log-probabilities of tags, (length, tags) for each sentence."""

    def score(self, sentences: Sentences, tags: Tags) -> float:
        """Return the accuracy over words."""


@runtime_checkable
class TreebankTagger(Tagger, Protocol):
    """A tagger that knows which words it has seen, and which column of a treebank it has learnt."""

    column: str

    def knows(self, word: str) -> bool:
        """Return whether a word was seen in training."""

    def known_words(self) -> Collection[str]:
        """Return the words seen in training."""


@runtime_checkable
class Embedder(Protocol):
    """One vector per word in its context (ELMo), or the same vector in every context (static vectors)."""

    @property
    def dimensions(self) -> int:
        """The size of a vector."""

    def embed(self, sentences: Sentences) -> list[Floats]:
        """Return vectors, (length, dimensions) for each sentence."""


# Classifiers


@runtime_checkable
class Classifier(Protocol):
    """A classifier with scikit-learn's conventions, so that its pipelines and searches accept it."""

    @property
    def classes_(self) -> Labels:
        """The labels, in the order of the columns."""

    def fit(self, X: Counts, y: Sequence[str]) -> Self:
        """Learn from features and labels."""

    def predict(self, X: Counts) -> Labels:
        """Return the likeliest label of each document."""

    def predict_log_proba(self, X: Counts) -> Logs:
        """Return log-probabilities of labels, (documents, classes)."""

    def score(self, X: Counts, y: Sequence[str]) -> float:
        """Return the accuracy."""


@runtime_checkable
class LinearClassifier(Classifier, Protocol):
    """A classifier that can be explained: ``softmax(X @ weights_.T + bias_)`` is the posterior."""

    @property
    def weights_(self) -> Logs:
        """What one occurrence of a feature adds to the score of a class, (classes, features)."""

    @property
    def bias_(self) -> Logs:
        """The score of each class before any feature is seen, (classes,)."""


class LabelModel(Protocol):
    """A classifier of texts: ``TextClassifier``, ``FastTextClassifier``, ``RecurrentClassifier``."""

    @property
    def classes_(self) -> Sequence[str]:
        """The labels."""

    def fit(self, texts: Any, labels: Sequence[str], /) -> Any:
        """Learn from texts and labels."""

    def predict_best(self, texts: Any, k: int = 1) -> Iterable[Sequence[tuple[str, float]]]:
        """Return the ``k`` likeliest labels of each text with their probabilities."""


# Saving


@dataclass(slots=True)
class Parts:
    """The contents of a model folder: settings that JSON can hold, arrays, and the vocabulary."""

    settings: dict[str, Json]
    arrays: dict[str, Array] = field(default_factory=dict)
    vocab: Vocab | None = None

    def needed_vocab(self, *, unknown: bool = False) -> Vocab:
        """Return the vocabulary; raise a MissingVocabularyError without one, or ``unknown`` and it has no ``<unk>``."""
        if self.vocab is None or (unknown and self.vocab.unknown is None):
            raise MissingVocabularyError("a vocabulary with <unk>" if unknown else "a vocabulary")
        return self.vocab

    def check_flags(self, *names: str) -> None:
        """Raise a ValueError if one of these settings is not a boolean.

        A 0 or 1 would work too, but a kernel called with it would be compiled a second time.
        """
        for name in names:
            if name in self.settings and type(self.settings[name]) is not bool:
                raise ValueError(f"{name} should be true or false")

    def check_counts(self, *names: str) -> None:
        """Raise a ValueError if one of these settings, such as a number of layers, exceeds the number of arrays.

        A damaged file is refused before memory is allocated for each layer.
        """
        for name in names:
            value = self.settings.get(name, 0)
            if isinstance(value, int | float) and value > len(self.arrays):
                raise ValueError(f"{value} {name}, but only {len(self.arrays)} arrays")


@runtime_checkable
class Saveable(Protocol):
    """A model that can be saved: ``save(model, folder)`` and ``load(folder)`` in ``storage/folder.py`` do the rest."""

    def to_parts(self) -> Parts:
        """Return everything that is to be saved."""

    @classmethod
    def from_parts(cls, parts: Parts) -> Self:
        """Restore a model from what was saved."""
