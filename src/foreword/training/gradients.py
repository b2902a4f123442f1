"""Parameters in one flat vector, and the gradients of one update.

All weights lie in a single vector, so that an update is a few operations for all of them. On a GPU their gradients do
too, always at the same addresses, as a recorded CUDA graph needs. On a CPU ``SparseGradients`` takes each gradient as
autograd made it, without a copy; that of an embedding holds only the rows of the words that were read. All gradients
must be there before the first is used, since they are clipped by their joint norm.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import prod
from typing import Protocol

import torch
from torch import Tensor

from foreword.errors import NoGpuError, SettingError

ALIGNED = 64
"""Every tensor begins at a multiple of this many numbers: cuDNN needs aligned weights."""

Shapes = Mapping[str, tuple[int, ...]]
Leaves = Mapping[str, Tensor]
Piece = tuple[slice, Tensor]
"""A segment of the flat vector and its gradient, which is flat as well, or a sparse tensor of some rows."""


# The flat vector


def views(flat: Tensor, shapes: Shapes) -> dict[str, Tensor]:
    """Return the tensors by name; they share the vector's memory."""
    return {name: flat[where].view(shapes[name]) for name, where in slices_of(shapes).items()}


def slices_of(shapes: Shapes) -> dict[str, slice]:
    """Return the segment of the vector that each tensor occupies."""
    found, start = {}, 0
    for name, shape in shapes.items():
        found[name] = slice(start, start + prod(shape))
        start += _aligned_size(shape)
    return found


def new_flat(shapes: Shapes, device: torch.device, dtype: torch.dtype = torch.float32) -> Tensor:
    """Return a vector of zeros that has space for these tensors."""
    return torch.zeros(sum(map(_aligned_size, shapes.values())), dtype=dtype, device=device)


def choose_device(name: str | None) -> torch.device:
    """Return the device of that name, ``"cpu"`` or ``"cuda"``; None means the GPU where there is one."""
    if name not in (None, "cpu", "cuda"):
        raise SettingError(f"device is {name!r}: expected cuda or cpu")
    there = torch.cuda.is_available()
    if name == "cuda" and not there:
        raise NoGpuError
    return torch.device(name or ("cuda" if there else "cpu"))


