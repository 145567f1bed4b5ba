"""`nacre core grad`: a module with its gradients."""

from __future__ import annotations

from pathlib import Path

import click

from nacre.cli.core.files import (
    Shapes,
    format_option,
    module_out_option,
    print_or_save,
    read_module,
    report_findings,
    require_target,
    shape_option,
)


@click.command("grad")
@click.argument("file")
@click.option(
    "--wrt",
    "names",
    multiple=True,
    required=True,
    metavar="NAME",
    help="An input to take the gradient by; may be repeated.",
)
@module_out_option
@shape_option
@format_option
def grad(file: str, names: tuple[str, ...], out: Path | None, shapes: Shapes, output: str) -> int:
    """Add gradients to a module.

    The outputs stay, and behind them comes the gradient of their sum by each input that --wrt
    names, in that order.
    """
    from nacre.core.gradients.grad import grad as differentiated

    require_target(out, [file])

    def work() -> None:
        print_or_save(differentiated(read_module(file, shapes), names), out, output)

    return report_findings(work, output)
