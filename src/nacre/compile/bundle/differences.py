"""The plan compared with the legalised module, layer by layer.

A layer is compared with what the legalised module makes of the same operands: integers to the bit,
floats to the bit too where both add up in one order, else within a few units of the last place.
Integers that floats were rounded to may hang on that order, so a difference that is found without
it counts only if it is found with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from nacre.base.elements import GRAPH_TYPES
from nacre.compile.bundle.manifest import LayerEntry, Result
from nacre.compile.bundle.reference import Reference
from nacre.core.values import Array

if TYPE_CHECKING:
    from nacre.compile.bundle.compiled_model import CompiledModel
    from nacre.nem.run.sessions.session import Session

# Above so many MACs of floats both sides add up in any order, which is much faster.
_MOST_ORDERED_MACS = 20_000_000
_EXACT = frozenset({"QConv", "QLinear"})  # sums of integers, in whatever order
_ROUNDED = frozenset({"MatMul", "Linear", "Conv"})
_ULPS = 4  # for each task of a layer, of its element or of a sixteenth of the largest


@dataclass(frozen=True)
class Difference:
    """Where the plan first departs from the legalised module."""

    layer: str
    operation: str  # in the legalised module, and where it comes from
    position: tuple[int, ...]
    found: float
    expected: float

    def __str__(self) -> str:
        at = ", ".join(map(str, self.position))
        return (
            f"`{self.layer}` ({self.operation}) at [{at}] is {self.found!r}, "
            f"expected {self.expected!r}"
        )


def first_difference(bundle: CompiledModel, arrays: Mapping[str, Array]) -> Difference | None:
    """The first layer whose values in memory are not what its operands give."""
    floats = sum(layer.macs for layer in bundle.manifest.layers if not _is_exact(layer))
    is_ordered = floats <= _MOST_ORDERED_MACS
    found = _first_difference(bundle, arrays, is_ordered)
    if found is None or is_ordered:
        return found
    return _first_difference(bundle, arrays, is_ordered=True)


def _is_exact(layer: LayerEntry) -> bool:
    opcodes = {origin.opcode for origin in layer.operations}
    return not opcodes.isdisjoint(_EXACT) and opcodes.isdisjoint(_ROUNDED)


def _first_difference(
    bundle: CompiledModel, arrays: Mapping[str, Array], is_ordered: bool
) -> Difference | None:
    """The same, with sums of floats in a fixed order or in any.

    Layers run one after the other in program order, so values are looked at when the next layer's
    first task comes: later layers may reuse their memory.
    """
    layers = bundle.manifest.layers
    owners = {token: index for index, layer in enumerate(layers) for token in layer.tasks}
    reference = Reference(bundle, arrays, is_ordered)
    session = bundle.start(arrays, ordered=is_ordered, is_watched=True)
    current: int | None = None
    while True:
        coming = session.next_step
        owner = current if coming is None else owners.get(coming.partition("[")[0], current)
        if current is not None and (coming is None or owner != current):
            difference = _compare_layer(session, bundle, current, reference, is_ordered)
            if difference is not None:
                return difference
        current = owner
        if coming is None:
            return _compare_outputs(session, bundle, reference, is_ordered)
        if session.step().status == "error":
            return None


def _compare_layer(
    session: Session, bundle: CompiledModel, index: int, reference: Reference, is_exact: bool
) -> Difference | None:
    layer = bundle.manifest.layers[index]
    for result in layer.results:
        actual = _read_result(session, result)
        expected = reference.expected(result.value)
        reference.record(result.value, actual)
        ulps = 0 if is_exact else _ULPS * len(layer.operations)
        at = _position(actual, expected, ulps)
        if at is not None:
            origin = next((o for o in layer.operations if o.legal == result.value), None)
            what = f"{origin.opcode} %{result.value}" if origin else f"%{result.value}"
            what += f" of {origin.node}" if origin and origin.node else ""
            return Difference(layer.name, what, at, float(actual[at]), float(expected[at]))
    return None


def _compare_outputs(
    session: Session, bundle: CompiledModel, reference: Reference, is_exact: bool
) -> Difference | None:
    """Outputs in their place: what was copied there, and what no layer was compared for."""
    for port, value in zip(bundle.manifest.outputs, bundle.legal.outputs, strict=True):
        raw = np.frombuffer(session.read_buffer(port.buffer), GRAPH_TYPES[port.elem].dtype)
        actual, expected = raw.reshape(port.memory_shape), reference.actual(value)
        at = _position(actual, expected, 0 if is_exact else _ULPS)
        if at is not None:
            what = f"{bundle.legal.by_id[value].opcode} %{value}"
            return Difference(port.name, what, at, float(actual[at]), float(expected[at]))
    return None


def _read_result(session: Session, result: Result) -> Array:
    """A value as it lies in memory."""
    dtype = GRAPH_TYPES[result.elem].dtype
    size = dtype.itemsize
    reach = 1 + sum((n - 1) * s for n, s in zip(result.shape, result.strides, strict=True))
    # Its own bytes alone: where those beside them come from is looked for through the whole run.
    raw = session.peek(result.buffer, result.offset, result.offset + reach * size)
    part = np.frombuffer(raw, dtype)
    strides = [s * size for s in result.strides]
    elements: Array = np.lib.stride_tricks.as_strided(part, result.shape, strides)
    return elements.copy()


def _position(found: Array, expected: Array, ulps: int) -> tuple[int, ...] | None:
    """The first element that differs by more than some units of the last place."""
    if expected.dtype == np.bool_:
        found = found.astype(np.bool_)
    differs = found != expected
    if expected.dtype.kind not in "iub":
        differs &= ~(np.isnan(found) & np.isnan(expected))
        if ulps and differs.any():
            a, b = found.astype(np.float64), expected.astype(np.float64)
            finite = np.isfinite(b) & np.isfinite(a)
            most = float(np.max(np.abs(b), where=finite, initial=0.0))
            digits = {2: 2.0**-10, 4: 2.0**-23}.get(expected.dtype.itemsize, 2.0**-23)
            allowed = ulps * digits * np.maximum(np.abs(b), most / 16)
            with np.errstate(invalid="ignore"):
                differs &= ~(finite & (np.abs(a - b) <= allowed))
    if not differs.any():
        return None
    return tuple(int(i) for i in np.argwhere(differs)[0])
