"""``foreword convert``: the same thing in another tool's file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

import typer

from foreword.cli.options import AsJson, examples

if TYPE_CHECKING:
    from foreword.lm.ngram import NgramLM
    from foreword.pipeline import TextLM
    from foreword.tokens.bpe import BPETokenizer
    from foreword.vectors.wordvectors import WordVectors

EXAMPLES = examples(
    "foreword convert tokenizer.json tokenizer      (a folder, for Foreword)",
    "foreword convert tokenizer tokenizer.json      (for Hugging Face's tokenizers)",
    "foreword convert lm.arpa.gz model              (a folder, mapped into memory in milliseconds)",
    "foreword convert model lm.arpa                 (for KenLM, SRILM and others)",
    "foreword convert glove.txt.gz vectors --store int8   (a quarter of the room)",
    "foreword convert vectors vectors.bin           (word2vec's binary; .vec and .txt are text)",
)

ARPA = (".arpa", ".arpa.gz")
VECTORS = (".vec", ".bin", ".txt", ".vec.gz", ".bin.gz", ".txt.gz")

Stored: TypeAlias = Literal["float32", "float16", "int8"]


def convert(
    source: Annotated[
        str, typer.Argument(metavar="IN", help="A tokenizer.json, an ARPA or vector file, or a folder; - reads one.")
    ],
    out: Annotated[
        str,
        typer.Argument(
            metavar="OUT",
            help="A name in .json, .arpa, .vec, .bin or .txt, the last four also with .gz, or a folder; - prints JSON.",
        ),
    ],
    store: Annotated[
        Stored | None, typer.Option("--store", help="For word vectors in a folder: how exact.", show_default="as it is")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Turn a tokenizer.json, an ARPA file or a file of word vectors into a folder, or the other way round.

    What IN is, is told by what it holds; what OUT will be, by its name: for vectors .vec is word2vec's and fastText's
    text, .bin word2vec's binary, .txt GloVe's text.
    """
    from foreword.cli.models import check_output, is_tokenizer_json, load_any
    from foreword.cli.printing import tell, write_json
    from foreword.cli.vectors import has_vectors, vectors_in
    from foreword.errors import InputError
    from foreword.io.folder import kind_of
    from foreword.lm.ngram import NgramLM
    from foreword.pipeline import TextLM
    from foreword.tokens.bpe import BPETokenizer

    if as_json and out == "-":
        raise typer.BadParameter("standard output is taken by OUT", param_hint="'--json'")
    check_output(out, folder=not is_tokenizer_json(out) and not out.endswith((*ARPA, *VECTORS)))
    found = load_any(source)
    if isinstance(found, TextLM) and isinstance(found.model, NgramLM) and not is_tokenizer_json(out):
        facts = _convert_ngrams(found, found.model, out)
    elif isinstance(found, BPETokenizer) and not out.endswith(ARPA):
        facts = _convert_tokenizer(found, out)
    elif has_vectors(found) and not is_tokenizer_json(out) and not out.endswith(ARPA):
        facts = _convert_vectors(vectors_in(found, source), out, store)
    else:
        held = kind_of(found.model if isinstance(found, TextLM) else found)
        raise InputError(
            f"{source}: its kind is {held}; tokenizer.json holds only BPE tokenizers, ARPA only n-gram models, "
            f"and {', '.join(VECTORS[:3])} only word vectors"
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


def _convert_vectors(vectors: WordVectors, out: str, store: Stored | None) -> dict[str, int]:
    from foreword.cli.printing import tell
    from foreword.io.folder import save
    from foreword.io.word2vec import write_vectors

    if not out.endswith(VECTORS):
        save(vectors if store is None else vectors.stored_as(store), out)
    elif store is not None:
        raise typer.BadParameter(f"{out} holds float32 only: name a folder", param_hint="'--store'")
    else:
        divided = write_vectors(vectors, out, blanks="_")
        if divided:
            tell(f"{divided:,} words hold blanks, which divide words there: written as _")
        if vectors.subwords is not None:
            tell("vectors of parts of words are left out: such a file holds whole words only")
    return {"words": len(vectors), "dimensions": vectors.dimensions}
