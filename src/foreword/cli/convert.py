"""``foreword convert``: the same thing in another tool's file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import typer

from foreword import kinds
from foreword.cli.options import OutputOptions, Overwrite, examples

if TYPE_CHECKING:
    from foreword.fasttext.classifier import FastTextClassifier
    from foreword.fasttext.vectors import FastText
    from foreword.ngram.kenlm import KenlmLM
    from foreword.ngram.model import NgramLM
    from foreword.pipeline.language import TextLM
    from foreword.tokens.bpe import BPETokenizer
    from foreword.tokens.sentencepiece import SentencePieceTokenizer
    from foreword.tokens.steps.tokenizer import StepTokenizer
    from foreword.vectors.wordvectors import WordVectors

EXAMPLES = examples(
    "foreword convert tokenizer.json tokenizer      (a folder, for Foreword)",
    "foreword convert tokenizer tokenizer.json      (for Hugging Face's tokenizers)",
    "foreword convert tokenizer tokenizer.model     (a unigram tokenizer, for sentencepiece)",
    "foreword convert lm.arpa.gz model              (a folder, mapped into memory in milliseconds)",
    "foreword convert model lm.arpa                 (for KenLM, SRILM and others)",
    "foreword convert lm.arpa lm.bin --binary trie  (a KenLM binary; probing is larger and faster)",
    "foreword convert glove.txt.gz vectors --store int8   (a quarter of the size)",
    "foreword convert vectors vectors.bin           (word2vec's binary; .vec and .txt are text)",
    "foreword convert lid.176.ftz languages         (a fastText classifier; mapped, and shared by processes)",
    "foreword convert classifier model.bin          (for fastText; model.ftz is quantized, a tenth of the size)",
    "foreword convert lstm lstm.onnx                (a recurrent language model, for onnxruntime and others)",
)

ARPA = (".arpa", ".arpa.gz")
VECTORS = (".vec", ".bin", ".txt", ".vec.gz", ".bin.gz", ".txt.gz")
FASTTEXT = (".bin", ".ftz")
ONNX = ".onnx"
FILES = (*ARPA, *VECTORS, *FASTTEXT, ONNX)
"""Names that stand for files; those of tokenizers are in ``cli.models``."""

_VECTORS_ALONE = tuple(name for name in VECTORS if name != ".bin")

Stored: TypeAlias = Literal["float32", "float16", "int8"]
Binary: TypeAlias = Literal["probing", "trie"]


Input: TypeAlias = Annotated[
    str,
    typer.Argument(
        metavar="IN",
        help="A tokenizer.json or .model, an ARPA file, a KenLM binary, vectors, fastText's .bin or .ftz, or a "
        "folder; - reads one.",
    ),
]
ConvertedFile: TypeAlias = Annotated[
    str,
    typer.Argument(
        metavar="OUT",
        help="A name in .json, .model, .arpa, .vec, .bin, .txt (the last four also .gz), .ftz or .onnx, or a "
        "folder; - prints JSON.",
    ),
]


def convert(
    source: Input,
    out: ConvertedFile,
    *,
    store: Annotated[
        Stored | None,
        typer.Option("--store", help="Precision of word vectors in a folder.", show_default="unchanged"),
    ] = None,
    binary: Annotated[
        Binary | None,
        typer.Option("--binary", help="Write an n-gram model as a KenLM binary: probing (fast) or trie (small)."),
    ] = None,
    overwrite: Overwrite = False,
    output: OutputOptions,
) -> None:
    """Convert a tokenizer.json, an ARPA file, a KenLM binary, word vectors or a fastText model to a folder, or back.

    The input format is detected from its content, the output format from its file name. For vectors, .vec is the text
    of word2vec and fastText, .txt that of GloVe, .bin fastText's file if there are subword vectors, else word2vec's.
    For classifiers, .bin and .ftz are fastText's files, .ftz quantized; for n-gram models --binary writes KenLM's file.
    A recurrent language model can become .onnx.
    """
    from foreword.cli.models import check_output, is_tokenizer_file, load_any
    from foreword.cli.printing import print_message, write_json

    if output.as_json and out == "-":
        raise typer.BadParameter("standard output is taken by OUT", param_hint="'--json'")
    folder = binary is None and not is_tokenizer_file(out) and not out.endswith(FILES)
    check_output(out, folder=folder)
    if binary:
        facts = _write_binary(source, out, binary)
    else:
        found = load_any(source)
        check_output(out, folder=folder, kind=_saved_kind(found), overwrite=overwrite, hint="'OUT'")
        facts = _convert(found, source, out, store)
    if output.as_json:
        write_json({"input": source, "output": out, **facts})
    elif out != "-":
        print_message(f"{', '.join(f'{name} {value:,}' for name, value in facts.items())}, saved in {out}")


def _saved_kind(found: Any) -> str:
    """Return the kind of the folder that a model is converted to, of one that reads text that of the model inside."""
    kind = kinds.of(found.model if kinds.of(found).name == "text-lm" else found)
    return "word-vectors" if "nearest" in kind.abilities else kind.name


def _convert(found: Any, source: str, out: str, store: Stored | None) -> dict[str, int]:
    """Write what was found in the format of the output, and return its sizes."""
    from foreword.cli.models import is_tokenizer_file, is_tokenizer_json
    from foreword.cli.vectors import vectors_in
    from foreword.errors import InputError
    from foreword.fasttext.classifier import FastTextClassifier
    from foreword.ngram.kenlm import KenlmLM
    from foreword.ngram.model import NgramLM
    from foreword.pipeline.language import TextLM
    from foreword.tokens.bpe import BPETokenizer
    from foreword.tokens.sentencepiece import SentencePieceTokenizer
    from foreword.tokens.steps.tokenizer import StepTokenizer

    of_tokenizer = is_tokenizer_file(out)
    if out.endswith(ONNX):
        return _convert_to_onnx(found, source, out)
    of_vectors = out.endswith(_VECTORS_ALONE)
    if isinstance(found, TextLM) and isinstance(found.model, NgramLM | KenlmLM) and not (of_tokenizer or of_vectors):
        return _convert_ngrams(found, found.model, out)
    if isinstance(found, BPETokenizer | StepTokenizer) and not out.endswith(FILES):
        return _convert_tokenizer(found, out)
    if isinstance(found, SentencePieceTokenizer) and not is_tokenizer_json(out) and not out.endswith(FILES):
        return _convert_tokenizer(found, out)
    if isinstance(found, FastTextClassifier) and not (of_tokenizer or of_vectors or out.endswith(ARPA)):
        return _convert_classifier(found, source, out, store)
    if "nearest" in kinds.of(found).abilities and not of_tokenizer and not out.endswith((*ARPA, ".ftz")):
        return _convert_vectors(found, vectors_in(found, source), out, store)
    name = kinds.of(found.model if isinstance(found, TextLM) else found).name
    raise InputError(
        f"{source}: its kind is {name}; tokenizer.json is written for BPE and WordPiece tokenizers, .model for unigram "
        "tokenizers, ARPA only for n-gram models, "
        f"{', '.join(VECTORS[:3])} only for word vectors, and .bin and .ftz for fastText's classifiers too"
    )


def _write_binary(source: str, out: str, binary: Binary) -> dict[str, int]:
    """Write a KenLM binary of an ARPA file, whose numbers stay as they are, or of another n-gram model."""
    from foreword.cli.models import load_any
    from foreword.errors import InputError
    from foreword.ngram.arpa import check_backing_off, looks_like_arpa, read_log10
    from foreword.ngram.kenlm import KenlmLM
    from foreword.ngram.kenlm_writing import trie_ngrams, write_kenlm
    from foreword.ngram.log10 import log10_of
    from foreword.ngram.model import NgramLM

    if Path(source).is_file() and looks_like_arpa(source):
        ngrams = read_log10(source)
    else:
        found = load_any(source)
        model = getattr(found, "model", found)
        if isinstance(model, KenlmLM):
            ngrams = trie_ngrams(model)
        elif isinstance(model, NgramLM):
            check_backing_off(model, "a KenLM binary")
            ngrams = log10_of(model)
        else:
            raise InputError(f"{source}: its kind is {kinds.of(found).name}; KenLM binaries hold only n-gram models")
    write_kenlm(ngrams, out, binary)
    return {"vocabulary": len(ngrams.vocab), "order": len(ngrams.sizes), "ngrams": sum(ngrams.sizes)}


def _convert_to_onnx(found: object, source: str, out: str) -> dict[str, int]:
    from foreword.errors import InputError
    from foreword.pipeline.language import TextLM

    model: Any = found.model if isinstance(found, TextLM) else found
    kind = kinds.of(model)
    if not kind.network or kind.task != "language-model":
        raise InputError(f"{source}: its kind is {kind.name}; ONNX files hold recurrent language models here")
    from foreword.nn.onnx import write_onnx

    write_onnx(model, out)
    return {"vocabulary": len(model.vocab), "parameters": model.parameter_count}


def _convert_tokenizer(tokenizer: BPETokenizer | SentencePieceTokenizer | StepTokenizer, out: str) -> dict[str, int]:
    from foreword.cli.models import save_tokenizer
    from foreword.tokens.bpe import BPETokenizer

    save_tokenizer(tokenizer, out)
    merges = {"merges": len(tokenizer.merges_)} if isinstance(tokenizer, BPETokenizer) else {}
    return {"vocabulary": len(tokenizer.vocab), **merges}


def _convert_ngrams(joined: TextLM, model: NgramLM | KenlmLM, out: str) -> dict[str, int]:
    from foreword.ngram.arpa import write_arpa
    from foreword.ngram.kenlm import KenlmLM
    from foreword.ngram.kenlm_writing import trie_ngrams
    from foreword.storage.folder import save

    if out.endswith(FASTTEXT):
        raise typer.BadParameter("say which KenLM binary: probing or trie", param_hint="'--binary'")
    if out.endswith(ARPA):
        write_arpa(trie_ngrams(model) if isinstance(model, KenlmLM) else model, out)
    else:
        save(joined, out)
    return {"vocabulary": len(model.vocab), "order": model.order, "ngrams": sum(model.sizes_)}


def _convert_classifier(classifier: FastTextClassifier, source: str, out: str, store: Stored | None) -> dict[str, int]:
    """Write a classifier: quantised to ``.ftz`` if it is not yet, never quantised to ``.bin``."""
    from foreword.errors import InputError
    from foreword.fasttext.files import write_fasttext
    from foreword.fasttext.quantize import quantize
    from foreword.storage.folder import save

    if store is not None:
        raise typer.BadParameter("only word vectors are stored in another precision", param_hint="'--store'")
    if out.endswith(".ftz"):
        write_fasttext(classifier.to_file() if classifier.quantized else quantize(classifier), out)
    elif not out.endswith(".bin"):
        save(classifier, out)
    elif classifier.quantized:
        raise InputError(f"{source}: is quantised, and what was lost cannot be put back: name a .ftz, or a folder")
    else:
        classifier.write(out)
    model = classifier.model
    return {"labels": model.dictionary.labels, "words": model.dictionary.size, "dimensions": model.settings.dim}


def _convert_subwords(found: FastText | WordVectors, out: str, store: Stored | None) -> dict[str, int]:
    from foreword.fasttext.files import write_fasttext
    from foreword.fasttext.vectors import FastText, file_of_vectors

    _refuse(store, out)
    file = found.to_file() if isinstance(found, FastText) else file_of_vectors(found)
    write_fasttext(file, out)
    return {"words": file.number_of_words, "dimensions": file.settings.dim, "buckets": file.settings.bucket}


def _refuse(store: Stored | None, out: str) -> None:
    if store is not None:
        raise typer.BadParameter(f"{out} holds float32 only: name a folder", param_hint="'--store'")


def _convert_vectors(
    found: FastText | WordVectors, vectors: WordVectors, out: str, store: Stored | None
) -> dict[str, int]:
    from foreword.cli.printing import print_message
    from foreword.storage.folder import save
    from foreword.vectors.word2vec_file import write_vectors

    if not out.endswith(VECTORS):
        save(vectors if store is None else vectors.stored_as(store), out)
    elif out.endswith(".bin") and vectors.subwords is not None:
        return _convert_subwords(found, out, store)
    else:
        _refuse(store, out)
        divided = write_vectors(vectors, out, blanks="_")
        if divided:
            print_message(f"{divided:,} words hold blanks, which divide words there: written as _")
        if vectors.subwords is not None:
            print_message("vectors of parts of words are left out: such a file holds whole words only")
    return {"words": len(vectors), "dimensions": vectors.dimensions}
