"""``foreword tag``: learn a tagger from a treebank, measure it, and see what its features are worth."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import typer

from foreword import kinds
from foreword.cli.options import (
    ErrorsOption,
    ModelFolder,
    OnErrors,
    Out,
    OutputOptions,
    Overwrite,
    SetOption,
    add_command,
    command_group,
    examples,
    kind_by_option,
    kind_option,
)
from foreword.cli.tag_predict import PREDICT_EXAMPLES, is_number, predict
from foreword.errors import InputError

if TYPE_CHECKING:
    from foreword.evaluate.tagging import Ablated, SpanMeasures, TagMeasures
    from foreword.pipeline.fitting import Output
    from foreword.protocols import Meter, TreebankTagger
    from foreword.tag.conllu import Tagged

TRAIN_EXAMPLES = examples(
    "foreword tag train ud_english_ewt:train -o tagger",
    "foreword tag train train.conllu -o tagger --valid dev.conllu --column xpos",
    "foreword tag train train.conllu -o tagger --kind hmm --set order=2",
    "foreword tag train conll2003:train -o names --scheme bio --valid conll2003:valid",
    "foreword tag train conll2003:train -o names --kind bilstm --scheme bio --valid conll2003:valid",
    "foreword tag train chunks.txt -o chunks --kind bilstm --scheme bio --column 2 --set vectors=vectors.vec",
    """foreword tag train train.conllu -o tagger --set 'features=["word", "suffix", "history"]'""",
)
EVALUATE_EXAMPLES = examples(
    "foreword tag evaluate tagger ud_english_ewt:test",
    "foreword tag evaluate names conll2003:test --json | jq .spans.micro.f1",
)
ABLATE_EXAMPLES = examples(
    "foreword tag ablate ud_english_ewt:train ud_english_ewt:valid",
    "foreword tag ablate train.conllu dev.conllu --column xpos --json",
)
TREEBANK_HELP = (
    "CoNLL-U or CoNLL columns, compressed or not; [bold]-[/] for standard input, or a data set such as "
    "[bold]ud_english_ewt:train[/]."
)
Treebanks: TypeAlias = Annotated[list[str], typer.Argument(metavar="FILE", help=TREEBANK_HELP, show_default=False)]
ColumnOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--column",
        metavar="COLUMN",
        help="Column to learn: upos or xpos of CoNLL-U, or the number of a CoNLL column (the word's is 0).",
        show_default="upos; the last one for spans",
    ),
]
ValidTreebank: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--valid", metavar="FILE", help="Treebank to evaluate the trained tagger on; bilstm keeps the best epoch."
    ),
]
Scheme: TypeAlias = Literal["bio", "iob1", "bioes"]
SchemeOption: TypeAlias = Annotated[
    Scheme | None,
    typer.Option("--scheme", help="Scheme of the predicted span tags, such as names; for features and bilstm."),
]
KindOption: TypeAlias = Annotated[
    str, kind_option("tagger", "features (a linear model of hand-made features), hmm, or bilstm (a network).")
]

app = command_group("tag", "Train a tagger; tag text.", TRAIN_EXAMPLES)


def train(
    files: Treebanks,
    out: Out,
    *,
    kind: KindOption = "features",
    column: ColumnOption = None,
    scheme: SchemeOption = None,
    settings: SetOption = None,
    valid: ValidTreebank = None,
    errors: ErrorsOption = "strict",
    overwrite: Overwrite = False,
    resume: Annotated[bool, typer.Option("--resume", help="Resume a training that was stopped, for bilstm.")] = False,
    output: OutputOptions,
) -> None:
    """Train a tagger on a treebank, and save it.

    The tagger remembers the column: foreword tag predict fills it, and foreword evaluate compares with it. Tags that do
    not follow --scheme are read as conlleval reads them, with a warning. Ctrl-C saves what bilstm has learnt in
    MODEL.checkpoint, and the same command with --resume continues.
    """
    from foreword.cli.models import check_output, nothing_to_resume
    from foreword.cli.printing import shown_warnings
    from foreword.cli.progress import job

    chosen = kinds.trained_as("tagger")[kind]
    if resume and "resume" not in chosen.training:
        raise typer.BadParameter(f"{kind} is not a network: nothing to resume", param_hint="'--resume'")
    tagger = new_tagger(kind, files, column, scheme, settings)
    check_output(out, folder=True, kind=kinds.of(tagger).name, overwrite=overwrite or resume)

    from foreword.pipeline.fitting import Output  # imported now that the arguments are checked: it takes a while

    target = Output(out, resume)
    if nothing_to_resume(target, chosen):
        return
    with job(output, out, kind=kind, column=tagger.column) as work:
        with shown_warnings(output.quiet):
            tagged = read_treebanks(files, tagger, errors, work.meter)
            held_out = None if valid is None else read_treebanks([valid], tagger, errors, work.meter)
        measures = fit_and_save(tagger, tagged, held_out, target, work.meter)
        sizes = {"tokens": sum(map(len, tagged.sentences)), "sentences": len(tagged.sentences)}
        work.facts |= {**sizes, "tags": len(tagger.tags_)}
        work.summary = f"{kind}: {work.count('tokens')} in {work.count('sentences')}, {work.count('tags')}"
        if measures is not None:
            work.facts["valid"] = measures.to_json()
            work.measured = _measured(measures, str(valid))


def _measured(measures: TagMeasures, name: str) -> str:
    spans = f", F1 of spans {measures.spans.micro.f1:.2%}" if measures.spans else ""
    return f", accuracy {measures.accuracies.all:.2%} on {name}{spans}"


def new_tagger(
    kind: str, files: list[str], column: str | None, scheme: Scheme | None, settings: list[str] | None
) -> Any:
    """Construct an untrained tagger; refuse options that its kind does not have."""
    from foreword.cli.settings import parse_settings, settings_of

    chosen = kinds.trained_as("tagger")[kind]
    given = parse_settings(settings, kind, chosen.home)
    if scheme is not None:
        if "scheme" not in settings_of(kinds.resolve(chosen.home)):
            raise typer.BadParameter(f"{kind} has no spans: expected features or bilstm", param_hint="'--scheme'")
        given["scheme"] = scheme
    column = column or usual_column(files, given.get("scheme"))
    if column not in ("upos", "xpos") and not is_number(column):
        raise typer.BadParameter(f"{column!r} is not upos, xpos or a number", param_hint="'--column'")
    return kinds.build(chosen, {"column": column, **chosen.names[kind], **given})


def fit_and_save(
    tagger: Any, tagged: Tagged, valid: Tagged | None, target: Output, meter: Meter | None
) -> TagMeasures | None:
    """Train a tagger, save it, and evaluate it on ``valid``."""
    from foreword.evaluate.tagging import measure_tagger
    from foreword.pipeline.fitting import run_network
    from foreword.protocols import Iterative
    from foreword.storage.folder import save

    learning: Any = tagger
    if kinds.of(tagger).network:
        run_network(tagger, lambda run: learning.train(*tagged, valid=valid, checkpoint=run), target, meter)
    elif isinstance(tagger, Iterative):
        for step in learning.train(*tagged):
            if meter:
                meter("learning", step.done, step.total)
    else:
        tagger.fit(*tagged)
    save(tagger, target.folder)
    target.discard_checkpoint()
    return None if valid is None else measure_tagger(tagger, *valid)


def evaluate(model: ModelFolder, files: Treebanks, *, errors: ErrorsOption = "strict", output: OutputOptions) -> None:
    """Tag a tagged text and compare: accuracy, and for tags that are spans their precision, recall and F1.

    With --json the keys are those of foreword evaluate, and spans with micro, macro, weighted and kinds.
    """
    from foreword.cli.models import load_able
    from foreword.cli.printing import shown_warnings, write_json
    from foreword.cli.progress import progress

    with progress(output.quiet) as meter, shown_warnings(output.quiet):
        measures = measure_treebanks(load_able(model, "tag"), files, errors, meter)
    if output.as_json:
        write_json(measures.to_json())
    else:
        print_tag_measures(measures)


def ablate(
    train: Annotated[str, typer.Argument(metavar="TRAIN", help=TREEBANK_HELP, show_default=False)],
    test: Annotated[str, typer.Argument(metavar="TEST", help="Treebank to evaluate on.", show_default=False)],
    *,
    column: Annotated[
        Literal["upos", "xpos"], typer.Option(help="Column to learn: universal tags, or the language's own.")
    ] = "upos",
    settings: SetOption = None,
    errors: ErrorsOption = "strict",
    output: OutputOptions,
) -> None:
    """Train the tagger of hand-made features without each group of features, and with each group alone, and compare.

    With --json every training prints one line as soon as it is done.
    """
    from foreword.cli.printing import flush, write_text
    from foreword.cli.progress import progress
    from foreword.cli.settings import parse_settings
    from foreword.evaluate.tagging import ablation
    from foreword.tag.attributes import WORD_GROUPS
    from foreword.tag.features import FeatureTagger

    given = {"column": column, **parse_settings(settings, "features", FeatureTagger)}
    groups = given.pop("features", WORD_GROUPS)
    found: list[Ablated] = []
    with progress(output.quiet) as meter:
        reader = FeatureTagger(column=given["column"])
        learnt, measured = (read_treebanks([name], reader, errors, meter) for name in (train, test))
        for row in ablation(learnt, measured, groups, **given):
            found.append(row)
            if output.as_json:
                write_text(json.dumps(ablation_facts(row)) + "\n")
                flush()
            if meter:
                meter("training", len(found), 2 * len(groups) + 2)
    if not output.as_json:
        print_ablation(found)


add_command(app, train, TRAIN_EXAMPLES, kind_by_option("tagger", "features"))
add_command(app, predict, PREDICT_EXAMPLES)
add_command(app, evaluate, EVALUATE_EXAMPLES)
add_command(app, ablate, ABLATE_EXAMPLES)

# Treebanks


def usual_column(names: Sequence[str], scheme: str | None) -> str:
    """Return the column that is learnt by default: the last one where the tags are spans, else universal tags."""
    from foreword.cli.texts import is_dataset
    from foreword.text.datasets import lookup

    spans = scheme or any(lookup(name)[1].format == "conll" for name in names if is_dataset(name))
    return "-1" if spans else "upos"


def read_treebanks(
    names: Sequence[str], tagger: TreebankTagger, errors: OnErrors = "strict", meter: Meter | None = None
) -> Tagged:
    """Read the sentences of all files, and the column of each that the tagger learns, in its scheme."""
    from foreword.tag.conll import read_conll
    from foreword.tag.conllu import EMPTY, Tagged, read_conllu

    tagged, column, scheme = Tagged([], []), tagger.column, getattr(tagger, "scheme", None)
    for name in names:
        if is_number(column):
            path = treebank_path(name, "conll", meter)
            found = read_conll(path, int(column), scheme=scheme, errors=errors)
        else:
            path = treebank_path(name, "conllu", meter)
            found = read_conllu(path, column, errors=errors)  # type: ignore[arg-type]
        if all(tag == EMPTY for tags in found.tags for tag in tags):
            raise InputError(f"{name}: its column {column} is empty")
        tagged.sentences.extend(found.sentences)
        tagged.tags.extend(found.tags)
    return tagged


def treebank_path(name: str, format: str, meter: Meter | None = None) -> str:
    """Return the path of a file, or of a data set in this format."""
    from foreword.cli.texts import is_dataset, path_of
    from foreword.text.datasets import lookup

    if is_dataset(name) and (found := lookup(name)[1].format) != format:
        expected = "CoNLL-U" if format == "conllu" else "CoNLL, in which columns have numbers"
        raise InputError(f"{name}: its format is {found}, not {expected}")
    return path_of(name, meter)


def measure_treebanks(
    tagger: TreebankTagger, names: Sequence[str], errors: OnErrors = "strict", meter: Meter | None = None
) -> TagMeasures:
    """Measure a tagger on treebanks, in the column it has learnt."""
    from foreword.evaluate.tagging import measure_tagger

    return measure_tagger(tagger, *read_treebanks(names, tagger, errors, meter))


def print_tag_measures(measures: TagMeasures) -> None:
    """Print the accuracy of a tagger, for known and unknown words, and the F1 of its spans."""
    from foreword.cli.printing import plain_table, print_facts, print_table

    low, high = measures.confusion.interval
    found = measures.accuracies
    print_facts(
        {
            "accuracy": f"{found.all:.2%} (95 % between {low:.2%} and {high:.2%})",
            "known words": _percent(found.known),
            "unknown words": f"{_percent(found.unknown)} ({found.unknown_share:.2%} of all)",
            "tokens": f"{measures.confusion.texts:,}, {measures.confusion.right:,} right",
            "sentences": f"{measures.sentences:,}, {measures.sentences_right:,} without a mistake",
        }
    )
    numbers = ("precision", "recall", "F1", "tokens", "predicted")
    table = plain_table("tag", *numbers, numbers=numbers)
    for each in measures.confusion.classes:
        shares = (f"{share:.4f}" for share in (each.precision, each.recall, each.f1))
        table.add_row(each.label, *shares, f"{each.texts:,}", f"{each.predicted:,}")
    print_table(table)
    if measures.spans is not None:
        print_spans(measures.spans)


def print_spans(measures: SpanMeasures) -> None:
    """Print precision, recall and F1 of each kind of span."""
    from foreword.cli.printing import plain_table, print_table

    numbers = ("precision", "recall", "F1", "spans", "predicted")
    table = plain_table("kind", *numbers, numbers=numbers)
    for each in (*measures.kinds, measures.micro):
        shares = (f"{share:.4f}" for share in (each.precision, each.recall, each.f1))
        table.add_row(each.kind, *shares, f"{each.gold:,}", f"{each.predicted:,}")
    print_table(table)


def _percent(share: float) -> str:
    return f"{share:.2%}" if share == share else "–"


def ablation_facts(row: Ablated) -> dict[str, object]:
    """Return one row of an ablation as JSON."""
    shares = {"accuracy": row.accuracies.all, "known": row.accuracies.known, "unknown": row.accuracies.unknown}
    told = {name: share if share == share else None for name, share in shares.items()}
    return {"name": row.name, "groups": list(row.groups), "features": row.features, **told}


def print_ablation(found: list[Ablated]) -> None:
    """Print one row per group of features that was left out."""
    from foreword.cli.printing import plain_table, print_table

    numbers = ("accuracy", "known words", "unknown words", "change", "features")
    table = plain_table("features of", *numbers, numbers=numbers)
    for row in found:
        shares = (f"{share:.2%}" if share == share else "–" for share in row.accuracies[:3])
        change = f"{100 * (row.accuracies.all - found[0].accuracies.all):+.2f}" if row is not found[0] else ""
        table.add_row(row.name, *shares, change, f"{row.features:,}")
    print_table(table)
