"""Tokenizers and n-gram models that a cluster counts are those of one machine, byte by byte."""

from __future__ import annotations

import bz2
import gzip
import random
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.cli.conftest import Foreword
from tests.cluster.conftest import Ambush, trap

from foreword.errors import ForewordError, InputError
from foreword.ngram.model import NgramLM
from foreword.pipeline.language import TextLM
from foreword.storage.folder import save
from foreword.text.sources import Reading, read_documents
from foreword.tokens.words import WordTokenizer

pytestmark = pytest.mark.filterwarnings("ignore")
pytest.importorskip("ray", reason="Ray is not installed")

from foreword.cluster import ngrams  # noqa: E402
from foreword.cluster.counting import fit_tokenizer  # noqa: E402
from foreword.cluster.ngrams import fit_ngrams, range_cuts  # noqa: E402
from foreword.text.segments import read_segment, segments_of  # noqa: E402

SEGMENT = 60_000


def made_up(seed: int, lines: int) -> str:
    rng = random.Random(seed)
    words = [f"{chr(97 + number % 26)}{'éü'[number % 2]}{number}" for number in range(2000)]
    text = [
        " ".join(rng.choices(words, [1 / (1 + place) for place in range(2000)], k=rng.randrange(25)))
        for _ in range(lines)
    ]
    text[lines // 3] = "\ufeffa line may begin with this mark, which is no byte order mark here"
    text[lines // 2] = "BZh91AY&SY is how a compressed file begins, and this line"
    return "".join(line + "\n" for line in text)


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A long file, which is cut, without a line feed at its end, and two short ones, compressed."""
    folder = tmp_path_factory.mktemp("texts")
    (folder / "a.txt").write_text(made_up(0, 6000).rstrip("\n"), "utf-8")
    (folder / "b.txt.gz").write_bytes(gzip.compress(made_up(1, 300).encode()))
    (folder / "c.txt.bz2").write_bytes(bz2.compress(made_up(2, 300).encode()))
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_segments_hold_every_document_once_and_in_order(texts: Path, tmp_path: Path) -> None:
    for size in (1, 777, SEGMENT, 1 << 30):
        path = texts / "a.txt"
        if size == 1:
            path = tmp_path / "short.txt"
            path.write_text("\nab\n\n\ufeffc\nBZh9\nd", "utf-8")
        segments = segments_of([str(path)], Reading(), size)
        assert len(segments) == max(1, -(-path.stat().st_size // size))
        found = [text for each in segments for block in read_segment(each, Reading()) for text in block.strings()]
        assert found == list(read_documents(str(path)))


def test_an_error_in_a_stretch_names_the_line_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"text": "good"}\n' * 1000 + '{"text": 3}\n' + '{"text": "good"}\n' * 100)
    segments = segments_of([str(path)], Reading(), 5000)
    with pytest.raises(InputError, match="1001") as told:
        list(chain.from_iterable(read_segment(segment, Reading()) for segment in segments))
    with pytest.raises(InputError) as wanted:
        list(read_documents(str(path)))
    assert str(told.value) == str(wanted.value)


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize(
    "options", [("--vocab", 600), ("--kind", "bpe-characters", "--vocab", 600), ("--kind", "word", "--min-count", 2)]
)
def test_tokenizers_are_the_same(
    foreword: Foreword, texts: Path, tmp_path: Path, options: tuple[object, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fit_tokenizer, "__kwdefaults__", with_short_segments(fit_tokenizer))
    one = foreword("tokenize", "train", texts, "-o", tmp_path / "one", *options)
    ray = foreword("tokenize", "train", texts, "-o", tmp_path / "ray", *options, "--ray")
    assert (one.exit_code, ray.exit_code) == (0, 0), ray.stderr
    assert contents(tmp_path / "ray") == contents(tmp_path / "one")


def with_short_segments(function: Any) -> dict[str, Any]:
    """The defaults of a function, with segments so short that there are several."""
    return {**function.__kwdefaults__, "segment_bytes": SEGMENT}


@pytest.mark.usefixtures("cluster")
def test_an_ngram_model_is_the_same(
    foreword: Foreword, texts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fit_ngrams, "__kwdefaults__", with_short_segments(fit_ngrams))
    options = ("--set", "order=4", "--set", "prune=[0,0,1]", "--min-count", 2)
    one = foreword("train", "ngram", texts, "-o", tmp_path / "one", *options, "--json")
    ray = foreword("train", "ngram", texts, "-o", tmp_path / "ray", *options, "--json", "--ray")
    assert (one.exit_code, ray.exit_code) == (0, 0), ray.stderr
    assert contents(tmp_path / "ray") == contents(tmp_path / "one")
    assert foreword("tokenize", "train", texts, "-o", tmp_path / "bpe", "--vocab", 400).exit_code == 0
    for name, more in (("bpe-one", ()), ("bpe-ray", ("--ray",))):
        done = foreword("train", "ngram", texts, "-o", tmp_path / name, "--tokenizer", tmp_path / "bpe", *more)
        assert done.exit_code == 0, done.stderr
    assert contents(tmp_path / "bpe-ray") == contents(tmp_path / "bpe-one")


def test_a_node_lost_while_counting_changes_nothing(
    cluster: Any, victim: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is lost in its second task; what its first one has counted is lost with it."""
    (tmp_path / "long.txt").write_text(made_up(3, 4000), "utf-8")
    source, words, model = str(tmp_path / "long.txt"), WordTokenizer(), NgramLM(3, memory=64 << 20)
    stop, count = trap(tmp_path, victim, after=1), ngrams._count

    def count_and_be_caught(*arguments: Any) -> Any:
        stop()
        return count(*arguments)

    monkeypatch.setattr(ngrams, "_count", count_and_be_caught)
    ambush = Ambush(tmp_path, cluster, victim)
    ambush.start()
    seen = fit_ngrams(model, [source], Reading(), words, segment_bytes=25_000, ranges=3)
    assert ambush.struck is not None
    save(TextLM(words, model), tmp_path / "ray")
    plain = TextLM(WordTokenizer(), NgramLM(3)).fit(list(read_documents(source)))
    save(plain, tmp_path / "one")
    assert contents(tmp_path / "ray") == contents(tmp_path / "one")
    assert seen.tokens == int(words.vocab.counts.sum())  # type: ignore[union-attr]


def test_ranges_of_first_words_cover_all() -> None:
    words = WordTokenizer().fit(["a a a a b b c d e f g", "a"])
    for ranges in (1, 2, 3, 50):
        cuts = range_cuts(words, ranges)
        assert (cuts[0], cuts[-1]) == (1, len(words.vocab) + 2)
        assert all(first < last for first, last in pairwise(cuts))
        assert len(cuts) <= ranges + 1
    assert np.diff(range_cuts(words, 2))[0] < np.diff(range_cuts(words, 2))[1]


@pytest.mark.usefixtures("cluster")
def test_what_cannot_be_read_is_told_in_one_line(foreword: Foreword, tmp_path: Path) -> None:
    (tmp_path / "bad.txt").write_bytes(b"good\nb\xffd\n")
    (tmp_path / "blank.txt").write_bytes(b"\n \n")
    bad = foreword("train", "ngram", tmp_path / "bad.txt", "-o", tmp_path / "m", "--ray")
    assert bad.exit_code == 1
    assert bad.stderr == foreword("train", "ngram", tmp_path / "bad.txt", "-o", tmp_path / "m").stderr
    blank = foreword("tokenize", "train", tmp_path / "blank.txt", "-o", tmp_path / "m", "--ray")
    assert blank.stderr == f"foreword: {tmp_path / 'blank.txt'}: no text in it\n"
    assert "reads files" in foreword("train", "ngram", "embedded", "-o", tmp_path / "m", "--ray").stderr
    assert foreword("train", "hmm", tmp_path / "bad.txt", "-o", tmp_path / "m", "--ray").exit_code == 2
    assert foreword("tokenize", "train", tmp_path / "bad.txt", "-o", "m", "--kind", "byte", "--ray").exit_code == 2
    assert not (tmp_path / "m").exists()
    with pytest.raises(ForewordError):
        fit_tokenizer(WordTokenizer(), [str(tmp_path / "none")], Reading())
