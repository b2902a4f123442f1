"""What the sources say of hidden Markov models, run: rows H01 to H10."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from foreword.errors import SettingError
from foreword.hmm.model import HMM
from foreword.lessons.fading import dobrushin, fading, total_variation
from foreword.measures.perplexity import perplexity
from foreword.tag.conllu import Tagged, read_conllu
from foreword.tag.hmm import HMMTagger, most_frequent_tags
from foreword.text.datasets import find
from foreword.tokens.corpus import Corpus
from foreword.tokens.vocab import Vocab

Report = Callable[[str, object], None]

STATES = 3
VOCAB = Vocab(["</s>", "a", "b"], unknown=None)
LENGTH = 4
TEXTS = [np.array(ids) for ids in itertools.product(range(len(VOCAB)), repeat=LENGTH)]
PATHS = [np.array(path) for path in itertools.product(range(STATES), repeat=LENGTH)]


@pytest.fixture
def model() -> HMM:
    return random_model(STATES, VOCAB)


def random_model(states: int, vocab: Vocab, seed: int = 5, concentration: float = 1.0, **settings: Any) -> HMM:
    rng = np.random.default_rng(seed)
    return HMM.from_parameters(
        rng.dirichlet(np.full(states, concentration)),
        rng.dirichlet(np.full(states, concentration), states),
        rng.dirichlet(np.ones(len(vocab)), states),
        vocab,
        **settings,
    )


def one_document(ids: Any, vocab: Vocab = VOCAB) -> Corpus:
    offsets = np.array([0, len(ids)])
    return Corpus(np.asarray(ids, np.uint16), offsets, offsets, vocab)


def joint(model: HMM, ids: Any, path: Any) -> float:
    """p(x, z), multiplied out factor by factor."""
    probability = float(model.start_[path[0]])
    for before, after in itertools.pairwise(path):
        probability *= float(model.transition_[before, after])
    return probability * math.prod(float(model.emission_[state, id]) for state, id in zip(path, ids, strict=True))


def evidence(model: HMM, ids: Any) -> float:
    """p(x), summed over every path."""
    return math.fsum(joint(model, ids, path) for path in itertools.product(range(model.states), repeat=len(ids)))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_h01_every_row_sums_to_one_given_and_learnt(dtype: Any) -> None:
    """H01: π (S), A (S×S), B (S×K); validated on construction and after each fit."""
    corpus = Corpus.from_ids([[1, 2, 1], [2], [], [1, 1]], VOCAB)
    for smoothing in (0.0, 0.1):
        model = HMM(STATES, smoothing=smoothing, dtype=dtype, iterations=10).fit(corpus)
        assert model.start_.shape == (STATES,)
        assert model.transition_.shape == (STATES, STATES)
        assert model.emission_.shape == (STATES, len(VOCAB))
        for table in (model.start_, model.transition_, model.emission_):
            assert_allclose(table.sum(axis=-1), 1, rtol=1e-12 if dtype == "float64" else 1e-6)
    with pytest.raises(SettingError, match="not a distribution"):
        HMM.from_parameters([0.5, 0.4], np.eye(2), np.full((2, 3), 1 / 3), VOCAB)


def test_h02_the_joint_is_the_product_of_its_factors_and_sums_to_one(model: HMM) -> None:
    """H02: p(x, z) = p(z1) Π p(zn | z(n−1)) Π p(xn | zn); over all x and z of a length it sums to 1."""
    total = []
    for ids, path in itertools.product(TEXTS, PATHS):
        expected = joint(model, ids, path)
        assert math.exp(model.joint_logprob(ids, path)) == pytest.approx(expected, rel=1e-12)
        total.append(expected)
    assert math.fsum(total) == pytest.approx(1, abs=1e-12)


def test_h02_the_chain_rule_of_the_observed_words_is_the_sum_over_paths(model: HMM) -> None:
    for ids in TEXTS:
        assert math.exp(model.logprobs(one_document(ids)).sum()) == pytest.approx(evidence(model, ids), rel=1e-12)


def test_h03_samples_have_the_frequencies_that_the_parameters_say(model: HMM) -> None:
    """H03: z1, x1, then zn, xn. Every frequency lies within five standard errors; the seed decides all."""
    draws = 200_000
    words, path = model.sample(draws, seed=1)
    again = model.sample(draws, seed=1)
    assert_array_equal(words, again[0])
    assert_array_equal(path, again[1])
    assert not np.array_equal(words, model.sample(draws, seed=2)[0])
    for state in range(STATES):
        here = path == state
        assert_within(np.bincount(words[here], minlength=len(VOCAB)), model.emission_[state])
        assert_within(np.bincount(path[1:][here[:-1]], minlength=STATES), model.transition_[state])
    firsts = np.array([model.sample(1, seed=seed)[1][0] for seed in range(3000)])
    assert_within(np.bincount(firsts, minlength=STATES), model.start_)


def assert_within(counts: Any, probabilities: Any) -> None:
    total = counts.sum()
    errors = np.sqrt(probabilities * (1 - probabilities) / total)
    assert (np.abs(counts / total - probabilities) <= 5 * errors).all()


@pytest.mark.parametrize(("states", "words"), [(1, 2), (3, 3), (10, 1000)])
def test_h04_the_number_of_parameters_depends_on_states_and_words_and_not_on_length(states: int, words: int) -> None:
    """H04: exactly (S−1) + S(S−1) + S(K−1), the same for any N; a table of L-grams has K^L."""
    vocab = Vocab(["</s>", *map(str, range(words - 1))], unknown=None)
    expected = (states - 1) + states * (states - 1) + states * (words - 1)
    for length in (1, 10, 200):
        corpus = Corpus.from_ids([[1] * length], vocab)
        model = HMM(states, iterations=1).fit(corpus)
        assert model.parameter_count == expected
        held = sum(array.size for array in model.to_parts().arrays.values())
        assert held - (1 + states + states) == expected  # each row has one number that the others imply
    if words == 1000:
        assert expected < words**2


def test_h05_the_next_word_is_the_ratio_of_two_sums_over_paths(model: HMM) -> None:
    """H05: Σ_z p(xn | z) p(z | x<n), to 1e-12; it sums to one and gives perplexity."""
    for before in itertools.product(range(len(VOCAB)), repeat=3):
        state = model.start()
        for id in before:
            state = model.advance(state, np.array([id]))
        row = np.exp(model.next_logprobs(state)[0])
        for id in range(len(VOCAB)):
            assert row[id] == pytest.approx(evidence(model, [*before, id]) / evidence(model, before), rel=1e-12)
        assert row.sum() == pytest.approx(1, rel=1e-12)
    text = one_document([1, 2, 0])
    assert perplexity(model, text) == pytest.approx(evidence(model, [1, 2, 0]) ** (-1 / 3), rel=1e-12)


def test_h06_filtering_is_predict_then_correct(model: HMM) -> None:
    """H06: belief ∝ p(xt | zt) Σ p(zt | z(t−1)) belief(t−1): two public steps, equal to enumeration to 1e-12."""
    for ids in TEXTS:
        belief = model.correct(model.start_, int(ids[0]))
        for place in range(1, LENGTH):
            belief = model.correct(model.predict(belief), int(ids[place]))
            shorter = ids[: place + 1]
            weights = [
                math.fsum(
                    joint(model, shorter, [*path, last]) for path in itertools.product(range(STATES), repeat=place)
                )
                for last in range(STATES)
            ]
            assert_allclose(belief, np.array(weights) / sum(weights), rtol=1e-12)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_h06_nothing_underflows_in_a_hundred_thousand_words(dtype: Any) -> None:
    """H06: p(x) of the whole is about e^−109,000, far below any float."""
    model = random_model(8, VOCAB, dtype=dtype)
    ids, _ = model.sample(100_000, seed=3)
    corpus = one_document(ids)
    logs = model.logprobs(corpus)
    assert np.isfinite(logs).all()
    assert -1e6 < logs.sum(dtype=np.float64) < -50_000
    for rows in (model.beliefs(corpus), model.posteriors(corpus)):
        assert_allclose(rows.sum(axis=1), 1, rtol=1e-9 if dtype == "float64" else 1e-3)
    assert model.viterbi(corpus).max() < 8


def test_h07_two_readers_who_begin_apart_come_to_agree() -> None:
    """H07: the distance of two beliefs is below the Dobrushin bound at every word, and falls exponentially."""
    vocab = Vocab(["</s>", *map(str, range(9))], unknown=None)
    model = random_model(4, vocab, seed=2, concentration=2.0)
    ids, _ = model.sample(40, seed=0)
    apart = np.eye(4)
    faded = fading(model, ids, apart[0], apart[1])
    assert (faded.distances <= faded.bounds * (1 + 1e-9) + 1e-15).all()
    assert faded.bounds[-1] < 1e-3
    assert faded.distances[0] > 0.5
    # Log-linear: a straight line through the logarithms explains nearly all of them, until rounding is all there is.
    measured = np.flatnonzero(faded.distances > 1e-13)
    logs = np.log(faded.distances[measured])
    assert len(measured) > 12
    assert np.corrcoef(measured, logs)[0, 1] < -0.98


def test_h07_where_nothing_is_read_the_coefficient_of_the_chain_itself_is_the_bound(model: HMM) -> None:
    """H07: the bound for prediction alone, TV(pA, qA) ≤ δ(A) TV(p, q), met by the two rows that are furthest apart."""
    rng = np.random.default_rng(0)
    factor = dobrushin(model.transition_)
    assert 0 < factor < 1
    for _ in range(200):
        first, second = rng.dirichlet(np.ones(STATES), 2)
        after = total_variation(model.predict(first), model.predict(second))
        assert after <= factor * total_variation(first, second) * (1 + 1e-12)
    rows = itertools.combinations(np.eye(STATES), 2)
    assert max(total_variation(model.predict(one), model.predict(other)) for one, other in rows) == factor


def test_h08_smoothing_and_viterbi_equal_brute_force(model: HMM) -> None:
    """H08: posteriors of every place, and the best of all 81 paths."""
    for ids in TEXTS:
        corpus = one_document(ids)
        weights = np.array([joint(model, ids, path) for path in PATHS])
        posteriors = model.posteriors(corpus)
        for place, state in itertools.product(range(LENGTH), range(STATES)):
            through = [weight for weight, path in zip(weights, PATHS, strict=True) if path[place] == state]
            assert posteriors[place, state] == pytest.approx(math.fsum(through) / math.fsum(weights), rel=1e-12)
        assert joint(model, ids, model.viterbi(corpus)) == pytest.approx(weights.max(), rel=1e-12)


def test_h10_the_likelihood_never_falls() -> None:
    """H10: Baum-Welch over a batch of sequences, to 1e-10, from many beginnings."""
    rng = np.random.default_rng(0)
    vocab = Vocab(["</s>", *map(str, range(12))], unknown=None)
    corpus = Corpus.from_ids([rng.integers(1, 13, rng.integers(0, 20)).tolist() for _ in range(60)], vocab)
    for seed in range(5):
        logs = np.array(HMM(5, iterations=80, tolerance=0, smoothing=0.0, seed=seed).fit(corpus).objectives_)
        assert (np.diff(logs) >= -1e-10 * np.abs(logs[:-1])).all()
        assert logs[-1] > logs[0] + 10


def test_h10_with_smoothing_the_posterior_never_falls() -> None:
    corpus = Corpus.from_ids([[1, 2, 1, 2], [2, 2], [1], []] * 5, VOCAB)
    for smoothing in (0.01, 1.0, 10.0):
        objectives = np.array(HMM(4, iterations=60, tolerance=0, smoothing=smoothing).fit(corpus).objectives_)
        assert (np.diff(objectives) >= -1e-10 * np.abs(objectives[:-1])).all()


def test_h10_em_finds_the_chain_that_made_the_text() -> None:
    """H10: 8,000 words drawn from two states. EM climbs to the nearest top; the highest of five is the truth."""
    truth = HMM.from_parameters([0.5, 0.5], [[0.9, 0.1], [0.2, 0.8]], [[0.05, 0.85, 0.1], [0.05, 0.1, 0.85]], VOCAB)
    text = one_document(truth.sample(8_000, seed=0)[0])
    tries = [HMM(2, iterations=60, tolerance=0, smoothing=0.0, seed=seed).fit(text) for seed in range(5)]
    learnt = max(tries, key=lambda model: model.score(text))
    order = np.argsort(-learnt.emission_[:, 1])
    assert_allclose(learnt.transition_[np.ix_(order, order)], truth.transition_, atol=0.03)
    assert_allclose(learnt.emission_[order], truth.emission_, atol=0.03)


# H09: a real treebank


@pytest.fixture(scope="module")
def treebank() -> dict[str, Tagged]:
    return {split: read_conllu(find(f"ud_english_ewt:{split}")) for split in ("train", "test")}


@pytest.mark.data
def test_h09_the_tagger_beats_the_most_frequent_tag(treebank: dict[str, Tagged], record_property: Report) -> None:
    """H09: supervised, from context; accuracy printed, unknown words apart."""
    train, test = treebank["train"], treebank["test"]
    results = {order: HMMTagger(order).fit(*train).accuracies(*test) for order in (2, 3)}
    guesses = itertools.chain(*most_frequent_tags(*train, test.sentences))
    baseline = np.mean([guess == tag for guess, tag in zip(guesses, itertools.chain(*test.tags), strict=True)])
    for order, result in results.items():
        print(
            f"order {order}: {result.all:.2%} of all words, {result.known:.2%} of known ones, "
            f"{result.unknown:.2%} of the {result.unknown_share:.1%} unknown; most frequent tag {baseline:.2%}"
        )
    for order, result in results.items():
        record_property(
            f"H09 order {order}: all, known, unknown", f"{result.all:.2%}, {result.known:.2%}, {result.unknown:.2%}"
        )
    record_property("H09 most frequent tag", f"{baseline:.2%}")
    assert results[3].all >= 0.92
    assert results[3].all > results[2].all > baseline + 0.03
    assert results[3].known > 0.93
    assert results[3].unknown > 0.7


@pytest.mark.data
def test_h09_the_tagger_beats_nltk_s(treebank: dict[str, Tagged]) -> None:
    """H09: nltk's hidden Markov tagger as its users get it, on the first 100 test sentences only, for it is slow."""
    hmm = pytest.importorskip("nltk.tag.hmm")
    train, test = treebank["train"], treebank["test"]
    pairs = [list(zip(*pair, strict=True)) for pair in zip(train.sentences, train.tags, strict=True)]
    peer = hmm.HiddenMarkovModelTagger.train(pairs)
    sentences, tags = test.sentences[:100], test.tags[:100]
    with np.errstate(divide="ignore"):
        theirs = [[tag for _, tag in peer.tag(words)] for words in sentences]
    right = [ours == gold for pair in zip(theirs, tags, strict=True) for ours, gold in zip(*pair, strict=True)]
    assert HMMTagger().fit(*train).score(sentences, tags) > np.mean(right) + 0.02
