"""`nacre debug` and Ctrl-C: at a terminal it pauses, elsewhere it ends."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from nacre.cli.debug import commands as debug_commands
from nacre.cli.debug.commands import find_command
from nacre.cli.debug.debugger import Debugger
from nacre.cli.debug.loop import carry_out
from nacre.nem.run.sessions.session import Session
from nacre.nem.run.sessions.stepper import Stepper
from neminterp import NemInterpreter
from tests.cli.debug.test_sessions import DATA, PROGRAM, Capsys, debugged, prepared
from tests.cli.runner import environment


@pytest.fixture
def debugger() -> Debugger:
    program = NemInterpreter().load_string(PROGRAM)
    return Debugger(program.source, lambda: NemInterpreter().start(program, {"X": DATA}))


@pytest.mark.parametrize("command", ["continue", "run", "step 9", "until tS[1]", "iteration"])
def test_an_interrupt_pauses_between_two_steps(
    capsys: Capsys, monkeypatch: pytest.MonkeyPatch, debugger: Debugger, command: str
) -> None:
    taken = []
    step = debugger.session._stepper.take

    def interrupted_step(number: int) -> list[int] | None:
        taken.append(number)
        if len(taken) == 2:
            os.kill(os.getpid(), signal.SIGINT)
        return step(number)

    monkeypatch.setattr(debugger.session._stepper, "take", interrupted_step)
    carry_out(debugger, command)
    assert capsys.readouterr().out.startswith("interrupted; next is tR[0]\n")
    carry_out(debugger, "back")
    assert debugger.session.next_step == "tA[0]"
    carry_out(debugger, "continue")
    assert debugger.session.status == "finished"
    assert debugger.session.read_region("y_0").tolist() == [[2, 0], [6, 0]]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_second_interrupt_ends_the_debugger(debugger: Debugger) -> None:
    def twice(_: object) -> bool:
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)
        return False

    debugger.session.add_breakpoint(condition=twice)
    with pytest.raises(KeyboardInterrupt):
        carry_out(debugger, "continue")
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize("command", ["back 9", "back-until tX[0]", "back-until region x_0"])
def test_an_interrupt_pauses_on_the_way_back(
    capsys: Capsys, monkeypatch: pytest.MonkeyPatch, debugger: Debugger, command: str
) -> None:
    carry_out(debugger, "run")
    capsys.readouterr()
    back = debugger.session._stepper.step_back

    def interrupted_back() -> int | None:
        if len(debugger.session.order) == 8:
            os.kill(os.getpid(), signal.SIGINT)
        return back()

    monkeypatch.setattr(debugger.session._stepper, "step_back", interrupted_back)
    carry_out(debugger, command)
    assert "; next is tR[1]\n" in capsys.readouterr().out
    carry_out(debugger, "run")
    assert debugger.session.read_region("y_0").tolist() == [[2, 0], [6, 0]]


@pytest.mark.parametrize("command", ["print v", "who Y", "restart", "trace", "stats v"])
def test_an_interrupt_breaks_off_a_command_that_cannot_pause(
    capsys: Capsys, monkeypatch: pytest.MonkeyPatch, debugger: Debugger, command: str
) -> None:
    def interrupted(*_: object) -> None:
        os.kill(os.getpid(), signal.SIGINT)

    carry_out(debugger, "step 3")
    found = find_command(command.partition(" ")[0])
    if command == "restart":
        monkeypatch.setattr(debugger, "_start_session", interrupted)
    else:
        monkeypatch.setattr(
            debug_commands, "find_command", lambda _: replace(found, run=interrupted)
        )
    capsys.readouterr()
    carry_out(debugger, command)
    assert capsys.readouterr().out == "interrupted\n"
    monkeypatch.undo()
    carry_out(debugger, "run")  # the session is as it was
    assert debugger.session.status == "finished"
    assert debugger.session.read_region("y_0").tolist() == [[2, 0], [6, 0]]


@pytest.mark.parametrize("command", ["continue", "run", "step 9", "until tS[1]", "print v"])
def test_an_interrupt_without_a_terminal_ends_with_status_130(
    capsys: Capsys, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, command: str
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(Stepper, "take", interrupted)
    monkeypatch.setattr(Session, "select", interrupted)
    outcome = debugged(capsys, tmp_path, command, "where")
    assert (outcome.status, outcome.err) == (130, "stopped\n")
    assert "where" not in outcome.out  # what would come after it is not carried out


class Typist:
    """Somebody at a terminal, who types when it has shown what they wait for."""

    def __init__(self, *arguments: str, folder: Path) -> None:
        self._handle, inner = pty.openpty()
        self.shown = ""
        self.process = subprocess.Popen(
            [sys.executable, "-m", "nacre", *arguments],
            stdin=inner,
            stdout=inner,
            stderr=inner,
            cwd=folder,
            env=environment({"TERM": "dumb"}),
            start_new_session=True,
        )
        os.close(inner)

    def sees(self, text: str) -> None:
        """Wait until a text has been shown, and forget what came before it."""
        assert self._has_seen(text, 60), self.shown
        self.shown = self.shown.partition(text)[2]

    def interrupts_until(self, text: str) -> None:
        """Press Ctrl-C; once more where the line editor was too busy to hear it."""
        for _ in range(10):
            self.process.send_signal(signal.SIGINT)
            if self._has_seen(text, 3):
                break
        self.sees(text)

    def _has_seen(self, text: str, seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        while text not in self.shown and time.monotonic() < deadline:
            if select.select([self._handle], [], [], 0.5)[0]:
                self.shown += os.read(self._handle, 65536).decode()
        return text in self.shown

    def types(self, text: str) -> None:
        os.write(self._handle, text.encode())

    def done(self) -> int:
        status = self.process.wait(timeout=60)
        os.close(self._handle)
        return status


def test_a_terminal_has_completion_history_and_interrupts(tmp_path: Path) -> None:
    prepared(tmp_path)
    typist = Typist("debug", "tiles.nem", "--input", "X=x.npy", folder=tmp_path)
    typist.sees("(tX[0] line 10) ")
    typist.types("ste\t")
    typist.sees("step ")
    typist.types("2\n")
    typist.sees("tA[0] completed; next is tR[0]")
    typist.sees("(tR[0] line 12) ")
    typist.types("half a com")
    typist.sees("half a com")
    typist.interrupts_until("`quit` or Ctrl-D ends the session")
    typist.sees("(tR[0] line 12) ")
    typist.types("\x1b[A\n")  # the arrow: the command before
    typist.sees("tS[0] completed; next is wait@14[0]")
    typist.sees("(wait@14[0] line 14) ")
    typist.types("nonsense\n")
    typist.sees("error: no command `nonsense`")
    typist.sees("(wait@14[0] line 14) ")
    typist.types("\x04")
    assert typist.done() == 0
