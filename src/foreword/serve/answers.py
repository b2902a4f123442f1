"""What a model says to some questions at once: text in, what JSON can hold out.

Each function takes a model's entry and a list of questions, and gives an answer or a refusal for each, in their order.
Questions of many clients are put together by ``batches.py``; to be answered alone or in company makes no difference.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np

from foreword.arrays import Doubles
from foreword.decode import INCOMPLETE
from foreword.errors import ForewordError, InputError
from foreword.pipeline.language import TextLM
from foreword.serve.registry import Entry
from foreword.tokens.corpus import Corpus
from foreword.tokens.words import WordTokenizer
from foreword.vectors.wordvectors import WordVectors

Answer: TypeAlias = "dict[str, Any] | ForewordError"
Options: TypeAlias = Mapping[str, Any]
Work: TypeAlias = Callable[[Entry, Sequence[Any], Options, int], list[Answer]]
"""entry, questions, what holds for all of them, and how many tokens one question may have."""

MOST_READ = 20_000
"""Tokens of a text, where nobody says."""

MOST_NUMBERS = 1_000_000
"""Of an answer: vectors of many words, each of many numbers."""


class TooLongError(InputError):
    """More tokens than are read at once."""


def check_tokens(tokens: int, most: int) -> None:
    if tokens > most:
        raise TooLongError(f"a text has {tokens:,} tokens: at most {most:,} are read")


# Language models


def score(entry: Entry, texts: Sequence[str], options: Options, most: int) -> list[Answer]:
    """As ``foreword score --json``: natural log-probability, the end included."""
    lm = entry.language_model

    def scored(corpus: Corpus) -> list[dict[str, Any]]:
        starts, unknown = corpus.offsets[:-1], corpus.vocab.unknown
        logs = np.add.reduceat(np.asarray(lm.model.logprobs(corpus), np.float64), starts).tolist()
        tokens = np.diff(corpus.offsets).tolist()
        oov = [0] * len(tokens)
        if unknown is not None:
            oov = np.add.reduceat((corpus.ids == unknown).astype(np.int64), starts).tolist()
        return [
            {"score": finite(log), "tokens": count, "oov": strange, "perplexity": perplexity(log, count)}
            for log, count, strange in zip(logs, tokens, oov, strict=True)
        ]

    return _for_corpus(lm, texts, most, scored)


def surprisal(entry: Entry, texts: Sequence[str], options: Options, most: int) -> list[Answer]:
    """Every token and the bits of surprise it was."""
    lm = entry.language_model

    def told(corpus: Corpus) -> list[dict[str, Any]]:
        bits = (-np.asarray(lm.model.logprobs(corpus), np.float64) / math.log(2) + 0.0).tolist()
        tokens = [spelled(lm, id) for id in corpus.ids.tolist()]
        pairs = [{"token": token, "bits": finite(each)} for token, each in zip(tokens, bits, strict=True)]
        ends = corpus.offsets.tolist()
        return [{"tokens": pairs[start:stop]} for start, stop in pairwise(ends)]

    return _for_corpus(lm, texts, most, told)


def _for_corpus(
    lm: TextLM, texts: Sequence[str], most: int, work: Callable[[Corpus], Sequence[Answer]]
) -> list[Answer]:
    """Answers of all texts at once, but for those that are too long."""
    corpus = lm.corpus(texts)
    lengths = np.diff(corpus.offsets)
    if int(lengths.max(initial=0)) <= most:
        return list(work(corpus))
    short = lm.corpus([text for text, length in zip(texts, lengths.tolist(), strict=True) if length <= most])
    found = iter(work(short) if len(short) else [])
    return [next(found) if length <= most else _refused_length(length, most) for length in lengths.tolist()]


def _refused_length(tokens: int, most: int) -> ForewordError:
    try:
        check_tokens(tokens, most)
    except TooLongError as error:
        return error
    raise AssertionError("it is not too long")


def next_words(entry: Entry, texts: Sequence[str], options: Options, most: int) -> list[Answer]:
    return _one_by_one(lambda text: next_of(entry, text, options["k"], options["temperature"], most), texts)


def next_of(entry: Entry, text: str, k: int, temperature: float, most: int = MOST_READ) -> dict[str, Any]:
    """The k likeliest tokens after a text, p ∝ p^(1/temperature), and what the others have together."""
    lm, steps = entry.language_model, entry.steps
    assert steps is not None
    ids = lm.tokenizer.encode(text).tolist()
    check_tokens(len(ids), most)
    state = steps.start()
    for id in ids:
        state = steps.advance(state, np.array([id]))
    logs: Doubles = np.asarray(steps.next_logprobs(state)[0], np.float64)
    chances = np.exp((logs - logs.max()) / temperature)
    chances /= chances.sum()
    k = min(k, len(chances))
    best = np.argpartition(-chances, k - 1)[:k]
    best = best[np.lexsort((best, -chances[best]))]
    entropy = float(-(chances * np.log2(np.where(chances > 0, chances, 1))).sum())
    tokens = [{"token": spelled(lm, id), "p": p} for id, p in zip(best.tolist(), chances[best].tolist(), strict=True)]
    return {"tokens": tokens, "rest": max(0.0, 1 - float(chances[best].sum())), "entropy": entropy}


def tokenize(entry: Entry, texts: Sequence[str], options: Options, most: int) -> list[Answer]:
    tokenizer = entry.model.tokenizer if isinstance(entry.model, TextLM) else entry.model
    vocab = tokenizer.vocab

    def cut(text: str) -> dict[str, Any]:
        ids = tokenizer.encode(text).tolist()
        check_tokens(len(ids), most)
        return {"ids": ids, "tokens": [vocab[id] for id in ids]}

    return _one_by_one(cut, texts)


# Labels and tags


def classify(entry: Entry, texts: Sequence[str], options: Options, most: int) -> list[Answer]:
    """The k likeliest labels. fastText may know nothing of a text, and then says none."""
    k = options["k"]
    for text in texts:
        if len(text) > most and len(text.split()) > most:  # the second is asked only where it may be so
            return _one_by_one(lambda each: _classified(entry, [each], k, most)[0], texts)
    return list(_classified(entry, texts, k, most))


def _classified(entry: Entry, texts: Sequence[str], k: int, most: int) -> list[dict[str, Any]]:
    for text in texts:
        if len(text) > most:
            check_tokens(len(text.split()), most)
    if entry.kind == "fasttext-classifier":
        texts = [text.replace("\n", " ") for text in texts]  # it reads up to the end of a line
    found = entry.model.predict_best(texts, min(k, len(entry.model.classes_)))
    return [{"labels": [{"label": str(name), "probability": min(p, 1.0)} for name, p in best]} for best in found]


def tag(entry: Entry, texts: Sequence[str], options: Options, most: int) -> list[Answer]:
    sentences, refused = _sentences(texts, options["split"], most)
    asked = [words for words in sentences if words]
    found = iter(entry.model.predict(asked) if asked else [])
    tagged = [{"words": words, "tags": list(next(found)) if words else []} for words in sentences]
    return [refused.get(place, answer) for place, answer in enumerate(tagged)]


def translate(entry: Entry, texts: Sequence[str], options: Options, most: int) -> list[Answer]:
    sizes = [len(ids) for ids in Corpus.from_texts(texts, entry.model.source).documents()]
    asked = [text for text, size in zip(texts, sizes, strict=True) if 1 < size <= most]
    settings = {"width": options["width"], "max_tokens": options["max_tokens"]}
    found = iter(entry.model.translate(asked, **settings) if asked else [])
    return [
        _refused_length(size, most) if size > most else {"translation": next(found) if size > 1 else ""}
        for size in sizes
    ]


# Vectors


def embed(entry: Entry, texts: Sequence[str], options: Options, most: int) -> list[Answer]:
    """A vector for each word where it stands, null where there is none; or the mean of those there are."""
    sentences, refused = _sentences(texts, options["split"], most)
    vectors = entry.vectors if entry.kind != "elmo" else None
    dimensions = entry.model.dimensions if vectors is None else vectors.dimensions
    mean = options["pool"] == "mean"
    for place, words in enumerate(sentences):
        if not mean and len(words) * dimensions > MOST_NUMBERS:
            refused[place] = TooLongError(
                f"{len(words):,} words of {dimensions} numbers each: at most {MOST_NUMBERS:,} numbers are sent; "
                "ask for pool mean, or for fewer words"
            )
            sentences[place] = []
    if vectors is None:
        asked = [words for words in sentences if words]
        found = iter(entry.model.embed(asked) if asked else [])
        rows = [list(next(found)) if words else [] for words in sentences]
    else:
        rows = [_vectors(vectors, words) for words in sentences]
    told = [_embedded(words, each, mean) for words, each in zip(sentences, rows, strict=True)]
    return [refused.get(place, answer) for place, answer in enumerate(told)]


def _embedded(words: list[str], rows: list[Any], mean: bool) -> dict[str, Any]:
    if not mean:
        return {"words": words, "vectors": [None if row is None else row.tolist() for row in rows]}
    known = [row for row in rows if row is not None]
    return {"words": words, "vector": np.mean(known, axis=0, dtype=np.float64).tolist() if known else None}


def _vectors(vectors: WordVectors, words: Sequence[str]) -> list[Any]:
    """As spelled, or in small letters, or made of its parts; None for a word that has none of these."""
    places = vectors.places(words)
    strange = np.flatnonzero(places < 0).tolist()
    if strange:
        places[strange] = vectors.places([words[place].lower() for place in strange])
    rows: list[Any] = [None] * len(words)
    known = np.flatnonzero(places >= 0)
    for place, row in zip(known.tolist(), vectors.rows.floats(places[known]), strict=True):
        rows[place] = row
    if vectors.subwords is not None:
        for place in np.flatnonzero(places < 0).tolist():
            rows[place] = vectors.subwords.vector(words[place])
    return rows


def nearest(entry: Entry, words: Sequence[str], options: Options, most: int) -> list[Answer]:
    vectors, k = entry.vectors, options["k"]
    rows, left_out, refused = [], [], dict[int, Answer]()
    for place, word in enumerate(words):
        row = _vectors(vectors, [word.strip()])[0]
        if row is None:
            refused[place] = no_word(word.strip())
        else:
            rows.append(row)
            left_out.append({word.strip(), word.strip().lower()})
    near = iter(vectors.nearest_many(np.stack(rows), k + 2) if rows else [])
    told = [
        _neighbours([pair for pair in found if pair[0] not in own][:k])
        for found, own in zip(near, left_out, strict=True)
    ]
    answers = iter(told)
    return [refused[place] if place in refused else next(answers) for place in range(len(words))]


def analogy(entry: Entry, triples: Sequence[tuple[str, str, str]], options: Options, most: int) -> list[Answer]:
    vectors = entry.vectors

    def solved(triple: tuple[str, str, str]) -> dict[str, Any]:
        words = [_known_spelling(vectors, word.strip()) for word in triple]
        try:
            return _neighbours(vectors.analogy(words[0], words[1], words[2], options["k"]))
        except KeyError as error:
            raise no_word(str(error.args[0])) from error

    return _one_by_one(solved, triples)


def _known_spelling(vectors: WordVectors, word: str) -> str:
    return next((each for each in (word, word.lower()) if each in vectors), word)


def _neighbours(pairs: Sequence[tuple[str, float]]) -> dict[str, Any]:
    return {"words": [{"word": word, "cosine": finite(cosine)} for word, cosine in pairs]}


def search(entry: Entry, queries: Sequence[str], options: Options, most: int) -> list[Answer]:
    for query in queries:
        if len(query.split()) > most:
            return _one_by_one(lambda each: _searched(entry, [each], options["k"], most)[0], queries)
    return list(_searched(entry, queries, options["k"], most))


def _searched(entry: Entry, queries: Sequence[str], k: int, most: int) -> list[dict[str, Any]]:
    for query in queries:
        check_tokens(len(query.split()), most)
    found = entry.model.query_batch(queries, k)
    return [
        {
            "hits": [
                {"rank": hit.rank, "score": hit.score, "document": hit.document, "name": hit.name,
                 "snippet": hit.snippet}
                for hit in hits
            ]
        }
        for hits in found
    ]  # fmt: skip


WORK: dict[str, Work] = {
    "score": score,
    "surprisal": surprisal,
    "next": next_words,
    "tokenize": tokenize,
    "classify": classify,
    "tag": tag,
    "translate": translate,
    "embed": embed,
    "nearest": nearest,
    "analogy": analogy,
    "search": search,
}


# What they share


def _one_by_one(work: Callable[[Any], dict[str, Any]], questions: Sequence[Any]) -> list[Answer]:
    """For models that read one text at a time, or where one of them may be refused."""
    answers: list[Answer] = []
    for question in questions:
        try:
            answers.append(work(question))
        except ForewordError as error:
            answers.append(error)
    return answers


def _sentences(texts: Sequence[str], split: str, most: int) -> tuple[list[list[str]], dict[int, Answer]]:
    """Texts cut into words, and refusals of those with too many, which are left empty."""
    sentences, refused = [], dict[int, Answer]()
    for place, text in enumerate(texts):
        words = _cutter(split).pieces(text)
        if len(words) > most:
            refused[place] = _refused_length(len(words), most)
        sentences.append(words if len(words) <= most else [])
    return sentences, refused


@lru_cache(maxsize=2)
def _cutter(split: str) -> WordTokenizer:
    return WordTokenizer(split="punctuation" if split == "punctuation" else "space")


def spelled(lm: TextLM, id: int) -> str:
    """A token as text, or as the vocabulary writes it where it is the end or part of a character."""
    text = "" if id == lm.vocab.end else lm.tokenizer.decode([id])
    return text if text and INCOMPLETE not in text else lm.vocab[id]


def finite(number: float) -> float | None:
    """JSON knows no infinity: null says it."""
    return number if math.isfinite(number) else None


def perplexity(logprob: float, tokens: int) -> float | None:
    try:
        return finite(math.exp(-logprob / tokens))
    except OverflowError:
        return None


def no_word(word: str) -> InputError:
    return InputError(f"no vector for {word!r}: try another word")
