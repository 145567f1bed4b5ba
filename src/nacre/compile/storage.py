"""Bundles in folders: `model.nem`, `weights.safetensors`, `manifest.json`, and both modules.

`model.core` is the model as it came, `legal.core` what the plan is held to.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import msgspec
import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as save_tensors

from nacre.base.diagnostics import InputError
from nacre.base.files import write_whole
from nacre.base.source import Unreadable, read_bytes, whole_file
from nacre.compile.bundle import Bundle
from nacre.compile.consistency import mismatch
from nacre.compile.manifest import FORMAT, Manifest
from nacre.compile.rules import CMP07
from nacre.core.module import Module
from nacre.core.storage import load as load_module
from nacre.core.storage import save as save_module

PROGRAM, WEIGHTS, MANIFEST = "model.nem", "weights.safetensors", "manifest.json"
MODEL, LEGAL = "model.core", "legal.core"
MODULES = (MODEL, f"{MODEL}.safetensors", LEGAL, f"{LEGAL}.safetensors")
_MOST_BYTES = 1 << 34  # of a file


def save(bundle: Bundle, folder: Path) -> None:
    """Write a bundle; the manifest comes last, so that a folder with one is whole."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / MANIFEST).unlink(missing_ok=True)
    packed = np.frombuffer(bundle.weights, np.uint8)
    files = {
        PROGRAM: bundle.program.encode(),
        WEIGHTS: save_tensors({"weights": packed} if packed.size else {}),
    }
    for name, content in files.items():
        write_whole(folder / name, [content])
    for name in MODULES:
        (folder / name).unlink(missing_ok=True)
    save_module(bundle.source, folder / MODEL)
    save_module(bundle.legal, folder / LEGAL)
    for name in MODULES:
        if (folder / name).is_file():
            files[name] = (folder / name).read_bytes()
    hashes = {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
    described = _signed(msgspec.structs.replace(bundle.manifest, sha256=hashes))
    text = msgspec.json.format(msgspec.json.encode(described), indent=1)
    write_whole(folder / MANIFEST, [text, b"\n"])


def load(folder: Path) -> Bundle:
    """Read a bundle; InputError with CMP07 where a part is missing, damaged or of another kind."""
    described = _manifest(folder)
    named = [name for name in MODULES if name in described.sha256]
    files = {name: _content(folder, name) for name in (PROGRAM, WEIGHTS, MODEL, LEGAL, *named)}
    for name, content in files.items():
        if described.sha256.get(name) != hashlib.sha256(content).hexdigest():
            raise _damaged(folder / name, "is not the file that the manifest was written for")
    try:
        tensors = load_tensors(files[WEIGHTS])
    except SafetensorError as error:
        raise _damaged(folder / WEIGHTS, f"cannot be read: {error}") from None
    packed = tensors["weights"].tobytes() if "weights" in tensors else b""
    try:
        program = files[PROGRAM].decode()
    except UnicodeDecodeError as error:
        raise _damaged(folder / PROGRAM, f"is no text: {error}") from None
    module, legal = _module(folder / MODEL), _module(folder / LEGAL)
    whole = msgspec.structs.replace(described, sha256={})
    bundle = Bundle(module, program, packed, whole, legal)
    problem = mismatch(bundle)
    if problem is not None:
        raise _damaged(folder / MANIFEST, problem)
    return bundle


def _module(path: Path) -> Module:
    try:
        return load_module(path)
    except InputError as error:
        raise _damaged(path, f"holds no module: {error.diagnostics[0].message}") from None


def _content(folder: Path, name: str) -> bytes:
    raw = read_bytes(folder / name, limit=_MOST_BYTES)
    if isinstance(raw, Unreadable):
        raise _damaged(folder / name, raw.reason)
    return raw


def _manifest(folder: Path) -> Manifest:
    raw = _content(folder, MANIFEST)
    try:
        found = msgspec.json.decode(raw, type=Manifest)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise _damaged(folder / MANIFEST, f"is no manifest: {error}") from None
    if found.format != FORMAT:
        raise _damaged(folder / MANIFEST, f"has the format {found.format}, expected {FORMAT}")
    if found != _signed(found):
        raise _damaged(folder / MANIFEST, "was changed after it was written")
    return found


def _signed(manifest: Manifest) -> Manifest:
    """A manifest with the hash of all else that it says, by its shortest text."""
    others = {name: value for name, value in manifest.sha256.items() if name != MANIFEST}
    bare = msgspec.structs.replace(manifest, sha256=others)
    own = hashlib.sha256(msgspec.json.encode(bare)).hexdigest()
    return msgspec.structs.replace(manifest, sha256={**others, MANIFEST: own})


def _damaged(path: Path, reason: str) -> InputError:
    return InputError([CMP07.at(whole_file(str(path)), f"{path.name} {reason}")])
