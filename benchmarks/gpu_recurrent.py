"""Our recurrent kernels on a GPU against cuDNN and eager loops: ``python -m benchmarks.gpu_recurrent --out FILE``.

It stands apart from the others because it needs another machine; ``python -m benchmarks --take FILE`` puts its section
into the document.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import cast
from unittest.mock import patch

import torch
from torch import Tensor

from benchmarks.report import Row, section_of
from foreword.neural.mogrifier import RECIPE, Mogrifier
from foreword.nn import gated_gpu, mogrifier_gpu
from foreword.nn.gated import GATED, run_gated
from foreword.nn.gated_gpu import add_products, gated_stack
from foreword.nn.layers import gru, lstm, mogrifier_lstm
from foreword.nn.mogrifier_gpu import Buffers, Stack, StackLauncher, run_stack
from foreword.nn.persistent_gpu import launch_backward, launch_forward, persistent_lstm
from foreword.tokens.corpus import Corpus
from foreword.tokens.vocab import END, UNKNOWN, Vocab

TITLE = "Recurrent kernels on a GPU"
HOW = (
    "Microseconds per layer and step, forward and backward, from replays of CUDA graphs, median of five. Mogrifier: "
    "two layers of 896 units, 64 texts, 70 steps, capped gate, state dropout, fp16, without the gradients of weights. "
    "LSTM: layers of 1,024 units unless the row says otherwise, with the gradients of weights; GRU and coupled gates "
    "likewise, in fp16. cuDNN's weights are separate tensors, which it copies together in every call. Epoch: 207 "
    "updates of the recipe's Penn Treebank model, everything included. The eager loop is PyTorch's autograd with the "
    "gradients of weights, launched operation by operation, so its time is no ratio to ours. Nine rows measure one "
    "idea of the kernels each: ours has it, and the other does not."
)
LAYERS, STEPS, TEXTS, UNITS = 2, 70, 64, 896
REPLAYS, RUNS = 5, 5

THIN = 128
"""Rank of a round whose two thin products are measured: the kernels' tiles take multiples of 64."""


def timed(work: Callable[[], object], replays: int = REPLAYS) -> float:
    """Return seconds of one replay of the work as a CUDA graph."""
    stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        work()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        work()
    graph.replay()
    return _median(graph.replay, replays)


def eagerly(work: Callable[[], object]) -> float:
    """Return seconds of the work as Python launches it."""
    work()
    return _median(work, 1)


def _median(work: Callable[[], object], repeats: int) -> float:
    found: list[float] = []
    for _ in range(RUNS):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
        begin.record()
        for _ in range(repeats):
            work()
        end.record()
        torch.cuda.synchronize()
        found.append(begin.elapsed_time(end) / 1e3 / repeats)
    return statistics.median(found)


def drawn(
    rounds: int, kind: torch.dtype = torch.float16, units: int = UNITS, layers: int = LAYERS
) -> tuple[Tensor, Stack]:
    """Return inputs and a stack of layers."""

    def normal(*shape: int, size: float = units**-0.5) -> Tensor:
        return (torch.randn(*shape, device="cuda") * size).to(kind)

    ones = torch.ones(layers, TEXTS, units, device="cuda", dtype=kind)
    stack = Stack(
        normal(layers, 4 * units, units), normal(layers, 4 * units, units), normal(layers, 4 * units),
        normal(rounds, layers, units, units) if rounds else None, normal(rounds, layers, units) if rounds else None,
        ones, ones[:-1, None].expand(-1, STEPS, -1, -1).contiguous(), True,
    )  # fmt: skip
    return normal(STEPS, TEXTS, units, size=0.5), stack


