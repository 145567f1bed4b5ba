"""Models of any kind as modules of Core IR, with the names that their weights have."""

from __future__ import annotations

from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from nacre.base.diagnostics import InputError, Warn
from nacre.base.source import whole_file
from nacre.core.models import KEEPING_READERS, Progress, Shapes, read_model
from nacre.core.module import CoreOperation, Module
from nacre.core.values import Array, Literal
from nacre.nac.models import SUFFIX, lifted
from nacre.nac.rules.building import NAC50

if TYPE_CHECKING:
    from nacre.nac.run.model import NacModel

_SCALARS = {"ConstI64": np.int64, "ConstF32": np.float32, "ConstF64": np.float64}


def module_of(
    source: object,
    shapes: Shapes | None = None,
    example_args: tuple[Any, ...] | None = None,
    progress: Progress | None = None,
    warn: Warn | None = None,
) -> Module:
    """The module of a source; InputError where it is no model."""
    if isinstance(source, Module):
        return source
    if is_nac(source):
        return lifted(loaded(source), shapes)
    if isinstance(source, str | Path):
        return read_model(source, shapes, progress, warn, readers=KEEPING_READERS)
    return _torch(source, example_args, shapes)


def is_nac(source: object) -> bool:
    """Whether a source is a file of NAC, read or not."""
    from nacre.nac.run.model import NacModel

    if isinstance(source, str | Path):
        return Path(source).suffix.lower() == SUFFIX
    return isinstance(source, NacModel)


def loaded(source: Any) -> NacModel:  # noqa: ANN401 - a path or a model
    """The model of such a source."""
    from nacre.nac.run.model import NacModel, load

    return source if isinstance(source, NacModel) else load(source)


def _torch(source: Any, example_args: tuple[Any, ...] | None, shapes: Shapes | None) -> Module:  # noqa: ANN401
    if not hasattr(source, "state_dict"):
        message = f"found a {type(source).__name__}, expected a model"
        help_ = "give a path (.onnx, .pt2, .core, .nac), a module of Core IR or one of PyTorch"
        raise refused(message, help_)
    from nacre.core.torch.importer import from_torch

    return from_torch(source, example_args or (), shapes=shapes, keep_parameters=True)


def key_of(array: Array) -> tuple[str, tuple[int, ...], bytes]:
    """What tells an array from others: arrays with the same one have the same elements."""
    raw = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    return str(array.dtype), array.shape, blake2b(raw.data, digest_size=20).digest()


def elements_of(op: CoreOperation) -> Array | None:
    """The elements of a constant."""
    if op.opcode in _SCALARS:
        return np.array(op.attributes["value"], _SCALARS[op.opcode])
    data = op.attributes.get("data")
    return data.array if op.opcode == "ConstTensor" and isinstance(data, Literal) else None


def refused(message: str, help: str | None = None) -> InputError:
    """The refusal of what was asked for."""
    return InputError([NAC50.at(whole_file("<build>"), message, help=help)])
