"""The registry: every kind of model, where its class lives, and what can be done with it.

Data only. A class is named as ``"module:Class"`` and imported when it is needed, so this module sits below all of
them. Saving and loading, ``train``, ``classify``, ``tag``, ``tokenize``, ``evaluate``, ``serve``, ``filter``,
``compare``, the lab and the contract tests all read it: a new model is one file and one entry here.

A saved file names a kind, never a class: no other code is ever imported.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from importlib import import_module
from inspect import signature
from typing import Any, Literal, TypeAlias

from foreword.errors import NotSaveableError

Settings: TypeAlias = Mapping[str, Any]
"""Arguments of a constructor; those of a network's ``Training`` and ``Dropout`` may be among them: see ``build``."""

Task: TypeAlias = Literal[
    "language-model",
    "vectors",
    "classifier",
    "multi-label",
    "tagger",
    "tokenizer",
    "translator",
    "speech",
    "search",
    "features",
    "data",
]
TrainingOption: TypeAlias = Literal["resume", "ray", "memory", "valid", "meter", "veto"]

SCORING = ("score", "surprisal", "next", "generate", "tokenize")
WORD_VECTORS = ("embed", "nearest", "analogy")
MOST_WORDS = 50_000
"""Default limit of a network's vocabulary: its last layer has one row per word."""

NETWORK: tuple[TrainingOption, ...] = ("resume", "ray")
"""What the training of every neural language model supports."""


