"""Solutions of the exercises of the course, one function each, as a student would write them.

They use nothing but NumPy and the standard library; the tests check them as ``foreword check`` does.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"
from collections import Counter
from itertools import pairwise
from math import exp, log

import numpy as np


def vocabulary(texts, size):
    """Return the most frequent words, most frequent first."""
    counts = Counter(word for text in texts for word in text.split())
    return [word for word, _ in counts.most_common(size)]


def unknown_share(train, test, min_count):
    """Return the share of test words seen fewer than ``min_count`` times in training."""
    counts = Counter(word for text in train for word in text.split())
    words = [word for text in test for word in text.split()]
    return sum(counts[word] < min_count for word in words) / len(words)


def bag(text, words):
    """Return how often each of ``words`` occurs in a text."""
    counts = Counter(text.split())
    return [counts[word] for word in words]


def word_logs(counts, alpha):
    """Return log p(word | class) with add-alpha smoothing, one row per class."""
    smoothed = counts + alpha
    return np.log(smoothed / smoothed.sum(axis=1, keepdims=True))


def idf(word, documents):
    """Return the smoothed inverse document frequency of a word."""
    found = sum(word in document.split() for document in documents)
    return log((1 + len(documents)) / (1 + found)) + 1


def bm25(query, documents, k1, b):
    """Return Lucene's BM25 score of every document."""
    bags = [Counter(document.split()) for document in documents]
    mean = sum(bag.total() for bag in bags) / len(bags)
    scores = [0.0] * len(bags)
    for word in query.split():
        found = sum(word in bag for bag in bags)
        rarity = log(1 + (len(bags) - found + 0.5) / (found + 0.5))
        for number, bag in enumerate(bags):
            scores[number] += rarity * bag[word] / (bag[word] + k1 * (1 - b + b * bag.total() / mean))
    return scores


def _following(texts, before):
    pairs = (pair for text in texts for pair in pairwise(["<s>", *text.split(), "</s>"]))
    return Counter(word for first, word in pairs if first == before)


def bigram(texts, before, word):
    """Return the maximum-likelihood probability of a word after another."""
    following = _following(texts, before)
    return following[word] / following.total() if following else 0.0


def witten_bell(texts, before, word, lower):
    """Return the Witten-Bell probability of a word after another, given its unigram probability."""
    following = _following(texts, before)
    return (following[word] + len(following) * lower) / (following.total() + len(following))


def perplexity(logs):
    """Return exp of minus the mean log-probability."""
    return exp(-sum(logs) / len(logs))


def likelihood(start, transition, emission, ids):
    """Return p(ids) of a hidden Markov model by the forward algorithm."""
    forward = start * emission[:, ids[0]]
    for id in ids[1:]:
        forward = (forward @ transition) * emission[:, id]
    return forward.sum()


def viterbi(start, transition, emission, ids):
    """Return the most likely states."""
    best = np.log(start) + np.log(emission[:, ids[0]])
    origins = []
    for id in ids[1:]:
        through = best[:, None] + np.log(transition)
        origins.append(through.argmax(axis=0))
        best = through.max(axis=0) + np.log(emission[:, id])
    path = [int(best.argmax())]
    for origin in reversed(origins):
        path.append(int(origin[path[-1]]))
    return path[::-1]


def best_pair(words):
    """Return the most frequent pair of adjacent symbols."""
    pairs: Counter[tuple[str, str]] = Counter()
    for word, count in words.items():
        for pair in pairwise(word):
            pairs[pair] += count
    return min(pairs, key=lambda pair: (-pairs[pair], pair))


def segment(word, merges):
    """Apply merges to a word in the order in which they were learnt."""
    pieces = list(word)
    while True:
        present = [merges.index(pair) for pair in pairwise(pieces) if pair in merges]
        if not present:
            return pieces
        left, right = merges[min(present)]
        merged = []
        while pieces:
            piece = pieces.pop(0)
            if piece == left and pieces and pieces[0] == right:
                piece += pieces.pop(0)
            merged.append(piece)
        pieces = merged


