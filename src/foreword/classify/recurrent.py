"""Text classification by a recurrent network, best by one that has learnt the language before it learns the task.

    p(class | text) = softmax(head(pool(h_1 … h_T))),    h: the states of a language model's layers

The language model has read far more text than has labels. It is taken over whole, except for its softmax; then the head
is trained alone, and with each stage one more layer from the top (gradual unfreezing); a layer that is d deeper than
the head learns at rate / factor^d (discriminative rates); within a stage the rate rises for a tenth of it and falls for
the rest (slanted triangle). Without a language model everything is learnt at once, at one rate.

What is different here: texts of any length are read whole, but gradients go back ``reach`` words only; the result is a
running average of the weights over the last stage; there is no batch normalisation in the head.

J. Howard and S. Ruder, "Universal language model fine-tuning for text classification" (2018); A. Dai and Q. Le,
"Semi-supervised sequence learning" (2015). ``recurrent_network.py`` has the pooling and the head.
Shapes: B texts, T words of the longest, K classes, P pooled units.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar, Literal, Self, Unpack, cast

import numpy as np

from foreword.arrays import Array, Floats, Logs, Longs
from foreword.checks import check_choice, check_number, check_numbers, list_of_texts, saveable
from foreword.classify.labels import Prediction, check_classes, classes_of, list_of_labels, loaded_classes
from foreword.errors import InputError, MissingExtraError, SettingError
from foreword.protocols import Embedder, Json, Meter, Parts, Step, TextModel, TextTokenizer
from foreword.storage.folder import load, nest, unnest
from foreword.storage.joined import joined
from foreword.tokens.vocab import Vocab
from foreword.tokens.words import WordTokenizer

try:
    import torch
except ImportError:
    raise MissingExtraError("torch", "neural", "a recurrent classifier") from None

from torch.nn.functional import cross_entropy, log_softmax

from foreword.classify.recurrent_network import POOLINGS, ClassifierNetwork, TextReader, pooled_texts, read_texts
from foreword.neural.model import NeuralLM
from foreword.nn.dropout import Dropout, locked_mask
from foreword.nn.embedder import EMBEDDER, fingerprint_of, nest_embedder, resolve_embedder, unnest_embedder
from foreword.nn.network import EMBEDDING, TEMPERATURE
from foreword.nn.recurrent_layer import CELLS, CellName
from foreword.nn.recurrent_network import PLAIN, RecurrentNetwork
from foreword.storage.checkpoint import Checkpoint
from foreword.training.batches import bucketed, padded_ids, padded_vectors
from foreword.training.engine import Trainer
from foreword.training.gradients import Shapes, new_flat, views
from foreword.training.model import NeuralModel
from foreword.training.settings import Training, TrainingSettings, options_from, saved_settings, settings_of
from foreword.training.task import BatchTask, Group, Loss, Stage, Weights
from foreword.training.workers import SINGLE_WORKER, WorkerGroup

LabelledTexts = tuple[Iterable[str], Sequence[Any]]

MEASURED, SMALLEST = 1000, 0.05
"""Texts by which pooled units are standardised, and what is added to their deviation first."""

LEAST = 1e-3
"""Added to the deviation of an embedder's units, some of which may be constant."""

TRAINED = ("epochs", "batch", "rate", "clip", "precision")
"""Names of training settings in model.json."""

OPTIONS: dict[str, Any] = {
    "embedding": 100, "hidden": 128, "layers": 1, "min_count": 2, "max_size": 30_000, "from_end": False, "words": 2000,
    "reach": 400, "layer_dropout": None, "unfreeze": 1, "frozen": False, "slower": 0.6, "factor": 2.6,
}  # fmt: skip


class ClassifierOptions(TrainingSettings, total=False):
    """Options of ``RecurrentClassifier``, and training settings that may be given by name."""

    embedding: int
    hidden: int
    layers: int
    min_count: int
    max_size: int
    from_end: bool
    words: int
    reach: int
    layer_dropout: float | None
    unfreeze: int
    frozen: bool
    slower: float
    factor: float


