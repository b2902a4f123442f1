"""Topic models: pLSA and LDA, in which a document is a mixture of topics and a topic a distribution over words.

    p(w | d) = Σ_k θ_dk φ_kw        θ (documents, K): p(topic | document);  φ (K, terms): p(word | topic)

LSA approximates the counts in the least-squares sense; here they are drawn from these probabilities. pLSA maximises
the likelihood by EM, and θ of every training document is a parameter. LDA has Dirichlet priors on θ and φ instead, and
approximates their posteriors by Dirichlets with parameters γ and λ (mean-field variational Bayes):

    pLSA    θ ∝ θ ∘ (R φᵀ)            φ ∝ φ ∘ (θᵀ R)            R_dw = n_dw / Σ_k θ_dk φ_kw
    LDA     γ = α + θ̃ ∘ (R φ̃ᵀ)        λ = η + φ̃ ∘ (θ̃ᵀ R)        θ̃ = exp E[log θ], φ̃ = exp E[log φ], R of these

n is sparse, so R is computed only where a count is not zero.

T. Hofmann, "Probabilistic latent semantic analysis" (1999); D. Blei, A. Ng and M. Jordan, "Latent Dirichlet allocation"
(2003); M. Hoffman, D. Blei and F. Bach, "Online learning for latent Dirichlet allocation" (2010), here in one batch.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import psi

from foreword.arrays import Doubles
from foreword.checks import check_numbers
from foreword.features.estimator import EstimatorNotFittedError, Transformer
from foreword.features.lsa import MatrixError, as_matrix
from foreword.protocols import Counts, Json, Parts

ROUNDS, CHANGE = 100, 1e-3
"""The most updates of one document's topics, and the mean change of a topic below which they end."""

AT_ONCE = 1 << 18
"""Counts whose expected values are computed together."""


class TopicModel(Transformer):
    """What pLSA and LDA share. topics: K. iterations: passes over the counts at most. tolerance: training ends when one
    gains less, in nats per word. seed: of the initial topics.

    After fit: ``components_`` float64 (K, terms), φ, each row sums to one.
    """

    def __init__(self, topics: int = 20, *, iterations: int = 100, tolerance: float = 1e-4, seed: int = 0) -> None:
        self.topics = topics
        self.iterations = iterations
        self.tolerance = tolerance
        self.seed = seed

    @abstractmethod
    def _initial(self, documents: int, terms: int) -> tuple[Doubles, Doubles]:
        """Return what is learnt of documents and of topics before the first pass."""

    @abstractmethod
    def _documents(self, counts: Counts, documents: Doubles, topics: Doubles) -> Doubles:
        """Return what a pass makes of the documents."""

    @abstractmethod
    def _topics(self, counts: Counts, documents: Doubles, topics: Doubles) -> Doubles:
        """Return what a pass makes of the topics."""

    def fit(self, X: Counts, y: Any = None) -> Self:
        """Learn the topics of counts (documents, terms)."""
        self._check_settings()
        counts = _counts(X)
        documents, topics = self._initial(*counts.shape)
        last = -np.inf
        for _ in range(self.iterations):
            documents = self._documents(counts, documents, topics)
            topics = self._topics(counts, documents, topics)
            score = mean_log_likelihood(counts, _shares(documents), _shares(topics))
            if score - last < self.tolerance:
                break
            last = score
        self._learnt_ = topics
        self.components_ = _shares(topics)
        self.n_features_in_ = counts.shape[1]
        return self

    def _check_settings(self) -> None:
        check_numbers(self, "topics", "iterations", whole=True, least=1)
        check_numbers(self, "seed", whole=True)
        check_numbers(self, "tolerance")

    def fit_transform(self, X: Counts, y: Any = None) -> Doubles:
        """Learn the topics and return those of each document, (documents, K)."""
        return self.fit(X).transform(X)

    def transform(self, X: Counts) -> Doubles:
        """Return θ, (documents, K): each document's topics, given those that were learnt."""
        if not hasattr(self, "components_"):
            raise EstimatorNotFittedError(self, "texts")
        counts = _counts(X)
        if counts.shape[1] != self.n_features_in_:
            width, name = counts.shape[1], type(self).__name__
            raise MatrixError(
                f"X has {width} features, but {name} is expecting {self.n_features_in_} features as input"
            )
        documents = np.ones((counts.shape[0], self.topics))
        for _ in range(ROUNDS):
            before, documents = documents, self._documents(counts, documents, self._learnt_)
            if np.abs(documents - before).mean() < CHANGE:
                break
        return self._output(_shares(documents), X)  # type: ignore[no-any-return]

    def top_words(self, words: Sequence[str], count: int = 10) -> list[list[str]]:
        """Return the likeliest words of each topic; words: the name of each column."""
        return [[words[column] for column in np.argsort(-row, kind="stable")[:count]] for row in self.components_]

    def get_feature_names_out(self, input_features: object = None) -> NDArray[np.object_]:
        """Return the names of the topics: plsa0, plsa1 …"""
        return np.array([f"{type(self).__name__.lower()}{topic}" for topic in range(self.topics)], dtype=object)

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import InputTags, TransformerTags

        tags = super().__sklearn_tags__()
        tags.input_tags = InputTags(sparse=True, positive_only=True)
        tags.transformer_tags = TransformerTags(preserves_dtype=[])
        return tags

    def to_parts(self) -> Parts:
        """Return settings and topics for a model folder."""
        if not hasattr(self, "components_"):
            raise EstimatorNotFittedError(self, "texts")
        settings: dict[str, Json] = self.get_params()
        return Parts(settings, {"topics": self._learnt_})

    @classmethod
    def from_parts(cls, parts: Parts) -> Self:
        """Build a topic model from a model folder."""
        model = cls(**parts.settings)  # type: ignore[arg-type]
        model._check_settings()
        learnt = parts.arrays["topics"]
        if learnt.dtype != np.float64 or learnt.ndim != 2 or len(learnt) != model.topics or not (learnt >= 0).all():
            raise ValueError(
                f"topics is {learnt.dtype} {learnt.shape}: expected {model.topics} rows of positive float64"
            )
        model._learnt_, model.components_, model.n_features_in_ = learnt, _shares(learnt), learnt.shape[1]
        return model


