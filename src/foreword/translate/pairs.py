"""Sentences and their translations as ids, batches of them, and the source's vocabulary as arrays.

Both sides are a ``Corpus``: every sentence ends in ``</s>``, in the source too, so that there is always something to
attend to. Shapes: B sentences, S ids of the longest source, T of the longest target, N target ids without padding.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from foreword.errors import InputError, MissingExtraError

try:
    import torch
    from torch import Tensor
except ImportError:
    raise MissingExtraError("torch", "neural", "a translator") from None

from foreword.arrays import Array, Longs
from foreword.protocols import Json
from foreword.storage.joined import check_joined, decoded
from foreword.tokens.corpus import Corpus
from foreword.tokens.vocab import Vocab
from foreword.training.batches import padded_ids

EIGHT = 8
"""Batches of more sentences have a multiple of it, which matrix units want."""


@dataclass(frozen=True, slots=True)
class Pairs:
    """Sentence i of ``sources`` means what sentence i of ``targets`` does."""

    sources: Corpus
    targets: Corpus

    def __post_init__(self) -> None:
        if len(self.sources) != len(self.targets):
            raise InputError(f"there are {len(self.sources)} sources but {len(self.targets)} targets: expected as many")

    def __len__(self) -> int:
        return len(self.sources)

    def __getitem__(self, sentences: slice) -> Pairs:
        return Pairs(self.sources[sentences], self.targets[sentences])

    def check(self) -> None:
        """Refuse ids outside the vocabularies."""
        self.sources.check_ids()
        self.targets.check_ids()


class PairBatch(NamedTuple):
    """source (S, B), padded behind the end; lengths (B,). inputs (T, B): what the decoder reads, ``</s>`` for ``<s>``
    first. targets (N,): what it should say, and places (N,): where, as t · B + b.
    """

    source: Tensor
    lengths: Tensor
    inputs: Tensor
    targets: Tensor
    places: Tensor

    def to(self, device: torch.device) -> PairBatch:
        """Return the batch on a device."""
        if device.type == "cpu":
            return self
        return PairBatch(*(part.pin_memory().to(device, non_blocking=True) for part in self))


def documents_of(corpus: Corpus) -> list[Longs]:
    """Return the ids of each document."""
    return [np.asarray(each, np.int64) for each in corpus.documents()]


def lengths_of(documents: Sequence[Longs]) -> Longs:
    """Return the length of each document."""
    return np.array([len(each) for each in documents], np.int64)


def batch_of(sources: Sequence[Longs], targets: Sequence[Longs], source_end: int, target_end: int) -> PairBatch:
    """Return a padded batch of sentence pairs."""
    source, lengths = padded_ids(sources, fill=source_end)
    wanted, sizes = padded_ids(targets, fill=target_end)
    inputs = torch.full_like(wanted, target_end)
    inputs[1:] = wanted[:-1]
    there = (torch.arange(len(wanted))[:, None] < sizes).view(-1)
    places = there.nonzero()[:, 0]
    return PairBatch(source, lengths, inputs, wanted.view(-1)[places], places)


def bucketed(sources: Longs, targets: Longs, tokens: int, random: np.random.Generator | None = None) -> list[list[int]]:
    """Return batches of pairs of similar length, of about this many target ids with their padding.

    With ``random`` lengths are perturbed, and batches come in random order; without, the longest come first.
    """
    key = targets + sources / (1.0 + sources.max(initial=0))
    if random is not None:
        key = targets * random.uniform(1, 1.1, len(targets)) + random.uniform(0, 1, len(targets))
    order = np.argsort(-key, kind="stable").tolist()
    groups: list[list[int]] = []
    begin = 0
    while begin < len(order):
        count = tokens // max(int(targets[order[begin]]), 1)
        groups.append(order[begin : begin + max(1, count - count % EIGHT if count > EIGHT else count)])
        begin += len(groups[-1])
    return groups if random is None else [groups[place] for place in random.permutation(len(groups)).tolist()]


# The vocabulary of the source

DATA, OFFSETS, COUNTS = "source.data", "source.offsets", "source.counts"


def vocab_to_arrays(vocab: Vocab) -> tuple[dict[str, Json], dict[str, Array]]:
    """Return what JSON holds of a vocabulary, and its arrays: a folder has one vocabulary, which is the target's."""
    arrays: dict[str, Array] = {DATA: np.asarray(vocab.data), OFFSETS: np.asarray(vocab.offsets)}
    if vocab.counts is not None:
        arrays[COUNTS] = np.asarray(vocab.counts)
    return {"unknown": vocab.unknown, "end": vocab.end}, arrays


def vocab_from_arrays(facts: Any, arrays: dict[str, Array]) -> Vocab:
    """Return the vocabulary that ``vocab_to_arrays`` took apart; a ValueError, KeyError or TypeError if damaged."""
    data, offsets, counts = arrays[DATA], arrays[OFFSETS], arrays.get(COUNTS)
    check_joined(data, offsets, "source words")
    if counts is not None and (counts.dtype != np.int64 or counts.shape != (len(offsets) - 1,)):
        raise ValueError(f"the counts of the source vocabulary are {counts.dtype} {counts.shape}")
    tokens = decoded(data, offsets)
    unknown, end = facts["unknown"], facts["end"]
    for name, index in (("unknown", unknown), ("end", end)):
        if not (type(index) is int and 0 <= index < len(tokens)) and not (name == "unknown" and index is None):
            raise ValueError(f"{name} is {index!r}: expected an index in a vocabulary of {len(tokens)} tokens")
    return Vocab(tokens, counts, unknown=None if unknown is None else tokens[unknown], end=tokens[end])
