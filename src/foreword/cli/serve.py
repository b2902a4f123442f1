"""``foreword serve``: models over HTTP, for programs."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from foreword.cli.options import OutputOptions, SetOption, examples
from foreword.errors import InputError, MissingExtraError

if TYPE_CHECKING:
    from foreword.serve.limits import Limits
    from foreword.serve.loading import Source

EXAMPLES = examples(
    "foreword serve my-model",
    "foreword serve wiki=lm.arpa lid.176.ftz --port 9000",
    "foreword serve my-model --host 0.0.0.0 --token $(openssl rand -hex 16) --log access.log",
)

HOST, PORT = "127.0.0.1", 8766
HostOption: TypeAlias = Annotated[
    str, typer.Option("--host", help="Address to listen on; others than this machine's own need --token.")
]
PortOption: TypeAlias = Annotated[
    int, typer.Option("--port", min=0, max=65535, help="Port to listen on; 0 takes a free one.")
]
TokenOption: TypeAlias = Annotated[
    str | None,
    typer.Option("--token", envvar="FOREWORD_TOKEN", help="Bearer token that clients must send.", show_default=False),
]


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """What ``--set`` can change of a server. Sizes are in bytes or tokens; ``queue`` and ``wait`` in milliseconds."""

    max_body: int = 1 << 20
    max_tokens: int = 20_000
    max_requests: int = 256
    timeout: float = 30.0
    queue: float = 100.0
    batch: int = 64
    wait: float = 2.0
    grace: float = 10.0

    def limits(self) -> Limits:
        """Return the server's limits; raise a SettingError where one is out of range."""
        from foreword.checks import check_numbers
        from foreword.serve.limits import Limits

        check_numbers(self, "max_body", "max_tokens", "max_requests", least=1)
        check_numbers(self, "timeout", above=0, most=86_400)
        for name, least, most in (("batch", 1, 4096), ("queue", 1, 60_000), ("wait", 0, 1000), ("grace", 1, 3600)):
            check_numbers(self, name, least=least, most=most)
        return Limits(
            body=self.max_body, tokens=self.max_tokens, seconds=self.timeout, at_once=self.max_requests,
            queue=self.queue / 1000, batch=self.batch, wait=self.wait / 1000,
        )  # fmt: skip


def serve(
    models: Annotated[
        list[str],
        typer.Argument(
            metavar="[NAME=]MODEL…", help="Saved models, or files that Foreword reads. Clients use their names.",
            show_default=False,
        ),
    ],
    *,
    host: HostOption = HOST,
    port: PortOption = PORT,
    token: TokenOption = None,
    settings: SetOption = None,
    watch: Annotated[
        bool, typer.Option("--watch/--no-watch", help="Load a model again when it is replaced.")
    ] = True,
    access_log: Annotated[
        str, typer.Option("--log", metavar="FILE", help="File for one line per request.", show_default="stderr")
    ] = "-",
    output: OutputOptions,
) -> None:  # fmt: skip
    """Serve models over HTTP until SIGTERM or Ctrl-C: score, generate, classify, tag, translate, embed, nearest.

    /docs lists the routes, /health and /ready report the state of the server, /metrics is for Prometheus. Requests that
    wait for the same network are computed in one batch.

    The settings are max_body (bytes of a request, 1048576), max_tokens (of a text, 20000), max_requests (at once, 256),
    timeout (seconds for an answer, 30), queue (milliseconds that a request may wait for those before it, 100), batch
    (texts that a network reads together, 64), wait (milliseconds that a text waits for others, 2) and grace (seconds to
    finish requests at the end, 10).
    """
    needs_server("a server")

    from foreword.cli.settings import parse_settings
    from foreword.serve.limits import check_address
    from foreword.serve.loading import sources_of

    check_address(host, token)
    chosen = ServerSettings(**parse_settings(settings, "serve", ServerSettings))
    chosen.limits()  # wrong settings are refused before models are looked for
    _serve(sources_of(models), host, port, token, chosen, watch, access_log, output)


def needs_server(what: str) -> None:
    """Check that the packages of a server are there, and give its small requests one thread each."""
    for package in ("httptools", "pydantic"):
        if find_spec(package) is None:
            raise MissingExtraError(package, "lab", what)
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # many small requests: a second thread costs more than it gives


def report_ready(facts: dict[str, Any], line: str, output: OutputOptions) -> None:
    """Report that a server answers, and where."""
    from foreword.cli.printing import flush, print_message, write_json

    if output.as_json:
        write_json(facts)
        flush()  # who waits for it waits while we serve
    elif not output.quiet:
        print_message(f"{line} (Ctrl-C stops it)")


def _serve(
    sources: Sequence[Source], host: str, port: int, token: str | None, settings: ServerSettings, watch: bool,
    access_log: str, output: OutputOptions,
) -> None:  # fmt: skip
    from foreword.cli.printing import print_message
    from foreword.serve.running import serve as run

    limits = settings.limits()
    _log_errors()
    try:
        log = None if output.quiet and access_log == "-" else sys.stderr if access_log == "-" else open(access_log, "a")  # noqa: SIM115, PTH123
    except OSError as error:
        raise InputError(f"cannot write {access_log}: {error.strerror}") from error

    def write(lines: str) -> None:
        assert log is not None
        log.write(lines)
        log.flush()

    def ready(address: str) -> None:
        names = [source.name for source in sources]
        report_ready({"address": address, "models": names}, f"serving {', '.join(names)} at {address}", output)

    finished = run(
        sources, host, port, token=token, limits=limits, grace=settings.grace, watch=watch,
        log=None if log is None else write, ready=ready,
    )  # fmt: skip
    if not finished:
        print_message("some requests were cut off, for they did not end in time")
        sys.stderr.flush()
        os._exit(1)  # a thread that still computes would otherwise be waited for


def _log_errors() -> None:
    """Log the messages of the server to standard error."""
    import logging

    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    logger = logging.getLogger("foreword.serve")
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
