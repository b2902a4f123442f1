"""``foreword tokenize train``: learn a tokenizer from a text."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from foreword import kinds
from foreword.cli.options import (
    MinCount,
    OutputOptions,
    Overwrite,
    RayOption,
    ReadingOptions,
    SetOption,
    Texts,
    Threads,
    examples,
    kind_option,
    memory_size,
    ray_output_to_stderr,
)
from foreword.errors import ForewordError

if TYPE_CHECKING:
    from foreword.protocols import Meter
    from foreword.text.block import Block
    from foreword.text.sources import Reading
    from foreword.tokens.bpe import BPETokenizer
    from foreword.tokens.counting import Counted

TRAIN_EXAMPLES = examples(
    "foreword tokenize train ptb:train -o tokenizer --vocab 8000",
    "foreword tokenize train books/*.gz -o tokenizer.json --set pattern=cl100k",
    "foreword tokenize train news.txt -o words --kind word --min-count 2",
    "foreword tokenize train news.txt -o news.model --kind unigram --vocab 32000",
    "foreword tokenize train huge.jsonl.zst -o tokenizer --memory 2G --resume",
    "foreword tokenize train /shared/web -o tokenizer --vocab 32000 --ray head:6379",
)
KIND_HELP = (
    f"{', '.join(kinds.trained_as('tokenizer'))}. bpe merges bytes as GPT-2 does, bpe-characters merges characters, "
    "unigram learns pieces as sentencepiece does."
)
SIZES = ("vocab_size", "max_size")
"""The arguments that ``--vocab`` stands for."""


@dataclass(frozen=True, slots=True)
class CountingOptions:
    """How the text is counted, and which merges are refused."""

    memory: Annotated[
        int,
        typer.Option(
            "--memory", parser=memory_size, metavar="SIZE", help="Memory limit, for bpe and unigram.", show_default="1G"
        ),
    ] = 1 << 30
    threads: Threads = None
    resume: Annotated[bool, typer.Option("--resume", help="Resume counting that was stopped, for bpe.")] = False
    overwrite: Overwrite = False
    ray: RayOption = None
    veto: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Never make these tokens, one per line, for bpe.")
    ] = None

    def vetoed(self) -> list[str] | None:
        """Return the tokens that must not be made."""
        from foreword.text.sources import read_lines

        return None if self.veto is None else list(read_lines(str(self.veto)))


def train(
    texts: Texts,
    out: Annotated[
        str,
        typer.Option("--out", "-o", metavar="TOKENIZER", help="Folder to save it in, or a name in .json or .model."),
    ],
    *,
    kind: Annotated[str, kind_option("tokenizer", KIND_HELP)] = "bpe",
    vocab: Annotated[
        int | None,
        typer.Option(min=1, help="Vocabulary size.", show_default="8000 for bpe and unigram, all words for word"),
    ] = None,
    min_count: MinCount = None,
    special: Annotated[
        list[str] | None,
        typer.Option(metavar="TOKEN", help="A special token, for bpe, unigram. May be repeated.", show_default="</s>"),
    ] = None,
    settings: SetOption = None,
    counting: CountingOptions,
    reading: ReadingOptions,
    output: OutputOptions,
) -> None:
    """Learn a tokenizer from a text.

    BPE has the settings pattern (gpt2, cl100k, o200k, qwen2 or none: tokens do not cross its matches), min_frequency
    (do not merge rarer pairs), lowercase and form (NFC, NFD, NFKC or NFKD). Words have split (space or punctuation),
    lowercase and form. Unigram has normalisation (nmt_nfkc or identity), coverage and byte_fallback; a name in .model
    is a file for sentencepiece.

    Ctrl-C stops counting, and --resume continues: the counts are kept in TOKENIZER.partial until the tokenizer is
    saved. With --ray, the tasks of a Ray cluster count, and the tokenizer is the same; all nodes must be able to read
    the texts.
    """
    from foreword.cli.models import check_output, is_tokenizer_file

    given = {"vocab": vocab, "min_count": min_count, "special_tokens": special}
    tokenizer = new_tokenizer(kind, given, settings, counting, out, output)
    overwrite = counting.overwrite or counting.resume
    check_output(out, folder=not is_tokenizer_file(out), kind=kinds.of(tokenizer).name, overwrite=overwrite)
    _train(tokenizer, kind, texts, out, counting, reading.reading(), output)


def new_tokenizer(
    kind: str, given: dict[str, Any], settings: list[str] | None, counting: CountingOptions, out: str,
    output: OutputOptions,
) -> Any:  # fmt: skip
    """Construct a tokenizer that has learnt nothing yet; refuse options that mean nothing to its kind."""
    from foreword.cli.settings import parse_settings, settings_of

    chosen = kinds.trained_as("tokenizer")[kind]
    model = kinds.resolve(chosen.home)
    known = settings_of(model)
    arguments: dict[str, Any] = {}
    for option, value in given.items():
        if not value:
            continue
        name = next((each for each in SIZES if each in known), "") if option == "vocab" else option
        if name not in known:
            option = option.removesuffix("_tokens").replace("_", "-")
            raise typer.BadParameter(f"means nothing to --kind {kind}", param_hint=f"'--{option}'")
        arguments[name] = value
    for option, asked in (
        ("resume", counting.resume),
        ("ray", counting.ray is not None),
        ("veto", counting.veto is not None),
    ):
        if asked and option not in chosen.training:
            raise typer.BadParameter(f"means nothing to --kind {kind}", param_hint=f"'--{option}'")
    if counting.resume and counting.ray is not None:
        raise typer.BadParameter("Ray counts again what is lost: leave --resume out", param_hint="'--resume'")
    if chosen.name != "bpe" and (out == "-" or out.lower().endswith(".json")):
        raise typer.BadParameter(f"tokenizer.json holds BPE tokenizers, not {kind}: name a folder", param_hint="'-o'")
    if chosen.name != "sentencepiece" and out.lower().endswith(".model"):
        raise typer.BadParameter(f"a .model holds unigram tokenizers, not {kind}: name a folder", param_hint="'-o'")
    if output.as_json and out == "-":
        raise typer.BadParameter("standard output is taken by -o", param_hint="'--json'")
    without = [*chosen.names[kind], *(("pattern",) if kind == "bpe-characters" else ())]  # which merges within words
    arguments |= parse_settings(settings, f"--kind {kind}", model, without=without)
    return kinds.build(chosen, {**chosen.names[kind], **arguments})


def _train(
    tokenizer: Any, kind: str, texts: list[str], out: str, how: CountingOptions, reading: Reading,
    output: OutputOptions,
) -> None:  # fmt: skip
    from foreword.cli.models import save_tokenizer
    from foreword.cli.printing import print_message, write_json
    from foreword.cli.progress import progress

    began = time.perf_counter()
    with progress(output.quiet) as meter:
        size = learn(tokenizer, texts, out, how, reading, meter)
        if how.ray is not None or kinds.of(tokenizer).name != "bpe":
            save_tokenizer(tokenizer, out)
    seconds = time.perf_counter() - began
    left_out = getattr(tokenizer, "left_out_", 0)
    if left_out:
        print_message(f"foreword: warning: {left_out:,} rare pieces were left out, for lack of memory: try --memory")
    if output.as_json:
        facts = {"kind": kind, "vocabulary": len(tokenizer.vocab), "bytes": size, "left_out": left_out}
        write_json({**facts, "seconds": seconds, "output": out})
    elif not output.quiet:
        rate = size / 1e6 / seconds
        print_message(f"{len(tokenizer.vocab):,} tokens in {seconds:.1f} s ({rate:.1f} MB/s), saved in {out}")


def learn(
    tokenizer: Any, texts: list[str], out: str, how: CountingOptions, reading: Reading, meter: Meter | None
) -> int:
    """Train a tokenizer; one of byte pairs is saved as well. Return the number of bytes that were read."""
    from foreword.cli.models import save_tokenizer
    from foreword.cli.texts import blocks_in, files_in

    if how.ray is not None:
        from foreword.cluster.counting import fit_tokenizer

        with ray_output_to_stderr():
            options: dict[str, Any] = {"memory": how.memory, "veto": how.vetoed(), "meter": meter}
            return fit_tokenizer(tokenizer, files_in(texts, meter), reading, address=how.ray or None, **options)
    text = CountedBlocks(blocks_in(texts, reading, meter))
    kind = kinds.of(tokenizer)
    if kind.name != "bpe":
        bounded = {"memory": how.memory, "meter": meter} if "memory" in kind.training else {}
        tokenizer.fit_blocks(text, threads=how.threads, **bounded)
        return text.bytes
    counting = Counting(tuple(texts), reading, out, how.resume, how.threads, how.memory)
    with counting.kept():
        tokenizer.fit_counted(counting.count(tokenizer, text), memory=how.memory, veto=how.vetoed(), meter=meter)
        save_tokenizer(tokenizer, out)
    return text.bytes


class CountedBlocks:
    """Blocks that are counted as they go by."""

    def __init__(self, blocks: Iterable[Block]) -> None:
        self.blocks = blocks
        self.bytes = 0

    def __iter__(self) -> Iterator[Block]:
        for block in self.blocks:
            self.bytes += block.text_bytes()
            yield block


@dataclass(frozen=True, slots=True)
class Counting:
    """Word counting, the long part of BPE training: it can be resumed if the text can be read again."""

    texts: tuple[str, ...]
    reading: Reading
    out: str
    resume: bool
    threads: int | None
    memory: int

    @property
    def checkpoint(self) -> Path:
        """File that holds the counts of a stopped run."""
        return Path(f"{Path(self.out)}.partial")

    def count(self, tokenizer: BPETokenizer, blocks: Iterable[Block]) -> Counted:
        """Count the words of the blocks, resuming a stopped run if asked to."""
        from foreword.cli.texts import fingerprint
        from foreword.tokens.resume import count_with_checkpoint

        text = None if self.out == "-" else fingerprint(self.texts, self.reading)
        if text is None:
            if self.resume:
                raise typer.BadParameter("a pipe can be neither read nor written twice", param_hint="'--resume'")
            return tokenizer.count(blocks, threads=self.threads, memory=self.memory)
        # Only what the counts depend on: resuming with another --vocab is fine.
        settings = f"{tokenizer.piece_pattern} {tokenizer.cleaning} {tokenizer.prefix_space}"
        return count_with_checkpoint(
            tokenizer,
            blocks,
            self.checkpoint,
            fingerprint=f"{text} {settings}",
            resume=self.resume,
            threads=self.threads,
            memory=self.memory,
        )

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Report after a failure that the counts were saved; delete them after success."""
        try:
            yield
        except KeyboardInterrupt:
            raise KeyboardInterrupt("stopped; --resume continues" if self.checkpoint.exists() else "stopped") from None
        except ForewordError as error:
            if self.checkpoint.exists():
                raise ForewordError(f"{error}; the counts are saved, --resume continues") from error
            raise
        self.checkpoint.unlink(missing_ok=True)
