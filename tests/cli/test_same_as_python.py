"""The shell and Python give the same model: ``foreword train lstm TEXT`` and ``foreword.train("lstm", texts)``."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import pytest

import foreword as package
from foreword import kinds
from foreword.pipeline.classifier import TextClassifier
from foreword.pipeline.fitting import new_translator
from foreword.pipeline.search import TextSearch
from foreword.storage.folder import load, save
from foreword.tag.conllu import read_conllu

from .conftest import Foreword

TEXTS = [f"the {noun} sat on the {other}" for noun in ("cat", "dog", "cow") for other in ("mat", "log", "hay")] * 2
TEXTS += ["a rare word", "the hen"]
LABELLED = [("win a free prize", "spam"), ("free money now", "spam"), ("lunch at nine", "ham"), ("see you soon", "ham")]
TREEBANK = "1\tthe\tthe\tDET\t_\t_\t_\t_\t_\t_\n2\tcat\tcat\tNOUN\t_\t_\t_\t_\t_\t_\n\n" * 3

QUICK: dict[str, Any] = {"epochs": 1, "batch": 2}
"""Settings of networks, given on both sides: by default they learn for hours."""

SMALL: dict[str, Any] = {"awd-lstm": {"embedding": 8, "hidden": 8}, "mogrifier": {"units": 8, "rank": 4}}
"""Sizes of networks that are large by default."""


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def same(model: Any, folder: Path) -> None:
    """The model from Python is saved as the same bytes as the shell saved its own."""
    save(model, folder.with_name("python"))
    assert files(folder.with_name("python")) == files(folder)


def chosen(settings: dict[str, Any]) -> list[str]:
    """Settings as words of the command line."""
    return [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_text("\n".join(TEXTS) + "\n")
    return path


@pytest.mark.parametrize("name", [*kinds.trained_as("language-model", "vectors")])
def test_language_models_and_vectors(foreword: Foreword, text: Path, tmp_path: Path, name: str) -> None:
    settings: dict[str, Any] = QUICK if kinds.trained_as("language-model", "vectors")[name].network else {}
    settings = {**settings, **SMALL.get(name, {})}
    device: dict[str, Any] = {"device": "cpu"} if settings else {}
    given = ["--device", "cpu"] if device else []
    result = foreword("train", name, text, "-o", tmp_path / "shell", *chosen(settings), *given)
    assert result.exit_code == 0, result.output
    same(package.train(name, TEXTS, **settings, **device), tmp_path / "shell")


def test_the_vocabulary_suits_the_kind() -> None:
    assert "rare" in package.train("ngram", TEXTS).vocab
    assert "rare" in package.train("lstm", TEXTS, **QUICK, device="cpu").vocab
    assert "hen" not in package.train("word2vec", TEXTS).vectors
    assert "rare" in package.TextLM(None, package.RecurrentLM("lstm", device="cpu")).tokenizer.fit(TEXTS).vocab


@pytest.mark.parametrize("name", ["nb-logistic", "naive-bayes", "logistic"])
def test_classifiers(foreword: Foreword, tmp_path: Path, name: str) -> None:
    (tmp_path / "data.tsv").write_text("text\tlabel\n" + "".join(f"{text}\t{label}\n" for text, label in LABELLED))
    assert foreword("classify", "train", tmp_path / "data.tsv", "-o", tmp_path / "shell", "--kind", name).exit_code == 0
    model = kinds.build(kinds.KINDS[name], {})
    texts, labels = zip(*LABELLED, strict=True)
    same(TextClassifier(model=model).fit(texts, labels), tmp_path / "shell")


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("lstm", {**QUICK, "embedding": 8, "hidden": 8, "units": 4, "min_count": 1, "device": "cpu"}),
        ("fasttext", {"dimensions": 8, "epochs": 2, "buckets": 100, "word_ngrams": 2}),
    ],
)
def test_classifiers_that_read_text(
    foreword: Foreword, tmp_path: Path, name: str, settings: dict[str, Any]
) -> None:  # fmt: skip
    (tmp_path / "data.tsv").write_text("text\tlabel\n" + "".join(f"{text}\t{label}\n" for text, label in LABELLED))
    result = foreword(
        "classify", "train", tmp_path / "data.tsv", "-o", tmp_path / "shell", "--kind", name, *chosen(settings)
    )
    assert result.exit_code == 0, result.output
    texts, labels = map(list, zip(*LABELLED, strict=True))
    same(kinds.build(kinds.trained_as("classifier")[name], settings).fit(texts, labels), tmp_path / "shell")


def test_neural_tagger(foreword: Foreword, tmp_path: Path) -> None:
    (tmp_path / "train.conllu").write_text(TREEBANK)
    settings = {**QUICK, "units": 4, "words": 4, "letter_units": 2, "spelling": 4, "device": "cpu"}
    call = ("tag", "train", tmp_path / "train.conllu", "-o", tmp_path / "shell", "--kind", "bilstm", *chosen(settings))
    result = foreword(*call)
    assert result.exit_code == 0, result.output
    tagger = kinds.build(kinds.trained_as("tagger")["bilstm"], settings)
    same(tagger.fit(*read_conllu(str(tmp_path / "train.conllu"), "upos")), tmp_path / "shell")


@pytest.mark.parametrize("tokens", ["bpe", "word"])
def test_translators(foreword: Foreword, text: Path, tmp_path: Path, tokens: Literal["bpe", "word"]) -> None:
    (tmp_path / "target.txt").write_text("\n".join(each[::-1] for each in TEXTS) + "\n")
    settings = {"epochs": 1, "batch": 50, "units": 8, "words": 8}
    call = ("translate", "train", text, tmp_path / "target.txt", "-o", tmp_path / "shell", "--tokens", tokens)
    result = foreword(*call, "--vocab", 300, "--device", "cpu", *chosen(settings))
    assert result.exit_code == 0, result.output
    model = kinds.build(kinds.KINDS["seq2seq"], {**settings, "device": "cpu"})
    ours = new_translator(model, tokens, 300).fit(TEXTS, [each[::-1] for each in TEXTS])
    same(ours, tmp_path / "shell")


@pytest.mark.parametrize("name", ["hmm", "features"])
def test_taggers(foreword: Foreword, tmp_path: Path, name: str) -> None:
    (tmp_path / "train.conllu").write_text(TREEBANK)
    call = ("tag", "train", tmp_path / "train.conllu", "-o", tmp_path / "shell", "--kind", name)
    assert foreword(*call).exit_code == 0
    tagger = kinds.build(kinds.trained_as("tagger")[name], {})
    same(tagger.fit(*read_conllu(str(tmp_path / "train.conllu"), "upos")), tmp_path / "shell")


@pytest.mark.parametrize("name", [*kinds.trained_as("tokenizer")])
def test_tokenizers(foreword: Foreword, text: Path, tmp_path: Path, name: str) -> None:
    assert foreword("tokenize", "train", text, "-o", tmp_path / "shell", "--kind", name).exit_code == 0
    kind = kinds.trained_as("tokenizer")[name]
    same(kinds.build(kind, kind.names[name]).fit(TEXTS), tmp_path / "shell")


def test_search(foreword: Foreword, text: Path, tmp_path: Path) -> None:
    assert foreword("search", "index", text, "-o", tmp_path / "shell").exit_code == 0
    ours = TextSearch().fit(TEXTS)
    loaded = load(tmp_path / "shell")
    asked = ("cat", "the log", "rare")
    found = [[(hit.document, hit.score) for hit in search.query(query)] for search in (ours, loaded) for query in asked]
    assert found[:3] == found[3:]
