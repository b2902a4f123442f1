from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from foreword.arrays import Ids, Logs
from foreword.decode import (
    Hypothesis,
    among_largest,
    beam_search,
    choose,
    generate,
    gnmt_coverage_penalty,
    gnmt_length_penalty,
    gnmt_score,
    in_nucleus,
    invert_cumulative,
    nucleus_size,
    pieces,
)
from foreword.errors import ForewordError, SettingError
from foreword.ngram.unigram import UnigramLM
from foreword.pipeline.language import TextLM
from foreword.tokens.characters import ByteTokenizer, CharacterTokenizer
from foreword.tokens.vocab import Vocab
from foreword.tokens.words import WordTokenizer

VOCAB = Vocab(["<unk>", "</s>", "a", "b", "c"])
UNKNOWN, END, A, B, C = range(5)


class Chain:
    """A table of what follows what; the state is the last id of each text, −1 at the start."""

    vocab = VOCAB

    def __init__(self, rows: dict[int, dict[int, float]]) -> None:
        self.rows = rows

    def start(self, n: int = 1) -> NDArray[np.int64]:
        return np.full(n, -1)

    def next_logprobs(self, state: NDArray[np.int64]) -> Logs:
        logs = np.full((len(state), len(VOCAB)), -np.inf)
        for row, last in enumerate(state.tolist()):
            for id, probability in self.rows[last].items():
                logs[row, id] = math.log(probability)
        return logs

    def advance(self, state: NDArray[np.int64], ids: Ids) -> NDArray[np.int64]:
        return np.array(ids, np.int64)


CERTAIN = Chain({-1: {A: 1}, A: {B: 1}, B: {C: 1}, C: {END: 1}})
ENDLESS = Chain({-1: {A: 0.5, B: 0.5}, A: {A: 0.9, C: 0.1}, B: {B: 1}, C: {A: 1}})


def random(seed: int = 0) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(seed))


def test_the_end_stops_it_and_is_not_told() -> None:
    assert list(generate(CERTAIN)) == [A, B, C]


def test_the_prompt_is_read_and_not_repeated() -> None:
    assert list(generate(CERTAIN, [A, B])) == [C]


@pytest.mark.parametrize("length", [0, 1, 2])
def test_no_more_than_max_tokens(length: int) -> None:
    assert len(list(generate(CERTAIN, max_tokens=length))) == length


def test_the_same_seed_gives_the_same_text_and_another_another() -> None:
    assert list(generate(ENDLESS, seed=5)) == list(generate(ENDLESS, seed=5))
    assert len({tuple(generate(ENDLESS, seed=seed)) for seed in range(10)}) > 1


def test_it_is_a_stream() -> None:
    stream = generate(ENDLESS, [B], max_tokens=10**9)
    assert isinstance(stream, Iterator)
    assert [next(stream) for _ in range(3)] == [B, B, B]


def test_greedy_takes_the_likeliest_and_of_equals_the_lowest_id() -> None:
    assert list(generate(ENDLESS, temperature=0, max_tokens=4)) == [A, A, A, A]
    assert choose(np.log([0.1, 0.3, 0.3, 0.3, 0.0001]), random(), temperature=0) == 1


def test_top_one_is_greedy() -> None:
    assert list(generate(ENDLESS, top_k=1, max_tokens=4, seed=1)) == [A, A, A, A]


def test_sampling_follows_the_probabilities() -> None:
    logs = np.log([0.5, 0.2, 0.2, 0.1])
    generator = random()
    drawn = Counter(choose(logs, generator) for _ in range(20_000))
    for id, probability in enumerate([0.5, 0.2, 0.2, 0.1]):
        deviation = math.sqrt(20_000 * probability * (1 - probability))
        assert abs(drawn[id] - 20_000 * probability) < 4 * deviation


def test_temperature_raises_probabilities_to_its_inverse() -> None:
    generator = random()
    drawn = Counter(choose(np.log([0.8, 0.2]), generator, temperature=0.5) for _ in range(20_000))
    expected = 0.8**2 / (0.8**2 + 0.2**2)
    assert abs(drawn[0] / 20_000 - expected) < 4 * math.sqrt(expected * (1 - expected) / 20_000)


def test_top_k_draws_from_the_k_likeliest_only() -> None:
    generator = random()
    drawn = {choose(np.log([0.1, 0.4, 0.2, 0.3]), generator, temperature=10.0, top_k=2) for _ in range(500)}
    assert drawn == {1, 3}


