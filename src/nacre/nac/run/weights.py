"""Weights: taken from the file when they are used.

What lies in the file as kernels take it is a view of the file and costs nothing. The rest is
copied: quantised weights are widened, others moved to an address that their type asks for. Copies
are kept for the next run where the bound allows it for all of them; else they go when the schedule
says, and are made anew in every run.
"""

from __future__ import annotations

from functools import cached_property
from math import prod
from typing import Any

import numpy as np

from nacre.base.elements import GRAPH_TYPES
from nacre.core.values import Array
from nacre.nac.format.external import External
from nacre.nac.format.scales import is_scaled
from nacre.nac.format.values import NacFile, Tensor
from nacre.nac.run.dequantisation import dequantize, stored_elements
from nacre.nac.run.memory import is_copy, owner
from nacre.nac.spec.elements import DTYPES, FP16, QUANTIZATIONS

_KEPT_BYTES = 128 * 2**20  # and as much again as the weights are stored in


class Weights:
    """The parameters of a file by id."""

    def __init__(
        self, file: NacFile, external: External | None, keep_bytes: int | None = None
    ) -> None:
        self._is_half = file.header.quant == FP16
        self._tensors = {tensor.id: tensor for tensor in file.data.tensors}
        self._names = {named.id: named.text for named in file.data.parameters}
        self._external = external
        self._ready: dict[int, Array] = {}
        stored_bytes = sum(len(tensor.data) for tensor in file.data.tensors)
        stored_bytes += 0 if external is None else external.size
        self.keep_bytes = _KEPT_BYTES + stored_bytes if keep_bytes is None else keep_bytes
        self.kept_bytes = 0  # copies that stay, here and in what was prepared of them

    def __getitem__(self, id_: int) -> Array:
        """A parameter as the kernels take it: aligned, widened, never to be changed."""
        array = self._ready.get(id_)
        if array is None:
            array = self.load_fresh(id_)
            if not is_copy(array):
                self._ready[id_] = array
            elif self._keeps_copies:
                self.keep(array.nbytes)
                self._ready[id_] = array
        return array

    def load_fresh(self, id_: int) -> Array:
        """The same, and nothing is kept of it here."""
        array = self._ready.get(id_)
        if array is None:
            array = dequantize(self.tensor(id_))
            if self._is_half and array.dtype == np.float16:
                with np.errstate(all="ignore"):  # numbers that are none
                    array = array.astype(np.float32)
            array = np.require(array, requirements=["C", "A"])
            array.flags.writeable = False
        return array

    @cached_property
    def _keeps_copies(self) -> bool:
        """Whether all copies together may stay; a part of them would be of little use."""
        return self.may_keep(self.copied_bytes)

    def may_keep(self, bytes_: int) -> bool:
        """Whether so many more bytes may stay between runs."""
        return self.kept_bytes + bytes_ <= self.keep_bytes or not bytes_

    def keep(self, bytes_: int) -> None:
        """So many more bytes stay."""
        self.kept_bytes += bytes_

    def is_kept(self, id_: int) -> bool:
        """Whether the next run finds the very same array."""
        return id_ in self._ready

    def has(self, array: Array) -> bool:
        """Whether an array looks at a weight that is kept."""
        return any(owner(array) is owner(one) for one in self._ready.values())

    @property
    def copied_bytes(self) -> int:
        """What copies of all weights would take that are not there yet."""
        ids = (id_ for id_ in self._names if id_ not in self._ready)
        return sum(self._copy_bytes(id_) for id_ in ids)

    def _copy_bytes(self, id_: int) -> int:
        if self._external is None and id_ not in self._tensors:
            return 0
        dtype, shape = self.type_of(id_)
        return 0 if self.is_stored_as_used(id_) else dtype.itemsize * prod(shape)

    def is_stored_as_used(self, id_: int) -> bool:
        """Whether a parameter lies in the file as kernels take it, and is not copied."""
        tensor, (dtype, _) = self.tensor(id_), self.type_of(id_)
        is_wide = is_scaled(tensor.quant) or dtype != GRAPH_TYPES[DTYPES[tensor.dtype]].dtype
        return not is_wide and dtype.kind != "b" and bool(stored_elements(tensor).flags.aligned)

    @property
    def wide_bytes(self) -> int:
        """What all weights take as kernels take them, by which a run is measured."""
        known = [id_ for id_ in self._names if self._external is not None or id_ in self._tensors]
        types = [self.type_of(id_) for id_ in known]
        return sum(dtype.itemsize * prod(shape) for dtype, shape in types)

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
