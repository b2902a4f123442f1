"""``foreword train``: a text and a kind of model in, a folder out."""

from __future__ import annotations

import os
import time
from importlib import import_module
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from foreword.cli.neural import NEURAL
from foreword.cli.options import (
    RUNNING,
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
    memory_size,
    ray_talking_to_stderr,
    reading_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from foreword.protocols import LanguageModel, Meter, TextTokenizer
    from foreword.storage.scratch import Scratch
    from foreword.text.block import Block
    from foreword.text.sources import Reading
    from foreword.tokens.corpus import Corpus

KINDS = {
    "unigram": "foreword.ngram.unigram:UnigramLM",
    "ngram": "foreword.ngram.model:NgramLM",
    "hmm": "foreword.hmm.model:HMM",
    "word2vec": "foreword.vectors.word2vec:Word2Vec",
    "fasttext": "foreword.fasttext.vectors:FastText",
    "glove": "foreword.vectors.glove:GloVe",
    **NEURAL,
}
"""What can be trained, and where its class lives: a kind joins by adding its line."""

VECTORS = ("word2vec", "fasttext", "glove")
"""Kinds that learn word vectors, step by step."""

EXAMPLES = examples(
    "foreword train ngram ptb:train -o model --set order=5 --set smoothing=modified-kneser-ney",
    "foreword train ngram web.jsonl.zst -o model --set prune=[0,0,1] --set layout=trie --set quantize=true",
    "foreword train ngram huge.txt -o model --memory 2G",
    "foreword train unigram ptb:train -o model",
    "foreword train unigram notes/*.txt -o model --min-count 2 --set add=0.5",
    "foreword train unigram book.txt.gz -o model --tokenizer tokenizer.json",
    "foreword train word2vec wiki.txt -o vectors --set dimensions=300 --set model=cbow --threads 8",
    "foreword train fasttext wiki.txt -o vectors --resume",
    "foreword train lstm ptb:train -o model --valid ptb:valid --set hidden=200 --set epochs=12 --set dropout=0.3",
    "foreword train gru play.txt -o model --tokenizer characters.json --set batch=32 --set steps=100 --resume",
    "foreword train ngram /shared/web -o model --ray head:6379",
    "foreword train lstm /shared/news.txt -o model --set batch=128 --ray head:6379 --workers 8",
    "foreword train transformer notes.txt -o model --set units=128 --set seconds=120 --device cpu",
)


def _check_kind(kind: str) -> str:
    if kind not in KINDS:
        raise typer.BadParameter(f"no kind {kind!r}: expected {', '.join(KINDS)}")
    return kind


def train(
    kind: Annotated[
        str,
        typer.Argument(metavar="KIND", help=f"What to train: {', '.join(KINDS)}.", callback=_check_kind),
    ],
    texts: Texts,
    out: Annotated[str, typer.Option("--out", "-o", metavar="MODEL", help="The folder to write.")],
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="A setting of the model; may be given several times."),
    ] = None,
    tokenizer: Annotated[
        str | None,
        typer.Option(metavar="TOKENIZER", help="Use this tokenizer.", show_default="words between white space"),
    ] = None,
    vocab: Annotated[
        int | None, typer.Option("--vocab", min=2, help="Keep so many words, the rest is <unk>.", show_default="all")
    ] = None,
    min_count: MinCount = None,
    valid: Annotated[
        str | None, typer.Option(metavar="TEXT", help="A text to tune on, for models that tune themselves.")
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with training that was stopped, for models that take long.")
    ] = False,
    device: Annotated[
        str | None,
        typer.Option(metavar="cpu|cuda", help="For neural models.", show_default="the GPU, where there is one"),
    ] = None,
    memory: Annotated[
        int | None,
        typer.Option(
            parser=memory_size, metavar="SIZE", help="For ngram: what training may take.", show_default="no limit"
        ),
    ] = None,
    threads: Threads = None,
    ray: RayOption = None,
    workers: Annotated[
        int | None,
        typer.Option(
            "--workers",
            min=1,
            rich_help_panel=RUNNING,
            show_default="1",
            help="With --ray: how many share the batch of a recurrent model; with a GPU each where --device is cuda.",
        ),
    ] = None,
    document: DocumentOption = "line",
    field: FieldOption = "text",
    format: FormatOption = None,
    errors: ErrorsOption = "strict",
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Train a language model or word vectors on a text and save it.

    A document is a line and a word what stands between white space, unless told otherwise. With --memory, what does
    not fit goes to temporary files beside the model, and the model is the same.

    Word vectors leave out words seen fewer than 5 times, unless --min-count says otherwise. Ctrl-C keeps what has been
    learnt, and the same line with --resume goes on. With more --threads than one, training is no longer repeatable.

    Neural models take the settings of their training and dropout with --set too: epochs, batch, steps, rate, optimiser,
    schedule, clip, patience, seconds, dropout and others; words seen once are <unk> to them. With --valid they keep
    what was best on it. The run is kept beside the model, in MODEL.checkpoint, until it is done.

    With --ray, n-grams are counted by the tasks of a Ray cluster, and networks are trained by --workers that share each
    batch; texts and MODEL have to lie where all nodes see them. The n-gram model is the same as without, and so is the
    network of one worker.
    """
    if resume and kind not in (*VECTORS, *NEURAL):
        raise typer.BadParameter(f"{kind} learns in one pass: there is nothing to go on with", param_hint="'--resume'")
    if device is not None and kind not in NEURAL:
        raise typer.BadParameter(f"means nothing to {kind}", param_hint="'--device'")
    if ray is not None and kind != "ngram" and kind not in NEURAL:
        raise typer.BadParameter(f"means nothing to {kind}, only to ngram, {', '.join(NEURAL)}", param_hint="'--ray'")
    if workers is not None and (ray is None or kind not in NEURAL):
        raise typer.BadParameter("is for neural models with --ray", param_hint="'--workers'")
    if tokenizer and (vocab or min_count):
        raise typer.BadParameter("the tokenizer has its vocabulary already", param_hint="'--vocab' / '--min-count'")

    from foreword.cli.models import check_output
    from foreword.cli.neural import MIN_COUNT as SEEN_TWICE
    from foreword.cli.neural import checkpoint_of, forget_run, new_model, train_neural
    from foreword.cli.printing import tell
    from foreword.cli.progress import progress
    from foreword.cli.settings import parse_settings, settings_of
    from foreword.cli.texts import blocks_in
    from foreword.cli.vectors import MIN_COUNT, begin_or_resume, train_model
    from foreword.pipeline.language import TextLM
    from foreword.storage.folder import save
    from foreword.storage.scratch import Scratch

    kind_class = _class_of(kind)
    given = {} if kind in NEURAL else parse_settings(settings or [], kind, kind_class)
    if kind in NEURAL and min_count is None and tokenizer is None and vocab is None:
        min_count = SEEN_TWICE
    if kind in VECTORS:
        if threads is not None:
            given.setdefault("threads", threads)
        if min_count is None and tokenizer is None:
            min_count = MIN_COUNT
    if memory is not None:
        if "memory" not in settings_of(kind_class):
            raise typer.BadParameter(f"means nothing to {kind}", param_hint="'--memory'")
        given |= {"memory": memory, "scratch": _folder_of(out)}
    check_output(out, folder=True)
    if kind in NEURAL:
        model: Any = new_model(kind, settings or [], kind_class, device)
        if resume and Path(out).exists() and not checkpoint_of(out).exists():
            tell(f"{out} is there already and no {checkpoint_of(out)}: nothing to go on with")
            return
    else:
        model = begin_or_resume(kind_class, given, out, resume=resume)
    reading = reading_of(document, field, format, errors)
    began = time.perf_counter()
    with progress(quiet) as meter:
        if ray is not None and kind == "ngram":
            words, facts = _on_ray(model, texts, reading, tokenizer, min_count, vocab, ray, meter)
            save(TextLM(words, model), out)
            _tell_trained(kind, facts, time.perf_counter() - began, out, as_json, quiet)
            return
        blocks = blocks_in(texts, reading, meter)
        held = None if valid is None else blocks_in([valid], reading, meter)
        scratch = Scratch(memory, None if memory is None else _folder_of(out))
        speaker, corpus = read_corpus(blocks, tokenizer, min_count, vocab, threads, scratch)
        tuning = None if held is None else type(corpus).from_blocks(held, speaker, threads=threads, scratch=scratch)
        if kind in VECTORS:
            train_model(model, corpus, out, meter)
        elif kind in NEURAL:
            if ray is None:
                train_neural(model, corpus, tuning, out, meter, resume=resume, threads=threads)
            else:
                from foreword.cluster.training import fit_on_ray

                with ray_talking_to_stderr():
                    fit_on_ray(
                        model, corpus, tuning, folder=checkpoint_of(out), address=ray or None, workers=workers or 1,
                        threads=threads or 1, resume=resume, meter=meter,
                    )  # fmt: skip
            save(TextLM(speaker, model), out)
            forget_run(out)
        else:
            model.fit(corpus, valid=tuning, **_meter_of(model, meter))
            save(TextLM(speaker, model), out)
    facts = {"tokens": len(corpus.ids), "vocabulary": len(corpus.vocab), "documents": len(corpus)}
    _tell_trained(kind, facts, time.perf_counter() - began, out, as_json, quiet)


def _tell_trained(kind: str, facts: dict[str, int], seconds: float, out: str, as_json: bool, quiet: bool) -> None:
    from foreword.cli.printing import tell, write_json

    if as_json:
        write_json({"kind": kind, **facts, "seconds": seconds, "output": out})
    elif not quiet:
        tell(
            f"{kind}: {facts['tokens']:,} tokens, a vocabulary of {facts['vocabulary']:,}, "
            f"{seconds:.1f} s, saved in {out}"
        )


def _on_ray(
    model: Any, texts: list[str], reading: Reading, tokenizer: str | None, min_count: int | None, vocab: int | None,
    address: str, meter: Meter | None,
) -> tuple[TextTokenizer, dict[str, int]]:  # fmt: skip
    """An n-gram model from what a cluster counts; its tokenizer, and what was read."""
    from foreword.cli.models import load_tokenizer
    from foreword.cli.texts import files_in
    from foreword.cluster.ngrams import fit_ngrams
    from foreword.tokens.words import WordTokenizer

    words: TextTokenizer
    if tokenizer is not None:
        words = load_tokenizer(tokenizer)
    else:
        words = WordTokenizer(min_count=min_count or 1, max_size=vocab)
    names = files_in(texts, meter)
    with ray_talking_to_stderr():
        seen = fit_ngrams(model, names, reading, words, learn=tokenizer is None, address=address or None, meter=meter)
    return words, {"tokens": seen.tokens, "vocabulary": len(words.vocab), "documents": seen.documents}


def _class_of(kind: str) -> type[LanguageModel[Any]]:
    module, name = KINDS[kind].split(":")
    found: type[LanguageModel[Any]] = getattr(import_module(module), name)
    return found


def _folder_of(out: str) -> str:
    """The folder that the model will stand in, or the nearest above it that is already there."""
    return str(next(folder for folder in Path(os.path.realpath(out)).parents if folder.is_dir()))


def _meter_of(model: LanguageModel[Any], meter: Meter | None) -> dict[str, Any]:
    """The meter as an argument of ``fit``, for models that tell how far they are."""
    return {"meter": meter} if "meter" in signature(model.fit).parameters else {}


def read_corpus(
    blocks: Iterator[Block],
    tokenizer: str | None,
    min_count: int | None,
    vocab: int | None,
    threads: int | None,
    scratch: Scratch | None = None,
) -> tuple[TextTokenizer, Corpus]:
    """The text as ids, with the tokenizer that made them: the one named, or words as the text itself has them."""
    from foreword.cli.models import load_tokenizer
    from foreword.tokens.corpus import Corpus
    from foreword.tokens.words import WordTokenizer

    if tokenizer is not None:
        loaded = load_tokenizer(tokenizer)
        return loaded, Corpus.from_blocks(blocks, loaded, threads=threads, scratch=scratch)
    words = WordTokenizer(min_count=min_count or 1, max_size=vocab)
    return words, words.fit_corpus(blocks, threads=threads, scratch=scratch)
