"""ARPA files: KenLM's own test file query by query, files as others write them, and files that are broken."""

from __future__ import annotations

import gzip
import math
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from numpy.typing import NDArray

from foreword.errors import ForewordError, InputError
from foreword.io.arpa import read_arpa, write_arpa
from foreword.lm.ngram import NgramLM
from foreword.tokens.corpus import Corpus
from foreword.tokens.vocab import Vocab

LN10 = math.log(10)

GOOD = """\\data\\
ngram 1=5
ngram 2=3
ngram 3=1

\\1-grams:
-1.5\t<unk>\t0
-99\t<s>\t-0.3
-0.5\t</s>\t0
-0.4\ta\t-0.2
-0.9\tb\t-0.1

\\2-grams:
-0.1\t<s> a\t-0.25
-0.6\ta b\t-0.05
-0.7\tb </s>\t0

\\3-grams:
-0.01\t<s> a b

\\end\\
"""


def written(folder: Path, text: str | bytes, name: str = "model.arpa") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def file_of(name: str) -> Path:
    path = Path(os.environ.get("FOREWORD_DATA", "")) / "formats" / name
    if not os.environ.get("FOREWORD_DATA") or not path.exists():
        pytest.skip(f"$FOREWORD_DATA/formats/{name} is not there")
    return path


def nothing_read(model: NgramLM) -> NDArray[np.int64]:
    """The state of a model that has not even read ``<s>``."""
    return np.full((1, model.order - 1), -1, np.int64)


def read_words(model: NgramLM, state: NDArray[np.int64], words: Sequence[str]) -> NDArray[np.int64]:
    for word in words:
        state = model.advance(state, np.array([model.vocab.id(word)]))
    return state


def log10s(model: NgramLM, words: Sequence[str], state: NDArray[np.int64] | None = None) -> list[float]:
    """log10 of each word after those before it, and after nothing else unless a state is given."""
    state = nothing_read(model) if state is None else state
    found = []
    for word in words:
        found.append(float(model.next_logprobs(state)[0, model.vocab.id(word)]) / LN10)
        state = read_words(model, state, [word])
    return found


def matched_after_start(model: NgramLM, words: Sequence[str]) -> list[int]:
    corpus = Corpus.from_ids([[model.vocab.id(word) for word in words]], model.vocab)
    return [int(order) for order in model.full_scores(corpus)[1][: len(words)]]


# KenLM's test file, with the numbers of its own tests


@pytest.fixture(scope="module")
def kenlm() -> NgramLM:
    return read_arpa(file_of("kenlm_test.arpa"))


def test_kenlms_vocabulary(kenlm: NgramLM) -> None:
    """Their 37 words count ``<s>``, which no vocabulary of ours holds."""
    assert len(kenlm.vocab) == 36
    assert kenlm.vocab.unknown == 0
    assert kenlm.order == 5


@pytest.mark.parametrize(
    ("word", "order", "log10"),
    [
        ("looking", 2, -0.4846522),
        (",", 1, -1.383514 - 0.4149733),
        ("this_is_not_found", 1, -1.995635 - 0.4149733),
    ],
)
def test_kenlm_first_words(kenlm: NgramLM, word: str, order: int, log10: float) -> None:
    assert log10s(kenlm, [word], kenlm.start()) == pytest.approx([log10], rel=1e-5)
    assert matched_after_start(kenlm, [word]) == [order]


CHAIN: list[tuple[str, int, float]] = [
    ("looking", 2, -0.484652),
    ("on", 3, -0.348837),
    ("a", 4, -0.0155266),
    ("little", 5, -0.00306122),
    ("the", 1, -4.04005),
    ("biarritz", 1, -1.9889),
    ("not_found", 1, -2.29666),
    ("more", 1, -1.20632 - 20.0),
    (".", 2, -0.51363),
    ("</s>", 3, -0.0191651),
]


def test_kenlm_continuing(kenlm: NgramLM) -> None:
    words, orders, expected = zip(*CHAIN, strict=True)
    assert log10s(kenlm, words, kenlm.start()) == pytest.approx(expected, rel=1e-5)
    assert matched_after_start(kenlm, words[:-1]) == list(orders[:-1])
    ids = [kenlm.vocab.id(word) for word in words[:-1]]
    logs, matched = kenlm.full_scores(Corpus.from_ids([ids], kenlm.vocab))  # the corpus adds </s> itself
    assert (logs / LN10).tolist() == pytest.approx(expected, rel=1e-5)
    assert matched.tolist() == list(orders)


