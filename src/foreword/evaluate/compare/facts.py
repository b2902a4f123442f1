"""What can be said of a text before any model is trained: its counts, its n-grams, its words that are alike.

A table of p(x1 … xN) over K words, factored by the chain rule, has for each of the K^(n−1) contexts of its n-th word
K − 1 free numbers, for the last follows from the rest:

    step n:  (K − 1) K^(n−1)        together:  Σ (K − 1) K^(n−1) = K^N − 1

An n-gram model shares one table over all positions and stores only what was seen, which grows far slower, but so does
what it knows of a new text: ``ngram_growth`` counts both.

``neighbourhoods`` trains small word vectors (skip-gram) on the text and asks for the words nearest to some of its
common ones. ``learn_merges`` learns byte-pair merges from its characters and tokenizes one sentence with more and more
of them. Neither is one of the models compared; both read no more than a few million words.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from unicodedata import category

import numpy as np

from foreword.arrays import Ids, Longs
from foreword.decode import pieces
from foreword.errors import SettingError
from foreword.evaluate.compare.results import Growth, Merged, Neighbourhood, Passage, TextFacts
from foreword.ngram.counts import count_ngrams
from foreword.ngram.model import NgramLM
from foreword.protocols import Tokenizer
from foreword.text.block import blocks_of
from foreword.tokens.bpe import BPETokenizer
from foreword.tokens.characters import CharacterTokenizer
from foreword.tokens.corpus import Corpus
from foreword.tokens.vocab import Vocab
from foreword.tokens.words import WordTokenizer
from foreword.vectors.word2vec import Word2Vec
from foreword.vectors.wordvectors import WordVectors

PASSAGE_TOKENS = 80
"""Length of a passage that is read at a glance."""

POINTS = 240
"""Ranks at which a curve of frequencies is drawn: as good as a million."""

LONGEST_MEAN_WORD = 20
"""Mean letters between spaces: English 5, Finnish 8, program code 10; above 20 nobody put spaces between words."""

# Thai to Myanmar; Khmer; kana, Han and what stands between them; Han beyond the first plane.
_SPACELESS = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
)


def written_without_spaces(texts: Sequence[str], *, letters: int = 100_000) -> bool:
    """Return whether white space does not separate words, as in Chinese or Thai; judged by the first ``letters``."""
    sample = ""
    for text in texts:
        sample += text[:letters] + " "
        if len(sample) >= letters:
            break
    words = sample.split()
    written = sum(map(len, words))
    return len(_SPACELESS.findall(sample)) > written / 2 or written > LONGEST_MEAN_WORD * len(words)


def describe(
    name: str,
    texts: Sequence[str],
    parts: tuple[Corpus, Corpus, Corpus],
    passage: Passage,
    test_share: float,
    tokens: str,
) -> TextFacts:
    """Count a text as it came, and its three parts as the models read them; ``tokens`` names the unit of a token."""
    train, valid, test = parts
    spaceless = written_without_spaces(texts)
    counted = (CharacterTokenizer() if spaceless else WordTokenizer()).fit(texts).vocab
    ids, counts = by_rank(counted)
    landmarks = [10**power for power in range(len(str(len(ids))))]
    ranks = np.union1d(np.geomspace(1, len(ids), POINTS).round().astype(np.int64), landmarks)
    return TextFacts(
        name=name,
        unit="character" if spaceless else "word",
        documents=sum(not text.isspace() and text != "" for text in texts),
        bytes=sum(len(text.encode()) + 1 for text in texts),
        units=int(counts.sum()),
        types=len(ids),
        once=int(np.count_nonzero(counts == 1)),
        frequencies=tuple(zip(ranks.tolist(), counts[ranks - 1].tolist(), strict=True)),
        landmarks=tuple((rank, counted[int(ids[rank - 1])]) for rank in landmarks),
        vocabulary=len(train.vocab),
        train_tokens=len(train.ids),
        valid_tokens=len(valid.ids),
        test_tokens=len(test.ids),
        test_share=test_share,
        test_documents=len(test),
        test_unknown=0 if test.vocab.unknown is None else int(np.count_nonzero(test.ids == test.vocab.unknown)),
        tokens=tokens,
        digest=digest_of(texts),
        passage=passage,
    )


def digest_of(texts: Iterable[str]) -> str:
    """Return the SHA-256 of documents, each followed by a line end."""
    digest = hashlib.sha256()
    for text in texts:
        digest.update(text.encode("utf-8", "surrogatepass") + b"\n")
    return digest.hexdigest()


def by_rank(counted: Vocab) -> tuple[Longs, Longs]:
    """Return ids and counts of the tokens that occur, most frequent first, ties by id, without ``</s>``."""
    if counted.counts is None:
        raise SettingError("a vocabulary without counts has no ranks")
    counts = counted.counts.copy()
    counts[counted.end] = 0
    ids = np.argsort(-counts, kind="stable")[: np.count_nonzero(counts)]
    return ids, counts[ids]


# The passage


def passage_index(test: Corpus) -> int:
    """Return the index of the first test document that fills a passage, or else of the longest."""
    lengths = np.diff(test.offsets)
    return int(np.minimum(lengths, PASSAGE_TOKENS).argmax())


def read_passage(tokenizer: Tokenizer, text: str, ids: Ids) -> Passage:
    """Spell the beginning of a document, its words as written even where the models only see ``<unk>``."""
    body, end = ids[:-1].tolist(), int(ids[-1])
    if (words := _as_written(tokenizer, text)) is not None and len(words) == len(body):
        spelled = words
    elif _one_by_one(tokenizer, list(text), body):
        spelled = list(text)
    else:
        spelled = list(pieces(tokenizer, body))[: len(body)]
    shown = [*spelled, f" {tokenizer.vocab[end]}"][:PASSAGE_TOKENS]
    unknown = np.flatnonzero(ids[: len(shown)] == (-1 if tokenizer.vocab.unknown is None else tokenizer.vocab.unknown))
    return Passage(tuple(shown), tuple(unknown.tolist()))


def _as_written(tokenizer: Tokenizer, text: str) -> list[str] | None:
    """Return the words of a text, each with the white space before it as one blank; None if a token is no word."""
    if not isinstance(tokenizer, WordTokenizer):
        return None
    written: list[str] = []
    position = 0
    for word in WordTokenizer(split=tokenizer.split).pieces(text):
        found = text.index(word, position)
        written.append(f" {word}" if written and found > position else word)
        position = found + len(word)
    return written


def _one_by_one(tokenizer: Tokenizer, units: Sequence[str], ids: Sequence[int]) -> bool:
    """Return whether each id stands for the unit at its index, or is ``<unk>`` there."""
    return len(units) == len(ids) and all(
        id == tokenizer.vocab.unknown or tokenizer.decode([id]).casefold() == unit.casefold()
        for id, unit in zip(ids, units, strict=True)
    )


# The growth of n-grams

ORDERS = (1, 2, 3, 4, 5, 6)


def step_parameters(vocabulary: int, step: int) -> int:
    """Return how many numbers the table of the ``step``-th word's probability, given all before it, leaves free."""
    if vocabulary < 1 or step < 1:
        raise SettingError(f"vocabulary={vocabulary}, step={step}: expected positive numbers")
    contexts: int = vocabulary ** (step - 1)
    return (vocabulary - 1) * contexts


