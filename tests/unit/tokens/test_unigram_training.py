"""Learning a unigram tokenizer: expected counts against all ways to cut a word, and what training promises."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose
from tests.real_data import real
from typer.testing import CliRunner

import foreword
from foreword.errors import SettingError
from foreword.text.block import blocks_of
from foreword.tokens.counting import count_pieces_of
from foreword.tokens.kernels_unigram import expect
from foreword.tokens.pieces import BLANK_BEFORE
from foreword.tokens.sentencepiece import SentencePieceTokenizer
from foreword.tokens.sentencepiece_file import model_bytes
from foreword.tokens.unigram_training import LONGEST_WORD, SCALE, _cover, _seed, _words_of

TEXTS = [
    "the lower lowest newer newest wider widest",
    "the new low the wide law",
    "lower and wider, lower and new 2014 2015",
] * 4


def cuts(word: str, pieces: set[str]) -> Iterator[list[str]]:
    """Yield every way to cut a word into pieces."""
    if not word:
        yield []
    for stop in range(1, len(word) + 1):
        if word[:stop] in pieces:
            yield from ([word[:stop], *rest] for rest in cuts(word[stop:], pieces))


def test_expected_counts_are_those_of_all_ways_to_cut() -> None:
    counted = count_pieces_of(blocks_of(TEXTS), BLANK_BEFORE, threads=1)
    words, left_out = _words_of(counted, 1 << 20)
    arcs = _seed(words, _cover(words, 1.0), 1000)
    assert left_out == 0

    def text(first: int, size: int) -> str:
        return "".join(map(chr, words.points[first : first + size].tolist()))

    spelt = [text(first, size) for first, size in zip(arcs.firsts[:-1], arcs.sizes[:-1], strict=True)]
    assert len(set(spelt)) == len(spelt)
    scores = dict(zip(spelt, arcs.scores[:-1].tolist(), strict=True))
    wanted: Counter[str] = Counter()
    likelihood = 0.0
    for number, count in enumerate(words.counts.tolist()):
        word = text(int(words.begins[number]), int(words.begins[number + 1] - words.begins[number]))
        ways = [(cut, math.exp(sum(scores[piece] for piece in cut))) for cut in cuts(word, set(spelt))]
        total = sum(weight for _, weight in ways)
        likelihood += count * math.log(total)
        for cut, weight in ways:
            for piece in cut:
                wanted[piece] += count * weight / total
    expected = np.zeros(len(arcs.scores))
    found = expect(
        words.begins, words.counts, arcs.starts, arcs.pieces, arcs.lengths, np.exp(arcs.scores + SCALE * arcs.sizes),
        SCALE, np.empty(LONGEST_WORD + 1), np.empty(LONGEST_WORD + 1), expected,
    )  # fmt: skip
    assert found == pytest.approx(likelihood)
    assert_allclose(expected[:-1], [wanted[piece] for piece in spelt], rtol=1e-9, atol=1e-12)


def test_seeds_are_the_frequent_substrings_that_branch() -> None:
    counted = count_pieces_of(blocks_of(["abcx abcy", "q"]), BLANK_BEFORE, threads=1)
    words, _ = _words_of(counted, 1 << 20)
    arcs = _seed(words, _cover(words, 1.0), 1000)
    longer = {
        "".join(map(chr, words.points[first : first + size].tolist()))
        for first, size in zip(arcs.firsts[:-1].tolist(), arcs.sizes[:-1].tolist(), strict=True)
        if size > 1
    }
    assert longer == {"abc", "bc"}  # "ab" is always followed by c; " abcy" comes once


def test_pieces_stay_within_words_and_scripts() -> None:
    tokenizer = SentencePieceTokenizer(400, coverage=1.0).fit(["naïveмир мир2014 naïve, naïve,"] * 9)
    for piece in tokenizer.model_.pieces[3:]:
        letters = piece.removeprefix("▁")
        assert "▁" not in letters
        assert not ("ï" in letters and "м" in letters)
        assert not ("e" in letters and "," in letters)


def test_settings_are_kept() -> None:
    tokenizer = SentencePieceTokenizer(
        400, byte_fallback=True, special_tokens=["<mask>"], user_symbols=["<user>"], coverage=0.98
    ).fit(TEXTS)
    assert tokenizer.decode(tokenizer.encode("the ☃ low")) == "the ☃ low"
    assert tokenizer.vocab.id("<user>") in tokenizer.encode("the<user>low").tolist()
    assert tokenizer.vocab.id("<mask>") not in tokenizer.encode("<mask>").tolist()
    with pytest.raises(SettingError, match="leaves 2 pieces"):
        SentencePieceTokenizer(5).fit(TEXTS)
    with pytest.raises(SettingError, match="no text"):
        SentencePieceTokenizer(50).fit([""])


def test_memory_is_bounded() -> None:
    tokenizer = SentencePieceTokenizer(60, coverage=1.0).fit_blocks(blocks_of(TEXTS), memory=20_000)
    assert tokenizer.left_out_ > 0


def test_the_command_line_writes_a_model_that_sentencepiece_opens(tmp_path: Path) -> None:
    peer = pytest.importorskip("sentencepiece")
    from foreword.cli import app

    (tmp_path / "text").write_text("\n".join(TEXTS), "utf-8")
    out = tmp_path / "a.model"
    how = ["--kind", "unigram", "--vocab", "80", "--set", "coverage=1", "--quiet"]
    done = CliRunner().invoke(app, ["tokenize", "train", str(tmp_path / "text"), "-o", str(out), *how])
    assert done.exit_code == 0, done.output
    theirs, ours = peer.SentencePieceProcessor(model_file=str(out)), foreword.load(out)
    for text in [*TEXTS[:3], "ＷＩＤＥ ﬁ ½  é e\u0301", "unseen ☃"]:
        assert ours.encode(text).tolist() == theirs.encode(text)
        assert ours.decode(ours.encode(text)) == theirs.decode(theirs.encode(text))
    done = CliRunner().invoke(app, ["convert", str(out), str(tmp_path / "folder"), "--quiet"])
    assert done.exit_code == 0, done.output
    assert foreword.load(tmp_path / "folder").encode("the low").tolist() == ours.encode("the low").tolist()


@pytest.mark.data
def test_it_is_similar_to_sentencepiece() -> None:
    """The number of pieces within 1 %, and the log-likelihood of the text not more than 1 % below."""
    peer = pytest.importorskip("sentencepiece")
    lines = [line.replace("<unk>", "unknown") for line in foreword.read_documents(str(real("wikitext-2/valid.txt.xz")))]
    model = BytesIO()
    peer.SentencePieceTrainer.train(
        sentence_iterator=iter(lines), model_writer=model, vocab_size=3000, num_threads=1, minloglevel=2,
        max_sentence_length=1 << 24,
    )  # fmt: skip
    theirs = peer.SentencePieceProcessor(model_proto=model.getvalue())
    ours = peer.SentencePieceProcessor(model_proto=model_bytes(SentencePieceTokenizer(3000).fit(lines).model_))

    def likelihood(processor: object) -> float:
        scores = [processor.get_score(id) for id in range(processor.get_piece_size())]  # type: ignore[attr-defined]
        return sum(scores[id] for ids in processor.encode(lines) for id in ids)  # type: ignore[attr-defined]

    assert abs(ours.get_piece_size() - theirs.get_piece_size()) <= 0.01 * theirs.get_piece_size()
    assert likelihood(ours) >= 1.01 * likelihood(theirs)
