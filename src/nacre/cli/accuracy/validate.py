"""`nacre validate`: the numbers of a bundle against its model, and against those of others."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from nacre.base.excerpt import safe
from nacre.base.stages import stage
from nacre.cli.accuracy.blame import BlameOptions, find_noise, noise_text
from nacre.cli.accuracy.random_inputs import input_option, validate_on_random
from nacre.cli.arrays import InputFile, parse_input
from nacre.cli.bundles import arrays_of, require_bundle
from nacre.cli.core.files import report_findings
from nacre.cli.exit_status import ERRORS_FOUND, INCONCLUSIVE, OK
from nacre.cli.options import (
    WholeNumber,
    form_option,
    most_option,
    options_of,
    repeated_option,
    seed_option,
)

if TYPE_CHECKING:
    from nacre.compile.bundle.bundle import Bundle
    from nacre.compile.bundle.manifest import Port
    from nacre.compile.bundle.validation import Validation

_STATUS = {"valid": OK, "not valid": ERRORS_FOUND, "inconclusive": INCONCLUSIVE}


@click.command()
@click.argument("folder", metavar="BUNDLE")
@input_option
@repeated_option(
    "--expect",
    "expected",
    parse_input,
    "NAME=FILE.npy",
    "An output as somebody else has it; may be repeated. Default: what the model makes.",
)
@seed_option
@options_of(
    BlameOptions,
    "blame",
    click.option(
        "--blame",
        "is_wanted",
        is_flag=True,
        help="Say of every tensor what noise goes in, is added and is passed on.",
    ),
    click.option(
        "--remedies",
        type=WholeNumber(min=0, max=64),
        default=0,
        metavar="N",
        help="With --blame: what keeping each of the N layers that add most in f16 costs and "
        "brings; the model is compiled N + 1 times. Default: 0.",
    ),
    click.option(
        "--calibrate",
        "calibration",
        type=click.Path(path_type=Path),
        metavar="FILE.npz",
        help="With --remedies: inputs that their scales come from. Default: those of the run.",
    ),
    click.option(
        "--report",
        type=click.Path(path_type=Path, dir_okay=False),
        metavar="FILE.html",
        help="With --blame: write a page with the layers, their times and their noise.",
    ),
    most_option("With --blame: how many tensors the text has"),
)
@form_option
def validate(
    folder: str,
    inputs: tuple[InputFile, ...],
    expected: tuple[InputFile, ...],
    seed: int,
    blame: BlameOptions,
    form: str,
) -> int:
    """Run BUNDLE, and compare what it computes with the model that it was compiled from.

    Two comparisons: every layer with the legalised module, bit by bit, and every output with the
    model, within the bound of the plan's precision. An output of the model that is the same
    everywhere, NaN or saturated proves nothing: that is inconclusive, and asks for other inputs.

    With --blame the noise of every tensor is measured against the model in f32: what goes in, what
    the tensor adds by itself, what it passes on.

    Exit status: 0 valid, 1 not valid or errors in the bundle or its inputs, 2 wrong usage,
    3 inconclusive.
    """
    from nacre.compile.bundle.bundle import Bundle

    if expected and not inputs:
        raise click.UsageError("--expect is about inputs that are known: give them with --input")
    blame.require_sense()
    require_bundle(folder)
    status = OK

    def work() -> None:
        nonlocal status
        with stage("loading"):
            bundle = Bundle.load(folder, cache=True)
        with stage("comparing"):
            given = arrays_of(inputs, bundle.source)
            if inputs or not bundle.manifest.inputs:
                validation = bundle.validate(given, arrays_of(expected) or None)
            else:
                validation, given = validate_on_random(bundle, seed)
        found = find_noise(bundle, given, blame) if blame.is_wanted else None
        status = _STATUS[validation.verdict]
        if form == "json":
            noise = {} if found is None else {"blame": found.as_json()}
            click.echo(json.dumps({**validation.as_json(), **noise}, indent=2))
            return
        how = "the inputs given" if inputs else f"random inputs, seed {seed}"
        click.echo(_text(bundle, validation, how))
        if found is not None:
            click.echo("\n" + noise_text(found, blame))

    return report_findings(work, form) or status


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
        *(f"  {safe(output.describe_problem)}" for output in validation.unproven),
        VERDICTS[validation.verdict],
    ]
    if validation.verdict == "inconclusive":
        options = " ".join(f"--input {port.name}=FILE.npy" for port in _input_ports(bundle))
        lines.append(f"help: {ASK_FOR_DATA}: {safe(options)}")
    return "\n".join(lines)


def _input_ports(bundle: Bundle) -> list[Port]:
    states = {state.input for state in bundle.manifest.states}
    return [port for port in bundle.manifest.inputs if port.name not in states]
