"""KenLM: the files its estimator wrote, entry by entry, and its Python module as a reader of ours.

KenLM refuses ``<unk>`` in a text, so there every ``<unk>`` is the ordinary word ``_unk_``; a line is a sentence, a
blank one too. KenLM prints float32 logs to the base ten.
"""

from __future__ import annotations

import lzma
import math
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from tests.real_data import real

from foreword.measures.perplexity import measure
from foreword.ngram.arpa import read_arpa, write_arpa
from foreword.ngram.model import NgramLM
from foreword.tokens.corpus import Corpus
from foreword.tokens.words import WordTokenizer

pytestmark = pytest.mark.data

Entries = dict[str, tuple[float, float]]
"""log10 of probability and of back-off weight, by n-gram."""

LN10 = math.log(10)


def lines_of(path: Path) -> Iterator[str]:
    with lzma.open(path, "rt", encoding="utf-8") if path.suffix == ".xz" else path.open(encoding="utf-8") as file:
        for line in file:
            yield line.rstrip("\n")


@cache
def sentences(name: str) -> list[str]:
    return [line.replace("<unk>", "_unk_") for line in lines_of(real(name))]


@cache
def corpora(train: str, test: str) -> tuple[Corpus, Corpus]:
    tokenizer = WordTokenizer().fit(sentences(train))
    return Corpus.from_texts(sentences(train), tokenizer), Corpus.from_texts(sentences(test), tokenizer)


@cache
def ptb_model(order: int, prune: tuple[int, ...] = ()) -> NgramLM:
    return NgramLM(order, prune=prune).fit(ptb()[0])


def ptb() -> tuple[Corpus, Corpus]:
    return corpora("ptb/ptb.train.txt.xz", "ptb/ptb.test.txt")


def wikitext() -> tuple[Corpus, Corpus]:
    return corpora("wikitext-2/train.txt.xz", "wikitext-2/test.txt.xz")


def theirs(path: Path) -> Entries:
    """A file of KenLM's, read without a line of ours."""
    entries: Entries = {}
    order = 0
    for line in lines_of(path):
        if line.endswith("-grams:"):
            order = int(line[1:].partition("-")[0])
        elif order and "\t" in line:
            log, words, *backoff = line.split("\t")
            entries[words] = float(log), float(backoff[0]) if backoff else 0.0
    return entries


def ours(model: NgramLM) -> Entries:
    names = [*model.vocab, "<s>"]
    entries: Entries = {}
    for _, ngrams, logs, backoffs in model.ngrams():
        spelled = [" ".join([names[word] for word in words]) for words in ngrams.tolist()]
        entries |= zip(spelled, zip((logs / LN10).tolist(), (backoffs / LN10).tolist(), strict=True), strict=True)
    return entries


def assert_same_entries(model: NgramLM, path: Path, tolerance: float) -> None:
    mine, other = ours(model), theirs(path)
    assert mine.keys() == other.keys()
    del mine["<s>"], other["<s>"]  # never predicted: KenLM writes 0, others -99
    found, expected = np.array(list(mine.values())), np.array([other[gram] for gram in mine])
    assert_allclose(found, expected, rtol=0, atol=tolerance)


@pytest.mark.parametrize(
    ("name", "texts"),
    [("kenlm_toy0.arpa", ["a a b a", "b a a b"]), ("kenlm_toy1.arpa", ["a a b b b b b b b", "c"])],
)
def test_n10_toy_files_entry_by_entry(name: str, texts: list[str]) -> None:
    """With ``--discount_fallback``; N10: the estimator is KenLM's."""
    path = real(f"formats/{name}")
    tokenizer = WordTokenizer().fit(texts)
    model = NgramLM(3).fit(Corpus.from_texts(texts, tokenizer))
    assert_same_entries(model, path, 1e-6)


def test_n10_the_toy_file_s_start_keeps_its_weight() -> None:
    path = real("formats/kenlm_toy0.arpa")
    texts = ["a a b a", "b a a b"]
    model = NgramLM(3).fit(Corpus.from_texts(texts, WordTokenizer().fit(texts)))
    assert ours(model)["<s>"][1] == pytest.approx(theirs(path)["<s>"][1], abs=1e-6)


