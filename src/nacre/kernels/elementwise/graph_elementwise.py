"""Functions of one element at a time that graphs have.

Floats of up to 16 bits have so few values that a function of one is looked up in a table.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache, partial, reduce
from math import ceil, floor, isfinite, isnan
from types import MappingProxyType
from typing import Any

import numpy as np

from nacre.base.elements import ElementType
from nacre.kernels.interface import shapes
from nacre.kernels.interface.call import Array, Attributes, Call, Fault, Primitive, Run, Work
from nacre.kernels.interface.fitting import Fitting, Misfit, dims_text
from nacre.kernels.interface.fixed import FixableRun, FixedCall, Scratch
from nacre.kernels.interface.runs import (
    Function,
    all_values,
    elementwise_run,
    lookup_run,
    present,
    quiet,
    quietly,
    store_run,
)
from nacre.kernels.interface.shapes import Dims, even_parts
from nacre.kernels.movement.views import moves_outputs
from nacre.kernels.numbers.graph_functions import (
    OPERATIONS,
    UNARY,
    WithWorkspace,
    number,
    real_function,
    select,
)
from nacre.kernels.numbers.graph_functions_cast import bind_cast
from nacre.kernels.numbers.numbers import widen_to_f32
from nacre.kernels.numbers.real_functions import relu, relu_calls
from nacre.kernels.products.core_products import low_bits
from nacre.kernels.products.products import same_nan
from nacre.kernels.reductions.reductions import wide_float, widening

_BLOCK = 1 << 15  # elements that a function of several steps takes at a time: they stay in caches

_RELATIONS: Mapping[str, np.ufunc] = MappingProxyType(
    {
        "Eq": np.equal,
        "Ne": np.not_equal,
        "Lt": np.less,
        "Le": np.less_equal,
        "Gt": np.greater,
        "Ge": np.greater_equal,
    }
)
_TESTS: Mapping[str, np.ufunc] = MappingProxyType({"IsNan": np.isnan, "IsInf": np.isinf})
_INTEGER: Mapping[str, np.ufunc] = MappingProxyType(
    {"Abs": np.absolute, "Sign": np.sign, "Not": np.invert}  # of `bool`, the last is logical
)


def _compare(call: Call) -> Run:
    relation, wide = _RELATIONS[call.attributes["op"]], widening(call.input(0))

    def run(inputs: Sequence[Array | None], outputs: Sequence[Array]) -> Fault | None:
        relation(wide(present(inputs[0])), wide(present(inputs[1])), out=outputs[0])
        return None

    return quiet(run)


def _where(call: Call) -> Run:
    def run(inputs: Sequence[Array | None], outputs: Sequence[Array]) -> Fault | None:
        condition, a, b = (present(array) for array in inputs)
        select(condition, a, b, outputs[0])
        return None

    return run


def _unary(call: Call) -> Run:
    op = call.attributes["op"]
    if call.input(0).elem.is_integer:
        return _integers(call, _INTEGER[op])
    return _test(call, _TESTS[op]) if op in _TESTS else _real(op, call)


def _test(call: Call, test: np.ufunc) -> Run:
    # Not into the output: NumPy 2.4 writes wrong values into one that is not dense.
    wide = widening(call.input(0))
    return store_run(lambda x: test(wide(x)))


def _integers(call: Call, function: np.ufunc) -> Run:
    elem = call.output.elem
    if elem.bits >= 8:
        return elementwise_run(function, 1)

    def run(inputs: Sequence[Array | None], outputs: Sequence[Array]) -> Fault | None:
        outputs[0][...] = low_bits(function(present(inputs[0])), elem)
        return None

    return run


def _real(name: str, call: Call) -> Run:
    """A function of a float tensor: looked up, in one step, or in blocks."""
    x = call.input(0)
    if x.elem.bits <= 16:
        attributes = tuple(sorted(call.attributes.items()))
        # As keys 0.0 and -0.0 are equal, which functions tell apart; as text they are not.
        return lookup_run(_table(name, attributes, repr(attributes), call.ordered, x.elem))
    function = real_function(name, call.attributes, wide_float(x), call.ordered)
    if function is relu:
        return elementwise_run(relu, 1, relu_calls)
    return elementwise_run(function, 1) if isinstance(function, np.ufunc) else _blocks(function)


@lru_cache(maxsize=64)
def _table(
    name: str,
    attributes: tuple[tuple[str, Any], ...],
    exact: str,
    ordered: bool,
    elem: ElementType,
) -> Array:
    """A function of every value of a type, worked out once per process."""
    function = real_function(name, dict(attributes), np.dtype(np.float32), ordered)
    x = widen_to_f32(all_values(elem.dtype))
    return quietly(lambda: function(x, out=np.empty_like(x)).astype(elem.dtype))


def _blocks(function: Function) -> Run:
    """A function of several steps on as many elements at a time as stay in the caches."""

    def calls(
        inputs: Sequence[Array | None], outputs: Sequence[Array], room: Scratch
    ) -> Iterator[FixedCall]:
        for x, y in _parts(present(inputs[0]), outputs[0]):
            if isinstance(function, WithWorkspace):
                yield partial(function.compute, x, y, room(function.use, x.shape, x.dtype))
            else:
                yield partial(function, x, out=y)

    def run(inputs: Sequence[Array | None], outputs: Sequence[Array]) -> Fault | None:
        for x, y in _parts(present(inputs[0]), outputs[0]):
            function(x, out=y)
        return None

    return quiet(FixableRun(calls, run))


def _parts(x: Array, y: Array) -> Iterator[tuple[Array, Array]]:
    """Blocks of equal size, where both are dense; functions take no scalars."""
    if not (x.flags.c_contiguous and y.flags.c_contiguous):
        yield x, y
        return
    x, y = x.reshape(-1), y.reshape(-1)
    step = even_parts(max(1, x.size), _BLOCK)
    for start in range(0, x.size, step):
        yield x[start : start + step], y[start : start + step]


def _relu(call: Call) -> Run:
    if not call.output.elem.is_integer:
        return _real("ReluNan", call)
    return _integer_bounds(call, 0, call.output.elem.highest)


def _clip(call: Call) -> Run:
    if not call.output.elem.is_integer:
        return _real("Clip", call)
    low, high = call.attributes["min"], call.attributes["max"]
    return _integer_bounds(
        call,
        ceil(low) if _is_finite(low) else low,
        floor(high) if _is_finite(high) else high,
    )


def _is_finite(value: float) -> bool:
    return isinstance(value, int) or isfinite(value)


def _integer_bounds(call: Call, low: float, high: float) -> Run:
    """Integers between two bounds, which stop at the ends of the type themselves."""
    elem, dtype = call.output.elem, call.output.dtype.type
    least, greatest = (dtype(min(max(bound, elem.lowest), elem.highest)) for bound in (low, high))

    def function(x: Array, out: Array) -> Array:
        np.maximum(x, least, out=out)
        np.minimum(out, greatest, out=out)
        return out

    return elementwise_run(function, 1)


def _prelu(call: Call) -> Run:
    wide, is_ordered = widening(call.output), call.ordered

    def run(inputs: Sequence[Array | None], outputs: Sequence[Array]) -> Fault | None:
        x, slope = wide(present(inputs[0])), wide(present(inputs[1]))
        y = outputs[0] if outputs[0].dtype == x.dtype else np.empty(x.shape, x.dtype)
        select(np.asarray(x > 0), x, np.asarray(x * slope), y)
        if is_ordered:
            same_nan(y)
        if y is not outputs[0]:
            outputs[0][...] = y
        return None

    return quiet(run)


def _require_known(attributes: Attributes, name: str, known: Sequence[str]) -> None:
    """Raise a Misfit where a word is none of those known."""
    if attributes.get(name) not in known:
        expected = ", ".join(f"`{word}`" for word in known)
        raise Misfit(f"`{name}` is `{attributes.get(name)}`, expected one of {expected}")


def _same_shape(inputs: Sequence[Dims], attributes: Attributes) -> Dims:
    return inputs[0]


def _broadcast(inputs: Sequence[Dims], attributes: Attributes) -> Dims:
    def join(a: Dims, b: Dims) -> Dims:
        found = shapes.broadcast(a, b)
        if found is None:
            told = " and ".join(map(dims_text, inputs))
            raise Misfit(f"shapes {told} do not broadcast, expected equal sizes or 1")
        return found

    return reduce(join, inputs)


def _fit_compare(inputs: Sequence[Dims], attributes: Attributes) -> Dims:
    _require_known(attributes, "op", tuple(_RELATIONS))
    return _broadcast(inputs, attributes)


def _fit_unary(inputs: Sequence[Dims], attributes: Attributes) -> Dims:
    _require_known(attributes, "op", (*UNARY, "Not", *_TESTS))
    return inputs[0]


def _fit_gelu(inputs: Sequence[Dims], attributes: Attributes) -> Dims:
    _require_known(attributes, "approximate", ("none", "tanh"))
    return inputs[0]


def _fit_clip(inputs: Sequence[Dims], attributes: Attributes) -> Dims:
    for name in ("min", "max"):
        if isnan(number(attributes, name)):
            raise Misfit(f"`{name}` is nan, expected a number or an infinity")
    return inputs[0]


def _fit_prelu(inputs: Sequence[Dims], attributes: Attributes) -> Dims:
    x, slope = inputs
    if not shapes.broadcasts_to(slope, x):
        raise Misfit(f"`slope` has the shape {dims_text(slope)}, expected one that stretches to "
                     f"that of the input, {dims_text(x)}")  # fmt: skip
    return x


def _transcendental(call: Call) -> Work:
    return Work(elements=call.output.count, each=8)


def _unary_work(call: Call) -> Work:
    found = UNARY.get(call.attributes["op"])
    is_costly = found is not None and found.is_transcendental
    return _transcendental(call) if is_costly else moves_outputs(call)


def _of_floats(name: str) -> Primitive:
    """An op that is a function of its own."""
    fit = _fit_gelu if name == "Gelu" else _same_shape
    work = _transcendental if OPERATIONS[name].is_transcendental else moves_outputs
    return Primitive(f"core.{name}", partial(_real, name), Fitting(fit), work)


_OF_INTEGERS = ("ReluNan", "Clip")  # and of floats

GRAPH_ELEMENTWISE: tuple[Primitive, ...] = (
    Primitive("core.Compare", _compare, Fitting(_fit_compare), moves_outputs),
    Primitive("core.Where", _where, Fitting(_broadcast), moves_outputs),
    Primitive("core.Unary", _unary, Fitting(_fit_unary), _unary_work),
    Primitive("core.ReluNan", _relu, Fitting(_same_shape), moves_outputs),
    Primitive("core.Clip", _clip, Fitting(_fit_clip), moves_outputs),
    *(_of_floats(name) for name in OPERATIONS if name not in _OF_INTEGERS),
    Primitive("core.PRelu", _prelu, Fitting(_fit_prelu), moves_outputs),
    Primitive("core.Cast", bind_cast, Fitting(_same_shape), moves_outputs),
)
