"""Vectors of sixteen floats, and of small integers, as types that kernels can compute with.

LLVM turns many plain loops into vector code by itself, but not one that reads and writes several rows of one matrix: it
cannot know that the rows do not overlap. Here a vector is a type of its own, with the few operations that the kernels
need. LLVM splits it where the processor's registers are shorter, so the code runs anywhere.

    floats   sixteen float32       load, load_part, store, multiply_add, sigmoid, tanh, total, …
    shorts   thirty-two int16      load_shorts, load_bytes (widened)
    totals   sixteen int32         add_products: processors multiply neighbouring pairs of int16 and add each pair in
                                   one instruction, which LLVM finds in the plain products and sums written here

Each intrinsic takes flat arrays and returns a signature and a function that emits its LLVM instructions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, models, register_model

LANES = 16
"""Floats in a vector. Rows of a matrix are padded to a multiple of this."""

WIDTH = 32
"""Small integers in a vector. Rows of int8 and int16 are padded with zeros to a multiple of this."""

_INT32 = ir.IntType(32)
_VECTOR = ir.VectorType(ir.FloatType(), LANES)
_BITS = ir.VectorType(_INT32, LANES)
_MASK = ir.VectorType(ir.IntType(1), LANES)
_HALVES = ir.VectorType(ir.IntType(16), LANES)
_BYTES = ir.VectorType(ir.IntType(8), WIDTH)
_SHORTS = ir.VectorType(ir.IntType(16), WIDTH)
_PRODUCTS = ir.VectorType(_INT32, WIDTH)
_TOTALS = ir.VectorType(_INT32, WIDTH // 2)


class Float32x16(types.Type):
    """Sixteen float32 in a register."""

    def __init__(self) -> None:
        super().__init__(name="floats16")


class Int16x32(types.Type):
    """Thirty-two int16 in a register."""

    def __init__(self) -> None:
        super().__init__(name="shorts32")


class Int32x16(types.Type):
    """Sixteen int32 in a register, each the sum of two or more products."""

    def __init__(self) -> None:
        super().__init__(name="totals16")


floats, shorts, totals = Float32x16(), Int16x32(), Int32x16()


@register_model(Float32x16)
class _Float32x16Model(models.PrimitiveModel):
    def __init__(self, manager: Any, front_end: Any) -> None:
        super().__init__(manager, front_end, _VECTOR)


@register_model(Int16x32)
class _Int16x32Model(models.PrimitiveModel):
    def __init__(self, manager: Any, front_end: Any) -> None:
        super().__init__(manager, front_end, _SHORTS)


@register_model(Int32x16)
class _Int32x16Model(models.PrimitiveModel):
    def __init__(self, manager: Any, front_end: Any) -> None:
        super().__init__(manager, front_end, _TOTALS)


# What the intrinsics share: functions that emit LLVM instructions


def _emitting(signature: Any, operation: Callable[..., Any]) -> Any:
    """Return what an intrinsic must return, for an operation of values alone: ``operation(builder, *arguments)``."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return operation(builder, *arguments)

    return signature, generate


def _address(context: Any, builder: Any, array_type: Any, array: Any, index: Any, vector: Any = _VECTOR) -> Any:
    """Return the address of ``array[index]`` as that of a vector."""
    view = cgutils.create_struct_proxy(array_type)(context, builder, value=array)
    return builder.bitcast(builder.gep(view.data, [index]), vector.as_pointer())


