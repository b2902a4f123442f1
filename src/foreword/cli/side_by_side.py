"""``foreword evaluate A B TEXT``: several language models on one text, in one table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from foreword.errors import ForewordError, InputError

if TYPE_CHECKING:
    from foreword.cli.evaluate import EvaluationReading, ScoringOptions
    from foreword.cli.options import OutputOptions
    from foreword.pipeline.together import Together
    from foreword.protocols import Meter

DOWNLOADED = ("hf://", "http://", "https://")
"""Addresses of single files."""


def split_models(names: list[str]) -> tuple[list[str], list[str]]:
    """Split names into the models they begin with and the texts after them."""
    count = next((index for index, name in enumerate(names) if not _is_model(name)), len(names))
    return names[:count], names[count:]


def _is_model(name: str) -> bool:
    """Return whether a name is that of a model, a saved one, an ARPA file or a KenLM binary, and not of a text."""
    from foreword.ngram.arpa import looks_like_arpa
    from foreword.ngram.kenlm_format import looks_like_kenlm
    from foreword.text.remote import is_address

    if is_address(name):
        return _is_model_address(name)
    path = Path(name)
    return (path / "model.json").is_file() or (path.is_file() and (looks_like_kenlm(path) or looks_like_arpa(path)))


def _is_model_address(address: str) -> bool:
    """Return whether an address is that of a model: by its name, or because a ``model.json`` is in the folder there."""
    from foreword.text.compression import without_suffix
    from foreword.text.files import find_files

    if without_suffix(address).endswith((".arpa", ".bin", ".binary", ".klm")):
        return True
    try:
        return not address.startswith(DOWNLOADED) and bool(find_files(f"{address.rstrip('/')}/model.json"))
    except ForewordError:
        return False


def measure_rivals(
    paths: list[str], texts: list[str], how: EvaluationReading, scoring: ScoringOptions, meter: Meter | None
) -> Together:
    """Measure several language models on one text."""
    from foreword.cli.models import load_able
    from foreword.cli.texts import blocks_in
    from foreword.pipeline.together import measure_together
    from foreword.tokens.corpus import Corpus

    if scoring.kind is not None:
        raise typer.BadParameter("is for one model alone", param_hint=f"'--{scoring.kind}'")
    if not texts:
        raise typer.BadParameter(f"name a text to measure {paths[0]} on", param_hint="'TEXT'")
    if len(set(paths)) < len(paths):
        raise InputError(f"{max(paths, key=paths.count)} is named twice: expected different models")
    models = {path: load_able(path, "score") for path in paths}
    corpora = {}
    for path, model in models.items():
        read = Corpus.from_blocks(blocks_in(texts, how.reading(), meter), model.tokenizer, threads=how.threads)
        corpora[path] = read.joined() if how.carry else read
    return measure_together(models, corpora)


def print_together(together: Together, output: OutputOptions) -> None:
    """Print the models, best first, and how far the first is ahead."""
    from foreword.cli.printing import plain_table, print_message, print_table, write_json
    from foreword.picture.picture import readable
    from foreword.picture.report_tables import interval_in_words

    if output.as_json:
        write_json(together.to_json())
        return
    numbers = ("perplexity", "95 % interval", "bits per byte", "unknown", "tokens", "vocabulary")
    table = plain_table("model", *numbers, numbers=numbers)
    for name, found in together.measures.items():
        interval = "–" if together.intervals is None else interval_in_words(together.intervals[name])
        table.add_row(
            name, readable(found.perplexity), interval, readable(found.bits_per_byte),
            f"{found.oov / found.tokens:.2%}", f"{found.tokens:,}", f"{together.vocabularies[name]:,}",
        )  # fmt: skip
    print_table(table)
    if not output.quiet:
        print_message(_remark(together))


def _remark(together: Together) -> str:
    """Say what can be compared, and how sure the order is."""
    best, *others = together.measures
    if together.by == "bits_per_byte":
        return "the models cut text into different tokens: compare bits per byte, not perplexities"
    words = "the models know the same words"
    if together.normalised:
        words = "the models know different words: each is measured over the words that any of them knows"
    if together.lead is None or not together.lead[1] < float("inf"):
        return words
    low, high = (100 * (1 - 1 / edge) for edge in together.lead)
    sure = "" if low > 0 else ", which may be chance"
    return f"{words}; {best} is {low:.1f} to {high:.1f} % below {others[0]} (95 % interval){sure}"
