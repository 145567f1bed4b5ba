"""Operations of ONNX that normalise."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from nacre.core.importing.origins import array_span
from nacre.core.onnx.findings import INFERENCE, Unsound
from nacre.core.onnx.handlers.arithmetic import Expr
from nacre.core.onnx.handlers.elementwise import element_name
from nacre.core.onnx.handlers.table import handles
from nacre.core.onnx.onnx_node import OnnxNode, Tensor
from nacre.core.onnx.tensors import broadcast_to, optional_tensor, repeat_along, shape_of
from nacre.core.unsupported import Unsupported

_MVN_EPSILON = 1e-9  # of the standard deviation, as the definition has it


@handles("BatchNormalization")
def batch_norm(node: OnnxNode) -> Sequence[Tensor]:
    """Each channel by a mean and variance that are given, or in training by those of the batch."""
    if node.opset < 7 and not node.attribute("is_test", 0):
        raise Unsupported("`is_test` is 0: before opset 7 that means training", INFERENCE)
    if len(node.shape(0)) < 2:
        raise Unsound(f"its input has the shape {list(node.shape(0))}, expected channels")
    given = [node.value(1), node.value(2), _statistic(node, 3), _statistic(node, 4)]
    if node.attribute("training_mode", 0):
        moments_ = _batch_moments(node)
        running = [_running_moment(node, i, own) for i, own in zip((3, 4), moments_, strict=True)]
        return [_by_channel(node, [*given[:2], *moments_]), *running]
    if not node.attribute("spatial", 1):
        return [_by_element(node, given)]
    return [_by_channel(node, given)]


def _statistic(node: OnnxNode, index: int) -> int:
    """A mean or a variance. Exporters make one tensor of it and of weights that are equal to it.

    It is another one all the same: training changes weights.
    """
    known, builder = node.known(index), node.builder
    if known is not None and builder.keep_parameters and builder.is_shared(array_span(known)):
        return node.constant(known.copy())
    return node.value(index)


def _by_channel(node: OnnxNode, parameters: Sequence[int]) -> int:
    dtype, epsilon = node.type(0).dtype, float(node.attribute("epsilon", 1e-5))
    values = [node.value(0), *(node.cast(value, dtype) for value in parameters)]
    return node.add("BatchNorm", *values, epsilon=epsilon)


def _by_element(node: OnnxNode, parameters: Sequence[int]) -> int:
    """`spatial` is 0: every element of an example has a mean and a variance of its own."""
    dtype, dims = node.type(0).dtype, node.shape(0)[1:]
    scale, bias, mean, variance = (Expr(node, node.reshape(v, dims)) for v in parameters)
    root = (variance + float(node.attribute("epsilon", 1e-5))).map("Rsqrt")
    made = (Expr(node, node.value(0)) - mean) * (root * scale) + bias
    return made.to(dtype).value


def _batch_moments(node: OnnxNode) -> list[int]:
    """The mean and the variance of each channel over the batch, in the type of those given."""
    axes = tuple(axis for axis in range(len(node.shape(0))) if axis != 1)
    x = node.cast(node.value(0), node.type(3).dtype)
    mean = node.add("Mean", x, axes=axes, keepdims=True)
    apart = node.add("BinOp", x, mean, op="Sub")
    squares = node.add("BinOp", apart, apart, op="Mul")
    channels = (node.shape(0)[1],)
    variance = node.add("Mean", squares, axes=axes, keepdims=False)
    return [node.reshape(mean, channels), variance]


def _running_moment(node: OnnxNode, index: int, batch_moment: int) -> int:
    """A moment that is given, moved towards that of the batch."""
    momentum = float(node.attribute("momentum", 0.9))
    old, new = Expr(node, node.value(index)), Expr(node, batch_moment)
    return (old * momentum + new * (1.0 - momentum)).value


@handles("InstanceNormalization")
def instance_norm(node: OnnxNode) -> int:
    """Mean 0 and variance 1 over each channel's plane."""
    values = [node.value(i) for i in range(3)]
    return node.add("InstanceNorm", *values, epsilon=float(node.attribute("epsilon", 1e-5)))


@handles("LRN")
def lrn(node: OnnxNode) -> int:
    """By the squares of neighbouring channels."""
    given = {"alpha": 1e-4, "beta": 0.75, "bias": 1.0}
    found = {name: float(node.attribute(name, default)) for name, default in given.items()}
    return node.add("Lrn", node.value(0), size=int(node.require("size")), **found)


