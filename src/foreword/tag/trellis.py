"""What a hidden Markov tagger goes through, word by word: predict, correct, and the likeliest path.

    predict   p(t_n | w_1 … w_(n−1)) = Σ p(t_n | t_(n−2), t_(n−1)) p(t_(n−2), t_(n−1) | w_1 … w_(n−1))
    correct   p(t_n | w_1 … w_n) ∝ p(w_n | t_n) p(t_n | w_1 … w_(n−1))

The same for an HMM that learnt its states by itself, whose ``predict`` and ``correct`` are the two steps. Plain code:
one sentence at a time, to be looked at. Shapes: N words, S tags or states.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from foreword.arrays import Doubles
from foreword.hmm.model import HMM
from foreword.tag.hmm import HMMTagger
from foreword.tokens.corpus import Corpus


@dataclass(frozen=True, slots=True)
class Trellis:
    """predicted, corrected, smoothed: (N, S), each row sums to one; smoothed has seen the words that follow, too.

    names: of the S tags. path: the likeliest sequence of them, (N,) places among the names.
    """

    names: list[str]
    predicted: Doubles
    corrected: Doubles
    smoothed: Doubles
    path: list[int]


def tagger_trellis(tagger: HMMTagger, words: Sequence[str]) -> Trellis:
    names, kinds = tagger.tags_, len(tagger.tags_)
    codes, _ = tagger._codes_of([list(words)])
    lexicon, moves = tagger._lexicon, np.exp(tagger._moves)
    outside = 2 * kinds
    belief = np.zeros((outside + 1, outside + 1))  # of the last two labels
    belief[outside, outside] = 1
    predicted, corrected = [], []
    for code in codes.tolist():
        ahead = np.einsum("ij,ijk->jk", belief, moves)
        by_label = ahead.sum(axis=0)[:outside]
        shares = by_label[:kinds] + by_label[kinds:]
        predicted.append(shares / shares.sum())
        row = slice(lexicon.rows[code >> 1], lexicon.rows[(code >> 1) + 1])
        labels = lexicon.tags[row] + kinds * (code & 1)
        likely = np.zeros(outside + 1)
        likely[labels] = np.exp(lexicon.logs[row])
        belief = ahead * likely
        belief /= belief.sum()
        by_label = belief.sum(axis=0)[:outside]
        corrected.append(by_label[:kinds] + by_label[kinds:])
    smoothed = np.exp(np.asarray(tagger.predict_log_proba([list(words)])[0], np.float64))
    path = [names.index(tag) for tag in tagger.predict([list(words)])[0]]
    return Trellis(list(names), np.array(predicted), np.array(corrected), smoothed, path)


def hmm_trellis(model: HMM, corpus: Corpus, shown: int = 3) -> Trellis:
    """Of one document; a state without a name is called by the words it emits most, the end of the text left out."""
    ids = corpus.ids[:-1]  # the end of the text is no word
    predicted, corrected = [], []
    belief = np.asarray(model.start(), np.float64)
    for id in ids.tolist():
        predicted.append(_row(belief))
        belief = np.asarray(model.correct(belief, id), np.float64)
        corrected.append(_row(belief))
        belief = np.asarray(model.predict(belief), np.float64)
    smoothed = np.asarray(model.posteriors(corpus), np.float64)[: len(ids)]
    path = model.viterbi(corpus)[: len(ids)].tolist()
    return Trellis(state_names(model, shown), np.array(predicted), np.array(corrected), smoothed, path)


def state_names(model: HMM, shown: int = 3) -> list[str]:
    """The commonest words of each state."""
    vocab = model.vocab
    left_out = {id for id in (vocab.unknown, vocab.end) if id is not None}
    names = []
    for row in np.asarray(model.emission_):
        best = [id for id in np.argsort(-row, kind="stable")[: shown + 2].tolist() if id not in left_out]
        names.append(" ".join(vocab[id] for id in best[:shown]))
    return names


def _row(belief: Any) -> Doubles:
    row: Doubles = np.asarray(belief, np.float64).reshape(-1)
    shares: Doubles = row / row.sum()
    return shares
