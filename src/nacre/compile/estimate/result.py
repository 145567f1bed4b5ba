"""What an estimate is: a plan and its times, bounds, and the figures that follow from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from nacre.base.diagnostics import Diagnostic, InternalError
from nacre.base.rendering import to_json
from nacre.compile.bundle.compiled_model import CompiledModel
from nacre.compile.estimate.bands import TimeBand, assumed_band, covers_networks, fitted_band
from nacre.compile.estimate.bounds import ModelBounds
from nacre.compile.estimate.layer_times import LayerTime, operation_times
from nacre.compile.estimate.losses import Losses, find_losses
from nacre.compile.options import Precision
from nacre.nem.model.calibration import Calibration
from nacre.nem.model.devices import Device
from nacre.nem.run.timing.bounds import ddr_bytes
from nacre.nem.run.timing.profile import Figures
from nacre.nem.run.timing.result import TimedResult


@dataclass(frozen=True, eq=False)
class PlanTimes:
    """A plan, timed with the device's own figures and with derated ones."""

    bundle: CompiledModel
    ideal: TimedResult
    layers: tuple[LayerTime, ...]
    derating: Figures
    clock_mhz: float
    calibration: Calibration | None  # of the device that was asked for

    @cached_property
    def derated(self) -> TimedResult:
        """The same plan with derated figures; a calibrated device has none."""
        return self._timed(self.derating) if self.derating else self.ideal

    @cached_property
    def derating_costs(self) -> dict[str, int]:
        """What each derating factor adds to the cycles, on top of those before it."""
        added: dict[str, int] = {}
        figures: Figures = {}
        before = self.ideal.cycles
        for unit, entries in self.derating.items():
            figures = {**figures, unit: entries}
            is_last = len(figures) == len(self.derating)
            cycles = (self.derated if is_last else self._timed(figures)).cycles
            added[".".join((unit, *entries))] = cycles - before
            before = cycles
        return added

    @cached_property
    def band(self) -> TimeBand:
        """How sure the cycles are."""
        calibration = self.calibration
        if calibration is not None and covers_networks(calibration):
            return fitted_band(calibration, self.bundle.manifest.precision)
        device, cycles = self.ideal.timeline.device, self.ideal.cycles
        return assumed_band(
            device, self.derating, cycles, lambda f: self._timed(f).cycles, calibration
        )

    def _timed(self, figures: Figures) -> TimedResult:
        result = self.bundle.time(figures, self.clock_mhz)
        if result.status != "completed":
            raise InternalError(f"the derated plan does not end: {result.sentence()}")
        return result

    @cached_property
    def losses(self) -> Losses:
        """Where the plan takes longer than its layers are bound to."""
        return find_losses(self.ideal.timeline, self.layers)

    @cached_property
    def ddr_bytes(self) -> int:
        """Bytes that pass between DDR and the chip."""
        return ddr_bytes(self.ideal.timeline)

    @property
    def vpu_share(self) -> float:
        """The share of the run in which the busiest VPU works."""
        busy = [e["busy"] for name, e in self.ideal.units.items() if name.startswith("VPU")]
        return max(busy, default=0) / max(1, self.ideal.cycles)

    def layer_band(self, layer: LayerTime) -> dict[str, int]:
        """From how many to how many cycles a layer may take."""
        low, high = (round(share * layer.cycles) for share in (self.band.low, self.band.high))
        return {"low_cycles": low, "high_cycles": high}

    def as_json(self) -> dict[str, Any]:
        """What only a plan has, as plain values."""
        manifest = self.bundle.manifest
        return {
            "band": self.band.as_json(self.ideal.cycles),
            "macs_by_unit": self.ideal.macs_by_unit,
            "cycles_by_unit": self.ideal.cycles_by_unit,
            "ddr_bytes": self.ddr_bytes,
            "macs": manifest.macs,
            "plan_macs": manifest.plan_macs,
            "float_share": self.bundle.float_share,
            "weight_bytes": len(self.bundle.weights),
            "l2_peak": manifest.l2_peak,
            "l2_bound": manifest.l2_bound,
            "layers": [{**layer.as_json(), **self.layer_band(layer)} for layer in self.layers],
            "why": self.losses.as_json(),
            "operations": [row.as_json(self.ideal.cycles) for row in operation_times(self.layers)],
            "notes": list(manifest.notes),
        }


