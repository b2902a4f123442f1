"""Texts into labels: from a file on the disk to a trained classifier to the labels of a test file."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from sklearn.feature_extraction.text import CountVectorizer
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline

from benchmarks.data import megabytes, plain_file
from benchmarks.measure import interleaved, one_core
from benchmarks.progress import say
from benchmarks.report import Row, compared
from foreword.classify.naive_bayes import NaiveBayes
from foreword.evaluate.classification import Confusion, cross_validate, measure_classifier
from foreword.features.bag import BagOfWords
from foreword.pipeline.classifier import TextClassifier
from foreword.text.block import Block
from foreword.text.datasets import labelled
from foreword.text.labelled import LabelledReading, read_labelled_blocks

TITLE = "Classification"
HOW = (
    "Whole jobs: JSONL read, a vocabulary learnt, multinomial naive Bayes trained, a second file read and labelled. "
    "scikit-learn reads with Python's `json` and runs CountVectorizer and MultinomialNB; words and smoothing are the "
    "same, and so is every label. Below: accuracy of our default classifier, next to published figures, with "
    "Wilson's interval at 95 %. Its settings are the same for all sets and were chosen by cross-validation on training "
    "sets; SMS spam has no other."
)

JSONL = LabelledReading("jsonl", "text", "label")


@dataclass(frozen=True, slots=True)
class Published:
    """A test set, the least accuracy we want, and what others reached."""

    name: str
    train: str
    test: str | None
    bar: float
    others: str


ACCURACIES = (
    Published("IMDB", "imdb:train", "imdb:test", 0.912, "NBSVM on bigrams 91.22 (Wang and Manning 2012)"),
    Published("20 Newsgroups", "20newsgroups:train", "20newsgroups:test", 0.84, "TF-IDF and LR 83.19 (Yao 2019)"),
    Published("Reuters R8", "reuters_r8:train", "reuters_r8:test", 0.97, "TF-IDF and LR 93.74 (Yao 2019)"),
    Published("SST-2, sentences", "sst2:train", "sst2:test", 0.82, "NB 81.8, with phrases (Socher 2013)"),
    Published("TREC", "trec:train", "trec:test", 0.89, "CNN 93.6 (Kim 2014)"),
    Published("SMS spam, 10-fold", "sms_spam:all", None, 0.985, "SVM 97.64, own split (Almeida 2011)"),
)
QUICK = ("TREC", "SMS spam, 10-fold")


def run(quick: bool) -> list[Row]:
    with one_core():
        jobs = [whole_job(name) for name in (("20newsgroups",) if quick else ("imdb", "20newsgroups"))]
    return jobs + [accuracy(each) for each in ACCURACIES if not quick or each.name in QUICK]


# --- speed


def whole_job(name: str) -> Row:
    train, test = plain_file(f"{name}:train"), plain_file(f"{name}:test")
    pairs = interleaved(f"{name}, whole job", lambda: ours(train, test), lambda: theirs(train, test), list.__eq__)
    size = megabytes(train) + megabytes(test)
    return compared(f"{name}: file to labels", "scikit-learn", pairs, bar=5, size=size)


def ours(train: Path, test: Path) -> list[str]:
    labels: list[str] = []
    bag = BagOfWords(dtype="int32")
    counts = bag.fit_transform(texts_in(train, labels))
    model = NaiveBayes().fit(counts, labels)
    return list(model.predict(bag.transform(texts_in(test, []))))


def texts_in(path: Path, labels: list[str]) -> Iterator[Block]:
    for block in read_labelled_blocks(path, JSONL):
        labels += block.labels
        yield block.texts


def theirs(train: Path, test: Path) -> list[str]:
    texts, labels = rows_in(train)
    model = make_pipeline(CountVectorizer(), MultinomialNB()).fit(texts, labels)
    return [str(label) for label in model.predict(rows_in(test)[0])]


def rows_in(path: Path) -> tuple[list[str], list[str]]:
    texts: list[str] = []
    labels: list[str] = []
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            row = json.loads(line)
            texts.append(row["text"])
            labels.append(row["label"])
    return texts, labels


# --- accuracy


def accuracy(published: Published) -> Row:
    say(f"accuracy on {published.name}")
    measures = measured(published)
    low, high = measures.interval
    return Row(
        f"{published.name}: accuracy",
        ours=f"{measures.accuracy:.2%} ({low:.2%}–{high:.2%})",
        peer=published.others,
        bar=f"≥ {published.bar:.1%}",
        met=measures.accuracy >= published.bar,
        figures={"accuracy": measures.accuracy, "interval": [low, high], "texts": float(measures.texts)},
    )


def measured(published: Published) -> Confusion:
    labels, texts = map(list, zip(*labelled(published.train), strict=True))
    if published.test is None:
        return list(cross_validate(TextClassifier, texts, labels, folds=10))[-1].so_far
    model = TextClassifier().fit(texts, labels)
    test_labels, test_texts = map(list, zip(*labelled(published.test), strict=True))
    return measure_classifier(model, test_texts, test_labels)