def free_parameters(vocabulary: int, length: int) -> int:
    """Return the same for whole texts of ``length`` words: the sum over all steps, vocabulary ** length − 1."""
    return sum(step_parameters(vocabulary, step) for step in range(1, length + 1))


def ngram_growth(train: Corpus, test: Corpus, orders: Sequence[int] = ORDERS) -> list[Growth]:
    """Count the n-grams of each order. ``</s>`` counts as a word; ``<s>`` is a context, as in every n-gram model."""
    highest = max(orders)
    unigrams, counted = count_ngrams(train, highest)
    counts: list[Ids] = [unigrams[unigrams > 0], *(order.counts for order in counted)]
    known = _longest_known(train, test, highest)
    longest = _longest_possible(test)
    rows = []
    for order in orders:
        there = longest >= order
        rows.append(
            Growth(
                order,
                possible=len(train.vocab) ** order,
                seen=len(counts[order - 1]),
                once=int(np.count_nonzero(counts[order - 1] == 1)),
                unseen_share=float((known[there] < order).mean()) if there.any() else float("nan"),
            )
        )
    return rows


def _longest_known(train: Corpus, test: Corpus, highest: int) -> Longs:
    """Return, for each id of the test text, the length of the longest n-gram ending there that training has, or 0."""
    _, matched = NgramLM(highest, "maximum-likelihood").fit(train).full_scores(test)
    new = np.bincount(train.ids, minlength=len(train.vocab))[test.ids] == 0
    return np.where(new, 0, matched)


def _longest_possible(test: Corpus) -> Longs:
    """Return, for each id, the number of words from ``<s>`` at the beginning of its document to itself."""
    return np.arange(len(test.ids)) - np.repeat(test.offsets[:-1], np.diff(test.offsets)) + 2


# Words that are alike

ASKED, ANSWERS = 12, 6
"""Words whose neighbours are listed, and neighbours of each."""

TOO_COMMON, LEAST_SEEN = 40, 30
"""The commonest words occur next to everything, and a word seen less often than this has no good vector yet."""

LEAST_LETTERS = 4
"""Length of a word that is asked about: shorter ones are mostly particles; where words are signs, one is enough."""

DIMENSIONS, WORDS_READ, MOST_EPOCHS = 64, 3_000_000, 15
"""Of the word vectors; words that are read for them, all epochs together; and epochs of a small text."""


