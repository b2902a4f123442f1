"""What the sources say of tokenizers, run."""

from __future__ import annotations

import ast
import importlib.util
import itertools
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from numpy.testing import assert_array_equal

from foreword.lessons.examples import illustrative_tokenizer
from foreword.text.block import blocks_of
from foreword.text.datasets import dataset
from foreword.text.embedded import embedded_text
from foreword.text.sources import read_blocks
from foreword.tokens.bpe import BPETokenizer
from foreword.tokens.characters import CharacterTokenizer
from foreword.tokens.counting import Counter
from foreword.tokens.merges import Kind, Merge
from foreword.tokens.plain import learn_merges
from foreword.tokens.words import WordTokenizer

TESTS = Path(__file__).parents[1]

Report = Callable[[str, object], None]
"""What pytest's ``record_property`` is: it puts a number that was measured into the test report."""


@cache
def prose() -> list[str]:
    """English that every machine has."""
    return embedded_text("train")[:2000]


def tokens(tokenizer: BPETokenizer, text: str) -> list[str]:
    return [tokenizer.vocab[id] for id in tokenizer.encode(text).tolist()]


def data_file(name: str, split: str | None = None) -> str:
    return str(dataset(name).path(split, download=False))


# K01


def test_k01_a_typo_is_unknown_to_words_and_a_valid_sequence_to_subwords() -> None:
    """K01: a model of words cannot even look up "catt"; one of subwords spells it with tokens it knows."""
    texts = ["the cat sat", "the cat chases the rat", "a cat"] * 3
    words = WordTokenizer().fit(texts)
    ids = words.encode("the catt sat").tolist()
    assert [words.vocab[id] for id in ids] == ["the", "<unk>", "sat"]
    assert words.decode(ids) == "the <unk> sat"

    for kind in ("bytes", "characters"):
        subwords = BPETokenizer(300, kind=kind).fit(texts)
        ids = subwords.encode("the catt sat").tolist()
        assert all(0 <= id < len(subwords.vocab) for id in ids)
        assert subwords.vocab.unknown not in ids
        assert subwords.vocab.end not in ids
        assert subwords.decode(ids) == "the catt sat"
        assert any("cat" in token for token in tokens(subwords, "the catt sat"))


def test_k01_punctuation_and_languages_without_blanks_break_words() -> None:
    """K01: "mat." is not "mat", and a Japanese sentence is one unknown word; neither harms subwords."""
    texts = ["the cat sat on the mat", "数学は美しい"]
    words, subwords = WordTokenizer().fit(texts), BPETokenizer(300).fit(texts)
    assert words.encode("mat.").tolist() == [words.vocab.unknown]
    assert words.encode("美しい数学").tolist() == [words.vocab.unknown]
    assert WordTokenizer(split="punctuation").fit(texts).encode("mat.").tolist()[0] != words.vocab.unknown
    for text in ("mat.", "美しい数学"):
        assert subwords.decode(subwords.encode(text)) == text


# K02


def test_k02_characters_come_back_exactly_and_sequences_are_longer(
    record_property: Report,
) -> None:
    """K02: letters, digits, punctuation and white space all come back; the price is about six times the length."""
    text = "Letters, DIGITS 0123456789 & punctuation!? (“quoted”) — tabs\t, line\r\nends,  blanks; größer 漢字 😀"
    assert CharacterTokenizer().fit([text]).decode(CharacterTokenizer().fit([text]).encode(text)) == text

    characters, words = CharacterTokenizer().fit(prose()), WordTokenizer().fit(prose())
    lengths = {"characters": 0, "words": 0}
    for text in prose():
        ids = characters.encode(text)
        assert characters.decode(ids) == text
        lengths["characters"] += len(ids)
        lengths["words"] += len(words.encode(text))
    ratio = lengths["characters"] / lengths["words"]
    record_property("K02 characters for each word", round(ratio, 2))
    assert 4 < ratio < 8


# K03


@pytest.mark.parametrize("size", [300, 1000, 3000])
def test_k03_bpe_as_the_sources_list_it(size: int) -> None:
    """K03: start from characters, never merge over the start of white space, stop at the size that was asked for."""
    tokenizer = BPETokenizer(size, kind="characters").fit(prose())
    assert len(tokenizer.vocab) == size
    characters = sorted({character for text in prose() for character in text})
    assert tokenizer.vocab.tokens[: 2 + len(characters)] == ["<unk>", "</s>", *characters]
    learnt = tokenizer.vocab.tokens[2 + len(characters) :]
    assert len(learnt) == len(tokenizer.record_) > 100
    assert not any(character.isspace() for token in learnt for character in token[1:])
    assert any(token.startswith(" ") for token in learnt)


