"""What products and convolutions must give: loops over Python numbers, and onnxruntime."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
from hypothesis import strategies as st

from nacre.base.elements import ELEMENT_TYPES
from nacre.kernels.interface.call import Array, Call, Fault, Quantization, TensorType
from nacre.kernels.interface.shapes import Dims
from nacre.kernels.products.linear import LINEAR
from nacre.kernels.windows.convolution import CONVOLUTION

PRIMITIVES = {row.name: row for row in (*LINEAR, *CONVOLUTION)}
INTEGERS = ("i4", "i8", "i16", "i32", "u8", "u16", "u32")
Terms = Iterator[tuple[Dims, Dims]]  # where in X and in W


def tensor(elem: str, shape: Sequence[int], quant: Quantization | None = None) -> TensorType:
    return TensorType(ELEMENT_TYPES[elem], tuple(shape), quant)


def along(
    axis: int, scales: Sequence[float], zeros: Sequence[int] | int = 0, group_size: int = 1
) -> Quantization:
    """Scales and zero points for each part of an axis."""
    zero = np.broadcast_to(np.array(zeros, np.int32), len(scales))
    return Quantization(np.array(scales, np.float32), zero, axis, group_size)


def run(
    name: str,
    inputs: Sequence[tuple[TensorType, Array] | None],
    output: TensorType,
    attributes: Mapping[str, Any] | None = None,
    ordered: bool = False,
) -> tuple[Array, Fault | None]:
    """Bind and run a primitive once."""
    types = tuple(None if pair is None else pair[0] for pair in inputs)
    row = PRIMITIVES[name]
    given = dict(attributes or {})
    shapes = [None if type_ is None else type_.shape for type_ in types]
    assert row.shape(shapes, given) == [output.shape]
    call = Call(types, (output,), given, ordered)
    y = np.zeros(output.shape, output.dtype)
    fault = row.bind(call)([None if pair is None else pair[1] for pair in inputs], [y])
    return y, fault


def random_values(rng: np.random.Generator, type_: TensorType, narrow: bool = False) -> Array:
    """Values of a tensor: integers over the whole range or near 0, floats around 0."""
    if not type_.elem.is_integer:
        return rng.standard_normal(type_.shape).astype(type_.dtype)
    low, high = int(type_.elem.lowest), int(type_.elem.highest)
    if narrow:
        low, high = max(low, -9), min(high, 9)
    return rng.integers(low, high, type_.shape, endpoint=True).astype(type_.dtype)


@st.composite
def quantizations(draw: st.DrawFn, type_: TensorType, axes: Sequence[int]) -> Quantization:
    """Any quantisation of a tensor: for the whole, or by groups along one of some axes."""
    axis = draw(st.sampled_from([None, *axes]))
    size = 1 if axis is None else type_.shape[axis]
    group = draw(st.integers(1, size))
    count = -(-size // group)
    low, high = max(int(type_.elem.lowest), -(1 << 31)), min(int(type_.elem.highest), 2**31 - 1)
    zeros = draw(st.lists(st.integers(low, high), min_size=count, max_size=count))
    scales = draw(st.lists(st.floats(2.0**-10, 2.0, width=32), min_size=count, max_size=count))
    return Quantization(np.array(scales, np.float32), np.array(zeros, np.int32), axis, group)


def exact_sums(
    x: tuple[TensorType, Array],
    w: tuple[TensorType, Array],
    y_shape: Dims,
    terms: Callable[[Dims], Terms],
) -> Array:
    """The sums of (x - zx) * (w - zw) as Python integers."""
    xs, ws = _real_steps(*x), _real_steps(*w)
    sums = np.zeros(y_shape, object)
    for place in np.ndindex(*y_shape):
        sums[place] = sum(xs[i] * ws[j] for i, j in terms(place))
    return sums


def _real_steps(type_: TensorType, values: Array) -> Array:
    zero = (
        np.zeros((), np.int32)
        if type_.quant is None
        else type_.quant.broadcast_parameters(type_.shape)[1]
    )
    steps: Array = values.astype(object) - zero.astype(object)
    return steps


def scale_at(type_: TensorType, place: Dims) -> np.float32:
    """The scale of one element."""
    assert type_.quant is not None
    scale: np.float32 = np.broadcast_to(
        type_.quant.broadcast_parameters(type_.shape)[0], type_.shape
    )[place]
    return scale


def zero_at(type_: TensorType, place: Dims) -> int:
    """The zero point of one element."""
    assert type_.quant is not None
    return int(
        np.broadcast_to(type_.quant.broadcast_parameters(type_.shape)[1], type_.shape)[place]
    )


def wrapped_i32(sums: Array) -> Array:
    """Python integers modulo 2^32, as i32."""
    wrapped: Array = (sums + 2**31) % 2**32 - 2**31
    return wrapped


def stopped(value: int, type_: TensorType) -> int:
    """A value stopped at the ends of a type."""
    return max(int(type_.elem.lowest), min(int(type_.elem.highest), value))


def first_outside_i32(sums: Array) -> Dims | None:
    """The first place, in row-major order, whose sum is none of i32."""
    return next((p for p in np.ndindex(*sums.shape) if not -(2**31) <= sums[p] < 2**31), None)


def matmul_terms(a: Dims, b: Dims) -> Callable[[Dims], Terms]:
    """What a product of matrices adds up for an element of Y."""

    def terms(place: Dims) -> Terms:
        *batch, m, n = place
        for k in range(a[-1]):
            yield (*_stretch(batch, a[:-2]), m, k), (*_stretch(batch, b[:-2]), k, n)

    return terms


def _stretch(place: Sequence[int], dims: Dims) -> Dims:
    tail = place[len(place) - len(dims) :]
    return tuple(0 if size == 1 else at for at, size in zip(tail, dims, strict=True))


def conv_terms(
    x: Dims, w: Dims, y: Dims, attributes: Mapping[str, Any], depthwise: bool = False
) -> Callable[[Dims], Terms]:
    """What a convolution adds up for an element of Y; nothing for what lies in the padding."""
    groups = x[-1] if depthwise else attributes.get("groups", 1)
    cin, cout = x[-1] // groups, y[-1] // groups
    pads, strides, dilations = (attributes[n] for n in ("pads", "strides", "dilations"))

    def terms(place: Dims) -> Terms:
        image, *at, channel = place
        group = channel // cout
        for offsets in product(*(range(size) for size in w[:-2])):
            spatial = tuple(
                o * s + k * d - p
                for o, s, k, d, p in zip(at, strides, offsets, dilations, pads, strict=False)
            )
            if any(not 0 <= i < size for i, size in zip(spatial, x[1:-1], strict=True)):
                continue
            for c in range(cin):
                by_channel = depthwise and w[-2] == x[-1]
                where = (channel // cout, channel % cout) if by_channel else (c, channel)
                yield (image, *spatial, group * cin + c), (*offsets, *where)

    return terms


def onnx_run(
    op: str,
    inputs: Mapping[str, Array],
    output: npt.DTypeLike,
    attributes: Mapping[str, Any] | None = None,
) -> Array:
    """One ONNX node on onnxruntime; `output` is the NumPy type of what it gives."""
    import onnxruntime
    from onnx import helper

    node = helper.make_node(op, list(inputs), ["y"], **dict(attributes or {}))
    infos = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape)
        for name, v in inputs.items()
    ]
    y = helper.make_tensor_value_info("y", helper.np_dtype_to_tensor_dtype(np.dtype(output)), None)
    graph = helper.make_graph([node], "one", infos, [y])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    result: Array = session.run(None, dict(inputs))[0]
    return result
