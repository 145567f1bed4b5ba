"""`nacre compare`: two plans of one model side by side."""

from __future__ import annotations

import json

import click

from nacre.base.stages import stage
from nacre.cli.accuracy.random_inputs import compare_on_random, input_option
from nacre.cli.arrays import InputFile
from nacre.cli.bundles import arrays_of, require_bundle
from nacre.cli.core.files import report_findings
from nacre.cli.exit_status import INCONCLUSIVE, OK
from nacre.cli.options import form_option, most_option, seed_option


@click.command()
@click.argument("first", metavar="BUNDLE")
@click.argument("second", metavar="BUNDLE")
@input_option
@seed_option
@most_option("How many nodes and layers the text has")
@form_option
def compare(
    first: str, second: str, inputs: tuple[InputFile, ...], seed: int, most: int, form: str
) -> int:
    """Compare two plans of one model, in two precisions or for two devices.

    Outputs beside the model's, what is left of each node, cycles of layers and bytes of weights.

    Exit status: 0, 1 errors in a bundle or in the inputs, or bundles of two models, 2 wrong usage,
    3 an output of the model proves nothing.
    """
    from nacre.compile.blame.text import comparison_text
    from nacre.compile.bundle.bundle import Bundle

    require_bundle(first)
    require_bundle(second)
    status = OK

    def work() -> None:
        nonlocal status
        with stage("loading"):
            one, other = (Bundle.load(folder, cache=True) for folder in (first, second))
        given = arrays_of(inputs, one.source)
        with stage("comparing"):
            found = one.compare(other, given) if given else compare_on_random(one, other, seed)
        status = OK if found.is_conclusive else INCONCLUSIVE
        if form == "json":
            click.echo(json.dumps(found.as_json(), indent=2))
        else:
            click.echo(comparison_text(found, (first, second), most))

    return report_findings(work, form) or status
