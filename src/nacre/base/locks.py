"""One writer at a time in a folder."""

from __future__ import annotations

import contextlib
import errno
import os
import time
from collections.abc import Iterator
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

MOST_SECONDS = 60.0
_PAUSE_SECONDS = 0.02


@contextlib.contextmanager
def lock_folder(folder: Path) -> Iterator[None]:
    """Wait until nobody else writes here; OSError after a minute.

    The lock is on the folder itself and goes with the process: nothing is left behind. A system or
    a folder that has no locks is written without.
    """
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:  # what is wrong with the folder, writing there will say
        yield
        return
    try:
        _wait(handle, folder)
        yield
    finally:
        os.close(handle)


def _wait(handle: int, folder: Path) -> None:
    if fcntl is None:
        return
    end = time.monotonic() + MOST_SECONDS
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno not in (errno.EAGAIN, errno.EACCES):
                return  # no locks there
        else:
            return
        if time.monotonic() > end:
            raise OSError(errno.EBUSY, "another program is writing there", str(folder))
        time.sleep(_PAUSE_SECONDS)
