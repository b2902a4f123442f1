from __future__ import annotations

import itertools
import math
import tracemalloc
from functools import partial
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from numpy.typing import NDArray

from foreword.errors import ForewordError, InputError, SettingError
from foreword.hmm import kernels, learning, plain
from foreword.hmm import model as hmm
from foreword.hmm.kernels import document_groups
from foreword.hmm.learning import count_paths
from foreword.hmm.model import HMM
from foreword.lessons.fading import dobrushin, total_variation
from foreword.protocols import Parts
from foreword.tokens.corpus import Corpus
from foreword.tokens.vocab import Vocab

VOCAB = Vocab(["<unk>", "</s>", "a", "b", "c"])

# Wikipedia, "Viterbi algorithm": a doctor asks how a villager feels. States healthy, fever; words normal, cold, dizzy.
DOCTOR = Vocab(["normal", "cold", "dizzy", "</s>"], unknown=None)


def expect(model: HMM, corpus: Corpus) -> tuple[learning.Counts, float]:
    parameters = learning.Parameters(model.start_, model.transition_, np.ascontiguousarray(model.emission_.T))
    return learning.expected_counts(parameters, corpus, model.threads)


def doctor(**settings: Any) -> HMM:
    return HMM.from_parameters(
        [0.6, 0.4], [[0.7, 0.3], [0.4, 0.6]], [[0.5, 0.4, 0.1, 0], [0.1, 0.3, 0.6, 0]], DOCTOR, **settings
    )


def random_model(states: int = 4, vocab: Vocab = VOCAB, seed: int = 0, **settings: Any) -> HMM:
    rng = np.random.default_rng(seed)
    return HMM.from_parameters(
        rng.dirichlet(np.ones(states)),
        rng.dirichlet(np.ones(states), states),
        rng.dirichlet(np.ones(len(vocab)), states),
        vocab,
        **settings,
    )


def corpus_of(documents: list[list[int]], vocab: Vocab = VOCAB) -> Corpus:
    """Documents as they are: nothing is put at their end."""
    offsets = np.cumsum([0, *map(len, documents)], dtype=np.int64)
    ids = np.array(list(itertools.chain(*documents)), np.uint16)
    return Corpus(ids, offsets, offsets, vocab)


def random_corpus(documents: int = 40, seed: int = 0, vocab: Vocab = VOCAB) -> Corpus:
    rng = np.random.default_rng(seed)
    return Corpus.from_ids([rng.integers(2, len(vocab), rng.integers(0, 12)).tolist() for _ in range(documents)], vocab)


def chain_with_gaps() -> HMM:
    """From left to right, with zeros everywhere: state 0 emits a, 1 emits b, 2 emits c and the end."""
    return HMM.from_parameters(
        [1, 0, 0],
        [[0.5, 0.5, 0.0], [0.0, 0.5, 0.5], [0.0, 0.0, 1.0]],
        [[0.0, 0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0, 0.0], [0.0, 0.5, 0.0, 0.0, 0.5]],
        VOCAB,
    )


# By hand


def test_the_doctor_s_patient_was_healthy_twice_and_then_had_a_fever() -> None:
    """Normal, cold, dizzy: the article's path and its probability, 0.01512."""
    model, days = doctor(), corpus_of([[0, 1, 2]], DOCTOR)
    path = model.viterbi(days)
    assert path.tolist() == [0, 0, 1]
    assert math.exp(model.joint_logprob(days.ids, path)) == pytest.approx(0.01512, rel=1e-12)


def test_two_steps_of_the_filter_by_hand() -> None:
    model = doctor()
    belief = model.correct(model.start()[0], 0)
    assert_allclose(belief, [0.3 / 0.34, 0.04 / 0.34], rtol=1e-15)
    assert_allclose(model.predict(belief), [(0.21 + 0.016) / 0.34, (0.09 + 0.024) / 0.34], rtol=1e-14)
    assert math.exp(model.logprobs(corpus_of([[0]], DOCTOR))[0]) == pytest.approx(0.34)


