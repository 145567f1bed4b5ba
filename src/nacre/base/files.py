"""Files written whole or not at all."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterable
from pathlib import Path


def write_whole(path: Path, parts: Iterable[str | bytes]) -> None:
    """Replace a file's contents in one step: readers see the old bytes or the new, never a part."""
    try:
        target = path.resolve()
    except RuntimeError:  # what Python 3.11 and 3.12 call a link that leads to itself
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path)) from None
    if target.exists() and not target.is_file():  # a terminal, a pipe, /dev/null
        with target.open("wb") as stream:
            stream.writelines(_encoded(parts))
        return
    mode = target.stat().st_mode if target.exists() else 0o666 & ~_umask()
    handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name[:64]}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.writelines(_encoded(parts))
        os.chmod(temporary, mode)
        os.replace(temporary, target)
    except BaseException:
        os.unlink(temporary)
        raise


def _encoded(parts: Iterable[str | bytes]) -> Iterable[bytes]:
    return (part.encode() if isinstance(part, str) else part for part in parts)


def _umask() -> int:
    # The only way to read it is to set it.
    mask = os.umask(0)
    os.umask(mask)
    return mask
