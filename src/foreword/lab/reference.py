"""Tables to look things up in, each row with a number that is measured here and now.

Gates and attention scores come from the registries of the code: a gate or a score that is added there stands here, or a
test fails. The last column of a table says what its numbers are.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from foreword.arrays import Reals
from foreword.errors import MissingExtraError
from foreword.evaluate.gates import NAMES, gates_of
from foreword.evaluate.gradients import gradient_by_lag
from foreword.lab.cells import SENTENCE, UNITS, drawn_cells, inputs_of
from foreword.lab.translating import dates
from foreword.nn.cells import LSTMCell, MinGRUCell, parameters, run
from foreword.serve.registry import Registry
from foreword.serve.routes import Service

if TYPE_CHECKING:
    from foreword.lab.app import Lab

STEPS = 200
"""Length of the texts that limits are shown with."""

HIDDEN = 64
ASKED_DATES = 50

GATES = {
    ("lstm", "forget"): ("f", "what share of the old cell is kept"),
    ("lstm", "input"): ("i", "what share of the candidate is written"),
    ("lstm", "output"): ("o", "what share of the cell is shown"),
    ("gru", "reset"): ("r", "how much of the old state the candidate sees"),
    ("gru", "update"): ("z", "how much of the old state is kept"),
    ("min-gru", "update"): ("z", "how much of the old state is replaced"),
}

SCORES = {
    "additive": ("v · tanh(W₁s + W₂h)", "Bahdanau, Cho and Bengio, 2015"),
    "dot": ("s · h", "Luong, Pham and Manning, 2015"),
    "general": ("s · Wh", "Luong, Pham and Manning, 2015"),
    "scaled": ("s · h / √d", "Vaswani et al., 2017"),
}


@dataclass(frozen=True, slots=True)
class Table:
    """A table; the last cell of each row is measured."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]

    def to_json(self) -> dict[str, Any]:
        """Return the table as JSON."""
        return {"title": self.title, "columns": list(self.columns), "rows": [list(row) for row in self.rows]}


def gate_table() -> Table:
    """Return every gate, and how far it is open on average as the random cells read the lab's sentence."""
    x = inputs_of(SENTENCE.split())
    opened: dict[tuple[str, str], float] = {}
    for kind, cell in (drawn_cells() | {"min-gru": MinGRUCell(UNITS, UNITS, seed=3)}).items():
        for name, values in gates_of(kind, run(cell, x)[2]).items():
            opened[kind, name] = float(values.mean())
    rows = []
    for kind, names in NAMES.items():
        for name in names:
            sign, role = GATES[kind, name]
            rows.append((kind.upper(), name, sign, role, f"open to {opened[kind, name]:.2f} on average"))
    return Table("Gates", ("Cell", "Gate", "Sign", "What it decides", "Measured on the lab's sentence"), rows)


def score_table() -> Table:
    """Return every attention score, and the weights it adds to a translator."""
    from foreword.translate.network import ATTENTIONS, TranslationNetwork

    def weights(attention: str) -> int:
        network = TranslationNetwork(
            100, 100, False, HIDDEN, HIDDEN, HIDDEN, 1, "lstm", True, attention, feed=False, tied=True
        )
        return sum(math.prod(shape) for shape in network.tensors().values())

    plain = weights("dot")
    rows = [
        (name, *SCORES[name], f"{weights(name) - plain:,} weights of its own") for name in ATTENTIONS if name != "none"
    ]
    return Table("Attention scores", ("Score", "Formula", "From", f"Measured at {HIDDEN} units"), rows)


