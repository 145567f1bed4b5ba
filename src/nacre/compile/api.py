"""`nacre.compile`: a model for a device."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from nacre.base.suggest import did_you_mean
from nacre.compile.bundle import Bundle
from nacre.compile.options import OBSERVERS, PRECISIONS, Options, Precision
from nacre.compile.pipeline import OnStage, compile_module
from nacre.compile.quantise.calibration import Calibration
from nacre.compile.target import request_error, target_of
from nacre.core.models import Shapes, read_model
from nacre.core.module import Module
from nacre.nem.model.devices import Device
from nacre.nem.spec.limits import DEFAULT_DDR_BYTES


def compile(  # the name that users call
    source: object,
    device: str | Path | Device,
    precision: Precision = "f16",
    *,
    calibration: Calibration | None = None,
    shapes: Shapes | None = None,
    example_args: tuple[object, ...] | None = None,
    observer: str = "mse",
    precision_map: Mapping[str | int, str] | None = None,
    ddr_bytes: int = DEFAULT_DDR_BYTES,
    on_stage: OnStage | None = None,
) -> Bundle:
    """Compile a model, a module or the path of one (`.core`, `.onnx`, `.pt2`), to a plan.

    - `source`: also a module of PyTorch, with `example_args` as it is called, or what
      `torch.export` makes of one
    - `device`: a built-in name, a file, or a device
    - `calibration`: for `i8`, inputs by name with an axis of samples in front, or a list of inputs
    - `shapes`: sizes of inputs that leave them open
    - `observer`: how a range of floats becomes a scale: `minmax`, `percentile` or `mse`
    - `precision_map`: layers of an `i8` plan that stay floats: `{"head*": "f16"}`
    - `on_stage`: is shown the result of every stage

    InputError lists what stands in the way.
    """
    if precision not in PRECISIONS:
        hint = did_you_mean(str(precision), PRECISIONS)
        raise request_error(
            f"no precision `{precision}`, expected one of {', '.join(PRECISIONS)}", hint
        )
    _require_sense(observer, precision_map, ddr_bytes)
    if precision_map and precision != "i8":
        raise request_error(
            f"a precision map is for i8, and the precision is {precision}",
            "ask for the precision i8, or leave the map out",
        )
    target = target_of(device)
    module = _module(source, shapes, example_args)
    options = Options(
        target.device, precision, ddr_bytes, calibration, observer, precision_map or {}
    )
    return compile_module(module, target, options, on_stage)


def _module(
    source: object, shapes: Shapes | None, example_args: tuple[object, ...] | None
) -> Module:
    if isinstance(source, Module):
        return source
    if isinstance(source, str | Path):
        return read_model(source, shapes)
    if example_args is not None or type(source).__name__ == "ExportedProgram":
        from nacre.core.torch.importer import from_torch

        return from_torch(source, example_args or (), shapes=shapes)
    raise request_error(
        f"a model is a module or a path, found {type(source).__name__}",
        "give `example_args` beside a module of PyTorch",
    )


def _require_sense(
    observer: str,
    precision_map: Mapping[str | int, str] | None,
    ddr_bytes: int,
) -> None:
    """Refuse what does not exist, and what is of another kind."""
    if observer not in OBSERVERS:
        hint = did_you_mean(str(observer), OBSERVERS)
        raise request_error(f"no observer `{observer}`, there are {', '.join(OBSERVERS)}", hint)
    if precision_map is not None and not isinstance(precision_map, Mapping):
        raise request_error("a precision map gives layers precisions, as in {'head*': 'f16'}")
    if type(ddr_bytes) is not int or ddr_bytes <= 0:
        raise request_error(f"`ddr_bytes` is {ddr_bytes!r}, expected a number of bytes")
