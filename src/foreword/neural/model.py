"""What all neural language models share: learning, scoring, stepping, saving.

A model's own file defines its network (``nn/network.py`` has the protocol) and its usual training settings. Text is
learnt as one stream, with the state carried across the ends of documents; each document is scored from a fresh state
that has read one ``</s>``, which stands for ``<s>``. To carry the state through a test set, make it one document.
Shapes: n texts of a batch, T steps, V words, D units that the softmax reads.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from inspect import Parameter, signature
from typing import Any, ClassVar, Self, cast

import numpy as np

from foreword.arrays import Array, Floats, Ids, Logs, Longs
from foreword.checks import check_corpus, check_ids, check_weights
from foreword.errors import InputError, MissingExtraError, SettingError
from foreword.measures.perplexity import MeanScore
from foreword.protocols import Json, NextToken, Parts, Rows, Step
from foreword.storage.checkpoint import Checkpoint
from foreword.tokens.corpus import Corpus
from foreword.tokens.vocab import LearntVocab, Vocab

try:
    import torch
    from torch import Tensor
except ImportError:
    raise MissingExtraError("torch", "neural", "a neural language model") from None

from foreword.neural.training import LanguageModelTask
from foreword.nn.dropout import Dropout
from foreword.nn.network import TEMPERATURE, Network, next_logs, read_units, word_logs
from foreword.training.engine import Trainer
from foreword.training.gradients import Shapes
from foreword.training.model import NeuralModel, exact, scoring_memory
from foreword.training.settings import Training, json_of
from foreword.training.task import Weights

READ_AT_ONCE = 8192
"""Words that are read together when scoring: documents of similar length in a batch, or a chunk of a long one."""

ADDED = ("mogrify", "softmaxes")
"""Settings that the first saved models do not have."""


@dataclass(frozen=True, slots=True)
class NeuralState:
    """The state of a model after n texts. hidden (n, D): what the softmax reads; parts: the network's state."""

    hidden: Floats
    parts: tuple[Array, ...]

    def __len__(self) -> int:
        return len(self.hidden)

    def __getitem__(self, rows: Rows) -> NeuralState:
        return NeuralState(self.hidden[rows], tuple(part[rows] for part in self.parts))


