"""``foreword warm``: compile every kernel now, on all cores, so that no command has to wait for it later."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from foreword.cli.options import OutputOptions, examples

if TYPE_CHECKING:
    from foreword.protocols import Meter

EXAMPLES = examples("foreword warm", "foreword warm --json")


def warm(
    *,
    processes: Annotated[
        int | None, typer.Option("--processes", min=1, show_default="all cores", help="Compile in this many processes.")
    ] = None,
    output: OutputOptions,
) -> None:
    """Compile all kernels for this machine, once: every command on a small text, in parallel.

    Commands compile what they need when they first need it, which takes up to half a minute. Kernels that ship with
    the package or are compiled already are left as they are.
    """
    import time

    from foreword.cli.printing import print_message, write_json
    from foreword.cli.progress import progress
    from foreword.errors import ForewordError
    from foreword.native.compiled import compiled_files, local_folder
    from foreword.native.parallel import cores

    began, before = time.perf_counter(), set(compiled_files())
    with progress(output.quiet) as meter:
        failed = warm_up(processes or cores(), meter)
    new, seconds = set(compiled_files()) - before, time.perf_counter() - began
    if output.as_json:
        write_json({"compiled": len(new), "folder": str(local_folder()), "seconds": seconds})
    elif not output.quiet:
        print_message(f"{len(new):,} kernels compiled, {seconds:.0f} s, saved in {local_folder()}")
    if failed:
        raise ForewordError(f"{len(failed)} commands failed: {failed[0]}")


def warm_up(processes: int, meter: Meter | None) -> list[str]:
    """Run every chain of commands, in processes that take them from both ends; return the commands that failed."""
    from collections import deque
    from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
    from contextlib import ExitStack
    from multiprocessing import get_context

    from foreword.cli.warming import CHAINS, run_chain

    failed, waiting, running = list[str](), deque(CHAINS), dict[Future[list[str]], int]()
    with ExitStack() as stack:
        context = get_context("spawn")
        pools = [stack.enter_context(ProcessPoolExecutor(1, context)) for _ in range(min(processes, len(CHAINS)))]
        free = list(range(len(pools)))
        while waiting or running:
            for number in free[: len(waiting)]:
                chain = waiting.pop() if number % 2 else waiting.popleft()
                running[pools[number].submit(run_chain, chain)] = number
            done, _ = wait(running, return_when=FIRST_COMPLETED)
            free = [running.pop(each) for each in done]
            for number in () if waiting else free:
                pools[number].shutdown(wait=False)  # a process needs seconds to end
            failed += [line for each in done for line in each.result()]
            if meter is not None:
                meter("compiling kernels", len(CHAINS) - len(waiting) - len(running), len(CHAINS))
    return failed
