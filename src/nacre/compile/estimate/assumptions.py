"""What an estimate rests on and nobody has measured."""

from __future__ import annotations

from nacre.nem.model.devices import Device
from nacre.nem.model.provenance import figures
from nacre.nem.run.timing.profile import Figures, timing_figures, timing_profile

DEFAULT_CLOCK_MHZ = 1000.0
_LANES_OUT = 128  # columns of the NMU's array: output channels
_DDR_BANDWIDTH = 64  # bytes/cycle
_BURST = 2  # cycles for each run of bytes


def derated_figures(device: Device, precision: str) -> Figures:
    """Figures for what the device's own leave out: its array's shape, shared DDR, short runs."""
    profile = timing_profile(device)
    if profile.get("NMU", "tile_channels"):  # a calibrated device leaves none of it out
        return {}
    bits = {"i8": 8, "f32": 32}.get(precision, 16)
    rate = profile.macs_per_two_cycles(bits, is_float=precision != "i8") // 2
    lanes = (max(1, rate // _LANES_OUT), min(rate, _LANES_OUT))
    return {"NMU": {"lanes": lanes}, "DDR": {"bandwidth": _DDR_BANDWIDTH}, "DMA": {"burst": _BURST}}


def clock_of(device: Device) -> float:
    """The clock in MHz that times are counted in where nobody gives another."""
    return float(timing_profile(device).get("NMU", "clock") or DEFAULT_CLOCK_MHZ)


def _derating_text(derating: Figures) -> list[str]:
    if not derating:
        return []
    rows_in, columns_out = derating["NMU"]["lanes"]
    return [
        f"derated: NMU of {rows_in} input by {columns_out} output channels, DDR "
        f"{_DDR_BANDWIDTH} bytes/cycle shared by all sDMAs, {_BURST} cycles for each run of a copy"
    ]


def assumptions_of(
    device: Device, clock_mhz: float | None, precision: str, ranges: str
) -> tuple[str, ...]:
    """What the numbers rest on and nobody has measured."""
    rows = figures(device)
    held = [f"{row.name} {row.value:,}" for row in rows if row.basis == "assumption" and row.value]
    timing = [
        f"{row.unit}.{row.key} {row.value:,}"
        for row in timing_figures(device)
        if row.value is not None and not row.source.startswith("device")
    ]
    clock = clock_of(device)
    return (
        *([f"clock {clock:,.0f} MHz"] if clock_mhz is None else []),
        *([f"{device.name}: {', '.join(held)}"] if held else []),
        f"units: {', '.join(timing)}",
        *_derating_text(derated_figures(device, precision)),
        *([f"i8: {ranges}"] if ranges else []),
    )
