"""The bottleneck of one vector: the quality of a translator by the length of its source, with and without attention.

Without attention all of a source must pass through the encoder's last state; K. Cho et al., "On the properties of
neural machine translation" (2014) saw quality fall as sentences grew. The task is synthetic, so that nothing but length
changes: uniformly random words, to be copied or reversed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from foreword.arrays import Doubles, Longs
from foreword.errors import SettingError
from foreword.picture.curves import curves
from foreword.picture.picture import Picture, readable
from foreword.protocols import Meter
from foreword.tokens.corpus import Corpus
from foreword.tokens.vocab import Vocab
from foreword.translate.pairs import Pairs
from foreword.translate.seq2seq import Seq2Seq

Task = Literal["copy", "reverse"]
SETTINGS: dict[str, Any] = {
    "units": 32, "words": 16, "epochs": 12, "batch": 400, "rate": 1e-2, "dropout": 0.0, "smoothing": 0.0,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Bottleneck:
    """Quality by length. lengths: (n,) words of a source. By kind of attention, (n,): the perplexity of a target token,
    and the share of targets that greedy search gets wholly right.
    """

    lengths: Longs
    perplexity: dict[str, Doubles]
    right: dict[str, Doubles]


def random_pairs(lengths: Longs, words: int, task: Task, random: np.random.Generator) -> Pairs:
    """Generate one pair of each of these lengths."""
    vocab = Vocab(["<unk>", "</s>", *(f"w{number}" for number in range(words))])
    sources = [random.integers(2, words + 2, size) for size in lengths.tolist()]
    targets = [each[::-1] if task == "reverse" else each for each in sources]
    return Pairs(Corpus.from_ids(sources, vocab), Corpus.from_ids(targets, vocab))


def bottleneck(
    *,
    kinds: tuple[str, ...] = ("none", "additive"),
    task: Task = "reverse",
    longest: int = 16,
    words: int = 10,
    pairs: int = 3000,
    measured: int = 60,
    seed: int = 0,
    meter: Meter | None = None,
    **settings: Any,
) -> Bottleneck:
    """Train one translator for each kind of attention on sources of 1 to ``longest`` words, and measure it on
    ``measured`` others of each length. settings: of ``Seq2Seq``.
    """
    if longest < 1 or words < 2 or pairs < 1 or measured < 1:
        raise SettingError(f"longest={longest}, words={words}, pairs={pairs} and measured={measured} are too few")
    random = np.random.default_rng(seed)
    learnt = random_pairs(random.integers(1, longest + 1, pairs), words, task, random)
    lengths = np.arange(1, longest + 1)
    tests = [random_pairs(np.full(measured, size), words, task, random) for size in lengths.tolist()]
    perplexity: dict[str, Doubles] = {}
    right: dict[str, Doubles] = {}
    for kind in kinds:
        model = Seq2Seq(**{**SETTINGS, "seed": seed, **settings, "attention": kind}).fit(learnt, meter=meter)
        perplexity[kind] = np.array([np.exp(-model.score(test)) for test in tests])
        right[kind] = np.array([_share_right(model, test, 2 * longest) for test in tests])
    return Bottleneck(lengths, perplexity, right)


def _share_right(model: Seq2Seq, test: Pairs, max_tokens: int) -> float:
    translations = model.translate(test.sources, width=1, max_tokens=max_tokens)
    wanted = (ids[:-1] for ids in test.targets.documents())
    return float(np.mean([np.array_equal(ours, theirs) for ours, theirs in zip(translations, wanted, strict=True)]))


def draw_bottleneck(lengths: Sequence[int], perplexity: Mapping[str, Sequence[float]]) -> Picture:
    """Draw the perplexity, for each length, of each kind of attention; "none" is the model without."""
    names = {kind: "no attention" if kind == "none" else f"{kind} attention" for kind in perplexity}
    lines = {names[kind]: list(values) for kind, values in perplexity.items()}
    at_last = ", ".join(f"{readable(values[-1])} with {name}" for name, values in lines.items())
    return curves(
        [str(length) for length in lengths],
        lines,
        "What one vector can hold",
        f"Perplexity of a target token by the number of source words: at {lengths[-1]} words {at_last}.",
        accent=[name for kind, name in names.items() if kind != "none"],
    )
