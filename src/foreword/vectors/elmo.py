"""ELMo: a vector for a word where it stands, from a language model that reads the sentence both ways.

    h_j = [ahead_j; behind_j] for each layer j, h_0 the word by its letters alone
    ELMo(word in its sentence) = γ Σ_j s_j h_j / rms(h_j),    s = softmax of learnt numbers

A static vector is the same in "data bank" and in "bank manager"; the states of a language model are not, since what a
word will be followed by depends on what it means here. Which layer says most depends on the use, so a task learns its
own mix, ``fit_mix``; before that all layers count the same, each brought to the same size. ``elmo_network.py`` has the
network.

What is different here: it is small, and sentences are read by themselves, where the original carries its state on.

M. Peters et al., "Deep contextualized word representations" (2018).
Shapes: H units of a direction, D = 2H of a vector, J layers, the words themselves among them.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from inspect import signature
from typing import Any, Self

import numpy as np

from foreword.arrays import Array, Floats, Longs
from foreword.checks import check_weights
from foreword.errors import DivergedError, InputError, MissingExtraError, NotFittedError, SettingError
from foreword.protocols import Json, Meter, Parts, Sentences, Step, Tags
from foreword.tokens.vocab import END, UNKNOWN, Vocab

try:
    import torch
    from torch import Tensor
except ImportError:
    raise MissingExtraError("torch", "neural", "contextual vectors") from None

from torch.nn.functional import cross_entropy, linear

from foreword.nn.network import Weights, word_logs
from foreword.nn.sampled import Noise, sampled_cross_entropy, unigram
from foreword.nn.softmax import linear_cross_entropy
from foreword.training.batches import bucketed, like_lengths, longs, side_by_side
from foreword.training.gradients import choose_device, new_flat, views
from foreword.training.optimisers import Adam
from foreword.training.schedules import hold_then_cosine, running_share
from foreword.vectors.elmo_network import BEGINS, BORDER, ENDS, MARKS, UNSEEN_LETTER, ELMoNetwork, aimed_at

READ_AT_ONCE = 1 << 14
"""Places for words that are read together."""

HEAD, TAIL = 24, 16
"""Letters of a long word that are kept, from its beginning and from its end."""

AVERAGE, NOISE_POWER = 8.0, 0.75
LAST_RATE = 0.05
MIX_RATE = 0.02

Ids = Sequence[Longs]


class ELMo:
    """A language model that reads both ways, and what it says of words where they stand.

    units: of each direction; a vector has twice as many. layers: of LSTMs. letter_units, filters: of the letters.
    words: that the model tells between, the most frequent ones; any word can be read. sampled: words drawn to stand for
        all of them in training, 0 for all.
    dropout, epochs, batch (in sentences), rate, clip: how it is trained. device: "cuda" or "cpu".
    mix_: (layers + 1,) the share of each layer, that of the words themselves first. gamma_: what the mix is times.
    """

    def __init__(
        self,
        units: int = 128,
        layers: int = 2,
        *,
        letter_units: int = 16,
        filters: int = 32,
        words: int = 10_000,
        sampled: int = 0,
        dropout: float = 0.1,
        epochs: int = 5,
        batch: int = 32,
        rate: float = 2e-3,
        clip: float = 5.0,
        seed: int = 0,
        device: str | None = None,
    ) -> None:
        self.units, self.layers = units, layers
        self.letter_units, self.filters = letter_units, filters
        self.words, self.sampled = words, sampled
        self.dropout, self.epochs, self.batch = dropout, epochs, batch
        self.rate, self.clip, self.seed, self.device = rate, clip, seed, device
        self.mix_, self.gamma_ = np.full(layers + 1, 1 / (layers + 1)), 1.0
        self._vocab: Vocab | None = None
        self._letters: dict[str, int]
        self._flat: Tensor
        self._check_settings()

    def __repr__(self) -> str:
        return f"ELMo({self.units}, {self.layers})"

    @property
    def vocab(self) -> Vocab:
        if self._vocab is None:
            raise NotFittedError(self, "sentences")
        return self._vocab

    @property
    def dimensions(self) -> int:
        return 2 * self.units

    @property
    def weights_(self) -> Weights:
        return views(self._flat, self._network().tensors())

    # Learning

    def fit(self, sentences: Sentences, *, meter: Meter | None = None) -> Self:
        for step in self.train(sentences):
            if meter is not None:
                meter(f"training, loss {step.loss:.3f}", step.done, step.total)
        return self

    def train(self, sentences: Sentences) -> Iterator[Step]:
        """Learn, telling after each batch how far it is; the loss is nats a word, both directions averaged."""
        if not any(map(len, sentences)):
            raise InputError("the training text is empty: ELMo needs at least one sentence with a word")
        counted = Counter(word for words in sentences for word in words)
        self._take(_vocab_of(counted, self.words), sorted(set("".join(counted))))
        generator = torch.Generator(self._flat.device).manual_seed(self.seed)
        self._network().initialise(self.weights_, generator)
        yield from self._epochs(sentences, generator)

    def _epochs(self, sentences: Sentences, generator: torch.Generator) -> Iterator[Step]:
        device, random = self._flat.device, np.random.default_rng(self.seed)
        ids, spelled, sizes, targets = self._numbered(sentences)
        weights, gradient = self._flat.clone(), torch.zeros_like(self._flat)
        tensors = self._network().tensors()
        leaves = {name: part.detach().requires_grad_() for name, part in views(weights, tensors).items()}
        slopes = views(gradient, tensors)
        moves, average = Adam(weights), weights.clone()
        noise = unigram(torch.bincount(targets[torch.from_numpy(np.concatenate(ids)).to(device)],
                                       minlength=len(self.vocab)), NOISE_POWER)  # fmt: skip
        lengths = [len(each) if len(each) > 2 else 0 for each in ids]
        total, done, step = self.epochs * sum(lengths), 0, 0
        for _ in range(self.epochs):
            for group in bucketed(lengths, self.batch, random):
                rate = self.rate * hold_then_cosine(done / total, hold=0.3, last=LAST_RATE)
                few = [ids[k] for k in group]
                loss = self._loss(leaves, few, spelled, sizes, targets, noise, generator)
                gradient.zero_()
                for name, slope in zip(leaves, torch.autograd.grad(loss, list(leaves.values())), strict=True):
                    if slope.is_sparse:
                        slopes[name].index_add_(0, slope._indices()[0], slope._values())
                    else:
                        slopes[name].copy_(slope)
                norm = torch.linalg.vector_norm(gradient)
                factor = (self.clip / (norm + 1e-12)).clamp(max=1.0) if self.clip else torch.ones_like(norm)
                step += 1
                moves.update(weights, gradient, factor, torch.tensor(moves.plan(rate, step), device=device))
                average.lerp_(weights, min(1.0, running_share(step, AVERAGE)))
                done += sum(lengths[k] for k in group)
                nats = loss.item()
                if not math.isfinite(nats):
                    raise DivergedError(f"training diverged: the loss is {nats}: try a lower rate than {self.rate:g}")
                yield Step(done, total, nats, rate)
            self._flat.copy_(average)

    def _loss(
        self,
        weights: Weights,
        ids: Ids,
        spelled: Tensor,
        sizes: Tensor,
        targets: Tensor,
        noise: Noise,
        generator: torch.Generator,
    ) -> Tensor:
        network, device = self._network(), self._flat.device
        places, lengths = side_by_side(ids, device)
        words = targets[places]
        used, places = torch.unique(places, return_inverse=True)
        longest = int(sizes[used].max())
        vectors = network.word_vectors(weights, spelled[used, :longest], sizes[used])
        said = network.read(weights, vectors, places, lengths, self.dropout, generator)
        after, before = aimed_at(words, lengths)
        hidden = torch.cat((said[0][-1][after], said[1][-1][before]))
        wanted = torch.cat((words.roll(-1, 0)[after], words.roll(1, 0)[before]))
        layer = (hidden.contiguous(), weights["output"], weights["bias"], wanted)
        if 0 < self.sampled < len(self.vocab):
            return sampled_cross_entropy(*layer, noise, self.sampled, generator=generator, sparse=device.type == "cpu")
        return linear_cross_entropy(*layer)

    def fit_mix(self, sentences: Sentences, tags: Tags, *, epochs: int = 20, seed: int = 0) -> Self:
        """Learn the mix of layers for a task: with a linear layer that tells a tag for every word, which is dropped
        again. The language model stays as it is.
        """
        names = sorted({tag for each in tags for tag in each})
        if len(sentences) != len(tags) or any(len(w) != len(t) for w, t in zip(sentences, tags, strict=True)):
            raise InputError("expected a tag for each word of each sentence")
        if len(names) < 2:
            raise InputError("a mix of layers is learnt from tags of two kinds at least")
        said = torch.from_numpy(np.concatenate([_even(each) for each in self.layered(sentences)], axis=1))
        number = {name: place for place, name in enumerate(names)}
        wanted = torch.tensor([number[tag] for each in tags for tag in each])
        generator = torch.Generator().manual_seed(seed)
        scores, gamma = torch.zeros(len(said), requires_grad=True), torch.ones(1, requires_grad=True)
        head = (torch.randn(len(names), said.shape[2], generator=generator) * 0.01).requires_grad_()
        bias = torch.zeros(len(names), requires_grad=True)
        moves = torch.optim.Adam([scores, gamma, head, bias], lr=MIX_RATE)
        for _ in range(epochs):
            for few in torch.split(torch.randperm(said.shape[1], generator=generator), 128):
                mixed = gamma * torch.einsum("j,jnd->nd", torch.softmax(scores, 0), said[:, few])
                loss = cross_entropy(linear(mixed, head, bias), wanted[few])
                moves.zero_grad()
                loss.backward()  # type: ignore[no-untyped-call]
                moves.step()
        self.mix_ = torch.softmax(scores.detach().double(), 0).numpy()
        self.gamma_ = float(gamma.detach())
        return self

    # Reading

    def embed(self, sentences: Sentences) -> list[Floats]:
        """(length, D) for each sentence."""
        shares = (self.gamma_ * self.mix_).astype(np.float32)
        return [np.einsum("j,jtd->td", shares, _even(each)) for each in self.layered(sentences)]

    def layered(self, sentences: Sentences) -> list[Floats]:
        """(J, length, D) for each sentence: what each layer says, that of the words by their letters first."""
        found = [np.zeros((self.layers + 1, len(words), self.dimensions), np.float32) for words in sentences]
        for group, said, _, _ in self._read(sentences):
            both = torch.stack([torch.cat(pair, 2) for pair in zip(*said, strict=True)]).cpu().numpy()
            for column, place in enumerate(group):
                found[place][:] = both[:, 1 : len(sentences[place]) + 1, column]
        return found

    def score(self, sentences: Sentences) -> float:
        """The mean log-probability of a word or end, told from the front and from the end; higher is better."""
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
        """Sentences of like length together: which they are, what layers say, their words (T, B), and lengths."""
        network, device = self._network(), self._flat.device
        ids, spelled, sizes, targets = self._numbered(sentences)
        exact = torch.backends.cudnn.flags
        with torch.inference_mode(), exact(enabled=True, allow_tf32=False):
            vectors = network.word_vectors(self.weights_, spelled, sizes)
        for group in like_lengths([len(each) if len(each) > 2 else 0 for each in ids], READ_AT_ONCE):
            with torch.inference_mode(), exact(enabled=True, allow_tf32=False):
                places, lengths = side_by_side([ids[place] for place in group], device)
                yield group, network.read(self.weights_, vectors, places, lengths), targets[places], lengths

    def _numbered(self, sentences: Sentences) -> tuple[Ids, Tensor, Tensor, Tensor]:
        """Distinct words by number, the end 0, each sentence between two ends; their letters; their ids."""
        vocab, device = self.vocab, self._flat.device
        distinct = sorted({word for words in sentences for word in words}, key=lambda word: (len(word), word))
        number = {word: place for place, word in enumerate(distinct, 1)}
        ids = [np.array([0, *(number[word] for word in words), 0], np.int64) for words in sentences]
        letters = [[BORDER], *map(self._spelled, distinct)]
        spelled, sizes = side_by_side([np.array(each, np.int64) for each in letters], device)
        targets = longs([vocab.end, *(vocab.id(word) for word in distinct)], device)
        return ids, spelled.t().contiguous(), sizes, targets

    def _spelled(self, word: str) -> list[int]:
        if len(word) > HEAD + TAIL:
            word = word[:HEAD] + word[-TAIL:]
        return [BEGINS, *(self._letters.get(letter, UNSEEN_LETTER) for letter in word), ENDS]

    # Keeping and saving

    def to_parts(self) -> Parts:
        vocab = self.vocab
        names = (name for name in signature(type(self)).parameters if name != "device")
        settings: dict[str, Json] = {name: getattr(self, name) for name in names}
        settings |= {"gamma": self.gamma_, "alphabet": [ord(letter) for letter in self._letters]}
        weights: dict[str, Array] = {f"weights.{name}": part.cpu().numpy() for name, part in self.weights_.items()}
        return Parts(settings, {**weights, "mix": self.mix_}, vocab)

    @classmethod
    def from_parts(cls, parts: Parts) -> Self:
        settings: dict[str, Any] = dict(parts.settings)
        gamma, alphabet, mix = settings.pop("gamma"), settings.pop("alphabet"), parts.arrays["mix"]
        if type(settings.get("layers")) is not int or mix.shape != (settings["layers"] + 1,):
            raise ValueError(
                f"mix has the shape {mix.shape}, and layers are {settings.get('layers')!r}: expected one more"
            )
        parts.check_counts("layers")
        model = cls(**settings)
        points = isinstance(alphabet, list) and all(type(point) is int and 0 <= point < 0x110000 for point in alphabet)
        if not points or alphabet != sorted(set(alphabet)):
            raise ValueError("'alphabet' must be characters by their numbers, sorted")
        if type(gamma) is not float or not math.isfinite(gamma):
            raise ValueError(f"'gamma' is {gamma!r}: expected a number")
        if mix.dtype != np.float64 or not np.isfinite(mix).all():
            raise ValueError(f"mix is {mix.dtype}, or not finite: expected float64")
        if parts.vocab is None or parts.vocab.unknown is None:
            raise ValueError(f"expected a vocabulary with {UNKNOWN}")
        network = model._network_of(len(alphabet), len(parts.vocab))
        check_weights(parts.arrays, network.tensors(), "weights.")
        model._take(parts.vocab, [chr(point) for point in alphabet])
        for name, part in model.weights_.items():
            part.copy_(torch.from_numpy(np.array(parts.arrays[f"weights.{name}"])))
        model.mix_, model.gamma_ = np.array(mix), gamma
        return model

    def _take(self, vocab: Vocab, alphabet: list[str]) -> None:
        self._vocab = vocab
        self._letters = {letter: row for row, letter in enumerate(alphabet, MARKS)}
        self._flat = new_flat(self._network().tensors(), choose_device(self.device))

    def _network(self) -> ELMoNetwork:
        vocab = self.vocab
        return self._network_of(len(self._letters), len(vocab))

    def _network_of(self, alphabet: int, words: int) -> ELMoNetwork:
        return ELMoNetwork(MARKS + alphabet, self.letter_units, self.filters, self.units, self.layers, words)

    def _check_settings(self) -> None:
        for name, least in (
            ("units", 1), ("layers", 1), ("letter_units", 1), ("filters", 1), ("words", 1), ("epochs", 1), ("batch", 1),
            ("sampled", 0), ("seed", 0),
        ):  # fmt: skip
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise SettingError(f"{name}={value!r} must be a whole number, at least {least}")
        for name, below in (("dropout", 1.0), ("rate", math.inf), ("clip", math.inf)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < below:
                raise SettingError(f"{name}={value!r} must be a number of at least 0 and below {below}")
        if self.device not in (None, "cpu", "cuda"):
            raise SettingError(f"device={self.device!r} must be cuda or cpu")


def _even(layers: Floats) -> Floats:
    """(J, length, D) with the mean square of every vector one: states of an LSTM are smaller than words' vectors."""
    even: Floats = layers / np.sqrt(np.square(layers).mean(2, keepdims=True) + np.float32(1e-12))
    return even


def _vocab_of(counted: Counter[str], words: int) -> Vocab:
    """The most frequent words, alphabetically where they are as frequent, behind the rest and the end."""
    plain = (word for word in counted if word.split() == [word] and word not in (UNKNOWN, END) and _encodable(word))
    kept = sorted(plain, key=lambda word: (-counted[word], word))
    return Vocab([UNKNOWN, END, *kept[:words]], unknown=UNKNOWN, end=END)


def _encodable(word: str) -> bool:
    """Half of a surrogate pair can be read, by its letters, but not written down."""
    return not any("\ud800" <= letter <= "\udfff" for letter in word)
