"""Inputs of a bundle: as options give them, else drawn from what the model does with them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nacre.cli.arrays import parse_input
from nacre.cli.options import repeated_option

if TYPE_CHECKING:
    from nacre.compile.blame.comparison import PlanComparison
    from nacre.compile.bundle.bundle import Bundle
    from nacre.compile.bundle.manifest import Port
    from nacre.compile.bundle.validation import Validation
    from nacre.core.values import Array

input_option = repeated_option(
    "--input",
    "inputs",
    parse_input,
    "NAME=FILE.npy",
    "An input of the model; may be repeated. Default: random ones, within what the model does "
    "with them.",
)


def validate_on_random(bundle: Bundle, seed: int) -> tuple[Validation, dict[str, Any]]:
    """Each output on the first of several draws of which the model makes something to compare."""
    from nacre.compile.bundle.validation import join_validations, validate_bundle
    from nacre.compile.sampling.draw import ATTEMPTS

    found: list[Validation] = []
    drawn: list[dict[str, Any]] = []
    for attempt in range(ATTEMPTS):
        others = random_inputs(bundle, seed + 1, attempt)
        drawn.append(random_inputs(bundle, seed, attempt))
        found.append(validate_bundle(bundle, drawn[-1], others=others))
        joined = join_validations(found)
        if joined.verdict != "inconclusive":
            break
    decided = next((at for at, one in enumerate(found) if one.verdict == joined.verdict), 0)
    return joined, drawn[decided]


def compare_on_random(first: Bundle, second: Bundle, seed: int) -> PlanComparison:
    """The same of two plans of one model."""
    from nacre.compile.sampling.draw import ATTEMPTS

    for attempt in range(ATTEMPTS):
        found = first.compare(second, random_inputs(first, seed, attempt))
        if found.is_conclusive:
            break
    return found


def random_inputs(bundle: Bundle, seed: int, attempt: int = 0) -> dict[str, Any]:
    """A draw; what nothing says more of lies where the calibration data lay."""
    from nacre.compile.sampling.draw import SIZES, draw_inputs
    from nacre.compile.sampling.input_ranges import input_ranges

    # Without the model as it came, what is made of inputs shows in the legalised module.
    module = bundle.source if bundle.has_reference else bundle.legal
    arrays = draw_inputs(module, seed, attempt=attempt)
    if not bundle.has_reference:
        types = bundle.source.input_types
        arrays = {
            port.name: port.in_model_order(arrays[port.name]).astype(types[port.name].element.dtype)
            for port in bundle.manifest.inputs
        }
    for state in bundle.source.states:
        arrays.pop(state.name, None)
    ranges = input_ranges(module)
    for port in bundle.manifest.inputs:
        is_free = port.name in arrays and ranges[port.name].kind == "any"
        if port.scale is not None and is_free:
            # A plan on integers has no other sizes: what lies outside is held at the ends.
            around_zero = arrays[port.name] / SIZES[attempt]
            arrays[port.name] = _move_into_range(port, around_zero)
    return arrays


def _move_into_range(port: Port, array: Array) -> Array:
    """Random numbers moved to where the calibration data lay: a plan on integers has no others."""
    import numpy as np

    low, high = port.real(np.array([-128, 127], np.int8)).astype(np.float64)
    deviation = (high - low) / 6  # six deviations hold nearly all
    moved: Array = np.clip((low + high) / 2 + deviation * array, low, high)
    return moved.astype(array.dtype)
