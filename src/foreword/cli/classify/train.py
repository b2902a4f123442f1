"""``foreword classify train``: labelled texts in, a classifier out."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from foreword.cli.classify.kinds import BEST, KINDS, FeaturesName, maker
from foreword.cli.classify.tuning import FASTTEXT, begun_or_resumed, check_options, smaller, tuned
from foreword.cli.labelled import (
    Data,
    FirstLabel,
    Header,
    LabelColumn,
    LabelledFormatOption,
    TextColumn,
    labelled_reading,
)
from foreword.cli.options import AsJson, ErrorsOption, Quiet, examples, kind_option

if TYPE_CHECKING:
    from foreword.evaluate.classification import Confusion
    from foreword.protocols import Meter
    from foreword.text.block import Block
    from foreword.text.labelled import LabelledBlock, Tell

EXAMPLES = examples(
    "foreword classify train spam.csv -o model",
    "foreword classify train reviews.jsonl -o model --test held_out.jsonl --label-column stars",
    "foreword classify train sms_spam -o model --kind naive-bayes --set alpha=0.5 --folds 10",
    "foreword classify train aclImdb/train -o model --calibrate",
    "foreword classify train imdb:train -o model --kind lstm --set language_model=reviews-lm",
    "foreword classify train huge.jsonl.zst -o model --kind fasttext --set word_ngrams=2 --resume",
    "foreword classify train train.txt -o model --kind fasttext --autotune 300 --valid valid.txt --quantize",
)


def train(
    data: Data,
    out: Annotated[
        str | None, typer.Option("--out", "-o", metavar="MODEL", help="The folder to write; not needed with --folds.")
    ] = None,
    kind: Annotated[str, kind_option("classifier", f"{', '.join(KINDS)}.")] = BEST,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="A setting of the model or its features; repeatable."),
    ] = None,
    features: Annotated[
        FeaturesName | None, typer.Option(help="What it learns from.", show_default="what suits the kind")
    ] = None,
    folds: Annotated[
        int | None, typer.Option(min=2, help="Cross-validate in so many parts, and print what comes of it.")
    ] = None,
    test: Annotated[
        str | None, typer.Option(metavar="DATA", help="Labelled texts to measure the trained model on.")
    ] = None,
    calibrate: Annotated[
        bool, typer.Option("--calibrate", help="Make probabilities agree with how often they are right.")
    ] = False,
    autotune: Annotated[
        float | None,
        typer.Option(metavar="SECONDS", min=0, help="For fasttext: try settings on --valid so long, keep the best."),
    ] = None,
    valid: Annotated[str | None, typer.Option(metavar="DATA", help="Labelled texts that --autotune tries on.")] = None,
    quantize: Annotated[
        bool, typer.Option("--quantize", help="For fasttext: a byte for two numbers; convert makes a .ftz of it.")
    ] = False,
    cutoff: Annotated[
        int | None, typer.Option(metavar="ROWS", min=1, help="With --quantize: keep so many words and n-grams.")
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="For fasttext: go on with training that was stopped.")
    ] = False,
    seed: Annotated[int, typer.Option(min=0, help="Deals out the texts for --folds and --calibrate.")] = 0,
    text_column: TextColumn = None,
    label_column: LabelColumn = None,
    header: Header = None,
    first_label: FirstLabel = False,
    format: LabelledFormatOption = None,
    errors: ErrorsOption = "strict",
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Train a classifier on labelled texts and save it.

    Unless told otherwise it learns words and pairs of words, and logistic regression on them weighted by naive Bayes.
    Which column is the text and which the label is guessed where nobody says it, and the guess is told.

    Ctrl-C while fasttext trains keeps what has been learnt, and the same line with --resume goes on.
    """
    if out is None and folds is None:
        raise typer.BadParameter("name the folder to write, or ask for --folds", param_hint="'-o'")
    if out is None and test is not None:
        raise typer.BadParameter("only a model that is saved is tested: name its folder by -o", param_hint="'--test'")

    check_options(kind, autotune, valid, quantize, cutoff, folds, resume=resume)

    from foreword.cli.confusion import print_confusion
    from foreword.cli.labelled import gathered, labelled_in, read_by
    from foreword.cli.models import check_output
    from foreword.cli.printing import print_message, write_json
    from foreword.cli.progress import progress
    from foreword.pipeline.fitting import Output, run_steps

    make = maker(kind, features, settings or [], calibrate=calibrate, seed=seed)
    if out is not None:
        check_output(out, folder=True)
        if kind == FASTTEXT and autotune is None:
            begun: Any = begun_or_resumed(settings or [], out, resume=resume)
            if resume and begun.finished:
                print_message(f"{out} is there already and its training has ended: nothing to go on with")
                return
    reading = labelled_reading(format, text_column, label_column, header, first_label, errors)
    say = silent if quiet else print_message
    measured: dict[str, Confusion] = {}
    began = time.perf_counter()
    with progress(quiet) as meter:
        blocks = labelled_in(data, reading, say, meter)
        held = None if test is None else labelled_in([test], reading, say, meter)
        tried_on = None if valid is None else labelled_in([valid], reading, say, meter)
        texts, labels = gathered(blocks)
        facts: dict[str, Any] = {"kind": kind, "texts": len(labels), "classes": len(set(labels))}
        if folds is not None:
            measured["cross_validation"] = cross_validated(make, texts, labels, folds, seed, meter, say)
        if out is not None:
            if tried_on is not None and autotune is not None:
                model, found = tuned(texts, labels, tried_on, autotune, settings or [], meter, say)
                facts |= found
            elif kind == FASTTEXT:
                model = begun
                run_steps(model, model.train(read_by(model, texts), labels), Output(out), meter)
            else:
                model = trained(make, texts, labels, meter, say)
            model = smaller(model, cutoff) if quantize else model
            save_model(model, out)
            facts |= {"features": model.counts([]).shape[1]} if hasattr(model, "counts") else {}
            if held is not None:
                measured["test"] = tested(model, held, say)
    facts |= {"seconds": time.perf_counter() - began, "output": out}
    if as_json:
        write_json({**facts, **{name: each.to_json() for name, each in measured.items()}})
        return
    for name, each in measured.items():
        print_confusion(each, f"{folds}-fold cross-validation" if name == "cross_validation" else f"on {test}")
    if out is not None and not quiet:
        print_message(closing_line(facts))


