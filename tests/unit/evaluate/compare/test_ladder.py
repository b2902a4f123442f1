from __future__ import annotations

import dataclasses
import json
import math
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from foreword.errors import InputError, NoGpuError, SettingError
from foreword.evaluate.compare import ladder as module
from foreword.evaluate.compare.budget import POLICY
from foreword.evaluate.compare.inspection import draw_sample, weigh
from foreword.evaluate.compare.ladder import LADDER, LadderModel, compare
from foreword.evaluate.compare.results import Comparison, ComparisonProgress, Event, Plan, Row, TextFacts
from foreword.evaluate.compare.setup import Splits, prepare, read_text
from foreword.measures.perplexity import measure
from foreword.neural.awd_lstm import AWDLSTM
from foreword.neural.mogrifier import Mogrifier
from foreword.ngram.unigram import UnigramLM
from foreword.storage.folder import save
from foreword.tokens.characters import ByteTokenizer
from foreword.tokens.corpus import Corpus
from foreword.tokens.words import WordTokenizer

FIFTY_WORDS = (
    "the cat sat on the mat and the dog sat on the cat because the mat was warm and the dog was cold so the cat got up "
    "and sat on the dog and the dog got up and ran to the door and the cat ran to the mat"
)
DOCUMENTS = [
    f"the {animal} {verb} the {thing}"
    for animal in ("cat", "dog", "cow", "owl", "fox")
    for verb in ("saw", "ate", "hid")
    for thing in ("mat", "hat", "bat")
]


COUNTED = [rung.name for rung in LADDER if not rung.neural]
NEURAL = [rung.name for rung in LADDER if rung.neural and not rung.gpu]
USUAL = [rung for rung in LADDER if not rung.gpu]


def run(texts: list[str] | Splits, **settings: object) -> Comparison:
    """Compare one model, unless others are asked for: what is said of the text does not depend on the models."""
    *_, last = compare(texts, **{"models": ["unigram"], "wordlists": False, **settings})  # type: ignore[arg-type]
    assert isinstance(last, Comparison)
    return last


def test_the_events_tell_a_story_in_order() -> None:
    models = [*COUNTED, "rnn"]
    events = list(compare(DOCUMENTS, name="animals", models=models, time_budget=1))
    kinds = [type(event).__name__ for event in events if not isinstance(event, ComparisonProgress)]
    assert kinds == ["Plan", "TextFacts", *["Row"] * len(models), "Comparison"]
    steps = [event for event in events if isinstance(event, ComparisonProgress)]
    assert sorted({step.done for step in steps}) == list(range(steps[0].total + 1))
    assert [step.done for step in steps] == sorted(step.done for step in steps)
    assert {step.total for step in steps} == {3 + 2 * len(models)}
    learning = [step for step in steps if step.phase.startswith("training RNN, loss ")]
    assert {step.model for step in learning} == {len(models) - 1}
    assert all(0 < (step.share or 0) <= 1 and (step.left or 0) >= 0 for step in learning)
    last = events[-1]
    assert isinstance(last, Comparison)
    assert [last.text, *last.rows] == [event for event in events if isinstance(event, TextFacts | Row)]


def test_nothing_is_done_before_it_is_asked_for() -> None:
    read: list[str] = []
    events: Iterator[Event] = compare(read.append(text) or text for text in DOCUMENTS)  # type: ignore[func-returns-value]
    assert next(events) == Plan(tuple(rung.title for rung in USUAL))
    assert next(events) == ComparisonProgress("reading the text", 0, 3 + 2 * len(USUAL))
    assert read == []
    next(events)
    assert read == DOCUMENTS


def test_numbers_are_those_of_the_pieces_it_is_made_of() -> None:
    comparison = run(DOCUMENTS)
    train = [text for place, text in enumerate(DOCUMENTS) if place % 20 not in (9, 19)]
    tokenizer = WordTokenizer(min_count=2).fit(train)
    model = UnigramLM().fit(Corpus.from_texts(train, tokenizer))
    row = comparison.rows[0]
    assert row.measures == measure(model, Corpus.from_texts(DOCUMENTS[19::20], tokenizer))
    assert comparison.text.vocabulary == len(tokenizer.vocab)
    assert row.parameters == len(tokenizer.vocab)
    assert row.sample == draw_sample(model, tokenizer, 0)


