"""``foreword translate``: learn to translate, translate lines, measure translations."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import typer

from foreword import kinds
from foreword.cli.options import (
    ErrorsOption,
    MinCount,
    ModelFolder,
    NetworkOptions,
    OnErrors,
    Out,
    OutputOptions,
    add_command,
    command_group,
    examples,
)
from foreword.errors import InputError

if TYPE_CHECKING:
    from foreword.picture.picture import Picture
    from foreword.pipeline.translator import TextTranslator
    from foreword.protocols import Meter

TRAIN_EXAMPLES = examples(
    "foreword translate train multi30k:train.en multi30k:train.de -o en-de --valid multi30k:valid.en multi30k:valid.de",
    "foreword translate train train.en train.fr -o en-fr --set attention=additive --set feed=true",
    "foreword translate train pairs.tsv -o nl-en --tokens word --min-count 2 --set epochs=10",
)
PREDICT_EXAMPLES = examples(
    "echo 'A dog runs on the beach.' | foreword translate predict en-de",
    "foreword translate predict en-de test.en --beam 5 --set normalisation=gnmt --set coverage=0.2 > test.de",
    "echo 'la maison bleue' | foreword translate predict fr-en --look",
    "echo 'la maison bleue' | foreword translate predict fr-en --picture map.svg",
    "foreword translate predict seed0 test.en --with seed1 --with seed2 > test.de",
)
EVALUATE_EXAMPLES = examples(
    "foreword translate evaluate en-de multi30k:test2016.en multi30k:test2016.de",
    "foreword translate evaluate en-de test.en test.de --beam 1 --json | jq .bleu",
)
SIDE_HELP = "Sentences, one per line, compressed or not, or a data set such as [bold]multi30k:train.en[/]."
TARGET_HELP = "Their translations, line by line."

app = command_group("translate", "Train a translator; translate text.", TRAIN_EXAMPLES)

Target: TypeAlias = Annotated[
    str | None, typer.Argument(metavar="[TARGET]", help=TARGET_HELP, show_default="SOURCE is a table of pairs")
]
ValidPairs: TypeAlias = Annotated[
    tuple[str, str] | None,
    typer.Option(
        "--valid",
        metavar="SOURCE TARGET",
        help="Validation pairs: the best epoch on them is kept. Name a table of pairs twice.",
    ),
]
PairColumns: TypeAlias = Annotated[
    tuple[int, int],
    typer.Option("--columns", metavar="SOURCE TARGET", help="Columns of a table of pairs, counted from 1."),
]


@dataclass(frozen=True, slots=True)
class SearchOptions:
    """How translations are searched for."""

    beam: Annotated[int, typer.Option("--beam", min=1, help="Beam width; 1 is greedy search.")] = 5
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="A setting of the search: length_penalty (0 favours short texts, 1 compares means), normalisation "
            "(power: length^penalty; gnmt: ((5 + length) / 6)^penalty), coverage (cost of leaving out source words).",
        ),
    ] = None
    others: Annotated[
        list[str] | None,
        typer.Option(
            "--with",
            metavar="MODEL",
            help="Another translator with the same tokenizer: an ensemble, the mean of the probabilities. Repeatable.",
        ),
    ] = None

    def arguments(self) -> dict[str, Any]:
        """Return the options as keyword arguments of ``translate``."""
        from foreword.cli.models import load_able
        from foreword.cli.settings import parse_settings

        others = [load_able(each, "translate") for each in self.others or ()]
        settings = parse_settings(self.settings, "translate", SearchSettings)
        return {"width": self.beam, "others": others, **settings}


@dataclass(frozen=True, slots=True)
class SearchSettings:
    """What ``--set`` can change of a search."""

    length_penalty: float = 1.0
    normalisation: Literal["power", "gnmt"] = "power"
    coverage: float = 0.0


def train(
    source: Annotated[str, typer.Argument(metavar="SOURCE", help=SIDE_HELP, show_default=False)],
    target: Target = None,
    *,
    out: Out,
    columns: PairColumns = (1, 2),
    tokens: Annotated[
        Literal["bpe", "word"], typer.Option(help="One byte-pair encoding for both languages, or words of each.")
    ] = "bpe",
    vocab: Annotated[int | None, typer.Option(min=3, help="Vocabulary size.", show_default="8000 for bpe")] = None,
    min_count: MinCount = None,
    valid: ValidPairs = None,
    network: NetworkOptions,
    errors: ErrorsOption = "strict",
    output: OutputOptions,
) -> None:
    """Train a translator on a text and its translation, line by line, and save it.

    SOURCE alone is a table with a pair in each line, between tabs. Ctrl-C saves what was learnt in MODEL.checkpoint,
    and the same command with --resume continues, with more epochs or seconds if asked.
    """
    from foreword.cli.progress import job

    kind = kinds.KINDS["seq2seq"]
    begun = network.begin(out, kind, "translate")
    if begun is None:
        return
    settings, saved = begun

    from foreword.pipeline.fitting import learn_translator, new_translator
    from foreword.storage.folder import save

    translator = new_translator(kinds.build(kind, settings), tokens, vocab, min_count or 2)
    with job(output, out, kind="text-translator", attention=translator.model.attention) as work:
        texts = read_sides(source, target, work.meter, columns, errors)
        held_out = None if valid is None else read_sides(valid[0], _second(valid), work.meter, columns, errors)
        learn_translator(translator, texts, held_out, saved, work.meter)
        save(translator, out)
        saved.discard_checkpoint()
        work.facts |= {"pairs": len(texts[0]), **sizes_of(translator)}
        sizes = f"{work.count('pairs')}, {work.count('parameters', 'weight')}"
        work.summary = f"translator, {translator.model.attention} attention: {sizes}"
        if valid is not None:
            work.facts["valid_score"] = translator.model.valid_score_
            work.measured = f", {translator.model.valid_score_:.3f} nats per token on {valid[0]}"


def predict(
    model: ModelFolder,
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="Sentences, one per line, compressed or not; - is standard input.")
    ] = "-",
    *,
    search: SearchOptions,
    look: Annotated[bool, typer.Option("--look", help="Draw the attention below each line.")] = False,
    picture: Annotated[
        str | None, typer.Option(metavar="FILE", help="Draw the attention of the first line into an SVG or HTML file.")
    ] = None,
    errors: ErrorsOption = "strict",
    output: OutputOptions,
) -> None:
    """Translate every line; the translation of a blank line is blank.

    With --json every line is an object with source and translation, and with --look the tokens and the attention.
    """
    from foreword.cli.lines import line_batches
    from foreword.cli.models import load_able
    from foreword.cli.printing import flush, write_text

    batches = line_batches(file, errors)
    translator: TextTranslator = load_able(model, "translate")
    settings = search.arguments()
    for batch in batches:
        for line, said in zip(batch.lines, translated(translator, batch.lines, settings), strict=True):
            write_text(written(translator, line, said, look=look, as_json=output.as_json))
            if picture and said:
                draw(translator, line, said, picture)
                picture = None
        flush()


def evaluate(
    model: ModelFolder,
    source: Annotated[str, typer.Argument(metavar="SOURCE", help=SIDE_HELP, show_default=False)],
    target: Target = None,
    *,
    columns: PairColumns = (1, 2),
    search: SearchOptions,
    errors: ErrorsOption = "strict",
    output: OutputOptions,
) -> None:
    """Translate a text and compare with its translation: BLEU and chrF as in sacreBLEU, cased, 13a.

    With --json the keys are bleu, chrf, sentences, length_ratio, signature and perplexity; perplexity is MODEL's own,
    also in an ensemble.
    """
    from math import exp

    from foreword.cli.models import load_able
    from foreword.cli.printing import print_facts, write_json
    from foreword.cli.progress import progress

    with progress(output.quiet) as meter:
        texts = read_sides(source, target, meter, columns, errors)
        translator: TextTranslator = load_able(model, "translate")
        measures = translator.measure(*texts, **search.arguments(), meter=meter)
        perplexity = exp(min(700.0, -translator.model.score(translator.pairs(*texts))))
    facts = {**measures.to_json(), "perplexity": perplexity}
    if output.as_json:
        write_json(facts)
        return
    print_facts(
        {
            "BLEU": f"{measures.bleu.score:.2f} ({measures.bleu.signature})",
            "chrF": f"{measures.chrf:.2f}",
            "perplexity": f"{perplexity:.2f} per token",
            "length": f"{facts['length_ratio']:.3f} of the references",
            "sentences": f"{measures.sentences:,}",
        }
    )


add_command(app, train, TRAIN_EXAMPLES, lambda _: ("translate", kinds.KINDS["seq2seq"]))
add_command(app, predict, PREDICT_EXAMPLES)
add_command(app, evaluate, EVALUATE_EXAMPLES)


def sizes_of(translator: TextTranslator) -> dict[str, int]:
    """Return the sizes of a translator's vocabularies and of its network."""
    model = translator.model
    sizes = {"source_tokens": len(model.source_vocab), "target_tokens": len(model.vocab)}
    return {**sizes, "parameters": model.parameter_count}


