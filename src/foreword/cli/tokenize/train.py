"""``foreword tokenize train``: a text in, a tokenizer out."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from foreword import kinds
from foreword.cli.options import (
    AsJson,
    DocumentOption,
    ErrorsOption,
    FieldOption,
    FormatOption,
    MinCount,
    Quiet,
    RayOption,
    Texts,
    Threads,
    examples,
    kind_option,
    memory_size,
    ray_talking_to_stderr,
    reading_of,
)
from foreword.errors import ForewordError

if TYPE_CHECKING:
    from foreword.text.block import Block
    from foreword.text.sources import Reading
    from foreword.tokens.bpe import BPETokenizer
    from foreword.tokens.counting import Counted

KINDS = kinds.trained_as("tokenizer")

KIND_HELP = f"{', '.join(KINDS)}. bpe merges bytes as GPT-2 does, bpe-characters merges characters."

NAMES = {"vocab": ("vocab_size", "max_size"), "special": ("special_tokens",)}
"""Options whose argument has another name; that depends on the kind."""

EXAMPLES = examples(
    "foreword tokenize train ptb:train -o tokenizer --vocab 8000",
    "foreword tokenize train books/*.gz -o tokenizer.json --pattern cl100k",
    "foreword tokenize train news.txt -o words --kind word --min-count 2",
    "foreword tokenize train huge.jsonl.zst -o tokenizer --memory 2G --resume",
    "foreword tokenize train /shared/web -o tokenizer --vocab 32000 --ray head:6379",
)


def train(
    texts: Texts,
    out: Annotated[
        str,
        typer.Option("--out", "-o", metavar="TOKENIZER", help="A folder to write; tokenizer.json if it ends in .json."),
    ],
    kind: Annotated[str, kind_option("tokenizer", KIND_HELP)] = "bpe",
    vocab: Annotated[
        int | None,
        typer.Option(min=1, help="Tokens in all.", show_default="8000 for bpe and bpe-characters, all for word"),
    ] = None,
    pattern: Annotated[
        Literal["gpt2", "cl100k", "qwen2", "none"] | None,
        typer.Option(help="For bpe: where no token goes across.", show_default="gpt2"),
    ] = None,
    special: Annotated[
        list[str] | None,
        typer.Option(metavar="TOKEN", help="For bpe: a token that stands for itself; repeatable.", show_default="</s>"),
    ] = None,
    min_frequency: Annotated[int | None, typer.Option(min=1, help="For bpe: merge no rarer pair.")] = None,
    min_count: MinCount = None,
    split: Annotated[
        Literal["space", "punctuation"] | None,
        typer.Option(help="For word: where words end.", show_default="space"),
    ] = None,
    lowercase: Annotated[bool, typer.Option("--lowercase", help="Make everything lower case first.")] = False,
    form: Annotated[
        Literal["NFC", "NFD", "NFKC", "NFKD"] | None, typer.Option(help="Bring text into this Unicode form first.")
    ] = None,
    memory: Annotated[
        int,
        typer.Option(parser=memory_size, metavar="SIZE", help="For bpe: what training may take.", show_default="1G"),
    ] = 1 << 30,
    threads: Threads = None,
    resume: Annotated[bool, typer.Option("--resume", help="For bpe: go on with counting that was stopped.")] = False,
    ray: RayOption = None,
    document: DocumentOption = "line",
    field: FieldOption = "text",
    format: FormatOption = None,
    errors: ErrorsOption = "strict",
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Learn a tokenizer from a text.

    Counting the text can be stopped with Ctrl-C and gone on with by --resume: what was counted is kept beside
    the output, as TOKENIZER.partial, until the tokenizer is saved.

    With --ray the pieces are counted by the tasks of a Ray cluster, and the tokenizer is the same; the texts have to
    lie where all nodes see them.
    """
    given = given_options(
        vocab=vocab,
        pattern=pattern,
        special=special,
        min_frequency=min_frequency,
        min_count=min_count,
        split=split,
        lowercase=lowercase,
        form=form,
        resume=resume,
        ray=ray is not None,
    )
    refuse_useless(kind, given, out, as_json)

    from foreword.cli.models import check_output, is_tokenizer_json, save_tokenizer
    from foreword.cli.printing import print_message, write_json
    from foreword.cli.progress import progress
    from foreword.cli.texts import blocks_in
    from foreword.tokens.bpe import BPETokenizer
    from foreword.tokens.characters import ByteTokenizer, CharacterTokenizer

    check_output(out, folder=not is_tokenizer_json(out))
    reading = reading_of(document, field, format, errors)
    tokenizer = build(kind, given)
    began = time.perf_counter()
    with progress(quiet) as meter:
        text = Tally(blocks_in(texts, reading, meter) if ray is None else ())
        if ray is not None:
            from foreword.cli.texts import files_in
            from foreword.cluster.counting import fit_tokenizer

            assert not isinstance(tokenizer, CharacterTokenizer | ByteTokenizer)  # refused above
            with ray_talking_to_stderr():
                text.bytes = fit_tokenizer(
                    tokenizer, files_in(texts, meter), reading, address=ray or None, memory=memory, meter=meter
                )
            save_tokenizer(tokenizer, out)
        elif isinstance(tokenizer, BPETokenizer):
            counting = Counting(tuple(texts), reading, out, resume, threads, memory)
            with counting.kept():
                tokenizer.fit_counted(counting.count(tokenizer, text), memory=memory, meter=meter)
                save_tokenizer(tokenizer, out)
        else:
            tokenizer.fit_blocks(text, threads=threads)
            save_tokenizer(tokenizer, out)
    seconds = time.perf_counter() - began
    left_out = getattr(tokenizer, "left_out_", 0)
    if left_out:
        print_message(
            f"foreword: warning: {left_out:,} rare pieces did not fit in memory and were left out; --memory gives more"
        )
    if as_json:
        facts = {"kind": kind, "vocabulary": len(tokenizer.vocab), "bytes": text.bytes, "left_out": left_out}
        write_json({**facts, "seconds": seconds, "output": out})
    elif not quiet:
        rate = text.bytes / 1e6 / seconds
        print_message(f"{len(tokenizer.vocab):,} tokens in {seconds:.1f} s ({rate:.1f} MB/s), saved in {out}")