def test_kenlm_branching(kenlm: NgramLM) -> None:
    read = ["looking", "on", "a", "little"]
    assert log10s(kenlm, [*read, "more", "loin"], kenlm.start())[4:] == pytest.approx(
        [-0.00181395, -0.0432557], rel=1e-5
    )
    assert matched_after_start(kenlm, [*read, "more", "loin"])[4:] == [5, 5]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("also would consider higher looking", [-1.687872, -2, -3, -4, -5]),
        ("also would consider not_found", [-1.687872, -2, -3, -1.995635 - 7.0 - 0.30103]),
        ("higher looking not_found", [-1.509559, -1.285941 - 0.30103, -1.995635 - 0.4771212]),
        ("higher looking consider", [-1.509559, -1.285941 - 0.30103, -1.687872 - 0.4771212]),
        ("would consider higher looking", [-1.687872, -1.687872 - 0.30103, -1.509559 - 0.30103, -1.285941 - 0.30103]),
        ("not_found not_found2 not_found3", [-1.995635, -15.0, -15.0 - 2.0]),
        ("not_found however not_found3", [-1.995635, -4, -6]),
        ("baz", [-6.535897]),
        ("foo bar bar", [-3.141592, -6.0, -2.718281 + 3.0]),
        ("to look a", [-1.687872, -0.2922095, -7]),
        ("looking on", [-1.285941, -0.4638903]),
        ("the biarritz", [-1.687872, -1.9889]),
        ("biarritz not_found", [-1.687872, -2.29666]),
        ("not_found", [-1.995635]),
    ],
)
def test_kenlm_without_a_beginning(kenlm: NgramLM, words: str, expected: list[float]) -> None:
    assert log10s(kenlm, words.split()) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize(
    ("words", "orders"),
    [
        ("also would consider higher looking", [1, 2, 3, 4, 5]),
        ("also would consider not_found", [1, 2, 3, 1]),
        ("not_found not_found2 not_found3", [1, 2, 2]),
        ("not_found however not_found3", [1, 2, 3]),
        ("foo bar bar", [1, 2, 1]),
        ("to look a", [1, 2, 3]),
    ],
)
def test_kenlm_lengths(kenlm: NgramLM, words: str, orders: list[int]) -> None:
    """No n-gram of the file begins with ``<s>`` and one of these words, so it does not matter that it is read first."""
    assert matched_after_start(kenlm, words.split()) == orders


def test_kenlm_without_an_unknown_word() -> None:
    model = read_arpa(file_of("kenlm_test_nounk.arpa"))
    assert log10s(model, ["this_is_not_found"]) == pytest.approx([-100.0], rel=1e-6)
    assert model.vocab.unknown == 0


# Files as others write them


def scores(model: NgramLM) -> NDArray[np.float64]:
    vocab = model.vocab
    texts = [["a", "b"], ["b", "a", "b"], [], ["a", "a"], ["nowhere", "b"]]
    corpus = Corpus.from_ids([[vocab.id(word) for word in text] for text in texts], vocab)
    logs, matched = model.full_scores(corpus)
    return np.concatenate([logs, matched])


