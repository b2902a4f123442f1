"""A softmax over candidates, in expectation the softmax over all."""

from __future__ import annotations

import torch

from foreword.training.candidates import Candidates

COUNTS = torch.tensor([50, 20, 10, 5, 5, 4, 3, 2, 1, 0])


def test_targets_are_always_among_the_candidates() -> None:
    candidates = Candidates(COUNTS, 4, torch.Generator().manual_seed(0))
    targets = torch.tensor([8, 0, 8, 3])
    ids, log_chances, places = candidates.choose(targets)
    assert torch.equal(ids[places], targets)
    assert len(set(ids.tolist())) == len(ids) == len(log_chances)
    assert (log_chances <= 0).all()


def test_the_sum_over_candidates_estimates_that_over_all_words() -> None:
    """E[Σ_(j drawn) exp(l_j) / π_j] = Σ_j exp(l_j), when the targets are words of the text."""
    random = torch.Generator().manual_seed(0)
    candidates = Candidates(COUNTS, 3, random)
    logits = torch.randn(10, generator=random)
    sums = []
    for _ in range(4000):
        targets = torch.multinomial(COUNTS.double(), 5, replacement=True, generator=random)
        ids, log_chances, _ = candidates.choose(targets)
        sums.append((logits[ids] - log_chances).exp().sum())
    estimates = torch.stack(sums)
    error = estimates.std() / len(sums) ** 0.5
    assert abs(estimates.mean() - logits.exp().sum()) < 4 * error


def test_with_many_draws_every_word_is_certain() -> None:
    assert Candidates(COUNTS, 100_000).log_chances(10).abs().max() < 1e-6
