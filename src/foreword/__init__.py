"""Foreword: every language model that came before the Transformer, in one fast Python package.

The names below are the public ones. They are imported when first used, so that ``import foreword`` costs nothing.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from foreword.classify.calibration import calibrated
    from foreword.classify.logistic import LogisticRegression, NBLogistic
    from foreword.classify.naive_bayes import NaiveBayes
    from foreword.classify.one_vs_rest import OneVsRest
    from foreword.classify.recurrent import RecurrentClassifier
    from foreword.decode import beam_search, generate
    from foreword.errors import ForewordError
    from foreword.evaluate.compare.ladder import compare
    from foreword.fasttext.vectors import FastText
    from foreword.features.bag import BagOfWords, OneHot
    from foreword.features.lsa import LSA
    from foreword.features.tfidf import TfIdf
    from foreword.features.topics import LDA, PLSA
    from foreword.hmm.model import HMM
    from foreword.infinigram.model import InfiniGramLM
    from foreword.lessons.cloud import word_cloud
    from foreword.measures.perplexity import Measures, measure, perplexity
    from foreword.mix.combine import cached, interpolate
    from foreword.mix.neural_cache import NeuralCache
    from foreword.neural.awd_lstm import AWDLSTM
    from foreword.neural.bengio import BengioLM
    from foreword.neural.dynamic import DynamicEvaluation
    from foreword.neural.mogrifier import Mogrifier
    from foreword.neural.monte_carlo import MonteCarloDropout
    from foreword.neural.recurrent import RecurrentLM
    from foreword.neural.streaming import Streaming
    from foreword.neural.transformer import TransformerLM
    from foreword.ngram.model import NgramLM
    from foreword.ngram.unigram import UnigramLM
    from foreword.pipeline.classifier import TextClassifier
    from foreword.pipeline.compressed import CompressedTextIndex
    from foreword.pipeline.fitting import train
    from foreword.pipeline.index import TextIndex
    from foreword.pipeline.language import TextLM
    from foreword.pipeline.search import TextSearch
    from foreword.pipeline.speech import SpeechRecogniser
    from foreword.pipeline.translator import TextTranslator
    from foreword.search.bm25 import BM25
    from foreword.search.cosine import CosineSearch
    from foreword.storage.folder import load, save
    from foreword.tag.bilstm import BiLSTMTagger
    from foreword.tag.features import FeatureTagger
    from foreword.tag.hmm import HMMTagger
    from foreword.text.datasets import dataset
    from foreword.text.embedded import embedded_text
    from foreword.text.labelled import read_labelled
    from foreword.text.sources import read_documents
    from foreword.tokens.bpe import BPETokenizer
    from foreword.tokens.characters import ByteTokenizer, CharacterTokenizer
    from foreword.tokens.corpus import Corpus
    from foreword.tokens.vocab import Vocab
    from foreword.tokens.words import WordTokenizer
    from foreword.translate.pairs import Pairs
    from foreword.translate.seq2seq import Seq2Seq
    from foreword.vectors.elmo import ELMo
    from foreword.vectors.glove import GloVe
    from foreword.vectors.word2vec import Word2Vec
    from foreword.vectors.wordvectors import WordVectors

__version__ = "0.2.0"

_HOME = {
    "AWDLSTM": "foreword.neural.awd_lstm",
    "BM25": "foreword.search.bm25",
    "BPETokenizer": "foreword.tokens.bpe",
    "BagOfWords": "foreword.features.bag",
    "BengioLM": "foreword.neural.bengio",
    "BiLSTMTagger": "foreword.tag.bilstm",
    "ByteTokenizer": "foreword.tokens.characters",
    "CharacterTokenizer": "foreword.tokens.characters",
    "CompressedTextIndex": "foreword.pipeline.compressed",
    "Corpus": "foreword.tokens.corpus",
    "CosineSearch": "foreword.search.cosine",
    "DynamicEvaluation": "foreword.neural.dynamic",
    "ELMo": "foreword.vectors.elmo",
    "FastText": "foreword.fasttext.vectors",
    "GloVe": "foreword.vectors.glove",
    "Measures": "foreword.measures.perplexity",
    "Mogrifier": "foreword.neural.mogrifier",
    "MonteCarloDropout": "foreword.neural.monte_carlo",
    "FeatureTagger": "foreword.tag.features",
    "ForewordError": "foreword.errors",
    "HMM": "foreword.hmm.model",
    "HMMTagger": "foreword.tag.hmm",
    "InfiniGramLM": "foreword.infinigram.model",
    "LDA": "foreword.features.topics",
    "LSA": "foreword.features.lsa",
    "LogisticRegression": "foreword.classify.logistic",
    "NBLogistic": "foreword.classify.logistic",
    "NaiveBayes": "foreword.classify.naive_bayes",
    "NeuralCache": "foreword.mix.neural_cache",
    "NgramLM": "foreword.ngram.model",
    "OneHot": "foreword.features.bag",
    "OneVsRest": "foreword.classify.one_vs_rest",
    "PLSA": "foreword.features.topics",
    "Pairs": "foreword.translate.pairs",
    "RecurrentClassifier": "foreword.classify.recurrent",
    "RecurrentLM": "foreword.neural.recurrent",
    "Seq2Seq": "foreword.translate.seq2seq",
    "SpeechRecogniser": "foreword.pipeline.speech",
    "Streaming": "foreword.neural.streaming",
    "TextClassifier": "foreword.pipeline.classifier",
    "TextIndex": "foreword.pipeline.index",
    "TextLM": "foreword.pipeline.language",
    "TextSearch": "foreword.pipeline.search",
    "TextTranslator": "foreword.pipeline.translator",
    "TfIdf": "foreword.features.tfidf",
    "TransformerLM": "foreword.neural.transformer",
    "UnigramLM": "foreword.ngram.unigram",
    "Vocab": "foreword.tokens.vocab",
    "Word2Vec": "foreword.vectors.word2vec",
    "WordTokenizer": "foreword.tokens.words",
    "WordVectors": "foreword.vectors.wordvectors",
    "beam_search": "foreword.decode",
    "cached": "foreword.mix.combine",
    "calibrated": "foreword.classify.calibration",
    "compare": "foreword.evaluate.compare.ladder",
    "dataset": "foreword.text.datasets",
    "embedded_text": "foreword.text.embedded",
    "measure": "foreword.measures.perplexity",
    "perplexity": "foreword.measures.perplexity",
    "generate": "foreword.decode",
    "interpolate": "foreword.mix.combine",
    "load": "foreword.storage.folder",
    "read_documents": "foreword.text.sources",
    "read_labelled": "foreword.text.labelled",
    "save": "foreword.storage.folder",
    "train": "foreword.pipeline.fitting",
    "word_cloud": "foreword.lessons.cloud",
}

__all__ = [  # noqa: RUF022 - it would put HMM first, taking it for a constant
    "AWDLSTM",
    "BM25",
    "BPETokenizer",
    "BagOfWords",
    "BengioLM",
    "BiLSTMTagger",
    "ByteTokenizer",
    "CharacterTokenizer",
    "CompressedTextIndex",
    "Corpus",
    "CosineSearch",
    "DynamicEvaluation",
    "ELMo",
    "FastText",
    "FeatureTagger",
    "ForewordError",
    "GloVe",
    "HMM",
    "HMMTagger",
    "InfiniGramLM",
    "LDA",
    "LSA",
    "LogisticRegression",
    "Measures",
    "Mogrifier",
    "MonteCarloDropout",
    "NBLogistic",
    "NaiveBayes",
    "NeuralCache",
    "NgramLM",
    "OneHot",
    "OneVsRest",
    "PLSA",
    "Pairs",
    "RecurrentClassifier",
    "RecurrentLM",
    "Seq2Seq",
    "SpeechRecogniser",
    "Streaming",
    "TextClassifier",
    "TextIndex",
    "TextLM",
    "TextSearch",
    "TextTranslator",
    "TfIdf",
    "TransformerLM",
    "UnigramLM",
    "Vocab",
    "Word2Vec",
    "WordTokenizer",
    "WordVectors",
    "beam_search",
    "cached",
    "calibrated",
    "compare",
    "dataset",
    "embedded_text",
    "generate",
    "interpolate",
    "load",
    "measure",
    "perplexity",
    "read_documents",
    "read_labelled",
    "save",
    "train",
    "word_cloud",
]


# PyTorch's threads are OpenMP's, which spin while they wait and so take cores from our own kernels and from other
# programs (docs/BENCHMARKS.md, "Threads that wait"). OpenMP reads this setting once, when torch is imported.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'foreword' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
