"""Whatever was loaded is used: a model that opens and then fails, or makes a kernel read elsewhere, was not checked."""

from __future__ import annotations

from typing import Any

import numpy as np

from foreword.features.bag import BagOfWords
from foreword.infinigram.compressed import CompressedIndex
from foreword.infinigram.index import SuffixIndex
from foreword.pipeline.classifier import TextClassifier
from foreword.pipeline.compressed import CompressedTextIndex
from foreword.pipeline.index import TextIndex
from foreword.pipeline.language import TextLM
from foreword.pipeline.search import TextSearch
from foreword.pipeline.speech import SpeechRecogniser
from foreword.pipeline.translator import TextTranslator
from foreword.speech.recogniser import Recogniser
from foreword.speech.wav import Sound
from foreword.tokens.corpus import Corpus
from foreword.vectors.wordvectors import WordVectors

TEXTS = ["the cat sat", "größe zebra, on  the mat 12", ""]
SENTENCES = [["the", "cat"], ["Größe", "x", "12"]]


def use(model: Any) -> None:
    """Everything that takes text or ids, a little of each."""
    match model:
        case TextLM():
            model.measure(TEXTS)
            model.generate("the", max_tokens=4)
        case TextSearch():
            model.query_batch(TEXTS)
        case TextTranslator():
            model.translate(TEXTS[:2], width=2)
        case TextClassifier():
            model.predict_log_proba(TEXTS)
        case Corpus():
            list(model.documents())
        case WordVectors():
            _use_vectors(model)
        case BagOfWords():
            model.transform(TEXTS)
            model.get_feature_names_out()
        case SpeechRecogniser():
            model.transcribe([Sound(np.linspace(-1, 1, 900, dtype=np.float32), 8000)])
        case Recogniser():
            model.hear([np.zeros((6, model.bands), np.float32)])
        case TextIndex():
            _use_index(model)
        case CompressedTextIndex():
            [model.count(text) for text in TEXTS if text]
        case CompressedIndex():
            model.count(np.arange(min(len(model.vocab), 3)))
        case SuffixIndex():
            run = np.arange(min(len(model.vocab), 3))
            model.find(run[:1], 3)
            model.count_next(model.match(run), run)
        case _:
            _use_by_methods(model)


def _use_by_methods(model: Any) -> None:
    if hasattr(model, "next_logprobs"):
        corpus = _ids(model.vocab)
        model.logprobs(corpus)
        model.next_logprobs(model.advance(model.start(2), corpus.ids[:2]))
    elif hasattr(model, "embed"):
        model.embed(SENTENCES)
    elif hasattr(model, "tags_"):
        model.predict(SENTENCES)
        model.predict_log_proba(SENTENCES)
    elif hasattr(model, "predict_best"):
        list(model.predict_best(TEXTS, 2))
    elif hasattr(model, "classes_"):
        _use_classifier(model)
    elif hasattr(model, "encode"):
        for text in TEXTS:
            model.decode(model.encode(text))
    elif hasattr(model, "vectors"):
        _use_vectors(model.vectors)
    elif hasattr(model, "condition"):
        model.translate(_ids(model.source_vocab), width=2)
    elif hasattr(model, "components_"):
        model.transform(np.arange(2 * model.n_features_in_).reshape(2, -1) % 3)
    elif hasattr(model, "search"):
        model.search(_ids(model.vocab), 3)
        model.scores(np.arange(len(model.vocab), dtype=np.int32)[:3])


def _ids(vocab: Any) -> Corpus:
    ids = [id for id in range(min(len(vocab), 12)) if id != vocab.end]
    return Corpus.from_ids([ids, ids[:1], []], vocab)


def _use_index(index: TextIndex) -> None:
    for text in TEXTS:
        if len(index.tokenizer.encode(text)):  # a run without a token is refused
            index.find(text, 3)
        index.context(text)
        index.spans(text)
    index.document(len(index) - 1)


def _use_vectors(vectors: WordVectors) -> None:
    for word in ("cat", "the", "größe"):
        if word in vectors:
            vectors.nearest(word, 3)
            vectors[word]


def _use_classifier(model: Any) -> None:
    """One that takes counts: of as many columns as it says."""
    from scipy.sparse import csr_matrix

    columns = model.n_features_in_ if hasattr(model, "n_features_in_") else 3
    model.predict_log_proba(csr_matrix(np.arange(2 * columns).reshape(2, columns) % 3))
