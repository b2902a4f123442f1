"""``foreword translate predict``: a line in, its translation out."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from foreword.cli.options import AsJson, ErrorsOption, ModelFolder, examples
from foreword.cli.translate.sides import Beam, Coverage, LengthPenalty, Normalised

if TYPE_CHECKING:
    from foreword.picture.picture import Picture
    from foreword.pipeline.translator import TextTranslator

EXAMPLES = examples(
    "echo 'A dog runs on the beach.' | foreword translate predict en-de",
    "foreword translate predict en-de test.en --beam 5 --normalisation gnmt --coverage 0.2 > test.de",
    "echo 'la maison bleue' | foreword translate predict fr-en --look",
    "echo 'la maison bleue' | foreword translate predict fr-en --picture map.svg",
)


def predict(
    model: ModelFolder,
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="A sentence a line, compressed or not; - is standard input.")
    ] = "-",
    beam: Beam = 5,
    length_penalty: LengthPenalty = 1.0,
    normalisation: Normalised = "power",
    coverage: Coverage = 0.0,
    look: Annotated[bool, typer.Option("--look", help="Below each line draw where its words looked.")] = False,
    picture: Annotated[
        str | None, typer.Option(metavar="FILE", help="Draw that of the first line into an SVG or HTML file.")
    ] = None,
    errors: ErrorsOption = "strict",
    as_json: AsJson = False,
) -> None:
    """Translate every line; a blank one is answered by a blank one.

    With --json every line is an object with source and translation, and with --look the tokens and the attention.
    """
    from foreword.cli.lines import line_batches
    from foreword.cli.printing import flush, write_text
    from foreword.cli.translate.sides import load_translator

    batches = line_batches(file, errors)
    translator = load_translator(model)
    settings = {"width": beam, "length_penalty": length_penalty, "normalisation": normalisation, "coverage": coverage}
    for batch in batches:
        for line, said in zip(batch.lines, translated(translator, batch.lines, settings), strict=True):
            write_text(written(translator, line, said, look=look, as_json=as_json))
            if picture and said:
                draw(translator, line, said, picture)
                picture = None
        flush()


def translated(translator: TextTranslator, lines: list[str], settings: dict[str, Any]) -> list[str]:
    there = [line for line in lines if line.strip()]
    found = iter(translator.translate(there, **settings))
    # A translation may hold a line end, and a line has one answer.
    return [" ".join(next(found).splitlines()) if line.strip() else "" for line in lines]


def written(translator: TextTranslator, line: str, said: str, *, look: bool, as_json: bool) -> str:
    from foreword.picture.heat import attention_text

    looked = translator.look(line, said) if look and said else None
    if as_json:
        facts: dict[str, Any] = {"source": line, "translation": said}
        if looked is not None:
            weights = [[round(float(share), 6) for share in row] for row in looked.weights]
            facts |= {"source_tokens": looked.source, "target_tokens": looked.target, "attention": weights}
        return json.dumps(facts, ensure_ascii=False) + "\n"
    drawn = "" if looked is None else f"\n{attention_text(looked.source, looked.target, looked.weights)}\n"
    return f"{said}\n{drawn}"


def draw(translator: TextTranslator, line: str, said: str, path: str) -> None:
    from foreword.picture.heat import attention
    from foreword.picture.picture import write_standalone

    looked = translator.look(line, said)
    picture = attention(looked.source, looked.target, looked.weights)
    if path.lower().endswith((".html", ".htm")):
        write_page(picture, path)
    else:
        write_standalone(picture, path)


def write_page(picture: Picture, path: str) -> None:
    from html import escape

    from foreword.picture.report import STYLE
    from foreword.storage.atomic import atomic_file

    title, caption = escape(picture.title), escape(picture.caption)
    with atomic_file(path) as new:
        new.write_text(
            f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title><style>{STYLE}</style>'
            f"<body><h1>{title}</h1><figure>{picture.markup}<figcaption>{caption}</figcaption></figure></body></html>\n",
            encoding="utf-8",
            newline="\n",
        )
