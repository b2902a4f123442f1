"""Sixteen floats at once, or fewer: what the gates of a recurrent net need beside ``simd.py``.

A row of any length is read in sixteens, and of the last sixteen only those that are there: neither read nor written is
what lies behind them.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from foreword.native.simd import LANES, floats

_INT32 = ir.IntType(32)
_VECTOR = ir.VectorType(ir.FloatType(), LANES)
_BITS = ir.VectorType(_INT32, LANES)
_MASK = ir.VectorType(ir.IntType(1), LANES)
_ZEROS = ir.Constant(_VECTOR, [0.0] * LANES)

# Chebyshev fits: (2**f - 1) / f for |f| <= 1/2, within 4e-9 of it, the highest power first.
_POWER = (1.54697320e-4, 1.34004322e-3, 9.61802560e-3, 5.55032721e-2, 2.40226512e-1, 6.93147207e-1)


def _constant(number: float) -> Any:
    return ir.Constant(_VECTOR, [number] * LANES)


_ROUNDING = 12582912.0
"""1.5 · 2**23: added to a number it leaves the nearest whole one in the low bits, subtracted again, alone."""


def _multiply_add(builder: Any, left: Any, right: Any, onto: Any) -> Any:
    return builder.fadd(builder.fmul(left, right, flags=("contract",)), onto, flags=("contract",))


def _rest_of_power(builder: Any, part: Any) -> Any:
    """(2**part − 1) / part."""
    held = _constant(_POWER[0])
    for coefficient in _POWER[1:]:
        held = _multiply_add(builder, held, part, _constant(coefficient))
    return held


def _exponent(builder: Any, shifted: Any) -> Any:
    """2**whole, as bits, from what ``_ROUNDING`` was added to."""
    bits = builder.shl(builder.bitcast(shifted, _BITS), ir.Constant(_BITS, [23] * LANES))
    return builder.add(bits, ir.Constant(_BITS, [0x3F800000] * LANES))


def _pointer(context: Any, builder: Any, array_type: Any, array: Any, index: Any) -> Any:
    view = cgutils.create_struct_proxy(array_type)(context, builder, value=array)
    return builder.bitcast(builder.gep(view.data, [index]), _VECTOR.as_pointer())


def _first(builder: Any, count: Any) -> Any:
    """Which of the sixteen are among the first ``count``; all from sixteen on, none from zero down."""
    few = builder.trunc(count, _INT32)
    one = builder.insert_element(ir.Constant(_BITS, ir.Undefined), few, ir.Constant(_INT32, 0))
    everywhere = builder.shuffle_vector(one, ir.Constant(_BITS, ir.Undefined), ir.Constant(_BITS, [0] * LANES))
    return builder.icmp_signed("<", ir.Constant(_BITS, list(range(LANES))), everywhere)


@intrinsic
def load_part(typing_context: Any, array: Any, index: Any, count: Any) -> Any:
    """``array[index:index + count]`` of a flat float32 array, sixteen at most, and zeros behind them."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        held, at, few = arguments
        address = _pointer(context, builder, signature.args[0], held, at)
        form = ir.FunctionType(_VECTOR, [address.type, _INT32, _MASK, _VECTOR])
        function = cgutils.get_or_insert_function(builder.module, form, f"llvm.masked.load.v{LANES}f32.p0")
        return builder.call(function, [address, ir.Constant(_INT32, 4), _first(builder, few), _ZEROS])

    return floats(array, types.int64, types.int64), generate


@intrinsic
def store_part(typing_context: Any, array: Any, index: Any, value: Any, count: Any) -> Any:
    """``array[index:index + count] = value[:count]``, sixteen at most."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        held, at, sixteen, few = arguments
        address = _pointer(context, builder, signature.args[0], held, at)
        form = ir.FunctionType(ir.VoidType(), [_VECTOR, address.type, _INT32, _MASK])
        function = cgutils.get_or_insert_function(builder.module, form, f"llvm.masked.store.v{LANES}f32.p0")
        builder.call(function, [sixteen, address, ir.Constant(_INT32, 4), _first(builder, few)])
        return context.get_dummy_value()

    return types.void(array, types.int64, floats, types.int64), generate


@intrinsic
def plus(typing_context: Any, left: Any, right: Any) -> Any:
    """``left + right``; unlike ``simd.add`` it lets infinities and NaN through, for a loss that is none must show."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.fadd(*arguments)

    return floats(floats, floats), generate


