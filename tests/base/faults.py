"""Disks that fill and calls of the system that fail, for tests of whatever writes files."""

from __future__ import annotations

import errno
import io
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

CALLS = ("fsync", "replace", "open", "link", "mkdir")


def _is_write(name: str, args: tuple[Any, ...]) -> bool:
    return name != "open" or (len(args) > 1 and bool(args[1] & os.O_CREAT))


def _no_room(place: object = None, error: int = errno.ENOSPC) -> OSError:
    return OSError(error, os.strerror(error), str(place))


@contextmanager
def failing(number: int, *names: str, error: int = errno.ENOSPC) -> Iterator[list[int]]:
    """The given one of the system's calls of these names fails; yields how many there were.

    Nothing is synced: what the disk does is not what a test of a process can see, and takes long.
    """
    count = [0]

    def counted(name: str) -> Callable[..., Any]:
        real = getattr(os, name)

        def call(*args: Any, **given: Any) -> Any:  # noqa: ANN401
            if _is_write(name, args):
                count[0] += 1
                if count[0] == number:
                    raise _no_room(args[0], error)
            return None if name == "fsync" else real(*args, **given)

        return call

    with pytest.MonkeyPatch.context() as patch:
        for name in names:
            patch.setattr(os, name, counted(name))
        yield count


@contextmanager
def full_after(size: int) -> Iterator[list[int]]:
    """A disk on which so many bytes have room; yields how many were left.

    As on real ones, the call of write that meets the end writes a part, and the next one fails.
    """
    left = [size]

    def take(wanted: int) -> int:
        if wanted and not left[0]:
            raise _no_room()
        taken = min(wanted, left[0])
        left[0] -= taken
        return taken

    with _written_by(take):
        yield left


@contextmanager
def counting() -> Iterator[list[int]]:
    """Yields how many bytes were written before each call of write, and in the end in all."""
    offsets = [0]

    def take(wanted: int) -> int:
        offsets.append(offsets[-1] + wanted)
        return wanted

    with _written_by(take):
        yield offsets


@contextmanager
def _written_by(take: Callable[[int], int]) -> Iterator[None]:
    """Files of which each call of write writes so many of its bytes as `take` says."""

    class Raw(io.FileIO):
        def write(self, data: Any, /) -> int:  # noqa: ANN401
            view = memoryview(data).cast("B")
            return super().write(view[: take(len(view))])

    def opened(handle: int, mode: str = "r", *args: Any, **given: Any) -> Any:  # noqa: ANN401
        if mode == "wb":
            return io.BufferedWriter(Raw(handle, "wb"))
        return real_open(handle, mode, *args, **given)

    real_open = os.fdopen
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fdopen", opened)
        patch.setattr(os, "fsync", lambda handle: None)
        yield
