"""The module on integers: every operation of the float module in its form on them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from nacre.base.elements import GRAPH_TYPES
from nacre.compile.quantise.affine import Affine, of_constant
from nacre.compile.quantise.islands import Domains
from nacre.compile.quantise.roles import Graph, Role, bounds_of
from nacre.compile.quantise.scales import Scales
from nacre.compile.quantise.weights import quantised_weights
from nacre.core.builder import Builder
from nacre.core.module import CoreOperation, Module
from nacre.core.ops import OPS
from nacre.core.values import Array

_HALF = GRAPH_TYPES["f16"]


@dataclass(frozen=True)
class Stored:
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
class Rewritten:
    """The module, what became of each value, and its products."""

    module: Module
    stored: Mapping[int, Stored]  # by the value of the float module
    outputs: tuple[Stored, ...]
    products: tuple[Product, ...]
    notes: tuple[str, ...]


def rewritten(
    graph: Graph, domains: Domains, scales: Scales, own: int, *, searched: bool, on_grid: bool
) -> Rewritten:
    """A float module on integers, with islands of floats.

    `own` outputs are the model's; those behind are the next values of states, which are floats.
    """
    walk = _Walk(graph, domains, scales, searched, on_grid)
    for op in graph.module.operations:
        walk.take(op)
    kept = graph.module.outputs
    outputs = tuple(
        walk.stored[value] if index < own and value in walk.stored else Stored(walk.floats(value))
        for index, value in enumerate(kept)
    )
    module = walk.builder.module(*(output.value for output in outputs))
    return Rewritten(module, walk.stored, outputs, tuple(walk.products), tuple(walk.notes))


class _Walk:
    """Goes through a float module and builds the other."""

    def __init__(
        self, graph: Graph, domains: Domains, scales: Scales, searched: bool, on_grid: bool
    ) -> None:
        self.graph, self.domains, self.scales = graph, domains, scales
        self.searched, self.on_grid = searched, on_grid
        self.builder = Builder()
        self.stored: dict[int, Stored] = {}
        self.products: list[Product] = []
        self.notes: list[str] = []
        self._made: dict[object, int] = {}  # what was made once for all

    def take(self, op: CoreOperation) -> None:
        """One operation of the float module."""
        role = self.graph.roles[op.value_id]
        if role == "constant":
            return
        has_form = role == "input" or self.domains.is_i8(self.graph, op.value_id)
        form = _FORMS[role] if has_form else _island
        self.stored[op.value_id] = form(self, op)

    def once(self, key: object, make: Callable[[], int]) -> int:
        """A value that is made the first time it is asked for."""
        if key not in self._made:
            self._made[key] = make()
        return self._made[key]

    def integers(self, value: int, wanted: Affine | None = None) -> Stored:
        """A value as integers, of a scale that is asked for."""
        array = self.graph.constants.get(value)
        if array is not None:
            affine = wanted or of_constant(array)
            key = (value, affine)
            data = affine.stored(array)
            return Stored(self.once(key, lambda: self.builder.constant(data, "i8")), affine)
        found = self.stored[value]
        affine = wanted or found.affine or self.scales.of(value)
        if found.affine == affine:
            return found
        key = (value, affine)
        if found.affine is None:
            return Stored(self.once(key, lambda: self._entered(found.value, affine)), affine)
        return Stored(self.once(key, lambda: self._changed(found, affine)), affine)

    def _entered(self, value: int, affine: Affine) -> int:
        """Floats of an island as integers."""
        return self.quantized(self.builder.add("Cast", value, to="f32"), affine)

    def _changed(self, found: Stored, affine: Affine) -> int:
        """Integers of one scale as integers of another: bounds that hold everything."""
        assert found.affine is not None
        real = self.real(found)
        held = self.builder.add("Clip", real, min=found.affine.low, max=found.affine.high)
        return self.quantized(held, affine)

    def real(self, found: Stored) -> int:
        """Integers as reals, for one use."""
        assert found.affine is not None
        scale, zero = self._parameters(found.affine)
        return self.builder.add("Dequantize", found.value, scale, zero)

    def quantized(self, value: int, affine: Affine) -> int:
        """Reals of f32 as integers."""
        return self.builder.add("Quantize", value, *self._parameters(affine), to="i8")

    def _parameters(self, affine: Affine) -> tuple[int, int]:
        scale = self.once(
            ("scale", affine.scale), lambda: self.builder.constant(np.float32(affine.scale), "f32")
        )
        zero = self.once(
            ("zero", affine.zero), lambda: self.builder.constant(np.int8(affine.zero), "i8")
        )
        return scale, zero

    def floats(self, value: int) -> int:
        """A value as an island takes it: floats of 16 bits, and what is no float as it is."""
        array = self.graph.constants.get(value)
        if array is not None:
            return self.once((value, "f16"), lambda: self._constant(value, array))
        found = self.stored[value]
        if found.affine is None:
            return found.value
        return self.once(
            (value, "f16"), lambda: self.builder.add("Cast", self.real(found), to="f16")
        )

    def _constant(self, value: int, array: Array) -> int:
        if not self.graph.is_float(value):
            return self.builder.constant(array, self.graph.op(value).type.dtype)
        most = _HALF.largest_finite
        beyond = int((np.abs(array) > most).sum())
        if beyond:
            self.notes.append(
                f"{beyond} elements of constant %{value} lie beyond f16; they are held at {most:g}"
            )
        return self.builder.constant(np.clip(array, -most, most).astype(np.float16), "f16")


def _input(walk: _Walk, op: CoreOperation) -> Stored:
    name, shape = str(op.attributes["name"]), op.type.shape
    if not walk.graph.is_float(op.value_id):
        return Stored(walk.builder.input(name, op.type.dtype, shape))
    if op.value_id in walk.domains.floats:
        return Stored(walk.builder.input(name, "f16", shape))
    return Stored(walk.builder.input(name, "i8", shape), walk.scales.of(op.value_id))


def _island(walk: _Walk, op: CoreOperation) -> Stored:
    """The operation itself, on floats of 16 bits; or on no floats at all."""
    operands = [walk.floats(operand) for operand in op.operands]
    given: dict[str, Any] = dict(op.attributes)
    if walk.graph.is_float(op.value_id):
        given = {name: "f16" if name in ("to", "dtype") else v for name, v in given.items()}
    return Stored(walk.builder.add(op.opcode, *operands, **given))


def _product(walk: _Walk, op: CoreOperation) -> Stored:
    x, y = walk.integers(op.operands[0]), walk.scales.of(op.value_id)
    assert x.affine is not None
    weights = walk.graph.constants[op.operands[1]]
    bias = walk.graph.constants[op.operands[2]] if len(op.operands) > 2 else None
    axis = 0 if op.opcode == "Linear" or _is_first(op) else weights.ndim - 1
    made = quantised_weights(
        weights, bias, axis, x.affine, y, searched=walk.searched, on_grid=walk.on_grid
    )
    if made.widened:
        walk.notes.append(
            f"`{op.opcode}` %{op.value_id}: the bias of {made.widened} channels is beyond i32 in "
            "units of their scales, which are widened"
        )
    added = walk.builder.constant(made.bias, "i32")
    value = walk.builder.add(
        f"Q{op.opcode}", x.value, walk.builder.constant(made.stored, "i8"), added,
        **op.attributes, x_scale=x.affine.scale, x_zero=x.affine.zero,
        w_scales=made.scales, y_scale=y.scale, y_zero=y.zero, to="i8",
    )  # fmt: skip
    units = np.float32(x.affine.scale) * np.array(made.scales, np.float32)
    walk.products.append(Product(op.value_id, value, added, units))
    return Stored(value, y)


def _is_first(op: CoreOperation) -> bool:
    return bool(OPS[op.opcode].filled(op.attributes).get("layout") == "NCHW")


def _scale(walk: _Walk, op: CoreOperation) -> Stored:
    """Channels times a computed vector: a convolution of one place for each."""
    (x, w), y = (walk.integers(o) for o in op.operands), walk.scales.of(op.value_id)
    assert x.affine is not None
    assert w.affine is not None
    value = walk.builder.add(
        "QConv", x.value, w.value, **op.attributes,
        x_scale=x.affine.scale, x_zero=x.affine.zero, w_scales=(w.affine.scale,),
        w_zeros=(w.affine.zero,), y_scale=y.scale, y_zero=y.zero, to="i8",
    )  # fmt: skip
    return Stored(value, y)


def _map(walk: _Walk, op: CoreOperation) -> Stored:
    """Reals for a moment: out of integers, one operation in f32, and into integers again.

    Bounds that the scale itself keeps, and products that only change the scale, are nothing.
    """
    y = walk.scales.of(op.value_id)
    if walk.scales.is_factor(op.value_id):
        source = walk.stored[walk.graph.computed(op)[0]]
        return Stored(source.value, y)
    bounds = bounds_of(op)
    if bounds is not None:
        source = walk.stored.get(op.operands[0], Stored(-1))
        if source.affine == y and y.keeps(*bounds):
            return source
    reals = [walk.real(walk.integers(operand)) for operand in op.operands]
    return Stored(walk.quantized(walk.builder.add(op.opcode, *reals, **op.attributes), y), y)


def _pool(walk: _Walk, op: CoreOperation) -> Stored:
    x, y = walk.integers(op.operands[0]), walk.scales.of(op.value_id)
    assert x.affine is not None
    given = {name: v for name, v in op.attributes.items() if name != "dilations"}
    value = walk.builder.add(
        "QPool", x.value, op="Avg", **given, x_scale=x.affine.scale, x_zero=x.affine.zero,
        y_scale=y.scale, y_zero=y.zero, to="i8",
    )  # fmt: skip
    return Stored(value, y)


def _keep(walk: _Walk, op: CoreOperation) -> Stored:
    """Integers moved about: all of one scale."""
    y = walk.scales.of(op.value_id)
    operands = [
        walk.integers(o, y).value if walk.graph.is_float(o) else walk.floats(o) for o in op.operands
    ]
    given: dict[str, Any] = dict(op.attributes)
    if op.opcode == "Pad":
        value = np.array(OPS["Pad"].filled(op.attributes)["value"], np.float32)
        given["value"] = float(y.stored(value))
    return Stored(walk.builder.add(op.opcode, *operands, **given), y)


_FORMS: Mapping[Role, Callable[[_Walk, CoreOperation], Stored]] = {
    "input": _input,
    "product": _product,
    "scale": _scale,
    "map": _map,
    "pool": _pool,
    "keep": _keep,
    "island": _island,
    "plain": _island,
}
