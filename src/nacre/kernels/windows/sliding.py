"""Where windows lie over the axes between batch and channels, in either layout.

`NCHW` has channels behind the batch, `NHWC` at the end, whatever the number of axes between.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from nacre.kernels.interface.call import Attributes
from nacre.kernels.interface.fitting import (
    Misfit,
    dims_text,
    expect_least,
    expect_length,
    expect_rank,
)
from nacre.kernels.interface.shapes import Dims, window_count

_MOST_SPATIAL = 3


@dataclass(frozen=True)
class Axis:
    """The windows along one axis."""

    size: int
    window: int
    begin: int
    end: int
    stride: int
    dilation: int
    rounds_up: bool = False

    @cached_property
    def count(self) -> int:
        """How many windows there are; below 1 where not even one fits.

        Rounded up, a window may hang over the end; a last one that starts in the end padding is
        dropped, as in onnxruntime and torch.
        """
        spare = self.stride - 1 if self.rounds_up else 0
        plan = (self.size, self.window, self.begin, self.end + spare, self.stride, self.dilation)
        count = window_count(*plan)
        return count - (self.rounds_up and (count - 1) * self.stride >= self.size + self.begin)

    @property
    def is_plain(self) -> bool:
        """Whether every window is one element, and every element one window."""
        return (self.window, self.stride, self.begin, self.end) == (1, 1, 0, 0)

    @cached_property
    def steps(self) -> tuple[tuple[slice, slice], ...]:
        """For each place in a window: the windows with an element there, and those elements."""
        found = []
        for place in self._used_positions:
            shift = place * self.dilation - self.begin  # window i has element i * stride + shift
            first = max(0, -(shift // self.stride))
            last = min(self.count - 1, (self.size - 1 - shift) // self.stride)
            source = slice(first * self.stride + shift, last * self.stride + shift + 1, self.stride)
            if first <= last:
                found.append((slice(first, last + 1), source))
        return tuple(found)

    @cached_property
    def single(self) -> slice | None:
        """The elements of the only window, which may have millions; None where there are more."""
        if self.count != 1:
            return None
        first = max(0, -(-self.begin // self.dilation))
        last = min(self.window - 1, (self.size - 1 + self.begin) // self.dilation)
        start = first * self.dilation - self.begin
        return slice(start, start + (last - first) * self.dilation + 1, self.dilation)

    @property
    def _used_positions(self) -> list[int]:
        """Places in a window under which any element lies: far fewer than a hostile window has."""
        places: list[int] = []
        for index in reversed(range(self.count)):  # the last window uses the first places
            start = index * self.stride - self.begin
            first = max(0, -(start // self.dilation))
            last = min(self.window - 1, (self.size - 1 - start) // self.dilation)
            places.extend(range(max(first, places[-1] + 1) if places else first, last + 1))
        return places

    def elements(self, index: int, with_padding: bool) -> int:
        """How many elements a window has, those of the padding counted or not."""
        start = index * self.stride - self.begin
        least, most = (-self.begin, self.size + self.end) if with_padding else (0, self.size)
        first = max(0, -((start - least) // self.dilation))
        last = min(self.window - 1, (most - 1 - start) // self.dilation)
        return max(0, last - first + 1)


@dataclass(frozen=True)
class Sliding:
    """The windows of one use, and where its channels are."""

    axes: tuple[Axis, ...]
    is_last: bool  # whether channels are the last axis

    @cached_property
    def counts(self) -> Dims:
        """The spatial shape of the result."""
        return tuple(axis.count for axis in self.axes)

    @cached_property
    def window(self) -> Dims:
        """The shape of a window."""
        return tuple(axis.window for axis in self.axes)

    @cached_property
    def strides(self) -> Dims:
        """The stride along each axis."""
        return tuple(axis.stride for axis in self.axes)

    @cached_property
    def dilations(self) -> Dims:
        """The dilation along each axis."""
        return tuple(axis.dilation for axis in self.axes)

    @cached_property
    def padded(self) -> Dims:
        """The spatial shape with its padding."""
        return tuple(axis.begin + axis.size + axis.end for axis in self.axes)

    @cached_property
    def is_padded(self) -> bool:
        """Whether there is any padding."""
        return any(axis.begin or axis.end for axis in self.axes)


def join_shape(batch: int, spatial: Dims, channels: int, is_last: bool) -> Dims:
    """A shape with channels at the end or behind the batch."""
    return (batch, *spatial, channels) if is_last else (batch, channels, *spatial)


def has_channels_last(attributes: Attributes) -> bool:
    """What `layout` says."""
    if attributes["layout"] not in ("NCHW", "NHWC"):
        raise Misfit(f"`layout` is {attributes['layout']}, expected `NCHW` or `NHWC`")
    return bool(attributes["layout"] == "NHWC")


def spatial_of(x: Dims, attributes: Attributes) -> Dims:
    """The sizes between batch and channels."""
    expect_rank(x, 3, _MOST_SPATIAL + 2)
    return x[1:-1] if has_channels_last(attributes) else x[2:]


def fitting_windows(x: Dims, window: Dims, attributes: Attributes) -> Sliding:
    """The windows over an input; a Misfit where an attribute makes none."""
    size = spatial_of(x, attributes)
    rank = len(size)
    expect_least(window, 1, "kernel")
    strides = axis_list(attributes, "strides", rank, 1)
    dilations = axis_list(attributes, "dilations", rank, 1)
    pads = axis_list(attributes, "pads", 2 * rank, 0)
    rounds_up = (bool(attributes.get("ceil", False)),) * rank
    parts = zip(size, window, pads[:rank], pads[rank:], strides, dilations, rounds_up, strict=True)
    axes = tuple(Axis(*part) for part in parts)
    return Sliding(axes, has_channels_last(attributes))


def fitting_counts(sliding: Sliding) -> Dims:
    """How many windows there are along each axis; a Misfit where there is none."""
    for axis in sliding.axes:
        if axis.count < 1:
            reach = axis.dilation * (axis.window - 1) + 1
            found = f"a window reaches over {reach} elements"
            have = axis.begin + axis.size + axis.end
            raise Misfit(f"{found}, expected at most the {have} that an axis has with its pads")
    return sliding.counts


def axis_list(attributes: Attributes, name: str, length: int, least: int) -> Dims:
    """A list with an entry for each axis; an empty one stands for the least values."""
    values = tuple(attributes[name]) or (least,) * length
    expect_length(values, length, name)
    expect_least(values, least, name)
    return values


def fitting_weight(x: Dims, weight: Dims, attributes: Attributes) -> tuple[int, int]:
    """The channels of weights, those that stand first in `NCHW` first."""
    spatial_of(x, attributes)
    expect_rank(weight, len(x), len(x), "`weight`")
    return (weight[-1], weight[-2]) if has_channels_last(attributes) else (weight[0], weight[1])


def weight_windows(x: Dims, weight: Dims, attributes: Attributes) -> Sliding:
    """The windows that weights have over an input."""
    window = weight[:-2] if has_channels_last(attributes) else weight[2:]
    return fitting_windows(x, window, attributes)


def fitting_groups(x: Dims, weight: Dims, per_group: int, attributes: Attributes) -> int:
    """How many groups of channels there are, where weights have so many input channels each."""
    channels, groups = x[-1] if has_channels_last(attributes) else x[1], attributes["groups"]
    if groups < 1 or per_group * groups != channels:
        found = f"`weight` has the shape {dims_text(weight)} and `groups` is {groups}"
        raise Misfit(f"{found}: {per_group} input channels a group, expected {channels} in all")
    return int(groups)
