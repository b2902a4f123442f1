"""The numbers and pictures of docs/recurrent.md, measured afresh.

    python recipes/recurrent_page.py                    all parts, some twenty minutes on one core
    python recipes/recurrent_page.py experiment gates   some of them

Each part prints its table as Markdown and stores its numbers, as soon as it ends, as a row of
docs/results/recurrent.json that says how it was made; pictures go to docs/pictures. Everything is small and runs on one
thread of a CPU; the text is the embedded one, so no data are needed. ``cost --device cuda`` measures on a GPU.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

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
from foreword.lessons.claims.results import provenance, stored_rows, write_result
from foreword.lessons.cost import cell_table, cost_by_length, path_length, unrolled_depth
from foreword.lessons.horizon import (
    KINDS,
    Adding,
    Copying,
    Horizon,
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

Facts: TypeAlias = dict[str, Any]

RATES = {"irnn": 0.001}
"""ReLU with the identity wants a smaller rate than the others; at 0.01 its states blow up."""

NAMES = {"rnn": "RNN", "relu": "ReLU, random", "irnn": "IRNN", "gru": "GRU", "lstm": "LSTM", "min-gru": "minimal GRU"}
UNITS, STRETCH, STRETCHES = 96, 96, 24
"""Words of a stretch: gradients are looked at over the last 64 of them, once the state is what it usually is."""
SENTENCE = "If the file does not exist an error is raised ."


def short(number: float) -> float:
    """Round to four significant digits."""
    return float(f"{number:.4g}")


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


def experiment() -> Facts:
    """Run the published experiment (rows R13, R14)."""
    measured = published_experiment()
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
        for name, found in measured.items()
    ]
    table(["", "norm of W", "radius of W", "printed", "median", "range", "without f′"], rows)
    return {name: {"printed": found.printed, "median": short(found.median)} for name, found in measured.items()}


def gradients() -> Facts:
    """Measure the gradient by lag on real text, in trained models (rows R11, R16)."""
    inputs, targets = stretches()
    lines, rows = {}, []
    facts: Facts = {}
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
        facts[cell] = {
            "perplexity": short(held_out),
            "factor per step": short(growth_per_step(means)),
            "below 1/1000 from lag": silent,
            "mean slope": short(squashed.mean),
            "saturated": short(squashed.saturated),
        }
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
    return facts


def forget_gates() -> Facts:
    """Measure how much of a cell is left, along c alone and by the whole derivative (rows L03, L04, Z09)."""
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
    return {"lags": lags, **{name: [short(line[lag]) for lag in lags] for name, line in lines.items()}}


def gates() -> Facts:
    """Trace the gates of the LSTM along a sentence (row L05)."""
    model, tokens = trained("lstm"), SENTENCE.split()
    found = gate_traces(Layers.of(model), model.vocab.ids(tokens), tokens)
    write_standalone(draw_gates(tokens, found.gates), PICTURES / "recurrent-gates.svg")
    means = found.means()
    table(
        ["word", *means],
        [[token, *(f"{means[name][place]:.2f}" for name in means)] for place, token in enumerate(tokens)],
    )
    return {"tokens": tokens, **{name: [short(mean) for mean in line] for name, line in means.items()}}


def recall() -> Facts:
    """Train on recall at six lags, three seeds (row L10)."""
    found, facts = remembered("recall", Recall, [10, 20, 50, 100, 200, 400], KINDS, (0, 1, 2), 800)
    said = "The share of 3 seeds in which 32 units learnt to recall a symbol after so many others."
    kinds = [NAMES[kind] for kind in found.kinds]
    drawn = draw_horizon(kinds, found.lags, found.success(), "Recall: which lags were learnt", said)
    write_standalone(drawn, PICTURES / "recurrent-horizon.svg")
    return facts


def older_tasks() -> Facts:
    """Train on copying and adding at three lags, two seeds (row L10)."""
    tasks: dict[str, Callable[[int], Copying | Adding]] = {"copying": Copying, "adding": Adding}
    kinds = [kind for kind in KINDS if kind != "relu"]
    return {name: remembered(name, task, [10, 30, 100], kinds, (0, 1), 1000)[1] for name, task in tasks.items()}


def remembered(
    name: str,
    task: Callable[[int], Recall | Copying | Adding],
    lags: list[int],
    kinds: Sequence[str],
    seeds: tuple[int, ...],
    updates: int,
) -> tuple[Horizon, Facts]:
    """Train every kind at every lag with every seed, print the table, and return the outcomes and their numbers."""
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
    outcomes = {
        kind: {
            "reach": reach[kind],
            "right": found.right[row].round(3).tolist(),
            "diverged": int(found.diverged[row].sum()),
        }
        for row, kind in enumerate(found.kinds)
    }
    return found, {"units": 32, "updates": updates, "seeds": list(seeds), "lags": lags, "by kind": outcomes}


def forget_bias() -> Facts:
    """Compare initial forget biases of an LSTM on recall over 100 steps, five seeds (row L06)."""
    rows = []
    facts: Facts = {"seeds": [*range(5)]}
    for bias in (0.0, 1.0, 2.0):
        found = [learn(Recall(100), "lstm", MemoryTraining(forget_bias=bias), seed) for seed in range(5)]
        right = [outcome.right for outcome in found]
        solved = sum(share >= 0.95 for share in right)
        updates = np.mean([outcome.updates for outcome in found])
        rows.append([f"{bias:g}", f"{np.mean(right):.2f}", f"{min(right):.2f}", f"{solved} of 5", f"{updates:.0f}"])
        facts[f"bias {bias:g}"] = {
            "mean": round(float(np.mean(right)), 3),
            "right": [round(share, 3) for share in right],
            "solved": solved,
            "updates": round(float(updates)),
        }
    table(["forget bias", "right, mean", "worst seed", "solved", "updates"], rows)
    return facts


def capacities() -> Facts:
    """Measure how many random symbols a state of fixed size gives back (row L11)."""
    items, sizes = [2, 4, 8, 16], [8, 16, 32, 64]
    found = capacity(items, sizes, "gru", (0,), MemoryTraining(updates=1000, check_every=100), meter=tell)
    shares = found.right.mean(axis=2)
    rows = [[size, *(f"{share:.0%}" for share in shares[row])] for row, size in enumerate(sizes)]
    table(["units", *(f"{count} items" for count in items)], rows)
    said = "The share of random symbols, of eight kinds, that a GRU gave back in order after it had read so many."
    names = [f"{size} units" for size in sizes]
    drawn = draw_horizon(names, items, shares, "Symbols given back, of so many", said, over="items")
    write_standalone(drawn, PICTURES / "recurrent-capacity.svg")
    return {"items": items, **{f"{size} units": shares[row].round(3).tolist() for row, size in enumerate(sizes)}}


def subjects() -> Facts:
    """Measure agreement with attractors (row R19) and what each layer encodes (row S01)."""
    texts = texts_of(generate_sentences(6000, seed=0))
    corpus = Corpus.from_texts(texts, WordTokenizer().fit(texts))
    asked = generate_sentences(2000, seed=1)
    training = replace(MODEST, epochs=20, batch=16, rate=1e-2, steps=30)
    settings: dict[str, Any] = {"tied": False, "dropout": NO_DROPOUT, "training": training, "device": "cpu"}
    models: dict[str, Any] = {f"{order}-gram": NgramLM(order).fit(corpus) for order in (3, 5)}
    for cell, layers in (("rnn", 1), ("gru", 1), ("lstm", 2)):
        models[NAMES[cell]] = RecurrentLM(cell, 32, 64, layers, **settings).fit(corpus, meter=tell)
    rows = []
    facts: Facts = {}
    for name, model in models.items():
        found = agreement(model, asked)
        facts[name] = [short(share) for share in found.right]
        rows.append([name, *(f"{share:.1%}" for share in found.right), f"{found.overall:.1%}"])
        if name == "LSTM":
            probed = probing(model)
    table(["", "no attractor", "1", "2", "3", "all"], rows)
    return {"right by attractors, 0 to 3": facts, "probe of the LSTM": probed}


def probing(model: RecurrentLM) -> Facts:
    """Probe the embedding and each layer before the verb."""
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
    return {
        name: {"most frequent": short(found.most_frequent[name]), "embedding and layers": [short(x) for x in shares]}
        for name, shares in found.right.items()
    }


def budget() -> Facts:
    """Compare RNN, GRU and LSTM with equally many parameters in all, three seeds, on the same text (row L09)."""
    train, valid = words()
    wanted = parameter_count(language_model("lstm").network(train.vocab))
    rows = []
    facts: Facts = {"seeds": [*range(3)]}
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
        facts[cell] = {
            "units": units,
            "parameters": counts[units],
            "perplexity": [round(score, 2) for score in scores],
            "mean": round(float(np.mean(scores)), 2),
            "standard deviation": round(float(np.std(scores, ddof=1)), 2),
            "CPU seconds": [round(taken, 1) for taken in seconds],
            "median of CPU seconds": round(float(np.median(seconds)), 1),
        }
    table(["", "units", "parameters", "perplexity", "CPU time"], rows)
    return facts


def cost(device: str) -> Facts:
    """Measure sizes, paths, and time against length (rows L12, M03, M04, P09)."""
    cells = cell_table(300, 256)
    facts: Facts = {"microseconds per step": {c.kind: round(c.microseconds, 1) for c in cells}}
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
        for c in cells
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
        facts[f"{units} units, batch {batch}"] = {
            "steps": lengths,
            "peak GFLOP/s": round(found.peak / 1e9),
            "milliseconds": {
                kind: [short(1e3 * taken) for taken in found.seconds[row]] for row, kind in enumerate(found.kinds)
            },
            "utilisation": {kind: [short(share) for share in shares[row]] for row, kind in enumerate(found.kinds)},
        }
    return facts


PARTS: dict[str, Callable[[], Facts]] = {
    "experiment": experiment,
    "gradients": gradients,
    "forget-gates": forget_gates,
    "gates": gates,
    "horizon": recall,
    "older-tasks": older_tasks,
    "forget-bias": forget_bias,
    "capacity": capacities,
    "agreement": subjects,
    "budget": budget,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = [*PARTS, "cost"]
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(names)}; all of them by default")
    parser.add_argument("--device", default="cpu", help="where cost is measured")
    parser.add_argument("--out", type=Path, default=Path("docs/results/recurrent.json"))
    parser.add_argument("--commit", help="of the code, where this is no checkout")
    parser.add_argument("--take", type=Path, metavar="FILE", help="run nothing: add the rows of another machine's file")
    asked = parser.parse_args()
    if unknown := set(asked.parts) - set(names):
        parser.error(f"no part is called {', '.join(sorted(unknown))}")
    if asked.take is not None:
        for row in stored_rows(asked.take):
            store(asked.out, row)
        return
    torch.set_num_threads(1)
    for name in asked.parts or names:
        start, began = time.process_time(), time.perf_counter()
        facts = cost(asked.device) if name == "cost" else PARTS[name]()
        row = name if name != "cost" or asked.device == "cpu" else f"cost on {asked.device}"
        store(asked.out, {"row": row, **provenance(0, time.perf_counter() - began, commit=asked.commit), **facts})
        sys.stderr.write(f"\r{name}: {time.process_time() - start:.0f} s of CPU time{'':30}\n")


def store(file: Path, row: Facts) -> None:
    """Replace the row of one part, or add it."""
    others = [each for each in stored_rows(file) if each["row"] != row["row"]]
    write_result(file, {"text": "the embedded text and generated sequences", "rows": [*others, row]})


if __name__ == "__main__":
    main()
