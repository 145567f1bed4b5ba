"""Weights: taken from the file when they are first used, and then kept ready."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from nacre.base.elements import GRAPH_TYPES
from nacre.core.values import Array
from nacre.nac.format.external import External
from nacre.nac.format.scales import is_scaled
from nacre.nac.format.values import NacFile, Tensor
from nacre.nac.spec.elements import DTYPES, FP16, QUANTIZATIONS


class Weights:
    """The parameters of a file by id."""

    def __init__(self, file: NacFile, external: External | None) -> None:
        self._is_half = file.header.quant == FP16
        self._tensors = {tensor.id: tensor for tensor in file.data.tensors}
        self._names = {named.id: named.text for named in file.data.parameters}
        self._external = external
        self._ready: dict[int, Array] = {}

    def __getitem__(self, id_: int) -> Array:
        """A parameter as the kernels take it: aligned, widened, never to be changed."""
        found = self._ready.get(id_)
        if found is None:
            found = dequantized(self.tensor(id_))
            if self._is_half and found.dtype == np.float16:
                with np.errstate(all="ignore"):  # numbers that are none
                    found = found.astype(np.float32)
            found = np.require(found, requirements=["C", "A"])
            found.flags.writeable = False
            self._ready[id_] = found
        return found

    def type_of(self, id_: int) -> tuple[np.dtype[Any], tuple[int, ...]]:
        """The type of a parameter as the kernels take it, without looking at its elements."""
        tensor = self.tensor(id_)
        layout = QUANTIZATIONS[tensor.quant]
        dtype = GRAPH_TYPES[DTYPES[tensor.dtype]].dtype
        if is_scaled(tensor.quant) or (self._is_half and dtype == np.float16):
            dtype = np.dtype(np.float32)
        return dtype, tensor.true_shape if layout.has_blocks else tensor.shape

    def tensor(self, id_: int) -> Tensor:
        """A parameter as it is stored."""
        if self._external is not None:
            return self._external.tensor(self._names[id_], id_)
        return self._tensors[id_]

    @property
    def names(self) -> dict[int, str]:
        """The names of parameters by id."""
        return dict(self._names)


def stored(tensor: Tensor) -> Array:
    """The elements of a tensor as they are stored; not copied."""
    dtype = GRAPH_TYPES[DTYPES[tensor.dtype]].dtype
    if dtype.kind == "b":  # any byte but 0 is true
        found: Array = np.frombuffer(tensor.data, np.uint8).reshape(tensor.shape) != 0
        return found
    little: np.dtype[Any] = dtype.newbyteorder("<") if dtype.kind in "iuf" else dtype
    return np.frombuffer(tensor.data, little).reshape(tensor.shape).astype(dtype, copy=False)


def dequantized(tensor: Tensor) -> Array:
    """The elements of a tensor in the type that the program computes with."""
    layout = QUANTIZATIONS[tensor.quant]
    elements = stored(tensor)
    scales = np.frombuffer(tensor.scales, "<f4").astype(np.float32, copy=False)
    # A hostile scale gives infinities, which is what its file says.
    with np.errstate(all="ignore"):
        if layout.has_scale:
            elements = elements.astype(np.float32) * scales[0]
        elif layout.has_axis:
            along = [-1 if axis == tensor.axis else 1 for axis in range(elements.ndim)]
            elements = elements.astype(np.float32) * scales.reshape(along)
        elif layout.has_blocks:
            blocks = elements.reshape(-1, tensor.block).astype(np.float32) * scales[:, None]
            elements = blocks.reshape(-1)[: prod(tensor.true_shape)].reshape(tensor.true_shape)
    return elements
