"""English to Dutch by an encoder and decoder, with and without attention, and by one network that reads, then writes.

    python recipes/dutch.py --data FOLDER --out FOLDER                  every row, on a GPU
    python recipes/dutch.py --data FOLDER --rows attention --layers 3   some of them, and other settings
    python recipes/dutch.py --data FOLDER --out FOLDER --rows ensemble --members A.model B.model
    python recipes/dutch.py --take FILE FILE                            rows of another machine: docs/results/dutch.json
    python recipes/dutch.py --data FOLDER --out FOLDER --small          a quarter of the units and six epochs, for a CPU
    python recipes/dutch.py --data FOLDER --tiny                        a few hundred pairs on a CPU: does it run?

FOLDER has train.tsv.xz, valid.tsv.xz and test.tsv.xz, English and Dutch with a tab between: sentences of Tatoeba,
divided so that no English sentence is in two parts. One BPE for both languages, learnt from the training part. The
validation part chooses the epoch and the search; the test part is translated once by each search and measured as
sacreBLEU does, cased, one reference per pair, with 95 % intervals. The row ``ensemble`` trains nothing: it is the mean
of the probabilities of models that other runs of this recipe saved, with other seeds. A row that is in the folder
already is not run again, and one that was stopped resumes from its checkpoint.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from multi30k import SEARCHES, Texts, best_search, first, learn, searched, searched_by, tell

from foreword import BPETokenizer, Seq2Seq, TextTranslator, load, save
from foreword.lessons.claims.results import provenance, write_result
from foreword.measures.translation import bleu_interval, chrf_interval
from foreword.nn.dropout import NO_DROPOUT
from foreword.picture.heat import attention
from foreword.picture.picture import write_standalone
from foreword.pipeline.translator import read_table_of_pairs
from foreword.storage.checkpoint import Checkpoint

ROWS: dict[str, dict[str, Any]] = {
    "attention": {"encoder": 1024},
    "no-attention": {"encoder": 1024, "attention": "none"},
    "one-network": {"attention": "none", "one_network": True},
}
SETTINGS: dict[str, Any] = {
    "units": 512, "words": 512, "layers": 2, "attention": "general", "dropout": 0.3, "smoothing": 0.1,
    "epochs": 40, "every": 4, "batch": 1024, "rate": 1e-3,
}  # fmt: skip
SMALL: dict[str, Any] = {
    "units": 128, "words": 128, "layers": 1, "dropout": 0.1, "epochs": 6, "every": 6, "batch": 1000, "rate": 2e-3,
    "seconds": 0.0,
}  # fmt: skip
TINY: dict[str, Any] = {"units": 64, "words": 64, "epochs": 2, "batch": 1000}
PIECES, SMALL_PIECES = 8000, 3000
RESULT = Path(__file__).parents[1] / "docs" / "results" / "dutch.json"
TRIED: dict[str, type] = {
    "units": int, "words": int, "encoder": int, "layers": int, "dropout": float, "smoothing": float, "epochs": int,
    "every": int, "batch": int, "rate": float, "average": float,
}  # fmt: skip
"""Settings that may be given."""
SMALL_SEARCHES = ("greedy", "beam 5, GNMT", "beam 5, GNMT, coverage")
EXAMPLE = "I have read the book."
"""Dutch puts the second verb last (Ik heb het boek gelezen): the whole sentence must be read before it is written."""

SHOWN = ("bleu_valid", "bleu", "bleu_interval", "chrf", "epochs", "seconds")
MEASURE = (
    "BLEU and chrF as sacreBLEU: cased, detokenised, 13a, one reference; 95 % intervals by the bootstrap over lines"
)


def read_parts(given: argparse.Namespace) -> list[Texts]:
    """Return the training, validation and test pairs."""
    parts = [read_table_of_pairs(given.data / f"{part}.tsv.xz") for part in ("train", "valid", "test")]
    return [first(part, size) for part, size in zip(parts, (400, 20, 20), strict=True)] if given.tiny else parts


def build(row: str, given: argparse.Namespace) -> Seq2Seq:
    """Return the network of a row."""
    settings = {**SETTINGS, "seconds": given.seconds, "seed": given.seed, **ROWS[row]}
    settings |= {name: value for name in TRIED if (value := getattr(given, name)) is not None}
    if given.small:
        settings |= SMALL | ({"encoder": 256} if "encoder" in settings else {})
    if given.tiny:
        settings |= TINY | ({"encoder": 64} if "encoder" in settings else {})
    if given.word_dropout:
        rate = settings["dropout"]
        settings["dropout"] = replace(NO_DROPOUT, words=given.word_dropout, input=rate, between=rate, output=rate)
    return Seq2Seq(**settings)


def run(row: str, given: argparse.Namespace) -> dict[str, Any]:
    """Train one row, translate both parts with every search, and measure."""
    train, valid, test = read_parts(given)
    pieces = 1000 if given.tiny else SMALL_PIECES if given.small else given.pieces
    tokenizer = BPETokenizer(pieces, prefix_space=True).fit([*train[0], *train[1]])
    translator = TextTranslator(tokenizer, tokenizer, build(row, given))
    checkpoint = None if given.out is None else Checkpoint(given.out / f"{row}.checkpoint", every=30.0)
    seconds, done = learn(translator, train, valid, checkpoint)
    tell(f"{row}: trained in {seconds:.0f} s, greedy BLEU on valid {translator.model.valid_score_:.2f}")
    names = SMALL_SEARCHES if given.small else SEARCHES
    facts = {"row": row, **provenance(given.seed, seconds, commit=given.commit), "pairs": len(train[0])}
    if given.together > 1:
        facts["runs_at_once"] = given.together
    facts |= {"pieces": pieces, "epochs": round(done / len(translator.pairs(*train).targets.ids), 1)}
    facts |= {"parameters": translator.model.parameter_count, "settings": translator.model.settings()}
    on_valid = searched(translator, valid, names)
    if given.valid_only:
        return {**facts, "bleu_valid": max(bleus(on_valid).values()), "valid": bleus(on_valid)}
    found = facts | measured(translator.translate, on_valid, searched(translator, test, names), test)
    if given.out is not None:
        save(translator, given.out / f"{row}.model")
        if translator.model.attention != "none":
            looked = translator.look(EXAMPLE)
            write_standalone(attention(looked.source, looked.target, looked.weights), given.out / "attention.svg")
    return found


def run_ensemble(given: argparse.Namespace) -> dict[str, Any]:
    """Translate by the mean of the members' probabilities, and measure."""
    _, valid, test = read_parts(given)
    members = [load(path) for path in given.members]
    translate = partial(members[0].translate, others=members[1:])
    began = time.perf_counter()
    on_valid, on_test = (searched_by(translate, part, SEARCHES) for part in (valid, test))
    facts = {"row": "ensemble", **provenance(given.seed, time.perf_counter() - began, commit=given.commit)}
    seeds = [each.model.seed for each in members]
    facts |= {
        "members": len(members),
        "seeds": seeds,
        "parameters": sum(each.model.parameter_count for each in members),
    }
    return facts | measured(translate, on_valid, on_test, test)