def _loading(vector: Any, alignment: int, convert: Callable[[Any, Any], Any] | None = None) -> Any:
    """Return a generator of unaligned loads of ``array[index:]``, with what converts the loaded vector."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        loaded = builder.load(_address(context, builder, signature.args[0], *arguments, vector))
        loaded.align = alignment
        return loaded if convert is None else convert(builder, loaded)

    return generate


def _constant(number: float) -> Any:
    return ir.Constant(_VECTOR, [number] * LANES)


def _bits(number: int) -> Any:
    return ir.Constant(_BITS, [number] * LANES)


_ZEROS = _constant(0.0)


def _broadcast(builder: Any, number: Any, vector: Any = _VECTOR) -> Any:
    """Return one number in all sixteen lanes."""
    undefined = ir.Constant(vector, ir.Undefined)
    one = builder.insert_element(undefined, number, ir.Constant(_INT32, 0))
    return builder.shuffle_vector(one, undefined, _bits(0))


def _shuffle(builder: Any, one: Any, other: Any, lanes: Sequence[int]) -> Any:
    """Return these lanes of two vectors, those of the second numbered on after those of the first."""
    return builder.shuffle_vector(one, other, ir.Constant(ir.VectorType(_INT32, len(lanes)), list(lanes)))


def _reduce(builder: Any, vector: Any, join: Callable[[Any, Any], Any]) -> Any:
    """Return one number of sixteen, joining halves: eight and eight, four and four, …"""
    width = LANES
    while width > 1:
        width //= 2
        undefined = ir.Constant(vector.type, ir.Undefined)
        low, high = (_shuffle(builder, vector, undefined, range(start, start + width)) for start in (0, width))
        vector = join(low, high)
    return builder.extract_element(vector, ir.Constant(_INT32, 0))


def _multiply_add(builder: Any, left: Any, right: Any, onto: Any) -> Any:
    """Return ``onto + left * right``: one instruction where the processor has it, for "contract" lets LLVM fuse."""
    return builder.fadd(builder.fmul(left, right, flags=("contract",)), onto, flags=("contract",))


def _polynomial(builder: Any, x: Any, coefficients: Sequence[float]) -> Any:
    """Evaluate a polynomial by Horner's rule, the highest power first."""
    value = _constant(coefficients[0])
    for coefficient in coefficients[1:]:
        value = _multiply_add(builder, value, x, _constant(coefficient))
    return value


def _clamped(builder: Any, x: Any, limit: float) -> Any:
    low, high = _constant(-limit), _constant(limit)
    x = builder.select(builder.fcmp_ordered("<", x, low), low, x)
    return builder.select(builder.fcmp_ordered(">", x, high), high, x)


# Loads and stores


@intrinsic
def load(typing_context: Any, array: Any, index: Any) -> Any:
    """Load ``array[index:index + 16]`` of a flat float32 array."""
    return floats(array, types.int64), _loading(_VECTOR, 4)


@intrinsic
def store(typing_context: Any, array: Any, index: Any, value: Any) -> Any:
    """Store ``array[index:index + 16] = value``."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array_value, at, vector = arguments
        builder.store(vector, _address(context, builder, signature.args[0], array_value, at)).align = 4
        return context.get_dummy_value()

    return types.void(array, types.int64, floats), generate


def _first_lanes(builder: Any, count: Any) -> Any:
    """Return a mask of the first ``count`` lanes; ``count`` is clipped to 0 … 16."""
    limit = _broadcast(builder, builder.trunc(count, _INT32), _BITS)
    return builder.icmp_signed("<", ir.Constant(_BITS, list(range(LANES))), limit)


@intrinsic
def load_part(typing_context: Any, array: Any, index: Any, count: Any) -> Any:
    """Load ``array[index:index + count]``, at most sixteen, and zeros behind them; nothing beyond is read."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array_value, at, count_value = arguments
        address = _address(context, builder, signature.args[0], array_value, at)
        form = ir.FunctionType(_VECTOR, [address.type, _INT32, _MASK, _VECTOR])
        function = cgutils.get_or_insert_function(builder.module, form, f"llvm.masked.load.v{LANES}f32.p0")
        return builder.call(function, [address, ir.Constant(_INT32, 4), _first_lanes(builder, count_value), _ZEROS])

    return floats(array, types.int64, types.int64), generate


