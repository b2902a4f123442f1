"""Every interface, in two screens.

Logs are natural; a higher ``score`` is better. ``<s>`` is read, never predicted, never stored; ``</s>`` is an ordinary
id that ends a document. A document is what is scored on its own: a sentence, or a whole test set if state should carry
through it. One law ties it all: ``logprobs(corpus)``, by whatever fast road, equals stepping with ``advance`` and
reading ``next_logprobs``. The slow road is the reference, and ``tests/contract`` holds every model to it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeAlias, TypeVar, runtime_checkable

from foreword.arrays import Array, Floats, Ids, Logs

if TYPE_CHECKING:
    from foreword.tokens.corpus import Corpus
    from foreword.tokens.vocab import Vocab

Json: TypeAlias = "str | int | float | bool | list[Json] | dict[str, Json] | None"
Counts: TypeAlias = Any  # a scipy.sparse CSR matrix (documents, features); SciPy has no types of its own
Labels: TypeAlias = "Sequence[str] | Array"  # one a document
Sentences: TypeAlias = Sequence[Sequence[str]]  # of words
Tags: TypeAlias = Sequence[Sequence[str]]  # one for each word
Rows: TypeAlias = "Ids | Sequence[int] | slice"

Meter: TypeAlias = Callable[[str, int, int | None], None]
"""Long work tells how far it is: ``meter(phase, done, total)``; ``total`` is None where nobody knows."""


@dataclass(frozen=True, slots=True)
class Step:
    """How far training has come. Progress bars, checkpoints and tests all read the same generator of these.

    done, total: tokens, every epoch counted; loss: the mean since the step before; rate: the learning rate.
    """

    done: int
    total: int
    loss: float
    rate: float


class State(Protocol):
    """What a model remembers of n texts; an array with one row a text already is one."""

    def __len__(self) -> int: ...
    def __getitem__(self, rows: Any, /) -> Self: ...  # keep, drop, repeat rows: all a beam needs


S = TypeVar("S", bound=State)


@runtime_checkable
class NextToken(Protocol[S]):
    """Enough to sample, search, mix and draw."""

    @property
    def vocab(self) -> Vocab: ...
    def start(self, n: int = 1) -> S: ...  # n rows that have read <s>
    def next_logprobs(self, state: S) -> Logs: ...  # (n, len(vocab)); each row sums to one
    def advance(self, state: S, ids: Ids) -> S: ...  # a new state; the old one stays good


@runtime_checkable
class QuickSteps(Protocol):
    """A model that has a quicker form for one token at a time: the same numbers, but for rounding."""

    def stepping(self) -> NextToken[Any]: ...


@runtime_checkable
class LanguageModel(NextToken[S], Protocol[S]):
    def fit(self, corpus: Corpus, *, valid: Corpus | None = None) -> Self: ...
    def logprobs(self, corpus: Corpus) -> Logs: ...  # one number per id in corpus.ids
    def score(self, corpus: Corpus) -> float: ...  # their mean; perplexity is exp(-score)


@runtime_checkable
class Tokenizer(Protocol):
    """Text to ids and back. Byte level: ``decode(encode(t)) == t`` for any text."""

    @property
    def vocab(self) -> Vocab: ...
    def fit(self, texts: Iterable[str]) -> Self: ...
    def encode(self, text: str) -> Ids: ...
    def decode(self, ids: Iterable[int]) -> str: ...


@runtime_checkable
class TextModel(Protocol):
    """A tokenizer and the model of its ids, as ``TextLM`` joins them."""

    tokenizer: Any
    model: Any


@runtime_checkable
class Tagger(Protocol):
    """A sentence is a list of words, its tags a list as long."""

    @property
    def tags_(self) -> Sequence[str]: ...
    def fit(self, sentences: Sentences, tags: Tags) -> Self: ...
    def predict(self, sentences: Sentences) -> Tags: ...
    def predict_log_proba(self, sentences: Sentences) -> list[Logs]: ...  # (length, tags) for each sentence
    def score(self, sentences: Sentences, tags: Tags) -> float: ...  # the share of tags that are right


@runtime_checkable
class Embedder(Protocol):
    """A vector for a word where it stands: ELMo; and static vectors, the same wherever it stands."""

    @property
    def dimensions(self) -> int: ...
    def embed(self, sentences: Sentences) -> list[Floats]: ...  # (length, dimensions) for each sentence


@runtime_checkable
class Classifier(Protocol):
    """scikit-learn's own habits, so that its pipelines and searches take ours."""

    @property
    def classes_(self) -> Labels: ...
    def fit(self, X: Counts, y: Sequence[str]) -> Self: ...
    def predict(self, X: Counts) -> Labels: ...
    def predict_log_proba(self, X: Counts) -> Logs: ...  # (documents, classes)
    def score(self, X: Counts, y: Sequence[str]) -> float: ...  # accuracy


@runtime_checkable
class LinearClassifier(Classifier, Protocol):
    """Its reasons can be shown: the scores are ``X @ weights_.T + bias_``, and a softmax over them the posterior."""

    @property
    def weights_(self) -> Logs: ...  # (classes, features): what one occurrence adds to the score of a class
    @property
    def bias_(self) -> Logs: ...  # (classes,)


@runtime_checkable
class Iterative(Protocol):
    """Training that yields; ``fit`` runs it to its end."""

    def train(self, corpus: Corpus) -> Iterator[Step]: ...


@dataclass(slots=True)
class Parts:
    """A model taken apart, ready for a folder: what JSON can say, arrays, and the vocabulary."""

    settings: dict[str, Json]
    arrays: dict[str, Array] = field(default_factory=dict)
    vocab: Vocab | None = None

    def check_flags(self, *names: str) -> None:
        """A ValueError where one of these settings is neither true nor false: for a number in its place, which would
        do as well, a kernel would be compiled anew.
        """
        for name in names:
            if name in self.settings and type(self.settings[name]) is not bool:
                raise ValueError(f"{name} should be true or false")

    def check_counts(self, *names: str) -> None:
        """A ValueError where one of these settings, each a number of layers or the like, is greater than that of the
        arrays, before room is made for what each layer would need.
        """
        for name in names:
            value = self.settings.get(name, 0)
            if isinstance(value, int | float) and value > len(self.arrays):
                raise ValueError(f"{value} {name}, but only {len(self.arrays)} arrays")


@runtime_checkable
class Saveable(Protocol):
    """``save(model, folder)`` and ``load(folder)`` in ``storage/folder.py`` do the rest."""

    def to_parts(self) -> Parts: ...
    @classmethod
    def from_parts(cls, parts: Parts) -> Self: ...
