"""Foreword: every language model that came before the Transformer, in one fast Python package.

The names below are the public ones. They are imported when first used, so that ``import foreword`` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from foreword.classify.calibration import calibrated
    from foreword.classify.logistic import LogisticRegression
    from foreword.classify.naive_bayes import NaiveBayes
    from foreword.classify.nb_logistic import NBLogistic
    from foreword.classify.recurrent import RecurrentClassifier
    from foreword.classify.text import TextClassifier
    from foreword.decode import beam_search, generate
    from foreword.errors import ForewordError
    from foreword.evaluate.compare import compare
    from foreword.evaluate.perplexity import Measures, measure, perplexity
    from foreword.features.bag import BagOfWords, OneHot
    from foreword.features.bm25 import BM25
    from foreword.features.cosine import CosineSearch
    from foreword.features.lsa import LSA
    from foreword.features.tfidf import TfIdf
    from foreword.io.folder import load, save
    from foreword.lm.awd_lstm import AWDLSTM
    from foreword.lm.bengio import BengioLM
    from foreword.lm.combine import cached, interpolate
    from foreword.lm.dynamic import DynamicEvaluation
    from foreword.lm.hmm import HMM
    from foreword.lm.neural_cache import NeuralCache
    from foreword.lm.ngram import NgramLM
    from foreword.lm.recurrent import RecurrentLM
    from foreword.lm.streaming import Streaming
    from foreword.lm.transformer import TransformerLM
    from foreword.lm.unigram import UnigramLM
    from foreword.picture.cloud import word_cloud
    from foreword.pipeline import TextLM
    from foreword.search.text import TextSearch
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
    from foreword.translate.text import TextTranslator
    from foreword.vectors.elmo import ELMo
    from foreword.vectors.fasttext import FastText
    from foreword.vectors.glove import GloVe
    from foreword.vectors.word2vec import Word2Vec
    from foreword.vectors.wordvectors import WordVectors

__version__ = "0.1.0"

_HOME = {
    "AWDLSTM": "foreword.lm.awd_lstm",
    "BM25": "foreword.features.bm25",
    "BPETokenizer": "foreword.tokens.bpe",
    "BagOfWords": "foreword.features.bag",
    "BengioLM": "foreword.lm.bengio",
    "BiLSTMTagger": "foreword.tag.bilstm",
    "ByteTokenizer": "foreword.tokens.characters",
    "CharacterTokenizer": "foreword.tokens.characters",
    "Corpus": "foreword.tokens.corpus",
    "CosineSearch": "foreword.features.cosine",
    "DynamicEvaluation": "foreword.lm.dynamic",
    "ELMo": "foreword.vectors.elmo",
    "FastText": "foreword.vectors.fasttext",
    "GloVe": "foreword.vectors.glove",
    "Measures": "foreword.evaluate.perplexity",
    "FeatureTagger": "foreword.tag.features",
    "ForewordError": "foreword.errors",
    "HMM": "foreword.lm.hmm",
    "HMMTagger": "foreword.tag.hmm",
    "LSA": "foreword.features.lsa",
    "LogisticRegression": "foreword.classify.logistic",
    "NBLogistic": "foreword.classify.nb_logistic",
    "NaiveBayes": "foreword.classify.naive_bayes",
    "NeuralCache": "foreword.lm.neural_cache",
    "NgramLM": "foreword.lm.ngram",
    "OneHot": "foreword.features.bag",
    "Pairs": "foreword.translate.pairs",
    "RecurrentClassifier": "foreword.classify.recurrent",
    "RecurrentLM": "foreword.lm.recurrent",
    "Seq2Seq": "foreword.translate.seq2seq",
    "Streaming": "foreword.lm.streaming",
    "TextClassifier": "foreword.classify.text",
    "TextLM": "foreword.pipeline",
    "TextSearch": "foreword.search.text",
    "TextTranslator": "foreword.translate.text",
    "TfIdf": "foreword.features.tfidf",
    "TransformerLM": "foreword.lm.transformer",
    "UnigramLM": "foreword.lm.unigram",
    "Vocab": "foreword.tokens.vocab",
    "Word2Vec": "foreword.vectors.word2vec",
    "WordTokenizer": "foreword.tokens.words",
    "WordVectors": "foreword.vectors.wordvectors",
    "beam_search": "foreword.decode",
    "cached": "foreword.lm.combine",
    "calibrated": "foreword.classify.calibration",
    "compare": "foreword.evaluate.compare",
    "dataset": "foreword.text.datasets",
    "embedded_text": "foreword.text.embedded",
    "measure": "foreword.evaluate.perplexity",
    "perplexity": "foreword.evaluate.perplexity",
    "generate": "foreword.decode",
    "interpolate": "foreword.lm.combine",
    "load": "foreword.io.folder",
    "read_documents": "foreword.text.sources",
    "read_labelled": "foreword.text.labelled",
    "save": "foreword.io.folder",
    "word_cloud": "foreword.picture.cloud",
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
    "LSA",
    "LogisticRegression",
    "Measures",
    "NBLogistic",
    "NaiveBayes",
    "NeuralCache",
    "NgramLM",
    "OneHot",
    "Pairs",
    "RecurrentClassifier",
    "RecurrentLM",
    "Seq2Seq",
    "Streaming",
    "TextClassifier",
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
    "word_cloud",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'foreword' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
