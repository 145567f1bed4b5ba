"""What a caller can learn about a device."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from nacre.nem.model.devices import Device


@dataclass(frozen=True)
class DeviceInfo:
    """A device in plain values."""

    name: str
    num_engines: int
    per_engine: dict[str, int]
    device_units: dict[str, int]
    l1_size_bytes: int | None
    l2_size_bytes: int | None
    effective_types: dict[str, list[str]]  # opcode -> legal variants
    mandatory: tuple[str, ...]
    extended: tuple[str, ...]
    characteristics: Mapping[str, Mapping[str, int]]


def device_info(device: Device) -> DeviceInfo:
    """A device in plain values."""
    topology = device.topology
    return DeviceInfo(
        device.name,
        device.num_engines,
        dict(topology.per_engine) if topology is not None else {},
        dict(topology.device_units) if topology is not None else {},
        topology.l1_size_bytes if topology is not None else None,
        topology.l2_size_bytes if topology is not None else None,
        {opcode: [i.id for i in instances] for opcode, instances in device.effective.items()},
        device.mandatory,
        device.extended,
        device.characteristics,
    )
