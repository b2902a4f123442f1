"""``foreword train``: a text and a kind of model in, a folder out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from foreword import kinds
from foreword.cli.options import (
    RUNNING,
    DeviceOption,
    Out,
    OutputOptions,
    Overwrite,
    RayOption,
    ReadingOptions,
    SetOption,
    Texts,
    Threads,
    VocabularyOptions,
    examples,
    kind_check,
    memory_size,
    ray_output_to_stderr,
)

if TYPE_CHECKING:
    from foreword.pipeline.fitting import Output
    from foreword.protocols import Meter
    from foreword.text.sources import Reading

KINDS = kinds.trained_as("language-model", "vectors")

KindArgument: TypeAlias = Annotated[
    str,
    typer.Argument(metavar="KIND", help=f"{', '.join(KINDS)}.", callback=kind_check("language-model", "vectors")),
]

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
    "foreword train transformer notes.txt -o model --set hidden=128 --set seconds=120 --device cpu",
)


@dataclass(frozen=True, slots=True)
class TrainingOptions:
    """How a model is trained."""

    valid: Annotated[
        str | None,
        typer.Option("--valid", metavar="TEXT", help="Validation text, for kinds that tune themselves on one."),
    ] = None
    resume: Annotated[
        bool, typer.Option("--resume", help="Resume a training that was stopped (networks and word vectors).")
    ] = False
    overwrite: Overwrite = False
    device: DeviceOption = None
    memory: Annotated[
        int | None,
        typer.Option("--memory", parser=memory_size, metavar="SIZE", show_default="no limit",
                     help="Memory limit of counting, for ngram and glove; the rest goes to temporary files."),
    ] = None  # fmt: skip
    threads: Threads = None
    ray: RayOption = None
    workers: Annotated[
        int | None,
        typer.Option("--workers", min=1, rich_help_panel=RUNNING, show_default="1",
                     help="With --ray: number of workers that share each batch of a network, with one GPU each where "
                     "--device is cuda."),
    ] = None  # fmt: skip

    def check(self, name: str, kind: kinds.Kind) -> None:
        """Refuse options that mean nothing to the kind."""
        if self.resume and "resume" not in kind.training:
            raise typer.BadParameter(f"{name} is trained in one pass: nothing to resume", param_hint="'--resume'")
        if self.device is not None and not kind.network:
            raise typer.BadParameter(f"{name} is not a network", param_hint="'--device'")
        if self.memory is not None and "memory" not in kind.training:
            raise typer.BadParameter(f"{name} has no memory limit", param_hint="'--memory'")
        if self.ray is not None and "ray" not in kind.training:
            able = ", ".join(each for each, kind in KINDS.items() if "ray" in kind.training)
            raise typer.BadParameter(f"{name} cannot be trained on Ray, only {able}", param_hint="'--ray'")
        if self.workers is not None and (self.ray is None or not kind.network):
            raise typer.BadParameter("is for networks, with --ray", param_hint="'--workers'")

    def settings(self, name: str, kind: kinds.Kind, out: str, settings: list[str] | None) -> dict[str, Any]:
        """Return the arguments of the model: of its name, of these options, and of --set."""
        from foreword.cli.settings import parse_settings
        from foreword.storage.atomic import nearest_existing

        given: dict[str, Any] = {"device": self.device} if kind.network else {}
        if kind.task == "vectors" and self.threads is not None:
            given["threads"] = self.threads
        if self.memory is not None:
            given |= {"memory": self.memory, "scratch": str(nearest_existing(out))}
        fixed = {**kind.names[name], **given}
        return {**fixed, **parse_settings(settings, name, kind.home, without=fixed)}


def train(
    kind: KindArgument,
    texts: Texts,
    out: Out,
    *,
    settings: SetOption = None,
    vocabulary: VocabularyOptions,
    training: TrainingOptions,
    reading: ReadingOptions,
    output: OutputOptions,
) -> None:
    """Train a language model or word vectors on a text, and save the model.

    A document is a line, and words are separated by white space. The vocabulary has all words (for networks, the 50,000
    most frequent), so that perplexities of models of one text can be compared; word vectors are learnt for words seen
    at least 5 times. Networks also take the settings of their training and dropout with --set: epochs, batch, steps,
    rate, optimiser, schedule, clip, patience, seconds, dropout and others. With --valid they keep the weights that were
    best on that text.

    Ctrl-C saves what networks and word vectors have learnt, a network in MODEL.checkpoint; the same command with
    --resume continues. Word vectors trained with more than one thread differ from run to run.

    With --ray, n-grams are counted in tasks of a cluster, and networks are trained by --workers; all nodes must be able
    to read the texts and MODEL. The n-gram model is the same as without --ray, and so is the network of one worker.
    """
    from foreword.cli.models import check_output, nothing_to_resume
    from foreword.cli.progress import job

    chosen = kinds.trained_as("language-model", "vectors")[kind]
    training.check(kind, chosen)
    check_output(out, folder=True, kind=chosen.name, overwrite=training.overwrite or training.resume)
    given = training.settings(kind, chosen, out, settings)

    from foreword.pipeline.fitting import Output  # imported now that the arguments are checked: it takes a while

    target = Output(out, training.resume)
    if nothing_to_resume(target, chosen):
        return
    model = target.build(chosen, given)
    with job(output, out, kind=kind) as work:
        work.facts |= _train(model, texts, reading.reading(), vocabulary, training, target, work.meter)
        work.summary = f"{kind}: {work.count('tokens')}, a vocabulary of {work.facts['vocabulary']:,}"


def _train(
    model: Any,
    texts: list[str],
    reading: Reading,
    vocabulary: VocabularyOptions,
    training: TrainingOptions,
    target: Output,
    meter: Meter | None,
) -> dict[str, int]:
    """Train and save the model, here or on Ray; return what was read."""
    from foreword.cli.texts import blocks_in
    from foreword.pipeline.fitting import finished, learn, read_corpus
    from foreword.storage.atomic import nearest_existing
    from foreword.storage.folder import save
    from foreword.storage.scratch import Scratch
    from foreword.tokens.corpus import Corpus

    if training.ray is not None and not kinds.of(model).network:
        return _count_on_ray(model, texts, reading, vocabulary, training.ray, target, meter)
    blocks, threads = blocks_in(texts, reading, meter), training.threads
    held_out = None if training.valid is None else blocks_in([training.valid], reading, meter)
    scratch = Scratch(training.memory, None if training.memory is None else str(nearest_existing(target.folder)))
    words, corpus = read_corpus(
        blocks, model, vocabulary.load(), min_count=vocabulary.min_count, max_size=vocabulary.vocab, threads=threads,
        scratch=scratch,
    )  # fmt: skip
    valid = None if held_out is None else Corpus.from_blocks(held_out, words, threads=threads, scratch=scratch)
    if training.ray is None:
        learn(model, corpus, valid=valid, output=target, threads=threads, meter=meter)
    else:
        from foreword.cluster.training import fit_on_ray

        with ray_output_to_stderr():
            fit_on_ray(
                model, corpus, valid, folder=target.checkpoint, address=training.ray or None,
                workers=training.workers or 1, threads=threads or 1, resume=training.resume, meter=meter,
            )  # fmt: skip
    save(finished(words, model), target.folder)
    target.discard_checkpoint()
    return {"tokens": len(corpus.ids), "vocabulary": len(corpus.vocab), "documents": len(corpus)}


def _count_on_ray(
    model: Any, texts: list[str], reading: Reading, vocabulary: VocabularyOptions, address: str, target: Output,
    meter: Meter | None,
) -> dict[str, int]:  # fmt: skip
    """Train and save an n-gram model from what a cluster counts; return what was read."""
    from foreword.cli.texts import files_in
    from foreword.cluster.ngrams import fit_ngrams
    from foreword.pipeline.fitting import finished
    from foreword.pipeline.language import word_tokenizer
    from foreword.storage.folder import save

    words = vocabulary.load() or word_tokenizer(model, vocabulary.min_count, vocabulary.vocab)
    names = files_in(texts, meter)
    with ray_output_to_stderr():
        seen = fit_ngrams(
            model, names, reading, words, learn=vocabulary.tokenizer is None, address=address or None, meter=meter
        )
    save(finished(words, model), target.folder)
    return {"tokens": seen.tokens, "vocabulary": len(words.vocab), "documents": seen.documents}
