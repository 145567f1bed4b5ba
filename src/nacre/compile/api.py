"""`nacre.compile`: a model for a device."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nacre.base.suggest import did_you_mean
from nacre.compile.bundle import Bundle
from nacre.compile.options import PRECISIONS, Options, Precision
from nacre.compile.pipeline import OnStage, compile_module
from nacre.compile.target import request_error, target_of
from nacre.core.module import Module
from nacre.core.storage import load
from nacre.nem.model.devices import Device
from nacre.nem.spec.limits import DEFAULT_DDR_BYTES


def compile(  # the name that users call
    source: str | Path | Module,
    device: str | Path | Device,
    precision: Precision = "f16",
    *,
    ddr_bytes: int = DEFAULT_DDR_BYTES,
    on_stage: OnStage | None = None,
) -> Bundle:
    """Compile a model, a module or the path of one (`.core`), to a plan for a device.

    `device` is a built-in name, a file, or a device. InputError lists what stands in the way.
    `on_stage` is shown the result of every stage.
    """
    if precision not in PRECISIONS:
        hint = did_you_mean(str(precision), PRECISIONS)
        raise request_error(
            f"no precision `{precision}`, expected one of {', '.join(PRECISIONS)}", hint
        )
    target = target_of(device)
    module = _module(source)
    return compile_module(module, target, Options(target.device, precision, ddr_bytes), on_stage)


_READERS: Mapping[str, Any] = {".core": load}


def _module(source: str | Path | Module) -> Module:
    if isinstance(source, Module):
        return source
    if not isinstance(source, str | Path):
        raise request_error(f"a model is a module or a path, found {type(source).__name__}")
    reader = _READERS.get(Path(source).suffix)
    if reader is None:
        known = ", ".join(_READERS)
        raise request_error(f"`{source}` is no model that can be read, expected {known}")
    found: Module = reader(source)
    return found
