"""What a plan depends on of a device: a plan is still right where only times have changed."""

from __future__ import annotations

import hashlib

from nacre.nem.model.devices import Device

# Figures that the timed machine reads and no stage of the compiler. All others may change a plan.
TIMES_ALONE = frozenset(
    {
        *(("NMU", "clock"), ("CSTL", "clock"), ("VPU", "clock"), ("WDM", "clock")),
        *(("DMA", "clock"), ("sDMA", "clock"), ("DDR", "clock"), ("DDR", "bandwidth")),
        *(("CSTL", "vector_bytes"), ("CSTL", "transcendental_throughput")),
        *(("CSTL", "clamp_throughput"), ("CSTL", "store_bandwidth"), ("CSTL", "store_latency")),
        *(("DMA", "write_bandwidth"), ("DMA", "write_latency"), ("DMA", "burst")),
        *(("sDMA", "write_bandwidth"), ("sDMA", "write_latency")),
        *(("WDM", "bandwidth"), ("WDM", "latency"), ("SEQ", "call")),
    }
)


def plan_digest(device: Device) -> str:
    """Equal for devices that get the same plans, whatever their names and times."""
    figures = sorted(
        (unit, key, value)
        for unit, known in device.characteristics.items()
        for key, value in known.items()
        if (unit, key) not in TIMES_ALONE
    )
    topology = device.topology
    units = [] if topology is None else [
        topology.num_engines, topology.l1_size_bytes, topology.l2_size_bytes,
        sorted(topology.per_engine.items()), sorted(topology.device_units.items()),
    ]  # fmt: skip
    facts = (units, figures, sorted(device.instances))
    return hashlib.sha256(repr(facts).encode()).hexdigest()[:16]