def test_a_small_file_by_hand(tmp_path: Path) -> None:
    model = read_arpa(written(tmp_path, GOOD))
    assert model.sizes_ == [5, 3, 1]
    assert log10s(model, ["a", "b", "</s>"], model.start()) == pytest.approx([-0.1, -0.01, -0.05 - 0.7], rel=1e-6)
    assert log10s(model, ["b", "a"], model.start()) == pytest.approx([-0.3 - 0.9, -0.1 - 0.4], rel=1e-6)
    assert log10s(model, ["nowhere"], model.start()) == pytest.approx([-0.3 - 1.5], rel=1e-6)


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace("\n", "\r\n"),
        lambda text: text.replace("\t", " "),
        lambda text: text.replace("\t", "\t\t").replace("a b", "a\tb"),
        lambda text: text.replace("\\data\\", "\\DATA\\").replace("\\end\\", "\\END\\").replace("-grams:", "-GRAMS:"),
        lambda text: text.replace("ngram 1=5", "NGRAM 1 = 5"),
        lambda text: "made by hand\n\n# a comment\n" + text,
        lambda text: text + "\nwhatever comes after the end\n",
        lambda text: text.removesuffix("\n"),
        lambda text: text.replace("\n\n", "\n"),
        lambda text: text.replace("\n\n", "\n\n \n\t\n"),
        lambda text: text.replace("</s>\t0", "</s>"),
        lambda text: text.replace("</s>\t0", "</s>\t"),
        lambda text: text.replace("<s> a b\n", "<s> a b\t-0.5\n"),
        lambda text: text.replace("<unk>", "<UNK>"),
        lambda text: text.replace("-99", "0"),
        lambda text: text.replace("-99", "-inf"),
    ],
    ids=[
        "CRLF", "blanks", "tabs", "upper case", "header", "comment", "after the end", "no last line end",
        "no blank lines", "more blank lines", "back-off missing", "back-off blank", "back-off of the highest order",
        "<UNK>", "<s> is certain", "<s> is impossible",
    ],
)  # fmt: skip
def test_a_file_written_another_way_means_the_same(tmp_path: Path, change: object) -> None:
    assert callable(change)
    changed = change(GOOD)
    assert changed != GOOD
    expected = scores(read_arpa(written(tmp_path, GOOD)))
    assert_array_equal(scores(read_arpa(written(tmp_path, changed, "changed.arpa"))), expected)


def test_a_back_off_weight_may_be_positive(tmp_path: Path) -> None:
    model = read_arpa(written(tmp_path, GOOD.replace("-0.1\n\n\\2", "3.5\n\n\\2")))
    assert log10s(model, ["b", "a"]) == pytest.approx([-0.9, 3.5 - 0.4], rel=1e-6)


def test_a_file_without_an_unknown_word_gives_it_what_kenlm_does(tmp_path: Path) -> None:
    text = GOOD.replace("-1.5\t<unk>\t0\n", "").replace("1=5", "1=4")
    assert log10s(read_arpa(written(tmp_path, text)), ["nowhere", "a"]) == pytest.approx([-100.0, -0.4], rel=1e-6)


def test_a_file_without_an_end_or_a_beginning_can_be_read(tmp_path: Path) -> None:
    text = "\\data\\\nngram 1=2\nngram 2=1\n\\1-grams:\n-0.3\ta\t-0.2\n-0.3\tb\n\\2-grams:\n-0.1\ta b\n\\end\\\n"
    model = read_arpa(written(tmp_path, text))
    assert log10s(model, ["a", "b", "</s>"]) == pytest.approx([-0.3, -0.1, -99], rel=1e-6)


def test_shorter_ngrams_that_are_missing_are_put_in_at_no_cost(tmp_path: Path) -> None:
    """``b a b`` is listed, ``b a`` and ``a b`` are not: each scores as backing off has it, and so does the rest."""
    text = "\\data\\\nngram 1=3\nngram 2=1\nngram 3=1\n\\1-grams:\n-0.3\ta\t-0.2\n-0.4\tb\t-0.5\n-1\t</s>\n"
    text += "\\2-grams:\n-0.1\ta a\t-0.7\n\\3-grams:\n-0.05\tb a b\n\\end\\\n"
    model = read_arpa(written(tmp_path, text))
    expected = [-0.4, -0.5 - 0.3, -0.05, -0.5 - 0.4, -0.5 - 0.3, -0.1]
    assert log10s(model, ["b", "a", "b", "b", "a", "a"]) == pytest.approx(expected, rel=1e-6)


def test_one_order_is_enough(tmp_path: Path) -> None:
    text = "\\data\\\nngram 1=2\n\n\\1-grams:\n-0.3\ta\n-0.3\t</s>\n\n\\end\\\n"
    model = read_arpa(written(tmp_path, text))
    assert model.order == 1
    assert log10s(model, ["a", "</s>"]) == pytest.approx([-0.3, -0.3], rel=1e-6)