def test_more_than_there_is_may_be_kept() -> None:
    drawn = {choose(np.log([0.5, 0.5]), random(seed), top_k=100) for seed in range(20)}
    assert drawn == {0, 1}


def test_of_equals_the_lower_ids_are_kept() -> None:
    kept = among_largest(np.array([-1.0, -2.0, -1.0, -2.0, -2.0]), 3)
    assert kept.tolist() == [True, True, True, False, False]


@pytest.mark.parametrize(("share", "size"), [(0.1, 1), (0.5, 1), (0.6, 2), (0.75, 2), (0.8, 3), (0.999, 4)])
def test_the_nucleus_is_the_fewest_tokens_that_hold_the_share(share: float, size: int) -> None:
    weights = 7 * np.array([0.125, 0.25, 0.125, 0.5, 0.0])
    assert nucleus_size(weights, share) == size


def test_top_p_draws_from_the_nucleus_only_and_there_in_proportion() -> None:
    """0.4 and 0.3 hold 0.6 of the probability, so the two are drawn 4 : 3."""
    generator = random()
    drawn = Counter(choose(np.log([0.1, 0.4, 0.2, 0.3]), generator, top_p=0.6) for _ in range(20_000))
    assert drawn.keys() == {1, 3}
    assert abs(drawn[1] / 20_000 - 4 / 7) < 4 * math.sqrt(4 / 7 * 3 / 7 / 20_000)


def test_a_text_model_passes_top_p_on() -> None:
    model = TextLM(WordTokenizer(), UnigramLM()).fit(["the the the the cat"])
    for seed in range(5):
        assert model.generate(top_p=0.01, max_tokens=3, seed=seed) == "the the the"


def test_the_nucleus_is_taken_of_what_temperature_and_top_k_leave() -> None:
    logs = np.log([0.4, 0.3, 0.2, 0.1])
    # Of two, 0.4 has 4/7; all four as they are need three for as much as 0.75; heated evenly they need all four.
    cases = [({"top_k": 2, "top_p": 0.57}, {0}), ({"top_p": 0.75}, {0, 1, 2}), ({"temperature": 1e9, "top_p": 0.75}, 3)]
    for settings_, expected in cases:
        generator = random()
        drawn = {choose(logs, generator, **settings_) for _ in range(300)}  # type: ignore[arg-type]
        assert (len(drawn) if isinstance(expected, int) else drawn) == expected


def test_a_tiny_top_p_is_greedy_and_one_keeps_everything() -> None:
    assert list(generate(ENDLESS, top_p=1e-9, max_tokens=4, seed=1)) == [A, A, A, A]
    assert list(generate(ENDLESS, top_p=1.0, seed=5)) == list(generate(ENDLESS, seed=5))
    assert {choose(np.log([0.5, 0.5 - 1e-9, 1e-9]), random(), top_p=1.0)} <= {0, 1, 2}


def test_impossible_tokens_are_never_drawn() -> None:
    logs = np.array([-np.inf, math.log(0.5), -np.inf, math.log(0.5), -np.inf])
    generator = random()
    for temperature in (1e-320, 1.0, 1e6):
        assert {choose(logs, generator, temperature=temperature, top_k=4, top_p=0.999) for _ in range(300)} <= {1, 3}


@pytest.mark.parametrize(
    ("uniform", "id"),
    [(0.0, 1), (0.2499, 1), (0.25, 2), (0.9999, 4), (math.nextafter(1, 0), 4), (1.0, 4)],
)
def test_points_fall_under_the_token_whose_stretch_they_are_in(uniform: float, id: int) -> None:
    weights = np.array([0.0, 0.25, 0.5, 0.0, 0.25, 0.0])
    assert invert_cumulative(weights, uniform) == id


def skewed(seed: int, size: int) -> NDArray[np.float64]:
    """Weights as a vocabulary has them, a few large and most small, with zeros and many equals; the largest is one."""
    weights = random(seed).pareto(0.8, size).round(2) ** random(seed).uniform(0.5, 3)
    weights[random(seed).integers(size)] += 1
    scaled: NDArray[np.float64] = weights / weights.max()
    return scaled


