"""``foreword classify explain``: why a text gets its label."""

from __future__ import annotations

from typing import Annotated

import typer

from foreword.cli.labelled import ClassifierFolder
from foreword.cli.options import AsJson, examples
from foreword.errors import InputError, SettingError

EXAMPLES = examples(
    "foreword classify explain model 'You have won a million euros'",
    "foreword classify explain model --label ham 'See you at nine'",
    "head -1 messages.txt | foreword classify explain model --json",
)


def explain(
    model: ClassifierFolder,
    texts: Annotated[
        list[str] | None,
        typer.Argument(metavar="TEXT", help="A text; several may be given.", show_default="lines of standard input"),
    ] = None,
    label: Annotated[
        str | None, typer.Option(metavar="LABEL", help="Explain this class.", show_default="the likeliest")
    ] = None,
    top: Annotated[int, typer.Option(min=1, help="Show so many terms.")] = 20,
    as_json: AsJson = False,
) -> None:
    """Show what each word, or pair of words, of a text says for its label.

    A positive number speaks for the class, a negative one against it: with two classes it is the log-odds that the
    word is worth. All of them and the prior, added up, are the log-odds of the whole text.
    """
    from foreword.cli.lines import line_batches
    from foreword.cli.models import load_classifier
    from foreword.cli.printing import flush, print_table, write_json
    from foreword.pipeline.classifier import TextClassifier
    from foreword.storage.folder import kind_of

    loaded = load_classifier(model)
    if not isinstance(loaded, TextClassifier):
        raise InputError(f"{model}: a {kind_of(loaded)} adds nothing up word by word, so that it cannot be explained")
    if label is not None and label not in loaded.classes_:
        raise SettingError(f"the model has no class {label!r}: expected {', '.join(loaded.classes_)}")
    given = [texts] if texts else (batch.lines for batch in line_batches("-"))
    for batch in given:
        for text in batch:
            explanation = loaded.explain(text)
            if as_json:
                write_json(explanation.to_json())
            else:
                print_table(explanation.table(label, top))
            flush()
