"""ARPA files: KenLM's own test file query by query, files as others write them, and files that are broken."""

from __future__ import annotations

import gzip
import math
import time
import tracemalloc
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Literal

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from numpy.typing import NDArray
from tests.real_data import real

from foreword.errors import ForewordError, InputError
from foreword.ngram import arpa, plain
from foreword.ngram.arpa import entry_lines, write_arpa
from foreword.ngram.hash_layout import mixed_keys, word_bits
from foreword.ngram.model import NgramLM
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


def outcome(reader: Callable[[Path], NgramLM], path: Path) -> NgramLM | str:
    """What a reader makes of a file: a model, or a complaint."""
    try:
        return reader(path)
    except InputError as error:
        return str(error)


def contents(found: NgramLM | str) -> object:
    if isinstance(found, str):
        return found
    parts = found.to_parts()
    return {name: array.tobytes() for name, array in parts.arrays.items()}, parts.settings, found.vocab.tokens


def read_arpa(path: Path) -> NgramLM:
    """Both readers, which must agree to the last bit of the model, or to the last word of what is wrong."""
    fast, slow = outcome(arpa.read_arpa, path), outcome(plain.read_arpa, path)
    assert contents(fast) == contents(slow)
    if isinstance(fast, str):
        raise InputError(fast)
    return fast


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
    return read_arpa(real("formats/kenlm_test.arpa"))


@pytest.mark.data
def test_kenlms_vocabulary(kenlm: NgramLM) -> None:
    """Their 37 words count ``<s>``, which no vocabulary of ours holds."""
    assert len(kenlm.vocab) == 36
    assert kenlm.vocab.unknown == 0
    assert kenlm.order == 5


@pytest.mark.data
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


@pytest.mark.data
def test_kenlm_continuing(kenlm: NgramLM) -> None:
    words, orders, expected = zip(*CHAIN, strict=True)
    assert log10s(kenlm, words, kenlm.start()) == pytest.approx(expected, rel=1e-5)
    assert matched_after_start(kenlm, words[:-1]) == list(orders[:-1])
    ids = [kenlm.vocab.id(word) for word in words[:-1]]
    logs, matched = kenlm.full_scores(Corpus.from_ids([ids], kenlm.vocab))  # the corpus adds </s> itself
    assert (logs / LN10).tolist() == pytest.approx(expected, rel=1e-5)
    assert matched.tolist() == list(orders)


@pytest.mark.data
def test_kenlm_branching(kenlm: NgramLM) -> None:
    read = ["looking", "on", "a", "little"]
    assert log10s(kenlm, [*read, "more", "loin"], kenlm.start())[4:] == pytest.approx(
        [-0.00181395, -0.0432557], rel=1e-5
    )
    assert matched_after_start(kenlm, [*read, "more", "loin"])[4:] == [5, 5]


@pytest.mark.data
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


@pytest.mark.data
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


@pytest.mark.data
def test_kenlm_without_an_unknown_word() -> None:
    model = read_arpa(real("formats/kenlm_test_nounk.arpa"))
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


# Two roads, one truth

MISSING = """\\data\\
ngram 1=4
ngram 2=2
ngram 3=2
ngram 4=2
\\1-grams:
-0.3\ta\t-0.2
-0.4\tb\t-0.5
-1\t</s>
-2 c -0.125
\\2-grams:
-0.1\ta a\t-0.7
-0.25 c b -1
\\3-grams:
-0.05\tb a b -0.3
-0.06\tc c a -0.3
\\4-grams:
-0.1 c a b c
-1 a b a b
\\end\\
"""

PIECES = [
    *"ab01-. \t\n\r\\<s>e", "<s>", "</s>", "nan", "inf", "-0.5", "1e5", "\r\n", "<UNK>", "<unk>", "a b", "é", "\\end\\",
    "0.30102999566398119521373889472449", " -1e-400", "-123456789012345678", "-9.9e22",
]  # fmt: skip


def mutated(random: Random, text: str) -> str:
    for _ in range(random.choice([1, 1, 2, 3])):
        lines, at = text.split("\n"), random.randrange(len(text))
        first, second = random.randrange(len(lines)), random.randrange(len(lines))
        kind = random.randrange(4)
        if kind == 0:
            text = text[:at] + random.choice(PIECES) + text[at + random.choice([0, 1, 2, 5]) :]
        elif kind == 1:
            text = text[:at] + text[at + random.choice([1, 2, 5]) :]
        else:
            lines[first], lines[second] = lines[second], lines[first] if kind == 2 else lines[second]
            text = "\n".join(lines)
    return text


