"""`nacre.compile`: a model for a device."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

from nacre.base.diagnostics import Warn
from nacre.compile.bundle.bundle import Bundle
from nacre.compile.options import Calibration, Compress, IoLayout, Precision
from nacre.compile.pipeline import OnStage, compile_module
from nacre.compile.request import Constants, module_of, options_of_request
from nacre.compile.target import target_of
from nacre.core.models import Shapes
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
    constants: Constants | None = None,
    observer: str = "mse",
    precision_map: Mapping[str | int, str] | None = None,
    accuracy_db: float | None = None,
    fallback: bool = True,
    compress: Compress | None = None,
    group_size: int | None = None,
    quantise_without: Collection[str] = (),
    io_layout: IoLayout = "model",
    ddr_bytes: int = DEFAULT_DDR_BYTES,
    on_stage: OnStage | None = None,
    warn: Warn | None = None,
    cache: bool = False,
) -> Bundle:
    """Compile a model, a module or the path of one (`.core`, `.onnx`, `.pt2`, `.nac`), to a plan.

    - `source`: also a module of PyTorch, with `example_args` as it is called, or what
      `torch.export` makes of one
    - `device`: a built-in name, a file, or a device
    - `calibration`: for integers, inputs by name with an axis of samples in front, or a list
    - `shapes`: sizes of inputs that leave them open
    - `constants`: inputs of an ONNX model that are bound to a value for good
    - `observer`: how ranges become scales: `minmax`, `percentile`, `mse` or `entropy`
    - `precision_map`: layers of an `i8` plan that stay floats, and such that stay on integers
      whatever they lose: `{"head*": "f16", "stem": "i8"}`; the last that names a layer counts
    - `accuracy_db`: the least ratio of signal to noise of the outputs of an `i8` plan, or of one
      with clusters, 15 dB else
    - `fallback`: whether layers of an `i8` plan stay floats where that ratio is missed
    - `compress`: weights that the device decompresses on their way: `exact` where that saves
      bytes, `cluster` also changes weights such that it does, as far as outputs allow
    - `group_size`: how many weights of `w8f16` and `w4f16` share a scale at the most: 32, 64 or 128
    - `quantise_without`: stages of quantisation to leave out, to compare, such as `smooth`
    - `io_layout`: in which order memory has the axes of inputs and outputs: `model`, or `native`,
      where the host transposes and the device does not
    - `on_stage`: is shown the result of every stage
    - `warn`: is told what is odd about a model but does not stand in the way
    - `cache`: whether a plan that was made before, for the same model, device and options by the
      same nacre, is taken, and a new one kept; with `on_stage` every stage is run

    InputError lists what stands in the way.
    """
    target = target_of(device)
    options = options_of_request(
        target.device, precision, ddr_bytes, calibration, observer, precision_map, fallback,
        accuracy_db, compress, group_size, quantise_without, io_layout,
    )  # fmt: skip
    module = module_of(source, shapes, example_args, constants, warn)
    if cache and on_stage is None:
        from nacre.compile.plan_cache.cache import compile_or_recall, default_cache

        return Bundle.of(compile_or_recall(module, target, options, default_cache()))
    return Bundle.of(compile_module(module, target, options, on_stage))
