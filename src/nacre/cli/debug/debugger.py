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

_REASON = re.compile(r"(?:break|watch)point (?P<number>[0-9]+): ")


class Interrupted(KeyboardInterrupt):
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
        self._usual = signal.signal(signal.SIGINT, self._handle_signal)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        signal.signal(signal.SIGINT, self._usual)

    def _handle_signal(self, number: int, frame: FrameType | None) -> None:
        if self.is_asked:
            raise KeyboardInterrupt
        self.is_asked = True
        if not self._can_pause:
            raise Interrupted


@dataclass(frozen=True, slots=True)
class Stop:
    """A breakpoint or watchpoint under the number that the user knows."""

    number: int
    label: str
    point: Breakpoint | Watchpoint

    @property
    def kind(self) -> str:
        """`breakpoint` or `watchpoint`."""
        return "breakpoint" if isinstance(self.point, Breakpoint) else "watchpoint"

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
        self._stop_count = 0
        self._shown: list[Diagnostic] = []
        self.session = self._start_session()

    def _start_session(self) -> Session:
        session = self._start()
        # The only place between two steps at which a run can be told to pause.
        self._pause = session.add_breakpoint(condition=lambda _: self.interrupts.is_asked)
        return session

    def restart(self) -> None:
        """Begin again: memory as at the start, stops as they are."""
        before, self.session = self.session, self._start_session()
        before.close()
        self._shown = []
        self.stops = [replace(s, point=_recreate_stop(s.point, self.session)) for s in self.stops]

    def add_stop(self, point: Breakpoint | Watchpoint, label: str) -> Stop:
        """Give a stop the next number."""
        self._stop_count += 1
        stop = Stop(self._stop_count, safe(label), point)
        self.stops.append(stop)
        return stop

    def delete_stop(self, number: int) -> None:
        """Remove a stop by its number."""
        numbered = next((stop for stop in self.stops if stop.number == number), None)
        if numbered is None:
            raise host_error(f"there is no breakpoint or watchpoint {number}")
        self.session.remove_stop(numbered.point.number)
        self.stops.remove(numbered)

    # What is shown

    def greet(self, name: str, device: str) -> None:
        """The first lines."""
        count = self.session.steps.count
        steps = f"{count} step{'' if count == 1 else 's'}"
        click.echo(f"{safe(name)} on {safe(device)}: {steps}; `help` lists the commands")
        self.show_position()

    @property
    def prompt(self) -> str:
        """`(tC[0] line 72) `: what comes next."""
        step = self.session.next_step
        if step is None:
            return f"({self.session.status}) "
        return f"({step} line {self.session.next_line}) "

    def show_position(self, why: str | None = None) -> None:
        """One line that says why it stopped and what comes next, and that line of the source."""
        session = self.session
        debug = session.next_debug_name
        layer = self.names.layer_of(session.next_step) if self.names is not None else None
        title = f"@debug {safe(debug)}" if debug else ""
        title = describe_layer(layer) if layer is not None else title
        state = f"next is {session.next_step}{f' ({title})' if title else ''}"
        if session.next_line is None:
            total = session.steps.count
            count = total if session.status == "finished" else len(session.order)
            state = f"{session.status} after {count} of {total} steps"
        click.echo(f"{why}; {state}" if why else state)
        if session.next_line is not None:
            click.echo(self.source_line(session.next_line))

    def source_line(self, line: int, mark: str = " ") -> str:
        """A line of the program with its number."""
        text = excerpt(self.source.line_text(line), 0, 0)[0]
        return f"{mark}{line:5} | {text}".rstrip()

    def show_result(self, result: RunResult) -> None:
        """How a run, or a part of it, ended."""
        self.show_position(self._reason(result))

    def _reason(self, result: RunResult) -> str | None:
        """The session's reason, in the user's numbers and words."""
        match = _REASON.match(result.reason or "")
        if result.reason is None or match is None:
            return result.reason
        number = int(match["number"])
        if number == self._pause.number:
            return "interrupted"
        stop = next(s for s in self.stops if s.point.number == number)
        return result.reason.replace(f" {number}: {stop.point}", f" {stop.number}: {stop.label}", 1)

    def show_findings(self) -> None:
        """What the latest command brought up."""
        findings = list(self.session.diagnostics)
        text = findings_text(d for d in findings if d not in self._shown)
        self._shown = findings
        if text:
            echo_as_is(text, nl=False)


def _recreate_stop(stop: Breakpoint | Watchpoint, session: Session) -> Breakpoint | Watchpoint:
    """The same stop in another session of the program."""
    if isinstance(stop, Breakpoint):
        return session.add_breakpoint(stop.task, stop.line, stop.loop_iter, stop.condition)
    # A name may mean another iteration by now; the bytes are what was asked for.
    return session.add_watchpoint(stop.region, stop.token, stop.access, stop.condition)
