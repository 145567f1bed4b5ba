"""Where the elements of a resized axis come from: coordinates, and neighbours that they round to.

ONNX does not say in which type coordinates are computed. Neighbours are found in f32, as the
reference and onnxruntime find them: a scale of 0.6 is none that f32 has, and 3 / 0.6 is 5 there,
but below 5 in f64. What f32 has beside a half is a half. Interpolation goes by f64, as the
`Resize` of Core IR does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from nacre.core.values import Array
from nacre.kernels.movement import resize as graph_resize

_CLOSE = 1e-4  # of a size: a scale in f32 gives it up to that
_SLACK = 1e-6  # that of onnxruntime


@dataclass(frozen=True)
class Axis:
    """One axis: sizes before and after, the scale that coordinates use, the part of a crop."""

    size: int
    count: int
    scale: float
    start: float = 0.0
    end: float = 1.0

    @property
    def is_whole(self) -> bool:
        """Whether the size after is what the scale says, not rounded."""
        return abs(self.scale * self.size - self.count) < _CLOSE * self.count

    @property
    def unrounded_count(self) -> float:
        """The size after, before it was rounded."""
        return self.count if self.is_whole else self.scale * self.size

    @property
    def is_unchanged(self) -> bool:
        """Whether nothing happens to it."""
        return self == Axis(self.size, self.size, 1.0)


def _align_corners(a: Axis, places: Array) -> Array:
    wide = a.unrounded_count - 1
    at: Array = places * (a.size - 1) / wide if wide else places * 0.0
    return at


def _tf_half_pixel(a: Axis, places: Array) -> Array:
    at: Array = (places + 0.5) / a.scale
    return at


def _tf_crop(a: Axis, places: Array) -> Array:
    last, wide = a.size - 1, a.unrounded_count - 1
    if abs(wide) < 1e-9:
        return np.full_like(places, 0.5 * (a.start + a.end) * last)
    at: Array = a.start * last + places * (a.end - a.start) * last / wide
    return at


# From places in the result to coordinates in the tensor: those of Core IR, but for sizes that were
# rounded, and those that only ONNX has.
COORDINATES: Mapping[str, Callable[[Axis, Array], Array]] = MappingProxyType(
    {
        **graph_resize.COORDINATES,
        "align_corners": _align_corners,
        "tf_half_pixel_for_nn": _tf_half_pixel,
        "tf_crop_and_resize": _tf_crop,
    }
)
# From coordinates to indices; so far beside a half they are taken for one.
ROUNDINGS: Mapping[str, Callable[[Array, float], Array]] = MappingProxyType(
    {
        "round_prefer_floor": lambda at, slack: np.ceil(at - (0.5 + slack)),
        "round_prefer_ceil": lambda at, slack: np.floor(at + (0.5 + slack)),
        "floor": lambda at, slack: np.floor(at),
        "ceil": lambda at, slack: np.ceil(at),
    }
)


def coordinates(a: Axis, mode: str, dtype: type[np.floating[Any]]) -> Array:
    """Where in the tensor each place of the result lies, computed in a type."""
    return COORDINATES[mode](a, np.arange(a.count, dtype=dtype))


def neighbours(a: Axis, at: Array, rounding: str) -> Array:
    """The indices of the elements that coordinates round to."""
    slack = _SLACK if at.dtype == np.float32 else 0.0
    rounded = ROUNDINGS[rounding](at.astype(np.float64), slack)
    return np.clip(rounded, 0, a.size - 1).astype(np.int64)


def is_precision_independent(a: Axis, mode: str, rounding: str) -> bool:
    """Whether neighbours are the same by f32 and by f64, which Core IR's `Resize` goes by."""
    narrow, wide = (
        neighbours(a, coordinates(a, mode, dtype), rounding) for dtype in (np.float32, np.float64)
    )
    return bool(np.array_equal(narrow, wide))
