"""``foreword translate evaluate``: BLEU and chrF of a translator, or of translations that are there already."""

from __future__ import annotations

from typing import Annotated

import typer

from foreword.cli.options import AsJson, ModelFolder, Quiet, examples
from foreword.cli.translate.sides import SIDE_HELP, Beam, Coverage, LengthPenalty, Normalised

EXAMPLES = examples(
    "foreword translate evaluate en-de multi30k:test2016.en multi30k:test2016.de",
    "foreword translate evaluate en-de test.en test.de --beam 1 --json | jq .bleu",
)


def evaluate(
    model: ModelFolder,
    source: Annotated[str, typer.Argument(metavar="SOURCE", help=SIDE_HELP, show_default=False)],
    target: Annotated[str, typer.Argument(metavar="TARGET", help="Their translations.", show_default=False)],
    beam: Beam = 5,
    length_penalty: LengthPenalty = 1.0,
    normalisation: Normalised = "power",
    coverage: Coverage = 0.0,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Translate what is translated already and compare: BLEU and chrF as sacreBLEU has them, cased, 13a.

    With --json there are also perplexity and the ratio of lengths.
    """
    from math import exp

    from foreword.cli.printing import print_facts, write_json
    from foreword.cli.progress import progress
    from foreword.cli.translate.sides import load_translator, read_sides

    with progress(quiet) as meter:
        texts = read_sides(source, target, meter)
        translator = load_translator(model)
        measures = translator.measure(
            *texts,
            width=beam,
            length_penalty=length_penalty,
            normalisation=normalisation,
            coverage=coverage,
            meter=meter,
        )
        perplexity = exp(min(700.0, -translator.model.score(translator.pairs(*texts))))
    facts = {**measures.to_json(), "perplexity": perplexity}
    if as_json:
        write_json(facts)
        return
    print_facts(
        {
            "BLEU": f"{measures.bleu.score:.2f} ({measures.bleu.signature})",
            "chrF": f"{measures.chrf:.2f}",
            "perplexity": f"{perplexity:.2f} a token",
            "length": f"{facts['length_ratio']:.3f} of the references'",
            "sentences": f"{measures.sentences:,}",
        }
    )
