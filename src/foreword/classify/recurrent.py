"""Labels for texts by a recurrent network, best by one that has learnt the language before it learns the task.

    p(class | text) = softmax(head(pool(h_1 … h_T))),    h: the states of a language model's layers

The language model has read far more text than has labels. It is taken over whole, but for its softmax; then the head
is trained alone, and with each stage one more layer from the top (gradual unfreezing); a layer that lies d deeper than
the head learns at rate / factor^d (discriminative rates); within a stage the rate rises for a tenth of it and falls for
the rest (slanted triangle). Without a language model all is learnt at once, at one rate.

What is different here: texts of any length are read whole, but gradients go back ``reach`` words only; the answer is a
running average of the weights over the last stage; there is no batch normalisation in the head.

J. Howard and S. Ruder, "Universal language model fine-tuning for text classification" (2018); A. Dai and Q. Le,
"Semi-supervised sequence learning" (2015). ``recurrent_network.py`` has the pooling and the head.
Shapes: B texts, T words of the longest, K classes, P pooled units.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from inspect import signature
from itertools import pairwise
from typing import Any, Literal, Self

import numpy as np

from foreword.arrays import Array, Floats, Logs, Longs
from foreword.checks import check_weights, list_of_texts, saveable
from foreword.classify import embedder as embedders
from foreword.classify.labels import Prediction, check_classes, names_of
from foreword.errors import DivergedError, InputError, MissingExtraError, NotFittedError, SettingError
from foreword.protocols import Embedder, Json, Meter, Parts, Step, TextModel, TextTokenizer
from foreword.storage.folder import load, nest, unnest
from foreword.tokens.corpus import Corpus
from foreword.tokens.vocab import Vocab
from foreword.tokens.words import WordTokenizer

try:
    import torch
    from torch import Tensor
except ImportError:
    raise MissingExtraError("torch", "neural", "a recurrent classifier") from None

from torch.nn.functional import cross_entropy, log_softmax

from foreword.classify.recurrent_network import POOLINGS, ClassifierNetwork
from foreword.neural.model import NeuralLM
from foreword.nn.dropout import Dropout, locked_mask
from foreword.nn.network import EMBEDDING, Weights
from foreword.nn.recurrent_network import CELLS, RecurrentNetwork
from foreword.training.batches import beside, bucketed, like_lengths, side_by_side
from foreword.training.gradients import choose_device, new_flat, views
from foreword.training.optimisers import Adam
from foreword.training.schedules import running_share

READ_AT_ONCE = 1 << 15
"""Words that are read together when labelling, texts of like length side by side."""

RISE, LOWEST = 0.1, 1 / 32
"""The share of a stage in which the rate rises, and what it begins and ends with, as a share of the highest."""

AVERAGE = 4.0
"""Which running average of the weights is kept, see ``running_share``: about the last fifth of the last stage."""

MEASURED, SMALLEST = 1000, 0.05
"""Texts by which pooled units are brought to one size, and what is added to their deviation first."""

LEAST = 1e-3
"""Added to the deviation of an embedder's numbers, of which some may always be the same."""

LOSS_SCALE = 1024.0
"""In float16 small gradients would vanish."""

NOT_SAVED = ("language_model", "embedder", "device")

Ids = Sequence[Longs]
Vectors = Sequence[Floats]


