"""`BinOp`: two tensors element by element, broadcast.

Integers wrap. `Div` cuts towards zero, `Mod` has the sign of the divisor and `Rem` that of the
dividend; by zero all three are faults, and so are negative exponents and negative shifts. A shift
by the width of the type or more leaves 0, or -1 of a negative number that is shifted right.

Of floats, `Mod` and `Rem` by zero are NaN, and `Min` and `Max` with a NaN too. Which of two zeros
those take is not specified; ordered, -0.0 is the smaller one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from types import MappingProxyType

import numpy as np

from nacre.kernels.interface import shapes
from nacre.kernels.interface.call import Array, Attributes, Call, Fault, Primitive, Run, Work
from nacre.kernels.interface.fixed import FixableRun, FixedCall, Scratch
from nacre.kernels.interface.forms import binary_fill_run, binary_shape
from nacre.kernels.interface.long_rows import unbuffered_repeats
from nacre.kernels.interface.runs import Function, elementwise_run, present, quiet, store_run
from nacre.kernels.interface.shapes import Dims
from nacre.kernels.products.core_products import low_bits
from nacre.kernels.products.products import same_nan
from nacre.kernels.reductions.reductions import widening

_MANY = 1 << 13  # elements for which it pays to repeat a row

# NumPy and ml_dtypes compute these of half floats in f32 and round once, as asked.
_BASIC: Mapping[str, np.ufunc] = MappingProxyType(
    {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply}
)


def _bind(call: Call) -> Run:
    op, elem = call.attributes["op"], call.output.elem
    if elem.is_integer:
        return _bind_basic(call, _BASIC[op]) if op in _BASIC else _bind_integers(call, op)
    if op in _BASIC or op == "Div":
        return _bind_basic(call, _BASIC.get(op, np.divide))
    return _bind_floats(call, op)


def _bind_basic(call: Call, operation: np.ufunc) -> Run:
    elem = call.output.elem

    def fill(a: Array, b: Array, y: Array) -> None:
        operation(a, b, out=y)

    def fill_narrow(a: Array, b: Array, y: Array) -> None:
        y[...] = low_bits(operation(a, b), elem)

    if not elem.is_integer:
        return quiet(FixableRun(partial(_fix, operation), binary_fill_run(fill)))
    return binary_fill_run(fill if elem.bits >= 8 else fill_narrow)


def _fix(
    operation: np.ufunc,
    inputs: Sequence[Array | None],
    outputs: Sequence[Array],
    room: Scratch,
) -> Iterator[FixedCall]:
    """The calls of a function of two dense arrays; a row that is the same for all is repeated."""
    a, b, y = present(inputs[0]), present(inputs[1]), outputs[0]
    small, large = (a, b) if a.size < b.size else (b, a)
    is_row = 1 < small.size < large.size == y.size >= _MANY and _is_row(small.shape, y.shape)
    if not is_row:
        yield partial(operation, a, b, out=y)
        return
    count = unbuffered_repeats(y.size // small.size, small.size)
    rows = room("rows", (count, small.size), y.dtype)
    lines = (-1, count * small.size)
    yield partial(np.copyto, rows, small.reshape(-1))
    row, whole, made = rows.reshape(-1), large.reshape(lines), y.reshape(lines)
    yield partial(operation, *((row, whole) if small is a else (whole, row)), out=made)


def _is_row(small: Dims, shape: Dims) -> bool:
    """Whether a shape is the last axes of another."""
    kept = tuple(small[next((at for at, dim in enumerate(small) if dim != 1), 0) :])
    return kept == shape[len(shape) - len(kept) :]


def _divide_truncating(a: Array, b: Array) -> Array:
    """The quotient cut towards zero; the least number by -1 wraps to itself."""
    quotient: Array = np.floor_divide(a, b)
    if a.dtype.kind == "i":
        is_below = ((a ^ b) < 0) & (quotient * b != a)
        quotient = np.add(quotient, is_below, dtype=a.dtype)
    return quotient


def _power(a: Array, b: Array) -> Array:
    """By squaring, modulo 2 to the width of the arrays."""
    unsigned = np.dtype(f"u{a.dtype.itemsize}")
    square, left = a.astype(unsigned), b.astype(unsigned)
    result = np.ones(np.broadcast_shapes(a.shape, b.shape), unsigned)
    for bit in range(int(left.max()).bit_length()):
        is_set = (left >> unsigned.type(bit)) & unsigned.type(1)
        np.multiply(result, square, out=result, where=is_set.astype(np.bool_))
        square = square * square
    return result.astype(a.dtype)


_INTEGER: Mapping[str, Callable[[Array, Array], Array]] = MappingProxyType(
    {
        "Div": _divide_truncating,
        "Mod": np.remainder,
        "Rem": np.fmod,
        "Pow": _power,
        "Min": np.minimum,
        "Max": np.maximum,
        "And": np.bitwise_and,
        "Or": np.bitwise_or,
        "Xor": np.bitwise_xor,
        "ShiftLeft": np.left_shift,
        "ShiftRight": np.right_shift,
    }
)

# What the second operand must not be.
Refusal = Callable[[Array, Dims], Fault | None]


def _zero_divisor(b: Array, shape: Dims) -> Fault | None:
    if np.count_nonzero(b) == b.size:
        return None
    return Fault("division", "integer division by zero", first_position(b == 0, shape))


def _refuse_negative(what: str) -> Refusal:
    def refuse(b: Array, shape: Dims) -> Fault | None:
        if b.dtype.kind != "i" or b.min() >= 0:
            return None
        place = first_position(b < 0, shape)
        value = int(np.broadcast_to(b, shape)[place])
        return Fault("exponent", f"{what} is {value}, expected 0 or more", place)

    return refuse


_REFUSALS: Mapping[str, Refusal] = MappingProxyType(
    {
        **dict.fromkeys(("Div", "Mod", "Rem"), _zero_divisor),
        "Pow": _refuse_negative("the exponent of an integer power"),
        **dict.fromkeys(("ShiftLeft", "ShiftRight"), _refuse_negative("a shift")),
    }
)


def first_position(mask: Array, shape: Dims) -> Dims:
    """The place of the first element of a broadcast mask that holds."""
    flat = int(np.broadcast_to(mask, shape).argmax())
    return tuple(int(index) for index in np.unravel_index(flat, shape))


def _bind_integers(call: Call, op: str) -> Run:
    operation, refuse, elem = _INTEGER[op], _REFUSALS.get(op), call.output.elem
    if refuse is None:
        return elementwise_run(operation, 2)  # no result leaves the type

    def run(inputs: Sequence[Array | None], outputs: Sequence[Array]) -> Fault | None:
        a, b, y = present(inputs[0]), present(inputs[1]), outputs[0]
        fault = refuse(b, y.shape)
        if fault is None:
            result = operation(a, b)
            y[...] = low_bits(result, elem) if elem.bits < 8 else result
        return fault

    return quiet(run)


def _ordered_extremum(pick: np.ufunc, sign: int) -> Function:
    """The smaller or larger of two, of two zeros too."""

    def run(a: Array, b: Array) -> Array:
        zero = a + b if sign > 0 else -(-a - b)  # of unlike ones, 0.0 or -0.0
        return np.where((a == 0) & (b == 0), zero, pick(a, b))

    return run


def _power_through_double(a: Array, b: Array) -> Array:
    power: Array = np.power(a, b, dtype=np.float64)
    return power.astype(a.dtype)


_FLOAT: Mapping[str, np.ufunc] = MappingProxyType(
    {
        "Pow": np.power,
        "Mod": np.remainder,
        "Rem": np.fmod,
        "Min": np.minimum,
        "Max": np.maximum,
    }
)
_FLOAT_ORDERED: Mapping[str, Function] = MappingProxyType(
    {
        **_FLOAT,
        "Pow": _power_through_double,
        "Min": _ordered_extremum(np.minimum, -1),
        "Max": _ordered_extremum(np.maximum, 1),
    }
)


def _bind_floats(call: Call, op: str) -> Run:
    wide = widening(call.output)
    if call.ordered:
        exact = _FLOAT_ORDERED[op]
        return store_run(lambda a, b: same_nan(np.asarray(exact(wide(a), wide(b)))))
    operation = _FLOAT[op]
    if call.output.elem.bits >= 32:
        return elementwise_run(operation, 2)
    return store_run(lambda a, b: operation(wide(a), wide(b)))


def _shape(a: Dims, b: Dims, attributes: Attributes) -> Dims | None:
    op = attributes.get("op")
    return shapes.broadcast(a, b) if op in _BASIC or op in _INTEGER else None


def _work(call: Call) -> Work:
    return Work(elements=call.output.count, each=8 if call.attributes.get("op") == "Pow" else 1)


CORE_BINARY = (Primitive("core.BinOp", _bind, binary_shape(_shape), _work),)