def given_options(**options: Any) -> dict[str, Any]:
    """Those that the user has set."""
    return {name: value for name, value in options.items() if value}


def argument_of(option: str, kind: str) -> str | None:
    """Return the name of a constructor's argument that an option stands for; None if the kind has no such argument."""
    arguments = signature(kinds.resolve(KINDS[kind].home)).parameters.keys() - KINDS[kind].names[kind].keys()
    if option == "pattern" and kind == "bpe-characters":  # which merges within words
        return None
    return next((name for name in NAMES.get(option, (option,)) if name in arguments), None)


def refuse_useless(kind: str, given: dict[str, Any], out: str, as_json: bool) -> None:
    """Refuse options that mean nothing to the kind."""

    def supported(option: str, kind: str) -> bool:
        return option in KINDS[kind].training or argument_of(option, kind) is not None

    for name in given:
        if not supported(name, kind):
            able = " or ".join(each for each in KINDS if supported(name, each))
            option = f"'--{name.replace('_', '-')}'"
            raise typer.BadParameter(f"means nothing to --kind {kind}, only to {able}", param_hint=option)
    if KINDS[kind].name != "bpe" and (out == "-" or out.lower().endswith(".json")):
        raise typer.BadParameter(
            f"tokenizer.json holds only BPE tokenizers, not {kind}: name a folder", param_hint="'-o'"
        )
    if "ray" in given and "resume" in given:
        raise typer.BadParameter("Ray counts what is lost again by itself: leave it out", param_hint="'--resume'")
    if as_json and out == "-":
        raise typer.BadParameter("standard output is taken by -o", param_hint="'--json'")


def build(kind: str, given: dict[str, Any]) -> Any:
    """Construct a tokenizer that has learnt nothing yet."""
    settings = {argument_of(name, kind): value for name, value in given.items() if name not in ("resume", "ray")}
    return kinds.build(KINDS[kind], {**KINDS[kind].names[kind], **settings})


class Tally:
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
    """The long half of learning BPE, which can be stopped and gone on with where the text can be read again."""

    texts: tuple[str, ...]
    reading: Reading
    out: str
    resume: bool
    threads: int | None
    memory: int

    @property
    def checkpoint(self) -> Path:
        return Path(f"{Path(self.out)}.partial")

    def count(self, tokenizer: BPETokenizer, blocks: Iterable[Block]) -> Counted:
        from foreword.cli.texts import fingerprint
        from foreword.tokens.resume import count_with_checkpoint

        text = None if self.out == "-" else fingerprint(self.texts, self.reading)
        if text is None:
            if self.resume:
                raise typer.BadParameter("a pipe can be neither read nor written twice", param_hint="'--resume'")
            return tokenizer.count(blocks, threads=self.threads, memory=self.memory)
        # Only what the counts depend on: going on with another --vocab is fine.
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
        """Whatever goes wrong inside, say that the counts are kept; remove them when all is well."""
        try:
            yield
        except KeyboardInterrupt:
            raise KeyboardInterrupt("stopped; --resume goes on" if self.checkpoint.exists() else "stopped") from None
        except ForewordError as error:
            if self.checkpoint.exists():
                raise ForewordError(f"{error}; the counts are kept, --resume goes on") from error
            raise
        self.checkpoint.unlink(missing_ok=True)