@pytest.mark.parametrize("size", [1, 3, 255, 256, 257, 5000])
@pytest.mark.parametrize("share", [1e-9, 0.1, 0.5, 0.9, 0.999, 1 - 1e-15])
def test_the_nucleus_found_by_bins_is_the_one_found_by_sorting(size: int, share: float) -> None:
    for seed in range(5):
        weights = skewed(seed, size)
        plain = among_largest(weights, nucleus_size(weights, share))
        found = in_nucleus(weights, share)
        if not np.array_equal(found, plain):  # only where the sum meets the share to the last digits
            edge = np.sort(weights)[::-1].cumsum()[min(found.sum(), plain.sum()) - 1]
            assert edge == pytest.approx(share * weights.sum(), rel=1e-13)
        held = weights[found]
        assert held.sum() >= share * weights.sum() * (1 - 1e-13)
        assert held.sum() - held.min() <= share * weights.sum() * (1 + 1e-13)


@settings(max_examples=200, deadline=None)
@given(
    weights=st.lists(st.integers(0, 40), min_size=1, max_size=600).filter(any),
    share=st.sampled_from([1 / 64, 0.25, 0.5, 0.75, 63 / 64]),
)
def test_whole_numbers_leave_rounding_no_part_in_it(weights: list[int], share: float) -> None:
    values = np.array(weights, np.float64)
    plain = among_largest(values, nucleus_size(values, share))
    assert in_nucleus(values, share).tolist() == plain.tolist()


@settings(max_examples=200, deadline=None)
@given(values=st.lists(st.integers(-30, 30), min_size=1, max_size=400), k=st.integers(1, 12))
def test_the_largest_of_many_are_those_of_a_stable_sort(values: list[int], k: int) -> None:
    k = min(k, len(values))
    expected = sorted(range(len(values)), key=lambda id: (-values[id], id))[:k]
    assert np.flatnonzero(among_largest(np.array(values, np.float64), k)).tolist() == sorted(expected)


def test_impossible_values_may_be_among_the_largest_where_there_is_nothing_else() -> None:
    logs = np.full(200, -np.inf)
    logs[[7, 150]] = 0.0
    assert np.flatnonzero(among_largest(logs, 3)).tolist() == [0, 7, 150]


@pytest.mark.parametrize("size", [1, 255, 256, 257, 512, 5000])
def test_points_fall_by_stretches_as_they_do_one_by_one(size: int) -> None:
    weights = skewed(size, size)
    edges = weights.cumsum()
    points = random(1).random(2000)
    expected = edges.searchsorted(points * edges[-1], side="right")
    assert [invert_cumulative(weights, float(point)) for point in points] == expected.tolist()
    for point in (0.0, math.nextafter(1, 0), 1.0):
        assert weights[invert_cumulative(weights, point)] > 0


@pytest.mark.parametrize("log", [-np.inf, np.nan])
def test_a_model_that_knows_no_next_token_is_told_so(log: float) -> None:
    with pytest.raises(ForewordError, match="no next token"):
        choose(np.full(3, log), random())


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("max_tokens", -1),
        ("temperature", -0.1),
        ("temperature", math.nan),
        ("temperature", math.inf),
        ("top_k", 0),
        ("top_p", 0.0),
        ("top_p", 1.01),
        ("top_p", math.nan),
        ("seed", -1),
    ],
)
def test_settings_are_checked_at_the_call_and_not_at_the_first_token(setting: str, value: float) -> None:
    with pytest.raises(SettingError, match=f"{setting} is"):
        generate(CERTAIN, **{setting: value})  # type: ignore[arg-type]


@pytest.mark.parametrize("id", [-1, 5])
def test_a_prompt_outside_the_vocabulary_is_refused_at_the_call(id: int) -> None:
    with pytest.raises(SettingError, match=f"id {id}"):
        generate(CERTAIN, [A, id])


class Tables:
    """Explicit probabilities, tables[step, last id], the last step's from then on; the state is (step, last id)."""

    def __init__(self, tables: NDArray[np.float64], starts: int = 1) -> None:
        self.logs = np.full_like(tables, -np.inf)
        np.log(tables, out=self.logs, where=tables > 0)
        self.vocab = Vocab(["<unk>", "</s>", *"abcdef"[: tables.shape[2] - 2]])
        self.starts = starts

    def start(self, n: int = 1) -> NDArray[np.int64]:
        """Like a translator of several sources, it may begin with more rows than asked; each begins as another id."""
        return np.array([(0, place % len(self.vocab)) for place in range(max(n, self.starts))])

    def next_logprobs(self, state: NDArray[np.int64]) -> Logs:
        return self.logs[state[:, 0], state[:, 1]]

    def advance(self, state: NDArray[np.int64], ids: Ids) -> NDArray[np.int64]:
        return np.column_stack((np.minimum(state[:, 0] + 1, len(self.logs) - 1), ids))


