"""What is true of every language model, whatever it is made of.

The slow road, stepping with ``advance`` and reading ``next_logprobs``, is the reference for every fast one.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from foreword.arrays import Logs
from foreword.decode import generate
from foreword.errors import ForewordError
from foreword.kinds import KINDS
from foreword.protocols import LanguageModel, Saveable
from foreword.storage.folder import load, save
from foreword.tokens.corpus import Corpus
from foreword.tokens.vocab import Vocab

from .models import LANGUAGE_MODELS, Model

VOCAB = Vocab(["<unk>", "</s>", "the", "cat", "sat", "on", "mat", "unseen"])
UNKNOWN, THE, CAT, SAT, ON, MAT, UNSEEN = (
    VOCAB.id(word) for word in ("<unk>", "the", "cat", "sat", "on", "mat", "unseen")
)

TRAIN = [
    [THE, CAT, SAT, ON, THE, MAT],
    [THE, CAT, SAT],
    [CAT, SAT, ON, CAT],
    [],
    [UNKNOWN, SAT, ON, THE, UNKNOWN],
    [THE],
]
TEST = [
    [THE, MAT, SAT, ON, THE, CAT],
    [],  # only its end
    [CAT],
    [UNKNOWN, UNKNOWN],
    [MAT, UNSEEN, MAT],  # nothing about the middle one is known but that it exists
]


@pytest.fixture(params=LANGUAGE_MODELS, ids=lambda case: case.name)
def case(request: pytest.FixtureRequest) -> Model:
    assert isinstance(request.param, Model)
    return request.param


@pytest.fixture
def model(case: Model) -> LanguageModel[Any]:
    fitted: LanguageModel[Any] = case.build().fit(corpus_of(TRAIN))
    return fitted


@pytest.fixture
def held_out() -> Corpus:
    return corpus_of(TEST)


def corpus_of(documents: list[list[int]], vocab: Vocab = VOCAB) -> Corpus:
    return Corpus.from_ids(documents, vocab)


def step_through(model: LanguageModel[Any], corpus: Corpus) -> Logs:
    """The slow road: one document at a time, one token at a time."""
    logs = []
    for document in corpus.documents():
        state = model.start()
        for id in document.tolist():
            logs.append(model.next_logprobs(state)[0, id])
            state = model.advance(state, np.array([id]))
    return np.array(logs)


def test_fit_returns_the_model_and_may_be_given_a_text_to_tune_on(case: Model, held_out: Corpus) -> None:
    model = case.build()
    assert model.fit(corpus_of(TRAIN), valid=held_out) is model
    assert model.vocab == VOCAB


def test_n01_the_sum_of_conditionals_is_the_log_probability(
    case: Model, model: LanguageModel[Any], held_out: Corpus
) -> None:
    """N01: log p(x1..xN) = Σ log p(xn | x<n), read off the states, equals what ``logprobs`` says."""
    assert_allclose(model.logprobs(held_out), step_through(model, held_out), rtol=case.tolerance, atol=0)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    documents=st.lists(
        st.lists(st.integers(0, len(VOCAB) - 1).filter(lambda id: id != VOCAB.end), max_size=6), min_size=1
    )
)
def test_n01_holds_for_any_text(case: Model, documents: list[list[int]]) -> None:
    """N01, with the model trained on the text itself, whatever that is."""
    corpus = corpus_of(documents)
    model = case.build().fit(corpus)
    logs = model.logprobs(corpus)
    assert logs.shape == (len(corpus.ids),)
    assert_allclose(logs, step_through(model, corpus), rtol=case.tolerance, atol=0)


@pytest.mark.long
def test_n01_how_exactly_each_kind_of_model_keeps_to_the_chain_rule(
    held_out: Corpus, record_property: Callable[[str, object], None]
) -> None:
    """N01: 1e-12 for models without a network, 1e-4 for networks and hidden Markov models in float32: the largest
    relative error of each group over what is possible; what is impossible is so both ways. No other model may be moved
    to the second group.
    """
    groups: dict[float, dict[str, float]] = {}
    for case in LANGUAGE_MODELS:
        model = case.build().fit(corpus_of(TRAIN))
        found, wanted = model.logprobs(held_out), step_through(model, held_out)
        possible = np.isfinite(wanted)
        assert possible.any()
        assert_array_equal(found[~possible], wanted[~possible])
        certain = wanted == 0
        assert_allclose(found[certain], 0, atol=case.tolerance)
        rest = possible & ~certain
        error = float(np.abs(found[rest] / wanted[rest] - 1).max(initial=0))
        groups.setdefault(case.tolerance, {})[case.name] = error
    assert set(groups) == {1e-12, 1e-4}
    for tolerance, errors in groups.items():
        assert max(errors.values()) <= tolerance
        told = f"{max(errors.values()):.1g}"
        record_property(f"N01 largest relative error of {len(errors)} models, bound {tolerance:g}", told)
    networks = {case.name for case in LANGUAGE_MODELS if KINDS[case.kind].network}
    assert {*groups[1e-4]} == networks | {"hmm-float32", "neural-cache"}


def test_every_row_of_next_probabilities_sums_to_one(case: Model, model: LanguageModel[Any]) -> None:
    state = model.start(3)
    for ids in ([THE, CAT, UNKNOWN], [CAT, UNSEEN, MAT], [ON, ON, THE]):
        rows = model.next_logprobs(state)
        assert rows.shape == (3, len(VOCAB))
        assert_allclose(np.exp(rows).sum(axis=1), 1, rtol=max(case.tolerance, case.sums))
        state = model.advance(state, np.array(ids))


def test_documents_do_not_see_each_other(case: Model, model: LanguageModel[Any], held_out: Corpus) -> None:
    alone = [model.logprobs(held_out[place : place + 1]) for place in range(len(held_out))]
    assert_allclose(np.concatenate(alone), model.logprobs(held_out), rtol=case.tolerance, atol=0)


@pytest.mark.parametrize("parts", [1, 2, 3, 7])
def test_shards_score_like_the_whole(case: Model, model: LanguageModel[Any], held_out: Corpus, parts: int) -> None:
    shards = [held_out.shard(place, parts) for place in range(parts)]
    assert sum(map(len, shards)) == len(held_out)
    together = np.sort(np.concatenate([model.logprobs(shard) for shard in shards]))  # in whatever order shards deal
    assert_allclose(together, np.sort(model.logprobs(held_out)), rtol=case.tolerance, atol=0)


def test_an_old_state_stays_good(model: LanguageModel[Any]) -> None:
    old = model.advance(model.start(2), np.array([THE, CAT]))
    before = np.array(model.next_logprobs(old))
    for ids in ([CAT, SAT], [UNKNOWN, UNSEEN]):
        model.advance(model.advance(old, np.array(ids)), np.array(ids))
    assert_array_equal(model.next_logprobs(old), before)


@pytest.mark.parametrize("rows", [[2, 0, 0, 1], [1], [], slice(1, 3)], ids=str)
def test_choosing_rows_commutes_with_stepping(case: Model, model: LanguageModel[Any], rows: Any) -> None:
    first, then = np.array([THE, CAT, UNKNOWN]), np.array([MAT, SAT, ON])
    rows = np.array(rows, np.int64) if isinstance(rows, list) else rows
    state = model.advance(model.start(3), first)
    chosen_late = model.advance(state, then)[rows]
    chosen_early = model.advance(state[rows], then[rows])
    assert len(chosen_early) == len(chosen_late) == len(then[rows])
    assert_allclose(model.next_logprobs(state[rows]), model.next_logprobs(state)[rows], rtol=case.tolerance)
    assert_allclose(model.next_logprobs(chosen_early), model.next_logprobs(chosen_late), rtol=case.tolerance)


def test_texts_read_side_by_side_are_read_as_if_alone(case: Model, model: LanguageModel[Any]) -> None:
    together = model.advance(model.start(2), np.array([THE, MAT]))
    for place, id in enumerate((THE, MAT)):
        alone = model.advance(model.start(), np.array([id]))
        assert_allclose(model.next_logprobs(together)[place], model.next_logprobs(alone)[0], rtol=case.tolerance)


def test_the_score_is_the_mean_of_the_log_probabilities(model: LanguageModel[Any]) -> None:
    train = corpus_of(TRAIN)
    assert model.score(train) == model.logprobs(train).mean()
    assert isinstance(model.score(train), float)


def test_an_empty_document_is_scored_by_its_end(case: Model, model: LanguageModel[Any]) -> None:
    end = model.next_logprobs(model.start())[0, VOCAB.end]
    assert_allclose(model.logprobs(corpus_of([[]])), [end], rtol=case.tolerance)


def test_an_empty_corpus_has_no_log_probabilities_and_no_score(model: LanguageModel[Any]) -> None:
    nothing = corpus_of([])
    assert model.logprobs(nothing).shape == (0,)
    with pytest.raises(ForewordError, match="empty"):
        model.score(nothing)


def test_nothing_is_learnt_from_nothing(case: Model) -> None:
    with pytest.raises(ForewordError, match="empty"):
        case.build().fit(corpus_of([]))


def test_an_unfitted_model_says_so(case: Model, held_out: Corpus) -> None:
    model = case.build()
    uses: list[Callable[[], object]] = [
        lambda: model.vocab,
        lambda: model.logprobs(held_out),
        lambda: model.next_logprobs(model.start()),
    ]
    for use in uses:
        with pytest.raises(ForewordError, match="fit"):
            use()


def test_a_text_in_another_vocabulary_is_refused(model: LanguageModel[Any]) -> None:
    other = Vocab(["<unk>", "</s>", "a", "b", "c", "d", "e", "f"])
    with pytest.raises(ForewordError, match="vocabulary"):
        model.logprobs(corpus_of([[3]], other))


def test_saved_and_loaded_it_scores_the_same_to_the_last_bit(
    model: LanguageModel[Any], held_out: Corpus, tmp_path: Path
) -> None:
    assert isinstance(model, Saveable)
    save(model, tmp_path / "model")
    loaded = load(tmp_path / "model")
    assert type(loaded) is type(model)
    assert loaded.vocab == model.vocab
    assert_array_equal(loaded.logprobs(held_out), model.logprobs(held_out))
    assert_array_equal(loaded.next_logprobs(loaded.start(2)), model.next_logprobs(model.start(2)))
    assert list(generate(loaded, seed=3)) == list(generate(model, seed=3))


def test_saved_twice_it_is_the_same_bytes(model: LanguageModel[Any], tmp_path: Path) -> None:
    assert isinstance(model, Saveable)
    save(model, tmp_path / "one")
    save(load(tmp_path / "one"), tmp_path / "two")
    for file in sorted((tmp_path / "one").iterdir()):
        assert file.read_bytes() == (tmp_path / "two" / file.name).read_bytes()


def test_fitted_twice_it_is_the_same(case: Model, held_out: Corpus) -> None:
    first, second = (case.build().fit(corpus_of(TRAIN)) for _ in range(2))
    assert_array_equal(first.logprobs(held_out), second.logprobs(held_out))
    assert list(generate(first, seed=7)) == list(generate(second, seed=7))


def test_fitting_again_forgets_what_was_learnt_before(case: Model, held_out: Corpus) -> None:
    fresh = case.build().fit(corpus_of(TRAIN))
    used = case.build().fit(corpus_of([[MAT, MAT, MAT]])).fit(corpus_of(TRAIN))
    assert_array_equal(used.logprobs(held_out), fresh.logprobs(held_out))
