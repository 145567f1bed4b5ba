"""Devices whose figures no machine has: for those that come as values and not as text."""

from __future__ import annotations

from collections.abc import Iterator

from nacre.nem.model.devices import Device, Topology
from nacre.nem.spec.figures import TOPOLOGY, bounds_of
from nacre.nem.spec.limits import MAX_UNIT_INSTANCES


def figure_problems(device: Device) -> list[str]:
    """What is wrong with the figures of a device; those that nacre does not use are free."""
    figures: list[tuple[str, str, object]] = []
    if device.topology is not None:
        figures += [(TOPOLOGY, key, value) for key, value in _topology_figures(device.topology)]
    for unit, entries in device.characteristics.items():
        figures += [(unit, key, value) for key, value in entries.items()]
    problems = []
    for group, key, value in figures:
        bounds = bounds_of(group, key)
        number = value if isinstance(value, int) and not isinstance(value, bool) else None
        if bounds is not None and not bounds.admit(number):
            problems.append(f"`{group}.{key}` of `{device.name}` is {value!r}, expected {bounds}")
    if not problems and device.topology is not None:
        problems += crowded_units(device.topology)
    return problems


def _topology_figures(topology: Topology) -> Iterator[tuple[str, object]]:
    yield "num_engines", topology.num_engines
    yield "l1_size_bytes", topology.l1_size_bytes
    yield "l2_size_bytes", topology.l2_size_bytes
    yield from topology.per_engine.items()
    yield from topology.device_units.items()


def crowded_units(topology: Topology) -> Iterator[str]:
    """The unit types of which all engines together have too many."""
    engines = topology.num_engines or 1
    for unit, count in topology.per_engine.items():
        if engines * count > MAX_UNIT_INSTANCES:
            yield (
                f"{engines} engines with {count} `{unit}` each have {engines * count}, "
                f"expected at most {MAX_UNIT_INSTANCES}"
            )
