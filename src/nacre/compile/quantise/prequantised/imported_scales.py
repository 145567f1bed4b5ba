"""What a model that comes quantised brought: the scales of its values, and integers at its ends."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from nacre.compile.quantise.affine import Affine

SHIFTS: Mapping[str, int] = {"i8": 0, "u8": -128}  # to i8, which is what the device's units have


@dataclass(frozen=True)
class ImportedScales:
    """An input or output of stored integers, and what they stand for once they are of i8."""

    dtype: str
    affine: Affine

    @property
    def shift(self) -> Affine:
        """How the host makes the device's integers from those of the model."""
        return Affine(1.0, SHIFTS[self.dtype])


@dataclass(frozen=True, eq=False)
class QuantisedPort:
    """Scales by the bounds that hold their values, and the inputs and outputs of integers."""

    scales: Mapping[tuple[float, float], Affine] = field(default_factory=dict)
    inputs: Mapping[str, ImportedScales] = field(default_factory=dict)
    outputs: Mapping[int, ImportedScales] = field(default_factory=dict)  # by their places
    notes: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.scales)
