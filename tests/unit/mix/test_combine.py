from __future__ import annotations

import itertools
import math
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from foreword.decode import beam_search, generate
from foreword.errors import ForewordError, InputError, SettingError
from foreword.measures.perplexity import perplexity
from foreword.mix.combine import (
    NEAR_ENOUGH,
    Cached,
    Mixture,
    WeightStep,
    cached,
    interpolate,
    recent_counts,
    weight_steps,
)
from foreword.ngram.model import NgramLM
from foreword.ngram.unigram import UnigramLM
from foreword.protocols import LanguageModel
from foreword.storage.folder import load, save
from foreword.text.datasets import dataset
from foreword.text.sources import read_documents
from foreword.tokens.corpus import Corpus
from foreword.tokens.vocab import Vocab
from foreword.tokens.words import WordTokenizer

VOCAB = Vocab(["<unk>", "</s>", "a", "b", "c"])
UNKNOWN, END, A, B, C = range(5)

TRAIN = Corpus.from_ids([[A, B, C], [A, B, A], [B, A], [C, A, B, C]], VOCAB)
HELD_OUT = Corpus.from_ids([[A, B], [C, A, B, A], [], [A, B, C, UNKNOWN]], VOCAB)

documents = st.lists(st.lists(st.sampled_from([UNKNOWN, A, B, C]), max_size=8), min_size=1, max_size=5)


def unigram_of(*documents: list[int]) -> UnigramLM:
    """Maximum likelihood, so that its numbers are easy."""
    return UnigramLM(add=0).fit(Corpus.from_ids(documents, VOCAB))


# Several models


def test_a_mixture_is_the_weighted_sum_of_probabilities() -> None:
    """[a] gives a 1/2, [b b b] gives it nothing: with weights 1/4 and 3/4 it has 1/8; the end 1/8 + 3/16."""
    mixture = interpolate([unigram_of([A]), unigram_of([B, B, B])], [0.25, 0.75])
    row = np.exp(mixture.next_logprobs(mixture.start())[0])
    assert_allclose(row, [0, 1 / 8 + 3 / 16, 1 / 8, 9 / 16, 0], rtol=1e-14)


def test_a_mixture_of_one_model_is_the_model() -> None:
    model = NgramLM(3).fit(TRAIN)
    assert_array_equal(interpolate([model]).logprobs(HELD_OUT), model.logprobs(HELD_OUT))


def test_a_model_without_weight_has_no_say() -> None:
    impossible, model = unigram_of([A]), UnigramLM().fit(TRAIN)
    assert_array_equal(interpolate([impossible, model], [0, 1]).logprobs(HELD_OUT), model.logprobs(HELD_OUT))


def test_what_no_model_thinks_possible_is_impossible() -> None:
    mixture = interpolate([unigram_of([A]), unigram_of([B])])
    assert mixture.logprobs(Corpus.from_ids([[C]], VOCAB))[0] == -np.inf


def test_mixtures_of_mixtures_are_mixtures() -> None:
    one, two, three = (UnigramLM(add=add).fit(TRAIN) for add in (0.1, 1, 10))
    nested = interpolate([interpolate([one, two], [0.25, 0.75]), three], [0.5, 0.5])
    flat = interpolate([one, two, three], [0.125, 0.375, 0.5])
    assert_allclose(nested.logprobs(HELD_OUT), flat.logprobs(HELD_OUT), rtol=1e-14)


def test_without_weights_all_are_equal() -> None:
    assert interpolate([UnigramLM(), NgramLM(2), NgramLM(3)]).weights_.tolist() == [1 / 3] * 3


def test_fit_fits_every_model_and_learns_weights_only_from_other_text() -> None:
    fitted = interpolate([UnigramLM(), NgramLM(2)], [0.9, 0.1]).fit(TRAIN)
    assert fitted.weights_.tolist() == [0.9, 0.1]
    assert_array_equal(fitted.models[0].logprobs(HELD_OUT), UnigramLM().fit(TRAIN).logprobs(HELD_OUT))
    tuned = interpolate([UnigramLM(), NgramLM(2)], [0.9, 0.1]).fit(TRAIN, valid=HELD_OUT)
    assert_array_equal(tuned.weights_, fitted.learn_weights(HELD_OUT).weights_)
    assert tuned.score(HELD_OUT) > interpolate(tuned.models, [0.9, 0.1]).score(HELD_OUT)
    assert tuned.fit(TRAIN).weights_.tolist() == [0.9, 0.1]


