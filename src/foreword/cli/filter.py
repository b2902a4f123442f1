"""``foreword filter``: shards in, scores or what passes out."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from foreword.cli.options import (
    READING,
    RUNNING,
    AsJson,
    ErrorsOption,
    FieldOption,
    FormatOption,
    Quiet,
    RayOption,
    examples,
    ray_talking_to_stderr,
)
from foreword.errors import SettingError

if TYPE_CHECKING:
    from foreword.filtering.run import Report

EXAMPLES = examples(
    'foreword filter lid.176.ftz web/ english/ --keep "label=en and probability>0.65"',
    'foreword filter model "web/*.jsonl.zst" kept/ --keep "perplexity<500"',
    "foreword filter model web/ best/ --keep-percentile 10 --with-scores",
    'foreword filter model s3://bucket/web s3://bucket/kept --keep "perplexity<500"',
    "foreword filter -m lid=lid.176.ftz -m wiki=5gram.arpa web/ scored/ --score-only",
    'foreword filter -m lid=lid.176.ftz -m wiki=ngram web/ kept/ --keep "wiki_perplexity<table" --table t.tsv',
    "foreword filter -m lid=lid.176.ftz -m wiki=ngram web/ out/ --buckets 30,60 --each-label",
    'zcat web.jsonl.gz | foreword filter lid.176.ftz - - --keep "label=en" | gzip > english.jsonl.gz',
    'foreword filter lid.176.ftz /shared/web /shared/english --keep "label=en and probability>0.65" --ray head:6379',
)

RULES = "What is kept"

OnErrorChoice = Literal["stop", "skip"]


def filter(
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="MODEL… IN OUT",
            help="Models, or none where --model names them; what to read: a file, a folder, a glob or an address, of "
            "JSONL, Parquet or text, compressed or not, or - for standard input; and the folder to write, an address "
            "such as s3://…, or - for standard output.",
            show_default=False,
        ),
    ],
    model: Annotated[
        list[str] | None,
        typer.Option("--model", "-m", metavar="[NAME=]PATH", help="A model; its name goes before its columns' names."),
    ] = None,
    keep: Annotated[
        list[str] | None,
        typer.Option(
            "--keep", metavar="RULE", help="What passes, such as 'perplexity<500'; several must all hold.",
            rich_help_panel=RULES,
        ),
    ] = None,
    keep_percentile: Annotated[
        float | None,
        typer.Option(
            "--keep-percentile", metavar="P", help="Keep the best P percent of what passes; two passes, exact.",
            rich_help_panel=RULES,
        ),
    ] = None,
    buckets: Annotated[
        str | None,
        typer.Option(
            "--buckets", metavar="P,Q|table", rich_help_panel=RULES,
            help="Add a column bucket: head, the best P percent, middle, up to Q, tail; or by two thresholds a label.",
        ),
    ] = None,
    by: Annotated[
        str | None,
        typer.Option(
            "--by", metavar="COLUMN", help="The column that percentages are of.",
            show_default="the first perplexity, else probability", rich_help_panel=RULES,
        ),
    ] = None,
    each_label: Annotated[
        bool, typer.Option("--each-label", help="Take percentages label by label.", rich_help_panel=RULES)
    ] = False,
    table: Annotated[
        str | None,
        typer.Option(
            "--table", metavar="FILE", help="Thresholds by label, which rules call table: TSV, CSV or JSON.",
            rich_help_panel=RULES,
        ),
    ] = None,
    score_only: Annotated[
        bool, typer.Option("--score-only", help="Keep all rows and add the scores to them.", rich_help_panel=RULES)
    ] = False,
    with_scores: Annotated[
        bool, typer.Option("--with-scores", help="Add the scores to the rows that are kept.", rich_help_panel=RULES)
    ] = False,
    field: FieldOption = "text",
    format: FormatOption = None,
    errors: ErrorsOption = "strict",
    longest: Annotated[
        str,
        typer.Option("--longest", metavar="SIZE", help="A longer row is an error.", rich_help_panel=READING),
    ] = "16M",
    piece: Annotated[
        str,
        typer.Option(
            "--piece", metavar="SIZE", help="Longer documents are scored in pieces.", rich_help_panel=READING
        ),
    ] = "1M",
    processes: Annotated[
        int | None,
        typer.Option(
            "--processes", "-p", min=1, help="How many to use.", show_default="one a core", rich_help_panel=RUNNING
        ),
    ] = None,
    on_error: Annotated[
        OnErrorChoice,
        typer.Option("--on-error", help="Stop at a broken file, or leave it out.", rich_help_panel=RUNNING),
    ] = "stop",
    ray: RayOption = None,
    restart: Annotated[
        bool, typer.Option("--restart", help="Forget what an earlier run has done.", rich_help_panel=RUNNING)
    ] = False,
    scratch: Annotated[
        str | None,
        typer.Option(
            "--scratch", metavar="FOLDER", rich_help_panel=RUNNING,
            help="Where shards are made that go to an address, until they are there.",
            show_default="a temporary folder",
        ),
    ] = None,
    report: Annotated[
        str | None,
        typer.Option("--report", metavar="FILE.svg", help="Draw how the scores are spread.", rich_help_panel=RUNNING),
    ] = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:  # fmt: skip
    """Score files of documents by any models, and keep what passes.

    Every file gives a file of the same name and form in OUT, with all columns as they were. A language model gives
    score, tokens, oov and perplexity, a classifier label and probability. Rules compare these: = != < <= > >= in,
    joined by and, or, not and brackets.

    A run that was stopped or killed goes on where it was when it is started again. The exit status is 1 if a file was
    left out.

    With OUT - the rows that pass go to standard output as they come, by one process, and nothing is remembered.

    With --ray the parts of the files are tasks of a Ray cluster; IN, OUT and the models have to lie where all its nodes
    see them. --processes says how many tasks run at a time.
    """
    from foreword.cli.progress import progress
    from foreword.filtering.output import choose_allocator
    from foreword.filtering.run import STREAM, filter_files, filter_stream
    from foreword.filtering.settings import Filtering
    from foreword.storage.sigbus import report_cut_files

    choose_allocator()
    report_cut_files()  # with one process the models are mapped here

    models, source, out = _told_apart(words, model or [])
    filtering = Filtering(
        models, tuple(keep or ()), keep_percentile, _buckets(buckets), by, each_label, table, score_only, with_scores,
        field, format, errors, _size(longest, "--longest"), _size(piece, "--piece"),
    )  # fmt: skip
    if STREAM in (source, out):
        if (processes or 1) > 1 or on_error == "skip" or restart or ray is not None or scratch or as_json:
            raise typer.BadParameter(
                "a stream is filtered by one process, as it passes by: without --processes, --ray, --on-error skip, "
                "--restart, --scratch and --json", param_hint="'-'",
            )  # fmt: skip
        if out != STREAM:
            raise typer.BadParameter("standard input gives no name to a file in OUT: write to -", param_hint="'OUT'")
        with progress(quiet) as meter:
            done = filter_stream(source, sys.stdout.buffer, filtering, meter=meter)
        _close(done, report, quiet, as_json)
        return
    with progress(quiet or as_json) as meter:
        how: dict[str, Any] = {"on_error": on_error, "restart": restart, "meter": meter, "scratch": scratch}
        if ray is None:
            done = filter_files(source, out, filtering, processes=processes, **how)
        else:
            from foreword.cluster.filtering import filter_on_ray

            with ray_talking_to_stderr():
                done = filter_on_ray(source, out, filtering, address=ray or None, processes=processes, **how)
    _close(done, report, quiet, as_json)


def _close(done: Report, report: str | None, quiet: bool, as_json: bool) -> None:
    drawn = _draw(done, report) if report else []
    _tell(done, quiet, as_json)
    if drawn and not (quiet or as_json):
        sys.stderr.write(f"drawn in {', '.join(drawn)}\n")
    if done.problems:
        raise typer.Exit(1)


def _told_apart(words: list[str], options: list[str]) -> tuple[list[tuple[str, str]], str, str]:
    """Models with their names, what to read and where to write."""
    least = 2 if options else 3
    if len(words) < least:
        raise typer.BadParameter(
            f"expected {'IN and OUT' if options else 'MODEL, IN and OUT'}", param_hint="MODEL… IN OUT"
        )
    models = [_named(word) for word in (*options, *words[:-2])]
    return models, words[-2], words[-1]


def _named(word: str) -> tuple[str, str]:
    """``NAME=PATH``, unless there is a file that is called so."""
    name, sign, path = word.partition("=")
    if not sign or Path(word).exists():
        return "", word
    if not name.isidentifier():
        raise typer.BadParameter(f"{name!r} is no name for a model: letters, digits and _", param_hint="--model")
    return name, path


def _buckets(text: str | None) -> Any:
    if text is None or text == "table":
        return text
    try:
        first, second = map(float, text.split(","))
    except ValueError:
        raise typer.BadParameter(
            f"{text!r}: expected two percentages such as 30,60, or table", param_hint="--buckets"
        ) from None
    return first, second


def _size(text: str, option: str) -> int:
    from foreword.text.files import parse_size

    try:
        return parse_size(text)
    except SettingError as error:
        raise typer.BadParameter(str(error), param_hint=option) from None


def _tell(done: Report, quiet: bool, as_json: bool) -> None:
    from foreword.cli.printing import write_text
    from foreword.filtering.summary import described

    for problem in done.problems:
        sys.stderr.write(f"foreword: left out: {problem}\n")
    if as_json:
        facts = done.tally.to_json() | {
            "shards": done.shards, "problems": done.problems, "seconds": done.seconds, "thresholds": done.thresholds,
        }  # fmt: skip
        write_text(json.dumps(facts, ensure_ascii=False) + "\n")
    elif not quiet:
        lines = described(done.tally, done.seconds, done.read_before)
        lines += [f"threshold for {label}: {limits}" for label, limits in _thresholds(done)]
        sys.stderr.write("".join(f"{line}\n" for line in lines))


def _thresholds(done: Report) -> list[tuple[str, str]]:
    return [
        ("all documents" if label == "*" else label, ", ".join(f"{limit:.6g}" for limit in limits))
        for label, limits in done.thresholds.items()
    ]


def _draw(done: Report, path: str) -> list[str]:
    """One picture, or a file for each column where there are several: its name comes before the suffix. Their names."""
    from foreword.filtering.summary import histogram
    from foreword.picture.picture import write_standalone

    drawn, place, targets = [name for name, bins in done.tally.histograms.items() if bins], Path(path), list[str]()
    for name in drawn:
        target = place if len(drawn) == 1 else place.with_name(f"{place.stem}-{name}{place.suffix or '.svg'}")
        write_standalone(histogram(done.tally, name), target)
        targets.append(str(target))
    return targets