@dataclass(frozen=True, slots=True)
class Unfreezing:
    """How the layers of a language model are trained, see ``RecurrentClassifier``; factor 1 without one."""

    epochs: int
    slower: float
    factor: float
    frozen: bool


class ClassificationTask(BatchTask):
    """The labels of texts.

    pretrained: weights of a language model; None to draw them. wanted: indices of classes. reach: length of truncated
    backpropagation, in words.
    """

    casts: ClassVar[bool] = True
    later_wins: ClassVar[bool] = True
    network: ClassifierNetwork

    def __init__(
        self,
        network: ClassifierNetwork,
        reader: TextReader,
        texts: list[str],
        wanted: Longs,
        pretrained: Weights | None,
        unfreezing: Unfreezing,
        settings: tuple[int, Dropout, int, str, int],
    ) -> None:
        batch, self.dropout, self.reach, self.precision, self.seed = settings
        super().__init__([1] * len(texts), batch)
        self.network, self.reader, self.texts, self.wanted = network, reader, texts, wanted
        self.pretrained, self.unfreezing = pretrained, unfreezing
        self.ids = reader.ids(texts)
        self.context: list[Floats] | None = None

    def initialise(self, weights: Weights, generator: torch.Generator) -> None:
        """Copy the language model's weights, or draw them; draw the head's; measure what the head reads."""
        encoder, pretrained = self.network.encoder, self.pretrained
        if pretrained is None:
            pretrained = views(new_flat(encoder.tensors(), self.device), encoder.tensors())
            encoder.initialise(pretrained, generator)
            pretrained[EMBEDDING].mul_(10 * (3 / encoder.embedding) ** 0.5)  # not tied to a softmax, it may be larger
        for name, part in weights.items():
            if name in pretrained:
                part.copy_(pretrained[name])
        self.network.initialise_head(weights, generator)
        if self.pretrained is not None:
            pooled = pooled_texts(self.network, self.reader, weights, self._some_texts())
            weights["centre"].copy_(torch.from_numpy(pooled.mean(0)))
            weights["scale"].copy_(torch.from_numpy(1 / (pooled.std(0) + SMALLEST)))
        if self.network.context:
            self._measure_context(weights)
            self.context = self.reader.context(self.texts, weights)

    def _some_texts(self) -> list[str]:
        some = np.random.default_rng(self.seed).permutation(len(self.texts))[:MEASURED]
        return [self.texts[text] for text in some.tolist()]

    def _measure_context(self, weights: Weights) -> None:
        """Standardise the embedder's units: those of a poor one are much the same for all words.

        A word's vector gets a length of about one, so that an update of the matrix that reads it changes no more than
        elsewhere.
        """
        context = self.reader.context(self._some_texts(), weights) or []
        vectors = np.concatenate([each[1:-1] for each in context])
        if len(vectors):
            weights["context_centre"].copy_(torch.from_numpy(vectors.mean(0)))
            scale = vectors.shape[1] ** -0.5 / (vectors.std(0) + LEAST)
            weights["context_scale"].copy_(torch.from_numpy(scale))

    def stages(self, settings: Training) -> list[Stage]:
        """Train the head alone, then with one more layer each, then everything."""
        how, count, rate = self.unfreezing, len(self.groups()), settings.rate
        if how.frozen:
            return [Stage(settings.epochs, rate, 1)]
        found = []
        for groups in range(1, count if self.pretrained is not None and how.epochs else 1):
            found.append(Stage(how.epochs, rate, groups))
            rate *= how.slower
        return [*found, Stage(settings.epochs, rate, count)]

    def groups(self) -> list[Group]:
        """Return the head, then layers from the last to the first, then words, each at a lower rate."""
        names = self.network.groups()
        return [Group(each, self.unfreezing.factor**-depth) for depth, each in enumerate(names)]

    def batches(self, random: np.random.Generator) -> list[list[int]]:
        """Draw batches of texts of similar length."""
        return bucketed([len(each) for each in self.ids], self.batch, random)

    def batch_loss(self, weights: Weights, examples: list[int], run: Trainer) -> Loss:
        """Return the mean loss of some texts."""
        network, device = self.network, self.device
        words, lengths = padded_ids([self.ids[k] for k in examples], device)
        low = getattr(torch, self.precision)
        read = {name: part.to(low) for name, part in weights.items()} if low != torch.float32 else weights
        like = torch.empty(0, dtype=low, device=device)
        masks = network.encoder.masks(replace(self.dropout, output=0.0), len(examples), like, run.generator)
        around = None if self.context is None else padded_vectors([self.context[k] for k in examples], device)
        if around is not None:
            around = around * locked_mask(len(examples), network.context, self.dropout.output, around, run.generator)
        states = network.read(read, words, self.reach, masks, around)
        pooled = network.pooled(weights, states, lengths)
        scores = network.scores(weights, pooled, self.dropout.output, run.generator)
        loss = cross_entropy(scores, torch.from_numpy(self.wanted[examples]).to(device))
        return Loss(loss * run.scale, loss.detach())


