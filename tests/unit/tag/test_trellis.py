"""The steps of a hidden Markov model, held to its own answers and to sums over all paths."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from foreword.hmm.model import HMM
from foreword.tag.hmm import HMMTagger, hmm_trellis, state_names, tagger_trellis
from foreword.tokens.corpus import Corpus
from foreword.tokens.vocab import Vocab

SENTENCES = [
    ["The", "old", "man", "reads"],
    ["the", "old", "man", "the", "boats"],
    ["A", "man", "reads", "the", "boats"],
]
TAGS = [["D", "A", "N", "V"], ["D", "N", "V", "D", "N"], ["D", "N", "V", "D", "N"]]


@pytest.mark.parametrize("order", [2, 3])
def test_the_last_correction_of_a_tagger_is_its_posterior_without_the_end(order: int) -> None:
    tagger = HMMTagger(order).fit(SENTENCES, TAGS)
    words = ["The", "old", "boats", "man", "the", "unknown"]
    found = tagger_trellis(tagger, words)
    for rows in (found.predicted, found.corrected, found.smoothed):
        np.testing.assert_allclose(rows.sum(axis=1), 1, atol=1e-9)
        assert rows.shape == (len(words), len(tagger.tags_))
    assert [found.names[tag] for tag in found.path] == tagger.predict([words])[0]
    # Reading on changes nothing of what was believed before: what each step knows is the words up to it.
    shorter = tagger_trellis(tagger, words[:3])
    np.testing.assert_allclose(found.corrected[:3], shorter.corrected, atol=1e-12)
    np.testing.assert_allclose(found.predicted[:3], shorter.predicted, atol=1e-12)


def test_corrections_of_a_tagger_are_sums_over_all_paths() -> None:
    tagger = HMMTagger(3).fit(SENTENCES, TAGS)
    words = ["The", "old", "man"]
    kinds, moves, lexicon = len(tagger.tags_), tagger._moves, tagger._lexicon
    codes, _ = tagger._codes_of([words])
    believed = np.zeros(kinds)
    for path in product(range(kinds), repeat=len(words)):
        labels, log = [2 * kinds, 2 * kinds], 0.0
        for tag, code in zip(path, codes.tolist(), strict=True):
            row = slice(lexicon.rows[code >> 1], lexicon.rows[(code >> 1) + 1])
            known = dict(zip(lexicon.tags[row].tolist(), lexicon.logs[row].tolist(), strict=True))
            labels.append(tag + kinds * (code & 1))
            log += moves[tuple(labels[-3:])] + known.get(tag, -np.inf)
        believed[path[-1]] += np.exp(log)
    np.testing.assert_allclose(tagger_trellis(tagger, words).corrected[-1], believed / believed.sum(), atol=1e-12)


def test_an_hmm_believes_what_its_forward_pass_says() -> None:
    vocab = Vocab(["<unk>", "</s>", "rain", "sun"], unknown="<unk>", end="</s>")
    model = HMM.from_parameters(
        [0.6, 0.4], [[0.7, 0.3], [0.4, 0.6]], [[0.0, 0.1, 0.7, 0.2], [0.0, 0.1, 0.1, 0.8]], vocab
    )
    corpus = Corpus.from_ids([[2, 3, 2]], vocab)
    found = hmm_trellis(model, corpus)
    np.testing.assert_allclose(found.predicted[0], [0.6, 0.4], atol=1e-12)
    first = np.array([0.6 * 0.7, 0.4 * 0.1])
    np.testing.assert_allclose(found.corrected[0], first / first.sum(), atol=1e-12)
    ahead = found.corrected[0] @ np.array([[0.7, 0.3], [0.4, 0.6]])
    np.testing.assert_allclose(found.predicted[1], ahead, atol=1e-12)
    np.testing.assert_allclose(
        found.corrected[-1] @ model.transition_, model.predict(found.corrected[-1:])[0], atol=1e-9
    )
    assert state_names(model, 1) == ["rain", "sun"]
    assert len(found.path) == 3
