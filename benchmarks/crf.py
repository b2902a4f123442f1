"""Decoding a conditional random field against pytorch-crf."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torchcrf import CRF

from benchmarks.measure import PAIRS, interleaved, one_core
from benchmarks.report import Row, compared
from foreword.nn.crf import Chain, viterbi

TITLE = "Conditional random field"
HOW = (
    "Viterbi for a batch of 64 sentences, 9 tags (four kinds of names in BIO) or 20, float32; random scores, sentences "
    "of 50 words or of 1 to 50. Tensors in, lists of tags out, the same tags; a run is 20 batches."
)

TEXTS, LONGEST, BATCHES = 64, 50, 20


def run(quick: bool) -> list[Row]:
    with one_core():
        return [_decoding(kinds, ragged, PAIRS) for kinds in (9, 20) for ragged in (False, True)]


def _decoding(kinds: int, ragged: bool, pairs: int) -> Row:
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
    taken = interleaved(f"crf, {job}", ours, theirs, lambda mine, other: bool(mine == other), pairs=pairs)
    row = compared(job, "pytorch-crf", taken, bar=20)
    pace = int(lengths.sum()) * BATCHES / sorted(taken.ours)[len(taken.ours) // 2] / 1e6
    return replace(row, note=f"{pace:.1f} million words a second")
