"""`nacre.compile`: a model for a device."""

from __future__ import annotations

from pathlib import Path

from nacre.base.suggest import did_you_mean
from nacre.compile.bundle import Bundle
from nacre.compile.options import PRECISIONS, Options, Precision
from nacre.compile.pipeline import OnStage, compile_module
from nacre.compile.target import request_error, target_of
from nacre.core.models import Shapes, read_model
from nacre.core.module import Module
from nacre.nem.model.devices import Device
from nacre.nem.spec.limits import DEFAULT_DDR_BYTES


def compile(  # the name that users call
    source: str | Path | Module,
    device: str | Path | Device,
    precision: Precision = "f16",
    *,
    shapes: Shapes | None = None,
    ddr_bytes: int = DEFAULT_DDR_BYTES,
    on_stage: OnStage | None = None,
) -> Bundle:
    """Compile a model, a module or the path of one (`.core`, `.onnx`), to a plan for a device.

    `shapes` gives sizes to inputs that leave them open. `device` is a built-in name, a file, or a
    device. InputError lists what stands in the way.
    `on_stage` is shown the result of every stage.
    """
    if precision not in PRECISIONS:
        hint = did_you_mean(str(precision), PRECISIONS)
        raise request_error(
            f"no precision `{precision}`, expected one of {', '.join(PRECISIONS)}", hint
        )
    target = target_of(device)
    module = _module(source, shapes)
    return compile_module(module, target, Options(target.device, precision, ddr_bytes), on_stage)


def _module(source: str | Path | Module, shapes: Shapes | None) -> Module:
    if isinstance(source, Module):
        return source
    if not isinstance(source, str | Path):
        raise request_error(f"a model is a module or a path, found {type(source).__name__}")
    return read_model(source, shapes)
