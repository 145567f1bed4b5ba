"""Fourier transforms of ONNX: products with a matrix that is worked out at import."""

from __future__ import annotations

from math import prod

import numpy as np

from nacre.core.onnx.findings import SMALLER, Unsound
from nacre.core.onnx.handlers.arithmetic import Expr, known_expr, operand
from nacre.core.onnx.handlers.table import handles
from nacre.core.onnx.onnx_node import OnnxNode
from nacre.core.unsupported import Unsupported
from nacre.core.values import Array

_MOST_ENTRIES = 1 << 23
_MOST_PLACES = 1 << 24


@handles("DFT")
def dft(node: OnnxNode) -> int:
    """The transform along an axis; the last axis holds real and imaginary parts."""
    rank = len(node.shape(0))
    if node.opset >= 20:
        axis = (node.ints("axis", 2, [-2]) or (-2,))[0]
    else:
        axis = int(node.attribute("axis", 1))
    if not -rank <= axis < rank or axis % rank == rank - 1:
        raise Unsound(f"`axis` is {axis}, the tensor has {rank} axes; the last holds the parts")
    length = node.ints("dft_length", 1)
    is_inverse, is_half = bool(node.attribute("inverse", 0)), bool(node.attribute("onesided", 0))
    x = operand(node, 0)
    if length is None:
        size = x.shape[axis % rank]
        length = (2 * (size - 1) if is_inverse and is_half else size,)
    return _transform(x, axis % rank, length[0], is_inverse=is_inverse, is_half=is_half).value


@handles("STFT")
def stft(node: OnnxNode) -> int:
    """Transforms of parts of a signal [batch, length, parts], which may overlap."""
    signal = operand(node, 0)
    if len(signal.shape) == 2:
        signal = signal.reshape(*signal.shape, 1)
    if len(signal.shape) != 3:
        raise Unsound(f"the signal has the shape {list(signal.shape)}")
    step = int(np.ravel(node.require_known(1, "`frame_step`"))[0])
    size = signal.shape[1]
    frame = node.ints("frame_length", 3) or (node.shape(2)[0] if node.has(2) else size,)
    length = frame[0]
    if step < 1 or not 1 <= length <= size:
        raise Unsound(f"parts of {length} every {step} of a signal of {size}")
    if node.has(2) and node.shape(2) != (length,):
        raise Unsound(f"the window has the shape {list(node.shape(2))}, expected [{length}]")
    places = np.arange(0, size - length + 1, step)[:, None] + np.arange(length)
    if places.size > _MOST_PLACES:
        raise Unsupported(f"{len(places)} parts of {length} elements are too many", SMALLER)
    frames = Expr(node, node.add("GatherAxis", signal.value, node.constant(places), axis=1))
    if node.has(2):
        frames = frames * operand(node, 2).to(frames.dtype).reshape(length, 1)
    is_half = bool(node.attribute("onesided", 1))
    return _transform(frames, 2, length, is_inverse=False, is_half=is_half).value


def _transform(x: Expr, axis: int, length: int, *, is_inverse: bool, is_half: bool) -> Expr:
    *dims, parts = x.shape
    if parts not in (1, 2):
        raise Unsound(f"the last axis has {parts} entries, expected a real or a complex number")
    matrix = _matrix(dims[axis], parts, length, is_inverse=is_inverse, is_half=is_half)
    rank = len(dims)
    order = [i for i in range(rank) if i != axis]
    others = [dims[i] for i in order]
    wide = "f64" if x.dtype == "f64" else "f32"
    flat = x.to(wide).transpose(*order, axis, rank).reshape(prod(others), dims[axis] * parts)
    rows, columns, made_parts = matrix.shape
    table = known_expr(x.node, matrix.reshape(rows, columns * made_parts), wide)
    product = Expr(x.node, x.node.add("MatMul", flat.value, table.value))
    back = [*order, axis]
    spread = product.reshape(*others, columns, made_parts)
    return spread.transpose(*(back.index(i) for i in range(rank)), rank).to(x.dtype)


def _matrix(size: int, parts: int, length: int, *, is_inverse: bool, is_half: bool) -> Array:
    """[size * parts, length or half of it, parts]: the transforms of every unit vector."""
    if length < 1:
        raise Unsound(f"`dft_length` is {length}")
    rows = size * parts
    if rows * 2 * max(length, size) > 2 * _MOST_ENTRIES:
        reason = f"a transform of {size} elements to {length} is too long for a matrix"
        raise Unsupported(reason, SMALLER)
    units = np.eye(rows).reshape(rows, size, parts)
    complex_units = units[..., 0] + 1j * units[..., 1] if parts == 2 else units[..., 0]
    if is_inverse and is_half:
        return np.fft.irfft(complex_units, n=length, axis=1)[..., None]
    transform = np.fft.ifft if is_inverse else np.fft.fft
    spectrum = transform(complex_units, n=length, axis=1)
    if is_half:
        spectrum = spectrum[:, : length // 2 + 1]
    return np.stack([spectrum.real, spectrum.imag], axis=-1)
