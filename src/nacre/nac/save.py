"""Models in files: weights inside, or beside in a `.safetensors`."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Literal, cast, get_args

from msgspec.structs import replace

from nacre.base.diagnostics import InputError
from nacre.base.excerpt import backquote
from nacre.base.files import file_set
from nacre.base.source import whole_file
from nacre.base.suggest import did_you_mean
from nacre.nac.format.cursor import Broken
from nacre.nac.format.external import (
    external_parts,
    external_path,
    read_external,
    staged_path,
    weights_path,
    with_weights_digest,
)
from nacre.nac.format.file import map_file, parts, read
from nacre.nac.format.values import Data, NacFile
from nacre.nac.rules.building import NAC50
from nacre.nac.run.model import NacModel

Storage = Literal["internal", "external"]


def save(model: NacModel, path: str | os.PathLike[str], weights: Storage = "internal") -> None:
    """Write a model, whole or not at all; the `.nac` commits, its weights lie beside it.

    A file whose weights stay inside is written as it was read, byte for byte. Weights go over such
    as the file of that name has beside it; any other `.safetensors` of that name is kept:
    FileExistsError. InputError for a folder, and for weights that are neither inside nor beside.
    """
    target = Path(path)
    _require_storage(target, weights)
    if target.is_symlink() and os.path.islink(os.path.realpath(target)):
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(target))
    is_internal = weights == "internal"
    file = (
        model.file
        if model.file.header.is_internal == is_internal
        else move_weights(model, is_internal)
    )
    file = with_weights_digest(file, None)
    written = list(parts(file))  # a limit is found before anything is written
    with file_set(target) as files:
        old = _names_beside(target)
        if is_internal:
            files.commit(cast("list[bytes]", written), old=old)
            return
        names = model.weights.names
        tensors = [(names[id_], model.weights.tensor(id_)) for id_ in names]
        beside = cast("list[bytes]", list(external_parts(tensors, file.header.quant)))
        _require_own_weights(target)
        stored = files.add(external_path(target).name, beside)
        written = list(parts(with_weights_digest(file, stored.sha256)))
        files.commit(cast("list[bytes]", written), moved=[stored], old=old)


def _require_storage(target: Path, weights: object) -> None:
    """Refuse what cannot be meant, before anything is written; InputError has all of it."""
    findings = []
    if not isinstance(weights, str) or weights not in get_args(Storage):
        shown = (
            backquote(weights, 40) if isinstance(weights, str) else f"a {type(weights).__name__}"
        )
        hint = did_you_mean(weights, get_args(Storage)) if isinstance(weights, str) else None
        message = f"`weights` is {shown}, expected `internal` or `external`"
        findings.append(NAC50.at(whole_file(str(target)), message, help=hint))
    if target.is_dir():
        message = f"{backquote(str(target))} is a folder, expected the name of a file"
        remedy = "name a file in it, such as `model.nac`"
        findings.append(NAC50.at(whole_file(str(target)), message, help=remedy))
    elif not target.parent.is_dir():
        message = f"the folder {backquote(str(target.parent))} does not exist"
        findings.append(NAC50.at(whole_file(str(target)), message, help="make it first"))
    if findings:
        raise InputError(findings)


def _names_beside(target: Path) -> set[str]:
    """The weights that only an interrupted writer can have left; those in use have a fixed name."""
    try:
        found = staged_path(target, read(target))
    except InputError:
        return set()
    return set() if found is None else {found.name}


def _require_own_weights(target: Path) -> None:
    """FileExistsError where somebody else's weights lie in the place of those of a file."""
    beside = external_path(target)
    if beside.is_file() and not _belongs_to(target, beside):
        reason = f"{backquote(beside.name)} is there already and is not the weights of such a file"
        remedy = "choose another name, or remove it if nobody needs it"
        raise FileExistsError(errno.EEXIST, f"{reason}; {remedy}", str(beside))


def _belongs_to(target: Path, beside: Path) -> bool:
    """Whether a file refers to the weights beside it: they have all that it names.

    Or they are those of the file before, whose place the weights of this one have yet to take.
    """
    try:
        file = read(target)
        if weights_path(target, file) != beside:
            return True
        wanted = {named.text for named in file.data.parameters}
        return not file.header.is_internal and wanted <= read_external(map_file(beside)).names
    except (InputError, Broken):
        return False


def move_weights(model: NacModel, is_internal: bool) -> NacFile:
    """The file of a model with its weights inside or outside."""
    file = model.file
    tensors = tuple(model.weights.tensor(id_) for id_ in model.weights.names) if is_internal else ()
    data = Data(file.data.parameters, file.data.inputs, tensors)
    header = replace(file.header, is_internal=is_internal)
    return NacFile(header, {**file.sections, "DATA": data}, file.gaps)
