"""``foreword cloud``: what a text is about, at a glance."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

import typer

from foreword.cli.options import (
    TEXT_HELP,
    AsJson,
    DocumentOption,
    ErrorsOption,
    FieldOption,
    FormatOption,
    Quiet,
    examples,
    reading_of,
)

EXAMPLES = examples(
    "foreword cloud notes.txt -o cloud.svg",
    "foreword cloud ptb:train -o cloud.svg --words 300 --upright 0.2 --seed 7",
    "foreword cloud reviews.jsonl.gz -o cloud.svg --by count --keep-common",
    "foreword cloud book.txt -o - | rsvg-convert -o cloud.png",
)

By: TypeAlias = Literal["keyness", "count"]


def cloud(
    out: Annotated[str, typer.Option("--out", "-o", metavar="FILE", help="The SVG file to write; - prints it.")],
    texts: Annotated[list[str] | None, typer.Argument(metavar="TEXT", help=TEXT_HELP, show_default="embedded")] = None,
    words: Annotated[int, typer.Option("--words", min=1, help="Draw so many words at most, the heaviest.")] = 150,
    by: Annotated[
        By, typer.Option("--by", help="A word's weight: how much it is this text's own, or how often it occurs.")
    ] = "keyness",
    min_count: Annotated[int, typer.Option("--min-count", min=1, help="Leave out words that occur less often.")] = 1,
    keep_common: Annotated[
        bool, typer.Option("--keep-common", help="Draw words of grammar too, such as the, of and she.")
    ] = False,
    without: Annotated[str, typer.Option(metavar="WORD,…", help="Leave these out, whatever their case.")] = "",
    width: Annotated[int, typer.Option(min=100, max=20_000, help="Pixels.")] = 960,
    height: Annotated[int, typer.Option(min=100, max=20_000, help="Pixels.")] = 600,
    upright: Annotated[float, typer.Option(min=0, max=1, help="The share of words that stand on end.")] = 0.0,
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same picture, another another.")] = 0,
    document: DocumentOption = "line",
    field: FieldOption = "text",
    format: FormatOption = None,
    errors: ErrorsOption = "strict",
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Draw a text's words, each at the size of its weight, as one SVG picture for light and dark pages.

    Words weigh by how often they occur and how much more so than in the text that comes with every Python; words of
    grammar, which are spread evenly over that text, are left out.
    """
    if as_json and out == "-":
        raise typer.BadParameter("standard output is taken by -o", param_hint="'--json'")

    from foreword.cli.models import check_output
    from foreword.cli.printing import print_message, write_json, write_text
    from foreword.cli.progress import progress
    from foreword.cli.texts import blocks_in
    from foreword.errors import InputError
    from foreword.lessons.cloud import heaviest, word_cloud
    from foreword.lessons.keywords import count_words, is_common, keyness
    from foreword.storage.atomic import atomic_file

    check_output(out, folder=False)
    named, reading = texts or ["embedded"], reading_of(document, field, format, errors)
    with progress(quiet) as meter:
        counts = count_words(blocks_in(named, reading, meter))
    weights = keyness(counts) if by == "keyness" else {word: float(count) for word, count in counts.items()}
    left_out = {word.strip().casefold() for word in without.split(",")}
    kept = {
        word: weight
        for word, weight in weights.items()
        if counts[word] >= min_count and word.casefold() not in left_out and (keep_common or not is_common(word))
    }
    if not kept:
        raise InputError(
            f"{', '.join(named)}: of {len(counts)} different words none is left to draw: "
            "try --keep-common or a lower --min-count"
        )
    picture = word_cloud(kept, counts=counts, width=width, height=height, seed=seed, max_words=words, upright=upright)
    if out == "-":
        write_text(f"{picture.markup}\n")
        return
    with atomic_file(out) as new:
        new.write_text(f"{picture.markup}\n", encoding="utf-8", newline="\n")
    drawn = heaviest(kept, words)
    if as_json:
        listed = [{"word": word, "count": counts[word], "weight": weight} for word, weight in drawn]
        write_json({"output": out, "different": len(counts), "words": listed})
    elif not quiet:
        print_message(f"{len(drawn):,} of {len(counts):,} different words drawn, saved in {out}")
