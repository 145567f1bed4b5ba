"""The elementwise opcodes: which arithmetic a use of one takes, and how it is bound.

Floats are computed in f32 and rounded once. Integers that carry `quant` on every operand are
dequantised, computed in f32 and quantised again, beside floats too; plain ones are computed
exactly.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, partial
from typing import Any

from nacre.base.elements import ElementType
from nacre.kernels.interface.call import (
    PLAIN_SHAPES,
    Array,
    Attributes,
    Call,
    Example,
    Primitive,
    Run,
    TensorType,
    Work,
)
from nacre.kernels.interface.runs import all_values, elementwise_run, lookup_run, quietly, store_run
from nacre.kernels.interface.shapes import Dims
from nacre.kernels.numbers.halves import in_f32
from nacre.kernels.numbers.integer_functions import bind_by_table, bind_integer
from nacre.kernels.numbers.numbers import widen_to_f32
from nacre.kernels.numbers.quantization import dequantizer, quantizer, through_reals
from nacre.kernels.numbers.real_functions import (
    ARITHMETIC,
    BINARY,
    CHOICES,
    TRIED_WITH,
    UNARY,
    is_transcendental,
    real_function,
)


def bind(name: str, call: Call) -> Run:
    """An elementwise opcode, ready to run."""
    are_integers = {type_.elem.is_integer for type_ in _operands(call)}
    if are_integers == {False}:
        return _bind_real(name, call)
    if are_integers == {True}:
        return _bind_quantized(name, call) if call.is_quantized else bind_integer(name, call)
    return through_reals(partial(_bind_real, name))(call)


def _operands(call: Call) -> list[TensorType]:
    return [*(call.input(index) for index in range(len(call.inputs))), call.output]


def _bind_real(name: str, call: Call) -> Run:
    elements = {type_.elem.name for type_ in _operands(call)}
    if len(call.inputs) == 1 and call.input(0).elem.bits == 16:
        attributes = tuple(sorted(call.attributes.items()))
        source, result = call.input(0).elem, call.output.elem
        return lookup_run(_table(name, attributes, call.ordered, source, result))
    if elements == {"f16"} and name in ARITHMETIC:
        is_rounded = name not in CHOICES  # else a result is one of the operands
        return elementwise_run(in_f32(ARITHMETIC[name]) if is_rounded else ARITHMETIC[name], 2)
    function = real_function(name, call.attributes, call.ordered)
    if elements == {"f32"}:
        return elementwise_run(function, len(call.inputs))
    return store_run(lambda *operands: function(*map(widen_to_f32, operands)))


@lru_cache(maxsize=64)
def _table(
    name: str,
    attributes: tuple[tuple[str, Any], ...],
    ordered: bool,
    source: ElementType,
    result: ElementType,
) -> Array:
    """A function of a 16-bit float: of every value there is, worked out once per process."""
    function = real_function(name, dict(attributes), ordered)
    return quietly(lambda: function(widen_to_f32(all_values(source.dtype))).astype(result.dtype))


def _bind_quantized(name: str, call: Call) -> Run:
    function = real_function(name, call.attributes, call.ordered)
    *sources, result = _operands(call)
    to_reals, to_stored = [dequantizer(source) for source in sources], quantizer(result)

    def compute(*stored: Array) -> Array:
        reals = [to_real(x) for to_real, x in zip(to_reals, stored, strict=True)]
        return to_stored(function(*reals))

    is_uniform = all(t.quant is None or t.quant.axis is None for t in (*sources, result))
    return bind_by_table(compute, call) if len(sources) == 1 and is_uniform else store_run(compute)


def _work(name: str, call: Call) -> Work:
    return Work(elements=call.output.count, each=8 if is_transcendental(name) else 1)


def _primitive(name: str, arity: int) -> Primitive:
    def shape(shapes: Sequence[Dims | None], attributes: Attributes) -> list[Dims] | None:
        """All operands have one shape, nothing is broadcast, and so has the result."""
        first = shapes[0] if len(shapes) == arity else None
        return None if first is None or any(dims != first for dims in shapes) else [first]

    given = TRIED_WITH.get(name, {})
    examples = tuple(Example((x,) * arity, given) for x in PLAIN_SHAPES)
    return Primitive(name, partial(bind, name), shape, partial(_work, name), examples=examples)


ELEMENTWISE: tuple[Primitive, ...] = (
    *(_primitive(name, 1) for name in UNARY),
    *(_primitive(name, 2) for name in BINARY),
)
