"""Is the plan right? Held to the legalised module to the bit, and to the model within bounds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from nacre.base.elements import GRAPH_TYPES
from nacre.compile.layout import layout
from nacre.compile.legalise import legalise
from nacre.compile.manifest import LayerEntry
from nacre.core.evaluate import checked_inputs, evaluate
from nacre.core.evaluation_plan import initial_values
from nacre.core.module import Module
from nacre.core.values import Array
from nacre.kernels.runs import quietly

if TYPE_CHECKING:
    from nacre.compile.bundle import Bundle

# The largest error that is accepted, as a part of the output's largest magnitude.
TOLERANCES: Mapping[str, float] = {"f16": 1e-2, "f32": 1e-4}


@dataclass(frozen=True)
class Difference:
    """Where the plan first departs from the legalised module."""

    layer: str
    position: tuple[int, ...]
    found: float
    expected: float

    def __str__(self) -> str:
        at = ", ".join(map(str, self.position))
        return f"`{self.layer}` at [{at}] is {self.found!r}, expected {self.expected!r}"


@dataclass(frozen=True)
class Validation:
    """Two numbers: against the legalised module, and against the model."""

    ok: bool
    first_difference: Difference | None  # against the legalised module, in ordered arithmetic
    error_by_output: Mapping[str, float]  # against the model, of the largest magnitude
    tolerance: float

    def __str__(self) -> str:
        errors = ", ".join(f"{name} {error:.2e}" for name, error in self.error_by_output.items())
        held = self.first_difference or "the plan equals the legalised module"
        is_lost = any(error == float("inf") for error in self.error_by_output.values())
        why = " (a number on one side, NaN or an infinity on the other)" if is_lost else ""
        return f"{'valid' if self.ok else 'NOT VALID'}: {held}; error of {errors}{why}"


def validated(bundle: Bundle, inputs: Mapping[str, Any]) -> Validation:
    """Run the plan and both modules on the same inputs."""
    source = bundle.source
    state = initial_values(source)
    arrays = {**state, **checked_inputs(source, inputs, state)}
    difference = _first_difference(bundle, arrays)
    got = bundle.run(inputs)
    expected = evaluate(source, inputs)
    errors = {
        name: _relative(array, wanted)
        for (name, array), wanted in zip(got.items(), expected, strict=True)
    }
    tolerance = TOLERANCES[bundle.manifest.precision]
    is_close = all(error <= tolerance for error in errors.values())
    return Validation(difference is None and is_close, difference, errors, tolerance)


def _relative(found: Array, expected: Array) -> float:
    """The largest error over the largest magnitude; infinite where one of them is no number."""
    a, b = found.astype(np.float64), expected.astype(np.float64)
    if not np.array_equal(np.isfinite(a), np.isfinite(b)):
        return float("inf")
    is_number = np.isfinite(b)
    worst = float(np.max(np.abs(a - b), where=is_number, initial=0.0))
    most = float(np.max(np.abs(b), where=is_number, initial=0.0))
    return worst / most if most else worst


def _first_difference(bundle: Bundle, arrays: Mapping[str, Array]) -> Difference | None:
    """The first layer whose tensor in memory has other bits than the legalised module gives.

    Layers run one after the other in program order, so a tensor is looked at when the next layer's
    first task comes: later layers may reuse its memory.
    """
    layers = bundle.manifest.layers
    owners = {token: index for index, layer in enumerate(layers) for token in layer.tasks}
    expected = _reference(bundle, arrays)
    session = bundle.started(arrays, ordered=True)
    current: int | None = None
    while True:
        coming = session.next_step
        owner = current if coming is None else owners.get(coming.partition("[")[0], current)
        if current is not None and (coming is None or owner != current):
            layer = layers[current]
            raw = session.read_buffer(layer.result.buffer)
            found = _difference(raw, layer, expected[layer.result.value])
            if found is not None:
                return found
        current = owner
        if coming is None or session.step().status == "error":
            return None


def _reference(bundle: Bundle, arrays: Mapping[str, Array]) -> dict[int, Array]:
    """The values of all layers' results by the legalised module."""
    legal = layout(legalise(bundle.source, bundle.manifest.precision)).module
    values = [layer.result.value for layer in bundle.manifest.layers]
    types = legal.input_types
    given = {
        name: quietly(array.astype, GRAPH_TYPES[types[name].dtype].dtype)
        for name, array in arrays.items()
    }
    found = evaluate(Module(legal.operations, tuple(values)), given, ordered=True)
    return dict(zip(values, found, strict=True))


def _difference(raw: bytes, layer: LayerEntry, expected: Array) -> Difference | None:
    dtype, offset = GRAPH_TYPES[layer.result.elem].dtype, layer.result.offset
    found = np.frombuffer(raw, dtype, expected.size, offset).reshape(expected.shape)
    differs = (found != expected) & ~(np.isnan(found) & np.isnan(expected))
    if not differs.any():
        return None
    at = tuple(int(i) for i in np.argwhere(differs)[0])
    return Difference(layer.name, at, float(found[at]), float(expected[at]))
