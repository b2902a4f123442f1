"""The neural tagger: an LSTM that reads a sentence both ways, over words and their letters, and a field over the tags.

    p(tags | words) ∝ exp Σ_t (e_t(y_t) + moves(y_(t−1), y_t))    e: ``bilstm_network.py``, the field: ``nn/crf.py``

Without the field every word's tag is chosen by itself, p(y_t) ∝ exp e_t(y_t). With a scheme for spans only what is well
formed is ever answered. What is dropped in training is dropped for a whole sentence; seldom words are, now and then,
read as unseen ones, so that the network learns what to make of these. The answer is a running average of the weights.

Z. Huang, W. Xu and K. Yu, "Bidirectional LSTM-CRF models for sequence tagging" (2015); G. Lample et al., "Neural
architectures for named entity recognition" (2016); X. Ma and E. Hovy, "End-to-end sequence labeling via bi-directional
LSTM-CNNs-CRF" (2016). Shapes: B sentences, T words of the longest, K tags.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from inspect import signature
from itertools import chain
from typing import Any, Literal, Self

import numpy as np

from foreword.arrays import Array, Floats, Logs, Longs
from foreword.checks import check_weights, saveable
from foreword.errors import DivergedError, InputError, MissingExtraError, NotFittedError, SettingError
from foreword.protocols import Embedder, Json, Meter, Parts, Sentences, Step, Tags
from foreword.storage.folder import load, nest, unnest
from foreword.tag.schemes import Scheme, letters_of, span_f1
from foreword.tag.tagger import WordTagger, check_pairs, check_tag_names
from foreword.vectors.wordvectors import WordVectors

try:
    import torch
    from torch import Tensor
except ImportError:
    raise MissingExtraError("torch", "neural", "a neural tagger") from None

from torch.nn.functional import cross_entropy, linear, log_softmax

from foreword.nn.crf import Chain, constrained, log_likelihood, marginals, viterbi
from foreword.nn.layers import lstm
from foreword.nn.network import Weights
from foreword.tag.bilstm_network import (
    PARTS,
    UNSEEN,
    DistinctWords,
    SentenceReader,
    TaggerNetwork,
    WordTable,
    distinct_words,
)
from foreword.training.batches import beside, bucketed, like_lengths, side_by_side
from foreword.training.gradients import choose_device, new_flat, views
from foreword.training.optimisers import optimiser
from foreword.training.schedules import hold_then_cosine, running_share

Ids = Sequence[Longs]

READ_AT_ONCE, PADDED_AT_ONCE = 1 << 15, 1 << 12
"""Places for words that are read together, sentences of like length side by side: where padding costs nothing, on a
CPU, and where it does.
"""

SENTENCES_AT_ONCE = 4096
"""Sentences whose words are looked up together."""

HOLD, LAST_RATE = 0.3, 0.05
"""The rate stays for this share of the training, and then falls to that share of itself."""

NOT_SAVED = ("vectors", "embedder", "device")


class BiLSTMTagger(WordTagger):
    """A supervised tagger of words, or of spans.

    units: of the LSTM, in each direction; layers: of it.
    words: of the vector that is learnt for each word. vectors: word vectors from before, or their file; those of a word
        are added to what is learnt, and ``words`` is as many numbers as they have.
    embedder: ELMo or another ``Embedder``, or its folder; what it says of a word where it stands is read beside the
        word's own vector, and stays as it is.
    characters: "cnn", "lstm" or "none", what reads the letters; letter_units: of a letter's vector; spelling: of a
        word's, by its letters.
    crf: a field over the tags. both_ways: read from the end as well.
    scheme: "bio", "iob1" or "bioes", in which the tags are spans; inside: the one that is learnt. None for other tags.
    dropout: the share of units. unseen: a word seen n times is read as an unseen one with chance unseen / (unseen + n).
    epochs, batch (in sentences), optimiser ("adam" or "sgd"), rate, clip (of the gradient's norm): how it is trained.
    average: which running average of the weights is kept, see ``running_share``; −1 for the weights themselves.
    column: of a file the tags are; only files care. device: "cuda" or "cpu"; None for the first there is.
    tags_: the tags, sorted. valid_score_: the best on held-out sentences: F1 of spans, or the share of right tags.
    """

    def __init__(
        self,
        units: int = 200,
        layers: int = 1,
        *,
        words: int = 100,
        vectors: WordVectors | str | None = None,
        embedder: Embedder | str | None = None,
        characters: Literal["cnn", "lstm", "none"] = "cnn",
        letter_units: int = 30,
        spelling: int = 60,
        crf: bool = True,
        both_ways: bool = True,
        scheme: Literal["bio", "iob1", "bioes"] | None = None,
        inside: Literal["bio", "bioes"] = "bioes",
        dropout: float = 0.5,
        unseen: float = 1.0,
        epochs: int = 25,
        batch: int = 16,
        optimiser: Literal["adam", "sgd"] = "adam",
        rate: float = 2e-3,
        clip: float = 5.0,
        average: float = 8.0,
        column: str = "upos",
        seed: int = 0,
        device: str | None = None,
    ) -> None:
        self.units, self.layers = units, layers
        self.words, self.vectors, self.embedder = words, vectors, embedder
        self.characters, self.letter_units, self.spelling = characters, letter_units, spelling
        self.crf, self.both_ways = crf, both_ways
        self.scheme, self.inside = scheme, inside
        self.dropout, self.unseen = dropout, unseen
        self.epochs, self.batch = epochs, batch
        self.optimiser, self.rate, self.clip, self.average = optimiser, rate, clip, average
        self.column, self.seed, self.device = column, seed, device
        self.valid_score_ = -math.inf
        self._lexicon: WordTable | None = None
        self._embedder: Embedder | None = None
        self._scheme: Scheme
        self._network: TaggerNetwork
        self._flat: Tensor
        self._check_settings()

    def __repr__(self) -> str:
        told = f"characters={self.characters!r}, crf={self.crf}, scheme={self.scheme!r}"
        return f"BiLSTMTagger({self.units}, {self.layers}, {told})"

    @property
    def tags_(self) -> list[str]:
        self._known()
        return self._scheme.outer

    @property
    def weights_(self) -> Weights:
        """What was learnt, by name."""
        self._known()
        return views(self._flat, self._network.tensors())

    @property
    def network_(self) -> TaggerNetwork:
        self._known()
        return self._network

    # Learning

    def fit(
        self,
        sentences: Sentences,
        tags: Tags,
        *,
        valid: tuple[Sentences, Tags] | None = None,
        meter: Meter | None = None,
    ) -> Self:
        for step in self.train(sentences, tags, valid=valid):
            if meter is not None:
                meter(f"training, loss {step.loss:.3f}", step.done, step.total)
        return self

    def train(self, sentences: Sentences, tags: Tags, *, valid: tuple[Sentences, Tags] | None = None) -> Iterator[Step]:
        """Learn, telling after each batch how far it is. With ``valid`` the best epoch on it is kept, else the last."""
        check_pairs(sentences, tags)
        if not any(map(len, sentences)):
            raise InputError("the training text is empty: a tagger needs at least one sentence with its tags")
        if valid is not None:
            check_pairs(*valid)
        scheme = Scheme.learnt(self.scheme, self.inside, tags)
        self._embedder = self._loaded_embedder()
        self._take(WordTable.of(sentences, self._vectors()), scheme)
        generator = torch.Generator(self._flat.device).manual_seed(self.seed)
        self._network.initialise(self.weights_, generator)
        self.valid_score_ = -math.inf
        yield from self._epochs(sentences, scheme.numbers(tags), generator, valid)

    def _epochs(
        self, sentences: Sentences, tags: Ids, generator: torch.Generator, valid: tuple[Sentences, Tags] | None
    ) -> Iterator[Step]:
        device, flat = self._flat.device, self._flat
        distinct, ids = distinct_words(sentences, self._known(), device)
        around = None if self._embedder is None else self._embedder.embed(sentences)
        self._chances = self._unseen_chances(device)
        weights, gradient = flat.clone(), torch.zeros_like(flat)
        leaves = {name: part.detach().requires_grad_() for name, part in views(weights, self._tensors()).items()}
        for name, part in views(gradient, self._tensors()).items():
            leaves[name].grad = part
        moves = optimiser(self.optimiser, weights)
        average, random = weights.clone(), np.random.default_rng(self.seed)
        total, done, step = self.epochs * sum(map(len, ids)), 0, 0
        for _ in range(self.epochs):
            for group in bucketed([len(each) for each in ids], self.batch, random):
                rate = self.rate * hold_then_cosine(done / total, hold=HOLD, last=LAST_RATE)
                context = None if around is None else beside([around[k] for k in group], device)
                read = ([ids[k] for k in group], [tags[k] for k in group], context)
                loss = self._loss(leaves, distinct, *read, generator)
                gradient.zero_()
                loss.backward()  # type: ignore[no-untyped-call]
                step += 1
                self._move(moves, weights, gradient, rate, step)
                share = 1.0 if self.average < 0 else running_share(step, self.average)
                average.lerp_(weights, min(1.0, share))
                words = sum(len(ids[k]) for k in group)
                done += words
                yield Step(done, total, self._finite(loss.item() / words, rate), rate)
            self._keep(average, valid)

    def _loss(
        self,
        weights: Weights,
        distinct: DistinctWords,
        ids: Ids,
        tags: Ids,
        context: Tensor | None,
        generator: torch.Generator,
    ) -> Tensor:
        """Nats, summed over the words of a batch."""
        device = self._flat.device
        places, lengths = side_by_side(ids, device)
        wanted, _ = side_by_side(tags, device)
        used, places = torch.unique(places, return_inverse=True)
        read = distinct.take(used)
        drawn = torch.rand(len(used), generator=generator, device=device) < self._chances[read.rows]
        read = replace(read, rows=read.rows.masked_fill(drawn, UNSEEN))
        vectors = self._network.word_vectors(weights, read)
        scores = self._network.emissions(weights, vectors, places, lengths, self.dropout, generator, context)
        if self.crf:
            return -log_likelihood(scores, wanted.t(), lengths, self._chain(weights)).sum()
        there = torch.arange(len(places), device=device) < lengths[:, None]
        return cross_entropy(scores[there], wanted.t()[there], reduction="sum")

    def _move(self, moves: Any, weights: Tensor, gradient: Tensor, rate: float, step: int) -> None:
        """The gradient is of a mean over sentences, so that one rate does for batches of any size."""
        gradient.div_(self.batch)
        norm = torch.linalg.vector_norm(gradient)
        factor = (self.clip / (norm + 1e-12)).clamp(max=1.0) if self.clip else 1.0
        planned = torch.tensor(moves.plan(rate, step), dtype=weights.dtype, device=weights.device)
        moves.update(weights, gradient, factor, planned)

    def _finite(self, loss: float, rate: float) -> float:
        if not math.isfinite(loss):
            raise DivergedError(f"training diverged: the loss is {loss}: try a lower rate than {rate:g}")
        return loss

    def _keep(self, weights: Tensor, valid: tuple[Sentences, Tags] | None) -> None:
        """Take the weights over if they are better than all before."""
        if valid is None or not any(map(len, valid[0])):
            self._flat.copy_(weights)
            return
        best, self._flat = self._flat, weights.clone()
        predicted = self.predict(valid[0])
        score = self._measure(predicted, valid[1])
        if score > self.valid_score_:
            self.valid_score_ = score
        else:
            self._flat = best

    def _measure(self, predicted: Tags, tags: Tags) -> float:
        if self.scheme is not None:
            return span_f1(predicted, tags)
        pairs = zip(chain.from_iterable(predicted), chain.from_iterable(tags), strict=True)
        return float(np.mean([ours == theirs for ours, theirs in pairs]))

    def _unseen_chances(self, device: torch.device) -> Tensor:
        counts = torch.from_numpy(self._known().fold_counts).to(device)
        if self.unseen == 0:
            return torch.zeros(len(counts), device=device)
        return (self.unseen / (self.unseen + counts)).float()

    # Tagging

    def predict(self, sentences: Sentences) -> list[list[str]]:
        found: list[list[str]] = [[] for _ in sentences]
        for group, scores, lengths in self._scored(sentences):
            if self.crf or self._scheme.allowed is not None:
                numbers = viterbi(scores, lengths, self._chain(self.weights_))
            else:
                best = scores.argmax(2).tolist()
                numbers = [row[:size] for row, size in zip(best, lengths.tolist(), strict=True)]
            for place, tags in zip(group, numbers, strict=True):
                found[place] = self._scheme.names(tags)
        return found

    def predict_log_proba(self, sentences: Sentences) -> list[Logs]:
        """(length, K) for each sentence: log p(y_t = k | the whole sentence); minus infinity for what is forbidden."""
        self._known()
        gathering = self._scheme.gathering()
        found: list[Logs] = [np.zeros((0, len(self.tags_))) for _ in sentences]
        for group, scores, lengths in self._scored(sentences):
            scores = scores.double()
            if self.crf or self._scheme.allowed is not None:
                parts = Chain(*(part.double() for part in self._chain(self.weights_)))
                shares = marginals(scores, lengths, parts).cpu().numpy()
            else:
                shares = log_softmax(scores, 2).exp().cpu().numpy()
            shares = shares if gathering is None else shares @ gathering
            with np.errstate(divide="ignore"):
                for place, rows, size in zip(group, shares, lengths.tolist(), strict=True):
                    found[place] = np.log(rows[:size] / rows[:size].sum(1, keepdims=True))
        return found

    def logits(self, sentences: Sentences) -> list[Floats]:
        """(length, tags inside) for each sentence: the scores of the last layer, before the field."""
        found: list[Floats] = [np.zeros((0, len(self._scheme.inner)), np.float32) for _ in sentences]
        for group, scores, lengths in self._scored(sentences):
            for place, rows, size in zip(group, scores.cpu().numpy(), lengths.tolist(), strict=True):
                found[place] = rows[:size].copy()
        return found

    def stream(self, words: Iterable[str]) -> Iterator[str]:
        """The tag of each word as soon as it is read, before the next: for a model that reads one way only."""
        self._known()
        if self.both_ways:
            raise SettingError(
                "a model that reads both ways cannot stream: what it says of a word depends on the words behind it; "
                "train with both_ways=False, or give it whole sentences"
            )
        if self._embedder is not None:
            raise SettingError("an embedder reads whole sentences: a tagger with one cannot stream")
        if self.crf or self.scheme is not None:
            raise SettingError("a field or a scheme chooses tags when the sentence has ended: train with crf=False")
        return self._streamed(words)

    def _streamed(self, words: Iterable[str]) -> Iterator[str]:
        weights, network, device = self.weights_, self._network, self._flat.device
        zero = self._flat.new_zeros(1, self.units)
        states = [(zero, zero)] * self.layers
        for word in words:
            with torch.inference_mode():
                x = network.word_vectors(weights, distinct_words([[word]], self._known(), device)[0])
                for layer, (h, c) in enumerate(states):
                    held = [weights[f"layer{layer}.ahead.{part}"] for part in PARTS]
                    out, h, c = lstm(x[None], h, c, held)
                    x, states[layer] = out[0], (h, c)
                best = int(linear(x, weights["output"], weights["bias"])[0].argmax())
            yield self._scheme.inner[best]

    def knows(self, word: str) -> bool:
        """Whether the word, written like this, was seen in training."""
        return word in self._known()

    def _scored(self, sentences: Sentences) -> Iterator[tuple[list[int], Tensor, Tensor]]:
        """Sentences of like length together: which they are, their scores (B, T, K), their lengths. Empty ones have
        nothing to be told of.
        """
        words, weights, device = self._known(), self.weights_, self._flat.device
        for begin in range(0, len(sentences), SENTENCES_AT_ONCE):
            with torch.inference_mode(), torch.backends.cudnn.flags(enabled=True, allow_tf32=False):
                distinct, ids = distinct_words(sentences[begin : begin + SENTENCES_AT_ONCE], words, device)
                vectors = self._network.word_vectors(weights, distinct)
                plain = device.type != "cpu" or self._embedder is not None
                read = None if plain else SentenceReader(self._network, weights, vectors).emissions
            at_once = READ_AT_ONCE if read else PADDED_AT_ONCE
            for group in like_lengths([len(each) for each in ids], at_once):
                with torch.inference_mode(), torch.backends.cudnn.flags(enabled=True, allow_tf32=False):
                    places, lengths = side_by_side([ids[place] for place in group], device)
                    if read is None:
                        context = self._context([sentences[begin + place] for place in group])
                        scores = self._network.emissions(weights, vectors, places, lengths, context=context)
                    else:
                        scores = read(places, lengths)
                    yield [begin + place for place in group], scores, lengths

    def _context(self, sentences: Sentences) -> Tensor | None:
        return None if self._embedder is None else beside(self._embedder.embed(sentences), self._flat.device)

    def _chain(self, weights: Weights) -> Chain:
        chain = self._network.chain(weights)
        return chain if self._scheme.allowed is None else constrained(chain, self._scheme.allowed)

    # Keeping and saving

    def to_parts(self) -> Parts:
        words = self._known()
        names = (name for name in signature(type(self)).parameters if name not in NOT_SAVED)
        settings: dict[str, Json] = {name: getattr(self, name) for name in names}
        settings |= {"tags": list[Json](self._scheme.outer), "has_vectors": words.vectors is not None}
        weights: dict[str, Array] = {name: part.cpu().numpy() for name, part in self.weights_.items()}
        parts = Parts(settings, {**{f"weights.{name}": part for name, part in weights.items()}, **words.to_arrays()})
        if self._embedder is not None:
            nest("embedder", saveable(self._embedder, ", nor a tagger that reads with it"), parts)
        return parts

    @classmethod
    def from_parts(cls, parts: Parts) -> Self:
        settings: dict[str, Any] = {name: value for name, value in parts.settings.items() if name != "embedder"}
        tags, has_vectors = settings.pop("tags"), settings.pop("has_vectors")
        _check_tags(tags)
        if type(has_vectors) is not bool:
            raise ValueError(f"'has_vectors' is {has_vectors!r}: expected true or false")
        parts.check_counts("layers")
        model = cls(**settings)
        if "embedder" in parts.settings:
            model._embedder = model.embedder = _checked_embedder(unnest("embedder", parts), "the embedder")
        arrays = dict(parts.arrays)
        words = WordTable.from_arrays(arrays, model.words if has_vectors else None)
        scheme = Scheme(model.scheme, model.inside, tags)
        if scheme.outer != tags:
            raise ValueError(f"the tags are {tags[:5]}…, not {scheme.outer[:5]}… as the scheme has them")
        check_weights(arrays, model._network_of(words, scheme).tensors(), "weights.")
        model._take(words, scheme)
        for name, part in model.weights_.items():
            part.copy_(torch.from_numpy(np.array(arrays[f"weights.{name}"])))
        return model

    def _take(self, words: WordTable, scheme: Scheme) -> None:
        """Weights of zero for these words and tags."""
        self._network = self._network_of(words, scheme)
        self.words = self._network.words
        self._lexicon, self._scheme = words, scheme
        self._flat = new_flat(self._network.tensors(), choose_device(self.device))

    def _network_of(self, words: WordTable, scheme: Scheme) -> TaggerNetwork:
        return TaggerNetwork(
            words.rows,
            self.words if words.vectors is None else words.vectors.shape[1],
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
        )

    def _tensors(self) -> dict[str, tuple[int, ...]]:
        return self._network.tensors()

    def _vectors(self) -> WordVectors | None:
        if not isinstance(self.vectors, str):
            return self.vectors
        found = load(self.vectors)
        found = getattr(found, "vectors_", found)
        if not isinstance(found, WordVectors):
            raise InputError(f"{self.vectors}: a {type(found).__name__}, not word vectors")
        return found

    def _loaded_embedder(self) -> Embedder | None:
        found = load(self.embedder) if isinstance(self.embedder, str) else self.embedder
        return None if found is None else _checked_embedder(found, str(self.embedder))

    def _known(self) -> WordTable:
        if self._lexicon is None:
            raise NotFittedError(self, "sentences, tags")
        return self._lexicon

    def _check_settings(self) -> None:
        for name in ("units", "layers", "words", "letter_units", "spelling", "epochs", "batch"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise SettingError(f"{name}={value!r} must be a whole number, at least 1")
        for name, least, below in (
            ("dropout", 0, 1), ("unseen", 0, math.inf), ("rate", 0, math.inf), ("clip", 0, math.inf),
            ("average", -1, math.inf),
        ):  # fmt: skip
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value < below:
                raise SettingError(f"{name}={value!r} must be a number of at least {least} and below {below}")
        for name, choices in (
            ("characters", ("cnn", "lstm", "none")),
            ("optimiser", ("adam", "sgd")),
            ("inside", ("bio", "bioes")),
            ("device", (None, "cuda", "cpu")),
            ("crf", (True, False)),
            ("both_ways", (True, False)),
        ):
            if getattr(self, name) not in choices:
                raise SettingError(f"{name}={getattr(self, name)!r} must be one of {', '.join(map(str, choices))}")
        if self.scheme is not None:
            letters_of(self.scheme)
        if self.scheme == "bioes":
            self.inside = "bioes"
        if self.characters == "lstm" and self.spelling % 2:
            raise SettingError(f"spelling={self.spelling} must be even: half of it for each way to read")
        if not isinstance(self.column, str) or not isinstance(self.seed, int):
            raise SettingError(f"column={self.column!r} must be a name and seed={self.seed!r} a whole number")


def _checked_embedder(found: object, where: str) -> Embedder:
    if not isinstance(found, Embedder):
        raise InputError(f"{where}: a {type(found).__name__}, not an embedder such as ELMo")
    return found


def _check_tags(tags: Any) -> None:
    check_tag_names(tags)
    if tags != sorted(set(tags)):
        raise ValueError("'tags' must be sorted, each of them once")
