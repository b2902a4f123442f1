"""The registry: every kind of model that can be saved, and the class that reads it back.

Data only. A class is named as ``"module:Class"`` and imported when a model of its kind is opened, so this module sits
below all of them. A file names a kind, never a class: no other code is ever imported.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

KINDS: dict[str, str] = {
    "unigram": "foreword.ngram.unigram:UnigramLM",
    "ngram": "foreword.ngram.model:NgramLM",
    "mixture": "foreword.mix.combine:Mixture",
    "cached": "foreword.mix.combine:Cached",
    "neural-cache": "foreword.mix.neural_cache:NeuralCache",
    "hmm": "foreword.hmm.model:HMM",
    "bengio": "foreword.neural.bengio:BengioLM",
    "recurrent": "foreword.neural.recurrent:RecurrentLM",
    "awd-lstm": "foreword.neural.awd_lstm:AWDLSTM",
    "transformer": "foreword.neural.transformer:TransformerLM",
    "hmm-tagger": "foreword.tag.hmm:HMMTagger",
    "bilstm-tagger": "foreword.tag.bilstm:BiLSTMTagger",
    "feature-tagger": "foreword.tag.features:FeatureTagger",
    "seq2seq": "foreword.translate.seq2seq:Seq2Seq",
    "text-translator": "foreword.pipeline.translator:TextTranslator",
    "lsa": "foreword.features.lsa:LSA",
    "text-lm": "foreword.pipeline.language:TextLM",
    "text-classifier": "foreword.pipeline.classifier:TextClassifier",
    "naive-bayes": "foreword.classify.naive_bayes:NaiveBayes",
    "logistic": "foreword.classify.logistic:LogisticRegression",
    "nb-logistic": "foreword.classify.logistic:NBLogistic",
    "calibrated": "foreword.classify.calibration:Calibrated",
    "bm25": "foreword.search.bm25:BM25",
    "cosine-search": "foreword.search.cosine:CosineSearch",
    "text-search": "foreword.pipeline.search:TextSearch",
    "word-vectors": "foreword.vectors.wordvectors:WordVectors",
    "word2vec": "foreword.vectors.word2vec:Word2Vec",
    "fasttext": "foreword.fasttext.vectors:FastText",
    "glove": "foreword.vectors.glove:GloVe",
    "cooccurrence": "foreword.vectors.cooccurrence:Cooccurrence",
    "recurrent-classifier": "foreword.classify.recurrent:RecurrentClassifier",
    "elmo": "foreword.vectors.elmo:ELMo",
    "static-embedder": "foreword.vectors.static:StaticEmbedder",
    "fasttext-classifier": "foreword.fasttext.classifier:FastTextClassifier",
    "word": "foreword.tokens.words:WordTokenizer",
    "character": "foreword.tokens.characters:CharacterTokenizer",
    "byte": "foreword.tokens.characters:ByteTokenizer",
    "bpe": "foreword.tokens.bpe:BPETokenizer",
    "corpus": "foreword.tokens.corpus:Corpus",
    "bag-of-words": "foreword.features.bag:BagOfWords",
    "one-hot": "foreword.features.bag:OneHot",
    "tf-idf": "foreword.features.tfidf:TfIdf",
}
"""What a model's folder may hold."""

VOCAB = "foreword.tokens.vocab:Vocab"
"""The class of every model's vocabulary."""

FOREIGN: dict[str, tuple[str, str]] = {
    "tokenizer.json": (
        "foreword.tokens.tokenizer_json:looks_like_tokenizer_json",
        "foreword.tokens.tokenizer_json:read_tokenizer_json",
    ),
    "ARPA": ("foreword.ngram.arpa:looks_like_arpa", "foreword.pipeline.language:load_arpa"),
    "fastText": ("foreword.fasttext.files:looks_like_fasttext", "foreword.fasttext.classifier:open_fasttext"),
    "word vectors": (
        "foreword.vectors.word2vec_file:looks_like_vectors",
        "foreword.vectors.word2vec_file:read_vectors",
    ),
}
"""Files of other tools: the function that recognises one by its content, and the function that opens it, in the order
in which they are tried.
"""


def resolve(home: str) -> Any:
    """Import what ``"module:name"`` names."""
    module, name = home.split(":")
    return getattr(import_module(module), name)
