import pickle
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from foreword.errors import InputError, SettingError
from foreword.storage import vocab_txt
from foreword.storage.vocab_txt import MANY, open_vocab, write_vocab
from foreword.tokens.vocab import Vocab

AWKWARD = [
    "",
    "\\",
    "\\\\",
    "\\n",
    "\n",
    "\n\n",
    "\r",
    "\r\n",
    "\0",
    "a\\",
    "\\0",
    "é\n名",
    " ",
    "\t",
    "\u2028",
    "\ufeff",
    "🙂",
]


def read_vocab(
    path: Path,
    *,
    tokens: int,
    unknown: int | None,
    end: int,
    counts: Any = None,
    thorough: bool = True,
) -> Vocab:
    read = open_vocab(path, tokens=tokens, unknown=unknown, end=end, counts=counts, thorough=thorough)
    return Vocab.from_reader(tokens, read, counts, unknown=unknown, end=end)


def written_and_read(path: Path, vocab: Vocab) -> Vocab:
    write_vocab(path, vocab)
    return read_vocab(path, tokens=len(vocab), unknown=vocab.unknown, end=vocab.end, counts=vocab.counts)


def test_it_is_one_token_a_line(tmp_path: Path) -> None:
    write_vocab(tmp_path / "v", Vocab(["<unk>", "</s>", "the", "naïve"]))
    assert (tmp_path / "v").read_bytes() == "<unk>\n</s>\nthe\nnaïve\n".encode()


def test_what_breaks_lines_is_escaped(tmp_path: Path) -> None:
    write_vocab(tmp_path / "v", Vocab(["", "</s>", "\\", "\na", "\r", "\0b\\n"], unknown=None))
    assert (
        (tmp_path / "v").read_bytes()
        == rb"""
</s>
\\
\na
\r
\0b\\n
"""
    )


@pytest.mark.parametrize("tokens", [["</s>"], ["</s>", ""], ["", "</s>"], ["</s>", *AWKWARD], [*AWKWARD, "</s>"]])
def test_awkward_tokens_come_back(tmp_path: Path, tokens: list[str]) -> None:
    vocab = Vocab(tokens, range(len(tokens)), unknown=None)
    found = written_and_read(tmp_path / "v", vocab)
    assert found == vocab
    assert found.tokens == tokens
    assert found.counts is not None
    assert found.counts.tolist() == list(range(len(tokens)))


@given(st.lists(st.text(st.sampled_from("\\\n\r\0nr0aé")), unique=True))
def test_any_tokens_come_back(tmp_path_factory: pytest.TempPathFactory, tokens: list[str]) -> None:
    vocab = Vocab([*tokens, "</s>"], unknown=None)
    assert written_and_read(tmp_path_factory.getbasetemp() / "any vocab", vocab).tokens == [*tokens, "</s>"]


@given(st.lists(st.sampled_from([b"\\", b"\n", b"\r", b"\0", b"n", b"0", b"\xc3", b"\xa9"]), max_size=8))
def test_any_bytes_are_read_and_written_back_or_refused(
    tmp_path_factory: pytest.TempPathFactory, pieces: list[bytes]
) -> None:
    path, text = tmp_path_factory.getbasetemp() / "any bytes", b"".join(pieces)
    path.write_bytes(text)
    try:
        vocab = read_vocab(path, tokens=text.count(b"\n"), unknown=None, end=0)
    except InputError:
        return
    write_vocab(path, vocab)
    assert path.read_bytes() == text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"a\nb\xff\n", "line 2 is not UTF-8"),
        (b"a\nb", "cut off"),
        (b"a\nb\r\n", r"line 2 holds '\\r'"),
        (b"a\n\0\n", r"line 2 holds '\\x00'"),
        (b"a\n\\x\n", "backslash is followed by byte 0x78"),
        (b"a\nb\\\n", "backslash is followed by byte 0x0a"),
        (b"a\nb\na\n", "line 3 is the same as line 1"),
        (b"a\nb\nc\n", "3 tokens, not 2"),
        (b"a\n", "1 tokens, not 2"),
        (b"", "0 tokens, not 2"),
    ],
)
def test_bad_files(tmp_path: Path, text: bytes, message: str) -> None:
    (tmp_path / "v").write_bytes(text)
    with pytest.raises(InputError, match=message) as raised:
        read_vocab(tmp_path / "v", tokens=2, unknown=None, end=0)
    assert str(raised.value).startswith(f"{tmp_path / 'v'}: ")
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(("unknown", "end"), [(2, 0), (-1, 0), (None, 2), (0, -1), (10**30, 0)])
def test_special_ids_out_of_range(tmp_path: Path, unknown: int | None, end: int) -> None:
    (tmp_path / "v").write_bytes(b"a\nb\n")
    with pytest.raises(InputError, match="not below 2"):
        read_vocab(tmp_path / "v", tokens=2, unknown=unknown, end=end)


