"""The translator: an encoder reads a sentence, a decoder writes another, and attention aligns the two.

    p(d_1 … d_T | e) = Π_t p(d_t | d_<t, e)        the network: ``network.py``, the search: ``search.py``

Its loss is in ``training.py``; the result is a running average of the weights. Models know ids, never text:
``pipeline/translator.py`` has the tokenizers of both languages.
Shapes: B sentences, S source and T target ids, N target ids of a batch, V target words, E units of a word.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Literal, Self, Unpack

import numpy as np

from foreword.arrays import Array, Floats, Ids, Logs, Longs
from foreword.checks import check_choice, check_numbers
from foreword.decode import Goal, Hypothesis, Normalisation
from foreword.errors import InputError, MissingExtraError, NotFittedError, SettingError
from foreword.protocols import Json, Meter, Parts, Step
from foreword.tokens.corpus import Corpus
from foreword.tokens.vocab import Vocab

try:
    import torch  # noqa: F401
except ImportError:
    raise MissingExtraError("torch", "neural", "a translator") from None

from foreword.nn.dropout import Dropout
from foreword.nn.recurrent_layer import CELLS, CellName
from foreword.storage.checkpoint import Checkpoint
from foreword.training.batches import padded_ids
from foreword.training.gradients import Shapes
from foreword.training.model import NeuralModel, exact
from foreword.training.settings import (
    PLACES,
    Training,
    TrainingSettings,
    dropout_of,
    options_from,
    saved_settings,
    settings_of,
    without_later,
)
from foreword.training.task import Task
from foreword.training.workers import SINGLE_WORKER, WorkerGroup
from foreword.translate.greedy import Greedy
from foreword.translate.network import ATTENTIONS, EncoderMemory, Read, TranslationNetwork
from foreword.translate.pairs import (
    PairBatch,
    Pairs,
    batch_of,
    bucketed,
    documents_of,
    lengths_of,
    vocab_from_arrays,
    vocab_to_arrays,
)
from foreword.translate.search import Conditioned, Decoder, search
from foreword.translate.training import SCHEDULES, TranslationObjective, TranslationTask

SEARCHED_AT_ONCE = {"cpu": 64, "cuda": 512}
"""Sources whose translations are searched for together."""

SCORED_AT_ONCE = 8192
"""Target ids that are scored together."""

TRAINED = ("epochs", "batch", "rate", "clip", "average", "every", "patience", "seconds")
"""Names of training settings in model.json."""

OPTIONS: dict[str, Any] = {
    "encoder": None, "both_ways": True, "feed": False, "tied": True,
    "smoothing": 0.1, "teacher": True, "sampling": "none", "truth": 0.7, "one_network": False,
}  # fmt: skip


class TranslatorOptions(TrainingSettings, total=False):
    """Options of ``Seq2Seq``, and training settings that may be given by name."""

    encoder: int | None
    both_ways: bool
    feed: bool
    tied: bool
    smoothing: float
    teacher: bool
    sampling: Literal["none", "linear", "exponential", "inverse-sigmoid"]
    truth: float
    one_network: bool


class Seq2Seq(NeuralModel[Pairs]):
    """An encoder and a decoder.

    units: decoder units; layers: layers of encoder and decoder; words: size of the word embeddings.
    cell: recurrent cell of encoder and decoder, as in ``RecurrentLM``. attention: the score of source words, or "none".
    dropout: dropout rate of word vectors, between layers and before the softmax; one number sets all three. A
        ``Dropout`` may also drop whole ``words``, drawn again at every position.
    training: its ``batch`` is in target ids. Fields may also be given by name: ``epochs``, ``rate``, ``average`` (one
        number of ``averages``; −1 for none), ``every`` (epochs between two evaluations) and others.
    device: "cuda" or "cpu"; None for the GPU, where there is one.
    encoder: encoder units, half of them per direction; None for as many as the decoder has. both_ways: read the source
        from right to left as well. feed: input feeding: the decoder also reads its last output. tied: the target
        embedding is the output layer too. Languages with one vocabulary share one embedding.
    smoothing: label smoothing. teacher: teacher forcing; if False, the decoder reads its own predictions in training.
        sampling: scheduled sampling: "none", "linear", "exponential" or "inverse-sigmoid" decay of the probability that
        the decoder reads the true word.
        truth: probability of the true word at the end of training, for scheduled sampling.
    one_network: no encoder; the decoder reads the source itself before it writes. Needs ``attention="none"``.
    valid_score_: the best score on held-out pairs.
    """

    TRAINING: ClassVar[Training] = Training(
        epochs=30, batch=2000, optimiser="adam", rate=1e-3, warm_up=200, hold=0.2, last_rate=0.02, clip=1.0,
        weight_decay=0.0, precision="float16", loss_scale=1024.0,
    )  # fmt: skip
    DROPOUT: ClassVar[Dropout] = Dropout(words=0.0, input=0.3, between=0.3, output=0.3, recurrent=0.0)
    PLACES: ClassVar[tuple[str, ...]] = (*PLACES, "words")
    NEEDS: ClassVar[str] = "pairs"

    def __init__(
        self,
        units: int = 256,
        layers: int = 1,
        *,
        cell: CellName = "lstm",
        words: int = 256,
        attention: Literal["additive", "dot", "general", "scaled", "none"] = "general",
        dropout: Dropout | float | None = None,
        training: Training | None = None,
        seed: int = 0,
        device: str | None = None,
        **options: Unpack[TranslatorOptions],
    ) -> None:
        super().__init__(training, dropout, seed, device, options)
        chosen = options_from(OPTIONS, options, *TrainingSettings.__annotations__)
        self.units, self.layers, self.cell, self.words, self.attention = units, layers, cell, words, attention
        self.encoder: int | None = chosen["encoder"]
        self.both_ways, self.feed, self.tied = chosen["both_ways"], chosen["feed"], chosen["tied"]
        self.smoothing, self.teacher = chosen["smoothing"], chosen["teacher"]
        self.sampling, self.truth = chosen["sampling"], chosen["truth"]
        self.one_network: bool = chosen["one_network"]
        self._vocabs: tuple[Vocab, Vocab] | None = None
        self._network: TranslationNetwork
        _check(self)

    def __repr__(self) -> str:
        return f"Seq2Seq({self.units}, {self.layers}, cell={self.cell!r}, attention={self.attention!r})"

    @property
    def source_vocab(self) -> Vocab:
        """The vocabulary of the source."""
        return self._known_vocabs()[0]

    @property
    def vocab(self) -> Vocab:
        """The vocabulary of the target."""
        return self._known_vocabs()[1]

    @property
    def network_(self) -> TranslationNetwork:
        """The network for the learnt vocabularies."""
        self._known_vocabs()
        return self._network

    def shapes(self) -> Shapes:
        """Return the names and shapes of the weights."""
        return self.network_.tensors()

    # Learning

    def train(
        self,
        data: Pairs,
        *,
        valid: Pairs | None = None,
        checkpoint: Checkpoint | None = None,
        group: WorkerGroup = SINGLE_WORKER,
        measure: Callable[[Self], float] | None = None,
    ) -> Iterator[Step]:
        """Train, yielding progress. With ``valid`` the best epoch is kept: by its score, or by ``measure``, a function
        of the model. With a checkpoint a run that was stopped resumes where it was.
        """
        if valid is None and measure is None and self.training.patience:
            raise SettingError(f"patience={self.training.patience} needs held-out pairs: give valid")
        task = self.task(data, valid)
        if measure is not None:
            task.evaluate = self.evaluator(lambda: measure(self))
        yield from self._steps(self._begin(task, group), data, valid, checkpoint)

    def task(self, data: Pairs, valid: Pairs | None) -> TranslationTask:
        """Check the pairs and begin a run."""
        if len(data) == 0:
            raise InputError("the training text is empty: a translator needs at least one pair of sentences")
        for each in (data, valid):
            if each is not None:
                each.check()
        vocabs = data.sources.vocab, data.targets.vocab
        if valid is not None and (valid.sources.vocab, valid.targets.vocab) != vocabs:
            raise InputError("the held-out pairs were turned into ids with other vocabularies than the training pairs'")
        self._vocabs, self._network = vocabs, self._network_of(*vocabs)
        objective = TranslationObjective(self.smoothing, self.teacher, self.sampling, self.truth)
        task = TranslationTask(self._network, data, self.training.batch, self.dropout, objective)
        if valid is not None and len(valid):
            task.evaluate = self.evaluator(lambda: self.score(valid))
        return task

    def training_settings(self, task: Task) -> Training:
        """Warm up for a tenth of the updates, at most."""
        assert isinstance(task, TranslationTask)
        tenth = 1 + self.training.epochs * int(task.lengths.sum()) // self.training.batch // 10
        return replace(self.training, warm_up=min(self.training.warm_up, tenth))

    def fingerprinted(self, data: Pairs) -> list[Array]:
        """Return the ids of both sides."""
        return [data.sources.ids, data.targets.ids]

    # Scoring

    def logprobs(self, pairs: Pairs) -> list[Logs]:
        """Return (target ids,) for each pair: log p(d_t | d_<t, e), its end included; their sum is log p(d | e)."""
        found: list[Logs] = [np.empty(0)] * len(pairs)
        sizes = np.diff(pairs.targets.offsets)
        for group, batch, read in self._decoded(pairs, SCORED_AT_ONCE):
            with exact():
                logs = self._network.target_logprobs(self.weights_, read, batch.places, batch.targets)
            flat = np.empty(batch.inputs.numel())
            flat[batch.places.cpu().numpy()] = logs.cpu().numpy()
            columns = flat.reshape(batch.inputs.shape)
            for column, index in enumerate(group):
                found[index] = columns[: sizes[index], column].copy()
        return found

    def _decoded(self, pairs: Pairs, tokens: int) -> Iterator[tuple[list[int], PairBatch, Read]]:
        """Yield batches of about ``tokens`` target ids: the pairs' indices, the batch, and the decoder's outputs."""
        self._check_vocabs(pairs.sources, pairs.targets)
        sources, targets = documents_of(pairs.sources), documents_of(pairs.targets)
        for group in bucketed(lengths_of(sources), lengths_of(targets), tokens):
            batch = self._batch([sources[k] for k in group], [targets[k] for k in group])
            with exact():
                memory = self._network.encode(self.weights_, batch.source, batch.lengths)
                read = self._network.decode(self.weights_, memory, batch.inputs, memory.state)
            yield group, batch, read

    def score(self, pairs: Pairs) -> float:
        """Return the mean log-probability of a target id; perplexity is exp of minus it."""
        if len(pairs) == 0:
            raise InputError("there are no pairs: there is nothing to score")
        return float(np.concatenate(self.logprobs(pairs)).mean())

    def attend(self, pairs: Pairs) -> list[Floats]:
        """Return attention weights (target ids, source ids) for each pair, both ends included."""
        if self.attention == "none":
            raise SettingError("this model has no attention: there is nothing to show")
        found: list[Floats] = [np.empty((0, 0), np.float32)] * len(pairs)
        sources, targets = np.diff(pairs.sources.offsets), np.diff(pairs.targets.offsets)
        for group, _, read in self._decoded(pairs, SCORED_AT_ONCE // 4):
            assert read.weights is not None
            for weights, index in zip(read.weights.cpu().numpy(), group, strict=True):
                found[index] = weights[: targets[index], : sources[index]].copy()
        return found

    # Translating

    def condition(self, sources: Corpus) -> Conditioned:
        """Return the model after it has read these: what ``decode`` samples from and searches in."""
        self._check_vocabs(sources)
        with exact():
            return Conditioned(self._network, self.weights_, self._memory(documents_of(sources)), self.vocab)

    def translate(
        self, sources: Corpus, *, width: int = 5, others: Sequence[Seq2Seq] = (), **settings: Any
    ) -> list[Ids]:  # fmt: skip
        """Return the best target found for each source, without its end; ``search`` has the settings.

        A width of 1 is greedy, for which LSTMs on a CPU have a faster implementation.
        """
        on_cpu = bool(self._known_vocabs()) and self.flat_weights().device.type == "cpu"
        if width == 1 and self.cell == "lstm" and on_cpu and not self.one_network and not others:
            return self._greedy(sources, **settings)
        found = self.search(sources, width=width, others=others, **settings)
        return [np.array(texts[0].ids, np.int64) for texts in found]

    def _greedy(
        self, sources: Corpus, *, max_tokens: int = 100, meter: Meter | None = None, **settings: Any
    ) -> list[Ids]:  # fmt: skip
        """Translate greedily; penalties change nothing, since there is one text, but they are checked."""
        goal = Goal(1, 1, max_tokens, settings.pop("length_penalty", 1.0), self.vocab.end, **settings)
        if goal.coverage and self.attention == "none":
            raise SettingError("a coverage penalty needs attention, and this model has none")
        self._check_vocabs(sources)
        documents = documents_of(sources)
        report = None if meter is None else lambda begun: meter("translating", begun, len(documents))
        with exact():
            words = Greedy(self._network, self.weights_).translate(documents, self.vocab.end, max_tokens, report)
        return [np.array(ids, np.int64) for ids in words]

    def search(
        self,
        sources: Corpus,
        *,
        width: int = 5,
        max_tokens: int = 100,
        length_penalty: float = 1.0,
        normalisation: Normalisation = "power",
        coverage: float = 0.0,
        n_best: int = 1,
        others: Sequence[Seq2Seq] = (),
        meter: Meter | None = None,
    ) -> list[list[Hypothesis]]:
        """Search as ``decode.beam_search`` does, for every source; those of similar length together.

        others: fitted translators with the same vocabularies that write along: an ensemble, see ``search.py``.
        """
        self._check_vocabs(sources)
        if any(each._known_vocabs() != self._known_vocabs() for each in others):
            raise InputError("the models of an ensemble have different vocabularies: train them with one tokenizer")
        goal = Goal(width, n_best, max_tokens, length_penalty, self.vocab.end, normalisation, coverage)
        models, at_once = (self, *others), SEARCHED_AT_ONCE[self.flat_weights().device.type]
        with exact():
            return search(
                lambda group: [each._decoder(group) for each in models], documents_of(sources), goal, at_once, meter
            )

    def _decoder(self, documents: Sequence[Longs]) -> Decoder:
        """Read sources, each ending in ``</s>``; return what writes their translations."""
        return Decoder(self._network, self.weights_, self._memory(documents))

    def _memory(self, documents: Sequence[Longs]) -> EncoderMemory:
        source, lengths = padded_ids(documents, fill=self.source_vocab.end)
        device = self.flat_weights().device
        return self._network.encode(self.weights_, source.to(device), lengths.to(device))

    def _batch(self, sources: Sequence[Longs], targets: Sequence[Longs]) -> PairBatch:
        return batch_of(sources, targets, self.source_vocab.end, self.vocab.end).to(self.flat_weights().device)

    # Saving

    def settings(self) -> dict[str, Json]:
        """Return the settings as model.json has them."""
        own = ("units", "layers", "cell", "words", "attention", *OPTIONS, "seed")
        found: dict[str, Json] = {name: getattr(self, name) for name in own}
        found["dropout"] = dropout_of(self.dropout, self.PLACES)
        return without_later(found, OPTIONS, "one_network") | settings_of(self.training, self.TRAINING, TRAINED)

    def to_parts(self) -> Parts:
        """Return settings, weights and the target's vocabulary; that of the source is stored as arrays."""
        source, target = self._known_vocabs()
        parts = Parts({**self.settings(), "shared": self._network.shared}, self.weight_arrays(), target)
        if not self._network.shared:
            parts.settings["source"], arrays = vocab_to_arrays(source)
            parts.arrays.update(arrays)
        return parts

    @classmethod
    def from_parts(cls, parts: Parts) -> Self:
        """Restore a saved model, on whatever device there is."""
        settings: dict[str, Any] = dict(parts.settings)
        shared = settings.pop("shared")
        source_facts = settings.pop("source", None)
        if type(shared) is not bool:
            raise ValueError(f"'shared' is {shared!r}: expected true or false")
        target = parts.needed_vocab()
        parts.check_counts("layers")
        model = cls(**saved_settings(settings))
        source = target if shared else vocab_from_arrays(source_facts, parts.arrays)
        network = model._network_of(source, target)
        model.load_weights(network.tensors(), parts.arrays)
        model._vocabs, model._network = (source, target), network
        return model

    def _network_of(self, source: Vocab, target: Vocab) -> TranslationNetwork:
        sizes = (len(source), len(target), source == target, self.words, self.units, self.encoder or self.units)
        options = (self.layers, self.cell, self.both_ways, self.attention, self.feed, self.tied)
        return TranslationNetwork(*sizes, *options, one_network=self.one_network)

    def _known_vocabs(self) -> tuple[Vocab, Vocab]:
        if self._vocabs is None:
            raise NotFittedError(self, self.NEEDS)
        return self._vocabs

    def _check_vocabs(self, sources: Corpus, targets: Corpus | None = None) -> None:
        for side, corpus, vocab in (("sources", sources, self.source_vocab), ("targets", targets, self.vocab)):
            if corpus is None:
                continue
            if corpus.vocab != vocab:
                raise InputError(f"the {side} were turned into ids with another vocabulary than the model's")
            corpus.check_ids()


