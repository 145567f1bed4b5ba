"""Whether a model fits a device, how fast it is there, and where the time goes."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from nacre.base.diagnostics import InputError, InternalError, Warn
from nacre.compile.bundle.bundle import Bundle
from nacre.compile.estimate.assumptions import assumptions_of, clock_of, derated_figures
from nacre.compile.estimate.bounds import ModelBounds, model_bounds
from nacre.compile.estimate.from_bundle import bundle_bounds
from nacre.compile.estimate.in_floats import cycles_in_floats
from nacre.compile.estimate.layer_times import layer_times
from nacre.compile.estimate.result import Estimate, PlanTimes
from nacre.compile.legalise.origins import legal_operation_text
from nacre.compile.options import Calibration, Compress, IoLayout, Precision
from nacre.compile.partition.stage import Partition
from nacre.compile.pipeline import OnStage, brings_scales, compile_module
from nacre.compile.placement.capacity import are_beyond
from nacre.compile.request import Constants, module_of, options_of_request, require_clock
from nacre.compile.rules import CMP04, CMP08, CMP09, CMP10
from nacre.compile.sampling.draw import draw_inputs
from nacre.compile.target import target_of
from nacre.core.models import Shapes
from nacre.core.module import Module
from nacre.nem.model.calibration import calibration_of
from nacre.nem.model.devices import Device
from nacre.nem.run.timing.profile import timing_profile
from nacre.nem.spec.limits import DEFAULT_DDR_BYTES

_SEED, _SAMPLES = 1, 2  # of stand-in calibration data

# Codes of something that was asked for: the model and the device may be all right.
_REQUESTS = frozenset(rule.code for rule in (CMP04, CMP08, CMP09, CMP10))


def estimate(
    source: object,
    device: str | Path | Device,
    precision: Precision = "f16",
    *,
    calibration: Calibration | None = None,
    shapes: Shapes | None = None,
    example_args: tuple[object, ...] | None = None,
    constants: Constants | None = None,
    observer: str = "mse",
    precision_map: Mapping[str | int, str] | None = None,
    accuracy_db: float | None = None,
    fallback: bool = True,
    compress: Compress | None = None,
    group_size: int | None = None,
    quantise_without: Collection[str] = (),
    io_layout: IoLayout = "model",
    clock_mhz: float | None = None,
    ddr_bytes: int = DEFAULT_DDR_BYTES,
    on_stage: OnStage | None = None,
    warn: Warn | None = None,
) -> Estimate:
    """Compile a model for a device and time it; a model that does not fit is an answer too.

    It takes what `nacre.compile` takes, and `clock_mhz` for milliseconds. i8 without `calibration`
    is timed with random ranges and all on integers, and once more all in f16 (`most_cycles`): no
    time depends on values, but data may show that layers have to stay floats. InputError where the
    request itself is wrong.
    """
    if clock_mhz is not None:
        require_clock(clock_mhz)
    aim = target_of(device)
    target = aim.device
    options = options_of_request(
        target, precision, ddr_bytes, calibration, observer, precision_map, fallback,
        accuracy_db, compress, group_size, quantise_without, io_layout,
    )  # fmt: skip
    module = module_of(source, shapes, example_args, constants, warn)
    is_stand_in = options.precision == "i8" and calibration is None and not brings_scales(module)
    ranges = _describe_scales(options.precision, calibration, is_stand_in)
    if is_stand_in:
        options = replace(options, calibration=_random_data(module, ddr_bytes), fallback=False)
    recorder = _StageRecorder(on_stage)
    base = Estimate(
        target,
        options.precision,
        clock_mhz or clock_of(target),
        derated_figures(target, options.precision),
        assumptions_of(target, clock_mhz, options.precision, ranges),
    )
    try:
        bundle = Bundle.of(compile_module(module, aim, options, recorder.record))
    except InputError as error:
        if any(d.code in _REQUESTS or not d.code.startswith("CMP") for d in error.diagnostics):
            raise
        return replace(base, problems=error.diagnostics, **recorder.partial_result(target))
    partial = recorder.partial_result(target, bundle)
    most = cycles_in_floats(module, aim, options) if is_stand_in and fallback else None
    plan = _time_bundle(bundle, base, partial["bounds"])
    return replace(base, **partial, plan=plan, most_cycles=most)


def _random_data(module: Module, ddr_bytes: int) -> Calibration | None:
    """Random calibration data; none for inputs that DDR cannot hold, which are refused anyway."""
    if are_beyond(module.input_types.values(), ddr_bytes):
        return None
    return draw_inputs(module, _SEED, (_SAMPLES,))


def _describe_scales(precision: str, calibration: object, is_stand_in: bool) -> str:
    """Where the scales of an i8 plan come from; nothing for floats."""
    if precision != "i8":
        return ""
    if calibration is not None:
        return "calibrated with the data that was given"
    if is_stand_in:
        return "the ranges are those of random inputs, and no layer is kept in f16 for accuracy"
    return "the scales are the model's own"


def _time_bundle(bundle: Bundle, base: Estimate, bounds: ModelBounds) -> PlanTimes:
    ideal = bundle.time(clock_mhz=base.clock_mhz)
    if ideal.status != "completed":
        raise InternalError(f"the plan for {base.device.name} does not end: {ideal.sentence()}")
    layers = layer_times(ideal.timeline, bundle.manifest, bounds)
    calibration = calibration_of(base.device)
    return PlanTimes(bundle, ideal, layers, base.derating, base.clock_mhz, calibration)


class _StageRecorder:
    """Keeps what the stages made, and shows it on."""

    def __init__(self, on_stage: OnStage | None) -> None:
        self._on_stage = on_stage
        self._partition: Partition | None = None

    def record(self, stage: str, result: object) -> None:
        """A stage is done."""
        if isinstance(result, Partition):
            self._partition = result
        if self._on_stage is not None:
            self._on_stage(stage, result)

    def partial_result(self, device: Device, bundle: Bundle | None = None) -> dict[str, Any]:
        """The bounds and what runs on the VPU, as far as the stages came."""
        partition = self._partition
        if partition is None:
            return {}
        module = partition.legal.module
        escaped = partition.legal.escaped
        profile = timing_profile(device)
        if bundle is not None and bundle.manifest.compression is not None:
            bounds = bundle_bounds(bundle, device, profile)
        else:
            bounds = model_bounds(module, partition.layers, device, profile, escaped)
        named = {
            legal_operation_text(partition.legal, module.by_id[v]): why
            for v, why in escaped.items()
        }
        return {"bounds": bounds, "escaped": named}
