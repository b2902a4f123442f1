"""``foreword classify``: learn labels from labelled texts, label texts, explain labels."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import typer

from foreword import kinds
from foreword.cli.classify_predict import PREDICT_EXAMPLES, predict
from foreword.cli.labelled import ClassifierFolder, Data, LabelledFormatOption, LabelledOptions
from foreword.cli.options import (
    ErrorsOption,
    OutputOptions,
    Overwrite,
    SetOption,
    add_command,
    command_group,
    examples,
    kind_by_option,
    kind_option,
    option_value,
)
from foreword.errors import InputError, SettingError

if TYPE_CHECKING:
    from foreword.evaluate.classification import Confusion
    from foreword.fasttext.classifier import FastTextClassifier
    from foreword.pipeline.classifier import TextClassifier
    from foreword.pipeline.fitting import Output
    from foreword.protocols import Meter
    from foreword.text.block import Block
    from foreword.text.labelled import LabelledBlock, LabelledReading, Tell

TRAIN_EXAMPLES = examples(
    "foreword classify train spam.csv -o model",
    "foreword classify train reviews.jsonl -o model --test held_out.jsonl --label-column stars",
    "foreword classify train sms_spam -o model --kind naive-bayes --set alpha=0.5 --folds 10",
    "foreword classify train aclImdb/train -o model --calibrate",
    "foreword classify train imdb:train -o model --kind lstm --set language_model=reviews-lm",
    "foreword classify train huge.jsonl.zst -o model --kind fasttext --set word_ngrams=2 --resume",
    "foreword classify train train.txt -o model --kind fasttext --autotune 300 --valid valid.txt --quantize",
)
EXPLAIN_EXAMPLES = examples(
    "foreword classify explain model 'You have won a million euros'",
    "foreword classify explain model --label ham 'See you at nine'",
    "head -1 messages.txt | foreword classify explain model --json",
)
FeaturesName: TypeAlias = Literal["bag-of-words", "tf-idf"]
KIND_HELP = f"{', '.join(kinds.trained_as('classifier'))}."
FASTTEXT = "fasttext"

app = command_group("classify", "Train a classifier; classify texts; explain predictions.", TRAIN_EXAMPLES)


@dataclass(frozen=True, slots=True)
class ClassifyOptions:
    """Which classifier is trained."""

    kind: Annotated[str, kind_option("classifier", KIND_HELP)] = "nb-logistic"
    settings: SetOption = None
    features: Annotated[
        FeaturesName | None, typer.Option("--features", help="Features of the texts.", show_default="by kind")
    ] = None
    calibrate: Annotated[
        bool, typer.Option("--calibrate", help="Calibrate the probabilities, by cross-validation.")
    ] = False
    seed: Annotated[int, typer.Option("--seed", min=0, help="Random seed of --folds and --calibrate.")] = 0
    overwrite: Overwrite = False


@dataclass(frozen=True, slots=True)
class EvaluationOptions:
    """How the classifier is evaluated."""

    folds: Annotated[
        int | None, typer.Option("--folds", min=2, help="Cross-validate with this many folds, and print the result.")
    ] = None
    test: Annotated[
        str | None, typer.Option("--test", metavar="DATA", help="Labelled texts to evaluate the trained model on.")
    ] = None


@dataclass(frozen=True, slots=True)
class FastTextOptions:
    """What only fastText classifiers have."""

    autotune: Annotated[
        float | None,
        typer.Option(
            "--autotune", metavar="SECONDS", min=0, help="For fasttext: search for the best settings on --valid."
        ),
    ] = None
    valid: Annotated[str | None, typer.Option("--valid", metavar="DATA", help="Labelled texts for --autotune.")] = None
    quantize: Annotated[
        bool,
        typer.Option("--quantize", help="For fasttext: quantize the model; foreword convert makes it a .ftz file."),
    ] = False
    cutoff: Annotated[
        int | None,
        typer.Option("--cutoff", metavar="ROWS", min=1, help="With --quantize: keep this many words and n-grams."),
    ] = None
    resume: Annotated[
        bool, typer.Option("--resume", help="For fasttext and lstm: resume a training that was stopped.")
    ] = False

    def check(self, kind: str, folds: int | None) -> None:
        """Refuse a call that makes no sense before anything is read."""
        given = {"--autotune": self.autotune, "--valid": self.valid, "--quantize": self.quantize or None}
        given |= {"--cutoff": self.cutoff}
        for option, value in given.items():
            if value is not None and kind != FASTTEXT:
                raise typer.BadParameter(f"means nothing to {kind}, only to {FASTTEXT}", param_hint=f"'{option}'")
        if self.resume and "resume" not in kinds.trained_as("classifier")[kind].training:
            raise typer.BadParameter(f"means nothing to {kind}, which is trained at once", param_hint="'--resume'")
        if (self.autotune is None) != (self.valid is None):
            raise typer.BadParameter("goes with --valid, and neither alone", param_hint="'--autotune'")
        if self.cutoff is not None and not self.quantize:
            raise typer.BadParameter("rows are left out only with --quantize", param_hint="'--cutoff'")
        if self.autotune is not None and folds is not None:
            raise typer.BadParameter("settings are tried on --valid, not in folds", param_hint="'--folds'")
        if self.resume and (self.autotune is not None or folds is not None):
            raise typer.BadParameter("one training is resumed, not trials or folds", param_hint="'--resume'")


def train(
    data: Data,
    out: Annotated[
        str | None,
        typer.Option("--out", "-o", metavar="MODEL", help="Folder to save the model in; not needed with --folds."),
    ] = None,
    *,
    classifier: ClassifyOptions,
    evaluation: EvaluationOptions,
    fasttext: FastTextOptions,
    labelled: LabelledOptions,
    format: LabelledFormatOption = None,
    errors: ErrorsOption = "strict",
    output: OutputOptions,
) -> None:
    """Train a classifier on labelled texts, and save it.

    The default is logistic regression on words and pairs of words, weighted by naive Bayes. The columns of the text and
    of the label are guessed unless given, and the guess is reported.

    Lines of fastText with several labels are learnt by --kind fasttext --set loss=one-vs-all; other kinds take one.

    Ctrl-C saves what fasttext has learnt, and lstm in MODEL.checkpoint; the same command with --resume continues.
    """
    if out is None and evaluation.folds is None:
        raise typer.BadParameter("name the folder to save the model in, or ask for --folds", param_hint="'-o'")
    if out is None and evaluation.test is not None:
        raise typer.BadParameter("only a saved model is tested: name its folder by -o", param_hint="'--test'")
    fasttext.check(classifier.kind, evaluation.folds)
    reading = labelled.reading(format, errors)
    _Training(classifier, evaluation, fasttext, reading, output).run(data, out)


@dataclass(frozen=True, slots=True)
class _Training:
    """One call of ``foreword classify train``."""

    classifier: ClassifyOptions
    evaluation: EvaluationOptions
    fasttext: FastTextOptions
    reading: LabelledReading
    output: OutputOptions

    def run(self, data: list[str], out: str | None) -> None:
        """Train, report and save; with folds, cross-validate first."""
        from foreword.cli.labelled import gathered, labelled_in
        from foreword.cli.models import check_output, nothing_to_resume
        from foreword.cli.printing import print_message
        from foreword.cli.progress import progress

        say, classifier = (silent if self.output.quiet else print_message), self.classifier
        make = maker(classifier.kind, classifier.features, classifier.settings, classifier.calibrate, classifier.seed)
        begun: Any = None
        if out is not None:
            chosen = kinds.trained_as("classifier")[classifier.kind]
            overwrite = classifier.overwrite or self.fasttext.resume
            check_output(out, folder=True, kind=chosen.name, overwrite=overwrite)
            if nothing_to_resume(self.target(out), chosen):
                return
            if classifier.kind == FASTTEXT and self.fasttext.autotune is None:
                begun = begun_or_resumed(classifier.settings, out, resume=self.fasttext.resume)
                if self.fasttext.resume and begun.finished:
                    print_message(f"{out} exists and its training has ended: nothing to resume")
                    return
        measured: dict[str, Confusion] = {}
        began = time.perf_counter()
        with progress(self.output.quiet) as meter:
            several = self.evaluation.folds is None and learns_several(begun)
            blocks = labelled_in(data, replace(self.reading, all_labels=several), say, meter)
            test = self.evaluation.test
            held_out = None if test is None else labelled_in([test], self.reading, say, meter)
            texts, labels = gathered(blocks)
            classes = len(set(labels)) if not several else len({each for line in split_labels(labels) for each in line})
            facts = {"kind": classifier.kind, "texts": len(labels), "classes": classes}
            if (folds := self.evaluation.folds) is not None:
                measured["cross_validation"] = cross_validated(make, texts, labels, folds, classifier.seed, meter, say)
            if out is not None:
                model = self._fit_and_save(make, begun, texts, labels, out, facts, meter, say)
                if held_out is not None:
                    measured["test"] = measure_labelled(model, held_out, say)
        self._report({**facts, "seconds": time.perf_counter() - began, "output": out}, measured)

    def target(self, out: str) -> Output:
        """Return where the classifier is saved."""
        from foreword.pipeline.fitting import Output

        return Output(out, self.fasttext.resume)

    def _fit_and_save(
        self, make: Callable[[], Any], begun: Any, texts: list[Block], labels: list[str], out: str,
        facts: dict[str, Any], meter: Meter | None, say: Tell,
    ) -> Any:  # fmt: skip
        from foreword.cli.labelled import labelled_in, read_by
        from foreword.pipeline.fitting import run_network, run_steps
        from foreword.storage.folder import save

        model: Any = begun
        target = self.target(out)
        if self.fasttext.autotune is not None and self.fasttext.valid is not None:
            tried_on = labelled_in([self.fasttext.valid], self.reading, say, meter)
            model, found = tuned(texts, labels, tried_on, self.fasttext.autotune, self.classifier.settings, meter, say)
            facts |= found
        elif begun is not None:
            marks = split_labels(labels) if learns_several(model) else labels
            run_steps(model, model.train(read_by(model, texts), marks), target, meter)
        elif kinds.trained_as("classifier")[self.classifier.kind].network:
            model = make()
            documents = read_by(model, texts)
            run_network(model, lambda run: model.train(documents, labels, checkpoint=run), target, meter)
        else:
            model = trained(make, texts, labels, meter, say)
        if self.fasttext.quantize:
            model = smaller(model, self.fasttext.cutoff)
        save(model, out)
        target.discard_checkpoint()
        if kinds.of(model).name == "text-classifier":
            facts["features"] = model.counts([]).shape[1]
        return model

    def _report(self, facts: dict[str, Any], measured: dict[str, Confusion]) -> None:
        from foreword.cli.measures import print_confusion
        from foreword.cli.printing import print_message, write_json
        from foreword.picture.picture import plural

        if self.output.as_json:
            write_json({**facts, **{name: each.to_json() for name, each in measured.items()}})
            return
        titles = {
            "cross_validation": f"{self.evaluation.folds}-fold cross-validation",
            "test": f"on {self.evaluation.test}",
        }
        for name, each in measured.items():
            print_confusion(each, titles[name])
        if facts["output"] is not None and not self.output.quiet:
            sizes = [plural(facts["texts"], "text"), plural(facts["classes"], "class", "classes")]
            sizes += [plural(facts["features"], "feature")] if "features" in facts else []
            print_message(f"{facts['kind']}: {', '.join(sizes)}, {facts['seconds']:.1f} s, saved in {facts['output']}")


def explain(
    model: ClassifierFolder,
    texts: Annotated[
        list[str] | None,
        typer.Argument(metavar="TEXT", help="One or more texts.", show_default="lines of standard input"),
    ] = None,
    *,
    label: Annotated[
        str | None, typer.Option(metavar="LABEL", help="Explain this class.", show_default="the likeliest")
    ] = None,
    top: Annotated[int, typer.Option(min=1, help="Number of terms to show.")] = 20,
    output: OutputOptions,
) -> None:
    """Show what each word, or pair of words, of a text adds to its label.

    A positive number speaks for the class, a negative one against it: with two classes it is the change of the
    log-odds. The prior and all of them add up to the log-odds of the whole text.
    """
    from foreword.cli.lines import line_batches
    from foreword.cli.models import load_able
    from foreword.cli.printing import flush, print_table, write_json
    from foreword.pipeline.classifier import TextClassifier

    loaded = load_able(model, "classify")
    if not isinstance(loaded, TextClassifier):
        raise InputError(
            f"{model}: the score of a {kinds.of(loaded).name} is not a sum over words: it cannot be explained"
        )
    classes = {str(known): known for known in loaded.classes_.tolist()}
    if label is not None and label not in classes:
        raise SettingError(f"the model has no class {label!r}: expected {', '.join(classes)}")
    for batch in [texts] if texts else (batch.lines for batch in line_batches("-")):
        for text in batch:
            explanation = loaded.explain(text)
            if output.as_json:
                write_json(explanation.to_json())
            else:
                print_table(explanation.table(None if label is None else classes[label], top))
            flush()


def trained_kind(words: list[str]) -> tuple[str, kinds.Kind] | None:
    """Return the kind that a call trains, with the features that ``--features`` names."""
    found = kind_by_option("classifier", "nb-logistic")(words)
    return found and (found[0], with_features(found[1], option_value(words, "--features")))


add_command(app, train, TRAIN_EXAMPLES, trained_kind)
add_command(app, predict, PREDICT_EXAMPLES)
add_command(app, explain, EXPLAIN_EXAMPLES)

# Training


def learns_several(model: Any) -> bool:
    """Return whether a fastText classifier learns all labels of a text at once."""
    return getattr(model, "loss", None) == "one-vs-all"


def split_labels(labels: list[str]) -> list[list[str]]:
    """Return the labels of each text, which the reader has joined."""
    from foreword.text.labelled import LABEL_SEPARATOR

    return [joined.split(LABEL_SEPARATOR) for joined in labels]


def silent(line: str) -> None:
    """Print nothing."""


def with_features(kind: kinds.Kind, features: str | None) -> kinds.Kind:
    """Return a kind of classifier that learns from these features, with those of its usual settings that they have."""
    if kind.features is None or features not in kinds.trained_as("features"):
        return kind
    known = signature(kinds.resolve(kinds.KINDS[features].home)).parameters
    usual = {name: value for name, value in kind.features[1].items() if name in known}
    return replace(kind, features=(features, usual))


def maker(
    kind: str, features: FeaturesName | None, settings: Iterable[str] | None, calibrate: bool = False, seed: int = 0
) -> Callable[[], Any]:
    """Return a function that constructs a text classifier; features and model each get their settings."""
    from foreword.cli.settings import parse_settings

    chosen = with_features(kinds.trained_as("classifier")[kind], features)
    if chosen.features is None:
        for given, option in ((features is not None, "--features"), (calibrate, "--calibrate")):
            if given:
                raise typer.BadParameter(f"means nothing to {kind}, which reads text itself", param_hint=f"'{option}'")
        own = parse_settings(settings, kind, chosen.home)
        return lambda: kinds.build(chosen, {**chosen.names[kind], **own})
    name, usual = chosen.features
    features_class = kinds.resolve(kinds.KINDS[name].home)
    parsed = parse_settings(settings, kind, chosen.home, features_class)
    known = signature(features_class).parameters
    for_features = {**usual, **{key: value for key, value in parsed.items() if key in known}}
    for_model = {key: value for key, value in parsed.items() if key not in known}

    def make() -> TextClassifier:
        from foreword.classify.calibration import Calibrated
        from foreword.pipeline.classifier import TextClassifier

        model = kinds.build(chosen, {**chosen.names[kind], **for_model})
        return TextClassifier(features_class(**for_features), Calibrated(model, seed=seed) if calibrate else model)

    return make


def trained(make: Callable[[], Any], texts: list[Block], labels: list[str], meter: Meter | None, say: Tell) -> Any:
    """Train a classifier on labelled texts and return it."""
    from foreword.cli.labelled import read_by

    model = make()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        model.fit(read_by(model, texts), labels, meter=meter)
    for each in caught:
        say(f"foreword: warning: {each.message}")
    return model


def measure_labelled(model: Any, held_out: Iterable[LabelledBlock], say: Tell | None) -> Confusion:
    """Evaluate a classifier on labelled texts; report labels that it cannot know."""
    from foreword.cli.labelled import gathered, read_by
    from foreword.cli.measures import unseen_note
    from foreword.evaluate.classification import measure_classifier

    texts, labels = gathered(held_out)
    measures = measure_classifier(model, read_by(model, texts), labels)
    if say and (note := unseen_note(measures)):
        say(note)
    return measures


def cross_validated(
    make: Callable[[], Any],
    texts: Sequence[Block],
    labels: list[str],
    folds: int,
    seed: int,
    meter: Meter | None,
    say: Tell,
) -> Confusion:
    """Return the confusion of a classifier that was cross-validated on labelled texts."""
    from foreword.cli.labelled import lines_for
    from foreword.evaluate.classification import cross_validate, lone_classes

    if lone := lone_classes(labels):
        few = ", ".join(lone[:5]) + (f" and {len(lone) - 5} more" if len(lone) > 5 else "")
        say(f"classes with one text, which is always predicted wrong: {few}")
    documents = lines_for(make(), [text for block in texts for text in block.strings()])
    for fold in cross_validate(make, documents, labels, folds=folds, seed=seed):
        if meter:
            meter("cross-validating", fold.number, fold.of)
        result = fold.so_far
    return result


# fastText


def begun_or_resumed(settings: Iterable[str] | None, out: str, *, resume: bool) -> FastTextClassifier:
    """Return a classifier to train: a new one, the stopped one at ``out``, or a finished one that is there."""
    from foreword.cli.settings import parse_settings
    from foreword.fasttext.classifier import FastTextClassifier
    from foreword.pipeline.fitting import Output
    from foreword.storage.folder import load

    target = Output(out, resume)
    if resume and Path(out).exists():
        found = load(out)
        if isinstance(found, FastTextClassifier) and found.finished:
            target.clear_abandoned()
            return found
    given = parse_settings(settings, FASTTEXT, FastTextClassifier)
    begun: FastTextClassifier = target.build(kinds.KINDS["fasttext-classifier"], given)
    return begun


def tuned(
    texts: list[Block],
    labels: list[str],
    valid: Iterable[LabelledBlock],
    seconds: float,
    settings: Iterable[str] | None,
    meter: Meter | None,
    say: Tell,
) -> tuple[FastTextClassifier, dict[str, Any]]:
    """Search for the best settings for ``seconds``; return the classifier and facts. ``settings`` are not changed."""
    from foreword.cli.labelled import gathered, lines_for
    from foreword.cli.settings import parse_settings
    from foreword.fasttext.autotune import autotune
    from foreword.fasttext.classifier import FastTextClassifier

    def lines(blocks: list[Block]) -> list[str]:
        return lines_for(FastTextClassifier(), [text for block in blocks for text in block.strings()])

    fixed = parse_settings(settings, FASTTEXT, FastTextClassifier)
    seed = fixed.pop("seed", 0)
    held, held_labels = gathered(valid)
    began = time.monotonic()
    best = None
    for trial in autotune(lines(texts), labels, lines(held), held_labels, seconds=seconds, seed=seed, **fixed):
        if trial.best:
            best = trial
        if meter and best:
            spent = min(seconds, time.monotonic() - began)
            meter(f"trial {trial.number + 1}, best accuracy {best.accuracy:.4f}", int(spent * 10), int(seconds * 10))
    assert best is not None  # the first trial always runs
    shown = ", ".join(f"{name}={value:.3g}" for name, value in best.settings.items() if isinstance(value, int | float))
    say(f"best of {trial.number + 1} trials: accuracy {best.accuracy:.4f} with {shown}")
    return best.classifier, {"trials": trial.number + 1, "valid_accuracy": best.accuracy, "settings": best.settings}


def smaller(model: FastTextClassifier, cutoff: int | None) -> FastTextClassifier:
    """Return the quantized model, which predicts what its ``.ftz`` file will predict."""
    from foreword.fasttext.quantize import quantize

    return type(model).from_file(quantize(model, cutoff=cutoff))
