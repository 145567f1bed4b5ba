"""The execution unit types of a device, and which of them carry a transfer."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

from msgspec import Struct

Scope = Literal["engine", "device"]
Level = Literal["DDR", "L2", "L1"]


class UnitType(Struct, frozen=True):
    """One unit type: where its instances live and whether a task may ask for one of them."""

    name: str
    scope: Scope
    is_resource_target: bool  # of `@resource`
    role: str
    characteristics: tuple[str, ...] = ()  # the well-known keys; a device may declare others

    @property
    def least_count(self) -> int:
        """The smallest count that a topology may declare; device-level units may be absent."""
        return 1 if self.scope == "engine" else 0


class TransferPath(Struct, frozen=True):
    """The units that a transfer between two memory levels occupies together, either way."""

    levels: frozenset[Level]  # one member when both ends lie in the same level
    units: tuple[str, ...]


_MAC_RATES = ("int4_macs", "int8_macs", "int16_macs", "fp16_macs")

_UNIT_ROWS = (
    UnitType("NMU", "engine", True, "multiplies matrices and convolves", _MAC_RATES),
    UnitType("CSTL", "engine", True, "elementwise, activation and normalisation work; stores back"),
    UnitType("DMA", "engine", True, "moves regions between L2 and the engine's L1"),
    UnitType("VPU", "engine", True, "programmable vectors; runs what no other unit supports"),
    # A sequencer hands out tasks; the device-level units are chosen by the path of the data.
    UnitType("SEQ", "engine", False, "starts tasks and keeps their tokens", ("max_active_tokens",)),
    UnitType("sDMA", "device", False, "moves regions between DDR and L2, for all engines"),
    UnitType("WDM", "device", False, "unpacks compressed weights on their way in"),
)

TRANSFER_PATHS = (
    TransferPath(frozenset({"DDR"}), ("sDMA",)),
    TransferPath(frozenset({"DDR", "L2"}), ("sDMA",)),
    # No unit spans the whole way: one of each is busy until the slower is done.
    TransferPath(frozenset({"DDR", "L1"}), ("sDMA", "DMA")),
    TransferPath(frozenset({"L2"}), ("DMA",)),
    TransferPath(frozenset({"L2", "L1"}), ("DMA",)),
    TransferPath(frozenset({"L1"}), ("DMA",)),
)

UNITS: Mapping[str, UnitType] = MappingProxyType({unit.name: unit for unit in _UNIT_ROWS})
ENGINE_UNITS = tuple(unit.name for unit in _UNIT_ROWS if unit.scope == "engine")
DEVICE_UNITS = tuple(unit.name for unit in _UNIT_ROWS if unit.scope == "device")
RESOURCE_TARGETS = tuple(unit.name for unit in _UNIT_ROWS if unit.is_resource_target)

_UNITS_BY_LEVELS = {path.levels: path.units for path in TRANSFER_PATHS}

if len(UNITS) != len(_UNIT_ROWS) or len(_UNITS_BY_LEVELS) != len(TRANSFER_PATHS):
    raise ValueError("a unit type or a transfer path is declared twice")


def transfer_units(source: Level, destination: Level) -> tuple[str, ...]:
    """The unit types that a transfer between these memory levels occupies, all at once."""
    return _UNITS_BY_LEVELS[frozenset({source, destination})]
