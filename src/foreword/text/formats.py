"""Formats of files, by their names in options and settings. Commands read this module, so it imports nothing."""

from __future__ import annotations

from typing import Literal, TypeAlias

DocumentFormat: TypeAlias = Literal["text", "jsonl", "parquet"]
"""Files of documents."""

RowFormat: TypeAlias = Literal["text", "jsonl", "parquet", "csv", "tsv"]
"""Files of rows; CSV and TSV are tables."""

LabelledFormat: TypeAlias = Literal["tsv", "csv", "jsonl", "parquet", "fasttext", "label-first", "folders"]
"""Files of labelled texts."""
