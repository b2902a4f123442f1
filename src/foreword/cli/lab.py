"""``foreword lab``: a page to play with, on this machine; ``foreword lab export``: its first panel as one file."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from foreword.cli.options import AsJson, Quiet, add_command, examples
from foreword.errors import MissingExtraError

EXAMPLES = examples(
    "foreword lab",
    "foreword lab --model my-model --model enwiki.vec --port 9000",
    "foreword lab --text notes.txt",
    "foreword lab export cells.html",
)

app = typer.Typer(name="lab", epilog=EXAMPLES, invoke_without_command=True)

HOST, PORT = "127.0.0.1", 8765


@app.callback(
    help="Serve a page to play with, until Ctrl-C: cells, next words, tokens, word vectors, tags, training.\n\n"
    "It is there at once. "
    "Small models are trained behind it and join it as they are done, unless --model names others."
)
def lab(
    context: typer.Context,
    models: Annotated[
        list[str] | None,
        typer.Option("--model", "-m", metavar="MODEL", help="A model's folder or file; may be given several times."),
    ] = None,
    text: Annotated[
        str, typer.Option(metavar="TEXT", help="What is learnt from: a file, a data set, or embedded.")
    ] = "embedded",
    host: Annotated[
        str, typer.Option(help="Where to listen; any address but this machine's own needs --token.")
    ] = HOST,
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port; 0 takes a free one.")] = PORT,
    token: Annotated[
        str | None, typer.Option(envvar="FOREWORD_TOKEN", help="What visitors must give.", show_default=False)
    ] = None,
    open_browser: Annotated[bool, typer.Option("--open/--no-open", help="Open the page in a browser.")] = True,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """The page itself, where no other command of the lab is asked for."""
    if context.invoked_subcommand is not None:
        return
    for package in ("httptools", "pydantic"):
        if find_spec(package) is None:
            raise MissingExtraError(package, "lab", "the lab")
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # small networks: a second thread costs more than it gives

    from foreword.cli.models import load_any
    from foreword.cli.printing import flush, print_message, write_json
    from foreword.cli.texts import documents_in
    from foreword.lab.app import serve
    from foreword.serve.limits import check_address
    from foreword.serve.registry import Registry
    from foreword.text.sources import Reading

    check_address(host, token)
    registry = Registry()
    for path in models or []:
        name = Path(path).resolve().name
        registry.add(registry.free_name(name), load_any(path), name)

    def ready(address: str) -> None:
        if as_json:
            write_json({"address": address})
            flush()  # whoever waits for it waits while we serve
        elif not quiet:
            print_message(f"the lab is at {address} (Ctrl-C ends it)")

    serve(
        registry,
        lambda: list(documents_in([text], Reading())),
        host,
        port,
        token,
        ready=ready,
        open_browser=open_browser,
    )


def export(
    out: Annotated[str, typer.Argument(metavar="FILE.html", help="The file to write; - prints it.")],
    text: Annotated[str, typer.Option(metavar="TEXT", help="What the trained cells learn from.")] = "embedded",
    seconds: Annotated[
        float, typer.Option(min=0, max=600, help="For training each of the three cells; 0 leaves training out.")
    ] = 4.0,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Write the panel of recurrent cells as one file that needs no server and no network."""
    from foreword.cli.models import check_output
    from foreword.cli.printing import print_message, write_json, write_text
    from foreword.cli.texts import documents_in
    from foreword.lab.cells import page_data, trained_cells
    from foreword.lab.page import exported, write_exported
    from foreword.text.sources import Reading

    if as_json and out == "-":
        raise typer.BadParameter("standard output is taken by the page", param_hint="'--json'")
    check_output(out, folder=False)
    with_torch = find_spec("torch") is not None
    trained = trained_cells(list(documents_in([text], Reading())), seconds) if seconds and with_torch else None
    data = page_data(trained)
    if out == "-":
        write_text(exported(data))
        return
    write_exported(out, data)
    if as_json:
        write_json({"output": out, "bytes": Path(out).stat().st_size, "trained": trained is not None})
    elif not quiet:
        left_out = "" if with_torch else ", without trained cells, which need torch"
        print_message(f"the page is in {out}{left_out}")


add_command(app, export, EXAMPLES)
