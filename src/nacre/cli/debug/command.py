"""`nacre debug`: run a NEM program step by step, forwards and backwards, in a terminal."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from nacre.base.diagnostics import InputError
from nacre.base.excerpt import safe
from nacre.base.rendering import summary
from nacre.cli.bundles import findings_to_show, open_bundle
from nacre.cli.exit_status import ERRORS_FOUND, OK
from nacre.cli.machine import (
    Setup,
    check_program,
    interpreter,
    load_inputs,
    machine_options,
    read_program,
    replay_order,
    show_findings,
)
from nacre.cli.terminal.progress import show_stages

if TYPE_CHECKING:
    from nacre.nem.api.programs import LoadedProgram
    from nacre.nem.run.sessions.session import Session


@click.command()
@machine_options
@click.option("--mode", type=click.Choice(["functional", "timed"]), default="functional")
@click.option("--command", "commands", multiple=True, metavar="CMD", help="Do this first.")
@click.option(
    "--batch", is_flag=True, help="End after the commands; read none from standard input."
)
def debug(setup: Setup, mode: str, commands: tuple[str, ...], batch: bool) -> int:
    """Run a NEM program or a compiled bundle step by step; `help` lists the commands.

    Commands are read from standard input, a terminal or not. Exit status: 0; 1 errors in the
    program or its inputs and, where nobody sits at the terminal, a command that failed or a run
    that ended in an error; 2 wrong usage; 130 interrupted, where nobody sits at the terminal.
    """
    from nacre.cli.debug.bundle_names import BundleNames
    from nacre.cli.debug.debugger import Debugger
    from nacre.cli.debug.loop import piped_commands, run_commands, typed_commands

    setup.require_one_order(mode)
    is_watched = not batch and sys.stdin is not None and sys.stdin.isatty()
    try:
        with show_stages():
            bundle = open_bundle(setup, ())
            setup = setup if bundle is None else bundle.setup
            program = read_program(setup)
            findings = findings_to_show(bundle, check_program(program, setup))
            inputs, order = load_inputs(setup, program), replay_order(setup)
            inputs |= {} if bundle is None else bundle.filled
            debugger = Debugger(
                program.source,
                # DDR belongs to an interpreter: a run from the start gets a new one.
                lambda: _start_session(setup, mode, program, inputs, order),
                None if bundle is None else BundleNames(bundle.bundle.manifest),
                is_watched=is_watched,
            )
    except InputError as error:
        show_findings(error.diagnostics)
        click.echo(f"did not start {safe(setup.file)}: {summary(error.diagnostics)}")
        return ERRORS_FOUND
    show_findings(findings)
    debugger.greet(program.name, program.device.name)
    if run_commands(debugger, commands) and not batch:
        lines = typed_commands(debugger) if is_watched else piped_commands()
        run_commands(debugger, lines, is_watched)
    return ERRORS_FOUND if debugger.has_failed and not is_watched else OK


def _start_session(
    setup: Setup,
    mode: str,
    program: LoadedProgram,
    inputs: dict[str, Any],
    order: list[str] | None,
) -> Session:
    machine = interpreter(setup)
    machine.set_mode(mode)
    return machine.start(
        program, inputs, allow=setup.allow, order=order, detect_races=setup.detect_races
    )
