"""Models of any kind that can be read, by the suffix of their file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType

from nacre.base.diagnostics import InputError, Warn
from nacre.base.source import whole_file
from nacre.core.module import Module
from nacre.core.rules.models import MDL01, MDL02

Shapes = Mapping[str, Sequence[int]]
Progress = Callable[[int, int], None]  # how many of how many


def _core(
    path: Path, shapes: Shapes | None, progress: Progress | None, warn: Warn | None
) -> Module:
    from nacre.core.storage import load

    if shapes:
        message = "the shapes of a module in Core IR are fixed"
        raise InputError([MDL02.at(whole_file(str(path)), message)])
    return load(path)


def _onnx(
    path: Path,
    shapes: Shapes | None,
    progress: Progress | None,
    warn: Warn | None,
    keep_parameters: bool = False,
) -> Module:
    from nacre.core.onnx.importer import from_onnx

    return from_onnx(path, shapes, progress=progress, warn=warn, keep_parameters=keep_parameters)


def _torch(
    path: Path,
    shapes: Shapes | None,
    progress: Progress | None,
    warn: Warn | None,
    keep_parameters: bool = False,
) -> Module:
    from nacre.core.torch.importer import from_torch

    return from_torch(path, shapes=shapes, progress=progress, keep_parameters=keep_parameters)


# How a file is read. What a reader needs is imported when it is used.
Reader = Callable[[Path, Shapes | None, Progress | None, Warn | None], Module]
READERS: Mapping[str, Reader] = MappingProxyType({".core": _core, ".onnx": _onnx, ".pt2": _torch})
# The same, and what is computed from parameters stays computed: they may be changed later.
KEEPING_READERS: Mapping[str, Reader] = MappingProxyType(
    {
        **READERS,
        ".onnx": partial(_onnx, keep_parameters=True),
        ".pt2": partial(_torch, keep_parameters=True),
    }
)


def read_model(
    path: str | Path,
    shapes: Shapes | None = None,
    progress: Progress | None = None,
    warn: Warn | None = None,
    *,
    readers: Mapping[str, Reader] = READERS,
) -> Module:
    """A model from a file; `shapes` gives sizes to inputs that leave them open.

    `warn` is told what is odd about it, InputError says what is wrong with it. `readers` has the
    kinds of files by suffix: rooms above know more of them.
    """
    file = Path(path)
    reader = readers.get(file.suffix.lower())
    if reader is None:
        known = ", ".join(f"`{suffix}`" for suffix in readers)
        message = f"cannot tell what `{file.name}` is by its suffix, expected {known}"
        raise InputError([MDL01.at(whole_file(str(file)), message)])
    return reader(file, shapes, progress, warn)