def context_pairs(words, window):
    """Return every (centre, context) pair within a window."""
    return [
        (words[centre], words[other])
        for centre in range(len(words))
        for other in range(max(0, centre - window), min(len(words), centre + window + 1))
        if other != centre
    ]


def nearest(vectors, row, k):
    """Return the rows with the highest cosine similarity to one row."""
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    cosines = unit @ unit[row]
    cosines[row] = -np.inf
    return np.argsort(-cosines)[:k].tolist()


def negative_sampling(centre, context, negatives):
    """Return the loss of one true pair and its negative samples."""

    def log_sigmoid(x):
        return -np.log1p(np.exp(-x))

    return -log_sigmoid(context @ centre) - log_sigmoid(-(negatives @ centre)).sum()


def softmax(scores):
    """Return probabilities, without overflow."""
    powers = np.exp(scores - scores.max())
    return powers / powers.sum()


def bengio(words, E, H, d, U, b):
    """Return the probabilities of the next word by Bengio's network."""
    x = np.concatenate([E[word] for word in words])
    return softmax(b + U @ np.tanh(d + H @ x))


def output_error(scores, target):
    """Return the gradient of the cross-entropy with respect to the scores."""
    error = softmax(scores)
    error[target] -= 1
    return error


def rnn_step(x, h, W_x, W_h, b):
    """Return the next state of a simple recurrent network."""
    return np.tanh(W_x @ x + W_h @ h + b)


def gradient_back(d_h, states, W_h):
    """Return the gradient that reaches the first state."""
    for h in reversed(states):
        d_h = W_h.T @ (d_h * (1 - h**2))
    return d_h


def clip(gradients, limit):
    """Scale gradients so that their common norm is at most ``limit``."""
    norm = np.sqrt(sum((gradient**2).sum() for gradient in gradients))
    return [gradient * min(1, limit / norm) for gradient in gradients]


def sigmoid(x):
    """Return 1 / (1 + exp(-x))."""
    return 1 / (1 + np.exp(-x))


def lstm_step(x, h, c, W_x, W_h, b):
    """Return the next hidden and cell state of an LSTM."""
    i, f, g, o = np.split(W_x @ x + W_h @ h + b, 4)
    c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    return sigmoid(o) * np.tanh(c), c


def gru_step(x, h, W_x, W_h, b):
    """Return the next state of a GRU."""
    x_r, x_z, x_n = np.split(W_x @ x + b, 3)
    h_r, h_z, h_n = np.split(W_h @ h, 3)
    z = sigmoid(x_z + h_z)
    n = np.tanh(x_n + sigmoid(x_r + h_r) * h_n)
    return (1 - z) * n + z * h


def half_life(forget):
    """Return after how many steps half of a memory is left."""
    return log(0.5) / log(forget)


def spans(tags):
    """Return (type, start, end) of every span of BIO tags."""
    found = []
    for place, tag in enumerate(tags):
        if tag.startswith("B-"):
            found.append((tag[2:], place, place + 1))
        elif tag.startswith("I-"):
            kind, first, _ = found[-1]
            found[-1] = (kind, first, place + 1)
    return found


def collapse(symbols, blank):
    """Merge repeated symbols, then remove blanks."""
    merged = [symbol for place, symbol in enumerate(symbols) if place == 0 or symbol != symbols[place - 1]]
    return [symbol for symbol in merged if symbol != blank]


def attention(query, keys, values):
    """Return scaled dot-product attention: a weighted mean of the values for each query."""
    scores = query @ keys.T / np.sqrt(keys.shape[1])
    return np.array([softmax(row) for row in scores]) @ values


def causal_weights(scores):
    """Return attention weights in which no position sees a later one."""
    allowed = np.where(np.tri(len(scores), dtype=bool), scores, -np.inf)
    return np.array([softmax(row) for row in allowed])
