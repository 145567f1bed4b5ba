"""Models in files: weights inside, or beside in a `.safetensors`."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Literal, cast

from msgspec.structs import replace

from nacre.base.files import write_whole
from nacre.nac.format.external import external_parts, external_path
from nacre.nac.format.file import parts
from nacre.nac.format.values import Data, NacFile
from nacre.nac.run.model import NacModel

Storage = Literal["internal", "external"]


def save(model: NacModel, path: str | os.PathLike[str], weights: Storage = "internal") -> None:
    """Write a model, whole or not at all; with external weights these first.

    A file whose weights stay where they are is written as it was read, byte for byte.
    """
    target = Path(path)
    # Before anything is written beside it.
    if target.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(target))
    if target.is_symlink() and os.path.islink(os.path.realpath(target)):
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(target))
    is_internal = weights == "internal"
    file = model.file if model.file.header.is_internal == is_internal else moved(model, is_internal)
    made = list(parts(file))  # a limit is found before anything is written
    if not is_internal:
        names = model.weights.names
        tensors = [(names[id_], model.weights.tensor(id_)) for id_ in names]
        beside = list(external_parts(tensors, file.header.quant))
        write_whole(external_path(target), cast("list[bytes]", beside))
    write_whole(target, cast("list[bytes]", made))


def moved(model: NacModel, is_internal: bool) -> NacFile:
    """The file of a model with its weights inside or outside."""
    file = model.file
    tensors = tuple(model.weights.tensor(id_) for id_ in model.weights.names) if is_internal else ()
    data = Data(file.data.parameters, file.data.inputs, tensors)
    header = replace(file.header, is_internal=is_internal)
    return NacFile(header, {**file.sections, "DATA": data}, file.gaps)
