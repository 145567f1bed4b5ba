"""Transfers that decompress their source: which they are, and what the device has for them."""

from __future__ import annotations

from nacre.nem.model.devices import Device
from nacre.nem.model.program import Region, Task
from nacre.nem.spec.figures import default_figure

WDM = "WDM"
_WAYS = (("DDR", "L2"), ("L2", "L1"))


def compressed_source(task: Task) -> Region | None:
    """The compressed region that a transfer reads; None for every other task."""
    if task.op != "transfer" or len(task.operands) != 2:
        return None
    source = next((o.region for o in task.operands if o.access == "read"), None)
    return source if source is not None and source.compression is not None else None


def decompresses(task: Task) -> bool:
    """Whether a transfer leads through the unit that decompresses: from DDR to L2, or L2 to L1."""
    source = compressed_source(task)
    target = next((o.region for o in task.operands if o.access == "write"), None)
    if source is None or source.buffer is None or target is None or target.buffer is None:
        return False
    return (source.buffer.level, target.buffer.level) in _WAYS


def decompression_figure(device: Device, key: str) -> int:
    """A figure of a device's `WDM`: its own, or what is assumed of all."""
    own = device.characteristics.get(WDM, {}).get(key)
    return own if own is not None else default_figure(WDM, key)
