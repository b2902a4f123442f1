"""``foreword convert``: the same thing in another tool's file."""

from __future__ import annotations

from typing import Annotated

import typer

from foreword.cli.options import AsJson, examples

EXAMPLES = examples(
    "foreword convert tokenizer.json tokenizer      (a folder, for Foreword)",
    "foreword convert tokenizer tokenizer.json      (for Hugging Face's tokenizers)",
)


def convert(
    source: Annotated[str, typer.Argument(metavar="IN", help="A tokenizer.json or a tokenizer's folder; - reads one.")],
    out: Annotated[str, typer.Argument(metavar="OUT", help="A name ending in .json, or a folder; - prints JSON.")],
    as_json: AsJson = False,
) -> None:
    """Turn a tokenizer.json into a tokenizer's folder, or the other way round.

    What IN is, is told by what it holds; what OUT will be, by its name.
    """
    from foreword.cli.models import check_output, is_tokenizer_json, load_tokenizer, save_tokenizer
    from foreword.cli.printing import tell, write_json
    from foreword.errors import InputError
    from foreword.io.folder import kind_of
    from foreword.tokens.bpe import BPETokenizer

    if as_json and out == "-":
        raise typer.BadParameter("standard output is taken by OUT", param_hint="'--json'")
    check_output(out, folder=not is_tokenizer_json(out))
    tokenizer = load_tokenizer(source)
    if not isinstance(tokenizer, BPETokenizer):
        raise InputError(f"{source}: its kind is {kind_of(tokenizer)}, and tokenizer.json holds only BPE tokenizers")
    save_tokenizer(tokenizer, out)
    if as_json:
        write_json(
            {"input": source, "output": out, "vocabulary": len(tokenizer.vocab), "merges": len(tokenizer.merges_)}
        )
    elif out != "-":
        tell(f"{len(tokenizer.vocab):,} tokens, saved in {out}")
