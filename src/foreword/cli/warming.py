"""Commands on a small made-up text that together use every kernel: what ``foreword warm`` runs.

The kernels that a command needs, and the types of their arguments, are found by running it. A kernel that changes needs
nothing here; a new command, or a new way through one, needs a line. `tests/cli/test_warm.py` runs the main commands
afterwards and fails where one of them still compiles.
"""

from __future__ import annotations

import json
import os
import shlex
import sys
import warnings
import wave
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from foreword.errors import ForewordError, MissingExtraError

CHAINS: dict[str, tuple[str, ...]] = {
    "n-grams": (
        "train ngram text.txt -o ngram --set order=3",
        "score ngram text.txt",
        "score ngram rows.jsonl --json",
        "evaluate ngram text.txt",
        "generate ngram --max-tokens 5",
        "convert ngram ngram.arpa",
        "score ngram.arpa text.txt",
        "convert ngram.arpa from-arpa",
        "convert ngram.arpa probing.bin --binary probing",
        "score probing.bin text.txt",
        "convert ngram.arpa trie.bin --binary trie",
        "score trie.bin text.txt",
        "train ngram text.txt -o trie --set order=3 --set prune=[0,0,1] --set layout=trie --set quantize=true",
        "score trie text.txt",
        "train ngram text.txt -o pairs --set order=2 --set smoothing=witten-bell",
        "train unigram text.txt -o unigram",
        "score unigram text.txt",
        "train ngram many.txt -o large --set order=3",
        "score large many.txt",
        "train ngram text.txt -o small --set order=3 --memory 64M",
        "filter ngram rows.jsonl kept.jsonl --keep-percentile 50 --with-scores",
        "filter rows.jsonl long.jsonl --keep 'words>=3 and duplicate_lines<0.9'",
    ),
    "other networks": (
        "train bengio text.txt -o bengio --set epochs=1 --set hidden=16 --set embedding=16",
        "score bengio text.txt",
        "train transformer text.txt -o transformer --set epochs=1 --set units=16 --set layers=1",
        "score transformer text.txt",
        "translate train source.txt target.txt -o translator --set units=16 --set words=16 --set epochs=1",
        "translate predict translator source.txt",
        "speech train said.tsv -o speech --set units=16 --set epochs=1",
        "speech evaluate speech said.tsv",
    ),
    "tokenizers": (
        "tokenize train text.txt -o bpe --vocab 300",
        "tokenize encode bpe text.txt",
        "tokenize train text.txt -o characters.json --kind bpe-characters --vocab 60",
        "tokenize encode characters.json text.txt --tokens",
        "tokenize train text.txt -o word --kind word --min-count 2",
        "tokenize encode word text.txt",
        "tokenize train text.txt -o split --kind word --set split=punctuation",
        "tokenize encode split text.txt",
        "tokenize train text.txt -o character --kind character",
        "tokenize encode character text.txt",
        "tokenize train text.txt -o byte --kind byte",
        "tokenize encode byte text.txt",
        "train ngram text.txt -o bpe-ngram --tokenizer bpe --set order=3",
        "score bpe-ngram text.txt",
        "tokenize train many.txt -o large --vocab 1000",
        "tokenize encode large many.txt",
        "tokenize train text.txt -o limited --vocab 300 --memory 64M",
    ),
    "indexes": (
        "index build text.txt -o runs",
        "index build text.txt -o bounded --memory 64M",
        "index build text.txt -o compressed --compressed",
        "index count compressed 'the cat'",
        "index count runs 'the cat'",
        "index find runs 'the cat'",
        "index context runs 'the cat'",
        "index spans runs 'the cat house'",
        "train infini-gram text.txt -o unbounded",
        "score unbounded text.txt",
        "generate unbounded --max-tokens 5",
    ),
    "hidden Markov models": (
        "train hmm text.txt -o hmm --set states=4 --set iterations=2",
        "score hmm text.txt",
        "generate hmm --max-tokens 5",
        "train hmm text.txt -o single --set states=4 --set iterations=2 --set dtype=float32",
        "score single text.txt",
        "compare text.txt --models unigram,bigram,5-gram,hmm --report report.html",
    ),
    "search": (
        "search index many.txt -o large",
        "search index text.txt -o index",
        "search query index 'cat house'",
        "search query index 'cat house' --explain",
        "cloud text.txt -o cloud.svg",
    ),
    "sentencepiece": ("tokenize encode pieces.model text.txt",),
    "taggers": (
        "tag train tree.conllu -o hmm --kind hmm",
        "tag predict hmm text.txt",
        "tag train tree.conllu -o features --kind features",
        "tag predict features text.txt",
        "tag evaluate features tree.conllu",
    ),
    "neural taggers and classifiers": (
        "tag train tree.conllu -o bilstm --kind bilstm --set units=16 --set epochs=1",
        "tag predict bilstm text.txt",
        "classify train labels.tsv -o classifier --kind lstm --set units=16 --set epochs=1",
        "classify predict classifier text.txt",
    ),
    "recurrent networks": (
        "train lstm text.txt -o lstm --set epochs=1 --set hidden=16 --set embedding=16",
        "train rnn text.txt -o rnn --set epochs=1 --set hidden=16 --set embedding=16",
        "train gru text.txt -o gru --set epochs=1 --set hidden=16 --set embedding=16",
        "train lstm text.txt -o wide --set epochs=1 --set hidden=16 --set embedding=16 --set dropout.recurrent=0.2",
        "evaluate lstm text.txt",
        "score lstm text.txt",
        "score rnn text.txt",
        "score gru text.txt",
        "generate lstm --max-tokens 5",
        "generate lstm --max-tokens 5 -n 20",
        "generate gru --max-tokens 5",
    ),
    "word vectors": (
        "train word2vec text.txt -o skip-gram --set epochs=1 --set dimensions=16",
        "train word2vec text.txt -o softmax --set epochs=1 --set dimensions=16 --set loss=softmax --set window=fixed",
        "train word2vec text.txt -o cbow --set epochs=1 --set dimensions=16 --set model=cbow",
        "train fasttext text.txt -o subwords --set epochs=1 --set dimensions=16 --set buckets=1000",
        "train glove text.txt -o glove --set epochs=1 --set dimensions=16",
        "train glove many.txt -o large --min-count 1 --set epochs=1 --set dimensions=16",
        "nearest skip-gram cat",
        "nearest subwords cat",
        "nearest subwords catlike",
        "analogy skip-gram cat dog house",
        "evaluate skip-gram questions.txt",
        "convert skip-gram vectors.vec",
        "convert skip-gram vectors.bin",
        "convert vectors.vec stored --store int8",
        "nearest stored cat",
        "nearest vectors.bin cat",
    ),
    "classifiers": (
        "classify train many.tsv -o large",
        "classify train labels.tsv -o nb-logistic",
        "classify predict nb-logistic text.txt",
        "classify explain nb-logistic 'the cat sat'",
        "classify train labels.tsv -o bayes --kind naive-bayes",
        "classify predict bayes text.txt",
        "classify train labels.tsv -o logistic --kind logistic --calibrate",
        "classify predict logistic text.txt",
        "classify train labels.tsv -o fasttext --kind fasttext --set epochs=1 --set buckets=1000 --set word_ngrams=2",
        "classify train many.tsv -o large-fasttext --kind fasttext --set epochs=1 --set buckets=1000",
        "classify predict fasttext text.txt",
        "convert fasttext fasttext.ftz",
        "classify predict fasttext.ftz text.txt",
        "filter fasttext rows.jsonl good.jsonl --keep 'p(good)>0.1' --clean ccnet",
        "filter fasttext rows.jsonl open.jsonl --keep 'probability>0.1' --clean openlid",
    ),
}
"""Commands by what they use. Processes begin at both ends: neighbours have kernels in common, which a process compiles
once, and the long ones come first."""

