"""The folder that a plan may use: nothing outside of it, no links, no devices, whole files."""

from __future__ import annotations

import math
import mmap
import os
import re
import stat
from pathlib import Path
from typing import Any

import numpy as np

from nacre.base.excerpt import backquote
from nacre.base.files import write_whole
from nacre.core.values import Array
from nacre.nac.mep.budget import Budget
from nacre.nac.mep.values import Fault
from nacre.nac.rules.plans import NAC94, NAC95

_MOST_PATH = 1024
_FORBIDDEN = re.compile(r'[\x00-\x1f\\:*?"<>|]')


class Folder:
    """A root for files; without one there are no files at all."""

    def __init__(self, root: str | os.PathLike[str] | None, *, may_write: bool = False) -> None:
        self._root = None if root is None else Path(root)
        self._may_write = may_write

    def _path_inside(self, path: str) -> Path:
        """The place of a path; Fault where it could be anywhere but in the folder."""
        if self._root is None:
            message = f"the plan has no folder for {backquote(path)}"
            raise Fault(NAC94, message, "give the machine a `root`")
        parts = path.split("/")
        is_plain = not _FORBIDDEN.search(path) and not {"", ".", ".."} & set(parts)
        if not is_plain or len(path.encode("utf-8", "replace")) > _MOST_PATH:
            raise Fault(NAC94, f"{backquote(path)} is no plain path inside of the plan's folder")
        place = self._root
        for part in parts:
            place = place / part
            if _is_symbolic_link(place):
                raise Fault(NAC94, f"{backquote(path)} leads through a link")
        return place

    def name_of(self, path: str) -> str:
        """The name by which whoever gave the folder knows a file in it."""
        return path if self._root is None else os.fspath(self._root / path)

    def view(self, path: str) -> memoryview:
        """The bytes of a file, of which none is read before it is looked at."""
        place = self._path_inside(path)
        flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0)
        try:
            handle = os.open(place, flags | getattr(os, "O_BINARY", 0))
        except (OSError, ValueError) as error:
            raise _refusal(path, error) from None
        try:
            state = os.fstat(handle)
            if not stat.S_ISREG(state.st_mode):
                raise Fault(NAC94, f"{backquote(path)} is no file")
            if not state.st_size:
                return memoryview(b"")
            return memoryview(mmap.mmap(handle, 0, access=mmap.ACCESS_READ))
        except OSError as error:
            raise _refusal(path, error) from None
        finally:
            os.close(handle)

    def write(self, path: str, content: bytes, budget: Budget, *, append: bool) -> None:
        """Write a file, whole or not at all; appending reads what there is."""
        if not self._may_write:
            message = f"the plan may not write {backquote(path)}"
            raise Fault(NAC94, message, "give the machine `may_write=True`")
        place = self._path_inside(path)
        try:
            if place.exists() and not place.is_file():
                raise Fault(NAC94, f"{backquote(path)} is no file")
            before = b""
            if append and place.exists():
                budget.take(place.stat().st_size)
                before = place.read_bytes()
            write_whole(place, [before, content])
        except OSError as error:
            raise _refusal(path, error) from None


def _is_symbolic_link(place: Path) -> bool:
    try:
        return stat.S_ISLNK(os.lstat(place).st_mode)
    except (OSError, ValueError):
        return False  # opening it says what is wrong


def _refusal(path: str, error: Exception) -> Fault:
    said = error.strerror if isinstance(error, OSError) and error.strerror else "is no path"
    return Fault(NAC94, f"{backquote(path)} cannot be used: {said.lower()}")


# Arrays. NumPy's own reader evaluates the header; this one only knows what NumPy writes.

_MAGIC = b"\x93NUMPY"
_HEADER = re.compile(
    rb"\{'descr': '([<>|=]?[a-zA-Z]\d{1,6})', 'fortran_order': (True|False),"
    rb" 'shape': \(((?:\d{1,18}, ?)*(?:\d{1,18})?)\), ?\}\s*"
)
_MOST_AXES = 32


def read_npy(view: memoryview, path: str, budget: Budget) -> Array:
    """The array of a `.npy` file; Fault where there is none that a plan can use."""
    wide = len(view) > 8 and view[6] > 1
    head = 12 if wide else 10
    if bytes(view[:6]) != _MAGIC or len(view) < head:
        raise Fault(NAC95, f"{backquote(path)} is no .npy file")
    length = int.from_bytes(view[8:head], "little")
    match = _HEADER.fullmatch(bytes(view[head : head + min(length, 4096)]))
    if match is None or length > 4096:
        raise Fault(NAC95, f"{backquote(path)} has a header that no array of numbers has")
    descr, order, axes = (group.decode() for group in match.groups())
    dtype = _element(descr, path)
    shape = tuple(int(axis) for axis in axes.split(",") if axis.strip())
    bytes_ = math.prod(shape) * dtype.itemsize
    if bytes_ != len(view) - head - length or len(shape) > _MOST_AXES:
        message = f"has {len(view) - head - length:,} bytes behind its header, expected {bytes_:,}"
        raise Fault(NAC95, f"{backquote(path)} {message}")
    budget.take(2 * bytes_)
    flat = np.frombuffer(view[head + length :], dtype)
    if dtype.kind == "U":
        _check_characters(flat, path)
    array: Array = flat.reshape(shape, order="F" if order == "True" else "C")
    return np.array(array, dtype.newbyteorder("="), order="C")


def _element(descr: str, path: str) -> np.dtype[Any]:
    try:
        dtype = np.dtype(descr)
    except (TypeError, ValueError):
        dtype = np.dtype(object)
    if dtype.kind not in "biufU" or dtype.itemsize == 0:
        raise Fault(NAC95, f"{backquote(path)} holds {backquote(descr)}, expected numbers or texts")
    return dtype


def _check_characters(texts: Array, path: str) -> None:
    points = texts.view(texts.dtype.newbyteorder("=").str[0] + "u4")
    points = points if texts.dtype.isnative else points.byteswap()
    if bool(((points > 0x10FFFF) | ((points >= 0xD800) & (points < 0xE000))).any()):
        raise Fault(NAC95, f"{backquote(path)} has texts with characters that do not exist")