def _second(names: tuple[str, str]) -> str | None:
    """Return the file of the translations; None where one table has both sides."""
    return None if names[0] == names[1] else names[1]


def read_sides(
    source: str,
    target: str | None,
    meter: Meter | None = None,
    columns: tuple[int, int] = (1, 2),
    errors: OnErrors = "strict",
) -> tuple[list[str], list[str]]:
    """Read a text and its translation, line by line, of two files or of two columns of a table."""
    from foreword.cli.texts import path_of
    from foreword.pipeline.translator import read_pairs, read_table_of_pairs

    if target is None:
        return read_table_of_pairs(path_of(source, meter), columns, errors)

    if source == target == "-":
        raise InputError("standard input cannot be both the source and the target")
    return read_pairs(path_of(source, meter), path_of(target, meter), errors)


def translated(translator: TextTranslator, lines: list[str], settings: dict[str, Any]) -> list[str]:
    """Translate the lines; blank ones stay blank."""
    there = [line for line in lines if line.strip()]
    found = iter(translator.translate(there, **settings))
    # A translation may hold a line end, and a line has one answer.
    return [" ".join(next(found).splitlines()) if line.strip() else "" for line in lines]


def written(translator: TextTranslator, line: str, said: str, *, look: bool, as_json: bool) -> str:
    """Return the output of one line: its translation, JSON, or its attention as text."""
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
    """Write the attention of one translation as a picture."""
    from foreword.picture.heat import attention
    from foreword.picture.picture import write_standalone

    looked = translator.look(line, said)
    picture = attention(looked.source, looked.target, looked.weights)
    if path.lower().endswith((".html", ".htm")):
        write_page(picture, path)
    else:
        write_standalone(picture, path)


def write_page(picture: Picture, path: str) -> None:
    """Write a picture as an HTML page."""
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
