"""``foreword tag train``: a treebank in, a tagger out."""

from __future__ import annotations

import time
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import typer

from foreword.cli.options import AsJson, Quiet, examples
from foreword.cli.tag.treebank import ColumnOption, Treebanks

if TYPE_CHECKING:
    from foreword.io.conllu import Tagged
    from foreword.protocols import Meter

Kind: TypeAlias = Literal["hmm", "features"]

KINDS: dict[str, str] = {
    "hmm": "foreword.tag.hmm:HMMTagger",
    "features": "foreword.tag.features:FeatureTagger",
}
"""What can be trained, and where its class lives: a kind joins by adding its line here and its name above."""

EXAMPLES = examples(
    "foreword tag train ud_english_ewt:train -o tagger",
    "foreword tag train train.conllu -o tagger --valid dev.conllu --column xpos",
    "foreword tag train train.conllu -o tagger --kind hmm --set order=2",
    """foreword tag train train.conllu -o tagger --set 'features=["word", "suffix", "history"]'""",
)


def train(
    files: Treebanks,
    out: Annotated[str, typer.Option("--out", "-o", metavar="MODEL", help="The folder to write.")],
    kind: Annotated[
        Kind, typer.Option(help="features is a linear model of hand-made features, hmm a hidden Markov model.")
    ] = "features",
    column: ColumnOption = "upos",
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="A setting of the model; may be given several times."),
    ] = None,
    valid: Annotated[
        str | None, typer.Option(metavar="FILE", help="A treebank to measure the tagger on when it is trained.")
    ] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Learn a tagger from a treebank and save it.

    The tagger remembers the column: foreword tag predict fills it, and foreword evaluate compares with it.
    """
    from foreword.cli.models import check_output
    from foreword.cli.printing import tell, write_json
    from foreword.cli.progress import progress
    from foreword.cli.settings import parse_settings
    from foreword.cli.tag.treebank import measure_treebanks, read_treebanks
    from foreword.io.folder import save

    module, name = KINDS[kind].split(":")
    tagger_class = getattr(import_module(module), name)
    tagger = tagger_class(**{"column": column, **parse_settings(settings or [], kind, tagger_class)})
    check_output(out, folder=True)
    began = time.perf_counter()
    with progress(quiet) as meter:
        tagged = read_treebanks(files, tagger.column, meter)
        fit(tagger, tagged, meter)
        save(tagger, out)
        seconds = time.perf_counter() - began
        measures = None if valid is None else measure_treebanks(tagger, [valid], meter)
    tokens = sum(map(len, tagged.sentences))
    if as_json:
        facts = {"kind": kind, "column": tagger.column, "tokens": tokens, "sentences": len(tagged.sentences)}
        measured = {"valid": measures.to_json()} if measures else {}
        write_json({**facts, "tags": len(tagger.tags_), **measured, "seconds": seconds, "output": out})
    elif not quiet:
        told = f", {measures.accuracies.all:.2%} right on {valid}" if measures else ""
        tell(
            f"{kind}: {tokens:,} tokens in {len(tagged.sentences):,} sentences, {len(tagger.tags_)} tags, "
            f"{seconds:.1f} s, saved in {out}{told}"
        )


def fit(tagger: Any, tagged: Tagged, meter: Meter | None) -> None:
    """Learn, and report every round of those that learn in rounds."""
    if not hasattr(tagger, "train"):
        tagger.fit(*tagged)
        return
    for step in tagger.train(*tagged):
        if meter:
            meter("learning", step.done, step.total)