class RecurrentClassifier:
    """A classifier that reads text word after word.

    language_model: a ``TextLM`` of a ``RecurrentLM`` or ``AWDLSTM``, or its folder, to begin with; None to begin with
        nothing, and then ``cell``, ``embedding``, ``hidden``, ``layers``, ``min_count`` and ``max_size`` say what is
        built: lower-case words and punctuation marks that were seen so often, at most so many.
    embedder: ELMo or another ``Embedder``, or its folder; what it says of a word where it stands is read beside the
        word itself. It is not trained, and there is no language model then.
    pooling: "last", "mean", "max", "attention" or "all"; units: of the head's layer.
    from_end: read every text backwards, from its last word to its first.
    words: read at most, the first and the last half of them where a text has more. reach: words that gradients go back.
    dropout: the share that is dropped in the head. layer_dropout: of words' and layers' units and of weights between
        states; no more than the language model has learnt with, or the head is taught by noise.
    epochs: with all layers; unfreeze: epochs of each stage before that, 0 for none. frozen: train the head alone.
    batch: texts. rate: of the head in the first stage; each stage has ``slower`` of the rate before. factor: by which
        the rate falls from layer to layer. Both mean nothing without a language model. clip: of the gradient's norm.
    precision: of the layers' products; "float16" is for GPUs only. device: "cuda" or "cpu"; by default the GPU, where
        there is one.
    """

    def __init__(
        self,
        language_model: TextModel | str | None = None,
        *,
        embedder: Embedder | str | None = None,
        cell: Literal["rnn", "irnn", "lstm", "gru", "min-gru"] = "lstm",
        embedding: int = 100,
        hidden: int = 128,
        layers: int = 1,
        min_count: int = 2,
        max_size: int = 30_000,
        pooling: Literal["last", "mean", "max", "attention", "all"] = "all",
        units: int = 50,
        from_end: bool = False,
        words: int = 2000,
        reach: int = 400,
        dropout: float = 0.3,
        layer_dropout: float = 0.05,
        epochs: int = 8,
        unfreeze: int = 1,
        frozen: bool = False,
        batch: int = 32,
        rate: float = 4e-3,
        slower: float = 0.6,
        factor: float = 2.6,
        clip: float = 1.0,
        precision: Literal["float32", "float16"] = "float32",
        seed: int = 0,
        device: str | None = None,
    ) -> None:
        self.language_model, self.embedder = language_model, embedder
        self.cell, self.embedding, self.hidden, self.layers = cell, embedding, hidden, layers
        self.min_count, self.max_size = min_count, max_size
        self.pooling, self.units, self.from_end = pooling, units, from_end
        self.words, self.reach = words, reach
        self.dropout, self.layer_dropout = dropout, layer_dropout
        self.epochs, self.unfreeze, self.frozen = epochs, unfreeze, frozen
        self.batch, self.rate, self.slower, self.factor, self.clip = batch, rate, slower, factor, clip
        self.precision, self.seed, self.device = precision, seed, device
        self.valid_score_ = -math.inf
        self._classes: list[str] | None = None
        self._embedder: Embedder | None = None
        self._tokenizer: TextTokenizer
        self._network: ClassifierNetwork
        self._flat: Tensor
        self._named: tuple[Tensor, Weights] | None = None
        self._check_settings()

    def __repr__(self) -> str:
        return f"RecurrentClassifier(pooling={self.pooling!r}, units={self.units})"

    @property
    def classes_(self) -> list[str]:
        if self._classes is None:
            raise NotFittedError(self, "texts, labels")
        return self._classes

    @property
    def vocab(self) -> Vocab:
        return self._tokenizer.vocab

    @property
    def weights_(self) -> Weights:
        """What was learnt, by name."""
        _ = self.classes_
        if self._named is None or self._named[0] is not self._flat:
            self._named = self._flat, views(self._flat, self._network.tensors())
        return self._named[1]

    # Learning

    def fit(
        self,
        texts: Iterable[str],
        labels: Sequence[Any],
        *,
        valid: tuple[Iterable[str], Sequence[Any]] | None = None,
        meter: Meter | None = None,
    ) -> Self:
        for step in self.train(texts, labels, valid=valid):
            if meter is not None:
                meter(f"training, loss {step.loss:.3f}", step.done, step.total)
        return self

    def train(
        self,
        texts: Iterable[str],
        labels: Sequence[Any],
        *,
        valid: tuple[Iterable[str], Sequence[Any]] | None = None,
    ) -> Iterator[Step]:
        """Learn, telling after each batch how far it is, in texts. With ``valid`` the best epoch on it is kept."""
        documents, names = list_of_texts(texts), names_of(labels)
        check_classes(names)
        if len(documents) != len(names):
            raise InputError(f"{len(documents)} texts and {len(names)} labels: expected a label for each text")
        held_out = None if valid is None else (list_of_texts(valid[0]), names_of(valid[1]))
        generator = self._begin(documents, sorted(set(names)))
        number = {name: place for place, name in enumerate(self.classes_)}
        wanted = np.array([number[name] for name in names], np.int64)
        self.valid_score_ = -math.inf
        if self._embedder is not None:
            self._measure_context(documents)
        yield from self._stages(self._ids(documents), self._context(documents), wanted, generator, held_out)

    def _begin(self, texts: list[str], classes: list[str]) -> torch.Generator:
        """Weights from the language model, or drawn, and a head that knows nothing."""
        model = load(self.language_model) if isinstance(self.language_model, str) else self.language_model
        device, embedder = self._device(), self.embedder
        self._embedder = embedders.checked(load(embedder) if isinstance(embedder, str) else embedder)
        generator = torch.Generator(device).manual_seed(self.seed)
        if model is None:
            tokenizer: TextTokenizer = WordTokenizer(
                split="punctuation", lowercase=True, min_count=self.min_count, max_size=self.max_size
            )
            tokenizer.fit(texts)
            encoder = RecurrentNetwork(
                len(tokenizer.vocab), self.embedding, self.hidden, self.layers, False, self.cell, self.hidden, 1.0
            )
        else:
            tokenizer, pretrained, encoder = _encoder_of(model, self.language_model)
            self._take_sizes(encoder)
        self._take(tokenizer, self._network_on(encoder, len(classes)), classes)
        if model is None:
            drawn = views(new_flat(encoder.tensors(), device), encoder.tensors())
            encoder.initialise(drawn, generator)
            drawn[EMBEDDING].mul_(10 * (3 / self.embedding) ** 0.5)  # not tied to a softmax, it may begin larger
        else:
            drawn = dict(pretrained.weights_)
        for name, part in self.weights_.items():
            if name in drawn:
                part.copy_(drawn[name])
        self._network.initialise_head(self.weights_, generator)
        if model is not None:
            self._measure_pooled(texts)
        return generator

    def _measure_pooled(self, texts: list[str]) -> None:
        """What the pooled units of some training texts are like, before anything is trained."""
        some = np.random.default_rng(self.seed).permutation(len(texts))[:MEASURED]
        pooled = self.encode([texts[place] for place in some.tolist()])
        self.weights_["centre"].copy_(torch.from_numpy(pooled.mean(0)))
        self.weights_["scale"].copy_(torch.from_numpy(1 / (pooled.std(0) + SMALLEST)))

    def _measure_context(self, texts: list[str]) -> None:
        """What the embedder's numbers are like: those of a poor one are much the same for all words. A word's vector
        gets a length of about one, so that an update of the matrix that reads it changes no more than elsewhere.
        """
        some = np.random.default_rng(self.seed).permutation(len(texts))[:MEASURED]
        context = self._context([texts[place] for place in some.tolist()]) or []
        said = np.concatenate([each[1:-1] for each in context])
        if len(said):
            self.weights_["context_centre"].copy_(torch.from_numpy(said.mean(0)))
            scale = said.shape[1] ** -0.5 / (said.std(0) + LEAST)
            self.weights_["context_scale"].copy_(torch.from_numpy(scale))

    def _stages(
        self,
        ids: Ids,
        context: Vectors | None,
        wanted: Longs,
        generator: torch.Generator,
        valid: tuple[list[str], list[str]] | None,
    ) -> Iterator[Step]:
        groups, random = self._network.groups(), np.random.default_rng(self.seed)
        stages = list(self._plan(len(groups)))
        weights, gradient = self._flat.clone(), torch.zeros_like(self._flat)
        leaves = {name: part.detach() for name, part in views(weights, self._network.tensors()).items()}
        flats = [_slice_of(group, self._network, weights, gradient) for group in groups]
        moves = [Adam(part) for part, _ in flats]
        moved = [0] * len(groups)
        average = weights.clone()
        total, done = sum(stage.epochs for stage in stages) * len(ids), 0
        for stage in stages:
            trained = [name for group in groups[: stage.groups] for name in group]
            for name, leaf in leaves.items():
                leaf.requires_grad_(name in trained)
            steps, step = stage.epochs * -(-len(ids) // self.batch), 0
            for _ in range(stage.epochs):
                for group in bucketed([len(each) for each in ids], self.batch, random):
                    high = stage.rate * slanted(step / steps)
                    around = None if context is None else [context[k] for k in group]
                    loss = self._loss(leaves, [ids[k] for k in group], around, wanted[group], generator)
                    self._collect(loss, {name: leaves[name] for name in trained}, gradient)
                    factor = self._factor([part for _, part in flats[: stage.groups]])
                    for depth, (part, slope) in enumerate(flats[: stage.groups]):
                        moved[depth] += 1
                        slower = 1.0 if self.language_model is None else self.factor**-depth
                        planned = moves[depth].plan(high * slower, moved[depth])
                        moves[depth].update(part, slope, factor, torch.tensor(planned, device=part.device))
                    step += 1
                    average.lerp_(weights, min(1.0, running_share(step, AVERAGE)))
                    done += len(group)
                    yield Step(done, total, self._finite(loss.item()), high)
                self._keep(average, valid)

    def _plan(self, groups: int) -> Iterator[_Stage]:
        """Head alone, then with one more layer each, then all of it."""
        if self.frozen:
            yield _Stage(1, self.epochs, self.rate)
            return
        rate = self.rate
        if self.language_model is not None and self.unfreeze:
            for count in range(1, groups):
                yield _Stage(count, self.unfreeze, rate)
                rate *= self.slower
        yield _Stage(groups, self.epochs, rate)

    def _loss(
        self,
        leaves: Weights,
        ids: Ids,
        context: Vectors | None,
        wanted: Longs,
        generator: torch.Generator,
    ) -> Tensor:
        device, network = self._flat.device, self._network
        low = getattr(torch, self.precision)
        weights = {name: leaf.to(low) for name, leaf in leaves.items()} if low != torch.float32 else leaves
        words, lengths = side_by_side(ids, device)
        like = torch.empty(0, dtype=low, device=device)
        share = self.layer_dropout
        places = Dropout(words=share / 4, input=share, between=share, output=0.0, recurrent=share)
        masks = network.encoder.masks(places, len(ids), like, generator)
        around = None if context is None else beside(context, device)
        if around is not None:
            around = around * locked_mask(len(ids), network.context, self.dropout, around, generator)
        states = network.read(weights, words, self.reach, masks, around)
        pooled = network.pooled(leaves, states, lengths)
        scores = network.scores(leaves, pooled, self.dropout, generator)
        return cross_entropy(scores, torch.from_numpy(wanted).to(device))

    def _collect(self, loss: Tensor, trained: Weights, gradient: Tensor) -> None:
        """The gradients of what is trained, each into its place of the vector."""
        scale = LOSS_SCALE if self.precision == "float16" else 1.0
        found = torch.autograd.grad(loss * scale, list(trained.values()), allow_unused=True)
        parts = views(gradient, self._network.tensors())
        gradient.zero_()
        for name, each in zip(trained, found, strict=True):
            if each is not None and each.is_sparse:
                parts[name].index_add_(0, each._indices()[0], each._values())
            elif each is not None:
                parts[name].copy_(each)

    def _factor(self, slopes: list[Tensor]) -> Tensor:
        """What gradients are multiplied with: clipped together; in float16 one that is not finite counts as none."""
        scale = LOSS_SCALE if self.precision == "float16" else 1.0
        norm = torch.stack([torch.linalg.vector_norm(slope) for slope in slopes]).norm() / scale
        factor = (self.clip / (norm + 1e-12)).clamp(max=1.0) if self.clip else torch.ones_like(norm)
        if self.precision == "float16":
            for slope in slopes:
                slope.nan_to_num_(0.0, 0.0, 0.0)
            factor = torch.where(torch.isfinite(norm), factor, 0.0)
        return factor / scale

    def _finite(self, loss: float) -> float:
        if not math.isfinite(loss):
            raise DivergedError(f"training diverged: the loss is {loss}: try a lower rate than {self.rate:g}")
        return loss

    def _keep(self, weights: Tensor, valid: tuple[list[str], list[str]] | None) -> None:
        """Take the weights over if they are better than all before."""
        if valid is None:
            self._flat.copy_(weights)
            return
        best, self._flat = self._flat, weights.clone()
        score = self.score(*valid)
        if score >= self.valid_score_:
            self.valid_score_ = score
        else:
            self._flat = best

    # Labelling

    def predict(self, texts: Iterable[str]) -> list[str]:
        return [self.classes_[place] for place in self.predict_log_proba(texts).argmax(1).tolist()]

    def predict_log_proba(self, texts: Iterable[str]) -> Logs:
        """float64 (texts, K): natural logs of the posteriors."""
        logs, weights = np.zeros((0, len(self.classes_))), self.weights_
        for group, pooled, count in self._read(list_of_texts(texts)):
            logs = logs if len(logs) else np.zeros((count, len(self.classes_)))
            logs[group] = log_softmax(self._network.scores(weights, pooled).double(), 1).cpu().numpy()
        return logs

    def predict_proba(self, texts: Iterable[str]) -> Logs:
        return np.exp(self.predict_log_proba(texts))

    def predict_best(self, texts: Iterable[str], k: int = 1) -> Iterator[Prediction]:
        """The k likeliest labels of each text with their probabilities, the likeliest first."""
        if k < 1:
            raise SettingError(f"k={k}: expected at least 1")
        classes, shares = self.classes_, self.predict_proba(texts)
        order = np.argsort(-shares, axis=1, kind="stable")[:, :k]
        best = np.take_along_axis(shares, order, 1).tolist()
        for places, chances in zip(order.tolist(), best, strict=True):
            yield [(classes[place], chance) for place, chance in zip(places, chances, strict=True)]

    def score(self, texts: Iterable[str], labels: Sequence[Any]) -> float:
        """The share that is right."""
        wanted, said = names_of(labels), self.predict(texts)
        if len(wanted) != len(said):
            raise InputError(f"{len(said)} texts and {len(wanted)} labels: expected a label for each text")
        return float(np.mean([ours == theirs for ours, theirs in zip(said, wanted, strict=True)]))

    def encode(self, texts: Iterable[str]) -> Floats:
        """(texts, P): what the head reads, one vector for each text."""
        _ = self.classes_
        vectors = np.zeros((0, self._network.pooled_units), np.float32)
        for group, pooled, count in self._read(list_of_texts(texts)):
            vectors = vectors if len(vectors) else np.zeros((count, pooled.shape[1]), np.float32)
            vectors[group] = pooled.cpu().numpy()
        return vectors

    def _read(self, texts: list[str]) -> Iterator[tuple[list[int], Tensor, int]]:
        """Texts of like length together: which they are, their pooled states (B, P), and how many texts there are."""
        weights, network = self.weights_, self._network
        ids = self._ids(texts)
        for group in like_lengths([len(each) for each in ids], READ_AT_ONCE):
            with torch.inference_mode(), torch.backends.cudnn.flags(enabled=True, allow_tf32=False):
                words, lengths = side_by_side([ids[place] for place in group], self._flat.device)
                around = self._context([texts[place] for place in group])
                context = None if around is None else beside(around, self._flat.device)
                states = network.read(weights, words, len(words), context=context, lengths=lengths)
                yield group, network.pooled(weights, states, lengths), len(texts)

    def _ids(self, texts: list[str]) -> list[Longs]:
        """Each text between two ends, as the language model has read it; of a long one the middle is left out."""
        corpus = Corpus.from_texts(texts, self._tokenizer)
        end = self.vocab.end
        if not self.from_end and int(np.diff(corpus.offsets).max(initial=0)) <= self.words:  # as most are
            joined = np.insert(corpus.ids.astype(np.int64), corpus.offsets[:-1], end)
            bounds = (corpus.offsets + np.arange(len(corpus.offsets))).tolist()
            return [joined[first:last] for first, last in pairwise(bounds)]
        read = (self._as_read(np.asarray(document[:-1], np.int64)) for document in corpus.documents())
        return [np.concatenate(([end], inner, [end])) for inner in read]

    def _context(self, texts: list[str]) -> Vectors | None:
        """What the embedder says of each text's words (length, n), nothing of its two ends."""
        if self._embedder is None or not isinstance(self._tokenizer, WordTokenizer):
            return None
        centre, scale = (self.weights_[f"context_{name}"].cpu().numpy() for name in ("centre", "scale"))
        said = self._embedder.embed([self._tokenizer.pieces(text) for text in texts])
        evened = ((np.asarray(each, np.float32) - centre) * scale for each in said)
        return [np.pad(self._as_read(each), ((1, 1), (0, 0))) for each in evened]

    def _as_read(self, inner: Array) -> Array:
        most = self.words
        if len(inner) > most:
            inner = np.concatenate((inner[: most - most // 2], inner[len(inner) - most // 2 :]))
        return inner[::-1] if self.from_end else inner

    # Keeping and saving

    def to_parts(self) -> Parts:
        classes = list[Json](self.classes_)
        names = (name for name in signature(type(self)).parameters if name not in NOT_SAVED)
        settings: dict[str, Json] = {name: getattr(self, name) for name in names}
        settings |= {"classes": classes, "last": self._network.read_units}
        weights: dict[str, Array] = {f"weights.{name}": part.cpu().numpy() for name, part in self.weights_.items()}
        parts = Parts(settings, weights)
        nest("tokenizer", saveable(self._tokenizer), parts)
        if self._embedder is not None:
            embedders.put(self._embedder, parts)
        return parts

    @classmethod
    def from_parts(cls, parts: Parts) -> Self:
        nested = ("tokenizer", embedders.EMBEDDER)
        settings: dict[str, Any] = {name: value for name, value in parts.settings.items() if name not in nested}
        classes, last = settings.pop("classes"), settings.pop("last")
        if not (isinstance(classes, list) and len(classes) > 1 and all(isinstance(name, str) for name in classes)):
            raise ValueError("'classes' must be a list of names, at least two")
        if classes != sorted(set(classes)) or type(last) is not int or last < 1:
            raise ValueError("'classes' must be sorted, each of them once, and 'last' a number of units")
        model, tokenizer = cls(**settings), unnest("tokenizer", parts)
        parts.check_counts("layers")
        if not isinstance(tokenizer, TextTokenizer):
            raise ValueError(f"a {type(tokenizer).__name__} is no tokenizer")
        model._embedder = model.embedder = embedders.taken(parts)
        sizes = (len(tokenizer.vocab), model.embedding, model.hidden, model.layers)
        encoder = RecurrentNetwork(*sizes, False, model.cell, last)
        network = model._network_on(encoder, len(classes))
        check_weights(parts.arrays, network.tensors(), "weights.")
        model._take(tokenizer, network, classes)
        for name, part in model.weights_.items():
            part.copy_(torch.from_numpy(np.array(parts.arrays[f"weights.{name}"])))
        return model

    def _take(self, tokenizer: TextTokenizer, network: ClassifierNetwork, classes: list[str]) -> None:
        self._tokenizer, self._network, self._classes = tokenizer, network, classes
        self._flat = new_flat(network.tensors(), self._device())

    def _network_on(self, encoder: RecurrentNetwork, classes: int) -> ClassifierNetwork:
        context = 0 if self._embedder is None else self._embedder.dimensions
        return ClassifierNetwork(encoder, self.pooling, self.units, classes, context)

    def _take_sizes(self, encoder: RecurrentNetwork) -> None:
        self.cell = encoder.cell  # type: ignore[assignment]
        self.embedding, self.hidden, self.layers = encoder.embedding, encoder.hidden, encoder.layers

    def _device(self) -> torch.device:
        device = choose_device(self.device)
        if self.precision == "float16" and device.type == "cpu":
            raise SettingError("precision is 'float16', which needs a GPU: say 'float32'")
        return device

    def _check_settings(self) -> None:
        if self.embedder is not None and self.language_model is not None:
            raise SettingError("embedder and language_model are both given: expected one of them")
        for name, least in (
            ("embedding", 1), ("hidden", 1), ("layers", 1), ("units", 1), ("words", 2), ("reach", 1), ("epochs", 1),
            ("batch", 1), ("min_count", 1), ("max_size", 2), ("unfreeze", 0), ("seed", 0),
        ):  # fmt: skip
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise SettingError(f"{name}={value!r} must be a whole number, at least {least}")
        for name, above, below in (
            ("dropout", -1e-300, 1), ("layer_dropout", -1e-300, 1),
            ("rate", 0, math.inf), ("slower", 0, 1 + 1e-9), ("factor", 0, math.inf),
            ("clip", -1e-300, math.inf),
        ):  # fmt: skip
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not above < value < below:
                raise SettingError(f"{name}={value!r} must be a number from {max(above, 0):g} to {below:g}")
        for name, choices in (
            ("cell", CELLS),
            ("pooling", POOLINGS),
            ("precision", ("float32", "float16")),
            ("device", (None, "cuda", "cpu")),
            ("from_end", (True, False)),
            ("frozen", (True, False)),
        ):
            if getattr(self, name) not in choices:
                raise SettingError(f"{name}={getattr(self, name)!r} must be one of {', '.join(map(str, choices))}")


@dataclass(frozen=True, slots=True)
class _Stage:
    """groups: of weights that are trained, from the head down."""

    groups: int
    epochs: int
    rate: float


def slanted(done: float) -> float:
    """A factor of the rate: up for the first tenth of a stage, then down, both along a straight line."""
    height = done / RISE if done < RISE else (1 - done) / (1 - RISE)
    return LOWEST + (1 - LOWEST) * max(0.0, height)


def _encoder_of(model: object, named: object) -> tuple[TextTokenizer, NeuralLM, RecurrentNetwork]:
    """The tokenizer, the language model and its network, if it is one that can be taken over."""
    if isinstance(model, TextModel) and isinstance(model.model, NeuralLM):
        network = model.model.network(model.model.vocab)
        if isinstance(network, RecurrentNetwork) and not network.mogrify:
            return model.tokenizer, model.model, replace(network, softmaxes=1)
    where = f"{named}: " if isinstance(named, str) else ""
    found = type(model.model if isinstance(model, TextModel) else model).__name__
    raise InputError(f"{where}a {found}: expected a TextLM of a RecurrentLM or AWDLSTM, without mogrify")


def _slice_of(
    names: list[str], network: ClassifierNetwork, weights: Tensor, gradient: Tensor
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """The stretch of the two vectors that holds these weights, which lie side by side."""
    parts = views(weights, network.tensors())
    begin = min(parts[name].storage_offset() for name in names)
    end = max(parts[name].storage_offset() + parts[name].numel() for name in names)
    return weights[begin:end], gradient[begin:end]
