"""Parts of layers: what reads and writes other places, of fewer groups or of fewer columns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from nacre.compile.geometry import Window
from nacre.compile.partition.layers import Access, Axes, Layer, PackedWeights


def number_parts(whole: Layer, parts: list[Layer]) -> list[Layer]:
    """Parts under names of their own, known by the name of the whole."""
    return [
        replace(part, name=f"{whole.name}n{number}", part_of=whole.title)
        for number, part in enumerate(parts)
    ]


def with_accesses(layer: Layer, move: Callable[[int, Access], Access]) -> Layer:
    """A layer that reads and writes other parts of its tensors."""
    operands = tuple(move(local, access) for local, access in enumerate(layer.operands))
    results = tuple(replace(r, access=move(r.local, r.access)) for r in layer.results)
    return replace(layer, operands=operands, results=results)


def split_by_groups(layer: Layer, count: int) -> list[Layer] | None:
    """A convolution of several groups as several, of so many groups each."""
    window, packed = layer.window, layer.packed
    assert window is not None
    if packed is None:
        return None
    total = window.groups
    firsts = range(0, total, count)
    parts = [_group_layer(layer, packed, window, f, min(count, total - f)) for f in firsts]
    return number_parts(layer, parts)


def _group_layer(
    layer: Layer, packed: PackedWeights, window: Window, first: int, count: int
) -> Layer:
    each = layer.columns // window.groups
    depth = packed.inner[-1]  # input channels of a group
    x = layer.steps[0].inputs[0].local

    def move(local: int, access: Access) -> Access:
        at = len(access.axes) - 1
        if local == x:
            axes: Axes = (*access.axes[:at], count * depth)
            offset = access.offset + first * depth * access.strides[at]
            return replace(access, axes=axes, offset=offset)
        return replace(access, offset=access.offset + first * each * access.strides[at])

    part = with_accesses(layer, move)
    locals_ = tuple(
        replace(value, axes=(*value.axes[:-1], count * depth)) if local == x else value
        for local, value in enumerate(layer.locals)
    )
    part = with_weights(part, packed_part(packed, first * each, count * each))
    return replace(
        part,
        locals=locals_,
        columns=count * each,
        cuts_columns=count == 1,
        window=replace(window, groups=count),
        macs=layer.macs * count // window.groups,
    )


def column_layer(layer: Layer, first: int, count: int) -> Layer:
    """Some columns of a product by constant weights."""
    assert layer.packed is not None

    def move(_: int, access: Access) -> Access:
        return replace(access, offset=access.offset + first * access.stride_of("columns"))

    part = with_weights(with_accesses(layer, move), packed_part(layer.packed, first, count))
    return replace(part, columns=count, macs=layer.macs * count // layer.columns)


def packed_part(packed: PackedWeights, first: int, count: int) -> PackedWeights:
    """The weights of some columns."""
    part = slice(first, first + count)
    return replace(
        packed,
        array=packed.array[..., part],
        bias=None if packed.bias is None else packed.bias[part],
        groups=tuple(replace(one, array=one.array[..., part]) for one in packed.groups),
        quant=packed.quant.columns(first, count) if packed.quant else None,
        key=(*packed.key, -1 - first, count),
    )


def with_weights(layer: Layer, packed: PackedWeights) -> Layer:
    """A layer that multiplies by other weights."""
    assert layer.packed is not None
    step, old = layer.steps[0], layer.packed.quant
    inputs = tuple(
        replace(operand, quant=packed.quant) if operand.quant is old and n == 1 else operand
        for n, operand in enumerate(step.inputs)
    )
    return replace(layer, packed=packed, steps=(replace(step, inputs=inputs), *layer.steps[1:]))
