"""Loss against size for LSTMs and Transformers, with the power laws through them (rows X01 and X04).

    python recipes/scaling_law.py                       six sizes of each on the embedded text, some minutes on a CPU
    python recipes/scaling_law.py --device cuda --epochs 8 --scale 4

Characters of the embedded text; every model reads the same text as often, by the same optimiser, and is scored on the
held-out part. To compare the two at one size, an LSTM is also trained for each Transformer, with as many parameters to
5 %. Prints the table and the fits, and writes docs/pictures/recurrent-scaling.svg and docs/results/scaling_law.json.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import torch

from foreword import CharacterTokenizer, Corpus, RecurrentLM, TransformerLM, Vocab, embedded_text
from foreword.lessons.claims.results import provenance, write_result
from foreword.lessons.scaling import PowerLaw, draw_scaling, fit_power_law
from foreword.neural.recurrent import MODEST
from foreword.nn.dropout import NO_DROPOUT
from foreword.nn.network import parameter_count
from foreword.picture.picture import write_standalone

PICTURES = Path(__file__).parents[1] / "docs" / "pictures"
WIDTHS = (8, 12, 16, 24, 32, 48)
LARGE = "LSTMs as large as the Transformers"


def lstm(width: int, settings: dict[str, Any]) -> RecurrentLM:
    return RecurrentLM("lstm", width, 2 * width, 1, tied=False, **settings)


def transformer(width: int, settings: dict[str, Any]) -> TransformerLM:
    return TransformerLM(width, 2, 4, **settings)


def lstm_as_large(width: int, vocab: Vocab, settings: dict[str, Any]) -> RecurrentLM:
    """Return the LSTM whose number of parameters is nearest to that of a Transformer of the same width."""
    wanted = parameter_count(transformer(width, settings).network(vocab))
    models = (RecurrentLM("lstm", width, hidden, 1, tied=False, **settings) for hidden in range(width, 4 * width))
    return min(models, key=lambda model: abs(parameter_count(model.network(vocab)) - wanted))


def measured(model: Any, train: Corpus, valid: Corpus) -> tuple[int, float]:
    size = parameter_count(model.network(train.vocab))
    loss = -model.fit(train).score(valid)
    sys.stderr.write(f"{model!r}: {size:,} parameters, {loss:.4f} nats\n")
    return size, loss


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--documents", type=int, default=4000, help="how much of the text is learnt")
    parser.add_argument("--scale", type=int, default=1, help="times the widths")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("docs/results/scaling_law.json"))
    asked = parser.parse_args()
    torch.set_num_threads(1)
    began = time.perf_counter()
    texts = embedded_text()[: asked.documents]
    tokenizer = CharacterTokenizer(min_count=20).fit(texts)
    train, valid = (Corpus.from_texts(part, tokenizer) for part in (texts, embedded_text("valid")[:300]))
    sys.stderr.write(f"{len(train.ids):,} characters, {len(valid.ids):,} held out, {len(tokenizer.vocab)} kinds\n")
    training = replace(MODEST, epochs=asked.epochs, batch=32, steps=64, rate=5e-3)
    settings: dict[str, Any] = {"dropout": NO_DROPOUT, "training": training, "device": asked.device, "seed": asked.seed}
    found: dict[str, list[tuple[int, float]]] = {
        "LSTM": [measured(lstm(asked.scale * width, settings), train, valid) for width in WIDTHS],
        "Transformer": [measured(transformer(asked.scale * width, settings), train, valid) for width in WIDTHS],
    }
    laws = {name: fits(points) for name, points in found.items()}
    vocab = tokenizer.vocab
    as_large = [measured(lstm_as_large(asked.scale * width, vocab, settings), train, valid) for width in WIDTHS]
    made = provenance(asked.seed, time.perf_counter() - began)
    write_result(asked.out, made | facts(found, laws, len(train.ids), len(valid.ids)) | {LARGE: losses(as_large)})
    show(found, laws)


class Fits(NamedTuple):
    """Power laws through the losses: a N^(−b), and a N^(−b) + c."""

    plain: PowerLaw
    floor: PowerLaw


def fits(points: list[tuple[int, float]]) -> Fits:
    """Fit both power laws."""
    sizes, losses = [float(size) for size, _ in points], [loss for _, loss in points]
    return Fits(fit_power_law(sizes, losses), fit_power_law(sizes, losses, floor=True))


def losses(points: list[tuple[int, float]]) -> dict[str, Any]:
    return {"parameters": [size for size, _ in points], "loss": [round(loss, 4) for _, loss in points]}


def facts(
    found: dict[str, list[tuple[int, float]]], laws: dict[str, Fits], characters: int, held_out: int
) -> dict[str, Any]:
    """Return the losses and the fits as they are stored."""
    return {
        "measure": "nats per character of the held-out part",
        "characters": characters,
        "held out": held_out,
        "models": {
            name: losses(points)
            | {
                "a N^(-b)": {"b": round(laws[name].plain.exponent, 4), "R2": round(laws[name].plain.r2, 4)},
                "a N^(-b) + c": {
                    "b": round(laws[name].floor.exponent, 4),
                    "c": round(laws[name].floor.floor, 4),
                    "R2": round(laws[name].floor.r2, 4),
                },
            }
            for name, points in found.items()
        },
    }


def show(found: dict[str, list[tuple[int, float]]], laws: dict[str, Fits]) -> None:
    """Print the table and draw the curves."""
    lines = ["| | parameters: nats a character | a N^(−b): b, R² | a N^(−b) + c: b, c, R² |", "|---|---|---|---|"]
    for name, points in found.items():
        plain, floor = laws[name]
        each = ", ".join(f"{size:,}: {loss:.3f}" for size, loss in points)
        lines.append(
            f"| {name} | {each} | {plain.exponent:.3f}, {plain.r2:.4f} "
            f"| {floor.exponent:.3f}, {floor.floor:.2f}, {floor.r2:.4f} |"
        )
    sys.stdout.write("\n".join(lines) + "\n")
    said = "Loss falls as a power of the number of parameters; R² is " + ", ".join(
        f"{law.floor.r2:.3f} for the {name}" for name, law in laws.items()
    )
    curves = {name: (lambda size, law=law.floor: float(law.at([size])[0])) for name, law in laws.items()}
    drawn = draw_scaling(found, curves, f"{said}.", accent={"LSTM"})
    write_standalone(drawn, PICTURES / "recurrent-scaling.svg")


if __name__ == "__main__":
    main()
