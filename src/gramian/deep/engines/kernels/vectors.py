"""Vectors of float32 for numba kernels: 8 or 16 numbers that a processor loads, multiplies and stores as one.

numba lets LLVM look for loops whose turns can be done together. Where a loop goes over a dozen arrays at once, LLVM
first makes sure, at every start of the loop, that no two of them overlap; and it does not keep a block of sums in
registers over a loop. With vectors as values, both are said in so many words:

| in a kernel | is |
| --- | --- |
| ``load8(array, place)``, ``load16`` | the numbers from ``place`` on |
| ``spread16(array, place)`` | 16 times the number at ``place`` |
| ``store(vector, array, place)`` | writes them from ``place`` on |
| ``zeros8()``, ``zeros16()`` | zeros |
| ``a + b``, ``a - b``, ``x * a`` | sums, differences, and a multiple by a number |
| ``multiply_add(a, b, c)`` | ab + c, rounded once where the processor can |
| ``rectified(a)`` | max(a, 0), and NaN where a is |
| ``passed(a, b)`` | a where b > 0, else 0 |
| ``total(a)`` | the sum of its numbers, always in one order |

An array is contiguous, of any shape, and of float32, or of bytes that become float32; a place counts its numbers from
the first one on, and **nobody checks it**. A processor with narrower vectors takes several of its own for one.
"""

import operator
from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, lower_builtin, models, register_model, type_callable

_ROUNDING = ("contract",)
"""A product and a sum may be rounded once; the order of operations is the one that is written. (Without any flag numba
would give an operation those of the kernel around it, which may reorder sums.)"""
_INDEX = types.intp
_FLOAT = ir.FloatType()


class Float32s(types.Type):
    """The type of a vector."""

    def __init__(self, lanes: int) -> None:
        super().__init__(f"float32x{lanes}")
        self.lanes = lanes
        self.value = ir.VectorType(_FLOAT, lanes)

    def filled(self, number: float) -> Any:
        """A constant."""
        return ir.Constant(self.value, [number] * self.lanes)


@register_model(Float32s)
class _Model(models.PrimitiveModel):
    def __init__(self, manager: Any, vector: Float32s) -> None:
        super().__init__(manager, vector, vector.value)


EIGHT, SIXTEEN = Float32s(8), Float32s(16)


def _address(context: Any, builder: Any, signature: Any, arguments: Any, array: int) -> Any:
    """Where the number lies whose place is the argument after an array."""
    kind, place = signature.args[array], arguments[array + 1]
    data = context.make_array(kind)(context, builder, arguments[array]).data
    index = context.cast(builder, place, signature.args[array + 1], _INDEX)
    return builder.gep(data, [index], inbounds=True)


def _spread(builder: Any, vector: Float32s, number: Any) -> Any:
    first = builder.insert_element(ir.Constant(vector.value, ir.Undefined), number, ir.Constant(ir.IntType(32), 0))
    order = ir.Constant(ir.VectorType(ir.IntType(32), vector.lanes), [0] * vector.lanes)
    return builder.shuffle_vector(first, ir.Constant(vector.value, ir.Undefined), order)


def _is_array(kind: Any) -> bool:
    return isinstance(kind, types.Array) and kind.layout == "C" and kind.dtype in (types.float32, types.uint8)


def _loader(vector: Float32s) -> Any:
    def load(_typing: Any, array: Any, place: Any) -> Any:
        if not (_is_array(array) and isinstance(place, types.Integer)):
            return None

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            pointer = _address(context, builder, signature, arguments, 0)
            element = _FLOAT if array.dtype == types.float32 else ir.IntType(8)
            numbers = builder.load(builder.bitcast(pointer, ir.VectorType(element, vector.lanes).as_pointer()))
            numbers.align = element.get_abi_size(context.target_data)
            return numbers if element is _FLOAT else builder.uitofp(numbers, vector.value)

        return vector(array, place), generate

    return intrinsic(load)