def test_k03_white_space_of_every_kind_only_ever_begins_a_token() -> None:
    r"""K03: tabs, line ends and the separators U+001C to U+001F too, whatever stands beside them most often."""
    texts = ["a\tb\nc\x1cd  e\u3000f \x85g"] * 50 + ["\t\t\t\t  \n\n\n"] * 50
    tokenizer = BPETokenizer(60, kind="characters").fit(texts)
    assert not any(character.isspace() for token in tokenizer.vocab for character in token[1:])
    assert all(tokenizer.decode(tokenizer.encode(text)) == text for text in texts)


def test_k03_the_most_frequent_pair_comes_first_and_ties_go_to_the_smaller_ids() -> None:
    """K03: every step is the best of all pairs there are, counted anew; on a tie the pair with the smaller ids."""
    tokenizer = BPETokenizer(26, kind="characters").fit(["ab ab cd cd cd ef ef"])
    names = tokenizer.vocab.tokens
    steps = [(names[step.left], names[step.right], step.count) for step in tokenizer.steps()]
    assert steps == [
        *[(" ", "c", 3), (" c", "d", 3)],  # " c" before "cd", which is as frequent: the blank has the smaller id
        *[(" ", "e", 2), ("a", "b", 2), (" e", "f", 2)],
        (" ", "ab", 1),
    ]


def test_k03_naive_and_fast_trainers_give_the_same_merges() -> None:
    """K03: the plain trainer, fed with the same characters, makes the same merges with the same counts."""
    texts = prose()[:60]
    size = 260
    fast = BPETokenizer(size, kind="characters").fit(texts)
    pieces = [piece for text in texts for piece in fast.pieces(text)]
    distinct = list(dict.fromkeys(pieces))
    characters = sorted({character for text in texts for character in text})
    spellings = [b"\xff<unk>", b"\xff</s>", *(character.encode() for character in characters)]
    ids = {character: id for id, character in enumerate(characters, 2)}
    words = [[ids[character] for character in piece] for piece in distinct]
    plain = list(learn_merges(words, [pieces.count(piece) for piece in distinct], spellings, size))
    assert plain == list(fast.steps())
    assert len(plain) == size - len(characters) - 2
    assert [spelling.decode() for spelling in spellings[2:]] == fast.vocab.tokens[2:]


def test_k03_without_cutting_first_the_rule_gives_the_same_merges() -> None:
    """K03: the rule as it is written, on the running text: pairs whose second token begins with white space are
    passed over. Cutting the text before white space once, as we do, is the same.
    """
    texts = prose()[:12]
    size = 120
    ours = BPETokenizer(size, kind="characters").fit(texts)
    assert list(_by_the_letter(texts, size)) == list(ours.steps())


def _by_the_letter(texts: list[str], size: int) -> list[Merge]:
    characters = sorted({character for text in texts for character in text})
    names = ["<unk>", "</s>", *characters]
    held = [[names.index(character) for character in text] for text in texts]
    found = []
    while len(names) < size:
        counts: dict[tuple[int, int], int] = {}
        for text in held:
            for pair in itertools.pairwise(text):
                if not names[pair[1]][0].isspace():
                    counts[pair] = counts.get(pair, 0) + 1
        (left, right), count = min(counts.items(), key=lambda item: (-item[1], item[0]))
        names.append(names[left] + names[right])
        found.append(Merge(left, right, len(names) - 1, count))
        held = [_merged(text, left, right, len(names) - 1) for text in held]
    return found


def _merged(text: list[int], left: int, right: int, merged: int) -> list[int]:
    rewritten: list[int] = []
    for id in text:
        if rewritten and rewritten[-1] == left and id == right:
            rewritten[-1] = merged
        else:
            rewritten.append(id)
    return rewritten


@pytest.mark.parametrize("kind", ["bytes", "characters"])
def test_k03_the_round_trip_loses_nothing(kind: Kind) -> None:
    """K03: whatever was in the training text comes back to the letter; with bytes anything at all does."""
    tokenizer = BPETokenizer(2000, kind=kind).fit(prose())
    for text in prose():
        assert tokenizer.decode(tokenizer.encode(text)) == text
    if kind == "bytes":
        for text in ("größer 漢字 😀\r\n\t\x00", "  two  blanks  ", "\ufffd\u2028"):
            assert tokenizer.decode(tokenizer.encode(text)) == text


# K04


def test_k04_the_unbelievable_refrigerator() -> None:
    """K04: The, un, believ, able, refrig, erator, with a vocabulary made by hand and shipped.

    A token holds the blank before it; without the blanks these are the six of the source, with them they are the text.
    """
    tokenizer = illustrative_tokenizer()
    text = "The unbelievable refrigerator"
    found = tokens(tokenizer, text)
    assert [token.strip() for token in found] == ["The", "un", "believ", "able", "refrig", "erator"]
    assert "".join(found) == text
    assert tokenizer.decode(tokenizer.encode(text)) == text


