"""What documents are called inside a packed file, and the includes that must say so.

Files that include each other by relative paths keep their places to each other, so that includes
stay as they were written. Nothing else of where they lay is told: absolute paths, and links that
lead to one file by two names, become paths inside.
"""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from nacre.nem.bytecode.library import SHIPPED, BytecodeSource, included_name, shipped_name
from nacre.nem.model.file import File
from nacre.nem.syntax.ast import StringLit

_UNNAMED = "program.nem"  # a text that came from no file
_ODD = re.compile(r"[\\\0\n\r:]")  # what names inside do not have
Files = Mapping[str, File]
Names = dict[str, str]


def file_key(file: File) -> str:
    """What a file is known by, whoever includes it."""
    return file.source.name if file.is_builtin else f"{_path_of(file).resolve()}"


def document_names(files: Files) -> Names:
    """A name for each file, by its key; where some would clash, a folder for each group."""
    shipped = {key: _shipped(file) for key, file in files.items() if _shipped(file)}
    groups = _groups({key: file for key, file in files.items() if key not in shipped})
    names = shipped | {key: name for group in groups for key, name in _relative(group).items()}
    if _is_sound(names, files, shipped):
        return names
    apart = {key: name for key, name in shipped.items() if files[key].is_builtin}
    taken = {SHIPPED}
    for group in _groups({key: file for key, file in files.items() if key not in apart}):
        folder = _unique(_plain(Path(_folder(group)).name) or "root", taken)
        apart |= {key: f"{folder}/{name}" for key, name in _relative(group).items()}
    return apart


def changed_includes(files: Files, names: Names) -> dict[str, dict[str, str]]:
    """By key of a file: the includes that would not lead to what they mean, and those that do."""
    present = set(names.values())
    changed: dict[str, dict[str, str]] = {}
    for key, file in files.items():
        own = names[key]
        for text, target in _references(file):
            meant = names.get(file_key(target))
            if meant is not None and included_name(present, own, text) != meant:
                path = posixpath.relpath(meant, posixpath.dirname(own) or ".")
                changed.setdefault(key, {})[text] = path
    return changed


def _references(file: File) -> Iterator[tuple[str, File]]:
    """What a document includes, as it is written, and where it leads."""
    document = file.parsed.document
    literals = [include.path for include in document.includes]
    if document.device is not None and isinstance(document.device.target, StringLit):
        literals.append(document.device.target)
    texts = {literal.start: literal.value for literal in literals}
    for span, target in (*file.includes, *filter(None, [file.device_file])):
        yield texts[span.start], target


def _shipped(file: File) -> str:
    """The name of a file that nacre ships, or of a copy that a packed file brought along."""
    source = file.source
    if file.is_builtin:
        return shipped_name(source.name.rpartition(":")[2])
    if isinstance(source, BytecodeSource) and source.member.startswith(f"{SHIPPED}/"):
        return source.member
    return ""


def _path_of(file: File) -> Path:
    source = file.source
    path = Path(os.path.abspath(source.path or _UNNAMED))
    if isinstance(source, BytecodeSource) and len(source.library.entries) > 1:
        return path / source.member
    return path


def _groups(files: Files) -> list[dict[str, Path]]:
    """The files that relative includes join, or one packed file, with their paths."""
    paths = {key: _path_of(file) for key, file in files.items()}
    group_of = {key: {key: path} for key, path in paths.items()}
    for key, file in files.items():
        for text, target in _references(file):
            other = file_key(target)
            if other in paths and (
                _is_relative(paths[key], text, paths[other]) or _is_packed_with(file, target)
            ):
                joined = group_of[key] | group_of[other]
                group_of |= dict.fromkeys(joined, joined)
    return list({id(group): group for group in group_of.values()}.values())


def _is_packed_with(file: File, other: File) -> bool:
    one, two = file.source, other.source
    if not (isinstance(one, BytecodeSource) and isinstance(two, BytecodeSource)):
        return False
    return one.library is two.library


def _is_relative(path: Path, text: str, target: Path) -> bool:
    leads_to = os.path.normpath(path.parent / text)
    return not os.path.isabs(text) and leads_to == str(target)


def _folder(group: Mapping[str, Path]) -> str:
    return os.path.commonpath([path.parent for path in group.values()])


def _relative(group: Mapping[str, Path]) -> Names:
    folder, taken = _folder(group), set[str]()
    return {
        key: _unique(_plain(path.relative_to(folder).as_posix()), taken)
        for key, path in group.items()
    }


def _plain(name: str) -> str:
    return _ODD.sub("_", name.encode(errors="replace").decode())


def _unique(name: str, taken: set[str]) -> str:
    """The name, with a number where it is taken."""
    stem, suffix = posixpath.splitext(name)
    number, made = 1, name
    while made in taken:
        number += 1
        made = f"{stem}-{number}{suffix}"
    taken.add(made)
    return made


def _is_sound(names: Names, files: Files, shipped: Iterable[str]) -> bool:
    """Whether names are each there once, and no include leads to what it does not mean."""
    present = set(names.values())
    own = [name for key, name in names.items() if key not in shipped]
    if len(present) < len(names) or any(name.startswith(f"{SHIPPED}/") for name in own):
        return False
    return not any(
        file_key(target) not in names and included_name(present, names[key], text)
        for key, file in files.items()
        for text, target in _references(file)
    )
