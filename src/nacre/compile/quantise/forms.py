"""Every operation of the float module in its form on integers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from nacre.base.elements import GRAPH_TYPES
from nacre.compile.legalise.narrowing import narrow_bound
from nacre.compile.quantise.affine import Affine
from nacre.compile.quantise.input_parts import product_of_parts
from nacre.compile.quantise.norms import norm
from nacre.compile.quantise.prequantised.uses import known_scale_and_zero
from nacre.compile.quantise.roles import Role, bounds_of
from nacre.compile.quantise.walking import Product, QuantisedValue, Walk
from nacre.compile.quantise.weights import quantised_weights
from nacre.core.module import CoreOperation
from nacre.core.ops import OPS

_FINDING = frozenset({"ArgMax", "ArgMin", "TopKIndices"})
_HALF = GRAPH_TYPES["f16"]


def _input(walk: Walk, op: CoreOperation) -> QuantisedValue:
    name, shape = str(op.attributes["name"]), op.type.shape
    if not walk.graph.is_float(op.value_id):
        return QuantisedValue(walk.builder.input(name, op.type.dtype, shape))
    if op.value_id in walk.islands.floats and name not in walk.imported.inputs:
        elem = "f32" if op.value_id in walk.graph.wide else "f16"
        return QuantisedValue(walk.builder.input(name, elem, shape))
    return QuantisedValue(walk.builder.input(name, "i8", shape), walk.scales.of(op.value_id))


def _island(walk: Walk, op: CoreOperation) -> QuantisedValue:
    """The operation itself, on floats of 16 bits; or on no floats at all."""
    conversion = _CONVERSIONS.get(op.opcode)
    stored = None if conversion is None else conversion(walk, op)
    if stored is None and bounds_of(op) is not None and _is_bounded_by_storage(walk, op):
        stored = walk.stored[op.operands[0]]
    if stored is None and _moves_integers(walk, op):
        stored = _move_integers(walk, op)
    stored = stored or norm(walk, op) or _position_of_largest(walk, op)
    if stored is not None:
        return stored
    if op.value_id in walk.graph.wide:
        wide = map(walk.wide, op.operands)
        return QuantisedValue(walk.builder.add(op.opcode, *wide, **op.attributes))
    operands = [walk.floats(operand) for operand in op.operands]
    given: dict[str, Any] = dict(op.attributes)
    if op.opcode == "Cast" and op.operands[0] in walk.graph.wide:
        return QuantisedValue(operands[0])  # which rounds it already
    if walk.graph.is_float(op.value_id):
        given = {name: "f16" if name in ("to", "dtype") else v for name, v in given.items()}
        if op.opcode == "Clip":
            given = {name: narrow_bound(float(v), _HALF) for name, v in given.items()}
    return QuantisedValue(walk.builder.add(op.opcode, *operands, **given))


def _position_of_largest(walk: Walk, op: CoreOperation) -> QuantisedValue | None:
    """Where the largest of stored integers is, there is the largest of what they stand for."""
    source = walk.stored.get(op.operands[0]) if op.opcode in _FINDING else None
    if source is None or source.affine is None:
        return None
    others = [walk.floats(operand) for operand in op.operands[1:]]
    return QuantisedValue(walk.builder.add(op.opcode, source.value, *others, **op.attributes))


def _moves_integers(walk: Walk, op: CoreOperation) -> bool:
    """Whether what is moved are integers already, which nobody wants as floats."""
    computed = walk.graph.computed_operands(op)
    if walk.graph.roles[op.value_id] != "keep" or len(computed) != 1:
        return False
    y = walk.scales.of(op.value_id)
    return walk.stored[computed[0]].affine == y and walk.is_only_stored(op, y)


def _is_bounded_by_storage(walk: Walk, op: CoreOperation) -> bool:
    """Whether bounds of floats are those of the integers that all of these become."""
    bounds, y = bounds_of(op), walk.scales.of(op.value_id)
    source = walk.stored.get(op.operands[0])
    is_float = source is not None and source.affine is None
    return (
        is_float
        and bounds is not None
        and y.is_unchanged_by_clip(*bounds)
        and walk.is_only_stored(op, y)
    )


def _from_integers(walk: Walk, op: CoreOperation) -> QuantisedValue | None:
    """Integers of a plain value as the reals that they stand for: nothing has to be done."""
    found, source = known_scale_and_zero(walk.graph.module, op), walk.stored.get(op.operands[0])
    is_i8 = walk.graph.op(op.operands[0]).type.dtype == "i8"
    if found is None or source is None or not is_i8 or not Affine(*found).is_sound:
        return None
    return QuantisedValue(source.value, Affine(*found))


def _to_integers(walk: Walk, op: CoreOperation) -> QuantisedValue | None:
    """Reals as the integers that the model asks for, a plain value from here on."""
    found = known_scale_and_zero(walk.graph.module, op)
    if found is None or op.attributes["to"] != "i8" or not Affine(*found).is_sound:
        return None
    return QuantisedValue(walk.integers(op.operands[0], Affine(*found)).value)


def _product(walk: Walk, op: CoreOperation) -> QuantisedValue:
    y = walk.scales.of(op.value_id)
    return QuantisedValue(_integer_product(walk, op, y, "i8"), y)


def _widened_product(walk: Walk, op: CoreOperation) -> QuantisedValue:
    """A product on integers whose result floats take up: 16 bits lose nothing of it."""
    y = walk.scales.wide(op.value_id)
    floats = walk.builder.add("Cast", _integer_product(walk, op, y, "i16"), to="f16")
    scale = walk.half_constant(np.float16(y.scale))
    return QuantisedValue(walk.builder.add("BinOp", floats, scale, op="Mul"))


def _product_of_parts(walk: Walk, op: CoreOperation) -> QuantisedValue:
    return product_of_parts(walk, op) or _widened_product(walk, op)


def _integer_product(walk: Walk, op: CoreOperation, y: Affine, elem: str) -> int:
    x = walk.integers(op.operands[0])
    assert x.affine is not None
    weights = walk.graph.constants[op.operands[1]]
    bias = walk.graph.constants[op.operands[2]] if len(op.operands) > 2 else None
    axis = 0 if op.opcode == "Linear" or _has_channels_first(op) else weights.ndim - 1
    integers = quantised_weights(
        weights, bias, axis, x.affine, y, searched=walk.searched, on_grid=walk.on_grid
    )
    if integers.widened:
        walk.notes.append(
            f"`{op.opcode}` %{op.value_id}: the bias of {integers.widened} channels is beyond i32 "
            "in units of their scales, which are widened"
        )
    # Steps of a recurrence have the same weights: one constant for all of them.
    key = (op.operands[1:], integers.scales, x.affine)
    stored = walk.make_once(("weights", key), lambda: walk.builder.constant(integers.stored, "i8"))
    added = walk.make_once(("bias", key), lambda: walk.builder.constant(integers.bias, "i32"))
    value = walk.builder.add(
        f"Q{op.opcode}", x.value, stored, added,
        **op.attributes, x_scale=x.affine.scale, x_zero=x.affine.zero,
        w_scales=integers.scales, y_scale=y.scale, y_zero=y.zero, to=elem,
    )  # fmt: skip
    units = np.float32(x.affine.scale) * np.array(integers.scales, np.float32)
    walk.products.append(Product(op.value_id, value, added, units))
    return value


def _pair(walk: Walk, op: CoreOperation) -> QuantisedValue:
    """Matrices that are both computed: sums of whole numbers, stored again.

    The device has this as one product; Core IR has no name for it, and the same bits.
    """
    sides, y = [walk.integers(o) for o in op.operands], walk.scales.of(op.value_id)
    wide = [_subtract_zero(walk, side) for side in sides]
    sums = walk.builder.add("Cast", walk.builder.add("MatMul", *wide), to="f32")
    affines = [side.affine for side in sides if side.affine is not None]
    a, b, unit = (walk.parameters(found)[0] for found in (*affines, y))
    both = walk.builder.add("BinOp", a, b, op="Mul")
    factor = walk.builder.add("BinOp", both, unit, op="Div")
    steps = walk.builder.add("BinOp", sums, factor, op="Mul")
    return QuantisedValue(walk.quantize(steps, Affine(1.0, y.zero)), y)


def _subtract_zero(walk: Walk, side: QuantisedValue) -> int:
    """Integers less their zero point, in i32."""
    assert side.affine is not None
    wide = walk.builder.add("Cast", side.value, to="i32")
    if not side.affine.zero:
        return wide
    zero = walk.builder.constant(np.int32(side.affine.zero), "i32")
    return walk.builder.add("BinOp", wide, zero, op="Sub")


def _has_channels_first(op: CoreOperation) -> bool:
    return bool(OPS[op.opcode].with_defaults(op.attributes).get("layout") == "NCHW")


def _scale(walk: Walk, op: CoreOperation) -> QuantisedValue:
    """Channels times a computed vector: a convolution of one place for each."""
    (x, w), y = (walk.integers(o) for o in op.operands), walk.scales.of(op.value_id)
    assert x.affine is not None
    assert w.affine is not None
    value = walk.builder.add(
        "QConv", x.value, w.value, **op.attributes,
        x_scale=x.affine.scale, x_zero=x.affine.zero, w_scales=(w.affine.scale,),
        w_zeros=(w.affine.zero,), y_scale=y.scale, y_zero=y.zero, to="i8",
    )  # fmt: skip
    return QuantisedValue(value, y)


def _map_reals(walk: Walk, op: CoreOperation) -> QuantisedValue:
    """Reals for a moment: out of integers, one operation in f32, and into integers again.

    Bounds that the scale itself keeps, products that only change the scale, and sums that only
    change the zero point, are nothing.
    """
    y = walk.scales.of(op.value_id)
    if walk.scales.is_alias(op.value_id):
        source = walk.stored[walk.graph.computed_operands(op)[0]]
        return QuantisedValue(source.value, y)
    bounds = bounds_of(op)
    if bounds is not None:
        source = walk.stored.get(op.operands[0], QuantisedValue(-1))
        if source.affine == y and y.is_unchanged_by_clip(*bounds):
            return source
    reals = [walk.real(walk.integers(operand)) for operand in op.operands]
    return QuantisedValue(walk.quantize(walk.builder.add(op.opcode, *reals, **op.attributes), y), y)


def _pool(walk: Walk, op: CoreOperation) -> QuantisedValue:
    x, y = walk.integers(op.operands[0]), walk.scales.of(op.value_id)
    assert x.affine is not None
    given = {name: v for name, v in op.attributes.items() if name != "dilations"}
    value = walk.builder.add(
        "QPool", x.value, op="Avg", **given, x_scale=x.affine.scale, x_zero=x.affine.zero,
        y_scale=y.scale, y_zero=y.zero, to="i8",
    )  # fmt: skip
    return QuantisedValue(value, y)


def _move_integers(walk: Walk, op: CoreOperation) -> QuantisedValue:
    """Integers moved about: all of one scale."""
    y = walk.scales.of(op.value_id)
    operands = [
        walk.integers(o, y).value if walk.graph.is_float(o) else walk.floats(o) for o in op.operands
    ]
    given: dict[str, Any] = dict(op.attributes)
    if op.opcode == "Pad":
        value = np.array(OPS["Pad"].with_defaults(op.attributes)["value"], np.float32)
        given["value"] = float(y.quantise(value))
    return QuantisedValue(walk.builder.add(op.opcode, *operands, **given), y)


_CONVERSIONS: Mapping[str, Callable[[Walk, CoreOperation], QuantisedValue | None]] = {
    "Dequantize": _from_integers,
    "Quantize": _to_integers,
}

_FORMS: Mapping[Role, Callable[[Walk, CoreOperation], QuantisedValue]] = {
    "input": _input,
    "product": _product,
    "pair": _pair,
    "scale": _scale,
    "map": _map_reals,
    "pool": _pool,
    "keep": _move_integers,
    "island": _island,
    "plain": _island,
}


def take_operation(walk: Walk, op: CoreOperation) -> None:
    """One operation of the float module."""
    role = walk.graph.roles[op.value_id]
    if role == "constant":
        return
    has_form = role == "input" or walk.islands.is_i8(walk.graph, op.value_id)
    form = _FORMS[role] if has_form else _island
    if op.value_id in walk.islands.widened:
        form = _widened_product
    elif op.value_id in walk.islands.parts:
        form = _product_of_parts
    walk.stored[op.value_id] = form(walk, op)
