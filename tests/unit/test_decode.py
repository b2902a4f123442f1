from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator

import numpy as np
import pytest
from foreword.tokens.characters import ByteTokenizer, CharacterTokenizer
from foreword.tokens.words import WordTokenizer
from numpy.typing import NDArray

from foreword.decode import choose, generate, invert_cumulative, keep_largest, pieces
from foreword.errors import ForewordError, SettingError
from foreword.protocols import Ids, Logs
from foreword.tokens.vocab import Vocab

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
    assert choose(np.log([0.1, 0.3, 0.3, 0.3, 0.0001]), 0, None, random()) == 1


def test_top_one_is_greedy() -> None:
    assert list(generate(ENDLESS, top_k=1, max_tokens=4, seed=1)) == [A, A, A, A]


def test_sampling_follows_the_probabilities() -> None:
    logs = np.log([0.5, 0.2, 0.2, 0.1])
    generator = random()
    drawn = Counter(choose(logs, 1.0, None, generator) for _ in range(20_000))
    for id, probability in enumerate([0.5, 0.2, 0.2, 0.1]):
        deviation = math.sqrt(20_000 * probability * (1 - probability))
        assert abs(drawn[id] - 20_000 * probability) < 4 * deviation


def test_temperature_raises_probabilities_to_its_inverse() -> None:
    generator = random()
    drawn = Counter(choose(np.log([0.8, 0.2]), 0.5, None, generator) for _ in range(20_000))
    expected = 0.8**2 / (0.8**2 + 0.2**2)
    assert abs(drawn[0] / 20_000 - expected) < 4 * math.sqrt(expected * (1 - expected) / 20_000)


def test_top_k_draws_from_the_k_likeliest_only() -> None:
    generator = random()
    drawn = {choose(np.log([0.1, 0.4, 0.2, 0.3]), 10.0, 2, generator) for _ in range(500)}
    assert drawn == {1, 3}


def test_more_than_there_is_may_be_kept() -> None:
    drawn = {choose(np.log([0.5, 0.5]), 1.0, 100, random(seed)) for seed in range(20)}
    assert drawn == {0, 1}


def test_of_equals_the_lower_ids_are_kept() -> None:
    kept = keep_largest(np.array([-1.0, -2.0, -1.0, -2.0, -2.0]), 3)
    assert kept.tolist() == [-1.0, -2.0, -1.0, -np.inf, -np.inf]


def test_impossible_tokens_are_never_drawn() -> None:
    logs = np.array([-np.inf, math.log(0.5), -np.inf, math.log(0.5), -np.inf])
    generator = random()
    for temperature in (1e-320, 1.0, 1e6):
        assert {choose(logs, temperature, 4, generator) for _ in range(300)} <= {1, 3}


@pytest.mark.parametrize(
    ("uniform", "id"),
    [(0.0, 1), (0.2499, 1), (0.25, 2), (0.9999, 4), (math.nextafter(1, 0), 4), (1.0, 4)],
)
def test_points_fall_under_the_token_whose_stretch_they_are_in(uniform: float, id: int) -> None:
    weights = np.array([0.0, 0.25, 0.5, 0.0, 0.25, 0.0])
    assert invert_cumulative(weights, uniform) == id


@pytest.mark.parametrize("log", [-np.inf, np.nan])
def test_a_model_that_knows_no_next_token_is_told_so(log: float) -> None:
    with pytest.raises(ForewordError, match="no next token"):
        choose(np.full(3, log), 1.0, None, random())


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("max_tokens", -1),
        ("temperature", -0.1),
        ("temperature", math.nan),
        ("temperature", math.inf),
        ("top_k", 0),
        ("seed", -1),
    ],
)
def test_settings_are_checked_at_the_call_and_not_at_the_first_token(setting: str, value: float) -> None:
    with pytest.raises(SettingError, match=f"{setting}="):
        generate(CERTAIN, **{setting: value})  # type: ignore[arg-type]


@pytest.mark.parametrize("id", [-1, 5])
def test_a_prompt_outside_the_vocabulary_is_refused_at_the_call(id: int) -> None:
    with pytest.raises(SettingError, match=f"id {id}"):
        generate(CERTAIN, [A, id])


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
