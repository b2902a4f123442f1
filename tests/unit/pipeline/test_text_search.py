"""Text in, hits out."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from foreword import BM25, BPETokenizer, CosineSearch, TextSearch, WordTokenizer, load, save
from foreword.errors import ForewordError, InputError, SettingError
from foreword.pipeline.search import Hit
from foreword.search.documents import BEFORE, WIDTH, Names, Strings, TextBuffer, snippet
from foreword.storage.folder import pack, unpack
from foreword.text.block import Block, blocks_of

TEXTS = [
    "A happy man met Happy people.",
    "The people of the city are glad.",
    "",
    "A dishwasher, broken; the people wash by hand.",
]
NAMES = ["man", "city", "nothing", "kitchen"]


def search(**settings: Any) -> TextSearch:
    return TextSearch(**settings).fit(TEXTS, NAMES)


# Asking


def test_hits_have_all_that_is_needed_to_show_them() -> None:
    first, second, third = search().query("happy PEOPLE")
    assert first == Hit(1, first.score, 0, "man", TEXTS[0], ((2, 7), (16, 21), (22, 28)))
    assert (second.rank, second.document, second.name) == (2, 1, "city")
    assert third.name == "kitchen"
    assert first.score > second.score > third.score > 0
    assert [second.snippet[start:stop] for start, stop in second.marks] == ["people"]


def test_empty_and_unknown_queries_find_nothing() -> None:
    assert search().query_batch(["", "  ", "zebra", "\0", "unicorn zebra"]) == [[], [], [], [], []]
    assert search().query_batch([]) == []
    assert [hit.name for hit in search().query("zebra glad")] == ["city"]


def test_k_may_be_larger_than_there_are_documents() -> None:
    assert [hit.name for hit in search().query("the people", k=1000)] == ["city", "kitchen", "man"]
    assert len(search().query("people", k=2)) == 2
    with pytest.raises(SettingError, match="k is 0"):
        search().query("people", k=0)


def test_a_stream_of_queries_is_answered_one_for_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("foreword.pipeline.search.QUERIES_AT_ONCE", 2)
    queries = ["happy", "", "glad people", "the", "zebra"]
    assert list(search().stream(iter(queries), 2)) == [search().query(query, 2) for query in queries]


def test_stop_words_are_left_out_of_queries_only_if_asked() -> None:
    assert [hit.name for hit in search().query("the dishwasher")] == ["kitchen", "city"]
    stopped = search(stop_words=["the", "of", "unseen"])
    assert [hit.name for hit in stopped.query("The dishwasher")] == ["kitchen"]
    assert stopped.query_batch(["the of", "the glad the", ""]) == [[], stopped.query("glad"), []]
    assert search(stop_words="the").query("the") == []


def test_reasons_sum_to_the_score() -> None:
    made = search()
    for hit in made.query("the happy happy people zebra"):
        reasons = made.explain("the happy happy people zebra", hit.document)
        assert set(reasons) == {"the", "happy", "people"}
        assert sum(reasons.values()) == pytest.approx(hit.score, rel=1e-6)


def test_documents_can_be_read_back() -> None:
    made = search()
    assert [made.text(number) for number in range(len(made))] == TEXTS
    assert [made.name(number) for number in range(len(made))] == NAMES
    for ask in (made.text, made.name):
        with pytest.raises(SettingError, match="document 4: expected 0 to 3"):
            ask(4)


def test_without_names_and_texts() -> None:
    bare = TextSearch(keep_text=False).fit(TEXTS)
    hit = bare.query("glad")[0]
    assert (hit.name, hit.snippet, hit.marks) == ("1", "", ())
    with pytest.raises(SettingError, match="stores no texts"):
        bare.text(0)


# Tokenizers and rankers


def test_a_tokenizer_that_has_learnt_keeps_its_vocabulary() -> None:
    tokenizer = WordTokenizer(lowercase=True).fit(["people of the city"])
    made = TextSearch(tokenizer, CosineSearch()).fit(TEXTS)
    assert made.vocab is tokenizer.vocab
    assert made.query("happy") == []
    assert [hit.document for hit in made.query("city")] == [1]


def test_pieces_of_words_can_be_searched_for() -> None:
    for tokenizer in (BPETokenizer(vocab_size=300), BPETokenizer(vocab_size=300).fit(TEXTS)):
        made = TextSearch(tokenizer, BM25("bm25+")).fit(iter(TEXTS), iter(NAMES))
        assert made.query(" people")[0].document in (0, 1, 3)
        assert "people" in made.query(" people")[0].snippet


def test_what_cannot_be_indexed_is_refused() -> None:
    with pytest.raises(InputError, match="put it in a list"):
        TextSearch().fit("one string")
    with pytest.raises(InputError, match="put it in a list"):
        search().query_batch("one string")
    with pytest.raises(InputError, match="2 names for 4 documents"):
        TextSearch().fit(TEXTS, ["one", "two"])
    with pytest.raises(InputError, match="from 1 to"):
        TextSearch().fit([])
    with pytest.raises(SettingError, match="this BPETokenizer has no vocabulary yet"):
        TextSearch(BPETokenizer()).fit_blocks(blocks_of(TEXTS))
    with pytest.raises(ForewordError, match="learnt nothing yet"):
        len(TextSearch())


# Streams


def test_a_document_longer_than_a_block_stays_one(tmp_path: Path) -> None:
    pieces = [Block.from_texts(["one glad", "two glad and "], open=True), Block.from_texts(["happy "], open=True)]
    pieces.append(Block.from_texts(["people", "three"]))
    for scratch in (None, tmp_path):
        made = TextSearch().fit_blocks(iter(pieces), threads=2, scratch=scratch)
        assert [made.text(number) for number in range(len(made))] == ["one glad", "two glad and happy people", "three"]
        assert [hit.document for hit in made.query("happy people glad")] == [1, 0]
    assert list(tmp_path.iterdir()) == []


def test_a_name_may_cover_several_documents() -> None:
    names = Names()
    for name, documents in (("a.txt", 2), ("empty", 0), ("b.txt", 1), ("ü", 10)):
        names.add(name, documents)
    table = names.finished()
    assert [table[number] for number in (0, 1, 2, 3, 12)] == ["a.txt#1", "a.txt#2", "b.txt", "ü#1", "ü#10"]
    table.check(13)
    with pytest.raises(ValueError, match="cover 12 documents"):
        table.check(12)


def test_nothing_is_kept_of_nothing(tmp_path: Path) -> None:
    for folder in (None, tmp_path):
        with TextBuffer(folder) as keeper:
            kept = keeper.finished()
        assert len(kept) == 0
        kept.check("texts")


# Snippets


def words(count: int, word: str = "word") -> str:
    return " ".join([word] * count)


def test_a_snippet_shows_the_stretch_with_the_most_words() -> None:
    text = f"happy {words(100)} happy people {words(100)} people"
    shown = snippet(text, ["happy", "people"])
    assert "word happy people word" in shown.text
    assert shown.text.startswith("… ")
    assert shown.text.endswith(" …")
    assert [shown.text[start:stop] for start, stop in shown.marks] == ["happy", "people"]
    assert WIDTH - 2 * BEFORE < len(shown.text) < WIDTH + 2 * BEFORE


def test_a_snippet_is_one_line_and_whole_words_are_marked() -> None:
    shown = snippet("the\n cat\t sat on THE mat, then", ["the", "at"])
    assert shown.text == "the cat sat on THE mat, then"
    assert shown.marks == ((0, 3), (15, 18))
    assert snippet("the cat sat on THE mat", ["the"], any_case=False).marks == ((0, 3),)


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("", ["word"]),
        ("no match at all", ["zebra"]),
        ("no words", []),
        ("x" * 1000, ["zebra"]),
        ("x" * 1000, ["x" * 1000]),
        (words(50, "ab") + " (c++) " + words(50, "ab"), ["(c++)", "c"]),
        ("日本語の文書" * 50, ["本語"]),
        (words(30_000, "people"), ["people"]),
        (" \n" * 500, ["word"]),
    ],
)
def test_snippets_of_odd_texts_stay_short(text: str, asked: list[str]) -> None:
    shown = snippet(text, asked)
    assert len(shown.text) <= max(WIDTH + 3 * BEFORE, max(map(len, asked), default=0) + 2 * BEFORE + 4)
    assert all(0 <= start < stop <= len(shown.text) for start, stop in shown.marks)
    assert "\n" not in shown.text


# Saving


@pytest.mark.parametrize("ranker", [BM25(), BM25("bm25l", k1=1.1), CosineSearch(sublinear=True)], ids=repr)
def test_a_saved_search_answers_the_same(ranker: Any, tmp_path: Path) -> None:
    made = search(ranker=ranker, stop_words=["of"])
    save(made, tmp_path / "index")
    loaded = load(tmp_path / "index")
    queries = ["happy people", "the of city", "", "zebra", "broken dishwasher."]
    assert loaded.query_batch(queries) == made.query_batch(queries)
    assert [loaded.text(number) for number in range(4)] == TEXTS
    assert loaded.stop_words == ["of"]
    save(loaded, tmp_path / "again")
    assert (tmp_path / "again" / "model.json").read_bytes() == (tmp_path / "index" / "model.json").read_bytes()


def test_an_index_without_texts_and_names_is_saved_too(tmp_path: Path) -> None:
    save(TextSearch(keep_text=False).fit(TEXTS), tmp_path / "index")
    assert load(tmp_path / "index").query("glad")[0].name == "1"


DAMAGES: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "texts of another type": ("texts", lambda array: array.astype(np.int16)),
    "too few texts": ("text_offsets", lambda array: array[:-1]),
    "texts that end elsewhere": ("text_offsets", lambda array: array + np.array([0, 0, 0, 0, 1])),
    "texts that fall back": ("text_offsets", lambda array: array[[0, 2, 1, 3, 4]]),
    "names that fall back": ("name_offsets", lambda array: array[::-1].copy()),
    "names of too many documents": ("name_firsts", lambda array: array * 2),
    "names without firsts": ("name_firsts", lambda array: array[:2]),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_arrays_that_do_not_fit_are_refused(damage: str) -> None:
    packed = pack(search())
    name, change = DAMAGES[damage]
    packed.arrays[name] = change(packed.arrays[name])
    with pytest.raises((ValueError, KeyError)):
        unpack(packed)


def test_a_tokenizer_is_no_ranker() -> None:
    packed = pack(search())
    settings: Any = packed.settings["settings"]
    settings["ranker"] = settings["tokenizer"]
    with pytest.raises(ValueError, match="make no text search"):
        unpack(packed)


def test_bytes_that_are_no_text_are_shown_as_such() -> None:
    assert Strings(np.array([0x61, 0xFF], np.uint8), np.array([0, 2]))[0] == "a\ufffd"


# --- changing an index

NOTES = ["the cat sat on the mat", "a dog ran", "the cat and the dog", "birds sing"]


def hits_of(search: TextSearch, query: str) -> list[tuple[str, float]]:
    return [(hit.name, round(hit.score, 9)) for hit in search.query(query)]


def test_added_documents_are_found_as_if_indexed_together() -> None:
    names = ["a", "b", "c", "d"]
    grown = TextSearch().fit(NOTES[:2], names[:2]).add(NOTES[2:], names[2:])
    whole = TextSearch().fit(NOTES, names)
    for query in ("cat", "dog sing", "birds"):
        assert hits_of(grown, query) == hits_of(whole, query)
    assert [grown.text(index) for index in range(4)] == NOTES


def test_a_document_of_the_same_name_is_replaced() -> None:
    search = TextSearch().fit(NOTES, ["a", "b", "c", "d"]).add(["a whale swims"], ["b"])
    assert len(search) == 4
    assert [name for name, _ in hits_of(search, "whale")] == ["b"]
    assert [name for name, _ in hits_of(search, "ran")] == []
    assert search.name(3) == "b"


def test_documents_without_names_are_numbered_on() -> None:
    search = TextSearch().fit(NOTES[:2]).add(NOTES[2:])
    assert [name for name, _ in hits_of(search, "birds")] == ["3"]


def test_removed_documents_are_gone() -> None:
    search = TextSearch().fit(NOTES, ["a", "b", "c", "d"]).remove(["c", "a"])
    assert [search.name(index) for index in range(len(search))] == ["b", "d"]
    assert hits_of(search, "cat") == []
    for names, said in ((["x"], "no document is named 'x'"), (["b", "d"], "at least one to stay")):
        with pytest.raises(InputError, match=said):
            search.remove(names)
    with pytest.raises(SettingError, match="stores no texts"):
        TextSearch(keep_text=False).fit(NOTES).remove(["0"])
    with pytest.raises(InputError, match="give names"):
        search.add(["more"])


def test_punctuation_in_a_query_is_ignored_unless_there_is_nothing_else() -> None:
    search = TextSearch().fit(["what is a cat ?", "why ? why ?", "a cat sleeps"], ["a", "b", "c"])
    assert hits_of(search, "cat?") == hits_of(search, "cat")
    assert [name for name, _ in hits_of(search, "cat?")] == ["c", "a"]
    assert {name for name, _ in hits_of(search, "?")} == {"a", "b"}
