"""A module on its way to the device, as the stages hand it on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from nacre.core.module import Module

# The operations of the source that each value comes from, that which is most like it first.
Origins = Mapping[int, tuple[int, ...]]
Axes = tuple[int, ...]  # by the axis in memory, which one it is in the model


class WeightLoss(NamedTuple):
    """How well integers have the weights of a product: signal over noise, dB."""

    layer: str
    opcode: str
    sqnr: float


@dataclass(frozen=True)
class Legal:
    """A module on its way to the device, where its operations come from, and what it cost."""

    module: Module
    origins: Origins  # the operations of the source that each value comes from
    outputs: int  # how many are the model's own: the next values of states follow them
    notes: tuple[str, ...] = ()
    # Operations that no unit of the device has, and why: they run by name on the VPU.
    escaped: Mapping[int, str] = field(default_factory=dict)
    precision: str = "f32"
    lacking: frozenset[str] = frozenset()  # opcodes that the device does not have in f32
    source: Module | None = None  # what was legalised, its inputs first
    clustered: int = 0  # constants whose elements were changed to few values
    losses: tuple[WeightLoss, ...] = ()  # of weights that became integers in groups
    # Inputs by name and outputs by place whose axes have another order than the model's.
    input_axes: Mapping[str, Axes] = field(default_factory=dict)
    output_axes: Mapping[int, Axes] = field(default_factory=dict)

    def __str__(self) -> str:
        return str(self.module)