def _spreader(vector: Float32s) -> Any:
    def spread(_typing: Any, array: Any, place: Any) -> Any:
        if not (_is_array(array) and array.dtype == types.float32 and isinstance(place, types.Integer)):
            return None

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return _spread(builder, vector, builder.load(_address(context, builder, signature, arguments, 0)))

        return vector(array, place), generate

    return intrinsic(spread)


def _zeros(vector: Float32s) -> Any:
    def zeros(_typing: Any) -> Any:
        return vector(), lambda _context, _builder, _signature, _arguments: vector.filled(0.0)

    return intrinsic(zeros)


# Any, since numba's own types leave the first argument, which is numba's, to the caller.
load8: Any = _loader(EIGHT)
load16: Any = _loader(SIXTEEN)
spread16: Any = _spreader(SIXTEEN)
zeros8: Any = _zeros(EIGHT)
zeros16: Any = _zeros(SIXTEEN)


def _store(_typing: Any, vector: Any, array: Any, place: Any) -> Any:
    takes = _is_array(array) and array.dtype == types.float32
    if not (isinstance(vector, Float32s) and takes and isinstance(place, types.Integer)):
        return None

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = _address(context, builder, signature, arguments, 1)
        builder.store(arguments[0], builder.bitcast(pointer, vector.value.as_pointer())).align = 4
        return context.get_dummy_value()

    return types.void(vector, array, place), generate


def _multiply_add(_typing: Any, left: Any, right: Any, sums: Any) -> Any:
    if not (isinstance(left, Float32s) and left == right == sums):
        return None

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        kind, name = ir.FunctionType(left.value, [left.value] * 3), f"llvm.fmuladd.v{left.lanes}f32"
        return builder.call(cgutils.get_or_insert_function(builder.module, kind, name), arguments)

    return left(left, left, left), generate


def _rectified(_typing: Any, vector: Any) -> Any:
    if not isinstance(vector, Float32s):
        return None

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        zero = vector.filled(0.0)
        return builder.select(builder.fcmp_ordered("<", arguments[0], zero), zero, arguments[0])

    return vector(vector), generate


def _passed(_typing: Any, vector: Any, gate: Any) -> Any:
    if not (isinstance(vector, Float32s) and vector == gate):
        return None

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        zero = vector.filled(0.0)
        return builder.select(builder.fcmp_ordered(">", arguments[1], zero), arguments[0], zero)

    return vector(vector, vector), generate


def _total(_typing: Any, vector: Any) -> Any:
    if not isinstance(vector, Float32s):
        return None

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        numbers = [
            builder.extract_element(arguments[0], ir.Constant(ir.IntType(32), lane)) for lane in range(vector.lanes)
        ]
        while len(numbers) > 1:
            half = len(numbers) // 2
            numbers = [builder.fadd(a, b, flags=_ROUNDING) for a, b in zip(numbers[:half], numbers[half:], strict=True)]
        return numbers[0]

    return types.float32(vector), generate


store: Any = intrinsic(_store)
multiply_add: Any = intrinsic(_multiply_add)
rectified: Any = intrinsic(_rectified)
passed: Any = intrinsic(_passed)
total: Any = intrinsic(_total)


def _let(operation: Callable[[Any, Any], Any], instruction: str) -> None:
    """Let two vectors of one type be added, say."""

    def choose(_context: Any) -> Any:
        return lambda left, right: left if isinstance(left, Float32s) and left == right else None

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return getattr(builder, instruction)(*arguments, flags=_ROUNDING)

    type_callable(operation)(choose)
    lower_builtin(operation, Float32s, Float32s)(generate)


def _choose_multiple(_context: Any) -> Any:
    return lambda left, right: right if left == types.float32 and isinstance(right, Float32s) else None


def _multiple(_context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    return builder.fmul(_spread(builder, signature.args[1], arguments[0]), arguments[1], flags=_ROUNDING)


_let(operator.add, "fadd")
_let(operator.sub, "fsub")
type_callable(operator.mul)(_choose_multiple)
lower_builtin(operator.mul, types.Float, Float32s)(_multiple)