def test_facts_of_the_text() -> None:
    text = run([*DOCUMENTS, " "]).text
    assert (text.documents, text.unit, text.units, text.types, text.once) == (45, "word", 225, 12, 0)
    assert text.bytes == sum(len(document) + 1 for document in DOCUMENTS) + 2
    assert text.frequencies[0] == (1, 90)
    assert text.landmarks == ((1, "the"), (10, text.landmarks[1][1]))
    assert text.train_tokens + text.valid_tokens + text.test_tokens == 225 + 45
    assert sum(count for _, count in text.frequencies) == 225  # so few words that every rank is a point


def test_fifty_words_are_enough() -> None:
    comparison = run([FIFTY_WORDS], models=COUNTED)
    assert comparison.text.documents == 1
    assert math.isfinite(comparison.rows[0].measures.perplexity)
    assert comparison.rows[0].sample


@pytest.mark.parametrize(
    ("text", "unit"),
    [
        ("人人生而自由,在尊严和权利上一律平等。他们赋有理性和良心,并应以兄弟关系的精神相对待。", "character"),
        ("يولد جميع الناس أحرارًا متساوين في الكرامة والحقوق، وقد وهبوا عقلاً وضميرًا", "word"),
        ("Все люди рождаются свободными и равными в своём достоинстве и правах", "word"),
        ("one two three", "word"),
        ("a a a", "word"),
        ("😀 👩‍👩‍👧 <b>&amp;</b> </s> <unk> \x00", "word"),
    ],
)
def test_any_language_and_any_size(text: str, unit: str) -> None:
    comparison = run([text], models=COUNTED)
    assert comparison.text.unit == unit
    assert math.isfinite(comparison.rows[0].measures.perplexity)
    json.dumps(comparison.to_json(), allow_nan=False)


def test_a_word_seen_once_is_unknown_unless_that_would_leave_next_to_nothing() -> None:
    rare = run([*DOCUMENTS, "hapax"]).text
    assert rare.vocabulary == 12 + 2
    assert run(["each word of this text stands in it only one time"]).text.vocabulary > 2
    assert run([f"word{place}" for place in range(40)]).text.vocabulary == 36 + 2  # ends are no words


def test_the_vocabulary_can_be_set() -> None:
    assert run(DOCUMENTS, max_size=5).text.vocabulary == 5
    assert run([*DOCUMENTS, "hapax"], min_count=1).text.vocabulary == 13 + 2


def test_characters_are_not_cut_to_a_size() -> None:
    with pytest.raises(SettingError, match="max_size is for words"):
        run(["人人生而自由在尊严和权利上一律平等"], max_size=5)


def test_another_tokenizer_is_used_as_it_is() -> None:
    comparison = run(DOCUMENTS, tokenizer=ByteTokenizer())
    assert comparison.text.unit == "word"
    assert comparison.text.test_tokens == sum(len(text) + 1 for text in DOCUMENTS[19::20])
    with pytest.raises(SettingError, match="min_count"):
        compare(DOCUMENTS, tokenizer=ByteTokenizer(), min_count=2)
    few = WordTokenizer(max_size=4).fit(["the cat the dog"])
    assert run(DOCUMENTS, tokenizer=few).text.vocabulary == 4
    assert few.vocab.tokens == WordTokenizer(max_size=4).fit(["the cat the dog"]).vocab.tokens


def test_splits_are_taken_as_they_are() -> None:
    comparison = run(Splits(train=["a b", "b a"], valid=[], test=["b a c"]), models=COUNTED)
    assert (comparison.text.train_tokens, comparison.text.valid_tokens, comparison.text.test_tokens) == (6, 0, 4)
    assert comparison.rows[0].measures.oov == 1


