"""``foreword index``: count and find any sequence of words in a corpus; show what follows it, and what is copied."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from foreword.cli.options import (
    OutputOptions,
    Overwrite,
    ReadingOptions,
    Texts,
    Threads,
    VocabularyOptions,
    add_command,
    command_group,
    examples,
    memory_size,
)
from foreword.cli.search import IdField
from foreword.errors import InputError

if TYPE_CHECKING:
    from foreword.cli.progress import ReportedJob
    from foreword.pipeline.compressed import CompressedTextIndex
    from foreword.pipeline.index import TextIndex

BUILD_EXAMPLES = examples(
    "foreword index build wiki.txt -o index",
    "foreword index build web/*.jsonl.zst -o index --tokenizer tokenizer.json --id-field url",
    "foreword index build huge.txt -o index --memory 2G",
    "foreword index build huge.txt -o small --compressed",
    "foreword index count index 'to be or not to be'",
    "foreword index spans index --file essay.txt --least 8",
)
APPEND_EXAMPLES = examples("foreword index append index more.txt")
COUNT_EXAMPLES = examples(
    "foreword index count index 'to be or not to be' --json",
    "foreword index count index 'to be' --with other",
    "foreword index count infini-gram-files 'to be' --tokenizer tokenizer.json",
)
FIND_EXAMPLES = examples("foreword index find index 'to be or not to be' -k 20")
CONTEXT_EXAMPLES = examples("foreword index context index 'to be or not' -k 5")
DOCUMENT_EXAMPLES = examples("foreword index document index 'to be or not to be' -k 1")
SPANS_EXAMPLES = examples(
    "foreword index spans index 'whether to be or not to be' --least 3", "foreword index spans index --file essay.txt"
)

IndexFolder: TypeAlias = Annotated[str, typer.Argument(metavar="INDEX", help="A saved index.")]
MemoryOption: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--memory", parser=memory_size, metavar="SIZE", show_default="no limit",
        help="Memory limit of sorting; the rest goes to INDEX.checkpoint until the index is saved.",
    ),
]  # fmt: skip
CompressedOption: TypeAlias = Annotated[
    bool,
    typer.Option("--compressed", help="Save an FM-index, smaller than the text, that counts but does not find."),
]
Words: TypeAlias = Annotated[str, typer.Argument(metavar="WORDS", help="Words, or any text.", show_default=False)]


@dataclass
class IndexOptions:
    """Which indexes are searched."""

    also: Annotated[
        list[str] | None,
        typer.Option("--with", metavar="INDEX", help="Search this index too; it needs the same tokenizer. Repeatable."),
    ] = None
    tokenizer: Annotated[
        str | None,
        typer.Option(metavar="TOKENIZER", help="Tokenizer of an INDEX built by the infini-gram package."),
    ] = None

    def load(self, index: str) -> TextIndex:
        """Load an index, and others to be searched with it."""
        from foreword.pipeline.index import TextIndex

        found = [self._open(path, "index") for path in (index, *(self.also or []))]
        return found[0] if len(found) == 1 else TextIndex.joined(found)

    def count(self, index: str, words: str) -> int:
        """Count words in an index, and in others to be searched with it, each compressed or not."""
        from foreword.pipeline.index import TextIndex

        found = [self._open(path, "count") for path in (index, *(self.also or []))]
        whole = [each for each in found if isinstance(each, TextIndex)]
        counts: list[int] = [each.count(words) for each in found if not isinstance(each, TextIndex)]
        return sum(counts) + (TextIndex.joined(whole).count(words) if whole else 0)

    def _open(self, path: str, ability: str) -> Any:
        from foreword.cli.models import load_able, load_tokenizer
        from foreword.infinigram.infini_gram_files import is_infini_gram
        from foreword.pipeline.index import TextIndex

        if not is_infini_gram(path):
            return load_able(path, ability)
        if self.tokenizer is None:
            raise InputError(f"{path}: index files of infini-gram name no tokenizer: give it with --tokenizer")
        return TextIndex.read_infini_gram(path, load_tokenizer(self.tokenizer))


app = command_group("index", "Count and find any sequence of words in a corpus.", BUILD_EXAMPLES)


def build(
    texts: Texts,
    out: Annotated[str, typer.Option("--out", "-o", metavar="INDEX", help="Folder to save the index in.")],
    *,
    vocabulary: VocabularyOptions,
    id_field: IdField = None,
    memory: MemoryOption = None,
    compressed: CompressedOption = False,
    overwrite: Overwrite = False,
    threads: Threads = None,
    reading: ReadingOptions,
    output: OutputOptions,
) -> None:
    """Index a text: sort all its suffixes, so that any sequence of words is counted and found in an instant.

    By default a document is a line, and words are separated by white space. With a byte tokenizer any string is found.
    With --memory the text is sorted in chunks, with the same result; the same command resumes a build that was stopped.
    With --compressed the tokens are bytes by default.
    """
    from foreword.cli.models import check_output
    from foreword.cli.progress import job
    from foreword.cli.search_reading import named_blocks
    from foreword.pipeline.fitting import Output
    from foreword.storage.folder import save

    if compressed and id_field is not None:
        raise typer.BadParameter("a compressed index has no names of documents", param_hint="'--id-field'")
    check_output(out, folder=True, kind="compressed-text-index" if compressed else "text-index", overwrite=overwrite)
    new = _new_index(vocabulary, compressed)
    with job(output, out) as work:
        blocks, names = named_blocks(texts, reading.reading(), id_field, work.meter)
        target = Output(out)
        folder = None if memory is None else target.checkpoint
        options: dict[str, Any] = {"threads": threads, "memory": memory, "folder": folder, "meter": work.meter}
        index = new.fit_blocks(blocks, **options) if compressed else new.fit_blocks(blocks, names, **options)
        save(index, out)
        work.facts |= _compressed_facts(index) if compressed else _facts(index)
        work.summary = _summary(work)
        target.discard_checkpoint()


def _new_index(vocabulary: VocabularyOptions, compressed: bool) -> Any:
    """Return an empty index; the tokens of a compressed one are bytes unless the vocabulary says otherwise."""
    from foreword.pipeline.compressed import CompressedTextIndex
    from foreword.pipeline.index import TextIndex
    from foreword.pipeline.language import word_tokenizer

    tokenizer = vocabulary.load()
    if tokenizer is None and not (compressed and vocabulary.min_count is vocabulary.vocab is None):
        tokenizer = word_tokenizer(None, vocabulary.min_count, vocabulary.vocab)
    return (CompressedTextIndex if compressed else TextIndex)(tokenizer)


def append(
    index: IndexFolder,
    texts: Texts,
    *,
    id_field: IdField = None,
    threads: Threads = None,
    reading: ReadingOptions,
    output: OutputOptions,
) -> None:
    """Add a text to an index, as a segment of its own; new words get new ids."""
    from foreword.cli.progress import job
    from foreword.cli.search_reading import named_blocks
    from foreword.storage.folder import save

    with job(output, index) as work:
        found = _load(index)
        blocks, names = named_blocks(texts, reading.reading(), id_field, work.meter)
        save(found.append_blocks(blocks, names, threads=threads), index)
        work.facts |= _facts(found)
        work.summary = _summary(work)


def _summary(work: ReportedJob) -> str:
    text = f"{work.count('tokens')} of {work.count('documents')}"
    return f"{text}, {work.count('segments')}" if "segments" in work.facts else f"{text} in {work.count('bytes')}"


def _facts(index: TextIndex) -> dict[str, int]:
    return {
        "tokens": index.index.tokens,
        "documents": len(index),
        "segments": len(index.index.segments),
        "vocabulary": len(index.vocab),
    }


def _compressed_facts(index: CompressedTextIndex) -> dict[str, int]:
    return {"tokens": index.index.tokens, "documents": len(index), "bytes": index.index.nbytes}


def count(index: IndexFolder, words: Words, *, indexes: IndexOptions, output: OutputOptions) -> None:
    """Count how often a sequence of words occurs in the corpus."""
    from foreword.cli.printing import write_json, write_text

    found = indexes.count(index, words)
    if output.as_json:
        write_json({"text": words, "count": found})
    else:
        write_text(f"{found}\n")


Most: TypeAlias = Annotated[int, typer.Option("-k", min=1, help="Number of results to show.")]


def find(index: IndexFolder, words: Words, *, k: Most = 10, indexes: IndexOptions, output: OutputOptions) -> None:
    """Find the occurrences of a sequence of words, with documents, token offsets and surrounding text.

    Each line has the name of the document, the offset, the text before, the words and the text after, separated by
    tabs.
    """
    from foreword.cli.printing import write_json

    runs = indexes.load(index)
    occurrences = [asdict(each) for each in runs.find(words, k)]
    if output.as_json:
        write_json({"text": words, "count": runs.count(words), "occurrences": occurrences})
    else:
        for each in occurrences:
            _write_cells(*(each[name] for name in ("name", "offset", "before", "text", "after")))


def context(index: IndexFolder, words: Words, *, k: Most = 10, indexes: IndexOptions, output: OutputOptions) -> None:
    """Show what follows the longest suffix of the words that occurs in the corpus: words, counts, probabilities."""
    from foreword.cli.printing import print_message, write_json
    from foreword.picture.picture import plural

    found = indexes.load(index).context(words, k)
    following = [{"token": word, "count": n, "probability": n / found.count} for word, n in found.words]
    if output.as_json:
        write_json({**asdict(found), "words": following})
        return
    if not output.quiet:
        matched, times = plural(found.length, "token"), plural(found.count, "time")
        print_message(f"matched {matched}, {found.matched!r}, {times}")
    for each in following:
        _write_cells(each["token"], each["count"], f"{each['probability']:.4f}")


def document(index: IndexFolder, words: Words, *, k: Most = 1, indexes: IndexOptions, output: OutputOptions) -> None:
    """Show the documents that contain the words, each preceded by its name and a tab."""
    from foreword.cli.printing import write_json

    runs = indexes.load(index)
    numbers = dict.fromkeys(place.document for place in runs.find(words, None))
    for number in list(numbers)[:k]:
        found = {"document": number, "name": runs.name(number), "text": runs.document(number)}
        if output.as_json:
            write_json(found)
        else:
            _write_cells(found["name"], found["text"])


def spans(
    index: IndexFolder,
    words: Annotated[str | None, typer.Argument(metavar="TEXT", help="The text.", show_default=False)] = None,
    *,
    file: Annotated[
        str | None, typer.Option(metavar="FILE", help="Read the text from a file; - is standard input.")
    ] = None,
    least: Annotated[int, typer.Option(min=1, help="Number of tokens of the shortest span to show.")] = 1,
    indexes: IndexOptions,
    output: OutputOptions,
) -> None:
    """Show which parts of a text occur verbatim in the corpus, how often, and where first; only the longest ones.

    Each line has the index of the first token of the span, the index after the last, the count, the name of the
    document, the offset there and the span, separated by tabs.
    """
    from foreword.cli.printing import write_json
    from foreword.text.sources import read_documents

    if (words is None) == (file is None):
        raise typer.BadParameter("give a text or a file", param_hint="'--file'")
    text = words if words is not None else "\n".join(read_documents(file or "-"))
    found = indexes.load(index).spans(text, least)
    if output.as_json:
        write_json({"spans": [asdict(span) for span in found]})
        return
    for span in found:
        _write_cells(span.begin, span.end, span.count, span.name, span.offset, span.text)


for command, epilog in (
    (build, BUILD_EXAMPLES), (append, APPEND_EXAMPLES), (count, COUNT_EXAMPLES), (find, FIND_EXAMPLES),
    (context, CONTEXT_EXAMPLES), (document, DOCUMENT_EXAMPLES), (spans, SPANS_EXAMPLES),
):  # fmt: skip
    add_command(app, command, epilog)


def _load(index: str) -> TextIndex:
    from foreword.cli.models import load_able

    found: TextIndex = load_able(index, "index")
    return found


def _write_cells(*cells: object) -> None:
    from foreword.cli.printing import write_text

    write_text("\t".join(" ".join(str(cell).split()) for cell in cells) + "\n")
