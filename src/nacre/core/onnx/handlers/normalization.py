"""Operations of ONNX that normalise."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from nacre.core.onnx.findings import INFERENCE, Unsound
from nacre.core.onnx.handlers.arithmetic import Expr
from nacre.core.onnx.handlers.elementwise import element_name
from nacre.core.onnx.handlers.table import handles
from nacre.core.onnx.tensors import broadcast_to, optional, repeat_along, shape_of
from nacre.core.onnx.use import OnnxNode, Tensor
from nacre.core.unsupported import Unsupported

_MVN_EPSILON = 1e-9  # of the standard deviation, as the definition has it


@handles("BatchNormalization")
def batch_norm(use: OnnxNode) -> Sequence[Tensor]:
    """Each channel by a mean and variance that are given, or in training by those of the batch."""
    if use.opset < 7 and not use.attribute("is_test", 0):
        raise Unsupported("`is_test` is 0: before opset 7 that means training", INFERENCE)
    if len(use.shape(0)) < 2:
        raise Unsound(f"its input has the shape {list(use.shape(0))}, expected channels")
    given = [use.value(i) for i in range(1, 5)]
    if use.attribute("training_mode", 0):
        moments_ = _batch_moments(use)
        running = [_running(use, i, own) for i, own in zip((3, 4), moments_, strict=True)]
        return [_by_channel(use, [*given[:2], *moments_]), *running]
    if not use.attribute("spatial", 1):
        return [_by_element(use, given)]
    return [_by_channel(use, given)]


def _by_channel(use: OnnxNode, parameters: Sequence[int]) -> int:
    dtype, epsilon = use.type(0).dtype, float(use.attribute("epsilon", 1e-5))
    values = [use.value(0), *(use.cast(value, dtype) for value in parameters)]
    return use.add("BatchNorm", *values, epsilon=epsilon)


def _by_element(use: OnnxNode, parameters: Sequence[int]) -> int:
    """`spatial` is 0: every element of an example has a mean and a variance of its own."""
    dtype, dims = use.type(0).dtype, use.shape(0)[1:]
    scale, bias, mean, variance = (Expr(use, use.reshape(v, dims)) for v in parameters)
    root = (variance + float(use.attribute("epsilon", 1e-5))).map("Rsqrt")
    made = (Expr(use, use.value(0)) - mean) * (root * scale) + bias
    return made.to(dtype).value


def _batch_moments(use: OnnxNode) -> list[int]:
    """The mean and the variance of each channel over the batch, in the type of those given."""
    axes = tuple(axis for axis in range(len(use.shape(0))) if axis != 1)
    x = use.cast(use.value(0), use.type(3).dtype)
    mean = use.add("Mean", x, axes=axes, keepdims=True)
    apart = use.add("BinOp", x, mean, op="Sub")
    squares = use.add("BinOp", apart, apart, op="Mul")
    channels = (use.shape(0)[1],)
    variance = use.add("Mean", squares, axes=axes, keepdims=False)
    return [use.reshape(mean, channels), variance]


def _running(use: OnnxNode, index: int, own: int) -> int:
    """A moment that is given, moved towards that of the batch."""
    momentum = float(use.attribute("momentum", 0.9))
    old, new = Expr(use, use.value(index)), Expr(use, own)
    return (old * momentum + new * (1.0 - momentum)).value


@handles("InstanceNormalization")
def instance_norm(use: OnnxNode) -> int:
    """Mean 0 and variance 1 over each channel's plane."""
    values = [use.value(i) for i in range(3)]
    return use.add("InstanceNorm", *values, epsilon=float(use.attribute("epsilon", 1e-5)))


@handles("LRN")
def lrn(use: OnnxNode) -> int:
    """By the squares of neighbouring channels."""
    given = {"alpha": 1e-4, "beta": 0.75, "bias": 1.0}
    found = {name: float(use.attribute(name, default)) for name, default in given.items()}
    return use.add("Lrn", use.value(0), size=int(use.require("size")), **found)