@pytest.mark.parametrize(
    "splits", [Splits([], [], ["a"]), Splits(["a"], [], []), Splits([" "], [], ["a"]), Splits(["a"], [], [""])]
)
def test_an_empty_part_is_an_error(splits: Splits) -> None:
    with pytest.raises(InputError, match="empty"):
        run(splits)


def test_wrong_calls_are_told_at_the_call() -> None:
    with pytest.raises(SettingError, match=r"'gpt'.*unigram"):
        compare(DOCUMENTS, models=["gpt"])
    with pytest.raises(InputError, match="single string"):
        compare("the cat")
    with pytest.raises(SettingError, match="seed=-1"):
        compare(DOCUMENTS, seed=-1)
    with pytest.raises(SettingError, match="time_budget=0"):
        compare(DOCUMENTS, time_budget=0)


def test_x01_neural_models_learn_the_same_text_within_their_time() -> None:
    """X01: a small Transformer beside the others on the same data, in equal time. Each learns that these documents are
    three words after "the", which no unigram knows.
    """
    comparison = run(DOCUMENTS, models=["unigram", "lstm", "transformer"], time_budget=10)
    unigram, *neural = comparison.rows
    assert all(row.measures.perplexity < 0.7 * unigram.measures.perplexity for row in neural)
    assert sum(row.train_seconds for row in neural) < 20


def test_without_torch_the_neural_models_are_left_out_and_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    comparison = run(DOCUMENTS, models=None)
    assert [row.name for row in comparison.rows] == COUNTED
    assert list(comparison.left_out) == comparison.to_json()["left_out"] == NEURAL


def test_a_neural_model_without_a_tuning_part_learns_all_the_same() -> None:
    comparison = run(Splits(["a b a b", "b a"], [], ["b a"]), models=["gru"], time_budget=1)
    assert math.isfinite(comparison.rows[0].measures.perplexity)


def test_models_come_in_the_order_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LADDER", [*LADDER, LadderModel("mle", "Maximum likelihood", lambda: UnigramLM(add=0))])
    assert [row.name for row in run(DOCUMENTS, models=None, time_budget=0.1).rows] == [*COUNTED, *NEURAL, "mle"]
    assert [row.name for row in run(DOCUMENTS, models=["mle", "unigram"]).rows] == ["mle", "unigram"]


