"""What the debugger offers when the tab key is pressed."""

from __future__ import annotations

import glob
import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from nacre.base.diagnostics import InputError
from nacre.cli.debug.commands import COMMANDS, find_command, split_command
from nacre.cli.debug.model_values import port_names
from nacre.nem.run.memory.regions import named_regions
from nacre.nem.run.sessions.statistics import STATISTICS

if TYPE_CHECKING:
    from nacre.cli.debug.bundle_names import BundleNames
    from nacre.cli.debug.debugger import Debugger
    from nacre.nem.run.sessions.session import Session

# Names such as tC[0], wait@70 and back-until are one word; a file follows `=`.
DELIMITERS = " \t\n="


def completions(
    line: str, word: str, session: Session, names: BundleNames | None = None
) -> list[str]:
    """What may stand where `word`, the end of `line`, stands."""
    before = line[: len(line) - len(word)]
    if not before.strip():
        return [command.name + " " for command in COMMANDS if command.name.startswith(word)]
    try:
        command = find_command(split_command(before)[0])
    except InputError:
        return []
    kinds = command.after_equals if before.endswith("=") else command.completes
    if command.after_if and " if " in before:
        kinds = command.after_if
    candidates = [name for kind in kinds for name in _names(kind, word, session, names)]
    return list(dict.fromkeys(name for name in candidates if name.startswith(word)))


def _names(kind: str, word: str, session: Session, names: BundleNames | None) -> list[str]:
    if kind.startswith("="):
        return [kind[1:] + " "]
    if kind in _OF_BUNDLES:
        return _OF_BUNDLES[kind](names) if names is not None else []
    return _KINDS[kind](word, session)


def _files(word: str, session: Session) -> list[str]:
    paths = glob.glob(glob.escape(word) + "*")
    return sorted(path + (os.sep if os.path.isdir(path) else "") for path in paths)


_KINDS: dict[str, Callable[[str, Session], list[str]]] = {
    "commands": lambda word, session: [command.name for command in COMMANDS],
    "tasks": lambda word, session: list(session.steps.by_name),
    "regions": lambda word, session: list(named_regions(session.plan)),
    "buffers": lambda word, session: [b.name for b in session.plan.program.buffers],
    "numbers": lambda word, session: sorted(session.scope.numbers),
    "statistics": lambda word, session: list(STATISTICS),
    "files": _files,
}


_OF_BUNDLES: dict[str, Callable[[BundleNames], list[str]]] = {
    "layer": lambda names: ["layer "],
    "layers": lambda names: list(names.by_name),
    "ports": port_names,
}


def install(debugger: Debugger) -> None:
    """Give the terminal history and completion, where Python has them."""
    try:
        import readline
    except ImportError:  # not every build of Python has it
        return
    matches: list[str] = []

    def complete(word: str, state: int) -> str | None:
        if state == 0:
            line = readline.get_line_buffer()[: readline.get_endidx()]
            matches[:] = completions(line, word, debugger.session, debugger.names)
        return matches[state] if state < len(matches) else None

    readline.set_completer_delims(DELIMITERS)
    readline.set_completer(complete)
    readline.parse_and_bind("tab: complete")
