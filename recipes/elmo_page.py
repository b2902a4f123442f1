"""What docs/elmo.md shows: words of two senses in Wikipedia, the two banks, and a tagger that reads with ELMo.

    python recipes/elmo_page.py --words 300000 --seeds 3

Text: enwiki2014. Its first three quarters are known: from them ELMo learns, from the same sentences Word2Vec learns
the static vectors that ELMo is compared with, and in them stand the labelled neighbours. Sentences of the last quarter
are asked. The sense of a word is that of its surroundings ("one sense per discourse", Gale, Church and Yarowsky 1992):
cue words of one sense, and none of the other, in the paragraphs around and in other sentences of its own; the model
reads the sentence alone. As many asked and known sentences of either sense, so chance is one half.

The tagger learns universal parts of speech from the first sentences of UD English-EWT and is measured on its dev part:
without an embedder, with static vectors, and with ELMo's layers, their mix learnt from the same sentences. Each seed is
one of ELMo, of Word2Vec and of the tagger. Writes docs/results/elmo.json.
"""

from __future__ import annotations

import argparse
import math
import os
import random
import re
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from foreword import BiLSTMTagger, Corpus, ELMo, Word2Vec, WordTokenizer, load, read_documents, save
from foreword.arrays import Floats
from foreword.lessons.claims.results import provenance, write_result
from foreword.protocols import Embedder
from foreword.tag.conllu import Tagged, read_conllu
from foreword.text.datasets import find
from foreword.vectors.wordvectors import StaticEmbedder

PIECES = re.compile(r"\w+|[^\w\s]")
STOPS = re.compile(r"(?<=[.!?])\s+(?=[A-Z])")
NEAR, NEIGHBOURS, MOST = 4, 5, 120
"""Paragraphs on either side that tell the sense; labelled neighbours that vote; sentences of one sense at most."""

CUES = {
    "bank": ("river creek lake stream shore water", "financial finance loans money banking investment credit"),
    "java": ("software programming code applications server web", "island indonesia jakarta sumatra indonesian"),
    "apple": ("computer software mac macintosh ipod iphone", "fruit tree trees juice orchard orchards"),
    "plant": ("species flowers leaves seeds garden genus", "power factory production reactor electricity"),
    "capital": ("city province town kingdom", "investment company market financial funds"),
    "court": ("judge appeal justice trial", "king queen palace royal emperor"),
    "spring": ("water springs creek river", "summer season winter autumn"),
    "star": ("astronomy sun planet orbit magnitude", "film actor actress movie"),
    "interest": ("bank rate loan debt payments rates", "art music science studied history"),
    "division": ("infantry army battalion brigade", "football league promoted season"),
}

BANKS = {
    "data": [
        "The data bank stores the records of every computer .", "A data bank is searched by software .",
        "The program reads its files from a data bank .", "Engineers built a data bank for the network .",
        "The computer system has a large data bank .", "Users can search the data bank on the web .",
    ],
    "manager": [
        "The bank manager approved the loan .", "A bank manager is paid by the company .",
        "The bank manager lent money to the firm .", "He worked as a bank manager in London .",
        "The bank manager checked the accounts and the credit .", "Her father was a bank manager .",
    ],
}  # fmt: skip
ANCHORS = {
    "computing": ["computer", "software", "data", "programming"],
    "finance": ["financial", "money", "investment", "credit"],
}
AGAINST = ("nothing", "static")


class Occurrence(NamedTuple):
    """A sentence of Wikipedia, where its word of two senses stands in it, and which of them it is."""

    words: list[str]
    place: int
    sense: int


# Text


def sentences(documents: Iterable[str], words: int) -> Iterator[list[str]]:
    """So many words of them, in sentences of 4 to 60."""
    left = words
    for document in documents:
        for line in STOPS.split(document):
            found = PIECES.findall(line)
            if 4 <= len(found) <= 60:
                yield found
                left -= len(found)
            if left <= 0:
                return


def occurrences(lines: Sequence[str]) -> dict[str, list[Occurrence]]:
    """Sentences that have a word of two senses once, with the sense that their surroundings tell."""
    pattern = re.compile(rf"\b({'|'.join(CUES)})\b", re.IGNORECASE)
    cues = {word: [set(each.split()) for each in some] for word, some in CUES.items()}
    found: dict[str, list[Occurrence]] = {word: [] for word in CUES}
    for number, line in enumerate(lines):
        here = {each.lower() for each in pattern.findall(line)}
        if not here:
            continue
        near = [*lines[max(0, number - NEAR) : number], *lines[number + 1 : number + NEAR + 1]]
        around = Counter(each for paragraph in near for each in set(re.findall(r"\w+", paragraph.lower())))
        inside = [PIECES.findall(each) for each in STOPS.split(line)]
        low = [[each.lower() for each in words] for words in inside]
        for at, words in enumerate(inside):
            others = around + Counter(each for other in low[:at] + low[at + 1 :] for each in other)
            for word in here:
                scores = [sum(others[cue] for cue in some) for some in cues[word]]
                if low[at].count(word) == 1 and 6 <= len(words) <= 60 and max(scores) >= 2 and min(scores) == 0:
                    place = low[at].index(word)
                    spelled = [*words[:place], word, *words[place + 1 :]]  # a capital would tell Apple from the fruit
                    found[word].append(Occurrence(spelled, place, scores.index(max(scores))))
    return found