@pytest.mark.parametrize("seed", range(6))
def test_both_readers_agree_on_files_that_chance_has_damaged(tmp_path: Path, seed: int) -> None:
    random = Random(seed)
    for _ in range(150):
        path = written(tmp_path, mutated(random, random.choice([GOOD, MISSING])))
        assert contents(outcome(arpa.read_arpa, path)) == contents(outcome(plain.read_arpa, path)), path.read_text()


@pytest.mark.parametrize("block_bytes", [1, 7, 64, 1000])
def test_where_blocks_end_makes_no_difference(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block_bytes: int
) -> None:
    path = tmp_path / "model.arpa"
    write_arpa(fitted(3), path)
    whole = contents(arpa.read_arpa(path))
    monkeypatch.setattr(arpa, "BLOCK_BYTES", block_bytes)
    monkeypatch.setattr(arpa, "CHUNK", 64)
    monkeypatch.setattr(arpa, "WORDS_AT_ONCE", 3)
    assert contents(read_arpa(path)) == whole


def test_any_number_is_read_as_python_reads_it(tmp_path: Path) -> None:
    random = Random(4)

    def number() -> str:
        digits = "".join(random.choice("0123456789") for _ in range(random.randrange(1, 24)))
        half = (random.randrange(1 << 52, 1 << 53) * 2 + 1) << random.randrange(9)  # between two float64s
        return random.choice(
            [
                f"-{10 ** random.uniform(-20, 3):.{random.randrange(1, 20)}g}",
                f"-{random.randrange(100)}.{digits}",
                f"-.{digits}",
                f"-{digits[:18]}.",
                f"-0.{'0' * random.randrange(20)}{digits}",
                f"-{digits}e-{random.randrange(26)}",
                f"-{digits[:3]}E+{random.randrange(9)}",
                f"-{half}e-{random.randrange(16, 24)}",
            ]
        )

    numbers = [number() for _ in range(4000)]
    entries = "".join(f"{numbers[n]}\tw{n}\t{numbers[n + 1]}\n" for n in range(0, len(numbers), 2))
    path = written(tmp_path, f"\\data\\\nngram 1={len(numbers) // 2}\n\\1-grams:\n{entries}\\end\\\n")
    found = arpa.read_arpa(path).to_parts().arrays["unigrams"][4:-2]
    assert_array_equal(found, (np.array([float(each) for each in numbers]) * LN10).astype(np.float32))


@pytest.mark.parametrize("highest", [False, True])
def test_numbers_are_written_as_python_writes_them(highest: bool) -> None:
    random = np.random.default_rng(6)
    logs = np.concatenate((-(10 ** random.uniform(-15, 3, 20_000)), -np.arange(3000) * LN10 / 1000))
    strange = [0.0, -0.0, -np.inf, -1e-20, -1e9, -3e38, -LN10, -LN10 / 1e4, -LN10 / 1e5]
    singles = np.concatenate((logs, strange)).astype(np.float32)
    weights, words = random.permutation(singles) * np.float32(-1), random.integers(0, 4, (len(singles), 2))
    lines = arpa._Names(Vocab(["<unk>", "</s>", "é"])).lines((2, words, singles, weights), highest=highest)
    expected = "".join(entry_lines(["<unk>", "</s>", "é", "<s>"], words, singles, weights, highest))
    assert b"".join(map(bytes, lines)) == expected.encode()


@pytest.mark.parametrize("seed", range(4))
def test_whatever_is_missing_is_put_in_alike(tmp_path: Path, seed: int) -> None:
    """N-grams taken out at random from all orders but the highest, so that many longer ones have no ends."""
    random = np.random.default_rng(seed)
    write_arpa(fitted(5), tmp_path / "whole.arpa")
    lines = (tmp_path / "whole.arpa").read_text("utf-8").split("\n")
    section, sizes, kept = 0, [0] * 6, []
    for line in lines[lines.index("\\1-grams:") :]:
        if line.endswith("-grams:"):
            section = int(line[1])
        elif "\t" in line:
            if 1 < section < 5 and random.random() < 0.3:
                continue
            sizes[section] += 1
        kept.append(line)
    header = [f"ngram {order}={size}" for order, size in enumerate(sizes) if order]
    model = read_arpa(written(tmp_path, "\n".join(["\\data\\", *header, "", *kept])))
    assert model.sizes_[0] == sizes[1]
    assert all(now > before for now, before in zip(model.sizes_[1:4], sizes[2:5], strict=True))


