"""The figures of a device and of its timing, and what each of them can be."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from nacre.nem.spec.limits import MAX_ENGINES, MAX_FIGURE, MAX_UNITS
from nacre.nem.spec.units import UNITS

Kind = Literal["rate", "cost", "clock", "size"]
TOPOLOGY = "topology"  # the group of figures that are no characteristics of a unit


@dataclass(frozen=True, slots=True)
class Bounds:
    """The least and the greatest value of a figure."""

    least: int
    most: int

    def admit(self, value: int | None) -> bool:
        """Whether a value lies within them; what is no integer does not."""
        return value is not None and self.least <= value <= self.most

    def __str__(self) -> str:
        return f"an integer from {self.least} to {self.most}"


@dataclass(frozen=True, slots=True)
class Parameter:
    """A figure of a unit's timing; without default it is used only where somebody gives it."""

    unit: str
    key: str
    default: int | None
    measure: str
    source: str

    @property
    def kind(self) -> Kind:
        """Whether more of it is faster or slower; its measure says so."""
        if "MHz" in self.measure:
            return "clock"
        if "/cycle" in self.measure:
            return "rate"
        return "cost" if self.measure.startswith("cycles") else "size"


_TEXT = "sample profile of the interpreter text"
_ASSUMED = "assumption"
_PUBLIC = "assumption, after public data"
_MEASURED = "a calibrated device"

PARAMETERS: tuple[Parameter, ...] = (
    Parameter("NMU", "int4_macs", None, "MACs/cycle", "device"),
    Parameter("NMU", "int8_macs", 4096, "MACs/cycle", _TEXT),
    Parameter("NMU", "int16_macs", None, "MACs/cycle", "device"),
    Parameter("NMU", "fp16_macs", None, "MACs/cycle", "device"),
    Parameter("NMU", "mac_throughput", None, "MACs/cycle, whatever the types", "profile"),
    Parameter("NMU", "latency", 2, "cycles", _TEXT),
    Parameter("NMU", "clock", None, "MHz; cycles are counted in it", _MEASURED),
    Parameter("NMU", "tile_width", None, "places of a row that are computed together", _MEASURED),
    Parameter("NMU", "tile_height", None, "rows of places that are computed together", _MEASURED),
    Parameter("NMU", "tile_channels", None, "channels that are computed together", _MEASURED),
    Parameter("NMU", "tile_depth", None, "channels that are summed together", _MEASURED),
    Parameter("NMU", "tile_taps", None, "places of a window that share the depth", _MEASURED),
    Parameter("NMU", "tile_issue", None, "cycles for each tile of results", _MEASURED),
    Parameter("NMU", "operand_bandwidth", None, "bytes/cycle of operands from L1", _MEASURED),
    Parameter("NMU", "operand_line", None, "bytes that are fetched together", _MEASURED),
    Parameter("NMU", "weight_bandwidth", None, "bytes/cycle of weights into the array", _MEASURED),
    Parameter("CSTL", "eltwise_throughput", 256, "elements/cycle", _TEXT),
    Parameter(
        "CSTL", "transcendental_throughput", None, "elements/cycle of exp and the like", _MEASURED
    ),
    Parameter(
        "CSTL", "clamp_throughput", None, "elements/cycle of relu and clamp, in passing", _MEASURED
    ),
    Parameter("CSTL", "vector_bytes", None, "bytes/cycle of elementwise results", _MEASURED),
    Parameter("CSTL", "latency", 1, "cycles", _TEXT),
    Parameter("CSTL", "clock", None, "MHz", _MEASURED),
    Parameter("CSTL", "store_bandwidth", 32, "bytes/cycle", _ASSUMED),
    Parameter("CSTL", "store_latency", 4, "cycles", _ASSUMED),
    Parameter("DMA", "bandwidth", 32, "bytes/cycle", _TEXT),
    Parameter("DMA", "latency", 4, "cycles", _TEXT),
    Parameter("DMA", "burst", None, "cycles for each run of bytes", "profile"),
    Parameter("DMA", "write_bandwidth", None, "bytes/cycle outwards", _MEASURED),
    Parameter("DMA", "write_latency", None, "cycles outwards", _MEASURED),
    Parameter("DMA", "clock", None, "MHz", _MEASURED),
    Parameter("sDMA", "bandwidth", 32, "bytes/cycle", _ASSUMED),
    Parameter("sDMA", "latency", 16, "cycles", _ASSUMED),
    Parameter("sDMA", "write_bandwidth", None, "bytes/cycle outwards", _MEASURED),
    Parameter("sDMA", "write_latency", None, "cycles outwards", _MEASURED),
    Parameter("sDMA", "clock", None, "MHz", _MEASURED),
    Parameter("VPU", "throughput", 32, "scalar operations/cycle", _ASSUMED),
    Parameter("VPU", "latency", 4, "cycles", _ASSUMED),
    Parameter("VPU", "clock", None, "MHz", _MEASURED),
    Parameter("WDM", "bandwidth", 64, "decompressed bytes/cycle", _ASSUMED),
    Parameter("WDM", "latency", 8, "cycles", _ASSUMED),
    Parameter("WDM", "clock", None, "MHz", _MEASURED),
    Parameter("DDR", "bandwidth", None, "bytes/cycle, shared by all sDMAs", "profile"),
    Parameter("DDR", "clock", None, "MHz", _MEASURED),
    Parameter("SEQ", "max_active_tokens", None, "tokens", "device"),
    Parameter("SEQ", "call", None, "cycles of a call before its first task", _MEASURED),
)