class NeuralLM(LearntVocab, MeanScore, NeuralModel[Corpus]):
    """A neural language model: a subclass stores its settings under their names, and supplies ``network``.

    COUNTED_BIAS: the words' biases begin as the logs of their frequencies in the training text. From zero, a small
    network by Adam learnt far less in the same number of updates, a tied GRU least of all.
    OPTIONS: settings that the constructor takes as ``**options``, with their defaults.
    PLAIN_CELLS: a recurrent model's layers are the cells of ``nn/cells.py``.
    temperature_: by which the softmax's logits are divided in scoring, chosen on held-out text (``tempered``).
    """

    COUNTED_BIAS: ClassVar[bool] = True
    PLAIN_CELLS: ClassVar[bool] = True
    TRAINING: ClassVar[Training] = Training(unknown=0.5)
    OPTIONS: ClassVar[Mapping[str, Any]] = {}
    NEEDS: ClassVar[str] = "corpus"
    STEPS: ClassVar[bool] = True

    def __init__(
        self,
        dropout: Dropout | float | None,
        training: Training | None,
        seed: int,
        device: str | None,
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(training, dropout, seed, device, settings)
        self.temperature_ = 1.0

    def network(self, vocab: Vocab) -> Network:
        """Return the network for a vocabulary."""
        raise NotImplementedError

    def __repr__(self) -> str:
        sizes = {name: value for name, value in self.settings().items() if type(value) in (int, str)}
        shown = ", ".join(f"{name}={value!r}" for name, value in sizes.items() if name != "seed")
        return f"{type(self).__name__}({shown})"

    def shapes(self) -> Shapes:
        """Return the names and shapes of the weights."""
        return self.network(self.vocab).tensors()

    @property
    def weights_(self) -> Weights:
        """The learnt weights by name, with the temperature where that is not 1."""
        weights = dict(super().weights_)
        if self.temperature_ != 1.0:
            weights[TEMPERATURE] = self.flat_weights().new_tensor([self.temperature_])
        return weights

    # Learning

    def _steps(
        self, trainer: Trainer, data: Corpus, valid: Corpus | None, checkpoint: Checkpoint | None
    ) -> Iterator[Step]:  # fmt: skip
        """Train, keeping the temperature of the best weights next to them."""
        self.temperature_ = 1.0
        tempered, known = cast(LanguageModelTask, trainer.task).tempered, -math.inf
        steps = super()._steps(trainer, data, valid, checkpoint)
        while True:
            step = next(steps, None)
            if tempered is not None and trainer.best_score > known:
                known = trainer.best_score
                self.temperature_ = tempered.temperature(trainer.best, known)
            if step is None:
                return
            yield step

    def task(self, data: Corpus, valid: Corpus | None) -> LanguageModelTask:
        """Check the texts and begin a run."""
        held_out = self.check_training(data, valid)
        self._vocab = data.vocab
        network = self.network(data.vocab)
        counted = self.COUNTED_BIAS
        return LanguageModelTask(network, data, held_out, self.training, self.dropout, counted_bias=counted)

    def check_training(self, corpus: Corpus, valid: Corpus | None) -> Corpus | None:
        """Refuse what cannot be learnt from; return the held-out text if there is one."""
        check_corpus(corpus)
        if len(corpus.ids) == 0:
            raise InputError(f"the training text is empty: {type(self).__name__} needs at least one document")
        if valid is not None and valid.vocab != corpus.vocab:
            raise InputError("the held-out text was turned into ids with another vocabulary than the training text's")
        corpus.check_ids()
        if self.training.precision == "float16" and self.torch_device().type == "cpu":
            raise SettingError("precision is 'float16', which needs a GPU: say 'float32', 'bfloat16' or 'auto'")
        if self.training.sampled and getattr(self, "softmaxes", 1) > 1:
            raise SettingError("softmaxes are mixed over all words: expected sampled=0 in the training")
        if valid is None or len(valid.ids) == 0:
            if self.training.needs_held_out:
                raise SettingError(
                    "schedule plateau or nt-asgd, patience or two_tailed needs a held-out text: give valid"
                )
            return None
        valid.check_ids()
        return valid

    def fingerprinted(self, data: Corpus) -> list[Array]:
        """Return the ids."""
        return [data.ids]

    # Scoring

    def logprobs(self, corpus: Corpus) -> Logs:
        """Return float64 (ids,): the log-probability of each id; documents of similar length are read together."""
        check_corpus(corpus, self.vocab)
        logs = np.empty(len(corpus.ids))
        lengths = np.diff(corpus.offsets)
        order = np.argsort(-lengths, kind="stable")
        with scoring_memory(), exact():
            while len(order):
                fit = max(1, READ_AT_ONCE // int(lengths[order[0]] or 1))
                group, order = order[:fit], order[fit:]
                self._score_group(corpus, group, lengths[group], logs)
        return logs

    def _score_group(self, corpus: Corpus, group: Longs, lengths: Longs, logs: Logs) -> None:
        """Score a batch of documents, the longest first; shorter ones are padded with ends."""
        longest, end = int(lengths[0]), self.vocab.end
        words = np.full((longest + 1, len(group)), end, np.int64)
        for row, (document, length) in enumerate(zip(group.tolist(), lengths.tolist(), strict=True)):
            words[1 : length + 1, row] = corpus.ids[corpus.offsets[document] : corpus.offsets[document] + length]
        weights, network, flat = self.weights_, self.network(self.vocab), self.flat_weights()
        ids = torch.from_numpy(words).to(flat.device)
        state = network.start(len(group), flat)
        there = torch.from_numpy(np.arange(longest)[:, None] < lengths).to(flat.device)
        scored = torch.zeros(longest, len(group), device=flat.device)
        stretch = max(1, READ_AT_ONCE // len(group))
        for begin in range(0, longest, stretch):
            inputs, targets = ids[begin : begin + stretch][: longest - begin], ids[begin + 1 : begin + stretch + 1]
            hidden, state = network.read(weights, inputs, state)
            here = there[begin : begin + stretch]
            scored[begin : begin + stretch][here] = word_logs(weights, hidden[here], targets[here])
        found = scored.cpu().numpy()
        for row, (document, length) in enumerate(zip(group.tolist(), lengths.tolist(), strict=True)):
            logs[corpus.offsets[document] : corpus.offsets[document] + length] = found[:length, row]

    def hidden_states(self, ids: Ids) -> Iterator[tuple[Tensor, Tensor]]:
        """Read a document chunk by chunk; yield what the softmax reads for each word (T, D), and the words (T,)."""
        weights, network, flat = self.weights_, self.network(self.vocab), self.flat_weights()
        words = torch.from_numpy(np.append(self.vocab.end, np.asarray(ids, np.int64))).to(flat.device)
        state = network.start(1, flat)
        for begin in range(0, len(ids), READ_AT_ONCE):
            targets = words[begin + 1 : begin + READ_AT_ONCE + 1]
            with scoring_memory(), exact():
                hidden, state = network.read(weights, words[begin : begin + len(targets), None], state)
            yield hidden[:, 0], targets

    # Stepping

    def stepping(self) -> NextToken[Any]:
        """Return the model for one token at a time; on a CPU recurrent networks do without torch, which is faster."""
        from foreword.neural.streaming import Streaming, streams

        fast = self.flat_weights().device.type == "cpu" and streams(self.network(self.vocab))
        return Streaming(self) if fast else self

    def start(self, n: int = 1) -> NeuralState:
        """Return the state of n texts of which one ``</s>`` has been read."""
        network, flat = self.network(self.vocab), self.flat_weights()
        parts = tuple(part.cpu().numpy() for part in network.start(n, flat))
        blank = np.zeros((n, read_units(self.weights_)), np.float32)
        return self.advance(NeuralState(blank, parts), np.full(n, self.vocab.end))

    def next_logprobs(self, state: NeuralState) -> Logs:
        """Return log-probabilities, float64 (n, V)."""
        with exact():
            hidden = torch.from_numpy(np.ascontiguousarray(state.hidden)).to(self.flat_weights().device)
            logs: Logs = next_logs(self.weights_, hidden).cpu().numpy()
        return logs

    def advance(self, state: NeuralState, ids: Ids) -> NeuralState:
        """Return the state after one more id of each text."""
        words = np.asarray(ids, np.int64)
        if len(words) != len(state):
            raise ValueError(f"{len(state)} texts but {len(words)} next tokens")
        if len(words) == 0:
            return state
        check_ids(words, len(self.vocab))
        device = self.flat_weights().device
        with exact():
            before = tuple(torch.from_numpy(np.ascontiguousarray(part)).to(device) for part in state.parts)
            read = self.network(self.vocab).read(self.weights_, torch.from_numpy(words).to(device)[None], before)
            hidden, after = read
            return NeuralState(hidden[0].cpu().numpy(), tuple(part.cpu().numpy() for part in after))

    def read_ahead(self, state: NeuralState, ids: Ids) -> tuple[Logs, NeuralState]:
        """Read several tokens of one text at once; return the log-probabilities after each, (k, V), and the state."""
        check_ids(np.asarray(ids), len(self.vocab))
        device = self.flat_weights().device
        with exact():
            before = tuple(torch.from_numpy(np.ascontiguousarray(part)).to(device) for part in state.parts)
            words = torch.from_numpy(np.asarray(ids, np.int64)).to(device)
            hidden, after = self.network(self.vocab).read(self.weights_, words[:, None], before)
            logs: Logs = next_logs(self.weights_, hidden[:, 0]).cpu().numpy()
        return logs, NeuralState(hidden[-1].cpu().numpy(), tuple(part.cpu().numpy() for part in after))

    # Saving

    def to_parts(self) -> Parts:
        """Return settings, weights and vocabulary."""
        return Parts(self.settings(), self.weight_arrays(prefix=""), self.vocab)

    def settings(self) -> dict[str, Json]:
        """Return what the constructor takes, for JSON; the device is a matter of the machine."""
        names = [*self.constructor_settings(), "dropout", "training", "seed"]
        return {name: _plain(getattr(self, name)) for name in names}

    @classmethod
    def constructor_settings(cls) -> dict[str, Any]:
        """Return the names and defaults of the settings of the network."""
        shared = ("dropout", "training", "seed", "device")
        own = (each for each in signature(cls).parameters.values() if each.kind is not Parameter.VAR_KEYWORD)
        return {each.name: each.default for each in own if each.name not in shared} | dict(cls.OPTIONS)

    @classmethod
    def from_parts(cls, parts: Parts) -> Self:
        """Restore a saved model, on whatever device there is."""
        vocab = parts.needed_vocab()
        parts.check_counts("layers", "mogrify", "rounds")
        model = cls(**_checked(cls, parts.settings))
        tensors = model.network(vocab).tensors()
        if set(parts.arrays) - {TEMPERATURE} != set(tensors):
            raise ValueError(f"the arrays are {sorted(parts.arrays)}, not {sorted(tensors)}")
        model.load_weights(tensors, parts.arrays, prefix="")
        model.temperature_ = _temperature_in(parts.arrays)
        model._vocab = vocab
        return model


def neural_model(model: object, needed_by: str, sort: str = "neural") -> NeuralLM:
    """Return a neural language model; raise a SettingError for anything else."""
    if not isinstance(model, NeuralLM):
        raise SettingError(f"{needed_by} needs a {sort} language model, not a {type(model).__name__}")
    return model


def _temperature_in(arrays: Mapping[str, Array]) -> float:
    """Return the temperature that was stored with the weights; 1 where there is none."""
    if TEMPERATURE not in arrays:
        return 1.0
    check_weights(arrays, {TEMPERATURE: (1,)}, "")
    temperature = float(arrays[TEMPERATURE][0])
    if not 0 < temperature < math.inf:
        raise ValueError(f"the temperature is {temperature}: expected a positive number")
    return temperature


def _plain(value: Any) -> Json:
    if isinstance(value, Training | Dropout):
        return json_of(value)
    found: Json = list(value) if isinstance(value, tuple) else value
    return found


def _checked(model: type[NeuralLM], settings: dict[str, Json]) -> dict[str, Any]:
    """Check saved settings against the constructor: the same names, each of its default's type. Return arguments."""
    wanted = {**model.constructor_settings(), "dropout": None, "training": None, "seed": 0}
    given: dict[str, Any] = {name: wanted[name] for name in ADDED if name in wanted} | settings
    if set(given) != set(wanted):
        raise ValueError(f"the settings are {sorted(settings)}, not {sorted(wanted)}")
    for name, default in wanted.items():
        kind = dict if name in ("dropout", "training") else type(default)
        if type(given[name]) is not kind:
            raise ValueError(f"{name} is {given[name]!r}: expected a {kind.__name__}")
    averages = given["training"].get("averages", [])
    if not isinstance(averages, list):
        raise ValueError("expected a list 'averages'")
    given["training"] = Training(**{**given["training"], "averages": tuple(averages)})
    given["dropout"] = Dropout(**given["dropout"])
    return given
