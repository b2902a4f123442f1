"""Machine instructions that Numba has no name for: unaligned loads, byte masks, bit counts and prefetches."""

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
    """Load eight bytes of a uint8 array, at any alignment, as one little-endian number."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        view = cgutils.create_struct_proxy(signature.args[0])(context, builder, value=arguments[0])
        address = builder.gep(view.data, [arguments[1]])
        word = builder.load(builder.bitcast(address, ir.IntType(64).as_pointer()))
        word.align = 1
        return word

    return types.uint64(array, types.int64), generate


@intrinsic
def load_unaligned32(typing_context: Any, array: Any, index: Any) -> Any:
    """Load four bytes of a uint8 array, at any alignment, as one little-endian number."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        view = cgutils.create_struct_proxy(signature.args[0])(context, builder, value=arguments[0])
        address = builder.gep(view.data, [arguments[1]])
        word = builder.load(builder.bitcast(address, ir.IntType(32).as_pointer()))
        word.align = 1
        return word

    return types.uint32(array, types.int64), generate


@intrinsic
def float_of(typing_context: Any, bits: Any) -> Any:
    """Return the float32 of these 32 bits."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.FloatType())

    return types.float32(types.uint32), generate


@intrinsic
def bytes_between(typing_context: Any, array: Any, index: Any, least: Any, most: Any) -> Any:
    """Return a 64-bit mask of ``array[index:index + 64]``: bit i is set where byte i is from ``least`` to ``most``."""
    byte, lanes = ir.IntType(8), ir.Constant(ir.VectorType(ir.IntType(32), 64), [0] * 64)
    vector = ir.VectorType(byte, 64)

    def broadcast(builder: Any, number: Any) -> Any:
        nothing = ir.Constant(vector, ir.Undefined)
        one = builder.insert_element(nothing, builder.trunc(number, byte), ir.Constant(ir.IntType(32), 0))
        return builder.shuffle_vector(one, nothing, lanes)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        view = cgutils.create_struct_proxy(signature.args[0])(context, builder, value=arguments[0])
        found = builder.load(builder.bitcast(builder.gep(view.data, [arguments[1]]), vector.as_pointer()))
        found.align = 1
        low, high = (broadcast(builder, number) for number in arguments[2:])
        inside = builder.icmp_unsigned("<=", builder.sub(found, low), builder.sub(high, low))
        return builder.bitcast(inside, ir.IntType(64))

    return types.uint64(array, types.int64, types.int64, types.int64), generate


@intrinsic
def ones(typing_context: Any, word: Any) -> Any:
    """Count the set bits of ``word``."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.int64(types.uint64), generate


@intrinsic
def lowest_one(typing_context: Any, word: Any) -> Any:
    """Return the index (0 to 63) of the lowest set bit; ``word`` must not be zero."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.uint64), generate


@intrinsic
def prefetch(typing_context: Any, array: Any, index: Any) -> Any:
    """Request the cache line of ``array[index]`` without waiting for it."""
    all_caches = 3
    return types.void(array, types.int64), _prefetching(all_caches)


@intrinsic
def prefetch_to_write(typing_context: Any, array: Any, index: Any) -> Any:
    """Request a cache line that will be written to: it is taken from other cores now, not when the write comes."""
    all_caches = 3
    return types.void(array, types.int64), _prefetching(all_caches, to_write=1)


@intrinsic
def prefetch_far(typing_context: Any, array: Any, index: Any) -> Any:
    """Request a cache line into the second-level cache, which has room for more requests in flight.

    Sums of scattered rows took a quarter less time.
    """
    second_cache = 2
    return types.void(array, types.int64), _prefetching(second_cache)


def _prefetching(locality: int, to_write: int = 0) -> Any:
    """Return a generator of LLVM's prefetch instruction."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        view = cgutils.create_struct_proxy(signature.args[0])(context, builder, value=arguments[0])
        pointer, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        address = builder.bitcast(builder.gep(view.data, [arguments[1]]), pointer)
        form = ir.FunctionType(ir.VoidType(), [pointer, number, number, number])
        function = cgutils.get_or_insert_function(builder.module, form, "llvm.prefetch.p0")
        is_data = 1
        builder.call(function, [address, *(ir.Constant(number, hint) for hint in (to_write, locality, is_data))])
        return context.get_dummy_value()

    return generate


@inlined
def load8(data: Bytes, start: int, stop: int) -> np.uint64:
    """Load up to eight bytes of ``data[start:stop]`` as one little-endian number, padded with zeros.

    Nothing beyond the array is read: near its end the bytes are gathered one by one.
    """
    if start + 8 <= len(data):
        word = load_unaligned(data, start)
        length = stop - start
        if length < 8:
            word &= (np.uint64(1) << np.uint64(8 * length)) - np.uint64(1)
        return word
    word = np.uint64(0)
    for offset in range(min(8, stop - start)):
        word |= np.uint64(data[start + offset]) << np.uint64(8 * offset)
    return word