@handles("Softmax", "LogSoftmax")
def softmax(node: OnnxNode) -> int:
    """Along an axis; before opset 13, over all axes from one on together."""
    opcode = node.op
    if node.opset >= 13:
        return node.add(opcode, node.value(0), axis=node.axis(default=-1))
    axis, dims = node.axis(default=1), node.shape(0)
    flat = node.reshape(node.value(0), (prod(dims[:axis]), prod(dims[axis:])))
    return node.reshape(node.add(opcode, flat, axis=1), dims)


@handles("LpNormalization")
def lp_norm(node: OnnxNode) -> int:
    """Over the 1-norm or 2-norm along an axis; 0 stays 0."""
    p = int(node.attribute("p", 2))
    if p not in (1, 2):
        raise Unsound(f"`p` is {p}, expected 1 or 2", "write it with Pow, ReduceSum and Div")
    x, dtype = node.value(0), node.type(0).dtype
    norm = node.add("Reduce", x, op=f"L{p}", axes=(node.axis(default=-1),), keepdims=True)
    zero = node.scalar(0.0, dtype)
    is_zero = node.add("Compare", norm, zero, op="Eq")
    safe = node.add("Where", is_zero, node.scalar(1.0, dtype), norm)
    return node.add("BinOp", x, safe, op="Div")


@handles("LayerNormalization", "com.microsoft.LayerNormalization")
def layer_norm(node: OnnxNode) -> Sequence[Tensor]:
    """Mean 0 and variance 1 over the axes from one on; also the mean and 1 / deviation."""
    axis, epsilon = node.axis(default=-1), float(node.attribute("epsilon", 1e-5))
    norm = add_layer_norm(
        node, node.value(0), optional_tensor(node, 1), optional_tensor(node, 2), axis, epsilon
    )
    if not any(node.outputs[1:]):
        return [norm]
    stash = element_name(int(node.attribute("stash_type", 1)))
    return [norm, *moments(node, node.value(0), axis, epsilon, stash)]


def add_layer_norm(
    node: OnnxNode, x: int, scale: Tensor | None, bias: Tensor | None, axis: int, epsilon: float
) -> int:
    """LayerNorm, with parameters that may broadcast to x in any way."""
    dims = node.builder.type_of(x).shape
    fits = all(t is None or len(shape_of(node, t)) <= len(dims) - axis for t in (scale, bias))
    if scale is not None and fits:
        given = [t for t in (scale, bias) if t is not None]
        values = [node.materialise(broadcast_to(node, t, dims[axis:])) for t in given]
        return node.add("LayerNorm", x, *values, axis=axis, epsilon=epsilon)
    norm = node.add("LayerNorm", x, axis=axis, epsilon=epsilon)
    for tensor, op in ((scale, "Mul"), (bias, "Add")):
        if tensor is not None:
            norm = node.add("BinOp", norm, _broadcastable_parameter(node, tensor, dims), op=op)
    return norm


def _broadcastable_parameter(node: OnnxNode, tensor: Tensor, dims: Sequence[int]) -> int:
    """A parameter, which must not make the tensor larger."""
    broadcast_to(node, tensor, dims)
    return node.materialise(tensor)


def moments(node: OnnxNode, x: int, axis: int, epsilon: float, dtype: str) -> list[int]:
    """The mean and the reciprocal of the deviation over the axes from one on."""
    axes = tuple(range(axis, len(node.builder.type_of(x).shape)))
    wide = node.cast(x, dtype)
    mean = node.add("Mean", wide, axes=axes, keepdims=True)
    difference = node.add("BinOp", wide, mean, op="Sub")
    return [mean, reciprocal_root(node, difference, axes, epsilon)]


def reciprocal_root(node: OnnxNode, x: int, axes: tuple[int, ...], epsilon: float) -> int:
    """1 / sqrt(mean of squares + epsilon)."""
    mean = node.add("Mean", node.add("BinOp", x, x, op="Mul"), axes=axes, keepdims=True)
    small = node.scalar(epsilon, node.builder.type_of(x).dtype)
    return node.add("Unary", node.add("BinOp", mean, small, op="Add"), op="Rsqrt")