# K05


@pytest.mark.data
def test_k05_five_forms_of_a_word_share_its_stem(record_property: Report) -> None:
    """K05: after training on 100 MB of Wikipedia (enwiki), by the sources' rule with 16,000 tokens, cook, cooks,
    cooked, cooking and cooker all contain the token cook.

    It is no law: with 32,000 tokens "cooking" is frequent enough to be a token of its own. The smaller vocabulary is
    the larger one stopped earlier (K06).
    """
    large = BPETokenizer(32_000, kind="characters").fit_blocks(read_blocks(data_file("enwiki")))
    small = recipe().smaller(large, 16_000)
    words = ("cook", "cooks", "cooked", "cooking", "cooker")
    forms, longer = ({word: tokens(each, f" {word}") for word in words} for each in (small, large))
    record_property("K05 trained on enwiki, 16,000 tokens", str(forms))
    record_property("K05 trained on enwiki, 32,000 tokens", str(longer))
    assert all(found[0] == " cook" for found in forms.values()), forms
    assert [found[1:] for found in forms.values()] == [[], ["s"], ["ed"], ["ing"], ["er"]]
    assert longer["cooking"] == [" cooking"]
    assert longer["cook"] == [" cook"]


# K06


@cache
def recipe() -> ModuleType:
    path = TESTS.parent / "recipes" / "vocabulary_sweep.py"
    spec = importlib.util.spec_from_file_location("vocabulary_sweep", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["vocabulary_sweep"] = module  # where its dataclass looks for its own types
    spec.loader.exec_module(module)
    return module


def test_k06_from_characters_to_whole_words_tokens_per_word_fall(record_property: Report) -> None:
    """K06: the curve of recipes/vocabulary_sweep.py: about six tokens a word at its start, exactly one at its end."""
    texts = prose()
    points = list(recipe().sweep(lambda: blocks_of(texts), (200, 500, 1000, 2000, 5000, 50_000)))
    sizes, curve = [point.vocabulary for point in points], [point.tokens_per_word for point in points]
    record_property("K06 tokens per word by vocabulary size", str(dict(zip(sizes, curve, strict=True))))
    assert sizes == sorted(sizes)
    assert len(points) >= 6
    assert all(left > right for left, right in itertools.pairwise(curve))
    characters = {character for text in texts for character in text}
    assert sizes[0] == len(characters) + 2
    assert points[0].tokens == sum(map(len, texts))
    assert curve[-1] == 1.0
    assert points[-1].words == sum(len(text.split()) for text in texts)


def test_k06_a_smaller_vocabulary_is_the_larger_one_stopped_earlier() -> None:
    """K06: which is why one training gives the whole curve."""
    counted = blocks_of(prose())
    large = BPETokenizer(2000, kind="characters").fit_blocks(counted)
    small = BPETokenizer(700, kind="characters").fit(prose())
    cut = recipe().smaller(large, 700)
    assert cut.vocab == small.vocab
    assert_array_equal(cut.record_, small.record_)


@pytest.mark.data
def test_k06_32000_tokens_in_bounded_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """K06: with 32 MB for the counts instead of a gigabyte they are spilt to disk again and again; nothing changes.

    How much a training takes in all is measured by ``make bench``: 2 GB of text in less than 1 GB of memory.
    """
    path = data_file("wikitext-2", "train")
    free = BPETokenizer(32_000).fit_blocks(read_blocks(path))
    spilt: list[int] = []
    spill = Counter._spill

    def watched(counter: Counter, table: Any) -> None:
        spilt.append(table.memory())
        spill(counter, table)

    monkeypatch.setattr(Counter, "_spill", watched)
    tokenizer = BPETokenizer(32_000)
    bounded = tokenizer.fit_counted(tokenizer.count(read_blocks(path), threads=2, memory=32 << 20))
    assert len(free.vocab) == len(bounded.vocab) == 32_000
    assert len(spilt) > 2  # more often than the once at the end for each of two threads
    assert bounded.vocab == free.vocab
    assert_array_equal(bounded.record_, free.record_)


# K07


@pytest.mark.parametrize("kind", ["bytes", "characters"])
def test_k07_source_files_come_back_byte_for_byte(kind: Kind) -> None:
    """K07: code needs no rules of its own. The bytes were trained on prose alone, the characters on the code itself."""
    library = Path(ast.__file__).parent
    files = [library / name for name in ("ast.py", "json/decoder.py", "re/_parser.py", "string.py", "this.py")]
    code = [file.read_bytes() for file in files]
    tokenizer = BPETokenizer(2000, kind=kind).fit(prose() if kind == "bytes" else [text.decode() for text in code])
    for text in code:
        ids = tokenizer.encode(text)
        assert tokenizer.decode_bytes(ids) == text
        assert len(ids) < len(text)
