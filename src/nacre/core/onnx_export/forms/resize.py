"""`Resize`, which ONNX has with the same words.

onnxruntime interpolates planes of f32. For the rest an axis at a time is gathered, or multiplied
by a matrix of weights: what the evaluator makes of the identity. So is what onnxruntime computes
otherwise than we do: it finds neighbours by f32, and copies an axis whose size a scale keeps.
"""

from __future__ import annotations

from math import floor

import numpy as np

from nacre.base.elements import GRAPH_TYPES
from nacre.core.builder import Builder
from nacre.core.evaluation.evaluate import evaluate
from nacre.core.module import TensorType
from nacre.core.onnx_export.forms.casts import truncate_floats
from nacre.core.onnx_export.graph import Value
from nacre.core.onnx_export.writer import OnnxWriter, require_few, writes
from nacre.core.unsupported import Unsupported
from nacre.core.values import Array

_MOST_WEIGHTS = 1 << 24
_LONGEST_SURE = 1 << 20  # of an axis: beyond it f32 no longer tells neighbours apart


@writes("Resize")
def resize(writer: OnnxWriter) -> Value:
    """`Resize`."""
    (x,), mode = writer.operands, str(writer.attributes["mode"])
    is_plane = x.type.rank == 4 and x.shape[:2] == writer.type.shape[:2]
    is_narrow = x.dtype in ("f32", "f16", "bf16", "f8e4m3", "f8e5m2")
    scales = _scales(writer, x.shape)
    if is_narrow and is_plane and scales is not None and _is_rounding_safe(writer, x.shape):
        return _native(writer, writer.to_compute_type(x), mode, scales)
    return _by_axes(writer, x, mode)


def _native(writer: OnnxWriter, x: Value, mode: str, scales: tuple[float, ...]) -> Value:
    """By an operation of ONNX, which takes either scales or sizes."""
    resized = writer.add(
        "Resize",
        x,
        None,
        writer.array(np.array(scales, np.float32), "f32") if scales else None,
        None if scales else writer.ints(writer.type.shape),
        type_=TensorType(x.dtype, writer.type.shape),
        mode=mode,
        coordinate_transformation_mode=str(writer.attributes["coordinate"]),
        nearest_mode=str(writer.attributes["rounding"]),
        cubic_coeff_a=float(writer.attributes["cubic_a"]),
        exclude_outside=int(writer.attributes["exclude_outside"]),
        antialias=int(writer.attributes["antialias"]),
    )
    return writer.to_result_type(resized)


def _scales(writer: OnnxWriter, shape: tuple[int, ...]) -> tuple[float, ...] | None:
    """Scales that must be written, none where sizes say the same; None where ONNX has no such."""
    sizes, scales = writer.type.shape, tuple(writer.attributes["scales"])
    if scales == tuple(after / before for before, after in zip(shape, sizes, strict=True)):
        return ()
    narrow = np.array(scales, np.float32)
    # onnxruntime multiplies in f32: 10 times 2.3, which f32 has below it, is 23 there.
    floored = tuple(floor(size * scale) for size, scale in zip(shape, narrow, strict=False))
    return None if scales and (narrow.tolist() != list(scales) or floored != sizes) else scales


def _is_rounding_safe(writer: OnnxWriter, shape: tuple[int, ...]) -> bool:
    """Whether onnxruntime has the same elements, however it rounds coordinates."""
    changed = [a for a in zip(shape, writer.type.shape, _factors(writer, shape), strict=True)
               if a[0] != a[1] or a[2] != 1]  # fmt: skip
    if any(before == after for before, after, _ in changed):
        return False  # it copies such an axis
    if writer.attributes["mode"] != "nearest":
        return True
    # By whole factors a coordinate lies on a border between neighbours, where f32 has it exactly,
    # or far from all of them.
    is_whole = all(after == before * scale and scale.is_integer()
                   for before, after, scale in changed)  # fmt: skip
    is_exact = is_whole or writer.attributes["coordinate"] == "align_corners"
    return is_exact and all(after <= _LONGEST_SURE for _, after, _ in changed)


def _factors(writer: OnnxWriter, shape: tuple[int, ...]) -> list[float]:
    """The scale of every axis, from its sizes where none is given."""
    sizes = zip(shape, writer.type.shape, strict=True)
    return [float(s) for s in writer.attributes["scales"] or [after / b for b, after in sizes]]


def _by_axes(writer: OnnxWriter, x: Value, mode: str) -> Value:
    """One axis after the other; integers are weighted in f64 and rounded half to even."""
    element = x.type.element
    if element.is_integer and element.bits > 32 and mode != "nearest":
        raise Unsupported(f"{mode} of `{x.dtype}`, whose last digits depend on the order of sums")
    scales = _factors(writer, x.shape)
    axes = [a for a, (n, m) in enumerate(zip(x.shape, writer.type.shape, strict=True))
            if n != m or scales[a] != 1]  # fmt: skip
    if mode == "nearest":
        for axis in axes:
            x = writer.gather(x, _nearest_sources(writer, x.shape[axis], axis, scales[axis]), axis)
        return x
    value = writer.cast(x, "f64") if element.is_integer else writer.to_compute_type(x)
    for axis in axes:
        weights = _weights(writer, value.shape[axis], axis, scales[axis])
        value = _weigh_axis(writer, value, axis, weights)
    if element.is_integer:
        return truncate_floats(writer, writer.elementwise("Round", value), writer.type.dtype)
    return writer.to_result_type(value)


def _weights(writer: OnnxWriter, size: int, axis: int, scale: float) -> Array:
    """[before, after]: how much of each element is in each of the result."""
    count = writer.type.shape[axis]
    if size * max(size, count) > _MOST_WEIGHTS:
        raise Unsupported(f"weights from {size} elements to {count}, expected fewer")
    return _evaluate_resize(writer, np.eye(size), axis, scale)


def _nearest_sources(writer: OnnxWriter, size: int, axis: int, scale: float) -> Value:
    """Where each element of the result comes from."""
    require_few(max(size, writer.type.shape[axis]))
    found = _evaluate_resize(writer, np.arange(size, dtype=np.float64)[None], axis, scale)
    return writer.array(found[0].astype(np.int64), "i64")


def _evaluate_resize(writer: OnnxWriter, rows: Array, axis: int, scale: float) -> Array:
    """What the evaluator makes of rows, resized as an axis is."""
    builder = Builder()
    sizes = (rows.shape[0], writer.type.shape[axis])
    given = {**writer.attributes, "sizes": sizes, "scales": (1.0, float(scale))}
    module = builder.module(builder.add("Resize", builder.input("x", "f64", rows.shape), **given))
    return evaluate(module, {"x": rows})[0]


def _weigh_axis(writer: OnnxWriter, x: Value, axis: int, weights: Array) -> Value:
    last = x.type.rank - 1
    order = [a for a in range(x.type.rank) if a != axis] + [axis]
    rows = writer.transpose(x, order)
    matrix = writer.array(weights.astype(GRAPH_TYPES[x.dtype].dtype), x.dtype)
    type_ = TensorType(x.dtype, (*rows.shape[:last], weights.shape[1]))
    found = writer.add("MatMul", rows, matrix, type_=type_)
    return writer.transpose(found, [order.index(a) for a in range(x.type.rank)])