def test_n10_penn_treebank_order_3_entry_by_entry() -> None:
    path = real("formats/kenlm_ptb3.arpa.xz")
    model = ptb_model(3)
    assert model.sizes_ == [10002, 264990, 586558]
    assert_same_entries(model, path, 1e-5)


DISCOUNTS_3 = [
    (0.25656, 0.82888, 1.26492),
    (0.727802, 1.09876, 1.4713),
    (0.84696, 1.22512, 1.38578),
]
DISCOUNTS_5 = [
    *DISCOUNTS_3[:2],
    (0.868879, 1.25462, 1.44822),
    (0.942828, 1.38314, 1.43173),
    (0.959671, 1.3879, 1.24171),
]


@pytest.mark.parametrize("expected", [DISCOUNTS_3, DISCOUNTS_5], ids=["order 3", "order 5"])
def test_n10_penn_treebank_discounts_have_the_printed_digits(expected: list[tuple[float, ...]]) -> None:
    found = [[f"{discount:.6g}" for discount in order[1:]] for order in ptb_model(len(expected)).discounts_]
    assert found == [[f"{discount:.6g}" for discount in order] for order in expected]


@pytest.mark.parametrize(
    ("order", "prune", "expected"),
    [(3, (), 148.2815), (5, (), 141.1862), (5, (0, 0, 1), 147.400)],
    ids=["order 3", "order 5", "order 5 pruned"],
)
def test_n10_penn_treebank_perplexity(order: int, prune: tuple[int, ...], expected: float) -> None:
    """N10: "over 140 (well-tuned trigram)"; every word and ``</s>`` counts, 82,430 tokens, none unknown."""
    measured = measure(ptb_model(order, prune), ptb()[1])
    assert (measured.tokens, measured.oov) == (82430, 0)
    digits = 3 if prune else 4
    assert round(measured.perplexity, digits) == expected


def test_n10_penn_treebank_sizes() -> None:
    assert ptb_model(5).sizes_ == [10002, 264990, 586558, 717733, 737952]


@pytest.mark.parametrize(("prune", "expected"), [((), 220.139), ((0, 0, 1), 225.683)], ids=["all", "pruned"])
def test_n10_wikitext_2_perplexity(prune: tuple[int, ...], expected: float) -> None:
    """Blank lines are sentences here, as they are to KenLM: 245,569 tokens."""
    train, test = wikitext()
    measured = measure(NgramLM(5, prune=prune).fit(train), test)
    assert measured.tokens == 245569
    assert round(measured.perplexity, 3) == expected


def test_rows_of_a_real_model_sum_to_one_as_stored() -> None:
    """10,001 float32 logs a row, and still within a millionth."""
    model = ptb_model(5)
    state = model.start(1)
    for id in ptb()[1].ids[:60].tolist():
        assert np.exp(model.next_logprobs(state)[0]).sum() == pytest.approx(1, abs=1e-6)
        state = model.advance(state, np.array([id]))


# The module, which reads ARPA files and does not write any


@pytest.fixture(scope="module")
def kenlm() -> Any:
    return pytest.importorskip(
        "kenlm", reason="kenlm is not installed; it is in the extra 'peers' and needs a compiler"
    )


@pytest.fixture(scope="module")
def small() -> tuple[list[str], list[str]]:
    """Training lines, and lines that no model has seen, with words that it has not seen either."""
    lines = sentences("ptb/ptb.train.txt.xz")
    return lines[:3000], [*lines[3000:3400], "", "_unk_ nowhere to be found nowhere", "nowhere"]


