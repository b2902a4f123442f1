"""KenLM binaries that Foreword writes, and broken ones: the scores of the model, or one line."""

from __future__ import annotations

import math
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from foreword import load
from foreword.errors import ForewordError, InputError
from foreword.ngram.arpa import read_arpa, read_log10, write_arpa
from foreword.ngram.kenlm import KenlmLM
from foreword.ngram.kenlm_format import COUNTS_AT, HASHED_WORD, PARAMETERS_AT, SIZE, START, read_layout
from foreword.ngram.kenlm_writing import Binary, trie_ngrams, write_kenlm
from foreword.ngram.log10 import log10_of
from foreword.ngram.model import NgramLM
from foreword.ngram.plain_kenlm import PlainKenlm, hash_word
from foreword.text.embedded import embedded_text
from foreword.tokens.corpus import Corpus
from foreword.tokens.words import WordTokenizer

BINARIES: tuple[Binary, ...] = ("probing", "trie")


@pytest.fixture(scope="module")
def texts() -> list[str]:
    return embedded_text()[:600]


@pytest.fixture(scope="module")
def ngrams(texts: list[str]) -> NgramLM:
    return NgramLM(4).fit(Corpus.from_texts(texts, WordTokenizer(min_count=2).fit(texts)))


@pytest.fixture(scope="module", params=BINARIES)
def file(request: pytest.FixtureRequest, ngrams: NgramLM, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path: Path = tmp_path_factory.mktemp("written") / f"{request.param}.bin"
    write_kenlm(log10_of(ngrams), path, request.param)
    return path


def test_scores_are_those_of_the_model(file: Path, ngrams: NgramLM, texts: list[str]) -> None:
    model = KenlmLM.open(file)
    corpus = Corpus.from_texts(texts, WordTokenizer(min_count=2).fit(texts))
    own = Corpus.from_texts(texts, model.words)
    logs, lengths = model.full_scores(own)
    expected, matched = ngrams.full_scores(corpus)
    assert_allclose(logs, expected, rtol=2e-6)
    assert lengths.tolist() == matched.tolist()


def test_the_plain_version_reads_it_alike(file: Path, texts: list[str]) -> None:
    model, plain = KenlmLM.open(file), PlainKenlm(file)
    some = [*texts[100:110], "zzz unheard of", ""]
    logs, lengths = model.full_log10(Corpus.from_texts(some, model.words))
    found = [word for text in some for word in plain.full_scores(text.split())]
    assert logs.tolist() == [log.item() for log, _ in found]
    assert lengths.tolist() == [length for _, length in found]


def test_a_trie_gives_its_ngrams_back(ngrams: NgramLM, tmp_path: Path) -> None:
    write_arpa(log10_of(ngrams), tmp_path / "one.arpa")
    write_kenlm(read_log10(tmp_path / "one.arpa"), tmp_path / "trie.bin", "trie")
    write_arpa(trie_ngrams(KenlmLM.open(tmp_path / "trie.bin")), tmp_path / "two.arpa")
    one, two = (sorted((tmp_path / name).read_text("utf-8").splitlines()) for name in ("one.arpa", "two.arpa"))
    assert one == two


def test_words_are_read_when_they_are_needed(file: Path, ngrams: NgramLM) -> None:
    model = KenlmLM.open(file)
    assert "_buffers" not in vars(model.vocab)
    assert set(model.vocab) == set(ngrams.vocab)
    assert model.vocab[model.vocab.end] == "</s>"
    assert "<s>" not in model.vocab
    words = list(model.vocab)[:50]
    assert [model.vocab[id] for id in model.words.ids(words) if id] == [
        word for word in words if word not in ("<unk>", "</s>")
    ]


def test_ids_of_a_probing_file_are_those_of_the_model(ngrams: NgramLM, tmp_path: Path) -> None:
    write_kenlm(log10_of(ngrams), tmp_path / "model.bin", "probing")
    assert KenlmLM.open(tmp_path / "model.bin").vocab == ngrams.vocab


def test_marks_written_in_a_text_are_unknown(file: Path) -> None:
    model = KenlmLM.open(file)
    ids = model.words.encode("<s> </s> <unk>")
    assert ids.tolist() == [0, 0, 0]
    assert model.words.ids(["<s>", "</s>", "<unk>"]).tolist() == [0, 0, 0]


def test_a_document_in_pieces_is_one_document(file: Path) -> None:
    from foreword.text.block import Block

    model = KenlmLM.open(file)
    open_block = model.words.encode_block(Block.from_texts(["one two", "three"], open=True))
    closed = model.words.encode_block(Block.from_texts(["one two", "three"]))
    assert len(open_block.ids) + 1 == len(closed.ids)
    assert open_block.ends.tolist() == closed.ends.tolist()[:1]


def test_more_threads_give_the_same(file: Path, texts: list[str]) -> None:
    one, two = KenlmLM.open(file, threads=1), KenlmLM.open(file, threads=2)
    corpus = Corpus.from_texts(texts, one.words)
    assert (one.log10(corpus) == two.log10(corpus)).all()


def test_it_generates(file: Path) -> None:
    text = load(file).generate("the", max_tokens=8, seed=3)
    assert text == load(file).generate("the", max_tokens=8, seed=3)
    assert text.strip()


def test_what_it_cannot_do_is_one_line(file: Path, ngrams: NgramLM, texts: list[str], tmp_path: Path) -> None:
    model = KenlmLM.open(file)
    corpus = Corpus.from_texts(texts[:2], model.words)
    with pytest.raises(ForewordError, match="cannot be fitted"):
        model.fit(corpus)
    with pytest.raises(ForewordError, match="another vocabulary"):
        model.score(Corpus.from_texts(texts[:2], WordTokenizer().fit(texts[:2])))
    with pytest.raises(InputError, match="order 1"):
        write_kenlm(log10_of(NgramLM(1).fit(corpus)), tmp_path / "x.bin")
    if file.stem == "probing":
        with pytest.raises(InputError, match="holds only hashes"):
            trie_ngrams(model)


def test_missing_ends_are_added(tmp_path: Path) -> None:
    """An ARPA file may list an n-gram and not its end; KenLM inserts these, and so does the writer."""
    arpa = "\\data\\\nngram 1=4\nngram 2=1\nngram 3=1\n\n\\1-grams:\n-1\t<unk>\n-0.5\t<s>\t-0.1\n"
    arpa += "-0.7\t</s>\n-0.9\ta\t-0.2\n"
    arpa += "\n\\2-grams:\n-0.3\t<s> a\t-0.4\n\n\\3-grams:\n-0.25\t<s> a a\n\n\\end\\\n"
    (tmp_path / "x.arpa").write_text(arpa)
    for binary in BINARIES:
        write_kenlm(read_log10(tmp_path / "x.arpa"), tmp_path / "x.bin", binary)
        model, expected = KenlmLM.open(tmp_path / "x.bin"), read_arpa(tmp_path / "x.arpa")
        own = Corpus.from_texts(["a a a"], model.words)
        assert_allclose(model.logprobs(own), expected.logprobs(Corpus.from_ids([[2, 2, 2]], expected.vocab)), rtol=1e-6)


# Bad input


def broken(path: Path, tmp_path: Path, at: int, new: bytes) -> Path:
    data = bytearray(path.read_bytes())
    data[at : at + len(new)] = new
    other = tmp_path / "broken.bin"
    other.write_bytes(data)
    return other


@pytest.mark.parametrize(
    ("at", "new", "expected"),
    [
        (49, b"4", "format version 4: expected 5"),
        (33, b" incomplete\n", "unfinished or unknown KenLM binary"),
        (60, struct.pack(">f", 1.0), "another byte order"),
        (PARAMETERS_AT, b"\x01", "order 1: expected 2 to 16"),
        (PARAMETERS_AT, b"\xff", "order 255"),
        (PARAMETERS_AT + 8, b"\x09", "type 9"),
        (PARAMETERS_AT + 16, b"\x07", "search version 7"),
        (COUNTS_AT, bytes(8), "cannot be"),
        (COUNTS_AT + 8, b"\xff" * 8, "cannot be"),
        (COUNTS_AT + 8, struct.pack("<Q", 1 << 40), "the file is cut"),
    ],
)
def test_a_damaged_header_is_one_line(file: Path, tmp_path: Path, at: int, new: bytes, expected: str) -> None:
    path = broken(file, tmp_path, at, new)
    with pytest.raises(InputError, match=expected) as raised:
        load(path)
    assert str(raised.value).startswith(str(path))
    assert "\n" not in str(raised.value)


def test_a_file_cut_anywhere_is_one_line(file: Path, tmp_path: Path) -> None:
    """Cut inside and at the ends of every part."""
    data = file.read_bytes()
    layout = read_layout(np.frombuffer(data, np.uint8), "x")
    ends = [56, 88, 90, 108, 112, layout.header.end, layout.vocabulary, layout.end]
    ends += [int(start) for start in layout.shapes[:, START]]
    for size in sorted({cut for end in ends for cut in (end - 1, end, end + 1) if cut < layout.end}):
        (tmp_path / "cut.bin").write_bytes(data[:size])
        with pytest.raises(InputError, match=r"cut|unknown|neither|byte order") as raised:
            KenlmLM.open(tmp_path / "cut.bin")
        assert "\n" not in str(raised.value)
    (tmp_path / "cut.bin").write_bytes(data[: layout.end + 3])
    model = KenlmLM.open(tmp_path / "cut.bin")  # the words are missing, the n-grams are not
    with pytest.raises(InputError, match="words are stored"):
        model.vocab.tokens  # noqa: B018


def test_a_full_table_ends_the_search(ngrams: NgramLM, tmp_path: Path) -> None:
    path = tmp_path / "full.bin"
    write_kenlm(log10_of(ngrams), path, "probing")
    layout = KenlmLM.open(path).layout_
    data = np.memmap(path, np.uint8, mode="r+")
    for slot in range(int(layout.shapes[1, SIZE])):
        at = int(layout.shapes[1, START]) + 16 * slot
        if not data[at : at + 8].any():
            data[at : at + 8] = 77
    data.flush()
    model = KenlmLM.open(path)
    with pytest.raises(InputError, match="no free slot"):
        model.logprobs(Corpus.from_texts(["the a the a . . a the of"], model.words))
    for slot in range(layout.hashes):
        at = layout.vocabulary + HASHED_WORD * slot
        if not data[at : at + 8].any():
            data[at : at + 8] = 77
    data.flush()
    with pytest.raises(InputError, match="no free slot"):
        KenlmLM.open(path).words.encode("unheard-of")


def test_murmur_of_a_word_of_each_length() -> None:
    """Hashes of the words "", "a", ... against the published test vector's algorithm, by the plain version."""
    from foreword.ngram.kernels_kenlm_writing import hash_words

    words = [b"abcdefghijklmnopqrstuvwxyz"[:size] for size in range(27)]
    offsets = np.cumsum([0, *map(len, words)])
    hashes = np.empty(len(words), np.uint64)
    hash_words(np.frombuffer(b"".join(words), np.uint8), offsets, hashes)
    assert hashes.tolist() == [hash_word(word) for word in words]


def sparse_file(path: Path, size: int) -> KenlmLM:
    """Make a probing file of which nearly all is a hole: only the header and the two marks are there."""
    from foreword.ngram.kenlm_format import Header, header_end, render_header, slots_of

    counts = (3_000_000, 90_000_000, 300_000_000, 500_000_000, size)
    header = Header(5, 1.5, 0, False, counts, header_end(5))
    beginning = render_header(header) + struct.pack("<II", 0, 3_000_000)
    layout = read_layout(np.frombuffer(beginning, np.uint8), "x", 1 << 62)
    with path.open("wb") as file:
        file.write(beginning)
        for id, word in enumerate((b"<s>", b"</s>", b"the"), 1):
            file.seek(layout.vocabulary + HASHED_WORD * (hash_word(word) % slots_of(counts[0], 1.5)))
            file.write(struct.pack("<QI", hash_word(word), id))
        file.truncate(layout.end)
    return KenlmLM.open(path)


OPENING = """
import sys, time
import numpy as np
from foreword.ngram.kenlm import KenlmLM
from foreword.tokens.corpus import Corpus
began = time.process_time()
model = KenlmLM.open(sys.argv[1])
seconds = time.process_time() - began
assert model.score(Corpus.from_texts(["the the cat"], model.words)) == 0.0
lines = open("/proc/self/smaps_rollup").read().splitlines()
print(seconds, sum(int(line.split()[1]) << 10 for line in lines if line.startswith("Private")))
"""


@pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="only Linux reports private memory")
def test_34_gigabytes_open_at_once(tmp_path: Path) -> None:
    """Opened in under a second, in under 300 MB of private memory, as a sparse file shows."""
    sparse_file(tmp_path / "huge.bin", 1_100_000_000)
    assert (tmp_path / "huge.bin").stat().st_size > 34_000_000_000
    command = [sys.executable, "-c", OPENING, str(tmp_path / "huge.bin")]
    for _ in range(2):  # kernels are compiled the first time
        seconds, private = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    assert float(seconds) < 1
    assert int(private) < 300 << 20


def test_natural_logs_are_log10_times_the_log_of_ten(file: Path, texts: list[str]) -> None:
    model: Any = KenlmLM.open(file)
    corpus = Corpus.from_texts(texts[:3], model.words)
    assert_allclose(model.logprobs(corpus), model.log10(corpus).astype(np.float64) * math.log(10), rtol=0)
