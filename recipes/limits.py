"""X02: four limits of recurrent networks, and a quick reference of six architectures, a measured number in each row.

    python recipes/limits.py > docs/limits.md        half a minute of one CPU core

Everything is measured on the spot, on one thread, with layers of 64 units that have learnt nothing unless a row says
otherwise: weights uniform within ±1/√H, as PyTorch begins, and forget gates with a bias of 1. Times are CPU times, the
least of several. The numbers are also written to docs/results/limits.json.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from foreword.lessons.bottleneck import bottleneck
from foreword.lessons.claims.results import provenance, write_result
from foreword.neural.recurrent import RecurrentLM
from foreword.neural.transformer import TransformerLM, TransformerNetwork
from foreword.nn.attention import attend, scaled_scores
from foreword.nn.layers import both_ways, gru, lstm, rnn
from foreword.nn.network import parameter_count
from foreword.nn.recurrent_network import RecurrentNetwork
from foreword.tokens.corpus import Corpus
from foreword.tokens.vocab import Vocab
from foreword.training.settings import Training

UNITS, WIDE, FAR = 64, 256, 100
AS_LARGE = 76
"""Units of an LSTM of two layers with as many weights as a Transformer of two layers of 64, to 5 %."""
BEGINNING = """\
Gradients are those of layers that have learnt nothing: one layer of 64 units, weights drawn uniformly within ±1/√H as
PyTorch begins, an LSTM's forget gates with a bias of 1, inputs N(0, 1). How fast they fade, and in which cell fastest,
is a matter of these weights: with weights N(0, 1/√H) the GRU loses most of the three and not the RNN (row F09 of
[CLAIMS.md](CLAIMS.md)). In both the LSTM loses least.
"""
GATES = {"rnn": 1, "gru": 3, "lstm": 4}


def layer(cell: str, units: int, seed: int = 0) -> Callable[[Tensor], Tensor]:
    """A layer that has learnt nothing, from a state of zero; an LSTM's forget gates begin open, as they are trained."""
    generator, rows = torch.Generator().manual_seed(seed), GATES[cell] * units
    shapes = ((rows, units), (rows, units), (rows,), (rows,))
    weights = [(2 * torch.rand(shape, generator=generator) - 1) * units**-0.5 for shape in shapes]
    if cell == "lstm":
        weights[2][units : 2 * units] = 1.0
    calls = {"rnn": rnn, "gru": gru}

    def read(x: Tensor) -> Tensor:
        zero = x.new_zeros(x.shape[1], units)
        return lstm(x, zero, zero, weights)[0] if cell == "lstm" else calls[cell](x, zero, weights)[0]

    return read


def attention(x: Tensor) -> Tensor:
    """What the last word makes of all words, (1, B, H)."""
    held = x.transpose(0, 1)
    return attend(scaled_scores(held[:, -1], held), held).context[None]


def seconds(work: Callable[[], object], times: int = 5) -> float:
    """CPU seconds, the least of several."""
    found = []
    for _ in range(times):
        began = time.process_time()
        work()
        found.append(time.process_time() - began)
    return min(found)


def one_after_the_other(steps: int = 1024) -> float:
    """How much longer a text of ``words`` words takes than as many texts of one word, which is the same arithmetic."""
    read, words = layer("lstm", WIDE), torch.randn(steps, WIDE)
    with torch.inference_mode():
        return seconds(lambda: read(words[:, None])) / seconds(lambda: read(words[None]))


def far_gradient(read: Callable[[Tensor], Tensor], steps: int = FAR) -> float:
    """The gradient of the last output that reaches a word ``lag`` steps back, as a share of what goes one step back."""
    words = torch.randn(steps + 1, 16, UNITS, generator=torch.Generator().manual_seed(1), requires_grad=True)
    (slope,) = torch.autograd.grad(read(words)[-1].sum(), words)
    norms = slope.double().norm(dim=2).mean(1)  # in float32 the square of what is left of an RNN's is zero
    return float(norms[0] / norms[-2])


def remembered(words: int) -> tuple[int, int]:
    """Numbers that an LSTM and a Transformer of two layers hold of a text of a given number of words."""
    like = torch.zeros(1)
    recurrent = RecurrentNetwork(100, UNITS, UNITS, 2).start(1, like)
    looking = TransformerNetwork(100, UNITS, 2, 2, words + 1).start(1, like)[1:]
    return sum(part.numel() for part in recurrent), sum(part.numel() for part in looking)


def pace_models() -> dict[str, RecurrentLM | TransformerLM]:
    """An LSTM and a Transformer of as many parameters, to 5 %."""
    training = Training(epochs=1, batch=8, steps=64, optimiser="adam", rate=1e-3, averages=())
    return {
        "lstm": RecurrentLM("lstm", AS_LARGE, AS_LARGE, 2, training=training, device="cpu"),
        "transformer": TransformerLM(UNITS, 2, 2, 65, training=training, device="cpu"),
    }


def pace_vocab() -> Vocab:
    return Vocab(["<unk>", "</s>", *(f"w{place}" for place in range(498))])


def pace_parameters() -> dict[str, int]:
    """Count the parameters of both."""
    return {name: parameter_count(model.network(pace_vocab())) for name, model in pace_models().items()}


