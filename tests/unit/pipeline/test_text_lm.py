from __future__ import annotations

import math
from pathlib import Path

import pytest

from foreword.errors import ForewordError, InputError, SettingError
from foreword.measures.perplexity import measure
from foreword.ngram.unigram import UnigramLM
from foreword.pipeline.language import TextLM
from foreword.protocols import Parts
from foreword.storage.folder import load, save
from foreword.tokens.bpe import BPETokenizer
from foreword.tokens.characters import ByteTokenizer
from foreword.tokens.corpus import Corpus
from foreword.tokens.words import WordTokenizer

TEXTS = ["the cat sat", "the dog sat", "the cat ran"]


@pytest.fixture
def lm() -> TextLM:
    return TextLM(WordTokenizer(), UnigramLM(add=0)).fit(TEXTS)


def test_by_hand(lm: TextLM) -> None:
    """Nine words and three ends: the 3, cat 2, </s> 3 of 12."""
    assert lm.score("the cat") == pytest.approx(math.log(3 / 12 * 2 / 12 * 3 / 12), rel=1e-14)
    assert lm.score("") == pytest.approx(math.log(3 / 12), rel=1e-14)
    assert lm.score("the zebra") == -math.inf


def test_measures_are_those_of_the_ids(lm: TextLM) -> None:
    corpus = Corpus.from_texts(["the cat", "sat"], lm.tokenizer)
    assert lm.measure(["the cat", "sat"]) == measure(lm.model, corpus)
    assert lm.perplexity(iter(["the cat", "sat"])) == measure(lm.model, corpus).perplexity


def test_an_iterator_can_be_learnt_from(lm: TextLM) -> None:
    again = TextLM(WordTokenizer(), UnigramLM(add=0)).fit(iter(TEXTS), valid=iter(["the cat"]))
    assert again.score("the dog sat") == lm.score("the dog sat")


def test_what_has_already_learnt_is_joined_as_it_is(lm: TextLM) -> None:
    assert TextLM(lm.tokenizer, lm.model).score("the cat") == lm.score("the cat")


def test_surprisal_names_each_token(lm: TextLM) -> None:
    told = lm.surprisal("the cat zebra")
    assert [token for token, _ in told] == ["the", "cat", "<unk>", "</s>"]
    assert [bits for _, bits in told] == pytest.approx([2, math.log2(6), math.inf, 2])


def test_surprisal_of_parts_of_a_character() -> None:
    lm = TextLM(ByteTokenizer(), UnigramLM()).fit(["aé"])
    tokens = [token for token, _ in lm.surprisal("aé")]
    assert len(tokens) == 4
    assert tokens[0] == "a"
    assert all(token and "\ufffd" not in token for token in tokens)


def test_generated_text_is_the_stream_joined(lm: TextLM) -> None:
    for prompt in ("", "the cat"):
        pieces = list(lm.stream(prompt, max_tokens=20, seed=5))
        assert "".join(pieces) == lm.generate(prompt, max_tokens=20, seed=5)
        assert all(pieces)


def test_generated_text_goes_on_from_the_prompt(lm: TextLM) -> None:
    texts = {lm.generate("the", max_tokens=1, seed=seed) for seed in range(20)}
    assert texts <= {"", " the", " cat", " sat", " dog", " ran"}
    assert len(texts) > 2


def test_the_same_seed_gives_the_same_text(lm: TextLM) -> None:
    assert lm.generate(seed=1) == lm.generate(seed=1)
    assert lm.generate(temperature=0, max_tokens=2) in ("", "the the")


def test_settings_are_checked_at_the_call(lm: TextLM) -> None:
    with pytest.raises(SettingError, match="temperature"):
        lm.stream(temperature=-1)


@pytest.mark.parametrize(
    "lm",
    [
        TextLM(WordTokenizer(min_count=2, lowercase=True), UnigramLM(add=0.5)),
        TextLM(ByteTokenizer(), UnigramLM()),
        TextLM(BPETokenizer(vocab_size=270), UnigramLM()),
    ],
    ids=["word", "byte", "bpe"],
)
def test_saved_and_loaded_it_speaks_the_same(lm: TextLM, tmp_path: Path) -> None:
    lm.fit(TEXTS)
    save(lm, tmp_path / "model")
    loaded = load(tmp_path / "model")
    assert isinstance(loaded, TextLM)
    assert type(loaded.tokenizer) is type(lm.tokenizer)
    assert loaded.score("the cat saw größer") == lm.score("the cat saw größer")
    assert loaded.generate("the", seed=9) == lm.generate("the", seed=9)


def test_two_tokenizers_make_no_text_model(lm: TextLM) -> None:
    parts = lm.to_parts()
    parts.settings["model"] = parts.settings["tokenizer"]
    parts.arrays.update({name.replace("tokenizer.", "model."): array for name, array in parts.arrays.items()})
    with pytest.raises(ValueError, match="make no text model"):
        TextLM.from_parts(parts)


def test_parts_without_a_model_are_refused() -> None:
    with pytest.raises((ValueError, LookupError, TypeError)):
        TextLM.from_parts(Parts({}))


def test_a_single_string_is_not_a_list_of_texts(lm: TextLM) -> None:
    for use in (lm.fit, lm.perplexity, lm.measure):
        with pytest.raises(InputError, match="single string"):
            use("the cat")


def test_an_unfitted_one_says_so() -> None:
    with pytest.raises(ForewordError, match="fit"):
        TextLM(WordTokenizer(), UnigramLM()).score("the cat")
