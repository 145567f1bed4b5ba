"""What shape an operation gives: pure functions over tuples of integers.

Dimensions are positive and axes may be negative, counted from the end, except where a function
says otherwise. None stands for "these do not go together".
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

Dims = tuple[int, ...]


def axis_of(axis: int, rank: int) -> int | None:
    """The axis counted from the front; None where it is out of range."""
    return axis % rank if -rank <= axis < rank else None


def axes_of(axes: Sequence[int], rank: int) -> Dims | None:
    """Several axes counted from the front; None where one is out of range or named twice."""
    known = [found for axis in axes if (found := axis_of(axis, rank)) is not None]
    return tuple(known) if len(set(known)) == len(axes) else None


def window_count(size: int, window: int, begin: int, end: int, stride: int, dilation: int) -> int:
    """How many windows fit along an axis, rounded down; below 1 where not even one does."""
    reach = dilation * (window - 1) + 1
    return (size + begin + end - reach) // stride + 1


def windows(size: Dims, window: Dims, pads: Dims, strides: Dims, dilations: Dims) -> Dims:
    """The same for all spatial axes; pads are all beginnings, then all ends."""
    half = len(size)
    parts = zip(size, window, pads[:half], pads[half:], strides, dilations, strict=True)
    return tuple(window_count(*part) for part in parts)


def conv(x: Dims, w: Dims, pads: Dims, strides: Dims, dilations: Dims) -> Dims:
    """A convolution of [N, spatial.., Cin] by [window.., Cin / groups, Cout]."""
    return (x[0], *windows(x[1:-1], w[:-2], pads, strides, dilations), w[-1])


def depthwise(x: Dims, w: Dims, pads: Dims, strides: Dims, dilations: Dims) -> Dims:
    """A convolution of each channel by itself: weights as `depthwise_multiplier` takes them."""
    return (x[0], *windows(x[1:-1], w[:-2], pads, strides, dilations), w[-2] * w[-1])


def depthwise_multiplier(channels: int, w: Dims) -> int | None:
    """Outputs of each channel, by weights [window.., Cin, multiplier] or [window.., 1, Cout]."""
    if w[-2] == channels:
        return w[-1]
    if w[-2] == 1 and w[-1] % channels == 0:
        return w[-1] // channels
    return None


def pool(x: Dims, kernel: Dims, pads: Dims, strides: Dims) -> Dims:
    """A pooling of [N, spatial.., C]."""
    return (x[0], *windows(x[1:-1], kernel, pads, strides, (1,) * len(kernel)), x[-1])


def broadcast(a: Dims, b: Dims) -> Dims | None:
    """The common shape of two, aligned at their ends, sizes of 1 stretched."""
    rank = max(len(a), len(b))
    pairs = list(zip(_broadcast_to(a, rank), _broadcast_to(b, rank), strict=True))
    if any(x != y and 1 not in (x, y) for x, y in pairs):
        return None
    return tuple(max(x, y) for x, y in pairs)


def _broadcast_to(dims: Dims, rank: int) -> Dims:
    return (1,) * (rank - len(dims)) + dims


def broadcasts_to(small: Dims, large: Dims) -> bool:
    """Whether a shape stretches to another that stays as it is."""
    return broadcast(small, large) == large


def matmul(a: Dims, b: Dims) -> Dims | None:
    """[.., M, K] by [.., K, N]; the dimensions before are a batch and broadcast."""
    batch = broadcast(a[:-2], b[:-2])
    if batch is None or a[-1] != b[-2]:
        return None
    return (*batch, a[-2], b[-1])


def transpose(x: Dims, perm: Dims) -> Dims | None:
    """Dimension i of the result is dimension perm[i]; None where perm is no permutation."""
    if sorted(perm) != list(range(len(x))):
        return None
    return tuple(x[axis] for axis in perm)


def count(x: Dims) -> int:
    """How many elements a shape has."""
    return prod(x)


def concat(inputs: Sequence[Dims], axis: int) -> Dims | None:
    """Tensors joined along an axis; None where they differ elsewhere. The axis is in range."""
    first = inputs[0]
    at = axis % len(first)
    if any(sizes_off_axis(dims, at) != sizes_off_axis(first, at) for dims in inputs):
        return None
    return (*first[:at], sum(dims[at] for dims in inputs), *first[at + 1 :])


def sizes_off_axis(x: Dims, axis: int) -> tuple[int, Dims, Dims]:
    """What must be equal for two tensors to be joined along an axis: rank, and sizes off it."""
    return len(x), x[:axis], x[axis + 1 :]


def split(x: Dims, axis: int, sizes: Dims) -> list[Dims] | None:
    """A tensor cut along an axis; None where the sizes are no parts of it. The axis is in range."""
    at = axis % len(x)
    if sum(sizes) != x[at] or any(size < 1 for size in sizes):
        return None
    return [(*x[:at], size, *x[at + 1 :]) for size in sizes]


def slice_length(size: int, start: int, end: int, step: int) -> int:
    """How many indices a slice takes; ends are clamped and negative ones count from the end."""
    return len(range(*slice(start, end, step).indices(size)))


def slice_(x: Dims, starts: Dims, ends: Dims, axes: Dims, steps: Dims) -> Dims:
    """A regular part along the axes, which are in range; the rest is kept whole."""
    result = list(x)
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        result[axis] = slice_length(x[axis], start, end, step)
    return tuple(result)


def pad(x: Dims, pads: Dims) -> Dims:
    """Every dimension with its pads: all beginnings, then all ends."""
    half = len(x)
    return tuple(b + dim + e for dim, b, e in zip(x, pads[:half], pads[half:], strict=True))


def gather(x: Dims, indices: Dims, axis: int) -> Dims:
    """The shape of the indices in the place of an axis, which is in range."""
    at = axis % len(x)
    return (*x[:at], *indices, *x[at + 1 :])


def reduce(x: Dims, axes: Dims, keepdims: bool) -> Dims:
    """A tensor without some axes, which are in range, or with size 1 there.

    Nothing has rank 0: where every axis goes, one of size 1 is left.
    """
    if keepdims:
        return tuple(1 if axis in axes else dim for axis, dim in enumerate(x))
    kept = tuple(dim for axis, dim in enumerate(x) if axis not in axes)
    return kept or (1,)


def even_parts(count: int, most: int) -> int:
    """The length of as few runs of equal length as there may be, none longer than some number."""
    return -(-count // -(-count // max(1, most)))


def dense_strides(shape: Dims) -> Dims:
    """Strides in elements of a tensor without gaps, the last dimension fastest."""
    strides, step = [], 1
    for dim in reversed(shape):
        strides.append(step)
        step *= dim
    return tuple(reversed(strides))
