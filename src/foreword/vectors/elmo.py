"""ELMo: a vector for a word in its context, from a language model that reads the sentence in both directions.

    h_j = [ahead_j; behind_j] for each layer j, h_0 the word by its characters alone
    ELMo(word in its sentence) = γ Σ_j s_j h_j / rms(h_j),    s = softmax of learnt numbers

A static vector is the same in "data bank" and in "bank manager"; the states of a language model are not, since the
words that may follow depend on what a word means here. Which layer is most useful depends on the task, so a task learns
its own mix, ``fit_mix``; before that all layers have the same weight, each scaled to the same size. ``elmo_network.py``
has the network.

What is different here: it is small, and sentences are read by themselves, where the original carries its state on.

M. Peters et al., "Deep contextualized word representations" (2018).
Shapes: H units of a direction, D = 2H of a vector, J layers, the words themselves among them.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, Self, Unpack

import numpy as np

from foreword.arrays import Array, Floats, Longs
from foreword.checks import check_numbers
from foreword.errors import InputError, MissingExtraError
from foreword.protocols import Json, Parts, Sentences, Tags
from foreword.tokens.vocab import END, UNKNOWN, LearntVocab, Vocab

try:
    import torch
    from torch import Tensor
except ImportError:
    raise MissingExtraError("torch", "neural", "contextual vectors") from None

from torch.nn.functional import cross_entropy, linear

from foreword.nn.dropout import Dropout
from foreword.nn.network import Weights, word_logs
from foreword.nn.sampled import sampled_cross_entropy, unigram
from foreword.nn.softmax import linear_cross_entropy
from foreword.storage.checkpoint import text_array
from foreword.training.batches import longs, padded_ids, similar_lengths
from foreword.training.engine import Trainer
from foreword.training.gradients import Shapes, choose_device
from foreword.training.model import NeuralModel, exact
from foreword.training.settings import (
    PLACES,
    Training,
    TrainingSettings,
    dropout_of,
    options_from,
    saved_settings,
    settings_of,
)
from foreword.training.task import BatchTask, Loss
from foreword.training.workers import WorkerGroup
from foreword.vectors.elmo_network import BEGINS, BORDER, ENDS, MARKS, UNSEEN_LETTER, ELMoNetwork, aimed_at

READ_AT_ONCE = 1 << 14
"""Positions of words, padding included, that are read together."""

HEAD, TAIL = 24, 16
"""Characters of a long word that are read, from its beginning and from its end."""

NOISE_POWER = 0.75
MIX_RATE = 0.02

SIZES = ("units", "layers", "letter_units", "filters", "words")
TRAINED = ("sampled", "epochs", "batch", "rate", "clip")
"""Names of training settings in model.json."""

Ids = Sequence[Longs]


class ELMo(LearntVocab, NeuralModel[Sentences]):
    """A language model that reads in both directions, and the vectors that it gives to words in their context.

    units: LSTM units per direction; a vector has twice as many. layers: number of LSTM layers. letter_units: size of a
        character embedding. filters: filters of each width of the character convolution.
    words: size of the output vocabulary, the most frequent words; any word can be read.
    dropout: dropout rate of word vectors, between layers and of the last layer; one number sets all three.
    training: its ``batch`` is in sentences; ``sampled``: words of a sampled softmax, 0 for all words. Fields may also
        be given by name, as in ``epochs=3``. device: "cuda" or "cpu"; None for the GPU, where there is one.
    mix_: (layers + 1,) the weight of each layer, that of the words themselves first. gamma_: the scale of the mix.
    """

    TRAINING: ClassVar[Training] = Training(
        epochs=5, batch=32, optimiser="adam", rate=2e-3, hold=0.3, last_rate=0.05, clip=5.0, weight_decay=0.0
    )
    DROPOUT: ClassVar[Dropout] = Dropout(words=0.0, input=0.1, between=0.1, output=0.1, recurrent=0.0)
    PLACES: ClassVar[tuple[str, ...]] = PLACES
    NEEDS: ClassVar[str] = "sentences"

    def __init__(
        self,
        units: int = 128,
        layers: int = 2,
        *,
        letter_units: int = 16,
        filters: int = 32,
        words: int = 10_000,
        dropout: Dropout | float | None = None,
        training: Training | None = None,
        seed: int = 0,
        device: str | None = None,
        **settings: Unpack[TrainingSettings],
    ) -> None:
        options_from({}, settings, *TrainingSettings.__annotations__)
        super().__init__(training, dropout, seed, device, settings)
        self.units, self.layers = units, layers
        self.letter_units, self.filters, self.words = letter_units, filters, words
        check_numbers(self, *SIZES, whole=True, least=1)
        check_numbers(self, "seed", whole=True)
        self.mix_, self.gamma_ = np.full(layers + 1, 1 / (layers + 1)), 1.0
        self._letters: dict[str, int]

    def __repr__(self) -> str:
        return f"ELMo({self.units}, {self.layers})"

    @property
    def dimensions(self) -> int:
        """The length of a vector."""
        return 2 * self.units

    def shapes(self) -> Shapes:
        """Return the names and shapes of the weights."""
        return self._network().tensors()

    # Learning

    def task(self, data: Sentences, valid: Sentences | None) -> ELMoTask:
        """Count the words and begin a run; the loss is in nats per word, the mean of both directions."""
        if not any(map(len, data)):
            raise InputError("the training text is empty: ELMo needs at least one sentence with a word")
        counted = Counter(word for words in data for word in words)
        self._vocab = _vocab_of(counted, self.words)
        self._letters = _numbered_letters(sorted(set("".join(counted))))
        task = ELMoTask(self, data)
        if valid is not None and any(map(len, valid)):
            task.evaluate = self.evaluator(lambda: self.score(valid))
        return task

    def fingerprinted(self, data: Sentences) -> list[Array]:
        """Return the words."""
        return [text_array(data)]

    def fit_mix(self, sentences: Sentences, tags: Tags, *, epochs: int = 20, seed: int = 0) -> Self:
        """Learn the mix of layers for a task, with a linear layer that predicts a tag for every word and is then
        discarded. The language model stays as it is.
        """
        names = sorted({tag for each in tags for tag in each})
        if len(sentences) != len(tags) or any(len(w) != len(t) for w, t in zip(sentences, tags, strict=True)):
            raise InputError("expected a tag for each word of each sentence")
        if len(names) < 2:
            raise InputError("a mix of layers is learnt from tags of two kinds at least")
        states = torch.from_numpy(np.concatenate([_even(each) for each in self.layered(sentences)], axis=1))
        number = {name: index for index, name in enumerate(names)}
        wanted = torch.tensor([number[tag] for each in tags for tag in each])
        generator = torch.Generator().manual_seed(seed)
        scores, gamma = torch.zeros(len(states), requires_grad=True), torch.ones(1, requires_grad=True)
        head = (torch.randn(len(names), states.shape[2], generator=generator) * 0.01).requires_grad_()
        bias = torch.zeros(len(names), requires_grad=True)
        moves = torch.optim.Adam([scores, gamma, head, bias], lr=MIX_RATE)
        for _ in range(epochs):
            for few in torch.split(torch.randperm(states.shape[1], generator=generator), 128):
                mixed = gamma * torch.einsum("j,jnd->nd", torch.softmax(scores, 0), states[:, few])
                loss = cross_entropy(linear(mixed, head, bias), wanted[few])
                moves.zero_grad()
                loss.backward()  # type: ignore[no-untyped-call]
                moves.step()
        self.mix_ = torch.softmax(scores.detach().double(), 0).numpy()
        self.gamma_ = float(gamma.detach())
        return self

    # Reading

    def embed(self, sentences: Sentences) -> list[Floats]:
        """Return vectors (length, D) for each sentence."""
        shares = (self.gamma_ * self.mix_).astype(np.float32)
        return [np.einsum("j,jtd->td", shares, _even(each)) for each in self.layered(sentences)]

    def layered(self, sentences: Sentences) -> list[Floats]:
        """Return (J, length, D) for each sentence: the states of each layer, words by their characters first."""
        found = [np.zeros((self.layers + 1, len(words), self.dimensions), np.float32) for words in sentences]
        for group, said, _, _ in self._read(sentences):
            both = torch.stack([torch.cat(pair, 2) for pair in zip(*said, strict=True)]).cpu().numpy()
            for column, place in enumerate(group):
                found[place][:] = both[:, 1 : len(sentences[place]) + 1, column]
        return found

    def score(self, sentences: Sentences) -> float:
        """Return the mean log-probability of a word or end, predicted from the left and from the right."""
        totals, count = 0.0, 0
        for _, said, words, lengths in self._read(sentences):
            after, before = aimed_at(words, lengths)
            for states, there, wanted in (
                (said[0][-1], after, words.roll(-1, 0)),
                (said[1][-1], before, words.roll(1, 0)),
            ):
                logs = word_logs(self.weights_, states[there], wanted[there])
                totals, count = totals + float(logs.sum(dtype=torch.float64)), count + len(logs)
        if not count:
            raise InputError("the text is empty: there is nothing to score")
        return totals / count

    def _read(
        self, sentences: Sentences
    ) -> Iterator[tuple[list[int], tuple[list[Tensor], list[Tensor]], Tensor, Tensor]]:
        """Yield batches of similar length: the sentences' indices, the layers' states, words (T, B), and lengths."""
        network, weights, device = self._network(), self.weights_, self.flat_weights().device
        ids, spelled, sizes, targets = self.numbered(sentences, device)
        with exact():
            vectors = network.word_vectors(weights, spelled, sizes)
        for group in similar_lengths([len(each) if len(each) > 2 else 0 for each in ids], READ_AT_ONCE):
            with exact():
                positions, lengths = padded_ids([ids[index] for index in group], device)
                yield group, network.read(weights, vectors, positions, lengths), targets[positions], lengths

    def numbered(self, sentences: Sentences, device: torch.device) -> tuple[Ids, Tensor, Tensor, Tensor]:
        """Return sentences as indices of distinct words, an end (0) on either side; the characters of each word and
        their number; the words' ids.
        """
        vocab = self.vocab
        distinct = sorted({word for words in sentences for word in words}, key=lambda word: (len(word), word))
        number = {word: index for index, word in enumerate(distinct, 1)}
        ids = [np.array([0, *(number[word] for word in words), 0], np.int64) for words in sentences]
        letters = [[BORDER], *map(self._spelled, distinct)]
        spelled, sizes = padded_ids([np.array(each, np.int64) for each in letters], device)
        targets = longs([vocab.end, *(vocab.id(word) for word in distinct)], device)
        return ids, spelled.t().contiguous(), sizes, targets

    def _spelled(self, word: str) -> list[int]:
        if len(word) > HEAD + TAIL:
            word = word[:HEAD] + word[-TAIL:]
        return [BEGINS, *(self._letters.get(letter, UNSEEN_LETTER) for letter in word), ENDS]

    # Saving

    def settings(self) -> dict[str, Json]:
        """Return the settings as model.json has them."""
        found: dict[str, Json] = {name: getattr(self, name) for name in (*SIZES, "seed")}
        found["dropout"] = dropout_of(self.dropout, self.PLACES)
        return found | settings_of(self.training, self.TRAINING, TRAINED)

    def to_parts(self) -> Parts:
        """Return settings, weights, the mix and the vocabulary."""
        vocab, alphabet = self.vocab, [ord(letter) for letter in self._letters]
        settings = {**self.settings(), "gamma": self.gamma_, "alphabet": list[Json](alphabet)}
        return Parts(settings, {**self.weight_arrays(), "mix": self.mix_}, vocab)

    @classmethod
    def from_parts(cls, parts: Parts) -> Self:
        """Restore a saved model, on whatever device there is."""
        settings: dict[str, Any] = dict(parts.settings)
        gamma, alphabet, mix = settings.pop("gamma"), settings.pop("alphabet"), parts.arrays["mix"]
        if type(settings.get("layers")) is not int or mix.shape != (settings["layers"] + 1,):
            raise ValueError(
                f"mix has the shape {mix.shape}, and layers are {settings.get('layers')!r}: expected one more"
            )
        parts.check_counts("layers")
        model = cls(**saved_settings(settings))
        points = isinstance(alphabet, list) and all(type(point) is int and 0 <= point < 0x110000 for point in alphabet)
        if not points or alphabet != sorted(set(alphabet)):
            raise ValueError("'alphabet' must be characters by their numbers, sorted")
        if type(gamma) is not float or not math.isfinite(gamma):
            raise ValueError(f"'gamma' is {gamma!r}: expected a number")
        if mix.dtype != np.float64 or not np.isfinite(mix).all():
            raise ValueError(f"mix is {mix.dtype}, or not finite: expected float64")
        model._vocab = parts.needed_vocab(unknown=True)
        model._letters = _numbered_letters([chr(point) for point in alphabet])
        model.load_weights(model.shapes(), parts.arrays)
        model.mix_, model.gamma_ = np.array(mix), gamma
        return model

    def _network(self) -> ELMoNetwork:
        vocab = self.vocab  # which raises before anything was learnt
        rows = MARKS + len(self._letters)
        return ELMoNetwork(rows, self.letter_units, self.filters, self.units, self.layers, len(vocab))


class ELMoTask(BatchTask):
    """The next word and the one before at every position of a sentence."""

    network: ELMoNetwork

    def __init__(self, model: ELMo, sentences: Sentences) -> None:
        self.ids, *self._words = model.numbered(sentences, choose_device(model.device))
        super().__init__([len(each) if len(each) > 2 else 0 for each in self.ids], model.training.batch)
        self.network, self.dropout = model._network(), model.dropout
        self.vocab, self.sampled = len(model.vocab), model.training.sampled

    def bind(self, device: torch.device, group: WorkerGroup) -> None:
        """Count the words that a sampled softmax draws."""
        self.device = device
        words = self._words[2][torch.from_numpy(np.concatenate(self.ids)).to(device)]
        self._noise = unigram(torch.bincount(words, minlength=self.vocab), NOISE_POWER)

    def batch_loss(self, weights: Weights, examples: list[int], run: Trainer) -> Loss:
        """Return the mean loss of a word."""
        network, device = self.network, self.device
        spelled, sizes, targets = self._words
        positions, lengths = padded_ids([self.ids[k] for k in examples], device)
        words = targets[positions]
        used, positions = torch.unique(positions, return_inverse=True)
        longest = int(sizes[used].max())
        vectors = network.word_vectors(weights, spelled[used, :longest], sizes[used])
        states = network.read(weights, vectors, positions, lengths, self.dropout, run.generator)
        after, before = aimed_at(words, lengths)
        hidden = torch.cat((states[0][-1][after], states[1][-1][before]))
        wanted = torch.cat((words.roll(-1, 0)[after], words.roll(1, 0)[before]))
        layer = (hidden.contiguous(), weights["output"], weights["bias"], wanted)
        if 0 < self.sampled < self.vocab:
            noise, count, sparse = self._noise, self.sampled, device.type == "cpu"
            loss = sampled_cross_entropy(*layer, noise, count, generator=run.generator, sparse=sparse)
            return Loss(loss * run.scale if run.scale != 1 else loss)
        return Loss(linear_cross_entropy(*layer, scale=run.scale))


def _even(layers: Floats) -> Floats:
    """Return (J, length, D) with vectors of mean square one: states of an LSTM are smaller than words' vectors."""
    even: Floats = layers / np.sqrt(np.square(layers).mean(2, keepdims=True) + np.float32(1e-12))
    return even


def _numbered_letters(alphabet: Sequence[str]) -> dict[str, int]:
    return {letter: row for row, letter in enumerate(alphabet, MARKS)}


def _vocab_of(counted: Counter[str], words: int) -> Vocab:
    """Return the most frequent words, in alphabetical order where counts are equal, after ``<unk>`` and ``</s>``."""
    plain = (word for word in counted if word.split() == [word] and word not in (UNKNOWN, END) and _encodable(word))
    kept = sorted(plain, key=lambda word: (-counted[word], word))
    return Vocab([UNKNOWN, END, *kept[:words]], unknown=UNKNOWN, end=END)


def _encodable(word: str) -> bool:
    """Return whether UTF-8 has the word: half of a surrogate pair can be read by characters, but not stored."""
    return not any("\ud800" <= letter <= "\udfff" for letter in word)
