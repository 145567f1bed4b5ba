"""Programs as bytecode, with the files that they include."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from nacre.base.diagnostics import InputError
from nacre.base.source import Source
from nacre.nem.bytecode.library import BytecodeSource, shipped_name
from nacre.nem.bytecode.packing import PackOptions, content_of, pack_contents
from nacre.nem.model.files import File, default_roots, load
from nacre.nem.syntax.parser import parse

_UNNAMED = "program.nem"  # a text that came from no file


def pack_sources(
    sources: Sequence[Source], options: PackOptions, *, with_shipped: bool = False
) -> bytes:
    """A file of programs and what they include; InputError where one is missing or wrong.

    Files that nacre ships come along only where that is asked for: they are there with nacre.
    """
    own = [load(parse(source), default_roots(source.path)) for source in sources]
    files = {_key(file): file for root in own for file in (root, *_needed(root, with_shipped))}
    _judge(files.values())
    entries = {_key(file) for file in own}
    names = _names(files) if len(files) > 1 else dict.fromkeys(files, "")
    return pack_contents(
        [(names[key], key in entries, content_of(files[key].source, options)) for key in files]
    )


def _key(file: File) -> str:
    """What a file is known by, whoever includes it."""
    source = file.source
    return source.name if file.is_builtin else f"{_path_of(source).resolve()}"


def _needed(root: File, with_shipped: bool) -> Iterator[File]:
    """What a program includes, and the file that has its device."""
    found = list(root.reachable())
    if root.device_file is not None:
        found += [*root.device_file[1].reachable(), root.device_file[1]]
    return (file for file in found if with_shipped or not file.is_builtin)


def _judge(files: Iterable[File]) -> None:
    found = [d for file in files for d in (*file.parsed.diagnostics, *file.findings)]
    problems = [d for d in found if d.severity == "error"]
    if problems:
        raise InputError(problems)


def _names(files: Mapping[str, File]) -> dict[str, str]:
    """What files are called inside: their paths from the folder that holds them all."""
    paths = {key: _path_of(file.source) for key, file in files.items() if not file.is_builtin}
    folder = os.path.commonpath([path.parent for path in paths.values()])
    made = {key: path.relative_to(folder).as_posix() for key, path in paths.items()}
    shipped = {key: shipped_name(key.rpartition(":")[2]) for key in files if key not in paths}
    return made | shipped


def _path_of(source: Source) -> Path:
    path = Path(os.path.abspath(source.path or _UNNAMED))
    if isinstance(source, BytecodeSource) and len(source.library.entries) > 1:
        return path / source.member
    return path