class RecurrentClassifier(NeuralModel[LabelledTexts]):
    """A classifier that reads text word by word.

    language_model: a ``TextLM`` of a ``RecurrentLM`` or ``AWDLSTM``, or its folder, to start from; None to start from
        random weights, and then ``cell``, ``embedding``, ``hidden``, ``layers``, ``min_count`` and ``max_size`` define
        the network: its vocabulary is lower-case words and punctuation marks seen at least ``min_count`` times, at most
        ``max_size`` of them.
    embedder: ELMo or another ``Embedder``, or its folder; a learnt projection of its contextual vector of each
        word is added to the word's own vector. It is not trained, and excludes a language model.
    pooling: "last", "mean", "max", "attention" or "all"; units: units of the hidden layer of the head.
    dropout: dropout rate of the head, or a ``Dropout`` for all places, whose ``output`` is the head's.
        layer_dropout: dropout rate of all other places, a quarter of it for whole words; a rate above that of the
        language model's own training makes the head learn from noise.
    training: its ``rate`` is the head's in the first stage, ``epochs`` those of the last. Fields may also be given by
        name: ``epochs``, ``batch``, ``rate``, ``clip``, ``precision`` and others.
    device: "cuda" or "cpu"; None for the GPU, where there is one.
    from_end: read every text backwards. words: longest text in words; longer ones keep their first and last half.
        reach: length of truncated backpropagation, in words.
    unfreeze: with a language model, epochs of each stage of gradual unfreezing; 0 to train all layers at once. frozen:
        with a language model, train the head alone. slower: with a language model, factor of the learning rate from
        stage to stage. factor: with a language model, divide the learning rate by this from layer to layer, downwards.
    """

    TRAINING: ClassVar[Training] = Training(
        epochs=8, batch=32, optimiser="adam", rate=4e-3, schedule="slanted", clip=1.0, weight_decay=0.0,
        averages=(4.0,), loss_scale=1024.0,
    )  # fmt: skip
    DROPOUT: ClassVar[Dropout] = Dropout(words=0.0125, input=0.05, between=0.05, output=0.3, recurrent=0.05)
    DROPOUT_PLACES: ClassVar[tuple[str, ...]] = ("output",)
    NEEDS: ClassVar[str] = "texts, labels"

    def __init__(
        self,
        language_model: TextModel | str | None = None,
        *,
        embedder: Embedder | str | None = None,
        cell: CellName = "lstm",
        pooling: Literal["last", "mean", "max", "attention", "all"] = "all",
        units: int = 50,
        dropout: Dropout | float | None = None,
        training: Training | None = None,
        seed: int = 0,
        device: str | None = None,
        **options: Unpack[ClassifierOptions],
    ) -> None:
        chosen = options_from(OPTIONS, options, *TrainingSettings.__annotations__)
        super().__init__(training, _dropout_from(dropout, chosen["layer_dropout"]), seed, device, options)
        self.language_model, self.embedder, self.cell = language_model, embedder, cell
        self.pooling, self.units = pooling, units
        self.embedding, self.hidden, self.layers = chosen["embedding"], chosen["hidden"], chosen["layers"]
        self.min_count, self.max_size = chosen["min_count"], chosen["max_size"]
        self.from_end, self.words, self.reach = chosen["from_end"], chosen["words"], chosen["reach"]
        self.unfreeze, self.frozen = chosen["unfreeze"], chosen["frozen"]
        self.slower, self.factor = chosen["slower"], chosen["factor"]
        self._classes: list[Any] = []
        self._reader: TextReader
        self._network: ClassifierNetwork
        _check_settings(self)

    def __repr__(self) -> str:
        return f"RecurrentClassifier(pooling={self.pooling!r}, units={self.units})"

    @property
    def classes_(self) -> list[Any]:
        """The classes, sorted."""
        self.flat_weights()
        return self._classes

    @property
    def vocab(self) -> Vocab:
        """The vocabulary of the texts."""
        return self._reader.tokenizer.vocab

    def shapes(self) -> Shapes:
        """Return the names and shapes of the weights."""
        return self._network.tensors()

    # Learning

    def fit(
        self,
        texts: LabelledTexts | Iterable[str],
        labels: Sequence[Any] | None = None,
        *,
        valid: LabelledTexts | None = None,
        meter: Meter | None = None,
    ) -> Self:
        """Train to the end on texts and their labels, given as two arguments or as one pair."""
        return super().fit(_pair(texts, labels), valid=valid, meter=meter)

    def train(
        self,
        texts: LabelledTexts | Iterable[str],
        labels: Sequence[Any] | None = None,
        *,
        valid: LabelledTexts | None = None,
        checkpoint: Checkpoint | None = None,
        group: WorkerGroup = SINGLE_WORKER,
    ) -> Iterator[Step]:
        """Train, yielding progress in texts. With ``valid`` the best epoch on it is kept, else the last.

        With a checkpoint a run that was stopped resumes where it was.
        """
        held_out = None if valid is None else _pair(*valid)
        yield from super().train(_pair(texts, labels), valid=held_out, checkpoint=checkpoint, group=group)

    def task(self, data: LabelledTexts, valid: LabelledTexts | None) -> ClassificationTask:
        """Check the texts and labels, build the network, and begin a run."""
        texts, names = list_of_texts(data[0]), list(data[1])
        check_classes(names)
        if self.training.precision == "float16" and self.torch_device().type == "cpu":
            raise SettingError("precision is 'float16', which needs a GPU: say 'float32'")
        if len(texts) != len(names):
            raise InputError(f"{len(texts)} texts and {len(names)} labels: expected a label for each text")
        self._classes = classes_of(names).tolist()
        number = {name: index for index, name in enumerate(self._classes)}
        pretrained = self._build(texts)
        task = ClassificationTask(
            self._network,
            self._reader,
            texts,
            np.array([number[name] for name in names], np.int64),
            pretrained,
            Unfreezing(self.unfreeze, self.slower, 1.0 if pretrained is None else self.factor, self.frozen),
            (self.training.batch, self.dropout, self.reach, self.training.precision, self.seed),
        )
        if valid is not None:
            task.evaluate = self.evaluator(lambda: self.score(*valid))
        return task

    def _build(self, texts: list[str]) -> Weights | None:
        """Build the tokenizer and the network; return the weights of the language model, if there is one."""
        model = self._language_model()
        embedder, pretrained = resolve_embedder(self.embedder), None
        if model is None:
            tokenizer: TextTokenizer = WordTokenizer(
                split="punctuation", lowercase=True, min_count=self.min_count, max_size=self.max_size
            )
            tokenizer.fit(texts)
            sizes = (len(tokenizer.vocab), self.embedding, self.hidden, self.layers)
            encoder = RecurrentNetwork(*sizes, False, self.cell, self.hidden, 1.0)
        else:
            tokenizer, language_model, encoder = _encoder_of(model, self.language_model)
            pretrained = {name: part for name, part in language_model.weights_.items() if name != TEMPERATURE}
            self.cell = encoder.cell  # type: ignore[assignment]
            self.embedding, self.hidden, self.layers = encoder.embedding, encoder.hidden, encoder.layers
        self._set_network(TextReader(tokenizer, embedder, self.words, self.from_end), encoder)
        return pretrained

    def _language_model(self) -> Any:
        return load(self.language_model) if isinstance(self.language_model, str) else self.language_model

    def fingerprinted(self, data: LabelledTexts) -> list[Array]:
        """Return the bytes of texts and labels, and what identifies the language model and the embedder."""
        parts = [str(text).encode(errors="surrogatepass") for part in data for text in part]
        return [*joined(parts), *fingerprint_of(self._language_model()), *fingerprint_of(self._reader.embedder)]

    # Classifying

    def predict(self, texts: Iterable[str]) -> list[Any]:
        """Return the likeliest class of each text."""
        return [self.classes_[index] for index in self.predict_log_proba(texts).argmax(1).tolist()]

    def predict_log_proba(self, texts: Iterable[str]) -> Logs:
        """Return float64 (texts, K): natural logs of the posteriors."""
        documents, weights = list_of_texts(texts), self.weights_
        logs = np.zeros((len(documents), len(self.classes_)))
        for group, pooled in read_texts(self._network, self._reader, weights, documents):
            logs[group] = log_softmax(self._network.scores(weights, pooled).double(), 1).cpu().numpy()
        return logs

    def predict_proba(self, texts: Iterable[str]) -> Logs:
        """Return float64 (texts, K): the posteriors."""
        return np.exp(self.predict_log_proba(texts))

    def predict_best(self, texts: Iterable[str], k: int = 1) -> Iterator[Prediction]:
        """Yield the k likeliest classes of each text with their probabilities, the likeliest first."""
        check_number("k", k, whole=True, least=1)
        classes, shares = self.classes_, self.predict_proba(texts)
        order = np.argsort(-shares, axis=1, kind="stable")[:, :k]
        best = np.take_along_axis(shares, order, 1).tolist()
        for indices, chances in zip(order.tolist(), best, strict=True):
            yield [(classes[index], chance) for index, chance in zip(indices, chances, strict=True)]

    def score(self, texts: Iterable[str], labels: Sequence[Any]) -> float:
        """Return the share of texts whose class is right."""
        wanted, predicted = list_of_labels(labels), self.predict(texts)
        if len(wanted) != len(predicted):
            raise InputError(f"{len(predicted)} texts and {len(wanted)} labels: expected a label for each text")
        return float(np.mean([ours == theirs for ours, theirs in zip(predicted, wanted, strict=True)]))

    def encode(self, texts: Iterable[str]) -> Floats:
        """Return (texts, P): what the head reads, one vector per text."""
        return pooled_texts(self._network, self._reader, self.weights_, list_of_texts(texts))

    # Saving

    def settings(self) -> dict[str, Json]:
        """Return the settings as model.json has them."""
        own = ("cell", "pooling", "units", *OPTIONS, "seed")
        found: dict[str, Json] = {name: getattr(self, name) for name in own if name != "layer_dropout"}
        head, layers = self.dropout.output, self.dropout.input
        two_numbers = self.dropout == _dropout_from(head, layers)
        found["dropout"] = head if two_numbers else dict[str, Json](asdict(self.dropout))
        found["layer_dropout"] = layers if two_numbers else None
        return found | settings_of(self.training, self.TRAINING, TRAINED)

    def to_parts(self) -> Parts:
        """Return settings and weights to be saved, the tokenizer and the embedder."""
        settings = {**self.settings(), "classes": list[Json](self.classes_), "last": self._network.read_units}
        parts = Parts(settings, self.weight_arrays())
        nest("tokenizer", saveable(self._reader.tokenizer), parts)
        if self._reader.embedder is not None:
            nest_embedder(self._reader.embedder, parts, vocab_as_arrays=True)
        return parts

    @classmethod
    def from_parts(cls, parts: Parts) -> Self:
        """Build a classifier from saved parts, all of them checked."""
        nested = ("tokenizer", EMBEDDER)
        settings: dict[str, Any] = {name: value for name, value in parts.settings.items() if name not in nested}
        classes, last = settings.pop("classes"), settings.pop("last")
        if len(loaded_classes(classes)) < 2 or type(last) is not int or last < 1:
            raise ValueError("'classes' must be at least two, and 'last' a number of units")
        model, tokenizer = cls(**saved_settings(settings)), unnest("tokenizer", parts)
        parts.check_counts("layers")
        if not isinstance(tokenizer, TextTokenizer):
            raise ValueError(f"a {type(tokenizer).__name__} is not a tokenizer")
        embedder = model.embedder = unnest_embedder(parts)
        model._classes = classes
        sizes = (len(tokenizer.vocab), model.embedding, model.hidden, model.layers)
        encoder = RecurrentNetwork(*sizes, False, model.cell, last)
        model._set_network(TextReader(tokenizer, embedder, model.words, model.from_end), encoder)
        model.load_weights(model._network.tensors(), parts.arrays)
        return model

    def _set_network(self, reader: TextReader, encoder: RecurrentNetwork) -> None:
        context = 0 if reader.embedder is None else reader.embedder.dimensions
        self._reader = reader
        self._network = ClassifierNetwork(encoder, self.pooling, self.units, len(self._classes), context)


