"""``foreword evaluate``: what a model makes of a text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from foreword.cli.options import (
    AsJson,
    DocumentOption,
    ErrorsOption,
    FieldOption,
    FormatOption,
    ModelFolder,
    Quiet,
    Texts,
    Threads,
    examples,
    reading_of,
)

if TYPE_CHECKING:
    from foreword.evaluate.perplexity import Measures

EXAMPLES = examples(
    "foreword evaluate model ptb:test",
    "foreword evaluate model test.txt --json",
    "xzcat test.txt.xz | foreword evaluate model -",
)


def evaluate(
    model: ModelFolder,
    texts: Texts,
    threads: Threads = None,
    document: DocumentOption = "line",
    field: FieldOption = "text",
    format: FormatOption = None,
    errors: ErrorsOption = "strict",
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Measure a model on a text: perplexity, bits per byte, unknown words.

    Every token counts, the </s> that ends a document included. With --json the keys are perplexity,
    perplexity_excluding_oov, oov, tokens, documents, bits_per_byte, logprob and infinite.
    """
    from foreword.cli.models import load_language_model
    from foreword.cli.printing import write_json
    from foreword.cli.progress import progress
    from foreword.cli.texts import blocks_in
    from foreword.evaluate.perplexity import measure
    from foreword.tokens.corpus import Corpus

    reading = reading_of(document, field, format, errors)
    with progress(quiet) as meter:
        loaded = load_language_model(model)
        corpus = Corpus.from_blocks(blocks_in(texts, reading, meter), loaded.tokenizer, threads=threads)
        measures = measure(loaded.model, corpus)
    if as_json:
        write_json(measures.to_json())
    else:
        _print(measures)


def _print(measures: Measures) -> None:
    from foreword.cli.printing import print_facts
    from foreword.picture.picture import readable

    share = measures.oov / measures.tokens
    rows = {
        "perplexity": readable(measures.perplexity),
        "without unknown words": readable(measures.perplexity_excluding_oov),
        "bits per byte": readable(measures.bits_per_byte),
        "unknown words": f"{measures.oov:,} ({share:.2%})",
        "tokens": f"{measures.tokens:,}",
        "documents": f"{measures.documents:,}",
    }
    print_facts(rows, justify="right")
