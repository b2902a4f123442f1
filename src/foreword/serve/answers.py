"""Answers of models to a batch of questions: text in, JSON out.

Each function takes a model's entry and a list of questions, and returns an answer or an error for each, in their order.
``batches.py`` combines the questions of many clients; an answer does not depend on the others in its batch.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np

from foreword import kinds
from foreword.arrays import Doubles
from foreword.errors import ForewordError, InputError
from foreword.measures.perplexity import finite, surprisal
from foreword.pipeline.language import TextLM
from foreword.pipeline.scoring import score_corpus
from foreword.serve.registry import Entry
from foreword.speech.wav import Sound, read_wav
from foreword.tokens.corpus import Corpus
from foreword.tokens.words import WordTokenizer
from foreword.vectors.wordvectors import WordVectors

Answer: TypeAlias = "dict[str, Any] | ForewordError"
Options: TypeAlias = Mapping[str, Any]
Work: TypeAlias = Callable[[Entry, Sequence[Any], Options, int], list[Answer]]
"""Takes an entry, questions, the options that hold for all of them, and the most tokens of one question."""

MOST_READ = 20_000
"""Default limit of the tokens of a text."""

MOST_SECONDS = 60.0
"""Limit of the length of a recording."""

MOST_NUMBERS = 1_000_000
"""Limit of the numbers in the answer to one request: vectors of many words of many texts."""


class TooLongError(InputError):
    """A text with more tokens than the server reads."""

    def __init__(self, tokens: int, most: int) -> None:
        super().__init__(f"a text has {tokens:,} tokens: at most {most:,} are read")


class TooManyNumbersError(InputError):
    """An answer with more numbers than the server sends."""


def check_tokens(tokens: int, most: int) -> None:
    """Raise a TooLongError if there are more than ``most`` tokens."""
    if tokens > most:
        raise TooLongError(tokens, most)


# Language models


def score(entry: Entry, texts: Sequence[str], options: Options, most: int) -> list[Answer]:
    """Score texts as ``foreword score --json`` does: natural log-probability, the end included."""
    lm = entry.language_model
    return _for_corpus(lm, texts, most, lambda corpus: score_corpus(lm.model, corpus).records())


def token_surprisals(entry: Entry, texts: Sequence[str], options: Options, most: int) -> list[Answer]:
    """Return every token of each text with its surprisal in bits."""
    lm = entry.language_model

    def surprisals(corpus: Corpus) -> list[dict[str, Any]]:
        tokens, bits = map(lm.token_text, corpus.ids.tolist()), surprisal(lm.model, corpus).tolist()
        pairs = [{"token": token, "bits": finite(each)} for token, each in zip(tokens, bits, strict=True)]
        return [{"tokens": pairs[start:stop]} for start, stop in pairwise(corpus.offsets.tolist())]

    return _for_corpus(lm, texts, most, surprisals)


def _for_corpus(lm: TextLM, texts: Sequence[str], most: int, work: Callable[[Corpus], Sequence[Any]]) -> list[Answer]:
    """Answer all texts at once; return an error for those that are too long."""
    corpus = lm.corpus(texts)
    lengths = np.diff(corpus.offsets)
    if int(lengths.max(initial=0)) <= most:
        return list(work(corpus))
    short = lm.corpus([text for text, length in zip(texts, lengths.tolist(), strict=True) if length <= most])
    found = iter(work(short) if len(short) else [])
    return [next(found) if length <= most else TooLongError(length, most) for length in lengths.tolist()]


def next_words(entry: Entry, texts: Sequence[str], options: Options, most: int) -> list[Answer]:
    """Return the likeliest next tokens after each text."""
    return _one_by_one(lambda text: next_of(entry, text, options["k"], options["temperature"], most), texts)


def next_of(entry: Entry, text: str, k: int, temperature: float, most: int = MOST_READ) -> dict[str, Any]:
    """Return the k likeliest tokens after a text, p ∝ p^(1/temperature), and the probability of the rest."""
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
    tokens = [{"token": lm.token_text(id), "p": p} for id, p in zip(best.tolist(), chances[best].tolist(), strict=True)]
    return {"tokens": tokens, "rest": max(0.0, 1 - float(chances[best].sum())), "entropy": entropy}


def tokenize(entry: Entry, texts: Sequence[str], options: Options, most: int) -> list[Answer]:
    """Return the tokens of each text and their ids."""
    tokenizer = entry.model.tokenizer if isinstance(entry.model, TextLM) else entry.model
    vocab = tokenizer.vocab

    def cut(text: str) -> dict[str, Any]:
        ids = tokenizer.encode(text).tolist()
        check_tokens(len(ids), most)
        return {"ids": ids, "tokens": [vocab[id] for id in ids]}

    return _one_by_one(cut, texts)


# Labels and tags


def classify(entry: Entry, texts: Sequence[str], options: Options, most: int) -> list[Answer]:
    """Return the k likeliest labels of each text; fastText returns none for a text of unknown words."""
    k, labels = options["k"], options.get("labels", ())
    for text in texts:
        if len(text) > most and len(text.split()) > most:  # the second is asked only where it may be so
            return _one_by_one(lambda each: _classified(entry, [each], k, labels, most)[0], texts)
    return list(_classified(entry, texts, k, labels, most))


def _classified(entry: Entry, texts: Sequence[str], k: int, wanted: Sequence[str], most: int) -> list[dict[str, Any]]:
    for text in texts:
        if len(text) > most:
            check_tokens(len(text.split()), most)
    if kinds.KINDS[entry.kind].one_line:
        texts = [text.replace("\n", " ") for text in texts]
    names = [str(name) for name in entry.model.classes_]
    if unknown := [label for label in wanted if label not in names]:
        raise InputError(f"{unknown[0]!r} is not a label of the model")
    found = entry.model.predict_best(texts, len(names) if wanted else min(k, len(names)))
    return [_label_answer([(str(name), min(p, 1.0)) for name, p in best], k, wanted) for best in found]


def _label_answer(ranked: list[tuple[str, float]], k: int, wanted: Sequence[str]) -> dict[str, Any]:
    answer: dict[str, Any] = {"labels": [{"label": name, "probability": p} for name, p in ranked[:k]]}
    if wanted:
        chances = dict(ranked)
        answer["probabilities"] = {label: chances.get(label, 0.0) for label in wanted}
    return answer


def tag(entry: Entry, texts: Sequence[str], options: Options, most: int) -> list[Answer]:
    """Return the words of each text and their tags."""
    sentences, refused = _split_texts(texts, options["split"], most)
    asked = [words for words in sentences if words]
    found = iter(entry.model.predict(asked) if asked else [])
    tagged = [{"words": words, "tags": list(next(found)) if words else []} for words in sentences]
    return [refused.get(index, answer) for index, answer in enumerate(tagged)]


def translate(entry: Entry, texts: Sequence[str], options: Options, most: int) -> list[Answer]:
    """Return the translation of each text."""
    sizes = [len(ids) for ids in Corpus.from_texts(texts, entry.model.source).documents()]
    asked = [text for text, size in zip(texts, sizes, strict=True) if 1 < size <= most]
    settings = {"width": options["width"], "max_tokens": options["max_tokens"]}
    found = iter(entry.model.translate(asked, **settings) if asked else [])
    return [
        TooLongError(size, most) if size > most else {"translation": next(found) if size > 1 else ""} for size in sizes
    ]


def transcribe(entry: Entry, recordings: Sequence[str], options: Options, most: int) -> list[Answer]:
    """Return what is said in each recording, a WAV file in base64."""

    def heard(recording: str) -> dict[str, Any]:
        sound = decoded_wav(recording)
        return {"text": entry.model.transcribe([sound], width=options["width"])[0], "seconds": sound.seconds}

    return _one_by_one(heard, recordings)


def decoded_wav(recording: str) -> Sound:
    """Read a WAV file in base64, of at most ``MOST_SECONDS``."""
    try:
        sound = read_wav(b64decode(recording, validate=True), "the recording")
    except ValueError as error:
        raise InputError(f"the recording is not base64: {error}") from error
    if sound.seconds > MOST_SECONDS:
        raise InputError(f"the recording lasts {sound.seconds:.1f} s: at most {MOST_SECONDS:g} s are read")
    return sound


# Vectors


def embed(entry: Entry, texts: Sequence[str], options: Options, most: int) -> list[Answer]:
    """Return a vector for each word in its context, null where there is none; or the mean of those there are."""
    sentences, refused = _split_texts(texts, options["split"], most)
    vectors = entry.vectors if "nearest" in entry.can else None  # else they depend on the sentence
    mean = options["pool"] == "mean"
    if vectors is None:
        asked = [words for words in sentences if words]
        found = iter(entry.model.embed(asked) if asked else [])
        rows = [list(next(found)) if words else [] for words in sentences]
    else:
        rows = [_vectors(vectors, words) for words in sentences]
    results = [_embedded(words, each, mean) for words, each in zip(sentences, rows, strict=True)]
    return [refused.get(index, answer) for index, answer in enumerate(results)]


def check_size(entry: Entry, ability: str, questions: Sequence[Any], options: Options) -> None:
    """Raise a TooManyNumbersError for a request whose answer would be too large, before anything is computed.

    Only vectors can be: a megabyte of text has half a million words at most. All other answers grow with the text, or
    have at most 100 or 1,000 entries for each of 256 texts.
    """
    if ability != "embed" or options["pool"] == "mean":
        return
    dimensions = (entry.vectors if "nearest" in entry.can else entry.model).dimensions
    # A word has a character and, but for the last, a blank: most requests are so short that nothing is counted.
    if sum(map(len, questions)) * dimensions <= MOST_NUMBERS:
        return
    words = sum(len(_cutter(options["split"]).pieces(text)) for text in questions)
    if words * dimensions > MOST_NUMBERS:
        raise TooManyNumbersError(
            f"{words:,} words of {dimensions} numbers each: at most {MOST_NUMBERS:,} numbers are sent; "
            "ask for pool mean, or for fewer words"
        )


def _embedded(words: list[str], rows: list[Any], mean: bool) -> dict[str, Any]:
    if not mean:
        return {"words": words, "vectors": [None if row is None else row.tolist() for row in rows]}
    known = [row for row in rows if row is not None]
    return {"words": words, "vector": np.mean(known, axis=0, dtype=np.float64).tolist() if known else None}


def _vectors(vectors: WordVectors, words: Sequence[str]) -> list[Any]:
    """Return the vectors of words: as spelled, in lower case, or made of subwords; None for a word without any."""
    rows_of = vectors.places(words)
    strange = np.flatnonzero(rows_of < 0).tolist()
    if strange:
        rows_of[strange] = vectors.places([words[index].lower() for index in strange])
    rows: list[Any] = [None] * len(words)
    known = np.flatnonzero(rows_of >= 0)
    for index, row in zip(known.tolist(), vectors.rows.floats(rows_of[known]), strict=True):
        rows[index] = row
    if vectors.subwords is not None:
        for index in np.flatnonzero(rows_of < 0).tolist():
            rows[index] = vectors.subwords.vector(words[index])
    return rows


def nearest(entry: Entry, words: Sequence[str], options: Options, most: int) -> list[Answer]:
    """Return the k nearest words to each word."""
    vectors, k = entry.vectors, options["k"]
    rows, left_out, refused = [], [], dict[int, Answer]()
    for index, word in enumerate(words):
        row = _vectors(vectors, [word.strip()])[0]
        if row is None:
            refused[index] = no_word(word.strip())
        else:
            rows.append(row)
            left_out.append({word.strip(), word.strip().lower()})
    near = iter(vectors.nearest_many(np.stack(rows), k + 2) if rows else [])
    results = [
        _neighbours([pair for pair in found if pair[0] not in own][:k])
        for found, own in zip(near, left_out, strict=True)
    ]
    answers = iter(results)
    return [refused[index] if index in refused else next(answers) for index in range(len(words))]


def analogy(entry: Entry, triples: Sequence[tuple[str, str, str]], options: Options, most: int) -> list[Answer]:
    """Return what is to c as b is to a, for each triple."""
    vectors = entry.vectors

    def solved(triple: tuple[str, str, str]) -> dict[str, Any]:
        words = [known_spelling(vectors, word.strip()) for word in triple]
        try:
            return _neighbours(vectors.analogy(words[0], words[1], words[2], options["k"]))
        except KeyError as error:
            raise no_word(str(error.args[0])) from error

    return _one_by_one(solved, triples)


def known_spelling(vectors: WordVectors, word: str) -> str:
    """Return the word as it is or in lower case, whichever has a vector."""
    return next((each for each in (word, word.lower()) if each in vectors), word)


def _neighbours(pairs: Sequence[tuple[str, float]]) -> dict[str, Any]:
    return {"words": [{"word": word, "cosine": finite(cosine)} for word, cosine in pairs]}


def search(entry: Entry, queries: Sequence[str], options: Options, most: int) -> list[Answer]:
    """Return the k best documents for each query."""
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
    "surprisal": token_surprisals,
    "next": next_words,
    "tokenize": tokenize,
    "classify": classify,
    "tag": tag,
    "translate": translate,
    "transcribe": transcribe,
    "embed": embed,
    "nearest": nearest,
    "analogy": analogy,
    "search": search,
}


# What they share


def _one_by_one(work: Callable[[Any], dict[str, Any]], questions: Sequence[Any]) -> list[Answer]:
    """Answer questions one at a time; a question that is refused gets its error."""
    answers: list[Answer] = []
    for question in questions:
        try:
            answers.append(work(question))
        except ForewordError as error:
            answers.append(error)
    return answers


def _split_texts(texts: Sequence[str], split: str, most: int) -> tuple[list[list[str]], dict[int, Answer]]:
    """Split texts into words; return errors for those with too many, which are left empty."""
    sentences, refused = [], dict[int, Answer]()
    for index, text in enumerate(texts):
        words = _cutter(split).pieces(text)
        if len(words) > most:
            refused[index] = TooLongError(len(words), most)
        sentences.append(words if len(words) <= most else [])
    return sentences, refused


@lru_cache(maxsize=2)
def _cutter(split: str) -> WordTokenizer:
    return WordTokenizer(split="punctuation" if split == "punctuation" else "space")


def no_word(word: str) -> InputError:
    """Return the error of a word without a vector."""
    return InputError(f"no vector for {word!r}: try another word")
