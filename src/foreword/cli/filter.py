"""``foreword filter``: score files of documents, and keep what passes."""

from __future__ import annotations

import json
import sys
import warnings
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias, get_args

import typer

from foreword.cli.options import (
    READING,
    RUNNING,
    ErrorsOption,
    FieldOption,
    FormatOption,
    OutputOptions,
    RayOption,
    examples,
    ray_output_to_stderr,
)
from foreword.errors import SettingError

if TYPE_CHECKING:
    from foreword.filtering.run import Report
    from foreword.filtering.settings import Filtering

EXAMPLES = examples(
    'foreword filter lid.176.ftz web/ english/ --keep "label=en and probability>0.65"',
    'foreword filter model "web/*.jsonl.zst" kept/ --keep "perplexity<500"',
    "foreword filter model web/ best/ --keep-percentile 10 --with-scores",
    'foreword filter quality.bin web/ best/ --keep-percentile 10 --by "p(hq)"',
    'foreword filter web/ long/ --keep "words>=50 and column(lang)=en and duplicate_lines<0.3"',
    "foreword filter -m wiki=en.arpa.bin+en.sp.model web/ scored/ --like ccnet --score-only",
    "foreword filter -m quality=quality.bin web/ attributes/ --sidecar dolma",
    'foreword filter model s3://bucket/web s3://bucket/kept --keep "perplexity<500"',
    "foreword filter -m lid=lid.176.ftz -m wiki=5gram.arpa web/ scored/ --score-only",
    'foreword filter test-sets-index web/ clean/ --keep "contaminated<0.1" --span 13',
    'foreword filter -m lid=lid.176.ftz -m wiki=ngram web/ kept/ --keep "wiki_perplexity<table" --table t.tsv',
    "foreword filter -m lid=lid.176.ftz -m wiki=ngram web/ out/ --buckets 30,60 --each-label",
    'zcat web.jsonl.gz | foreword filter lid.176.ftz - - --keep "label=en" | gzip > english.jsonl.gz',
    'foreword filter lid.176.ftz /shared/web /shared/english --keep "label=en and probability>0.65" --ray head:6379',
)

RULES = "What is kept"
SCORES = "Scores"


@dataclass(frozen=True, slots=True)
class RuleOptions:
    """Which rows are kept."""

    keep: Annotated[
        list[str] | None,
        typer.Option(
            "--keep",
            metavar="RULE",
            rich_help_panel=RULES,
            help="Keep rows that pass, such as 'perplexity<500'. With several rules all must hold.",
        ),
    ] = None
    keep_percentile: Annotated[
        float | None,
        typer.Option(
            "--keep-percentile",
            metavar="P",
            rich_help_panel=RULES,
            help="Keep the best P percent of what passes, exactly, in two passes.",
        ),
    ] = None
    buckets: Annotated[
        str | None,
        typer.Option(
            "--buckets",
            metavar="P,Q|table",
            rich_help_panel=RULES,
            help="Add a column bucket: head (the best P percent), middle (up to Q), tail; or by two thresholds "
            "per label.",
        ),
    ] = None
    by: Annotated[
        str | None,
        typer.Option(
            "--by",
            metavar="COLUMN",
            help="Column that percentiles are computed on.",
            rich_help_panel=RULES,
            show_default="the first perplexity, else probability",
        ),
    ] = None
    each_label: Annotated[
        bool, typer.Option("--each-label", help="Compute percentiles for each label separately.", rich_help_panel=RULES)
    ] = False
    table: Annotated[
        str | None,
        typer.Option(
            "--table",
            metavar="FILE",
            rich_help_panel=RULES,
            help="Thresholds by label, called table in rules: TSV, CSV or JSON.",
        ),
    ] = None
    score_only: Annotated[
        bool, typer.Option("--score-only", help="Keep all rows, with their scores.", rich_help_panel=RULES)
    ] = False
    with_scores: Annotated[
        bool, typer.Option("--with-scores", help="Write the scores of the rows that are kept.", rich_help_panel=RULES)
    ] = False  # fmt: skip


