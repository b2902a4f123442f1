"""What an ∞-gram model adds to a 5-gram model and to a network, on 1 to 16 million words.

    python recipes/infinigram.py --data FOLDER                       writes docs/results/infinigram.json and tables
    python recipes/infinigram.py --data FOLDER --logprobs FOLDER     with networks that were scored elsewhere
    python recipes/infinigram.py --words 20000 --epochs 1 --dry      whether it runs

Weights of mixtures are learnt by EM on the valid part, once for all tokens and once for each length that the ∞-gram
model matches; the test part is scored once. enwiki has no parts: of every hundred lines the last is test, the one
before it valid, and words that occur fewer than five times are unknown. On the Penn Treebank an LSTM that learns on a
CPU (recipes/ptb_cpu.py) is mixed in too, and drafts from the index of the training text are counted while it writes.

The folder of --logprobs has ROW.valid.npy and ROW.test.npy, the log-probability of every word and every end of a line,
as recipes/ptb_ladder.py leaves them for the Penn Treebank; those of WikiText-2 are in a folder ``wikitext-2`` within
it, as ``recipes/awd_lstm.py --text wikitext-2 --logprobs FOLDER/wikitext-2`` writes them.
"""

from __future__ import annotations

import argparse
import math
import os
import re
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from awd_lstm import read_words
from ptb_cpu import model as lstm

from foreword import Corpus, InfiniGramLM, NgramLM, Vocab, WordTokenizer
from foreword.arrays import Doubles, Logs, Longs
from foreword.decode import Acceptance, generate
from foreword.infinigram.draft import IndexDrafter
from foreword.lessons.claims.results import provenance, write_result
from foreword.mix.combine import NEAR_ENOUGH, weight_steps
from foreword.mix.matched import EDGES, ENOUGH
from foreword.text.datasets import find
from foreword.text.sources import read_documents

DOCS = Path(__file__).parents[1] / "docs"
Parts = dict[str, Corpus]
Scores = dict[str, Logs]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("FOREWORD_DATA", ".")))
    parser.add_argument("--logprobs", type=Path, help="folder with ROW.valid.npy and ROW.test.npy of networks")
    parser.add_argument("--words", type=int, help="read only the first so many words of each part")
    parser.add_argument("--epochs", type=int, default=8, help="of the LSTM; 0 leaves it out")
    parser.add_argument("--dry", action="store_true", help="write nothing")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    began, rows, drafts = time.perf_counter(), list[dict[str, Any]](), list[dict[str, Any]]()
    for text in ("ptb", "wikitext-2", "enwiki"):
        parts = enwiki(asked.words) if text == "enwiki" else corpora(asked.data / text, asked.words)
        networks = stored_networks(asked.logprobs, text, parts) if asked.logprobs else {}
        if text == "ptb" and asked.epochs:
            own, drafts = penn_network(parts, asked.epochs)
            networks |= own
        rows += measured(text, parts, networks)
    found = {"measure": "perplexity, every word and every end of a line counted", "rows": rows, "drafts": drafts}
    if not asked.dry:
        write_result(DOCS / "results" / "infinigram.json", found | provenance(0, time.perf_counter() - began))
        page = (DOCS / "infinigram.md").read_text(encoding="utf-8")
        new = f"<!-- measured -->\n\n{table(rows, drafts)}\n<!-- end -->"
        (DOCS / "infinigram.md").write_text(re.sub("<!-- measured -->.*<!-- end -->", new, page, flags=re.S), "utf-8")
    sys.stdout.write(table(rows, drafts))


def corpora(folder: Path, words: int | None) -> Parts:
    """Read the parts of the Penn Treebank or WikiText-2, a document a line, blank lines included."""
    read = {part: read_words(folder, part)[:words] for part in ("train", "valid", "test")}
    vocab = Vocab(sorted({"<unk>", "</s>", *read["train"]}))
    ids = {part: vocab.ids(tokens) for part, tokens in read.items()}
    ends = {part: np.flatnonzero(each == vocab.end) for part, each in ids.items()}
    lines = {part: np.split(each, ends[part] + 1)[:-1] for part, each in ids.items()}
    return {part: Corpus.from_ids([line[:-1] for line in each], vocab) for part, each in lines.items()}


