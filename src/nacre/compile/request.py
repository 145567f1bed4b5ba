"""What a caller of `compile` or `estimate` asks for: checked, and the model brought in."""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping
from numbers import Real
from pathlib import Path
from typing import Any

from nacre.base.diagnostics import Warn
from nacre.base.suggest import did_you_mean
from nacre.compile.options import (
    COMPRESS,
    GROUP_SIZES,
    IO_LAYOUTS,
    MOST_DB,
    OBSERVERS,
    PRECISION_ALIASES,
    PRECISIONS,
    WEIGHT_BITS,
    Calibration,
    Compress,
    IoLayout,
    Options,
    Precision,
    is_judged,
)
from nacre.compile.quantise_stages import stage_problem
from nacre.compile.target import request_error
from nacre.core.models import Shapes
from nacre.core.module import Module
from nacre.core.passes.runner import require_sound
from nacre.core.rewrite.inexact.fold_floats import fold_floats
from nacre.nac.models import read_model
from nacre.nem.model.devices import Device

Constants = Mapping[str, Any]


def options_of_request(
    device: Device,
    precision: Precision,
    ddr_bytes: int,
    calibration: Calibration | None,
    observer: str,
    precision_map: Mapping[str | int, str] | None,
    fallback: bool,
    accuracy_db: float | None,
    compress: Compress | None,
    group_size: int | None,
    quantise_without: Collection[str],
    io_layout: IoLayout,
) -> Options:
    """The request as a value; what does not exist, and what is of another kind, is refused."""
    precision = PRECISION_ALIASES.get(str(precision), precision)
    _require_precision(precision, observer, precision_map)
    _require_group_size(precision, group_size)
    _require_one_of("compress", compress, (None, *COMPRESS))
    _require_one_of("io_layout", io_layout, IO_LAYOUTS)
    _require_accuracy(precision, accuracy_db, fallback, compress)
    _require_stages(precision, quantise_without)
    if type(ddr_bytes) is not int or ddr_bytes <= 0:
        raise request_error(f"`ddr_bytes` is {ddr_bytes!r}, expected a number of bytes")
    return Options(
        device, precision, ddr_bytes, calibration, observer, precision_map or {}, fallback,
        accuracy_db, compress=compress, group_size=group_size,
        quantise_without=frozenset(quantise_without), io_layout=io_layout,
    )  # fmt: skip


def _require_one_of(name: str, value: object, known: Collection[str | None]) -> None:
    if not isinstance(value, str | None) or value not in known:
        hint = did_you_mean(str(value), [name for name in known if name is not None])
        expected = " or ".join(map(repr, known))
        raise request_error(f"`{name}` is {value!r}, expected {expected}", hint)


def _require_precision(
    precision: str, observer: str, precision_map: Mapping[str | int, str] | None
) -> None:
    if precision not in PRECISIONS:
        hint = did_you_mean(str(precision), PRECISIONS)
        known = ", ".join(PRECISIONS)
        raise request_error(f"no precision `{precision}`, expected one of {known}", hint)
    if observer not in OBSERVERS:
        hint = did_you_mean(str(observer), OBSERVERS)
        raise request_error(f"no observer `{observer}`, there are {', '.join(OBSERVERS)}", hint)
    if precision_map is not None and not isinstance(precision_map, Mapping):
        raise request_error("a precision map gives layers precisions, as in {'head*': 'f16'}")
    for layer in precision_map or ():
        if type(layer) not in (str, int):
            raise request_error(f"a precision map names layers or values, found {layer!r}")
    if precision_map and precision != "i8":
        raise request_error(
            f"a precision map is for i8, and the precision is {precision}",
            "ask for the precision i8, or leave the map out",
        )


def _require_group_size(precision: str, group_size: object) -> None:
    if group_size is None:
        return
    if type(group_size) is not int or group_size not in GROUP_SIZES:
        sizes = ", ".join(map(str, GROUP_SIZES))
        raise request_error(f"`group_size` is {group_size!r}, expected one of {sizes}")
    if precision not in WEIGHT_BITS:
        known = " and ".join(WEIGHT_BITS)
        raise request_error(f"`group_size` is for {known}, and the precision is {precision}")


def _require_stages(precision: str, names: object) -> None:
    """Refuse stages that do not exist, and such that a precision does not have."""
    if isinstance(names, str) or not isinstance(names, Collection):
        raise request_error(
            f"`quantise_without` is {names!r}, expected names of stages",
            "give a list or a set, as in `quantise_without=['smooth']`",
        )
    problem = stage_problem(names, precision)
    if problem is not None:
        raise request_error(*problem)


