"""An index of texts: words in, counts and places out."""

from __future__ import annotations

from pathlib import Path

import pytest

from foreword.errors import InputError
from foreword.pipeline.index import TextIndex
from foreword.storage.folder import load, save
from foreword.tokens.characters import ByteTokenizer

TEXTS = ["to be or not to be that is the question", "tis nobler in the mind", "to be or not to be they say"]


@pytest.fixture
def index() -> TextIndex:
    return TextIndex().fit(TEXTS, ["hamlet", "nobler", "say"])


def test_words_are_counted_and_found(index: TextIndex) -> None:
    assert index.count("to be") == 4
    assert index.count("to be that") == 1
    assert index.count("be to") == 0
    places = index.find("not to")
    assert [(place.name, place.offset, place.after) for place in places] == [
        ("hamlet", 3, "be that is the question"),
        ("say", 3, "be they say"),
    ]
    assert index.document(places[1].document) == TEXTS[2]


def test_a_word_that_the_index_has_not_never_matches(index: TextIndex) -> None:
    assert index.count("zebra") == index.count("to zebra be") == 0
    assert index.find("zebra") == []
    assert index.context("zebra or not to").words == [("be", 2)]
    assert [(span.begin, span.end) for span in index.spans("to be zebra in the")] == [(0, 2), (3, 5)]


def test_a_text_may_say_unk_and_mean_it() -> None:
    index = TextIndex().fit(["the <unk> of <unk>", "the cat"])
    assert index.count("<unk>") == 2
    assert index.count("zebra") == 0
    assert index.count("of <unk>") == 1


def test_the_context_is_the_longest_that_occurs(index: TextIndex) -> None:
    found = index.context("in the be or not to be", k=1)
    assert (found.matched, found.length, found.count, found.words) == ("be or not to be", 5, 2, [("that", 1)])
    assert index.context("").length == 0


def test_spans_say_where_they_came_from(index: TextIndex) -> None:
    spans = index.spans("he said to be or not to be that is it in the mind", least=3)
    assert [(span.text, span.count, span.name) for span in spans] == [
        ("to be or not to be that is", 1, "hamlet"),
        ("in the mind", 1, "nobler"),
    ]


def test_bytes_find_any_string() -> None:
    index = TextIndex(ByteTokenizer()).fit(["naïve café", "café au lait"])
    assert index.count("afé") == 2
    assert index.find("ve c")[0].text == "ve c"


def test_texts_are_appended_with_their_new_words(index: TextIndex) -> None:
    index.append(["to be or zebra", "a zebra"], ["z1", "z2"])
    assert (index.count("to be or"), index.count("zebra"), len(index)) == (3, 2, 5)
    assert [place.name for place in index.find("zebra")] == ["z1", "z2"]
    assert index.context("or").words == [("not", 2), ("zebra", 1)]
    assert index.document(0) == TEXTS[0]


def test_several_indexes_are_asked_as_one(index: TextIndex) -> None:
    other = TextIndex(index.tokenizer).fit(["in the mind to be"], ["other"])
    both = TextIndex.joined([index, other])
    assert both.count("in the mind") == 2
    assert both.find("mind to")[0].name == "other"
    with pytest.raises(InputError, match="share one vocabulary"):
        TextIndex.joined([index, TextIndex().fit(["x"], ["x"])])


def test_saved_and_loaded_it_answers_the_same(index: TextIndex, tmp_path: Path) -> None:
    save(index, tmp_path / "index")
    loaded = load(tmp_path / "index")
    assert loaded.find("to be") == index.find("to be")
    save(loaded, tmp_path / "again")
    for file in (tmp_path / "index").iterdir():
        assert file.read_bytes() == (tmp_path / "again" / file.name).read_bytes()


def test_nothing_is_refused_and_names_have_to_fit() -> None:
    with pytest.raises(InputError, match="empty"):
        TextIndex().fit([])
    with pytest.raises(InputError, match="1 names for 2 documents"):
        TextIndex().fit(["a", "b"], ["a"])
    with pytest.raises(InputError, match="all documents of an index have names"):
        TextIndex().fit(["a"], ["a"]).append(["b"])
