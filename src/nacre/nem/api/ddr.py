"""DDR as the host sees it: it outlives runs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from nacre.base.diagnostics import InputError
from nacre.base.source import Source
from nacre.nem.model.program import Buffer
from nacre.nem.run.host import as_tensor, host_error, raw_bytes, read_level
from nacre.nem.run.memory import MemoryLevel, host_memory_bytes, place_buffers
from nacre.nem.spec.rules.running import RUN06


@dataclass(frozen=True, slots=True)
class DdrInfo:
    """How DDR is used."""

    size: int
    allocated: int  # by the buffers of the program that was loaded last, gaps included
    free: int


class Ddr:
    """The DDR of an interpreter."""

    def __init__(self, size: int, *, poison: bool) -> None:
        if size <= 0:
            raise host_error(f"DDR of {size} bytes holds nothing")
        limit = host_memory_bytes()
        if limit is not None and size > limit:
            span = Source("<host>", "").span(0, 0)
            message = f"DDR of {size} bytes is more than the {limit} bytes of this machine"
            raise InputError([RUN06.at(span, message, help="give a smaller `ddr_size`")])
        self.size = size
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
        if not self.level.contains(offset, raw.size):
            raise host_error(
                f"{raw.size} bytes at offset {offset} do not lie in DDR, which has {self.size}"
            )
        self.level.write(offset, raw)

    def read(self, offset: int, size: int) -> bytes:
        """Take bytes."""
        return read_level(self.level, offset, size)

    def read_tensor(
        self, offset: int, shape: tuple[int, ...] | int, dtype: npt.DTypeLike
    ) -> np.ndarray[Any, Any]:
        """Take an array."""
        dims = (shape,) if isinstance(shape, int) else tuple(shape)
        type_ = np.dtype(dtype)
        size = int(np.prod(dims, dtype=object)) * type_.itemsize if dims else type_.itemsize
        return as_tensor(self.read(offset, size), dims, type_)

    def load_file(self, offset: int, path: str | Path) -> None:
        """Put the bytes of a file; of a .npy file, those of its array."""
        if Path(path).suffix == ".npy":
            self.load_npy(offset, path)
            return
        try:
            self.write(offset, Path(path).read_bytes())
        except OSError as error:
            raise host_error(f"cannot read `{path}`: {error.strerror}") from None

    def load_npy(self, offset: int, path: str | Path) -> None:
        """Put the array of a .npy file."""
        self.write(offset, load_npy(path))


def load_npy(path: str | Path) -> np.ndarray[Any, Any]:
    """The array of a .npy file from a stranger: nothing in it is run."""
    try:
        array = np.load(path, allow_pickle=False, mmap_mode="r")
    except OSError as error:
        raise host_error(f"cannot read `{path}`: {error.strerror or error}") from None
    except (ValueError, EOFError, SyntaxError, TypeError, OverflowError, MemoryError) as error:
        raise host_error(f"`{path}` is no .npy file of numbers: {error}") from None
    if not isinstance(array, np.ndarray):
        array.close()
        raise host_error(f"`{path}` holds several arrays, expected one")
    return array
