"""Text in, text out: a translator and the tokenizers of its two languages, or the one of both.

With words for tokens, a word that the target's vocabulary lacks comes out as ``<unk>``; in its place the source word
that the decoder looked at most may be copied, which is right for names and numbers (M.-T. Luong et al., "Addressing the
rare word problem in neural machine translation", 2015).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self

from foreword.arrays import Array, Floats, Ids
from foreword.checks import check_not_string, saveable
from foreword.decode import INCOMPLETE
from foreword.errors import InputError, SettingError
from foreword.measures.translation import BLEU, bleu, chrf
from foreword.notebook import ShownInNotebook
from foreword.protocols import Meter, Parts, Step, TextTokenizer
from foreword.storage.checkpoint import Checkpoint
from foreword.storage.folder import nest, pack, unnest, unpack
from foreword.text.sources import read_lines
from foreword.text.unicode import Errors
from foreword.tokens.corpus import Corpus
from foreword.tokens.vocab import UNKNOWN
from foreword.tokens.words import WordTokenizer
from foreword.translate.pairs import Pairs
from foreword.translate.seq2seq import Seq2Seq

Texts = Sequence[str]
Normalised = Literal["power", "gnmt"]


@dataclass(frozen=True, slots=True)
class Looked:
    """Attention of a translation. weights: (target tokens, source tokens), rows sum to one; ``</s>`` included."""

    source: list[str]
    target: list[str]
    weights: Floats

    @property
    def alignment(self) -> list[int]:
        """Return, for each target token, the most attended source token; without the end-of-sentence tokens."""
        inner = self.weights[:-1, :-1]
        return inner.argmax(1).tolist() if inner.size else []


@dataclass(frozen=True, slots=True)
class TranslationMeasures(ShownInNotebook):
    bleu: BLEU
    chrf: float
    sentences: int

    def to_json(self) -> dict[str, Any]:
        """Return the measures for JSON."""
        lengths = {"length_ratio": self.bleu.length / max(1, self.bleu.reference_length)}
        facts = {"bleu": self.bleu.score, "chrf": self.chrf, "sentences": self.sentences}
        return {**facts, **lengths, "signature": self.bleu.signature}


class TextTranslator(ShownInNotebook):
    """A translator that speaks text.

    source, target: the tokenizers; the same one twice where both languages share it.
    copy: whether an unknown word is replaced by the source word that was looked at most.
    """

    def __init__(
        self, source: TextTokenizer, target: TextTokenizer, model: Seq2Seq, *, copy: bool = True
    ) -> None:  # fmt: skip
        self.source, self.target, self.model, self.copy = source, target, model, copy

    def __repr__(self) -> str:
        return f"TextTranslator({self.source!r}, {self.target!r}, {self.model!r})"

    # Learning

    def fit(
        self, sources: Texts, targets: Texts, *, valid: tuple[Texts, Texts] | None = None, meter: Meter | None = None
    ) -> Self:
        """Learn the vocabularies, then the model."""
        for step in self.train(sources, targets, valid=valid):
            if meter is not None:
                meter(f"training, loss {step.loss:.3f}", step.done, step.total)
        return self

    def train(
        self,
        sources: Texts,
        targets: Texts,
        *,
        valid: tuple[Texts, Texts] | None = None,
        by_bleu: bool = False,
        checkpoint: Checkpoint | None = None,
    ) -> Iterator[Step]:
        """Train, yielding progress.

        by_bleu: keep the epoch whose greedy translations of ``valid`` have the best BLEU, not the best score.
        """
        _check_texts(sources, targets)
        self.learn_vocabularies(sources, targets)
        pairs = self.pairs(sources, targets)
        held_out = None if valid is None else self.pairs(*valid)
        measure: Callable[[Seq2Seq], float] | None = None
        if valid is not None and by_bleu:
            # The model that is measured is this one's own, in the middle of its training.
            measure = lambda _: self.measure(*valid, width=1).bleu.score  # noqa: E731
        yield from self.model.train(pairs, valid=held_out, measure=measure, checkpoint=checkpoint)

    def learn_vocabularies(self, sources: Texts, targets: Texts) -> None:
        """Learn the vocabularies of tokenizers that have not learnt one yet."""
        if self.source is self.target:
            if not hasattr(self.source, "vocab_"):
                self.source.fit([*sources, *targets])
            return
        for tokenizer, texts in ((self.source, sources), (self.target, targets)):
            if not hasattr(tokenizer, "vocab_"):
                tokenizer.fit(texts)

    def pairs(self, sources: Texts, targets: Texts) -> Pairs:
        """Return the texts as ids."""
        _check_texts(sources, targets)
        return Pairs(Corpus.from_texts(sources, self.source), Corpus.from_texts(targets, self.target))

    # Translating

    def translate(
        self,
        texts: Texts,
        *,
        width: int = 5,
        others: Sequence[TextTranslator] = (),
        meter: Meter | None = None,
        **settings: Any,
    ) -> list[str]:
        """Return the best translation found of each text; ``Seq2Seq.search`` has the settings.

        others: translators with the same tokenizers that write along, as an ensemble.
        """
        check_not_string(texts, "a list of texts, one sentence each")
        sources = Corpus.from_texts(texts, self.source)
        models = [each.model for each in others]
        found = self.model.translate(sources, width=width, others=models, meter=meter, **settings)
        return self._spelled(texts, sources, found)

    def _spelled(self, texts: Texts, sources: Corpus, found: Sequence[Ids]) -> list[str]:
        said = [self.target.decode(ids) for ids in found]
        unknown = self.model.vocab.unknown
        if not self.copy or unknown is None or self.model.attention == "none":
            return said
        lacking = [place for place, ids in enumerate(found) if unknown in ids]
        if not lacking or not isinstance(self.target, WordTokenizer) or not isinstance(self.source, WordTokenizer):
            return said
        targets = Corpus.from_ids([found[place] for place in lacking], self.model.vocab)
        few = Corpus.from_ids([_document(sources, place) for place in lacking], self.model.source_vocab)
        for place, weights in zip(lacking, self.model.attend(Pairs(few, targets)), strict=True):
            said[place] = self._copied(self.source.pieces(texts[place]), found[place].tolist(), weights)
        return said

    def _copied(self, source: Sequence[str], ids: Sequence[int], weights: Floats) -> str:
        """Return the words, with unknown ones copied from the source, whose end is not a word."""
        words = [self.model.vocab[id] for id in ids]
        for place, id in enumerate(ids):
            if id == self.model.vocab.unknown and source:
                words[place] = source[int(weights[place, : len(source)].argmax())]
        return " ".join(words)

    def look(self, text: str, translation: str | None = None, *, width: int = 5) -> Looked:
        """Return the attention for each token of a translation: a given one, or the model's own."""
        sources = Corpus.from_texts([text], self.source)
        if translation is None:
            targets = Corpus.from_ids(self.model.translate(sources, width=width), self.model.vocab)
        else:
            targets = Corpus.from_texts([translation], self.target)
        weights = self.model.attend(Pairs(sources, targets))[0]
        return Looked(_tokens(self.source, sources.ids), _tokens(self.target, targets.ids), weights)

    def measure(
        self, sources: Texts, references: Texts, *, width: int = 5, meter: Meter | None = None, **settings: Any
    ) -> TranslationMeasures:
        """Return BLEU and chrF of the model's translations."""
        _check_texts(sources, references)
        if not sources:
            raise InputError("there are no sentences: there is nothing to measure")
        said = self.translate(sources, width=width, meter=meter, **settings)
        return measure_translations(said, references)

    # Saving

    def to_parts(self) -> Parts:
        """Return model and tokenizers for saving, tokenizers without vocabularies: the model has both."""
        parts = Parts({"copy": self.copy, "joint": self.source is self.target})
        nest("model", self.model, parts)
        nest("target", saveable(self.target), parts)
        if self.source is not self.target:
            packed = pack(saveable(self.source))
            parts.settings["source"] = packed.settings
            parts.arrays.update({f"source.{name}": array for name, array in packed.arrays.items()})
        return parts

    @classmethod
    def from_parts(cls, parts: Parts) -> Self:
        """Restore a saved translator."""
        copy, joint = parts.settings["copy"], parts.settings["joint"]
        if type(copy) is not bool or type(joint) is not bool:
            raise ValueError("'copy' and 'joint' must be true or false")
        model, target = unnest("model", parts), unnest("target", parts)
        if not isinstance(model, Seq2Seq) or not isinstance(target, TextTokenizer):
            raise ValueError(f"a {type(target).__name__} and a {type(model).__name__} make no translator")
        source = target
        if not joint:
            arrays = {
                name.removeprefix("source."): each for name, each in parts.arrays.items() if name.startswith("source.")
            }
            source = unpack(Parts(parts.settings["source"], arrays, model.source_vocab))  # type: ignore[arg-type]
        if not isinstance(source, TextTokenizer) or source.vocab != model.source_vocab or target.vocab != model.vocab:
            raise ValueError("its tokenizers and its model have other vocabularies")
        return cls(source, target, model, copy=copy)


