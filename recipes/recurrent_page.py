"""The numbers and pictures of docs/recurrent.md, measured afresh.

    python recipes/recurrent_page.py                    all parts, some twenty minutes on one core
    python recipes/recurrent_page.py experiment gates   some of them

Each part prints its table as Markdown; pictures go to docs/pictures. Everything is small and runs on one thread of a
CPU; the text is the embedded one, so no data are needed. ``cost --device cuda`` measures on a GPU.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch

from foreword import Corpus, NgramLM, RecurrentLM, WordTokenizer, embedded_text, perplexity
from foreword.evaluate.gates import Layers, gate_traces
from foreword.evaluate.gradients import (
    growth_per_step,
    highway,
    input_gradient_by_lag,
    published_experiment,
    saturation,
    silent_from,
)
from foreword.lessons.agreement import agreement, generate_sentences, probe, texts_of
from foreword.lessons.cost import cell_table, cost_by_length, path_length, unrolled_depth
from foreword.lessons.horizon import (
    KINDS,
    Adding,
    Copying,
    MemoryTraining,
    Recall,
    capacity,
    draw_horizon,
    horizon,
    learn,
)
from foreword.neural.recurrent import MODEST
from foreword.nn.cells import cross_entropy
from foreword.nn.dropout import NO_DROPOUT
from foreword.nn.network import parameter_count
from foreword.picture.curves import gradients as draw_gradients
from foreword.picture.heat import gates as draw_gates
from foreword.picture.picture import write_standalone

PICTURES = Path(__file__).parents[1] / "docs" / "pictures"

RATES = {"irnn": 0.001}
"""ReLU with the identity wants a smaller rate than the others; at 0.01 its states blow up."""

NAMES = {"rnn": "RNN", "relu": "ReLU, random", "irnn": "IRNN", "gru": "GRU", "lstm": "LSTM", "min-gru": "minimal GRU"}
UNITS, STRETCH, STRETCHES = 96, 96, 24
"""Words of a stretch: gradients are looked at over the last 64 of them, once the state is what it usually is."""
SENTENCE = "If the file does not exist an error is raised ."


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    lines = [head, ["---"] * len(head), *rows]
    sys.stdout.write("\n".join(f"| {' | '.join(map(str, line))} |" for line in lines) + "\n\n")
    sys.stdout.flush()


def tell(phase: str, done: int, total: int | None) -> None:
    sys.stderr.write(f"\r{done} of {total}: {phase:40}")
    sys.stderr.flush()


# Models of the embedded text


@cache
def words() -> tuple[Corpus, Corpus]:
    texts = embedded_text()
    tokenizer = WordTokenizer(min_count=10).fit(texts)
    return Corpus.from_texts(texts, tokenizer), Corpus.from_texts(embedded_text("valid"), tokenizer)


def language_model(cell: str, units: int = UNITS, *, epochs: int = 3, seed: int = 0) -> RecurrentLM:
    training = replace(MODEST, epochs=epochs, batch=16, rate=1e-2)
    settings: dict[str, Any] = {"tied": False, "dropout": NO_DROPOUT, "training": training, "device": "cpu"}
    return RecurrentLM(cell, 64, units, 1, seed=seed, **settings)


@cache
def trained(cell: str) -> RecurrentLM:
    train, _ = words()
    return language_model(cell).fit(train, meter=tell)


def stretches() -> tuple[Any, Any]:
    """Inputs and targets (T, B) from the held-out text."""
    ids = np.asarray(words()[1].ids, np.int64)
    places = np.linspace(0, len(ids) - 2 - STRETCH, STRETCHES).astype(np.int64) + np.arange(STRETCH)[:, None]
    return ids[places], ids[places + 1]


# The parts


def experiment() -> None:
    """Rows R13, R14: the published experiment, run."""
    rows = [
        [
            name,
            f"{found.regime.norm / 0.5:.4f}",
            f"{found.regime.radius / 0.5:.3f}",
            f"{found.printed:.1e}",
            f"{found.median:.1e}",
            f"{found.ratios.min():.0e} … {found.ratios.max():.0e}",
            f"{found.without_slope:.1e}",
        ]
        for name, found in published_experiment().items()
    ]
    table(["", "norm of W", "radius of W", "printed", "median", "range", "without f′"], rows)


def gradients() -> None:
    """Rows R11, R16: what reaches the word so many steps back, on real text, before and after training."""
    inputs, targets = stretches()
    lines, rows = {}, []
    for cell in ("rnn", "gru", "lstm"):
        layers = Layers.of(trained(cell))
        said, kept = layers.read(inputs)
        _, d_scores = cross_entropy(layers.scores(said[-1][-1]), targets[-1])
        norms = input_gradient_by_lag(layers.cells, kept, d_scores @ layers.output)
        means = np.exp(np.log(norms).mean(axis=1))[:64]
        lines[NAMES[cell]] = means.tolist()
        squashed = saturation(layers.cells[0], kept[0])
        silent = silent_from(means)
        held_out = perplexity(trained(cell), words()[1])
        rows.append(
            [
                NAMES[cell],
                f"{held_out:.0f}",
                f"{growth_per_step(means):.3f}",
                silent if silent is not None else "beyond 63",
                f"{squashed.mean:.2f}",
                f"{squashed.saturated:.0%}",
            ]
        )
    table(["", "perplexity", "factor a step", "below 1/1000 from lag", "mean slope", "saturated"], rows)
    drawn = draw_gradients(
        lines, [0, 1, 2, 4, 8, 16, 32, 63], "What the word so many steps back is taught", accent={"LSTM"}
    )
    write_standalone(drawn, PICTURES / "recurrent-gradients.svg")


def forget_gates() -> None:
    """Rows L03, L04, Z09: how much of a cell is left, along c alone and by the whole derivative."""
    inputs, _ = stretches()
    layers = Layers.of(trained("lstm"))
    _, kept = layers.read(inputs)
    cell: Any = layers.cells[0]
    found = [highway(cell, kept[0], text) for text in range(4)]
    lines = {
        "Π f, mean": np.mean([one.direct for one in found], axis=0),
        "Π f, largest": np.mean([one.direct_norm for one in found], axis=0),
        "∂c/∂c, its norm": np.mean([one.full_norm for one in found], axis=0),
    }
    lags = [1, 2, 4, 8, 16, 32, 64]
    table(["lag", *map(str, lags)], [[name, *(f"{line[lag]:.3g}" for lag in lags)] for name, line in lines.items()])
    drawn = draw_gradients(
        {name: line.tolist() for name, line in lines.items()},
        [0, *lags],
        "What is left in an LSTM’s cell, so many steps on",
        accent={"∂c/∂c, its norm"},
    )
    write_standalone(drawn, PICTURES / "recurrent-highway.svg")


def gates() -> None:
    """Row L05: the gates of the LSTM along a sentence."""
    model, tokens = trained("lstm"), SENTENCE.split()
    found = gate_traces(Layers.of(model), model.vocab.ids(tokens), tokens)
    write_standalone(draw_gates(tokens, found.gates), PICTURES / "recurrent-gates.svg")
    means = found.means()
    table(
        ["word", *means],
        [[token, *(f"{means[name][place]:.2f}" for name in means)] for place, token in enumerate(tokens)],
    )


def horizons() -> None:
    """Row L10: recall at six lags, copying and adding at three."""
    tasks: dict[str, tuple[Callable[[int], Recall | Copying | Adding], list[int], int]] = {
        "recall": (Recall, [10, 20, 50, 100, 200, 400], 800),
        "copying": (Copying, [10, 30, 100], 1000),
        "adding": (Adding, [10, 30, 100], 1000),
    }
    for name, (task, lags, updates) in tasks.items():
        kinds = KINDS if name == "recall" else [kind for kind in KINDS if kind != "relu"]
        seeds = (0, 1, 2) if name == "recall" else (0, 1)
        found = horizon(task, lags, kinds, seeds, MemoryTraining(updates=updates), rates=RATES, meter=tell)
        reach, shares, right = found.reach(), found.success(), found.right.mean(axis=2)
        sys.stdout.write(f"{name}: seeds of {len(seeds)} that solved it in {updates} updates; the mean share right\n\n")
        rows = [
            [
                NAMES[kind],
                *(f"{len(seeds) * share:.0f}; {part:.2f}" for share, part in zip(shares[row], right[row], strict=True)),
                reach[kind],
                found.diverged[row].sum(),
            ]
            for row, kind in enumerate(found.kinds)
        ]
        table(["network", *map(str, lags), "reach", "diverged"], rows)
        if name == "recall":
            said = f"The share of {len(seeds)} seeds in which 32 units learnt to recall a symbol after so many others."
            drawn = draw_horizon([NAMES[kind] for kind in kinds], lags, shares, "Recall: which lags were learnt", said)
            write_standalone(drawn, PICTURES / "recurrent-horizon.svg")


def forget_bias() -> None:
    """Row L06: an LSTM's forget bias at the beginning, on recall over 100 steps, five seeds."""
    rows = []
    for bias in (0.0, 1.0, 2.0):
        found = [learn(Recall(100), "lstm", MemoryTraining(forget_bias=bias), seed) for seed in range(5)]
        right = [outcome.right for outcome in found]
        solved = sum(share >= 0.95 for share in right)
        updates = np.mean([outcome.updates for outcome in found])
        rows.append([f"{bias:g}", f"{np.mean(right):.2f}", f"{min(right):.2f}", f"{solved} of 5", f"{updates:.0f}"])
    table(["forget bias", "right, mean", "worst seed", "solved", "updates"], rows)


