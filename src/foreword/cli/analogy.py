"""``foreword analogy``: what is to C as B is to A."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

import typer

from foreword.cli.options import AsJson, examples
from foreword.cli.vectors import VectorsPath

EXAMPLES = examples(
    "foreword analogy vectors man king woman",
    "foreword analogy vectors France Paris Italy -k 5 --method mul",
    "foreword analogy vectors.vec man king woman --include-inputs --json",
)

Method: TypeAlias = Literal["add", "mul"]


def analogy(
    vectors: VectorsPath,
    a: Annotated[str, typer.Argument(metavar="A", help="A word …")],
    b: Annotated[str, typer.Argument(metavar="B", help="… and what belongs to it;")],
    c: Annotated[str, typer.Argument(metavar="C", help="a word whose counterpart is asked for.")],
    k: Annotated[int, typer.Option("-k", min=1, help="How many answers.")] = 5,
    method: Annotated[
        Method, typer.Option("--method", help="Add differences of vectors, or multiply similarities.")
    ] = "add",
    include_inputs: Annotated[
        bool, typer.Option("--include-inputs", help="Let A, B and C be answers too: they often are the nearest.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Answer "A is to B as C is to what?": man is to king as woman is to queen.

    The answer is the word nearest to B − A + C (3CosAdd), or the one that is most like B and C and least like A
    (3CosMul). With --json the keys are a, b, c, method and answers.
    """
    from foreword.cli.nearest import neighbours_json, print_neighbours
    from foreword.cli.printing import write_json
    from foreword.cli.vectors import load_vectors
    from foreword.errors import InputError

    held = load_vectors(vectors)
    try:
        found = held.analogy(a, b, c, k, include_inputs=include_inputs, method=method)
    except KeyError as error:
        raise InputError(f"{vectors}: no vector for {error.args[0]!r}") from None
    if as_json:
        write_json({"a": a, "b": b, "c": c, "method": method, "answers": neighbours_json(found)})
    else:
        print_neighbours(found, f"{a} : {b} = {c} : ?", "cosine" if method == "add" else "score")