def test_an_empty_vocabulary_has_no_end(tmp_path: Path) -> None:
    (tmp_path / "v").write_bytes(b"")
    with pytest.raises(InputError, match="end token's id 0"):
        read_vocab(tmp_path / "v", tokens=0, unknown=None, end=0)


@pytest.mark.parametrize(
    "counts", [np.ones(3, np.int64), np.ones(2, np.int32), np.ones((2, 1), np.int64), np.array([1, -1])]
)
def test_bad_counts(tmp_path: Path, counts: np.ndarray) -> None:
    (tmp_path / "v").write_bytes(b"a\nb\n")
    with pytest.raises(InputError, match="count"):
        read_vocab(tmp_path / "v", tokens=2, unknown=None, end=0, counts=counts)


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="No such file"):
        read_vocab(tmp_path / "v", tokens=2, unknown=None, end=0)


@pytest.mark.parametrize(("data", "offsets"), [(b"aa", [0, 1, 2]), (b"a\xff", [0, 1, 2]), ("é".encode(), [0, 1, 2])])
def test_what_could_not_be_read_back_is_not_written(tmp_path: Path, data: bytes, offsets: list[int]) -> None:
    vocab = Vocab.from_bytes(np.frombuffer(data, np.uint8), np.array(offsets), unknown=None, end=0)
    with pytest.raises(SettingError, match="cannot be saved: line"):
        write_vocab(tmp_path / "v", vocab)
    assert not (tmp_path / "v").exists()


@pytest.mark.parametrize("extra", ["plain", "with\\backslash"])
def test_a_million_tokens_open_in_a_moment(tmp_path: Path, extra: str) -> None:
    text = "</s>\n" + "\n".join(f"token{number}" for number in range(1_000_000)) + "\n"
    (tmp_path / "v").write_bytes((text + extra.replace("\\", "\\\\") + "\n").encode())
    times = []
    for _ in range(5):
        begin = time.process_time()
        vocab = read_vocab(tmp_path / "v", tokens=1_000_002, unknown=None, end=0, thorough=False)
        times.append(time.process_time() - begin)
    assert vocab[1_000_001] == extra
    assert vocab[1_000_000] == "token999999"
    assert min(times) < 0.05  # 0.015 s on a quiet machine


def test_words_are_taken_out_of_their_lines_when_one_is_asked_for(tmp_path: Path) -> None:
    (tmp_path / "v").write_bytes(b"a\nb\n\\n\n")
    vocab = read_vocab(tmp_path / "v", tokens=3, unknown=None, end=0)
    assert len(vocab) == 3
    assert "_buffers" not in vars(vocab)
    assert pickle.loads(pickle.dumps(vocab)) == vocab
    assert (vocab.data.tobytes(), vocab.offsets.tolist()) == (b"ab\n", [0, 1, 2, 3])


def test_a_file_that_changes_while_it_is_open_is_told(tmp_path: Path) -> None:
    """Kernels count on as many tokens as were there when the file was checked."""
    (tmp_path / "v").write_bytes(b"a\nb\n")
    vocab = read_vocab(tmp_path / "v", tokens=2, unknown=None, end=0)
    with (tmp_path / "v").open("r+b") as file:
        file.write(b"a b\n")
    with pytest.raises(InputError, match="had 2 tokens when it was opened, now it has 1"):
        vocab[0]


def test_lines_are_looked_at_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever one piece ends and the next begins, also within a token that is longer than a piece."""
    tokens = [*AWKWARD, "\\" * 20, "\n" * 9, "é" * 30, "</s>"]
    vocab = Vocab(tokens, unknown=None)
    for piece in range(1, 50):
        monkeypatch.setattr(vocab_txt, "PIECE", piece)
        assert written_and_read(tmp_path / "v", vocab).tokens == tokens
        for text in (b"a\nb\nc\r\n", b"a\nb\nc\\x\n", b"a\nb\n\xc3\n"):
            (tmp_path / "bad").write_bytes(text)
            with pytest.raises(InputError):
                read_vocab(tmp_path / "bad", tokens=3, unknown=None, end=0)


def test_what_stands_twice_among_very_many_is_found_when_asked(tmp_path: Path) -> None:
    lines = [*map(str, range(MANY)), "7"]
    (tmp_path / "v").write_bytes(("\n".join(lines) + "\n").encode())
    assert len(read_vocab(tmp_path / "v", tokens=MANY + 1, unknown=None, end=0, thorough=False)) == MANY + 1
    with pytest.raises(InputError, match=f"line {MANY + 1} is the same as line 8"):
        read_vocab(tmp_path / "v", tokens=MANY + 1, unknown=None, end=0)