@st.composite
def tables(draw: st.DrawFn, starts: int = 1) -> Tables:
    """Of small whole numbers, so that there are zeros and ties."""
    size, steps = draw(st.integers(2, 4)), draw(st.integers(1, 3))
    row = st.lists(st.integers(0, 4), min_size=size, max_size=size).filter(any)
    rows = draw(st.lists(row, min_size=size * steps, max_size=size * steps))
    weights = np.array(rows, np.float64).reshape(steps, size, size)
    return Tables(weights / weights.sum(axis=2, keepdims=True), starts)


def every_text(model: Tables, start: int, max_tokens: int, penalty: float) -> Iterator[Hypothesis]:
    """All that has a probability: what ends within ``max_tokens`` tokens, and what has that many and does not end."""
    others = [id for id in range(len(model.vocab)) if id != END]
    for length in range(max_tokens + 1):
        for ids in itertools.product(others, repeat=length):
            finished = length < max_tokens
            state, logprob = model.start()[start : start + 1], 0.0
            for id in (*ids, END) if finished else ids:
                logprob += float(model.next_logprobs(state)[0, id])
                state = model.advance(state, np.array([id]))
            if logprob > -np.inf:
                tokens = max(length + finished, 1)
                yield Hypothesis(ids, logprob, logprob / tokens**penalty, finished)


def by_ids(texts: Iterable[Hypothesis]) -> dict[tuple[int, ...], Any]:
    return {text.ids: (pytest.approx(text.logprob), pytest.approx(text.score), text.finished) for text in texts}


@settings(max_examples=100, deadline=None)
@given(model=tables(starts=2), max_tokens=st.integers(0, 4), penalty=st.sampled_from([0.0, 0.6, 1.0, 2.0]))
def test_a_beam_wide_enough_is_exhaustive_search(model: Tables, max_tokens: int, penalty: float) -> None:
    """3^4 texts at most are written at once; with n_best so large every one there is comes back."""
    found = beam_search(model, width=400, max_tokens=max_tokens, length_penalty=penalty, n_best=400)
    assert len(found) == 2
    for start, texts in enumerate(found):
        expected = list(every_text(model, start, max_tokens, penalty))
        assert by_ids(texts) == by_ids(expected)
        ranks = [(text.finished, text.score) for text in texts]
        assert ranks == sorted(ranks, reverse=True)
        best = beam_search(model, width=400, max_tokens=max_tokens, length_penalty=penalty)[start]
        assert best == texts[:1]  # stopping early, once the best is sure, changes nothing


@settings(max_examples=200, deadline=None)
@given(model=tables(), max_tokens=st.integers(0, 6), penalty=st.sampled_from([0.0, 1.0]))
def test_q05_a_beam_of_one_is_greedy(model: Tables, max_tokens: int, penalty: float) -> None:
    """Q05: argmax at each step, the lowest id among equals, and the end where that is the likeliest."""
    ((text,),) = beam_search(model, width=1, max_tokens=max_tokens, length_penalty=penalty)
    assert list(text.ids) == list(generate(model, temperature=0, max_tokens=max_tokens))
    assert text.finished == (len(text.ids) < max_tokens)


def test_q05_a_beam_of_one_is_greedy_even_where_rounding_hides_the_difference() -> None:
    """Q05: after an unlikely text the two sums are one and the same number, but c is likelier by a hair."""
    almost = 0.5 - 1e-16
    chain = Chain({-1: {A: 1e-30}, A: {B: almost, C: 0.5}, B: {END: 1}, C: {END: 1}})
    assert math.log(1e-30) + math.log(almost) == math.log(1e-30) + math.log(0.5)
    assert math.log(almost) < math.log(0.5)
    ((text,),) = beam_search(chain, width=1)
    assert list(text.ids) == list(generate(chain, temperature=0)) == [A, C]


