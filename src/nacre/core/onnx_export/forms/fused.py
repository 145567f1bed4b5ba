"""Operations on stored integers whose scales are attributes.

Where onnxruntime has no operation for the types, the integers themselves are multiplied, in i32,
which wraps as ours do, and the sums are quantised by the formula: the same bits.
"""

from __future__ import annotations

from functools import reduce
from itertools import product
from math import prod

import numpy as np

from nacre.base.elements import GRAPH_TYPES
from nacre.core.module import TensorType
from nacre.core.onnx_export.forms.casts import saturate_integers
from nacre.core.onnx_export.forms.pooling import divisors, largest, over_places, under_windows
from nacre.core.onnx_export.forms.quantized import QUANTIZED, round_steps
from nacre.core.onnx_export.forms.windows import (
    channels_first,
    channels_last,
    convolve_integers,
    is_last,
    plan_of,
    transpose_weights,
)
from nacre.core.onnx_export.graph import Value
from nacre.core.onnx_export.site import OnnxWriter, writes
from nacre.core.unsupported import Unsupported
from nacre.core.values import Array
from nacre.kernels.windows.sliding import Sliding, fitting_windows

_BYTES = ("i8", "u8")
_MOST_PLACES = 64  # of a window whose reals are added one by one


def _scalar(site: OnnxWriter, name: str) -> Value:
    return site.number(site.attributes[name], "f32")


def _holds(dtype: str, value: int) -> bool:
    element = GRAPH_TYPES[dtype]
    return bool(element.lowest <= value <= element.highest)


def _real(site: OnnxWriter, x: Value, side: str) -> Value:
    """What stored integers stand for."""
    scale, zero = _scalar(site, f"{side}_scale"), site.attributes[f"{side}_zero"]
    if x.dtype in QUANTIZED and _holds(x.dtype, zero):
        type_ = TensorType("f32", x.shape)
        return site.add("DequantizeLinear", x, scale, site.number(zero, x.dtype), type_=type_)
    steps = site.each("Sub", site.cast(x, "i64"), site.number(zero, "i64"))
    return site.each("Mul", site.cast(steps, "f32"), scale)


def _quantize(site: OnnxWriter, reals: Value) -> Value:
    """The integers that stand for reals."""
    to, scale, zero = site.type.dtype, _scalar(site, "y_scale"), site.attributes["y_zero"]
    if to in QUANTIZED:
        type_ = TensorType(to, reals.shape)
        return site.add("QuantizeLinear", reals, scale, site.number(zero, to), type_=type_)
    return round_steps(site, site.each("Div", reals, scale), site.number(zero, "i64"))


@writes("QBinOp")
def binop(site: OnnxWriter) -> Value:
    """`QBinOp`."""
    a, b = (_real(site, x, side) for x, side in zip(site.operands, "ab", strict=True))
    return _quantize(site, site.each(str(site.attributes["op"]), a, b))


def _weight_zeros(site: OnnxWriter) -> Array:
    return np.array(site.attributes["w_zeros"] or (0,), np.int64)


def _suits(site: OnnxWriter) -> bool:
    """Whether onnxruntime has a fused operation: bytes, and one zero point of the weights."""
    x, weights, *bias = (value.dtype for value in site.operands)
    zeros = _weight_zeros(site)
    return (
        x in _BYTES
        and weights in (_BYTES if x == "u8" else ("i8",))
        and site.type.dtype == x
        and all(dtype == "i32" for dtype in bias)
        and _holds(x, site.attributes["x_zero"])
        and bool((zeros == zeros[0]).all())
        and _holds(weights, int(zeros[0]))
    )


def _add_fused(site: OnnxWriter, operation: str, x: Value, weights: Value, *bias: Value,
           shape: tuple[int, ...], **given: object) -> Value:  # fmt: skip
    """An operation of ONNX with scales and zero points among its operands."""
    zero = site.number(int(_weight_zeros(site)[0]), weights.dtype)
    scales = np.array(site.attributes["w_scales"], np.float32)
    if scales.size > 1:
        # A list of zero points, too.
        zero = site.array(np.full(scales.shape, int(_weight_zeros(site)[0]),
                                  GRAPH_TYPES[weights.dtype].dtype), weights.dtype)  # fmt: skip
    else:
        scales = scales.reshape(())
    return site.add(
        operation,
        x,
        _scalar(site, "x_scale"),
        site.number(site.attributes["x_zero"], x.dtype),
        weights,
        site.array(scales, "f32"),
        zero,
        _scalar(site, "y_scale"),
        site.number(site.attributes["y_zero"], site.type.dtype),
        *bias,
        type_=TensorType(site.type.dtype, shape),
        **given,
    )


def _integers(site: OnnxWriter, x: Value, zeros: Array) -> Value:
    """Stored integers less their zero points, which broadcast, in i32."""
    wide = site.cast(x, "i32")
    if not zeros.any():
        return wide
    return site.each("Sub", wide, site.array(zeros.astype(np.int32), "i32"))


