"""Adam is Adam."""

from __future__ import annotations

import pytest
import torch

from foreword.training import optimisers
from foreword.training.optimisers import optimiser


@pytest.mark.parametrize("name", ["sgd", "adam"])
def test_updates_are_torch_s_own(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(optimisers, "BLOCK", 7)
    random = torch.Generator().manual_seed(0)
    weights = torch.randn(20, generator=random)
    theirs = weights.clone().requires_grad_()
    peer = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam}[name]([theirs], lr=0.1)
    ours = optimiser(name, weights)
    for step in range(1, 6):
        gradient = torch.randn(20, generator=random)
        theirs.grad = gradient / 2
        peer.step()
        ours.update(weights, gradient.clone(), torch.tensor(0.5), torch.tensor(ours.plan(0.1, step)))
    torch.testing.assert_close(weights, theirs.detach())


def test_words_that_are_never_seen_do_not_slow_adam_down_nor_move() -> None:
    """A second moment that fades for ever would become a denormal number, for which a CPU takes ten times as long."""
    weights = torch.ones(3)
    ours = optimiser("adam", weights)
    for step in range(1, 200):
        ours.update(weights, torch.zeros(3), torch.ones(()), torch.tensor(ours.plan(0.1, step)))
    assert torch.equal(weights, torch.ones(3))
