"""Files written whole or not at all, alone or several that belong together.

A file that others lie beside, such as the text of a module with its constants, is the one that
commits: the others are written first, under names with their hash, so that they never replace what
the old file names. Renaming the new file over the old one is the single step from the old state to
the new; what only the old file named goes last.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import re
import secrets
import time
from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from nacre.base.locks import lock_folder

HASH_DIGITS = 16
_TEMPORARY = re.compile(r"\.nacre-[0-9a-f]{16}\.tmp")
_MOST_READS = 8  # of a file that others replace meanwhile
_MOST_LINKS = 40  # one behind the other, as systems have it

T = TypeVar("T")
Parts = Iterable[str | bytes]


def write_whole(path: Path, parts: Parts) -> None:
    """Replace a file's contents in one step: readers see the old bytes or the new, never a part.

    What is no regular file is not replaced but written to: a pipe, a device, an open file.
    """
    if is_special(path):
        _write_through(path, parts)
        return
    target = _resolve(path)
    temporary = _Temporary.write_to(target, parts)
    batch = _BATCH.get()
    if batch is not None:
        batch.append(temporary)
        return
    with temporary.remove_on_failure():
        temporary.replace_target()
    sync_folder(target.parent)


@contextlib.contextmanager
def write_together(last: Callable[[], object] | None = None) -> Iterator[None]:
    """Files that are written inside take their places at the end; where one fails, none does.

    `last` is what commits behind them, as renaming a folder that they belong to.
    """
    if _BATCH.get() is not None:
        yield
        return
    batch: list[_Temporary] = []
    token = _BATCH.set(batch)
    try:
        yield
        with _replace_files(batch, is_all=last is None):
            if last is not None:
                last()
    finally:
        _BATCH.reset(token)
        for temporary in batch:
            temporary.path.unlink(missing_ok=True)


@contextlib.contextmanager
def _replace_files(batch: list[_Temporary], *, is_all: bool) -> Iterator[None]:
    """Rename every file into place, then what the block does; if any of it fails, none stays.

    `is_all`: nothing is to come in the block, so that a single file needs no way back.
    """
    seconds: dict[Path, Path | None] = {}
    done: list[Path] = []
    try:
        for temporary in [] if is_all and len(batch) == 1 else batch:
            seconds[temporary.target] = _hard_link(temporary.target)
        for temporary in batch:
            temporary.replace_target()
            done.append(temporary.target)
        yield
    except BaseException:
        for target in done:
            second = seconds[target]
            if second is not None:
                os.replace(second, target)
            else:
                target.unlink(missing_ok=True)
        raise
    finally:
        for second in filter(None, seconds.values()):
            second.unlink(missing_ok=True)
    for folder in {temporary.target.parent for temporary in batch}:
        sync_folder(folder)
    batch.clear()


def _hard_link(target: Path) -> Path | None:
    """Another name of a file, which keeps its contents; None where there is no file."""
    if not target.exists():
        return None
    second = temporary_name(target.parent)
    os.link(target, second)
    return second


@dataclass(frozen=True)
class _Temporary:
    """A file that is written and synced, but not in its place."""

    path: Path
    target: Path
    sha256: str
    identity: tuple[int, int]  # device and inode, by which it is known under any name

    @staticmethod
    def write_to(target: Path, parts: Parts) -> _Temporary:
        path = temporary_name(target.parent)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
        try:
            handle = os.open(path, flags, 0o666)
        except OSError as error:  # which nobody knows by its temporary name
            raise OSError(error.errno, error.strerror, str(target)) from None
        digest = hashlib.sha256()
        try:
            with os.fdopen(handle, "wb") as file:
                for part in _encode(parts):
                    digest.update(part)
                    file.write(part)
                if target.exists():
                    os.chmod(path, target.stat().st_mode)
                file.flush()
                os.fsync(file.fileno())
                state = os.fstat(file.fileno())
        except BaseException:
            path.unlink(missing_ok=True)
            raise
        return _Temporary(path, target, digest.hexdigest(), (state.st_dev, state.st_ino))

    @contextlib.contextmanager
    def remove_on_failure(self) -> Iterator[None]:
        try:
            yield
        except BaseException:
            self.path.unlink(missing_ok=True)
            raise

    def replace_target(self) -> None:
        os.replace(self.path, self.target)

    def is_in_place(self) -> bool:
        return identity_of(self.target)[:2] == self.identity


@dataclass(frozen=True)
class HashedFile:
    """A file beside the one that commits: what it is called, and under which name it was written.

    `name` is what people know it as; where readers expect it there, it moves to it in the end.
    """

    name: str
    stored: str
    sha256: str


class FileSet:
    """Files that belong together, and the one among them that commits."""

    def __init__(self, target: Path) -> None:
        self._target = target
        self._folder = target.parent
        self._added: list[Path] = []
        self._files: list[HashedFile] = []
        self._commit: _Temporary | None = None

    def add(self, name: str, parts: Parts) -> HashedFile:
        """Write a file under a name with the hash of what was written."""
        if is_special(self._target):
            reason = "constants lie in a file beside it, which needs a folder"
            raise OSError(errno.EINVAL, reason, str(self._target))
        temporary = _Temporary.write_to(self._folder / name, parts)
        file = HashedFile(name, hashed_name(name, temporary.sha256), temporary.sha256)
        path = self._folder / file.stored
        with temporary.remove_on_failure():
            is_new = not path.exists()
            os.replace(temporary.path, path)
        if is_new:
            self._added.append(path)
        self._files.append(file)
        return file

    def commit(self, parts: Parts, *, moved: Iterable[HashedFile] = (), old: Iterable[str]) -> None:
        """Put the file that names the others in place.

        Files of `moved` then get their plain names. `old` are the files beside of the old state;
        those that are none of the new are deleted.
        """
        moved = list(moved)
        for file in moved:
            if (self._folder / file.name).is_dir():
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), file.name)
        if is_special(self._target):
            _write_through(self._target, parts)
            return
        target = _resolve(self._target)
        temporary = _Temporary.write_to(target, parts)
        with temporary.remove_on_failure():
            sync_folder(self._folder)
            self._commit = temporary
            # What was written together with these files comes and stays with them.
            with _replace_files(_BATCH.get() or [], is_all=False):
                temporary.replace_target()
        sync_folder(target.parent)
        for file in moved:
            os.replace(self._folder / file.stored, self._folder / file.name)
        current = {file.name if file in moved else file.stored for file in self._files}
        for name in set(old) - current:
            with contextlib.suppress(OSError):  # it only takes space
                os.unlink(self._folder / name)

    def discard(self) -> None:
        """Remove what was added, unless the file that names it is in place."""
        if self._commit is None or not self._commit.is_in_place():
            for path in self._added:
                with contextlib.suppress(OSError):
                    path.unlink()


@contextlib.contextmanager
def file_set(target: Path) -> Iterator[FileSet]:
    """Files beside `target`, which is written last and names them; nobody else writes meanwhile."""
    with lock_folder(target.parent):
        files = FileSet(target)
        try:
            yield files
        except BaseException:
            files.discard()
            raise


@contextlib.contextmanager
def make_folder(folder: Path) -> Iterator[None]:
    """A folder that is made, and taken away again where nothing comes to lie in it."""
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    try:
        yield
    except BaseException:
        with contextlib.suppress(OSError):
            for path in missing:
                path.rmdir()
        raise


def hashed_name(name: str, digest: str) -> str:
    """`weights.safetensors` with its hash: `weights.0123456789abcdef.safetensors`."""
    stem, dot, suffix = name.rpartition(".")
    return f"{stem}.{digest[:HASH_DIGITS]}{dot}{suffix}"


def is_stored_name_of(stored: str, name: str) -> bool:
    """Whether a file is what `name` is called with a hash, or without."""
    stem, dot, suffix = name.rpartition(".")
    hashed = rf"{re.escape(stem)}\.[0-9a-f]{{{HASH_DIGITS}}}{re.escape(dot + suffix)}"
    return stored == name or re.fullmatch(hashed, stored) is not None


def is_temporary(name: str) -> bool:
    """Whether a file is what an interrupted write has left."""
    return _TEMPORARY.fullmatch(name) is not None


def read_unchanged(path: Path, read: Callable[[], T]) -> T:
    """Read a file and what lies beside it; again, where the file was replaced meanwhile."""
    for attempt in range(_MOST_READS):
        before = identity_of(path)
        try:
            result = read()
        except Exception:
            if identity_of(path) == before:
                raise
        else:
            if identity_of(path) == before:
                return result
        time.sleep(0.01 * attempt)
    return read()


def identity_of(path: Path) -> tuple[int, ...]:
    """What changes whenever a file is replaced or written."""
    try:
        state = path.stat()
    except (OSError, ValueError):
        return ()
    return (state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder outlast a crash, where the system can."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:  # it may be written and not read, or is none that can be opened
        return
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.EBADF, errno.ENOTSUP):
            raise
    finally:
        os.close(handle)


_BATCH: ContextVar[list[_Temporary] | None] = ContextVar("_BATCH", default=None)


def _resolve(path: Path) -> Path:
    try:
        return path.resolve()
    except RuntimeError:  # what Python 3.11 and 3.12 call a link that leads to itself
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path)) from None


def is_special(path: Path) -> bool:
    """Whether something is there that cannot be replaced: a terminal, a pipe, /dev/null.

    The path is asked, not what it resolves to: /dev/stdout leads to a pipe that has no name.
    """
    return (path.exists() and not path.is_file()) or _open_file(path) is not None


def _open_file(path: Path) -> int | None:
    """The number of the open file of this process that a name stands for: /dev/stdout, /dev/fd/3.

    It goes on where it stands, and whoever opened it may write there afterwards: to replace it
    would lose what they write.
    """
    own = Path("/proc/self/fd")
    for _ in range(_MOST_LINKS):
        if path.name.isdecimal() and own.is_dir() and path.parent.resolve() == own.resolve():
            return int(path.name)
        if not path.is_symlink():
            return None
        path = path.parent / os.readlink(path)
    return None


def _write_through(path: Path, parts: Parts) -> None:
    handle = _open_file(path)
    with path.open("wb") if handle is None else os.fdopen(os.dup(handle), "wb") as stream:
        stream.writelines(_encode(parts))


def temporary_name(folder: Path) -> Path:
    """A name that nothing has, and by which what an interrupted write leaves is known."""
    return folder / f".nacre-{secrets.token_hex(8)}.tmp"


def _encode(parts: Parts) -> Iterable[bytes]:
    return (part.encode() if isinstance(part, str) else part for part in parts)