def test_learn_weights_returns_the_mixture() -> None:
    mixture = interpolate([UnigramLM().fit(TRAIN), NgramLM(2).fit(TRAIN)])
    assert mixture.learn_weights(HELD_OUT) is mixture
    assert mixture.weights_.sum() == pytest.approx(1, abs=1e-15)


def test_learnt_weights_are_those_of_pencil_and_paper() -> None:
    """One model says a or the end, the other b or the end, all 1/2. Of three words two are a: 2/3 and 1/3."""
    mixture = interpolate([unigram_of([A]), unigram_of([B])])
    mixture.learn_weights(Corpus.from_ids([[A], [B], [A]], VOCAB))
    assert mixture.weights_.tolist() == pytest.approx([2 / 3, 1 / 3], rel=1e-3)
    assert mixture.score(Corpus.from_ids([[A], [B], [A]], VOCAB)) == pytest.approx(
        (2 * math.log(1 / 3) + math.log(1 / 6) + 3 * math.log(1 / 2)) / 6, abs=NEAR_ENOUGH
    )


def until_near_enough(logs: np.ndarray[Any, np.dtype[np.float64]]) -> Iterator[WeightStep]:
    for step in weight_steps(logs):
        yield step
        if step.gain_left < NEAR_ENOUGH:
            return


any_logs = st.integers(1, 4).flatmap(
    lambda models: st.lists(
        st.lists(st.one_of(st.floats(-50, 0), st.just(-math.inf)), min_size=models, max_size=models).filter(
            lambda given: max(given) > -math.inf
        ),
        min_size=1,
        max_size=20,
    )
)


@settings(max_examples=100, deadline=None)
@given(columns=any_logs)
def test_em_never_lowers_the_likelihood_and_knows_how_much_is_left(columns: list[list[float]]) -> None:
    logs = np.array(columns).T
    steps = list(itertools.islice(until_near_enough(logs), 1000))
    # EM creeps where two models are nearly as good, so a thousand rounds come near, not always near enough.
    assert steps[-1].gain_left < 1e-3
    for before, after in itertools.pairwise(steps):
        assert after.score >= before.score - 1e-12 * (1 + abs(before.score))
        assert after.weights.sum() == pytest.approx(1, abs=1e-14)
    rng = np.random.default_rng(0)
    for weights in rng.dirichlet(np.full(len(logs), 0.5), size=200):
        with np.errstate(divide="ignore"):
            score = np.logaddexp.reduce(logs + np.log(weights)[:, None]).mean()
        for step in (steps[0], steps[-1]):
            assert score <= step.score + step.gain_left + 1e-12 * (1 + abs(step.score))


def test_em_ends_at_the_best_weights() -> None:
    """Against a grid of all weights in steps of 1/1000."""
    random = np.random.default_rng(1)
    logs = np.log(random.random((2, 500)) ** [[1.0], [1.5]])
    *_, last = until_near_enough(logs)
    grid = [
        np.logaddexp(logs[0] + math.log(share), logs[1] + math.log1p(-share)).mean()
        for share in np.arange(1, 1000) / 1000
    ]
    assert last.score >= max(grid) - NEAR_ENOUGH
    assert last.weights[0] == pytest.approx((np.argmax(grid) + 1) / 1000, abs=5e-3)


def test_models_that_hardly_differ_are_told_apart_in_few_steps() -> None:
    """Plain EM needs 28,315 rounds here; stretched it takes 25."""
    random = np.random.default_rng(2)
    logs = random.normal(-5, 2, 2000) + random.normal(0, 0.01, (2, 2000))
    assert len(list(until_near_enough(logs))) < 50


