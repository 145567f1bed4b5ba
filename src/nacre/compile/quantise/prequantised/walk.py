"""The walk from a quantised module to a float one: what stands for what."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from nacre.base.elements import GRAPH_TYPES
from nacre.compile.quantise.affine import Affine, affine_of_range
from nacre.compile.quantise.prequantised.imported_scales import (
    SHIFTS,
    ImportedScales,
    QuantisedPort,
)
from nacre.compile.quantise.prequantised.uses import first_scale_and_zero, inside_gelu, users_of
from nacre.core.builder import Builder
from nacre.core.constants import constant_array
from nacre.core.module import CoreOperation, Module
from nacre.core.values import Array

WIDE = ("i16", "u16")  # the device has no products of these: their ranges are taken
_SAME = 1e-6  # scales that are computed differ by so much from what they are meant to be


@dataclass(frozen=True)
class StoredReals:
    """Stored integers: the float value that they stand for, and how."""

    value: int
    scale: float
    zero: int
    dtype: str

    @property
    def affine(self) -> Affine | None:
        """The same as i8; of wider integers the range is kept. None where that cannot be used."""
        found = Affine(self.scale, self.zero + SHIFTS.get(self.dtype, 0))
        if self.dtype in WIDE:
            found = affine_of_range(*self.ends)
        return found if found.is_sound and not np.isnan(self.scale) else None

    @property
    def ends(self) -> tuple[float, float]:
        """The lowest and the highest real that the integers can stand for."""
        element = GRAPH_TYPES[self.dtype]
        ends = [(end - self.zero) * self.scale for end in (element.lowest, element.highest)]
        return min(ends), max(ends)


@dataclass(frozen=True)
class ScaledNumbers:
    """Numbers of 32 bits that are a float value over a scale, plus a number."""

    value: int
    scale: float
    shift: float = 0.0


class Walk:
    """Goes through a quantised module and builds the float one."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.builder = Builder()
        self.ids: dict[int, int] = {}
        self.stored: dict[int, StoredReals] = {}
        self.numbers: dict[int, ScaledNumbers] = {}
        self.notes: list[str] = []
        self.names: dict[int, str] = {}  # of nodes, by the values that are made for them
        self.fused: dict[int, tuple[str, ...]] = {}
        self.users = users_of(module)
        self._bare = inside_gelu(module, self.users)
        self._scales: dict[tuple[float, float], Affine] = {}
        self._inputs: dict[str, ImportedScales] = {}
        self._outputs: dict[int, ImportedScales] = {}

    def imported(self) -> QuantisedPort:
        """What the model brought."""
        notes = tuple(dict.fromkeys(self.notes))
        return QuantisedPort(self._scales, self._inputs, self._outputs, notes)

    def take_inputs(self) -> None:
        """Inputs of stored integers become floats, if what is done to them says which."""
        imported: list[tuple[CoreOperation, StoredReals]] = []
        for op in self.module.inputs:
            name, dtype = str(op.attributes["name"]), op.type.dtype
            found = (
                first_scale_and_zero(self.module, self.users, op.value_id)
                if dtype in SHIFTS
                else None
            )
            reals = None if found is None else StoredReals(-1, *found, dtype)
            affine = None if reals is None else reals.affine
            if reals is None or affine is None:
                self.ids[op.value_id] = self.builder.input(name, dtype, op.type.shape)
                continue
            self._inputs[name] = ImportedScales(dtype, affine)
            value = self.builder.input(name, "f32", op.type.shape)
            imported.append((op, replace(reals, value=value)))
        for op, reals in imported:
            self.record_stored(op, reals)

    def output(self, index: int, source: int) -> int:
        """An output; where it is of stored integers, the floats that those stand for."""
        found = self.stored.get(source)
        affine = None if found is None or found.dtype not in SHIFTS else found.affine
        if found is None or affine is None:
            return self.value(source)
        self._outputs[index] = ImportedScales(found.dtype, affine)
        return found.value

    def value(self, source: int) -> int:
        """A value of the module itself; stored integers are made from their floats."""
        if source not in self.ids:
            self.ids[source] = self._make(source)
        return self.ids[source]

    def _make(self, source: int) -> int:
        op = self.module.by_id[source]
        array = constant_array(op)
        if array is not None:
            return self.builder.constant(array, op.type.dtype)
        numbers = self.numbers.get(source)
        if numbers is not None and op.type.dtype == "f32":
            return self.plus(self.times(numbers.value, 1.0 / numbers.scale), numbers.shift)
        if numbers is not None:  # after all as it was
            return self.builder.copy(op, tuple(self.value(operand) for operand in op.operands))
        stored = self.stored[source]
        scale = self.builder.constant(np.float32(stored.scale), "f32")
        zero = self.builder.constant(np.array(stored.zero), stored.dtype)
        return self.builder.add("Quantize", stored.value, scale, zero, to=stored.dtype)

    def constant(self, source: int) -> Array | None:
        """The elements of a constant; None where a value is none."""
        return constant_array(self.module.by_id[source])

    def record_stored(self, op: CoreOperation, reals: StoredReals) -> None:
        """A result in stored integers: the floats end where those do."""
        affine = reals.affine
        if affine is not None and op.value_id not in self._bare:
            self._scales[affine.low, affine.high] = affine
            reals = self._clip(reals, affine.low, affine.high)
        elif affine is None and np.isfinite(reals.scale):  # no scale for us, but ends all the same
            reals = self._clip(reals, *reals.ends)
        if reals.dtype in WIDE:
            self.notes.append("integers of 16 bits are taken at 8: their ranges are kept")
        self.stored[op.value_id] = reals

    def _clip(self, reals: StoredReals, low: float, high: float) -> StoredReals:
        held = self.builder.add("Clip", reals.value, min=low, max=high)
        return replace(reals, value=held)

    def reals(self, source: int, scale: float, zero: int) -> int | None:
        """The floats for stored integers under a scale; None where nothing is known of them."""
        array = self.constant(source)
        if array is not None:
            reals = dequantise(array, np.float32(scale), np.int64(zero))
            return self.builder.constant(reals, "f32")
        stored = self.stored.get(source)
        if stored is None or not np.isfinite(stored.scale) or not stored.scale:
            return None
        value = self.times(stored.value, float(np.float32(scale)) / stored.scale)
        return self.plus(value, (stored.zero - zero) * scale)

    def cast(self, value: int, dtype: str = "f32") -> int:
        """A float value in another type; stored integers stand for f32, whatever a model has."""
        is_so = self.builder.type_of(value).dtype == dtype
        return value if is_so else self.builder.add("Cast", value, to=dtype)

    def times(self, value: int, factor: float) -> int:
        """A float value times a number."""
        return value if abs(factor - 1.0) < _SAME else self._combine("Mul", value, factor)

    def plus(self, value: int, addend: float) -> int:
        """A float value plus a number."""
        return self._combine("Add", value, addend) if addend else value

    def _combine(self, op: str, value: int, number: float) -> int:
        return self.builder.add("BinOp", value, self.builder.constant(np.float32(number)), op=op)


def dequantise(array: Array, scale: Array | np.float32, zero: Array | np.int64) -> Array:
    """`(stored - zero) * scale` in f32, the difference exact."""
    steps = (array.astype(np.int64) - zero).astype(np.float32)
    return np.asarray(steps * scale)