def neighbourhoods(train: Corpus, seed: int = 0) -> tuple[Neighbourhood, ...]:
    """Find the nearest words of a few common words of the training part; none where no word is common enough."""
    asked = asked_words(train)
    if not asked:
        return ()
    taken = train if len(train.ids) <= WORDS_READ else train[: int(train.offsets.searchsorted(WORDS_READ))]
    epochs = int(np.clip(WORDS_READ // max(1, len(taken.ids)), 1, MOST_EPOCHS))
    vectors = Word2Vec(DIMENSIONS, window=5, negatives=5, sample=1e-3, epochs=epochs, seed=seed).fit(taken).vectors
    return tuple(Neighbourhood(word, tuple(_nearest(vectors, word))) for word in asked if word in vectors)


def word_corpus(train: Corpus, texts: Sequence[str]) -> Corpus:
    """Return the training part in words: itself, or read again where its tokens are parts of words."""
    if train.vocab.unknown is not None:
        return train
    return WordTokenizer(split="punctuation", min_count=LEAST_SEEN // 6).fit_corpus(blocks_of(texts), threads=1)


def _nearest(vectors: WordVectors, word: str) -> Iterator[tuple[str, float]]:
    """Yield other words, and not the same one with a capital or a comma."""
    listed = {word.casefold()}
    for other, cosine in vectors.nearest(word, 8 * ANSWERS):
        if is_word(other) and other.casefold() not in listed and len(listed) <= ANSWERS:
            listed.add(other.casefold())
            yield other, float(cosine)


def is_word(token: str) -> bool:
    """Return whether a token is made of letters alone, and the marks that belong to them."""
    return all(category(letter)[0] in "LM" for letter in token)


def asked_words(train: Corpus) -> list[str]:
    """Return a dozen words at ranks that grow by a constant factor, from common to middling, whatever the text."""
    counts = np.bincount(train.ids, minlength=len(train.vocab))
    counts[train.vocab.end] = 0
    if train.vocab.unknown is not None:
        counts[train.vocab.unknown] = 0
    ranked = [id for id in np.argsort(-counts, kind="stable").tolist() if counts[id] >= LEAST_SEEN][TOO_COMMON:]
    words = [word for word in (train.vocab[id] for id in ranked) if is_word(word)]
    long = [word for word in words if len(word) >= LEAST_LETTERS]
    words = long if len(long) >= ASKED else words
    ranks = np.unique(np.geomspace(1, max(1, len(words)), ASKED).round().astype(int))
    return [words[rank - 1] for rank in ranks.tolist()] if words else []


# Byte-pair merges

MERGES, MERGE_BYTES = 2000, 2_000_000
"""Merges that are learnt, and bytes of the text that they are learnt from."""

FIRST_MERGES, STAGES = 24, (0, 10, 50, 200, 1000, 2000)
"""Merges that are listed one by one, and numbers of merges at which the sentence is shown."""

SENTENCE_LETTERS = 64


def learn_merges(texts: Sequence[str], sentence: str) -> Merged | None:
    """Learn merges from the beginning of the training part; None for a text in which no pair of characters recurs."""
    taken = list(_beginning(texts, MERGE_BYTES))
    alphabet = len({letter for text in taken for letter in text})
    tokenizer = BPETokenizer(alphabet + 2 + MERGES, kind="characters", min_frequency=2).fit(taken)
    learnt = [(tokenizer.vocab[step.left], tokenizer.vocab[step.right], step.count) for step in tokenizer.steps()]
    if not learnt:
        return None
    stages = _stages(tokenizer, len(learnt), _first_words(sentence))
    return Merged(tuple(learnt[:FIRST_MERGES]), len(learnt), tuple(stages))


def _beginning(texts: Iterable[str], most_bytes: int) -> Iterator[str]:
    left = most_bytes
    for text in texts:
        if left <= 0:
            return
        yield text[:left]
        left -= len(text.encode("utf-8", "replace")) + 1


def _first_words(sentence: str) -> str:
    """Return the beginning of a sentence, whole words where there are some."""
    sentence = " ".join(sentence.split())
    if len(sentence) <= SENTENCE_LETTERS:
        return sentence
    return sentence[:SENTENCE_LETTERS].rpartition(" ")[0] or sentence[:SENTENCE_LETTERS]


def _stages(tokenizer: BPETokenizer, learnt: int, sentence: str) -> Iterator[tuple[int, tuple[str, ...]]]:
    ranks = {pair: rank for rank, pair in enumerate(tokenizer.merge_names(), 1)}
    steps = [
        (0 if step["merge"] is None else ranks[step["merge"]], step["tokens"]) for step in tokenizer.replay(sentence)
    ]
    for merges in sorted({min(stage, learnt) for stage in STAGES}):
        # The replay names only the merges that change the sentence: the last one up to here.
        yield merges, tuple(max((step for step in steps if step[0] <= merges), key=lambda step: step[0])[1])
