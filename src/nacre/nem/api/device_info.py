"""What a caller can learn about a device."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from nacre.nem.model.builtins import BASELINE_DEVICE
from nacre.nem.model.devices import Device


@dataclass(frozen=True)
class DeviceConfig:
    """A resolved device in plain values, under the names that the interpreter's text prints."""

    name: str
    spec_version: str | None
    baseline: str | None  # the abstract device that it descends from
    num_engines: int
    per_engine: dict[str, int]
    device_units: dict[str, int]
    l1_size_bytes: int | None
    l2_size_bytes: int | None
    ddr_size_bytes: int  # of the interpreter: a device says nothing about DDR
    effective_types: dict[str, list[str]]  # opcode -> legal variants, as they are declared
    mandatory_variants: set[str]  # what the device must have
    extended_variants: set[str]  # what it has beyond those
    effective_set: dict[str, set[str]]  # opcode -> legal variants
    characteristics: Mapping[str, Mapping[str, int]]


def device_config(device: Device, ddr_size_bytes: int) -> DeviceConfig:
    """A device in plain values."""
    topology = device.topology
    effective = {
        opcode: [i.id for i in instances]
        for opcode, instances in device.effective_by_opcode.items()
    }
    return DeviceConfig(
        name=device.name,
        spec_version=device.spec_version,
        baseline=_baseline(device),
        num_engines=device.num_engines,
        per_engine=dict(topology.per_engine) if topology is not None else {},
        device_units=dict(topology.device_units) if topology is not None else {},
        l1_size_bytes=topology.l1_size_bytes if topology is not None else None,
        l2_size_bytes=topology.l2_size_bytes if topology is not None else None,
        ddr_size_bytes=ddr_size_bytes,
        effective_types=effective,
        mandatory_variants=set(device.mandatory),
        extended_variants=set(device.extended),
        effective_set={opcode: set(variants) for opcode, variants in effective.items()},
        characteristics=device.characteristics,
    )


def _baseline(device: Device) -> str | None:
    if device.node is None:  # no device is named: the types are the baseline's
        return BASELINE_DEVICE
    while device.parent is not None:
        device = device.parent
    return device.name if device.is_abstract else None
