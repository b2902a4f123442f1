"""Characters of Shakespeare by a recurrent network: bits per character, and what it writes.

    python recipes/shakespeare.py --data input.txt --cell gru --seconds 300

The text is the 1,115,394 bytes known as tiny Shakespeare. The first nine tenths are learnt from, the next twentieth
chooses the epoch, and the last twentieth is the test, read from end to end.
"""

from __future__ import annotations

import argparse
import json
import lzma
import math
import os
import sys
import time
from dataclasses import replace
from pathlib import Path

import torch

from foreword.decode import generate
from foreword.neural.recurrent import MODEST, RecurrentLM
from foreword.nn.dropout import Dropout
from foreword.tokens.characters import CharacterTokenizer
from foreword.tokens.corpus import Corpus

TEMPERATURES = (0.5, 0.8, 1.0)


def read(path: Path) -> str:
    return path.read_text() if path.suffix != ".xz" else lzma.decompress(path.read_bytes()).decode()


def split(text: str) -> dict[str, str]:
    first, second = len(text) * 18 // 20, len(text) * 19 // 20
    return {"train": text[:first], "valid": text[first:second], "test": text[second:]}


def learner(cell: str, units: int, layers: int, seconds: float, epochs: int, seed: int) -> RecurrentLM:
    training = replace(
        MODEST, epochs=epochs, batch=32, steps=100, rate=4e-3, last_rate=0.02, clip=1.0, seconds=seconds, shuffle=False
    )
    dropout = Dropout(words=0.0, input=0.0, between=0.2, output=0.2, recurrent=0.0)
    return RecurrentLM(cell, units, units, layers, tied=False, dropout=dropout, training=training, seed=seed)


def main() -> None:
    usual = Path(os.environ.get("FOREWORD_DATA", "."), "tinyshakespeare", "input.txt.xz")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=usual)
    parser.add_argument("--cell", default="gru")
    parser.add_argument("--units", type=int, default=256)
    parser.add_argument("--layers", type=int, default=1)
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--seconds", type=float, default=300.0, help="of training, at most")
    parser.add_argument("--characters", type=int, help="read only the first N")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    texts = split(read(given.data)[: given.characters])
    tokenizer = CharacterTokenizer().fit([texts["train"]])
    data = {name: Corpus.from_texts([text], tokenizer) for name, text in texts.items()}
    model = learner(given.cell, given.units, given.layers, given.seconds, given.epochs, given.seed)
    began, worked, told = time.perf_counter(), time.process_time(), 0.0
    for step in model.train(data["train"], valid=data["valid"]):
        seconds = time.perf_counter() - began
        if seconds - told > 10:
            told = seconds
            valid = -model.valid_score_ / math.log(2)
            sys.stderr.write(
                f"{seconds:5.0f} s  {step.done:,} characters  loss {step.loss:.3f}  valid {valid:.3f} bits\n"
            )
    facts = {"cell": given.cell, "parameters": model.parameter_count, "characters": step.done}
    facts |= {"seconds": time.perf_counter() - began, "cpu_seconds": time.process_time() - worked}
    facts |= {"bits_per_character": {name: -model.score(data[name]) / math.log(2) for name in ("valid", "test")}}
    sys.stdout.write(json.dumps(facts) + "\n")
    for temperature in TEMPERATURES:
        ids = generate(model, tokenizer.encode("\n").tolist(), max_tokens=400, temperature=temperature, seed=given.seed)
        sys.stdout.write(f"\n--- temperature {temperature}\n{tokenizer.decode(list(ids))}\n")


if __name__ == "__main__":
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "2")))
    main()
