"""Dialogue and summarisation by the translator with attention (Q15): a minute on a CPU.

    python recipes/other_uses.py dialogue
    python recipes/other_uses.py summary
    python recipes/other_uses.py plays --data input.txt.xz

A question and its answer, a report and its headline are pairs of texts like any others. The pairs follow a few forms
with many words in them; those that are asked were not learnt from. "plays" learns from Shakespeare: what one person
says and what the next replies, both short. New replies are scored after what they reply to, after something else, and
by their words alone. A captioner would need an encoder of pictures, which Foreword has not.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from foreword import Corpus, NgramLM, WordTokenizer, perplexity
from foreword.pipeline.translator import TextTranslator
from foreword.text.sources import read_lines
from foreword.translate.pairs import Pairs
from foreword.translate.seq2seq import Seq2Seq

MOST = 15
"""Words of a turn in a play."""

NUMBERS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
NAMES, PLACES = ("anna", "bob", "carla", "dan", "eva"), ("rome", "oslo", "paris", "madrid", "vienna", "porto")
WEATHERS, DAYS = ("rain", "snow", "sun", "fog", "wind"), ("monday", "tuesday", "friday", "sunday")
THINGS = ("cats", "dogs", "cars", "sons", "boats", "books")
ENDS = ("until late", "all day", "from noon on", "with some clouds", "says the radio")


def dialogue(random: np.random.Generator) -> str:
    name, place, weather, day = (str(random.choice(part)) for part in (NAMES, PLACES, WEATHERS, DAYS))
    number, thing = str(random.choice(NUMBERS)), str(random.choice(THINGS))
    match random.integers(3):
        case 0:
            return f"i am {name} and i have {number} {thing} | hello {name} , are {number} {thing} not too many ?"
        case 1:
            return f"hello , this is {name} from {place} | hello {name} , how is the {weather_of(place)} in {place} ?"
        case _:
            return f"is there {weather} in {place} on {day} ? | yes , on {day} there is {weather} in {place}"


def weather_of(place: str) -> str:
    """What the place is known for."""
    return WEATHERS[PLACES.index(place) % len(WEATHERS)]


def summary(random: np.random.Generator) -> str:
    place, weather, day, end = (str(random.choice(part)) for part in (PLACES, WEATHERS, DAYS, ENDS))
    forms = (
        f"on {day} there will be much {weather} in the streets of {place} {end}",
        f"people of {place} who go out on {day} will find {weather} there {end}",
        f"the forecast for {day} : {weather} {end} , first of all in {place}",
    )
    return f"{random.choice(forms)} | {weather} in {place} on {day}"


TASKS = {"dialogue": dialogue, "summary": summary}


def run(task: str, lines: int, epochs: int, seed: int = 0) -> tuple[float, list[str]]:
    """The share of new lines that are answered to the letter, and some of them."""
    random = np.random.default_rng(seed)
    known = [TASKS[task](random) for _ in range(lines)]
    new = [line for line in (TASKS[task](random) for _ in range(2000)) if line not in set(known)]
    new = list(dict.fromkeys(new))[:100]
    model = TextTranslator(
        WordTokenizer(),
        WordTokenizer(),
        Seq2Seq(64, words=48, dropout=0.1, smoothing=0.0, epochs=epochs, batch=200, rate=5e-3, seed=seed, device="cpu"),
    )
    model.fit(*([line.split(" | ")[side] for line in known] for side in (0, 1)))
    asked, wanted = ([line.split(" | ")[side] for line in new] for side in (0, 1))
    answers = model.translate(asked, width=1)
    right = [ours == theirs for ours, theirs in zip(answers, wanted, strict=True)]
    return float(np.mean(right)), [f"{one} | {other}" for one, other in zip(asked, answers, strict=True)]


class Replies(NamedTuple):
    """Perplexity of new replies after the right turn, after another and by a unigram model; what the model replies."""

    right: float
    other: float
    unigram: float
    said: list[str]


def plays(text: str, lines: int, epochs: int, seed: int = 0) -> Replies:
    """Learn to reply from ``lines`` pairs of neighbouring turns of a play, and measure on the next tenth as many."""
    turns = [" ".join(re.findall("[a-z']+", turn.partition("\n")[2].lower())) for turn in text.split("\n\n")]
    known = [pair for pair in pairwise(turns) if all(0 < len(turn.split()) <= MOST for turn in pair)]
    known = known[: lines + lines // 10]
    tokenizer = WordTokenizer(min_count=2).fit([turn for pair in known[:lines] for turn in pair])
    asked, replies = (Corpus.from_texts([pair[side] for pair in known], tokenizer) for side in (0, 1))
    settings: dict[str, Any] = {"words": 48, "dropout": 0.2, "smoothing": 0.0, "batch": 300, "rate": 5e-3}
    model = Seq2Seq(64, **settings, epochs=epochs, seed=seed, device="cpu").fit(Pairs(asked[:lines], replies[:lines]))
    new, answers = asked[lines:], replies[lines:]
    moved = Corpus.from_texts([pair[0] for pair in (*known[lines + 7 :], *known[lines : lines + 7])], tokenizer)
    said = [tokenizer.decode(ids.tolist()) for ids in model.translate(new, width=4)]
    told = [f"{pair[0]} | {ours}" for pair, ours in zip(known[lines:], said, strict=True)]
    right, other = (float(np.exp(-model.score(Pairs(each, answers)))) for each in (new, moved))
    return Replies(right, other, perplexity(NgramLM(1).fit(replies[:lines]), answers), told)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("task", choices=[*TASKS, "plays"])
    parser.add_argument("--lines", type=int, default=400)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--data", type=Path, help="the plays: a blank line between turns, each begun by a name")
    given = parser.parse_args()
    torch.set_num_threads(1)
    if given.task == "plays":
        usual = Path(os.environ.get("FOREWORD_DATA", "."), "tinyshakespeare", "input.txt.xz")
        found = plays("\n".join(read_lines(given.data or usual)), given.lines, given.epochs)
        sys.stderr.write("".join(f"{line}\n" for line in found.said[:10]))
        sys.stdout.write(
            json.dumps(
                {"task": "plays", "perplexity": found.right, "other turns": found.other, "unigram": found.unigram}
            )
            + "\n"
        )
        return
    share, said = run(given.task, given.lines, given.epochs)
    sys.stderr.write("".join(f"{line}\n" for line in said[:10]))
    sys.stdout.write(json.dumps({"task": given.task, "right": share, "asked": len(said)}) + "\n")


if __name__ == "__main__":
    main()
