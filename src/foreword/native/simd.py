"""Sixteen floats at once.

LLVM turns many plain loops into such code by itself, but not one that reads and writes several rows of one matrix: it
cannot know that the rows are apart. Here the sixteen are a type of their own, with the few operations that the vector
kernels need. LLVM splits them where the processor's registers are shorter, so the code runs anywhere.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, models, register_model

LANES = 16
"""Rows of a matrix are padded to a multiple of this."""

_VECTOR = ir.VectorType(ir.FloatType(), LANES)


class Floats(types.Type):
    """Sixteen float32 in a register."""

    def __init__(self) -> None:
        super().__init__(name="floats16")


floats = Floats()


@register_model(Floats)
class _FloatsModel(models.PrimitiveModel):
    def __init__(self, manager: Any, front_end: Any) -> None:
        super().__init__(manager, front_end, _VECTOR)


def _address(context: Any, builder: Any, array_type: Any, array: Any, index: Any) -> Any:
    view = cgutils.create_struct_proxy(array_type)(context, builder, value=array)
    return builder.bitcast(builder.gep(view.data, [index]), _VECTOR.as_pointer())


def _broadcast(builder: Any, number: Any) -> Any:
    one = builder.insert_element(ir.Constant(_VECTOR, ir.Undefined), number, ir.Constant(ir.IntType(32), 0))
    places = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
    return builder.shuffle_vector(one, ir.Constant(_VECTOR, ir.Undefined), places)


def _multiply_add(builder: Any, left: Any, right: Any, onto: Any) -> Any:
    """One instruction where the processor has it: "contract" lets LLVM fuse the two."""
    return builder.fadd(builder.fmul(left, right, flags=("contract",)), onto, flags=("contract",))


@intrinsic
def load(typing_context: Any, array: Any, index: Any) -> Any:
    """``array[index:index + 16]`` of a flat float32 array."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        loaded = builder.load(_address(context, builder, signature.args[0], *arguments))
        loaded.align = 4
        return loaded

    return floats(array, types.int64), generate


@intrinsic
def store(typing_context: Any, array: Any, index: Any, value: Any) -> Any:
    """``array[index:index + 16] = value``."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array_value, at, held = arguments
        written = builder.store(held, _address(context, builder, signature.args[0], array_value, at))
        written.align = 4
        return context.get_dummy_value()

    return types.void(array, types.int64, floats), generate


@intrinsic
def zeros(typing_context: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return ir.Constant(_VECTOR, [0.0] * LANES)

    return floats(), generate


@intrinsic
def add(typing_context: Any, left: Any, right: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.fadd(*arguments, flags=("fast",))

    return floats(floats, floats), generate


@intrinsic
def multiply_add(typing_context: Any, left: Any, right: Any, onto: Any) -> Any:
    """``onto + left * right``, lane by lane."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _multiply_add(builder, *arguments)

    return floats(floats, floats, floats), generate


@intrinsic
def scaled_add(typing_context: Any, number: Any, value: Any, onto: Any) -> Any:
    """``onto + number * value`` for one number and sixteen values."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        number_value, value_value, onto_value = arguments
        return _multiply_add(builder, _broadcast(builder, number_value), value_value, onto_value)

    return floats(types.float32, floats, floats), generate


@intrinsic
def total(typing_context: Any, value: Any) -> Any:
    """The sum of the sixteen, by halves."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        held, width = arguments[0], LANES
        while width > 1:
            width //= 2
            kind = ir.VectorType(ir.IntType(32), width)
            undefined = ir.Constant(held.type, ir.Undefined)
            low = builder.shuffle_vector(held, undefined, ir.Constant(kind, list(range(width))))
            high = builder.shuffle_vector(held, undefined, ir.Constant(kind, list(range(width, 2 * width))))
            held = builder.fadd(low, high)
        return builder.extract_element(held, ir.Constant(ir.IntType(32), 0))

    return types.float32(floats), generate


_BITS = ir.VectorType(ir.IntType(32), LANES)
_FAST = ("contract", "reassoc", "nsz", "arcp")


def _constant(number: float) -> Any:
    return ir.Constant(_VECTOR, [number] * LANES)


def _bits(number: int) -> Any:
    return ir.Constant(_BITS, [number] * LANES)


def _polynomial(builder: Any, x: Any, coefficients: tuple[float, ...]) -> Any:
    """Horner's rule, the highest power first."""
    held = _constant(coefficients[0])
    for coefficient in coefficients[1:]:
        held = _multiply_add(builder, held, x, _constant(coefficient))
    return held


