"""How a model is compiled, in one value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from nacre.nem.model.devices import Device
from nacre.nem.spec.limits import DEFAULT_DDR_BYTES

Precision = Literal["f16", "f32"]
PRECISIONS: tuple[Precision, ...] = ("f16", "f32")
# In their order; each is a file of that name.
STAGES = ("legalise", "layout", "partition", "tile", "place", "schedule", "emit")


@dataclass(frozen=True)
class Options:
    """For which device, in which precision."""

    device: Device
    precision: Precision = "f16"
    ddr_bytes: int = DEFAULT_DDR_BYTES

    @property
    def l1_bytes(self) -> int:
        """L1 of one engine."""
        return (self.device.topology and self.device.topology.l1_size_bytes) or 0

    @property
    def l2_bytes(self) -> int:
        """L2 of the device."""
        return (self.device.topology and self.device.topology.l2_size_bytes) or 0