@dataclass(frozen=True, slots=True)
class ScoreOptions:
    """What is computed for each row."""

    column: Annotated[
        list[str] | None,
        typer.Option(
            "--column",
            metavar="COLUMN",
            rich_help_panel=SCORES,
            help="A further column to compute: p(LABEL), or a statistic of the text such as words.",
        ),
    ] = None
    top: Annotated[
        int, typer.Option("--top", metavar="K", min=1, help="The K best labels of classifiers.", rich_help_panel=SCORES)
    ] = 1
    labels: Annotated[
        list[str] | None,
        typer.Option(
            "--labels",
            metavar="[NAME=]A,B…",
            rich_help_panel=SCORES,
            help="Labels that can be the best; NAME is that of a model.",
        ),
    ] = None
    restrict: Annotated[
        Literal["before", "after"],
        typer.Option("--restrict", help="Restrict to --labels before or after the softmax.", rich_help_panel=SCORES),
    ] = "after"
    clean: Annotated[
        list[str] | None,
        typer.Option(
            "--clean",
            metavar="[NAME=]STEP",
            rich_help_panel=SCORES,
            help="Clean texts before classifiers read them: openlid, ccnet or none.",
        ),
    ] = None
    like: Annotated[
        Literal["ccnet", "dclm", "data-juicer"] | None,
        typer.Option(
            "--like",
            rich_help_panel=SCORES,
            help="Score KENLM+SENTENCEPIECE models exactly as this tool does.",
        ),
    ] = None
    span: Annotated[
        int,
        typer.Option(
            "--span",
            metavar="K",
            min=1,
            rich_help_panel=SCORES,
            help="For an index: spans of at least K tokens count as contaminated.",
        ),
    ] = 13
    sidecar: Annotated[
        Literal["parquet", "dolma"] | None,
        typer.Option(
            "--sidecar",
            rich_help_panel=SCORES,
            help="Write only ids and scores, row for row: Parquet, or Dolma's attributes.",
        ),
    ] = None
    id: Annotated[
        str, typer.Option("--id", metavar="FIELD", help="Field of the ids.", rich_help_panel=SCORES)
    ] = "id"  # fmt: skip