def measured(
    translate: Callable[..., list[str]], on_valid: dict[str, Any], on_test: dict[str, Any], test: Texts
) -> dict[str, Any]:
    """Return the measures of the search that the validation part chose, and of all others."""
    chosen = best_search(on_valid)
    said = translate(test[0], **SEARCHES[chosen])
    facts: dict[str, Any] = {"chosen": chosen}
    facts |= {"bleu": on_test[chosen]["bleu"], "bleu_interval": bleu_interval(said, test[1])}
    facts |= {"chrf": on_test[chosen]["chrf"], "chrf_interval": chrf_interval(said, test[1])}
    facts |= {"example": {"source": EXAMPLE, "said": translate([EXAMPLE], **SEARCHES[chosen])[0]}}
    return {**facts, "valid": bleus(on_valid), "test": bleus(on_test), "samples": on_test[chosen]["samples"]}


def bleus(found: dict[str, Any]) -> dict[str, float]:
    return {name: each["bleu"] for name, each in found.items()}


def write_rows(file: Path, rows: list[dict[str, Any]]) -> None:
    """Write rows, and apart from them the trials, of which only the validation part was translated."""
    facts: dict[str, Any] = {"text": "Tatoeba, English to Dutch", "measure": MEASURE}
    facts["rows"] = [row for row in rows if "bleu_valid" not in row]
    trials = [row for row in rows if "bleu_valid" in row]
    write_result(file, facts | ({"trials": trials} if trials else {}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("FOREWORD_DATA", "."), "tatoeba_nld_eng"))
    parser.add_argument("--out", type=Path, help="a folder: rows, models, checkpoints and the attention map")
    parser.add_argument("--rows", default=",".join(ROWS), help=f"some of {', '.join(ROWS)}, with commas between")
    parser.add_argument("--seconds", type=float, default=0.0, help="of training, for each row; 0: no limit")
    parser.add_argument("--pieces", type=int, default=PIECES, help=f"of the BPE ({PIECES})")
    for name, kind in TRIED.items():
        parser.add_argument(f"--{name}", type=kind, help=f"{name} of the network")
    parser.add_argument("--word-dropout", type=float, default=0.0, help="rate at which whole words are dropped")
    parser.add_argument("--valid-only", action="store_true", help="a trial: do not read the test part")
    parser.add_argument(
        "--take", type=Path, nargs="+", default=[], metavar="FILE", help="run nothing: store these rows"
    )
    parser.add_argument("--members", type=Path, nargs="+", default=[], help="saved models of the row ensemble")
    parser.add_argument("--together", type=int, default=1, metavar="N", help="runs that share the GPU; is recorded")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--commit", help="of the code, where this is no checkout")
    parser.add_argument("--small", action="store_true", help="a network and a number of epochs for a CPU")
    parser.add_argument("--tiny", action="store_true", help="a few hundred pairs and a small network")
    given = parser.parse_args()
    if unknown := [row for row in given.rows.split(",") if row not in (*ROWS, "ensemble")]:
        parser.error(f"there is no row {unknown[0]!r}: expected {', '.join(ROWS)} or ensemble")
    if given.take:
        write_rows(RESULT, [json.loads(file.read_text("utf-8")) for file in given.take])
        return
    if given.out is not None:
        given.out.mkdir(parents=True, exist_ok=True)
    rows = []
    for row in given.rows.split(","):
        file = None if given.out is None else given.out / f"{row}.json"
        if file is not None and file.exists():
            rows.append(json.loads(file.read_text("utf-8")))
            continue
        rows.append(run_ensemble(given) if row == "ensemble" else run(row, given))
        if file is not None:
            write_result(file, rows[-1])
        tell(f"{row}: { ({name: rows[-1][name] for name in SHOWN if name in rows[-1]}) }")
    if given.out is not None:
        write_rows(given.out / "dutch.json", rows)


if __name__ == "__main__":
    main()
