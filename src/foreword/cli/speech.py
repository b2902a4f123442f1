"""``foreword speech``: learn to recognise speech, transcribe recordings, measure the word error rate."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import typer

from foreword import kinds
from foreword.cli.options import (
    ModelFolder,
    NetworkOptions,
    Out,
    OutputOptions,
    add_command,
    command_group,
    examples,
)
from foreword.errors import InputError

if TYPE_CHECKING:
    from foreword.pipeline.speech import SpeechRecogniser
    from foreword.protocols import Meter
    from foreword.speech.recordings import Recording

TRAIN_EXAMPLES = examples(
    "foreword speech train spoken_digits:train -o digits",
    "foreword speech train recordings.tsv -o speech --tokens character --valid others.tsv --set units=128",
)
TRANSCRIBE_EXAMPLES = examples(
    "foreword speech transcribe digits one.wav two.wav",
    "foreword train ngram numbers.txt -o numbers --tokenizer digits --set order=3",
    "foreword speech transcribe digits *.wav --language-model numbers --json",
)
EVALUATE_EXAMPLES = examples(
    "foreword speech evaluate digits spoken_digits:test",
    "foreword speech evaluate digits strings.tsv --language-model numbers --beam 32 --json | jq .wer",
)
RECORDINGS_HELP = (
    "A table with a WAV file, a tab and its text in each line; a folder or tar archive of WAV files whose names begin "
    "with their text; or [bold]spoken_digits:train[/]."
)
RecordingsArgument: TypeAlias = Annotated[
    list[str], typer.Argument(metavar="RECORDINGS", help=RECORDINGS_HELP, show_default=False)
]

Symbols: TypeAlias = Annotated[
    Literal["word", "character"],
    typer.Option("--tokens", help="Symbols that the network predicts; words suit a small vocabulary."),
]
SampleRate: TypeAlias = Annotated[
    int, typer.Option("--sample-rate", min=1000, help="Sample rate, in Hz, that recordings are converted to.")
]

app = command_group("speech", "Train a speech recogniser; transcribe recordings.", TRAIN_EXAMPLES)


@dataclass(frozen=True, slots=True)
class DecodingOptions:
    """How texts are decoded."""

    beam: Annotated[
        int, typer.Option("--beam", min=0, help="Beam width; 0 takes the likeliest symbol of each frame.")
    ] = 16
    language_model: Annotated[
        str | None,
        typer.Option("--language-model", metavar="MODEL", help="Language model of the texts, in the same symbols."),
    ] = None
    weight: Annotated[float, typer.Option("--weight", min=0, help="Weight of the language model.")] = 0.5

    def arguments(self) -> dict[str, Any]:
        """Return the options as keyword arguments of ``transcribe``."""
        from foreword.cli.models import load_able

        if self.language_model and not self.beam:
            raise typer.BadParameter("a language model needs a beam", param_hint="'--beam'")
        model = self.language_model and load_able(self.language_model, "score")
        return {"width": self.beam, "language_model": model or None, "weight": self.weight}


def train(
    files: RecordingsArgument,
    *,
    out: Out,
    tokens: Symbols = "word",
    sample_rate: SampleRate = 8000,
    valid: Annotated[
        str | None, typer.Option(metavar="RECORDINGS", help="Recordings on which the best epoch is chosen.")
    ] = None,
    network: NetworkOptions,
    output: OutputOptions,
) -> None:
    """Train a speech recogniser on recordings and their texts, and save it.

    Ctrl-C saves what was learnt in MODEL.checkpoint, and the same command with --resume continues, with more epochs or
    seconds if asked.
    """
    from foreword.cli.progress import job

    kind = kinds.KINDS["recogniser"]
    begun = network.begin(out, kind, "speech", "symbols")
    if begun is None:
        return
    settings, target = begun

    from foreword.pipeline.fitting import run_network
    from foreword.pipeline.speech import SpeechRecogniser
    from foreword.storage.folder import save

    symbols = kinds.resolve(kinds.KINDS[tokens].home)()
    recogniser = SpeechRecogniser(symbols, kinds.build(kind, settings), rate=sample_rate)
    with job(output, out, kind="speech-recogniser") as work:
        recordings = read_all(files, work.meter)
        held_out = None if valid is None else read_all([valid], work.meter)
        steps = partial(recogniser.train, recordings, valid=held_out)
        run_network(recogniser.model, lambda run: steps(checkpoint=run), target, work.meter)
        save(recogniser, out)
        target.discard_checkpoint()
        work.facts |= sizes_of(recogniser, recordings)
        seconds = f"{work.facts['seconds_of_sound']:,.0f} s"
        work.summary = f"recogniser: {work.count('recordings')}, {seconds}, {work.count('symbols')}"
        if held_out is not None:
            errors = recogniser.measure(held_out)
            work.facts["valid"] = errors.to_json()
            work.measured = f", word error rate {errors.rate:.2%} on {valid}"


def transcribe(
    model: ModelFolder,
    files: Annotated[list[str], typer.Argument(metavar="WAV", help="Recordings, WAV files.", show_default=False)],
    *,
    search: DecodingOptions,
    output: OutputOptions,
) -> None:
    """Print what is said in each recording: one line per file.

    With --json every line is an object with file, seconds and text.
    """
    import json
    from itertools import tee

    from foreword.cli.models import load_able
    from foreword.cli.printing import flush, write_text
    from foreword.speech.wav import read_wav

    recogniser: SpeechRecogniser = load_able(model, "transcribe")
    read, reading = tee(map(read_wav, files))
    texts = recogniser.transcribe_stream(reading, **search.arguments())
    for file, text, sound in zip(files, texts, read, strict=True):
        facts = {"file": file, "seconds": round(sound.seconds, 3), "text": text}
        write_text((json.dumps(facts, ensure_ascii=False) if output.as_json else text) + "\n")
        flush()


def evaluate(model: ModelFolder, files: RecordingsArgument, *, search: DecodingOptions, output: OutputOptions) -> None:
    """Transcribe recordings and compare with their texts: the word error rate, with its 95 % interval.

    With --json the keys are wer, interval, accuracy, substitutions, deletions, insertions, words, texts and right.
    """
    from foreword.cli.models import load_able
    from foreword.cli.printing import print_facts, write_json
    from foreword.cli.progress import progress

    with progress(output.quiet) as meter:
        recogniser: SpeechRecogniser = load_able(model, "transcribe")
        errors = recogniser.measure(read_all(files, meter), **search.arguments(), meter=meter)
    if output.as_json:
        write_json(errors.to_json())
        return
    print_facts(
        {
            "word error rate": f"{errors.rate:.2%} (95 % between {errors.low:.2%} and {errors.high:.2%})",
            "errors": f"{errors.substitutions:,} substitutions, {errors.deletions:,} deletions, "
            f"{errors.insertions:,} insertions in {errors.words:,} words",
            "recordings": f"{errors.texts:,}, {errors.right:,} without an error ({errors.right / errors.texts:.2%})",
        }
    )


add_command(app, train, TRAIN_EXAMPLES, lambda _: ("speech", kinds.KINDS["recogniser"]))
add_command(app, transcribe, TRANSCRIBE_EXAMPLES)
add_command(app, evaluate, EVALUATE_EXAMPLES)


def read_all(names: list[str], meter: Meter | None = None) -> list[Recording]:
    """Read recordings of files, folders and data sets."""
    from foreword.cli.texts import is_dataset
    from foreword.speech.recordings import read_recordings, spoken_digits
    from foreword.text.datasets import lookup

    found: list[Recording] = []
    for name in names:
        if not is_dataset(name):
            found += read_recordings(name, meter=meter)
        elif (file := lookup(name)[1]).format == "recordings":
            found += spoken_digits(file.split, meter=meter)
        else:
            raise InputError(f"{name}: its format is {file.format}: expected recordings, as spoken_digits:train")
    return found


def sizes_of(recogniser: SpeechRecogniser, recordings: list[Recording]) -> dict[str, float]:
    """Return the sizes of a training set and of a recogniser."""
    return {
        "recordings": len(recordings),
        "seconds_of_sound": round(sum(each.sound.seconds for each in recordings), 3),
        "symbols": len(recogniser.tokenizer.vocab),
        "parameters": recogniser.model.parameter_count,
    }
