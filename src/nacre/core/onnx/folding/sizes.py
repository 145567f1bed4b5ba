"""How large the result of a node on known tensors may be, before it is computed.

Bounds from above, worked out here: the inference of shapes of onnx ends the process on some wrong
models, and a model from a stranger must not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import ceil, inf, isfinite, isnan, nan, prod
from types import MappingProxyType

import numpy as np

from nacre.core.onnx.findings import Unsound
from nacre.core.onnx.reading.nodes import Node
from nacre.core.values import Array

Bound = Callable[[Node, Sequence[Array]], float]
UNBOUNDED = inf
MISFIT = nan  # operands that are not what they are read as; it is below and above nothing


def result_size(node: Node, arrays: Sequence[Array | None]) -> float:
    """No output has more elements; MISFIT where operands do not fit what they are read as."""
    known = [np.zeros(0) if array is None else array for array in arrays]
    try:
        return _BOUNDS.get(node.op, _broadcast_or_joined)(node, known)
    except (ArithmeticError, LookupError, TypeError, ValueError):
        return MISFIT


def _broadcast_or_joined(node: Node, arrays: Sequence[Array]) -> float:
    """Operands stretched to each other, or, where they are not meant to be, after each other."""
    try:
        broadcast_size = prod(np.broadcast_shapes(*(array.shape for array in arrays)))
    except ValueError:
        broadcast_size = 0
    return max(broadcast_size, sum(array.size for array in arrays), 1)


def _numbers(array: Array) -> list[float]:
    return [float(number) for number in array.ravel()]


def _element_count(shape: Sequence[float]) -> float:
    return prod(max(size, 1.0) for size in shape)


def _expand(node: Node, arrays: Sequence[Array]) -> float:
    return arrays[0].size * _element_count(_numbers(arrays[1]))


def _tile(node: Node, arrays: Sequence[Array]) -> float:
    repeats = _numbers(arrays[1])
    return arrays[0].size * _element_count(
        [*repeats, *_numbers(arrays[2])] if arrays[2:] else repeats
    )


def _constant(node: Node, arrays: Sequence[Array]) -> float:
    return _element_count(_numbers(arrays[0]))


def _range(node: Node, arrays: Sequence[Array]) -> float:
    start, limit, delta = (_numbers(array)[0] for array in arrays[:3])
    for name, number in (("start", start), ("limit", limit), ("delta", delta)):
        if isnan(number):
            raise Unsound(f"its `{name}` is NaN, which no range has", f"make `{name}` a number")
    if not delta:
        raise Unsound("its `delta` is 0: no step leads anywhere", "make `delta` another number")
    count = (limit - start) / delta
    if isnan(count):
        given = f"from {start} to {limit} by {delta}"
        raise Unsound(f"it goes {given}, which is no range", "make its operands finite numbers")
    return max(ceil(count), 1) if isfinite(count) else UNBOUNDED


def _pad(node: Node, arrays: Sequence[Array]) -> float:
    given = node.attributes.get("pads")
    pads = _numbers(arrays[1]) if given is None else [float(pad) for pad in given]
    more = sum(abs(pad) for pad in pads)
    return _element_count([size + more for size in arrays[0].shape])


def _one_hot(node: Node, arrays: Sequence[Array]) -> float:
    return arrays[0].size * max(*_numbers(arrays[1]), 1.0)


def _window(node: Node, arrays: Sequence[Array]) -> float:
    return max(*_numbers(arrays[0]), 1.0)


def _transform(node: Node, arrays: Sequence[Array]) -> float:
    lengths = [abs(number) for array in arrays[1:] for number in _numbers(array)]
    return 2.0 * arrays[0].size * max(*lengths, 2.0)


def _crop_or_pad(node: Node, arrays: Sequence[Array]) -> float:
    return arrays[0].size * _element_count(_numbers(arrays[1]))


def _grid(node: Node, arrays: Sequence[Array]) -> float:
    return 3.0 * _element_count(_numbers(arrays[1]))


def _product(first: int, second: int) -> Bound:
    """Of matrices: every row of one with every column of the other."""

    def bound(node: Node, arrays: Sequence[Array]) -> float:
        a, b = arrays[first], arrays[second]
        inner = min(max(a.shape[-2:], default=1), max(b.shape[-2:], default=1))
        shared = a.shape[-1] if node.op != "Gemm" and a.ndim else inner
        return float(a.size) * float(b.size) / max(shared, 1)

    return bound


def _gather(node: Node, arrays: Sequence[Array]) -> float:
    axis = int(node.attributes.get("axis", 0))
    return float(arrays[1].size * arrays[0].size / max(arrays[0].shape[axis], 1))


def _gather_nd(node: Node, arrays: Sequence[Array]) -> float:
    places = arrays[1].size / max(arrays[1].shape[-1], 1)
    depth = arrays[1].shape[-1] + int(node.attributes.get("batch_dims", 0))
    return float(places * prod(arrays[0].shape[depth:]))


def _places(node: Node, arrays: Sequence[Array]) -> float:
    return float(arrays[0].size) * max(arrays[0].ndim, 1)


def _filters(node: Node, arrays: Sequence[Array]) -> float:
    return _element_count([number for array in arrays[:2] for number in _numbers(array)])


def _words(node: Node, arrays: Sequence[Array]) -> float:
    longest = max((len(str(text)) for text in arrays[0].flat), default=1)
    return float(arrays[0].size) * longest


def _outer(node: Node, arrays: Sequence[Array]) -> float:
    return prod(float(max(array.size, 1)) for array in arrays)


_BOUNDS: Mapping[str, Bound] = MappingProxyType(
    {
        "AffineGrid": _grid,
        "CenterCropPad": _crop_or_pad,
        "ConstantOfShape": _constant,
        "DFT": _transform,
        "Expand": _expand,
        "Gather": _gather,
        "GatherND": _gather_nd,
        "LinearAttention": _outer,
        "MelWeightMatrix": _filters,
        "NonZero": _places,
        "OneHot": _one_hot,
        "Pad": _pad,
        "QLinearMatMul": _product(0, 3),
        "Range": _range,
        "StringSplit": _words,
        "Tile": _tile,
        **dict.fromkeys(("Gemm", "MatMul", "MatMulInteger"), _product(0, 1)),
        **dict.fromkeys(("BlackmanWindow", "HammingWindow", "HannWindow"), _window),
    }
)
