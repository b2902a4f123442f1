"""The loop on its own: truncation, clipping, reading."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

import numpy as np
import pytest
import torch
from torch import Tensor

from foreword.errors import ForewordError, SettingError
from foreword.lm.neural_network import output_weight
from foreword.lm.recurrent_network import RecurrentNetwork
from foreword.nn.softmax import linear_cross_entropy
from foreword.training.flat import new_flat, views
from foreword.training.loop import State, Trainer, clip_factor
from foreword.training.reading import Reading
from foreword.training.settings import Training

torch.set_num_threads(1)
CPU = torch.device("cpu")
STILL = 1e-30
"""A rate at which no weight moves."""


def trainer_of(shape: RecurrentNetwork, ids: Tensor, settings: Training, blow_up: float = 1.0) -> Trainer:
    flat = new_flat(shape.tensors(), CPU)
    shape.initialise(views(flat, shape.tensors()), torch.Generator().manual_seed(0))

    def loss(
        weights: Mapping[str, Tensor], x: Tensor, y: Tensor, state: State, scale: float
    ) -> tuple[Tensor, Tensor, State]:
        hidden, new = shape.read(weights, x, state)
        words = hidden.flatten(0, 1)
        nats = linear_cross_entropy(words, output_weight(weights), weights["bias"], y.flatten(), scale=scale * blow_up)
        return nats, torch.zeros(()), new

    reading = Reading(ids, settings.batch, settings.steps)
    trainer = Trainer(flat, shape.tensors(), loss, shape.start(reading.rows, flat), reading, settings)
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
    weights = {name: part.clone().requires_grad_() for name, part in views(trainer.weights, shape.tensors()).items()}
    hidden, state = shape.read(weights, trainer._inputs, shape.start(1, trainer.weights))
    for carried, whole in zip(trainer.state, state, strict=True):
        assert not carried.requires_grad
        torch.testing.assert_close(carried, whole)
    earlier = trainer._inputs[:6, 0]
    assert (trainer.gradients["embedding"][earlier] == 0).all()
    late = linear_cross_entropy(hidden[6:, 0], weights["output"], weights["bias"], trainer._targets[6:, 0])
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
    assert trainer._norm.item() > 1e4
    assert moved.norm().item() == pytest.approx(0.5 * 5.0, rel=1e-4)
    assert torch.nn.functional.cosine_similarity(moved, -trainer._gradient, dim=0).item() == pytest.approx(1, abs=1e-5)
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
    with pytest.raises(ForewordError, match=r"not a finite number at step 4.*lower rate"):
        trainer.run(4)


def test_an_epoch_reads_each_word_of_its_rows_once_after_the_word_before_it() -> None:
    ids = torch.arange(23)
    reading = Reading(ids, 4, 3)
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
    reading = Reading(torch.arange(tokens), 64, 35)
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