@intrinsic
def store_part(typing_context: Any, array: Any, index: Any, value: Any, count: Any) -> Any:
    """Store ``array[index:index + count] = value[:count]``, at most sixteen; nothing beyond is written."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array_value, at, vector, count_value = arguments
        address = _address(context, builder, signature.args[0], array_value, at)
        form = ir.FunctionType(ir.VoidType(), [_VECTOR, address.type, _INT32, _MASK])
        function = cgutils.get_or_insert_function(builder.module, form, f"llvm.masked.store.v{LANES}f32.p0")
        builder.call(function, [vector, address, ir.Constant(_INT32, 4), _first_lanes(builder, count_value)])
        return context.get_dummy_value()

    return types.void(array, types.int64, floats, types.int64), generate


@intrinsic
def zeros(typing_context: Any) -> Any:
    """Return sixteen zeros."""
    return _emitting(floats(), lambda builder: _ZEROS)


@intrinsic
def broadcast(typing_context: Any, number: Any) -> Any:
    """Return one number in all sixteen lanes."""
    return _emitting(floats(types.float32), _broadcast)


# Arithmetic, lane by lane


@intrinsic
def add(typing_context: Any, left: Any, right: Any) -> Any:
    """Return ``left + right`` of finite numbers; LLVM may reorder such sums. ``plus`` also takes infinities and NaN."""
    return _emitting(floats(floats, floats), lambda builder, a, b: builder.fadd(a, b, flags=("fast",)))


@intrinsic
def plus(typing_context: Any, left: Any, right: Any) -> Any:
    """Return ``left + right`` as written: infinities and NaN are kept, so that a loss that is not finite shows."""
    return _emitting(floats(floats, floats), lambda builder, a, b: builder.fadd(a, b))


@intrinsic
def subtract(typing_context: Any, left: Any, right: Any) -> Any:
    """Return ``left - right``."""
    return _emitting(floats(floats, floats), lambda builder, a, b: builder.fsub(a, b))


@intrinsic
def multiply(typing_context: Any, left: Any, right: Any) -> Any:
    """Return ``left * right``."""
    return _emitting(floats(floats, floats), lambda builder, a, b: builder.fmul(a, b))


@intrinsic
def multiply_add(typing_context: Any, left: Any, right: Any, onto: Any) -> Any:
    """Return ``onto + left * right``."""
    return _emitting(floats(floats, floats, floats), _multiply_add)


@intrinsic
def scaled(typing_context: Any, number: Any, value: Any) -> Any:
    """Return ``number * value`` for one number and sixteen values."""
    return _emitting(
        floats(types.float32, floats), lambda builder, number, value: builder.fmul(_broadcast(builder, number), value)
    )


@intrinsic
def scaled_add(typing_context: Any, number: Any, value: Any, onto: Any) -> Any:
    """Return ``onto + number * value`` for one number and sixteen values."""

    def operation(builder: Any, number: Any, value: Any, onto: Any) -> Any:
        return _multiply_add(builder, _broadcast(builder, number), value, onto)

    return _emitting(floats(types.float32, floats, floats), operation)


@intrinsic
def one_minus(typing_context: Any, value: Any) -> Any:
    """Return ``1 - value``."""
    return _emitting(floats(floats), lambda builder, value: builder.fsub(_constant(1.0), value))


@intrinsic
def one_minus_size(typing_context: Any, value: Any) -> Any:
    """Return ``1 - |value|``."""

    def operation(builder: Any, value: Any) -> Any:
        size = builder.bitcast(builder.and_(builder.bitcast(value, _BITS), _bits(0x7FFFFFFF)), _VECTOR)
        return builder.fsub(_constant(1.0), size)

    return _emitting(floats(floats), operation)


@intrinsic
def positive(typing_context: Any, value: Any, sign: Any) -> Any:
    """Return ``value`` where ``sign`` is above zero or NaN, else zero."""

    def operation(builder: Any, value: Any, sign: Any) -> Any:
        return builder.select(builder.fcmp_unordered(">", sign, _ZEROS), value, _ZEROS)

    return _emitting(floats(floats, floats), operation)


@intrinsic
def maximum(typing_context: Any, left: Any, right: Any) -> Any:
    """Return the larger of the two; the right one where either is NaN."""
    return _emitting(
        floats(floats, floats), lambda builder, a, b: builder.select(builder.fcmp_ordered(">", a, b), a, b)
    )


@intrinsic
def over_root(typing_context: Any, value: Any, square: Any) -> Any:
    """Return ``value / √square``."""

    def operation(builder: Any, value: Any, square: Any) -> Any:
        form = ir.FunctionType(_VECTOR, [_VECTOR])
        root = cgutils.get_or_insert_function(builder.module, form, f"llvm.sqrt.v{LANES}f32")
        return builder.fdiv(value, builder.call(root, [square]))

    return _emitting(floats(floats, floats), operation)


@intrinsic
def total(typing_context: Any, value: Any) -> Any:
    """Return the sum of the sixteen."""
    return _emitting(types.float32(floats), lambda builder, value: _reduce(builder, value, builder.fadd))


@intrinsic
def largest(typing_context: Any, value: Any) -> Any:
    """Return the largest of the sixteen."""

    def operation(builder: Any, value: Any) -> Any:
        return _reduce(builder, value, lambda a, b: builder.select(builder.fcmp_ordered(">", a, b), a, b))

    return _emitting(types.float32(floats), operation)


# Exponentials and logarithms

# Chebyshev fits, the highest power first: (2**f - 1) / f for |f| <= 1/2, which leaves 2**f within 4e-9; and for f from
# 1/√2 - 1 to √2 - 1 the third-order remainder of log(1 + f), (log(1 + f) - f + f²/2) / f³, which leaves log(1 + f)
# within 3e-8.
_POWER_LESS_ONE = (1.54697320e-4, 1.34004322e-3, 9.61802560e-3, 5.55032721e-2, 2.40226512e-1, 6.93147207e-1)
_POWER = (*_POWER_LESS_ONE, 1.0)
_LOGARITHM = (
    -0.0799928603, 0.1255001425, -0.1294080073, 0.1422008025, -0.1664601660, 0.2000096641, -0.2500022484, 0.3333333076,
)  # fmt: skip
_ROOT_OF_HALF = 0x3F3504F3
_LOG2_E = 1.4426950408889634

_ROUNDING = 12582912.0
"""1.5 · 2**23: added to a number it leaves the nearest integer in the low bits; subtracted again, that integer."""


def _power_of_two(builder: Any, shifted: Any) -> Any:
    """Return 2**n for the integer n that adding ``_ROUNDING`` left in the low bits."""
    exponent = builder.shl(builder.bitcast(shifted, _BITS), _bits(23))
    return builder.bitcast(builder.add(exponent, _bits(0x3F800000)), _VECTOR)


@intrinsic
def sigmoid(typing_context: Any, x: Any) -> Any:
    """Return ``1 / (1 + exp(-x))``; beyond ±80 it is 0 or 1 to float precision."""

    def operation(builder: Any, x: Any) -> Any:
        power = builder.fmul(_clamped(builder, x, 80.0), _constant(-_LOG2_E))
        shifted = builder.fadd(power, _constant(_ROUNDING))
        whole = builder.fsub(shifted, _constant(_ROUNDING))
        part = _polynomial(builder, builder.fsub(power, whole), _POWER)
        exponent = builder.shl(builder.bitcast(shifted, _BITS), _bits(23))
        exponential = builder.bitcast(builder.add(builder.bitcast(part, _BITS), exponent), _VECTOR)
        fast = ("contract", "reassoc", "nsz", "arcp")
        return builder.fdiv(_constant(1.0), builder.fadd(_constant(1.0), exponential), flags=fast)

    return _emitting(floats(floats), operation)


@intrinsic
def exponential(typing_context: Any, x: Any) -> Any:
    """Return ``exp(x)`` within two units of the last place; 0 below -87, exp(88) above 88, NaN for NaN."""

    def operation(builder: Any, x: Any) -> Any:
        tiny = builder.fcmp_ordered("<", x, _constant(-87.0))
        x = builder.select(builder.fcmp_ordered(">", x, _constant(88.0)), _constant(88.0), x)
        shifted = builder.fadd(builder.fmul(x, _constant(_LOG2_E)), _constant(_ROUNDING))
        whole = builder.fsub(shifted, _constant(_ROUNDING))
        # x - whole · log 2, in two pieces: rounding x · log₂ e would cost a digit where x is large.
        part = _multiply_add(builder, whole, _constant(-0.693359375), x)
        part = _multiply_add(builder, whole, _constant(2.12194440e-4), part)
        part = builder.fmul(part, _constant(_LOG2_E))
        scale = _power_of_two(builder, shifted)
        rest = builder.fmul(_polynomial(builder, part, _POWER_LESS_ONE), part)
        return builder.select(tiny, _ZEROS, _multiply_add(builder, rest, scale, scale))

    return _emitting(floats(floats), operation)


@intrinsic
def tanh(typing_context: Any, x: Any) -> Any:
    """Return ``e / (e + 2)`` with ``e = exp(2x) - 1``, which near zero is exact to the last digits; 2σ(2x) - 1 is not.

    Beyond ±9.1 it is ±1 to float precision; NaN stays NaN.
    """

    def operation(builder: Any, x: Any) -> Any:
        power = builder.fmul(_clamped(builder, x, 9.1), _constant(2 * _LOG2_E))
        shifted = builder.fadd(power, _constant(_ROUNDING))
        part = builder.fsub(power, builder.fsub(shifted, _constant(_ROUNDING)))
        scale = _power_of_two(builder, shifted)
        rest = builder.fmul(_polynomial(builder, part, _POWER_LESS_ONE), part)
        e = _multiply_add(builder, rest, scale, builder.fsub(scale, _constant(1.0)))
        return builder.fdiv(e, builder.fadd(e, _constant(2.0)))

    return _emitting(floats(floats), operation)


@intrinsic
def logarithm(typing_context: Any, x: Any) -> Any:
    """Return the natural logarithm of positive numbers; what is below 1e-30 counts as that, and NaN stays NaN."""

    def operation(builder: Any, x: Any) -> Any:
        least = _constant(1e-30)
        x = builder.select(builder.fcmp_ordered("<", x, least), least, x)
        bits = builder.bitcast(x, _BITS)
        exponent = builder.ashr(builder.sub(bits, _bits(_ROOT_OF_HALF)), _bits(23))
        mantissa = builder.bitcast(builder.sub(bits, builder.shl(exponent, _bits(23))), _VECTOR)
        f = builder.fsub(mantissa, _constant(1.0))
        square = builder.fmul(f, f)
        rest = builder.fmul(builder.fmul(square, f), _polynomial(builder, f, _LOGARITHM))
        small = builder.fadd(_multiply_add(builder, square, _constant(-0.5), f), rest)
        whole = _multiply_add(builder, builder.sitofp(exponent, _VECTOR), _constant(0.6931471805599453), small)
        return builder.select(builder.fcmp_unordered("uno", x, x), x, whole)

    return _emitting(floats(floats), operation)


# Small numbers: int8 times int16 summed in int32; float16 and int16 read as float32


@intrinsic
def load_bytes(typing_context: Any, array: Any, index: Any) -> Any:
    """Load ``array[index:index + 32]`` of a flat int8 array, widened to int16."""
    widen = _loading(_BYTES, 1, lambda builder, loaded: builder.sext(loaded, _SHORTS))
    return shorts(array, types.int64), widen


@intrinsic
def load_shorts(typing_context: Any, array: Any, index: Any) -> Any:
    """Load ``array[index:index + 32]`` of a flat int16 array."""
    return shorts(array, types.int64), _loading(_SHORTS, 2)


@intrinsic
def load_whole(typing_context: Any, array: Any, index: Any) -> Any:
    """Load ``array[index:index + 16]`` of a flat int16 array as float32."""
    convert = _loading(_HALVES, 2, lambda builder, loaded: builder.sitofp(builder.sext(loaded, _BITS), _VECTOR))
    return floats(array, types.int64), convert


@intrinsic
def load_floats(typing_context: Any, array: Any, index: Any) -> Any:
    """Load ``array[index:index + 16]`` of a flat array of float32, or of float16 given as its bits.

    A half's exponent is shifted to where a float has it, which leaves it too small by the difference of the two biases;
    a product corrects that, for the smallest numbers too. Infinite and NaN halves are not supported.
    """

    def widened(builder: Any, loaded: Any) -> Any:
        bits = builder.zext(loaded, _BITS)
        size = builder.shl(builder.and_(bits, _bits(0x7FFF)), _bits(13))
        sign = builder.shl(builder.and_(bits, _bits(0x8000)), _bits(16))
        return builder.fmul(builder.bitcast(builder.or_(size, sign), _VECTOR), _constant(2.0**112))

    halves = array.dtype == types.uint16
    return floats(array, types.int64), _loading(_HALVES, 2, widened) if halves else _loading(_VECTOR, 4)


@intrinsic
def no_totals(typing_context: Any) -> Any:
    """Return sixteen int32 of zero."""
    return _emitting(totals(), lambda builder: ir.Constant(_TOTALS, [0] * (WIDTH // 2)))


@intrinsic
def add_products(typing_context: Any, left: Any, right: Any, onto: Any) -> Any:
    """Add the products of each neighbouring pair to sixteen sums."""

    def operation(builder: Any, left: Any, right: Any, onto: Any) -> Any:
        products = builder.mul(builder.sext(left, _PRODUCTS), builder.sext(right, _PRODUCTS))
        even, odd = (_shuffle(builder, products, products, range(start, WIDTH, 2)) for start in (0, 1))
        return builder.add(onto, builder.add(even, odd))

    return _emitting(totals(shorts, shorts, totals), operation)


@intrinsic
def store_sums(typing_context: Any, array: Any, index: Any, a: Any, b: Any, c: Any, d: Any) -> Any:
    """Store the sums of a, b, c and d in ``array[index:index + 4]`` of a flat int32 array.

    The four are folded together, which takes a third of the steps of folding each to its end.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array_value, at, *four = arguments
        halves = [
            builder.add(
                _shuffle(builder, one, other, [*range(8), *range(16, 24)]),
                _shuffle(builder, one, other, [*range(8, 16), *range(24, 32)]),
            )
            for one, other in (four[:2], four[2:])
        ]
        lower = [start + lane for start in (0, 8, 16, 24) for lane in range(4)]
        upper = [lane + 4 for lane in lower]
        quarters = builder.add(_shuffle(builder, *halves, lower), _shuffle(builder, *halves, upper))
        parts = [_shuffle(builder, quarters, quarters, range(lane, LANES, 4)) for lane in range(4)]
        summed = builder.add(builder.add(parts[0], parts[1]), builder.add(parts[2], parts[3]))
        address = _address(context, builder, signature.args[0], array_value, at, summed.type)
        builder.store(summed, address).align = 4
        return context.get_dummy_value()

    return types.void(array, types.int64, totals, totals, totals, totals), generate
