"""The AWD-LSTM: a plain stacked LSTM that is regularised in every place where it can be.

    x_t = E[w_t],    h_t = LSTM_3(LSTM_2(LSTM_1(x_t))),    p(w_(t+1) = v | w_≤t) = softmax(E h_t + b)_v

Nothing about the network is new; what took the Penn Treebank from 78 to 57 is how it is kept from learning by heart:
weights between states are dropped (DropConnect), units are dropped by masks that stay the same over time, whole words
are dropped, large and jumpy states are penalised, the embedding E serves twice, and what is kept in the end is an
average of the weights over many steps of a large, constant learning rate.

What is different here: layers are 512-1024-1024-512 where the paper has 400-1150-1150-400, since cuDNN has a far faster
kernel for such sizes; stretches of text have one length, and the text is cut elsewhere in each epoch instead; the
average runs from the first step with the beginning fading (``training/schedules.py``), where the paper waits for the
held-out loss to stall.

Text is learnt as one stream, state carried across ends of documents; each document is scored from a fresh state that
has read one ``</s>``, which stands for ``<s>``. To have the state carried through a test set, make it one document.

S. Merity, N. Keskar and R. Socher, "Regularizing and optimizing LSTM language models" (2018); H. Inan et al., "Tying
word vectors and word classifiers" (2017). Shapes: n texts side by side, V words, T steps.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from foreword.errors import ForewordError, InputError, MissingExtraError, SettingError
from foreword.protocols import Ids, Json, Logs, Parts, Step
from foreword.tokens.corpus import Corpus
from foreword.tokens.vocab import Vocab

try:
    import torch
    from torch import Tensor
except ImportError:
    raise MissingExtraError("torch", "neural", "a recurrent language model") from None

from foreword.lm.awd_lstm_network import (
    BIAS,
    Shape,
    State,
    Weights,
    draw_masks,
    initialise,
    next_logs,
    output_weight,
    read,
    zero_state,
)
from foreword.nn.dropout import Dropout
from foreword.nn.softmax import linear_cross_entropy
from foreword.training.checkpoint import Checkpoint, fingerprint
from foreword.training.flat import new_flat, views
from foreword.training.loop import Reading, Trainer
from foreword.training.settings import Training

Floats = NDArray[np.float32]

SCORED_AT_ONCE = 1024
"""Tokens whose log-probabilities are computed together; times V, the numbers that are held for them."""

HELD_OUT_ROWS = 32
"""Places in which the held-out text is read at once during training; the final scores read it from end to end."""

TOLD_EVERY = 50
"""Updates between two Steps."""


class AWDLSTM:
    """A language model of stacked LSTM layers.

    embedding: units of the embedding and of the last layer. hidden: units of the other layers. On a GPU multiples of
    128 up to 1024 are the fast ones.
    tied: embedding and output layer are one tensor.
    dropout, training: what is dropped, and how it is trained.
    device: "cuda" or "cpu"; by default the GPU, where there is one.
    """

    def __init__(
        self,
        embedding: int = 512,
        hidden: int = 1024,
        layers: int = 3,
        *,
        tied: bool = True,
        dropout: Dropout | None = None,
        training: Training | None = None,
        seed: int = 0,
        device: str | None = None,
    ) -> None:
        self.embedding = embedding
        self.hidden = hidden
        self.layers = layers
        self.tied = tied
        self.dropout = Dropout() if dropout is None else dropout
        self.training = Training() if training is None else training
        self.seed = seed
        self.device = device
        self._vocab: Vocab | None = None
        self._flat: Tensor | None = None

    def __repr__(self) -> str:
        return f"AWDLSTM(embedding={self.embedding}, hidden={self.hidden}, layers={self.layers})"

    @property
    def vocab(self) -> Vocab:
        if self._vocab is None:
            raise ForewordError("this AWDLSTM has learnt nothing yet: call fit(corpus) first")
        return self._vocab

    @property
    def parameter_count(self) -> int:
        return self._shape(self.vocab).parameter_count()

    @property
    def weights_(self) -> Weights:
        """What was learnt, by name."""
        return views(self._learnt(), self._shape(self.vocab).tensors())

    def fit(self, corpus: Corpus, *, valid: Corpus | None = None) -> Self:
        for _ in self.train(corpus, valid=valid):
            pass
        return self

    def train(
        self, corpus: Corpus, *, valid: Corpus | None = None, checkpoint: Checkpoint | None = None
    ) -> Iterator[Step]:
        """Learn, telling how far it is. With ``valid`` the model is, at any time, the best average so far on it;
        without, the average as it stood at the last look. With a checkpoint the run goes on where it was stopped.
        """
        if len(corpus.ids) == 0:
            raise InputError("the training text is empty: an AWDLSTM needs at least one document")
        if valid is not None and valid.vocab != corpus.vocab:
            raise InputError("the held-out text was turned into ids with another vocabulary than the training text's")
        corpus.check_ids()
        device, shape = self._device(), self._shape(corpus.vocab)
        generator = torch.Generator(device).manual_seed(self.seed)
        trainer = self._trainer(corpus, shape, device, generator)
        self._vocab, self._flat = corpus.vocab, trainer.weights.clone()
        held_out = None if valid is None or len(valid.ids) == 0 else _held_out(valid, device)
        self.valid_score_ = -np.inf
        reading, epochs = trainer.reading, self.training.epochs
        run = "" if checkpoint is None else self._fingerprint(corpus, valid)
        if checkpoint is not None:
            self._go_on(trainer, checkpoint.read(self._arrays(trainer), run))
        for epoch in range(trainer.step // reading.steps + 1, epochs + 1):
            trainer.begin_epoch(epoch, self.seed)
            for begin in range(0, reading.steps, TOLD_EVERY):
                loss = trainer.run(min(TOLD_EVERY, reading.steps - begin))
                done = trainer.step * reading.stretch * reading.rows
                yield Step(done, epochs * reading.tokens, loss, trainer.rate(trainer.step - 1))
            if epoch % self.training.evaluate_every == 0 or epoch == epochs:
                self._keep_best(trainer, shape, held_out)
            if checkpoint is not None and checkpoint.due():
                checkpoint.write(self._arrays(trainer), run)

    def logprobs(self, corpus: Corpus) -> Logs:
        """float64 (ids,): the log-probability of each id in the corpus; documents of like length are read together."""
        if corpus.vocab != self.vocab:
            raise InputError("the text was turned into ids with another vocabulary than the model's")
        corpus.check_ids()
        logs = np.empty(len(corpus.ids))
        lengths = np.diff(corpus.offsets)
        order = np.argsort(-lengths, kind="stable")
        with _exact():
            while len(order):
                fit = max(1, SCORED_AT_ONCE // int(lengths[order[0]] or 1))
                group, order = order[:fit], order[fit:]
                self._score_group(corpus, group, lengths[group], logs)
        return logs

    def score(self, corpus: Corpus) -> float:
        if len(corpus.ids) == 0:
            raise InputError("the text is empty: there is nothing to score")
        return float(self.logprobs(corpus).mean())

    def start(self, n: int = 1) -> Floats:
        """(n, Σ 2 · units): h and c of every layer, after one ``</s>`` from nothing."""
        blank = np.zeros((n, sum(self._widths())), np.float32)
        return self.advance(blank, np.full(n, self.vocab.end))

    def next_logprobs(self, state: Floats) -> Logs:
        """float64 (n, V)."""
        last_h = self._widths()[-1]
        with _exact():
            hidden = torch.from_numpy(np.ascontiguousarray(state[:, -2 * last_h : -last_h])).to(self._learnt().device)
            logs: Logs = next_logs(self.weights_, hidden).cpu().numpy()
        return logs

    def advance(self, state: Floats, ids: Ids) -> Floats:
        if len(ids) != len(state):
            raise ValueError(f"{len(state)} texts but {len(ids)} next tokens")
        if len(state) == 0:
            return state.copy()
        device = self._learnt().device
        with _exact():
            parts = torch.split(torch.from_numpy(np.ascontiguousarray(state)).to(device), self._widths(), 1)
            words = torch.from_numpy(np.asarray(ids, np.int64)).to(device)[None]
            before = tuple(part.contiguous() for part in parts)
            _, after = read(self.weights_, self._shape(self.vocab), words, before)
            new: Floats = torch.cat(after, 1).cpu().numpy()
        return new

    def to_parts(self) -> Parts:
        arrays = {name: weight.cpu().numpy().copy() for name, weight in self.weights_.items()}
        return Parts(self._settings(), arrays, self.vocab)

    def _settings(self) -> dict[str, Json]:
        training: dict[str, Json] = asdict(self.training) | {"averages": list(self.training.averages)}
        dropout: dict[str, Json] = asdict(self.dropout)
        return {
            "embedding": self.embedding,
            "hidden": self.hidden,
            "layers": self.layers,
            "tied": self.tied,
            "seed": self.seed,
            "dropout": dropout,
            "training": training,
        }

    @classmethod
    def from_parts(cls, parts: Parts) -> Self:
        """Take a saved model up again. The device is not saved: it is that of the machine it is loaded on."""
        settings, vocab = dict(parts.settings), parts.vocab
        dropout, training = settings.pop("dropout"), settings.pop("training")
        if vocab is None or not isinstance(dropout, dict) or not isinstance(training, dict):
            raise ValueError("expected a vocabulary and the objects 'dropout' and 'training'")
        averages = training["averages"]
        if not isinstance(averages, list):
            raise ValueError("expected a list 'averages'")
        checked: dict[str, Any] = {**settings}
        for name in ("embedding", "hidden", "layers", "seed"):
            if type(checked.get(name)) is not int:
                raise ValueError(f"expected a whole number {name!r}")
        if type(checked.get("tied")) is not bool:
            raise ValueError("expected true or false as 'tied'")
        kept: dict[str, Any] = {**training, "averages": tuple(averages)}
        dropped: dict[str, Any] = {**dropout}
        model = cls(**checked, dropout=Dropout(**dropped), training=Training(**kept))
        return model._take(parts.arrays, vocab)

    def _take(self, arrays: dict[str, Any], vocab: Vocab) -> Self:
        tensors = self._shape(vocab).tensors()
        if set(arrays) != set(tensors):
            raise ValueError(f"the arrays are {sorted(arrays)}, not {sorted(tensors)}")
        for name, shape in tensors.items():
            if arrays[name].dtype != np.float32 or arrays[name].shape != shape:
                raise ValueError(f"{name} is {arrays[name].dtype} {arrays[name].shape}, not float32 {shape}")
        flat = new_flat(tensors, self._device())
        for name, part in views(flat, tensors).items():
            part.copy_(torch.from_numpy(np.array(arrays[name])))
        self._vocab, self._flat = vocab, flat
        return self

    def _shape(self, vocab: Vocab) -> Shape:
        for name in ("embedding", "hidden", "layers"):
            if getattr(self, name) < 1:
                raise SettingError(f"{name} is {getattr(self, name)!r}: expected at least 1")
        return Shape(len(vocab), self.embedding, self.hidden, self.layers, self.tied)

    def _widths(self) -> list[int]:
        return [units for _, units in self._shape(self.vocab).layer_sizes() for _ in "hc"]

    def _device(self) -> torch.device:
        there = torch.cuda.is_available()
        if self.device == "cuda" and not there:
            raise SettingError("device is 'cuda', but torch finds no GPU here: leave it out, or say 'cpu'")
        device = torch.device(self.device or ("cuda" if there else "cpu"))
        if device.type == "cpu" and self.training.precision == "float16":
            raise SettingError("precision is 'float16', which needs a GPU: say 'float32'")
        return device

    def _learnt(self) -> Tensor:
        if self._flat is None:
            raise ForewordError("this AWDLSTM has learnt nothing yet: call fit(corpus) first")
        return self._flat

    def _trainer(self, corpus: Corpus, shape: Shape, device: torch.device, generator: torch.Generator) -> Trainer:
        tensors = shape.tensors()
        flat = new_flat(tensors, device)
        initialise(views(flat, tensors), shape, generator)
        ids = torch.from_numpy(np.asarray(corpus.ids, np.int64)).to(device)
        reading = Reading(ids, self.training.batch, self.training.steps)
        like = torch.empty(0, device=device, dtype=getattr(torch, self.training.precision))
        state = zero_state(shape, reading.rows, like)

        def loss(weights: Weights, x: Tensor, y: Tensor, state: State, scale: float) -> tuple[Tensor, Tensor, State]:
            masks = draw_masks(self.dropout, shape, x.shape[1], like, generator)
            raw, new = read(weights, shape, x, state, masks)
            dropped = raw * masks.output
            flat_words = dropped.flatten(0, 1)
            nats = linear_cross_entropy(flat_words, output_weight(weights), weights[BIAS], y.flatten(), scale=scale)
            return nats, scale * self._penalty(raw, dropped), new

        return Trainer(flat, tensors, loss, state, reading, self.training, generator)

    def _arrays(self, trainer: Trainer) -> dict[str, Any]:
        """What a checkpoint holds: the run, and the best that it has found."""
        return trainer.arrays() | {"best": self._learnt().cpu().numpy(), "score": np.array([self.valid_score_])}

    def _go_on(self, trainer: Trainer, kept: dict[str, Any] | None) -> None:
        if kept is not None:
            trainer.take(kept)
            self._learnt().copy_(torch.from_numpy(kept["best"]))
            self.valid_score_ = float(kept["score"][0])

    def _fingerprint(self, corpus: Corpus, valid: Corpus | None) -> str:
        return fingerprint(self._settings(), corpus.ids, *([] if valid is None else [valid.ids]))

    def _penalty(self, raw: Tensor, dropped: Tensor) -> Tensor:
        """Activation regularisation: large values, and values that jump from one step to the next."""
        penalty = self.training.activation * dropped.float().square().mean()
        if len(raw) > 1:
            penalty = penalty + self.training.change * (raw[1:] - raw[:-1]).float().square().mean()
        return penalty

    def _keep_best(self, trainer: Trainer, shape: Shape, held_out: tuple[Tensor, Tensor] | None) -> None:
        candidates = trainer.averages or [trainer.weights]
        if held_out is None:
            self._learnt().copy_(candidates[0])
            return
        for candidate in candidates:
            score = _rows_score(views(candidate, shape.tensors()), shape, *held_out)
            if score > self.valid_score_:
                self.valid_score_ = score
                self._learnt().copy_(candidate)

    def _score_group(self, corpus: Corpus, group: NDArray[np.int64], lengths: NDArray[np.int64], logs: Logs) -> None:
        """Some documents side by side, the longest first; those that end sooner are padded with ends."""
        longest, end = int(lengths[0]), self.vocab.end
        words = np.full((longest + 1, len(group)), end, np.int64)
        for row, (document, length) in enumerate(zip(group.tolist(), lengths.tolist(), strict=True)):
            words[1 : length + 1, row] = corpus.ids[corpus.offsets[document] : corpus.offsets[document] + length]
        weights, shape, flat = self.weights_, self._shape(self.vocab), self._learnt()
        ids = torch.from_numpy(words).to(flat.device)
        state = zero_state(shape, len(group), flat)
        scored = []
        stretch = max(1, SCORED_AT_ONCE // len(group))
        for begin in range(0, longest, stretch):
            inputs, targets = ids[begin : begin + stretch][: longest - begin], ids[begin + 1 : begin + stretch + 1]
            hidden, state = read(weights, shape, inputs, state)
            rows = next_logs(weights, hidden.flatten(0, 1))
            scored.append(rows.gather(1, targets.reshape(-1, 1)).view_as(targets))
        found = torch.cat(scored).cpu().numpy()
        for row, (document, length) in enumerate(zip(group.tolist(), lengths.tolist(), strict=True)):
            logs[corpus.offsets[document] : corpus.offsets[document] + length] = found[:length, row]


@contextlib.contextmanager
def _exact() -> Iterator[None]:
    """No gradients, and float32 that is float32 also in cuDNN."""
    with torch.inference_mode(), torch.backends.cudnn.flags(enabled=True, allow_tf32=False):
        yield


def _held_out(valid: Corpus, device: torch.device) -> tuple[Tensor, Tensor]:
    """Inputs and targets in a few rows, (L, rows): quick to read, and close enough to choose by."""
    ids = torch.from_numpy(np.asarray(valid.ids, np.int64)).to(device)
    rows = min(HELD_OUT_ROWS, len(ids))
    length = len(ids) // rows
    places = torch.arange(length, device=device)[:, None] + torch.arange(rows, device=device) * length
    return ids[places - 1], ids[places]


@torch.inference_mode()
def _rows_score(weights: Weights, shape: Shape, inputs: Tensor, targets: Tensor) -> float:
    state = zero_state(shape, inputs.shape[1], weights[BIAS])
    total = torch.zeros((), dtype=torch.float64, device=inputs.device)
    stretch = max(1, SCORED_AT_ONCE // inputs.shape[1])
    for begin in range(0, len(inputs), stretch):
        hidden, state = read(weights, shape, inputs[begin : begin + stretch], state)
        logits = torch.nn.functional.linear(hidden.flatten(0, 1), output_weight(weights), weights[BIAS])
        wanted = targets[begin : begin + stretch].reshape(-1)
        total -= torch.nn.functional.cross_entropy(logits, wanted, reduction="sum")
    return total.item() / targets.numel()
