"""The machine that all neural language models share: learning, scoring, stepping, saving.

A model's own file says what its network is (``neural_network.py`` has the protocol) and how it is usually trained; all
else is here. Text is learnt as one stream, state carried across ends of documents; each document is scored from a fresh
state that has read one ``</s>``, which stands for ``<s>``. To have the state carried through a test set, make it one
document. Shapes: n texts side by side, T steps, V words, D units that the softmax reads.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, is_dataclass
from inspect import signature
from typing import Any, ClassVar, Self

import numpy as np

from foreword.arrays import Array, Floats, Ids, Logs, Longs
from foreword.checks import check_ids, check_weights
from foreword.errors import DivergedError, InputError, MissingExtraError, NotFittedError, SettingError
from foreword.protocols import Json, Meter, NextToken, Parts, Rows, Step
from foreword.tokens.corpus import Corpus
from foreword.tokens.vocab import Vocab

try:
    import torch
    from torch import Tensor
except ImportError:
    raise MissingExtraError("torch", "neural", "a neural language model") from None

from foreword.nn.dropout import Dropout
from foreword.nn.mixture import mixture_cross_entropy
from foreword.nn.network import (
    BIAS,
    EMBEDDING,
    OUTPUT,
    Network,
    State,
    Weights,
    mixed,
    mixture_of,
    next_logs,
    output_weight,
    parameter_count,
    word_logs,
)
from foreword.nn.sampled import sampled_cross_entropy, unigram
from foreword.nn.softmax import linear_cross_entropy, takes_room
from foreword.training.checkpoint import Checkpoint, fingerprint
from foreword.training.flat import choose_device, new_flat, views
from foreword.training.loop import PLANNED, Trainer
from foreword.training.reading import Reading
from foreword.training.settings import Training
from foreword.training.together import ALONE, Together

READ_AT_ONCE = 8192
"""Words that are read together when scoring: documents of like length side by side, or a stretch of a long one."""

HELD_OUT_ROWS, HELD_OUT_WORDS = 32, 100
"""Places in which the held-out text is read at once during training, at most, and words in each, at least; the final
scores read it from end to end."""

NOISE_POWER = 0.75
"""Words of a sampled softmax are drawn by their frequencies to this power, as in word2vec."""

LATER = ("mogrify", "softmaxes")
"""Settings that models saved before they came do not have."""

RAN_AWAY = 1000.0
"""Nats a word: a loss that no model has that learns anything."""

TOLD_EVERY = 0.3
"""Seconds between two Steps, about."""


@dataclass(frozen=True, slots=True)
class NeuralState:
    """What a model remembers of n texts. hidden (n, D): what the next word is told from; parts: the network's state."""

    hidden: Floats
    parts: tuple[Array, ...]

    def __len__(self) -> int:
        return len(self.hidden)

    def __getitem__(self, rows: Rows) -> NeuralState:
        return NeuralState(self.hidden[rows], tuple(part[rows] for part in self.parts))


