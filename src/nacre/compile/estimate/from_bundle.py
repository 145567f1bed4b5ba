"""Estimates of bundles: from their own plan, with bounds from the legal module that they bring."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from nacre.compile.bundle.compiled_model import CompiledModel
from nacre.compile.bundle.manifest import LayerEntry, Origin
from nacre.compile.estimate.assumptions import assumptions_of, clock_of, derated_figures
from nacre.compile.estimate.bounds import ModelBounds, model_bounds
from nacre.compile.estimate.layer_times import layer_times
from nacre.compile.estimate.result import Estimate, PlanTimes
from nacre.compile.request import require_clock
from nacre.core.module import CoreOperation
from nacre.nem.model.calibration import calibration_of
from nacre.nem.model.devices import Device
from nacre.nem.run.timing.profile import TimingProfile, timing_profile
from nacre.nem.run.timing.result import TimedResult


@dataclass(frozen=True)
class _Group:
    """Operations that bounds count as one layer."""

    name: str
    operations: tuple[CoreOperation, ...]


def estimate_bundle(
    bundle: CompiledModel, clock_mhz: float | None = None, timed: TimedResult | None = None
) -> Estimate:
    """What is known of a bundle's plan on its device; `timed` is a run of it with other figures."""
    if clock_mhz is not None:
        require_clock(clock_mhz)
    precision = bundle.manifest.precision
    device = bundle.runnable_program.device if timed is None else timed.timeline.device
    clock = clock_mhz or clock_of(device)
    ideal = bundle.time(clock_mhz=clock) if timed is None else timed
    profile = timing_profile(device) if timed is None else timed.timeline.profile
    bounds = bundle_bounds(bundle, device, profile)
    ranges = "the scales are those of the bundle" if precision == "i8" else ""
    derating = derated_figures(device, precision)
    layers = layer_times(ideal.timeline, bundle.manifest, bounds)
    return Estimate(
        device,
        precision,
        clock,
        derating,
        assumptions_of(device, clock_mhz, precision, ranges),
        bounds=bounds,
        escaped={name: why for _, name, why in _vpu_operations(bundle)},
        plan=PlanTimes(bundle, ideal, layers, derating, clock, calibration_of(device)),
    )


def bundle_bounds(bundle: CompiledModel, device: Device, profile: TimingProfile) -> ModelBounds:
    """The bounds of the model that a bundle was made of."""
    groups, saved = [], {}
    found = bundle.manifest.compression
    for entry in bundle.manifest.layers:
        for group in _groups(bundle, entry):
            groups.append(group)
            # Of layers that run together each may be the one whose weights are smaller.
            saved[group.name] = found.saved.get(entry.name, 0) if found is not None else 0
    escaped = {value for value, _, _ in _vpu_operations(bundle)}
    return model_bounds(bundle.legal, groups, device, profile, escaped, saved)


def _groups(bundle: CompiledModel, entry: LayerEntry) -> Iterator[_Group]:
    """A layer, or the layers that run together in it."""
    known, values = bundle.legal.by_id, bundle.manifest.member_values
    if entry.members and all(name in values for name in entry.members):
        for name in entry.members:
            yield _Group(name, tuple(known[value] for value in values[name]))
        return
    yield _Group(entry.name, tuple(known[origin.legal] for origin in entry.operations))


def _vpu_operations(bundle: CompiledModel) -> Iterator[tuple[int, str, str]]:
    """What runs by name on the VPU: the value, what it is called, and why."""
    for entry in bundle.manifest.layers:
        for line in entry.escaped:
            owner = next((o for o in entry.operations if _is_about(line, o)), None)
            if owner is not None:
                name, _, why = line.partition(": ")
                yield owner.legal, name, why


def _is_about(line: str, origin: Origin) -> bool:
    """Whether a line of a manifest begins as `legal_operation_text` names an operation."""
    name = f"{origin.opcode} %{origin.legal}"
    return line.startswith((f"{name}:", f"{name} ("))
