"""The debugger: where a session stands, what stopped it, and what is shown of it."""

from __future__ import annotations

import re
import signal
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from types import FrameType, TracebackType

import click

from nacre.base.diagnostics import Diagnostic
from nacre.base.excerpt import excerpt, safe
from nacre.base.source import Source
from nacre.cli.debug.bundle_names import BundleNames, describe_layer
from nacre.cli.machine import findings_text
from nacre.cli.terminal.streams import echo_as_is
from nacre.nem.run.memory.host import host_error
from nacre.nem.run.sessions.session import RunResult, Session
from nacre.nem.run.sessions.stops import Breakpoint, Watchpoint

_REASON = re.compile(r"(?:break|watch)point (?P<number>\d+): ")


class BrokenOff(KeyboardInterrupt):
    """A command was interrupted that cannot pause."""


class Interrupts(AbstractContextManager[None]):
    """Ctrl-C while a command runs, where somebody sits at the terminal.

    A command that moves the run looks at `is_asked` and pauses between two steps; a second Ctrl-C
    ends it all. Any other command is broken off.
    """

    def __init__(self) -> None:
        self.is_asked = False
        self._can_pause = False

    def during(self, can_pause: bool) -> AbstractContextManager[None]:
        """While a command runs."""
        self._can_pause = can_pause
        return self

    def __enter__(self) -> None:
        self.is_asked = False
        self._usual = signal.signal(signal.SIGINT, self._heard)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        signal.signal(signal.SIGINT, self._usual)

    def _heard(self, number: int, frame: FrameType | None) -> None:
        if self.is_asked:
            raise KeyboardInterrupt
        self.is_asked = True
        if not self._can_pause:
            raise BrokenOff


@dataclass(frozen=True, slots=True)
class Stop:
    """A breakpoint or watchpoint under the number that the user knows."""

    number: int
    label: str
    made: Breakpoint | Watchpoint

    @property
    def kind(self) -> str:
        """`breakpoint` or `watchpoint`."""
        return "breakpoint" if isinstance(self.made, Breakpoint) else "watchpoint"

    def __str__(self) -> str:
        return f"{self.kind} {self.number}: {self.label}"


class Debugger:
    """A session and the person in front of it."""

    def __init__(
        self,
        source: Source,
        start: Callable[[], Session],
        names: BundleNames | None = None,
        *,
        is_watched: bool = True,
    ) -> None:
        self.source = source
        self.names = names  # of a bundle
        self.is_watched = is_watched  # somebody can type what comes after a pause
        self.interrupts = Interrupts()
        self.stops: list[Stop] = []
        self.has_failed = False  # a command was wrong, or the run ended in an error
        self.is_over = False
        self._start = start
        self._stops_made = 0
        self._shown: list[Diagnostic] = []
        self.session = self._started()

    def _started(self) -> Session:
        session = self._start()
        # The only place between two steps at which a run can be told to pause.
        self._pause = session.add_breakpoint(condition=lambda _: self.interrupts.is_asked)
        return session

    def restart(self) -> None:
        """Begin again: memory as at the start, stops as they are."""
        before, self.session = self.session, self._started()
        before.close()
        self._shown = []
        self.stops = [replace(s, made=_recreate_stop(s.made, self.session)) for s in self.stops]

    def add_stop(self, made: Breakpoint | Watchpoint, label: str) -> Stop:
        """Give a stop the next number."""
        self._stops_made += 1
        stop = Stop(self._stops_made, safe(label), made)
        self.stops.append(stop)
        return stop

    def delete_stop(self, number: int) -> None:
        """Remove a stop by its number."""
        found = next((stop for stop in self.stops if stop.number == number), None)
        if found is None:
            raise host_error(f"there is no breakpoint or watchpoint {number}")
        self.session.remove_stop(found.made.number)
        self.stops.remove(found)

    # What is shown

    def greet(self, name: str, device: str) -> None:
        """The first lines."""
        count = self.session.steps.count
        steps = f"{count} step{'' if count == 1 else 's'}"
        click.echo(f"{safe(name)} on {safe(device)}: {steps}; `help` lists the commands")
        self.show_place()

    @property
    def prompt(self) -> str:
        """`(tC[0] line 72) `: what comes next."""
        step = self.session.next_step
        if step is None:
            return f"({self.session.status}) "
        return f"({step} line {self.session.next_line}) "

    def show_place(self, why: str | None = None) -> None:
        """One line that says why it stopped and what comes next, and that line of the source."""
        session = self.session
        debug = session.next_debug_name
        layer = self.names.layer_of(session.next_step) if self.names is not None else None
        told = f"@debug {safe(debug)}" if debug else ""
        told = describe_layer(layer) if layer is not None else told
        state = f"next is {session.next_step}{f' ({told})' if told else ''}"
        if session.next_line is None:
            total = session.steps.count
            taken = total if session.status == "finished" else len(session.order)
            state = f"{session.status} after {taken} of {total} steps"
        click.echo(f"{why}; {state}" if why else state)
        if session.next_line is not None:
            click.echo(self.source_line(session.next_line))

    def source_line(self, line: int, mark: str = " ") -> str:
        """A line of the program with its number."""
        text = excerpt(self.source.line_text(line), 0, 0)[0]
        return f"{mark}{line:5} | {text}".rstrip()

    def show_result(self, result: RunResult) -> None:
        """How a run, or a part of it, ended."""
        self.show_place(self._reason(result))

    def _reason(self, result: RunResult) -> str | None:
        """The session's reason, in the user's numbers and words."""
        match = _REASON.match(result.reason or "")
        if result.reason is None or match is None:
            return result.reason
        number = int(match["number"])
        if number == self._pause.number:
            return "interrupted"
        stop = next(s for s in self.stops if s.made.number == number)
        return result.reason.replace(f" {number}: {stop.made}", f" {stop.number}: {stop.label}", 1)

    def show_findings(self) -> None:
        """What the latest command brought up."""
        found = list(self.session.diagnostics)
        text = findings_text(d for d in found if d not in self._shown)
        self._shown = found
        if text:
            echo_as_is(text, nl=False)


def _recreate_stop(stop: Breakpoint | Watchpoint, session: Session) -> Breakpoint | Watchpoint:
    """The same stop in another session of the program."""
    if isinstance(stop, Breakpoint):
        return session.add_breakpoint(stop.task, stop.line, stop.loop_iter, stop.condition)
    # A name may mean another iteration by now; the bytes are what was asked for.
    return session.add_watchpoint(stop.region, stop.token, stop.access, stop.condition)