@handles(
    "RMSNormalization",
    "SimplifiedLayerNormalization",
    "com.microsoft.SimplifiedLayerNormalization",
)
def rms_norm(node: OnnxNode) -> Sequence[Tensor]:
    """Mean square 1 over the axes from one on; the result has the type of the scale."""
    axis, epsilon = node.axis(default=-1), float(node.attribute("epsilon", 1e-5))
    norm = add_rms_norm(node, node.value(0), node.tensor(1), axis, epsilon)
    if not any(node.outputs[1:]):
        return [norm]
    axes = tuple(range(axis, len(node.shape(0))))
    stash = element_name(int(node.attribute("stash_type", 1)))
    return [norm, reciprocal_root(node, node.cast(node.value(0), stash), axes, epsilon)]


def add_rms_norm(node: OnnxNode, x: int, scale: Tensor, axis: int, epsilon: float) -> int:
    """RmsNorm, with a scale that may broadcast to x in any way and be of another type."""
    type_, own = node.builder.type_of(x), node.type_of(scale)
    if own.dtype == type_.dtype and len(own.shape) <= len(type_.shape) - axis:
        factors = node.materialise(broadcast_to(node, scale, type_.shape[axis:]))
        return node.add("RmsNorm", x, factors, axis=axis, epsilon=epsilon)
    made = node.cast(node.add("RmsNorm", x, axis=axis, epsilon=epsilon), own.dtype)
    return node.add("BinOp", made, _broadcastable_parameter(node, scale, type_.shape), op="Mul")


@handles("GroupNormalization")
def group_norm(node: OnnxNode) -> int:
    """Mean 0 and variance 1 over groups of channels; before opset 21 one scale for each group."""
    groups, dims = int(node.require("num_groups")), node.shape(0)
    if len(dims) < 2 or groups < 1 or dims[1] % groups:
        raise Unsound(f"`num_groups` is {groups}, the tensor has the shape {list(dims)}")
    count = dims[1] // groups if node.opset < 21 else 1
    parameters = []
    for index in (1, 2):
        tensor = node.tensor(index)
        if shape_of(node, tensor) != (dims[1] // count,):
            shape = list(shape_of(node, tensor))
            raise Unsound(f"operand {index} has the shape {shape}, expected [{dims[1] // count}]")
        parameters.append(node.materialise(repeat_along(node, tensor, 0, count)))
    epsilon = float(node.attribute("epsilon", 1e-5))
    return node.add("GroupNorm", node.value(0), *parameters, groups=groups, epsilon=epsilon)


@handles("MeanVarianceNormalization")
def mean_variance_norm(node: OnnxNode) -> int:
    """Mean 0 and variance 1 over axes that are named."""
    rank, own = len(node.shape(0)), node.type(0).dtype
    dtype = "f64" if own == "f64" else "f32"  # f16 has no number as small as the epsilon
    x = node.cast(node.value(0), dtype)
    axes = node.ints("axes", None, (0, 2, 3)) or ()
    if any(not -rank <= axis < rank for axis in axes):
        raise Unsound(f"`axes` is {list(axes)}, the tensor has {rank} axes")
    places = tuple(sorted({axis % rank for axis in axes}))
    mean = node.add("Mean", x, axes=places, keepdims=True)
    difference = node.add("BinOp", x, mean, op="Sub")
    squares = node.add("BinOp", difference, difference, op="Mul")
    root = node.add("Unary", node.add("Mean", squares, axes=places, keepdims=True), op="Sqrt")
    divisor = node.add("BinOp", root, node.scalar(_MVN_EPSILON, dtype), op="Add")
    return node.cast(node.add("BinOp", difference, divisor, op="Div"), own)


@handles("Hardmax")
def hardmax(node: OnnxNode) -> int:
    """1 where the first largest element lies; before opset 13 over all axes from one on."""
    dims, dtype = node.shape(0), node.type(0).dtype
    values = node.cast(node.constant(np.array([0.0, 1.0], np.float32)), dtype)
    if node.opset >= 13 and dims:
        axis, x = node.axis(default=-1), node.value(0)
    else:
        start = node.axis(default=1)
        axis, x = 1, node.reshape(node.value(0), (prod(dims[:start]), prod(dims[start:])))
    depth = node.builder.type_of(x).shape[axis]
    place = node.add("ArgMax", x, axis=axis, keepdims=False)
    return node.reshape(node.add("OneHot", place, values, depth=depth, axis=axis), dims)