def test_weights_start_equal_and_of_equal_models_stay_so() -> None:
    first = next(weight_steps(np.tile(np.log([[0.5, 0.25]]), (3, 1))))
    assert first.weights.tolist() == [1 / 3] * 3
    assert first.gain_left == pytest.approx(0, abs=1e-15)


def test_tokens_that_no_model_thinks_possible_do_not_count() -> None:
    possible = np.log([[0.5, 0.1, 0.3], [0.2, 0.6, 0.3]])
    with_more = np.concatenate((possible, [[-np.inf], [-np.inf]]), axis=1)
    for one, other in itertools.islice(zip(weight_steps(possible), weight_steps(with_more), strict=False), 5):
        assert_array_equal(one.weights, other.weights)


def test_weights_cannot_be_learnt_from_nothing() -> None:
    mixture = interpolate([unigram_of([A]), unigram_of([B])])
    with pytest.raises(InputError, match="empty"):
        mixture.learn_weights(Corpus.from_ids([], VOCAB))
    with pytest.raises(InputError, match="no model"):
        next(weight_steps(np.full((2, 3), -np.inf)))
    for log in (math.nan, math.inf):
        with pytest.raises(ForewordError, match="not a number"):
            next(weight_steps(np.array([[log], [-1.0]])))


def test_models_of_different_vocabularies_are_refused_as_soon_as_they_are_known() -> None:
    other = Vocab(["<unk>", "</s>", "x", "y", "z"])
    one, another = unigram_of([A]), UnigramLM().fit(Corpus.from_ids([[2]], other))
    with pytest.raises(InputError, match="vocabulary"):
        interpolate([one, another])
    late = UnigramLM()
    mixture = interpolate([one, late])
    late.fit(Corpus.from_ids([[2]], other))
    with pytest.raises(InputError, match="vocabulary"):
        mixture.start()


@pytest.mark.parametrize("weights", [[0.5], [0.5, 0.6], [1.5, -0.5], [math.nan, 1.0], [0.2, 0.3, 0.5]])
def test_weights_that_make_no_mixture_are_refused(weights: list[float]) -> None:
    with pytest.raises(SettingError, match="weights"):
        interpolate([UnigramLM(), UnigramLM()], weights)


def test_a_mixture_of_nothing_is_refused() -> None:
    with pytest.raises(SettingError, match="at least one"):
        interpolate([])


def test_learnt_weights_are_saved_and_so_are_models_within_models(tmp_path: Path) -> None:
    inner = interpolate([UnigramLM(), cached(NgramLM(2), weight=0.3, size=2)])
    mixture = interpolate([inner, NgramLM(3)], [0.25, 0.75]).fit(TRAIN, valid=HELD_OUT)
    save(mixture, tmp_path / "mixture")
    loaded = load(tmp_path / "mixture")
    assert isinstance(loaded, Mixture)
    assert_array_equal(loaded.weights_, mixture.weights_)
    assert_array_equal(loaded.weights, mixture.weights)
    assert_array_equal(loaded.logprobs(HELD_OUT), mixture.logprobs(HELD_OUT))
    assert loaded.models[1].vocab is loaded.models[0].vocab


def test_a_mixture_says_what_it_is_made_of() -> None:
    assert repr(interpolate([UnigramLM(), cached(UnigramLM())])) == (
        "Mixture([UnigramLM(add=1.0), Cached(UnigramLM(add=1.0), weight=0.1, size=500)], [0.5, 0.5])"
    )


# A model and the document's own words


def test_a_cache_adds_the_share_of_each_word_among_the_last() -> None:
    """After a b a, of which two words are kept, a and b have half of the cache each; c has none of it."""
    model = UnigramLM().fit(TRAIN)
    remembering = cached(model, weight=0.2, size=2)
    state = remembering.start()
    for id in (A, B, A):
        state = remembering.advance(state, np.array([id]))
    own = np.exp(model.next_logprobs(model.start())[0])
    expected = 0.8 * own + 0.2 * np.array([0, 0, 0.5, 0.5, 0])
    assert_allclose(np.exp(remembering.next_logprobs(state)[0]), expected, rtol=1e-14)