def test_beams_of_many_rows_are_as_if_alone() -> None:
    model = Tables(random(3).dirichlet(np.full(5, 0.5), size=(4, 5)), starts=4)
    together = beam_search(model, width=3, max_tokens=6, n_best=3)
    for start, texts in enumerate(together):
        alone = Tables(np.exp(model.logs))
        alone.start = lambda n=1, start=start: np.array([(0, start)] * n)  # type: ignore[method-assign, misc]
        assert beam_search(alone, width=3, max_tokens=6, n_best=3) == [texts]


def test_a_hypothesis_says_what_it_is() -> None:
    """B has 0.4 and then surely C and the end: three tokens."""
    chain = Chain({-1: {A: 0.6, B: 0.4}, A: {A: 0.5, B: 0.25, END: 0.25}, B: {C: 1}, C: {END: 1}})
    ((text,),) = beam_search(chain, width=3)
    assert text == Hypothesis((B, C), math.log(0.4), math.log(0.4) * 3.0**-1.0, finished=True)
    ((text,),) = beam_search(chain, width=3, length_penalty=0)
    assert (text.ids, text.score) == ((B, C), math.log(0.4))
    ((text,),) = beam_search(chain, width=2, prompt=[B])
    assert text == Hypothesis((C,), 0.0, 0.0, finished=True)


def test_finished_texts_do_not_take_the_place_of_those_that_go_on() -> None:
    """The likeliest continuation ends at once, and still two others are followed, to the better of the two."""
    chain = Chain({-1: {END: 0.5, A: 0.3, B: 0.2}, A: {A: 0.5, B: 0.5}, B: {C: 1}, C: {END: 1}})
    ((first, second),) = beam_search(chain, width=2, n_best=2, max_tokens=3)
    assert [first.ids, second.ids] == [(B, C), ()]
    assert first.finished
    assert second.finished


def test_what_was_cut_off_comes_after_what_is_finished() -> None:
    chain = Chain({-1: {A: 0.9, B: 0.1}, A: {A: 1}, B: {END: 1}})
    ((first, second),) = beam_search(chain, width=2, n_best=2, max_tokens=5)
    assert (first.ids, first.finished) == ((B,), True)
    assert (second.ids, second.finished) == ((A,) * 5, False)
    assert second.score > first.score


def test_fewer_than_asked_where_there_are_no_more() -> None:
    assert beam_search(CERTAIN, width=4, n_best=4) == [[Hypothesis((A, B, C), 0.0, 0.0, finished=True)]]


def test_nothing_may_be_searched_for() -> None:
    assert beam_search(CERTAIN, max_tokens=0) == [[Hypothesis((), 0.0, 0.0, finished=False)]]


def test_a_model_that_begins_with_no_rows_gives_no_lists() -> None:
    class Nobody(Chain):
        def start(self, n: int = 1) -> NDArray[np.int64]:
            return np.empty(0, np.int64)

    assert beam_search(Nobody({})) == []


def test_the_same_search_gives_the_same_texts() -> None:
    model = Tables(random(1).dirichlet(np.ones(6), size=(3, 6)))
    assert beam_search(model, width=4, n_best=4) == beam_search(model, width=4, n_best=4)


def test_of_equally_likely_texts_the_lower_ids_come_first() -> None:
    even = Tables(np.full((1, 4, 4), 0.25))
    ((first, second, third),) = beam_search(even, width=3, n_best=3, max_tokens=2, length_penalty=0)
    assert (first.ids, second.ids, third.ids) == ((), (0,), (0, 0))


def test_a_search_is_over_when_nothing_can_overtake() -> None:
    """Without normalisation a text that goes on only loses, so one step is enough here, and the model asked no more."""

    class Counted(Chain):
        steps = 0

        def advance(self, state: NDArray[np.int64], ids: Ids) -> NDArray[np.int64]:
            self.steps += 1
            return super().advance(state, ids)

    chain = Counted({-1: {END: 0.9, A: 0.1}, A: {A: 1}})
    assert beam_search(chain, width=5, length_penalty=0)[0][0].ids == ()
    assert chain.steps == 0


@pytest.mark.parametrize("log", [-np.inf, np.nan])
def test_a_search_that_finds_no_next_token_says_so(log: float) -> None:
    class Broken(Chain):
        def next_logprobs(self, state: NDArray[np.int64]) -> Logs:
            return np.full((len(state), len(VOCAB)), log)

    with pytest.raises(ForewordError, match="no next token"):
        beam_search(Broken({}))


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("width", 0),
        ("n_best", 0),
        ("n_best", 6),
        ("max_tokens", -1),
        ("length_penalty", -0.1),
        ("length_penalty", math.nan),
        ("length_penalty", math.inf),
    ],
)
def test_settings_of_a_search_are_checked(setting: str, value: float) -> None:
    with pytest.raises(SettingError, match=f"{setting} is"):
        beam_search(CERTAIN, **{setting: value})  # type: ignore[arg-type]


