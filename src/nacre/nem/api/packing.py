"""Programs as bytecode, with the files that they include; and such files as what they were."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from nacre.base.diagnostics import InputError
from nacre.base.source import Source
from nacre.nem.api.document_names import changed_includes, document_names, file_key
from nacre.nem.bytecode.document import Content
from nacre.nem.bytecode.library import Library, RefusedSource
from nacre.nem.bytecode.magic import SUFFIX
from nacre.nem.bytecode.packing import PackOptions, content_of, pack_contents
from nacre.nem.model.file import File
from nacre.nem.model.files import default_roots, load
from nacre.nem.syntax.formatter import format_source
from nacre.nem.syntax.parser import parse

_UNNAMED = "program.nem"  # the only document of a file, which needs no name there


@dataclass(frozen=True)
class GatheredFiles:
    """Programs and what they include, by their keys; which of them are there for themselves."""

    files: Mapping[str, File]
    entries: frozenset[str]

    @property
    def paths(self) -> list[Path]:
        """Where those lie that came from files."""
        sources = (file.source for file in self.files.values() if not file.is_builtin)
        return [source.path for source in sources if source.path is not None]


def gather_files(
    sources: Sequence[Source], include_roots: tuple[Path, ...] = (), *, with_shipped: bool = False
) -> GatheredFiles:
    """Programs and what they include; InputError where one is missing or wrong.

    Files that nacre ships come along only where that is asked for: they are there with nacre.
    """
    own = [load(parse(source), default_roots(source.path, include_roots)) for source in sources]
    needed = (f for root in own for f in root.needed() if with_shipped or not f.is_builtin)
    files: dict[str, File] = {}
    for file in (*own, *needed):
        files.setdefault(file_key(file), file)
    _judge(files.values())
    return GatheredFiles(files, frozenset(file_key(file) for file in own))


def pack_files(gathered: GatheredFiles, options: PackOptions) -> bytes:
    """A file of programs and what they include."""
    files = gathered.files
    names = document_names(files) if len(files) > 1 else dict.fromkeys(files, "")
    changed = changed_includes(files, names)
    return pack_contents(
        [
            (
                names[key],
                key in gathered.entries,
                content_of(file.source, options, changed.get(key, {})),
            )
            for key, file in files.items()
        ]
    )


def pack_sources(
    sources: Sequence[Source],
    options: PackOptions,
    *,
    include_roots: tuple[Path, ...] = (),
    with_shipped: bool = False,
) -> bytes:
    """A file of programs and what they include; InputError where one is missing or wrong."""
    return pack_files(gather_files(sources, include_roots, with_shipped=with_shipped), options)


def _judge(files: Iterable[File]) -> None:
    found = [d for file in files for d in (*file.parsed.diagnostics, *file.findings)]
    problems = [d for d in found if d.severity == "error"]
    if problems:
        raise InputError(problems)


def unpacked_files(library: Library) -> dict[str, str | bytes]:
    """All that a file holds, by path: texts; bytecode where a name says so, as includes have it."""
    files: dict[str, str | bytes] = {}
    inside: dict[str, list[str]] = {}
    for name in library.entries:
        around = _bytecode_around(name)
        if around is None:
            files[name or _UNNAMED] = format_source(library.document(name))
        else:
            inside.setdefault(around, []).append(name)
    for around, names in inside.items():
        files[around] = pack_contents(
            [(name[len(around) + 1 :], name == names[0], _content(library, name)) for name in names]
        )
    return files


def _bytecode_around(name: str) -> str | None:
    """The outermost part of a path that is the name of bytecode."""
    path = PurePosixPath(name)
    ways = (*reversed(path.parents), path)
    return next((str(way) for way in ways if way.suffix == SUFFIX), None)


def _content(library: Library, name: str) -> Content:
    source = library.document(name)
    if isinstance(source, RefusedSource):
        raise InputError([source.finding])
    return source.content
