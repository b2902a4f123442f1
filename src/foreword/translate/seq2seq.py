"""The translator: an encoder reads a sentence, a decoder writes another, and attention says where it looks.

    p(d_1 … d_T | e) = Π_t p(d_t | d_<t, e)        the network: ``network.py``, the search: ``search.py``

How it is trained: ``training.py``; the answer is a running average of the weights. Models know ids, never text:
``text.py`` has the tokenizers of both languages.
Shapes: B sentences, S source and T target ids, N target ids of a batch, V target words, E units of a word.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Sequence
from inspect import signature
from typing import Any, Literal, Self

import numpy as np

from foreword.arrays import Array, Floats, Ids, Logs, Longs
from foreword.checks import check_weights
from foreword.decode import Goal, Hypothesis, Normalisation
from foreword.errors import InputError, MissingExtraError, NotFittedError, SettingError
from foreword.protocols import Json, Meter, Parts, Step
from foreword.tokens.corpus import Corpus
from foreword.tokens.vocab import Vocab

try:
    import torch
    from torch import Tensor
except ImportError:
    raise MissingExtraError("torch", "neural", "a translator") from None

from torch.nn.functional import linear, log_softmax

from foreword.nn.network import Weights
from foreword.training.batches import side_by_side
from foreword.training.checkpoint import Checkpoint
from foreword.training.flat import choose_device, new_flat, views
from foreword.translate.greedy import Greedy
from foreword.translate.network import ATTENTIONS, Memory, TranslationNetwork
from foreword.translate.pairs import Batch, Pairs, batch_of, bucketed, documents_of, lengths_of
from foreword.translate.search import Conditioned, search
from foreword.translate.training import SCHEDULES, Run
from foreword.translate.vocabulary import from_arrays, to_arrays

SEARCHED_AT_ONCE = {"cpu": 64, "cuda": 512}
"""Sources whose translations are searched for together."""

SCORED_AT_ONCE = 8192
"""Target ids that are scored together."""

NOT_SAVED = ("device",)


class Seq2Seq:
    """An encoder and a decoder.

    units: of the decoder; layers: of both; cell: "lstm" or "gru". words: of a word's vector. encoder: units of the
        encoder, half of them for each way to read; None for as many as the decoder has. both_ways: read from the end as
        well. attention: "additive", "dot", "general", "scaled" or "none". feed: the decoder also reads what it said
        last (input feeding). tied: the output layer is the table of target words. Where both languages have one
        vocabulary, they share one table.
    dropout: the share of units. smoothing: of labels. teacher: False, and the decoder reads its own words in training.
    sampling: "linear", "exponential" or "inverse-sigmoid": how the chance of the true word falls; to ``truth`` at the
        end of the training.
    epochs, batch (in target ids), rate, clip (of the gradient's norm), average (see ``running_share``; −1 for the
        weights themselves). every: epochs between two looks at held-out pairs; patience: looks without a better score
        after which it is over, 0 for never; seconds: after which it is over, 0 for never.
    device: "cuda" or "cpu"; None for the first there is. valid_score_: the best on held-out pairs.
    """

    def __init__(
        self,
        units: int = 256,
        layers: int = 1,
        *,
        cell: Literal["lstm", "gru"] = "lstm",
        words: int = 256,
        encoder: int | None = None,
        both_ways: bool = True,
        attention: Literal["additive", "dot", "general", "scaled", "none"] = "general",
        feed: bool = False,
        tied: bool = True,
        dropout: float = 0.3,
        smoothing: float = 0.1,
        teacher: bool = True,
        sampling: Literal["none", "linear", "exponential", "inverse-sigmoid"] = "none",
        truth: float = 0.7,
        epochs: int = 30,
        batch: int = 2000,
        rate: float = 1e-3,
        clip: float = 1.0,
        average: float = 8.0,
        every: int = 1,
        patience: int = 0,
        seconds: float = 0.0,
        seed: int = 0,
        device: str | None = None,
    ) -> None:
        self.units, self.layers, self.cell, self.words = units, layers, cell, words
        self.encoder, self.both_ways = encoder, both_ways
        self.attention, self.feed, self.tied = attention, feed, tied
        self.dropout, self.smoothing = dropout, smoothing
        self.teacher, self.sampling, self.truth = teacher, sampling, truth
        self.epochs, self.batch, self.rate, self.clip = epochs, batch, rate, clip
        self.average, self.every, self.patience, self.seconds = average, every, patience, seconds
        self.seed, self.device = seed, device
        self.valid_score_ = -math.inf
        self._vocabs: tuple[Vocab, Vocab] | None = None
        self._network: TranslationNetwork
        self._flat: Tensor
        self._check_settings()

    def __repr__(self) -> str:
        return f"Seq2Seq({self.units}, {self.layers}, cell={self.cell!r}, attention={self.attention!r})"

    @property
    def source_vocab(self) -> Vocab:
        return self._known()[0]

    @property
    def vocab(self) -> Vocab:
        """Of the target, which is what is said."""
        return self._known()[1]

    @property
    def network_(self) -> TranslationNetwork:
        self._known()
        return self._network

    @property
    def weights_(self) -> Weights:
        """What was learnt, by name."""
        self._known()
        return views(self._flat, self._network.tensors())

    @property
    def parameter_count(self) -> int:
        return sum(math.prod(shape) for shape in self.network_.tensors().values())

    # Learning

    def fit(self, pairs: Pairs, *, valid: Pairs | None = None, meter: Meter | None = None) -> Self:
        for step in self.train(pairs, valid=valid):
            if meter is not None:
                meter(f"training, loss {step.loss:.3f}", step.done, step.total)
        return self

    def train(
        self,
        pairs: Pairs,
        *,
        valid: Pairs | None = None,
        measure: Callable[[Self], float] | None = None,
        checkpoint: Checkpoint | None = None,
    ) -> Iterator[Step]:
        """Learn, telling how far it is. With ``valid`` the best epoch is kept: by its score, or by ``measure``, which
        is given the model and says how good it is. With a checkpoint the run goes on after the last epoch kept there.
        """
        if len(pairs) == 0:
            raise InputError("the training text is empty: a translator needs at least one pair of sentences")
        for each in (pairs, valid):
            if each is not None:
                each.check()
        vocabs = pairs.sources.vocab, pairs.targets.vocab
        if valid is not None and (valid.sources.vocab, valid.targets.vocab) != vocabs:
            raise InputError("the held-out pairs were turned into ids with other vocabularies than the training pairs'")
        if valid is None and measure is None and self.patience:
            raise SettingError(f"patience={self.patience} needs held-out pairs: give valid")
        self._take(*vocabs)
        self.valid_score_ = -math.inf
        yield from Run(self, pairs, valid, measure).epochs(checkpoint)

    # Scoring

    def logprobs(self, pairs: Pairs) -> list[Logs]:
        """For each pair (target ids,): log p(d_t | d_<t, e), its end included; their sum is log p(d | e)."""
        self._check_vocabs(pairs.sources, pairs.targets)
        sources, targets = documents_of(pairs.sources), documents_of(pairs.targets)
        found: list[Logs] = [np.empty(0)] * len(pairs)
        for group in bucketed(lengths_of(sources), lengths_of(targets), SCORED_AT_ONCE):
            batch = self._batch([sources[k] for k in group], [targets[k] for k in group])
            with _exact():
                memory = self._network.encode(self.weights_, batch.source, batch.lengths)
                read = self._network.decode(self.weights_, memory, batch.inputs, memory.state)
                table = self._network.table(self.weights_)
                hidden = read.readout.flatten(0, 1).index_select(0, batch.places)
                logs = torch.cat(
                    [
                        log_softmax(linear(h, table, self.weights_["bias"]).float(), 1).gather(1, t[:, None])[:, 0]
                        for h, t in zip(torch.split(hidden, 1024), torch.split(batch.targets, 1024), strict=True)
                    ]
                )
            flat = np.empty(batch.inputs.numel())
            flat[batch.places.cpu().numpy()] = logs.cpu().numpy()
            columns = flat.reshape(batch.inputs.shape)
            for column, place in enumerate(group):
                found[place] = columns[: len(targets[place]), column].copy()
        return found

    def score(self, pairs: Pairs) -> float:
        """The mean log-probability of a target id; perplexity is exp of minus it."""
        if len(pairs) == 0:
            raise InputError("there are no pairs: there is nothing to score")
        return float(np.concatenate(self.logprobs(pairs)).mean())

    def attend(self, pairs: Pairs) -> list[Floats]:
        """(target ids, source ids) for each pair, both ends included: where the decoder looks for each word it says."""
        if self.attention == "none":
            raise SettingError("this model has no attention: there is nothing to show")
        self._check_vocabs(pairs.sources, pairs.targets)
        sources, targets = documents_of(pairs.sources), documents_of(pairs.targets)
        found: list[Floats] = [np.empty((0, 0), np.float32)] * len(pairs)
        for group in bucketed(lengths_of(sources), lengths_of(targets), SCORED_AT_ONCE // 4):
            batch = self._batch([sources[k] for k in group], [targets[k] for k in group])
            with _exact():
                memory = self._network.encode(self.weights_, batch.source, batch.lengths)
                looked = self._network.decode(self.weights_, memory, batch.inputs, memory.state).weights
            assert looked is not None
            for weights, place in zip(looked.cpu().numpy(), group, strict=True):
                found[place] = weights[: len(targets[place]), : len(sources[place])].copy()
        return found

    # Translating

    def condition(self, sources: Corpus) -> Conditioned:
        """The model when it has read these: what ``decode`` samples from and searches in."""
        self._check_vocabs(sources)
        with _exact():
            return Conditioned(self._network, self.weights_, self._memory(documents_of(sources)), self.vocab)

    def translate(self, sources: Corpus, *, width: int = 5, **settings: Any) -> list[Ids]:
        """The best target found for each source, without its end; ``search`` has the settings.

        A width of 1 is greedy, which LSTMs on a CPU do by a quicker road.
        """
        if width == 1 and self._known() and self.cell == "lstm" and self._flat.device.type == "cpu":
            return self._greedy(sources, **settings)
        found = self.search(sources, width=width, **settings)
        return [np.array(texts[0].ids, np.int64) for texts in found]

    def _greedy(
        self, sources: Corpus, *, max_tokens: int = 100, meter: Meter | None = None, **settings: Any
    ) -> list[Ids]:  # fmt: skip
        """Of one text nothing is compared, so that penalties change nothing; they are checked all the same."""
        goal = Goal(1, 1, max_tokens, settings.pop("length_penalty", 1.0), self.vocab.end, **settings)
        if goal.coverage and self.attention == "none":
            raise SettingError("a coverage penalty needs attention, and this model has none")
        self._check_vocabs(sources)
        documents = documents_of(sources)
        order = sorted(range(len(documents)), key=lambda place: -len(documents[place]))
        found: list[Ids] = [np.empty(0, np.int64)] * len(documents)
        told = None if meter is None else lambda begun: meter("translating", begun, len(order))
        with _exact():
            greedy = Greedy(self._network, self.weights_)
            said = greedy.translate([documents[place] for place in order], self.vocab.end, max_tokens, told)
        for place, ids in zip(order, said, strict=True):
            found[place] = np.array(ids, np.int64)
        return found

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
        meter: Meter | None = None,
    ) -> list[list[Hypothesis]]:
        """As ``decode.beam_search``, for every source; those of like length together."""
        self._check_vocabs(sources)
        goal = Goal(width, n_best, max_tokens, length_penalty, self.vocab.end, normalisation, coverage)
        documents = documents_of(sources)
        order = sorted(range(len(documents)), key=lambda place: -len(documents[place]))
        found: list[list[Hypothesis]] = [[] for _ in documents]
        at_once = SEARCHED_AT_ONCE[self._flat.device.type]
        for begin in range(0, len(order), at_once):
            group = order[begin : begin + at_once]
            with _exact():
                memory = self._memory([documents[place] for place in group])
                texts = search(self._network, self.weights_, memory, goal)
            for place, each in zip(group, texts, strict=True):
                found[place] = each
            if meter is not None:
                meter("translating", begin + len(group), len(order))
        return found

    def _memory(self, documents: Sequence[Longs]) -> Memory:
        source, lengths = side_by_side(documents, fill=self.source_vocab.end)
        device = self._flat.device
        return self._network.encode(self.weights_, source.to(device), lengths.to(device))

    def _batch(self, sources: Sequence[Longs], targets: Sequence[Longs]) -> Batch:
        return batch_of(sources, targets, self.source_vocab.end, self.vocab.end).to(self._flat.device)

    # Keeping and saving

    def settings(self) -> dict[str, Json]:
        return {name: getattr(self, name) for name in signature(type(self)).parameters if name not in NOT_SAVED}

    def to_parts(self) -> Parts:
        """The target's vocabulary is the model's; the source's goes beside it, unless they are one."""
        source, target = self._known()
        weights: dict[str, Array] = {f"weights.{name}": part.cpu().numpy() for name, part in self.weights_.items()}
        parts = Parts({**self.settings(), "shared": self._network.shared}, weights, target)
        if not self._network.shared:
            parts.settings["source"], arrays = to_arrays(source)
            parts.arrays.update(arrays)
        return parts

    @classmethod
    def from_parts(cls, parts: Parts) -> Self:
        settings: dict[str, Any] = dict(parts.settings)
        shared = settings.pop("shared")
        source_facts = settings.pop("source", None)
        if type(shared) is not bool:
            raise ValueError(f"'shared' is {shared!r}: expected true or false")
        if parts.vocab is None:
            raise ValueError("it has no vocabulary")
        parts.check_counts("layers")
        model = cls(**settings)
        source = parts.vocab if shared else from_arrays(source_facts, parts.arrays)
        check_weights(parts.arrays, model._network_of(source, parts.vocab).tensors(), "weights.")
        model._take(source, parts.vocab)
        for name, part in model.weights_.items():
            part.copy_(torch.from_numpy(np.array(parts.arrays[f"weights.{name}"])))
        return model

    def _take(self, source: Vocab, target: Vocab) -> None:
        """Weights of zero for these vocabularies."""
        self._network = self._network_of(source, target)
        self._vocabs = source, target
        self._flat = new_flat(self._network.tensors(), choose_device(self.device))

    def _network_of(self, source: Vocab, target: Vocab) -> TranslationNetwork:
        return TranslationNetwork(
            len(source),
            len(target),
            source == target,
            self.words,
            self.units,
            self.encoder or self.units,
            self.layers,
            self.cell,
            self.both_ways,
            self.attention,
            self.feed,
            self.tied,
        )

    def _known(self) -> tuple[Vocab, Vocab]:
        if self._vocabs is None:
            raise NotFittedError(self, "pairs")
        return self._vocabs

    def _check_vocabs(self, sources: Corpus, targets: Corpus | None = None) -> None:
        for side, corpus, vocab in (("sources", sources, self.source_vocab), ("targets", targets, self.vocab)):
            if corpus is None:
                continue
            if corpus.vocab != vocab:
                raise InputError(f"the {side} were turned into ids with another vocabulary than the model's")
            corpus.check_ids()

    def _check_settings(self) -> None:
        for name in ("units", "layers", "words", "epochs", "batch", "every"):
            _check_whole(name, getattr(self, name), 1)
        _check_whole("patience", self.patience, 0)
        _check_whole("seed", self.seed, 0)
        if self.encoder is not None:
            _check_whole("encoder", self.encoder, 1)
        for name, least, below in (
            ("dropout", 0, 1), ("smoothing", 0, 1), ("truth", 0, 1.01), ("rate", 0, math.inf), ("clip", 0, math.inf),
            ("average", -1, math.inf), ("seconds", 0, math.inf),
        ):  # fmt: skip
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value < below:
                raise SettingError(f"{name}={value!r} must be a number of at least {least} and below {below}")
        for name, choices in (
            ("cell", ("lstm", "gru")),
            ("attention", ATTENTIONS),
            ("sampling", SCHEDULES),
            ("device", (None, "cuda", "cpu")),
            *((name, (True, False)) for name in ("both_ways", "feed", "tied", "teacher")),
        ):
            if getattr(self, name) not in choices:
                raise SettingError(f"{name}={getattr(self, name)!r} must be one of {', '.join(map(str, choices))}")
        if self.both_ways and (self.encoder or self.units) % 2:
            raise SettingError(f"encoder={self.encoder or self.units} must be even: half of it for each way to read")
        if self.attention in ("dot", "scaled") and self.encoder not in (None, self.units):
            raise SettingError(
                f"attention={self.attention!r} takes an encoder and a decoder of equal size, not {self.encoder} and "
                f"{self.units} units: general or additive attention takes any"
            )


def _check_whole(name: str, value: object, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise SettingError(f"{name}={value!r} must be a whole number, at least {least}")


@contextlib.contextmanager
def _exact() -> Iterator[None]:
    """No gradients, and on a GPU products in whole float32."""
    with torch.inference_mode(), torch.backends.cudnn.flags(enabled=True, allow_tf32=False):
        yield