def recurrence(
    rounds: int, layers: int = LAYERS, clock: Callable[[Callable[[], object]], float] | None = None
) -> tuple[float, float]:  # fmt: skip
    """Return microseconds per layer and step, forward and backward, without the gradients of weights.

    clock: ``timed``, unless something else is given.
    """
    x, stack = drawn(rounds, layers=layers)
    stack = stack if layers > 1 else replace(stack, between=None)
    clock = timed if clock is None else clock
    buffers = Buffers(x, layers, rounds)
    for part in (*buffers.x, *buffers.h, buffers.c):
        part.zero_()
    buffers.x[0][0].copy_(x)
    launcher, out = StackLauncher(buffers, stack), torch.empty_like(buffers.x[0])
    d_out, d_c = torch.randn_like(out), torch.zeros_like(buffers.c[:, 0])
    forward = clock(lambda: launcher.forward(out))
    backward = clock(lambda: launcher.backward(d_out, d_c))
    return forward * 1e6 / STEPS / layers, backward * 1e6 / STEPS / layers


def gradients_of(run: Callable[[], Tensor], leaves: list[Tensor]) -> Callable[[], object]:
    def work() -> object:
        return torch.autograd.grad(run().float().sum(), leaves)

    return work


def plain_loop() -> float:
    """Return seconds of an update's recurrence by PyTorch's operations, eagerly: five rounds, two layers."""
    x, stack = drawn(5)
    leaves = [part.requires_grad_() for part in (stack.w_x, stack.w_h, stack.bias, stack.rounds) if part is not None]

    def run() -> Tensor:
        found, zero = x, torch.zeros(TEXTS, UNITS, device="cuda", dtype=x.dtype)
        for layer in range(LAYERS):
            weights = [stack.w_x[layer], stack.w_h[layer], stack.bias[layer], torch.zeros_like(stack.bias[layer])]
            rounds = [] if stack.rounds is None else list(stack.rounds[:, layer])
            found, _, _ = mogrifier_lstm(found, zero, zero, weights, rounds, capped=True)
        return found

    return eagerly(gradients_of(run, leaves))


def half_lstm(
    layers: int = 1, texts: int = TEXTS, kind: torch.dtype = torch.bfloat16, waves: bool = False
) -> tuple[float, float]:  # fmt: skip
    """Return microseconds per layer and step of layers of 1,024 units, with all gradients: ours and another's.

    waves: compare with our own wavefront, a launch per step, instead of cuDNN.
    """
    units = 1024
    x, stack = drawn(0, kind, units, layers)
    x = x[:, :texts].contiguous().requires_grad_()
    stack = replace(stack, capped=False, state_mask=None, between=None)
    zero = torch.zeros(layers, texts, units, device="cuda", dtype=kind)
    weights = [
        [part.clone().requires_grad_() for part in (w_x, w_h, bias, torch.zeros_like(bias))]
        for w_x, w_h, bias in zip(stack.w_x, stack.w_h, stack.bias, strict=True)
    ]
    flat = [part for layer in weights for part in layer]

    def by_layers() -> Tensor:
        found = x
        for layer in weights:
            found = lstm(found, zero[0], zero[0], layer)[0]
        return found

    def cudnn() -> Tensor:
        found: Tensor = torch._VF.lstm(x, (zero, zero), flat, True, layers, 0.0, True, False, False)[0]
        return found

    ours = timed(gradients_of(by_layers, [x, *flat]))
    if waves:
        leaves = [part.requires_grad_() for part in (x, stack.w_x, stack.w_h, stack.bias)]
        theirs = timed(gradients_of(lambda: run_stack(x, zero, zero, stack)[0][-1], leaves))
    else:
        theirs = timed(gradients_of(cudnn, [x, *flat]))
    return ours * 1e6 / STEPS / layers, theirs * 1e6 / STEPS / layers


def summed(forward: float, backward: float) -> str:
    """Format the time of a forward and a backward pass in microseconds: their sum, then each."""
    return f"{forward + backward:.1f} µs ({forward:.1f} + {backward:.1f})"


