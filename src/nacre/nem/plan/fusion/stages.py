"""What a task can be in a chain, and which stages lead into which."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from nacre.nem.model.devices import Device
from nacre.nem.model.program import Task
from nacre.nem.plan.grid import TOP
from nacre.nem.plan.placement import UnitBinding, bind_units
from nacre.nem.plan.plan import Plan

Stage = Literal["product", "elementwise", "conversion", "store"]

# An NMU streams into the post-processing half of a CSTL, which streams into its store-back half.
# A conversion is done by that half as it stores; which tasks are one is for a binder to say.
LINKS: frozenset[tuple[Stage, Stage]] = frozenset(
    {
        *(("product", "elementwise"), ("product", "store"), ("elementwise", "store")),
        *(("product", "conversion"), ("elementwise", "conversion"), ("conversion", "store")),
    }
)

_ELEMENTWISE = ("elementwise_unary", "elementwise_binary", "elementwise_other")


@dataclass(frozen=True, eq=False)
class PlacedStage:
    """A task's stage, if it has one, and the units that it runs on."""

    stage: Stage | None
    binding: UnitBinding | None

    @property
    def unit(self) -> str:
        """The units in words."""
        return "+".join(self.binding.units) if self.binding is not None else "no unit"


PlaceStage = Callable[[Task, Plan, Device], PlacedStage]


def place_stage(task: Task, plan: Plan, device: Device) -> PlacedStage:
    """What a task can be in a chain on a device."""
    binding = bind_units(task, device, plan.grid_of(task.loops) or TOP)
    units = binding.units if binding is not None else ()
    return PlacedStage(_stage(task, units), binding)


def _stage(task: Task, units: tuple[str, ...]) -> Stage | None:
    if units == ("NMU",):
        return "product"
    if units != ("CSTL",) or task.opcode is None:
        return None
    if task.op == "store":
        return "store"
    # A cast takes an element and gives one, as the elementwise operations do.
    return "elementwise" if task.opcode.category in _ELEMENTWISE or task.op == "cast" else None
