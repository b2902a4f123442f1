"""Several language models on one text, measured so that their numbers can be compared.

Two models that know different words predict different things: the one that knows fewer has an easier task, for it may
say ``<unk>`` where the other must name the word. So all are measured over the words that any of them knows, and one
more for all others: what a model gives ``<unk>`` is shared out evenly among the words that it alone does not know,

    p'(w | h) = p(<unk> | h) / (n + 1)        for w outside its vocabulary; n: words that others know and it does not

which sums to one over the same events for every model (J. Ueberla, "Analysing a simple language model: some general
conclusions for language models for speech recognition", 1994, calls it adjusted perplexity). Models that know the same
words keep their numbers.

Models that cut text into different tokens have perplexities over different things. Their bits per byte can be compared
where every token can be spelled; where some are ``<unk>``, nothing can, and that is an error.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from foreword.arrays import Doubles, Logs
from foreword.errors import InputError
from foreword.measures.bootstrap import perplexity_interval, ratio_interval
from foreword.measures.perplexity import Measures, finite, measure
from foreword.ngram.kenlm_words import HashedWords
from foreword.pipeline.language import TextLM
from foreword.protocols import Json, LanguageModel
from foreword.text.unicode import Cleaning
from foreword.tokens.corpus import Corpus
from foreword.tokens.words import WordTokenizer


@dataclass(frozen=True, slots=True)
class Together:
    """Measures of several models, by their names, best first.

    by: what can be compared, perplexity or bits per byte. normalised: whether ``<unk>`` was shared out.
    vocabularies: the number of tokens each model knows.
    intervals: 95 % of each perplexity; lead: of the second best's divided by the best's. None where tokens differ.
    """

    by: Literal["perplexity", "bits_per_byte"]
    normalised: bool
    measures: dict[str, Measures]
    vocabularies: dict[str, int]
    intervals: dict[str, tuple[float, float]] | None = None
    lead: tuple[float, float] | None = None

    def to_json(self) -> dict[str, Json]:
        """Return one object per model, best first, and how they were compared."""
        models: list[Json] = []
        for name, measures in self.measures.items():
            one: dict[str, Json] = {"model": name, "vocabulary": self.vocabularies[name], **measures.to_json()}
            if self.intervals is not None:
                one["perplexity_interval"] = [finite(edge) for edge in self.intervals[name]]
            models.append(one)
        found: dict[str, Json] = {"compared_by": self.by, "normalised": self.normalised, "models": models}
        return found if self.lead is None else found | {"lead_interval": [finite(edge) for edge in self.lead]}


def measure_together(models: Mapping[str, TextLM], corpora: Mapping[str, Corpus]) -> Together:
    """Measure models on one text, which ``corpora`` has in the tokens of each."""
    first, *others = models.values()
    vocabularies = {name: len(model.vocab) for name, model in models.items()}
    if not all(_same_tokens(first, other) for other in others) or not _same_lengths(corpora):
        return _by_bytes(models, corpora, vocabularies)
    _check_words(models)
    words = [set(model.vocab.tokens) for model in models.values()]
    union = len(set().union(*words))
    recorded = {
        name: _Recorded(model.model, math.log(union - len(known) + 1))
        for (name, model), known in zip(models.items(), words, strict=True)
    }
    measures = {name: measure(recorded[name], corpora[name]) for name in models}
    ranked = sorted(models, key=lambda name: measures[name].perplexity)
    offsets = corpora[ranked[0]].offsets
    logs = {name: np.concatenate(recorded[name].logs) for name in ranked}
    return Together(
        "perplexity",
        len(set(map(frozenset, words))) > 1,
        {name: measures[name] for name in ranked},
        vocabularies,
        {name: perplexity_interval(logs[name], offsets) for name in ranked},
        ratio_interval(logs[ranked[0]], logs[ranked[1]], offsets),
    )


class _Recorded:
    """A model that shares out what it gives ``<unk>``, and records its log-probabilities. charge: log(n + 1)."""

    def __init__(self, model: LanguageModel[Any], charge: float) -> None:
        self.model, self.charge = model, charge
        self.logs: list[Doubles] = []

    def logprobs(self, corpus: Corpus) -> Logs:
        """Return the log-probabilities over the words that any model knows."""
        logs = np.array(self.model.logprobs(corpus), np.float64)
        if corpus.vocab.unknown is not None:
            logs[corpus.ids == corpus.vocab.unknown] -= self.charge
        self.logs.append(logs)
        return logs


def _same_tokens(one: TextLM, other: TextLM) -> bool:
    """Return whether two models cut every text at the same characters."""
    tokenizers: Sequence[Any] = (one.tokenizer, other.tokenizer)
    first, second = map(_word_rules, tokenizers)
    if first is not None and second is not None:
        return first == second
    if type(tokenizers[0]) is not type(tokenizers[1]):
        return False
    settings = [tokenizer.to_parts().settings for tokenizer in tokenizers]
    return settings[0] == settings[1] and one.vocab.tokens == other.vocab.tokens


def _word_rules(tokenizer: Any) -> tuple[str, Cleaning] | None:
    """Return how a tokenizer of words splits and cleans text; None for other tokenizers."""
    if isinstance(tokenizer, HashedWords):
        return "space", Cleaning()
    return (tokenizer.split, tokenizer.cleaning) if isinstance(tokenizer, WordTokenizer) else None


def _same_lengths(corpora: Mapping[str, Corpus]) -> bool:
    """Return whether every document has as many tokens for all models: KenLM splits at ASCII's white space only."""
    first, *others = (corpus.offsets for corpus in corpora.values())
    return all(np.array_equal(first, other) for other in others)


def _check_words(models: Mapping[str, TextLM]) -> None:
    """Refuse a model whose words cannot be listed, and so not be compared with those of the others."""
    for name, model in models.items():
        if isinstance(model.tokenizer, HashedWords) and not model.tokenizer.has_words:
            raise InputError(
                f"{name}: its words are known only by their hashes, and cannot be compared with those of "
                f"{next(other for other in models if other != name)}: measure it alone, or build it with its words"
            )


def _by_bytes(models: Mapping[str, TextLM], corpora: Mapping[str, Corpus], vocabularies: dict[str, int]) -> Together:
    measures = {name: measure(model.model, corpora[name]) for name, model in models.items()}
    for name, found in measures.items():
        if found.oov:
            raise InputError(
                f"{name} cuts text into other tokens than {next(other for other in models if other != name)}, and "
                f"{found.oov:,} of them are unknown: neither perplexity nor bits per byte can be compared; "
                "train both with one --tokenizer"
            )
    ranked = sorted(models, key=lambda name: measures[name].bits_per_byte)
    return Together("bits_per_byte", False, {name: measures[name] for name in ranked}, vocabularies)
