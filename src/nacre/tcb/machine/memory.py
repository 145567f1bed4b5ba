"""Flat memories: bytes by their physical addresses, and which of them have been written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from nacre.base.diagnostics import Diagnostic, InputError
from nacre.base.excerpt import backquote
from nacre.base.source import whole_file
from nacre.base.suggest import did_you_mean
from nacre.kernels.interface.layouts import Bytes, Mask
from nacre.tcb.image import Image, Placement, Port
from nacre.tcb.rules.running import TCB53, TCB58

# What a byte that nobody wrote reads as: NaN in every float type, -1 in every signed one.
POISON = 0xFF

HostData = bytes | bytearray | memoryview | npt.NDArray[Any]


class FlatMemory:
    """The bytes of one memory, as far as something lies in it."""

    def __init__(self, name: str, size: int) -> None:
        self.name = name
        self.data: Bytes = np.full(size, POISON, np.uint8)
        self.written: Mask = np.zeros(size, np.bool_)

    def write(self, address: int, data: Bytes) -> None:
        """Put bytes, which then count as written."""
        self.data[address : address + data.size] = data
        self.written[address : address + data.size] = True

    def read(self, address: int, size: int) -> bytes:
        """Bytes; those that nobody wrote read as poison."""
        part = slice(address, address + size)
        return np.where(self.written[part], self.data[part], POISON).astype(np.uint8).tobytes()


class Memories:
    """All memories of an image, with its constants and what the host gives in their places."""

    def __init__(self, image: Image, inputs: Mapping[str, HostData]) -> None:
        self._image = image
        self._places = _named_places(image)
        self.levels = {name: FlatMemory(name, size) for name, size in _extents(image).items()}
        for constant in image.constants:
            data = np.frombuffer(constant.data, np.uint8)
            self.levels[constant.memory].write(constant.address, data)
        for name, given in inputs.items():
            self._fill(name, given)

    def read(self, name: str) -> bytes:
        """The bytes of a port or of a buffer; InputError where there is none of that name."""
        place = self._place(name)
        return self.levels[place.memory].read(place.address, place.size)

    def _fill(self, name: str, given: HostData) -> None:
        place = self._place(name)
        data = np.frombuffer(np.ascontiguousarray(given).tobytes(), np.uint8) if isinstance(
            given, np.ndarray) else np.frombuffer(given, np.uint8)  # fmt: skip
        if data.size != place.size:
            message = f"{backquote(name)} has {place.size} bytes, but was given {data.size}"
            raise InputError([_host_finding(self._image, message)])
        self.levels[place.memory].write(place.address, data)

    def _place(self, name: str) -> Port | Placement:
        if name not in self._places:
            message = f"the image has no port or buffer {backquote(name)}"
            hint = did_you_mean(name, self._places)
            raise InputError([_host_finding(self._image, message, hint)])
        return self._places[name]


def _host_finding(image: Image, message: str, help: str | None = None) -> Diagnostic:
    return TCB58.at(whole_file(image.source or image.entry), message, help=help)


def _named_places(image: Image) -> dict[str, Port | Placement]:
    """Buffers and ports by name; a port's name comes first."""
    found: dict[str, Port | Placement] = {place.buffer: place for place in image.placements}
    return {**found, **{port.name: port for port in image.ports}}


def _sizes(image: Image) -> dict[str, int]:
    """How large the memories of a machine are; each engine has an L1 of its own."""
    found = dict(image.machine.memories)
    l1 = found.pop("L1", 0)
    return {**found, **{f"L1[{engine}]": l1 for engine in range(image.machine.engines)}}


def _extents(image: Image) -> dict[str, int]:
    """How far each memory is in use; InputError for what lies outside of its memory."""
    sizes = _sizes(image)
    ends = dict.fromkeys(sizes, 0)
    for name, memory, address, size in _parts(image):
        end = address + size
        if memory not in sizes or address < 0 or end > sizes[memory]:
            room = f"has {sizes[memory]} bytes" if memory in sizes else "is no memory of it"
            message = f"{name} lies at {address} to {end} of {memory}, which {room}"
            raise InputError([TCB53.at(whole_file(image.source or image.entry), message)])
        ends[memory] = max(ends[memory], end)
    return ends


def _parts(image: Image) -> Iterator[tuple[str, str, int, int]]:
    for place in image.placements:
        yield backquote(place.buffer), place.memory, place.address, place.size
    for port in image.ports:
        yield f"port {backquote(port.name)}", port.memory, port.address, port.size
    for constant in image.constants:
        yield "a constant", constant.memory, constant.address, len(constant.data)