def enwiki(words: int | None) -> Parts:
    """Make the parts of enwiki."""
    lines = [line for line in read_documents(find("enwiki:all")) if line.strip()]
    read = {"test": lines[99::100], "valid": lines[98::100]}
    read["train"] = [line for number, line in enumerate(lines) if number % 100 < 98]
    if words is not None:
        read = {part: lines[: max(20, words // 50)] for part, lines in read.items()}
    tokenizer = WordTokenizer(min_count=5).fit(read["train"])
    return {part: Corpus.from_texts(lines, tokenizer) for part, lines in read.items()}


def stored_networks(folder: Path, text: str, parts: Parts) -> dict[str, Scores]:
    """Read the log-probabilities of networks, if there are any of this text."""
    found: dict[str, Scores] = {}
    for path in sorted((folder if text == "ptb" else folder / text).glob("*.valid.npy")):
        name = path.name.removesuffix(".valid.npy")
        if "-gram" in name:  # n-grams, and mixtures with them
            continue
        found[name] = {part: np.load(path.with_name(f"{name}.{part}.npy")) for part in ("valid", "test")}
        for part, logs in found[name].items():
            if logs.shape != parts[part].ids.shape:
                sys.exit(f"{name}.{part}.npy has {logs.shape}: expected one number for each of {len(parts[part].ids)}")
    return found


def measured(text: str, parts: Parts, networks: dict[str, Scores]) -> list[dict[str, Any]]:
    """Return the rows of one text."""
    began = time.process_time()
    models: dict[str, Any] = {"5-gram": NgramLM(5), "∞-gram": InfiniGramLM()}
    held_out = {part: parts[part] for part in ("valid", "test")}
    scores: dict[str, Scores] = {}
    for name, model in models.items():
        model.fit(parts["train"])
        scores[name] = {part: model.logprobs(corpus) for part, corpus in held_out.items()}
    scores |= networks
    plain, unbounded = InfiniGramLM(0), models["∞-gram"]
    plain.index_ = unbounded.index
    matches = {part: unbounded.matches(corpus).lengths for part, corpus in held_out.items()}
    zeros = ~np.isfinite(plain.logprobs(parts["test"]))
    common = {"text": text, "train_tokens": len(parts["train"].ids), "vocabulary": len(parts["train"].vocab)}
    rows = [{**common, "model": name, "test": perplexity(each["test"])} for name, each in scores.items()]
    rows[1] |= {"unsmoothed_zeros": float(zeros.mean()), "matched": float(matches["test"].mean())}
    for names in (("5-gram",), *((name,) for name in networks), *(("5-gram", name) for name in networks)):
        if len(names) > 1:
            mixed, weights = mix([scores[name] for name in names])
            rows.append({**common, "model": " + ".join(names), "test": perplexity(mixed), "weights": weights})
        those = [scores[name] for name in (*names, "∞-gram")]
        mixed, weights = mix(those)
        by_length, _ = mix(those, matches)
        title = " + ".join((*names, "∞-gram"))
        rows.append({**common, "model": title, "test": perplexity(mixed), "weights": weights})
        rows.append({**common, "model": f"{title}, by matched length", "test": perplexity(by_length)})
    say(f"{text}: {time.process_time() - began:.0f} s of CPU time")
    return rows


def mix(models: list[Scores], lengths: dict[str, Longs] | None = None) -> tuple[Logs, list[float]]:
    """Return the log-probabilities of test under the weights that valid asks for, and the weights of all tokens."""
    logs = {part: np.stack([np.asarray(each[part], np.float64) for each in models]) for part in ("valid", "test")}
    overall = learnt(logs["valid"])
    weights = np.tile(overall, (len(EDGES) + 1, 1))
    bins = {part: np.searchsorted(EDGES, lengths[part], side="right") if lengths else np.zeros(logs[part].shape[1], int)
            for part in logs}  # fmt: skip
    for bin in np.flatnonzero(np.bincount(bins["valid"]) >= ENOUGH).tolist() if lengths else []:
        weights[bin] = learnt(logs["valid"][:, bins["valid"] == bin])
    mixed: Logs = np.logaddexp.reduce(np.log(weights[bins["test"]].T) + logs["test"], axis=0)
    return mixed, [round(float(weight), 3) for weight in overall]


def learnt(logs: Doubles) -> Doubles:
    """Return the weights of a mixture by EM."""
    for step in weight_steps(logs):
        if step.gain_left < NEAR_ENOUGH:
            break
    return step.weights


def penn_network(parts: Parts, epochs: int) -> tuple[dict[str, Scores], list[dict[str, Any]]]:
    """Train the LSTM, and return what it gives each token, and how long its drafts are."""
    vocab = parts["train"].vocab
    whole = {part: Corpus.from_ids([corpus.ids[:-1]], vocab) for part, corpus in parts.items()}
    network, told = lstm(epochs, 256, 0), time.perf_counter()
    for step in network.train(whole["train"], valid=whole["valid"]):
        if time.perf_counter() - told > 30:
            told = time.perf_counter()
            say(f"LSTM: {step.done / step.total:.0%}")
    scores = {part: network.logprobs(whole[part]) for part in ("valid", "test")}
    drafts = []
    prompts = [parts["test"].ids[begin : begin + 20].tolist() for begin in parts["test"].offsets[:50].tolist()]
    drafters = {"the text so far": None, "and the training text": InfiniGramLM(0).fit(parts["train"]).index}
    for temperature in (0.0, 1.0):
        for source, index in drafters.items():
            counted = Acceptance()
            for seed, prompt in enumerate(prompts):
                settings: dict[str, Any] = {"max_tokens": 60, "temperature": temperature, "seed": seed}
                for _ in generate(network, prompt, drafter=IndexDrafter(index), acceptance=counted, **settings):
                    pass
            drafts.append({"drafts": source, "temperature": temperature, "acceptance_length": counted.length})
    return {f"LSTM of 256 units, epochs: {epochs}": scores}, drafts


def perplexity(logs: Logs) -> float:
    return math.exp(-float(np.asarray(logs, np.float64).mean()))


def table(rows: list[dict[str, Any]], drafts: list[dict[str, Any]]) -> str:
    """Return the tables of the page."""
    texts = list(dict.fromkeys(row["text"] for row in rows))
    sizes = {row["text"]: row["train_tokens"] for row in rows}
    names = list(dict.fromkeys(row["model"] for row in rows))
    tests = {(row["text"], row["model"]): f"{row['test']:.1f}" for row in rows}
    lines = ["| test perplexity | " + " | ".join(f"{text}, {sizes[text] / 1e6:.1f} M tokens" for text in texts) + " |"]
    lines += ["|" + "---|" * (len(texts) + 1)]
    lines += [f"| {name} | " + " | ".join(tests.get((text, name), "–") for text in texts) + " |" for name in names]
    of = {row["text"]: row for row in rows if "matched" in row}
    matched = " | ".join(f"{of[text]['matched']:.1f}" for text in texts)
    zeros = " | ".join(f"{of[text]['unsmoothed_zeros']:.0%}" for text in texts)
    lines += [f"| *words matched, mean* | {matched} |", f"| *zeros without smoothing* | {zeros} |"]
    if drafts:
        lines += ["", "| drafts from | temperature | tokens per step of the LSTM |", "|---|---|---|"]
    lines += [f"| {row['drafts']} | {row['temperature']:g} | {row['acceptance_length']:.2f} |" for row in drafts]
    return "\n".join(lines) + "\n"


def say(line: str) -> None:
    sys.stderr.write(line + "\n")
    sys.stderr.flush()


if __name__ == "__main__":
    main()
