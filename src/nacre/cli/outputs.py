"""Where verbs write: what must not be written over, and where they say what they wrote."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import cast

import click

from nacre.base.excerpt import backquote, safe
from nacre.base.files import (
    is_special,
    sync_folder,
    temporary_name,
    write_together,
    write_whole,
)
from nacre.cli.arrays import WrongUsage, report_write_errors
from nacre.nem.bytecode.magic import SUFFIX

STDOUT = "-"
PAGE_ENDINGS = (".html", ".htm")
_MOST_NAMED = 4  # of files that are there already

force_option = click.option(
    "--force", is_flag=True, help="Write over files that are there with other content."
)


def require_distinct_files(written: Iterable[Path], read: Iterable[str | Path] = ()) -> None:
    """UsageError for a file that would be written twice, or over one that is read.

    What is no file, as a pipe or `-`, may be both.
    """
    sources = {os.path.realpath(file) for file in map(_file_read, read) if file is not None}
    targets: set[str] = set()
    for path in written:
        target = os.path.realpath(path)
        if target in sources:
            raise click.UsageError(f"{backquote(str(path))} is read, and would be written over")
        if target in targets:
            raise click.UsageError(f"{backquote(str(path))} would be written twice")
        targets.add(target)


def _file_read(path: str | Path) -> str | Path | None:
    """The file that an argument leads to: `lib.nemb` for a document in it; None where to none."""
    with contextlib.suppress(OSError, ValueError):  # names that no file can have
        ways = [path, *(parent for parent in Path(path).parents if parent.suffix == SUFFIX)]
        return next((way for way in ways if str(way) != STDOUT and os.path.isfile(way)), None)
    return None


def require_page_name(path: Path, what: str = "a page") -> None:
    """UsageError for a name that browsers would not know, as that of a model."""
    require_ending(path, what, PAGE_ENDINGS)


def require_ending(path: Path, what: str, endings: Sequence[str]) -> None:
    """UsageError for a file whose name is that of another kind; pipes and devices have any name."""
    if path.suffix.lower() not in endings and not is_special(path):
        raise click.UsageError(f"{what} ends in {endings[0]}, found {safe(path.name)}")


def require_empty_folder(folder: Path) -> None:
    """WrongUsage for a folder with files, which would lie among those of this run, or for none."""
    name = safe(str(folder))
    try:
        if folder.exists() and any(folder.iterdir()):
            raise WrongUsage(f"cannot write to {name}: the folder is not empty")
        if not folder.absolute().parent.is_dir():
            remedy = "" if folder.absolute().parent.exists() else "; make it first"
            parent = safe(str(folder.parent))
            raise WrongUsage(f"cannot write {name}: {parent} is no folder{remedy}")
    except OSError as error:
        raise WrongUsage(f"cannot write {name}: {error.strerror}") from None


def require_unchanged(files: Mapping[Path, str | bytes], is_forced: bool) -> None:
    """UsageError where files are there with other content: what users edit is not written over."""
    changed = [] if is_forced else [path for path in files if _is_other(path, files[path])]
    if changed:
        names = ", ".join(safe(str(path)) for path in changed[:_MOST_NAMED])
        more = f" and {len(changed) - _MOST_NAMED:,} more" * (len(changed) > _MOST_NAMED)
        verb = "is" if len(changed) == 1 else "are"
        problem = f"{names}{more} {verb} there already, with other content"
        raise click.UsageError(f"{problem}; name another place, or take --force")


def _is_other(path: Path, content: str | bytes) -> bool:
    with report_write_errors(path):
        expected = content.encode() if isinstance(content, str) else content
        return path.is_file() and not is_special(path) and path.read_bytes() != expected


def echo_written(path: Path, message: str) -> None:
    """Say what was written; on standard error where it went to standard output."""
    click.echo(f"wrote {safe(str(path))}{message}", err=_is_standard_output(path))


def _is_standard_output(path: Path) -> bool:
    try:
        return str(path) == STDOUT or os.path.samestat(os.stat(path), os.fstat(1))
    except (OSError, ValueError):
        return False


def write_new_folder(
    folder: Path,
    entries: Mapping[str, Sequence[bytes | memoryview]],
    beside: Mapping[Path, str] = MappingProxyType({}),
) -> None:
    """All files or none: they are written elsewhere and the folder takes its place at the end.

    Files beside it come with it; what is to lie in the folder itself is an entry of it.
    """
    target = folder.resolve()
    with report_write_errors(folder), _temporary_folder(target.parent) as temporary:
        for name, parts in entries.items():
            path = temporary / name
            path.parent.mkdir(exist_ok=True)
            write_whole(path, cast("list[bytes]", parts))
        with write_together(last=lambda: os.replace(temporary, target)):
            for path, text in beside.items():
                write_whole(path, [text])
        sync_folder(target.parent)


@contextlib.contextmanager
def _temporary_folder(parent: Path) -> Iterator[Path]:
    """A folder that is gone in the end unless it was given another name."""
    folder = temporary_name(parent)
    folder.mkdir()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
