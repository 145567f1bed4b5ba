"""Operations that normalise. Of f64 by their formulas: attributes of ONNX are f32."""

from __future__ import annotations

from math import prod

import numpy as np

from nacre.base.elements import GRAPH_TYPES
from nacre.core.module import TensorType
from nacre.core.onnx_export.forms.reductions import reduce_axes
from nacre.core.onnx_export.graph import Value
from nacre.core.onnx_export.types import takes
from nacre.core.onnx_export.writer import OnnxWriter, require_few, writes


@writes("Softmax", "LogSoftmax")
def softmax(writer: OnnxWriter) -> Value:
    """`Softmax` and `LogSoftmax`."""
    x = writer.to_compute_type(writer.operands[0])
    return writer.to_result_type(
        writer.elementwise(writer.op.opcode, x, axis=writer.attributes["axis"])
    )


def _epsilon(writer: OnnxWriter, dtype: str) -> Value:
    return writer.number(writer.attributes["epsilon"], dtype)


def _standardise(writer: OnnxWriter, x: Value, axes: tuple[int, ...]) -> Value:
    """Mean 0 and variance 1 over some axes."""
    rest = writer.elementwise("Sub", x, reduce_axes(writer, "ReduceMean", x, axes))
    return _normalise_mean_square(writer, rest, axes)


def _normalise_mean_square(writer: OnnxWriter, x: Value, axes: tuple[int, ...]) -> Value:
    """Mean square 1 over some axes."""
    square = reduce_axes(writer, "ReduceMean", writer.elementwise("Mul", x, x), axes)
    root = writer.elementwise("Sqrt", writer.elementwise("Add", square, _epsilon(writer, x.dtype)))
    return writer.elementwise("Div", x, root)


def _scale_and_shift(writer: OnnxWriter, x: Value, *parameters: Value) -> Value:
    """Times a scale, plus a bias, where they are given."""
    for operation, parameter in zip(("Mul", "Add"), parameters, strict=False):
        x = writer.elementwise(operation, x, parameter)
    return x


def _fill_parameters(
    writer: OnnxWriter, parameters: list[Value], shape: tuple[int, ...]
) -> list[Value]:
    """Scale and bias, ones and zeros where they are left out."""
    neutral = (1, 0)[len(parameters) :]
    return [*parameters, *(writer.expand(writer.number(n, "f32"), shape) for n in neutral)]


@writes("LayerNorm")
def layer_norm(writer: OnnxWriter) -> Value:
    """`LayerNorm`."""
    x, *parameters = (writer.to_compute_type(value) for value in writer.operands)
    axis = writer.attributes["axis"] % x.type.rank
    if takes("LayerNormalization", x.dtype):
        given = _fill_parameters(writer, parameters, x.shape[axis:])
        epsilon = float(writer.attributes["epsilon"])
        norm = writer.add("LayerNormalization", x, *given, type_=x.type, axis=axis, epsilon=epsilon)
        return writer.to_result_type(norm)
    standard = _standardise(writer, x, tuple(range(axis, x.type.rank)))
    return writer.to_result_type(_scale_and_shift(writer, standard, *parameters))


@writes("RmsNorm")
def rms_norm(writer: OnnxWriter) -> Value:
    """`RmsNorm`, by its formula: this version of ONNX has none."""
    x, *parameters = (writer.to_compute_type(value) for value in writer.operands)
    axis = writer.attributes["axis"] % x.type.rank
    found = _normalise_mean_square(writer, x, tuple(range(axis, x.type.rank)))
    return writer.to_result_type(_scale_and_shift(writer, found, *parameters))


