"""The Mogrifier model and the options of its recipe, on a CPU."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal

from foreword.errors import GpuMemoryError, InputError, SettingError
from foreword.neural.awd_lstm import AWDLSTM
from foreword.neural.bengio import BengioLM
from foreword.neural.dynamic import DynamicEvaluation
from foreword.neural.mogrifier import RECIPE, Mogrifier
from foreword.neural.monte_carlo import MonteCarloDropout
from foreword.neural.rows import CHUNK, ROWS, TemperedScore, monte_carlo_losses
from foreword.ngram.model import NgramLM
from foreword.nn.dropout import NO_DROPOUT, Dropout
from foreword.nn.network import TEMPERATURE, mixture_of, next_logs
from foreword.nn.recurrent_network import Masks, RecurrentNetwork, Variant
from foreword.storage.checkpoint import Checkpoint
from foreword.storage.folder import load, save
from foreword.tokens.corpus import Corpus
from foreword.tokens.vocab import Vocab
from foreword.training.gradients import new_flat, views
from foreword.training.schedules import TwoTails
from foreword.training.settings import Training

torch.set_num_threads(1)
VOCAB = Vocab(["<unk>", "</s>", "a", "b", "c", "d"])
CORPUS = Corpus.from_ids([[2, 3, 4, 5] * 2 for _ in range(12)], VOCAB)
QUICK = replace(RECIPE, epochs=2, batch=4, steps=6, evaluate_every=1)
LIKE = torch.empty(0)


def small(**settings: Any) -> Mogrifier:
    return Mogrifier(6, 2, **{"rounds": 3, "rank": 2, "training": QUICK, "device": "cpu", **settings})


def drawn(network: RecurrentNetwork) -> dict[str, torch.Tensor]:
    weights = views(new_flat(network.tensors(), torch.device("cpu")), network.tensors())
    network.initialise(weights, torch.Generator().manual_seed(0))
    return weights


def test_thin_matrices_are_their_products() -> None:
    """Few words go through both thin matrices, many through their product, and a full matrix may hold it."""
    thin = RecurrentNetwork(6, 5, 5, 2, mogrify=3, variant=Variant(rank=2, round_bias=True))
    full = replace(thin, variant=Variant(round_bias=True))
    weights = drawn(thin)
    whole = {name: weights[name] for name in full.tensors() if name in weights}
    for name in full.tensors():
        if name not in whole:
            whole[name] = weights[f"{name}.left"] @ weights[f"{name}.right"]
    ids = torch.randint(6, (9, 2), generator=torch.Generator().manual_seed(1))
    for words in (ids[:2], ids):
        mine, _ = thin.read(weights, words, thin.start(2, LIKE))
        theirs, _ = full.read(whole, words, full.start(2, LIKE))
        torch.testing.assert_close(mine, theirs)


def test_a_capped_gate_keeps_the_cell_within_one_and_the_sum_is_the_sum() -> None:
    network = RecurrentNetwork(6, 5, 5, 2, variant=Variant(capped=True, summed=True))
    weights = {name: 9 * part for name, part in drawn(network).items()}
    out, (h0, c0, h1, c1) = network.read(weights, torch.randint(6, (30, 3)), network.start(3, LIKE))
    assert max(float(c.abs().max()) for c in (c0, c1)) <= 1
    torch.testing.assert_close(out[-1], h0 + h1)
    uncapped = replace(network, variant=Variant(summed=True))
    _, (_, c, *_) = uncapped.read(weights, torch.randint(6, (30, 3)), network.start(3, LIKE))
    assert float(c.abs().max()) > 1


def test_projected_words_are_those_of_a_full_matrix() -> None:
    """Both projections multiplied out give an untied network of the layers' width with the same log-probabilities."""
    variant = Variant(rank=2, round_bias=True, capped=True, summed=True, truncated=True, projected=True)
    network = RecurrentNetwork(6, 3, 5, 2, mogrify=3, variant=variant)
    weights = drawn(network)
    wide = RecurrentNetwork(6, 5, 5, 2, tied=False, mogrify=3, variant=replace(variant, projected=False))
    words, up, down = weights["embedding"], weights["projection.input"], weights["projection.output"]
    whole = {**weights, "embedding": words @ up.T, "output": words @ down}
    assert {name for name in weights if name not in wide.tensors()} == {"projection.input", "projection.output"}
    ids = torch.randint(6, (9, 2), generator=torch.Generator().manual_seed(1))
    mine, state = network.read(weights, ids, network.start(2, LIKE))
    theirs, other = wide.read(whole, ids, wide.start(2, LIKE))
    assert mine.shape == (9, 2, 3)
    torch.testing.assert_close(state, other)
    torch.testing.assert_close(next_logs(weights, mine[-1]), next_logs(whole, theirs[-1]))