def kernels_alone() -> Row:
    """Measure the two kernels of an LSTM layer without the products over all steps, which cuBLAS does.

    Each replay starts from the gates that the previous one overwrote: the time does not depend on their values.
    """
    units, kind = 1024, torch.bfloat16
    x, stack = drawn(0, kind, units, 1)
    gates = torch.randn(STEPS, TEXTS, 4 * units, device="cuda").to(kind)
    states, weight = x.new_zeros(STEPS + 1, TEXTS, units), stack.w_h[0]
    cells, d_c = states.float(), torch.zeros(TEXTS, units, device="cuda")
    forward = timed(lambda: launch_forward(gates, weight, states, cells, states[1:], None, False)) * 1e6 / STEPS
    backward = timed(lambda: launch_backward(x, weight, cells, gates, d_c, None, False)) * 1e6 / STEPS
    note = "Forward and backward; what a layer takes beyond them is products over all steps, by cuBLAS, and copies."
    return Row("LSTM, bfloat16, 1,024 units: its two kernels alone", ours=summed(forward, backward), note=note)


def capped_lstm() -> tuple[float, float]:
    """Return microseconds per layer and step of the recipe's LSTM without rounds, with all gradients.

    First in one launch per layer, then in one per step of both layers.
    """
    x, stack = drawn(0)
    masks = cast(Tensor, stack.state_mask), cast(Tensor, stack.between)
    zero = torch.zeros(LAYERS, TEXTS, UNITS, device="cuda", dtype=x.dtype)
    leaves = [part.requires_grad_() for part in (x, stack.w_x, stack.w_h, stack.bias)]

    def by_layers() -> Tensor:
        found = x
        for layer, (w_x, w_h, bias) in enumerate(zip(stack.w_x, stack.w_h, stack.bias, strict=True)):
            read = found if layer == 0 else found * masks[1][layer - 1]
            weights = (w_x, w_h, bias, torch.zeros_like(bias))
            found = persistent_lstm(read, zero[0], zero[0], weights, masks[0][layer], capped=True)[0]
        return found

    ours = timed(gradients_of(by_layers, leaves))
    theirs = timed(gradients_of(lambda: run_stack(x, zero, zero, stack)[0][-1], leaves))
    return ours * 1e6 / STEPS / LAYERS, theirs * 1e6 / STEPS / LAYERS


def gated_gru(cell: str) -> tuple[float, float]:
    """Return microseconds per step of a GRU of 1,024 units in float16, with all gradients: ours and the other's.

    That is an eager loop where the reset gate comes before the product, and cuDNN where it comes after.
    """
    units, kind = 1024, torch.float16

    def normal(*shape: int, size: float = units**-0.5) -> Tensor:
        return (torch.randn(*shape, device="cuda") * size).to(kind).requires_grad_()

    x, h = normal(STEPS, TEXTS, units, size=0.5), normal(TEXTS, units, size=0.5)
    weights = [normal(3 * units, units), normal(3 * units, units), normal(3 * units), normal(3 * units)]
    ours = timed(gradients_of(lambda: gated_stack(cell, x, (h,), [weights])[0], [x, *weights]))
    if cell == "gru":
        theirs = timed(gradients_of(lambda: gru(x, h, weights)[0], [x, *weights]))
    else:
        theirs = eagerly(gradients_of(lambda: run_gated(cell, x, (h,), weights)[0], [x, *weights]))
    return ours * 1e6 / STEPS, theirs * 1e6 / STEPS


def gated_layers(cell: str, together: bool) -> float:
    """Return microseconds per layer and step of two layers of 1,024 units in float16, with all gradients.

    together: as one wavefront, else one layer after the other.
    """
    units, kind, facts = 1024, torch.float16, GATED[cell]

    def normal(*shape: int, size: float = units**-0.5) -> Tensor:
        return (torch.randn(*shape, device="cuda") * size).to(kind).requires_grad_()

    wide = facts.gates * units
    layers = [[normal(wide, units), normal(wide, units), normal(wide), normal(wide)] for _ in range(LAYERS)]
    zeros = torch.zeros(TEXTS, units, device="cuda", dtype=kind)
    x, states = normal(STEPS, TEXTS, units, size=0.5), (zeros,) * facts.states

    def run() -> Tensor:
        if together:
            return gated_stack(cell, x, states * LAYERS, layers)[0]
        found = x
        for weights in layers:
            found = gated_stack(cell, found, states, [weights])[0]
        return found

    leaves = [x, *(part for weights in layers for part in weights)]
    return timed(gradients_of(run, leaves)) * 1e6 / STEPS / LAYERS


