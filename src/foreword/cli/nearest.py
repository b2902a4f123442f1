"""``foreword nearest``: the words whose vectors lie closest."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from foreword.cli.options import AsJson, examples
from foreword.cli.vectors import VectorsPath

if TYPE_CHECKING:
    from foreword.vectors.wordvectors import Neighbours

EXAMPLES = examples(
    "foreword nearest vectors cat",
    "foreword nearest glove.6B.100d.txt king queen -k 5",
    "foreword nearest GoogleNews-vectors-negative300.bin.gz Paris --json",
    "cut -f1 words.tsv | foreword nearest vectors -",
)


def nearest(
    vectors: VectorsPath,
    words: Annotated[list[str], typer.Argument(metavar="WORD", help="One or more words; - reads one a line.")],
    k: Annotated[int, typer.Option("-k", min=1, help="How many neighbours.")] = 10,
    as_json: AsJson = False,
) -> None:
    """Show the words nearest to a word, by the cosine of their vectors.

    With --json there is an object a line for each word, with its nearest. A word without a vector is an error, unless
    the vectors can make one of its parts, as fastText's can.
    """
    from foreword.cli.printing import flush, write_json
    from foreword.cli.vectors import load_vectors
    from foreword.errors import InputError

    held = load_vectors(vectors)
    for word in _asked(words):
        try:
            found = held.nearest(word, k)
        except KeyError:
            raise InputError(f"{vectors}: no vector for {word!r}") from None
        if as_json:
            write_json({"word": word, "nearest": neighbours_json(found)})
        else:
            print_neighbours(found, word)
        flush()


def _asked(words: list[str]) -> Iterator[str]:
    for word in words:
        if word != "-":
            yield word
            continue
        for line in sys.stdin:
            if line.strip():
                yield line.strip()


def print_neighbours(found: Neighbours, title: str, name: str = "cosine") -> None:
    from rich.text import Text

    from foreword.cli.printing import plain_table, print_table, write_text

    write_text(f"{title}\n")
    table = plain_table("word", name, numbers=(name,))
    for word, score in found:
        table.add_row(Text(word.encode("utf-8", "surrogateescape").decode("utf-8", "replace")), f"{score:.4f}")
    print_table(table)


def neighbours_json(found: Neighbours) -> list[dict[str, str | float]]:
    return [{"word": word, "cosine": score} for word, score in found]