def test_counts_become_shares() -> None:
    model = HMM.from_counts([3, 1], [[1, 3], [2, 2]], [[0, 0, 4, 0, 0], [0, 5, 0, 3, 2]], VOCAB, smoothing=0)
    assert_array_equal(model.start_, [0.75, 0.25])
    assert_array_equal(model.transition_, [[0.25, 0.75], [0.5, 0.5]])
    assert_array_equal(model.emission_, [[0, 0, 1, 0, 0], [0, 0.5, 0, 0.3, 0.2]])
    smoothed = HMM.from_counts([3, 1], [[1, 3], [2, 2]], np.zeros((2, 5)), VOCAB, smoothing=1)
    assert_array_equal(smoothed.start_, [4 / 6, 2 / 6])
    assert_array_equal(smoothed.emission_, np.full((2, 5), 0.2))


def test_states_are_counted_where_they_stand() -> None:
    corpus = Corpus.from_ids([[2, 3], [], [4]], VOCAB)
    counts = count_paths(corpus, np.array([0, 1, 1, 1, 0, 1]), 2)
    assert_array_equal(counts.start, [2, 1])
    assert_array_equal(counts.transition, [[0, 2], [0, 1]])
    assert_array_equal(counts.emission, [[0, 0, 1, 0, 1], [0, 3, 0, 1, 0]])
    model = HMM.from_counts(*counts, VOCAB)
    assert model.states == 2


# Fast roads and plain ones


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("states", [1, 2, 7, 8, 13, 50])
def test_the_fast_filter_smoother_and_viterbi_equal_the_plain_ones(states: int, dtype: Any) -> None:
    model, corpus = random_model(states, dtype=dtype), random_corpus()
    tolerance = 1e-12 if dtype == "float64" else 1e-4
    parameters = model.start_, model.transition_, np.ascontiguousarray(model.emission_.T)
    counts, log_likelihood = expect(model, corpus)
    logs, beliefs, posteriors = model.logprobs(corpus), model.beliefs(corpus), model.posteriors(corpus)
    path, pairs = model.viterbi(corpus), np.zeros((states, states))
    log_start, log_transition, log_emission = map(np.log, parameters)
    for start, stop in itertools.pairwise(corpus.offsets.tolist()):
        ids = corpus.ids[start:stop]
        filtered, scales = plain.filtered(*parameters, ids)
        smoothed, moves = plain.smoothed(*parameters, ids)
        pairs += moves
        assert_allclose(logs[start:stop], np.log(scales), rtol=tolerance, atol=tolerance)
        assert_allclose(beliefs[start:stop], filtered, rtol=tolerance, atol=tolerance)
        assert_allclose(posteriors[start:stop], smoothed, rtol=tolerance, atol=tolerance)
        assert_array_equal(path[start:stop], plain.viterbi(log_start, log_transition, log_emission, ids))
    assert_allclose(counts.transition, pairs, rtol=tolerance)
    assert_allclose(counts.emission.sum(), len(corpus.ids), rtol=tolerance)
    assert counts.emission.sum(axis=0) == pytest.approx(posteriors.sum(axis=0), rel=tolerance)
    assert log_likelihood == pytest.approx(float(logs.sum()), rel=tolerance)


@pytest.mark.parametrize("model", [chain_with_gaps(), random_model(3)], ids=["gaps", "dense"])
def test_the_roads_agree_where_words_are_impossible(model: HMM) -> None:
    documents = [[2, 3, 4, 1], [4, 2], [2, 0, 3, 3, 2, 4], [1], [0, 0]]
    corpus = corpus_of(documents)
    parameters = model.start_, model.transition_, np.ascontiguousarray(model.emission_.T)
    with np.errstate(divide="ignore"):
        logs = [np.log(table) for table in parameters]
        for place, ids in enumerate(corpus.documents()):
            alone = corpus[place : place + 1]
            filtered, scales = plain.filtered(*parameters, ids)
            assert_allclose(model.logprobs(alone), np.log(scales), rtol=1e-12)
            assert_allclose(model.beliefs(alone), filtered, rtol=1e-12)
            assert_allclose(model.posteriors(alone), plain.smoothed(*parameters, ids)[0], rtol=1e-12)
            assert_allclose(model.posteriors(alone).sum(axis=1), 1, rtol=1e-12)
            assert_array_equal(model.viterbi(alone), plain.viterbi(logs[0], logs[1], logs[2], ids))