def test_a_mixture_of_projected_softmaxes_is_the_formula() -> None:
    """Each softmax reads tanh(L_k h + l_k) of as many units as a word has, at the model's temperature."""
    model = small(embedding=3, softmaxes=2).fit(CORPUS)
    model.temperature_ = 1.3
    weights = {name: part.double() for name, part in model.weights_.items()}
    ids = CORPUS[:1].ids
    assert "projection.output" not in weights
    found = [hidden for hidden, _ in model.hidden_states(ids)]
    hidden = torch.cat(found).double()
    assert hidden.shape[1] == 6
    shares = torch.softmax(hidden @ weights["mixture.prior"].T, 1)
    z = torch.tanh(hidden @ weights["mixture.latent"].T + weights["mixture.latent_bias"]).view(-1, 2, 3)
    scores = (z @ weights["embedding"].T + weights["bias"]) / 1.3
    wanted = (shares[:, :, None] * torch.softmax(scores, 2)).sum(1).log()
    chosen = wanted[range(len(ids)), ids.tolist()]
    assert_allclose(model.logprobs(CORPUS[:1]), chosen.numpy(), rtol=1e-5)
    state = model.advance(model.start(1), ids[:1])
    assert_allclose(model.next_logprobs(state)[0], wanted[1].numpy(), rtol=1e-5)
    assert model.next_logprobs(model.start(0)).shape == (0, 6)


def test_a_mixture_adapts_at_its_temperature() -> None:
    """Dynamic evaluation scores the first chunk, before which it learns nothing, as the model itself does."""
    model = small(embedding=3, softmaxes=2).fit(CORPUS)
    model.temperature_ = 1.3
    dynamic = DynamicEvaluation(model, rate=0.3, steps=4).measure_gradients(CORPUS, texts=2, updates=3)
    assert_allclose(dynamic.logprobs(CORPUS[:1])[:4], model.logprobs(CORPUS[:1])[:4], rtol=1e-5)


def test_the_temperature_of_a_mixture_is_chosen() -> None:
    """Words' biases far too large: dividing by the highest temperature helps most, and the score is the model's."""
    model = small(softmaxes=2).fit(CORPUS)
    weights = model.flat_weights()
    views(weights, model.shapes())["bias"].copy_(torch.tensor([-9.0, 9, 9, -9, 9, 9]))
    score = TemperedScore(model.network(VOCAB), CORPUS, torch.device("cpu"), "float32")
    at = score.score(weights)
    model.temperature_ = score.temperature(weights, at)
    assert model.temperature_ == 1.26
    one = Corpus.from_ids([CORPUS.ids], VOCAB)
    assert at == pytest.approx(float(model.logprobs(one)[:-1].mean()), abs=0.01)  # read after some context


@pytest.mark.parametrize("rounds", [0, 3])
@pytest.mark.parametrize("softmaxes", [1, 2])
def test_a_projected_model_is_trained_saved_and_sampled(rounds: int, softmaxes: int, tmp_path: Path) -> None:
    model = small(embedding=3, rounds=rounds, softmaxes=softmaxes).fit(CORPUS, valid=CORPUS[:6])
    wide = small(rounds=rounds).fit(CORPUS)
    down = 3 * 6 if softmaxes == 1 else 2 * 6 + 2 * 3 * (6 + 1)  # a matrix, or the shares and inputs of two softmaxes
    assert wide.parameter_count - model.parameter_count == 6 * 3 - 3 * 6 - down
    save(model, tmp_path / "model")
    again = load(tmp_path / "model")
    assert (again.embedding, again.softmaxes) == (3, softmaxes)
    assert_array_equal(again.logprobs(CORPUS[:2]), model.logprobs(CORPUS[:2]))
    none = monte_carlo_losses(model, CORPUS[:1].ids, samples=2, scale=0.0)
    assert_allclose(-none[0].numpy(), model.logprobs(CORPUS[:1]), rtol=1e-4)


