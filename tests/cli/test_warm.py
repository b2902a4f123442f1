"""``foreword warm`` compiles all that the main commands need: none of them compiles anything afterwards.

Commands here are not those that ``warm`` runs: other texts, other sizes, default settings.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from foreword.cli.warming import CHAINS, run_chain
from foreword.tokens.sentencepiece import SentencePieceTokenizer

MESSAGE = "compiling kernels for this machine"
TEXT = [
    f"line {number} of a text about {'cats' if number % 3 else 'dogs'}, which {number % 7} read"
    for number in range(200)
]

Run = Callable[..., str]


def call(folder: Path, cache: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "foreword", *words],
        cwd=folder,
        env={**os.environ, "NUMBA_CACHE_DIR": str(cache)},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Run ``foreword warm`` once; return a function that runs a command afterwards and returns what it printed."""
    folder, cache = tmp_path_factory.mktemp("work"), tmp_path_factory.mktemp("kernels")
    (folder / "text.txt").write_text("\n".join(TEXT) + "\n")
    (folder / "rows.jsonl").write_text(
        "".join(json.dumps({"id": at, "text": text}) + "\n" for at, text in enumerate(TEXT))
    )
    (folder / "labels.csv").write_text("label,text\n" + "".join(f'{"cats" in text},"{text}"\n' for text in TEXT))
    tokenizer = SentencePieceTokenizer(40, coverage=1.0, byte_fallback=False).fit(TEXT)
    tokenizer.write(folder / "other.model")
    warmed = call(folder, cache, "warm", "--json")
    assert warmed.returncode == 0, warmed.stderr
    assert json.loads(warmed.stdout)["compiled"] > 100

    def command(line: str) -> str:
        ran = call(folder, cache, *line.split())
        assert ran.returncode == 0, f"foreword {line}: {ran.stderr}"
        assert MESSAGE not in ran.stderr, f"foreword {line} compiled something after foreword warm"
        return ran.stdout

    return command


@pytest.mark.long
@pytest.mark.parametrize(
    "lines",
    [
        ["train ngram text.txt -o ngram --set order=5", "score ngram text.txt", "score ngram rows.jsonl --json",
         "evaluate ngram text.txt --json", "generate ngram --prompt line --seed 1", "convert ngram ngram.arpa",
         "score ngram.arpa text.txt", "filter ngram rows.jsonl kept.jsonl --keep-percentile 30"],
        ["tokenize train text.txt -o bpe --vocab 400", "tokenize encode bpe text.txt", "tokenize encode bpe rows.jsonl",
         "train ngram text.txt -o of-pieces --tokenizer bpe", "score of-pieces text.txt"],
        ["train word2vec text.txt -o vectors --set epochs=2", "nearest vectors line", "convert vectors vectors.vec"],
        ["train glove text.txt -o glove --set epochs=2", "nearest glove line"],
        ["train fasttext text.txt -o subwords --set epochs=2", "nearest subwords lines"],
        ["train hmm text.txt -o hmm --set states=8 --set iterations=3", "score hmm text.txt"],
        ["classify train labels.csv -o classifier", "classify predict classifier text.txt"],
        ["classify train labels.csv -o fasttext --kind fasttext", "classify predict fasttext text.txt"],
        ["train ngram text.txt -o for-kenlm --set order=4", "convert for-kenlm k.arpa",
         "convert k.arpa k.bin --binary probing", "score k.bin text.txt", "score k.bin rows.jsonl --json",
         "convert k.arpa t.bin --binary trie", "score t.bin text.txt",
         "tokenize encode other.model text.txt", "tokenize encode other.model rows.jsonl"],
        ["search index text.txt -o index", "search query index cats"],
        ["train lstm text.txt -o lstm --set epochs=1", "score lstm text.txt", "generate lstm --max-tokens 20"],
        ["compare text.txt --models unigram,bigram,5-gram,hmm --json"],
    ],
    ids=lambda lines: " ".join(lines[0].split()[:2]),
)  # fmt: skip
def test_a_command_after_warm_compiles_nothing(run: Run, lines: list[str]) -> None:
    for line in lines:
        run(line)


@pytest.mark.long
def test_a_second_warm_compiles_nothing(run: Run) -> None:
    assert json.loads(run("warm --json"))["compiled"] == 0


def test_every_command_of_a_chain_runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A command that fails is reported, and not taken for one that needs no kernels."""
    assert run_chain("sentencepiece") == run_chain("search") == []
    monkeypatch.setitem(CHAINS, "search", ("search query nowhere cat",))
    [failed] = run_chain("search")
    assert "nowhere" in failed