def test_a_state_that_cannot_be_reached_does_not_overflow() -> None:
    """State 1 explains every word a thousand times better, but nothing leads to it: its ratio grows by 1000 a word."""
    vocab = Vocab(["</s>", *map(str, range(1000))], unknown=None)
    emission = np.full((2, 1001), 1 / 1001)
    emission[1] = 0
    emission[1, 7] = 1
    model = HMM.from_parameters([1, 0], np.eye(2), emission, vocab)
    posteriors = model.posteriors(corpus_of([[7] * 500], vocab))
    assert_array_equal(posteriors, np.tile([1.0, 0.0], (500, 1)))


def test_logs_are_taken_of_the_words_there_are() -> None:
    """A short text needs few rows of the table, a long one all of them; the path is the same."""
    model, few = random_model(5), corpus_of([[2, 3]])
    many = corpus_of([[2, 3], [4, 4, 4, 2, 2]])
    assert len(few.ids) < len(VOCAB) <= len(many.ids)
    assert_array_equal(model.viterbi(few), model.viterbi(many)[:2])


def test_documents_are_laid_out_step_by_step() -> None:
    corpus = corpus_of([[2], [3, 3, 3], [4, 1]])
    batch = kernels.pack(corpus.ids, corpus.offsets, np.array([1, 2, 0]))
    assert batch.steps.tolist() == [0, 3, 5, 6]
    assert batch.places.tolist() == [1, 4, 0, 2, 5, 3]
    assert batch.words.tolist() == [3, 4, 2, 3, 1, 3]


def test_groups_hold_every_document_once_and_long_ones_few() -> None:
    lengths = np.array([3, 0, 70_000, 5, 40_000, 40_000, 1, 0])
    groups = [group.tolist() for group in document_groups(lengths, 50)]
    assert groups == [[2], [4], [5], [3, 0, 6]]
    assert max(map(len, document_groups(np.ones(1000, np.int64), 10))) == kernels.BATCH_DOCUMENTS
    assert max(map(len, document_groups(np.ones(1000, np.int64), 1000))) == 8


@pytest.mark.parametrize("threads", [2, 5])
def test_the_number_of_threads_changes_nothing(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "BATCH_DOCUMENTS", 3)  # so that there are many batches
    corpus = random_corpus(50)
    one, many = (HMM(4, iterations=3, threads=number).fit(corpus) for number in (1, threads))
    assert_array_equal(one.transition_, many.transition_)
    assert_array_equal(one.emission_, many.emission_)
    assert_array_equal(one.logprobs(corpus), many.logprobs(corpus))
    assert_array_equal(one.posteriors(corpus), many.posteriors(corpus))
    assert_array_equal(one.viterbi(corpus), many.viterbi(corpus))


