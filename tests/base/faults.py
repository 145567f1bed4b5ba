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
    """The given one of the system's calls of these names fails; yields how many there were."""
    count = [0]

    def counted(name: str) -> Callable[..., Any]:
        real = getattr(os, name)

        def call(*args: Any, **given: Any) -> Any:  # noqa: ANN401
            if _is_write(name, args):
                count[0] += 1
                if count[0] == number:
                    raise _no_room(args[0], error)
            return real(*args, **given)

        return call

    with pytest.MonkeyPatch.context() as patch:
        for name in names:
            patch.setattr(os, name, counted(name))
        yield count


@contextmanager
def full_after(size: int) -> Iterator[list[int]]:
    """A disk on which so many bytes have room; yields how many were left."""
    real = io.BufferedWriter.write
    left = [size]

    class Writer(io.BufferedWriter):
        def write(self, data: Any, /) -> int:  # noqa: ANN401
            left[0] -= len(data)
            if left[0] < 0:
                real(self, bytes(data)[: max(0, left[0] + len(data))])
                raise _no_room()
            return real(self, data)

    def opened(handle: int, mode: str = "r", *args: Any, **given: Any) -> Any:  # noqa: ANN401
        if mode == "wb":
            return Writer(io.FileIO(handle, "wb"))
        return real_open(handle, mode, *args, **given)

    real_open = os.fdopen
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fdopen", opened)
        patch.setattr(os, "fsync", lambda handle: None)
        yield left
