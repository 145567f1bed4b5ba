"""The walk from a float module to one on integers: how each value is stored, made once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from nacre.base.elements import GRAPH_TYPES
from nacre.compile.legalise.narrowing import guarding_constants, narrow
from nacre.compile.quantise.affine import Affine, affine_of_constant
from nacre.compile.quantise.islands import FloatIslands
from nacre.compile.quantise.prequantised.imported_scales import QuantisedPort
from nacre.compile.quantise.roles import Graph
from nacre.compile.quantise.scales import Scales
from nacre.core.builder import Builder
from nacre.core.module import CoreOperation
from nacre.core.values import Array

_HALF = GRAPH_TYPES["f16"]
_LEAST_HALF, _MOST_HALF = 2.0**-14, 2.0**7  # f16 has 255 of these, and no fewer bits for them
_MOST_FACTOR = 2.0**15
_DIFFERENCES = frozenset({"Softmax", "LogSoftmax"})  # a number added to every element is nothing


@dataclass(frozen=True)
class QuantisedValue:
    """A value of the new module: integers with a scale, or something else without."""

    value: int
    affine: Affine | None = None


@dataclass(frozen=True, eq=False)
class Product:
    """A product on integers: where its bias is, and the units in which that counts."""

    source: int  # in the float module
    value: int
    bias: int
    units: Array  # of each channel


@dataclass(frozen=True, eq=False)
class StorageScheme:
    """How values are stored: scales, what a model brought of its own, and how weights are made."""

    scales: Scales
    imported: QuantisedPort
    searched: bool  # the scale of weights that has the least error
    on_grid: bool  # weights that are multiples of something keep that as their scale
    value_text: Callable[[int], str] = "%{}".format  # a value of the float module, for a note


class Walk:
    """Goes through a float module and builds the other."""

    def __init__(self, graph: Graph, islands: FloatIslands, scheme: StorageScheme) -> None:
        self.graph, self.islands, self.scales = graph, islands, scheme.scales
        self.imported, self.searched, self.on_grid = (
            scheme.imported,
            scheme.searched,
            scheme.on_grid,
        )
        self.builder = Builder()
        self.stored: dict[int, QuantisedValue] = {}
        self.products: list[Product] = []
        self.notes: list[str] = []
        self.keeping, self.value_text = guarding_constants(graph.module), scheme.value_text
        self._made_values: dict[object, int] = {}  # what was made once for all

    def output(self, index: int, value: int, is_own: bool) -> QuantisedValue:
        """An output: integers of the model's own where it has them, the next state in floats."""
        imported = self.imported.outputs.get(index)
        if imported is not None:
            return self.integers(value, imported.affine)
        op = self.graph.op(value)
        is_cast = op.opcode == "Cast" and self.graph.is_float(value)
        if is_own and is_cast and self._is_plain(op.operands[0]):
            return self.stored[op.operands[0]]  # the host casts: f16 has not all of i32
        stored = self.stored.get(value)
        return stored if is_own and stored is not None else QuantisedValue(self.floats(value))

    def _is_plain(self, value: int) -> bool:
        """Whether a computed value is no float."""
        return value in self.stored and not self.graph.is_float(value)

    def make_once(self, key: object, make: Callable[[], int]) -> int:
        """A value that is made the first time it is asked for."""
        if key not in self._made_values:
            self._made_values[key] = make()
        return self._made_values[key]

    def integers(self, value: int, wanted: Affine | None = None) -> QuantisedValue:
        """A value as integers, of a scale that is asked for."""
        array = self.graph.constants.get(value)
        if array is not None:
            affine = wanted or affine_of_constant(array)
            key = (value, affine)
            data = affine.quantise(array)
            return QuantisedValue(
                self.make_once(key, lambda: self.builder.constant(data, "i8")), affine
            )
        stored = self.stored[value]
        affine = wanted or stored.affine or self.scales.of(value)
        if stored.affine == affine:
            return stored
        key = (value, affine)
        if stored.affine is None:
            return QuantisedValue(
                self.make_once(key, lambda: self._quantise_island(stored.value, affine)), affine
            )
        return QuantisedValue(self.make_once(key, lambda: self._rescale(stored, affine)), affine)

    def _quantise_island(self, value: int, affine: Affine) -> int:
        """Floats of an island as integers: a product, a sum and a cast where f16 has the factor.

        `quantize` would be work for the slowest unit. What f16 rounds here is below an eighth of a
        step.
        """
        is_half = self.builder.type_of(value).dtype == "f16"
        if not is_half or not 1.0 / _MOST_FACTOR <= affine.scale <= 1.0 / _LEAST_HALF:
            return self.quantize(self.builder.add("Cast", value, to="f32"), affine)
        factor = np.float16(1.0 / affine.scale)
        steps = self.builder.add("BinOp", value, self.half_constant(factor), op="Mul")
        if affine.zero:
            steps = self.builder.add(
                "BinOp", steps, self.half_constant(np.float16(affine.zero)), op="Add"
            )
        return self.steps(steps)

    def steps(self, value: int) -> int:
        """Floats of 16 bits that count in steps from zero on as integers."""
        return self.quantize(self.builder.add("Cast", value, to="f32"), Affine(1.0, 0))

    def _rescale(self, stored: QuantisedValue, affine: Affine) -> int:
        """Integers of one scale as integers of another: bounds that hold everything."""
        assert stored.affine is not None
        real = self.real(stored)
        held = self.builder.add("Clip", real, min=stored.affine.low, max=stored.affine.high)
        return self.quantize(held, affine)

    def real(self, stored: QuantisedValue) -> int:
        """Integers as reals, for one use."""
        assert stored.affine is not None
        scale, zero = self.parameters(stored.affine)
        return self.builder.add("Dequantize", stored.value, scale, zero)

    def quantize(self, value: int, affine: Affine) -> int:
        """Reals of f32 as integers."""
        return self.builder.add("Quantize", value, *self.parameters(affine), to="i8")

    def is_only_stored(self, op: CoreOperation, y: Affine) -> bool:
        """Whether everything that becomes of a result in floats is integers of one scale."""
        graph = self.graph
        if op.value_id in graph.kept:
            return False
        for user in graph.users.get(op.value_id, []):
            is_moved = (
                graph.roles[user.value_id] == "keep" and len(graph.computed_operands(user)) == 1
            )
            is_float = not self.islands.is_i8(graph, user.value_id)
            if is_moved and is_float and self.scales.of(user.value_id) == y:
                if not self.is_only_stored(user, y):
                    return False
            elif is_float or graph.roles[user.value_id] == "keep":
                return False
        return True

    def parameters(self, affine: Affine) -> tuple[int, int]:
        """A scale and a zero point as constants."""
        scale = self.make_once(
            ("scale", affine.scale), lambda: self.builder.constant(np.float32(affine.scale), "f32")
        )
        zero = self.make_once(
            ("zero", affine.zero), lambda: self.builder.constant(np.int8(affine.zero), "i8")
        )
        return scale, zero

    def floats(self, value: int) -> int:
        """A value as an island takes it: floats of 16 bits, and what is no float as it is."""
        array = self.graph.constants.get(value)
        if array is not None:
            return self.make_once((value, "f16"), lambda: self._constant(value, array))
        stored = self.stored[value]
        affine = stored.affine
        if affine is None and value in self.graph.wide:
            return self.make_once(
                (value, "f16"), lambda: self.builder.add("Cast", stored.value, to="f16")
            )
        if affine is None:
            return stored.value
        return self.make_once(
            (value, "f16"), lambda: self._floats_from_integers(value, stored, affine)
        )

    def wide(self, value: int) -> int:
        """A value as a mask takes it before its rows are levelled: floats of 32 bits."""
        array = self.graph.constants.get(value)
        if array is not None:
            dtype = self.graph.op(value).type.dtype
            return self.make_once((value, dtype), lambda: self.builder.constant(array, dtype))
        stored = self.stored[value]
        if stored.affine is not None:
            return self.make_once((value, "f32"), lambda: self.real(stored))
        if self.builder.type_of(stored.value).dtype != "f16":
            return stored.value
        return self.make_once(
            (value, "f32"), lambda: self.builder.add("Cast", stored.value, to="f32")
        )

    def _floats_from_integers(self, value: int, stored: QuantisedValue, affine: Affine) -> int:
        """Integers as floats of 16 bits: a cast, a sum and a product where that is exact enough.

        `dequantize` would be work for the slowest unit. A softmax sees differences only, and needs
        no zero point.
        """
        if not _LEAST_HALF <= affine.scale <= _MOST_HALF:
            return self.builder.add("Cast", self.real(stored), to="f16")
        floats = self.builder.add("Cast", stored.value, to="f16")
        if affine.zero and not self._sees_differences(value):
            zero = np.float16(affine.zero)
            floats = self.builder.add("BinOp", floats, self.half_constant(zero), op="Sub")
        return self.builder.add(
            "BinOp", floats, self.half_constant(np.float16(affine.scale)), op="Mul"
        )

    def _sees_differences(self, value: int) -> bool:
        """Whether a number added to every element changes nothing that is made of a value."""
        users = self.graph.users.get(value, [])
        floats = [user for user in users if user.value_id in self.islands.floats]
        return bool(floats) and all(user.opcode in _DIFFERENCES for user in floats)

    def half_constant(self, number: np.float16) -> int:
        """A number as a constant of 16 bits."""
        return self.make_once(("f16", float(number)), lambda: self.builder.constant(number, "f16"))

    def _constant(self, value: int, array: Array) -> int:
        if not self.graph.is_float(value):
            return self.builder.constant(array, self.graph.op(value).type.dtype)
        made = narrow(array, _HALF, keeps_nonzero=value in self.keeping)
        self.notes += made.notes(self.value_text(value), _HALF)
        return self.builder.constant(made.array, "f16")
