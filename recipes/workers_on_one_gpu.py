"""Two workers that share every batch, on one device and without Ray, compared with one worker.

    python recipes/workers_on_one_gpu.py --data FOLDER
    python recipes/workers_on_one_gpu.py --data FOLDER --words 3000 --device cpu

The folder holds the Penn Treebank as recipes/awd_lstm.py reads it. Two processes meet by gloo, since nccl wants a GPU
for each; with CUDA the same calls are made by nccl too, in a group of one that reads the first half of each batch.
Printed are valid perplexity and the sum of the weights, which two workers have in common to the last bit.
"""

from __future__ import annotations

import argparse
import math
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
import torch.multiprocessing as processes
from awd_lstm import corpora
from torch import distributed

from foreword.cluster.training import TorchGroup
from foreword.neural.recurrent import RecurrentLM
from foreword.tokens.corpus import Corpus
from foreword.training.workers import SINGLE_WORKER, WorkerGroup

spawn: Any = processes.spawn  # type: ignore[attr-defined, unused-ignore]  # torch gives it no types

PORT, BATCH = 29_511, 40


def work(rank: int, size: int, backend: str, device: str, data: dict[str, Corpus]) -> None:
    address = f"tcp://127.0.0.1:{PORT + size}"
    distributed.init_process_group(backend, init_method=address, rank=rank, world_size=size)
    group = TorchGroup(device)
    group.size = 2
    train(f"{backend}, worker {rank + 1} of {size}", data, device, group)
    distributed.destroy_process_group()


def train(name: str, data: dict[str, Corpus], device: str, group: WorkerGroup = SINGLE_WORKER) -> None:
    training = replace(RecurrentLM.TRAINING, epochs=2, batch=BATCH)
    model = RecurrentLM("lstm", 200, 200, 1, training=training, device=device)
    for _ in model.train(data["train"], valid=data["valid"], group=group):
        pass
    total = sum(float(part.double().sum()) for part in model.weights_.values())
    sys.stdout.write(f"{name}: valid {math.exp(-model.valid_score_):.2f}, sum of weights {total!r}\n")
    sys.stdout.flush()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="the folder")
    parser.add_argument("--words", type=int, help="read only the first N words of each split")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    given = parser.parse_args()
    data = corpora(given.data)
    if given.words:
        data = {
            split: Corpus.from_ids([whole.ids[: given.words].tolist()], whole.vocab) for split, whole in data.items()
        }
    if given.device == "cuda":
        spawn(work, (1, "nccl", "cuda", data), nprocs=1)
    spawn(work, (2, "gloo", given.device, data), nprocs=2)
    train("alone", data, given.device)


if __name__ == "__main__":
    main()
