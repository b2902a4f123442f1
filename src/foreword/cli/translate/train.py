"""``foreword translate train``: sentences and their translations in, a translator out."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import typer

from foreword.cli.options import AsJson, Quiet, examples
from foreword.cli.translate.sides import SIDE_HELP

if TYPE_CHECKING:
    from foreword.pipeline.translator import TextTranslator
    from foreword.protocols import Meter

Attention: TypeAlias = Literal["additive", "dot", "general", "scaled", "none"]

EXAMPLES = examples(
    "foreword translate train multi30k:train.en multi30k:train.de -o en-de --valid multi30k:valid.en multi30k:valid.de",
    "foreword translate train --source train.en --target train.fr -o en-fr --attention additive --set feed=true",
    "foreword translate train train.nl train.en -o nl-en --tokens word --min-count 2 --set epochs=10",
)


def train(
    source: Annotated[str | None, typer.Argument(metavar="SOURCE", help=SIDE_HELP, show_default=False)] = None,
    target: Annotated[
        str | None, typer.Argument(metavar="TARGET", help="Their translations.", show_default=False)
    ] = None,
    source_option: Annotated[str | None, typer.Option("--source", metavar="FILE", help="SOURCE, by its name.")] = None,
    target_option: Annotated[str | None, typer.Option("--target", metavar="FILE", help="TARGET, by its name.")] = None,
    out: Annotated[str, typer.Option("--out", "-o", metavar="MODEL", help="The folder to write.")] = "",
    attention: Annotated[Attention, typer.Option(help="How the decoder looks at the source.")] = "general",
    tokens: Annotated[
        Literal["bpe", "word"], typer.Option(help="One byte-pair encoding for both languages, or words for each.")
    ] = "bpe",
    vocab: Annotated[int | None, typer.Option(min=3, help="Tokens: of both languages together, or of each.")] = None,
    min_count: Annotated[int, typer.Option(min=1, help="Words seen less often are <unk>.")] = 2,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="A setting of Seq2Seq; may be given several times."),
    ] = None,
    valid: Annotated[
        tuple[str, str] | None,
        typer.Option("--valid", metavar="SOURCE TARGET", help="Held-out pairs: the best epoch on them is kept."),
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with a run that was stopped.")] = False,
    device: Annotated[str | None, typer.Option(help="cuda or cpu.", show_default="cuda where there is one")] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Learn to translate from a text and its translation, line by line, and save the translator."""
    from foreword import kinds
    from foreword.cli.models import check_output
    from foreword.cli.printing import print_message, write_json
    from foreword.cli.progress import progress
    from foreword.cli.settings import parse_settings
    from foreword.cli.translate.sides import read_sides
    from foreword.storage.folder import save
    from foreword.translate.seq2seq import Seq2Seq

    source, target = _one(source, source_option, "SOURCE"), _one(target, target_option, "TARGET")
    if not out:
        raise typer.BadParameter("expected a folder to write", param_hint="'--out'")
    given = {"attention": attention, "device": device, **parse_settings(settings or [], "translate", Seq2Seq)}
    translator = _translator(tokens, vocab, min_count, kinds.build(kinds.KINDS["seq2seq"], given))
    check_output(out, folder=True)
    began = time.perf_counter()
    with progress(quiet) as meter:
        texts = read_sides(source, target, meter)
        held_out = None if valid is None else read_sides(*valid, meter)
        _fit(translator, texts, held_out, out, meter, resume=resume)
        save(translator, out)
    seconds, model = time.perf_counter() - began, translator.model
    facts: dict[str, Any] = {"kind": "text-translator", "attention": model.attention, "pairs": len(texts[0])}
    facts |= {"source_tokens": len(model.source_vocab), "target_tokens": len(model.vocab)}
    facts |= {"parameters": model.parameter_count}
    if held_out:
        facts["valid_score"] = model.valid_score_
    if as_json:
        write_json({**facts, "seconds": seconds, "output": out})
    elif not quiet:
        told = f", {model.valid_score_:.3f} nats a token on {valid[0]}" if valid else ""
        print_message(
            f"translator, {model.attention} attention: {len(texts[0]):,} pairs, {model.parameter_count:,} weights, "
            f"{seconds:.1f} s, saved in {out}{told}"
        )


def _one(argument: str | None, option: str | None, name: str) -> str:
    if (argument is None) == (option is None):
        raise typer.BadParameter(f"expected it once: as an argument, or as --{name.lower()}", param_hint=f"'{name}'")
    return argument or option or ""


def _translator(tokens: str, vocab: int | None, min_count: int, model: Any) -> TextTranslator:
    from foreword.pipeline.translator import TextTranslator
    from foreword.tokens.bpe import BPETokenizer
    from foreword.tokens.words import WordTokenizer

    if tokens == "bpe":
        joint = BPETokenizer(vocab or 8000, prefix_space=True)
        return TextTranslator(joint, joint, model)
    source, target = (WordTokenizer(min_count=min_count, max_size=vocab) for _ in range(2))
    return TextTranslator(source, target, model)


def _fit(
    translator: TextTranslator, texts: Any, valid: Any, out: str, meter: Meter | None, *, resume: bool
) -> None:  # fmt: skip
    """Train to the end, keeping the run in a file on the way; Ctrl-C leaves that of the last epoch."""
    from foreword.pipeline.fitting import Output
    from foreword.storage.checkpoint import Checkpoint

    checkpoint = Checkpoint(Output(out).checkpoint, every=30)
    if not resume:
        checkpoint.path.unlink(missing_ok=True)
    for step in translator.train(*texts, valid=valid, checkpoint=checkpoint):
        if meter:
            meter(f"training, loss {step.loss:.3f}", step.done, step.total)
    checkpoint.path.unlink(missing_ok=True)
