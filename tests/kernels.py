"""What tests of GPU kernels share: compiling without a GPU, and dropout masks in another precision."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import torch

from foreword.nn.recurrent_network import Masks


def compiled_for_hopper(kernel: Any, kinds: dict[str, str], sizes: dict[str, int], **options: object) -> Any:
    """Compile a kernel in Triton or Gluon for a Hopper GPU, which need not be there.

    kinds: Triton's types of all arguments that are not constants. sizes: the constants.
    """
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource, compile
    from triton.experimental.gluon._runtime import GluonASTSource

    signature = {name: "constexpr" if name in sizes else kinds[name] for name in kernel.arg_names}
    constants = {(at,): sizes[name] for at, name in enumerate(signature) if name in sizes}
    aligned = {(at,): [["tt.divisibility", 16]] for at, kind in enumerate(signature.values()) if kind.startswith("*")}
    written_in = GluonASTSource if kernel.is_gluon() else ASTSource
    source = written_in(fn=kernel, signature=signature, constexprs=constants, attrs=aligned)
    return compile(source, target=GPUTarget("cuda", 90, 32), options=options)


def masks_as(masks: Masks, kind: torch.dtype, device: str = "cpu") -> Masks:
    """Return masks in another precision, on another device."""

    def moved(part: Any) -> Any:
        if isinstance(part, tuple):
            return tuple(map(moved, part))
        return None if part is None else part.to(device, kind)

    return Masks(**{field.name: moved(getattr(masks, field.name)) for field in fields(Masks)})
