"""Dialogue and summarisation by the translator with attention, on generated texts (Q15): a minute on a CPU.

    python recipes/other_uses.py dialogue
    python recipes/other_uses.py summary

A question and its answer, a report and its headline are pairs of texts like any others. The pairs follow a few forms
with many words in them; those that are asked were not learnt from. A captioner would need an encoder of pictures, which
Foreword has not.
"""

from __future__ import annotations

import argparse
import json
import sys

import numpy as np
import torch

from foreword import WordTokenizer
from foreword.pipeline.translator import TextTranslator
from foreword.translate.seq2seq import Seq2Seq

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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("task", choices=TASKS)
    parser.add_argument("--lines", type=int, default=400)
    parser.add_argument("--epochs", type=int, default=20)
    given = parser.parse_args()
    torch.set_num_threads(1)
    share, said = run(given.task, given.lines, given.epochs)
    sys.stderr.write("".join(f"{line}\n" for line in said[:10]))
    sys.stdout.write(json.dumps({"task": given.task, "right": share, "asked": len(said)}) + "\n")


if __name__ == "__main__":
    main()
