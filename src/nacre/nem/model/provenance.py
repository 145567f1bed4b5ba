"""The figures of a device, and whether each is a known fact, an assumption or fitted.

A device file says so in the comment behind a figure: `# fact`, `# assumption` or `# fitted`, with
or without a reason. That keeps a figure and its standing on one line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from msgspec import Struct

from nacre.base.source import Source
from nacre.nem.model.devices import Device
from nacre.nem.spec.units import DEVICE_UNITS
from nacre.nem.syntax.ast import Node
from nacre.nem.syntax.lexer import tokenize

_BASIS = re.compile(r"#\s*(fact|assumption|fitted)\b(?::\s*(.*))?")


class Figure(Struct, frozen=True):
    """One figure of a device."""

    name: str  # num_engines, NMU, NMU.int8_macs
    value: int | None
    basis: str  # "fact", "assumption", "fitted", or empty where the file does not say
    reason: str = ""


def figures(device: Device) -> list[Figure]:
    """Every figure of a device with its basis, topology first."""
    return [*_topology_figures(device), *_characteristic_figures(device)]


def _chain(device: Device) -> Iterator[Device]:
    link: Device | None = device
    while link is not None:
        yield link
        link = link.parent


def _topology_figures(device: Device) -> Iterator[Figure]:
    owner = next((d for d in _chain(device) if d.node is not None and d.node.topology), None)
    if owner is None or owner.node is None or owner.node.topology is None:
        return
    node, source, topology = owner.node.topology, owner.source, device.topology
    if source is None or topology is None:
        return
    yield _figure("num_engines", topology.num_engines, node.num_engines, source)
    yield _figure("l2_size_bytes", topology.l2_size_bytes, node.l2_size, source)
    per_engine = node.per_engine
    if per_engine is not None:
        yield _figure("l1_size_bytes", topology.l1_size_bytes, per_engine.l1_size, source)
        for unit in per_engine.units:
            yield _figure(unit.unit.name, topology.per_engine.get(unit.unit.name), unit, source)
    declared = {u.unit.name: u for u in node.device_units.units} if node.device_units else {}
    for name in DEVICE_UNITS:
        yield _figure(name, topology.device_units.get(name, 0), declared.get(name), source)


def _characteristic_figures(device: Device) -> Iterator[Figure]:
    for unit, entries in device.characteristics.items():
        for key, value in entries.items():
            node, source = _characteristic_node(device, unit, key)
            yield _figure(f"{unit}.{key}", value, node, source)


def _characteristic_node(device: Device, unit: str, key: str) -> tuple[Node | None, Source | None]:
    for link in _chain(device):
        block = link.node.characteristics if link.node is not None else None
        for group in block.groups if block is not None else ():
            for entry in group.entries:
                if group.unit.name == unit and entry.key.name == key:
                    return entry, link.source
    return None, None


def _figure(name: str, value: int | None, node: Node | None, source: Source | None) -> Figure:
    if node is None or source is None:
        return Figure(name, value, "")
    line = source.position(node.start)[0]
    basis, reason = figure_bases(source).get(line, ("", ""))
    return Figure(name, value, basis, reason)


@cache
def figure_bases(source: Source) -> dict[int, tuple[str, str]]:
    """Line -> what its comment says about the figure on it."""
    bases = {}
    for comment in tokenize(source).comments:
        match = _BASIS.match(comment.text)
        if match:
            bases[source.position(comment.start)[0]] = (match[1], match[2] or "")
    return bases