def epoch_seconds() -> float:
    """Return seconds of 207 updates of the recipe's model on random words."""
    vocab = Vocab([UNKNOWN, END, *(f"w{number}" for number in range(9_998))])
    corpus = Corpus.from_ids([torch.randint(2, 10_000, (929_588,)).tolist()], vocab)
    trainer = Mogrifier(training=replace(RECIPE, epochs=3)).trainer(corpus)
    trainer.begin_epoch(1)
    while not trainer.epoch_done:
        trainer.run(50)
    trainer.begin_epoch(2)

    def epoch() -> None:
        trainer.update = 0
        trainer.task.seek(0)
        while not trainer.epoch_done:
            trainer.run(50)

    return _median(epoch, 1)


def ratio_row(
    job: str, mine: float, theirs: float, peer: str, least: float | None = None, note: str = ""
) -> Row:  # fmt: skip
    """Return a row of two times in microseconds; least: the bar of their ratio, None without one."""
    ratio = theirs / mine
    met = None if least is None else ratio >= least
    bar = "–" if least is None else f"≥ {least:g}"
    ours, other = f"{mine:.1f} µs", f"{peer}: {theirs:.1f} µs"
    return Row(job, ours=ours, peer=other, ratio=f"{ratio:.2f}", bar=bar, met=met, note=note)


def five_rounds() -> Row:
    """Measure the Mogrifier's recurrence."""
    loop = plain_loop() * 1e6 / STEPS / LAYERS
    forward, backward = recurrence(5)
    ours, met = summed(forward, backward), forward + backward <= 37
    return Row("5 rounds, 2 × 896", ours=ours, peer=f"eager loop: {loop:.0f} µs", bar="≤ 37 µs", met=met)


def no_rounds() -> Row:
    """Measure the same kernels of an LSTM."""
    forward, backward = recurrence(0)
    return Row("0 rounds, 2 × 896", ours=summed(forward, backward), bar="≤ 12 µs", met=forward + backward <= 12)


def epoch() -> Row:
    """Measure an epoch of the recipe."""
    seconds = epoch_seconds()
    job = "an epoch of the Penn Treebank, 207 updates"
    return Row(job, ours=f"{seconds:.3f} s", bar="≤ 1.45 s", met=seconds <= 1.45)


def without_dependent_launch() -> Row:
    """Measure programmatic dependent launch: on, as it is, and off."""
    with patch.object(mogrifier_gpu, "launches_dependents", lambda *_: False):
        off = sum(recurrence(5))
    return ratio_row("programmatic dependent launch, 5 rounds", sum(recurrence(5)), off, "switched off")


def layer_after_layer() -> Row:
    """Measure both layers in one launch, as it is, against one layer after the other."""
    job = "both layers in one launch, 5 rounds"
    return ratio_row(job, sum(recurrence(5)), sum(recurrence(5, layers=1)), "layer after layer")


def gated_layer_after_layer(cell: str, name: str) -> Row:
    """Measure two layers of a gated cell as one wavefront, as it is, against one layer after the other."""
    job = f"both layers in one launch, {name}, 2 × 1,024 units"
    return ratio_row(job, gated_layers(cell, True), gated_layers(cell, False), "layer after layer")


def gated_without_dependent_launch() -> Row:
    """Measure programmatic dependent launch of a gated cell: on, as it is, and off."""
    with patch.object(gated_gpu, "launches_dependents", lambda *_: False):
        off = gated_layers("gru-before", True)
    job = "programmatic dependent launch, GRU, reset before its product, 2 × 1,024 units"
    return ratio_row(job, gated_layers("gru-before", True), off, "switched off")