WORDS = ["the", "cat", "dog", "house", "sat", "on", "mat", "and", "Über", "naïve", "don't", "2026", "log", "a", ","]
QUIET_SETTINGS = {"OMP_NUM_THREADS": "1"}


def run_chain(name: str) -> list[str]:
    """Run one chain of commands in a temporary folder; return those that failed, with their errors."""
    os.environ |= QUIET_SETTINGS
    failed = []
    with _temporary_folder(), Path(os.devnull).open("w") as nowhere, redirect_stdout(nowhere), redirect_stderr(nowhere):
        write_sample()
        for command in CHAINS[name]:
            try:
                _call(shlex.split(command))
            except MissingExtraError:
                continue  # its kernels cannot be used here either
            except (ForewordError, SystemExit, Exception) as error:
                failed.append(f"foreword {command}: {error!r}")
    return failed


def _call(words: list[str]) -> None:
    """Run a command within this process."""
    from foreword.cli import app

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of networks about texts this small
        app(["--quiet", "--debug", *words], prog_name="foreword", standalone_mode=False)


@contextmanager
def _temporary_folder() -> Iterator[None]:
    before = Path.cwd()
    with TemporaryDirectory(prefix="foreword-warm-") as folder:
        os.chdir(folder)
        try:
            yield
        finally:
            os.chdir(before)


