"""Small numbers, many at once: int8 times int16 added up in int32; float16 and int16 read as float32.

Processors multiply neighbouring pairs of int16 and add each pair in one instruction; LLVM finds that instruction in the
plain products and sums written here, and on a processor without it the same code is only slower.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, models, register_model

from foreword.native.simd import LANES, floats

WIDTH = 32
"""Rows of queries are padded with zeros to a multiple of this."""

_SUMS = WIDTH // 2
_INT32 = ir.IntType(32)
_BYTES = ir.VectorType(ir.IntType(8), WIDTH)
_SHORTS = ir.VectorType(ir.IntType(16), WIDTH)
_PRODUCTS = ir.VectorType(_INT32, WIDTH)
_TOTALS = ir.VectorType(_INT32, _SUMS)
_HALVES = ir.VectorType(ir.IntType(16), LANES)
_FLOATS = ir.VectorType(ir.FloatType(), LANES)


class Shorts(types.Type):
    """Thirty-two int16 in a register."""

    def __init__(self) -> None:
        super().__init__(name="shorts32")


class Totals(types.Type):
    """Sixteen int32, each the sum of two products and more."""

    def __init__(self) -> None:
        super().__init__(name="totals16")


shorts = Shorts()
totals = Totals()


@register_model(Shorts)
class _ShortsModel(models.PrimitiveModel):
    def __init__(self, manager: Any, front_end: Any) -> None:
        super().__init__(manager, front_end, _SHORTS)


@register_model(Totals)
class _TotalsModel(models.PrimitiveModel):
    def __init__(self, manager: Any, front_end: Any) -> None:
        super().__init__(manager, front_end, _TOTALS)


def _address(context: Any, builder: Any, array_type: Any, array: Any, index: Any, kind: Any) -> Any:
    view = cgutils.create_struct_proxy(array_type)(context, builder, value=array)
    return builder.bitcast(builder.gep(view.data, [index]), kind.as_pointer())


def _pick(builder: Any, one: Any, other: Any, places: list[int]) -> Any:
    return builder.shuffle_vector(one, other, ir.Constant(ir.VectorType(_INT32, len(places)), places))


@intrinsic
def load_bytes(typing_context: Any, array: Any, index: Any) -> Any:
    """``array[index:index + 32]`` of a flat int8 array, widened."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        loaded = builder.load(_address(context, builder, signature.args[0], *arguments, _BYTES))
        loaded.align = 1
        return builder.sext(loaded, _SHORTS)

    return shorts(array, types.int64), generate


@intrinsic
def load_shorts(typing_context: Any, array: Any, index: Any) -> Any:
    """``array[index:index + 32]`` of a flat int16 array."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        loaded = builder.load(_address(context, builder, signature.args[0], *arguments, _SHORTS))
        loaded.align = 2
        return loaded

    return shorts(array, types.int64), generate


@intrinsic
def no_totals(typing_context: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return ir.Constant(_TOTALS, [0] * _SUMS)

    return totals(), generate


@intrinsic
def add_products(typing_context: Any, left: Any, right: Any, onto: Any) -> Any:
    """Add each product of two neighbours, pair by pair."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        left, right, onto = arguments
        products = builder.mul(builder.sext(left, _PRODUCTS), builder.sext(right, _PRODUCTS))
        even = _pick(builder, products, products, list(range(0, WIDTH, 2)))
        odd = _pick(builder, products, products, list(range(1, WIDTH, 2)))
        return builder.add(onto, builder.add(even, odd))

    return totals(shorts, shorts, totals), generate


@intrinsic
def store_sums(typing_context: Any, array: Any, index: Any, a: Any, b: Any, c: Any, d: Any) -> Any:
    """``array[index:index + 4]`` = the sums of a, b, c and d, of a flat int32 array.

    The four are folded together, which takes a third of the steps of folding each to its end.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array_value, at, *four = arguments
        halves = [
            builder.add(
                _pick(builder, one, other, [*range(8), *range(16, 24)]),
                _pick(builder, one, other, [*range(8, 16), *range(24, 32)]),
            )
            for one, other in (four[:2], four[2:])
        ]
        quarters = [place + part for place in (0, 8, 16, 24) for part in range(4)]
        held = builder.add(
            _pick(builder, *halves, quarters), _pick(builder, *halves, [place + 4 for place in quarters])
        )
        parts = [_pick(builder, held, held, [part, part + 4, part + 8, part + 12]) for part in range(4)]
        summed = builder.add(builder.add(parts[0], parts[1]), builder.add(parts[2], parts[3]))
        address = _address(context, builder, signature.args[0], array_value, at, summed.type)
        builder.store(summed, address).align = 4
        return context.get_dummy_value()

    return types.void(array, types.int64, totals, totals, totals, totals), generate


@intrinsic
def load_floats(typing_context: Any, array: Any, index: Any) -> Any:
    """``array[index:index + 16]`` of a flat array of float32, or of float16 given as its bits.

    A half's exponent is shifted to where a float has it, which leaves it too small by the difference of the two biases;
    a product puts that right, for the smallest numbers too. Infinite and NaN halves are not meant.
    """
    halves = array.dtype == types.uint16

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = _HALVES if halves else _FLOATS
        loaded = builder.load(_address(context, builder, signature.args[0], *arguments, kind))
        loaded.align = 2 if halves else 4
        if not halves:
            return loaded
        wide = ir.VectorType(_INT32, LANES)
        bits = builder.zext(loaded, wide)
        size = builder.shl(builder.and_(bits, ir.Constant(wide, [0x7FFF] * LANES)), ir.Constant(wide, [13] * LANES))
        sign = builder.shl(builder.and_(bits, ir.Constant(wide, [0x8000] * LANES)), ir.Constant(wide, [16] * LANES))
        small = builder.bitcast(builder.or_(size, sign), _FLOATS)
        return builder.fmul(small, ir.Constant(_FLOATS, [2.0**112] * LANES))

    return floats(array, types.int64), generate


@intrinsic
def load_whole(typing_context: Any, array: Any, index: Any) -> Any:
    """``array[index:index + 16]`` of a flat int16 array, as float32."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        loaded = builder.load(_address(context, builder, signature.args[0], *arguments, _HALVES))
        loaded.align = 2
        return builder.sitofp(builder.sext(loaded, ir.VectorType(_INT32, LANES)), _FLOATS)

    return floats(array, types.int64), generate
