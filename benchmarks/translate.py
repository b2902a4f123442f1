"""Greedy translation against the same network written plainly in PyTorch: nn.LSTM, nn.LSTMCell, a step at a time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

from benchmarks.measure import PAIRS, interleaved, one_core
from benchmarks.report import Row, compared
from foreword.nn.weights import PARTS
from foreword.pipeline.translator import TextTranslator, read_pairs
from foreword.text.datasets import find
from foreword.tokens.bpe import BPETokenizer
from foreword.tokens.corpus import Corpus
from foreword.translate.pairs import documents_of
from foreword.translate.seq2seq import Seq2Seq

TITLE = "Translation"
HOW = (
    "Greedy translation of Multi30k's test_2016_flickr, ids in, ids out, by a bidirectional LSTM encoder of 2 × 256 "
    "units, an LSTM decoder of 256 and words of 256 numbers, 8,000 BPE pieces, after a short training. The peer is the "
    "same network with the same weights as an nn.Module: batches of 64 sentences in the order of the file, packed for "
    "the encoder, and a loop over steps until all sentences of a batch have ended, or said 30 pieces: a network that "
    "has learnt little sometimes never ends a sentence, which would only cost the peer. The same ids but for ties."
)

BATCH, MAX_TOKENS = 64, 30
PIECES = 8000
LEARNT = 1500
"""Pairs that are read before: enough for sentences to end where they should, about."""


class Plain(nn.Module):
    """As one writes it."""

    def __init__(self, model: Seq2Seq) -> None:
        super().__init__()
        network = model.network_
        self.network, self.end, self.scale = network, model.vocab.end, math.sqrt(network.words)
        self.table = nn.Embedding(network.target, network.words)
        self.encoder = nn.LSTM(network.words, network.encoder // 2, bidirectional=True, batch_first=True)
        self.cell = nn.LSTMCell(network.words, network.units)
        self.bridge = nn.Linear(network.encoder, 2 * network.units)
        self.key = nn.Linear(network.encoder, network.units, bias=False)
        self.query = nn.Linear(network.units, network.units, bias=False)
        self.score = nn.Linear(network.units, 1, bias=False)
        self.readout = nn.Linear(network.units + network.encoder, network.words)
        self.output = nn.Linear(network.words, network.target)
        self._copy(model)

    @torch.no_grad()
    def _copy(self, model: Seq2Seq) -> None:
        ours = model.weights_
        pairs: list[tuple[Any, str]] = [
            (self.table.weight, "target"),
            (self.output.weight, "target"),
            (self.output.bias, "bias"),
            (self.key.weight, "key"),
        ]
        for layer, name in ((self.bridge, "bridge"), (self.readout, "readout")):
            pairs += [(layer.weight, name), (layer.bias, f"{name}_bias")]
        if self.network.attention == "additive":
            pairs += [(self.query.weight, "query"), (self.score.weight[0], "score")]
        for module, name, suffix in (
            (self.encoder, "encoder0.ahead", "_l0"),
            (self.encoder, "encoder0.behind", "_l0_reverse"),
            (self.cell, "decoder0", ""),
        ):
            theirs = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
            pairs += [(getattr(module, t + suffix), f"{name}.{p}") for p, t in zip(PARTS, theirs, strict=True)]
        for part, name in pairs:
            part.copy_(ours[name])

    def attend(self, h: Tensor, values: Tensor, keys: Tensor, mask: Tensor) -> Tensor:
        if self.network.attention == "additive":
            scores = self.score(torch.tanh(self.query(h)[:, None] + keys))[:, :, 0]
        else:
            scores = torch.bmm(keys, h[:, :, None])[:, :, 0]
        weights = torch.softmax(scores.masked_fill(~mask, -torch.inf), 1)
        return torch.bmm(weights[:, None], values)[:, 0]

    @torch.inference_mode()
    def translate(self, sources: Sequence[NDArray[np.int64]]) -> list[list[int]]:
        said: list[list[int]] = []
        for begin in range(0, len(sources), BATCH):
            said += self._batch([torch.from_numpy(each) for each in sources[begin : begin + BATCH]])
        return said

    def _batch(self, sources: Sequence[Tensor]) -> list[list[int]]:
        lengths = torch.tensor([len(each) for each in sources])
        x = self.table(pad_sequence(list(sources), True)) * self.scale
        packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        out, (last, _) = self.encoder(packed)
        values, _ = pad_packed_sequence(out, batch_first=True)
        mask = torch.arange(values.shape[1]) < lengths[:, None]
        h, c = torch.tanh(self.bridge(torch.cat((last[0], last[1]), 1))).chunk(2, 1)
        keys = self.key(values)
        words = torch.full((len(sources),), self.end)
        ended = torch.zeros(len(sources), dtype=torch.bool)
        steps = []
        for _ in range(MAX_TOKENS):
            h, c = self.cell(self.table(words) * self.scale, (h, c))
            context = self.attend(h, values, keys, mask)
            words = self.output(torch.tanh(self.readout(torch.cat((context, h), 1)))).argmax(1)
            ended |= words == self.end
            steps.append(words)
            if ended.all():
                break
        rows = torch.stack(steps, 1).tolist()
        return [row[: row.index(self.end)] if self.end in row else row for row in rows]


def run(quick: bool) -> list[Row]:
    with one_core():
        return [_greedy(attention, quick) for attention in ("general", "additive")]


def _greedy(attention: Any, quick: bool) -> Row:
    train = read_pairs(find("multi30k:train.en"), find("multi30k:train.de"))
    sources, _ = read_pairs(find("multi30k:test2016.en"), find("multi30k:test2016.de"))
    tokenizer = BPETokenizer(PIECES, prefix_space=True).fit([*train[0], *train[1]])
    model = Seq2Seq(256, words=256, attention=attention, epochs=5, batch=500, rate=3e-3, dropout=0.0, device="cpu")
    TextTranslator(tokenizer, tokenizer, model).fit(train[0][:LEARNT], train[1][:LEARNT])
    corpus = Corpus.from_texts(sources[: 256 if quick else None], tokenizer)
    documents, peer = documents_of(corpus), Plain(model).eval()

    def ours() -> Any:
        return [ids.tolist() for ids in model.translate(corpus, width=1, max_tokens=MAX_TOKENS)]

    def theirs() -> Any:
        return peer.translate(documents)

    taken = interleaved(f"translate greedily, {attention} attention", ours, theirs, _agree, pairs=PAIRS)
    pace = len(documents) / sorted(taken.ours)[len(taken.ours) // 2]
    job = f"translate greedily, {attention} attention"
    return replace(compared(job, "PyTorch", taken, bar=2), note=f"{pace:.0f} sentences a second")


def _agree(mine: list[list[int]], other: list[list[int]]) -> bool:
    """All but one sentence in two hundred: two scores may be equal but for rounding, and then all that follows."""
    return sum(a != b for a, b in zip(mine, other, strict=True)) <= len(mine) // 200
