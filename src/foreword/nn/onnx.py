"""Export of recurrent language models to ONNX, for runtimes that know neither Python nor torch.

One graph serves a whole text and a single word, for its first two dimensions are free::

    ids (steps, texts) int64, layer{l}.h (1, texts, units), in an LSTM also layer{l}.c
        Gather → RNN, GRU or LSTM, one node per layer → MatMul, Add → LogSoftmax
    logprobs (steps, texts, V), layer{l}.h_after, layer{l}.c_after

A text begins with zeros as its state and ``</s>`` as its first id; later calls take the states of the call before. The
vocabulary is in the file's metadata, as JSON. ONNX orders the gates differently: i, o, f, c in an LSTM, z, r, h in a
GRU, which is torch's with ``linear_before_reset``.

ONNX is a protobuf. A message is a sequence of fields, each a number and a wire type, then a varint, or a length and as
many bytes; the few that a graph needs are written here by hand (https://onnx.ai/onnx/repo-docs/IR.html).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from foreword.arrays import Array, Floats
from foreword.errors import InputError
from foreword.nn.network import BIAS, EMBEDDING, OUTPUT, TEMPERATURE
from foreword.nn.recurrent_layer import layer_names
from foreword.nn.recurrent_network import PLAIN, RecurrentNetwork
from foreword.protocols import RecurrentModel
from foreword.storage.atomic import atomic_file
from foreword.tokens.vocab import Vocab

IR_VERSION, OPSET = 8, 17
LIMIT = (1 << 31) - 1
"""The largest size of a protobuf, in bytes."""

FLOAT, INT64 = 1, 7
"""Element types."""

OPERATORS = {"rnn": "RNN", "irnn": "RNN", "gru": "GRU", "lstm": "LSTM"}
_ORDER = {"rnn": (0,), "irnn": (0,), "gru": (1, 0, 2), "lstm": (0, 3, 1, 2)}
"""The index of our gate at each position in ONNX."""


def write_onnx(model: RecurrentModel, path: str | Path) -> None:
    """Write a trained recurrent model; the file appears once it is complete."""
    network = model.network(model.vocab)
    if not isinstance(network, RecurrentNetwork) or network.cell not in OPERATORS:
        kind = getattr(network, "cell", type(model).__name__)
        raise InputError(f"{path}: ONNX takes recurrent models of {', '.join(OPERATORS)}, not of {kind}")
    if network.mogrify or network.softmaxes > 1 or network.variant != PLAIN:
        raise InputError(f"{path}: ONNX takes recurrent models without a Mogrifier and with one softmax")
    weights = {name: np.ascontiguousarray(part.detach().cpu().numpy()) for name, part in model.weights_.items()}
    if TEMPERATURE in weights:
        raise InputError(f"{path}: ONNX takes recurrent models with a temperature of 1")
    size = sum(part.nbytes for part in weights.values())
    if size > LIMIT - (1 << 24):
        raise InputError(f"{path}: the model has {size:,} bytes of weights; an ONNX file holds at most {LIMIT:,}")
    message = b"".join(_model(network, weights, model.vocab))
    with atomic_file(path) as new:
        new.write_bytes(message)


# The graph


def _model(network: RecurrentNetwork, weights: dict[str, Floats], vocab: Vocab) -> Iterator[bytes]:
    yield _number(1, IR_VERSION)
    yield _text(2, "foreword")
    yield _message(7, b"".join(_graph(network, weights)))
    yield _message(8, _number(2, OPSET))
    metadata = {"cell": network.cell, "vocab": json.dumps(vocab.tokens, ensure_ascii=False), "end": str(vocab.end)}
    for key, value in metadata.items():
        yield _message(14, _text(1, key) + _text(2, value))


def _graph(network: RecurrentNetwork, weights: dict[str, Floats]) -> Iterator[bytes]:
    """Yield nodes, a name, tensors, inputs and outputs."""
    yield _text(2, f"{network.cell} language model")
    yield _message(5, _tensor("one", np.array([1], np.int64)))
    yield _message(5, _tensor(EMBEDDING, weights[EMBEDDING]))
    yield _message(5, _tensor(BIAS, weights[BIAS]))
    yield _message(11, _value("ids", INT64, ["steps", "texts"]))
    yield _node("Gather", [EMBEDDING, "ids"], ["x0"])
    parts = "hc" if network.cell == "lstm" else "h"
    for layer, (_, units) in enumerate(network.layer_sizes()):
        yield from _layer(network.cell, layer, units, parts, weights)
    output = OUTPUT if OUTPUT in weights else EMBEDDING
    if output == OUTPUT:
        yield _message(5, _tensor(OUTPUT, weights[OUTPUT]))
    yield _node("Transpose", [output], ["turned"], _ints("perm", [1, 0]))
    yield _node("MatMul", [f"x{network.layers}", "turned"], ["products"])
    yield _node("Add", ["products", BIAS], ["scores"])
    yield _node("LogSoftmax", ["scores"], ["logprobs"], _int("axis", -1))
    yield _message(12, _value("logprobs", FLOAT, ["steps", "texts", network.vocab]))
    for layer, (_, units) in enumerate(network.layer_sizes()):
        for part in parts:
            yield _message(11, _value(f"layer{layer}.{part}", FLOAT, [1, "texts", units]))
            yield _message(12, _value(f"layer{layer}.{part}_after", FLOAT, [1, "texts", units]))


def _layer(cell: str, layer: int, units: int, parts: str, weights: dict[str, Floats]) -> Iterator[bytes]:
    w_x, w_h, b_x, b_h = (_reordered(weights[name], cell) for name in layer_names(layer))
    name = f"layer{layer}"
    yield _message(5, _tensor(f"{name}.W", w_x[None]))
    yield _message(5, _tensor(f"{name}.R", w_h[None]))
    yield _message(5, _tensor(f"{name}.B", np.concatenate((b_x, b_h))[None]))
    options = [_int("hidden_size", units)]
    if cell == "gru":
        options.append(_int("linear_before_reset", 1))
    if cell == "irnn":
        options.append(_strings("activations", ["Relu"]))
    read = [f"x{layer}", f"{name}.W", f"{name}.R", f"{name}.B", "", *(f"{name}.{part}" for part in parts)]
    yield _node(OPERATORS[cell], read, [f"{name}.all", *(f"{name}.{part}_after" for part in parts)], *options)
    yield _node("Squeeze", [f"{name}.all", "one"], [f"x{layer + 1}"])  # drop the dimension of directions


def _reordered(part: Floats, cell: str) -> Floats:
    gates = np.split(part, len(_ORDER[cell]))
    return np.concatenate([gates[gate] for gate in _ORDER[cell]])


# Messages of ONNX, by the numbers of their fields


def _node(operator: str, inputs: Sequence[str], outputs: Sequence[str], *attributes: bytes) -> bytes:
    """Return a node as a field of a graph."""
    read = b"".join(_text(1, name) for name in inputs)
    written = b"".join(_text(2, name) for name in outputs)
    options = b"".join(_message(5, attribute) for attribute in attributes)
    return _message(1, read + written + _text(3, outputs[0]) + _text(4, operator) + options)


def _tensor(name: str, array: Array) -> bytes:
    kind = INT64 if array.dtype == np.int64 else FLOAT
    little = array.astype("<i8" if kind == INT64 else "<f4", copy=False)
    return b"".join(_number(1, size) for size in array.shape) + _number(2, kind) + _text(8, name) + _bytes(9, little)


def _value(name: str, kind: int, shape: Sequence[int | str]) -> bytes:
    """Return the name and type of an input or output; a free dimension has a name instead of a size."""
    sizes = (_text(2, size) if isinstance(size, str) else _number(1, size) for size in shape)
    dimensions = b"".join(_message(1, size) for size in sizes)
    return _text(1, name) + _message(2, _message(1, _number(1, kind) + _message(2, dimensions)))


def _int(name: str, value: int) -> bytes:
    return _text(1, name) + _number(3, value) + _number(20, 2)


def _ints(name: str, values: Sequence[int]) -> bytes:
    return _text(1, name) + b"".join(_number(8, value) for value in values) + _number(20, 7)


def _strings(name: str, values: Sequence[str]) -> bytes:
    return _text(1, name) + b"".join(_text(9, value) for value in values) + _number(20, 8)


# The wire


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _text(field: int, value: str) -> bytes:
    return _message(field, value.encode())


def _bytes(field: int, array: Array) -> bytes:
    return _message(field, array.tobytes())


def _message(field: int, content: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(content)) + content


def _varint(value: int) -> bytes:
    """Encode a number in seven bits per byte, the lowest first; a negative one as its 64-bit complement."""
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)
