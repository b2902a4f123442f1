"""``foreword lab``: a page to play with, on this machine; ``foreword lab export``: one panel as one file."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from foreword.cli.options import (
    COMMON_HELP,
    CommandGroup,
    OutputOptions,
    add_command,
    examples,
)
from foreword.cli.serve import HostOption, PortOption, TokenOption, needs_server, report_ready

EXAMPLES = examples(
    "foreword lab",
    "foreword lab --model my-model --model enwiki.vec --port 9000",
    "foreword lab --text notes.txt",
    "foreword lab export cells.html",
    "foreword lab export ngrams.html --panel ngrams --text notes.txt",
)

app = typer.Typer(cls=CommandGroup, name="lab", epilog=f"{EXAMPLES}\n\n{COMMON_HELP}", invoke_without_command=True)

HOST, PORT = "127.0.0.1", 8765


@app.callback(
    help="Serve a page to play with, until Ctrl-C: cells, next words, tokens, word vectors, tags, training.\n\n"
    "The page is there at once. Small models are trained in the background and appear on it as they are done, unless "
    "--model names others."
)
def lab(
    context: typer.Context,
    models: Annotated[
        list[str] | None,
        typer.Option("--model", "-m", metavar="MODEL", help="A saved model or a file. May be repeated."),
    ] = None,
    text: Annotated[
        str, typer.Option(metavar="TEXT", help="Text to train on: a file, a data set, or embedded.")
    ] = "embedded",
    host: HostOption = HOST,
    port: PortOption = PORT,
    token: TokenOption = None,
    open_browser: Annotated[bool, typer.Option("--open/--no-open", help="Open the page in a browser.")] = True,
) -> None:
    """Serve the page, unless another command of the lab is asked for."""
    if context.invoked_subcommand is not None:
        return
    needs_server("the lab")

    from foreword.cli.models import load_any
    from foreword.cli.texts import documents_in, is_embedded
    from foreword.lab.app import serve
    from foreword.serve.limits import check_address
    from foreword.serve.registry import Registry
    from foreword.text.sources import Reading

    check_address(host, token)
    registry, root = Registry(), context.find_root().params
    for path in models or []:
        name = Path(path).resolve().name
        registry.add(registry.free_name(name), load_any(path), name)

    def ready(address: str) -> None:
        report_ready({"address": address}, f"the lab is at {address}", OutputOptions(root["as_json"], root["quiet"]))

    texts = lambda: list(documents_in([text], Reading()))  # noqa: E731 - read when the first training needs them
    own = not is_embedded(text)
    serve(registry, texts, host, port, token, ready=ready, own_text=own, open_browser=open_browser)


def export(
    out: Annotated[str, typer.Argument(metavar="FILE.html", help="File to write; - prints it.")],
    *,
    panel: Annotated[str, typer.Option(metavar="PANEL", help="Panel to write.")] = "cells_panel",
    text: Annotated[str, typer.Option(metavar="TEXT", help="Text to train on.")] = "embedded",
    seconds: Annotated[
        float, typer.Option(min=0, max=600, help="Training time of each network; 0 for no training.")
    ] = 4.0,
    output: OutputOptions,
) -> None:
    """Write one panel as one file that needs no server and no network.

    The page of foreword lab has a button that saves any panel as it is shown.
    """
    from foreword.cli.models import check_output
    from foreword.cli.printing import print_message, write_json, write_text
    from foreword.cli.texts import documents_in
    from foreword.lab.page import answers_of, exported, write_exported
    from foreword.text.sources import Reading

    if output.as_json and out == "-":
        raise typer.BadParameter("standard output is taken by the page", param_hint="'--json'")
    check_output(out, folder=False)
    with_torch = find_spec("torch") is not None
    answers = answers_of(panel, list(documents_in([text], Reading())), seconds if with_torch else 0)
    if out == "-":
        write_text(exported(panel, answers))
        return
    write_exported(out, panel, answers)
    if output.as_json:
        write_json({"output": out, "bytes": Path(out).stat().st_size, "trained": bool(seconds and with_torch)})
    elif not output.quiet:
        left_out = "" if with_torch else ", without trained networks, which need torch"
        print_message(f"the page is in {out}{left_out}")


add_command(app, export, EXAMPLES)
