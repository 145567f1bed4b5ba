"""DDR as the host sees it: it outlives runs."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from nacre.base.diagnostics import InputError
from nacre.base.elements import GRAPH_TYPES
from nacre.base.excerpt import backquote
from nacre.base.hints import setting
from nacre.base.packing import NIBBLE_TYPES, UNPACKED_TYPES
from nacre.base.source import Span, read_stream, whole_file
from nacre.nem.model.program import Buffer
from nacre.nem.run.memory.host import (
    as_tensor,
    host_error,
    raw_bytes,
    read_level,
    tensor_bytes,
    whole_number,
)
from nacre.nem.run.memory.host_span import HOST
from nacre.nem.run.memory.memory import MemoryLevel, host_memory_bytes, place_buffers
from nacre.nem.spec.rules.running import RUN06

MAX_AXES = 64  # of a NumPy array


@dataclass(frozen=True, slots=True)
class DdrInfo:
    """How DDR is used."""

    size: int
    allocated: int  # by the buffers of the program that was loaded last, gaps included
    free: int


class Ddr:
    """The DDR of an interpreter."""

    def __init__(self, size: int, *, poison: bool) -> None:
        self.size = require_size(size, "ddr_size")
        smaller = setting("`--ddr-size`", "`ddr_size`")
        require_host_memory(size, "DDR", help=f"give a smaller {smaller}")
        self._poison = poison

    @cached_property
    def level(self) -> MemoryLevel:
        """The bytes, reserved when they are first needed."""
        return MemoryLevel("DDR", self.size, self._poison)

    def place(self, buffers: Iterable[Buffer]) -> None:
        """Lay out the buffers of a program that has been loaded."""
        in_ddr = [b for b in buffers if b.level == "DDR"]
        place_buffers(in_ddr, {"DDR": self.level})

    def info(self) -> DdrInfo:
        """How DDR is used."""
        allocated = self.level.allocated
        return DdrInfo(self.size, allocated, self.size - allocated)

    def write(self, offset: int, data: object) -> None:
        """Put bytes, or the bytes of an array."""
        raw = raw_bytes(data)
        start = whole_number(offset, "the offset")
        if not self.level.contains(start, raw.size):
            raise self._outside_error(raw.size, start)
        self.level.write(start, raw)

    def read(self, offset: int, size: int) -> bytes:
        """Take bytes."""
        return read_level(self.level, offset, size)

    def read_tensor(
        self, offset: int, shape: tuple[int, ...] | int, dtype: npt.DTypeLike
    ) -> np.ndarray[Any, Any]:
        """Take an array."""
        dims, type_ = _shape(shape), _number_type(dtype)
        return as_tensor(self.read(offset, tensor_bytes(dims, type_)), dims, type_)

    def load_file(self, offset: int, path: str | Path) -> None:
        """Put the bytes of a file; of a .npy file, those of its array."""
        if Path(path).suffix == ".npy":
            self.load_npy(offset, path)
            return
        try:
            with Path(path).open("rb") as file:
                size = os.fstat(file.fileno()).st_size
                raw = b"" if size > self.size else read_stream(file, self.size, size)
        except OSError as error:
            raise host_error(f"cannot read `{path}`: {error.strerror}") from None
        except ValueError as error:
            raise host_error(f"cannot read {backquote(str(path))}: {error}") from None
        if size > self.size:
            raise self._outside_error(size, whole_number(offset, "the offset"))
        self.write(offset, raw)

    def _outside_error(self, size: int, start: int) -> InputError:
        return host_error(
            f"{size} bytes at offset {start} do not lie in DDR, which has {self.size} bytes"
        )

    def load_npy(self, offset: int, path: str | Path) -> None:
        """Put the array of a .npy file."""
        self.write(offset, load_npy(path))


_MAGIC = b"\x93NUMPY"


def load_npy(path: str | Path, option: str | None = None) -> np.ndarray[Any, Any]:
    """The array of a .npy file from a stranger: nothing in it is run.

    InputError stands at the file, and says for which `option` it was given, if for one.
    """
    place = whole_file(str(path))
    help_ = None if option is None else f"{option} takes a .npy file of one array"
    try:
        _require_one_array(Path(path), place, help_)
        # A header can ask for more elements than there are numbers; NumPy would warn as well.
        with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
            return np.lib.format.open_memmap(path, mode="r")
    except OSError as error:
        message = f"cannot read `{path}`: {error.strerror or error}"
        raise host_error(message, help_, place) from None
    except InputError:
        raise
    except Exception as error:  # a stranger's file can be wrong in any way
        message = f"`{path}` is no .npy file of plain numbers{_reason(error)}"
        raise host_error(message, help_, place) from None


def _require_one_array(path: Path, place: Span, help_: str | None) -> None:
    """InputError by a file's first bytes: NumPy would take others for archives or pickles."""
    with path.open("rb") as file:
        start = file.read(len(_MAGIC))
    if start.startswith(b"PK"):
        message = f"`{path}` is an archive: it holds several arrays, expected one"
        raise host_error(message, help_, place)
    if start != _MAGIC:
        raise host_error(f"`{path}` is no .npy file of plain numbers", help_, place)


def _reason(error: Exception) -> str:
    """What NumPy says, where that helps: not that pickles might be trusted, nor how it reads."""
    if "ickle" in str(error) or "objects" in str(error):
        return ""
    return ", it is cut short" if "mmap" in str(error) else f": {error}"


def require_size(size: object, what: str) -> int:
    """The size of a memory; InputError where it is none."""
    number = whole_number(size, f"`{what}`")
    if number <= 0:
        raise host_error(f"`{what}` is {number}, expected at least 1 byte")
    return number


def require_host_memory(size: int, what: str, help: str | None = None) -> None:
    """Raise InputError for a memory that this machine cannot hold, before it is reserved."""
    limit = host_memory_bytes()
    if limit is not None and size > limit:
        message = f"{what} takes {size} bytes, more than the {limit} of this machine"
        raise InputError([RUN06.at(HOST, message, help=help)])


def _shape(shape: object) -> tuple[int, ...]:
    given = shape if isinstance(shape, tuple | list) else (shape,)
    dims = tuple(whole_number(dim, "a dimension of the shape") for dim in given)
    if any(dim < 0 for dim in dims) or len(dims) > MAX_AXES:
        raise host_error(f"{backquote(str(list(dims)))} is no shape of an array")
    return dims


def _number_type(dtype: npt.DTypeLike) -> np.dtype[Any]:
    own = GRAPH_TYPES[dtype].dtype if isinstance(dtype, str) and dtype in GRAPH_TYPES else None
    try:
        type_ = np.dtype(dtype)
    except (TypeError, ValueError) as error:
        if own is None:
            raise host_error(f"`dtype` is no type of numbers: {error}") from None
        return own
    if own is not None and own != type_:  # `i8` has 8 bits here and 8 bytes there
        message = f"`dtype` is `{dtype}`, which is {own} in NEM and {type_} to NumPy"
        named = f"`ml_dtypes.{own}`" if own.name in NIBBLE_TYPES else f"`numpy.{own}`"
        raise host_error(message, f"give {named} or `numpy.{type_}`")
    is_number = type_.kind not in "USmM" and type_.name not in UNPACKED_TYPES
    if type_.hasobject or not is_number or not type_.itemsize:
        raise host_error(f"`dtype` is {type_}, expected a type of numbers")
    return type_
