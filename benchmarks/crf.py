"""Conditional random fields against pytorch-crf: decoding, and a step of learning."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torchcrf import CRF

from benchmarks.measure import PAIRS, interleaved, one_core
from benchmarks.report import Row, compared
from foreword.nn.crf import Chain, log_likelihood, viterbi

TITLE = "Conditional random field"
HOW = (
    "Viterbi for a batch of 64 sentences, 9 tags (four kinds of names in BIO) or 20, float32; random scores, sentences "
    "of 50 words or of 1 to 50. Tensors in, lists of tags out, the same tags. Learning is the "
    "log-likelihood of random tags and its gradients, which agree to 1e-4. A run is 20 batches."
)

TEXTS, LONGEST, BATCHES = 64, 50, 20


def run(quick: bool) -> list[Row]:
    with one_core():
        decoding = [_decoding(kinds, ragged) for kinds in (9, 20) for ragged in (False, True)]
        return decoding + [_learning(kinds) for kinds in (9, 20)]


def _decoding(kinds: int, ragged: bool) -> Row:
    generator = torch.Generator().manual_seed(kinds)
    peer = CRF(kinds, batch_first=True)
    chain = Chain(peer.start_transitions, peer.transitions, peer.end_transitions)
    batches = [torch.randn(TEXTS, LONGEST, kinds, generator=generator) for _ in range(BATCHES)]
    lengths = torch.randint(1 if ragged else LONGEST, LONGEST + 1, (TEXTS,), generator=generator)
    lengths[0] = LONGEST
    mask = torch.arange(LONGEST) < lengths[:, None]

    def ours() -> Any:
        return [viterbi(batch, lengths, chain) for batch in batches]

    def theirs() -> Any:
        return [peer.decode(batch, mask) for batch in batches]

    job = f"Viterbi, {kinds} tags, {'1 to 50' if ragged else '50'} words"
    taken = interleaved(f"crf, {job}", ours, theirs, lambda mine, other: bool(mine == other), pairs=PAIRS)
    row = compared(job, "pytorch-crf", taken, bar=20)
    pace = int(lengths.sum()) * BATCHES / sorted(taken.ours)[len(taken.ours) // 2] / 1e6
    return replace(row, note=f"{pace:.1f} million words a second")


def _learning(kinds: int) -> Row:
    generator = torch.Generator().manual_seed(kinds)
    peer = CRF(kinds, batch_first=True)
    chain = Chain(peer.start_transitions, peer.transitions, peer.end_transitions)
    batches = [torch.randn(TEXTS, LONGEST, kinds, generator=generator).requires_grad_() for _ in range(BATCHES)]
    tags = torch.randint(0, kinds, (TEXTS, LONGEST), generator=generator)
    lengths, mask = torch.full((TEXTS,), LONGEST), torch.ones(TEXTS, LONGEST, dtype=torch.bool)

    def ours() -> Any:
        return [torch.autograd.grad(log_likelihood(batch, tags, lengths, chain).sum(), batch)[0] for batch in batches]

    def theirs() -> Any:
        return [torch.autograd.grad(peer(batch, tags, mask), batch)[0] for batch in batches]

    def agree(mine: Any, other: Any) -> bool:
        return all(torch.allclose(*pair, atol=1e-4) for pair in zip(mine, other, strict=True))

    job = f"likelihood and gradient, {kinds} tags, 50 words"
    return compared(job, "pytorch-crf", interleaved(f"crf, {job}", ours, theirs, agree, pairs=PAIRS))
