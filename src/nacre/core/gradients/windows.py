"""What gradients of convolutions and poolings share: windows, and planes with channels first."""

from __future__ import annotations

from dataclasses import dataclass

from nacre.core.gradients.site import GradientSite
from nacre.core.gradients.writer import Value
from nacre.core.module import Shape
from nacre.kernels.windows.sliding import Axis, Sliding, fitting_windows


def channels_first(value: Value, is_last: bool) -> Value:
    """[N, C, ..] of a tensor that may have its channels at the end."""
    rank = value.rank
    return value.transpose((0, rank - 1, *range(1, rank - 1))) if is_last else value


def channels_back(value: Value, is_last: bool) -> Value:
    """The reverse."""
    return value.transpose((0, *range(2, value.rank), 1)) if is_last else value


def weights_first(value: Value, is_last: bool) -> Value:
    """[O, I, ..] of weights that may be [.., I, O]."""
    rank = value.rank
    return value.transpose((rank - 1, rank - 2, *range(rank - 2))) if is_last else value


def weights_back(value: Value, is_last: bool) -> Value:
    """The reverse."""
    return value.transpose((*range(2, value.rank), 1, 0)) if is_last else value


@dataclass(frozen=True)
class Windows:
    """The windows of a use over a tensor with these sizes between batch and channels."""

    sliding: Sliding
    counts: Shape  # how many there are along each axis

    @property
    def axes(self) -> tuple[Axis, ...]:
        """The windows along each axis."""
        return self.sliding.axes

    @property
    def overhangs(self) -> Shape:
        """How far the last window reaches over the end of each axis; below 0: it ends before."""
        return tuple(
            (count - 1) * axis.stride
            + axis.dilation * (axis.window - 1)
            + 1
            - axis.begin
            - axis.size
            for axis, count in zip(self.axes, self.counts, strict=True)
        )

    @property
    def begins(self) -> Shape:
        """The pads before."""
        return tuple(axis.begin for axis in self.axes)

    def scatter(self, value: Value, weight: Value, groups: int) -> Value:
        """Every element of [N, C, counts..] over its window, summed into the tensor's own sizes."""
        return value.op(
            "ConvTranspose",
            weight,
            strides=self.sliding.strides,
            dilations=self.sliding.dilations,
            pads=(*self.begins, *(max(0, over) for over in self.overhangs)),
            output_padding=tuple(max(0, -over) for over in self.overhangs),
            groups=groups,
        )


def windows_of(site: GradientSite, window: Shape) -> Windows:
    """The windows of a pooling or a convolution."""
    sliding = fitting_windows(site.x.shape, window, site.attributes)
    return Windows(sliding, sliding.counts)
