"""Devices resolved: inheritance applied, every figure a plain value."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from nacre.base.source import Source, Span
from nacre.nem.model.arithmetic import literal_value
from nacre.nem.model.families import Family, Instance, effective_by_opcode, standard_families
from nacre.nem.spec import limits
from nacre.nem.spec.units import DEVICE_UNITS
from nacre.nem.syntax import ast
from nacre.nem.syntax.printer import variant_text


@dataclass(frozen=True)
class Topology:
    """How many units and how much memory; None for a figure that is missing or wrong."""

    num_engines: int | None
    l1_size_bytes: int | None
    l2_size_bytes: int | None
    per_engine: Mapping[str, int]
    device_units: Mapping[str, int]


@dataclass(frozen=True)
class Device:
    """A device with everything that it inherits."""

    name: str
    spec_version: str | None
    topology: Topology | None
    characteristics: Mapping[str, Mapping[str, int]]
    mandatory: tuple[str, ...]  # ids of variants
    extended: tuple[str, ...]
    families: Mapping[str, Family] = field(repr=False)
    node: ast.DeviceConfig | None = field(default=None, repr=False)
    source: Source | None = field(default=None, repr=False)
    parent: Device | None = field(default=None, repr=False)

    @property
    def is_abstract(self) -> bool:
        """Whether it lacks a topology and so cannot be a target."""
        return self.topology is None

    @property
    def line(self) -> tuple[str, ...]:
        """Its name, and those of the devices that it extends, the nearest first."""
        return (self.name, *(self.parent.line if self.parent is not None else ()))

    @property
    def lacks_parent(self) -> bool:
        """Whether it extends, itself or further up, a device that is not defined."""
        device = self
        while device.parent is not None:
            device = device.parent
        return device.node is not None and device.node.extends is not None

    @cached_property
    def instances(self) -> dict[str, Instance]:
        """The type combinations that the device supports, mandatory ones first."""
        known = {
            id_: instance
            for family in self.families.values()
            for id_, instance in family.instances.items()
        }
        return {id_: known[id_] for id_ in (*self.mandatory, *self.extended) if id_ in known}

    @cached_property
    def effective_by_opcode(self) -> dict[str, list[Instance]]:
        """The legal type combinations by opcode."""
        return effective_by_opcode(self.instances.values())

    @cached_property
    def digest(self) -> str:
        """What tells whether a device is still the one that something was made for."""
        figures = sorted((u, sorted(c.items())) for u, c in self.characteristics.items())
        facts = (self.name, self.topology, figures)
        return hashlib.sha256(repr(facts).encode()).hexdigest()[:16]

    def count(self, unit: str) -> int:
        """Instances of a unit: per engine, or of the device for sDMA and WDM.

        A count beyond the limit has been reported; whoever allows it gets as many as there can be.
        """
        if self.topology is None:
            return 0
        table = self.topology.device_units if unit in DEVICE_UNITS else self.topology.per_engine
        return min(table.get(unit, 0), limits.MAX_UNITS)

    @property
    def num_engines(self) -> int:
        """How many engines; where the figure is missing or wrong, the nearest that can be."""
        count = (self.topology and self.topology.num_engines) or 1
        return min(max(1, count), limits.MAX_ENGINES)


def default_device() -> Device:
    """What holds where no device is named: the baseline's types on a small machine."""
    families = standard_families()
    must = tuple(i.id for f in families.values() for i in f.instances.values() if i.is_must)
    topology = Topology(
        limits.DEFAULT_ENGINES,
        limits.DEFAULT_L1_BYTES,
        limits.DEFAULT_L2_BYTES,
        limits.DEFAULT_ENGINE_UNITS,
        limits.DEFAULT_DEVICE_UNITS,
    )
    return Device("(no device)", limits.SPEC_VERSIONS[0], topology, {}, must, (), families)


def resolve_device(
    node: ast.DeviceConfig, source: Source, parent: Device | None, families: Mapping[str, Family]
) -> Device:
    """Merge a declaration with its parent by the inheritance rules of the language."""
    mandatory = _unite(parent.mandatory if parent else (), node.mandatory)
    extended = _unite(parent.extended if parent else (), node.extended)
    inherited_spec = parent.spec_version if parent else None
    return Device(
        node.name.name,
        node.spec_version.value if node.spec_version else inherited_spec,
        resolve_topology(node.topology) if node.topology else parent.topology if parent else None,
        _merge(parent.characteristics if parent else {}, node.characteristics),
        mandatory,
        # A variant that is mandatory needs no second entry: the sets stay apart.
        tuple(id_ for id_ in extended if id_ not in set(mandatory)),
        families,
        node,
        source,
        parent,
    )


def resolve_topology(node: ast.Topology) -> Topology:
    """The figures of a topology."""
    per_engine = node.per_engine
    return Topology(
        node.num_engines.value if node.num_engines else None,
        literal_value(per_engine.l1_size) if per_engine and per_engine.l1_size else None,
        literal_value(node.l2_size) if node.l2_size else None,
        _counts(per_engine.units if per_engine else ()),
        _counts(node.device_units.units if node.device_units else ()),
    )


def _counts(units: tuple[ast.UnitCount, ...]) -> dict[str, int]:
    return {u.unit.name: u.count.value for u in units if u.count is not None}


def _unite(inherited: tuple[str, ...], block: ast.VariantBlock | None) -> tuple[str, ...]:
    listed = tuple(variant_text(v) for v in block.variants) if block else ()
    return tuple(dict.fromkeys((*inherited, *listed)))


def _merge(
    inherited: Mapping[str, Mapping[str, int]], block: ast.CharacteristicsBlock | None
) -> dict[str, dict[str, int]]:
    merged = {unit: dict(entries) for unit, entries in inherited.items()}
    for group in block.groups if block else ():
        declared = {e.key.name: e.value.value for e in group.entries if e.value is not None}
        merged.setdefault(group.unit.name, {}).update(declared)
    return merged


def device_span(device: Device) -> Span | None:
    """Where a device's name is declared; None for the default one."""
    if device.node is None or device.source is None:
        return None
    return device.source.span(device.node.name.start, device.node.name.end)
