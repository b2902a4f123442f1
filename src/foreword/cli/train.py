"""``foreword train``: a text and a kind of model in, a folder out."""

from __future__ import annotations

import time
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any

import typer

from foreword.cli.options import (
    AsJson,
    DocumentOption,
    ErrorsOption,
    FieldOption,
    FormatOption,
    MinCount,
    Quiet,
    Texts,
    Threads,
    examples,
    reading_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from foreword.pipeline import TextTokenizer
    from foreword.protocols import LanguageModel
    from foreword.text.block import Block
    from foreword.tokens.corpus import Corpus

KINDS = {
    "unigram": "foreword.lm.unigram:UnigramLM",
    "ngram": "foreword.lm.ngram:NgramLM",
    "hmm": "foreword.lm.hmm:HMM",
}
"""What can be trained, and where its class lives: a kind joins by adding its line."""

EXAMPLES = examples(
    "foreword train ngram ptb:train -o model --set order=5 --set smoothing=modified-kneser-ney",
    "foreword train ngram web.jsonl.zst -o model --set prune=[0,0,1] --set layout=trie --set quantize=true",
    "foreword train unigram ptb:train -o model",
    "foreword train unigram notes/*.txt -o model --min-count 2 --set add=0.5",
    "foreword train unigram book.txt.gz -o model --tokenizer tokenizer.json",
)


def _check_kind(kind: str) -> str:
    if kind not in KINDS:
        raise typer.BadParameter(f"no kind {kind!r}: expected {', '.join(KINDS)}")
    return kind


def train(
    kind: Annotated[
        str,
        typer.Argument(metavar="KIND", help=f"What to train: {', '.join(KINDS)}.", callback=_check_kind),
    ],
    texts: Texts,
    out: Annotated[str, typer.Option("--out", "-o", metavar="MODEL", help="The folder to write.")],
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="A setting of the model; may be given several times."),
    ] = None,
    tokenizer: Annotated[
        str | None,
        typer.Option(metavar="TOKENIZER", help="Use this tokenizer.", show_default="words between white space"),
    ] = None,
    vocab: Annotated[
        int | None, typer.Option("--vocab", min=2, help="Keep so many words, the rest is <unk>.", show_default="all")
    ] = None,
    min_count: MinCount = None,
    valid: Annotated[
        str | None, typer.Option(metavar="TEXT", help="A text to tune on, for models that tune themselves.")
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with training that was stopped, for models that take long.")
    ] = False,
    threads: Threads = None,
    document: DocumentOption = "line",
    field: FieldOption = "text",
    format: FormatOption = None,
    errors: ErrorsOption = "strict",
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Train a language model on a text and save it.

    A document is a line and a word what stands between white space, unless told otherwise.
    """
    if resume:
        raise typer.BadParameter(f"{kind} learns in one pass: there is nothing to go on with", param_hint="'--resume'")
    if tokenizer and (vocab or min_count):
        raise typer.BadParameter("the tokenizer has its vocabulary already", param_hint="'--vocab' / '--min-count'")

    from foreword.cli.models import check_output
    from foreword.cli.printing import tell, write_json
    from foreword.cli.progress import progress
    from foreword.cli.settings import parse_settings
    from foreword.cli.texts import blocks_in
    from foreword.io.folder import save
    from foreword.pipeline import TextLM

    kind_class = _class_of(kind)
    model = kind_class(**parse_settings(settings or [], kind, kind_class))
    check_output(out, folder=True)
    reading = reading_of(document, field, format, errors)
    began = time.perf_counter()
    with progress(quiet) as meter:
        blocks = blocks_in(texts, reading, meter)
        held = None if valid is None else blocks_in([valid], reading, meter)
        speaker, corpus = read_corpus(blocks, tokenizer, min_count, vocab, threads)
        model.fit(corpus, valid=None if held is None else type(corpus).from_blocks(held, speaker, threads=threads))
        save(TextLM(speaker, model), out)
    seconds = time.perf_counter() - began
    if as_json:
        facts = {"kind": kind, "tokens": len(corpus.ids), "vocabulary": len(corpus.vocab)}
        write_json({**facts, "documents": len(corpus), "seconds": seconds, "output": out})
    elif not quiet:
        tell(
            f"{kind}: {len(corpus.ids):,} tokens, a vocabulary of {len(corpus.vocab):,}, "
            f"{seconds:.1f} s, saved in {out}"
        )


def _class_of(kind: str) -> type[LanguageModel[Any]]:
    module, name = KINDS[kind].split(":")
    found: type[LanguageModel[Any]] = getattr(import_module(module), name)
    return found


def read_corpus(
    blocks: Iterator[Block], tokenizer: str | None, min_count: int | None, vocab: int | None, threads: int | None
) -> tuple[TextTokenizer, Corpus]:
    """The text as ids, with the tokenizer that made them: the one named, or words as the text itself has them."""
    from foreword.cli.models import load_tokenizer
    from foreword.tokens.corpus import Corpus
    from foreword.tokens.words import WordTokenizer

    if tokenizer is not None:
        loaded = load_tokenizer(tokenizer)
        return loaded, Corpus.from_blocks(blocks, loaded, threads=threads)
    words = WordTokenizer(min_count=min_count or 1, max_size=vocab)
    return words, words.fit_corpus(blocks, threads=threads)
