"""``foreword serve``: models over HTTP, for programs."""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from typing import Annotated

import typer

from foreword.cli.options import AsJson, Quiet, examples
from foreword.errors import InputError, MissingExtraError

EXAMPLES = examples(
    "foreword serve my-model",
    "foreword serve wiki=lm.arpa lid.176.ftz --port 9000",
    "foreword serve my-model --host 0.0.0.0 --token $(openssl rand -hex 16) --log access.log",
)

HOST, PORT = "127.0.0.1", 8766

LIMITS = "What is refused"


def serve(
    models: Annotated[
        list[str],
        typer.Argument(
            metavar="[NAME=]MODEL…",
            help="Folders or files that Foreword reads; clients ask for them by name.",
            show_default=False,
        ),
    ],
    host: Annotated[
        str, typer.Option(help="Where to listen; any address but this machine's own needs --token.")
    ] = HOST,
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port; 0 takes a free one.")] = PORT,
    token: Annotated[
        str | None,
        typer.Option(envvar="FOREWORD_TOKEN", help="What clients must give, as a bearer token.", show_default=False),
    ] = None,
    batch: Annotated[int, typer.Option(min=1, max=4096, help="Texts that a network reads together.")] = 64,
    wait: Annotated[float, typer.Option(min=0, max=1000, help="Milliseconds that a text waits for others.")] = 2.0,
    watch: Annotated[bool, typer.Option("--watch/--no-watch", help="Load a model again when it is replaced.")] = True,
    grace: Annotated[float, typer.Option(min=1, max=3600, help="Seconds to finish what was begun, at the end.")] = 10.0,
    access_log: Annotated[
        str, typer.Option("--log", metavar="FILE", help="Where a line for each request goes.", show_default=False)
    ] = "-",
    max_body: Annotated[int, typer.Option(min=1, help="Bytes of a request.", rich_help_panel=LIMITS)] = 1 << 20,
    max_tokens: Annotated[int, typer.Option(min=1, help="Tokens of a text.", rich_help_panel=LIMITS)] = 20_000,
    max_requests: Annotated[int, typer.Option(min=1, help="Requests at once.", rich_help_panel=LIMITS)] = 256,
    timeout: Annotated[
        float, typer.Option(min=0.01, max=86_400, help="Seconds for an answer.", rich_help_panel=LIMITS)
    ] = 30.0,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Serve models over HTTP until SIGTERM or Ctrl-C: score, generate, classify, tag, translate, embed, nearest.

    /docs lists the routes, /health and /ready report the state of the server, /metrics is for Prometheus. Requests that
    wait for the same network are computed in one batch.
    """
    for package in ("httptools", "pydantic"):
        if find_spec(package) is None:
            raise MissingExtraError(package, "lab", "a server")
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # many small requests: a second thread costs more than it gives

    from foreword.cli.printing import flush, print_message, write_json
    from foreword.serve.limits import Limits, check_address
    from foreword.serve.loading import sources_of
    from foreword.serve.running import serve as run

    check_address(host, token)
    sources = sources_of(models)
    limits = Limits(body=max_body, tokens=max_tokens, seconds=timeout, at_once=max_requests, batch=batch,
                    wait=wait / 1000)  # fmt: skip
    _log_errors()
    try:
        log = None if quiet and access_log == "-" else sys.stderr if access_log == "-" else open(access_log, "a")  # noqa: SIM115, PTH123
    except OSError as error:
        raise InputError(f"cannot write {access_log}: {error.strerror}") from error

    def write(lines: str) -> None:
        assert log is not None
        log.write(lines)
        log.flush()

    def ready(address: str) -> None:
        if as_json:
            write_json({"address": address, "models": [source.name for source in sources]})
            flush()  # whoever waits for it waits while we serve
        elif not quiet:
            print_message(f"serving {', '.join(source.name for source in sources)} at {address} (Ctrl-C ends it)")

    finished = run(
        sources, host, port, token=token, limits=limits, grace=grace, watch=watch,
        log=None if log is None else write, ready=ready,
    )  # fmt: skip
    if not finished:
        print_message("some requests had no end: they were cut off")
        sys.stderr.flush()
        os._exit(1)  # a thread that still computes would otherwise be waited for


def _log_errors() -> None:
    """What the server has to say, a line each, on standard error."""
    import logging

    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    logger = logging.getLogger("foreword.serve")
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
