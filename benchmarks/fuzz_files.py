"""The readers of foreign files and of texts, each with small valid files to damage."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import random
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import foreword
from benchmarks.fuzz import Target, change_json, damaged
from benchmarks.fuzz_kenlm import kenlm_target
from benchmarks.fuzz_use import use
from foreword.evaluate.vectors import read_pairs, read_questions
from foreword.fasttext.classifier import FastTextClassifier
from foreword.fasttext.files import write_fasttext
from foreword.fasttext.quantize import quantize
from foreword.filtering.columns import Column
from foreword.filtering.output import TableWriter, line_bytes
from foreword.filtering.tables import read_table
from foreword.ngram.arpa import write_arpa
from foreword.speech.wav import Sound, read_wav, write_wav
from foreword.storage.folder import load
from foreword.tag.conll import read_conll
from foreword.tag.conllu import read_conllu
from foreword.text.files import find_files, opened
from foreword.text.labelled import read_labelled
from foreword.text.rows import LineRows, RowReading, rows_from
from foreword.text.sources import Reading, read_documents
from foreword.tokens import protobuf
from foreword.tokens.bpe import BPETokenizer
from foreword.tokens.character_map import compile_rules
from foreword.tokens.sentencepiece_file import BYTE_PIECES, Algorithm, Normalisation, PieceModel, model_bytes
from foreword.tokens.tokenizer_json import write_tokenizer_json
from foreword.tokens.words import WordTokenizer
from foreword.vectors.word2vec_file import write_vectors

TEXTS = [
    "the cat sat on the mat",
    "a dog and a cat sat on the log",
    "größe wächst 12 ½ mal",
    "the mat was on the log and the log was on the dog",
    "sun, beach; sand (heat) 1999",
]
LABELS = ["a", "b", "c", "a", "b"]
LONGEST = 1 << 24

Read = Callable[[Path], object]


def one_file(
    name: str, file: str, seeds: Sequence[bytes], read: Read, words: Sequence[bytes] = (), **how: Any
) -> Target:
    """A reader of a single file called ``file``."""

    def make(rng: random.Random, folder: Path) -> None:
        (folder / file).write_bytes(damaged(rng.choice(seeds), rng, seeds, words))

    return Target(name, make, lambda folder: read(folder / file), [putting(file, data) for data in seeds], **how)


def putting(file: str, data: bytes) -> Read:
    """Writes just that into a folder."""
    return lambda folder: (folder / file).write_bytes(data)


def written(write: Callable[[Path], object], folder: Path, name: str) -> bytes:
    write(folder / name)
    return (folder / name).read_bytes()


def file_targets(folder: Path) -> Iterator[Target]:
    """Those that are quick to make first. folder: where the valid files are written."""
    folder.mkdir(parents=True, exist_ok=True)
    for some in (_tagged, _jsonl, _parquet, _texts, _lists):
        yield from some()
    yield from (_wav(folder), _sentencepiece())
    yield kenlm_target(TEXTS)
    yield _arpa(folder)
    yield from (_tokenizer(folder), *_fasttext(folder), *_vectors(folder))


def opened_and_used(path: Path) -> None:
    use(load(path))


# Models of other tools


def _arpa(folder: Path) -> Target:
    tokenizer = WordTokenizer().fit(TEXTS)
    corpus = foreword.Corpus.from_texts(TEXTS, tokenizer)
    models = [foreword.NgramLM(order).fit(corpus) for order in (1, 2, 3)]
    seeds = [written(partial(write_arpa, model), folder, "a.arpa") for model in models]
    seeds.append(gzip.compress(seeds[1], mtime=0))
    words = [b"<s>", b"</s>", b"<unk>", b"\\end\\\n", b"\\2-grams:\n", b"ngram 4=1\n", b"-99\t", b"1\t", b"\t"]
    return one_file("ARPA", "model.arpa", seeds, opened_and_used, words, weight=2)


def _fasttext(folder: Path) -> list[Target]:
    settings: dict[str, Any] = {"dimensions": 4, "epochs": 2, "rate": 0.5}
    ways: list[dict[str, Any]] = [
        {"buckets": 20, "word_ngrams": 2},
        {"loss": "hierarchical-softmax"},
        {"buckets": 30, "min_n": 2, "max_n": 3, "loss": "one-vs-all"},
    ]
    fitted = [FastTextClassifier(**settings, **way).fit(TEXTS, LABELS) for way in ways]
    full = [written(model.write, folder, "a.bin") for model in fitted]
    vectors = foreword.FastText(4, epochs=1, min_n=2, max_n=3, buckets=20).fit(_corpus())
    full.append(written(vectors.write, folder, "b.bin"))
    cuts: list[tuple[FastTextClassifier, int | None]] = [(fitted[0], None), (fitted[0], 12), (fitted[2], 20)]
    files = [quantize(model, cutoff=cut, outputs=cut is None) for model, cut in cuts]
    small = [written(partial(write_fasttext, file), folder, "a.ftz") for file in files]
    return [
        one_file("fastText .bin", "model.bin", full, opened_and_used, weight=4),
        one_file("fastText .ftz", "model.ftz", small, opened_and_used, weight=3),
    ]


def _sentencepiece() -> Target:
    """Damaged as bytes, or inside a few of its parts, whose lengths are put right again."""
    models = [piece_model("unigram"), piece_model("bpe")]
    seeds = [model_bytes(model) for model in models]
    parts = [list(protobuf.fields(memoryview(seed))) for seed in seeds]
    written = [[_damaged_field(part, random.Random(0), 0.0) for part in each] for each in parts]

    def make(rng: random.Random, folder: Path) -> None:
        if rng.random() < 0.4:
            data = damaged(rng.choice(seeds), rng, seeds)
        else:
            which = rng.randrange(len(seeds))
            fields = list(written[which])
            rare = [at for at, part in enumerate(parts[which]) if part[0] != 1]  # all but the pieces
            for _ in range(rng.choice((1, 1, 2, 5, 20))):
                at = rng.choice(rare) if rng.random() < 0.5 else rng.randrange(len(fields))
                fields[at] = _damaged_field(parts[which][at], rng, 0.3)
            data = b"".join(fields)
        (folder / "a.model").write_bytes(data)

    whole = [putting("a.model", data) for data in seeds]
    return Target("sentencepiece", make, lambda folder: opened_and_used(folder / "a.model"), whole, weight=4)


def _damaged_field(field: protobuf.Field, rng: random.Random, share: float, depth: int = 0) -> bytes:
    """A field again, a share of those in it with another number, type or content."""
    number, kind, value = field
    if rng.random() < share / 10:
        number = rng.randint(1, 50)
    if isinstance(value, int):
        return protobuf.number_field(number, rng.choice((0, 1, 7, 1 << 62)) if rng.random() < share else value)
    content = bytes(value)
    if kind == protobuf.BYTES and depth == 0 and number in (1, 2, 3):
        content = b"".join(_damaged_field(each, rng, share, 1) for each in protobuf.fields(value))
    elif rng.random() >= share:
        pass
    elif kind == protobuf.BYTES and len(content) > 64 and rng.random() < 0.8:
        units = bytearray(content)
        for _ in range(rng.choice((1, 3, 40))):
            at = rng.randrange(len(units) // 4) * 4
            units[at : at + 4] = rng.choice(
                (rng.randbytes(4), units[:4], (rng.randrange(2048) << 10).to_bytes(4, "little"))
            )
        content = bytes(units)
    else:
        content = damaged(content, rng, [content])
    if kind == protobuf.BYTES:
        return protobuf.bytes_field(number, content)
    return protobuf.varint(number << 3 | protobuf.FOUR_BYTES) + content[:4].ljust(4, b"\0")


def piece_model(algorithm: Algorithm) -> PieceModel:
    """A small model with a character map, symbols of every type and, for BPE, bytes."""
    bpe = algorithm == "bpe"
    words = ["▁the", "▁cat", "▁sat", "▁on", "▁a", "▁mat", "▁dog", "▁and", "▁log"]
    spelt = [piece for word in words for piece in (word[:2], word[:3], word)]
    letters = dict.fromkeys([*"▁abcdeghlmnostuw", *spelt, "<x>", "<mask>"])
    pieces = ["<unk>", "<s>", "</s>", *(BYTE_PIECES if bpe else ()), *letters]
    types = [2, 3, 3, *([6] * 256 if bpe else []), *([1] * (len(letters) - 2)), 4, 3]
    scores = np.linspace(-1, -9, len(pieces)).astype(np.float32)
    rules = {"ö": "o", "ä": "a", "½": "1/2", "e\u0301": "é", "\t": " ", "\u200b": ""}
    return PieceModel(
        tuple(pieces), scores, np.array(types, np.uint8), algorithm, bpe, Normalisation(compile_rules(rules))
    )


def _vectors(folder: Path) -> list[Target]:
    vectors = foreword.Word2Vec(4, epochs=1).fit(_corpus()).vectors
    text, binary, glove = (
        written(lambda path: write_vectors(vectors, path), folder, name) for name in ("a.vec", "a.bin", "a.txt")
    )
    return [
        one_file(
            "word2vec text",
            "v.vec",
            [text, gzip.compress(text, mtime=0)],
            opened_and_used,
            [b" ", b"1e39", b"\xc3\xa9"],
            weight=2,
        ),
        one_file("word2vec binary", "v.bin", [binary], opened_and_used, weight=2),
        one_file("GloVe text", "v.txt", [glove], opened_and_used, [b" ", b" 1", b". . .", b"\t"], weight=2),
    ]


STEPS = json.dumps(
    {
        "added_tokens": [{"id": 1, "content": "[SEP]", "special": True, "lstrip": True}],
        "normalizer": {
            "type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, "strip_accents": None,
            "lowercase": True,
        },
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
            {"type": "BertPreTokenizer"},
            {"type": "Split", "pattern": {"Regex": r"\p{N}{1,3}|[a-c]+"}, "behavior": "Isolated", "invert": False},
        ]},
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
        "model": {"type": "WordPiece", "unk_token": "[UNK]", "vocab": {"[UNK]": 0, "[SEP]": 1, "the": 2, "##t": 3}},
    }
).encode()  # fmt: skip
"""A tokenizer.json that is taken step by step."""


def _tokenizer(folder: Path) -> Target:
    kinds = [BPETokenizer(280), BPETokenizer(60, kind="characters")]
    seeds = [written(partial(write_tokenizer_json, each.fit(TEXTS)), folder, "t.json") for each in kinds]
    seeds.append(STEPS)
    words = [b"null", b"true", b"[]", b"{}", b'"\\ud800"', b'"Split"', b'"(?:"', b"\\\\p{L}", b"-1", b"1e5"]

    def make(rng: random.Random, folder: Path) -> None:
        """Half of them are JSON still: most damage to bytes is found by the parser."""
        data = rng.choice(seeds)
        if rng.random() < 0.5:
            data = damaged(data, rng, seeds, words)
        else:
            tree = json.loads(data)
            for _ in range(rng.choice((1, 1, 2, 5))):
                change_json(tree, rng)
            data = json.dumps(tree).encode()
        (folder / "tokenizer.json").write_bytes(data)

    whole = [putting("tokenizer.json", data) for data in seeds]
    return Target("tokenizer.json", make, lambda folder: opened_and_used(folder / "tokenizer.json"), whole, weight=4)


def _wav(folder: Path) -> Target:
    sound = Sound(np.linspace(-1, 1, 300, dtype=np.float32), 8000)
    seed = written(partial(write_wav, sound), folder, "a.wav")
    return one_file("WAV", "a.wav", [seed], lambda path: read_wav(path).at_rate(16_000), [b"fmt ", b"data", b"LIST"])


def _corpus() -> foreword.Corpus:
    return foreword.Corpus.from_texts(TEXTS, WordTokenizer().fit(TEXTS))


# Texts


def _tagged() -> list[Target]:
    row = "{}\t{}\t_\tNOUN\tNN\t_\t0\troot\t_\tSpaceAfter=No"
    conllu = "# text = a b\n" + "\n".join(row.format(place, word) for place, word in enumerate("abc", 1))
    conllu += "\n\n1-2\tdu\t" + "\t".join("_" * 8) + "\n" + row.format(1, "de") + "\n" + row.format(2, "le") + "\n\n"
    conll = "-DOCSTART- -X- O O\n\nEU NNP I-NP I-ORG\nrejects VBZ I-VP O\n\nGerman\tJJ\tI-NP\tI-MISC\n\n"
    words = [b"\t", b"\n\n", b"1.1\t", b"3-2\t", b"-DOCSTART- ", b"\xef\xbb\xbf", b"_"]
    return [
        one_file("CoNLL-U", "a.conllu", [conllu.encode()], lambda path: list(read_conllu(path)), words, weight=3),
        one_file("CoNLL", "a.conll", [conll.encode()], lambda path: list(read_conll(path)), words, weight=3),
    ]


def _jsonl() -> list[Target]:
    rows = [
        {"id": place, "text": text + ' \\ "\n😀', "label": label, "meta": {"tags": ["a", None, True, 1.5e3]}}
        for place, (text, label) in enumerate(zip(TEXTS, LABELS, strict=True))
    ]
    seeds = ["".join(json.dumps(row, ensure_ascii=ascii) + "\n" for row in rows).encode() for ascii in (True, False)]
    words = [
        b"\\u",
        b"\\ud83d",
        b'"text": ',
        b'"',
        b"[[[[",
        b"}",
        b"null",
        b"\\",
        b"9" * 5000,
        b"\xed\xa0\x80",
        b'{"text":1}',
    ]

    def filtered(path: Path) -> None:
        with opened(*find_files(path)) as reader:
            for errors in ("strict", "replace"):
                reader.stream.seek(0)
                for rows in rows_from(reader, RowReading("text", "jsonl", errors, longest=LONGEST)):
                    assert isinstance(rows, LineRows)
                    line_bytes(rows, rows.present, [Column("score", np.arange(len(rows)) / 2)])
                    line_bytes(rows, np.ones(len(rows), np.bool_), [])
                    list(rows.texts.strings())

    return [
        one_file("JSONL", "a.jsonl", seeds, lambda path: list(read_documents(path)), words, weight=4),
        one_file("JSONL, labelled", "a.jsonl", seeds, lambda path: list(read_labelled(path)), words, weight=3),
        one_file("JSONL, filter", "a.jsonl", seeds, filtered, words, weight=3),
    ]


def _parquet() -> list[Target]:
    import pyarrow
    from pyarrow import parquet

    table = pyarrow.table({"id": range(5), "text": TEXTS, "label": LABELS, "tags": [["a"], [], None, ["b", "c"], []]})
    dictionary = table.set_column(1, "text", table["text"].dictionary_encode())
    seeds = []
    for each, how in (
        (table, {}),
        (table, {"compression": "zstd", "row_group_size": 2}),
        (dictionary, {"compression": "none"}),
    ):
        into = io.BytesIO()
        parquet.write_table(each, into, **how)
        seeds.append(into.getvalue())
    pages = {data: _page_offsets(parquet.read_metadata(io.BytesIO(data))) for data in seeds}

    def filtered(path: Path) -> None:
        with opened(*find_files(path)) as reader:
            writer = TableWriter(io.BytesIO(), "out")
            for rows in rows_from(reader, RowReading("text", "parquet", "replace", longest=LONGEST)):
                writer.write(rows, np.arange(len(rows)) % 2 == 0, [Column("score", np.arange(len(rows)) / 2)])
            writer.close()

    def make(rng: random.Random, folder: Path) -> None:
        """Half of the damage is in the footer, which says where everything is, a quarter where a page begins."""
        data = rng.choice(seeds)
        footer, kind = int.from_bytes(data[-8:-4], "little") + 8, rng.random()
        if kind < 0.5:
            data = data[:-footer] + damaged(data[-footer:-8], rng, [data[-footer:]]) + data[-8:]
        elif kind < 0.75:
            at = rng.choice(pages[data])
            data = data[:at] + damaged(data[at : at + 32], rng, seeds)[:32].ljust(32, b"\0") + data[at + 32 :]
        else:
            data = damaged(data, rng, seeds)
        (folder / "a.parquet").write_bytes(data)

    whole = [putting("a.parquet", data) for data in seeds]
    return [
        Target("Parquet", make, lambda folder: list(read_documents(folder / "a.parquet")), whole),
        Target("Parquet, filter", make, lambda folder: filtered(folder / "a.parquet"), whole),
    ]


def _page_offsets(metadata: Any) -> list[int]:
    chunks = [
        metadata.row_group(group).column(column)
        for group in range(metadata.num_row_groups)
        for column in range(metadata.num_columns)
    ]
    offsets = [(chunk.dictionary_page_offset, chunk.data_page_offset) for chunk in chunks]
    return sorted({offset for both in offsets for offset in both if offset})


def _texts() -> list[Target]:
    import zstandard

    text = "\n".join(TEXTS).encode() * 3
    packed = {
        "gz": gzip.compress(text, mtime=0), "xz": lzma.compress(text), "bz2": bz2.compress(text),
        "zst": zstandard.ZstdCompressor().compress(text),
    }  # fmt: skip
    table = "text\tlabel\n" + "".join(f"{text}\t{label}\n" for text, label in zip(TEXTS, LABELS, strict=True))
    comma = table.replace(",", ";").replace("\t", ",").replace("the cat sat on the mat", '"heat, ""x"""')
    lines = "".join(f"__label__{label} {text}\n" for text, label in zip(TEXTS, LABELS, strict=True))

    def paragraphs(path: Path) -> None:
        list(read_documents(path, Reading(document="blank-line", errors="replace")))
        list(read_documents(path))

    found = [one_file("text", "a.txt", [text], paragraphs, [b"\xff", b"\0", b"\xe2\x82", b"\r\n"], weight=2)]
    for end, data in packed.items():
        found.append(one_file(f"text .{end}", f"a.{end}", [data], lambda path: list(read_documents(path)), weight=1))
    for end, rows in (("tsv", table), ("csv", comma), ("txt", lines)):
        found.append(
            one_file(
                f"labelled .{end}",
                f"a.{end}",
                [rows.encode()],
                lambda path: list(read_labelled(path)),
                [b'"', b"\t", b","],
            )
        )
    return found


def _lists() -> list[Target]:
    """Small lists that people write by hand."""
    questions = b": capitals\nathens greece rome italy\noslo norway rome italy\n: plural\ncat cats dog dogs\n"
    pairs = b"cat\tdog\t7.5\nsun\tmoon\t3\n"
    thresholds = b"label\tthreshold\nen\t500\nde\t700.5\n"
    table = b'{"en": [50, 500], "de": [100, 200]}'
    return [
        one_file("analogies", "a.txt", [questions], read_questions, [b": "]),
        one_file("similarities", "a.tsv", [pairs], read_pairs, [b"nan", b"\t"]),
        one_file(
            "thresholds", "a.txt", [thresholds, table], lambda path: read_table(str(path)), [b"nan", b"1e999", b"{"]
        ),
    ]
