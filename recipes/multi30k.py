"""Multi30k, English to German and to French: what attention is worth, and what each part of the search is.

    python recipes/multi30k.py --data FOLDER --out FOLDER            every row; about seven minutes on one GPU
    python recipes/multi30k.py --data FOLDER --rows de,de-none       some of them
    python recipes/multi30k.py --data FOLDER --tiny                  a few hundred pairs on a CPU: does it run?

Text as written, in upper and lower case; one BPE for both languages, learnt from the training part alone. The held-out
part (val) chooses the epoch, by the BLEU of greedy translations. test_2016_flickr is translated once by each way to
search, and measured as sacreBLEU does: cased, detokenised, 13a. Rows:

    de           English to German, general attention, the decoder reads the truth in training
    de-none      the same network without attention
    de-sampling  de with scheduled sampling
    fr           English to French, as de
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
import traceback
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from foreword import BPETokenizer, Seq2Seq, TextTranslator, save
from foreword.lessons.claims.results import provenance
from foreword.pipeline.translator import measure_translations, read_pairs
from foreword.storage.checkpoint import Checkpoint
from foreword.text.datasets import find

ROWS: dict[str, tuple[str, dict[str, Any]]] = {
    "de": ("de", {}),
    "de-none": ("de", {"attention": "none"}),
    "de-sampling": ("de", {"sampling": "linear", "truth": 0.75}),
    "fr": ("fr", {}),
}
SETTINGS: dict[str, Any] = {
    "units": 512, "words": 512, "encoder": 1024, "attention": "general", "dropout": 0.4, "smoothing": 0.1,
    "epochs": 40, "every": 4, "batch": 2048, "rate": 1e-3,
}  # fmt: skip
TINY: dict[str, Any] = {"units": 64, "words": 64, "encoder": 64, "epochs": 2, "batch": 1000}

SEARCHES: dict[str, dict[str, Any]] = {
    "greedy": {"width": 1},
    "beam 5": {"width": 5, "length_penalty": 0.0},
    "beam 5, mean": {"width": 5, "length_penalty": 1.0},
    "beam 5, GNMT": {"width": 5, "length_penalty": 1.0, "normalisation": "gnmt"},
    "beam 5, GNMT, coverage": {"width": 5, "length_penalty": 1.0, "normalisation": "gnmt", "coverage": 0.2},
    "beam 10, GNMT": {"width": 10, "length_penalty": 1.0, "normalisation": "gnmt"},
}
"""Ways to search: the same table for every row. Which one is quoted is chosen on the held-out part."""

PIECES = 8000
SHOWN = 20
"""Translations that are kept to be read."""

Texts = tuple[list[str], list[str]]


def texts(language: str, split: str) -> Texts:
    return read_pairs(find(f"multi30k:{split}.en"), find(f"multi30k:{split}.{language}"))


def first(part: Texts, size: int) -> Texts:
    return part[0][:size], part[1][:size]


def tell(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


def learn(
    translator: TextTranslator, train: Texts, valid: Texts, checkpoint: Checkpoint | None = None
) -> tuple[float, int]:
    """Train, with a line every ten seconds; return seconds, of a resumed run only since then, and target ids read."""
    began, told, done = time.perf_counter(), 0.0, 0
    for step in translator.train(*train, valid=valid, by_bleu=True, checkpoint=checkpoint):
        seconds, done = time.perf_counter() - began, step.done
        if seconds - told > 10:
            told = seconds
            tell(
                f"{seconds:6.0f} s  {step.done / step.total:4.0%}  {step.done / seconds:8.0f} target ids/s"
                f"  loss {step.loss:.3f}  valid BLEU {translator.model.valid_score_:.2f}"
            )
    return time.perf_counter() - began, done


def searched(translator: TextTranslator, part: Texts, names: Iterable[str] = SEARCHES) -> dict[str, Any]:
    """Each way to search: BLEU, chrF, how long the translations are, and the seconds it took."""
    with_coverage = translator.model.attention != "none"
    return searched_by(
        translator.translate, part, [name for name in names if with_coverage or "coverage" not in SEARCHES[name]]
    )


def searched_by(translate: Callable[..., list[str]], part: Texts, names: Iterable[str]) -> dict[str, Any]:
    """As ``searched``, by any function from texts to translations."""
    found: dict[str, Any] = {}
    for name in names:
        began = time.perf_counter()
        said = translate(part[0], **SEARCHES[name])
        seconds = time.perf_counter() - began
        found[name] = {**measure_translations(said, part[1]).to_json(), "seconds": seconds}
        found[name]["samples"] = [
            {"source": source, "said": ours, "reference": reference}
            for source, ours, reference in zip(part[0][:SHOWN], said, part[1], strict=False)
        ]
    return found


def best_search(found: dict[str, Any]) -> str:
    return max(found, key=lambda name: float(found[name]["bleu"]))


def run(row: str, given: argparse.Namespace, tokenizers: dict[str, BPETokenizer]) -> dict[str, Any]:
    language, changed = ROWS[row]
    train, valid, test = (texts(language, split) for split in ("train", "valid", "test2016"))
    settings = {**SETTINGS, "seconds": given.seconds, "seed": given.seed, **changed, **(TINY if given.tiny else {})}
    settings |= {name: json.loads(value) for name, _, value in (each.partition("=") for each in given.set)}
    if given.tiny:
        train, valid, test = (first(part, size) for part, size in ((train, 400), (valid, 20), (test, 20)))
    began = time.perf_counter()
    if language not in tokenizers:
        pieces = 1000 if given.tiny else given.pieces
        tokenizers[language] = BPETokenizer(pieces, prefix_space=True).fit([*train[0], *train[1]])
    tokenizer = tokenizers[language]
    took = time.perf_counter() - began
    tell(f"{row}: {len(train[0]):,} pairs, {len(tokenizer.vocab):,} pieces, {took:.1f} s for them")
    translator = TextTranslator(tokenizer, tokenizer, Seq2Seq(**settings))
    seconds, done = learn(translator, train, valid)
    tell(f"{row}: trained in {seconds:.0f} s, greedy BLEU on the held-out part {translator.model.valid_score_:.2f}")
    on_valid = searched(translator, valid)
    chosen = best_search(on_valid)
    on_test = searched(translator, test)
    if given.save:
        save(translator, given.save / f"{row}.model")
    facts = {"row": row, "language": language, **provenance(given.seed, seconds, commit=given.commit)}
    facts |= {"epochs": round(done / len(translator.pairs(*train).targets.ids), 1)}
    facts |= {"parameters": translator.model.parameter_count, "settings": translator.model.settings()}
    facts |= {"chosen": chosen, "bleu": on_test[chosen]["bleu"], "chrf": on_test[chosen]["chrf"]}
    return {**facts, "valid": _without_samples(on_valid), "test": on_test}


def _without_samples(found: dict[str, Any]) -> dict[str, Any]:
    return {name: {key: value for key, value in each.items() if key != "samples"} for name, each in found.items()}


def print_table(rows: list[dict[str, Any]]) -> None:
    wide = max(len(name) for name in SEARCHES)
    tell("\nBLEU on test_2016_flickr (on the held-out part)\n")
    tell(" " * wide + "".join(f"{row['row']:>18}" for row in rows))
    for name in SEARCHES:
        cells = [
            f"{row['test'][name]['bleu']:.2f} ({row['valid'][name]['bleu']:.2f})" if name in row["test"] else "–"
            for row in rows
        ]
        tell(f"{name:<{wide}}" + "".join(f"{cell:>18}" for cell in cells))
    tell(f"{'seconds':<{wide}}" + "".join(f"{row['seconds']:>18.0f}" for row in rows))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="the folder of data sets; FOREWORD_DATA where it is not given")
    parser.add_argument("--out", type=Path, help="a folder: one JSON a row")
    parser.add_argument("--save", type=Path, help="a folder for the models")
    parser.add_argument("--rows", default=",".join(ROWS), help=f"some of {', '.join(ROWS)}, with commas between")
    parser.add_argument("--seconds", type=float, default=70.0, help="of training, for each row")
    parser.add_argument("--pieces", type=int, default=PIECES, help="of the joint BPE")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--set", action="append", default=[], metavar="NAME=JSON", help="a setting of the model")
    parser.add_argument("--commit", help="of the code, where this is no checkout")
    parser.add_argument("--tiny", action="store_true", help="a few hundred pairs and a small network")
    given = parser.parse_args()
    wanted = given.rows.split(",")
    if unknown := [row for row in wanted if row not in ROWS]:
        parser.error(f"there is no row {unknown[0]!r}: expected {', '.join(ROWS)}")
    if given.data:
        os.environ["FOREWORD_DATA"] = str(given.data)
    if given.out:
        given.out.mkdir(parents=True, exist_ok=True)
    tokenizers: dict[str, BPETokenizer] = {}
    rows: list[dict[str, Any]] = []
    for row in wanted:
        try:
            facts = run(row, given, tokenizers)
        except Exception:  # a row that fails must not cost those behind it their turn
            tell(f"{row} failed:\n{traceback.format_exc()}")
            continue
        rows.append(facts)
        if given.out:  # at once, so that a row stands whatever becomes of the next
            (given.out / f"{row}.json").write_text(json.dumps(facts, ensure_ascii=False, indent=1) + "\n", "utf-8")
        told = {key: facts[key] for key in ("row", "seed", "seconds", "chosen", "bleu", "chrf")}
        sys.stdout.write(json.dumps(told) + "\n")
        sys.stdout.flush()
    print_table(rows)
    sys.exit(len(rows) < len(wanted))


if __name__ == "__main__":
    main()