# What units can do beside how fast: checks ask for these, no timing profile changes them.
CAPABILITIES: tuple[Parameter, ...] = (
    Parameter("WDM", "palette_entries", 32, "elements of a table; 0: no palettes", _PUBLIC),
    Parameter("WDM", "palette_tables", 2, "tables of a transfer; 0: no palettes", _PUBLIC),
    Parameter("WDM", "sparse", 1, "1: zero masks; 0: none", _ASSUMED),
)

# What `unit_characteristics` can tell of: units, and the memory that all of them share.
CHARACTERISED: tuple[str, ...] = (*UNITS, "DDR")

# Figures of which 0 means none: no latency, no such form, nothing that costs time.
_ZERO_ALLOWED = frozenset(
    {
        *("latency", "store_latency", "burst", "palette_entries", "palette_tables", "sparse"),
        *(p.key for p in PARAMETERS if p.source == _MEASURED),
    }
)
_MEMORY = Bounds(1, MAX_FIGURE)

_BOUNDS: Mapping[tuple[str, str], Bounds] = MappingProxyType(
    {
        (TOPOLOGY, "num_engines"): Bounds(1, MAX_ENGINES),
        (TOPOLOGY, "l1_size_bytes"): _MEMORY,
        (TOPOLOGY, "l2_size_bytes"): _MEMORY,
        **{(TOPOLOGY, u.name): Bounds(u.least_count, MAX_UNITS) for u in UNITS.values()},
        **{(p.unit, p.key): Bounds(0 if p.key in _ZERO_ALLOWED else 1, MAX_FIGURE)
           for p in (*PARAMETERS, *CAPABILITIES)},
    }
)  # fmt: skip


def bounds_of(group: str, key: str) -> Bounds | None:
    """What a figure can be: of a unit, or of the topology; None for one that nacre does not use."""
    return _BOUNDS.get((group, key))


def is_absent_at_zero(unit: str, key: str) -> bool:
    """Whether 0 of a figure says that nobody gives it: of those that a calibrated device has."""
    return any((p.unit, p.key, p.source) == (unit, key, _MEASURED) for p in PARAMETERS)


def default_figure(unit: str, key: str) -> int:
    """What is assumed of a unit where nobody gives the figure; it must have a default."""
    found = next(p.default for p in (*PARAMETERS, *CAPABILITIES) if (p.unit, p.key) == (unit, key))
    if found is None:
        raise ValueError(f"{unit}.{key} has no default")
    return found


def figure_names() -> list[str]:
    """Every figure that has bounds, as `NMU.int8_macs` or `topology.num_engines`."""
    return [f"{group}.{key}" for group, key in _BOUNDS]
