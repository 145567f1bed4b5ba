"""The `nacre` command: finds the verb, and turns every outcome into an exit status.

0 clean, 1 errors found in the input or a disk that is full, 2 wrong usage, 3 nothing proved, 70 a
bug of ours.
"""

from __future__ import annotations

import importlib
import io
import os
import sys

import click

from nacre._version import __version__
from nacre.base.hints import at_terminal
from nacre.cli.exit_status import ERRORS_FOUND, MACHINE_FAULTS, OK, OUR_BUG
from nacre.cli.terminal.interrupts import (
    STOPPED,
    exit_after_interrupt,
    is_interrupted,
    raise_interrupts,
)
from nacre.cli.terminal.library_warnings import show_by_code
from nacre.cli.terminal.streams import filter_output

# Verb -> module, attribute, what it does. Loaded when used: `nacre --version` imports none.
_VERBS = {
    "check": ("nacre.cli.check", "check", "find every mistake in NEM files"),
    "fmt": ("nacre.cli.fmt", "fmt", "rewrite NEM files in canonical form"),
    "pack": ("nacre.cli.nem.pack", "pack", "write NEM files as bytecode"),
    "unpack": ("nacre.cli.nem.pack", "unpack", "write bytecode as NEM text"),
    "rule": ("nacre.cli.rule", "rule", "explain a rule, or list them all"),
    "devices": ("nacre.cli.devices", "devices", "list the built-in devices, or describe one"),
    "run": ("nacre.cli.run", "run", "run a NEM program, bit-true"),
    "debug": ("nacre.cli.debug.command", "debug", "run a NEM program step by step"),
    "backend-check": (
        "nacre.cli.backend_check",
        "backend_check",
        "compare a backend's numbers",
    ),
    "compile": ("nacre.cli.compile", "compile_", "compile a model to a plan for a device"),
    "validate": (
        "nacre.cli.accuracy.validate",
        "validate",
        "compare a bundle's numbers with its model's",
    ),
    "evaluate": (
        "nacre.cli.accuracy.evaluate",
        "evaluate",
        "measure a plan and its model on labelled data",
    ),
    "compare": ("nacre.cli.accuracy.compare", "compare", "compare two plans of one model"),
    "estimate": ("nacre.cli.estimate", "estimate", "say whether a model fits and how fast it is"),
    "calibrate": (
        "nacre.cli.calibrate.command",
        "calibrate",
        "fit a device to measured times",
    ),
    "bind": ("nacre.cli.tcb.bind", "bind", "bind a plan to the hardware of a device"),
    "tcb": ("nacre.cli.tcb.command", "tcb", "look at, prove, run and time bound programs"),
    "demo": ("nacre.cli.demo", "demo", "take a trained network from its file to a report"),
    "core": ("nacre.cli.core.command", "core", "verify, rewrite and evaluate modules of Core IR"),
    "nem": ("nacre.cli.nem.command", "nem", "start programs; NEM in its other forms"),
    "llm": ("nacre.cli.llm.command", "llm", "look at and run language models"),
    "nac": ("nacre.cli.nac.command", "nac", "build, look at, verify and run files of NAC"),
}


class _Verbs(click.Group):
    """A group that imports a verb only when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Every verb, in the order of a day's work."""
        return list(_VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The verb, imported."""
        if cmd_name not in _VERBS:
            return None
        module, attribute, _ = _VERBS[cmd_name]
        command: click.Command = getattr(importlib.import_module(module), attribute)
        raise_interrupts()
        return command

    def invoke(self, ctx: click.Context) -> object:
        """The verb's outcome; an interrupt without the empty line that click would write."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise click.Abort from None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The verb that the arguments name; a misspelt one gets a suggestion."""
        if args and args[0] not in _VERBS and not args[0].startswith("-"):
            from nacre.base.excerpt import safe
            from nacre.base.suggest import did_you_mean

            hint = did_you_mean(args[0], _VERBS)
            ctx.fail(f"no such command '{safe(args[0])}'{'; ' + hint if hint else ''}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of verbs, without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, _, text) in _VERBS.items()])


@click.group(cls=_Verbs, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="nacre")
def main() -> None:
    """Model, plan, proof, bits and time for neural processors with software-managed memory."""


def run(arguments: list[str] | None = None) -> None:
    """Entry point of the console script: runs a verb and exits."""
    status = _exit_status(arguments)
    if is_interrupted():
        exit_after_interrupt(status)
    sys.exit(status)


def _exit_status(arguments: list[str] | None) -> int:
    _escape_unencodable()
    with filter_output(), at_terminal(), show_by_code():
        return _run_verb(arguments)


def _run_verb(arguments: list[str] | None) -> int:
    try:
        result = main.main(arguments, prog_name="nacre", standalone_mode=False)
        if sys.stdout is not None:
            sys.stdout.flush()
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        return _report_interrupt()
    except OSError as error:
        if error.errno not in MACHINE_FAULTS:
            return _report_bug(error)
        click.echo(f"nacre: cannot write the output: {error.strerror}", err=True)
        _discard_output()
        return ERRORS_FOUND
    except MemoryError as error:
        return _report_memory(error, sys.argv[1:] if arguments is None else arguments)
    except Exception as error:
        # An import that is interrupted may fail with an error of its own.
        return _report_interrupt() if is_interrupted() else _report_bug(error)
    return result if isinstance(result, int) else OK


def _report_interrupt() -> int:
    # A terminal has shown `^C`, and the cursor stands behind it.
    is_watched = sys.stderr is not None and sys.stderr.isatty()
    click.echo("\nstopped" if is_watched else "stopped", err=True)
    return STOPPED


def _escape_unencodable() -> None:
    """A character that the terminal's encoding lacks is shown by its number, never an error."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _discard_output() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _report_memory(error: MemoryError, arguments: list[str]) -> int:
    """The machine is too small for what was asked: that is no bug, and has a code (RUN06)."""
    why = f": {str(error)[:1].lower()}{str(error)[1:]}" if str(error) else ""
    verb = next((argument for argument in arguments if argument in _VERBS), "this")
    click.echo(
        f"error[RUN06]: {verb} needs more memory than this machine gives{why}{_memory_in_use()}",
        err=True,
    )
    click.echo("help: use a smaller input or device, or a machine with more memory", err=True)
    return ERRORS_FOUND


def _memory_in_use() -> str:
    try:
        import resource  # not on every system
    except ImportError:
        return ""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    return f"; nacre had taken {peak} MiB"


def _report_bug(error: Exception) -> int:
    click.echo(f"nacre: internal error: {type(error).__name__}: {error}", err=True)
    click.echo("this is a bug in nacre, not in your input; please report it", err=True)
    if os.environ.get("NACRE_TRACEBACK"):
        import traceback  # needed once in a blue moon, and slow to load

        traceback.print_exception(error)
    else:
        click.echo("set NACRE_TRACEBACK=1 to see where it happened", err=True)
    return OUR_BUG


if __name__ == "__main__":
    run()
