"""Integers of 8 bits that stand for reals: `real = (stored - zero) * scale`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nacre.core.values import Array

LOW, HIGH = -128, 127
WIDE_HIGH = 32767  # of 16 bits
STEPS = HIGH - LOW
LEAST_SCALE, MOST_SCALE = 2.0**-80, 2.0**80
LEAST_PRODUCT = 2.0**-120  # of two scales, which has to be a normal number of f32
# The accumulator has 31 bits; so much of it is left to the bias.
MOST_BIAS = 2.0**30
_NEAR = 0.25  # of a step, that a sum may be off everywhere; rounding it is as far off on average
_LEAST_COUNT = 4  # of steps in a number that a scale is widened for: by a quarter at most


@dataclass(frozen=True)
class Affine:
    """A scale, which is a number of f32, and a zero point."""

    scale: float
    zero: int

    @property
    def low(self) -> float:
        """The least real that has a place."""
        return (LOW - self.zero) * self.scale

    @property
    def high(self) -> float:
        """The greatest real that has a place."""
        return (HIGH - self.zero) * self.scale

    @property
    def is_sound(self) -> bool:
        """Whether it can be used as it is."""
        return LEAST_SCALE <= self.scale <= MOST_SCALE and LOW <= self.zero <= HIGH

    def times(self, factor: float) -> Affine:
        """What the same integers stand for after a product with a positive number."""
        return Affine(to_f32_scale(self.scale * factor), self.zero)

    def plus(self, number: float) -> Affine | None:
        """What the same integers stand for after a sum; None where no zero point comes near."""
        steps = number / self.scale
        if not abs(steps) <= STEPS or abs(steps - np.rint(steps)) > _NEAR:
            return None
        made = Affine(self.scale, self.zero - int(np.rint(steps)))
        return made if made.is_sound else None

    def with_step_dividing(self, number: float) -> Affine:
        """With a scale that is a little wider, so that a number is a whole count of its steps."""
        steps = int(abs(number) / self.scale)
        if not _LEAST_COUNT <= steps <= STEPS:
            return self
        scale = to_f32_scale(abs(number) / steps)
        zero = int(np.rint(LOW - self.low / scale))
        return Affine(scale, min(max(zero, LOW), HIGH))

    def quantise(self, reals: Array) -> Array:
        """The integers for reals: `saturate(rint(real / scale) + zero)`, NaN is 0, in f32."""
        with np.errstate(all="ignore"):
            steps = np.rint(np.asarray(reals, np.float32) / np.float32(self.scale))
        steps = np.nan_to_num(steps, nan=0.0, posinf=1e9, neginf=-1e9) + np.float32(self.zero)
        made: Array = np.clip(steps, LOW, HIGH).astype(np.int8)
        return made

    def real(self, stored: Array) -> Array:
        """The reals that integers stand for, in f32."""
        steps = stored.astype(np.float32) - np.float32(self.zero)
        return np.asarray(steps * np.float32(self.scale))

    def is_unchanged_by_clip(self, low: float, high: float) -> bool:
        """Whether every integer is still the same after its real is clipped to two bounds."""
        every = np.arange(LOW, HIGH + 1).astype(np.int8)
        clipped = np.clip(self.real(every), np.float32(low), np.float32(high))
        return np.array_equal(self.quantise(clipped), every)

    def __str__(self) -> str:
        return f"scale {self.scale:.6g}, zero {self.zero}"


def to_f32_scale(value: float) -> float:
    """A number as f32 has it, within the bounds of scales."""
    return float(np.float32(min(max(value, LEAST_SCALE), MOST_SCALE)))


def affine_of_range(low: float, high: float) -> Affine:
    """The scale for a range, which is stretched to 0: that must be exact, for padding is 0."""
    low, high = min(low, 0.0), max(high, 0.0)
    if low == high:
        return Affine(to_f32_scale(1.0 / STEPS), 0)
    scale = to_f32_scale((high - low) / STEPS)
    if low == 0.0:
        return Affine(scale, LOW)
    if high == 0.0:
        return Affine(scale, HIGH)
    zero = int(np.rint(LOW - low / scale))
    return Affine(scale, min(max(zero, LOW), HIGH))


def affine_of_constant(array: Array) -> Affine:
    """The scale for a constant that is an operand; one number is exact."""
    finite = array[np.isfinite(array)]
    if finite.size == 0:
        return affine_of_range(0.0, 0.0)
    low, high = float(finite.min()), float(finite.max())
    if low == high:
        return Affine(to_f32_scale(abs(low)), 0) if low else affine_of_range(0.0, 0.0)
    return affine_of_range(low, high)
