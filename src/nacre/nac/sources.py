"""Models of any kind as modules of Core IR, with the names that their weights have."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from nacre.base.diagnostics import Warn
from nacre.core.models import Progress, Shapes, read_model
from nacre.core.module import Module
from nacre.nac.models import SUFFIX, lift_with_shapes
from nacre.nac.operations.registry import opaque_calls
from nacre.nac.rules.building import refusal

if TYPE_CHECKING:
    from nacre.nac.run.model import NacModel


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
        return lift_with_shapes(load_source(source), shapes)
    if isinstance(source, str | Path):
        kept = opaque_calls()
        return read_model(source, shapes, progress, warn, keep_parameters=True, opaque_calls=kept)
    return _torch(source, example_args, shapes)


def is_nac(source: object) -> bool:
    """Whether a source is a file of NAC, read or not."""
    from nacre.nac.run.model import NacModel

    if isinstance(source, str | Path):
        return Path(source).suffix.lower() == SUFFIX
    return isinstance(source, NacModel)


def load_source(source: Any) -> NacModel:  # noqa: ANN401 - a path or a model
    """The model of such a source."""
    from nacre.nac.run.model import NacModel, load

    return source if isinstance(source, NacModel) else load(source)


def _torch(source: Any, example_args: tuple[Any, ...] | None, shapes: Shapes | None) -> Module:  # noqa: ANN401
    if not hasattr(source, "state_dict"):
        message = f"found a {type(source).__name__}, expected a model"
        help_ = "give a path (.onnx, .pt2, .core, .nac), a module of Core IR or one of PyTorch"
        raise refusal(message, help_)
    from nacre.core.torch.importer import from_torch

    return from_torch(
        source, example_args or (), shapes=shapes, keep_parameters=True, opaque_calls=opaque_calls()
    )