def test_a_model_that_gives_a_token_no_probability_is_reported_as_infinite(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LADDER", [LadderModel("mle", "Maximum likelihood", lambda: UnigramLM(add=0))])
    comparison = run(Splits(["a b"], [], ["a c"]), models=None)
    assert comparison.rows[0].measures.perplexity == math.inf
    told = json.loads(json.dumps(comparison.to_json(), allow_nan=False))
    [row] = told["models"]
    assert row["perplexity"] is None
    assert row["infinite"] is True
    assert row["surprisal"][1] is None


def test_all_but_the_clock_is_the_same_again() -> None:
    def without_clock(row: Row) -> Row:
        return dataclasses.replace(row, train_seconds=0, train_tokens_per_second=0, score_tokens_per_second=0)

    first, second = (run(DOCUMENTS, seed=3, models=COUNTED) for _ in range(2))
    assert first.text == second.text
    assert list(map(without_clock, first.rows)) == list(map(without_clock, second.rows))
    assert first.rows[0].sample != run(DOCUMENTS, seed=4).rows[0].sample


def test_the_clock_ran() -> None:
    row = run(DOCUMENTS).rows[0]
    assert row.train_seconds > 0
    assert row.train_tokens_per_second > 0
    assert row.score_tokens_per_second > 0


def test_size_on_disk_is_that_of_the_folder(tmp_path: Path) -> None:
    model = UnigramLM().fit(Corpus.from_texts(["a b"], WordTokenizer().fit(["a b"])))
    save(model, tmp_path / "model")
    assert weigh(model) == (4, sum(file.stat().st_size for file in (tmp_path / "model").iterdir()))


def test_a_sample_ends_even_if_the_model_only_ends() -> None:
    tokenizer = WordTokenizer().fit(["a"])
    model = UnigramLM(add=0).fit(Corpus.from_ids([[]], tokenizer.vocab))
    assert draw_sample(model, tokenizer, 0) == ""


def test_the_passage_is_as_written_and_marks_what_is_unknown() -> None:
    comparison = run(Splits(["a b a b", "b a"], [], ["b", "a Zebra b"]))
    assert comparison.text.passage.pieces == ("a", " Zebra", " b", " </s>")
    assert comparison.text.passage.unknown == (1,)
    assert len(comparison.rows[0].surprisal) == 4


def test_the_passage_is_cut_short_and_bits_with_it() -> None:
    comparison = run(Splits(["a b"] * 3, [], ["a b " * 200]))
    assert "".join(comparison.text.passage.pieces) == ("a b " * 40).strip()
    assert len(comparison.rows[0].surprisal) == 80


def test_a_passage_of_bytes_joins_to_the_text() -> None:
    comparison = run(Splits(["äöü"] * 3, [], ["größer"]), tokenizer=ByteTokenizer())
    assert "".join(comparison.text.passage.pieces) == "größer </s>"
    assert len(comparison.rows[0].surprisal) == len("größer".encode()) + 1


def test_learning_speed_counts_the_tokens_that_were_read() -> None:
    """A network reads the training part once an epoch; a model that counts reads it once in all."""
    comparison = run(DOCUMENTS, models=["5-gram", "hmm", "rnn"], time_budget=2)
    counted, rounds, network = comparison.rows
    assert counted.epochs == 1
    assert rounds.epochs == round(rounds.epochs) >= 1
    assert network.epochs > 1
    for row in comparison.rows:
        read = row.train_tokens_per_second * row.train_seconds
        assert read == pytest.approx(row.epochs * comparison.text.train_tokens)


def test_each_row_has_its_interval_and_the_lead_is_measured() -> None:
    comparison = run(DOCUMENTS * 4, models=["unigram", "5-gram"])
    for row in comparison.rows:
        low, high = row.interval
        assert low <= row.measures.perplexity <= high
    lead = comparison.lead
    assert lead is not None
    assert (lead.best, lead.next_best) == ("5-gram", "unigram")
    unigram, best = (row.measures.perplexity for row in comparison.rows)
    assert lead.ratio == pytest.approx(unigram / best)
    assert 1 < lead.interval[0] <= lead.ratio <= lead.interval[1]
    assert comparison.to_json()["lead"]["best"] == "5-gram"  # type: ignore[index,call-overload]
    assert run(DOCUMENTS).lead is None


def test_a_gpu_adds_the_large_networks(monkeypatch: pytest.MonkeyPatch) -> None:
    """They learn by the recipe that is their default, until the clock stops them."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    plan = next(compare(DOCUMENTS, device="cuda"))
    assert plan == Plan(tuple(rung.title for rung in LADDER))
    assert {rung.name for rung in LADDER if rung.gpu} == {"awd-lstm", "mogrifier"}
    text = prepare("text", read_text(DOCUMENTS, 10**6), None, None, None, None)
    for model in (Mogrifier(), AWDLSTM()):
        training, usual = POLICY.own_recipe(model, 60.0, text), model.training
        again = {"epochs": usual.epochs, "seconds": 0.0, "evaluate_every": usual.evaluate_every}
        assert dataclasses.replace(training, **again) == usual
        assert (training.seconds, training.epochs) == (60.0, 10**6)
        assert (training.precision_on("cuda"), training.precision_on("cpu")) == ("float16", "float32")
        assert len(training.averages) == 2  # of which the held-out text chooses


def test_a_gpu_that_is_not_there_is_refused_before_any_work() -> None:
    if torch.cuda.is_available():
        pytest.skip("there is a GPU here")
    with pytest.raises(NoGpuError):
        compare(DOCUMENTS, device="cuda")
