"""Lower bounds of a model on a device: from its graph and the device's figures, never from a plan.

A layer's bound is the largest of three: its MACs at the rate of all NMUs for its element types; its
passes over elements at the rate of all CSTLs, and its result once at the rate at which they store;
the bytes that DDR must give or take, at the rate of all sDMAs. The *layer bound* is the sum over
the layers. The *whole bound* is the largest of the three sums: it lets every layer overlap every
other. The *floor* leaves out what a clever plan may avoid: stores, for a tensor may stay in L1, and
transpositions, for a strided copy may do them; and it lets VPUs help with everything. Nothing is
below the floor. Nor below the *schedule bound*, which knows in addition what must come first and
what must follow (`bounds_schedule`).

What is counted, and what is not:
- All units count, on every engine, whether a plan uses them or not. Latencies do not count.
- A constant is read once, by the first layer that wants it: weights lie in DDR before a run. One
  element, scales and zero points are literals of the program and cost nothing.
- An input is read once, as far as its readers look: a window with strides may leave rows out. What
  `Gather` takes from a table moves on a DMA of the engine, and no sDMA is charged with it.
- A result that leaves the model is charged to DDR, not to the CSTLs: a transfer may carry it.
- Views and copies (`Slice`, `Concat`, `Pad` and so on) cost nothing: regions may do the same.
- Types change for nothing: a quantised task does it on the way, and alone it is work of the VPU.
- An escaped operation costs nothing but its store: it has no rate on NMU or CSTL.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from fractions import Fraction
from functools import cached_property
from math import ceil
from types import MappingProxyType
from typing import Literal

from nacre.compile.estimate.bounds_rates import Rates, call_of, element_passes
from nacre.compile.estimate.bounds_scales import scaling_values
from nacre.compile.estimate.bounds_schedule import schedule_bound
from nacre.compile.estimate.bounds_traffic import (
    MOVES,
    Group,
    ddr_traffic,
    stored_values,
)
from nacre.core.module import CoreOperation, Module
from nacre.kernels.interface.call import Call
from nacre.kernels.registry import PRIMITIVES
from nacre.nem.model.devices import Device
from nacre.nem.run.timing.profile import TimingProfile

Limit = Literal["NMU", "CSTL", "DDR"]

_AVOIDABLE = frozenset({"Transpose"})


@dataclass(frozen=True)
class LayerBound:
    """What a layer cannot do without, and the cycles of each."""

    name: str
    macs: int
    elements: int  # passes over elements on the CSTLs
    store_bytes: int
    ddr_bytes: int
    nmu: Fraction
    cstl: Fraction
    ddr: Fraction
    least_nmu: Fraction  # with VPUs helping
    least_cstl: Fraction  # of what cannot be avoided, with VPUs helping

    @property
    def largest(self) -> Fraction:
        """Cycles of the one that counts."""
        return max(self.nmu, self.cstl, self.ddr)

    @property
    def cycles(self) -> int:
        """The same in whole cycles."""
        return ceil(self.largest)

    @property
    def limit(self) -> Limit | None:
        """Which of the three counts; None where the layer may cost nothing."""
        kinds: tuple[tuple[Limit, Fraction], ...] = (
            ("NMU", self.nmu), ("CSTL", self.cstl), ("DDR", self.ddr),
        )  # fmt: skip
        name, cycles = max(kinds, key=lambda kind: kind[1])
        return name if cycles else None


@dataclass(frozen=True)
class ModelBounds:
    """The bounds of a whole model."""

    layers: tuple[LayerBound, ...]
    chains: int = 0  # the schedule bound, where heads and tails of the work are known

    @cached_property
    def layer(self) -> int:
        """The sum over the layers."""
        return ceil(_sum_cycles(bound.largest for bound in self.layers))

    @cached_property
    def whole(self) -> int:
        """The largest of the three sums."""
        return ceil(max(self._sum("nmu"), self._sum("cstl"), self._sum("ddr")))

    @cached_property
    def floor(self) -> int:
        """What no plan is below, wherever it keeps its tensors."""
        return ceil(max(self._sum("least_nmu"), self._sum("least_cstl"), self._sum("ddr")))

    @property
    def schedule(self) -> int:
        """What no plan is below, since some work must wait for other work, and some follow it."""
        return max(self.floor, self.chains)

    @cached_property
    def by_name(self) -> dict[str, LayerBound]:
        """The layers by their names."""
        return {bound.name: bound for bound in self.layers}

    def of(self, names: Sequence[str]) -> LayerBound | None:
        """The bound of layers that run together: the sum of theirs, unit by unit."""
        known = self.by_name
        bounds = [known[name] for name in names if name in known]
        if len(bounds) < 2:
            return next(iter(bounds), None)
        sums = {
            one.name: sum(getattr(bound, one.name) for bound in bounds)
            for one in fields(LayerBound)
            if one.name != "name"
        }
        return LayerBound(bounds[-1].name, **sums)

    def _sum(self, kind: str) -> Fraction:
        return _sum_cycles(getattr(bound, kind) for bound in self.layers)


def model_bounds(
    module: Module,
    groups: Sequence[Group],
    device: Device,
    profile: TimingProfile,
    escaped: Collection[int] = (),
    saved: Mapping[str, int] = MappingProxyType({}),
) -> ModelBounds:
    """The bounds of a legal module, its operations gathered into layers.

    `saved` are bytes that compressed weights of a layer take less.
    """
    rates = Rates(device, profile)
    traffic = [
        max(0, size - saved.get(group.name, 0))
        for group, size in zip(groups, ddr_traffic(module, groups), strict=True)
    ]
    parts = zip(groups, traffic, stored_values(module, groups), strict=True)
    layers = tuple(_layer_bound(module, rates, escaped, *part) for part in parts)
    inside = {op.value_id for group in groups for op in group.operations}
    free = {op.value_id for op in module.operations if op.value_id not in inside} | {*escaped}
    ddr = float(_sum_cycles(bound.ddr for bound in layers))
    return ModelBounds(layers, schedule_bound(module, rates, free, ddr))


def _layer_bound(
    module: Module,
    rates: Rates,
    escaped: Collection[int],
    group: Group,
    ddr_bytes: int,
    stored: Sequence[int],
) -> LayerBound:
    computed = [op for op in group.operations if op.value_id not in escaped]
    calls = {op.value_id: call_of(module, op) for op in computed}
    macs = {value: PRIMITIVES[name].work(call).macs for value, (name, call) in calls.items()}
    rate = {value: rates.macs(calls[value][1]) for value, count in macs.items() if count}
    inside = scaling_values(module, computed, calls)
    elements = _elements(computed, calls, inside)
    fixed = _elements((op for op in computed if op.opcode not in _AVOIDABLE), calls, inside)
    does_nothing = all(op.opcode in MOVES for op in group.operations)
    store_bytes = 0 if does_nothing else sum(module.by_id[v].type.size_bytes for v in stored)
    return LayerBound(
        group.name,
        sum(macs.values()),
        elements,
        store_bytes,
        ddr_bytes,
        _sum_cycles(macs[value] / per_cycle for value, per_cycle in rate.items()),
        elements / rates.elements + store_bytes / rates.stored,
        ddr_bytes / rates.ddr,
        _sum_cycles(macs[value] / (per_cycle + rates.help) for value, per_cycle in rate.items()),
        fixed / (rates.elements + rates.help),
    )


def _sum_cycles(cycles: Iterable[Fraction]) -> Fraction:
    return sum(cycles, Fraction())


def _elements(
    operations: Iterable[CoreOperation], calls: Mapping[int, tuple[str, Call]], inside: set[int]
) -> int:
    """Passes over elements, but for what is part of something else."""
    return sum(
        element_passes(op, *calls[op.value_id]) for op in operations if op.value_id not in inside
    )
