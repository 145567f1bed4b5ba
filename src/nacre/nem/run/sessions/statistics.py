"""Elements of a region in a few numbers, and how they differ from an array of a reference."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from nacre.base.elements import ElementType
from nacre.kernels.interface.call import Array
from nacre.kernels.interface.layouts import Mask


@dataclass(frozen=True, eq=False)
class Elements:
    """Elements that somebody wrote, in one row, and the type of which they are."""

    values: Array
    elem: ElementType

    @property
    def wide(self) -> Array:
        """The values in a type that holds sums and differences of all of them."""
        return self.values.astype(np.int64 if self.elem.is_integer else np.float64)

    @property
    def numbers(self) -> Array:
        """The values that are numbers: without NaN."""
        wide = self.wide
        return wide if self.elem.is_integer else wide[~np.isnan(wide)]


def _least(elements: Elements) -> float | None:
    found = elements.numbers
    return found.min().item() if found.size else None


def _greatest(elements: Elements) -> float | None:
    found = elements.numbers
    return found.max().item() if found.size else None


def _mean(elements: Elements) -> float | None:
    found = elements.numbers.astype(np.float64)
    found = found[np.isfinite(found)]
    return float(found.mean()) if found.size else None


def _nans(elements: Elements) -> int:
    return int(elements.values.size - elements.numbers.size)


def _infinite(elements: Elements) -> int:
    return int(np.count_nonzero(np.isinf(elements.wide))) if not elements.elem.is_integer else 0


def _saturated_share(elements: Elements) -> float | None:
    """The share of elements at a limit of their type; of floats also what is infinite."""
    wide, elem = elements.wide, elements.elem
    if not wide.size:
        return None
    return float(np.count_nonzero((wide <= elem.lowest) | (wide >= elem.highest)) / wide.size)


# What can be asked of elements in expressions; None where there is no answer.
STATISTICS: dict[str, Callable[[Elements], float | None]] = {
    "min": _least,
    "max": _greatest,
    "mean": _mean,
    "nan": _nans,
    "inf": _infinite,
    "saturated": _saturated_share,
}


def describe(values: Array, written: Mask, elem: ElementType, *, is_typed: bool = True) -> str:
    """The statistics of elements in a line; those that nobody wrote are left out.

    Bytes without a type have no limits at which they could be saturated.
    """
    known = Elements(values[written], elem)
    if not known.values.size:
        return f"none of {values.size} elements has been written"
    parts = [f"{name} {_number(STATISTICS[name](known))}" for name in ("min", "max", "mean")]
    nans, infinite = _nans(known), _infinite(known)
    if not elem.is_integer:
        parts += [f"{nans} NaN", f"{infinite} infinite"]
    if is_typed:
        share = _saturated_share(known) or 0.0
        count = round(share * known.values.size)
        parts.append(f"{count} of {known.values.size} saturated ({share:.1%})")
    left = values.size - known.values.size
    missing = f"; {left} elements that nobody wrote are left out" if left else ""
    return ", ".join(parts) + missing


def _number(value: float | None) -> str:
    if value is None:
        return "none"
    return str(value) if isinstance(value, int) else f"{value:.6g}"


@dataclass(frozen=True, slots=True)
class Comparison:
    """How two arrays of one shape differ; NaN equals NaN."""

    count: int  # of elements that differ by more than the tolerance
    total: int
    first: tuple[int, ...] | None  # the first of them, in memory order
    first_values: tuple[float, float] | None  # found, expected
    max_error: float  # NaN where one side alone is NaN
    max_at: tuple[int, ...] | None

    def __str__(self) -> str:
        most = f"the largest error is {self.max_error:.6g} at {list(self.max_at or ())}"
        if self.first is None or self.first_values is None:
            if not self.max_error:
                return f"all {self.total} elements are equal"
            return f"all {self.total} elements are within the tolerance; {most}"
        actual, expected = (_number(value) for value in self.first_values)
        return (
            f"{self.count} of {self.total} elements differ; the first at {list(self.first)} is "
            f"{actual}, expected {expected}; {most}"
        )


def compare(actual: Array, expected: Array, tolerance: float = 0.0) -> Comparison:
    """Compare values with expected ones of the same shape."""
    is_exact = actual.dtype.kind in "iub" and expected.dtype.kind in "iub"
    wide = np.int64 if is_exact else np.float64
    left, right = actual.astype(wide).reshape(-1), expected.astype(wide).reshape(-1)
    with np.errstate(invalid="ignore", over="ignore"):
        error = np.abs(left.astype(np.float64) - right.astype(np.float64))
    if not is_exact:
        same = (left == right) | (np.isnan(left) & np.isnan(right))  # infinities as well
        error[same] = 0.0
    differs = (left != right) if is_exact and not tolerance else ~(error <= tolerance)
    at = np.flatnonzero(differs)
    worst = int(np.argmax(np.where(np.isnan(error), np.inf, error))) if error.size else None

    def element_index(index: int) -> tuple[int, ...]:
        return tuple(int(i) for i in np.unravel_index(index, actual.shape))

    first = int(at[0]) if at.size else None
    return Comparison(
        int(at.size),
        int(error.size),
        None if first is None else element_index(first),
        None if first is None else (left[first].item(), right[first].item()),
        0.0 if worst is None else float(error[worst]),
        None if worst is None else element_index(worst),
    )
