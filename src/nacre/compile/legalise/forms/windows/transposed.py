"""`ConvTranspose` as ordinary convolutions, one for each phase of its stride.

An output at s * m + r takes the weights r, s + r, 2 s + r, .. and nothing else, so each r is a
convolution of its own with a shorter window. All of them are one convolution with more channels,
whose results are then woven together. Over three axes the phases of the depth come first: each of
their taps is one over two axes, on planes, and the results are added.
"""

from __future__ import annotations

from math import prod

import numpy as np

from nacre.compile.legalise.forms.windows.windows import (
    Ints,
    ints,
    is_plane,
    pad_axis,
    pads_of,
    separate_bias,
    slice_axis,
)
from nacre.core.rewrite.site import RewriteSite, Rules
from nacre.core.values import Array


def by_phases(site: RewriteSite) -> int | None:
    """One convolution for all phases, and a transposition that weaves them."""
    weights = site.constant(site.operands[1])
    if weights is None or not is_plane(site) or set(ints(site, "dilations", 2, 1)) != {1}:
        return None
    strides, groups = ints(site, "strides", 2, 1), site.attributes["groups"]
    assert isinstance(groups, int)
    begins, _ = pads_of(site, 2)
    # Phases that no weight reaches are zeros, which take no room among the weights.
    phases = (min(strides[0], weights.shape[0]), min(strides[1], weights.shape[1]))
    if phases != strides and len(site.operands) > 2:
        bare = site.add("ConvTranspose", *site.operands[:2], **site.op.attributes)
        return site.add("BinOp", bare, site.operands[2], op="Add")
    x = site.operands[0]
    around: list[tuple[int, int]] = []
    for axis in (0, 1):
        taps = -(-weights.shape[axis] // strides[axis])
        first, last = _phase_range(site, axis, strides[axis], begins[axis])
        before, behind = taps - 1 - first, last - site.type(x).shape[axis + 1] + 1
        x = _crop(site, x, axis + 1, -before, -behind)
        around.append((max(before, 0), max(behind, 0)))
    pads = (around[0][0], around[1][0], around[0][1], around[1][1])
    kernel = site.literal(_phase_weights(weights, phases, groups), site.op.type.dtype)
    bias = _phase_bias(site, phases, groups)
    result = site.add("Conv", x, kernel, *bias, layout="NHWC", pads=pads, groups=groups)
    result = _interleave_phases(site, result, phases, strides, groups)
    for axis in (0, 1):
        first = begins[axis] % strides[axis]
        count = site.op.type.shape[axis + 1]
        result = slice_axis(site, result, axis + 1, first, first + count)
    return result


def _phase_range(site: RewriteSite, axis: int, stride: int, begin: int) -> tuple[int, int]:
    """The first and the last place of a phase's result."""
    count = site.op.type.shape[axis + 1]
    return begin // stride, (begin + count - 1) // stride


def _crop(site: RewriteSite, x: int, axis: int, before: int, behind: int) -> int:
    """A tensor without elements that no output needs; nothing where the numbers are not above 0."""
    size = site.type(x).shape[axis]
    return slice_axis(site, x, axis, max(before, 0), size - max(behind, 0))


def _phase_weights(weights: Array, strides: Ints, groups: int) -> Array:
    """Weights [kh, kw, Cout / g, Cin] as those of all phases: [th, tw, Cin / g, g * s * s * Cout].

    The taps run backwards, and each group's channels are [phase, phase, Cout / g].
    """
    high, wide, outputs, inputs = weights.shape
    taps = [-(-size // stride) for size, stride in zip((high, wide), strides, strict=True)]
    room = np.zeros((taps[0] * strides[0], taps[1] * strides[1], outputs, inputs), weights.dtype)
    room[:high, :wide] = weights
    split = room.reshape(
        taps[0], strides[0], taps[1], strides[1], outputs, groups, inputs // groups
    )
    flipped = split[::-1, :, ::-1]
    order = flipped.transpose(0, 2, 6, 5, 1, 3, 4)
    columns = groups * strides[0] * strides[1] * outputs
    return np.ascontiguousarray(order).reshape(taps[0], taps[1], inputs // groups, columns)


def _interleave_phases(
    site: RewriteSite, value: int, phases: Ints, strides: Ints, groups: int
) -> int:
    """[N, H, W, g * p * p * C] to [N, H * s, W * s, g * C], with zeros behind the phases p of s."""
    images, height, width, channels = site.type(value).shape
    high, wide = strides
    if high * wide == 1:
        return value
    left = channels // (groups * prod(phases))
    split = site.reshape(value, (images, height, width, groups, *phases, left))
    woven = site.add("Transpose", split, permutation=(0, 1, 4, 2, 5, 3, 6))
    woven = pad_axis(site, woven, 2, 0, high - phases[0])
    woven = pad_axis(site, woven, 4, 0, wide - phases[1])
    return site.reshape(woven, (images, height * high, width * wide, groups * left))


def _phase_bias(site: RewriteSite, strides: Ints, groups: int) -> tuple[int, ...]:
    """The bias for the channels of all phases."""
    bias = site.constant(site.operands[2]) if len(site.operands) > 2 else None
    if bias is None:
        return ()
    split = bias.reshape(groups, 1, -1)
    every = np.broadcast_to(split, (groups, prod(strides), split.shape[-1]))
    return (site.literal(np.ravel(every), site.op.type.dtype),)


def of_volumes(site: RewriteSite) -> int | None:
    """Over three axes: the sum of those over two, one for each tap of a phase in depth."""
    weights = site.constant(site.operands[1])
    if site.op.type.rank != 5 or site.attributes["layout"] != "NHWC" or weights is None:
        return None
    strides, gap = ints(site, "strides", 3, 1), ints(site, "dilations", 3, 1)[0]
    groups, (begin, *_) = site.attributes["groups"], pads_of(site, 3)[0]
    assert isinstance(groups, int)
    x, stride = site.operands[0], strides[0]
    # What lies between taps may be of any phase, or of phases without weights: zeros make them one.
    if gap > 1 or stride > weights.shape[0]:
        x, stride = _insert_zero_planes(site, x, stride), 1
    first, last = _phase_range(site, 0, stride, begin)
    parts = _depth_weights(weights, stride)
    before, behind = gap * (len(parts) - 1) - first, last + 1 - site.type(x).shape[1]
    x = _crop(site, x, 1, -before, -behind)
    x = pad_axis(site, x, 1, max(before, 0), max(behind, 0))
    bias = _phase_bias(site, (stride,), groups)
    total: int | None = None
    for tap, part in enumerate(parts):
        far = gap * (len(parts) - 1 - tap)
        planes = slice_axis(site, x, 1, far, far + last - first + 1)
        volume = _on_planes(site, planes, part, *(bias if total is None else ()))
        total = volume if total is None else site.add("BinOp", total, volume, op="Add")
    assert total is not None
    volume = _interleave_depth(site, total, (last - first + 1, stride), groups)
    return slice_axis(site, volume, 1, begin % stride, begin % stride + site.op.type.shape[1])


def _depth_weights(weights: Array, stride: int) -> Array:
    """Weights [kd, kh, kw, C, Cin] as those of every tap: [td, kh, kw, stride * C, Cin]."""
    deep, *plane, outputs, inputs = weights.shape
    taps = -(-deep // stride)
    room = np.zeros((taps * stride, *plane, outputs, inputs), weights.dtype)
    room[:deep] = weights
    order = room.reshape(taps, stride, *plane, outputs, inputs).transpose(0, 2, 3, 1, 4, 5)
    return np.ascontiguousarray(order).reshape(taps, *plane, stride * outputs, inputs)


def _on_planes(site: RewriteSite, x: int, weights: Array, *bias: int) -> int:
    """The last two axes of a `ConvTranspose` over three: every depth is an image."""
    images, depth, *plane = site.type(x).shape
    begins, ends = pads_of(site, 3)
    given = {
        name: ints(site, name, 3, default)[1:]
        for name, default in (("strides", 1), ("dilations", 1), ("output_padding", 0))
    }
    flat = site.reshape(x, (images * depth, *plane))
    kernel = site.literal(weights, site.op.type.dtype)
    pads, groups = (*begins[1:], *ends[1:]), site.attributes["groups"]
    return site.add(
        "ConvTranspose", flat, kernel, *bias, layout="NHWC", pads=pads, groups=groups, **given
    )


def _interleave_depth(site: RewriteSite, value: int, depths: tuple[int, int], groups: int) -> int:
    """[N * D, H, W, g * s * C] to [N, D * s, H, W, g * C], for D and s."""
    (depth, stride), (planes, *plane, channels) = depths, site.type(value).shape
    left = channels // (groups * stride)
    if stride > 1:
        split = site.reshape(value, (planes, *plane, groups, stride, left))
        value = site.add("Transpose", split, permutation=(0, 4, 1, 2, 3, 5))
    return site.reshape(value, (planes // depth, depth * stride, *plane, groups * left))


def _insert_zero_planes(site: RewriteSite, x: int, stride: int) -> int:
    """Zeros between planes."""
    images, depth, *plane = site.type(x).shape
    split = pad_axis(site, site.reshape(x, (images, depth, 1, *plane)), 2, 0, stride - 1)
    whole = site.reshape(split, (images, depth * stride, *plane))
    return slice_axis(site, whole, 1, 0, (depth - 1) * stride + 1)


def by_zeros(site: RewriteSite) -> int | None:
    """With gaps between taps: zeros between the elements, then a convolution backwards."""
    weights = site.constant(site.operands[1])
    if weights is None or not is_plane(site):
        return None
    strides, dilations = ints(site, "strides", 2, 1), ints(site, "dilations", 2, 1)
    begins, _ = pads_of(site, 2)
    groups = site.attributes["groups"]
    assert isinstance(groups, int)
    x = _insert_zeros(site, site.operands[0], strides)
    around: list[tuple[int, int]] = []
    for axis in (0, 1):
        reach = dilations[axis] * (weights.shape[axis] - 1)
        before = reach - begins[axis]
        behind = site.op.type.shape[axis + 1] + reach - site.type(x).shape[axis + 1] - before
        x = _crop(site, x, axis + 1, -before, -behind)
        around.append((max(before, 0), max(behind, 0)))
    pads = (around[0][0], around[1][0], around[0][1], around[1][1])
    kernel = site.literal(_phase_weights(weights, (1, 1), groups), site.op.type.dtype)
    given = {"layout": "NHWC", "pads": pads, "dilations": dilations, "groups": groups}
    return site.add("Conv", x, kernel, *site.operands[2:], **given)


def _insert_zeros(site: RewriteSite, x: int, strides: Ints) -> int:
    """Zeros between rows and columns."""
    if set(strides) == {1}:
        return x
    images, height, width, channels = site.type(x).shape
    high, wide = strides
    split = site.reshape(x, (images, height, 1, width, 1, channels))
    filled = pad_axis(site, pad_axis(site, split, 2, 0, high - 1), 4, 0, wide - 1)
    whole = site.reshape(filled, (images, height * high, width * wide, channels))
    trimmed = slice_axis(site, whole, 1, 0, (height - 1) * high + 1)
    return slice_axis(site, trimmed, 2, 0, (width - 1) * wide + 1)


TRANSPOSED_FORMS: Rules = {"ConvTranspose": [separate_bias, of_volumes, by_phases, by_zeros]}