def test_at_first_there_is_the_model_alone() -> None:
    model = UnigramLM().fit(TRAIN)
    remembering = cached(model, weight=0.5)
    assert_array_equal(remembering.next_logprobs(remembering.start(2)), model.next_logprobs(model.start(2)))
    firsts = HELD_OUT.offsets[:-1]
    assert_array_equal(remembering.logprobs(HELD_OUT)[firsts], model.logprobs(HELD_OUT)[firsts])


def test_a_cache_without_weight_is_the_model() -> None:
    model = NgramLM(2).fit(TRAIN)
    assert_array_equal(cached(model, weight=0).logprobs(HELD_OUT), model.logprobs(HELD_OUT))


def test_a_cache_makes_repeated_words_likelier_and_others_less_likely() -> None:
    model = UnigramLM().fit(TRAIN)
    text = Corpus.from_ids([[C, C, C, A]], VOCAB)
    changes = cached(model).logprobs(text) - model.logprobs(text)
    assert np.sign(changes).tolist() == [0, 1, 1, -1, -1]


@settings(max_examples=100, deadline=None)
@given(documents=documents, size=st.integers(1, 9))
def test_recent_words_are_counted_as_if_one_by_one(documents: list[list[int]], size: int) -> None:
    corpus = Corpus.from_ids(documents, VOCAB)
    expected = []
    for document in corpus.documents():
        recent: deque[int] = deque(maxlen=size)
        for id in document.tolist():
            expected.append((recent.count(id), len(recent)))
            recent.append(id)
    assert list(zip(*(each.tolist() for each in recent_counts(corpus, size)), strict=True)) == expected


def test_a_cache_may_be_larger_than_anything_it_reads() -> None:
    counts, words = recent_counts(Corpus.from_ids([[A, A, B, A]], VOCAB), 10**30)
    assert counts.tolist() == [0, 1, 0, 2, 0]
    assert words.tolist() == [0, 1, 2, 3, 4]


@settings(max_examples=30, deadline=None)
@given(documents=documents, size=st.integers(1, 5), weight=st.sampled_from([0.0, 0.1, 0.9]))
def test_the_fast_road_is_the_slow_one(documents: list[list[int]], size: int, weight: float) -> None:
    """Over maximum likelihood too, where a word may have no probability but what the cache gives it."""
    corpus = Corpus.from_ids(documents, VOCAB)
    for model in (unigram_of([A, A, B]), UnigramLM().fit(TRAIN)):
        remembering = cached(model, weight=weight, size=size)
        stepped = []
        for document in corpus.documents():
            state = remembering.start()
            for id in document.tolist():
                stepped.append(remembering.next_logprobs(state)[0, id])
                state = remembering.advance(state, np.array([id]))
        assert_allclose(remembering.logprobs(corpus), stepped, rtol=1e-13)


def test_what_is_drawn_and_searched_hears_the_cache() -> None:
    model = UnigramLM().fit(TRAIN)
    echo = cached(model, weight=0.99, size=1)
    assert list(generate(echo, [C], temperature=0, max_tokens=5)) == [C] * 5
    assert beam_search(echo, width=1, max_tokens=5, prompt=[C])[0][0].ids == (C,) * 5


@pytest.mark.parametrize("wrong", [{"weight": -0.1}, {"weight": 1.0}, {"weight": math.nan}, {"size": 0}])
def test_settings_of_a_cache_are_checked(wrong: dict[str, Any]) -> None:
    with pytest.raises(SettingError, match=next(iter(wrong))):
        cached(UnigramLM(), **wrong)


def test_a_saved_cache_comes_back(tmp_path: Path) -> None:
    remembering = cached(UnigramLM().fit(TRAIN), weight=0.25, size=7)
    save(remembering, tmp_path / "cached")
    loaded = load(tmp_path / "cached")
    assert isinstance(loaded, Cached)
    assert (loaded.weight, loaded.size) == (0.25, 7)
    assert_array_equal(loaded.logprobs(HELD_OUT), remembering.logprobs(HELD_OUT))


