"""BLEU and chrF against sacreBLEU, on lines made up and on real ones."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.real_data import real

from foreword.measures.translation import (
    bleu,
    bleu_interval,
    chrf,
    chrf_interval,
    sentence_bleu,
    sentence_chrf,
    tokens_13a,
)

sacrebleu = pytest.importorskip("sacrebleu")
tokenizer_13a = pytest.importorskip("sacrebleu.tokenizers.tokenizer_13a").Tokenizer13a()

PIECES = [
    "the",
    "The",
    "cat",
    "12",
    "3",
    ".",
    ",",
    "-",
    "..",
    "&amp;",
    "&quot;",
    "é",
    "(",
    "'",
    "/",
    "$",
    " ",
    "\t",
    "—",
]
LINES = st.lists(st.sampled_from(PIECES), max_size=10).flatmap(
    lambda pieces: st.sampled_from([" ".join(pieces), "".join(pieces)])
)


def close(ours: float, theirs: float) -> bool:
    return ours == pytest.approx(theirs, rel=1e-9, abs=1e-9)


@settings(max_examples=150, deadline=None)
@given(st.one_of(LINES, st.text(max_size=30)))
def test_13a(line: str) -> None:
    assert tokens_13a(line.rstrip()) == tokenizer_13a(line.rstrip()).split()


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(LINES, LINES, LINES), min_size=1, max_size=4), st.booleans(), st.booleans())
@example([("", "the", ""), ("cat 3 . . . —", "the the the the the 3 3 3", "The The 3 3")], False, True)  # fit alike
def test_q02_everything_on_lines_made_up(rows: list[tuple[str, str, str]], lowercase: bool, two: bool) -> None:
    """Q02: one or two references, cased or not: corpus and sentence BLEU, chrF, chrF++ and chrF+ of higher order."""
    lines = [row[0] for row in rows]
    references = [[row[side] for row in rows] for side in ((1, 2) if two else (1,))]
    peer = sacrebleu.BLEU(lowercase=lowercase, force=True)
    ours, theirs = bleu(lines, *references, lowercase=lowercase), peer.corpus_score(lines, references)
    assert close(ours.score, theirs.score)
    assert (ours.length, ours.reference_length) == (theirs.sys_len, theirs.ref_len)
    assert ours.precisions == pytest.approx(theirs.precisions)
    assert ours.brevity == pytest.approx(theirs.bp)
    assert ours.signature.rpartition("|")[0] == str(peer.get_signature()).rpartition("|")[0]
    single = sacrebleu.BLEU(lowercase=lowercase, effective_order=True)
    for line, *others in rows:
        kept = others if two else others[:1]
        assert close(sentence_bleu(line, *kept, lowercase=lowercase).score, single.sentence_score(line, kept).score)
    for words in (0, 2, 3):
        peer = sacrebleu.CHRF(lowercase=lowercase, word_order=words)
        mine, other = (
            chrf(lines, *references, word_order=words, lowercase=lowercase),
            peer.corpus_score(lines, references),
        )
        assert close(mine.score, other.score)
        assert mine.name == other.name
        assert mine.signature.rpartition("|")[0] == str(peer.get_signature()).rpartition("|")[0]
        sentence = sentence_chrf(rows[0][0], rows[0][1], word_order=words)
        assert close(sentence.score, sacrebleu.CHRF(word_order=words).sentence_score(rows[0][0], [rows[0][1]]).score)


@pytest.mark.data
def test_q02_real_lines() -> None:
    """Q02: the German test lines of Multi30k, some words lost or in another place, and French ones as a bad answer."""
    german, french = (
        real(f"multi30k/test_2016_flickr.{language}").read_text(encoding="utf-8").splitlines()
        for language in ("de", "fr")
    )
    random = np.random.default_rng(0)
    lines = []
    for line in german:
        words = [word for word in line.split() if random.random() > 0.15]
        place = int(random.integers(0, max(len(words) - 1, 1)))
        words[place : place + 2] = words[place : place + 2][::-1]
        lines.append(" ".join(words))
    ours = bleu(lines, german)
    assert 30 < ours.score < 80
    for translated in (lines, french):
        assert close(bleu(translated, german).score, sacrebleu.corpus_bleu(translated, [german]).score)
    assert close(chrf(lines, german).score, sacrebleu.corpus_chrf(lines, [german]).score)
    theirs = sacrebleu.corpus_chrf(lines, [german, french], word_order=2)
    assert close(chrf(lines, german, french, word_order=2).score, theirs.score)


def test_q02_intervals_are_close_to_sacrebleus() -> None:
    """Q02: sacreBLEU draws lines with other random numbers, so the ends agree to a part of the interval."""
    random = np.random.default_rng(0)
    truth = [" ".join(random.choice(list("abcdefgh"), 12)) for _ in range(300)]
    lines = [" ".join(word if random.random() < 0.8 else "z" for word in line.split()) for line in truth]
    for interval, score, peer in (
        (bleu_interval(lines, truth), bleu(lines, truth).score, sacrebleu.BLEU()),
        (chrf_interval(lines, truth), chrf(lines, truth).score, sacrebleu.CHRF()),
    ):
        theirs = peer.corpus_score(lines, [truth], n_bootstrap=1000)
        assert interval[0] < score < interval[1]
        assert (interval[1] - interval[0]) / 2 == pytest.approx(theirs._ci, rel=0.15)
