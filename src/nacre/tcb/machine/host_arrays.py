"""Arrays of the host as the memory has them, and back, by what ports say of their elements."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from nacre.base.diagnostics import Diagnostic, InputError
from nacre.base.elements import GRAPH_TYPES, ElementType, bytes_needed
from nacre.base.excerpt import backquote
from nacre.base.packing import NIBBLE_TYPES, as_nibbles, pack_nibbles, unpack_nibbles
from nacre.base.source import whole_file
from nacre.tcb.image import Image, Port
from nacre.tcb.machine.memory import HostData
from nacre.tcb.rules.running import TCB58, TCB60

Array = npt.NDArray[Any]

_LOST = "as integers, NaN becomes the real value 0, an infinity the end of the range"


def to_memory(image: Image, inputs: Mapping[str, HostData]) -> dict[str, HostData]:
    """What the host gives as bytes; InputError for arrays that are not as their ports say."""
    ports = {port.name: port for port in image.ports if port.elem is not None}
    for name, given in inputs.items():
        if isinstance(given, np.ndarray) and (given.dtype.hasobject or not given.dtype.isnative):
            message = f"{backquote(name)} was given {given.dtype.str}, which is not in memory so"
            help_ = "give numbers in the byte order of this machine"
            place = whole_file(image.source or image.entry)
            raise InputError([TCB58.at(place, message, help=help_)])
    return {
        name: _bytes_of(image, ports[name], given)
        if name in ports and isinstance(given, np.ndarray)
        else given
        for name, given in inputs.items()
    }


def warn_of_lost_inputs(image: Image, inputs: Mapping[str, HostData]) -> tuple[Diagnostic, ...]:
    """A warning for each array of reals with NaN or infinities where the memory has integers."""
    warnings = []
    for port in image.ports:
        given = inputs.get(port.name)
        if port.scales and isinstance(given, np.ndarray) and _is_of_host(given, port):
            nans, infinities = int(np.isnan(given).sum()), int(np.isinf(given).sum())
            if nans or infinities:
                counts = f"{nans} NaN and {infinities} infinities among {given.size} elements"
                message = f"input {backquote(port.name)} has {counts}, and {port.elem} has neither"
                place = whole_file(image.source or image.entry)
                warnings.append(TCB60.at(place, message, help=_LOST))
    return tuple(warnings)


def host_array(port: Port, data: bytes) -> Array:
    """The bytes of a port as the values that the host has for them."""
    stored = port_array(port, data)
    if port.host_elem is None:
        return stored
    for scale, zero in zip(port.scales, port.zero_points, strict=True):
        stored = (stored.astype(np.float32) - np.float32(zero)) * np.float32(scale)
    return np.asarray(stored.astype(GRAPH_TYPES[port.host_elem].dtype))


def port_array(port: Port, data: bytes) -> Array:
    """The bytes of a port as an array of its elements; as bytes where nobody knows them."""
    raw = np.frombuffer(data, np.uint8)
    if port.elem is None or port.dims is None:
        return raw
    element = GRAPH_TYPES[port.elem]
    raw = raw[: bytes_needed(prod(port.dims), element)]
    if element.dtype.name in NIBBLE_TYPES:
        return unpack_nibbles(raw, port.dims, element.dtype)
    return raw.view(element.dtype).reshape(port.dims)


def port_text(port: Port) -> str:
    """`f32 or f16 [1, 10]`; where nobody knows the elements, `64 bytes`."""
    if port.elem is None or port.dims is None:
        return f"{port.size} bytes"
    host = "" if port.host_elem in (None, port.elem) else f"{port.host_elem} or "
    return f"{host}{port.elem} {list(port.dims)}"


def _is_of_host(given: Array, port: Port) -> bool:
    """Whether it has the host's own values, where these are others than the memory's."""
    return port.host_elem is not None and given.dtype == GRAPH_TYPES[port.host_elem].dtype


def _bytes_of(image: Image, port: Port, given: Array) -> bytes:
    element = GRAPH_TYPES[port.elem or "u8"]
    if _is_of_host(given, port):
        given = _in_memory_type(image, port, given)
    is_narrow = element.dtype.name in NIBBLE_TYPES
    array = as_nibbles(given, element) if is_narrow else given
    if array.dtype != element.dtype or array.shape != port.dims:
        found = f"{given.dtype} {list(given.shape)}"
        message = f"{backquote(port.name)} takes {port_text(port)}, but was given {found}"
        help_ = "give arrays of the model's own type, or as the memory has them"
        raise InputError([TCB58.at(whole_file(image.source or image.entry), message, help=help_)])
    return (pack_nibbles(array) if is_narrow else np.ascontiguousarray(array)).tobytes()


def _in_memory_type(image: Image, port: Port, given: Array) -> Array:
    """The host's values as the memory has them: quantised, or cast, what is finite staying so."""
    element = GRAPH_TYPES[port.elem or "u8"]
    for scale, zero in zip(port.scales, port.zero_points, strict=True):
        return _quantised(given, scale, zero, element)
    if element.kind != "float" and given.dtype.kind in "iu":
        beyond = (given < element.lowest) | (given > element.highest)
        if beyond.any():
            limits = f"{element.lowest} to {element.highest}"
            message = f"{backquote(port.name)} is {given[beyond][0]}, and {port.elem} has {limits}"
            raise InputError([TCB58.at(whole_file(image.source or image.entry), message)])
    with np.errstate(all="ignore"):
        stored: Array = given.astype(element.dtype)
    if element.kind == "float":
        overflown = np.isinf(stored) & np.isfinite(given)
        stored[overflown] = np.copysign(element.largest_finite, given[overflown])
    return stored


def _quantised(given: Array, scale: float, zero: int, element: ElementType) -> Array:
    """`saturate(rint(value / scale) + zero)` in f32; NaN is the zero point."""
    with np.errstate(all="ignore"):
        steps = np.rint(np.asarray(given, np.float32) / np.float32(scale))
    steps = np.nan_to_num(steps, nan=0.0, posinf=1e9, neginf=-1e9) + np.float32(zero)
    stored: Array = np.clip(steps, element.lowest, element.highest).astype(element.dtype)
    return stored
