"""``foreword tag train``: a treebank in, a tagger out."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import typer

from foreword import kinds
from foreword.cli.options import AsJson, Quiet, examples, kind_option
from foreword.cli.tag.treebank import Treebanks

if TYPE_CHECKING:
    from foreword.protocols import Meter
    from foreword.tag.conllu import Tagged

Scheme: TypeAlias = Literal["bio", "iob1", "bioes"]

KINDS = kinds.trained_as("tagger")

EXAMPLES = examples(
    "foreword tag train ud_english_ewt:train -o tagger",
    "foreword tag train train.conllu -o tagger --valid dev.conllu --column xpos",
    "foreword tag train train.conllu -o tagger --kind hmm --set order=2",
    "foreword tag train conll2003:train -o names --kind bilstm --scheme iob1 --valid conll2003:valid",
    "foreword tag train chunks.txt -o chunks --kind bilstm --scheme bio --column 2 --set vectors=vectors.vec",
    """foreword tag train train.conllu -o tagger --set 'features=["word", "suffix", "history"]'""",
)


def train(
    files: Treebanks,
    out: Annotated[str, typer.Option("--out", "-o", metavar="MODEL", help="The folder to write.")],
    kind: Annotated[
        str, kind_option("tagger", "features (a linear model of hand-made features), hmm, or bilstm (a network).")
    ] = "features",
    column: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="What to learn: upos or xpos of CoNLL-U, or a column of CoNLL by its number, the word's being 0.",
            show_default="-1, the last, for spans; else upos",
        ),
    ] = None,
    scheme: Annotated[
        Scheme | None, typer.Option(help="How spans are written, where the tags are that; for bilstm.")
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="A setting of the model; may be given several times."),
    ] = None,
    valid: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="A treebank to measure the tagger on when it is trained; bilstm keeps the best epoch."
        ),
    ] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Learn a tagger from a treebank and save it.

    The tagger remembers the column: foreword tag predict fills it, and foreword evaluate compares with it.
    """
    from foreword.cli.models import check_output
    from foreword.cli.printing import print_message, write_json
    from foreword.cli.progress import progress
    from foreword.cli.settings import parse_settings
    from foreword.cli.tag.treebank import is_number, read_treebanks, usual_column
    from foreword.evaluate.tagging import measure_tagger
    from foreword.storage.folder import save

    tagger_class = kinds.resolve(KINDS[kind].home)
    if scheme and kind != "bilstm":
        raise typer.BadParameter(f"{kind} knows of no spans: expected --kind bilstm", param_hint="'--scheme'")
    column = column or usual_column(files, scheme)
    if column not in ("upos", "xpos") and not is_number(column):
        raise typer.BadParameter(f"{column!r} is not upos, xpos or a number", param_hint="'--column'")
    given = {"column": column} | ({"scheme": scheme} if scheme else {})
    tagger = kinds.build(KINDS[kind], {**given, **parse_settings(settings, kind, tagger_class)})
    check_output(out, folder=True)
    began = time.perf_counter()
    with progress(quiet) as meter:
        tagged = read_treebanks(files, tagger.column, meter)
        held_out = None if valid is None else read_treebanks([valid], tagger.column, meter)
        fit(tagger, tagged, held_out if "valid" in KINDS[kind].training else None, meter)
        save(tagger, out)
        seconds = time.perf_counter() - began
        measures = None if held_out is None else measure_tagger(tagger, *held_out)
    tokens = sum(map(len, tagged.sentences))
    if as_json:
        facts = {"kind": kind, "column": tagger.column, "tokens": tokens, "sentences": len(tagged.sentences)}
        measured = {"valid": measures.to_json()} if measures else {}
        write_json({**facts, "tags": len(tagger.tags_), **measured, "seconds": seconds, "output": out})
    elif not quiet:
        told = f", {measures.accuracies.all:.2%} right on {valid}" if measures else ""
        if measures and measures.spans:
            told += f", F1 of spans {measures.spans.micro.f1:.2%}"
        print_message(
            f"{kind}: {tokens:,} tokens in {len(tagged.sentences):,} sentences, {len(tagger.tags_)} tags, "
            f"{seconds:.1f} s, saved in {out}{told}"
        )


def fit(tagger: Any, tagged: Tagged, valid: Tagged | None, meter: Meter | None) -> None:
    """Learn, and report every round of those that learn in rounds."""
    if not hasattr(tagger, "train"):
        tagger.fit(*tagged)
        return
    for step in tagger.train(*tagged, **({"valid": valid} if valid else {})):
        if meter:
            meter("learning", step.done, step.total)