def balanced(found: Sequence[Occurrence]) -> list[Occurrence]:
    """As many of either sense, evenly spread."""
    kinds = [[each for each in found if each.sense == sense] for sense in (0, 1)]
    count = min(MOST, *map(len, kinds))
    return [kind[len(kind) * at // count] for kind in kinds for at in range(count)]


# Models


def learnt(documents: Iterable[str], words: int, epochs: int, folder: Path | None) -> ELMo:
    """A small ELMo that has read so many words, or the one that is in the folder."""
    if folder is not None and folder.exists():
        kept: ELMo = load(folder)
        return kept
    read = list(sentences(documents, words))
    model = trained(read[:-200], epochs, 0)
    talk(f"perplexity of held-out sentences, both ways: {math.exp(-model.score(read[-200:])):.1f}")
    if folder is not None:
        save(model, folder)
    return model


def trained(train: Sequence[list[str]], epochs: int, seed: int) -> ELMo:
    model = ELMo(units=128, sampled=1000, words=20_000, epochs=epochs, dropout=0.0, seed=seed)
    began = told = time.perf_counter()
    for step in model.train(train):
        now = time.perf_counter()
        if now - told > 30:
            told = now
            talk(f"{now - began:5.0f} s  {step.done / step.total:4.0%}  loss {step.loss:.3f}")
    return model


def static_vectors(train: Sequence[list[str]], seed: int) -> StaticEmbedder:
    texts = [" ".join(words) for words in train]
    corpus = Corpus.from_texts(texts, WordTokenizer(min_count=3).fit(texts))
    return StaticEmbedder(Word2Vec(100, seed=seed, epochs=10).fit(corpus).vectors)


# Senses


def at_word(model: Embedder, some: Sequence[Occurrence]) -> Floats:
    rows = model.embed([each.words for each in some])
    return np.stack([row[each.place] for row, each in zip(rows, some, strict=True)])


def around_word(model: Embedder, some: Sequence[Occurrence]) -> Floats:
    """The mean of the other words' vectors: what a bag of static vectors knows of the context."""
    found = []
    for row, each in zip(model.embed([each.words for each in some]), some, strict=True):
        found.append(np.delete(row, each.place, 0)[max(0, each.place - 5) : each.place + 5].mean(0))
    return np.stack(found)


def right(known: Floats, senses: Sequence[int], asked: Floats, wanted: Sequence[int]) -> list[bool]:
    """Whether most of the nearest labelled neighbours have the wanted sense; half of a tie is right."""
    known, asked = (rows - known.mean(0) for rows in (known, asked))
    known, asked = (rows / (np.linalg.norm(rows, axis=1, keepdims=True) + 1e-9) for rows in (known, asked))
    near = np.argsort(-(asked @ known.T), axis=1, kind="stable")[:, :NEIGHBOURS]
    votes = np.array(senses)[near].mean(1) > 0.5
    return [bool(vote) == bool(sense) for vote, sense in zip(votes, wanted, strict=True)]


def senses(model: ELMo, static: StaticEmbedder, data: dict[str, tuple[list[Occurrence], list[Occurrence]]]) -> Any:
    """The share of right senses by word and by what the neighbours are measured in, and the mean with its interval."""
    ways: dict[str, Any] = {
        "the word's static vector": lambda some: at_word(static, some),
        "static vectors around it": lambda some: around_word(static, some),
        "ELMo": lambda some: at_word(model, some),
    }
    found: dict[str, Any] = {name: {} for name in ways}
    for name, vectors in ways.items():
        for word, (known, asked) in data.items():
            said = right(vectors(known), [each.sense for each in known], vectors(asked), [each.sense for each in asked])
            found[name][word] = [round(float(np.mean(said)), 4), len(said)]
        found[name]["mean"] = round(float(np.mean([share for share, _ in found[name].values()])), 4)
    return found


def banks(model: Embedder, text: Sequence[list[str]]) -> dict[str, Any]:
    """Cosines of bank, in either phrase, to the mean vector of words of computing and of finance in the text, all less
    the mean of that text's words: without that every two states of a language model are alike.
    """
    lines = {name: [words for words in text if set(some) & set(words)][:200] for name, some in ANCHORS.items()}
    rows = {name: model.embed(some) for name, some in lines.items()}
    middle = np.concatenate([row for some in rows.values() for row in some]).mean(0)
    fields = {}
    for name, some in ANCHORS.items():
        both = zip(rows[name], lines[name], strict=True)
        fields[name] = np.stack([row[at] for row, words in both for at, word in enumerate(words) if word in some])
    centres = {name: some.mean(0) - middle for name, some in fields.items()}
    found: dict[str, Any] = {}
    leans = {}
    for kind, phrases in BANKS.items():
        split = [line.split() for line in phrases]
        near = [row[words.index("bank")] - middle for row, words in zip(model.embed(split), split, strict=True)]
        found[kind] = {
            name: round(float(np.mean([cosine(row, to) for row in near])), 4) for name, to in centres.items()
        }
        leans[kind] = [cosine(row, centres["computing"]) - cosine(row, centres["finance"]) for row in near]
    pairs = [a > b for a in leans["data"] for b in leans["manager"]]
    return found | {"pairs in which data bank leans more to computing": round(float(np.mean(pairs)), 4)}


def cosine(a: Floats, b: Floats) -> float:
    return float(a @ b / (np.linalg.norm(a) * np.linalg.norm(b) + 1e-12))


# The tagger


def gains(model: ELMo, static: StaticEmbedder, count: int, epochs: int, seed: int) -> dict[str, float]:
    """The share of right tags on the dev part, by what the tagger reads with."""
    whole, valid = (read_conllu(find(f"ud_english_ewt:{split}")) for split in ("train", "valid"))
    few = Tagged(*(part[:count] for part in whole))
    mixed = ELMo.from_parts(model.to_parts()).fit_mix(*few, seed=seed)
    talk(f"the mix: {mixed.mix_.round(3).tolist()}, gamma {mixed.gamma_:.2f}")
    found = {}
    embedders: dict[str, Embedder | None] = {"nothing": None, "static": static, "contextual": mixed}
    for name, embedder in embedders.items():
        tagger = BiLSTMTagger(crf=False, epochs=epochs, embedder=embedder, seed=seed).fit(*few)
        found[name] = round(tagger.score(*valid), 4)
        talk(f"seed {seed}, {name}: {found[name]:.4f}")
    return found


def spread(values: Sequence[float]) -> dict[str, Any]:
    """The mean and its 95 % interval by Student's t, over seeds."""
    t = {2: 12.706, 3: 4.303, 4: 3.182, 5: 2.776}[len(values)]
    mean, half = float(np.mean(values)), t * float(np.std(values, ddof=1)) / math.sqrt(len(values))
    return {"mean": round(mean, 4), "interval": [round(mean - half, 4), round(mean + half, 4)]}


def talk(line: str) -> None:
    sys.stderr.write(line + "\n")
    sys.stderr.flush()


def one_seed(seed: int, train: list[list[str]], held: list[list[str]], data: Any, given: argparse.Namespace) -> Any:
    """Train everything with one seed, and measure."""
    began = time.perf_counter()
    static, model = static_vectors(train, seed), trained(train, given.epochs, seed)
    facts: dict[str, Any] = {"perplexity of held-out sentences": round(math.exp(-model.score(held)), 1)}
    facts |= {"senses": senses(model, static, data), "banks": banks(model, train), "static banks": banks(static, train)}
    talk(f"{facts}")
    facts |= {"tags": gains(model, static, given.sentences, given.tagger_epochs, seed)}
    return provenance(seed, time.perf_counter() - began) | facts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="the folder of data sets; FOREWORD_DATA where it is not given")
    parser.add_argument("--words", type=int, default=300_000, help="of Wikipedia")
    parser.add_argument("--epochs", type=int, default=1, help="of ELMo")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--sentences", type=int, default=200, help="that the tagger learns from")
    parser.add_argument("--tagger-epochs", type=int, default=12)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("docs/results/elmo.json"))
    given = parser.parse_args()
    if given.data:
        os.environ["FOREWORD_DATA"] = str(given.data)
    torch.set_num_threads(given.threads)
    lines = list(read_documents(find("enwiki")))
    cut = len(lines) * 3 // 4
    parts = lines[: cut - NEAR], lines[cut + NEAR :]
    seen = [occurrences(part) for part in parts]
    data: Any = {word: tuple(balanced(part[word]) for part in seen) for word in CUES}
    talk(str({word: (len(known), len(asked)) for word, (known, asked) in data.items()}))
    about = [each.words for known, _ in data.values() for each in known]
    some = list(sentences(parts[0][:: max(1, 12_000_000 // given.words)], given.words - sum(map(len, about))))
    train = [*about, *some]
    random.Random(0).shuffle(train)
    held = list(sentences(parts[1][5000:], 5000))
    talk(f"{sum(map(len, train))} words to learn from")
    rows = [one_seed(seed, train, held, data, given) for seed in range(given.seeds)]
    tags = [row["tags"] for row in rows]
    means = {name: spread([each[name] for each in tags]) for name in tags[0]}
    means |= {f"contextual − {name}": spread([each["contextual"] - each[name] for each in tags]) for name in AGAINST}
    means |= {f"senses, {name}": spread([row["senses"][name]["mean"] for row in rows]) for name in rows[0]["senses"]}
    write_result(
        given.out, {"text": "enwiki2014 and UD English-EWT", "words": given.words, "means": means, "rows": rows}
    )


if __name__ == "__main__":
    main()
