"""``foreword convert``: the same thing in another tool's file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from foreword.cli.options import AsJson, examples

if TYPE_CHECKING:
    from foreword.lm.ngram import NgramLM
    from foreword.pipeline import TextLM
    from foreword.tokens.bpe import BPETokenizer

EXAMPLES = examples(
    "foreword convert tokenizer.json tokenizer      (a folder, for Foreword)",
    "foreword convert tokenizer tokenizer.json      (for Hugging Face's tokenizers)",
    "foreword convert lm.arpa.gz model              (a folder, mapped into memory in milliseconds)",
    "foreword convert model lm.arpa                 (for KenLM, SRILM and others)",
)

ARPA = (".arpa", ".arpa.gz")


def convert(
    source: Annotated[
        str, typer.Argument(metavar="IN", help="A tokenizer.json, an ARPA file, or a folder; - reads one.")
    ],
    out: Annotated[
        str, typer.Argument(metavar="OUT", help="A name in .json, .arpa or .arpa.gz, or a folder; - prints JSON.")
    ],
    as_json: AsJson = False,
) -> None:
    """Turn a tokenizer.json or an ARPA file into a folder, or the other way round.

    What IN is, is told by what it holds; what OUT will be, by its name.
    """
    from foreword.cli.models import check_output, is_tokenizer_json, load_any
    from foreword.cli.printing import tell, write_json
    from foreword.errors import InputError
    from foreword.io.folder import kind_of
    from foreword.lm.ngram import NgramLM
    from foreword.pipeline import TextLM
    from foreword.tokens.bpe import BPETokenizer

    if as_json and out == "-":
        raise typer.BadParameter("standard output is taken by OUT", param_hint="'--json'")
    check_output(out, folder=not is_tokenizer_json(out) and not out.endswith(ARPA))
    found = load_any(source)
    if isinstance(found, TextLM) and isinstance(found.model, NgramLM) and not is_tokenizer_json(out):
        facts = _convert_ngrams(found, found.model, out)
    elif isinstance(found, BPETokenizer) and not out.endswith(ARPA):
        facts = _convert_tokenizer(found, out)
    else:
        held = kind_of(found.model if isinstance(found, TextLM) else found)
        raise InputError(
            f"{source}: its kind is {held}; tokenizer.json holds only BPE tokenizers, and ARPA only n-gram models"
        )
    if as_json:
        write_json({"input": source, "output": out, **facts})
    elif out != "-":
        tell(f"{', '.join(f'{name} {value:,}' for name, value in facts.items())}, saved in {out}")


def _convert_tokenizer(tokenizer: BPETokenizer, out: str) -> dict[str, int]:
    from foreword.cli.models import save_tokenizer

    save_tokenizer(tokenizer, out)
    return {"vocabulary": len(tokenizer.vocab), "merges": len(tokenizer.merges_)}


def _convert_ngrams(joined: TextLM, model: NgramLM, out: str) -> dict[str, int]:
    from foreword.io.arpa import write_arpa
    from foreword.io.folder import save

    if out.endswith(ARPA):
        write_arpa(model, out)
    else:
        save(joined, out)
    return {"vocabulary": len(model.vocab), "order": model.order, "ngrams": sum(model.sizes_)}
