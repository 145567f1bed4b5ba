"""The loop that reads the debugger's commands and carries them out."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import nullcontext

import click

from nacre.base.diagnostics import InputError
from nacre.base.excerpt import backquote, safe
from nacre.cli.debug import commands as debug_commands
from nacre.cli.debug.completion import install
from nacre.cli.debug.debugger import Debugger, Interrupted
from nacre.cli.machine import sentence
from nacre.cli.terminal.progress import show_stages

_MOST_LINE_BYTES = 65536


def run_commands(debugger: Debugger, lines: Iterable[str], is_watched: bool = False) -> bool:
    """Carry out commands, one a line; whether the debugger goes on after them."""
    for line in lines:
        if not is_watched:
            click.echo(f"{debugger.prompt}{safe(line.strip())}")
        carry_out(debugger, line)
        if debugger.is_over:
            break
    debugger.has_failed |= debugger.session.status == "error"
    return not debugger.is_over


def carry_out(debugger: Debugger, line: str) -> None:
    """One command; a mistake is said, never raised."""
    if not line.strip() or line.lstrip().startswith("#"):
        return
    name, argument = debug_commands.split_command(line)
    try:
        command = debug_commands.find_command(name)
        # Where nobody could go on after a pause, an interrupt ends everything.
        can_pause, interrupts = command.can_pause, debugger.interrupts
        interruptible = interrupts.during(can_pause) if debugger.is_watched else nullcontext()
        with interruptible, show_stages():
            command.run(debugger, argument)
    except Interrupted:
        click.echo("interrupted")
    except InputError as error:
        debugger.has_failed = True
        for finding in error.diagnostics:
            click.echo(f"error: {sentence(finding)}")
    except click.ClickException as error:
        debugger.has_failed = True
        click.echo(f"error: {error.message}")
    debugger.show_findings()


def typed_commands(debugger: Debugger) -> Iterator[str]:
    """Lines from a terminal, with history and completion; Ctrl-C drops one, Ctrl-D ends."""
    install(debugger)
    while True:
        try:
            yield input(debugger.prompt)
        except EOFError:
            click.echo()
            return
        except UnicodeDecodeError:
            click.echo("error: that line is not text")
        except KeyboardInterrupt:
            click.echo(f"\n{backquote('quit')} or Ctrl-D ends the session")


def piped_commands() -> Iterator[str]:
    """Lines from a standard input that is no terminal."""
    if sys.stdin is None:  # closed by whoever started us
        return
    while line := sys.stdin.buffer.readline(_MOST_LINE_BYTES):
        yield line.decode("utf-8", "replace").rstrip("\r\n")