def capacities() -> None:
    """Row L11: how many random symbols a state of so many units gives back."""
    items, sizes = [2, 4, 8, 16], [8, 16, 32, 64]
    found = capacity(items, sizes, "gru", (0,), MemoryTraining(updates=1000, check_every=100), meter=tell)
    shares = found.right.mean(axis=2)
    rows = [[size, *(f"{share:.0%}" for share in shares[row])] for row, size in enumerate(sizes)]
    table(["units", *(f"{count} items" for count in items)], rows)
    said = "The share of random symbols, of eight kinds, that a GRU gave back in order after it had read so many."
    names = [f"{size} units" for size in sizes]
    drawn = draw_horizon(names, items, shares, "Symbols given back, of so many", said, over="items")
    write_standalone(drawn, PICTURES / "recurrent-capacity.svg")


def subjects() -> None:
    """Row R19: agreement with attractors; row S01: what the state knows that the embedding does not."""
    texts = texts_of(generate_sentences(6000, seed=0))
    corpus = Corpus.from_texts(texts, WordTokenizer().fit(texts))
    asked = generate_sentences(2000, seed=1)
    training = replace(MODEST, epochs=20, batch=16, rate=1e-2, steps=30)
    settings: dict[str, Any] = {"tied": False, "dropout": NO_DROPOUT, "training": training, "device": "cpu"}
    models: dict[str, Any] = {f"{order}-gram": NgramLM(order).fit(corpus) for order in (3, 5)}
    for cell, layers in (("rnn", 1), ("gru", 1), ("lstm", 2)):
        models[NAMES[cell]] = RecurrentLM(cell, 32, 64, layers, **settings).fit(corpus, meter=tell)
    rows = []
    for name, model in models.items():
        found = agreement(model, asked)
        rows.append([name, *(f"{share:.1%}" for share in found.right), f"{found.overall:.1%}"])
        if name == "LSTM":
            probing(model)
    table(["", "no attractor", "1", "2", "3", "all"], rows)


