"""Operations of ONNX on one element at a time."""

from __future__ import annotations

import numpy as np

from nacre.base.elements import GRAPH_TYPES
from nacre.base.excerpt import backquote
from nacre.core.builder import dtype_name
from nacre.core.onnx.findings import CAST, INFERENCE, Unsound
from nacre.core.onnx.handlers.arithmetic import Expr, operand
from nacre.core.onnx.handlers.table import Handler, handles
from nacre.core.onnx.onnx_node import OnnxNode, Tensor
from nacre.core.onnx.reading.files import onnx
from nacre.core.unsupported import Unsupported
from nacre.core.values import Array

_BINARY = {
    "Add": "Add",
    "Sub": "Sub",
    "Mul": "Mul",
    "Div": "Div",
    "And": "And",
    "Or": "Or",
    "Xor": "Xor",
    "BitwiseAnd": "And",
    "BitwiseOr": "Or",
    "BitwiseXor": "Xor",
}
_COMPARE = {
    "Equal": "Eq",
    "Less": "Lt",
    "LessOrEqual": "Le",
    "Greater": "Gt",
    "GreaterOrEqual": "Ge",
}
_UNARY = {
    **{
        name: name
        for name in (
            *("Abs", "Sign", "Ceil", "Floor", "Round", "Sqrt", "Reciprocal", "Erf"),
            *("Sin", "Cos", "Tan", "Asin", "Acos", "Atan", "Sinh", "Cosh", "Tanh"),
            *("Asinh", "Acosh", "Atanh", "Sigmoid", "Softplus", "Softsign", "Not"),
        )
    },
    "BitwiseNot": "Not",
    "IsNaN": "IsNan",
}
_PLAIN = {"Relu": "ReluNan", "Exp": "Exp", "Log": "Log", "Neg": "Neg", "HardSwish": "HardSwish"}


def _register() -> None:
    for name, op in _BINARY.items():
        handles(name)(_binary(op))
    for name, op in _COMPARE.items():
        handles(name)(_compare(op))
    for name, op in _UNARY.items():
        handles(name)(_unary(op))
    for name, opcode in _PLAIN.items():
        handles(name)(_same_opcode(opcode))


def _binary(op: str) -> Handler:
    return lambda node: node.add("BinOp", node.value(0), _second_operand(node), op=op)


def _compare(op: str) -> Handler:
    return lambda node: node.add("Compare", node.value(0), _second_operand(node), op=op)


def _second_operand(node: OnnxNode) -> int:
    """The second operand; before opset 7 `axis` said where its axes begin."""
    if node.opset >= 7 or "axis" not in node.attributes:
        return node.value(1)
    behind = len(node.shape(0)) - node.axis() - len(node.shape(1))
    return node.reshape(node.value(1), (*node.shape(1), *[1] * max(behind, 0)))


def _unary(op: str) -> Handler:
    return lambda node: node.add("Unary", node.value(0), op=op)


def _same_opcode(opcode: str) -> Handler:
    return lambda node: node.add(opcode, node.value(0))


_register()


@handles("Pow")
def pow_(node: OnnxNode) -> int:
    """X to a power, which may be of another type; the result has that of x."""
    own, other = node.type(0), node.type(1)
    wide = "i64" if own.element.is_integer and other.element.is_integer else "f64"
    wide = own.dtype if other.dtype == own.dtype else wide
    base, power = node.cast(node.value(0), wide), node.cast(node.value(1), wide)
    return node.cast(node.add("BinOp", base, power, op="Pow"), own.dtype)


@handles("Mod")
def mod(node: OnnxNode) -> int:
    """The rest of a division, with the sign of the divisor, or of the dividend by `fmod`."""
    op = "Rem" if node.attribute("fmod", 0) else "Mod"
    return node.add("BinOp", node.value(0), node.value(1), op=op)


@handles("BitShift")
def bit_shift(node: OnnxNode) -> int:
    """A shift to the left or right; one out of range leaves nothing but the sign."""
    op = {"LEFT": "ShiftLeft", "RIGHT": "ShiftRight"}.get(node.require("direction"))
    if op is None:
        raise Unsound(
            f"`direction` is {backquote(node.require('direction'))}, expected LEFT or RIGHT"
        )
    x, amount, bits = operand(node, 0), operand(node, 1), node.type(0).element.bits
    given = node.known(1)
    if given is not None and bool(np.all((given >= 0) & (given < bits))):
        return node.add("BinOp", x.value, amount.value, op=op)
    is_inside = amount.is_("Ge", 0) & amount.is_("Lt", bits)
    shifted = node.add("BinOp", x.value, is_inside.choose(amount, 0).value, op=op)
    rest = x.is_("Lt", 0).choose(x * 0 - 1, 0) if op == "ShiftRight" else x * 0
    return is_inside.choose(Expr(node, shifted), rest).value