def test_a_projected_plain_lstm_looks_words_up_through_its_projection() -> None:
    """Where nothing is learnt, a plain first layer multiplies each distinct word once: with its projection too."""
    network = RecurrentNetwork(6, 3, 5, 1, variant=Variant(projected=True))
    weights = {name: part.requires_grad_() for name, part in drawn(network).items()}
    ids = torch.randint(6, (9, 2), generator=torch.Generator().manual_seed(1))
    stepwise, _ = network.read(weights, ids, network.start(2, LIKE))
    with torch.inference_mode():
        looked_up, _ = network.read(weights, ids, network.start(2, LIKE))
    torch.testing.assert_close(looked_up, stepwise.detach())


def test_initial_weights_have_the_variance_of_their_fan_in() -> None:
    network = RecurrentNetwork(300, 64, 64, 1, mogrify=2, forget_bias=1.0, variant=Variant(8, True, truncated=True))
    weights = drawn(network)
    assert float(weights["embedding"].std()) == pytest.approx(64**-0.5, rel=0.05)
    assert float(weights["layer0.input"].std()) == pytest.approx(128**-0.5, rel=0.05)
    product = weights["layer0.mogrify1.left"] @ weights["layer0.mogrify1.right"]
    assert float(product.std()) == pytest.approx(64**-0.25 * 8**-0.25, rel=0.15)
    assert float(weights["layer0.input_bias"][64:128].mean()) == pytest.approx(1.0, abs=0.1)


def test_masks_are_fresh_at_every_step_or_of_every_text() -> None:
    network, random = small().network(VOCAB), torch.Generator().manual_seed(0)
    masks = network.masks(small().dropout, 3, LIKE, random, steps=5)
    assert masks.input.shape == masks.output.shape == masks.between[0].shape == (5, 3, 6)
    assert not torch.equal(masks.input[0], masks.input[1])
    assert [mask.shape for mask in masks.state] == [(3, 6)] * 2
    dropout = Dropout(words=0.5, recurrent=0.5)
    own = network.masks(dropout, 40, LIKE, random, per_text=True)
    assert own.words.shape == (40, 6)
    assert not own.recurrent
    assert not torch.equal(own.words[0], own.words[1])


def test_state_dropout_multiplies_what_the_next_step_sees() -> None:
    network = RecurrentNetwork(6, 4, 4, 1, mogrify=1)
    weights = drawn(network)
    ids = torch.randint(6, (3, 2))
    masks = replace(network.masks(NO_DROPOUT, 2, LIKE, None), state=(torch.zeros(2, 4),))
    out, _ = network.read(weights, ids, network.start(2, LIKE), masks)
    state = network.start(2, LIKE)
    for step in range(3):
        one, (_, c) = network.read(weights, ids[step : step + 1], (torch.zeros(2, 4), state[1]))
        state = (torch.zeros(2, 4), c)
        torch.testing.assert_close(out[step], one[0])


def test_adam_without_a_mean_is_torch_s_and_l2_is_in_the_gradient() -> None:
    """Three updates by the engine against torch's Adam on the same losses."""
    plain = replace(QUICK, l2=0.1, clip=0.0, reset=0.0, averages=(), precision="float32")
    model = small(training=plain, dropout=NO_DROPOUT)
    trainer = model.trainer(CORPUS)
    trainer.begin_epoch(1)
    weights = trainer.weights.clone().requires_grad_()
    peer = torch.optim.Adam([weights], lr=plain.rate, betas=(0.0, 0.999), weight_decay=0.1)
    inputs, targets, state = trainer.task.inputs, trainer.task.targets, trainer.state  # type: ignore[attr-defined]
    network = model.network(VOCAB)
    for update in range(3):
        rows = slice(6 * update, 6 * update + 6)
        named = views(weights, network.tensors())
        hidden, state = network.read(named, inputs[rows], tuple(part.detach() for part in state))
        loss = -next_logs(named, hidden.flatten(0, 1)).gather(1, targets[rows].reshape(-1, 1)).mean()
        peer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        peer.step()
    trainer.run(3)
    torch.testing.assert_close(trainer.weights, weights.detach(), rtol=1e-3, atol=1e-4)


