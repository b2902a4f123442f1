"""``-o`` over a model of another kind asks for ``--overwrite``."""

from __future__ import annotations

from pathlib import Path

from foreword.cli.models import kind_at

from .conftest import Foreword


def test_a_model_of_another_kind_is_not_replaced_unasked(foreword: Foreword, text: Path, tmp_path: Path) -> None:
    out = tmp_path / "model"
    assert foreword("train", "unigram", text, "-o", out).exit_code == 0
    assert kind_at(str(out)) == "unigram"
    assert foreword("train", "unigram", text, "-o", out, "--set", "add=0.5").exit_code == 0
    before = (out / "model.json").read_bytes()
    for call in (["train", "ngram", text], ["search", "index", text], ["tokenize", "train", text, "--vocab", 300]):
        result = foreword(*call, "-o", out)
        assert result.exit_code == 2
        assert "another kind of model, unigram" in " ".join(result.stderr.replace("│", " ").split())
        assert (out / "model.json").read_bytes() == before
    assert foreword("train", "ngram", text, "-o", out, "--overwrite").exit_code == 0
    assert kind_at(str(out)) == "ngram"


def test_convert_does_not_replace_a_model_of_another_kind_unasked(
    foreword: Foreword, shelf: Path, text: Path, tmp_path: Path
) -> None:
    tokenizer, model = tmp_path / "bpe", tmp_path / "ngram"
    assert foreword("convert", shelf / "tokenizer.json", tokenizer).exit_code == 0
    assert foreword("train", "ngram", text, "-o", model, "--set", "order=2").exit_code == 0
    assert foreword("convert", model, tmp_path / "lm.arpa").exit_code == 0
    before = (tokenizer / "model.json").read_bytes()
    result = foreword("convert", tmp_path / "lm.arpa", tokenizer)
    assert result.exit_code == 2
    assert "'OUT'" in result.stderr
    assert "another kind of model, bpe, not ngram" in " ".join(result.stderr.replace("│", " ").split())
    assert (tokenizer / "model.json").read_bytes() == before
    assert foreword("convert", tmp_path / "lm.arpa", model).exit_code == 0  # of the same kind
    assert foreword("convert", shelf / "tokenizer.json", tokenizer).exit_code == 0
    assert foreword("convert", tmp_path / "lm.arpa", tokenizer, "--overwrite").exit_code == 0
    assert kind_at(str(tokenizer)) == "ngram"


def test_the_kind_inside_a_model_of_text(foreword: Foreword, tmp_path: Path) -> None:
    data = tmp_path / "data.tsv"
    data.write_text("a\tthe cat sat\nb\tthe dog ran\n" * 5)
    out = tmp_path / "model"
    assert foreword("classify", "train", data, "-o", out, "--kind", "naive-bayes").exit_code == 0
    assert kind_at(str(out)) == "naive-bayes"
    assert foreword("classify", "train", data, "-o", out).exit_code == 2
    assert foreword("classify", "train", data, "-o", out, "--kind", "naive-bayes", "--calibrate").exit_code == 0
    assert kind_at(str(out)) == "naive-bayes"
    assert kind_at(str(tmp_path)) is None