def measure_translations(said: Texts, references: Texts) -> TranslationMeasures:
    """Return BLEU and chrF of some translations."""
    return TranslationMeasures(bleu(said, references), chrf(said, references).score, len(said))


def read_pairs(source: str | Path, target: str | Path, errors: Errors = "strict") -> tuple[list[str], list[str]]:
    """Read two files line by line; an error names the first line without a partner."""
    sides = [list(read_lines(str(name), errors)) for name in (source, target)]
    if len(sides[0]) != len(sides[1]):
        longer, shorter = (source, target) if len(sides[0]) > len(sides[1]) else (target, source)
        first = min(map(len, sides)) + 1
        raise InputError(
            f"{longer}: line {first} has no partner: {source} has {len(sides[0])} lines, {target} {len(sides[1])}"
            f" ({shorter} ends before it)"
        )
    return sides[0], sides[1]


def read_table_of_pairs(
    path: str | Path, columns: tuple[int, int] = (1, 2), errors: Errors = "strict"
) -> tuple[list[str], list[str]]:
    """Read pairs from the lines of a file, with tabs between their columns, which are counted from 1."""
    if min(columns) < 1 or columns[0] == columns[1]:
        raise SettingError(f"columns={columns}: expected two different numbers, counted from 1")
    sides: tuple[list[str], list[str]] = ([], [])
    for number, line in enumerate(read_lines(str(path), errors), 1):
        if not line.strip():
            continue
        cells = line.split("\t")
        if len(cells) < max(columns):
            found = f"{len(cells)} column{'s' * (len(cells) > 1)}"
            raise InputError(
                f"{path}: line {number} has {found}: expected a source and a target in columns "
                f"{columns[0]} and {columns[1]}, with a tab between"
            )
        for side, column in zip(sides, columns, strict=True):
            side.append(cells[column - 1])
    return sides


def _check_texts(sources: Texts, targets: Texts) -> None:
    for texts in (sources, targets):
        check_not_string(texts, "a list of texts, one sentence each")
    if len(sources) != len(targets):
        raise InputError(f"there are {len(sources)} sources but {len(targets)} targets: expected as many")


def _document(corpus: Corpus, place: int) -> Array:
    """Return the ids without the end."""
    return corpus.ids[corpus.offsets[place] : corpus.offsets[place + 1] - 1]


def _tokens(tokenizer: TextTokenizer, ids: Iterable[int]) -> list[str]:
    """Return each token as people read it: its text where it has one, else its name in the vocabulary."""
    return [_shown(tokenizer, int(id)) for id in ids]


def _shown(tokenizer: TextTokenizer, id: int) -> str:
    if id in (tokenizer.vocab.end, tokenizer.vocab.unknown):
        return tokenizer.vocab[id]
    text = tokenizer.decode([id])
    return text if text and INCOMPLETE not in text else tokenizer.vocab[id] or UNKNOWN