def _without_a_plan() -> dict[str, Any]:
    """The same where there is none."""
    unknown = (
        "band",
        "why",
        "macs",
        "plan_macs",
        "float_share",
        "ddr_bytes",
        "weight_bytes",
        "l2_peak",
        "l2_bound",
    )
    return {
        "macs_by_unit": {}, "cycles_by_unit": {}, "layers": [], "operations": [], "notes": [],
        **dict.fromkeys(unknown),
    }  # fmt: skip


@dataclass(frozen=True, eq=False)
class Estimate:
    """What is known of a model on a device; without a plan, `problems` says why there is none.

    Figures that nothing is known of are None.
    """

    device: Device
    precision: Precision
    clock_mhz: float
    derating: Figures
    assumptions: tuple[str, ...]
    problems: tuple[Diagnostic, ...] = ()
    bounds: ModelBounds | None = None
    escaped: Mapping[str, str] | None = None  # operations on the VPU, and why
    plan: PlanTimes | None = None
    most_cycles: int | None = None  # all in f16, where no data says what i8 can take

    def __repr__(self) -> str:
        # It holds the whole plan and both of its timelines.
        told = f"{self.cycles:,} cycles" if self.cycles is not None else "no plan"
        return f"<Estimate on {self.device.name} in {self.precision}: {told}>"

    @property
    def fits(self) -> bool:
        """Whether there is a plan."""
        return self.plan is not None

    @property
    def cycles(self) -> int | None:
        """Cycles of the run, with the device's own figures."""
        return self.plan.ideal.cycles if self.plan is not None else None

    @property
    def milliseconds(self) -> float | None:
        """The run at the clock of the estimate."""
        return self.plan.ideal.milliseconds if self.plan is not None else None

    @property
    def layers(self) -> tuple[LayerTime, ...]:
        """The layers of the plan, in their order."""
        return self.plan.layers if self.plan is not None else ()

    @property
    def vpu_share(self) -> float | None:
        """The share of the run in which the busiest VPU works."""
        return self.plan.vpu_share if self.plan is not None else None

    @property
    def over_layer_bound(self) -> float | None:
        """How many times the layer bound the run takes."""
        return self._over(self.bounds.layer if self.bounds is not None else None)

    @property
    def over_whole_bound(self) -> float | None:
        """How many times the whole bound the run takes."""
        return self._over(self.bounds.whole if self.bounds is not None else None)

    @property
    def over_floor(self) -> float | None:
        """How many times what no plan can do without the run takes."""
        return self._over(self.bounds.floor if self.bounds is not None else None)

    @property
    def over_schedule_bound(self) -> float | None:
        """How many times the run takes what no order of the work can beat."""
        return self._over(self.bounds.schedule if self.bounds is not None else None)

    def _over(self, bound: int | None) -> float | None:
        return self.cycles / bound if self.cycles is not None and bound else None

    @property
    def mac_utilisation(self) -> float | None:
        """The share of all NMUs' MACs that the run uses."""
        if self.cycles is None or self.bounds is None:
            return None
        needed = sum(float(layer.nmu) for layer in self.bounds.layers)
        return needed / max(1, self.cycles)

    def as_json(self) -> dict[str, Any]:
        """All of it as plain values."""
        bounds = self.bounds
        return {
            "fits": self.fits,
            "device": self.device.name,
            "precision": self.precision,
            "clock_mhz": self.clock_mhz,
            "cycles": self.cycles,
            "most_cycles": self.most_cycles,
            "milliseconds": self.milliseconds,
            "derated": self._derated(),
            "layer_bound": bounds.layer if bounds is not None else None,
            "whole_bound": bounds.whole if bounds is not None else None,
            "floor": bounds.floor if bounds is not None else None,
            "schedule_bound": bounds.schedule if bounds is not None else None,
            "over_layer_bound": self.over_layer_bound,
            "over_whole_bound": self.over_whole_bound,
            "over_floor": self.over_floor,
            "over_schedule_bound": self.over_schedule_bound,
            "mac_utilisation": self.mac_utilisation,
            "vpu_share": self.vpu_share,
            "l2_bytes": self.device.topology.l2_size_bytes if self.device.topology else None,
            **(self.plan.as_json() if self.plan is not None else _without_a_plan()),
            "escaped": dict(self.escaped or {}),
            "assumptions": list(self.assumptions),
            "problems": [to_json(found) for found in self.problems],
        }

    def _derated(self) -> dict[str, Any]:
        timed = self.plan.derated if self.plan is not None and self.derating else None
        return {
            "cycles": timed.cycles if timed else None,
            "milliseconds": timed.milliseconds if timed else None,
            "added": self.plan.derating_costs if self.plan is not None else None,
            "figures": {unit: dict(entries) for unit, entries in self.derating.items()},
        }
