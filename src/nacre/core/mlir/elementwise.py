"""Constants, and operations on one element at a time."""

from __future__ import annotations

from collections.abc import Callable

from nacre.core.constants import constant_array
from nacre.core.mlir.body import ARITHMETIC, Body, Scalar
from nacre.core.mlir.site import MlirWriter, Value
from nacre.core.mlir.types import dense_text, is_float, tensor_text, wide
from nacre.core.unsupported import Unsupported


def constant(site: MlirWriter) -> Value:
    """`arith.constant`, exact to the bit."""
    array = constant_array(site.op)
    assert array is not None
    elements = dense_text(array.astype(site.type.element.dtype, copy=False), site.type.dtype)
    text = f"arith.constant {elements} : {tensor_text(site.type)}"
    return site.add("constant", text, site.type)


def require_numbers(site: MlirWriter) -> None:
    """Unsupported for truth values: what their sums and products are is not written down."""
    if any(value.type.dtype == "bool" for value in site.operands):
        raise Unsupported("arithmetic on `bool`")


def elementwise(function: Callable[..., Scalar]) -> Callable[[MlirWriter], Value]:
    """A lowering from `function(body, *elements)`, whose elements are wide and broadcast."""

    def lowered(site: MlirWriter) -> Value:
        require_numbers(site)

        def code(body: Body, *elements: Scalar) -> Scalar:
            result = function(body, *(body.cast(x, wide(x.dtype)) for x in elements))
            return body.cast(result, site.type.dtype)

        return site.mapped("result", site.operands, site.type, code)

    return lowered


def binop(site: MlirWriter) -> Value:
    """`BinOp`, broadcast by the maps of a `linalg.generic`."""
    word = str(site.op.attributes["op"])
    if word not in ARITHMETIC:
        raise Unsupported(f"op={word} is not translated")
    return elementwise(lambda body, a, b: body.arithmetic(word, a, b))(site)


def relu(body: Body, x: Scalar) -> Scalar:
    """By the formula `x if x > 0 else 0`, so that NaN and -0.0 become 0."""
    zero = body.constant(0, x.dtype)
    return body.select(body.compare("Gt", x, zero), x, zero)


def neg(body: Body, x: Scalar) -> Scalar:
    """The sign turned; of integers 0 - x."""
    if is_float(x.dtype):
        return body.of("arith.negf", x)
    return body.arithmetic("Sub", body.constant(0, x.dtype), x)


def exp(body: Body, x: Scalar) -> Scalar:
    """`math.exp`."""
    return body.of("math.exp", x)


def log(body: Body, x: Scalar) -> Scalar:
    """`math.log`."""
    return body.of("math.log", x)