@writes("GroupNorm", "InstanceNorm")
def group_norm(writer: OnnxWriter) -> Value:
    """`GroupNorm`, and `InstanceNorm`, where every channel is a group."""
    x, *parameters = (writer.to_compute_type(value) for value in writer.operands)
    channels = x.shape[1]
    groups = writer.attributes.get("groups", channels)
    epsilon = float(writer.attributes["epsilon"])
    is_single = "groups" not in writer.attributes
    operation = "InstanceNormalization" if is_single else "GroupNormalization"
    if takes(operation, x.dtype) and x.type.rank > 2:
        given = {} if is_single else {"num_groups": groups}
        filled = _fill_parameters(writer, parameters, (channels,))
        norm = writer.add(operation, x, *filled, type_=x.type, epsilon=epsilon, **given)
        return writer.to_result_type(norm)
    rows = writer.reshape(x, (x.shape[0], groups, prod(x.shape[1:]) // groups))
    standard = writer.reshape(_standardise(writer, rows, (2,)), x.shape)
    channel_shape = (channels, *(1,) * (x.type.rank - 2))
    return writer.to_result_type(
        _scale_and_shift(writer, standard, *(writer.reshape(p, channel_shape) for p in parameters))
    )


@writes("BatchNorm")
def batch_norm(writer: OnnxWriter) -> Value:
    """`BatchNorm`: an operation of its own where channels are axis 1, else by its formula."""
    x, scale, bias, mean, variance = (writer.to_compute_type(value) for value in writer.operands)
    axis = writer.attributes["axis"] % x.type.rank
    if x.dtype == "f32" and axis == 1:
        epsilon = float(writer.attributes["epsilon"])
        given = (x, scale, bias, mean, variance)
        return writer.to_result_type(
            writer.add("BatchNormalization", *given, type_=x.type, epsilon=epsilon)
        )
    root = writer.elementwise(
        "Sqrt", writer.elementwise("Add", variance, _epsilon(writer, x.dtype))
    )
    factor = writer.elementwise("Div", scale, root)
    shift = writer.elementwise("Sub", bias, writer.elementwise("Mul", mean, factor))
    channel_shape = (x.shape[axis], *(1,) * (x.type.rank - axis - 1))
    return writer.to_result_type(
        _scale_and_shift(writer, x, *(writer.reshape(p, channel_shape) for p in (factor, shift)))
    )


@writes("Lrn")
def lrn(writer: OnnxWriter) -> Value:
    """`Lrn`: an operation of its own where onnxruntime has it, else by its formula."""
    x, size = writer.to_compute_type(writer.operands[0]), writer.attributes["size"]
    alpha, beta, bias = (float(writer.attributes[name]) for name in ("alpha", "beta", "bias"))
    if takes("LRN", x.dtype) and x.type.rank == 4 and size % 2:
        return writer.to_result_type(
            writer.add("LRN", x, type_=x.type, size=size, alpha=alpha, beta=beta, bias=bias)
        )
    total = _neighbour_sums(writer, writer.elementwise("Mul", x, x), size)
    line = writer.elementwise("Mul", total, writer.number(alpha / size, x.dtype))
    line = writer.elementwise("Add", line, writer.number(bias, x.dtype))
    return writer.to_result_type(
        writer.elementwise("Div", x, writer.elementwise("Pow", line, writer.number(beta, x.dtype)))
    )


def _neighbour_sums(writer: OnnxWriter, squares: Value, size: int) -> Value:
    """Sums over neighbouring channels: a product with a band of ones."""
    channels = squares.shape[1]
    require_few(channels**2)
    before = (size - 1) // 2
    offsets = np.arange(channels) - np.arange(channels)[:, None]
    band = ((offsets >= -before) & (offsets <= size - 1 - before)).astype(np.float64)
    ones = writer.array(band.astype(GRAPH_TYPES[squares.dtype].dtype), squares.dtype)
    rows = writer.reshape(squares, (squares.shape[0], channels, prod(squares.shape[2:])))
    sums = writer.add("MatMul", ones, rows, type_=TensorType(rows.dtype, rows.shape))
    return writer.reshape(sums, squares.shape)
