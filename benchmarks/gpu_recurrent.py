"""Our recurrent kernels on a GPU against cuDNN and eager loops: ``python -m benchmarks.gpu_recurrent --out FILE``.

It stands apart from the others because it needs another machine; ``python -m benchmarks --take FILE`` puts its section
into the document.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor

from benchmarks.report import Row, section_of
from foreword.neural.mogrifier import RECIPE, Mogrifier
from foreword.nn.gated import run_gated
from foreword.nn.gated_gpu import by_kernels
from foreword.nn.layers import mogrifier_lstm
from foreword.nn.mogrifier_gpu import Buffers, Stack, StackLauncher, run_stack
from foreword.tokens.corpus import Corpus
from foreword.tokens.vocab import END, UNKNOWN, Vocab

TITLE = "Recurrent kernels on a GPU"
HOW = (
    "Microseconds per layer and step, forward and backward, from replays of CUDA graphs, median of five. Mogrifier: "
    "two layers of 896 units, 64 texts, 70 steps, capped gate, state dropout, fp16, without the gradients of weights. "
    "LSTM in bfloat16 with them, one layer of 1,024 units. Epoch: 207 updates of the recipe's Penn Treebank model, "
    "everything included. The eager loop is PyTorch's autograd with the gradients of weights, "
    "launched operation by operation, so its time is no ratio to ours."
)
LAYERS, STEPS, TEXTS, UNITS = 2, 70, 64, 896
REPLAYS, RUNS = 5, 5


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


def recurrence(rounds: int, units: int = UNITS) -> tuple[float, float]:
    """Return microseconds per layer and step, forward and backward, without the gradients of weights."""
    x, stack = drawn(rounds, units=units)
    buffers = Buffers(x, LAYERS, rounds)
    for part in (*buffers.x, *buffers.h, buffers.c):
        part.zero_()
    buffers.x[0][0].copy_(x)
    launcher, out = StackLauncher(buffers, stack), torch.empty_like(buffers.x[0])
    d_out, d_c = torch.randn_like(out), torch.zeros_like(buffers.c[:, 0])
    forward = timed(lambda: launcher.forward(out))
    backward = timed(lambda: launcher.backward(d_out, d_c))
    return forward * 1e6 / STEPS / LAYERS, backward * 1e6 / STEPS / LAYERS


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


def bfloat16_lstm() -> tuple[float, float]:
    """Return microseconds per step of one layer of 1,024 units, with all gradients: ours and cuDNN's."""
    units, kind = 1024, torch.bfloat16
    x, stack = drawn(0, kind, units, layers=1)
    stack = replace(stack, capped=False, state_mask=None, between=None)
    zero = torch.zeros(1, TEXTS, units, device="cuda", dtype=kind)
    leaves = [part.requires_grad_() for part in (x, stack.w_x, stack.w_h, stack.bias)]
    ours = timed(gradients_of(lambda: run_stack(x, zero, zero, stack)[0], leaves))
    biases = (stack.bias[0], torch.zeros_like(stack.bias[0]).requires_grad_())
    weights = [part.detach().clone().requires_grad_() for part in (stack.w_x[0], stack.w_h[0], *biases)]

    def cudnn() -> Tensor:
        found: Tensor = torch._VF.lstm(x, (zero, zero), weights, True, 1, 0.0, True, False, False)[0]
        return found

    theirs = timed(gradients_of(cudnn, [x, *weights]))
    return ours * 1e6 / STEPS, theirs * 1e6 / STEPS


def gru_before() -> tuple[float, float]:
    """Return microseconds per step of a GRU of 1,024 units in float16, with all gradients: ours and an eager loop's."""
    units, kind = 1024, torch.float16

    def normal(*shape: int, size: float = units**-0.5) -> Tensor:
        return (torch.randn(*shape, device="cuda") * size).to(kind).requires_grad_()

    x, h = normal(STEPS, TEXTS, units, size=0.5), normal(TEXTS, units, size=0.5)
    weights = [normal(3 * units, units), normal(3 * units, units), normal(3 * units), normal(3 * units)]
    ours = timed(gradients_of(lambda: by_kernels("gru-before", x, (h,), weights)[0], [x, *weights]))
    theirs = eagerly(gradients_of(lambda: run_gated("gru-before", x, (h,), weights)[0], [x, *weights]))
    return ours * 1e6 / STEPS, theirs * 1e6 / STEPS


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


def rows() -> list[Row]:
    """Measure everything."""
    found = []

    def add(job: str, ours: str, bar: str, met: bool, peer: str = "–", ratio: str = "–") -> None:
        found.append(Row(job, ours=ours, peer=peer, ratio=ratio, bar=bar, met=met))
        print(found[-1], flush=True)

    loop = plain_loop() * 1e6 / STEPS / LAYERS
    for rounds, bar in ((5, 37.0), (0, 12.0)):
        forward, backward = recurrence(rounds)
        both = forward + backward
        what, ours = f"{rounds} rounds, 2 × 896", f"{both:.1f} µs ({forward:.1f} + {backward:.1f})"
        if rounds:
            add(what, ours, f"≤ {bar:g} µs", both <= bar, f"eager loop: {loop:.0f} µs")
        else:
            add(what, ours, f"≤ {bar:g} µs", both <= bar)
    mine, theirs = bfloat16_lstm()
    ratio = theirs / mine
    add("LSTM, bfloat16, 1,024 units", f"{mine:.1f} µs", "≥ 3", ratio >= 3, f"cuDNN: {theirs:.1f} µs", f"{ratio:.2f}")
    mine, theirs = gru_before()
    ratio = theirs / mine
    add("GRU, reset before its product, 1,024 units", f"{mine:.1f} µs", "≥ 5", ratio >= 5,
        f"eager loop: {theirs:.1f} µs", f"{ratio:.2f}")  # fmt: skip
    epoch = epoch_seconds()
    add("an epoch of the Penn Treebank, 207 updates", f"{epoch:.3f} s", "≤ 1.45 s", epoch <= 1.45)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="where the section goes, as JSON")
    given = parser.parse_args()
    torch.manual_seed(0)
    began = time.perf_counter()
    card = f"one {torch.cuda.get_device_name()}, torch {torch.__version__}"
    section = section_of(TITLE, HOW, rows(), began) | {"machine": card}
    given.out.write_text(json.dumps({"gpu_recurrent": section}, indent=1, ensure_ascii=False) + "\n", "utf-8")


if __name__ == "__main__":
    main()