def _clamped(builder: Any, x: Any, limit: float) -> Any:
    low, high = _constant(-limit), _constant(limit)
    x = builder.select(builder.fcmp_ordered("<", x, low), low, x)
    return builder.select(builder.fcmp_ordered(">", x, high), high, x)


# Chebyshev fits: 2**f for |f| <= 1/2 within 3e-9; and for f from 1/√2 - 1 to √2 - 1 the third-order remainder of
# log(1 + f), (log(1 + f) - f + f²/2) / f³, which leaves log(1 + f) within 3e-8.
_POWER = (1.54697320e-4, 1.34004322e-3, 9.61802560e-3, 5.55032721e-2, 2.40226512e-1, 6.93147207e-1, 1.0)
_LOGARITHM = (
    -0.0799928603, 0.1255001425, -0.1294080073, 0.1422008025, -0.1664601660, 0.2000096641, -0.2500022484, 0.3333333076,
)  # fmt: skip
_ROOT_OF_HALF = 0x3F3504F3


@intrinsic
def sigmoid(typing_context: Any, x: Any) -> Any:
    """``1 / (1 + exp(-x))``; beyond ±80 it is 0 or 1 as far as a float can say."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        x = _clamped(builder, arguments[0], 80.0)
        power = builder.fmul(x, _constant(-1.4426950408889634))
        # Adding 1.5 * 2**23 leaves the nearest whole number in the low bits: how numbers are rounded without a call.
        shifted = builder.fadd(power, _constant(12582912.0))
        whole = builder.fsub(shifted, _constant(12582912.0))
        part = _polynomial(builder, builder.fsub(power, whole), _POWER)
        exponent = builder.shl(builder.bitcast(shifted, _BITS), _bits(23))
        exponential = builder.bitcast(builder.add(builder.bitcast(part, _BITS), exponent), _VECTOR)
        return builder.fdiv(_constant(1.0), builder.fadd(_constant(1.0), exponential), flags=_FAST)

    return floats(floats), generate


@intrinsic
def logarithm(typing_context: Any, x: Any) -> Any:
    """The natural logarithm of positive numbers; what is below 1e-30 counts as that, and NaN stays NaN."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        least = _constant(1e-30)
        x = builder.select(builder.fcmp_ordered("<", arguments[0], least), least, arguments[0])
        bits = builder.bitcast(x, _BITS)
        exponent = builder.ashr(builder.sub(bits, _bits(_ROOT_OF_HALF)), _bits(23))
        mantissa = builder.bitcast(builder.sub(bits, builder.shl(exponent, _bits(23))), _VECTOR)
        f = builder.fsub(mantissa, _constant(1.0))
        square = builder.fmul(f, f)
        rest = builder.fmul(builder.fmul(square, f), _polynomial(builder, f, _LOGARITHM))
        small = builder.fadd(_multiply_add(builder, square, _constant(-0.5), f), rest)
        whole = _multiply_add(builder, builder.sitofp(exponent, _VECTOR), _constant(0.6931471805599453), small)
        return builder.select(builder.fcmp_unordered("uno", x, x), x, whole)

    return floats(floats), generate


@intrinsic
def subtract(typing_context: Any, left: Any, right: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.fsub(*arguments)

    return floats(floats, floats), generate


@intrinsic
def scaled(typing_context: Any, number: Any, value: Any) -> Any:
    """``number * value`` for one number and sixteen values."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.fmul(_broadcast(builder, arguments[0]), arguments[1])

    return floats(types.float32, floats), generate


@intrinsic
def one_minus_size(typing_context: Any, value: Any) -> Any:
    """``1 - |value|``, lane by lane."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        size = builder.bitcast(builder.and_(builder.bitcast(arguments[0], _BITS), _bits(0x7FFFFFFF)), _VECTOR)
        return builder.fsub(_constant(1.0), size)

    return floats(floats), generate


@intrinsic
def over_root(typing_context: Any, value: Any, square: Any) -> Any:
    """``value / √square``, lane by lane."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        form = ir.FunctionType(_VECTOR, [_VECTOR])
        root = cgutils.get_or_insert_function(builder.module, form, f"llvm.sqrt.v{LANES}f32")
        return builder.fdiv(arguments[0], builder.call(root, [arguments[1]]))

    return floats(floats, floats), generate