@pytest.mark.parametrize("at_once", [1, 2, 7, 16])
@pytest.mark.parametrize("model", [chain_with_gaps(), random_model(3)], ids=["gaps", "dense"])
def test_long_documents_are_read_in_parts(model: HMM, at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the parts, all is as in one; words that are impossible included."""
    random = np.random.default_rng(2)
    corpus = corpus_of([random.integers(0, 5, length).tolist() for length in (50, 3, 0, 16, 17, 1, 33)])

    def everything() -> list[NDArray[Any]]:
        counts, log_likelihood = expect(random_model(3), corpus)  # of which every word is possible
        rows = [model.logprobs(corpus), model.beliefs(corpus), model.posteriors(corpus)]
        return [*rows, *counts, np.array(log_likelihood)]

    whole, path = everything(), model.viterbi(corpus)
    monkeypatch.setattr(kernels, "TOKENS_AT_ONCE", at_once)
    monkeypatch.setattr(kernels, "VITERBI_ROWS", at_once)
    for ours, theirs in zip(everything(), whole, strict=True):
        assert_allclose(ours, theirs, rtol=1e-12, atol=1e-15)
    assert_array_equal(model.viterbi(corpus), path)


def test_a_very_long_document_takes_little_memory() -> None:
    """400,000 tokens and fifty states: beliefs or best scores of all of them would take 160 MB."""
    vocab = Vocab(["</s>", *map(str, range(99))], unknown=None)
    model = random_model(50, vocab, threads=1)
    ids = np.random.default_rng(3).integers(0, len(vocab), 400_000).astype(np.uint16)
    corpus = Corpus(ids, np.array([0, len(ids)]), np.array([0, len(ids)]), vocab)
    few = corpus_of([[1, 2, 3]], vocab)
    for work in (model.viterbi, partial(expect, model)):
        work(few)
        tracemalloc.start()
        work(corpus)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 80e6  # 65,536 rows of beliefs take 26 MB, and each token about 50 bytes


# Learning


def test_training_yields_its_rounds_and_fit_runs_them() -> None:
    corpus = random_corpus()
    stepped = HMM(3, iterations=7, tolerance=0)
    steps = list(stepped.train(corpus))
    assert [step.done for step in steps] == [number * len(corpus.ids) for number in range(1, 8)]
    assert {step.total for step in steps} == {7 * len(corpus.ids)}
    assert len(stepped.objectives_) == 7
    assert all(later >= sooner for sooner, later in itertools.pairwise(stepped.objectives_))
    fitted = HMM(3, iterations=7, tolerance=0).fit(corpus)
    assert_array_equal(stepped.emission_, fitted.emission_)


def test_who_stops_reading_keeps_what_was_learnt() -> None:
    corpus = random_corpus()
    model = HMM(3)
    for _ in itertools.islice(model.train(corpus), 4):
        pass
    assert_array_equal(model.transition_, HMM(3, iterations=4, tolerance=0).fit(corpus).transition_)


def test_training_ends_when_it_gains_little() -> None:
    corpus = random_corpus()
    model = HMM(3, iterations=1000, tolerance=1e-3).fit(corpus)
    assert len(model.objectives_) < 1000
    gains = [later - sooner for sooner, later in itertools.pairwise(model.objectives_)]
    assert gains[-1] < 1e-3 * len(corpus.ids) <= min(gains[:-1])


def test_training_ends_when_the_text_to_tune_on_becomes_no_likelier() -> None:
    """A chain a b c a b c …, learnt from little text by too many states."""
    rng = np.random.default_rng(3)
    documents = [[2 + (start + place) % 3 for place in range(6)] for start in rng.integers(0, 3, 12)]
    for document in documents:
        document[rng.integers(0, 6)] = int(rng.integers(2, 5))
    corpus, valid = Corpus.from_ids(documents[:6], VOCAB), Corpus.from_ids(documents[6:], VOCAB)
    model = HMM(8, iterations=300, tolerance=0)
    scores = [model.valid_score_ for _ in model.train(corpus, valid=valid)]
    assert 1 + hmm.PATIENCE < len(scores) < 300
    assert max(scores) == scores[-1 - hmm.PATIENCE] == model.score(valid)
    assert model.ended_ == "validation"


def test_it_says_why_training_ended() -> None:
    corpus = random_corpus()
    model = HMM(3, iterations=1000, tolerance=1e-6).fit(corpus)
    assert (model.ended_, model.converged_) == ("tolerance", True)
    assert list(model.improve(corpus))
    assert model.converged_, "one that has converged stays so"
    model = HMM(3, iterations=5, tolerance=0).fit(corpus)
    assert (model.ended_, model.converged_) == ("last round", False)
    next(model.train(corpus))
    assert model.ended_ == ""


def test_a_saddle_point_is_a_plateau_and_not_convergence() -> None:
    """Two states that are almost one: gains are tiny and grow, until the states part and far more is gained."""
    documents = [[2 + (start + place) % 2 for place in range(8)] for start in (0, 1) * 20]
    corpus = Corpus.from_ids(documents, VOCAB)
    words = np.full((2, len(VOCAB)), 1 / len(VOCAB))
    words[:, 2] += (0.01, -0.01)
    words[:, 3] += (-0.01, 0.01)
    moves = np.array([[0.49, 0.51], [0.51, 0.49]])
    settings: dict[str, Any] = {"smoothing": 0.0, "iterations": 500}
    stopped = HMM.from_parameters((0.5, 0.5), moves, words, VOCAB, tolerance=1e-4, **settings)
    assert len(list(stopped.improve(corpus))) < 10
    assert stopped.ended_ == "plateau"
    patient = HMM.from_parameters((0.5, 0.5), moves, words, VOCAB, tolerance=1e-9, **settings)
    list(patient.improve(corpus))
    assert patient.converged_
    assert patient.score(corpus) > stopped.score(corpus) + 0.1


def test_improving_goes_on_from_where_the_model_is() -> None:
    corpus = random_corpus()
    at_once = HMM(3, iterations=6, tolerance=0).fit(corpus)
    in_two = HMM(3, iterations=3, tolerance=0).fit(corpus)
    assert len(list(in_two.improve(corpus))) == 3
    assert_array_equal(at_once.emission_, in_two.emission_)


def test_another_seed_another_model() -> None:
    corpus = random_corpus()
    assert not np.array_equal(HMM(3, seed=1).fit(corpus).emission_, HMM(3, seed=2).fit(corpus).emission_)


def test_float32_learns_nearly_the_same() -> None:
    corpus = random_corpus()
    double, single = (HMM(4, iterations=5, tolerance=0, dtype=dtype).fit(corpus) for dtype in ("float64", "float32"))
    assert single.emission_.dtype == np.float32
    assert_allclose(single.emission_, double.emission_, atol=1e-4)


def test_em_that_falls_is_an_error_and_not_convergence(monkeypatch: pytest.MonkeyPatch) -> None:
    corpus, model = random_corpus(), HMM(3, smoothing=0)
    honest = learning.expected_counts

    def astray(*arguments: Any) -> Any:
        counts, log_likelihood = honest(*arguments)
        counts.emission[:] **= 3
        return counts, log_likelihood

    monkeypatch.setattr(learning, "expected_counts", astray)
    with pytest.raises(ForewordError, match="not convergence"):
        model.fit(corpus)


def test_a_state_that_nothing_was_counted_for_keeps_what_it_had() -> None:
    model = chain_with_gaps()
    model.smoothing = 0.0
    list(model.improve(corpus_of([[2, 2], [2]])))
    assert_array_equal(model.transition_[1:], chain_with_gaps().transition_[1:])
    assert_array_equal(model.emission_[2], chain_with_gaps().emission_[2])


def test_what_the_model_cannot_say_cannot_be_learnt_from() -> None:
    with pytest.raises(InputError, match="document 1 has no probability"):
        list(chain_with_gaps().improve(corpus_of([[2, 3], [4], [2]])))


# Refusing


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"states": 0}, "states is 0"),
        ({"states": 2.5}, "states is 2.5"),
        ({"iterations": 0}, "iterations is 0"),
        ({"tolerance": -1.0}, "tolerance is -1.0"),
        ({"smoothing": math.nan}, "smoothing is nan"),
        ({"seed": -1}, "seed is -1"),
        ({"dtype": "float16"}, "float16"),
        ({"threads": 0}, "threads is 0"),
    ],
)
def test_settings_must_make_sense(settings: dict[str, Any], named: str) -> None:
    with pytest.raises(SettingError, match=named):
        HMM(**settings).fit(random_corpus())


@pytest.mark.parametrize(
    ("start", "transition", "emission", "message"),
    [
        ([0.5, 0.6], np.eye(2), np.full((2, 5), 0.2), "start has a row"),
        ([0.5, 0.5], [[0.5, 0.5], [1.5, -0.5]], np.full((2, 5), 0.2), "transition has a row"),
        ([0.5, 0.5], np.eye(2), [[0.2] * 5, [math.nan] * 5], "emission has a row"),
        ([0.5, 0.5], np.eye(2), [[0.2] * 5, [0.1] * 5], "emission has a row"),
        ([0.5, 0.5], np.eye(3), np.full((2, 5), 0.2), "transition is"),
        ([0.5, 0.5], np.eye(2), np.full((2, 4), 0.25), "emission is"),
        ([], np.empty((0, 0)), np.empty((0, 5)), "states is 0"),
    ],
)
def test_parameters_must_be_distributions(start: Any, transition: Any, emission: Any, message: str) -> None:
    with pytest.raises(SettingError, match=message):
        HMM.from_parameters(start, transition, emission, VOCAB)


def test_counts_must_be_counts() -> None:
    with pytest.raises(SettingError, match="not negative"):
        HMM.from_counts([1, -1], np.eye(2), np.ones((2, 5)), VOCAB)
    with pytest.raises(SettingError, match="never seen"):
        HMM.from_counts([1, 1], [[1, 1], [0, 0]], np.ones((2, 5)), VOCAB, smoothing=0)
    with pytest.raises(SettingError, match="transition is"):
        HMM.from_counts([1, 1], np.eye(3), np.ones((2, 5)), VOCAB)
    with pytest.raises(SettingError, match="a state is not one of the 2"):
        count_paths(random_corpus(1), np.full(len(random_corpus(1).ids), 2), 2)
    with pytest.raises(SettingError, match="words but"):
        count_paths(random_corpus(1), np.zeros(0, np.int64), 2)


def test_ids_outside_the_vocabulary_are_refused_before_any_kernel_sees_them() -> None:
    model, bad = random_model(), corpus_of([[2, 60_000]])
    for use in (model.logprobs, model.posteriors, model.beliefs, model.viterbi, model.improve, model.train):
        with pytest.raises(InputError, match="corpus is damaged"):
            use(bad)
    for wrong in (-1, 5):
        with pytest.raises(SettingError, match="not in the vocabulary"):
            model.advance(model.start(), np.array([wrong]))
        with pytest.raises(SettingError, match="not in the vocabulary"):
            model.joint_logprob(np.array([wrong]), np.array([0]))
    with pytest.raises(SettingError, match="a state is not one of"):
        model.joint_logprob(np.array([2]), np.array([4]))
    with pytest.raises(SettingError, match="words but"):
        model.joint_logprob(np.array([2, 2]), np.array([0]))
    assert model.joint_logprob(np.array([], np.int64), np.array([], np.int64)) == 0


def test_each_text_needs_one_next_token() -> None:
    model = random_model()
    with pytest.raises(ValueError, match="2 texts but 1"):
        model.advance(model.start(2), np.array([2]))


def test_parameters_cannot_be_changed_by_accident() -> None:
    model = random_model()
    for table in (model.start_, model.transition_, model.emission_):
        with pytest.raises(ValueError, match="read-only"):
            table[0] = 0


def test_nothing_is_sampled_from_nothing() -> None:
    words, path = random_model().sample(0)
    assert len(words) == len(path) == 0
    with pytest.raises(SettingError, match="tokens=-1"):
        random_model().sample(-1)


# Saving


def test_a_saved_model_must_be_whole() -> None:
    parts = random_model().to_parts()
    assert_array_equal(HMM.from_parts(parts).emission_, random_model().emission_)

    def changed(settings: dict[str, Any] | None = None, **arrays: Any) -> Parts:
        return Parts({**parts.settings, **(settings or {})}, {**parts.arrays, **arrays}, parts.vocab)

    wrong = [
        changed(start=np.array([0.5, 0.5, 0.5, 0.5])),
        changed(transition=np.eye(3)),
        changed(emission_by_word=parts.arrays["emission_by_word"].astype(np.float32)),
        changed({"states": 3}),
        changed({"dtype": "float32"}),
        changed({"dtype": "int8"}),
        changed({"surprise": 1}),
        Parts(parts.settings, parts.arrays, None),
    ]
    for damaged in wrong:
        with pytest.raises((ValueError, ForewordError)):
            HMM.from_parts(damaged)


# Distances


def test_total_variation_and_the_dobrushin_coefficient_by_hand() -> None:
    assert total_variation(np.array([1.0, 0.0]), np.array([0.0, 1.0])) == 1
    assert total_variation(np.array([0.5, 0.5]), np.array([0.25, 0.75])) == 0.25
    assert dobrushin(np.array([[0.7, 0.3], [0.4, 0.6]])) == pytest.approx(0.3)
    assert dobrushin(np.eye(3)) == 1
    assert dobrushin(np.full((3, 3), 1 / 3)) == 0
