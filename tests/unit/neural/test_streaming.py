"""Streaming: the torch model, a word at a time, to the same numbers."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal

from foreword.decode import beam_search, generate
from foreword.errors import InputError, SettingError
from foreword.neural import streaming
from foreword.neural.awd_lstm import AWDLSTM
from foreword.neural.bengio import BengioLM
from foreword.neural.mogrifier import Mogrifier
from foreword.neural.recurrent import RecurrentLM
from foreword.neural.streaming import Screened, Streaming, Whole, matrix
from foreword.pipeline.language import TextLM
from foreword.protocols import NextToken, QuickSteps, Shortlisting
from foreword.tokens.corpus import Corpus
from foreword.tokens.vocab import Vocab
from foreword.tokens.words import WordTokenizer
from foreword.training.settings import Training

torch.set_num_threads(1)
VOCAB = Vocab(["<unk>", "</s>", *(f"w{number}" for number in range(41))])
RANDOM = np.random.default_rng(0)
CORPUS = Corpus.from_ids([RANDOM.zipf(1.6, 30) % 41 + 2 for _ in range(60)], VOCAB)
TRAINING = Training(
    epochs=4, batch=8, steps=10, optimiser="adam", rate=0.02, clip=1.0, activation=0.0, change=0.0, averages=()
)
CELLS = ("rnn", "irnn", "gru", "lstm", "min-gru", "awd-lstm", "mogrifier", "mixture", "projected", "projected-mixture")


@cache
def trained(cell: str) -> Any:
    """Sizes that fill no register: 21 and 37 units; one model is tied, the others are not."""
    if cell == "awd-lstm":
        return AWDLSTM(21, 37, 3, training=TRAINING, device="cpu").fit(CORPUS)
    if cell in ("mogrifier", "mixture"):
        options: dict[str, Any] = {"mogrify": 5} if cell == "mogrifier" else {"softmaxes": 3}
        return RecurrentLM("lstm", 21, 37, 2, tied=False, training=TRAINING, device="cpu", **options).fit(CORPUS)
    if cell.startswith("projected"):
        softmaxes = 2 if cell == "projected-mixture" else 1
        model = Mogrifier(37, 2, 3, 4, embedding=21, softmaxes=softmaxes, training=TRAINING, device="cpu").fit(CORPUS)
        model.temperature_ = 1.1
        return model
    training = replace(TRAINING, rate=0.002) if cell == "irnn" else TRAINING  # which runs away at the others' rate
    return RecurrentLM(cell, 21, 37, 2, tied=False, training=training, device="cpu").fit(CORPUS)


@pytest.mark.parametrize("cell", CELLS)
def test_steps_are_the_models(cell: str) -> None:
    """Three texts of 25 words: log-probabilities within 1e-5 of torch's at every step, rows that sum to one."""
    model, stream = trained(cell), Streaming(trained(cell))
    words = np.random.default_rng(1).integers(0, len(VOCAB), (25, 3))
    state, ours = model.start(3), stream.start(3)
    for ids in words:
        logs = stream.next_logprobs(ours)
        assert_allclose(logs, model.next_logprobs(state), rtol=0, atol=1e-5)
        assert_allclose(np.exp(logs).sum(axis=1), 1, rtol=1e-6)
        state, ours = model.advance(state, ids), stream.advance(ours, ids)


@pytest.mark.parametrize("remembered", [0, 1 << 28])
def test_products_with_words_may_be_remembered_or_not(remembered: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streaming, "REMEMBERED", remembered)
    stream, usual = Streaming(trained("gru")), Streaming(trained("lstm"))
    assert bool(len(stream._products)) == bool(remembered)
    state = trained("gru").start(2)
    ours = stream.start(2)
    for ids in ([3, 3], [3, 4], [4, 3]):
        state, ours = trained("gru").advance(state, np.array(ids)), stream.advance(ours, np.array(ids))
    assert_allclose(stream.next_logprobs(ours), trained("gru").next_logprobs(state), rtol=0, atol=1e-5)
    assert usual.start(1).shape == (1, 4 * 37)


def test_it_is_a_next_token_whose_states_stay_good() -> None:
    stream = Streaming(trained("lstm"))
    assert isinstance(stream, NextToken)
    state = stream.start(2)
    before = state.copy()
    after = stream.advance(state, np.array([2, 3]))
    assert_array_equal(state, before)
    assert_array_equal(stream.advance(state[[1]], np.array([3])), after[[1]])
    assert_array_equal(stream.advance(state, np.array([2, 3])), after)
    assert stream.advance(state[:0], np.empty(0, np.int64)).shape == (0, state.shape[1])
    assert stream.next_logprobs(state[:0]).shape == (0, len(VOCAB))


