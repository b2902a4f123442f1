"""``foreword evaluate``: what a language model makes of a text, a classifier of labels, a tagger of tags."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

import typer

from foreword import kinds
from foreword.cli.labelled import FirstLabel, Header, LabelColumn, TextColumn, labelled_reading
from foreword.cli.options import (
    READING,
    TEXT_HELP,
    AsJson,
    DocumentOption,
    ErrorsOption,
    FieldOption,
    ModelFolder,
    Quiet,
    Threads,
    examples,
    reading_of,
)

if TYPE_CHECKING:
    from foreword.evaluate.classification import Confusion
    from foreword.evaluate.tagging import TagMeasures
    from foreword.measures.perplexity import Measures
    from foreword.protocols import Json, LabelModel, Meter
    from foreword.text.labelled import LabelledReading, Tell

EXAMPLES = examples(
    "foreword evaluate model ptb:test",
    "foreword evaluate model test.txt --json",
    "foreword evaluate lstm ptb:test --neural-cache --tune ptb:valid",
    "foreword evaluate lstm ptb:test --dynamic --gradients ptb:train --tune ptb:valid",
    "foreword evaluate classifier held_out.csv --label-column stars",
    "foreword evaluate tagger test.conllu --json",
    "foreword evaluate vectors.vec questions-words word-sim:ws353",
    "xzcat test.txt.xz | foreword evaluate model -",
)

ADAPTING = "Adapting to the text that is measured"

AnyFormat: TypeAlias = Literal["text", "jsonl", "parquet", "tsv", "csv", "fasttext", "label-first", "folders"]


def evaluate(
    model: ModelFolder,
    named: Annotated[list[str] | None, typer.Argument(metavar="TEXT", help=TEXT_HELP, show_default=False)] = None,
    threads: Threads = None,
    document: DocumentOption = "line",
    field: FieldOption = "text",
    format: Annotated[
        AnyFormat | None,
        typer.Option("--format", help="What the files are.", show_default="told by the name", rich_help_panel=READING),
    ] = None,
    errors: ErrorsOption = "strict",
    text_column: TextColumn = None,
    label_column: LabelColumn = None,
    header: Header = None,
    first_label: FirstLabel = False,
    carry: Annotated[
        bool, typer.Option("--carry", help="Read all documents as one: what is remembered is carried over their ends.")
    ] = False,
    neural_cache: Annotated[
        bool,
        typer.Option(
            "--neural-cache", help="Let a neural model look back by likeness of states.", rich_help_panel=ADAPTING
        ),
    ] = False,
    dynamic: Annotated[
        bool,
        typer.Option("--dynamic", help="Let a neural model learn from what it has scored.", rich_help_panel=ADAPTING),
    ] = False,
    tune: Annotated[
        str | None,
        typer.Option(
            "--tune", metavar="TEXT", help="A held-out text that chooses the settings.", rich_help_panel=ADAPTING
        ),
    ] = None,
    gradients: Annotated[
        str | None,
        typer.Option(
            "--gradients",
            metavar="TEXT",
            help="The training text, by which --dynamic knows how far each weight may move.",
            rich_help_panel=ADAPTING,
        ),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="size, theta, weight of the cache; rate, decay, steps of --dynamic.",
            rich_help_panel=ADAPTING,
        ),
    ] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Measure a language model on a text, a classifier on labelled texts, a tagger on CoNLL-U, or word vectors.

    Language models: perplexity, bits per byte, unknown words. Every token counts, the </s> that ends a document
    included. With --json the keys are perplexity, perplexity_excluding_oov, oov, tokens, documents, bits_per_byte,
    logprob and infinite.

    With --neural-cache or --dynamic a neural language model listens to the text it is measured on, which is read as one
    document, as by --carry. Such numbers are not comparable with plain ones, and say so: in the first line, and with
    --json by the key adaptation.

    Classifiers: accuracy with its 95 % interval, F1, who is taken for whom. With --json the keys are accuracy,
    accuracy_interval, f1 (the mean over classes), micro_f1, calibration_error, texts, right, unseen_labels, classes
    and confusion.

    Taggers: accuracy, that on known and unknown words apart, F1. With --json the keys are accuracy,
    accuracy_interval, known_accuracy, unknown_accuracy, unknown_share, f1, tokens, right, sentences, sentences_right,
    unseen_tags and tags.

    Word vectors: analogies answered and rank correlation with people, on the sets named, or on questions-words and
    word-sim. With --json the keys are accuracy, analogies and similarity.
    """
    from foreword.cli.adapted import Adapting
    from foreword.cli.confusion import print_confusion
    from foreword.cli.models import language_model, load_any
    from foreword.cli.printing import print_message, write_json
    from foreword.cli.progress import progress
    from foreword.cli.tag.treebank import measure_treebanks, print_tag_measures
    from foreword.cli.texts import blocks_in
    from foreword.cli.vector_measures import VectorMeasures, measure_vectors, print_vector_measures
    from foreword.cli.vectors import vectors_in
    from foreword.evaluate.classification import Confusion
    from foreword.measures.perplexity import Measures, measure
    from foreword.tokens.corpus import Corpus

    measures: Measures | Confusion | TagMeasures | VectorMeasures
    texts = named or []
    adapting = Adapting.asked(neural_cache, dynamic, tune, gradients, settings or [])
    adapted: dict[str, Json] | None = None
    with progress(quiet) as meter:
        loaded = load_any(model)
        abilities = kinds.of(loaded).abilities
        if "nearest" in abilities:
            measures = measure_vectors(vectors_in(loaded, model), texts, meter)
        elif not texts:
            raise typer.BadParameter(f"name a text to measure {model} on", param_hint="'TEXT'")
        elif "tag" in abilities:
            measures = measure_treebanks(loaded, texts, meter)
        elif "classify" in abilities:
            if format == "text":
                raise typer.BadParameter("text has no labels", param_hint="'--format'")
            labelled = labelled_reading(format, text_column, label_column, header, first_label, errors)
            measures = measure_labelled(loaded, texts, labelled, None if quiet else print_message, meter)
        else:
            speaker = language_model(loaded, model)
            if format not in (None, "text", "jsonl", "parquet"):
                raise typer.BadParameter(f"{format} is for classifiers, and this is none", param_hint="'--format'")
            reading = reading_of(document, field, format, errors)

            def corpus_of(names: list[str]) -> Corpus:
                read = Corpus.from_blocks(blocks_in(names, reading, meter), speaker.tokenizer, threads=threads)
                return read.joined() if carry or adapting else read

            corpus = corpus_of(texts)
            if adapting is None:
                measures = measure(speaker.model, corpus)
            else:
                measures, adapted = adapting.measure(speaker.model, corpus, corpus_of, meter)
    if as_json:
        write_json({**measures.to_json(), **({} if adapted is None else {"adaptation": adapted})})
    elif isinstance(measures, Measures):
        print_measures(measures, adapted)
    elif isinstance(measures, Confusion):
        print_confusion(measures)
    elif isinstance(measures, VectorMeasures):
        print_vector_measures(measures)
    else:
        print_tag_measures(measures)


def measure_labelled(
    model: LabelModel, data: list[str], reading: LabelledReading, say: Tell | None, meter: Meter | None
) -> Confusion:
    from foreword.cli.confusion import unseen_note
    from foreword.cli.labelled import gathered, labelled_in, read_by
    from foreword.evaluate.classification import measure_classifier

    texts, labels = gathered(labelled_in(data, reading, say, meter))
    measures = measure_classifier(model, read_by(model, texts), labels)
    if say and (note := unseen_note(measures)):
        say(note)
    return measures


def print_measures(measures: Measures, adapted: dict[str, Json] | None = None) -> None:
    from foreword.cli.adapted import told
    from foreword.cli.printing import print_facts
    from foreword.picture.picture import readable

    share = measures.oov / measures.tokens
    rows = {} if adapted is None else {"adapted to the text": told(adapted)}
    rows |= {
        "perplexity": readable(measures.perplexity),
        "without unknown words": readable(measures.perplexity_excluding_oov),
        "bits per byte": readable(measures.bits_per_byte),
        "unknown words": f"{measures.oov:,} ({share:.2%})",
        "tokens": f"{measures.tokens:,}",
        "documents": f"{measures.documents:,}",
    }
    print_facts(rows, justify="right")