@handles("Max", "Min", "Sum", "Mean")
def variadic(node: OnnxNode) -> int:
    """Any number of tensors, combined one after the other."""
    kind = node.op
    op = {"Max": "Max", "Min": "Min"}.get(kind, "Add")
    total = node.value(0)
    for index in range(1, node.count):
        total = node.add("BinOp", total, node.value(index), op=op)
    if kind == "Mean" and node.count > 1:
        count = node.scalar(node.count, node.builder.type_of(total).dtype)
        total = node.add("BinOp", total, count, op="Div")
    return total


@handles("Where")
def where(node: OnnxNode) -> int:
    """The one or the other."""
    return node.add("Where", node.value(0), node.value(1), node.value(2))


@handles("Identity", "Dropout")
def identity(node: OnnxNode) -> list[int] | int:
    """The tensor itself; a dropout drops nothing at inference, and its mask is all true.

    Before opset 12 the mask says nothing at inference; it holds zeros, as onnxruntime has it.
    """
    if node.op == "Dropout":
        _refuse_training(node)
    value = node.value(0)
    if node.op == "Identity" or len(node.outputs) < 2:
        return value
    type_ = node.builder.type_of(value)
    if node.opset < 12:
        dtype = type_.element.dtype if node.opset < 10 else np.dtype(np.bool_)
        return [value, node.constant(np.zeros(type_.shape, dtype))]
    return [value, node.constant(np.ones(type_.shape, np.bool_))]


def _refuse_training(node: OnnxNode) -> None:
    """A dropout that drops; at a ratio of 0 it does not."""
    if node.opset < 7 and not node.attribute("is_test", 0):
        raise Unsupported("`is_test` is 0; it draws random numbers, which Core IR lacks", INFERENCE)
    if node.opset < 12 or not node.has(2):
        return
    ratio = node.known(1) if node.has(1) else np.array(0.5)
    if ratio is not None and not np.any(ratio):
        return
    if np.any(node.require_known(2, "`training_mode`")):
        reason = "`training_mode` is on; it draws random numbers, which Core IR lacks"
        raise Unsupported(reason, INFERENCE)


@handles("Clip")
def clip(node: OnnxNode) -> int:
    """X between two numbers, which may be computed."""
    x, dtype = node.value(0), node.type(0).dtype
    ends = [node.known(i) if node.has(i) else np.zeros(0) for i in (1, 2)]
    if all(end is not None and end.size <= 1 for end in ends) and not GRAPH_TYPES[dtype].is_integer:
        low = node.number("min", 1, float("-inf"))
        return node.add("Clip", x, min=low, max=node.number("max", 2, float("inf")))
    for index, op in ((1, "Max"), (2, "Min")):
        name = ("min", "max")[index - 1]
        if node.has(index):
            x = node.add("BinOp", x, node.value(index), op=op)
        elif name in node.attributes:
            end = node.scalar(node.attributes[name], dtype)
            x = node.add("BinOp", x, end, op=op)
    return x


@handles("Cast", "CastLike")
def cast(node: OnnxNode) -> Tensor:
    """The values in another element type."""
    if node.op == "CastLike":
        target = node.type(1).dtype
    else:
        target = element_name(int(node.require("to")))
    saturate = bool(node.attribute("saturate", 1)) and target.startswith("f8")
    elements = node.known(0)
    if elements is not None and not elements.size:
        return elements.astype(GRAPH_TYPES[target].dtype)
    if node.type(0).dtype == target:
        return node.value(0)
    value = node.value(0)
    if target in ("i4", "u4") and not node.type(0).element.is_integer:
        value = node.cast(value, "i32")  # what does not fit loses its upper bits
    return node.add("Cast", value, to=target, saturate=saturate)


def element_name(kind: int) -> str:
    """The element type of a TensorProto.DataType."""
    if kind == 0 or kind not in onnx.TensorProto.DataType.values():
        raise Unsound(f"{type_title(kind)} is no element type of ONNX")
    try:
        return dtype_name(np.dtype(onnx.helper.tensor_dtype_to_np_dtype(kind)))
    except (ValueError, KeyError, TypeError):
        raise Unsupported(f"Core IR lacks the element type {type_title(kind)}", CAST) from None


def type_title(kind: int) -> str:
    """What ONNX calls an element type."""
    names = {value: name for name, value in onnx.TensorProto.DataType.items()}
    return str(names.get(kind, kind))


@handles("ai.onnx.ml.Binarizer")
def binarizer(node: OnnxNode) -> int:
    """1 where x is greater than a threshold, else 0."""
    dtype = node.type(0).dtype
    limit = node.scalar(float(node.attribute("threshold", 0.0)), dtype)
    return node.cast(node.add("Compare", node.value(0), limit, op="Gt"), dtype)


@handles("IsInf")
def is_inf(node: OnnxNode) -> int:
    """Whether x is infinite, of both signs or of one."""
    up, down = node.attribute("detect_positive", 1), node.attribute("detect_negative", 1)
    x, dtype = node.value(0), node.type(0).dtype
    if up and down:
        return node.add("Unary", x, op="IsInf")
    if not up and not down:
        nothing: Array = np.zeros(node.shape(0), np.bool_)
        return node.constant(nothing)
    end = node.scalar(float("inf" if up else "-inf"), dtype)
    return node.add("Compare", x, end, op="Eq")
