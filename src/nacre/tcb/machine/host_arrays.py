"""Arrays of the host as the memory has them, and back, by what ports say of their elements."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from nacre.base.diagnostics import InputError
from nacre.base.elements import GRAPH_TYPES, bytes_needed
from nacre.base.excerpt import backquote
from nacre.base.packing import NIBBLE_TYPES, as_nibbles, pack_nibbles, unpack_nibbles
from nacre.base.source import whole_file
from nacre.tcb.image import Image, Port
from nacre.tcb.machine.memory import HostData
from nacre.tcb.rules.running import TCB58

Array = npt.NDArray[Any]


def to_memory(image: Image, inputs: Mapping[str, HostData]) -> dict[str, HostData]:
    """What the host gives as bytes; InputError for arrays that are not as their ports say."""
    ports = {port.name: port for port in image.ports if port.elem is not None}
    return {
        name: _bytes_of(image, ports[name], given)
        if name in ports and isinstance(given, np.ndarray)
        else given
        for name, given in inputs.items()
    }


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
    """`f16 [1, 10]`; where nobody knows the elements, `64 bytes`."""
    if port.elem is None or port.dims is None:
        return f"{port.size} bytes"
    return f"{port.elem} {list(port.dims)}"


def _bytes_of(image: Image, port: Port, given: Array) -> bytes:
    element = GRAPH_TYPES[port.elem or "u8"]
    is_narrow = element.dtype.name in NIBBLE_TYPES
    array = as_nibbles(given, element) if is_narrow else given
    if array.dtype != element.dtype or array.shape != port.dims:
        found = f"{given.dtype} {list(given.shape)}"
        message = f"{backquote(port.name)} takes {port_text(port)}, but was given {found}"
        help_ = "give arrays as the memory has them: an image neither casts nor quantises"
        raise InputError([TCB58.at(whole_file(image.source or image.entry), message, help=help_)])
    return (pack_nibbles(array) if is_narrow else np.ascontiguousarray(array)).tobytes()
