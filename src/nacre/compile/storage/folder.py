"""Bundles written and read: `model.nem`, `manifest.json`, both modules, and arrays beside them.

The program may be bytecode instead, `model.nemb`. `model.core` is the model as it came,
`legal.core` what the plan is compared with. The manifest commits: it has the hash of every other
file, and they are written first, under names with these hashes. Texts, which people open by their
names, get them afterwards.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as save_tensors

from nacre.base.diagnostics import InputError, has_errors
from nacre.base.digits import is_digits
from nacre.base.excerpt import safe
from nacre.base.files import (
    FileSet,
    HashedFile,
    file_set,
    is_stored_name_of,
    make_folder,
    read_unchanged,
)
from nacre.base.source import Source, Unreadable, decode_source, read_bytes, whole_file
from nacre.compile.bundle.compiled_model import CompiledModel
from nacre.compile.bundle.consistency import mismatch
from nacre.compile.bundle.manifest import FORMAT, FORMATS, Manifest
from nacre.compile.placement.stage import WeightsPart
from nacre.compile.rules import CMP07
from nacre.compile.storage.checked_bundles import WORTH_A_MARK, CheckedBundles
from nacre.compile.storage.interface import interface_of
from nacre.compile.storage.names import (
    BYTECODE,
    INTERFACE,
    LEGAL,
    MANIFEST,
    MODEL,
    MOST_BYTES,
    PROGRAM,
    SHARED,
    TEXTS,
    WEIGHTS,
    is_part,
    names_of_present_bundle,
    path_of_part,
    require_own_folder,
)
from nacre.compile.storage.shared import OpenFiles, SharedConstants
from nacre.compile.storage.sharing import (
    constants_of,
    derived_constants,
    restore_weights,
    stored_weights,
)
from nacre.core.module import Module
from nacre.core.storage import Reference, load_source, referring_text, stored_constants
from nacre.core.tensor_file import (
    TensorFile,
    TensorProblem,
    parse_tensor_file,
    tensor_file_parts,
)
from nacre.core.verify import verify
from nacre.nem.bytecode.packing import pack, unpack


def save(
    bundle: CompiledModel,
    folder: Path,
    *,
    force: bool = False,
    reference: bool = True,
    bytecode: bool = False,
    shared: SharedConstants | None = None,
    checked: CheckedBundles | None = None,
) -> None:
    """Write a bundle into a folder, which is made; a bundle that is there is replaced in one step.

    InputError for a folder that holds something else, unless it is forced. Without `reference` the
    model as it came is left out; with `bytecode` the program is `model.nemb`, not a text. Constants
    that are `shared` lie in the folder above already.
    """
    if not force:
        require_own_folder(folder)
    has_model = reference and bundle.has_reference
    with make_folder(folder), file_set(folder / MANIFEST) as files:
        old = names_of_present_bundle(folder)
        given = bundle.source if has_model else interface_of(bundle.source)
        name = MODEL if has_model else INTERFACE
        texts, arrays = _add_modules(files, name, given, bundle.legal, shared)
        constants = constants_of(bundle.legal)
        stored, rest = stored_weights(bundle.weights, bundle.parts, constants)
        tensors = {str(at): np.frombuffer(raw, np.uint8) for at, raw in rest.items()}
        arrays.append(files.add(WEIGHTS, [save_tensors(tensors)]))
        texts.append(_add_program(files, bundle.program, bytecode))
        hashes = {file.name: file.sha256 for file in texts}
        hashes |= {file.stored: file.sha256 for file in arrays}
        manifest = msgspec.structs.replace(bundle.manifest, stored=stored, sha256=hashes)
        text = msgspec.json.format(msgspec.json.encode(_sign(manifest)), indent=1)
        files.commit([text, b"\n"], moved=texts, old=old)
    if checked is not None and _is_worth_a_mark(bundle) and _is_sound(bundle):
        checked.add(text + b"\n")


def _is_sound(bundle: CompiledModel) -> bool:
    """Whether that is known without another check of the program."""
    return bundle.is_known_sound and mismatch(bundle) is None


def _is_worth_a_mark(bundle: CompiledModel) -> bool:
    return len(bundle.program) >= WORTH_A_MARK


def _add_program(files: FileSet, program: str, bytecode: bool) -> HashedFile:
    return files.add(BYTECODE, [pack(program)]) if bytecode else files.add(PROGRAM, [program])


def _add_modules(
    files: FileSet, name: str, given: Module, legal: Module, shared: SharedConstants | None
) -> tuple[list[HashedFile], list[HashedFile]]:
    """Both modules: their texts, and the files with their constants."""
    first, second = stored_constants(given), stored_constants(legal)
    arrays: list[HashedFile] = []
    references: dict[str, Reference] = {}
    own: dict[str, Reference] = {}
    if first.tensors:
        arrays.append(files.add(f"{name}.safetensors", tensor_file_parts(first.tensors)))
        own = {key: Reference(arrays[0].stored, key) for key in first.tensors}
        references = derived_constants(second, first.tensors, arrays[0].stored)
    if shared is not None:
        arrays.append(shared.file)
        references |= shared.references(second)
    left = {key: second.tensors[key] for key in second.tensors if key not in references}
    if left:
        rest = files.add(f"{LEGAL}.safetensors", tensor_file_parts(left))
        arrays.append(rest)
        references |= {key: Reference(rest.stored, key) for key in left}
    texts = [
        files.add(name, [referring_text(given, first, own)]),
        files.add(LEGAL, [referring_text(legal, second, references)]),
    ]
    return texts, arrays


def load(
    folder: Path, above: OpenFiles | None = None, checked: CheckedBundles | None = None
) -> CompiledModel:
    """Read a bundle; InputError with CMP07 where a part is missing, damaged or of another kind.

    Bundles that are read with the same `above` have what they share once in memory. What is marked
    in `checked` is not checked again, and what is found to be sound is marked there.
    """
    opened = above or OpenFiles(folder.parent)
    return read_unchanged(folder / MANIFEST, lambda: _load_and_judge(folder, opened, checked))


def load_checked_before(folder: Path) -> CompiledModel:
    """The same of a bundle that is known to be one that was saved after its program was checked."""
    opened = OpenFiles(folder.parent)
    return read_unchanged(
        folder / MANIFEST, lambda: replace(_load(folder, opened)[0], was_checked=True)
    )


def _load_and_judge(
    folder: Path, above: OpenFiles, checked: CheckedBundles | None
) -> CompiledModel:
    bundle, manifest = _load(folder, above)
    marks = checked if _is_worth_a_mark(bundle) else None
    if marks is not None and marks.has(manifest):
        return replace(bundle, was_checked=True)
    problem = mismatch(bundle)
    if problem is not None:
        raise _damage(folder / MANIFEST, problem)
    if marks is not None:
        marks.add(manifest)
    return bundle


def _load(folder: Path, above: OpenFiles) -> tuple[CompiledModel, bytes]:
    """A bundle whose parts are whole, and its manifest as it stands there."""
    described, raw = _manifest(folder)
    hashes = {name: h for name, h in described.sha256.items() if name != MANIFEST}
    has_model = INTERFACE not in hashes
    for name in hashes:
        if not is_part(name):
            raise _damage(folder / MANIFEST, f"names {name[:80]!r}, which is no file of a bundle")
    program = BYTECODE if BYTECODE in hashes else PROGRAM
    for name in (program, MODEL if has_model else INTERFACE, LEGAL):
        if name not in hashes:
            raise _damage(folder / MANIFEST, f"does not name {name}")
    own = {name: h for name, h in hashes.items() if not is_stored_name_of(name, SHARED)}
    files = {name: _content(folder, name, digest) for name, digest in own.items()}
    module = _module(folder / (MODEL if has_model else INTERFACE), files)
    others = {name: _shared(above, name, h) for name, h in hashes.items() if name not in own}
    legal = _module(folder / LEGAL, files, others)
    weights, parts = _weights(folder, described, files, legal)
    text = _program(folder / program, files)
    plain = msgspec.structs.replace(described, format=FORMAT, stored=None, sha256={})
    named = str(folder / program)
    return CompiledModel(module, text, weights, plain, legal, parts, has_model, named), raw


def _content(folder: Path, name: str, digest: str) -> bytes:
    """What a file holds, which must be what the manifest was written for."""
    raw = _read(folder, path_of_part(folder, name, digest).name)
    if hashlib.sha256(raw).hexdigest() != digest:
        raise _damage(folder / name, "is not the file that the manifest was written for")
    return raw


def _shared(above: OpenFiles, name: str, digest: str) -> TensorFile:
    """Constants that lie in the folder above, read unless they were."""
    if digest not in above.tensors:
        raw = _content(above.folder, name, digest)
        try:
            above.tensors[digest] = parse_tensor_file(raw)
        except TensorProblem as problem:
            raise _damage(above.folder / name, str(problem)) from None
    return above.tensors[digest]


def _read(folder: Path, name: str) -> bytes:
    raw = read_bytes(folder / name, limit=MOST_BYTES)
    if isinstance(raw, Unreadable):
        raise _damage(folder / name, raw.reason)
    return raw


def _source(path: Path, files: Mapping[str, bytes]) -> Source:
    found = decode_source(files[path.name], name=str(path), path=path)
    if isinstance(found, Unreadable):
        raise _damage(path, f"is no text: {found.reason}")
    return found


def _program(path: Path, files: Mapping[str, bytes]) -> str:
    """The text of a program, whichever way it is kept."""
    if path.name != BYTECODE:
        return _source(path, files).text
    try:
        return unpack(files[path.name])
    except InputError as error:
        raise _damage(path, f"holds no program: {error.diagnostics[0].message}") from None


def _module(
    path: Path, files: Mapping[str, bytes], others: Mapping[str, TensorFile] | None = None
) -> Module:
    """A module that keeps all promises of the graph IR."""
    arrays: dict[str, bytes | TensorFile] = dict(others or {})
    arrays |= {name: raw for name, raw in files.items() if name not in TEXTS}
    try:
        module = load_source(_source(path, files), None, arrays)
    except InputError as error:
        raise _damage(path, f"holds no module: {error.diagnostics[0].message}") from None
    findings = verify(module, "nacre-1")
    if has_errors(findings):
        first = next(d for d in findings if d.severity == "error")
        raise _damage(path, f"holds a module that is not sound: {first.code}, {first.message}")
    return module


def _weights(
    folder: Path, described: Manifest, files: Mapping[str, bytes], legal: Module
) -> tuple[bytes, tuple[WeightsPart, ...]]:
    names = [name for name in files if name.startswith(WEIGHTS.partition(".")[0] + ".")]
    if len(names) != 1:
        raise _damage(folder / MANIFEST, f"names {len(names)} files of weights, expected one")
    path = folder / names[0]
    try:
        tensors = load_tensors(files[names[0]])
    except (SafetensorError, ValueError, KeyError, TypeError, OverflowError) as error:
        raise _damage(path, f"cannot be read: {error}") from None
    if any(tensor.dtype != np.uint8 for tensor in tensors.values()):
        raise _damage(path, "holds something else than bytes")
    stored = described.stored
    if stored is None:
        return (tensors["weights"].tobytes() if "weights" in tensors else b""), ()
    if not all(is_digits(key) and len(key) < 16 for key in tensors):
        raise _damage(path, "holds something else than parts of the weights")
    rest = {int(key): tensor.tobytes() for key, tensor in tensors.items()}
    try:
        return restore_weights(stored, rest, constants_of(legal))
    except ValueError as problem:
        raise _damage(folder / MANIFEST, str(problem)) from None


def _manifest(folder: Path) -> tuple[Manifest, bytes]:
    if folder.is_dir() and not any(map(os.path.lexists, (folder / MANIFEST, folder / PROGRAM))):
        message = f"{safe(str(folder))} is no bundle: it has no {MANIFEST}"
        help_ = "a bundle is a folder that `nacre compile` wrote"
        raise InputError([CMP07.at(whole_file(str(folder)), message, help=help_)])
    raw = _read(folder, MANIFEST)
    try:
        manifest = msgspec.json.decode(raw, type=Manifest)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise _damage(folder / MANIFEST, f"is no manifest: {error}") from None
    if manifest.format not in FORMATS:
        raise _damage(folder / MANIFEST, f"has the format {manifest.format}, expected {FORMAT}")
    if manifest.sha256.get(MANIFEST) != _manifest_hash(msgspec.json.decode(raw)):
        raise _damage(folder / MANIFEST, "was changed after it was written")
    return manifest, raw


def _sign(manifest: Manifest) -> Manifest:
    """A manifest with the hash of all else that it says."""
    own = _manifest_hash(msgspec.to_builtins(manifest))
    return msgspec.structs.replace(manifest, sha256={**manifest.sha256, MANIFEST: own})


def _manifest_hash(said: dict[str, Any]) -> str:
    """The hash of all else that a manifest says, by its shortest text.

    It is of what stands in the file: what later versions add to manifests is not in older ones.
    """
    others = {name: value for name, value in said["sha256"].items() if name != MANIFEST}
    return hashlib.sha256(msgspec.json.encode({**said, "sha256": others})).hexdigest()


def _damage(path: Path, reason: str) -> InputError:
    return InputError([CMP07.at(whole_file(str(path)), f"{path.name} {reason}")])
