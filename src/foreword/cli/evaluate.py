"""``foreword evaluate``: measure a language model, a classifier, a tagger or word vectors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import typer

from foreword import kinds
from foreword.cli.labelled import LabelledOptions
from foreword.cli.options import (
    READING,
    TEXT_HELP,
    DocumentOption,
    ErrorsOption,
    FieldOption,
    ModelFolder,
    OutputOptions,
    Threads,
    examples,
    reading_of,
)

if TYPE_CHECKING:
    from foreword.cli.measures import VectorMeasures
    from foreword.evaluate.classification import Confusion
    from foreword.evaluate.tagging import TagMeasures
    from foreword.measures.perplexity import Measures
    from foreword.pipeline.language import TextLM
    from foreword.protocols import Json, Meter
    from foreword.text.sources import Reading
    from foreword.tokens.corpus import Corpus

EXAMPLES = examples(
    "foreword evaluate model ptb:test",
    "foreword evaluate model test.txt --json",
    "foreword evaluate ngram lstm test.txt",
    "foreword evaluate lstm ptb:test --mc 192 --tune ptb:valid --carry",
    "foreword evaluate lstm ptb:test --neural-cache --tune ptb:valid",
    "foreword evaluate lstm ptb:test --dynamic --gradients ptb:train --tune ptb:valid",
    "foreword evaluate classifier held_out.csv --label-column stars",
    "foreword evaluate tagger test.conllu --json",
    "foreword evaluate vectors.vec questions-words word-sim:ws353",
    "xzcat test.txt.xz | foreword evaluate model -",
)
SAMPLING = "Monte Carlo dropout"
ADAPTING = "Adapting to the text that is measured"
TUNING = "Settings of --mc, --neural-cache and --dynamic"
MONTE_CARLO, CACHE, DYNAMIC = "mc", "neural-cache", "dynamic"
ADAPTS = (CACHE, DYNAMIC)
WAYS = "is for --mc, --neural-cache and --dynamic"

AnyFormat: TypeAlias = Literal["text", "jsonl", "parquet", "tsv", "csv", "fasttext", "label-first", "folders"]


@dataclass(frozen=True, slots=True)
class EvaluationReading:
    """How texts are read, labelled or not."""

    document: DocumentOption = "line"
    field: FieldOption = "text"
    format: Annotated[
        AnyFormat | None,
        typer.Option("--format", help="File format.", show_default="by file name", rich_help_panel=READING),
    ] = None
    errors: ErrorsOption = "strict"
    carry: Annotated[
        bool, typer.Option("--carry", help="Read all documents as one: carry the model's state from each to the next.")
    ] = False
    threads: Threads = None

    def reading(self) -> Reading:
        """Return how texts without labels are read."""
        if self.format not in (None, "text", "jsonl", "parquet"):
            raise typer.BadParameter(f"{self.format} is for classifiers, which this is not", param_hint="'--format'")
        return reading_of(self.document, self.field, self.format, self.errors)


@dataclass(frozen=True, slots=True)
class ScoringOptions:
    """How a neural language model is scored: as it is, by dropout samples, or adapting to the text."""

    mc: Annotated[
        int | None,
        typer.Option("--mc", metavar="SAMPLES", rich_help_panel=SAMPLING,
                     help="Average the probabilities of this many networks with dropout; 192 is usual."),
    ] = None  # fmt: skip
    neural_cache: Annotated[
        bool, typer.Option("--neural-cache", help="Add a neural cache to the network.", rich_help_panel=ADAPTING)
    ] = False
    dynamic: Annotated[
        bool,
        typer.Option(
            "--dynamic", help="Dynamic evaluation: train the network on what it has scored.", rich_help_panel=ADAPTING
        ),
    ] = False
    tune: Annotated[
        str | None,
        typer.Option("--tune", metavar="TEXT", help="Validation text that chooses the settings.",
                     rich_help_panel=TUNING),
    ] = None  # fmt: skip
    gradients: Annotated[
        str | None,
        typer.Option("--gradients", metavar="TEXT", rich_help_panel=ADAPTING,
                     help="Training text, whose gradients scale the updates of --dynamic."),
    ] = None  # fmt: skip
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", rich_help_panel=TUNING,
                     help="scale, temperature, seed of --mc; size, theta, weight of the cache; rate, decay, steps of "
                     "--dynamic."),
    ] = None  # fmt: skip

    @property
    def kinds(self) -> list[str]:
        """Names of the options that were given; one at most makes sense."""
        given = {MONTE_CARLO: self.mc is not None, CACHE: self.neural_cache, DYNAMIC: self.dynamic}
        return [name for name, there in given.items() if there]

    @property
    def kind(self) -> str | None:
        """Name of the option that was given; None without one."""
        return next(iter(self.kinds), None)

    def check(self) -> None:
        """Refuse options that do not go together."""
        if len(self.kinds) > 1:
            first, second, *_ = self.kinds
            raise typer.BadParameter(f"one or the other: --{first} was given too", param_hint=f"'--{second}'")
        if self.mc is not None and self.mc < 1:
            raise typer.BadParameter(f"{self.mc} samples: expected at least 1", param_hint="'--mc'")
        if self.gradients is not None and not self.dynamic:
            raise typer.BadParameter("is for --dynamic", param_hint="'--gradients'")
        if self.kind is None and (self.tune is not None or self.settings):
            raise typer.BadParameter(WAYS, param_hint="'--set'" if self.tune is None else "'--tune'")

    def measure(
        self, model: Any, corpus: Corpus, corpus_of: Callable[[list[str]], Corpus], meter: Meter | None
    ) -> tuple[Measures, dict[str, Json]]:
        """Measure a model in the way that was asked for; return its settings as well. ``corpus_of`` reads texts."""
        from foreword.measures.perplexity import measure

        make, names = {
            MONTE_CARLO: (self._monte_carlo, ("samples", "scale", "temperature", "seed")),
            CACHE: (self._cache, ("size", "theta", "weight")),
            DYNAMIC: (self._dynamic, ("rate", "decay", "steps")),
        }[self.kind or ""]
        scoring = make(model, corpus_of, meter)
        how: dict[str, Json] = {"kind": self.kind, **{name: getattr(scoring, name) for name in names}}
        if self.kind == DYNAMIC:
            how["gradients"] = self.gradients
        return measure(_Metered(scoring, meter), corpus), how | {"tuned_on": self.tune}

    def _monte_carlo(self, model: Any, corpus_of: Callable[[list[str]], Corpus], meter: Meter | None) -> Any:
        from foreword.cli.settings import parse_settings
        from foreword.neural.monte_carlo import MonteCarloDropout

        given = parse_settings(self.settings, MONTE_CARLO, MonteCarloDropout, without=("model", "samples"))
        if self.tune is not None and set(given) - {"seed"}:
            raise typer.BadParameter("with --tune only seed can be set", param_hint="'--set'")
        sampled = MonteCarloDropout(model, samples=self.mc or 1, **given)
        return sampled if self.tune is None else sampled.tune(corpus_of([self.tune]), meter=meter)

    def _cache(self, model: Any, corpus_of: Callable[[list[str]], Corpus], meter: Meter | None) -> Any:
        from foreword.cli.settings import parse_settings
        from foreword.mix.neural_cache import SIZES, NeuralCache

        given = parse_settings(self.settings, CACHE, NeuralCache)
        cache = NeuralCache(model, **given)
        if self.tune is None:
            return cache
        if set(given) - {"size"}:
            raise typer.BadParameter("with --tune only size can be set", param_hint="'--set'")
        sizes = (given["size"],) if given else SIZES
        return NeuralCache.tuned(model, corpus_of([self.tune]), sizes=sizes, meter=meter)

    def _dynamic(self, model: Any, corpus_of: Callable[[list[str]], Corpus], meter: Meter | None) -> Any:
        from foreword.cli.settings import parse_settings
        from foreword.neural.dynamic import DynamicEvaluation

        given = parse_settings(self.settings, DYNAMIC, DynamicEvaluation)
        if self.tune is not None and set(given) - {"steps"}:
            raise typer.BadParameter("with --tune only steps can be set", param_hint="'--set'")
        dynamic = DynamicEvaluation(model, **given)
        if self.gradients is not None:
            dynamic.measure_gradients(corpus_of([self.gradients]), meter=meter)
        return dynamic if self.tune is None else dynamic.tune(corpus_of([self.tune]), meter=meter)


@dataclass(frozen=True, slots=True)
class _Metered:
    """Scoring that tells how far it is."""

    scoring: Any
    meter: Meter | None

    def logprobs(self, corpus: Corpus) -> Any:
        """Return the log-probability of every id, reporting progress."""
        return self.scoring.logprobs(corpus, meter=self.meter)


def evaluate(
    model: ModelFolder,
    named: Annotated[list[str] | None, typer.Argument(metavar="TEXT", help=TEXT_HELP, show_default=False)] = None,
    *,
    reading: EvaluationReading,
    labelled: LabelledOptions,
    scoring: ScoringOptions,
    output: OutputOptions,
) -> None:
    """Measure a language model on a text, a classifier on labelled texts, a tagger on a treebank, or word vectors.

    Several language models before the text are compared: where they know different words, over the words that any of
    them knows, so that the perplexities are of the same events; where they cut text differently, by bits per byte.

    Language models: perplexity, bits per byte, unknown words. Every token counts, the </s> that ends a document
    included. The JSON keys are perplexity, perplexity_excluding_oov, oov, tokens, documents, bits_per_byte, logprob and
    infinite. With --neural-cache or --dynamic a network adapts to the text, which is read as one document, as with
    --carry; such numbers cannot be compared with plain ones, and are marked by the key adaptation. With --mc the
    probabilities are means over networks with dropout, which takes as many times as long; nothing is adapted, and the
    key monte_carlo says how many there were. Without --tune the dropout rates are 0.7 times those of training.

    Classifiers: accuracy with its 95 % interval, F1, the confusion matrix. The JSON keys are accuracy,
    accuracy_interval, f1 (the mean over classes), micro_f1, calibration_error, texts, right, unseen_labels, classes and
    confusion.

    Taggers: accuracy, also on known and on unknown words, and F1. The JSON keys are accuracy, accuracy_interval,
    known_accuracy, unknown_accuracy, unknown_share, f1, tokens, right, sentences, sentences_right, unseen_tags, tags.

    Word vectors: analogies answered and rank correlation with human judgements, on the named sets, or on
    questions-words and word-sim. The JSON keys are accuracy, analogies and similarity.
    """
    from foreword.cli.progress import progress
    from foreword.cli.side_by_side import measure_rivals, print_together, split_models

    scoring.check()
    rivals, texts = split_models(named or [])
    with progress(output.quiet) as meter:
        if rivals:
            together = measure_rivals([model, *rivals], texts, reading, scoring, meter)
        else:
            measures, how = measured(model, texts, reading, labelled, scoring, output, meter)
    if rivals:
        print_together(together, output)
    else:
        print_result(measures, how, output)


AnyMeasures: TypeAlias = "Measures | Confusion | TagMeasures | VectorMeasures"


def measured(
    path: str, texts: list[str], reading: EvaluationReading, labelled: LabelledOptions, scoring: ScoringOptions,
    output: OutputOptions, meter: Meter | None,
) -> tuple[AnyMeasures, dict[str, Json] | None]:  # fmt: skip
    """Measure a model by what its kind can do; return how it was scored as well, if not plainly."""
    from foreword.cli.classify import measure_labelled
    from foreword.cli.labelled import labelled_in
    from foreword.cli.measures import measure_vectors
    from foreword.cli.models import checked, load_any
    from foreword.cli.printing import print_message, shown_warnings
    from foreword.cli.tag import measure_treebanks
    from foreword.cli.vectors import vectors_in

    loaded = load_any(path)
    abilities = kinds.of(loaded).abilities
    if "nearest" in abilities:
        return measure_vectors(vectors_in(loaded, path), texts, meter), None
    if not texts:
        raise typer.BadParameter(f"name a text to measure {path} on", param_hint="'TEXT'")
    if "tag" in abilities:
        with shown_warnings(output.quiet):
            return measure_treebanks(loaded, texts, reading.errors, meter), None
    format = reading.format
    if "classify" in abilities:
        if format == "text":
            raise typer.BadParameter("text has no labels", param_hint="'--format'")
        say = None if output.quiet else print_message
        blocks = labelled_in(texts, labelled.reading(format, reading.errors), say, meter)
        return measure_labelled(loaded, blocks, say), None
    return measure_language(checked(loaded, path, "score"), texts, reading, scoring, meter)


def measure_language(
    model: TextLM, texts: list[str], how: EvaluationReading, scoring: ScoringOptions, meter: Meter | None
) -> tuple[Measures, dict[str, Json] | None]:
    """Measure a language model, plainly or in another way; return the settings of that way."""
    from foreword.cli.texts import blocks_in
    from foreword.measures.perplexity import measure
    from foreword.tokens.corpus import Corpus

    reading = how.reading()

    def corpus_of(names: list[str]) -> Corpus:
        read = Corpus.from_blocks(blocks_in(names, reading, meter), model.tokenizer, threads=how.threads)
        return read.joined() if how.carry or scoring.kind in ADAPTS else read

    corpus = corpus_of(texts)
    if scoring.kind is None:
        return measure(model.model, corpus), None
    return scoring.measure(model.model, corpus, corpus_of, meter)


def print_result(measures: AnyMeasures, how: dict[str, Json] | None, output: OutputOptions) -> None:
    """Print the measures as JSON or as a table."""
    from foreword.cli.measures import VectorMeasures, print_confusion, print_measures, print_vector_measures
    from foreword.cli.printing import write_json
    from foreword.cli.tag import print_tag_measures
    from foreword.evaluate.classification import Confusion
    from foreword.measures.perplexity import Measures

    if output.as_json:
        key = "adaptation" if how is not None and how["kind"] in ADAPTS else "monte_carlo"
        write_json({**measures.to_json(), **({} if how is None else {key: how})})
    elif isinstance(measures, Measures):
        print_measures(measures, how)
    elif isinstance(measures, Confusion):
        print_confusion(measures)
    elif isinstance(measures, VectorMeasures):
        print_vector_measures(measures)
    else:
        print_tag_measures(measures)