def limit_table() -> Table:
    """Return the four limits of recurrence: cause, what attention changes, and a number for either."""
    from foreword.lessons.cost import layer_seconds, path_length, unrolled_depth

    depths = [unrolled_depth(kind, STEPS) for kind in ("rnn", "attention")]
    paths = [path_length(kind, 0, STEPS - 1) for kind in ("rnn", "attention")]
    seconds = [min(layer_seconds(kind, STEPS, HIDDEN, batch=4) for _ in range(3)) for kind in ("lstm", "attention")]
    size = sum(part.size for part in LSTMCell(HIDDEN, HIDDEN).start(1))
    rows = [
        ("No parallelism", "each state waits for the one before", "all positions at once",
         f"{depths[0]} steps in a row for {STEPS} words; attention {depths[1]}"),
        ("Long paths", "what was first travels through every state", "any two positions are neighbours",
         f"{paths[0]} states from the last word to the first; attention {paths[1]}"),
        ("Limited memory", "one state of fixed size holds all of the past", "every position stays in reach",
         f"an LSTM's {size} numbers after {STEPS} words; attention keeps {2 * STEPS * HIDDEN:,}"),
        ("Slow training", "many small products one after the other", "few large products",
         f"{1000 * seconds[0]:.0f} ms of CPU time for {STEPS} words and back; attention {1000 * seconds[1]:.0f} ms"),
    ]  # fmt: skip
    return Table("Limits of recurrence", ("Limit", "Cause", "What attention does", "Measured here"), rows)


def architecture_table(registry: Registry) -> Table:
    """Return six architectures; the last two are those of the Translate panel, once they are trained."""
    sizes = {kind: parameters(cell) for kind, cell in drawn_cells().items()}
    open_lstm = LSTMCell(UNITS, UNITS, forget_bias=5.0, seed=1)
    two = 2 * sizes["lstm"]
    rows = [
        ("RNN", "one state, the same weights at each step", "texts of any length", "gradients vanish",
         f"over 30 words a gradient is multiplied by {_share(drawn_cells()['rnn']):.2g}"),
        ("LSTM", "a cell and three gates", "long memory", "one step after the other",
         f"the same with a forget bias of 5: {_share(open_lstm):.2f}"),
        ("GRU", "two gates, one state", "memory with fewer weights", "one step after the other",
         f"{sizes['gru']:,} weights at {UNITS} units; an LSTM has {sizes['lstm']:,}"),
        ("Both ways", "one reads ahead, one back", "the whole sentence is seen", "twice the work, and no streaming",
         f"{two:,} weights, twice an LSTM's {sizes['lstm']:,}"),
        ("seq2seq", "an encoder, then a decoder", "an answer of any length", "all must fit into one vector",
         _right(registry, "dates-without")),
        ("seq2seq, attention", "attention to every source word", "no bottleneck", "still word after word",
         _right(registry, "dates")),
    ]  # fmt: skip
    return Table("Architectures", ("Model", "What it is", "Solves", "Leaves", "Measured here"), rows)


def _share(cell: Any) -> float:
    """Return what remains of the last state's gradient 30 words back."""
    x: Reals = inputs_of((SENTENCE.split() * 4)[:31])
    norms = gradient_by_lag([cell], [run(cell, x)[2]], np.full((1, UNITS), UNITS**-0.5))[0, :, 0]
    return float(norms[-1] / norms[0])


def _right(registry: Registry, name: str) -> str:
    """Return how many new dates a translator gets right."""
    entry = next((entry for entry in registry.entries("translate") if entry.name == name), None)
    if entry is None:
        return "not trained yet"
    sources, targets = dates(ASKED_DATES, seed=1)
    with entry.lock:
        found = entry.model.translate(sources, width=1)
    right = sum(mine == wanted for mine, wanted in zip(found, targets, strict=True))
    return f"{right} of {len(targets)} new dates right"


class Tables:
    """The tables, measured once, except for what depends on models that are still being trained."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._lock = threading.Lock()
        self._tables: dict[str, Table] = {}

    def all(self) -> list[Table]:
        """Return all tables, measured once."""
        try:
            import torch  # noqa: F401
        except ImportError:
            raise MissingExtraError("torch", "neural", "measuring what stands in these tables") from None
        with self._lock:
            fixed = [self._once(make) for make in (gate_table, score_table, limit_table)]
            return [*fixed, architecture_table(self._registry)]

    def _once(self, make: Callable[[], Table]) -> Table:
        return self._tables.setdefault(make.__name__, self._tables.get(make.__name__) or make())


def add_routes(service: Service, lab: Lab) -> None:
    """Add the route of the panel."""
    tables = Tables(service.registry)
    service.get("/api/reference", lambda: [table.to_json() for table in tables.all()])