@handles("Softmax", "LogSoftmax")
def softmax(use: OnnxNode) -> int:
    """Along an axis; before opset 13, over all axes from one on together."""
    opcode = use.node.op
    if use.opset >= 13:
        return use.add(opcode, use.value(0), axis=use.axis(default=-1))
    axis, dims = use.axis(default=1), use.shape(0)
    flat = use.reshape(use.value(0), (prod(dims[:axis]), prod(dims[axis:])))
    return use.reshape(use.add(opcode, flat, axis=1), dims)


@handles("LpNormalization")
def lp_norm(use: OnnxNode) -> int:
    """Over the 1-norm or 2-norm along an axis; 0 stays 0."""
    p = int(use.attribute("p", 2))
    if p not in (1, 2):
        raise Unsound(f"`p` is {p}, expected 1 or 2", "write it with Pow, ReduceSum and Div")
    x, dtype = use.value(0), use.type(0).dtype
    norm = use.add("Reduce", x, op=f"L{p}", axes=(use.axis(default=-1),), keepdims=True)
    zero = use.scalar(0.0, dtype)
    is_zero = use.add("Compare", norm, zero, op="Eq")
    safe = use.add("Where", is_zero, use.scalar(1.0, dtype), norm)
    return use.add("BinOp", x, safe, op="Div")


@handles("LayerNormalization", "com.microsoft.LayerNormalization")
def layer_norm(use: OnnxNode) -> Sequence[Tensor]:
    """Mean 0 and variance 1 over the axes from one on; also the mean and 1 / deviation."""
    axis, epsilon = use.axis(default=-1), float(use.attribute("epsilon", 1e-5))
    made = add_layer_norm(use, use.value(0), optional(use, 1), optional(use, 2), axis, epsilon)
    if not any(use.node.outputs[1:]):
        return [made]
    stash = element_name(int(use.attribute("stash_type", 1)))
    return [made, *moments(use, use.value(0), axis, epsilon, stash)]


def add_layer_norm(
    use: OnnxNode, x: int, scale: Tensor | None, bias: Tensor | None, axis: int, epsilon: float
) -> int:
    """LayerNorm, with parameters that may broadcast to x in any way."""
    dims = use.builder.type_of(x).shape
    fits = all(t is None or len(shape_of(use, t)) <= len(dims) - axis for t in (scale, bias))
    if scale is not None and fits:
        given = [t for t in (scale, bias) if t is not None]
        values = [use.materialise(broadcast_to(use, t, dims[axis:])) for t in given]
        return use.add("LayerNorm", x, *values, axis=axis, epsilon=epsilon)
    made = use.add("LayerNorm", x, axis=axis, epsilon=epsilon)
    for tensor, op in ((scale, "Mul"), (bias, "Add")):
        if tensor is not None:
            made = use.add("BinOp", made, _onto(use, tensor, dims), op=op)
    return made


def _onto(use: OnnxNode, tensor: Tensor, dims: Sequence[int]) -> int:
    """A parameter, which must not make the tensor larger."""
    broadcast_to(use, tensor, dims)
    return use.materialise(tensor)


def moments(use: OnnxNode, x: int, axis: int, epsilon: float, dtype: str) -> list[int]:
    """The mean and the reciprocal of the deviation over the axes from one on."""
    axes = tuple(range(axis, len(use.builder.type_of(x).shape)))
    wide = use.cast(x, dtype)
    mean = use.add("Mean", wide, axes=axes, keepdims=True)
    difference = use.add("BinOp", wide, mean, op="Sub")
    return [mean, reciprocal_root(use, difference, axes, epsilon)]


def reciprocal_root(use: OnnxNode, x: int, axes: tuple[int, ...], epsilon: float) -> int:
    """1 / sqrt(mean of squares + epsilon)."""
    mean = use.add("Mean", use.add("BinOp", x, x, op="Mul"), axes=axes, keepdims=True)
    small = use.scalar(epsilon, use.builder.type_of(x).dtype)
    return use.add("Unary", use.add("BinOp", mean, small, op="Add"), op="Rsqrt")