def training_pace(words: int = 6000) -> dict[str, int]:
    """Words a second in training, of an LSTM and a Transformer of as many parameters, on one CPU thread."""
    corpus = Corpus.from_ids([np.random.default_rng(0).integers(0, 500, words)], pace_vocab())
    models = pace_models()
    for model in models.values():
        model.fit(corpus)  # what must be compiled or chosen is, before the clock runs
    return {
        name: round(words / seconds(lambda model=model: model.fit(corpus), 3))  # type: ignore[misc]
        for name, model in models.items()
    }


def weights_of(cell: str) -> int:
    shapes = RecurrentNetwork(100, UNITS, UNITS, 1, cell=cell).tensors()
    return sum(int(np.prod(shape)) for name, shape in shapes.items() if name.startswith("layer"))


def twice_the_work(steps: int = 512) -> float:
    """How much longer a layer that reads both ways takes than one that reads ahead."""
    ahead, behind, words = layer("lstm", UNITS), layer("lstm", UNITS, 1), torch.randn(steps, 8, UNITS)
    with torch.inference_mode():
        return seconds(lambda: both_ways(ahead, behind, words)) / seconds(lambda: ahead(words))


def measure() -> dict[str, Any]:
    """Measure every number of the page."""
    recurrent, cached = remembered(1000)
    curve = bottleneck(longest=12, pairs=1500, measured=25, epochs=10, device="cpu")
    readers = {**{cell: layer(cell, UNITS) for cell in GATES}, "attention": attention}
    return {
        "time in sequence over time in a batch": round(one_after_the_other(), 2),
        "gradient 100 words back": {name: float(f"{far_gradient(read):.2g}") for name, read in readers.items()},
        "numbers stored after 1,000 words": {"lstm": recurrent, "transformer": cached},
        "training words per second": training_pace(),
        "parameters of those": pace_parameters(),
        "weights of a GRU over those of an LSTM": weights_of("gru") / weights_of("lstm"),
        "time of both directions over one": round(twice_the_work(), 2),
        "reversed without error": {kind: round(float(part[-3:].mean()), 4) for kind, part in curve.right.items()},
    }


def limits(found: dict[str, Any]) -> list[tuple[str, str, str, str]]:
    """Return limit, cause, fix, and what was measured."""
    gradient, stored = found["gradient 100 words back"], found["numbers stored after 1,000 words"]
    pace, size = found["training words per second"], found["parameters of those"]
    return [
        ("no parallelism", "each state depends on the previous one", "all positions in parallel",
         f"an LSTM of {WIDE} units takes {found['time in sequence over time in a batch']:.1f} times as long for "
         "1,024 words in sequence as in a batch, on one CPU thread"),
        ("long paths", "information passes through every later step", "one hop between any two words",
         f"gradient {FAR} words back, relative to one word back, before training: RNN "
         f"{gradient['rnn']:.0e}, attention {gradient['attention']:.0e}"),
        ("limited memory", "one state for the whole text", "all positions stay accessible",
         f"numbers stored after 1,000 words, two layers of {UNITS}: LSTM {stored['lstm']:,}, "
         f"Transformer {stored['transformer']:,}"),
        ("slow training", "sequential steps leave processors idle", "matrix products large enough to use them fully",
         f"training words per second, on one CPU thread: LSTM {pace['lstm']:,}, Transformer {pace['transformer']:,}, "
         f"with {size['lstm']:,} and {size['transformer']:,} parameters"
         + ("" if pace["transformer"] > pace["lstm"]
            else ": on a single thread, which has no idle cores, the claim does not hold")),
    ]  # fmt: skip


def reference(found: dict[str, Any]) -> list[tuple[str, str, str, str, str]]:
    """Return model, what is new in it, what that solves, what is left, and what was measured."""
    shares = {cell: f"{share:.0e}" for cell, share in found["gradient 100 words back"].items()}
    right, back = found["reversed without error"], f"gradient {FAR} words back, before training: "
    return [
        ("RNN", "one set of weights for all steps", "any length", "gradients vanish", back + shares["rnn"]),
        ("LSTM", "a cell and three gates", "long-term memory", "one step after another", back + shares["lstm"]),
        ("GRU", "two gates, one state", "the same with fewer weights", "one step after another",
         f"{found['weights of a GRU over those of an LSTM']:.2f} of an LSTM's weights; {back}{shares['gru']}"),
        ("BiRNN", "reads from both ends", "context after a word", "twice the work; no streaming",
         f"{found['time of both directions over one']:.2f} times as long"),
        ("seq2seq", "encoder and decoder", "output of any length", "everything passes through one state",
         f"sources of 10 to 12 words reversed without error: {right['none']:.0%}"),
        ("seq2seq with attention", "attends to the source at every step", "the single state", "one step after another",
         f"the same: {right['additive']:.0%}"),
    ]  # fmt: skip


def table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    return "".join(f"| {' | '.join(row)} |\n" for row in (head, ("---",) * len(head), *rows))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("docs/results/limits.json"))
    given = parser.parse_args()
    torch.set_num_threads(1)
    began = time.perf_counter()
    found = measure()
    write_result(given.out, provenance(0, time.perf_counter() - began) | found)
    sys.stdout.write(
        "# Limits of recurrent networks\n\nWritten by `python recipes/limits.py`, which measures every number here "
        "([results/limits.json](results/limits.json)).\n\n"
    )
    sys.stdout.write(table(("limit", "cause", "the Transformer's fix", "measured"), [*limits(found)]))
    sys.stdout.write("\n")
    sys.stdout.write(table(("model", "what is new", "solves", "remaining problem", "measured"), [*reference(found)]))
    sys.stdout.write(f"\n{BEGINNING}")


if __name__ == "__main__":
    main()