def _check(model: Seq2Seq) -> None:
    """Raise a SettingError for settings that make no sense, alone or together."""
    check_numbers(model, "units", "layers", "words", whole=True, least=1)
    check_numbers(model, "seed", whole=True)
    if model.encoder is not None:
        check_numbers(model, "encoder", whole=True, least=1)
    check_numbers(model, "smoothing", "truth", most=1)
    for name, choices in (
        ("cell", CELLS),
        ("attention", ATTENTIONS),
        ("sampling", SCHEDULES),
        ("device", (None, "cuda", "cpu")),
        *((name, (True, False)) for name in ("both_ways", "feed", "tied", "teacher", "one_network")),
    ):
        check_choice(model, name, choices)
    if model.one_network and (model.attention != "none" or model.feed or model.encoder is not None):
        raise SettingError("one_network=True has no encoder: expected attention='none', feed=False and encoder=None")
    if model.both_ways and (model.encoder or model.units) % 2:
        raise SettingError(f"encoder={model.encoder or model.units} must be even: half of it for each way to read")
    if model.attention in ("dot", "scaled") and model.encoder not in (None, model.units):
        raise SettingError(
            f"attention={model.attention!r} takes an encoder and a decoder of equal size, not {model.encoder} and "
            f"{model.units} units: general or additive attention takes any"
        )
