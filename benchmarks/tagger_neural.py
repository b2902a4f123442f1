"""The neural tagger against the same network written plainly in PyTorch: prediction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

from benchmarks.measure import PAIRS, interleaved, one_core
from benchmarks.report import Row, compared
from foreword.nn.weights import PARTS
from foreword.tag.bilstm import BiLSTMTagger
from foreword.tag.conll import read_conll
from foreword.text.datasets import find

TITLE = "Neural tagger"
HOW = (
    "Names in the test part of CoNLL-2003 by a BiLSTM of 200 units in each direction, words of 100 numbers, letters by "
    "a convolution of 60 or an LSTM of 2 × 30; BIO, no field. The peer is the same network with the same weights as an "
    "nn.Module: batches of 64 sentences in the order of the file, padded to the longest and packed, words to the "
    "longest. Lists of words in, lists of tags out; the same tags but for ties."
)

BATCH = 64


class Plain(nn.Module):
    """As one writes it: embeddings, letters of every word, nn.LSTM, nn.Linear. The LSTM's sentences are packed, or
    else what pads them would be read from the end.
    """

    def __init__(self, tagger: BiLSTMTagger) -> None:
        super().__init__()
        network = tagger.network_
        self.tagger, self.kind = tagger, network.characters
        self.table = nn.Embedding(network.rows, network.words)
        self.letters = nn.Embedding(network.letters, network.letter_units, padding_idx=0)
        if self.kind == "cnn":
            self.filters = nn.Conv1d(network.letter_units, network.spelling, 3, padding=1)
        else:
            self.spelling = nn.LSTM(network.letter_units, network.spelling // 2, bidirectional=True, batch_first=True)
        self.lstm = nn.LSTM(network.inputs, network.units, bidirectional=True, batch_first=True)
        self.output = nn.Linear(2 * network.units, network.tags)
        self._copy(tagger)

    @torch.no_grad()
    def _copy(self, tagger: BiLSTMTagger) -> None:
        ours = tagger.weights_
        self.table.weight.copy_(ours["table"])
        self.letters.weight.copy_(ours["letters"])
        self.letters.weight[0] = 0  # ours multiplies what is no letter with zero
        self.output.weight.copy_(ours["output"])
        self.output.bias.copy_(ours["bias"])
        layers = [(self.lstm, "layer0")]
        if self.kind == "cnn":
            self.filters.weight.copy_(ours["filters"])
            assert self.filters.bias is not None
            self.filters.bias.copy_(ours["filter_bias"])
        else:
            layers.append((self.spelling, "spelling"))
        for layer, name in layers:
            for way, suffix in (("ahead", ""), ("behind", "_reverse")):
                theirs = ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")
                for part, their in zip(PARTS, theirs, strict=True):
                    getattr(layer, their + suffix).copy_(ours[f"{name}.{way}.{part}"])

    def spell(self, letters: Tensor, sizes: Tensor) -> Tensor:
        x = self.letters(letters)
        if self.kind == "cnn":
            there = torch.arange(letters.shape[1]) < sizes[:, None]
            found = self.filters(x.transpose(1, 2)).masked_fill(~there[:, None], -torch.inf)
            return torch.tanh(found.max(2).values)
        packed = pack_padded_sequence(x, sizes, batch_first=True, enforce_sorted=False)
        _, (last, _) = self.spelling(packed)
        return torch.cat((last[0], last[1]), 1)

    def forward(self, words: Tensor, lengths: Tensor, letters: Tensor, sizes: Tensor) -> Tensor:
        spelled = self.spell(letters, sizes).view(*words.shape, -1)
        x = torch.cat((self.table(words), spelled), 2)
        packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        hidden, _ = pad_packed_sequence(self.lstm(packed)[0], batch_first=True)
        scores: Tensor = self.output(hidden)
        return scores

    @torch.inference_mode()
    def predict(self, sentences: Sequence[Sequence[str]]) -> list[list[str]]:
        lexicon = self.tagger._lexicon
        found: list[list[str]] = []
        for begin in range(0, len(sentences), BATCH):
            batch = sentences[begin : begin + BATCH]
            lengths = torch.tensor([len(words) for words in batch])
            words = pad_sequence([torch.tensor([lexicon.row(word) for word in each]) for each in batch], True)
            longest = int(lengths.max())
            padded = [[*each, *[""] * (longest - len(each))] for each in batch]
            letters = [torch.tensor(lexicon.spelled(word)) for each in padded for word in each]
            sizes = torch.tensor([len(each) for each in letters])
            best = self(words, lengths, pad_sequence(letters, True), sizes).argmax(2)
            names = self.tagger.tags_
            found += [[names[tag] for tag in row[:size]] for row, size in zip(best.tolist(), lengths, strict=True)]
        return found


def run(quick: bool) -> list[Row]:
    with one_core():
        return [_prediction(characters, quick) for characters in ("cnn", "lstm")]


def _prediction(characters: Any, quick: bool) -> Row:
    """A tagger that has read a little: what weighs nothing would take other times than what has been learnt."""
    train, test = read_conll(find("conll2003:train")), read_conll(find("conll2003:test"))
    tagger = BiLSTMTagger(characters=characters, crf=False, epochs=1, device="cpu")
    tagger.fit(train.sentences[:1000], train.tags[:1000])
    sentences = test.sentences[: 640 if quick else None]
    peer = Plain(tagger).eval()

    def ours() -> Any:
        return tagger.predict(sentences)

    def theirs() -> Any:
        return peer.predict(sentences)

    job = f"tag words, letters by {'a convolution' if characters == 'cnn' else 'an LSTM'}"
    taken = interleaved(f"tagger, {job}", ours, theirs, _agree, pairs=PAIRS)
    pace = sum(map(len, sentences)) / sorted(taken.ours)[len(taken.ours) // 2] / 1e3
    return replace(compared(job, "PyTorch", taken, bar=2), note=f"{pace:.0f} thousand words a second")


def _agree(mine: list[list[str]], other: list[list[str]]) -> bool:
    """All but one word in ten thousand: two scores may be equal but for rounding."""
    pairs = [(a, b) for ours, theirs in zip(mine, other, strict=True) for a, b in zip(ours, theirs, strict=True)]
    return sum(a != b for a, b in pairs) <= len(pairs) // 10_000