def _require_accuracy(
    precision: str, accuracy_db: object, fallback: object, compress: object
) -> None:
    """Refuse what is no ratio, and what only a plan on integers or with clusters has."""
    if not isinstance(fallback, bool):
        raise request_error(f"`fallback` is {fallback!r}, expected True or False")
    is_number = isinstance(accuracy_db, Real) and not isinstance(accuracy_db, bool)
    if accuracy_db is not None and not (is_number and 0 < float(accuracy_db) <= MOST_DB):  # type: ignore[arg-type]
        message = (
            f"`accuracy_db` is {accuracy_db!r}, expected a number above 0 and up to {MOST_DB:g}"
        )
        raise request_error(message)
    if accuracy_db is not None and not is_judged(precision, compress):
        message = f"`accuracy_db` is for integers, and the precision is {precision}"
        raise request_error(message, "ask for i8, w8f16 or w4f16, or for `compress='cluster'`")
    if not fallback and precision != "i8":
        raise request_error(f"`fallback` is for i8, and the precision is {precision}")


def require_clock(clock_mhz: object) -> None:
    """Refuse what is no clock: anything but a positive, finite number, of Python or of NumPy."""
    is_number = isinstance(clock_mhz, Real) and not isinstance(clock_mhz, bool)
    if not is_number or not 0 < clock_mhz < float("inf"):  # type: ignore[operator]
        raise request_error(f"the clock is {clock_mhz!r} MHz, expected a positive number")


def module_of(
    source: object,
    shapes: Shapes | None = None,
    example_args: tuple[object, ...] | None = None,
    constants: Constants | None = None,
    warn: Warn | None = None,
) -> Module:
    """The module of a source: one itself, the path of a model, something of NAC or PyTorch.

    It is sound: whoever made it, stages look at its operations before they rewrite them.
    """
    module = _module_of_source(source, shapes, example_args, constants, warn)
    require_sound(module)
    return module


def _module_of_source(
    source: object,
    shapes: Shapes | None,
    example_args: tuple[object, ...] | None,
    constants: Constants | None,
    warn: Warn | None,
) -> Module:
    is_of_torch = _is_of_torch(source)
    if example_args is not None and not isinstance(example_args, tuple | list):
        raise request_error(
            f"`example_args` is a {type(example_args).__name__}, expected the arguments as a tuple",
            "give `example_args=(tensor,)`: the comma makes it one",
        )
    if example_args is not None and isinstance(source, Module | str | Path):
        what = "a module of Core IR" if isinstance(source, Module) else "a file"
        raise request_error(f"`example_args` are for a module of PyTorch, found {what}")
    if constants and not _is_onnx(source):
        raise request_error("`constants` bind inputs of an ONNX model, and this is none")
    if isinstance(source, Module):
        if shapes:
            raise request_error("`shapes` are for models that leave sizes open: a module is fixed")
        return source
    if isinstance(source, str | Path):
        return _read(source, shapes, constants, warn)
    if is_of_torch or example_args is not None:
        return _of_torch(source, shapes, example_args)
    from nacre.nac.models import lift_with_shapes
    from nacre.nac.run.model import NacModel

    if isinstance(source, NacModel):
        return fold_floats(lift_with_shapes(source, shapes))
    raise request_error(
        f"a model is a module, a `NacModel` or a path, found {type(source).__name__}",
        "give `example_args` beside a module of PyTorch",
    )


def _read(
    path: str | Path, shapes: Shapes | None, constants: Constants | None, warn: Warn | None
) -> Module:
    if not constants:
        return read_model(path, shapes, warn=warn)
    from nacre.core.onnx.importer import from_onnx

    return from_onnx(path, shapes, constants=constants, warn=warn)


def _of_torch(
    source: object, shapes: Shapes | None, example_args: tuple[object, ...] | None
) -> Module:
    from nacre.core.torch.importer import from_torch

    if example_args is None and _is_of_torch(source, "nn", "Module"):
        name = type(source).__name__
        raise request_error(
            f"`{name}` is a module of PyTorch, and nothing says with which arguments it is called",
            "give `example_args=(tensor, ...)`",
        )
    return from_torch(source, tuple(example_args or ()), shapes=shapes)


def _is_onnx(source: object) -> bool:
    return isinstance(source, str | Path) and Path(source).suffix.lower() == ".onnx"


# What PyTorch calls a model, by the package of it that has the class.
_KINDS = (("nn", "Module"), ("export", "ExportedProgram"))


def _is_of_torch(source: object, *kind: str) -> bool:
    """Whether something is a module or a program of PyTorch.

    Nobody has one who has not imported PyTorch, so it need not be imported to ask.
    """
    for package, name in [kind] if kind else _KINDS:
        class_ = getattr(sys.modules.get(f"torch.{package}"), name, None)
        if isinstance(class_, type) and isinstance(source, class_):
            return True
    return False
