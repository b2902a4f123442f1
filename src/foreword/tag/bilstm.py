"""The neural tagger: an LSTM that reads a sentence both ways, over words and their letters, and a CRF over the tags.

    p(tags | words) ∝ exp Σ_t (e_t(y_t) + moves(y_(t−1), y_t))    e: ``bilstm_network.py``, the CRF: ``nn/crf.py``

Without the CRF every word's tag is chosen by itself, p(y_t) ∝ exp e_t(y_t). With a scheme for spans only well-formed
tags are predicted. Dropout masks are fixed for a whole sentence; rare words are, now and then, read as unknown ones, so
that the network learns what to make of these. The result is a running average of the weights.

Z. Huang, W. Xu and K. Yu, "Bidirectional LSTM-CRF models for sequence tagging" (2015); G. Lample et al., "Neural
architectures for named entity recognition" (2016); X. Ma and E. Hovy, "End-to-end sequence labeling via bi-directional
LSTM-CNNs-CRF" (2016). Shapes: B sentences, T words of the longest, K tags.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import replace
from itertools import chain
from typing import Any, ClassVar, Literal, Self, Unpack, cast

import numpy as np

from foreword.arrays import Array, Floats, Logs
from foreword.checks import check_choice, check_numbers, check_sentences
from foreword.errors import InputError, MissingExtraError, SettingError
from foreword.protocols import Embedder, Json, Meter, Parts, Sentences, Step, Tags
from foreword.storage.folder import load
from foreword.tag.schemes import Scheme, letters_of, span_f1
from foreword.tag.tagger import WordTagger, check_column, check_pairs, check_tag_names, packed
from foreword.vectors.wordvectors import WordVectors

try:
    import torch
    from torch import Tensor
except ImportError:
    raise MissingExtraError("torch", "neural", "a neural tagger") from None

from torch.nn.functional import cross_entropy, linear, log_softmax

from foreword.nn.crf import Chain, constrained, log_likelihood, marginals, viterbi
from foreword.nn.dropout import Dropout
from foreword.nn.embedder import fingerprint_of, nest_embedder, resolve_embedder, unnest_embedder
from foreword.nn.recurrent_layer import CELLS, layer_weights, run_layer, states_of
from foreword.storage.checkpoint import Checkpoint
from foreword.tag.bilstm_network import (
    UNSEEN,
    SentenceReader,
    TaggerNetwork,
    WordTable,
    distinct_words,
)
from foreword.training.batches import padded_ids, padded_vectors, similar_lengths
from foreword.training.engine import Trainer
from foreword.training.gradients import Shapes
from foreword.training.model import NeuralModel, exact
from foreword.training.settings import (
    Training,
    TrainingSettings,
    dropout_of,
    options_from,
    saved_settings,
    settings_of,
    without_later,
)
from foreword.training.task import BatchTask, Loss, Weights
from foreword.training.workers import SINGLE_WORKER, WorkerGroup

TaggedText = tuple[Sentences, Tags]

WORDS_AT_ONCE, PADDED_AT_ONCE = 1 << 15, 1 << 12
"""Positions that are read at once: on a CPU, where padding costs nothing, and elsewhere."""

SENTENCES_AT_ONCE = 4096
"""Sentences whose words are looked up at once."""

TRAINED = ("epochs", "batch", "optimiser", "rate", "clip", "average")
"""Names of training settings in model.json."""

OPTIONS: dict[str, Any] = {
    "words": 100, "characters": "cnn", "letter_units": 30, "spelling": 60, "crf": True, "both_ways": True,
    "inside": "bioes", "unseen": 1.0, "column": "upos", "cell": "lstm",
}  # fmt: skip


class TaggerOptions(TrainingSettings, total=False):
    """Options of ``BiLSTMTagger``, and training settings that may be given by name."""

    words: int
    characters: Literal["cnn", "lstm", "none"]
    letter_units: int
    spelling: int
    crf: bool
    both_ways: bool
    inside: Literal["bio", "bioes"]
    unseen: float
    column: str
    cell: str


class TaggingTask(BatchTask):
    """The tags of sentences, given their words.

    tags: indices of the scheme's inner tags. unseen: a word seen n times is read as an unknown one with probability
    unseen / (unseen + n). field: the scores of transitions, a function of the weights; None without a CRF.
    """

    network: TaggerNetwork

    def __init__(
        self,
        network: TaggerNetwork,
        words: WordTable,
        data: tuple[Sentences, list[Array]],
        embedder: Embedder | None,
        settings: tuple[int, Dropout, float],
        field: Callable[[Weights], Chain] | None,
    ) -> None:
        self.network, self.words, self.field = network, words, field
        self.sentences, self.tags = data
        batch, self.dropout, self.unseen = settings
        super().__init__([len(each) for each in self.sentences], batch)
        self.context = None if embedder is None else embedder.embed(self.sentences)

    def bind(self, device: torch.device, group: WorkerGroup) -> None:
        """Number the distinct words, and compute their probabilities of being read as unknown."""
        self.device = device
        self.distinct, self.ids = distinct_words(self.sentences, self.words, device)
        counts = torch.from_numpy(self.words.fold_counts).to(device)
        chances = self.unseen / (self.unseen + counts) if self.unseen else torch.zeros(len(counts), device=device)
        self.chances = chances.float()

    def scale(self) -> float:
        """Return the sentences of a batch: the loss is their sum, and one rate does for batches of any size."""
        return float(self.batch)

    def share(self, own: list[int], examples: list[int], workers: int) -> float:
        """Return the number of workers, for losses are sums."""
        return float(workers)

    def batch_loss(self, weights: Weights, examples: list[int], run: Trainer) -> Loss:
        """Return the nats of a batch, summed over its words; their mean is reported."""
        numbers, lengths = padded_ids([self.ids[k] for k in examples], self.device)
        wanted, _ = padded_ids([self.tags[k] for k in examples], self.device)
        context = None if self.context is None else padded_vectors([self.context[k] for k in examples], self.device)
        used, numbers = torch.unique(numbers, return_inverse=True)
        read = self.distinct.take(used)
        unknown = torch.rand(len(used), generator=run.generator, device=self.device) < self.chances[read.rows]
        read = replace(read, rows=read.rows.masked_fill(unknown, UNSEEN))
        vectors = self.network.word_vectors(weights, read)
        scores = self.network.emissions(weights, vectors, numbers, lengths, self.dropout, run.generator, context)
        if self.field is not None:
            try:
                nats = -log_likelihood(scores, wanted.t(), lengths, self.field(weights)).sum()
            except (
                InputError
            ):  # the tags are well formed, so a score is not a number: the engine reports a loss like that
                nats = scores.sum() * math.nan
        else:
            there = torch.arange(len(numbers), device=self.device) < lengths[:, None]
            nats = cross_entropy(scores[there], wanted.t()[there], reduction="sum")
        return Loss(nats, nats.detach() / int(self.lengths[examples].sum()))


class BiLSTMTagger(NeuralModel[TaggedText], WordTagger):
    """A supervised tagger of words, or of spans.

    units: LSTM units per direction; layers: number of LSTM layers.
    vectors: pre-trained word vectors, or their file; they are added to the learnt ones.
    embedder: ELMo or another ``Embedder``, or its folder; its contextual vector of each word is concatenated to the
        word's own. It is not trained.
    scheme: "bio", "iob1" or "bioes", if the tags are spans; None for other tags.
    dropout: dropout rate of word vectors, between layers and before the output; one number sets all three.
    training: its ``batch`` is in sentences. Fields may also be given by name: ``epochs``, ``rate``, ``average`` (one
        number of ``averages``; −1 for none) and others.
    device: "cuda" or "cpu"; None for the GPU, where there is one.
    words: size of the learnt word embedding; that of ``vectors``, if given. characters: character encoder: "cnn",
        "lstm" or "none"; letter_units: size of a character embedding; spelling: size of the character-based word
        vector.
    crf: put a conditional random field over the tags. both_ways: read from right to left as well. inside: span scheme
        used inside the network. unseen: in training, a word seen n times is read as unknown with probability
        unseen / (unseen + n).
    column: column of the tags in a file. cell: of the layers that read words: "lstm" or another one of ``RecurrentLM``.
    tags_: the tags, sorted. valid_score_: the best on held-out sentences: F1 of spans, or the share of right tags.
    """

    TRAINING: ClassVar[Training] = Training(
        epochs=25, batch=16, optimiser="adam", rate=2e-3, hold=0.3, last_rate=0.05, clip=5.0, weight_decay=0.0
    )
    DROPOUT: ClassVar[Dropout] = Dropout(words=0.0, input=0.5, between=0.5, output=0.5, recurrent=0.0)
    PLACES: ClassVar[tuple[str, ...]] = ("input", "between", "output")
    NEEDS: ClassVar[str] = "sentences, tags"

    def __init__(
        self,
        units: int = 200,
        layers: int = 1,
        *,
        vectors: WordVectors | str | None = None,
        embedder: Embedder | str | None = None,
        scheme: Literal["bio", "iob1", "bioes"] | None = None,
        dropout: Dropout | float | None = None,
        training: Training | None = None,
        seed: int = 0,
        device: str | None = None,
        **options: Unpack[TaggerOptions],
    ) -> None:
        super().__init__(training, dropout, seed, device, options)
        chosen = options_from(OPTIONS, options, *TrainingSettings.__annotations__)
        self.units, self.layers, self.vectors, self.embedder = units, layers, vectors, embedder
        self.words, self.characters = chosen["words"], chosen["characters"]
        self.letter_units, self.spelling = chosen["letter_units"], chosen["spelling"]
        self.crf, self.both_ways = chosen["crf"], chosen["both_ways"]
        self.scheme, self.inside = scheme, "bioes" if scheme == "bioes" else chosen["inside"]
        self.unseen, self.column, self.cell = chosen["unseen"], chosen["column"], chosen["cell"]
        self._embedder: Embedder | None = None
        self._lexicon: WordTable
        self._scheme: Scheme
        self._network: TaggerNetwork
        _check_settings(self)

    def __repr__(self) -> str:
        options = f"characters={self.characters!r}, crf={self.crf}, scheme={self.scheme!r}"
        return f"BiLSTMTagger({self.units}, {self.layers}, {options})"

    @property
    def tags_(self) -> list[str]:
        """The tags, sorted."""
        self.flat_weights()
        return self._scheme.outer

    @property
    def network_(self) -> TaggerNetwork:
        """The network for the learnt words and tags."""
        self.flat_weights()
        return self._network

    def shapes(self) -> Shapes:
        """Return the names and shapes of the weights."""
        return self._network.tensors()

    # Learning

    def fit(
        self,
        sentences: TaggedText | Sentences,
        tags: Tags | None = None,
        *,
        valid: TaggedText | None = None,
        meter: Meter | None = None,
    ) -> Self:
        """Train to the end on sentences and their tags, given as two arguments or as one pair."""
        return super().fit(_pair(sentences, tags), valid=valid, meter=meter)

    def train(
        self,
        sentences: TaggedText | Sentences,
        tags: Tags | None = None,
        *,
        valid: TaggedText | None = None,
        checkpoint: Checkpoint | None = None,
        group: WorkerGroup = SINGLE_WORKER,
    ) -> Iterator[Step]:
        """Train, yielding progress. With ``valid`` the best epoch on it is kept, else the last.

        With a checkpoint a run that was stopped resumes where it was.
        """
        yield from super().train(_pair(sentences, tags), valid=valid, checkpoint=checkpoint, group=group)

    def task(self, data: TaggedText, valid: TaggedText | None) -> TaggingTask:
        """Check the sentences, number their words and tags, and begin a run."""
        sentences, tags = data
        check_pairs(sentences, tags)
        if not any(map(len, sentences)):
            raise InputError("the training text is empty: a tagger needs at least one sentence with its tags")
        if valid is not None:
            check_pairs(*valid)
        scheme = Scheme.learnt(self.scheme, self.inside, tags)
        numbers = scheme.numbers(tags)
        self._embedder = resolve_embedder(self.embedder)
        self._set_words(WordTable.of(sentences, _load_vectors(self.vectors)), scheme)
        settings = self.training.batch, self.dropout, self.unseen
        field = self._chain if self.crf else None
        task = TaggingTask(self._network, self._lexicon, (sentences, numbers), self._embedder, settings, field)
        if valid is not None and any(map(len, valid[0])):
            task.evaluate = self.evaluator(lambda: self._measure(self.predict(valid[0]), valid[1]))
        return task

    def fingerprinted(self, data: TaggedText) -> list[Array]:
        """Return words, tags and the lengths of sentences; what is pre-trained is part of the data."""
        arrays = [part for texts in data for part in packed(chain.from_iterable(texts))]
        vectors = [] if self._lexicon.vectors is None else [self._lexicon.vectors]
        lengths = np.array([len(each) for each in data[0]], np.int64)
        return [*arrays, lengths, *vectors, *fingerprint_of(self._embedder)]

    def _measure(self, predicted: Tags, tags: Tags) -> float:
        if self.scheme is not None:
            return span_f1(predicted, tags)
        pairs = zip(chain.from_iterable(predicted), chain.from_iterable(tags), strict=True)
        return float(np.mean([ours == theirs for ours, theirs in pairs]))

    # Tagging

    def predict(self, sentences: Sentences) -> list[list[str]]:
        """Return the best tags of each sentence."""
        check_sentences(sentences)
        found: list[list[str]] = [[] for _ in sentences]
        for group, scores, lengths in self._scored(sentences):
            if self.crf or self._scheme.allowed is not None:
                numbers = viterbi(scores, lengths, self._chain(self.weights_))
            else:
                best = scores.argmax(2).tolist()
                numbers = [row[:size] for row, size in zip(best, lengths.tolist(), strict=True)]
            for sentence, tags in zip(group, numbers, strict=True):
                found[sentence] = self._scheme.names(tags)
        return found

    def predict_log_proba(self, sentences: Sentences) -> list[Logs]:
        """Return (length, K) for each sentence: log p(y_t = k | the whole sentence); −∞ for what is forbidden."""
        found: list[Logs] = [np.zeros((0, len(self.tags_))) for _ in sentences]
        gathering = self._scheme.gathering()
        for group, scores, lengths in self._scored(sentences):
            scores = scores.double()
            if self.crf or self._scheme.allowed is not None:
                parts = Chain(*(part.double() for part in self._chain(self.weights_)))
                shares = marginals(scores, lengths, parts).cpu().numpy()
            else:
                shares = log_softmax(scores, 2).exp().cpu().numpy()
            shares = shares if gathering is None else shares @ gathering
            with np.errstate(divide="ignore"):
                for sentence, rows, size in zip(group, shares, lengths.tolist(), strict=True):
                    found[sentence] = np.log(rows[:size] / rows[:size].sum(1, keepdims=True))
        return found

    def logits(self, sentences: Sentences) -> list[Floats]:
        """Return (length, inner tags) for each sentence: the scores of the output layer, before the CRF."""
        self.flat_weights()
        found: list[Floats] = [np.zeros((0, len(self._scheme.inner)), np.float32) for _ in sentences]
        for group, scores, lengths in self._scored(sentences):
            for sentence, rows, size in zip(group, scores.cpu().numpy(), lengths.tolist(), strict=True):
                found[sentence] = rows[:size].copy()
        return found

    def stream(self, words: Iterable[str]) -> Iterator[str]:
        """Yield the tag of each word before the next is read: for a model that reads in one direction only."""
        self.flat_weights()
        if self.both_ways:
            raise SettingError(
                "a model that reads both ways cannot stream: a word's tag depends on the words behind it; "
                "train with both_ways=False, or give it whole sentences"
            )
        if self._embedder is not None:
            raise SettingError("an embedder reads whole sentences: a tagger with one cannot stream")
        if self.crf or self.scheme is not None:
            raise SettingError("a CRF or a scheme chooses tags when the sentence has ended: train with crf=False")
        return self._streamed(words)

    def _streamed(self, words: Iterable[str]) -> Iterator[str]:
        weights, network = self.weights_, self._network
        zero = self.flat_weights().new_zeros(1, self.units)
        states = [(zero,) * states_of(self.cell)] * self.layers
        for word in words:
            with torch.inference_mode():
                x = network.word_vectors(weights, distinct_words([[word]], self._lexicon, zero.device)[0])
                for layer, state in enumerate(states):
                    parts = layer_weights(self.cell, weights, f"layer{layer}.ahead")
                    out, *after = run_layer(self.cell, x[None], state, parts)
                    x, states[layer] = out[0], tuple(after)
                best = int(linear(x, weights["output"], weights["bias"])[0].argmax())
            yield self._scheme.inner[best]

    def known_words(self) -> Collection[str]:
        """Return the words seen in training."""
        self.flat_weights()
        return self._lexicon.seen

    def _scored(self, sentences: Sentences) -> Iterator[tuple[list[int], Tensor, Tensor]]:
        """Yield sentences of similar length: which they are, their scores (B, T, K), their lengths; no empty ones."""
        weights, device = self.weights_, self.flat_weights().device
        for begin in range(0, len(sentences), SENTENCES_AT_ONCE):
            with exact():
                some = sentences[begin : begin + SENTENCES_AT_ONCE]
                distinct, ids = distinct_words(some, self._lexicon, device)
                vectors = self._network.word_vectors(weights, distinct)
                padded = device.type != "cpu" or self._embedder is not None or self.cell != "lstm"
                read = None if padded else SentenceReader(self._network, weights, vectors).emissions
            for group in similar_lengths([len(each) for each in ids], PADDED_AT_ONCE if padded else WORDS_AT_ONCE):
                with exact():
                    numbers, lengths = padded_ids([ids[sentence] for sentence in group], device)
                    if read is None:
                        context = self._context([some[sentence] for sentence in group])
                        scores = self._network.emissions(weights, vectors, numbers, lengths, context=context)
                    else:
                        scores = read(numbers, lengths)
                    yield [begin + sentence for sentence in group], scores, lengths

    def _context(self, sentences: Sentences) -> Tensor | None:
        if self._embedder is None:
            return None
        return padded_vectors(self._embedder.embed(sentences), self.flat_weights().device)

    def _chain(self, weights: Weights) -> Chain:
        chain = self._network.chain(weights)
        return chain if self._scheme.allowed is None else constrained(chain, self._scheme.allowed)

    # Saving

    def settings(self) -> dict[str, Json]:
        """Return the settings as model.json has them."""
        found: dict[str, Json] = {name: getattr(self, name) for name in ("units", "layers", *OPTIONS, "scheme", "seed")}
        found["dropout"] = dropout_of(self.dropout, self.PLACES)
        return without_later(found, OPTIONS, "cell") | settings_of(self.training, self.TRAINING, TRAINED)

    def to_parts(self) -> Parts:
        """Return settings, weights and words to be saved, and the embedder."""
        tags = list[Json](self.tags_)
        settings = {**self.settings(), "tags": tags, "has_vectors": self._lexicon.vectors is not None}
        parts = Parts(settings, {**self.weight_arrays(), **self._lexicon.to_arrays()})
        if self._embedder is not None:
            nest_embedder(self._embedder, parts, vocab_as_arrays=False)
        return parts

    @classmethod
    def from_parts(cls, parts: Parts) -> Self:
        """Build a tagger from saved parts, all of them checked."""
        settings: dict[str, Any] = {name: value for name, value in parts.settings.items() if name != "embedder"}
        tags, has_vectors = settings.pop("tags"), settings.pop("has_vectors")
        check_tag_names(tags)
        if tags != sorted(set(tags)):
            raise ValueError("'tags' must be sorted, each of them once")
        if type(has_vectors) is not bool:
            raise ValueError(f"'has_vectors' is {has_vectors!r}: expected true or false")
        parts.check_counts("layers")
        model = cls(**saved_settings(settings))
        model._embedder = model.embedder = unnest_embedder(parts)
        arrays = dict(parts.arrays)
        words = WordTable.from_arrays(arrays, model.words if has_vectors else None)
        scheme = Scheme(model.scheme, model.inside, tags)
        if scheme.outer != tags:
            raise ValueError(f"the tags are {tags[:5]}…, not {scheme.outer[:5]}… as the scheme has them")
        model._set_words(words, scheme)
        model.load_weights(model._network.tensors(), arrays)
        return model

    def _set_words(self, words: WordTable, scheme: Scheme) -> None:
        """Build the network for these words and tags."""
        self.words = self.words if words.vectors is None else words.vectors.shape[1]
        self._lexicon, self._scheme = words, scheme
        self._network = TaggerNetwork(
            words.rows,
            self.words,
            words.alphabet,
            self.letter_units,
            self.characters,
            self.spelling,
            self.units,
            self.layers,
            len(scheme.inner),
            self.both_ways,
            self.crf,
            0 if self._embedder is None else self._embedder.dimensions,
            self.cell,
        )


def _pair(sentences: TaggedText | Sentences, tags: Tags | None) -> TaggedText:
    found = cast(TaggedText, sentences) if tags is None else (cast(Sentences, sentences), tags)
    if not isinstance(found, tuple | list) or len(found) != 2:
        raise InputError("expected sentences and their tags")
    check_pairs(*found)
    return found


def _load_vectors(vectors: WordVectors | str | None) -> WordVectors | None:
    """Return the word vectors given, or those of the file of that name."""
    if not isinstance(vectors, str):
        return vectors
    found = load(vectors)
    found = getattr(found, "vectors_", found)
    if not isinstance(found, WordVectors):
        raise InputError(f"{vectors}: a {type(found).__name__}, not word vectors")
    return found


def _check_settings(tagger: BiLSTMTagger) -> None:
    check_numbers(tagger, "units", "layers", "words", "letter_units", "spelling", whole=True, least=1)
    check_numbers(tagger, "seed", whole=True, least=-math.inf)
    check_numbers(tagger, "unseen")
    check_choice(tagger, "characters", ("cnn", "lstm", "none"))
    check_choice(tagger, "inside", ("bio", "bioes"))
    check_choice(tagger, "cell", CELLS)
    check_choice(tagger, "device", (None, "cuda", "cpu"))
    for name in ("crf", "both_ways"):
        check_choice(tagger, name, (True, False))
    if tagger.scheme is not None:
        letters_of(tagger.scheme)
    if tagger.characters == "lstm" and tagger.spelling % 2:
        raise SettingError(f"spelling={tagger.spelling} must be even: half of it for each direction")
    check_column(tagger.column)
    if tagger.training.precision != "float32":
        raise SettingError(f"precision is {tagger.training.precision!r}: a tagger trains in float32")