def silent(line: str) -> None: ...


def save_model(model: Any, out: str) -> None:
    from foreword.storage.folder import save

    save(model, out)


def trained(make: Callable[[], Any], texts: list[Block], labels: list[str], meter: Meter | None, say: Tell) -> Any:
    from foreword.cli.labelled import read_by

    model = make()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        model.fit(read_by(model, texts), labels, meter=meter)
    for each in caught:
        say(f"foreword: warning: {each.message}")
    return model


def tested(model: Any, held: Iterable[LabelledBlock], say: Tell) -> Confusion:
    from foreword.cli.confusion import unseen_note
    from foreword.cli.labelled import gathered, read_by
    from foreword.evaluate.classification import measure_classifier

    texts, labels = gathered(held)
    measures = measure_classifier(model, read_by(model, texts), labels)
    if note := unseen_note(measures):
        say(note)
    return measures


def closing_line(facts: dict[str, Any]) -> str:
    features = f"{facts['features']:,} features, " if "features" in facts else ""
    return (
        f"{facts['kind']}: {facts['texts']:,} texts, {facts['classes']:,} classes, {features}"
        f"{facts['seconds']:.1f} s, saved in {facts['output']}"
    )


def cross_validated(
    make: Callable[[], Any],
    texts: Sequence[Block],
    labels: list[str],
    folds: int,
    seed: int,
    meter: Meter | None,
    say: Tell,
) -> Confusion:
    from foreword.cli.labelled import lines_for
    from foreword.evaluate.classification import cross_validate, lone_classes

    if lone := lone_classes(labels):
        few = ", ".join(lone[:5]) + (f" and {len(lone) - 5} more" if len(lone) > 5 else "")
        say(f"classes with one text, which is never learnt from while it is tested and counts as wrong: {few}")
    documents = lines_for(make(), [text for block in texts for text in block.strings()])
    for fold in cross_validate(make, documents, labels, folds=folds, seed=seed):
        if meter:
            meter("cross-validating", fold.number, fold.of)
        result = fold.so_far
    return result