def test_a_state_that_is_always_reset_is_never_read() -> None:
    task = small(training=replace(QUICK, reset=1.0)).task(CORPUS, None)
    state = task._forgetful((torch.ones(4, 6), torch.ones(4, 6)), torch.Generator())
    assert not any(part.any() for part in state)
    kept = small(training=replace(QUICK, reset=0.5)).task(CORPUS, None)
    (some,) = kept._forgetful((torch.ones(400, 6),), torch.Generator().manual_seed(0))
    assert 120 < int(some[:, 0].sum()) < 280


def test_two_tails_follow_the_held_out_score() -> None:
    tails = TwoTails()
    assert tails.shares(0) == (1.0, 1.0)
    assert not tails.switch(long_score=2.0, short_score=1.0, step=10)
    assert tails.switch(long_score=1.0, short_score=1.0, step=20)
    assert (tails.long, tails.short) == (0, 20)
    assert tails.shares(20) == (1 / 21, 1.0)
    assert tails.switch(1.0, 2.0, 30)
    assert (tails.long, tails.short) == (20, 30)
    with pytest.raises(SettingError, match="held-out"):
        small(training=replace(QUICK, two_tailed=True)).fit(CORPUS)


def test_the_temperature_is_chosen_stored_and_applied(tmp_path: Path) -> None:
    model = small(training=replace(QUICK, two_tailed=True)).fit(CORPUS, valid=CORPUS[:6])
    model.temperature_ = 1.2
    logs = model.logprobs(CORPUS[:2])
    weights = {name: part for name, part in model.weights_.items() if name != TEMPERATURE}
    hidden, targets = next(model.hidden_states(CORPUS[:1].ids))
    scores = torch.nn.functional.linear(hidden, weights["embedding"], weights["bias"]) / 1.2
    wanted = torch.log_softmax(scores, 1).gather(1, targets[:, None])[:, 0]
    assert_allclose(logs[: len(targets)], wanted.numpy(), rtol=1e-5)
    save(model, tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.temperature_ == pytest.approx(1.2)
    assert_array_equal(again.logprobs(CORPUS[:2]), logs)
    stepping = again.stepping()
    state, found = stepping.start(1), []
    for word in CORPUS[:1].ids.tolist():
        found.append(stepping.next_logprobs(state)[0, word])
        state = stepping.advance(state, np.array([word]))
    assert_allclose(found, logs[: len(found)], rtol=1e-4)


def test_dynamic_evaluation_learns_weights_and_leaves_the_temperature() -> None:
    """Every document begins from the trained weights, which stay as they are; what is left of a chunk is scored too."""
    model = small().fit(CORPUS, valid=CORPUS[:6])
    model.temperature_ = 1.2
    before = {name: part.clone() for name, part in model.weights_.items()}
    dynamic = DynamicEvaluation(model, rate=0.3, steps=4).measure_gradients(CORPUS, texts=2, updates=3)
    logs = dynamic.logprobs(CORPUS[:2])
    assert_allclose(logs[:4], model.logprobs(CORPUS[:1])[:4], rtol=1e-5)  # nothing is learnt before the first chunk
    assert logs[8] != pytest.approx(float(model.logprobs(CORPUS[:1])[8]), rel=1e-3)
    assert_array_equal(logs[9:], logs[:9])
    assert all(torch.equal(before[name], part) for name, part in model.weights_.items())


def test_a_full_gpu_says_what_to_lower(monkeypatch: pytest.MonkeyPatch) -> None:
    model = small().fit(CORPUS)

    def full(*_: object, **__: object) -> None:
        raise torch.cuda.OutOfMemoryError("CUDA out of memory")

    with monkeypatch.context() as patched:
        patched.setattr(RecurrentNetwork, "initialise", full)
        with pytest.raises(GpuMemoryError, match="for this training: expected a batch below 4, fewer steps than 6"):
            small().fit(CORPUS)
    monkeypatch.setattr(RecurrentNetwork, "read", full)
    dynamic = DynamicEvaluation(model, steps=4)
    works: list[tuple[Callable[[], object], str]] = [
        (lambda: model.logprobs(CORPUS), "scoring: expected a smaller model, or the CPU"),
        (lambda: list(model.hidden_states(CORPUS.ids)), "scoring: expected a smaller model, or the CPU"),
        (lambda: dynamic.logprobs(CORPUS), "dynamic evaluation: expected fewer steps than 4"),
        (lambda: dynamic.measure_gradients(CORPUS), "dynamic evaluation: expected fewer steps than 4"),
        (lambda: monte_carlo_losses(model, CORPUS.ids, samples=5), "dropout: expected fewer samples than 5"),
    ]
    for work, message in works:
        with pytest.raises(GpuMemoryError, match=message):
            work()


def test_a_confident_model_gets_a_temperature_above_one() -> None:
    """Logits three times as large as they should be: dividing them by the highest temperature helps most."""
    model = small().fit(CORPUS)
    score = TemperedScore(model.network(VOCAB), CORPUS, torch.device("cpu"), "float32")
    weights = model.flat_weights().clone()
    views(weights, model.shapes())["bias"].copy_(torch.tensor([-9.0, 9, 9, -9, 9, 9]))
    at = score.score(weights)
    assert score.temperature(weights, at) == 1.26
    assert math.isfinite(at)


def test_monte_carlo_without_dropout_is_the_model_and_with_it_an_average() -> None:
    model = small(dropout=replace(Mogrifier.DROPOUT, words=0.1)).fit(CORPUS)
    ids = CORPUS[:1].ids
    exact = model.logprobs(CORPUS[:1])
    none = monte_carlo_losses(model, ids, samples=2, scale=0.0)
    assert_allclose(-none[0].numpy(), exact, rtol=1e-4)
    some = [monte_carlo_losses(model, ids, samples=8, scale=0.7, seed=seed) for seed in (0, 0, 1)]
    assert torch.equal(some[0], some[1])
    assert not torch.equal(some[0], some[2])
    with pytest.raises(SettingError, match="recurrent"):
        monte_carlo_losses(BengioLM(3, 4, 5, device="cpu", training=Training(epochs=1)).fit(CORPUS), ids)


@pytest.mark.parametrize(("samples", "softmaxes"), [(3, 1), (67, 1), (3, 2)])
def test_monte_carlo_is_the_mean_of_a_plain_loop_over_samples(samples: int, softmaxes: int) -> None:
    """Documents of more words than a chunk and of fewer; masks drawn as the reader draws them, one sample at a time."""
    model = small(dropout=replace(Mogrifier.DROPOUT, words=0.1), softmaxes=softmaxes).fit(CORPUS)
    model.temperature_ = 1.3
    corpus = Corpus.from_ids([[2, 3, 4, 5] * 20, [5, 4]], VOCAB)
    found = MonteCarloDropout(model, samples=samples, scale=0.8, seed=5).logprobs(corpus)
    network, dropout, random = model.network(VOCAB), model.dropout.scaled(0.8), torch.Generator().manual_seed(5)
    weights = {name: part for name, part in model.weights_.items() if name != TEMPERATURE}
    passes = -(-samples // ROWS)
    rows = -(-samples // passes)
    wanted = []
    for document in corpus.documents():
        words = torch.tensor([VOCAB.end, *document.tolist()])
        probabilities: list[torch.Tensor] = []
        for _ in range(passes):
            states = [network.start(1, LIKE) for _ in range(rows)]
            kept: list[list[torch.Tensor]] = [[] for _ in range(rows)]
            for begin in range(0, len(document), CHUNK):
                inputs, targets = words[begin : begin + CHUNK][: len(document) - begin], words[begin + 1 :][:CHUNK]
                masks = network.masks(dropout, rows, LIKE, random, steps=len(inputs), per_text=True)
                for row in range(rows):
                    own = one_row(masks, row)
                    hidden, states[row] = network.read(weights, inputs[:, None], states[row], own)
                    dropped, shares = (hidden * own.output)[:, 0], torch.ones(len(hidden), 1)
                    z = dropped[:, None]
                    if own.latent is not None:
                        z, log_shares = mixture_of(weights, dropped, own.latent[:, 0])
                        shares = log_shares.exp()
                    scores = (z @ weights["embedding"].T + weights["bias"]) / 1.3
                    mean = (shares[:, :, None] * torch.softmax(scores, 2)).sum(1)
                    kept[row].append(mean.gather(1, targets[:, None])[:, 0])
            probabilities += [torch.cat(parts) for parts in kept]
        wanted.append(torch.log(torch.stack(probabilities[:samples]).double().mean(0)))
    assert_allclose(found, torch.cat(wanted).numpy(), rtol=1e-4)


def one_row(masks: Masks, row: int) -> Masks:
    """Return the masks of one text of a batch."""
    one = slice(row, row + 1)
    return Masks(
        masks.words[one],
        masks.input[:, one],
        tuple(mask[:, one] for mask in masks.between),
        masks.output[:, one],
        (),
        None if masks.latent is None else masks.latent[:, one],
        tuple(mask[one] for mask in masks.state),
    )


def test_monte_carlo_is_tuned_by_held_out_text() -> None:
    """A model whose scores are far too small: the lowest temperature is best, and the scale is one of those tried."""
    model = small().fit(CORPUS)
    sampled = MonteCarloDropout(model, samples=4)
    assert (sampled.scale, sampled.temperature) == (0.7, model.temperature_)
    told: list[str] = []
    sampled.tune(CORPUS, scales=(0.1, 0.9), temperatures=(0.5, 1.0, 2.0), meter=lambda what, *_: told.append(what))
    grid = {
        (scale, at): MonteCarloDropout(model, samples=4, scale=scale, temperature=at).score(CORPUS)
        for scale in (0.1, 0.9)
        for at in (0.5, 1.0, 2.0)
    }
    assert (sampled.scale, sampled.temperature) == max(grid, key=grid.__getitem__)
    assert told
    with pytest.raises(InputError, match="empty"):
        sampled.tune(CORPUS[:0])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"samples": 0}, "samples is 0: expected at least 1"),
        ({"scale": -1.0}, "scale is -1.0"),
        ({"scale": 1.5}, "dropout of input is 1.09"),
        ({"temperature": 0.0}, "temperature is 0.0: expected more than 0"),
    ],
)
def test_numbers_that_monte_carlo_refuses(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingError, match=message):
        MonteCarloDropout(small().fit(CORPUS), **settings)


