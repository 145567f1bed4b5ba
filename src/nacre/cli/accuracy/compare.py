"""`nacre compare`: two plans of one model side by side."""

from __future__ import annotations

import json

import click

from nacre.base.diagnostics import InputError
from nacre.base.rendering import render_json, render_text
from nacre.base.stages import stage
from nacre.cli.accuracy.random_inputs import random_inputs
from nacre.cli.arrays import InputFile, parse_input
from nacre.cli.bundles import arrays_of, require_bundle
from nacre.cli.exit_status import ERRORS_FOUND, OK
from nacre.cli.options import WholeNumber, form_option, repeated_option
from nacre.cli.terminal.progress import show_stages


@click.command()
@click.argument("first", metavar="BUNDLE")
@click.argument("second", metavar="BUNDLE")
@repeated_option(
    "--input",
    "inputs",
    parse_input,
    "NAME=FILE.npy",
    "An input of the model; may be repeated. Default: random ones, within what the model does "
    "with them.",
)
@click.option("--seed", type=WholeNumber(min=0), default=0, help="Of random inputs. Default: 0.")
@click.option(
    "--most",
    type=WholeNumber(min=1),
    default=20,
    metavar="N",
    help="How many nodes and layers the text has. Default: 20.",
)
@form_option
def compare(
    first: str, second: str, inputs: tuple[InputFile, ...], seed: int, most: int, form: str
) -> int:
    """Compare two plans of one model, in two precisions or for two devices.

    Outputs beside the model's, what is left of each node, cycles of layers and bytes of weights.

    Exit status: 0, 1 errors in a bundle or in the inputs, or bundles of two models, 2 wrong usage.
    """
    from nacre.compile.blame.text import comparison_text
    from nacre.compile.bundle.bundle import Bundle

    require_bundle(first)
    require_bundle(second)
    try:
        with show_stages():
            with stage("loading"):
                plans = Bundle.load(first), Bundle.load(second)
            given = arrays_of(inputs, plans[0].source)
            with stage("comparing"):
                found = plans[0].compare(plans[1], given or random_inputs(plans[0], seed))
    except InputError as error:
        is_json = form == "json"
        click.echo((render_json if is_json else render_text)(error.diagnostics), err=not is_json)
        return ERRORS_FOUND
    is_json = form == "json"
    click.echo(
        json.dumps(found.as_json(), indent=2)
        if is_json
        else comparison_text(found, (first, second), most)
    )
    return OK
