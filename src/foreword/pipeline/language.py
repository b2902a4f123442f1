"""A tokenizer and a language model together: text in, numbers or text out.

Models know ids, never text. ``TextLM`` joins a model with the tokenizer whose vocabulary it shares.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Self

from foreword import kinds
from foreword.checks import check_not_string, saveable
from foreword.decode import INCOMPLETE, Acceptance, generate, pieces
from foreword.measures.perplexity import Measures, measure, surprisal
from foreword.ngram.arpa import read_arpa
from foreword.ngram.kenlm import KenlmLM
from foreword.ngram.model import NgramLM
from foreword.notebook import ShownInNotebook
from foreword.pipeline.scoring import score_corpus
from foreword.protocols import Drafter, LanguageModel, Parts, QuickSteps, TextTokenizer
from foreword.storage.folder import nest, unnest
from foreword.tokens.corpus import Corpus
from foreword.tokens.vocab import Vocab
from foreword.tokens.words import WordTokenizer


class TextLM(ShownInNotebook):
    """A tokenizer and a language model.

    ``TextLM(WordTokenizer(), UnigramLM()).fit(texts)`` learns both from text; where each has already learnt, they are
    joined as they are. tokenizer: None for words between white space, those of them that suit the model, as
    ``foreword train`` has them. model: ``NgramLM()`` if none is given.
    """

    def __init__(self, tokenizer: TextTokenizer | None = None, model: LanguageModel[Any] | None = None) -> None:
        self.model = NgramLM() if model is None else model
        self.tokenizer = word_tokenizer(self.model) if tokenizer is None else tokenizer

    def __repr__(self) -> str:
        return f"TextLM({self.tokenizer!r}, {self.model!r})"

    @property
    def vocab(self) -> Vocab:
        """Return the vocabulary of the tokenizer."""
        return self.tokenizer.vocab

    def fit(self, texts: Iterable[str], *, valid: Iterable[str] | None = None) -> Self:
        """Learn a vocabulary from the texts, one document each, then the model from their ids."""
        texts = _readable_twice(texts)
        self.tokenizer.fit(texts)
        self.model.fit(self.corpus(texts), valid=None if valid is None else self.corpus(valid))
        return self

    def corpus(self, texts: Iterable[str]) -> Corpus:
        """Return the texts as ids."""
        return Corpus.from_texts(check_not_string(texts), self.tokenizer)

    def score(self, text: str) -> float:
        """Return the natural log-probability of a document, its end included."""
        return float(score_corpus(self.model, self.corpus([text])).logprobs[0])

    def perplexity(self, texts: Iterable[str]) -> float:
        """Return the perplexity of texts."""
        return self.measure(texts).perplexity

    def measure(self, texts: Iterable[str]) -> Measures:
        """Return all measures of texts."""
        return measure(self.model, self.corpus(texts))

    def surprisal(self, text: str) -> list[tuple[str, float]]:
        """Return each token of the text with its surprisal in bits, ``</s>`` last."""
        corpus = self.corpus([text])
        return list(zip(map(self.token_text, corpus.ids.tolist()), surprisal(self.model, corpus).tolist(), strict=True))

    def generate(
        self,
        prompt: str = "",
        *,
        max_tokens: int = 100,
        temperature: float = 1.0,
        top_k: int | None = None,
        top_p: float | None = None,
        seed: int = 0,
        drafter: Drafter | None = None,
        acceptance: Acceptance | None = None,
    ) -> str:
        """Generate text after the prompt, which is not repeated: the two joined read as one text."""
        stream = self.stream(
            prompt, max_tokens=max_tokens, temperature=temperature, top_k=top_k, top_p=top_p, seed=seed,
            drafter=drafter, acceptance=acceptance,
        )  # fmt: skip
        return "".join(stream)

    def stream(
        self,
        prompt: str = "",
        *,
        max_tokens: int = 100,
        temperature: float = 1.0,
        top_k: int | None = None,
        top_p: float | None = None,
        seed: int = 0,
        drafter: Drafter | None = None,
        acceptance: Acceptance | None = None,
    ) -> Iterator[str]:
        """Yield what ``generate`` returns piece by piece."""
        read = self.tokenizer.encode(prompt).tolist()
        model = self.model.stepping() if drafter is None and isinstance(self.model, QuickSteps) else self.model
        ids = generate(
            model, read, max_tokens=max_tokens, temperature=temperature, top_k=top_k, top_p=top_p, seed=seed,
            drafter=drafter, acceptance=acceptance,
        )  # fmt: skip
        return filter(None, pieces(self.tokenizer, ids, after=read))

    def to_parts(self) -> Parts:
        """Return the settings, arrays and vocabulary to save."""
        parts = Parts({})
        nest("tokenizer", saveable(self.tokenizer), parts)
        nest("model", saveable(self.model), parts)
        return parts

    @classmethod
    def from_parts(cls, parts: Parts) -> Self:
        """Rebuild the model from what was saved."""
        tokenizer, model = unnest("tokenizer", parts), unnest("model", parts)
        if not isinstance(tokenizer, TextTokenizer) or not isinstance(model, LanguageModel):
            raise ValueError(f"a {type(tokenizer).__name__} and a {type(model).__name__} make no text model")
        return cls(tokenizer, model)

    def token_text(self, id: int) -> str:
        """Return a token as text, or as the vocabulary writes it if it is the end or part of a character."""
        text = "" if id == self.vocab.end else self.tokenizer.decode([id])
        return text if text and INCOMPLETE not in text else self.vocab[id]


def word_tokenizer(model: object, min_count: int | None = None, max_size: int | None = None) -> WordTokenizer:
    """Return a tokenizer of words between white space that keeps the words which suit the model.

    Language models keep every word, networks the ``max_words`` most frequent ones. Where a language model is given a
    ``max_size``, that alone says which words are kept.
    """
    kind = kinds.find(model)
    if kind is not None and min_count is None and max_size is None:
        max_size = kind.max_words
    if min_count is None:
        by_size = kind is not None and kind.task == "language-model" and max_size is not None
        min_count = 1 if kind is None or by_size else kind.min_count
    return WordTokenizer(min_count=min_count, max_size=max_size)


def load_arpa(path: str | Path) -> TextLM:
    """Open an ARPA file as a model of text whose words are separated by white space."""
    model = read_arpa(path)
    return TextLM(WordTokenizer.from_parts(Parts({}, {}, model.vocab)), model)


def load_kenlm(path: str | Path) -> TextLM:
    """Open a KenLM binary as a model of text whose words are separated by white space."""
    model = KenlmLM.open(path)
    return TextLM(model.words, model)


def _readable_twice(texts: Iterable[str]) -> Iterable[str]:
    """Return texts that can be read twice: once for the vocabulary, once for the ids."""
    return list(texts) if isinstance(texts, Iterator) else check_not_string(texts)
