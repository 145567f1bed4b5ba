"""How sure an estimate is: the band of a calibrated device, or the spread of assumptions.

A calibrated device has the errors of times that its fit did not see; 80 % of true times lie in the
band that they give. Of any other device nobody measured anything: what is assumed of it is drawn
anew a few times, within what real chips were found to have, and the times that come of it show how
much rests on assumptions. That is no error bar.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from nacre.nem.model.calibration import Calibration
from nacre.nem.model.devices import Device
from nacre.nem.model.provenance import figures
from nacre.nem.run.timing.profile import Figures, timing_profile
from nacre.nem.spec.figures import PARAMETERS, bounds_of

MODEL = "model"  # the class of rows that are whole networks
DECODE = "decode"  # the class of tokens of a language model, of which no network says anything
_SAMPLES, _SEED = 8, 1
_QUANTILES = (0.1, 0.9)
# What is assumed may be as much less or more; latencies of chips were found to be far longer.
_RATE_FACTORS = (0.5, 2.0)
_LATENCY_FACTORS = (1.0, 100.0)


@dataclass(frozen=True)
class TimeBand:
    """From which to which multiple of an estimate the time may be, and what says so."""

    low: float
    high: float
    basis: str  # `fitted to 214 rows`
    is_calibrated: bool

    def as_json(self, cycles: int) -> dict[str, Any]:
        """All of it as plain values, with the cycles that it means."""
        return {
            "calibrated": self.is_calibrated,
            "basis": self.basis,
            "low": self.low,
            "high": self.high,
            "low_cycles": round(self.low * cycles),
            "high_cycles": round(self.high * cycles),
        }


def covers_networks(calibration: Calibration) -> bool:
    """Whether anything was measured that a network consists of."""
    return set(calibration.classes) != {DECODE}


def network_class(precision: str) -> str:
    """The class of whole networks of one precision, where precisions are told apart."""
    return f"{MODEL} {precision}"


def fitted_band(calibration: Calibration, precision: str) -> TimeBand:
    """The band of whole networks, of this precision if it has one; of all rows where none are."""
    known = [c for c in (network_class(precision), MODEL) if c in calibration.classes]
    band = calibration.band(next(iter(known), None))
    basis = f"fitted to {calibration.rows} rows"
    if not any(kind.split()[0] == MODEL for kind in calibration.classes):
        basis += " of single tasks"
    return TimeBand(band.low, band.high, basis, is_calibrated=True)


def assumed_band(
    device: Device,
    derating: Figures,
    cycles: int,
    time: Callable[[Figures], int],
    calibration: Calibration | None = None,
) -> TimeBand:
    """The spread of times with other assumptions; `time` gives the cycles with some figures."""
    generator = np.random.default_rng(_SEED)
    found = [
        time(_draw(device, derating if place % 2 else {}, generator)) / max(1, cycles)
        for place in range(_SAMPLES)
    ]
    low, high = (float(np.quantile([1.0, *found], share)) for share in _QUANTILES)
    basis = "by the spread of its assumptions"
    if calibration is not None:
        basis += "; fitted to the decoding of language models alone"
    return TimeBand(low, high, basis, is_calibrated=False)


def _draw(device: Device, derating: Figures, generator: np.random.Generator) -> Figures:
    """Figures of one sample: what is assumed, times a factor; every other time an array's shape."""
    drawn: dict[str, dict[str, Any]] = {unit: dict(entries) for unit, entries in derating.items()}
    for unit, key, value, factors in _assumed_figures(device):
        factor = float(np.exp(generator.uniform(*np.log(factors))))
        bounds = bounds_of(unit, key)
        least = bounds.least if bounds is not None else 1
        drawn.setdefault(unit, {}).setdefault(key, max(least, round(value * factor)))
    return drawn


def _assumed_figures(device: Device) -> Iterator[tuple[str, str, int, tuple[float, float]]]:
    """Figures of the timing that nobody knows, and by how much they may differ."""
    known = {row.name for row in figures(device) if row.basis in ("fact", "fitted")}
    profile = timing_profile(device)
    for one in PARAMETERS:
        value = profile.get(one.unit, one.key)
        if value and f"{one.unit}.{one.key}" not in known and one.unit != "SEQ":
            factors = _LATENCY_FACTORS if one.kind == "cost" else _RATE_FACTORS
            yield one.unit, one.key, value, factors