@handles(
    "RMSNormalization",
    "SimplifiedLayerNormalization",
    "com.microsoft.SimplifiedLayerNormalization",
)
def rms_norm(use: OnnxNode) -> Sequence[Tensor]:
    """Mean square 1 over the axes from one on; the result has the type of the scale."""
    axis, epsilon = use.axis(default=-1), float(use.attribute("epsilon", 1e-5))
    made = add_rms_norm(use, use.value(0), use.tensor(1), axis, epsilon)
    if not any(use.node.outputs[1:]):
        return [made]
    axes = tuple(range(axis, len(use.shape(0))))
    stash = element_name(int(use.attribute("stash_type", 1)))
    return [made, reciprocal_root(use, use.cast(use.value(0), stash), axes, epsilon)]


def add_rms_norm(use: OnnxNode, x: int, scale: Tensor, axis: int, epsilon: float) -> int:
    """RmsNorm, with a scale that may broadcast to x in any way and be of another type."""
    type_, own = use.builder.type_of(x), use.type_of(scale)
    if own.dtype == type_.dtype and len(own.shape) <= len(type_.shape) - axis:
        factors = use.materialise(broadcast_to(use, scale, type_.shape[axis:]))
        return use.add("RmsNorm", x, factors, axis=axis, epsilon=epsilon)
    made = use.cast(use.add("RmsNorm", x, axis=axis, epsilon=epsilon), own.dtype)
    return use.add("BinOp", made, _onto(use, scale, type_.shape), op="Mul")


@handles("GroupNormalization")
def group_norm(use: OnnxNode) -> int:
    """Mean 0 and variance 1 over groups of channels; before opset 21 one scale for each group."""
    groups, dims = int(use.require("num_groups")), use.shape(0)
    if len(dims) < 2 or groups < 1 or dims[1] % groups:
        raise Unsound(f"`num_groups` is {groups}, the tensor has the shape {list(dims)}")
    count = dims[1] // groups if use.opset < 21 else 1
    parameters = []
    for index in (1, 2):
        tensor = use.tensor(index)
        if shape_of(use, tensor) != (dims[1] // count,):
            found = list(shape_of(use, tensor))
            raise Unsound(f"operand {index} has the shape {found}, expected [{dims[1] // count}]")
        parameters.append(use.materialise(repeat_along(use, tensor, 0, count)))
    epsilon = float(use.attribute("epsilon", 1e-5))
    return use.add("GroupNorm", use.value(0), *parameters, groups=groups, epsilon=epsilon)


@handles("MeanVarianceNormalization")
def mean_variance_norm(use: OnnxNode) -> int:
    """Mean 0 and variance 1 over axes that are named."""
    rank, own = len(use.shape(0)), use.type(0).dtype
    dtype = "f64" if own == "f64" else "f32"  # f16 has no number as small as the epsilon
    x = use.cast(use.value(0), dtype)
    axes = use.ints("axes", None, (0, 2, 3)) or ()
    if any(not -rank <= axis < rank for axis in axes):
        raise Unsound(f"`axes` is {list(axes)}, the tensor has {rank} axes")
    places = tuple(sorted({axis % rank for axis in axes}))
    mean = use.add("Mean", x, axes=places, keepdims=True)
    difference = use.add("BinOp", x, mean, op="Sub")
    squares = use.add("BinOp", difference, difference, op="Mul")
    root = use.add("Unary", use.add("Mean", squares, axes=places, keepdims=True), op="Sqrt")
    divisor = use.add("BinOp", root, use.scalar(_MVN_EPSILON, dtype), op="Add")
    return use.cast(use.add("BinOp", difference, divisor, op="Div"), own)


@handles("Hardmax")
def hardmax(use: OnnxNode) -> int:
    """1 where the first largest element lies; before opset 13 over all axes from one on."""
    dims, dtype = use.shape(0), use.type(0).dtype
    values = use.cast(use.constant(np.array([0.0, 1.0], np.float32)), dtype)
    if use.opset >= 13 and dims:
        axis, x = use.axis(default=-1), use.value(0)
    else:
        start = use.axis(default=1)
        axis, x = 1, use.reshape(use.value(0), (prod(dims[:start]), prod(dims[start:])))
    depth = use.builder.type_of(x).shape[axis]
    place = use.add("ArgMax", x, axis=axis, keepdims=False)
    return use.reshape(use.add("OneHot", place, values, depth=depth, axis=axis), dims)