def test_an_order_may_have_no_ngrams(tmp_path: Path) -> None:
    text = "\\data\\\nngram 1=2\nngram 2=0\n\n\\1-grams:\n-0.3\ta\n-0.3\t</s>\n\n\\2-grams:\n\n\\end\\\n"
    model = read_arpa(written(tmp_path, text))
    assert model.sizes_[1] == 0
    assert log10s(model, ["a", "a"]) == pytest.approx([-0.3, -0.3], rel=1e-6)


@pytest.mark.parametrize("word", ["é", "日本", "\u00a0", "a\u2028b", "\x85", "😀"])
def test_words_are_divided_by_ascii_blanks_only(tmp_path: Path, word: str) -> None:
    """A no-break space belongs to its word, as it does for KenLM."""
    text = GOOD.replace("\tb\t", f"\t{word}\t").replace("a b", f"a {word}").replace("b </s>", f"{word} </s>")
    model = read_arpa(written(tmp_path, text))
    assert word in model.vocab


# There and back


def fitted(order: int = 3, smoothing: str = "modified-kneser-ney", prune: tuple[int, ...] = ()) -> NgramLM:
    vocab = Vocab(["<unk>", "</s>", *"abcdefgh", "日本", "never"])
    random = np.random.default_rng(5)
    texts = [random.integers(2, 11, length).tolist() for length in random.integers(0, 9, 40)]
    return NgramLM(order, smoothing, prune=prune).fit(Corpus.from_ids([*texts, [0, 2]], vocab))


@pytest.mark.parametrize("name", ["model.arpa", "model.arpa.gz"])
@pytest.mark.parametrize("order", [1, 2, 3, 5])
def test_written_and_read_it_is_the_same_to_the_last_bit(tmp_path: Path, order: int, name: str) -> None:
    model = fitted(order)
    write_arpa(model, tmp_path / name)
    again = read_arpa(tmp_path / name)
    assert again.vocab == model.vocab
    assert again.sizes_ == model.sizes_
    for ours, theirs in zip(model.ngrams(), again.ngrams(), strict=True):
        assert_array_equal(ours[1], theirs[1])
        predicted = ours[1][:, -1] < len(model.vocab)  # <s> is a context and nothing else
        assert_array_equal(ours[2][predicted], theirs[2][predicted])
        assert_array_equal(ours[3], theirs[3])


@pytest.mark.parametrize("layout", ["hash", "trie"])
@pytest.mark.parametrize("smoothing", ["kneser-ney", "absolute", "witten-bell"])
def test_every_interpolated_smoothing_can_be_written(
    tmp_path: Path, smoothing: str, layout: Literal["hash", "trie"]
) -> None:
    vocab = fitted().vocab
    corpus = Corpus.from_ids([[2, 3, 4], [2, 11, 0, 3], []], vocab)
    model = NgramLM(3, smoothing, prune=(0, 0, 1), layout=layout).fit(Corpus.from_ids([[2, 3, 4, 2, 3, 4], [4]], vocab))
    write_arpa(model, tmp_path / "model.arpa")
    again = read_arpa(tmp_path / "model.arpa")
    assert_array_equal(again.logprobs(corpus), model.logprobs(corpus))


@pytest.mark.parametrize("smoothing", ["laplace", "lidstone"])
def test_what_does_not_back_off_cannot_be_written(tmp_path: Path, smoothing: str) -> None:
    """An ARPA file would be read as if it did, and every score after an unseen n-gram would be another."""
    with pytest.raises(InputError, match=f"smoothing={smoothing} cannot be an ARPA file"):
        write_arpa(fitted(2, smoothing), tmp_path / "model.arpa")
    assert list(tmp_path.iterdir()) == []


def test_an_impossible_word_is_written_as_the_format_has_it(tmp_path: Path) -> None:
    """-99 for the log of zero: read again it is 10^-99, no longer impossible but as good as."""
    model = fitted(2, "maximum-likelihood")
    write_arpa(model, tmp_path / "model.arpa")
    never = [model.vocab.id("never")]
    assert model.logprobs(Corpus.from_ids([never], model.vocab))[0] == -math.inf
    again = read_arpa(tmp_path / "model.arpa")
    assert again.logprobs(Corpus.from_ids([never], again.vocab))[0] / LN10 == pytest.approx(-2 * 99, rel=1e-6)


