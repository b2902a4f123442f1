"""One vector for a word of several senses: what it is made of, tested with words whose senses are known.

Nobody knows how much of *bank* is river and how much is money. So a word is made up: some of the places where *river*
stands, and some where *money* does, become *river|money*. It has two senses, and their true vectors are learnt in the
same run from the places that were left (H. Schütze's pseudo-words, 1992; here for what the sources call "a sort of
average").
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from foreword.arrays import Ids
from foreword.errors import InputError, SettingError
from foreword.tokens.corpus import Corpus, id_type
from foreword.tokens.vocab import Vocab
from foreword.vectors.wordvectors import WordVectors


def with_pseudo_word(corpus: Corpus, one: str, other: str, *, share: float = 0.5, seed: int = 0) -> tuple[Corpus, str]:
    """The corpus with a share of both words' places given to a new word, and that word.

    As many places of each are taken, so that neither sense prevails.
    """
    if not 0 < share < 1:
        raise SettingError(f"share={share}: expected a number between 0 and 1")
    vocab = corpus.vocab
    missing = [word for word in (one, other) if word not in vocab]
    if missing or one == other:
        raise InputError(f"no such two words in the corpus: {one!r} and {other!r}")
    name = f"{one}|{other}"
    rng = np.random.default_rng(seed)
    places = [np.flatnonzero(corpus.ids == vocab.id(word)) for word in (one, other)]
    taken = int(min(len(each) for each in places) * share)
    counts = np.bincount(corpus.ids, minlength=len(vocab) + 1)
    ids: Ids = corpus.ids.astype(id_type(len(vocab) + 1))
    for word, each in zip((one, other), places, strict=True):
        ids[rng.choice(each, taken, replace=False)] = len(vocab)
        counts[vocab.id(word)] -= taken
    counts[len(vocab)] = 2 * taken
    unknown = None if vocab.unknown is None else vocab[vocab.unknown]
    longer = Vocab([*vocab, name], counts, unknown=unknown, end=vocab[vocab.end])
    return Corpus(ids, corpus.offsets, corpus.byte_offsets, longer), name


@dataclass(frozen=True, slots=True)
class Between:
    """Cosines: of the merged word with either sense, with the middle of the two, and of the senses with each other.

    usual: the merged word with words at large, on average.
    """

    one: float
    other: float
    middle: float
    senses: float
    usual: float


def between(vectors: WordVectors, merged: str, one: str, other: str) -> Between:
    """Where the vector of a merged word lies."""
    places = vectors.places([merged, one, other])
    if (places < 0).any():
        raise InputError(f"no vectors for all of {merged!r}, {one!r} and {other!r}")
    m, a, b = vectors.directions(places).astype(np.float64)
    middle = (a + b) / np.linalg.norm(a + b)
    usual = float((vectors.directions() @ m.astype(np.float32)).mean())
    return Between(float(m @ a), float(m @ b), float(m @ middle), float(a @ b), usual)
