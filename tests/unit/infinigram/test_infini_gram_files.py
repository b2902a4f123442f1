"""The index files of infini-gram, written here as its documentation describes them, against an index of our own."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foreword.errors import InputError
from foreword.infinigram.index import SuffixIndex
from foreword.infinigram.infini_gram_files import is_infini_gram, read_infini_gram
from foreword.tokens.characters import ByteTokenizer
from foreword.tokens.corpus import Corpus
from foreword.tokens.vocab import Vocab

VOCAB = Vocab(["<unk>", "</s>", *(f"w{number}" for number in range(598))])  # ids of two bytes, both of them used
USED = [2, 3, 255, 256, 257, 512, 515]
DOCUMENTS = st.lists(st.lists(st.sampled_from(USED), max_size=8), min_size=1, max_size=6)


def write_shard(folder: Path, number: int, documents: list[list[int]], width: int) -> None:
    """Write the three files of a shard in the plainest way: sort all suffixes of the bytes."""
    parts = [b"\xff" * width + b"".join(id.to_bytes(width, "little") for id in document) for document in documents]
    text = b"".join(parts)
    entry = int(np.ceil(np.log2(len(text)) / 8)) or 1
    suffixes = sorted(range(0, len(text), width), key=lambda begin: text[begin:])
    begins = np.cumsum([0, *(len(part) for part in parts)])[:-1]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"tokenized.{number}").write_bytes(text)
    (folder / f"table.{number}").write_bytes(b"".join(begin.to_bytes(entry, "little") for begin in suffixes))
    (folder / f"offset.{number}").write_bytes(begins.astype("<u8").tobytes())


@settings(max_examples=60, deadline=None)
@given(DOCUMENTS, st.lists(st.sampled_from(USED), min_size=1, max_size=12), st.sampled_from([2, 4]))
def test_answers_are_those_of_our_own_index(
    tmp_path_factory: pytest.TempPathFactory, documents: list[list[int]], query: list[int], width: int
) -> None:
    folder = tmp_path_factory.mktemp("shards")
    half = max(1, len(documents) // 2)
    shards = [part for part in (documents[:half], documents[half:]) if part]
    for number, part in enumerate(shards):
        write_shard(folder, number, part, width)
    theirs = read_infini_gram(folder, VOCAB)
    ours = SuffixIndex.joined([SuffixIndex.build(Corpus.from_ids(part, VOCAB)) for part in shards])
    run = np.array(query)
    assert [theirs.document(number).tolist() for number in range(len(theirs))] == documents
    for length in range(1, len(query) + 1):
        assert theirs.count(run[:length]) == ours.count(run[:length])
        assert theirs.find(run[:length]) == ours.find(run[:length])
    matched = ours.match(run)
    assert theirs.match(run).lengths.tolist() == matched.lengths.tolist()
    assert (theirs.match(run).counts == matched.counts)[matched.lengths > 0].all()
    # The last document of a shard ends without a separator, so that what follows it is not counted there.
    mine, found = ours.context(run), theirs.context(run)
    last = [[*part[-1], VOCAB.end] for part in shards]
    if mine.length == found.length > 0:
        ends = sum(each[len(each) - 1 - mine.length : -1] == query[len(query) - mine.length :] for each in last)
        expected = dict(zip(mine.tokens.tolist(), mine.counts.tolist(), strict=True))
        expected[VOCAB.end] = expected.get(VOCAB.end, 0) - ends
        assert dict(zip(found.tokens.tolist(), found.counts.tolist(), strict=True)) == {
            id: count for id, count in expected.items() if count
        }
        assert (np.diff(found.tokens) > 0).all()


def test_an_index_of_bytes(tmp_path: Path) -> None:
    write_shard(tmp_path, 0, [list(b"the cat sat on the mat"), list(b"the dog")], 1)
    assert is_infini_gram(tmp_path)
    tokenizer = ByteTokenizer()
    index = read_infini_gram(tmp_path, tokenizer.vocab)
    assert index.count(tokenizer.encode("the ")) == 3
    assert tokenizer.decode(index.document(1).tolist()) == "the dog"
    everything = index.context(np.zeros(0, np.int64))
    assert everything.length == 0
    assert dict(everything.likeliest(300))[ord("t")] == 6
    assert everything.counts.sum() == len(b"the cat sat on the matthe dog") + 1


def test_files_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    documents = [[2, 3, 599], [2, 3]]

    def damaged(name: str, size: int) -> str:
        write_shard(tmp_path, 0, documents, 2)
        (tmp_path / name).write_bytes((tmp_path / name).read_bytes()[:size])
        with pytest.raises(InputError) as refused:
            read_infini_gram(tmp_path, VOCAB)
        return str(refused.value)

    assert "table.0" in damaged("table.0", 5)
    assert "do not fit" in damaged("tokenized.0", 8)
    assert "expected 8 for each document" in damaged("offset.0", 12)
    assert "cannot be read" in damaged("offset.0", 0)
    write_shard(tmp_path, 0, documents, 2)
    (tmp_path / "offset.0").write_bytes(np.array([0, 100], "<u8").tobytes())
    with pytest.raises(InputError, match="do not rise"):
        read_infini_gram(tmp_path, VOCAB)
    write_shard(tmp_path, 0, documents, 2)
    fewer = read_infini_gram(tmp_path, Vocab(["<unk>", "</s>", "a", "b"]))
    with pytest.raises(InputError, match="holds token 599, but the tokenizer has 4"):
        fewer.document(0)
    with pytest.raises(InputError, match=r"no file tokenized\.0"):
        read_infini_gram(tmp_path / "nowhere", VOCAB)
    (tmp_path / "table.0").write_bytes(bytes(range(250, 250 - 7, -1)))  # entries that point outside the text
    broken = read_infini_gram(tmp_path, VOCAB)
    broken.count(np.array([2, 3]))
    broken.context(np.array([2, 3]))