def test_keys_that_crowd_at_the_end_of_a_table_find_room(tmp_path: Path) -> None:
    """Bigrams that somebody has chosen so that all belong to the last few rows: none is written outside the table."""
    size = 2000
    words = np.arange(2, size)
    contexts, following = (grid.ravel() for grid in np.meshgrid(words, words))
    keys = mixed_keys(contexts, following, word_bits(size))
    crowd = np.flatnonzero(keys >= np.uint64(0xFFC0000000000000))
    assert len(crowd) > 3000
    text = f"\\data\\\nngram 1={size}\nngram 2={len(crowd)}\n\\1-grams:\n-1 <unk>\n-1 </s>\n"
    text += "".join(f"-2 w{word} -1\n" for word in words.tolist()) + "\\2-grams:\n"
    pairs = list(zip(contexts[crowd].tolist(), following[crowd].tolist(), strict=True))
    text += "".join(f"-1.5 w{context} w{word}\n" for context, word in pairs) + "\\end\\\n"
    model = arpa.read_arpa(written(tmp_path, text))
    assert [tuple(ngram) for ngram in list(model.ngrams())[1][1].tolist()] == sorted(pairs)
    corpus = Corpus.from_ids([list(pair) for pair in pairs], model.vocab)
    assert (model.full_scores(corpus)[1][1::3] == 2).all()


def test_a_few_bytes_that_unpack_to_millions_of_lines_do_not_fill_memory(tmp_path: Path) -> None:
    text = GOOD.replace("2=3", "2=1000000000").replace("-0.6\ta b\t-0.05\n", "-0.6\ta b\t-0.05\n" * 3_000_000)
    path = written(tmp_path, gzip.compress(text.encode(), 1), "model.arpa.gz")
    assert path.stat().st_size < 1e6
    tracemalloc.start()
    with pytest.raises(InputError, match=r"line 16: the 2-gram 'a b' is listed twice"):
        arpa.read_arpa(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 64e6  # one by one the bigrams would take 48 MB, and the text of a block is twelve


def test_a_line_without_an_end_does_not_fill_memory(tmp_path: Path) -> None:
    path = written(tmp_path, b"\\data\\\nngram 1=1\n" + b"x" * (20 << 20))
    with pytest.raises(InputError, match="not an ARPA file: a line is longer than 16 MB"):
        arpa.read_arpa(path)


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
        (GOOD.replace("2=3\n", f"2={'3' * 9999}\n"), 3, "expected 'ngram 2=COUNT'"),
        (GOOD.replace("2=3\n", f"2={1 << 63}\n"), 3, "expected 'ngram 2=COUNT'"),
        (GOOD.replace("2=3\n", f"2={'9' * 18}\n"), 18, "expected 999999999999999999 2-grams, found 3"),
        (GOOD.replace("ngram 2=3\n", ""), 3, "expected the number of 2-grams"),
        (GOOD.replace("ngram 2=3\n", "bigrams 2=3\n"), 3, "expected 'ngram 2=COUNT'"),
        (GOOD.replace("2=3\n", "2=-3\n"), 3, "expected 'ngram 2=COUNT'"),
        (GOOD.replace("ngram 1=5\nngram 2=3\nngram 3=1\n", ""), 3, "order 0"),
        (GOOD.replace("-0.6\ta b", "nan\ta b"), 15, "nan is not a log-probability"),
        (GOOD.replace("-0.6\ta b\t-0.05", "-0.6\ta b\tnan"), 15, "back-off"),
        (GOOD.replace("-0.6\ta b\t-0.05", "-0.6\ta b\tinf"), 15, "back-off"),
        (GOOD.replace("-0.6\ta b", "0.6\ta b"), 15, "0.6 is not a log-probability"),
        (GOOD.replace("-0.6\ta b", "x\ta b"), 15, "a number was expected"),
        (GOOD.replace("a b\t-0.05", "a b\tx"), 15, "a number was expected"),
        (GOOD.replace("-0.6\ta b\t-0.05", "-0.6\ta"), 15, "2 words"),
        (GOOD.replace("a b\t-0.05", "a b a\t-0.05"), 15, "5 fields"),
        (GOOD.replace("-0.7\tb </s>", "-0.7\ta b"), 16, "2-gram 'a b' is listed twice"),
        (GOOD.replace("-0.9\tb\t", "-0.9\ta\t"), 11, "1-gram 'a' is listed twice"),
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
    start = time.process_time()
    with pytest.raises(InputError, match=rf"line \d+: expected 10000000\d\d {order}-grams, found \d"):
        read_arpa(path)
    assert time.process_time() - start < 1


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
    start = time.process_time()
    with pytest.raises(InputError, match=r"not an ARPA file: there is no \\data\\ line"):
        read_arpa(path)
    assert time.process_time() - start < 2


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
