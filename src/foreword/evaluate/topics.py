"""Evaluation of topics: coherence, and the perplexity of words that a document has held back.

    NPMI(v, w) = log(p(v, w) / p(v) p(w)) / −log p(v, w)        p: shares of documents with the word, or with both

Coherence is its mean over the pairs of a topic's likeliest words: 1 for words that always occur together, 0 for
independent ones, −1 for words that never meet (G. Bouma, "Normalized pointwise mutual information in collocation
extraction", 2009; J. Lau, D. Newman and T. Baldwin, 2014). Perplexity is by document completion: the topics of a
document are found from half of its words, and the other half is scored (H. Wallach et al., "Evaluation methods for
topic models", 2009).
"""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
from scipy import sparse

from foreword.arrays import Doubles
from foreword.features.topics import TopicModel, mean_log_likelihood
from foreword.protocols import Counts


def coherence(components: Doubles, counts: Counts, *, words: int = 10) -> Doubles:
    """Return (K,): the mean NPMI of the largest ``words`` entries of each row of components, (K, terms)."""
    there = sparse.csc_array(counts > 0, dtype=np.float64)
    documents = there.shape[0]
    found = np.empty(len(components))
    for topic, row in enumerate(components):
        columns = np.argsort(-row, kind="stable")[:words]
        part = there[:, columns]
        together = (part.T @ part).toarray() / documents
        pairs = [_npmi(together[v, w], together[v, v], together[w, w]) for v, w in combinations(range(words), 2)]
        found[topic] = np.mean(pairs)
    return found


def _npmi(both: float, first: float, second: float) -> float:
    if both == 0:
        return -1.0
    return 1.0 if both == 1 else math.log(both / (first * second)) / -math.log(both)


def completion_perplexity(model: TopicModel, counts: Counts, *, seed: int = 0) -> float:
    """Return the perplexity of half of the words of each document, drawn at random, given the other half."""
    whole = sparse.csr_array(counts, dtype=np.int64)
    drawn = np.random.default_rng(seed).binomial(whole.data, 0.5)
    shown, held = (
        sparse.csr_array((data, whole.indices, whole.indptr), whole.shape, dtype=np.float64)
        for data in (drawn, whole.data - drawn)
    )
    return math.exp(-mean_log_likelihood(held, model.transform(shown), model.components_))