def _pair(texts: LabelledTexts | Iterable[str], labels: Sequence[Any] | None) -> LabelledTexts:
    """Return texts and labels as two lists, for both are read more than once."""
    given, names = cast(LabelledTexts, texts) if labels is None else (cast(Iterable[str], texts), labels)
    return list_of_texts(given), list_of_labels(names)


def _dropout_from(dropout: Dropout | float | None, layers: float | None) -> Dropout:
    """Return the dropout of the head and of all other places, those of ``layers`` where it is given."""
    usual = RecurrentClassifier.DROPOUT
    for name, share in (("dropout", dropout), ("layer_dropout", layers)):
        if isinstance(share, bool) or not isinstance(share, Dropout | int | float | None):
            raise SettingError(f"{name}={share!r} must be a number of at least 0 and below 1")
    if not isinstance(dropout, Dropout):
        dropout = usual if dropout is None else replace(usual, output=dropout)
    if layers is None:
        return dropout
    return replace(dropout, words=layers / 4, input=layers, between=layers, recurrent=layers)


def _check_settings(model: RecurrentClassifier) -> None:
    if model.embedder is not None and model.language_model is not None:
        raise SettingError("embedder and language_model are both given: expected one of them")
    check_numbers(model, "embedding", "hidden", "layers", "units", "reach", "min_count", whole=True, least=1)
    check_numbers(model, "words", "max_size", whole=True, least=2)
    check_numbers(model, "unfreeze", "seed", whole=True)
    check_numbers(model, "slower", above=0, most=1)
    check_numbers(model, "factor", above=0)
    check_choice(model, "cell", CELLS)
    check_choice(model, "pooling", POOLINGS)
    check_choice(model, "device", (None, "cuda", "cpu"))
    for name in ("from_end", "frozen"):
        check_choice(model, name, (True, False))
    check_choice(model.training, "precision", ("float32", "float16"))


def _encoder_of(model: object, source: object) -> tuple[TextTokenizer, NeuralLM, RecurrentNetwork]:
    """Return the tokenizer, the language model and its network; raise if it is not a recurrent one."""
    if isinstance(model, TextModel) and isinstance(model.model, NeuralLM):
        network = model.model.network(model.model.vocab)
        if isinstance(network, RecurrentNetwork) and not network.mogrify and network.variant == PLAIN:
            return model.tokenizer, model.model, replace(network, softmaxes=1)
    where = f"{source}: " if isinstance(source, str) else ""
    found = type(model.model if isinstance(model, TextModel) else model).__name__
    raise InputError(f"{where}a {found}: expected a TextLM of a RecurrentLM or AWDLSTM, without mogrify")