def test_gz_is_gz_and_plain_is_plain(tmp_path: Path) -> None:
    model = fitted()
    for name in ("model.arpa", "model.arpa.gz"):
        write_arpa(model, tmp_path / name)
    assert gzip.decompress((tmp_path / "model.arpa.gz").read_bytes()) == (tmp_path / "model.arpa").read_bytes()


def test_a_file_that_we_write_reads_as_the_format_says(tmp_path: Path) -> None:
    write_arpa(fitted(2), tmp_path / "model.arpa")
    lines = (tmp_path / "model.arpa").read_text("utf-8").split("\n")
    assert lines[0] == "\\data\\"
    assert lines[1] == "ngram 1=13"
    assert "\\1-grams:" in lines
    assert "\\2-grams:" in lines
    assert [line.count("\t") for line in lines[lines.index("\\1-grams:") + 1 :][:13]] == [2] * 13
    bigrams = lines[lines.index("\\2-grams:") + 1 : lines.index("\\end\\") - 1]
    assert {line.count("\t") for line in bigrams} == {1}
    assert all(len(line.split("\t")[1].split(" ")) == 2 for line in bigrams)


def test_a_token_with_white_space_in_it_cannot_be_written(tmp_path: Path) -> None:
    vocab = Vocab(["<unk>", "</s>", "new york"])
    model = NgramLM(2).fit(Corpus.from_ids([[2]], vocab))
    with pytest.raises(InputError, match="'new york' has white space"):
        write_arpa(model, tmp_path / "model.arpa")
    assert list(tmp_path.iterdir()) == []


def test_a_model_from_a_file_cannot_be_fitted(tmp_path: Path) -> None:
    model = read_arpa(written(tmp_path, GOOD))
    with pytest.raises(ForewordError, match="cannot be fitted"):
        model.fit(Corpus.from_ids([[2]], model.vocab))


# Broken files


def lines_changed(line: int, *lines: str) -> str:
    """The good file with one line, counted from 1, in the place of which others stand."""
    good = GOOD.split("\n")
    return "\n".join([*good[: line - 1], *lines, *good[line:]])


@pytest.mark.parametrize(
    ("text", "line", "complaint"),
    [
        (GOOD.replace("1=5", "1=6"), 13, "expected 6 1-grams, found 5"),
        (GOOD.replace("2=3", "2=4"), 18, "expected 4 2-grams, found 3"),
        (GOOD.replace("3=1", "3=2"), 21, "expected 2 3-grams, found 1"),
        (GOOD.replace("1=5", "1=4"), 11, "fewer 1-grams"),
        (GOOD.replace("2=3", "2=2"), 16, "fewer 2-grams"),
        (lines_changed(19, "-0.01\t<s> a b", "-0.02\ta b a"), 20, "fewer n-grams"),
        (GOOD.replace("ngram 3=1\n", ""), 17, "fewer n-grams"),
        (GOOD.replace("2=3\n", "2=three\n"), 3, "expected 'ngram 2=COUNT'"),
        (GOOD.replace("ngram 2=3\n", ""), 3, "expected the number of 2-grams"),
        (GOOD.replace("ngram 2=3\n", "bigrams 2=3\n"), 3, "expected 'ngram 2=COUNT'"),
        (GOOD.replace("2=3\n", "2=-3\n"), 3, "expected 'ngram 2=COUNT'"),
        (GOOD.replace("ngram 1=5\nngram 2=3\nngram 3=1\n", ""), 3, "order 0"),
        (GOOD.replace("-0.6\ta b", "nan\ta b"), 15, "nan is no log-probability"),
        (GOOD.replace("-0.6\ta b\t-0.05", "-0.6\ta b\tnan"), 15, "back-off"),
        (GOOD.replace("-0.6\ta b\t-0.05", "-0.6\ta b\tinf"), 15, "back-off"),
        (GOOD.replace("-0.6\ta b", "0.6\ta b"), 15, "0.6 is no log-probability"),
        (GOOD.replace("-0.6\ta b", "x\ta b"), 15, "a number was expected"),
        (GOOD.replace("a b\t-0.05", "a b\tx"), 15, "a number was expected"),
        (GOOD.replace("-0.6\ta b\t-0.05", "-0.6\ta"), 15, "2 words"),
        (GOOD.replace("a b\t-0.05", "a b a\t-0.05"), 15, "5 fields"),
        (GOOD.replace("-0.7\tb </s>", "-0.7\ta b"), 16, "2-gram 'a b' stands there twice"),
        (GOOD.replace("-0.9\tb\t", "-0.9\ta\t"), 11, "1-gram 'a' stands there twice"),
        (GOOD.replace("-0.9\tb\t", "-0.9\t<UNK>\t"), 11, "twice"),
        (GOOD.replace("-0.6\ta b", "-0.6\ta c"), 15, "'c' is not among the 1-grams"),
        (GOOD.replace("-0.7\tb </s>", "-0.7\tb <s>"), 16, "<s> stands inside"),
        (GOOD.replace("\\2-grams:", "\\3-grams:"), 13, "expected"),
    ],
    ids=lambda value: value if isinstance(value, str) and len(value) < 60 else "",
)
def test_a_broken_file_is_refused_with_its_name_and_line(tmp_path: Path, text: str, line: int, complaint: str) -> None:
    assert text != GOOD
    path = written(tmp_path, text)
    with pytest.raises(InputError) as caught:
        read_arpa(path)
    message = str(caught.value)
    assert message.startswith(f"{path}: line {line}: ")
    assert complaint in message
    assert "\n" not in message


