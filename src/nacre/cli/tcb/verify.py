"""`nacre tcb verify`: whether an image means what its program means."""

from __future__ import annotations

import click

from nacre.base.diagnostics import InputError, has_errors
from nacre.base.excerpt import safe
from nacre.base.rendering import summary
from nacre.cli.exit_status import ERRORS_FOUND, OK
from nacre.cli.inputs import STDIN, show
from nacre.cli.options import form_option
from nacre.cli.tcb.group import ProgramOptions, open_image, open_program, program_options, tcb
from nacre.cli.terminal.progress import show_stages


@tcb.command()
@click.argument("image", metavar="FILE.tcb")
@program_options
@form_option
def verify(image: str, program: ProgramOptions, form: str) -> int:
    """Prove that an image means what its program means, whatever made it.

    Every instance of a task has its block, touches the same bytes, and is ordered before what the
    plan orders it before; buffers lie apart, and nothing waits for ever.

    Exit status: 0 proved, 1 not proved, or errors in one of the files, 2 wrong usage.
    """
    if image == program.file == STDIN:
        raise click.UsageError("one of the two may be standard input")
    try:
        with show_stages():
            bound = open_image(image)
            findings = bound.verify(open_program(program).bindable)
    except InputError as error:
        findings = list(error.diagnostics)
    show(findings, form)
    if form == "text":
        names = f"{safe(image)} means what {safe(program.file)} means"
        is_proved = not has_errors(findings)
        click.echo(f"proved: {names}" if is_proved else f"not proved: {summary(findings)}")
    return ERRORS_FOUND if has_errors(findings) else OK
