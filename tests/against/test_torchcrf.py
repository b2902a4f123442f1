"""The linear chain against pytorch-crf."""

from __future__ import annotations

import pytest
import torch

from foreword.nn.crf import Chain, log_likelihood, viterbi

torchcrf = pytest.importorskip("torchcrf")


@pytest.mark.parametrize("kinds", [2, 9, 20])
def test_s03_decoding_and_likelihood_are_those_of_pytorch_crf(kinds: int) -> None:
    """S03: 32 sentences of 1 to 30 words; tags equal, log-likelihoods and gradients to 1e-9."""
    generator = torch.Generator().manual_seed(kinds)
    peer = torchcrf.CRF(kinds, batch_first=True).double()
    chain = Chain(peer.start_transitions, peer.transitions, peer.end_transitions)
    emissions = torch.randn(32, 30, kinds, generator=generator, dtype=torch.float64).requires_grad_()
    lengths = torch.randint(1, 31, (32,), generator=generator)
    mask = torch.arange(30) < lengths[:, None]
    tags = torch.randint(0, kinds, (32, 30), generator=generator)
    assert viterbi(emissions, lengths, chain) == peer.decode(emissions, mask)
    single = Chain(*(part.detach().float() for part in chain))
    assert viterbi(emissions.float(), lengths, single) == peer.float().decode(emissions.float(), mask)
    peer.double()
    ours, theirs = log_likelihood(emissions, tags, lengths, chain), peer(emissions, tags, mask, reduction="none")
    torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-9)
    inputs = [emissions, *chain]
    for mine, other in zip(
        torch.autograd.grad(ours.sum(), inputs), torch.autograd.grad(theirs.sum(), inputs), strict=True
    ):
        torch.testing.assert_close(mine, other, rtol=1e-9, atol=1e-9)