@dataclass(frozen=True, slots=True)
class Rung:
    """A model of fixed size that ``compare`` and the lab offer by a short name.

    title: its name in tables. settings: of its constructor.
    position: its position on the ladder of ``compare``, the oldest idea first; None if it is not there.
    lab: its name in the lab; None if the lab does not offer it. lab_settings: those that differ there, where a model
    has seconds to learn. sizes: the settings that the number of units on the lab's page stands for.
    gpu: whether ``compare`` trains it only with ``--device cuda``, by the recipe that is its default.
    optional: whether ``compare`` trains it only where it is named.
    """

    name: str
    title: str
    settings: Settings = field(default_factory=dict)
    position: int | None = None
    lab: str | None = None
    lab_settings: Settings = field(default_factory=dict)
    sizes: tuple[str, ...] = ()
    gpu: bool = False
    optional: bool = False


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of model.

    name: as ``model.json`` has it. home: its class, ``"module:Class"``.
    abilities: what a saved model can be asked for, named like the routes of the server; empty for models of ids,
    which answer through the ``text-...`` kind that holds them.
    names: what users train it by, with the constructor arguments that each name stands for.
    training: which options of training it supports.
    aliases: settings that other kinds have under another name, each with the constructor's own name.
    min_count: default threshold below which a word is unknown. max_words: default size of the vocabulary.
    features: the kind of features that a classifier learns from, and their settings; None if it reads text itself.
    network: whether it needs PyTorch. quick: whether a short text takes it less time than starting a thread would.
    threads: whether it scores documents on several threads, in eight bytes of memory per token.
    one_line: whether it reads a text up to the end of its first line, as fastText does.
    command: the command that makes one, for messages.
    rungs: models of this kind on the ladder and in the lab.
    """

    name: str
    home: str
    task: Task
    abilities: tuple[str, ...] = ()
    names: Mapping[str, Settings] = field(default_factory=dict)
    training: tuple[TrainingOption, ...] = ()
    aliases: Settings = field(default_factory=dict)
    min_count: int = 1
    max_words: int | None = None
    features: tuple[str, Settings] | None = None
    network: bool = False
    quick: bool = False
    threads: bool = False
    one_line: bool = False
    command: str = ""
    rungs: tuple[Rung, ...] = ()


def _recurrent_rung(cell: str, title: str, rate: float, position: int | None, tied_in_lab: bool = True) -> Rung:
    settings = {"cell": cell, "embedding": 128, "hidden": 128, "layers": 1, "rate": rate}
    short = {"steps": 20, "sampled": 500, "hold": 0.3, "last_rate": 0.01, "epochs": 100, "tied": tied_in_lab}
    sizes = ("embedding", "hidden")
    return Rung(
        cell, title, settings, position, lab=title, lab_settings={**dict.fromkeys(sizes, 64), **short}, sizes=sizes
    )


FEW_WORDS: Settings = {"dimensions": 50, "window": 4, "epochs": 8, "sample": 1e-3}
"""Word vectors of a text of some ten thousand words."""

WORDS_AND_PAIRS: tuple[str, Settings] = (
    "tf-idf",
    {"split": "punctuation", "ngrams": (1, 2), "sublinear": True},
)
"""Words, punctuation marks and pairs of them: of the features tried, the best on IMDB and never far from it on TREC,
SST-2, SMS spam and Reuters R8, by cross-validation on the training sets."""

_ENTRIES = (
    # Language models
    Kind(
        "unigram", "foreword.ngram.unigram:UnigramLM", "language-model", names={"unigram": {}}, quick=True,
        rungs=(Rung("unigram", "Unigram", position=1),),
    ),
    Kind(
        "ngram", "foreword.ngram.model:NgramLM", "language-model", names={"ngram": {}},
        training=("ray", "memory", "meter"), quick=True, threads=True,
        rungs=(
            Rung("bigram", "Bigram, Kneser-Ney", {"order": 2}, 2, lab="Bigram, Kneser-Ney"),
            Rung("trigram", "Trigram, Kneser-Ney", {"order": 3}, 3),
            Rung("5-gram", "5-gram, Kneser-Ney", {"order": 5}, 4, lab="5-gram, Kneser-Ney"),
        ),
    ),
    Kind("kenlm", "foreword.ngram.kenlm:KenlmLM", "language-model", quick=True, threads=True),
    Kind(
        "infini-gram", "foreword.infinigram.model:InfiniGramLM", "language-model", names={"infini-gram": {}},
        training=("meter",), quick=True, rungs=(Rung("infini-gram", "∞-gram, Kneser-Ney", position=4, optional=True),),
    ),
    Kind("mixture", "foreword.mix.combine:Mixture", "language-model"),
    Kind("matched-mixture", "foreword.mix.matched:MatchedMixture", "language-model"),
    Kind("cached", "foreword.mix.combine:Cached", "language-model"),
    Kind("neural-cache", "foreword.mix.neural_cache:NeuralCache", "language-model", network=True),
    Kind(
        "hmm", "foreword.hmm.model:HMM", "language-model", names={"hmm": {}},
        rungs=(
            Rung(
                "hmm", "HMM, 64 states", {"states": 64, "iterations": 40, "dtype": "float32"}, 5, lab="HMM",
                lab_settings={"states": 12, "iterations": 25, "threads": 1}, sizes=("states",),
            ),
        ),
    ),
    # Word vectors; words seen fewer than five times get none, as in word2vec and fastText: too little to learn from.
    Kind(
        "word2vec", "foreword.vectors.word2vec:Word2Vec", "vectors", WORD_VECTORS, names={"word2vec": {}},
        training=("resume",), min_count=5,
        rungs=(
            Rung("skip-gram", "Skip-gram", {"model": "skip-gram"}, lab="Skip-gram", lab_settings=FEW_WORDS),
            Rung("cbow", "CBOW", {"model": "cbow"}, lab="CBOW", lab_settings=FEW_WORDS),
        ),
    ),
    Kind(
        "fasttext", "foreword.fasttext.vectors:FastText", "vectors", WORD_VECTORS, names={"fasttext": {}},
        training=("resume",), min_count=5,
    ),
    Kind(
        "glove", "foreword.vectors.glove:GloVe", "vectors", WORD_VECTORS, names={"glove": {}},
        training=("resume", "memory", "meter"), min_count=5,
    ),
    Kind("word-vectors", "foreword.vectors.wordvectors:WordVectors", "vectors", WORD_VECTORS),
    Kind("static-embedder", "foreword.vectors.wordvectors:StaticEmbedder", "vectors", WORD_VECTORS),
    Kind(
        "elmo", "foreword.vectors.elmo:ELMo", "vectors", ("embed",), aliases={"hidden": "units", "vocab": "words"},
        network=True,
    ),
    Kind("cooccurrence", "foreword.vectors.cooccurrence:Cooccurrence", "data"),
    # Neural language models; they know the words that n-gram models of the same text know, so that perplexities can be
    # compared: ``Training.unknown`` has how they learn what an unknown word is.
    Kind(
        "bengio", "foreword.neural.bengio:BengioLM", "language-model", names={"bengio": {}}, training=NETWORK,
        max_words=MOST_WORDS, network=True,
        rungs=(
            Rung(
                "bengio", "Bengio’s network, 4 words",
                {"order": 5, "embedding": 128, "hidden": 128, "tied": True, "rate": 8e-3}, 6,
            ),
        ),
    ),
    Kind(
        "recurrent", "foreword.neural.recurrent:RecurrentLM", "language-model",
        names={
            cell: {"cell": cell}
            for cell in ("rnn", "irnn", "gru", "lstm", "min-gru", "cifg", "peephole", "ln-lstm", "slstm", "gru-before")
        },
        training=NETWORK, max_words=MOST_WORDS, network=True,
        rungs=(
            _recurrent_rung("rnn", "RNN", 3e-3, 7),
            _recurrent_rung("lstm", "LSTM", 8e-3, 8),
            _recurrent_rung("gru", "GRU", 6e-3, 9, tied_in_lab=False),
            _recurrent_rung("gru-before", "GRU, reset before", 6e-3, None, tied_in_lab=False),
            _recurrent_rung("min-gru", "Minimal GRU", 1e-2, 11),
        ),
    ),
    Kind(
        "awd-lstm", "foreword.neural.awd_lstm:AWDLSTM", "language-model", names={"awd-lstm": {}}, training=NETWORK,
        max_words=MOST_WORDS, network=True, rungs=(Rung("awd-lstm", "AWD-LSTM", position=12, gpu=True),),
    ),
    Kind(
        "mogrifier", "foreword.neural.mogrifier:Mogrifier", "language-model", names={"mogrifier": {}}, training=NETWORK,
        aliases={"hidden": "units"}, max_words=MOST_WORDS, network=True,
        rungs=(Rung("mogrifier", "Mogrifier LSTM", position=13, gpu=True),),
    ),
    Kind(
        "transformer", "foreword.neural.transformer:TransformerLM", "language-model", names={"transformer": {}},
        training=NETWORK, aliases={"hidden": "units"}, max_words=MOST_WORDS, network=True,
        rungs=(
            Rung(
                "transformer", "Transformer, 2 layers",
                {"units": 128, "layers": 2, "heads": 4, "context": 32, "rate": 4e-3}, 10,
            ),
        ),
    ),
    # Classifiers
    Kind(
        "nb-logistic", "foreword.classify.logistic:NBLogistic", "classifier", names={"nb-logistic": {}},
        features=WORDS_AND_PAIRS,
    ),
    Kind(
        "naive-bayes", "foreword.classify.naive_bayes:NaiveBayes", "classifier", names={"naive-bayes": {}},
        features=("bag-of-words", {}),
    ),
    Kind(
        "logistic", "foreword.classify.logistic:LogisticRegression", "classifier", names={"logistic": {}},
        features=WORDS_AND_PAIRS,
    ),
    Kind("calibrated", "foreword.classify.calibration:Calibrated", "classifier"),
    Kind("one-vs-rest", "foreword.classify.one_vs_rest:OneVsRest", "multi-label"),
    Kind(
        "recurrent-classifier", "foreword.classify.recurrent:RecurrentClassifier", "classifier", ("classify",),
        names={"lstm": {}}, training=("resume",), aliases={"head": "units", "max_words": "words"}, network=True,
    ),
    Kind(
        "fasttext-classifier", "foreword.fasttext.classifier:FastTextClassifier", "classifier", ("classify",),
        names={"fasttext": {}}, training=("resume",), quick=True, one_line=True,
    ),
    # Taggers
    Kind(
        "hmm-tagger", "foreword.tag.hmm:HMMTagger", "tagger", ("tag",), names={"hmm": {}}, quick=True,
        command="foreword tag train",
    ),
    Kind(
        "feature-tagger", "foreword.tag.features:FeatureTagger", "tagger", ("tag",), names={"features": {}}, quick=True,
        command="foreword tag train",
    ),
    Kind(
        "bilstm-tagger", "foreword.tag.bilstm:BiLSTMTagger", "tagger", ("tag",), names={"bilstm": {}},
        training=("valid", "resume"), aliases={"hidden": "units", "embedding": "words"}, network=True,
        command="foreword tag train",
    ),
    # Translation, speech and search
    Kind(
        "seq2seq", "foreword.translate.seq2seq:Seq2Seq", "translator",
        aliases={"hidden": "units", "embedding": "words"}, network=True,
    ),
    Kind(
        "recogniser", "foreword.speech.recogniser:Recogniser", "speech", names={"speech": {}},
        training=("valid", "resume"), aliases={"hidden": "units"}, network=True,
    ),
    Kind("bm25", "foreword.search.bm25:BM25", "search"),
    Kind("cosine-search", "foreword.search.cosine:CosineSearch", "search"),
    # A model and what turns text into its input
    Kind("text-lm", "foreword.pipeline.language:TextLM", "language-model", SCORING, command="foreword train"),
    Kind(
        "text-classifier", "foreword.pipeline.classifier:TextClassifier", "classifier", ("classify",), quick=True,
        command="foreword classify train",
    ),
    Kind(
        "text-translator", "foreword.pipeline.translator:TextTranslator", "translator", ("translate",), network=True,
        command="foreword translate train",
    ),
    Kind(
        "speech-recogniser", "foreword.pipeline.speech:SpeechRecogniser", "speech", ("transcribe",), network=True,
        command="foreword speech train",
    ),
    Kind(
        "text-search", "foreword.pipeline.search:TextSearch", "search", ("search",), command="foreword search index"
    ),
    Kind(
        "text-index", "foreword.pipeline.index:TextIndex", "search", ("index", "count"), command="foreword index build"
    ),
    Kind("compressed-text-index", "foreword.pipeline.compressed:CompressedTextIndex", "search", ("count",)),
    # Tokenizers
    Kind(
        "bpe", "foreword.tokens.bpe:BPETokenizer", "tokenizer", ("tokenize",), quick=True,
        names={"bpe": {"kind": "bytes"}, "bpe-characters": {"kind": "characters"}},
        training=("resume", "ray", "memory", "veto"),
    ),
    Kind(
        "word", "foreword.tokens.words:WordTokenizer", "tokenizer", ("tokenize",), names={"word": {}},
        training=("ray",), quick=True,
    ),
    Kind(
        "character", "foreword.tokens.characters:CharacterTokenizer", "tokenizer", ("tokenize",),
        names={"character": {}}, quick=True,
    ),
    Kind(
        "byte", "foreword.tokens.characters:ByteTokenizer", "tokenizer", ("tokenize",), names={"byte": {}}, quick=True
    ),
    Kind("hashed-words", "foreword.ngram.kenlm_words:HashedWords", "tokenizer", ("tokenize",), quick=True),
    Kind(
        "sentencepiece", "foreword.tokens.sentencepiece:SentencePieceTokenizer", "tokenizer", ("tokenize",),
        names={"unigram": {}}, training=("memory",), quick=True,
    ),
    Kind("steps", "foreword.tokens.steps.tokenizer:StepTokenizer", "tokenizer", ("tokenize",), quick=True),
    # Features and data
    Kind("bag-of-words", "foreword.features.bag:BagOfWords", "features", names={"bag-of-words": {}}),
    Kind("tf-idf", "foreword.features.tfidf:TfIdf", "features", names={"tf-idf": {}}),
    Kind("one-hot", "foreword.features.bag:OneHot", "features"),
    Kind("lsa", "foreword.features.lsa:LSA", "features"),
    Kind("plsa", "foreword.features.topics:PLSA", "features"),
    Kind("lda", "foreword.features.topics:LDA", "features"),
    Kind("corpus", "foreword.tokens.corpus:Corpus", "data"),
    Kind("suffix-index", "foreword.infinigram.index:SuffixIndex", "data"),
    Kind("compressed-index", "foreword.infinigram.compressed:CompressedIndex", "data"),
)  # fmt: skip

KINDS: dict[str, Kind] = {kind.name: kind for kind in _ENTRIES}
"""By the name in ``model.json``."""

VOCAB = "foreword.tokens.vocab:Vocab"
"""The class of every model's vocabulary."""