@pytest.mark.parametrize("kept", range(1, GOOD.count("\n") - 1))
def test_a_file_that_stops_early_is_refused(tmp_path: Path, kept: int) -> None:
    """Cut after any line but the last: one line that names the file and how far it went."""
    path = written(tmp_path, "\n".join(GOOD.split("\n")[:kept]) + "\n")
    with pytest.raises(InputError, match=r"model\.arpa: the file ends after line \d+, where .* expected$"):
        read_arpa(path)


def test_a_missing_end_is_told(tmp_path: Path) -> None:
    path = written(tmp_path, GOOD.replace("\\end\\\n", ""))
    with pytest.raises(InputError, match=r"ends after line 20, where \\end\\ was expected"):
        read_arpa(path)


@pytest.mark.parametrize("order", [1, 2, 3])
def test_a_billion_declared_ngrams_are_answered_at_once(tmp_path: Path, order: int) -> None:
    """Nothing is set aside for what a header only promises."""
    text = GOOD.replace(f"ngram {order}=", f"ngram {order}=100000000")
    path = written(tmp_path, text)
    assert path.stat().st_size < 1024
    start = time.perf_counter()
    with pytest.raises(InputError, match=rf"line \d+: expected 10000000\d\d {order}-grams, found \d"):
        read_arpa(path)
    assert time.perf_counter() - start < 1


@pytest.mark.parametrize(
    "data",
    [b"", b"\n\n", b"just a text\nof two lines\n", b"{}\n" * 2000, b"\x00\x01\x02", b"\xff\xfe\x00", b"PK\x03\x04 zip"],
    ids=["empty", "blank", "text", "long text", "NUL", "not UTF-8", "zip"],
)
def test_what_is_no_arpa_file_is_refused(tmp_path: Path, data: bytes) -> None:
    path = written(tmp_path, data)
    with pytest.raises(InputError) as caught:
        read_arpa(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_long_text_is_not_searched_to_its_end(tmp_path: Path) -> None:
    path = written(tmp_path, b"no data here\n" * 3_000_000)
    start = time.perf_counter()
    with pytest.raises(InputError, match=r"not an ARPA file: there is no \\data\\ line"):
        read_arpa(path)
    assert time.perf_counter() - start < 2


@pytest.mark.parametrize("share", [0.1, 0.5, 0.99])
def test_half_a_gz_is_refused(tmp_path: Path, share: float) -> None:
    packed = gzip.compress(GOOD.encode())
    path = written(tmp_path, packed[: int(len(packed) * share)], "model.arpa.gz")
    with pytest.raises(InputError) as caught:
        read_arpa(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nowhere\.arpa"):
        read_arpa(tmp_path / "nowhere.arpa")


def test_eleven_orders_are_one_too_many(tmp_path: Path) -> None:
    header = "".join(f"ngram {order}=0\n" for order in range(1, 12))
    path = written(tmp_path, f"\\data\\\n{header}\n\\1-grams:\n\\end\\\n")
    with pytest.raises(InputError, match=r"line 14: order 11: expected 1 to 10"):
        read_arpa(path)