def thin_products() -> Row:
    """Measure a round's product multiplied out, its share of the multiplication included, against two thin ones."""
    kind, rank = torch.float16, THIN

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, device="cuda").to(kind)

    h, narrow, left, right = normal(TEXTS, UNITS), normal(TEXTS, rank), normal(UNITS, rank), normal(rank, UNITS)
    whole = normal(UNITS, UNITS)
    total, between = (torch.zeros(TEXTS, width, device="cuda") for width in (UNITS, rank))

    def product(source: Tensor, weight: Tensor, added: Tensor) -> None:
        add_products(0, 1, (source[None, None], weight[None], added[None, None]))

    def one() -> None:
        torch.mm(left, right, out=whole)
        for _ in range(STEPS):
            product(h, whole, total)

    def two() -> None:
        for _ in range(STEPS):
            product(h, right, between)
            product(narrow, left, total)

    note = "The product kernels of a round alone, forward, without what is pointwise."
    job = f"a round of rank {rank} multiplied out once per update"
    return ratio_row(job, timed(one) * 1e6 / STEPS, timed(two) * 1e6 / STEPS, "two thin products", note=note)


def kernel_by_kernel() -> Row:
    """Measure the replay of a CUDA graph against launching one kernel after the other from Python."""
    apart = sum(recurrence(5, clock=eagerly))
    return ratio_row("replay of a CUDA graph, 5 rounds", sum(recurrence(5)), apart, "kernel by kernel")


MEASURED: dict[str, Callable[[], Row]] = {
    "rounds": five_rounds,
    "no-rounds": no_rounds,
    "lstm": lambda: ratio_row("LSTM, bfloat16, 1,024 units", *half_lstm(), "cuDNN", 3),
    "lstm-2": lambda: ratio_row("LSTM, bfloat16, 2 × 1,024 units", *half_lstm(2), "cuDNN", 3),
    "lstm-16": lambda: ratio_row("LSTM, bfloat16, 1,024 units, 16 texts", *half_lstm(texts=16), "cuDNN"),
    "lstm-float16": lambda: ratio_row("LSTM, float16, 1,024 units", *half_lstm(kind=torch.float16), "cuDNN"),
    "lstm-kernels": kernels_alone,
    "gru-before": lambda: ratio_row(
        "GRU, reset before its product, 1,024 units", *gated_gru("gru-before"), "eager loop", 5
    ),
    "gru": lambda: ratio_row("GRU, reset after its product, 1,024 units", *gated_gru("gru"), "cuDNN"),
    "dependent-launch": without_dependent_launch,
    "dependent-launch-gru-before": gated_without_dependent_launch,
    "on-chip": lambda: ratio_row(
        "one launch for all steps, weights on the chip: LSTM, bfloat16, 1,024 units",
        *half_lstm(waves=True),
        "a launch per step",
    ),
    "on-chip-capped": lambda: ratio_row(
        "one launch for all steps: capped gate, dropped state, float16, 2 × 896", *capped_lstm(), "a launch per step"
    ),
    "one-launch": layer_after_layer,
    "one-launch-gru-before": lambda: gated_layer_after_layer("gru-before", "GRU, reset before its product"),
    "one-launch-cifg": lambda: gated_layer_after_layer("cifg", "LSTM with coupled gates"),
    "thin-products": thin_products,
    "graph": kernel_by_kernel,
    "epoch": epoch,
}
"""Rows by the names of ``--only``; from "dependent-launch" to "graph" each is one idea of the kernels by itself."""


def main() -> int:
    """Measure; a row that fails is reported, and the others are written."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="where the section goes, as JSON")
    parser.add_argument("--only", nargs="+", choices=MEASURED, default=[*MEASURED], help="rows to measure")
    parser.add_argument("--commit", help="of the code, where this is no checkout")
    given = parser.parse_args()
    began, found, failed = time.perf_counter(), list[Row](), 0
    card = f"one {torch.cuda.get_device_name()}, torch {torch.__version__}"
    for name in given.only:
        torch.manual_seed(0)
        try:
            found.append(MEASURED[name]())
        except Exception as error:
            failed += 1
            print(f"{name} failed: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
            traceback.print_exc()
            continue
        print(found[-1], flush=True)
        section = section_of(TITLE, HOW, found, began) | {"machine": card}
        section |= {"commit": given.commit} if given.commit else {}
        given.out.write_text(json.dumps({"gpu_recurrent": section}, indent=1, ensure_ascii=False) + "\n", "utf-8")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
