"""Models of any kind that can be read, by the suffix of their file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from nacre.base.diagnostics import InputError, Warn
from nacre.base.source import whole_file
from nacre.core.module import Module
from nacre.core.opaque.calls import OpaqueCallNames
from nacre.core.rules.models import MDL01, MDL02

Shapes = Mapping[str, Sequence[int]]
Progress = Callable[[int, int], None]  # how many of how many


@dataclass(frozen=True)
class ModelFile:
    """The file of a model, and how it is asked for."""

    path: Path
    shapes: Shapes | None
    progress: Progress | None
    warn: Warn | None
    # What is computed from parameters stays computed: they may be changed later.
    keep_parameters: bool
    # Calls that stay by their names, see `from_torch`; None: what nothing knows is refused.
    opaque_calls: OpaqueCallNames | None = None


def _core(file: ModelFile) -> Module:
    from nacre.core.storage import load

    if file.shapes:
        message = "the shapes of a module in Core IR are fixed"
        raise InputError([MDL02.at(whole_file(str(file.path)), message)])
    return load(file.path)


def _onnx(file: ModelFile) -> Module:
    from nacre.core.onnx.importer import from_onnx

    kept = file.keep_parameters
    return from_onnx(
        file.path,
        file.shapes,
        progress=file.progress,
        warn=file.warn,
        keep_parameters=kept,
        keep_unknown=file.opaque_calls is not None,
    )


def _torch(file: ModelFile) -> Module:
    from nacre.core.torch.importer import from_torch

    kept = file.keep_parameters
    return from_torch(
        file.path,
        shapes=file.shapes,
        progress=file.progress,
        keep_parameters=kept,
        opaque_calls=file.opaque_calls,
    )


# How a file is read. What a reader needs is imported when it is used.
Reader = Callable[[ModelFile], Module]
# Models of other rooms, and who reads them.
READ_ELSEWHERE: Mapping[str, str] = MappingProxyType(
    {".gguf": "language models are for `nacre llm`, and one file of NAC for `nacre nac build`"}
)
READERS: Mapping[str, Reader] = MappingProxyType({".core": _core, ".onnx": _onnx, ".pt2": _torch})


def read_model(
    path: str | Path,
    shapes: Shapes | None = None,
    progress: Progress | None = None,
    warn: Warn | None = None,
    *,
    keep_parameters: bool = False,
    opaque_calls: OpaqueCallNames | None = None,
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
        help_text = READ_ELSEWHERE.get(file.suffix.lower())
        raise InputError([MDL01.at(whole_file(str(file)), message, help=help_text)])
    return reader(ModelFile(file, shapes, progress, warn, keep_parameters, opaque_calls))
