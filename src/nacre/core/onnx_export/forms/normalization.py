"""Operations that normalise. Of f64 by their formulas: attributes of ONNX are f32."""

from __future__ import annotations

from math import prod

import numpy as np

from nacre.base.elements import GRAPH_TYPES
from nacre.core.module import TensorType
from nacre.core.onnx_export.forms.reductions import reduce_axes
from nacre.core.onnx_export.graph import Value
from nacre.core.onnx_export.site import OnnxWriter, require_few, writes
from nacre.core.onnx_export.types import takes


@writes("Softmax", "LogSoftmax")
def softmax(site: OnnxWriter) -> Value:
    """`Softmax` and `LogSoftmax`."""
    x = site.wide(site.operands[0])
    return site.result(site.each(site.op.opcode, x, axis=site.attributes["axis"]))


def _epsilon(site: OnnxWriter, dtype: str) -> Value:
    return site.number(site.attributes["epsilon"], dtype)


def _standardise(site: OnnxWriter, x: Value, axes: tuple[int, ...]) -> Value:
    """Mean 0 and variance 1 over some axes."""
    rest = site.each("Sub", x, reduce_axes(site, "ReduceMean", x, axes))
    return _normalise_mean_square(site, rest, axes)


def _normalise_mean_square(site: OnnxWriter, x: Value, axes: tuple[int, ...]) -> Value:
    """Mean square 1 over some axes."""
    square = reduce_axes(site, "ReduceMean", site.each("Mul", x, x), axes)
    root = site.each("Sqrt", site.each("Add", square, _epsilon(site, x.dtype)))
    return site.each("Div", x, root)


def _scale_and_shift(site: OnnxWriter, x: Value, *parameters: Value) -> Value:
    """Times a scale, plus a bias, where they are given."""
    for operation, parameter in zip(("Mul", "Add"), parameters, strict=False):
        x = site.each(operation, x, parameter)
    return x


def _fill_parameters(
    site: OnnxWriter, parameters: list[Value], shape: tuple[int, ...]
) -> list[Value]:
    """Scale and bias, ones and zeros where they are left out."""
    neutral = (1, 0)[len(parameters) :]
    return [*parameters, *(site.expand(site.number(n, "f32"), shape) for n in neutral)]


@writes("LayerNorm")
def layer_norm(site: OnnxWriter) -> Value:
    """`LayerNorm`."""
    x, *parameters = (site.wide(value) for value in site.operands)
    axis = site.attributes["axis"] % x.type.rank
    if takes("LayerNormalization", x.dtype):
        given = _fill_parameters(site, parameters, x.shape[axis:])
        epsilon = float(site.attributes["epsilon"])
        made = site.add("LayerNormalization", x, *given, type_=x.type, axis=axis, epsilon=epsilon)
        return site.result(made)
    found = _standardise(site, x, tuple(range(axis, x.type.rank)))
    return site.result(_scale_and_shift(site, found, *parameters))


@writes("RmsNorm")
def rms_norm(site: OnnxWriter) -> Value:
    """`RmsNorm`, by its formula: this version of ONNX has none."""
    x, *parameters = (site.wide(value) for value in site.operands)
    axis = site.attributes["axis"] % x.type.rank
    found = _normalise_mean_square(site, x, tuple(range(axis, x.type.rank)))
    return site.result(_scale_and_shift(site, found, *parameters))


@writes("GroupNorm", "InstanceNorm")
def group_norm(site: OnnxWriter) -> Value:
    """`GroupNorm`, and `InstanceNorm`, where every channel is a group."""
    x, *parameters = (site.wide(value) for value in site.operands)
    channels = x.shape[1]
    groups = site.attributes.get("groups", channels)
    epsilon = float(site.attributes["epsilon"])
    is_single = "groups" not in site.attributes
    operation = "InstanceNormalization" if is_single else "GroupNormalization"
    if takes(operation, x.dtype) and x.type.rank > 2:
        given = {} if is_single else {"num_groups": groups}
        filled = _fill_parameters(site, parameters, (channels,))
        made = site.add(operation, x, *filled, type_=x.type, epsilon=epsilon, **given)
        return site.result(made)
    rows = site.reshape(x, (x.shape[0], groups, prod(x.shape[1:]) // groups))
    found = site.reshape(_standardise(site, rows, (2,)), x.shape)
    spread = (channels, *(1,) * (x.type.rank - 2))
    return site.result(
        _scale_and_shift(site, found, *(site.reshape(p, spread) for p in parameters))
    )


@writes("BatchNorm")
def batch_norm(site: OnnxWriter) -> Value:
    """`BatchNorm`: an operation of its own where channels are axis 1, else by its formula."""
    x, scale, bias, mean, variance = (site.wide(value) for value in site.operands)
    axis = site.attributes["axis"] % x.type.rank
    if x.dtype == "f32" and axis == 1:
        epsilon = float(site.attributes["epsilon"])
        given = (x, scale, bias, mean, variance)
        return site.result(site.add("BatchNormalization", *given, type_=x.type, epsilon=epsilon))
    root = site.each("Sqrt", site.each("Add", variance, _epsilon(site, x.dtype)))
    factor = site.each("Div", scale, root)
    shift = site.each("Sub", bias, site.each("Mul", mean, factor))
    spread = (x.shape[axis], *(1,) * (x.type.rank - axis - 1))
    return site.result(
        _scale_and_shift(site, x, *(site.reshape(p, spread) for p in (factor, shift)))
    )


@writes("Lrn")
def lrn(site: OnnxWriter) -> Value:
    """`Lrn`: an operation of its own where onnxruntime has it, else by its formula."""
    x, size = site.wide(site.operands[0]), site.attributes["size"]
    alpha, beta, bias = (float(site.attributes[name]) for name in ("alpha", "beta", "bias"))
    if takes("LRN", x.dtype) and x.type.rank == 4 and size % 2:
        return site.result(
            site.add("LRN", x, type_=x.type, size=size, alpha=alpha, beta=beta, bias=bias)
        )
    total = _neighbours(site, site.each("Mul", x, x), size)
    line = site.each("Mul", total, site.number(alpha / size, x.dtype))
    line = site.each("Add", line, site.number(bias, x.dtype))
    return site.result(site.each("Div", x, site.each("Pow", line, site.number(beta, x.dtype))))


def _neighbours(site: OnnxWriter, squares: Value, size: int) -> Value:
    """Sums over neighbouring channels: a product with a band of ones."""
    channels = squares.shape[1]
    require_few(channels**2)
    before = (size - 1) // 2
    offsets = np.arange(channels) - np.arange(channels)[:, None]
    band = ((offsets >= -before) & (offsets <= size - 1 - before)).astype(np.float64)
    ones = site.array(band.astype(GRAPH_TYPES[squares.dtype].dtype), squares.dtype)
    rows = site.reshape(squares, (squares.shape[0], channels, prod(squares.shape[2:])))
    sums = site.add("MatMul", ones, rows, type_=TensorType(rows.dtype, rows.shape))
    return site.reshape(sums, squares.shape)