def probing(model: RecurrentLM) -> None:
    layers, states, number, word = Layers.of(model), [], [], []
    for sentence in generate_sentences(2000, seed=5):
        ids = np.asarray(model.vocab.ids(sentence.words[: sentence.verb]))
        said, _ = layers.read(ids[:, None])
        states.append([layers.embedding[ids[-1]], *(layer[-1, 0] for layer in said)])
        number.append(int(sentence.words[1].endswith("s")))
        word.append(int(ids[-1]))
    by_layer = [np.array(column) for column in zip(*states, strict=True)]
    found = probe(by_layer, {"the subject’s number": np.array(number), "the word just read": np.array(word)})
    rows = [
        [name, f"{found.most_frequent[name]:.0%}", *(f"{share:.0%}" for share in shares)]
        for name, shares in found.right.items()
    ]
    table(["before the verb", "commonest", "embedding", *(f"layer {n + 1}" for n in range(len(by_layer) - 1))], rows)


def budget() -> None:
    """Row L09: RNN, GRU and LSTM with as many parameters in all, three seeds, the same text."""
    train, valid = words()
    wanted = parameter_count(language_model("lstm").network(train.vocab))
    rows = []
    for cell in ("rnn", "gru", "lstm"):
        counts = {
            n: parameter_count(language_model(cell, n).network(train.vocab)) for n in range(UNITS // 2, 2 * UNITS)
        }
        units = min(counts, key=lambda n: abs(counts[n] - wanted))
        scores, seconds = [], []
        for seed in range(3):
            start = time.process_time()
            model = language_model(cell, units, epochs=2, seed=seed).fit(train, meter=tell)
            seconds.append(time.process_time() - start)
            scores.append(perplexity(model, valid))
        spread = f"{np.mean(scores):.1f} ± {np.std(scores, ddof=1):.1f}"
        rows.append([NAMES[cell], units, f"{counts[units]:,}", spread, f"{np.median(seconds):.0f} s"])
    table(["", "units", "parameters", "perplexity", "CPU time"], rows)


def cost(device: str) -> None:
    """Rows L12, M03, M04, P09: sizes, paths, and time against length."""
    rows = [
        [
            NAMES[c.kind],
            c.gates,
            c.matrices,
            f"{c.parameters:,}",
            f"{c.with_two_biases:,}",
            f"{c.operations:,}",
            f"{c.microseconds:.0f} µs",
        ]
        for c in cell_table(300, 256)
    ]
    table(["", "gates", "matrices", "parameters", "with torch’s biases", "operations a step", "a step"], rows)
    rows = [[kind, path_length(kind, 0, 49), unrolled_depth(kind, 50)] for kind in ("rnn", "attention")]
    table(["50 words", "from the last to the first", "depth"], rows)
    lengths = [100, 300, 1000, 3000]
    for units, batch in ((256, 1), (1024, 32)) if device != "cpu" else ((256, 1),):
        found = cost_by_length(lengths, hidden=units, batch=batch, device=device, meter=tell)
        shares = found.utilisation()
        sys.stdout.write(f"{device}, {units} units, batch {batch}, peak {found.peak / 1e9:,.0f} GFLOP/s\n\n")
        rows = [
            [
                kind,
                *(
                    f"{1e3 * taken:.3g} ms, {share:.1%}"
                    for taken, share in zip(found.seconds[row], shares[row], strict=True)
                ),
            ]
            for row, kind in enumerate(found.kinds)
        ]
        table(["steps", *(f"{length:,}" for length in lengths)], rows)


PARTS: dict[str, Callable[[], None]] = {
    "experiment": experiment,
    "gradients": gradients,
    "forget-gates": forget_gates,
    "gates": gates,
    "horizon": horizons,
    "forget-bias": forget_bias,
    "capacity": capacities,
    "agreement": subjects,
    "budget": budget,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    names = [*PARTS, "cost"]
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(names)}; all of them by default")
    parser.add_argument("--device", default="cpu", help="where cost is measured")
    asked = parser.parse_args()
    if unknown := set(asked.parts) - set(names):
        parser.error(f"no part is called {', '.join(sorted(unknown))}")
    torch.set_num_threads(1)
    for name in asked.parts or names:
        start = time.process_time()
        if name == "cost":
            cost(asked.device)
        else:
            PARTS[name]()
        sys.stderr.write(f"\r{name}: {time.process_time() - start:.0f} s of CPU time{'':30}\n")


if __name__ == "__main__":
    main()