@dataclass(frozen=True, slots=True)
class RowOptions:
    """How rows are read."""

    field: FieldOption = "text"
    format: FormatOption = None
    errors: ErrorsOption = "strict"
    longest: Annotated[
        str, typer.Option("--longest", metavar="SIZE", help="A longer row is an error.", rich_help_panel=READING)
    ] = "16M"
    piece: Annotated[
        str,
        typer.Option("--piece", metavar="SIZE", help="Score longer documents in pieces.", rich_help_panel=READING),
    ] = "1M"


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How the work is run."""

    processes: Annotated[
        int | None,
        typer.Option(
            "--processes",
            "-p",
            min=1,
            help="Number of processes.",
            show_default="one per core",
            rich_help_panel=RUNNING,
        ),
    ] = None
    on_error: Annotated[
        Literal["stop", "skip"],
        typer.Option("--on-error", help="Stop at a broken file, or leave it out.", rich_help_panel=RUNNING),
    ] = "stop"
    ray: RayOption = None
    restart: Annotated[
        bool, typer.Option("--restart", help="Discard what an earlier run has done.", rich_help_panel=RUNNING)
    ] = False
    scratch: Annotated[
        str | None,
        typer.Option("--scratch", metavar="FOLDER", rich_help_panel=RUNNING, show_default="a temporary folder",
                     help="Where shards are written before they are sent to an address."),
    ] = None  # fmt: skip

    def check_stream(self, out: str, as_json: bool) -> None:
        """Refuse what cannot be done with standard input or output."""
        if (
            (self.processes or 1) > 1 or self.on_error == "skip" or self.restart or self.ray is not None
            or self.scratch or as_json
        ):  # fmt: skip
            raise typer.BadParameter(
                "a stream is filtered by one process, as it passes by: without --processes, --ray, --on-error skip, "
                "--restart, --scratch and --json", param_hint="'-'",
            )  # fmt: skip
        if out != "-":
            raise typer.BadParameter("standard input gives no name to a file in OUT: write to -", param_hint="'OUT'")


Words: TypeAlias = Annotated[
    list[str],
    typer.Argument(
        metavar="MODEL… IN OUT",
        help="Models, unless --model names them; the input: a file, folder, glob or address, of JSONL, Parquet or text,"
        " compressed or not, or - for standard input; and the folder to write, an address such as s3://…, or - for "
        "standard output.",
        show_default=False,
    ),
]


def filter(
    words: Words,
    *,
    model: Annotated[
        list[str] | None,
        typer.Option("--model", "-m", metavar="[NAME=]PATH", help="A model; NAME is the prefix of its columns."),
    ] = None,
    rules: RuleOptions,
    scores: ScoreOptions,
    rows: RowOptions,
    running: RunOptions,
    report: Annotated[
        str | None,
        typer.Option("--report", metavar="FILE.svg", help="Draw histograms of the scores.", rich_help_panel=RUNNING),
    ] = None,
    output: OutputOptions,
) -> None:
    """Score documents with one or more models, and keep those that pass the rules.

    Every file gives a file of the same name and format in OUT, with all columns unchanged. A language model gives
    score, tokens, oov and perplexity, a classifier label and probability, and p(LABEL) for any label that a rule names.
    Rules compare these, statistics of the text (words, symbol_ratio, duplicate_lines …) and fields of the rows,
    column(FIELD), with = != < <= > >= in, joined by and, or, not and brackets. Without a model, rules compare
    statistics and fields alone.

    A run that was stopped or killed continues when it is started again. The exit status is 1 if a file was left out.

    With - for OUT the rows that pass go to standard output in order, by one process, and the run cannot be resumed.

    With --ray the parts of the files are tasks of a Ray cluster, --processes at a time; all nodes must be able to read
    IN, OUT and the models.
    """
    from foreword.filtering.settings import Filtering

    models, source, out = _sorted_out(words, model or [])
    filtering = Filtering(
        models, tuple(rules.keep or ()), rules.keep_percentile, _buckets(rules.buckets), rules.by, rules.each_label,
        rules.table, rules.score_only, rules.with_scores, rows.field, rows.format, rows.errors,
        _size(rows.longest, "--longest"), _size(rows.piece, "--piece"), tuple(scores.column or ()), scores.top,
        [(name, labels.split(",")) for name, labels in _by_model(scores.labels, models)], scores.restrict,
        _cleaning(scores.clean, models), scores.like, scores.span, scores.sidecar, scores.id,
    )  # fmt: skip
    _check_models(filtering)
    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = _warn
        done = _filter(source, out, filtering, running, output)
    _close(done, report, output)


def _warn(
    message: Warning | str, category: type[Warning], filename: str, lineno: int, file: Any = None, line: Any = None
) -> None:
    """Report a warning in one line, as errors are."""
    sys.stderr.write(f"foreword: warning: {message}\n")


def _check_models(filtering: Filtering) -> None:
    """Refuse a command without a model if it asks for more than statistics of the text and fields of the rows."""
    from foreword.filtering.judge import model_columns

    needed = [] if filtering.models else model_columns(filtering)
    if needed:
        from foreword.filtering.statistics import NAMES

        meant = "".join(f" (did you mean {each}?)" for each in get_close_matches(needed[0], NAMES, 1))
        raise typer.BadParameter(
            f"expected MODEL, IN and OUT: {needed[0]}{meant} is given by a model; without one, rules compare fields, "
            f"column(FIELD), and statistics of the text: {', '.join(NAMES)}",
            param_hint="MODEL… IN OUT",
        )


def _filter(source: str, out: str, filtering: Filtering, running: RunOptions, output: OutputOptions) -> Report:
    from foreword.cli.progress import progress
    from foreword.filtering.output import choose_allocator
    from foreword.filtering.run import STREAM, filter_files, filter_stream
    from foreword.storage.sigbus import report_cut_files

    choose_allocator()
    report_cut_files()  # with one process the models are mapped here
    if STREAM in (source, out):
        running.check_stream(out, output.as_json)
        with progress(output.quiet) as meter:
            return filter_stream(source, sys.stdout.buffer, filtering, meter=meter)
    with progress(output.quiet or output.as_json) as meter:
        how: dict[str, Any] = {"processes": running.processes, "on_error": running.on_error}
        how |= {"restart": running.restart, "meter": meter, "scratch": running.scratch}
        if running.ray is None:
            return filter_files(source, out, filtering, **how)
        from foreword.cluster.filtering import filter_on_ray

        with ray_output_to_stderr():
            return filter_on_ray(source, out, filtering, address=running.ray or None, **how)


def _close(done: Report, report: str | None, output: OutputOptions) -> None:
    drawn = _draw(done, report) if report else []
    _print(done, output)
    if drawn and not (output.quiet or output.as_json):
        sys.stderr.write(f"drawn in {', '.join(drawn)}\n")
    if done.problems:
        raise typer.Exit(1)


def _sorted_out(words: list[str], options: list[str]) -> tuple[list[tuple[str, str]], str, str]:
    """Return the models with their names, the input and the output."""
    if len(words) < 2:
        raise typer.BadParameter(
            f"expected {'IN and OUT' if options else 'MODEL, IN and OUT'}", param_hint="MODEL… IN OUT"
        )
    models = [(name, _here(path)) for name, path in map(_named, (*options, *words[:-2]))]
    return models, words[-2], words[-1]


def _here(path: str) -> str:
    """Copy the files of a model that are behind addresses to this machine."""
    from foreword.cli.models import fetched
    from foreword.filtering.models import JOINT

    return JOINT.join(map(fetched, path.split(JOINT))) if "://" in path else path


def _named(word: str) -> tuple[str, str]:
    """Split ``NAME=PATH``, unless a file has that name."""
    name, sign, path = word.partition("=")
    if not sign or Path(word).exists():
        return "", word
    if not name.isidentifier():
        raise typer.BadParameter(f"{name!r} is not a model name: expected letters, digits and _", param_hint="--model")
    return name, path


def _by_model(options: list[str] | None, models: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Split ``NAME=VALUE`` where NAME is that of a model; the name is "" otherwise."""
    names = {name for name, _ in models if name}
    pairs = [(option.partition("=")[0], option) for option in options or ()]
    return [(name, text.partition("=")[2]) if name in names else ("", text) for name, text in pairs]


