"""``foreword cloud``: the words of a text, drawn by their weight."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

import typer

from foreword.cli.options import TEXT_HELP, OutputOptions, ReadingOptions, SetOption, examples

EXAMPLES = examples(
    "foreword cloud notes.txt -o cloud.svg",
    "foreword cloud ptb:train -o cloud.svg --words 300 --set upright=0.2 --set seed=7",
    "foreword cloud reviews.jsonl.gz -o cloud.svg --by count --keep-common",
    "foreword cloud book.txt -o - | rsvg-convert -o cloud.png",
)


@dataclass(frozen=True, slots=True)
class WordOptions:
    """Which words are drawn."""

    words: Annotated[int, typer.Option("--words", min=1, help="Draw this many words at most.")] = 150
    by: Annotated[
        Literal["keyness", "count"],
        typer.Option("--by", help="Weight of a word: how typical it is of this text, or how often it occurs."),
    ] = "keyness"
    min_count: Annotated[int, typer.Option("--min-count", min=1, help="Leave out words that occur less often.")] = 1
    keep_common: Annotated[
        bool, typer.Option("--keep-common", help="Draw function words too, such as the, of and she.")
    ] = False
    without: Annotated[str, typer.Option("--without", metavar="WORD,…", help="Leave out these words.")] = ""

    def choose(self, counts: dict[str, int], name: str, common: frozenset[str] = frozenset()) -> dict[str, float]:
        """Return the weights of the words that may be drawn. common: function words of the text's own language."""
        from foreword.errors import InputError
        from foreword.lessons.keywords import is_common, keyness

        weights = keyness(counts) if self.by == "keyness" else {word: float(count) for word, count in counts.items()}
        left_out = {word.strip().casefold() for word in self.without.split(",")}
        kept = {
            word: weight
            for word, weight in weights.items()
            if counts[word] >= self.min_count
            and word.casefold() not in left_out
            and (self.keep_common or not is_common(word, common))
        }
        if not kept:
            raise InputError(
                f"{name}: of {len(counts)} different words none is left to draw: "
                "try --keep-common or a lower --min-count"
            )
        return kept


@dataclass(frozen=True, slots=True)
class PictureSettings:
    """What ``--set`` can change of the picture."""

    width: int = 960
    height: int = 600
    upright: float = 0.0
    seed: int = 0


def cloud(
    out: Annotated[str, typer.Option("--out", "-o", metavar="FILE", help="SVG file to write; - prints it.")],
    texts: Annotated[list[str] | None, typer.Argument(metavar="TEXT", help=TEXT_HELP, show_default="embedded")] = None,
    *,
    words: WordOptions,
    settings: SetOption = None,
    reading: ReadingOptions,
    output: OutputOptions,
) -> None:
    """Draw the words of a text, each at the size of its weight, as an SVG picture for light and dark pages.

    The weight of a word is how often it occurs and how much more so than in the text that comes with every Python;
    function words, which are spread evenly over that text, are left out. A text in another language teaches its own
    function words. The picture has the settings width and height
    in pixels, upright (the share of vertical words) and seed.
    """
    if output.as_json and out == "-":
        raise typer.BadParameter("standard output is taken by -o", param_hint="'--json'")

    from foreword.cli.models import check_output
    from foreword.cli.progress import progress
    from foreword.cli.settings import parse_settings
    from foreword.cli.texts import blocks_in
    from foreword.lessons.cloud import word_cloud
    from foreword.lessons.keywords import Beginning, count_words, own_common_words

    check_output(out, folder=False)
    drawing = parse_settings(settings, "cloud", PictureSettings)
    with progress(output.quiet) as meter:
        read = Beginning(blocks_in(texts or ["embedded"], reading.reading(), meter))
        counts = count_words(read)
    kept = words.choose(counts, ", ".join(texts or ["embedded"]), own_common_words(read.texts()))
    picture = word_cloud(kept, counts=counts, max_words=words.words, **drawing)
    write_picture(picture, out, kept, counts, words.words, output)


def write_picture(
    picture: Any, out: str, kept: dict[str, float], counts: dict[str, int], words: int, output: OutputOptions
) -> None:
    """Write the picture to a file or to standard output, and report its heaviest words."""
    from foreword.cli.printing import print_message, write_json, write_text
    from foreword.lessons.cloud import heaviest
    from foreword.storage.atomic import atomic_file

    if out == "-":
        write_text(f"{picture.markup}\n")
        return
    with atomic_file(out) as new:
        new.write_text(f"{picture.markup}\n", encoding="utf-8", newline="\n")
    drawn = heaviest(kept, words)
    if output.as_json:
        listed = [{"word": word, "count": counts[word], "weight": weight} for word, weight in drawn]
        write_json({"output": out, "different": len(counts), "words": listed})
    elif not output.quiet:
        print_message(f"{len(drawn):,} of {len(counts):,} different words drawn, saved in {out}")