@pytest.mark.parametrize("cell", ["gru", "awd-lstm", "mogrifier", "mixture"])
def test_decoding_gives_the_models_texts(cell: str) -> None:
    model, stream = trained(cell), Streaming(trained(cell))
    for temperature in (0.0, 1.0):
        wanted = list(generate(model, [5], max_tokens=15, temperature=temperature, seed=3))
        assert list(generate(stream, [5], max_tokens=15, temperature=temperature, seed=3)) == wanted
    ours, theirs = (beam_search(each, width=4, max_tokens=8)[0][0] for each in (stream, model))
    assert list(ours.ids) == list(theirs.ids)


@pytest.mark.parametrize("drawn", [{"temperature": 0.0}, {"top_k": 3}, {"top_k": 5, "top_p": 0.8, "temperature": 0.7}])
@pytest.mark.parametrize("kept", ["float32", "int16", "int8"])
def test_a_shortlist_gives_the_same_texts(drawn: dict[str, Any], kept: str) -> None:
    """Greedy and from the k likeliest: token for token what the log-probabilities of all tokens give."""
    stream = Streaming(trained("lstm"), int8=kept == "int8", int16=kept == "int16")

    class Plain:
        vocab, start, next_logprobs, advance = stream.vocab, stream.start, stream.next_logprobs, stream.advance

    assert isinstance(stream, Shortlisting)
    for seed in range(5):
        plain = list(generate(Plain(), [5], max_tokens=60, seed=seed, **drawn))
        assert list(generate(stream, [5], max_tokens=60, seed=seed, **drawn)) == plain


@pytest.mark.parametrize("spread", [1.0, 0.01, 0.0])
@pytest.mark.parametrize("count", [1, 7])
def test_screening_keeps_every_row_that_may_be_among_the_largest(spread: float, count: int) -> None:
    """However close the products lie: with rows that differ in their last digits only, or not at all."""
    random = np.random.default_rng(0)
    rows = (random.normal(size=(1, 70)) + spread * random.normal(size=(500, 70))).astype(np.float32)
    exact = matrix(rows, (spread * random.normal(size=500)).astype(np.float32), np.dtype(np.float32))
    assert isinstance(exact, Whole)
    screened, most = Screened(exact), 0
    for x in random.normal(size=(50, 70)).astype(np.float32):
        products = exact.multiply(x[None])[0]
        ids, found = screened.largest(x, count)
        assert_array_equal(found, products[ids])  # to the bit
        threshold = np.sort(products)[-count]
        assert np.isin(np.flatnonzero(products >= threshold), ids).all()
        most = max(most, len(ids))
    assert most < 100 if spread == 1.0 else most <= 500


def test_numbers_that_are_none_are_not_screened() -> None:
    rows = np.ones((64, 5), np.float32)
    rows[3, 2] = np.nan
    ids, found = Screened(Whole(rows.reshape(-1), np.zeros(64, np.float32))).largest(np.ones(5, np.float32), 1)
    assert len(ids) == 64
    assert np.isnan(found[3])
    rows[3, 2] = 1.0
    ids, _ = Screened(Whole(rows.reshape(-1), np.zeros(64, np.float32))).largest(np.full(5, np.inf, np.float32), 1)
    assert len(ids) == 64


@pytest.mark.parametrize("cell", CELLS)
def test_int8_changes_the_perplexity_by_little(cell: str) -> None:
    """Every id of a held-out text: the mean log-probability moves by less than 0.02 nats."""
    text = Corpus.from_ids([np.random.default_rng(2).zipf(1.6, 40) % 41 + 2 for _ in range(8)], VOCAB)
    scores = []
    for stream in (Streaming(trained(cell)), Streaming(trained(cell), int8=True)):
        state, total = stream.start(len(text.offsets) - 1), 0.0
        for ids in text.ids.reshape(len(text.offsets) - 1, -1).T:
            total += float(stream.next_logprobs(state)[np.arange(len(ids)), ids].sum())
            state = stream.advance(state, ids)
        scores.append(total / len(text.ids))
    assert abs(scores[0] - scores[1]) < 0.02
    assert scores[0] != scores[1]  # that is, int8 was used