class PLSA(TopicModel):
    """Probabilistic latent semantic analysis, by EM; the settings are those of ``TopicModel``."""

    def _initial(self, documents: int, terms: int) -> tuple[Doubles, Doubles]:
        random = np.random.default_rng(self.seed)
        return np.full((documents, self.topics), 1 / self.topics), random.dirichlet(np.ones(terms), self.topics)

    def _documents(self, counts: Counts, documents: Doubles, topics: Doubles) -> Doubles:
        theta = _shares(documents)
        new: Doubles = theta * (_ratios(counts, theta, topics) @ topics.T)
        return new

    def _topics(self, counts: Counts, documents: Doubles, topics: Doubles) -> Doubles:
        theta = _shares(documents)
        return _shares(topics * (_ratios(counts, theta, topics).T @ theta).T)


class LDA(TopicModel):
    """Latent Dirichlet allocation, by variational Bayes. alpha, eta: parameters of the priors on documents' topics and
    on topics' words, 1 / K by default. Other settings are those of ``TopicModel``.
    """

    def __init__(
        self,
        topics: int = 20,
        *,
        alpha: float | None = None,
        eta: float | None = None,
        iterations: int = 100,
        tolerance: float = 1e-4,
        seed: int = 0,
    ) -> None:
        super().__init__(topics, iterations=iterations, tolerance=tolerance, seed=seed)
        self.alpha = alpha
        self.eta = eta

    def _check_settings(self) -> None:
        super()._check_settings()
        check_numbers(self, *(name for name in ("alpha", "eta") if getattr(self, name) is not None), above=0)

    def _initial(self, documents: int, terms: int) -> tuple[Doubles, Doubles]:
        random = np.random.default_rng(self.seed)
        return np.ones((documents, self.topics)), random.gamma(100.0, 0.01, (self.topics, terms))

    def _documents(self, counts: Counts, documents: Doubles, topics: Doubles) -> Doubles:
        theta, phi = _expected(documents), _expected(topics)
        gamma: Doubles = _prior(self.alpha, self.topics) + theta * (_ratios(counts, theta, phi) @ phi.T)
        return gamma

    def _topics(self, counts: Counts, documents: Doubles, topics: Doubles) -> Doubles:
        theta, phi = _expected(documents), _expected(topics)
        new: Doubles = _prior(self.eta, self.topics) + phi * (_ratios(counts, theta, phi).T @ theta).T
        return new


def mean_log_likelihood(counts: Counts, documents: Doubles, topics: Doubles) -> float:
    """Return the mean log-probability of a word, log Σ_k θ_dk φ_kw; its exp of minus is the perplexity."""
    with np.errstate(divide="ignore"):
        return float(counts.data @ np.log(_at_counts(counts, documents, topics)) / counts.data.sum())


def _counts(X: Counts) -> Counts:
    counts = as_matrix(X)
    if counts.nnz and counts.data.min() < 0:
        raise MatrixError("Negative values in data: a topic model expects counts")
    return counts


def _shares(rows: Doubles) -> Doubles:
    """Return the rows divided by their sums; even where a row is zero."""
    sums = rows.sum(axis=1, keepdims=True)
    return np.where(sums > 0, rows, 1 / rows.shape[1]) / np.where(sums > 0, sums, 1)


def _expected(rows: Doubles) -> Doubles:
    """Return exp E[log x] of Dirichlets, whose parameters are the rows."""
    exponentials: Doubles = np.exp(psi(rows) - psi(rows.sum(axis=1, keepdims=True)))
    return exponentials


def _prior(given: float | None, topics: int) -> float:
    return 1 / topics if given is None else given


def _ratios(counts: Counts, documents: Doubles, topics: Doubles) -> Counts:
    """Return R, (documents, terms): each count over Σ_k θ_dk φ_kw."""
    ratios = counts.data / np.maximum(_at_counts(counts, documents, topics), np.finfo(np.float64).tiny)
    return sparse.csr_array((ratios, counts.indices, counts.indptr), shape=counts.shape)


def _at_counts(counts: Counts, documents: Doubles, topics: Doubles) -> Doubles:
    """Return Σ_k θ_dk φ_kw for each count that is not zero."""
    rows = np.repeat(np.arange(counts.shape[0]), np.diff(counts.indptr))
    words = np.ascontiguousarray(topics.T)
    parts = [
        np.einsum("ik,ik->i", documents[rows[here]], words[counts.indices[here]])
        for here in (slice(begin, begin + AT_ONCE) for begin in range(0, len(rows), AT_ONCE))
    ]
    return np.concatenate([np.empty(0), *parts])