@intrinsic
def multiply(typing_context: Any, left: Any, right: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.fmul(*arguments)

    return floats(floats, floats), generate


@intrinsic
def one_minus(typing_context: Any, value: Any) -> Any:
    """``1 - value``, lane by lane."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.fsub(_constant(1.0), arguments[0])

    return floats(floats), generate


@intrinsic
def positive(typing_context: Any, value: Any, sign: Any) -> Any:
    """``value`` where ``sign`` is above zero or no number, else zero."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.select(builder.fcmp_unordered(">", arguments[1], _ZEROS), arguments[0], _ZEROS)

    return floats(floats, floats), generate


@intrinsic
def broadcast(typing_context: Any, number: Any) -> Any:
    """One number in all sixteen places."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        undefined = ir.Constant(_VECTOR, ir.Undefined)
        one = builder.insert_element(undefined, arguments[0], ir.Constant(_INT32, 0))
        return builder.shuffle_vector(one, undefined, ir.Constant(_BITS, [0] * LANES))

    return floats(types.float32), generate


@intrinsic
def maximum(typing_context: Any, left: Any, right: Any) -> Any:
    """The larger of the two, lane by lane; the right one where either is no number."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.select(builder.fcmp_ordered(">", *arguments), *arguments)

    return floats(floats, floats), generate


@intrinsic
def largest(typing_context: Any, value: Any) -> Any:
    """The largest of the sixteen, by halves."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        held, width = arguments[0], LANES
        while width > 1:
            width //= 2
            kind = ir.VectorType(_INT32, width)
            undefined = ir.Constant(held.type, ir.Undefined)
            low = builder.shuffle_vector(held, undefined, ir.Constant(kind, list(range(width))))
            high = builder.shuffle_vector(held, undefined, ir.Constant(kind, list(range(width, 2 * width))))
            held = builder.select(builder.fcmp_ordered(">", low, high), low, high)
        return builder.extract_element(held, ir.Constant(_INT32, 0))

    return types.float32(floats), generate


@intrinsic
def exponential(typing_context: Any, x: Any) -> Any:
    """``exp(x)`` within two units of the last place; from -87 down it is 0, above 88 that of 88. NaN stays NaN."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        x = arguments[0]
        tiny = builder.fcmp_ordered("<", x, _constant(-87.0))
        x = builder.select(builder.fcmp_ordered(">", x, _constant(88.0)), _constant(88.0), x)
        power = builder.fmul(x, _constant(1.4426950408889634))
        shifted = builder.fadd(power, _constant(_ROUNDING))
        whole = builder.fsub(shifted, _constant(_ROUNDING))
        # x - whole · log 2, in two pieces: rounding x · log₂ e would cost a digit where x is large.
        part = _multiply_add(builder, whole, _constant(-0.693359375), x)
        part = _multiply_add(builder, whole, _constant(2.12194440e-4), part)
        part = builder.fmul(part, _constant(1.4426950408889634))
        scale = builder.bitcast(_exponent(builder, shifted), _VECTOR)
        held = _multiply_add(builder, builder.fmul(_rest_of_power(builder, part), part), scale, scale)
        return builder.select(tiny, _ZEROS, held)

    return floats(floats), generate


@intrinsic
def tanh(typing_context: Any, x: Any) -> Any:
    """``e / (e + 2)`` with ``e = exp(2x) - 1``, which near zero is exact to the last digits, where 2σ(2x) - 1 is not.

    Beyond ±9 it is ±1 as far as a float can say; NaN stays NaN.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        x = arguments[0]
        for sign, limit in (("<", -9.1), (">", 9.1)):
            x = builder.select(builder.fcmp_ordered(sign, x, _constant(limit)), _constant(limit), x)
        power = builder.fmul(x, _constant(2 * 1.4426950408889634))
        shifted = builder.fadd(power, _constant(_ROUNDING))
        part = builder.fsub(power, builder.fsub(shifted, _constant(_ROUNDING)))
        scale = builder.bitcast(_exponent(builder, shifted), _VECTOR)
        rest = builder.fmul(_rest_of_power(builder, part), part)
        e = _multiply_add(builder, rest, scale, builder.fsub(scale, _constant(1.0)))
        return builder.fdiv(e, builder.fadd(e, _constant(2.0)))

    return floats(floats), generate
