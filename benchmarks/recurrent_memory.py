"""The most memory that steps of training take, in a process of their own: ``recurrent_memory ours|plain V UNITS``."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch

from benchmarks.recurrent import our_trainer, our_updates, plain_loop


def main(kind: str, vocab: int, units: int) -> int:
    """Bytes in addition to the weights, the gradient among them. A first run of a small size compiles."""
    torch.set_num_threads(1)
    small = our_trainer(50, 16)
    run_small = plain_loop(small)
    our_updates(small)
    run_small()
    trainer = our_trainer(vocab, units)
    steps: Callable[[], list[float]] = partial(our_updates, trainer)
    if kind == "plain":
        steps = plain_loop(trainer)
    del trainer
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5")  # the peak is counted from here on
    before = _status("VmRSS")
    steps()
    return _status("VmHWM") - before


def _status(name: str) -> int:
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith(name))


if __name__ == "__main__":
    print(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