class NotSaveable:
    """A language model that no folder can hold."""

    def __init__(self, model: LanguageModel[Any]) -> None:
        self.model = model

    def __getattr__(self, name: str) -> Any:
        if name in ("to_parts", "from_parts"):
            raise AttributeError(name)
        return getattr(self.model, name)


@pytest.mark.parametrize("combine", [lambda model: interpolate([model]), cached])
def test_what_cannot_be_saved_says_so(combine: Any, tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="NotSaveable cannot be saved"):
        save(combine(NotSaveable(UnigramLM().fit(TRAIN))), tmp_path / "model")


@pytest.mark.parametrize(
    ("settings_", "told"),
    [
        ({"weights": [1.0]}, "a list of weights"),
        ({"weights": [1.0], "learnt_weights": ["1"]}, "a number"),
        ({"weights": [1.0], "learnt_weights": [0.5]}, "sum to one"),
        ({"weights": [0.5, 0.5], "learnt_weights": [0.5, 0.5]}, "model-1"),
        ({"weights": [], "learnt_weights": []}, "at least one"),
    ],
)
def test_settings_of_a_saved_mixture_are_not_trusted(settings_: dict[str, Any], told: str) -> None:
    parts = interpolate([UnigramLM()]).fit(TRAIN).to_parts()
    parts.settings = {"model-0": parts.settings["model-0"], **settings_}
    with pytest.raises((SettingError, ValueError), match=told):
        Mixture.from_parts(parts)


@pytest.mark.parametrize("changed", [{"size": 2.0}, {"size": True}, {"weight": None}, {"weight": 2.0}])
def test_settings_of_a_saved_cache_are_not_trusted(changed: dict[str, Any]) -> None:
    parts = cached(UnigramLM()).fit(TRAIN).to_parts()
    parts.settings.update(changed)
    with pytest.raises((SettingError, ValueError), match=next(iter(changed))):
        Cached.from_parts(parts)


def test_only_language_models_are_mixed() -> None:
    parts = interpolate([UnigramLM()]).fit(TRAIN).to_parts()
    parts.settings["model-0"] = {"kind": "word", "settings": WordTokenizer().fit(["a"]).to_parts().settings}
    with pytest.raises(ValueError, match="not a language model"):
        Mixture.from_parts(parts)


# On real text


@pytest.fixture(scope="module")
def ptb() -> dict[str, Corpus]:
    tokenizer = WordTokenizer().fit(read_documents(dataset("ptb").path("train", download=False)))
    return {
        split: Corpus.from_texts(read_documents(dataset("ptb").path(split, download=False)), tokenizer)
        for split in ("train", "valid", "test")
    }


class TestPennTreebank:
    pytestmark = pytest.mark.data

    def test_tuned_weights_are_no_worse_than_the_best_model(self, ptb: dict[str, Corpus]) -> None:
        """Measured: unigram 684.7, 3-gram 157.77, 5-gram 148.01, together 147.95; on the test set 141.19 and 141.06."""
        mixture = interpolate([UnigramLM(), NgramLM(3), NgramLM(5)]).fit(ptb["train"], valid=ptb["valid"])
        for split in ("valid", "test"):
            alone = [perplexity(model, ptb[split]) for model in mixture.models]
            assert perplexity(mixture, ptb[split]) < min(alone)
        assert perplexity(mixture, ptb["valid"]) == pytest.approx(147.949, abs=0.01)

    def test_a_cache_helps_where_the_document_is_long(self, ptb: dict[str, Corpus]) -> None:
        """The test set read as one document: a 5-gram's 141.06 falls to 127.76."""
        train, test = as_one_document(ptb["train"]), as_one_document(ptb["test"])
        model = NgramLM(5).fit(train)
        assert perplexity(model, test) == pytest.approx(141.06, abs=0.1)
        assert perplexity(cached(model), test) == pytest.approx(127.76, abs=0.1)


def as_one_document(corpus: Corpus) -> Corpus:
    return Corpus(corpus.ids, np.array([0, len(corpus.ids)]), np.array([0, corpus.text_bytes]), corpus.vocab)