def test_the_prompt_of_a_search_is_checked() -> None:
    with pytest.raises(SettingError, match="id 5"):
        beam_search(CERTAIN, prompt=[A, 5])


def test_an_enormous_length_penalty_is_no_error() -> None:
    assert beam_search(CERTAIN, length_penalty=1e6)[0][0].ids == (A, B, C)


def spelled(
    tokenizer: WordTokenizer | CharacterTokenizer | ByteTokenizer, ids: Iterable[int], after: list[int]
) -> list[str]:
    return list(pieces(tokenizer, ids, after=after))


def test_words_come_with_the_space_before_them() -> None:
    tokenizer = WordTokenizer().fit(["the cat sat"])
    ids = tokenizer.encode("the cat sat").tolist()
    assert spelled(tokenizer, ids, []) == ["the", " cat", " sat"]
    assert spelled(tokenizer, ids[1:], ids[:1]) == [" cat", " sat"]
    assert spelled(tokenizer, [], ids) == []


def test_characters_that_are_several_tokens_come_whole() -> None:
    tokenizer = ByteTokenizer()
    ids = tokenizer.encode("é😀a").tolist()
    assert spelled(tokenizer, ids, []) == ["", "é", "", "", "", "😀", "a"]


def test_an_unfinished_character_comes_last() -> None:
    tokenizer = ByteTokenizer()
    ids = tokenizer.encode("a😀").tolist()[:-1]
    assert spelled(tokenizer, ids, []) == ["a", "", "", "", "\ufffd"]


@pytest.mark.parametrize("text", ["plain", "größer 数学 😀 é", "\ufffd\ufffd real ones \ufffd", "👩‍👩‍👧"])
@pytest.mark.parametrize("read", [0, 1, 5])
def test_pieces_join_to_the_text(text: str, read: int) -> None:
    tokenizer = ByteTokenizer()
    before, ids = tokenizer.encode("prompt: ").tolist()[:read], tokenizer.encode(text).tolist()
    assert "".join(pieces(tokenizer, ids, after=before)) == text


def test_q07_gnmt_length_penalty_by_hand() -> None:
    """Q07: ((5 + |Y|) / 6)^α; one word costs nothing, and of two texts as likely a word the longer one wins."""
    assert gnmt_length_penalty(1, 0.7) == 1
    assert gnmt_length_penalty(7, 1) == 2
    assert gnmt_length_penalty(19, 0.5) == 2
    assert gnmt_length_penalty(50, 0) == 1
    assert -10 / gnmt_length_penalty(10, 1) > -9 / gnmt_length_penalty(8, 1)
    for length, alpha in ((-1, 0.2), (5, -0.2), (5, math.nan)):
        with pytest.raises(SettingError, match="must not be negative"):
            gnmt_length_penalty(length, alpha)


def test_q08_gnmt_coverage_penalty_by_hand() -> None:
    """Q08: β Σ log min(coverage, 1): words covered to 3/4, 1/4 and twice over; and a word that was never looked at."""
    weights = np.array([[0.5, 0.0, 0.5], [0.25, 0.25, 0.5], [0.0, 0.0, 1.0]])
    by_hand = 0.2 * (math.log(0.75) + math.log(0.25) + 0)
    assert gnmt_coverage_penalty(weights, 0.2) == pytest.approx(by_hand)
    assert gnmt_coverage_penalty(np.eye(3), 0.2) == 0
    assert gnmt_coverage_penalty(np.array([[1.0, 0.0]]), 0.2) == -math.inf
    assert gnmt_coverage_penalty(np.array([[1.0, 0.0]]), 0) == 0
    assert gnmt_score(-6.0, weights, alpha=1, beta=0.2) == pytest.approx(-6 / (8 / 6) + by_hand)
    with pytest.raises(SettingError, match="expected a matrix"):
        gnmt_coverage_penalty(np.ones(3), 0.2)
    with pytest.raises(SettingError, match="beta=-1"):
        gnmt_coverage_penalty(weights, -1)