class NeuralLM:
    """A subclass stores its settings under their names, and says ``network`` and how it is usually trained.

    TRAINING, DROPOUT: taken where none are given.
    COUNTED_BIAS: the words' biases begin as the logs of their shares of the training text. From zero, a small network
    by Adam learnt far less in the same number of updates, a tied GRU least of all.
    """

    COUNTED_BIAS: ClassVar[bool] = True
    TRAINING: ClassVar[Training] = Training()
    DROPOUT: ClassVar[Dropout] = Dropout()

    def __init__(self, dropout: Dropout | None, training: Training | None, seed: int, device: str | None) -> None:
        self.dropout = self.DROPOUT if dropout is None else dropout
        self.training = self.TRAINING if training is None else training
        self.seed = seed
        self.device = device
        self.valid_score_ = -np.inf
        self._vocab: Vocab | None = None
        self._flat: Tensor | None = None
        self._together: Together = ALONE

    def network(self, vocab: Vocab) -> Network:
        raise NotImplementedError

    def __repr__(self) -> str:
        sizes = {name: value for name, value in self._settings().items() if type(value) in (int, str)}
        told = ", ".join(f"{name}={value!r}" for name, value in sizes.items() if name != "seed")
        return f"{type(self).__name__}({told})"

    @property
    def vocab(self) -> Vocab:
        if self._vocab is None:
            raise NotFittedError(self, "corpus")
        return self._vocab

    @property
    def parameter_count(self) -> int:
        return parameter_count(self.network(self.vocab))

    @property
    def weights_(self) -> Weights:
        """What was learnt, by name."""
        return views(self._learnt(), self.network(self.vocab).tensors())

    # Learning

    def fit(self, corpus: Corpus, *, valid: Corpus | None = None, meter: Meter | None = None) -> Self:
        for step in self.train(corpus, valid=valid):
            if meter is not None:
                meter(f"training, loss {step.loss:.3f}", step.done, step.total)
        return self

    def train(
        self,
        corpus: Corpus,
        *,
        valid: Corpus | None = None,
        checkpoint: Checkpoint | None = None,
        together: Together = ALONE,
    ) -> Iterator[Step]:
        """Learn, telling how far it is. With ``valid`` the model is, at any time, the best so far on it; without, what
        it was at the last look. With a checkpoint the run goes on where it was stopped. together: workers that do the
        same beside this one, see ``cluster/training.py``.
        """
        held_out = self._check(corpus, valid)
        trainer = self._trainer(corpus, together)
        self._together = together
        self._vocab, self._flat, self.valid_score_ = corpus.vocab, trainer.weights.clone(), -np.inf
        run = "" if checkpoint is None else self._fingerprint(corpus, valid)
        kept = None if checkpoint is None else checkpoint.read(self._arrays(trainer), type(self).__name__, run)
        if checkpoint is not None and kept is not None:
            self._go_on(trainer, kept, checkpoint)
        looked_at = -1
        while not self._ended(trainer):
            if trainer.epoch_done:
                trainer.begin_epoch(trainer.epoch + 1)
            yield from self._epoch(trainer, checkpoint, run)
            last = trainer.epoch == self.training.epochs
            if trainer.epoch_done and (last or trainer.epoch % self.training.evaluate_every == 0):
                self._keep_best(trainer, held_out)
                looked_at = trainer.step
            if trainer.epoch_done and checkpoint is not None and checkpoint.due():
                checkpoint.write(self._arrays(trainer), type(self).__name__, run)
        if looked_at != trainer.step:  # stopped by the clock
            self._keep_best(trainer, held_out)
        if checkpoint is not None:
            checkpoint.write(self._arrays(trainer), type(self).__name__, run)

    def _ended(self, trainer: Trainer) -> bool:
        return trainer.stopped or (trainer.epoch_done and trainer.epoch >= self.training.epochs)

    def _epoch(self, trainer: Trainer, checkpoint: Checkpoint | None, run: str) -> Iterator[Step]:
        """What is left of an epoch, some updates a Step."""
        updates = 1
        while not trainer.epoch_done and not trainer.stopped:
            began = time.monotonic()
            rate = trainer.rate(trainer.share(), trainer.step)
            loss = trainer.run(updates)
            if loss > RAN_AWAY:
                raise DivergedError(
                    f"training diverged: a loss of {loss:.3g} at step {trainer.step}, where knowing nothing costs"
                    f" {np.log(len(self.vocab)):.1f}: try a lower rate than {self.training.rate:g}"
                )
            share = max(trainer.share(), 1e-9)
            yield Step(trainer.tokens, max(trainer.tokens, round(trainer.tokens / share)), loss, rate)
            if checkpoint is not None and checkpoint.due() and not trainer.epoch_done:  # at its end a look comes first
                checkpoint.write(self._arrays(trainer), type(self).__name__, run)
            updates = max(1, min(PLANNED, int(updates * TOLD_EVERY / max(1e-3, time.monotonic() - began))))
            updates = int(self._together.agree(updates))

    def _check(self, corpus: Corpus, valid: Corpus | None) -> tuple[Tensor, Tensor] | None:
        """Refuse what cannot be learnt from; the held-out text, ready to be read."""
        if len(corpus.ids) == 0:
            raise InputError(f"the training text is empty: {type(self).__name__} needs at least one document")
        if valid is not None and valid.vocab != corpus.vocab:
            raise InputError("the held-out text was turned into ids with another vocabulary than the training text's")
        corpus.check_ids()
        if self.training.precision == "float16" and choose_device(self.device).type == "cpu":
            raise SettingError("precision is 'float16', which needs a GPU: say 'float32' or 'bfloat16'")
        if self.training.sampled and getattr(self, "softmaxes", 1) > 1:
            raise SettingError("softmaxes are mixed over all words: expected sampled=0 in the training")
        if valid is None or len(valid.ids) == 0:
            if self.training.needs_held_out:
                raise SettingError("schedule plateau or nt-asgd, or patience, needs a held-out text: give valid")
            return None
        valid.check_ids()
        return _held_out(valid, choose_device(self.device))

    def _trainer(self, corpus: Corpus, together: Together = ALONE) -> Trainer:
        network, device, training = self.network(corpus.vocab), choose_device(self.device), self.training
        generator = torch.Generator(device).manual_seed(self.seed)
        flat = new_flat(network.tensors(), device)
        network.initialise(views(flat, network.tensors()), generator)
        if self.COUNTED_BIAS:
            counts = np.bincount(corpus.ids, minlength=len(corpus.vocab)) + 1.0  # one more: some words may not be there
            shares = np.log(counts / counts.sum()).astype(np.float32)
            views(flat, network.tensors())[BIAS].copy_(torch.from_numpy(shares))
        together.begin_alike(flat)
        ids = torch.from_numpy(np.asarray(corpus.ids, np.int64)).to(device)
        offsets = np.asarray(corpus.offsets) if training.shuffle else None
        share = together.rank, together.size
        reading = Reading(ids, training.batch, training.steps, offsets=offsets, vary=training.vary, share=share)
        low = getattr(torch, training.precision)
        like = torch.empty(0, device=device, dtype=torch.float32 if device.type == "cpu" else low)
        noise = None
        if 0 < training.sampled < len(corpus.vocab) and device.type == "cpu":
            noise = unigram(torch.bincount(ids, minlength=len(corpus.vocab)), NOISE_POWER)

        def loss(weights: Weights, x: Tensor, y: Tensor, state: State, scale: float) -> tuple[Tensor, Tensor, State]:
            masks = network.masks(self.dropout, x.shape[1], like, generator)
            raw, new = network.read(weights, x, state, masks)
            dropped = raw * masks.output
            layer = (dropped.flatten(0, 1).to(low), output_weight(weights).to(low), weights[BIAS].to(low))
            if mixed(weights):
                each = masks.latent.expand(len(x), -1, -1).flatten(0, 1)
                z, log_shares = mixture_of(weights, dropped.flatten(0, 1), each)
                nats = mixture_cross_entropy(z.to(low), log_shares, *layer[1:], y.flatten(), scale=scale)
            elif noise is not None:
                drawn = training.sampled
                nats = sampled_cross_entropy(*layer, y.flatten(), noise, drawn, generator=generator, sparse=True)
            else:
                room = trainer.claim(OUTPUT if OUTPUT in weights else EMBEDDING) if takes_room(*layer) else None
                nats = linear_cross_entropy(*layer, y.flatten(), scale=scale, room=room)
            return nats, scale * self._penalty(raw, dropped), new

        state = network.start(reading.rows, like)
        trainer = Trainer(
            flat, network.tensors(), loss, state, reading, training, generator, seed=self.seed, together=together
        )
        return trainer

    def _penalty(self, raw: Tensor, dropped: Tensor) -> Tensor:
        """Activation regularisation: large values, and values that jump from one step to the next."""
        penalty = torch.zeros((), device=raw.device)
        if self.training.activation:
            penalty = self.training.activation * dropped.float().square().mean()
        if self.training.change and len(raw) > 1:
            penalty = penalty + self.training.change * (raw[1:] - raw[:-1]).float().square().mean()
        return penalty

    def _keep_best(self, trainer: Trainer, held_out: tuple[Tensor, Tensor] | None) -> None:
        """A look at the held-out text: take over what is better than all before."""
        candidates = trainer.averages or [trainer.weights]
        if held_out is None:
            self._learnt().copy_(candidates[0])
            return
        network = self.network(self.vocab)
        scores = [_rows_score(views(each, network.tensors()), network, *held_out) for each in candidates]
        scores = [self._together.agree(score) for score in scores]
        trainer.look(-max(scores))
        if max(scores) > self.valid_score_:
            self.valid_score_ = max(scores)
            self._learnt().copy_(candidates[scores.index(max(scores))])

    def _arrays(self, trainer: Trainer) -> dict[str, Array]:
        """What a checkpoint holds: the run, and the best that it has found."""
        return trainer.arrays() | {"best": self._learnt().cpu().numpy(), "score": np.array([self.valid_score_])}

    def _go_on(self, trainer: Trainer, kept: dict[str, Array], checkpoint: Checkpoint) -> None:
        try:
            trainer.take(kept)
        except (ValueError, RuntimeError) as error:
            raise InputError(f"{checkpoint.path}: a damaged checkpoint: {error}") from error
        self._learnt().copy_(torch.from_numpy(kept["best"]))
        self.valid_score_ = float(kept["score"][0])

    def _fingerprint(self, corpus: Corpus, valid: Corpus | None) -> str:
        run = fingerprint(self._settings(), corpus.ids, *([] if valid is None else [valid.ids]))
        return run if self._together.size == 1 else f"{run} by {self._together.size}"

    def take_best(self, vocab: Vocab, kept: dict[str, Array]) -> Self:
        """Become what a run that somebody else has finished found best; kept: what its checkpoint holds."""
        flat = new_flat(self.network(vocab).tensors(), choose_device(self.device))
        flat.copy_(torch.from_numpy(np.array(kept["best"])))
        self._vocab, self._flat, self.valid_score_ = vocab, flat, float(kept["score"][0])
        return self

    # Scoring

    def logprobs(self, corpus: Corpus) -> Logs:
        """float64 (ids,): the log-probability of each id in the corpus; documents of like length are read together."""
        self.check_text(corpus)
        logs = np.empty(len(corpus.ids))
        lengths = np.diff(corpus.offsets)
        order = np.argsort(-lengths, kind="stable")
        with exact():
            while len(order):
                fit = max(1, READ_AT_ONCE // int(lengths[order[0]] or 1))
                group, order = order[:fit], order[fit:]
                self._score_group(corpus, group, lengths[group], logs)
        return logs

    def _score_group(self, corpus: Corpus, group: Longs, lengths: Longs, logs: Logs) -> None:
        """Some documents side by side, the longest first; those that end sooner are padded with ends."""
        longest, end = int(lengths[0]), self.vocab.end
        words = np.full((longest + 1, len(group)), end, np.int64)
        for row, (document, length) in enumerate(zip(group.tolist(), lengths.tolist(), strict=True)):
            words[1 : length + 1, row] = corpus.ids[corpus.offsets[document] : corpus.offsets[document] + length]
        weights, network, flat = self.weights_, self.network(self.vocab), self._learnt()
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

    def check_text(self, corpus: Corpus) -> None:
        """Refuse a text that cannot be scored."""
        if corpus.vocab != self.vocab:
            raise InputError("the text was turned into ids with another vocabulary than the model's")
        corpus.check_ids()

    def hidden_states(self, ids: Ids) -> Iterator[tuple[Tensor, Tensor]]:
        """A document read stretch by stretch: what each word is told from (T, D), and the words (T,)."""
        weights, network, flat = self.weights_, self.network(self.vocab), self._learnt()
        words = torch.from_numpy(np.append(self.vocab.end, np.asarray(ids, np.int64))).to(flat.device)
        state = network.start(1, flat)
        for begin in range(0, len(ids), READ_AT_ONCE):
            targets = words[begin + 1 : begin + READ_AT_ONCE + 1]
            with exact():
                hidden, state = network.read(weights, words[begin : begin + len(targets), None], state)
            yield hidden[:, 0], targets

    def score(self, corpus: Corpus) -> float:
        if len(corpus.ids) == 0:
            raise InputError("the text is empty: there is nothing to score")
        return float(self.logprobs(corpus).mean())

    # Stepping

    def stepping(self) -> NextToken[Any]:
        """For one token at a time: on a CPU recurrent networks do without torch, which is several times as fast."""
        from foreword.neural.streaming import Streaming
        from foreword.nn.recurrent_network import RecurrentNetwork

        recurrent = isinstance(self.network(self.vocab), RecurrentNetwork)
        return Streaming(self) if recurrent and self._learnt().device.type == "cpu" else self

    def start(self, n: int = 1) -> NeuralState:
        """Texts of which one ``</s>`` has been read."""
        network, flat = self.network(self.vocab), self._learnt()
        parts = tuple(part.cpu().numpy() for part in network.start(n, flat))
        blank = np.zeros((n, output_weight(self.weights_).shape[1]), np.float32)
        return self.advance(NeuralState(blank, parts), np.full(n, self.vocab.end))

    def next_logprobs(self, state: NeuralState) -> Logs:
        """float64 (n, V)."""
        with exact():
            hidden = torch.from_numpy(np.ascontiguousarray(state.hidden)).to(self._learnt().device)
            logs: Logs = next_logs(self.weights_, hidden).cpu().numpy()
        return logs

    def advance(self, state: NeuralState, ids: Ids) -> NeuralState:
        words = np.asarray(ids, np.int64)
        if len(words) != len(state):
            raise ValueError(f"{len(state)} texts but {len(words)} next tokens")
        if len(words) == 0:
            return state
        check_ids(words, len(self.vocab))
        device = self._learnt().device
        with exact():
            before = tuple(torch.from_numpy(np.ascontiguousarray(part)).to(device) for part in state.parts)
            read = self.network(self.vocab).read(self.weights_, torch.from_numpy(words).to(device)[None], before)
            hidden, after = read
            return NeuralState(hidden[0].cpu().numpy(), tuple(part.cpu().numpy() for part in after))

    # Saving

    def to_parts(self) -> Parts:
        arrays = {name: weight.cpu().numpy().copy() for name, weight in self.weights_.items()}
        return Parts(self._settings(), arrays, self.vocab)

    def _settings(self) -> dict[str, Json]:
        """What the constructor takes, for JSON; the device is left out, for it is a matter of the machine."""
        return {name: _plain(getattr(self, name)) for name in signature(type(self)).parameters if name != "device"}

    @classmethod
    def from_parts(cls, parts: Parts) -> Self:
        """Take a saved model up again, on whatever device there is."""
        if parts.vocab is None:
            raise ValueError("expected a vocabulary")
        parts.check_counts("layers", "mogrify")
        model = cls(**_checked(cls, parts.settings))
        return model._take(parts.arrays, parts.vocab)

    def _take(self, arrays: dict[str, Array], vocab: Vocab) -> Self:
        tensors = self.network(vocab).tensors()
        if set(arrays) != set(tensors):
            raise ValueError(f"the arrays are {sorted(arrays)}, not {sorted(tensors)}")
        check_weights(arrays, tensors, finite=False)
        flat = new_flat(tensors, choose_device(self.device))
        for name, part in views(flat, tensors).items():
            part.copy_(torch.from_numpy(np.array(arrays[name])))
        self._vocab, self._flat = vocab, flat
        return self

    def _learnt(self) -> Tensor:
        if self._flat is None:
            raise NotFittedError(self, "corpus")
        return self._flat


def _plain(value: Any) -> Json:
    if is_dataclass(value) and not isinstance(value, type):
        return {name: _plain(each) for name, each in asdict(value).items()}
    told: Json = list(value) if isinstance(value, tuple) else value
    return told


def _checked(model: type[NeuralLM], settings: dict[str, Json]) -> dict[str, Any]:
    """Saved settings as the constructor takes them: every one there, no other, each of its default's type."""
    wanted = {name: each.default for name, each in signature(model).parameters.items() if name != "device"}
    given: dict[str, Any] = {name: wanted[name] for name in LATER if name in wanted} | settings
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


@contextlib.contextmanager
def exact() -> Iterator[None]:
    """No gradients, and float32 that is float32 also in cuDNN."""
    with torch.inference_mode(), torch.backends.cudnn.flags(enabled=True, allow_tf32=False):
        yield


def _held_out(valid: Corpus, device: torch.device) -> tuple[Tensor, Tensor]:
    """Inputs and targets in a few rows, (L, rows): quick to read, and close enough to choose by."""
    ids = torch.from_numpy(np.asarray(valid.ids, np.int64)).to(device)
    rows = max(1, min(HELD_OUT_ROWS, len(ids) // HELD_OUT_WORDS))
    length = len(ids) // rows
    places = torch.arange(length, device=device)[:, None] + torch.arange(rows, device=device) * length
    return ids[places - 1], ids[places]


@torch.inference_mode()
def _rows_score(weights: Weights, network: Network, inputs: Tensor, targets: Tensor) -> float:
    state = network.start(inputs.shape[1], weights[BIAS])
    total = torch.zeros((), dtype=torch.float64, device=inputs.device)
    stretch = max(1, READ_AT_ONCE // inputs.shape[1])
    for begin in range(0, len(inputs), stretch):
        hidden, state = network.read(weights, inputs[begin : begin + stretch], state)
        total += word_logs(weights, hidden, targets[begin : begin + stretch]).sum(dtype=torch.float64)
    return total.item() / targets.numel()
