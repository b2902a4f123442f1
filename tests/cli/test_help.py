"""``--help``: the settings of every kind with defaults and meanings, one name for the same thing, no types of flags."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
import typer

from foreword import kinds
from foreword.cli import app
from foreword.cli.settings import parse_settings
from foreword.cli.settings_help import described_settings, explained
from foreword.errors import SettingError
from foreword.tokens.vocab import Vocab

from .conftest import Foreword

TASKS: tuple[kinds.Task, ...] = ("language-model", "vectors", "classifier", "tagger", "tokenizer", "features")
TRAINED = [(name, kind) for task in TASKS for name, kind in kinds.trained_as(task).items()]
TRAINED += [(name, kinds.KINDS[name]) for name in ("seq2seq", "bm25", "cosine-search")]


def commands(group: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, (*path, name))
        else:
            yield (*path, name)


ALL = sorted(commands(typer.main.get_command(app)))


@pytest.mark.parametrize(("name", "kind"), TRAINED, ids=lambda each: each if isinstance(each, str) else each.name)
def test_every_setting_has_a_meaning(name: str, kind: kinds.Kind) -> None:
    for each in described_settings(name, kind):
        assert each.meaning, f"{name} has a setting {each.name} that no docstring explains"
        assert "\n" not in each.meaning


@pytest.mark.parametrize(
    ("call", "rows"),
    [
        (["train", "ngram"], [("order", "5"), ("smoothing", "modified-kneser-ney")]),
        (["train", "lstm"], [("hidden", "200"), ("epochs", "10"), ("dropout.input", "0.2")]),
        (["train", "transformer"], [("hidden", "")]),
        (["tag", "train"], [("rounds", "8"), ("scheme", "null")]),
        (["tag", "train", "--kind", "bilstm"], [("hidden", "200"), ("embedding", "100")]),
        (["classify", "train", "--kind=naive-bayes"], [("alpha", "1"), ("lowercase", "true")]),
        (["classify", "train"], [("C", "30"), ("split", "punctuation"), ("ngrams", "[1,2]"), ("sublinear", "true")]),
        (["classify", "train", "--features", "bag-of-words"], [("C", "30"), ("split", "punctuation"), ("binary", "")]),
        (["classify", "train", "--kind", "naive-bayes", "--features=tf-idf"], [("split", "words"), ("norm", "l2")]),
        (["classify", "train", "--features", "nothing"], [("C", "30"), ("sublinear", "true")]),
        (["tokenize", "train"], [("pattern", "gpt2")]),
        (["translate", "train"], [("hidden", "256"), ("attention", "")]),
        (["search", "index"], [("k1", "1.5")]),
    ],
)
def test_help_lists_the_settings_of_the_kind(foreword: Foreword, call: list[str], rows: list[tuple[str, str]]) -> None:
    result = foreword(*call, "--help")
    assert result.exit_code == 0
    shown = {line.split()[0]: line.split()[1:] for line in result.stdout.splitlines() if line.strip()}
    for name, default in rows:
        assert name in shown
        assert shown[name][0].startswith(default)
        assert len(shown[name]) > 1


@pytest.mark.parametrize("command", ALL, ids=" ".join)
def test_no_flag_or_argument_shows_a_type(foreword: Foreword, command: tuple[str, ...]) -> None:
    result = foreword(*command, "--help")
    assert result.exit_code == 0
    assert "<bool>" not in result.stdout
    assert "list[" not in result.stdout
    assert not re.search(r"<(int|float|str)( range)?>", result.stdout)


def test_arguments_are_shown_by_name(foreword: Foreword) -> None:
    assert "train [OPTIONS] KIND TEXT…" in foreword("train", "--help").stdout
    assert "train [OPTIONS] SOURCE [TARGET]" in foreword("translate", "train", "--help").stdout
    assert "score [OPTIONS] MODEL [FILE]" in foreword("score", "--help").stdout


def test_the_same_setting_has_one_name_and_old_names_work() -> None:
    for kind, old in (("transformer", "units"), ("seq2seq", "units"), ("bilstm-tagger", "units")):
        model = kinds.resolve(kinds.KINDS[kind].home)
        assert parse_settings(["hidden=8"], kind, model) == parse_settings([f"{old}=8"], kind, model) == {old: 8}
    built = kinds.build(kinds.KINDS["transformer"], {"hidden": 8, "heads": 2})
    assert built.units == 8
    with pytest.raises(typer.BadParameter, match=r"has no setting 'nothing': expected .*hidden"):
        parse_settings(["nothing=8"], "transformer", kinds.resolve(kinds.KINDS["transformer"].home))


def test_meanings_are_read_from_docstrings() -> None:
    text = """A model.

    one: the first. two, three: both
        of them; see ``x``. other: not asked.
    four: the last
    """
    found = explained(text.replace("\n    ", "\n"), ["one", "two", "three", "four"])
    both = "both of them; see x"
    assert found == {"one": "the first", "two": both, "three": both, "four": "the last"}


def test_what_none_stands_for_belongs_to_the_meaning() -> None:
    """``None: 5`` within a meaning is no setting; ``--set`` spells it null."""
    found = {each.name: each for each in described_settings("word2vec", kinds.KINDS["word2vec"])}
    assert found["sample"].default == "null"
    assert found["sample"].meaning.endswith(
        "null: 1e-4 for a text of ten million words and more, 1e-3 for a smaller one"
    )
    assert "null: 5, or more" in found["epochs"].meaning
    for name, kind in TRAINED:
        assert not [each for each in described_settings(name, kind) if "None" in each.meaning]


@pytest.mark.parametrize(
    ("kind", "setting", "choices"),
    [
        ("word2vec", "loss", ("negative-sampling", "hierarchical-softmax", "softmax")),
        ("fasttext-classifier", "pooling", ("mean", "distinct", "idf", "mean-max-min")),
        ("bm25", "variant", ("lucene", "robertson", "atire", "bm25l", "bm25+")),
        ("recurrent-classifier", "pooling", ("last", "mean", "max", "attention", "all")),
    ],
)
def test_all_values_of_a_choice_are_listed(kind: str, setting: str, choices: tuple[str, ...]) -> None:
    entry = kinds.KINDS[kind]
    meaning = next(
        each.meaning for each in described_settings(next(iter(entry.names), kind), entry) if each.name == setting
    )
    assert all(choice in meaning for choice in choices)


def test_a_list_that_is_none_is_told_in_words() -> None:
    with pytest.raises(typer.BadParameter, match=r"expected a list of whole numbers, such as \[0,1\]"):
        parse_settings(["prune=0,0,1"], "ngram", kinds.resolve(kinds.KINDS["ngram"].home))


def test_heads_that_cannot_share_the_hidden_units() -> None:
    """``hidden`` on the command line, ``units`` in Python: the message fits both."""
    model = kinds.build(kinds.KINDS["transformer"], {"hidden": 8, "heads": 3})
    with pytest.raises(SettingError, match="8 hidden units cannot be shared evenly by 3 heads"):
        model.network(Vocab(["<unk>", "</s>", "a"]))


def test_the_examples_of_train_use_the_names_that_help_lists(foreword: Foreword) -> None:
    assert "units=" not in foreword("train", "--help").stdout