def write_sample(lines: int = 120) -> None:
    """Write small files of every form that the commands read into the current folder."""
    random = Random(0)
    sentences = [random.choices(WORDS, k=random.randint(4, 12)) for _ in range(lines)]
    texts = [" ".join(sentence) for sentence in sentences]
    many = [" ".join(f"word{at * 10 + word}" for word in range(10)) for at in range(2000)]  # so that tables grow
    files = {
        "text.txt": texts,
        "many.txt": many,
        "many.tsv": [f"{('good', 'bad')[at % 2]}\t{text}" for at, text in enumerate(many)],
        "source.txt": texts,
        "target.txt": [" ".join(sentence[::-1]) for sentence in sentences],
        "rows.jsonl": [json.dumps({"text": text}) for text in texts],
        "labels.tsv": [f"{'good' if 'cat' in sentence else 'bad'}\t{' '.join(sentence)}" for sentence in sentences],
        "questions.txt": [": capital", "cat dog house mat", "the a sat on"],
        "said.tsv": ["said.wav\tone two"] * 2,
        "tree.conllu": [_treebank_sentence(sentence) for sentence in sentences],
    }
    for name, rows in files.items():
        Path(name).write_text("\n".join(rows) + "\n", encoding="utf-8")
    _write_pieces("pieces.model")
    with wave.open("said.wav", "wb") as sound:
        sound.setparams((1, 2, 8000, 0, "NONE", ""))
        sound.writeframes(random.randbytes(8000))


def _write_pieces(path: str) -> None:
    """Write a sentencepiece model with a character map, by hand: training one would compile what few commands need."""
    import numpy as np

    from foreword.tokens.kernels_normalise import UNUSED_UNIT
    from foreword.tokens.sentencepiece_file import (
        CONTROL,
        NORMAL,
        UNKNOWN_PIECE,
        Normalisation,
        PieceModel,
        write_model,
    )

    units = np.full(256, UNUSED_UNIT, "<u4")  # a trie of one key, the tab, which becomes a blank: `character_map.py`
    units[0], units[16 ^ 9], units[16 ^ 9 ^ 1] = 16 << 10, 9 | 1 << 8 | 1 << 10, 1 << 31
    map_ = np.array([units.nbytes], "<u4").tobytes() + units.tobytes() + b" \0"
    roles = {"<unk>": UNKNOWN_PIECE, "<s>": CONTROL, "</s>": CONTROL}
    pieces = [*roles, *(f"▁{word}" for word in WORDS), "▁", *sorted(set("".join(WORDS)))]
    pieces = list(dict.fromkeys(pieces))
    types = np.array([roles.get(piece, NORMAL) for piece in pieces], np.uint8)
    scores = -np.arange(len(pieces), dtype=np.float32)
    write_model(PieceModel(tuple(pieces), scores, types, normalisation=Normalisation(map_)), path)


def _treebank_sentence(words: list[str]) -> str:
    kinds = [("NOUN", "VERB", "DET")[len(word) % 3] for word in words]
    rows = enumerate(zip(words, kinds, strict=True), start=1)
    return "\n".join(f"{at}\t{word}\t_\t{kind}\t{kind}\t_\t0\troot\t_\t_" for at, (word, kind) in rows) + "\n"


if __name__ == "__main__":
    sys.exit("\n".join(run_chain(sys.argv[1])) or 0)
