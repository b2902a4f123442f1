"""Where the gradients of a step lie until the weights have moved.

On a GPU in one vector, so that an update is a few operations for all, and always in the same place, as a recording
wants it. On a CPU each as autograd has made it, taken over without a copy, an embedding's for the words alone that were
read. All of them must be there before the first is used, since they are clipped by the norm of them together.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Mapping
from typing import Protocol

import torch
from torch import Tensor

from foreword.training.flat import ALIGNED, Shapes, places, views

Leaves = Mapping[str, Tensor]


class Gradients(Protocol):
    def forget(self) -> None: ...  # before anything of the next step is computed, which needs the room
    def compute(self, loss: Tensor) -> None: ...
    def pieces(self) -> Iterator[tuple[slice, Tensor]]: ...  # stretches of the weights' vector: flat, or sparse rows
    def by_name(self) -> dict[str, Tensor]: ...


class InOne:
    """All gradients in one vector, as the weights are."""

    def __init__(self, weights: Tensor, shapes: Shapes, leaves: Leaves) -> None:
        self._vector = torch.zeros_like(weights)
        self._parts, self._leaves = views(self._vector, shapes), leaves

    def forget(self) -> None:
        """The place is always the same."""

    def compute(self, loss: Tensor) -> None:
        found = torch.autograd.grad(loss, list(self._leaves.values()))
        with torch.no_grad():
            for part, gradient in zip(self._parts.values(), found, strict=True):
                part.copy_(gradient)

    def pieces(self) -> Iterator[tuple[slice, Tensor]]:
        yield slice(None), self._vector

    def by_name(self) -> dict[str, Tensor]:
        return self._parts


class Apart:
    """Each gradient on its own, kept until the next ones are computed."""

    def __init__(self, shapes: Shapes, leaves: Leaves) -> None:
        self._shapes, self._places = shapes, places(shapes)
        self._rooms: dict[str, Tensor] = {}
        self._held: dict[str, Tensor] = {}
        for name, leaf in leaves.items():
            leaf.register_post_accumulate_grad_hook(_taker(weakref.ref(self), name))  # type: ignore[no-untyped-call]

    def forget(self) -> None:
        self._held.clear()

    def claim(self, name: str) -> Tensor:
        """Where a gradient goes, for a loss that makes it there itself. What else reaches it is added."""
        if name not in self._rooms:
            self._rooms[name] = torch.empty(self._shapes[name])
        self._held[name] = self._rooms[name]
        return self._rooms[name]

    def compute(self, loss: Tensor) -> None:
        loss.backward()  # type: ignore[no-untyped-call]

    def take(self, name: str, gradient: Tensor) -> None:
        held = self._held.get(name)
        if held is None:
            self._held[name] = gradient.coalesce() if gradient.is_sparse else gradient
        elif gradient.is_sparse:
            held.index_add_(0, gradient._indices()[0], gradient._values())
        else:
            held.add_(gradient)

    def pieces(self) -> Iterator[tuple[slice, Tensor]]:
        """In the order of the weights, whatever the order in which they came."""
        for name, place in self._places.items():
            if name in self._held:
                held = self._held[name]
                yield place, held if held.is_sparse else held.reshape(-1)

    def by_name(self) -> dict[str, Tensor]:
        held = {name: self._held.get(name, torch.zeros(())) for name in self._shapes}
        dense = {name: part.to_dense() if part.is_sparse else part for name, part in held.items()}
        return {name: part.expand(self._shapes[name]) for name, part in dense.items()}


def _taker(owner: weakref.ref[Apart], name: str) -> Callable[[Tensor], None]:
    """Takes a leaf's gradient away as soon as it is there. It must not keep its owner alive, whose leaves hold it."""

    def take(leaf: Tensor) -> None:
        gradients, gradient = owner(), leaf.grad
        leaf.grad = None
        if gradients is not None and gradient is not None:
            with torch.no_grad():
                gradients.take(name, gradient)

    return take


def gather(pieces: list[tuple[slice, Tensor]], vector: Tensor) -> Tensor:
    """All pieces in one vector, as the weights lie, zero where there is none: what several workers can add up."""
    vector.zero_()
    for at, piece in pieces:
        if piece.is_sparse:
            vector[at].view(piece.shape).index_add_(0, piece._indices()[0], piece._values())
        else:
            vector[at].copy_(piece)
    return vector


def clamp(gradient: Tensor, limit: float) -> None:
    """No number above the limit, nor below its negative."""
    (gradient._values() if gradient.is_sparse else gradient).clamp_(-limit, limit)


def norm_of(pieces: list[Tensor], out: Tensor) -> None:
    """The norm of all pieces together, into ``out``. On a CPU torch adds the squares up one after the other, which for
    ten million float32 is off by a thousandth; short stretches first, and it is right to six digits.
    """
    if out.device.type != "cpu":
        torch.linalg.vector_norm(pieces[0], out=out)
        return
    norms = [out.new_zeros(1)]
    for piece in pieces:
        flat = (piece._values() if piece.is_sparse else piece).reshape(-1)
        whole = len(flat) // ALIGNED * ALIGNED
        stretches = torch.linalg.vector_norm(flat[:whole].view(-1, ALIGNED), dim=1)
        norms += [torch.linalg.vector_norm(stretches)[None], torch.linalg.vector_norm(flat[whole:])[None]]
    torch.linalg.vector_norm(torch.cat(norms), out=out)
