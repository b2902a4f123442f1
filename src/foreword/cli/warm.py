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
    """Run every chain of commands, several at a time in processes of their own; return the commands that failed."""
    from concurrent.futures import ProcessPoolExecutor, as_completed
    from multiprocessing import get_context

    from foreword.cli.warming import CHAINS, run_chain

    failed: list[str] = []
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        waiting = [pool.submit(run_chain, name) for name in CHAINS]
        for number, done in enumerate(as_completed(waiting)):
            failed += done.result()
            if meter is not None:
                meter("compiling kernels", number + 1, len(waiting))
    return failed
