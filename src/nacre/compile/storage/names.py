"""What the files of a bundle are called, and which folders are a bundle's."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import msgspec

from nacre.base.diagnostics import InputError
from nacre.base.excerpt import backquote
from nacre.base.files import hashed_name, is_stored_name_of, is_temporary
from nacre.base.hints import setting
from nacre.base.source import Unreadable, read_bytes, whole_file
from nacre.compile.rules import CMP11

PROGRAM, WEIGHTS, MANIFEST = "model.nem", "weights.safetensors", "manifest.json"
BYTECODE = "model.nemb"  # in the place of the text, where a bundle is to have it so
MODEL, LEGAL = "model.core", "legal.core"
INTERFACE = "interface.core"  # in the place of the model, where a bundle is to do without
TEXTS = (PROGRAM, BYTECODE, MODEL, INTERFACE, LEGAL)  # which people open by these names
SHARED = "shared.safetensors"  # in the folder above, with a hash: what several bundles have
DATA = (WEIGHTS, SHARED, *(f"{name}.safetensors" for name in (MODEL, INTERFACE, LEGAL)))
MOST_BYTES = 1 << 34  # of a file
_SHOWN = 3  # of the files that are in the way


class _ManifestMarks(msgspec.Struct, frozen=True):
    """What every manifest of ours has, whichever its format."""

    format: int
    nacre: str
    device: str
    sha256: Mapping[str, str] = {}


def is_part(name: str) -> bool:
    """Whether a file is called as one of a bundle, with its hash or without."""
    return any(is_stored_name_of(name, part) for part in (*TEXTS, *DATA))


def path_of_part(folder: Path, name: str, digest: str) -> Path:
    """Where a file of a bundle lies: under its name, or under that with its hash before it moves.

    A writer that was interrupted behind its commit has not moved it yet.
    """
    hashed = folder / hashed_name(name, digest)
    return hashed if name in TEXTS and hashed.is_file() else folder / name


def program_path(folder: Path) -> Path:
    """The program of the bundle in a folder, which may be none."""
    marks = _marks(folder)
    hashes = {} if marks is None else marks.sha256
    name = BYTECODE if BYTECODE in hashes else PROGRAM
    return path_of_part(folder, name, hashes.get(name, ""))


def is_program_of_bundle(path: Path) -> bool:
    """Whether a file is the program of a bundle, whose manifest has its hash."""
    is_named = any(is_stored_name_of(path.name, name) for name in (PROGRAM, BYTECODE))
    return is_named and _marks(path.parent) is not None


def names_of_present_bundle(folder: Path) -> set[str]:
    """The files of the bundle that is in a folder."""
    marks = _marks(folder)
    if marks is None:
        return set()
    named = {name: digest for name, digest in marks.sha256.items() if is_part(name)}
    return {*named, *(hashed_name(name, digest) for name, digest in named.items())}


def require_own_folder(folder: Path) -> None:
    """InputError where a folder holds something, and no bundle."""
    if not folder.is_dir() or _marks(folder) is not None:
        return
    others = [name for name in sorted(os.listdir(folder)) if not _is_leftover(name)]
    if not others:
        return
    shown = ", ".join(backquote(name) for name in others[:_SHOWN])
    more = f" and {len(others) - _SHOWN} more" if len(others) > _SHOWN else ""
    message = f"{backquote(str(folder))} is no bundle and not empty: it holds {shown}{more}"
    force = setting("`--force`", "`force=True`")
    help_ = f"name a new folder; {force} writes into this one all the same"
    raise InputError([CMP11.at(whole_file(str(folder)), message, help=help_)])


def _is_leftover(name: str) -> bool:
    """Whether a file is what an interrupted writer leaves before there is a manifest."""
    return is_temporary(name) or (is_part(name) and name not in (*TEXTS, *DATA))


def _marks(folder: Path) -> _ManifestMarks | None:
    raw = read_bytes(folder / MANIFEST, limit=MOST_BYTES)
    if isinstance(raw, Unreadable):
        return None
    try:
        return msgspec.json.decode(raw, type=_ManifestMarks)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return None
