"""An update as one CUDA graph: hundreds of kernels, launched as one.

At batch 20 or 64 a recurrent model's kernels take microseconds, less than Python needs to launch them. A graph records
them once and replays them all; what an update reads and writes must then always be at the same addresses.
"""

from __future__ import annotations

import gc
from collections.abc import Callable

import torch

WARM_UP = 3
"""Calls that run eagerly before the recording: libraries choose their kernels and workspaces in them."""


class Graphed:
    """A function that is replayed as a CUDA graph from the fourth call on.

    step: takes and returns nothing, never waits for the device, and works in tensors that stay where they are.
    generator: that the step draws from, if any: an unregistered one would repeat the same numbers.
    """

    def __init__(self, step: Callable[[], None], generator: torch.Generator | None = None) -> None:
        self._step = step
        self._generator = generator
        self._calls = 0
        self._graph: torch.cuda.CUDAGraph | None = None

    def __call__(self) -> None:
        if self._calls < WARM_UP:
            self._run_on_side_stream()
        else:
            if self._graph is None:
                self._graph = self._record()
            self._graph.replay()
        self._calls += 1

    def _run_on_side_stream(self) -> None:
        """Run on a stream of its own, as a recording will."""
        stream, current = torch.cuda.Stream(), torch.cuda.current_stream()  # type: ignore[no-untyped-call]
        stream.wait_stream(current)
        with torch.cuda.stream(stream):
            self._step()
        current.wait_stream(stream)

    def _record(self) -> torch.cuda.CUDAGraph:
        graph = torch.cuda.CUDAGraph()
        if self._generator is not None:
            graph.register_generator_state(self._generator)
        collecting = gc.isenabled()
        gc.disable()  # a graph that is no longer used, freed during a recording, would end it
        try:
            with torch.cuda.graph(graph):
                self._step()
        finally:
            if collecting:
                gc.enable()
        return graph