@pytest.mark.parametrize(
    ("order", "smoothing", "prune"),
    [
        (2, "modified-kneser-ney", ()),
        (3, "modified-kneser-ney", ()),
        (5, "modified-kneser-ney", ()),
        (5, "modified-kneser-ney", (0, 0, 1)),
        (3, "kneser-ney", ()),
        (3, "absolute", ()),
        (3, "witten-bell", ()),
        (3, "stupid-backoff", ()),
    ],
    ids=str,
)  # fmt: skip
def test_n10_kenlm_reads_our_files_with_equal_scores(
    kenlm: Any, small: tuple[list[str], list[str]], tmp_path: Path, order: int, smoothing: str, prune: tuple[int, ...]
) -> None:
    train, test = small
    tokenizer = WordTokenizer().fit(train)
    model = NgramLM(order, smoothing, prune=prune).fit(Corpus.from_texts(train, tokenizer))
    write_arpa(model, tmp_path / "ours.arpa")
    their_model = kenlm.Model(str(tmp_path / "ours.arpa"))
    assert their_model.order == order
    assert_equal_scores(model, their_model, Corpus.from_texts(test, tokenizer), test)


def assert_equal_scores(model: NgramLM, their_model: Any, corpus: Corpus, test: list[str]) -> None:
    logs, matched = model.full_scores(corpus)
    expected = [score for line in test for score in their_model.full_scores(line)]
    assert matched.tolist() == [length for _, length, _ in expected]
    assert (corpus.ids == corpus.vocab.unknown).tolist() == [unknown for _, _, unknown in expected]
    assert_allclose(logs / LN10, [log10 for log10, _, _ in expected], rtol=0, atol=2e-6)
    sums = np.add.reduceat(logs, corpus.offsets[:-1]) / LN10
    assert_allclose(sums, [their_model.score(line) for line in test], rtol=1e-6)


def test_kenlm_reads_our_gz(kenlm: Any, small: tuple[list[str], list[str]], tmp_path: Path) -> None:
    train, test = small
    tokenizer = WordTokenizer().fit(train)
    model = NgramLM(2).fit(Corpus.from_texts(train, tokenizer))
    for name in ("ours.arpa", "ours.arpa.gz"):
        write_arpa(model, tmp_path / name)
    plain, packed = (kenlm.Model(str(tmp_path / name)) for name in ("ours.arpa", "ours.arpa.gz"))
    assert [packed.score(line) for line in test] == [plain.score(line) for line in test]


@pytest.mark.parametrize("name", ["kenlm_test.arpa", "kenlm_toy0.arpa", "kenlm_toy1.arpa"])
def test_both_read_a_file_of_others_alike(kenlm: Any, name: str) -> None:
    """Lengths are left out for the first: KenLM fills gaps in it with entries that it counts as matches."""
    path = real(f"formats/{name}")
    model, their_model = read_arpa(path), kenlm.Model(str(path))
    words = [word for word in model.vocab if word != "</s>"] + ["nowhere"]
    random = np.random.default_rng(0)
    lines = [" ".join(random.choice(words, length)) for length in random.integers(0, 9, 500)]
    corpus = Corpus.from_ids([[model.vocab.id(word) for word in line.split()] for line in lines], model.vocab)
    logs = model.logprobs(corpus) / LN10
    expected = [log10 for line in lines for log10, _, _ in their_model.full_scores(line)]
    assert_allclose(logs, expected, rtol=1e-6, atol=1e-6)


def test_n10_both_read_kenlms_penn_treebank_file_alike(kenlm: Any, tmp_path: Path) -> None:
    """The order-3 model as KenLM wrote it, scored by KenLM and by ours."""
    path = tmp_path / "ptb3.arpa"
    path.write_bytes(lzma.decompress(real("formats/kenlm_ptb3.arpa.xz").read_bytes()))
    model, their_model = read_arpa(path), kenlm.Model(str(path))
    lines = sentences("ptb/ptb.test.txt")
    ids = [[model.vocab.id(word) for word in line.split()] for line in lines]
    corpus = Corpus.from_ids(ids, model.vocab)
    assert_equal_scores(model, their_model, corpus, lines)
    assert math.exp(-model.score(corpus)) == pytest.approx(148.2815, abs=1e-3)
