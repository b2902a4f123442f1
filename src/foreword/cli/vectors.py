"""``foreword nearest`` and ``foreword analogy``: questions to word vectors."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import typer

from foreword import kinds
from foreword.cli.options import OutputOptions, examples
from foreword.errors import InputError

if TYPE_CHECKING:
    from foreword.vectors.wordvectors import Neighbours, WordVectors

NEAREST_EXAMPLES = examples(
    "foreword nearest vectors cat",
    "foreword nearest glove.6B.100d.txt king queen -k 5",
    "foreword nearest GoogleNews-vectors-negative300.bin.gz Paris --json",
    "cut -f1 words.tsv | foreword nearest vectors -",
)
ANALOGY_EXAMPLES = examples(
    "foreword analogy vectors man king woman",
    "foreword analogy vectors France Paris Italy -k 5 --method mul",
    "foreword analogy vectors.vec man king woman --include-inputs --json",
)
VectorsPath: TypeAlias = Annotated[
    str,
    typer.Argument(
        metavar="VECTORS",
        help="A saved model, or a file: word2vec text or binary, GloVe, .vec, compressed or not.",
    ),
]


def nearest(
    vectors: VectorsPath,
    words: Annotated[list[str], typer.Argument(metavar="WORD", help="One or more words; - reads one per line.")],
    *,
    k: Annotated[int, typer.Option("-k", min=1, help="Number of neighbours.")] = 10,
    output: OutputOptions,
) -> None:
    """Show the words nearest to a word, by the cosine of their vectors.

    With --json each word gives one object, with its nearest words. A word without a vector is an error, unless the
    vectors can build one from its parts, as fastText can.
    """
    from foreword.cli.printing import flush, write_json

    loaded = load_vectors(vectors)
    for word in words_in(words):
        try:
            found = loaded.nearest(word, k)
        except KeyError:
            raise InputError(f"{vectors}: no vector for {word!r}") from None
        if output.as_json:
            write_json({"word": word, "nearest": neighbours_json(found)})
        else:
            print_neighbours(found, word)
        flush()


def analogy(
    vectors: VectorsPath,
    a: Annotated[str, typer.Argument(metavar="A", help="A word,")],
    b: Annotated[str, typer.Argument(metavar="B", help="a word related to it,")],
    c: Annotated[str, typer.Argument(metavar="C", help="and the word whose counterpart is wanted.")],
    *,
    k: Annotated[int, typer.Option("-k", min=1, help="Number of answers.")] = 5,
    method: Annotated[
        Literal["add", "mul"], typer.Option("--method", help="Add differences of vectors, or multiply similarities.")
    ] = "add",
    include_inputs: Annotated[
        bool, typer.Option("--include-inputs", help="Allow A, B and C as answers: often they are the nearest.")
    ] = False,
    output: OutputOptions,
) -> None:
    """Answer "A is to B as C is to what?": man is to king as woman is to queen.

    The answer is the word nearest to B − A + C (3CosAdd), or the one that is most like B and C and least like A
    (3CosMul). With --json the keys are a, b, c, method and answers.
    """
    from foreword.cli.printing import write_json

    held = load_vectors(vectors)
    try:
        found = held.analogy(a, b, c, k, include_inputs=include_inputs, method=method)
    except KeyError as error:
        raise InputError(f"{vectors}: no vector for {error.args[0]!r}") from None
    if output.as_json:
        write_json({"a": a, "b": b, "c": c, "method": method, "answers": neighbours_json(found)})
    else:
        print_neighbours(found, f"{a} : {b} = {c} : ?", "cosine" if method == "add" else "score")


def words_in(words: list[str]) -> Iterator[str]:
    """Yield the words that were given; ``-`` stands for the lines of standard input."""
    for word in words:
        if word != "-":
            yield word
            continue
        for line in sys.stdin:
            if line.strip():
                yield line.strip()


def print_neighbours(found: Neighbours, title: str, name: str = "cosine") -> None:
    """Print words and their cosines as a table."""
    from rich.text import Text

    from foreword.cli.printing import plain_table, print_table, write_text

    write_text(f"{title}\n")
    table = plain_table("word", name, numbers=(name,))
    for word, score in found:
        table.add_row(Text(word.encode("utf-8", "surrogateescape").decode("utf-8", "replace")), f"{score:.4f}")
    print_table(table)


def neighbours_json(found: Neighbours) -> list[dict[str, str | float]]:
    """Return words and their cosines as JSON."""
    return [{"word": word, "cosine": score} for word, score in found]


def load_vectors(path: str) -> WordVectors:
    """Load vectors from a folder, which is mapped, or from a file, which is read with a progress bar."""
    from foreword.cli.models import load_any
    from foreword.cli.progress import progress
    from foreword.vectors.word2vec_file import looks_like_vectors, read_vectors

    if Path(path).is_file() and looks_like_vectors(path):
        with progress() as meter:
            return read_vectors(path, meter=meter)
    return vectors_in(load_any(path), path)


def vectors_in(found: Any, path: str) -> WordVectors:
    """Return the vectors themselves, or those of a trained model."""
    from foreword.vectors.wordvectors import WordVectors

    kind = kinds.of(found)
    if "nearest" not in kind.abilities:
        raise InputError(
            f"{path}: its kind is {kind.name}, which has no word vectors: foreword train word2vec makes some"
        )
    held: WordVectors = found if isinstance(found, WordVectors) else found.vectors
    return held