def _aligned_size(shape: tuple[int, ...]) -> int:
    return -(-prod(shape) // ALIGNED) * ALIGNED


# Gradients


class Gradients(Protocol):
    """The gradients of one update."""

    def clear(self) -> None:
        """Free the gradients, before the next update needs the memory."""

    def compute(self, loss: Tensor, names: Sequence[str]) -> None:
        """Add the gradient of a loss with respect to the named weights."""

    def pieces(self) -> Iterator[Piece]:
        """Yield the gradient in segments of the vector of weights."""

    def by_name(self) -> dict[str, Tensor]:
        """Return the gradient of each tensor."""


class FlatGradients:
    """All gradients in one vector, laid out as the weights are."""

    def __init__(self, weights: Tensor, shapes: Shapes, leaves: Leaves) -> None:
        self._vector = torch.zeros_like(weights)
        self._parts, self._leaves = views(self._vector, shapes), leaves

    def clear(self) -> None:
        """Do nothing: the memory is reused."""

    def compute(self, loss: Tensor, names: Sequence[str]) -> None:
        """Store the gradients of these leaves."""
        leaves = [self._leaves[name] for name in names]
        found: Sequence[Tensor | None] = torch.autograd.grad(loss, leaves, allow_unused=True)
        with torch.no_grad():
            for name, gradient in zip(names, found, strict=True):
                part = self._parts[name]
                if gradient is None:
                    part.zero_()
                elif gradient.is_sparse:
                    part.zero_().index_add_(0, gradient._indices()[0], gradient._values())
                else:
                    part.copy_(gradient)

    def pieces(self) -> Iterator[Piece]:
        """Yield the whole vector."""
        yield slice(None), self._vector

    def by_name(self) -> dict[str, Tensor]:
        """Return the gradients of the last update."""
        return self._parts


class SparseGradients:
    """Each gradient as autograd made it, until the next ones are computed. For a CPU."""

    def __init__(self, shapes: Shapes, leaves: Leaves) -> None:
        self._shapes, self._slices = shapes, slices_of(shapes)
        self._buffers: dict[str, Tensor] = {}
        self._found: dict[str, Tensor] = {}
        for name, leaf in leaves.items():
            leaf.register_post_accumulate_grad_hook(_collector(weakref.ref(self), name))  # type: ignore[no-untyped-call]

    def clear(self) -> None:
        """Drop the gradients of the last update."""
        self._found.clear()

    def buffer(self, name: str) -> Tensor:
        """Return memory for a gradient that the loss computes itself; what autograd finds for it is added."""
        if name not in self._buffers:
            self._buffers[name] = torch.empty(self._shapes[name])
        self._found[name] = self._buffers[name]
        return self._buffers[name]

    def compute(self, loss: Tensor, names: Sequence[str]) -> None:
        """Backpropagate; the hooks of the leaves collect the gradients."""
        loss.backward()  # type: ignore[no-untyped-call]

    def add(self, name: str, gradient: Tensor) -> None:
        """Add a gradient to the tensor of that name."""
        found = self._found.get(name)
        if found is None:
            self._found[name] = gradient.coalesce() if gradient.is_sparse else gradient
        elif gradient.is_sparse:
            found.index_add_(0, gradient._indices()[0], gradient._values())
        else:
            found.add_(gradient)

    def pieces(self) -> Iterator[Piece]:
        """Yield the gradients in the order of the weights, whatever the order in which they were found."""
        for name, where in self._slices.items():
            if name in self._found:
                found = self._found[name]
                yield where, found if found.is_sparse else found.reshape(-1)

    def by_name(self) -> dict[str, Tensor]:
        """Return the gradients of the last update, dense."""
        found = {name: self._found.get(name, torch.zeros(())) for name in self._shapes}
        dense = {name: part.to_dense() if part.is_sparse else part for name, part in found.items()}
        return {name: part.expand(self._shapes[name]) for name, part in dense.items()}


def _collector(owner: weakref.ref[SparseGradients], name: str) -> Callable[[Tensor], None]:
    """Return a hook that moves a leaf's gradient to its owner, which the leaf must not keep alive."""

    def collect(leaf: Tensor) -> None:
        gradients, gradient = owner(), leaf.grad
        leaf.grad = None
        if gradients is not None and gradient is not None:
            with torch.no_grad():
                gradients.add(name, gradient)

    return collect


def gather(pieces: list[Piece], vector: Tensor) -> Tensor:
    """Write all pieces into one vector, zero where there is none: what several workers can add up."""
    vector.zero_()
    for where, piece in pieces:
        if piece.is_sparse:
            vector[where].view(piece.shape).index_add_(0, piece._indices()[0], piece._values())
        else:
            vector[where].copy_(piece)
    return vector


def clamp(gradient: Tensor, limit: float) -> None:
    """Clip every number to the interval from −limit to limit, in place."""
    (gradient._values() if gradient.is_sparse else gradient).clamp_(-limit, limit)


def clip_factor(norm: Tensor, clip: float) -> Tensor:
    """Return what a gradient of that norm is multiplied by: its direction stays, its norm becomes at most ``clip``.

    1 where ``clip`` is 0.
    """
    return (clip / norm).clamp(max=1.0) if clip else torch.ones_like(norm)


def norm_of(pieces: list[Tensor], out: Tensor) -> None:
    """Write the joint norm of all pieces to ``out``.

    On a CPU torch adds the squares up one after the other, which for ten million float32 is off by a thousandth; with
    the norms of blocks first it is right to six digits.
    """
    if out.device.type != "cpu":
        torch.linalg.vector_norm(pieces[0], out=out)
        return
    norms = [out.new_zeros(1)]
    for piece in pieces:
        flat = (piece._values() if piece.is_sparse else piece).reshape(-1)
        whole = len(flat) // ALIGNED * ALIGNED
        blocks = torch.linalg.vector_norm(flat[:whole].view(-1, ALIGNED), dim=1)
        norms += [torch.linalg.vector_norm(blocks)[None], torch.linalg.vector_norm(flat[whole:])[None]]
    torch.linalg.vector_norm(torch.cat(norms), out=out)


def plain_norm(pieces: list[Tensor], out: Tensor) -> None:
    """Write the joint norm of dense pieces to ``out`` as torch computes it."""
    torch.linalg.vector_norm(torch.stack([torch.linalg.vector_norm(piece) for piece in pieces]), out=out)


def new_gradients(weights: Tensor, shapes: Shapes, leaves: Leaves, *, sparse: bool) -> Gradients:
    """Allocate the gradients of some leaves; sparse: only those that a loss computes."""
    return SparseGradients(shapes, leaves) if sparse else FlatGradients(weights, shapes, leaves)
