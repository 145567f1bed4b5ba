"""Copies of one document, which packed files bring along, counted as one.

Two packed files that include the same text each have it inside. It defines the same devices and
families, and is found by two ways: as of a text that two files include, that is no conflict.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePath

from msgspec.structs import replace

from nacre.nem.model.file import File
from nacre.nem.syntax.ast import same_meaning
from nacre.nem.syntax.parser import ParsedSource


def merge_copies(root: File) -> None:
    """Let includes that lead to copies of a document lead to the first of them.

    Copies have one name, whatever their folder, say the same, and include the same. One of them at
    least is packed: of texts, two are two.
    """
    files = list(_included_first(root))
    if not any(isinstance(file.source, ParsedSource) for file in files):
        return
    by_name: dict[str, list[File]] = {}
    first_of: dict[int, File] = {}
    for file in (*files, root):
        file.includes = [(span, first_of.get(id(f), f)) for span, f in file.includes]
        named = by_name.setdefault(_name(file), [])
        first_of[id(file)] = next((f for f in named if _is_copy(file, f)), file)
        named.append(file)
    if root.device_file is not None:
        span, device = root.device_file
        root.device_file = (span, first_of.get(id(device), device))


def _included_first(root: File) -> Iterator[File]:
    yield from root.reachable()
    if root.device_file is not None:
        yield from root.device_file[1].reachable()
        yield root.device_file[1]


def _name(file: File) -> str:
    """The name of a document without its folder and suffix: packed, it may have another one."""
    return PurePath(file.source.name.rpartition(":")[2]).stem


def _is_copy(file: File, other: File) -> bool:
    is_packed = any(isinstance(one.source, ParsedSource) for one in (file, other))
    if not is_packed or any(one.findings or not one.parsed.is_valid for one in (file, other)):
        return False
    if [id(f) for _, f in file.includes] != [id(f) for _, f in other.includes]:
        return False
    one, two = (replace(f.parsed.document, includes=()) for f in (file, other))
    return same_meaning(one, two)
