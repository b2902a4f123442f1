"""Run the benchmarks: ``python -m benchmarks [NAME…] [--quick] [--json]``."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from importlib import import_module
from pathlib import Path
from typing import Protocol, cast

from benchmarks.data import check_texts
from benchmarks.progress import say
from benchmarks.report import ELSEWHERE, Row, Section, keep, section_of, section_text, stored_sections, with_older_rows
from foreword.errors import InputError

SUBJECTS = (
    "start",
    "words",
    "bpe_training",
    "bpe_encoding",
    "unigram_training",
    "unigram_encoding",
    "memory",
    "threads",
    "waiting",
    "ngram",
    "kenlm_files",
    "ctc",
    "hmm",
    "tagging",
    "crf",
    "tagger_neural",
    "translate",
    "vectorise",
    "classify",
    "logistic",
    "search",
    "infinigram",
    "infinigram_gigabyte",
    "vectors",
    "vector_quality",
    "nearest",
    "recurrent",
    "lab",
    "serve",
    "filter",
    "field_files",
    "ray",
)

ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "POLARS_MAX_THREADS": "1",
    "RAYON_NUM_THREADS": "1",
    "TOKENIZERS_PARALLELISM": "false",
}


class Subject(Protocol):
    """What each subject's file holds."""

    TITLE: str
    HOW: str

    def run(self, quick: bool) -> list[Row]: ...


def main() -> int:
    # Peers read these once, when they are imported, and that is when their subject is.
    os.environ.update(ONE_THREAD)
    options = _options()
    if options.take:
        older, taken = stored_sections(), json.loads(options.take.read_text("utf-8"))
        taken = {name: with_older_rows(section, older.get(name)) for name, section in taken.items()}
        keep(taken, (*SUBJECTS, *ELSEWHERE))
        return 0
    try:
        check_texts()
    except InputError as error:
        say(f"benchmarks: {error}")
        return 1
    measured: dict[str, Section] = {}
    for name in options.names or SUBJECTS:
        measured[name] = _measure(name, options.quick)
        if not options.quick:
            keep(measured, (*SUBJECTS, *ELSEWHERE))  # after each subject, so that an interrupted run leaves what it has
    if options.json:
        print(json.dumps(measured, indent=1, ensure_ascii=False))
    else:
        print("\n".join(section_text(section) for section in measured.values() if section["rows"]))
    return 0


def _measure(name: str, quick: bool) -> Section:
    subject = cast(Subject, import_module(f"benchmarks.{name}"))
    began = time.perf_counter()
    return section_of(subject.TITLE, subject.HOW, subject.run(quick), began)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m benchmarks", description="Measure against peers.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"what to measure: {', '.join(SUBJECTS)} (all)")
    parser.add_argument("--quick", action="store_true", help="smaller texts; docs/BENCHMARKS.md is left as it is")
    parser.add_argument(
        "--take",
        metavar="FILE",
        type=Path,
        help="put sections, or some of their rows, measured elsewhere into the document",
    )
    parser.add_argument("--json", action="store_true", help="print JSON, not tables")
    options = parser.parse_args()
    if unknown := set(options.names) - set(SUBJECTS):
        parser.error(f"no subject {', '.join(sorted(unknown))}: expected some of {', '.join(SUBJECTS)}")
    return options


if __name__ == "__main__":
    sys.exit(main())