def test_models_that_monte_carlo_refuses() -> None:
    quick = Training(epochs=1)
    plain = small(dropout=NO_DROPOUT).fit(CORPUS)
    weights_alone = AWDLSTM(4, 5, 2, dropout=replace(NO_DROPOUT, recurrent=0.5), device="cpu", training=quick).fit(
        CORPUS
    )
    counts: Any = NgramLM(2).fit(CORPUS)
    for model, message in (
        (plain, "this Mogrifier was trained without dropout"),
        (weights_alone, "without dropout of words or units"),
        (counts, "not a NgramLM"),
    ):
        with pytest.raises(SettingError, match=message):
            MonteCarloDropout(model)


def test_a_stopped_run_resumes_to_the_same_bytes(tmp_path: Path) -> None:
    training = replace(QUICK, epochs=4, two_tailed=True)
    whole = small(training=training).fit(CORPUS, valid=CORPUS[:6])
    checkpoint = Checkpoint(tmp_path / "run", every=0.0)
    for number, _ in enumerate(small(training=training).train(CORPUS, valid=CORPUS[:6], checkpoint=checkpoint)):
        if number == 5:
            break
    resumed = small(training=training)
    for _ in resumed.train(CORPUS, valid=CORPUS[:6], checkpoint=Checkpoint(tmp_path / "run")):
        pass
    assert torch.equal(resumed.flat_weights(), whole.flat_weights())
    assert resumed.temperature_ == whole.temperature_


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"rounds": -1}, "rounds"),
        ({"rank": -1}, "rank"),
        ({"embedding": -1}, "embedding"),
        ({"softmaxes": 0}, "softmaxes"),
        ({"training": replace(RECIPE, precision="float16")}, "needs a GPU"),
    ],
)
def test_settings_that_cannot_be_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingError, match=message):
        small(**settings).fit(CORPUS)


def test_state_dropout_is_refused_where_there_is_none() -> None:
    with pytest.raises(SettingError, match="dropout of state"):
        BengioLM(3, 4, 5, dropout=Dropout(0.0, 0.0, 0.0, 0.0, 0.0, state=0.5))
