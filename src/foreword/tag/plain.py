"""The plain versions of the kernels, one sentence at a time: to be read, and tested equal.

``likeliest_tags`` is that of ``HMMTagger``, the others are those of ``FeatureTagger``. Shapes: T = tags, M = templates,
F = features, n = words; row T of ``moves`` is for the first word.
"""

from __future__ import annotations

import numpy as np

from foreword.arrays import Doubles, Floats, Ints, Longs
from foreword.tag.kernels_features import STEADY, FeatureWeights
from foreword.tag.kernels_hmm import TagLexicon


def likeliest_tags(codes: Longs, lexicon: TagLexicon, moves: Doubles, kinds: int) -> list[int]:
    """Return the likeliest tags of one sentence.

    A code is twice the entry's number, and one more if the word is capitalised; a label is a tag, plus ``kinds``
    (the number of tags) if capitalised; ``2 · kinds`` is outside the sentence.
    """
    outside = 2 * kinds
    paths: dict[tuple[int, int], tuple[float, list[int]]] = {(outside, outside): (0.0, [])}
    for code in [*codes.tolist(), None]:
        if code is None:
            choices = [(outside, 0.0)]
        else:
            row = slice(lexicon.rows[code >> 1], lexicon.rows[(code >> 1) + 1])
            labels = lexicon.tags[row] + kinds * (code & 1)
            choices = list(zip(labels.tolist(), lexicon.logs[row].tolist(), strict=True))
        longer: dict[tuple[int, int], tuple[float, list[int]]] = {}
        for (first, second), (score, path) in paths.items():
            for third, log in choices:
                better = score + moves[first, second, third] + log
                if (second, third) not in longer or better > longer[second, third][0]:
                    longer[second, third] = better, [*path, third % kinds]
        paths = longer
    return max(paths.values())[1][:-1]


def scores_of(features: Ints, weights: Floats) -> Doubles:
    """Return (n, T) scores from the features (n, M) of a sentence, -1 where there is none."""
    table = weights.astype(np.float64)
    return np.array([sum((table[row] for row in word if row >= 0), np.zeros(table.shape[1])) for word in features])


def best_path(scores: Doubles, moves: Doubles) -> list[int]:
    """Return the best tags by Viterbi: the best path to a tag extends the best path to some tag of the word before."""
    best = [(moves[-1, tag] + score, [tag]) for tag, score in enumerate(scores[0])]
    for row in scores[1:]:
        steps = [[(total + moves[path[-1], tag], path) for total, path in best] for tag in range(len(row))]
        chosen = [max(ways, key=lambda way: way[0]) for ways in steps]
        best = [(total + row[tag], [*path, tag]) for tag, (total, path) in enumerate(chosen)]
    return max(best, key=lambda way: way[0])[1]


def posteriors_of(scores: Doubles, moves: Doubles) -> tuple[float, Doubles, Doubles]:
    """Return the log of the sum over all paths; p(t_n) (n, T); the expected number of moves (T + 1, T)."""
    count, tags = scores.shape
    forward, backward = np.empty((count, tags)), np.zeros((count, tags))
    forward[0] = moves[-1] + scores[0]
    for n in range(1, count):
        forward[n] = np.logaddexp.reduce(forward[n - 1][:, None] + moves[:-1], axis=0) + scores[n]
    for n in range(count - 2, -1, -1):
        backward[n] = np.logaddexp.reduce(moves[:-1] + scores[n + 1] + backward[n + 1], axis=1)
    total = np.logaddexp.reduce(forward[-1])
    posteriors = np.exp(forward + backward - total)
    expected = np.zeros((tags + 1, tags))
    expected[-1] = posteriors[0]
    for n in range(1, count):
        expected[:-1] += np.exp(forward[n - 1][:, None] + moves[:-1] + scores[n] + backward[n] - total)
    return float(total), posteriors, expected


def learn_sentence(
    features: Ints,
    tags: Ints,
    model: FeatureWeights,
    squares: Doubles,
    move_squares: Doubles,
    rate: float,
    chained: bool,
) -> float:
    """Make one gradient step on log p(tags | words) of a sentence; return the loss, −log p, before the step.

    The gradient of a weight is the observed less the expected count of its feature with its tag. A row's rate falls
    with the squares of the gradients it has seen (J. Duchi, E. Hazan and Y. Singer, "Adaptive subgradient methods for
    online learning", JMLR 12, 2011; there every weight has a rate of its own).
    """
    weights, moves = model
    scores = scores_of(features, weights)
    total, posteriors, expected = posteriors_of(scores, moves)
    before = np.concatenate(([len(moves) - 1], tags[:-1]))
    loss = total - scores[np.arange(len(tags)), tags].sum() - moves[before, tags].sum()
    for n in range(len(tags) - 1, -1, -1):
        gradient = np.eye(len(moves) - 1)[tags[n]] - posteriors[n]
        for row in features[n]:
            if row >= 0:
                squares[row] += gradient @ gradient
                weights[row] += rate / np.sqrt(squares[row] + STEADY) * gradient
    if chained:
        gradients = -expected
        np.add.at(gradients, (before, tags), 1)
        move_squares += (gradients**2).sum(axis=1)
        moves += (rate / np.sqrt(move_squares + STEADY))[:, None] * gradients
    return float(loss)