def _requantize(site: OnnxWriter, sums: Value, bias: list[Value], axis: int) -> Value:
    """Sums of products, channels along an axis, as stored integers."""
    spread = [-1 if at == axis else 1 for at in range(sums.type.rank)]
    if bias:
        channels = [sums.shape[axis] if dim < 0 else 1 for dim in spread]
        sums = site.each("Add", sums, site.reshape(site.cast(bias[0], "i32"), channels))
    scales = np.array(site.attributes["w_scales"], np.float32)
    scales = (
        scales * np.float32(site.attributes["x_scale"]) / np.float32(site.attributes["y_scale"])
    )
    scale = site.array(scales.astype(np.float32).reshape(spread), "f32")
    steps = site.each("Mul", site.cast(sums, "f32"), scale)
    return round_steps(site, steps, site.number(site.attributes["y_zero"], "i64"))


@writes("QConv")
def conv(site: OnnxWriter) -> Value:
    """`QConv`."""
    x, weights, *bias = site.operands
    turned = transpose_weights(site, weights)
    sliding = fitting_windows(x.shape, turned.shape[2:], site.attributes)
    shape = site.type.shape
    if _suits(site):
        first = channels_first(site, x) if is_last(site) else x
        plane = (shape[0], shape[-1], *shape[1:-1]) if is_last(site) else shape
        given = {"group": site.attributes["groups"], "kernel_shape": list(turned.shape[2:])}
        made = _add_fused(
            site, "QLinearConv", first, turned, *bias, shape=plane, **given, **plan_of(sliding)
        )
        return channels_last(site, made) if is_last(site) else made
    zeros = _weight_zeros(site).reshape(-1, *(1,) * (turned.type.rank - 1))
    sums = convolve_integers(
        site,
        _integers(site, x, np.array(site.attributes["x_zero"])),
        _integers(site, turned, zeros),
        sliding,
    )
    return _requantize(site, sums, bias, sums.type.rank - 1 if is_last(site) else 1)


@writes("QLinear")
def linear(site: OnnxWriter) -> Value:
    """`QLinear`: without a bias `QLinearMatMul`."""
    x, weights, *bias = site.operands
    turned = site.transpose(weights, (1, 0))
    if _suits(site) and not bias and x.type.rank > 1:
        return _add_fused(site, "QLinearMatMul", x, turned, shape=site.type.shape)
    a = _integers(site, x, np.array(site.attributes["x_zero"]))
    b = _integers(site, turned, _weight_zeros(site))
    sums = site.add("MatMul", a, b, type_=TensorType("i32", site.type.shape))
    return _requantize(site, sums, bias, sums.type.rank - 1)


@writes("QPool")
def pool(site: OnnxWriter) -> Value:
    """`QPool`."""
    (x,), given = site.operands, {**site.attributes, "dilations": ()}
    sliding = fitting_windows(x.shape, tuple(given["kernel"]), given)
    x = x if is_last(site) else channels_last(site, x)
    same = all(given[f"x_{name}"] == given[f"y_{name}"] for name in ("scale", "zero"))
    if given["op"] == "Avg" and not same:
        found = _mean_of_reals(site, x, sliding)
    else:
        picked = largest(site, x, sliding) if given["op"] == "Max" else _mean(site, x, sliding)
        found = saturate_integers(site, picked, site.type.dtype) if same else _again(site, picked)
    return found if is_last(site) else channels_first(site, found)


def _again(site: OnnxWriter, picked: Value) -> Value:
    """Integers that were picked, quantised once more."""
    return _quantize(site, _real(site, site.cast(picked, site.operands[0].dtype), "x"))


def _mean(site: OnnxWriter, x: Value, sliding: Sliding) -> Value:
    """The mean of the integers, rounded half to even; f64 holds every sum."""
    fill = site.attributes["x_zero"] if site.attributes["count_pad"] else 0
    sums = over_places(site, "ReduceSum", site.cast(x, "i64"), sliding, fill)
    mean = site.each("Div", site.cast(sums, "f64"), divisors(site, sliding, "f64"))
    rounded = site.cast(site.each("Round", mean), "i64")
    return site.cast(rounded, site.operands[0].dtype)


def _mean_of_reals(site: OnnxWriter, x: Value, sliding: Sliding) -> Value:
    """The mean of what the integers stand for, added in order: a last bit may decide a step."""
    if prod(sliding.window) > _MOST_PLACES:
        raise Unsupported(f"a mean of more than {_MOST_PLACES} reals, whose order decides its bits")
    under, axes = under_windows(site, _real(site, x, "x"), sliding, 0)
    shape = tuple(dim for axis, dim in enumerate(under.shape) if axis not in axes)
    terms = []
    for place in product(*(range(under.shape[axis]) for axis in axes)):
        term = under
        for axis, at in zip(axes, place, strict=True):
            term = site.part(term, axis, at, at + 1)
        terms.append(site.reshape(term, shape))
    total = reduce(lambda a, b: site.each("Add", a, b), terms)
    return _quantize(site, site.each("Div", total, divisors(site, sliding, "f32")))
