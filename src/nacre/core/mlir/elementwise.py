"""Constants, and operations on one element at a time."""

from __future__ import annotations

from collections.abc import Callable

from nacre.core.constants import constant_array
from nacre.core.mlir.body import ARITHMETIC, RegionBody, Scalar
from nacre.core.mlir.types import compute_type, dense_text, is_float, tensor_text
from nacre.core.mlir.writer import MlirWriter, Value
from nacre.core.unsupported import Unsupported


def constant(writer: MlirWriter) -> Value:
    """`arith.constant`, exact to the bit."""
    array = constant_array(writer.op)
    assert array is not None
    elements = dense_text(array.astype(writer.type.element.dtype, copy=False), writer.type.dtype)
    text = f"arith.constant {elements} : {tensor_text(writer.type)}"
    return writer.add("constant", text, writer.type)


def require_numbers(writer: MlirWriter) -> None:
    """Unsupported for truth values: what their sums and products are is not written down."""
    if any(value.type.dtype == "bool" for value in writer.operands):
        raise Unsupported("arithmetic on `bool`")


def elementwise(function: Callable[..., Scalar]) -> Callable[[MlirWriter], Value]:
    """A lowering from `function(body, *elements)`, whose elements are wide and broadcast."""

    def lower(writer: MlirWriter) -> Value:
        require_numbers(writer)

        def code(body: RegionBody, *elements: Scalar) -> Scalar:
            result = function(body, *(body.cast(x, compute_type(x.dtype)) for x in elements))
            return body.cast(result, writer.type.dtype)

        return writer.add_elementwise("result", writer.operands, writer.type, code)

    return lower


def binop(writer: MlirWriter) -> Value:
    """`BinOp`, broadcast by the maps of a `linalg.generic`."""
    word = str(writer.op.attributes["op"])
    if word not in ARITHMETIC:
        raise Unsupported(f"op={word} is not translated")
    return elementwise(lambda body, a, b: body.arithmetic(word, a, b))(writer)


def relu(body: RegionBody, x: Scalar) -> Scalar:
    """By the formula `x if x > 0 else 0`, so that NaN and -0.0 become 0."""
    zero = body.constant(0, x.dtype)
    return body.select(body.compare("Gt", x, zero), x, zero)


def neg(body: RegionBody, x: Scalar) -> Scalar:
    """The sign turned; of integers 0 - x."""
    if is_float(x.dtype):
        return body.add_uniform("arith.negf", x)
    return body.arithmetic("Sub", body.constant(0, x.dtype), x)


def exp(body: RegionBody, x: Scalar) -> Scalar:
    """`math.exp`."""
    return body.add_uniform("math.exp", x)


def log(body: RegionBody, x: Scalar) -> Scalar:
    """`math.log`."""
    return body.add_uniform("math.log", x)