FOREIGN: dict[str, tuple[str, str]] = {
    "KenLM binary": ("foreword.ngram.kenlm_format:looks_like_kenlm", "foreword.pipeline.language:load_kenlm"),
    "tokenizer.json": (
        "foreword.tokens.tokenizer_json:looks_like_tokenizer_json",
        "foreword.tokens.tokenizer_json:read_tokenizer_json",
    ),
    "sentencepiece": (
        "foreword.tokens.sentencepiece_file:looks_like_sentencepiece",
        "foreword.tokens.sentencepiece:load_sentencepiece",
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


def find(model: object) -> Kind | None:
    """Return the kind of a model, by its class; None for a class that has no entry."""
    home = f"{type(model).__module__}:{type(model).__qualname__}"
    return next((kind for kind in KINDS.values() if kind.home == home), None)


def of(model: object) -> Kind:
    """Return the kind of a model, by its class."""
    kind = find(model)
    if kind is None:
        raise NotSaveableError(model)
    return kind


def trained_as(*tasks: Task) -> dict[str, Kind]:
    """Return the kinds of these tasks that can be trained, by the names that users give them."""
    return {name: kind for kind in KINDS.values() if kind.task in tasks for name in kind.names}


def made_for(ability: str) -> tuple[str, str]:
    """Return what a model is called that has an ability, and the command that makes one."""
    makers = [kind for kind in KINDS.values() if ability in kind.abilities and kind.command]
    return (makers[0].name if len(makers) == 1 else f"a {makers[0].task}"), makers[0].command


def rungs() -> dict[str, tuple[Rung, Kind]]:
    """Return the models that ``compare`` and the lab offer by name, those of the ladder first and in its order."""
    found = [(rung, kind) for kind in KINDS.values() for rung in kind.rungs]
    found.sort(key=lambda pair: (pair[0].position is None, pair[0].position or 0))
    return {rung.name: (rung, kind) for rung, kind in found}


def resolve(home: str) -> Any:
    """Import what ``"module:name"`` names."""
    module, name = home.split(":")
    return getattr(import_module(module), name)


DROPOUT_PLACES = ("input", "between", "output")
"""Which fields of ``Dropout`` the one setting ``dropout`` stands for, unless a class has its own of that name."""


def build(kind: Kind, settings: Settings) -> Any:
    """Construct a model from flat settings: arguments of its constructor, fields of its ``Training``, and its dropout.

    ``dropout`` is for the inputs, the outputs and what lies between the layers; ``dropout.recurrent`` for one place.
    A dataclass may also be given whole, as ``training=Training(...)``.
    """
    model = resolve(kind.home)
    usual, given = nested_settings(model), {kind.aliases.get(name, name): value for name, value in settings.items()}
    if "training" in usual:
        own = signature(model).parameters
        names = [each.name for each in fields(usual["training"]) if each.name in given and each.name not in own]
        chosen = {name: given.pop(name) for name in names}
        given["training"] = replace(given.get("training") or usual["training"], **chosen)
    if "dropout" in usual and any(name.split(".")[0] == "dropout" for name in given):
        share = given.pop("dropout", None)
        whole = not isinstance(share, int | float)
        chosen = {} if whole else dict.fromkeys(getattr(model, "DROPOUT_PLACES", DROPOUT_PLACES), share)
        for name in [name for name in given if name.startswith("dropout.")]:
            chosen[name.removeprefix("dropout.")] = given.pop(name)
        given["dropout"] = replace((whole and share) or usual["dropout"], **chosen)
    return model(**given)


def aliases_at(*homes: str) -> dict[str, str]:
    """Return the aliases of the settings of classes, by their homes."""
    return {name: own for kind in KINDS.values() if kind.home in homes for name, own in kind.aliases.items()}


def nested_settings(model: type) -> dict[str, Any]:
    """Return the arguments of a constructor that are dataclasses of settings, with what the class has by default."""
    usual = {"training": getattr(model, "TRAINING", None), "dropout": getattr(model, "DROPOUT", None)}
    return {name: value for name, value in usual.items() if name in signature(model).parameters and is_dataclass(value)}