def _cleaning(options: list[str] | None, models: list[tuple[str, str]]) -> list[Any]:
    from foreword.filtering.settings import CleanStep

    found = _by_model(options, models)
    for _, step in found:
        if step not in get_args(CleanStep):
            raise typer.BadParameter(f"{step!r}: expected {', '.join(get_args(CleanStep))}", param_hint="--clean")
    return found


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


def _print(done: Report, output: OutputOptions) -> None:
    from foreword.cli.printing import write_text
    from foreword.filtering.summary import described, missing_fields

    for problem in done.problems:
        sys.stderr.write(f"foreword: left out: {problem}\n")
    for line in missing_fields(done.tally):
        sys.stderr.write(f"foreword: warning: {line}\n")
    if output.as_json:
        facts = done.tally.to_json() | {
            "shards": done.shards, "problems": done.problems, "seconds": done.seconds, "thresholds": done.thresholds,
        }  # fmt: skip
        write_text(json.dumps(facts, ensure_ascii=False) + "\n")
    elif not output.quiet:
        lines = described(done.tally, done.seconds, done.read_before)
        lines += [f"threshold for {label}: {limits}" for label, limits in _thresholds(done)]
        sys.stderr.write("".join(f"{line}\n" for line in lines))


def _thresholds(done: Report) -> list[tuple[str, str]]:
    return [
        ("all documents" if label == "*" else label, ", ".join(f"{limit:.6g}" for limit in limits))
        for label, limits in done.thresholds.items()
    ]


def _draw(done: Report, path: str) -> list[str]:
    """Draw a picture of each column and return their paths, with the column before the suffix if there are several."""
    from foreword.filtering.summary import histogram
    from foreword.picture.picture import write_standalone

    drawn, place, targets = [name for name, bins in done.tally.histograms.items() if bins], Path(path), list[str]()
    for name in drawn:
        target = place if len(drawn) == 1 else place.with_name(f"{place.stem}-{name}{place.suffix or '.svg'}")
        write_standalone(histogram(done.tally, name), target)
        targets.append(str(target))
    return targets
