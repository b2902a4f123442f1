"""Seven machine instructions that Numba has no name for."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from foreword.arrays import Bytes
from foreword.native.jit import inlined


@intrinsic
def load_unaligned(typing_context: Any, array: Any, index: Any) -> Any:
    """Eight bytes of a uint8 array as one little-endian number, wherever they lie."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        view = cgutils.create_struct_proxy(signature.args[0])(context, builder, value=arguments[0])
        address = builder.gep(view.data, [arguments[1]])
        word = builder.load(builder.bitcast(address, ir.IntType(64).as_pointer()))
        word.align = 1
        return word

    return types.uint64(array, types.int64), generate


@intrinsic
def bytes_between(typing_context: Any, array: Any, index: Any, least: Any, most: Any) -> Any:
    """A bit for each of ``array[index:index + 64]``, the first one lowest: whether it is from ``least`` to ``most``."""
    byte, places = ir.IntType(8), ir.Constant(ir.VectorType(ir.IntType(32), 64), [0] * 64)
    vector = ir.VectorType(byte, 64)

    def everywhere(builder: Any, number: Any) -> Any:
        nothing = ir.Constant(vector, ir.Undefined)
        one = builder.insert_element(nothing, builder.trunc(number, byte), ir.Constant(ir.IntType(32), 0))
        return builder.shuffle_vector(one, nothing, places)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        view = cgutils.create_struct_proxy(signature.args[0])(context, builder, value=arguments[0])
        found = builder.load(builder.bitcast(builder.gep(view.data, [arguments[1]]), vector.as_pointer()))
        found.align = 1
        low, high = (everywhere(builder, number) for number in arguments[2:])
        inside = builder.icmp_unsigned("<=", builder.sub(found, low), builder.sub(high, low))
        return builder.bitcast(inside, ir.IntType(64))

    return types.uint64(array, types.int64, types.int64, types.int64), generate


@intrinsic
def ones(typing_context: Any, word: Any) -> Any:
    """How many bits of ``word`` are set."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.int64(types.uint64), generate


@intrinsic
def lowest_one(typing_context: Any, word: Any) -> Any:
    """The place (0 to 63) of the lowest set bit; ``word`` must not be zero."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.uint64), generate


@intrinsic
def prefetch(typing_context: Any, array: Any, index: Any) -> Any:
    """Ask for the cache line of ``array[index]`` and go on; by the time it is needed it will be near."""
    all_caches = 3
    return types.void(array, types.int64), _asking(all_caches)


@intrinsic
def prefetch_to_write(typing_context: Any, array: Any, index: Any) -> Any:
    """The same for what will be written to: it is taken from other cores at once, not only when the write comes."""
    all_caches = 3
    return types.void(array, types.int64), _asking(all_caches, to_write=1)


@intrinsic
def prefetch_far(typing_context: Any, array: Any, index: Any) -> Any:
    """The same for whoever asks for much at once: it is put in the second cache, which has more room, also for what is
    on its way. Sums of scattered rows took a quarter less time.
    """
    second_cache = 2
    return types.void(array, types.int64), _asking(second_cache)


def _asking(near: int, to_write: int = 0) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        view = cgutils.create_struct_proxy(signature.args[0])(context, builder, value=arguments[0])
        pointer, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        address = builder.bitcast(builder.gep(view.data, [arguments[1]]), pointer)
        form = ir.FunctionType(ir.VoidType(), [pointer, number, number, number])
        function = cgutils.get_or_insert_function(builder.module, form, "llvm.prefetch.p0")
        is_data = 1
        builder.call(function, [address, *(ir.Constant(number, hint) for hint in (to_write, near, is_data))])
        return context.get_dummy_value()

    return generate


@inlined
def load8(data: Bytes, start: int, stop: int) -> np.uint64:
    """The bytes ``data[start:stop]``, the first eight at most, as a number; what is missing counts as zero.

    Nothing beyond the array is read: near its end the bytes are gathered one by one.
    """
    if start + 8 <= len(data):
        word = load_unaligned(data, start)
        length = stop - start
        if length < 8:
            word &= (np.uint64(1) << np.uint64(8 * length)) - np.uint64(1)
        return word
    word = np.uint64(0)
    for place in range(min(8, stop - start)):
        word |= np.uint64(data[start + place]) << np.uint64(8 * place)
    return word