@pytest.mark.parametrize("shape", [(1, 1), (3, 31), (4, 64), (5, 65), (2, 1000), (7, 20_000)])
def test_int8_products_are_those_of_the_rounded_numbers(shape: tuple[int, int]) -> None:
    """Within what rounding allows, and in the worst case, all numbers as large as they get, without overflow."""
    rng = np.random.default_rng(sum(shape))
    x = rng.normal(size=(2, shape[1])).astype(np.float32)
    weight, bias = rng.normal(size=shape).astype(np.float32), rng.normal(size=shape[0]).astype(np.float32)
    weight[0] = 0
    found = matrix(weight, bias, np.dtype(np.int8)).multiply(x)
    step = np.abs(weight).max(axis=1) / 127
    assert_allclose(found, x @ weight.T + bias, rtol=0, atol=6 * step.max() * np.sqrt(shape[1]) / 3 + 1e-3)
    ones = np.ones(shape, np.float32)
    most = matrix(ones, bias, np.dtype(np.int8)).multiply(np.full((1, shape[1]), -3.0, np.float32))
    assert_allclose(most[0], -3.0 * shape[1] + bias, rtol=1e-4)


@pytest.mark.parametrize("cell", CELLS)
def test_int16_changes_the_perplexity_by_less_than_a_ten_thousandth(cell: str) -> None:
    text = Corpus.from_ids([np.random.default_rng(2).zipf(1.6, 40) % 41 + 2 for _ in range(8)], VOCAB)
    scores = []
    for stream in (Streaming(trained(cell)), Streaming(trained(cell), int16=True)):
        state, total = stream.start(len(text)), 0.0
        for ids in text.ids.reshape(len(text), -1).T:
            total += float(stream.next_logprobs(state)[np.arange(len(ids)), ids].sum())
            state = stream.advance(state, ids)
        scores.append(total / len(text.ids))
    assert abs(scores[0] - scores[1]) < 1e-4
    assert scores[0] != scores[1]


@pytest.mark.parametrize("shape", [(1, 1), (3, 31), (4, 64), (5, 65), (2, 1000)])
def test_int16_products_are_those_of_the_rounded_numbers(shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(sum(shape))
    x = rng.normal(size=(2, shape[1])).astype(np.float32)
    weight, bias = rng.normal(size=shape).astype(np.float32), rng.normal(size=shape[0]).astype(np.float32)
    weight[0] = 0
    found = matrix(weight, bias, np.dtype(np.int16)).multiply(x)
    scales = np.maximum(np.abs(weight).max(axis=1, keepdims=True), 1e-9) / 32767
    rounded = np.rint(weight / scales) * scales
    assert_allclose(found, x @ rounded.T + bias, rtol=1e-5, atol=2e-5)


def test_only_one_kind_of_whole_numbers() -> None:
    with pytest.raises(SettingError, match="int8 and int16"):
        Streaming(trained("gru"), int8=True, int16=True)


def test_only_recurrent_models_and_only_known_words() -> None:
    bengio = BengioLM(3, 4, 5, training=TRAINING, device="cpu").fit(CORPUS)
    with pytest.raises(InputError, match=r"BengioLM.* has no kernels for single steps"):
        Streaming(bengio)
    stream = Streaming(trained("rnn"))
    state = stream.start(1)
    for bad in ([-1], [len(VOCAB)]):
        with pytest.raises(ValueError, match="not in the vocabulary"):
            stream.advance(state, np.array(bad))
    with pytest.raises(ValueError, match="1 texts but 2"):
        stream.advance(state, np.array([1, 2]))
    with pytest.raises(ValueError, match="expected \\(n, 74\\)"):
        stream.advance(state[:, :5], np.array([1]))


def test_a_pipeline_generates_by_it() -> None:
    """``TextLM.generate`` steps without torch where it can, and writes what the model itself would."""
    texts = [" ".join(f"w{word}" for word in RANDOM.zipf(1.6, 30) % 12) for _ in range(60)]
    lm = TextLM(WordTokenizer(), RecurrentLM("gru", 21, 37, 2, training=TRAINING, device="cpu")).fit(texts)
    assert isinstance(lm.model, QuickSteps)
    assert isinstance(lm.model.stepping(), Streaming)
    by_torch = generate(lm.model, max_tokens=20, seed=3)
    assert lm.generate(max_tokens=20, seed=3) == lm.tokenizer.decode(list(by_torch))
    bengio = BengioLM(3, 8, 8, training=TRAINING, device="cpu").fit(CORPUS)
    assert bengio.stepping() is bengio
