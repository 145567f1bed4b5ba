"""`nacre validate`: the numbers of a bundle against its model, and against those of others."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import click

from nacre.base.diagnostics import InputError
from nacre.base.excerpt import safe
from nacre.base.rendering import render_json, render_text
from nacre.base.stages import stage
from nacre.cli.arrays import InputFile, WrongUsage, parse_input
from nacre.cli.bundles import arrays_of
from nacre.cli.exit_status import ERRORS_FOUND, INCONCLUSIVE, OK
from nacre.cli.options import WholeNumber, form_option, repeated_option
from nacre.cli.terminal.progress import show_stages

if TYPE_CHECKING:
    from nacre.compile.bundle.bundle import Bundle
    from nacre.compile.bundle.manifest import Port
    from nacre.compile.bundle.validation import Validation
    from nacre.core.values import Array

_STATUS = {"valid": OK, "not valid": ERRORS_FOUND, "inconclusive": INCONCLUSIVE}


@click.command()
@click.argument("folder", metavar="BUNDLE")
@repeated_option(
    "--input",
    "inputs",
    parse_input,
    "NAME=FILE.npy",
    "An input of the model; may be repeated. Default: random ones, within what the model does "
    "with them.",
)
@repeated_option(
    "--expect",
    "expected",
    parse_input,
    "NAME=FILE.npy",
    "An output as somebody else has it; may be repeated. Default: what the model makes.",
)
@click.option("--seed", type=WholeNumber(min=0), default=0, help="Of random inputs. Default: 0.")
@form_option
def validate(
    folder: str,
    inputs: tuple[InputFile, ...],
    expected: tuple[InputFile, ...],
    seed: int,
    form: str,
) -> int:
    """Run BUNDLE, and compare what it computes with the model that it was compiled from.

    Two comparisons: every layer with the legalised module, bit by bit, and every output with the
    model, within the bound of the plan's precision. An output of the model that is the same
    everywhere, NaN or saturated proves nothing: that is inconclusive, and asks for other inputs.

    Exit status: 0 valid, 1 not valid or errors in the bundle or its inputs, 2 wrong usage,
    3 inconclusive.
    """
    from nacre.compile.bundle.bundle import Bundle

    if expected and not inputs:
        raise click.UsageError("--expect is about inputs that are known: give them with --input")
    if not os.path.isdir(folder):
        raise WrongUsage(f"{safe(folder)} is no bundle, which is a folder that `compile` wrote")
    try:
        with show_stages():
            with stage("loading"):
                bundle = Bundle.load(folder)
            with stage("comparing"):
                validation = (
                    bundle.validate(arrays_of(inputs, bundle.source), arrays_of(expected) or None)
                    if inputs or not bundle.manifest.inputs
                    else _validate_on_random(bundle, seed)
                )
    except InputError as error:
        is_json = form == "json"
        text = (render_json if is_json else render_text)(error.diagnostics)
        click.echo(text, err=not is_json)
        return ERRORS_FOUND
    how = "the inputs given" if inputs else f"random inputs, seed {seed}"
    click.echo(
        json.dumps(validation.as_json(), indent=2)
        if form == "json"
        else _text(bundle, validation, how)
    )
    return _STATUS[validation.verdict]


def _validate_on_random(bundle: Bundle, seed: int) -> Validation:
    """On the first of several draws of which the model makes something that can be compared."""
    from nacre.compile.bundle.validation import validate_bundle
    from nacre.compile.sampling.draw import ATTEMPTS

    for attempt in range(ATTEMPTS):
        others = _random_inputs(bundle, seed + 1, attempt)
        validation = validate_bundle(bundle, _random_inputs(bundle, seed, attempt), others=others)
        if validation.verdict != "inconclusive":
            break
    return validation


def _random_inputs(bundle: Bundle, seed: int, attempt: int) -> dict[str, Any]:
    from nacre.compile.sampling.draw import draw_inputs
    from nacre.compile.sampling.input_ranges import input_ranges

    # Without the model as it came, what is made of inputs shows in the legalised module.
    module = bundle.source if bundle.has_reference else bundle.legal
    arrays = draw_inputs(module, seed, attempt=attempt)
    if not bundle.has_reference:
        types = bundle.source.input_types
        arrays = {name: array.astype(types[name].element.dtype) for name, array in arrays.items()}
    for state in bundle.source.states:
        arrays.pop(state.name, None)
    ranges = input_ranges(module)
    for port in bundle.manifest.inputs:
        is_free = port.name in arrays and ranges[port.name].kind == "any"
        if port.scale is not None and is_free:
            arrays[port.name] = _move_into_range(port, arrays[port.name])
    return arrays


def _move_into_range(port: Port, array: Array) -> Array:
    """Random numbers moved to where the calibration data lay: a plan on integers has no others."""
    import numpy as np

    low, high = port.real(np.array([-128, 127], np.int8)).astype(np.float64)
    deviation = (high - low) / 6  # six deviations hold nearly all
    moved: Array = np.clip((low + high) / 2 + deviation * array, low, high)
    return moved.astype(array.dtype)


def _text(bundle: Bundle, validation: Validation, how: str) -> str:
    from nacre.compile.bundle.validation import ASK_FOR_DATA, VERDICTS

    manifest = bundle.manifest
    layers = f"{len(manifest.layers):,} layer{'' if len(manifest.layers) == 1 else 's'}"
    legal_text = (
        "the same bits"
        if validation.first_difference is None
        else safe(str(validation.first_difference))
    )
    lines = [
        f"{manifest.device}, {bundle.precision_text}, {layers}, {how}",
        f"against the legalised module: {legal_text}",
        f"against {validation.compared_with}{':' if validation.outputs else ''}",
        *(f"  {safe(output.name)}: {output.describe_with_bound}" for output in validation.outputs),
        *([] if validation.lost_most is None else [f"  {safe(str(validation.lost_most))}"]),
        *(f"  {safe(o.name)} proves nothing: {o.problem}" for o in validation.unproven),
        VERDICTS[validation.verdict],
    ]
    if validation.verdict == "inconclusive":
        options = " ".join(f"--input {port.name}=FILE.npy" for port in _input_ports(bundle))
        lines.append(f"help: {ASK_FOR_DATA}: {safe(options)}")
    return "\n".join(lines)


def _input_ports(bundle: Bundle) -> list[Port]:
    states = {state.input for state in bundle.manifest.states}
    return [port for port in bundle.manifest.inputs if port.name not in states]
