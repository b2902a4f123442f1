"""The loop on its own: truncation, clipping, reading."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from torch import Tensor

from foreword.errors import DivergedError, SettingError
from foreword.neural.training import LanguageModelTask, TextRing
from foreword.nn.dropout import NO_DROPOUT
from foreword.nn.network import output_weight
from foreword.nn.recurrent_network import RecurrentNetwork
from foreword.nn.softmax import linear_cross_entropy
from foreword.tokens.corpus import Corpus
from foreword.tokens.vocab import Vocab
from foreword.training.engine import Trainer
from foreword.training.gradients import clip_factor, norm_of, views
from foreword.training.settings import Training
from foreword.training.task import Loss

torch.set_num_threads(1)
CPU = torch.device("cpu")
STILL = 1e-30
"""A rate at which no weight moves."""


class Words(LanguageModelTask):
    """The next word, by a network without dropout; blow_up: how many times too steep the loss is."""

    limit: ClassVar[float] = math.inf

    def __init__(self, shape: RecurrentNetwork, ids: Tensor, settings: Training, blow_up: float) -> None:
        vocab = Vocab(["<unk>", "</s>", *(f"w{word}" for word in range(shape.vocab - 2))])
        ends = np.array([0, len(ids)])
        corpus = Corpus(ids.numpy().astype(np.uint16), ends, ends, vocab)
        super().__init__(shape, corpus, None, settings, NO_DROPOUT, counted_bias=False)
        self.shape, self.blow_up = shape, blow_up

    def loss(self, weights: Mapping[str, Tensor], run: Trainer) -> Loss:
        rows = self._position + torch.arange(self._chunks[run.update])
        self._position += len(rows)
        hidden, new = self.shape.read(weights, self.inputs[rows], run.state)
        layer = hidden.flatten(0, 1), output_weight(weights), weights["bias"]
        nats = linear_cross_entropy(*layer, self.targets[rows].flatten(), scale=run.scale * self.blow_up)
        return Loss(nats, state=new)


def trainer_of(shape: RecurrentNetwork, ids: Tensor, settings: Training, blow_up: float = 1.0) -> Trainer:
    trainer = Trainer(Words(shape, ids, settings, blow_up), settings, CPU)
    trainer.begin_epoch(1)
    return trainer


def test_p01_states_are_carried_and_the_gradient_is_cut() -> None:
    """P01: after two stretches of 6 words the state is that of 12 words read at once; and a word that was read in the
    first stretch alone gets a gradient of exactly 0 from the second, where the uncut one is not 0.
    """
    shape = RecurrentNetwork(12, 4, 5, 2, tied=False)
    settings = Training(epochs=1, batch=1, steps=6, rate=STILL, weight_decay=0, averages=(), clip=1e9)
    trainer = trainer_of(shape, torch.randperm(12, generator=torch.Generator().manual_seed(1)), settings)
    trainer.run(2)
    task: Any = trainer.task
    weights = {name: part.clone().requires_grad_() for name, part in views(trainer.weights, shape.tensors()).items()}
    hidden, state = shape.read(weights, task.inputs, shape.start(1, trainer.weights))
    for carried, whole in zip(trainer.state, state, strict=True):
        assert not carried.requires_grad
        torch.testing.assert_close(carried, whole)
    earlier = task.inputs[:6, 0]
    assert (trainer.gradients["embedding"][earlier] == 0).all()
    late = linear_cross_entropy(hidden[6:, 0], weights["output"], weights["bias"], task.targets[6:, 0])
    (uncut,) = torch.autograd.grad(late, [weights["embedding"]])
    assert (uncut[earlier].abs().sum(1) > 0).all()


def test_p02_clipping_bounds_the_norm_and_keeps_the_direction() -> None:
    """P02: a gradient of a large norm moves the weights by rate · clip, straight down; a small one is left alone."""
    settings = Training(epochs=1, batch=2, steps=5, rate=0.5, clip=5.0, weight_decay=0, averages=())
    ids = torch.arange(20) % 7
    trainer = trainer_of(RecurrentNetwork(7, 4, 4, 1), ids, settings, blow_up=1e6)
    before = trainer.weights.clone()
    trainer.run(1)
    moved = trainer.weights - before
    assert trainer.norm.item() > 1e4
    assert moved.norm().item() == pytest.approx(0.5 * 5.0, rel=1e-4)
    steepest = torch.cat([part.reshape(-1) for part in trainer.gradients.values()])
    way = torch.cat([part.reshape(-1) for part in views(moved, trainer.shapes).values()])
    assert torch.nn.functional.cosine_similarity(way, -steepest, dim=0).item() == pytest.approx(1, abs=1e-5)
    assert clip_factor(torch.tensor(4.0), 5.0).item() == 1
    assert clip_factor(torch.tensor(0.0), 5.0).item() == 1


def test_p02_a_run_that_would_explode_survives_when_clipped_and_says_where_when_not() -> None:
    """P02, R18: the same loss, a million times too steep."""
    ids = torch.arange(40) % 7
    clipped = Training(epochs=4, batch=2, steps=5, rate=0.5, clip=0.25, averages=())
    trainer = trainer_of(RecurrentNetwork(7, 4, 4, 1), ids, clipped, blow_up=1e6)
    assert np.isfinite(trainer.run(4))
    unclipped = Training(epochs=4, batch=2, steps=5, rate=1e30, clip=1e38, averages=())
    trainer = trainer_of(RecurrentNetwork(7, 4, 4, 1), ids, unclipped, blow_up=1e6)
    with pytest.raises(
        DivergedError, match=r"the loss is nan and embedding is not a finite number at step 4.*lower rate"
    ):
        trainer.run(4)


class OneBadGradient(Words):
    """The next word, with a finite loss and an infinite gradient of one tensor."""

    def loss(self, weights: Mapping[str, Tensor], run: Trainer) -> Loss:
        weights["layer0.recurrent"].register_hook(lambda gradient: gradient + math.inf)  # type: ignore[no-untyped-call]
        return super().loss(weights, run)


def test_r18_the_tensor_whose_gradient_is_no_number_is_named() -> None:
    """R18: step and tensor, while the loss is still finite."""
    settings = Training(epochs=1, batch=2, steps=5, rate=0.5, clip=5.0, averages=())
    shape = RecurrentNetwork(7, 4, 4, 1)
    trainer = Trainer(OneBadGradient(shape, torch.arange(40) % 7, settings, 1.0), settings, CPU)
    trainer.begin_epoch(1)
    with pytest.raises(DivergedError, match=r"the gradient of layer0\.recurrent is not a finite number at step 1"):
        trainer.run(1)


def test_an_epoch_reads_each_word_of_its_rows_once_after_the_word_before_it() -> None:
    ids = torch.arange(23)
    reading = TextRing(ids, 4, 3)
    assert (reading.rows, reading.length, reading.steps, reading.tokens) == (4, 5, 1, 12)
    one, other = (reading.epoch(np.random.default_rng(seed)) for seed in range(2))
    for inputs, targets in (one, other):
        assert inputs.shape == targets.shape == (5, 4)
        assert len(set(targets.flatten().tolist())) == 20
        assert torch.equal((inputs + 1) % 23, targets)
        for row in targets.T.tolist():
            assert sum((after - before) % 23 != 1 for before, after in pairwise(row)) <= 1
    assert not torch.equal(one[1], other[1])


@pytest.mark.parametrize("tokens", [1, 2, 3, 5])
def test_a_text_shorter_than_the_batch_is_read_in_fewer_places(tokens: int) -> None:
    reading = TextRing(torch.arange(tokens), 64, 35)
    assert reading.rows == tokens
    assert reading.tokens == tokens
    assert reading.steps == 1


@pytest.mark.parametrize(
    ("name", "value"),
    [("epochs", 0), ("batch", 0), ("steps", 0), ("rate", 0.0), ("clip", -1.0), ("hold", 2.0), ("precision", "int8")],
)
def test_a_setting_that_makes_no_sense_is_refused_by_name(name: str, value: object) -> None:
    given: dict[str, object] = {name: value}
    with pytest.raises(SettingError, match=name):
        Training(**given)  # type: ignore[arg-type]


def moved_by(settings: Training, blow_up: float = 1.0) -> tuple[Tensor, Trainer]:
    trainer = trainer_of(RecurrentNetwork(7, 4, 4, 1), torch.arange(20) % 7, settings, blow_up)
    before = trainer.weights.clone()
    trainer.run(1)
    return trainer.weights - before, trainer


def test_p03_clipping_by_value_bounds_every_number_and_turns_the_direction() -> None:
    """P03: no number above 5; unlike P02 the direction is not kept."""
    plain = Training(epochs=1, batch=2, steps=5, rate=0.5, clip=0.0, weight_decay=0, averages=())
    down, _ = moved_by(plain, blow_up=1e3)
    clipped, _ = moved_by(replace(plain, clip_value=5.0), blow_up=1e3)
    assert clipped.abs().max().item() == pytest.approx(0.5 * 5.0, rel=1e-4)
    by_hand = (down / -0.5).clamp(-5, 5) * -0.5
    torch.testing.assert_close(clipped, by_hand, rtol=1e-4, atol=1e-5)
    turned = torch.nn.functional.cosine_similarity(clipped, down, dim=0).item()
    normed, _ = moved_by(replace(plain, clip=5.0), blow_up=1e3)
    kept = torch.nn.functional.cosine_similarity(normed, down, dim=0).item()
    assert turned < 0.99 < 0.9999 < kept


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        ("constant", [1, 1, 1, 1]),
        ("step", [1, 1, 0.5, 0.25]),
        ("cosine", [1, 0.853553, 0.5, 0.146447]),
        ("plateau", [1, 1, 0.5, 0.5]),
    ],
)
def test_p04_the_rate_goes_by_its_schedule(schedule: str, expected: list[float]) -> None:
    """P04: the rates of four epochs, with held-out losses that stall after the second."""
    chosen = {"schedule": schedule, "hold": 0.0, "last_rate": 0.0, "full_epochs": 2, "decay": 0.5, "wait": 1}
    settings = Training(epochs=4, batch=2, steps=10, rate=1.0, averages=(), clip=0.0, **chosen)  # type: ignore[arg-type]
    trainer = trainer_of(RecurrentNetwork(7, 4, 4, 1), torch.arange(20) % 7, settings)
    rates = []
    for epoch, loss in enumerate([3.0, 3.0, 2.0, 1.0], 1):
        trainer.begin_epoch(epoch)
        rates.append(trainer.rate(trainer.share(), trainer.step))
        trainer.run(1)
        trainer.note(loss)
    assert rates == pytest.approx(expected, rel=1e-4)


def test_p04_nt_asgd_averages_from_when_the_held_out_loss_has_stalled() -> None:
    """P04: until then the average is the weights; from then on it is their plain mean."""
    settings = Training(epochs=9, batch=2, steps=10, rate=0.5, schedule="nt-asgd", wait=1, averages=(0.0,))
    trainer = trainer_of(RecurrentNetwork(7, 4, 4, 1), torch.arange(20) % 7, settings)
    since = []
    for epoch, loss in enumerate([3.0, 2.0, 2.5, 2.4, 2.3, 2.2], 1):
        trainer.begin_epoch(epoch)
        trainer.run(1)
        if epoch <= 4:
            assert torch.equal(trainer.averages[0], trainer.weights)
        else:
            since.append(trainer.weights.clone())
        trainer.note(loss)
    torch.testing.assert_close(trainer.averages[0], torch.stack(since).mean(0))


def test_warming_up_the_rate_rises_evenly() -> None:
    settings = Training(epochs=2, batch=2, steps=2, rate=1.0, warm_up=4, schedule="constant")
    trainer = trainer_of(RecurrentNetwork(7, 4, 4, 1), torch.arange(20) % 7, settings)
    assert [trainer.rate(0.0, step) for step in range(6)] == [0.25, 0.5, 0.75, 1, 1, 1]


def test_stretches_of_varying_length_cover_the_text_and_scale_the_rate() -> None:
    reading = TextRing(torch.arange(4000), 2, 20, vary=True)
    one, other = (reading.chunks(np.random.default_rng(seed)) for seed in range(2))
    assert sum(one) == sum(other) == 2000
    assert one != other
    assert min(one[:-1]) >= 5
    assert 15 < np.mean(one) < 25
    settings = Training(epochs=1, batch=2, steps=20, vary=True, rate=0.1, averages=())
    flat = torch.arange(400) % 7
    trainer = trainer_of(RecurrentNetwork(7, 4, 4, 1), flat, settings)
    while not trainer.epoch_done:
        trainer.run(3)
    assert trainer.done == 400
    assert trainer.share() == 1


def test_documents_are_read_in_another_order_in_each_epoch() -> None:
    ids = torch.tensor([0, 1, 9, 2, 3, 4, 9, 5, 9])
    reading = TextRing(ids, 1, 3, offsets=np.array([0, 3, 7, 9]))
    whole = {"0 1 9", "2 3 4 9", "5 9"}
    orders = set()
    for seed in range(20):
        _, targets = reading.epoch(np.random.default_rng(seed))
        ring = targets[:, 0].tolist()
        begin = next(place for place in range(9) if ring[place - 1] == 9)
        ring = ring[begin:] + ring[:begin]
        found = " ".join(map(str, ring)).replace("9 ", "9|").split("|")
        assert set(found) == whole
        orders.add(tuple(found))
    assert len(orders) > 1


def saved_for_backward(text: int) -> int:
    """Bytes that one update keeps of what it has computed, until the gradient is there."""
    settings = Training(epochs=1, batch=2, steps=5, rate=0.1, averages=())
    trainer = trainer_of(RecurrentNetwork(7, 4, 4, 1), torch.arange(text) % 7, settings)
    kept = 0

    def keep(tensor: Tensor) -> Tensor:
        nonlocal kept
        kept += tensor.numel() * tensor.element_size()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        trainer.run(1)
    return kept


def test_p01_memory_is_flat_in_the_length_of_the_text() -> None:
    """P01: truncated backpropagation keeps as much of a long text as of a short one."""
    assert saved_for_backward(20) == saved_for_backward(20_000) > 0


def test_p02_the_norm_of_a_long_gradient_is_exact() -> None:
    """P02: ten million numbers, where torch's own norm on a CPU is off in the fourth digit."""
    gradient = torch.rand(10_000_000 // 64 * 64, generator=torch.Generator().manual_seed(0)) ** 8
    found = torch.zeros(())
    norm_of([gradient[:5_000_000], gradient[5_000_000:]], found)
    assert found.item() == pytest.approx(gradient.double().norm().item(), rel=3e-6)
