"""A verb that writes, tried again and again: what it may leave behind."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

from nacre.base.files import is_temporary
from tests.cli.runner import Outcome
from tests.cli.writing.trials import Ending, Fault, Measure, Trials, run_apart
from tests.cli.writing.verbs import VERBS, State, contents

Invoke = Callable[..., Outcome]


class Bench:
    """A verb, the state before it and the state after it."""

    def __init__(self, name: str, given: Path, invoke: Invoke, top: Path, *, has_old: bool) -> None:
        self.verb, self._given, self._invoke, self._top = VERBS[name], given, invoke, top
        self.has_old = has_old
        before = self._made(1) if self.verb.has_old else self.folder("none")
        self._before = before if has_old else self.folder("nothing")
        self._states: dict[State, State] = {}
        self.old, self.new = self.state(self._before), self.state(self._made(2))
        assert self.old != self.new
        self.out = self.folder("out")
        self.nothing = self.verb.state(self.out)
        self.turn = 0

    def folder(self, name: str) -> Path:
        path = self._top / name
        path.mkdir()
        return path

    def _made(self, seed: int) -> Path:
        out = self.folder(f"only{seed}")
        if self.verb.old is not None:
            (out / "f.nem").write_text(self.verb.old)
        if self.verb.old is None or seed == 2:
            outcome = self._invoke(*self.arguments(out, seed))
            assert outcome.status == 0, outcome.text
        return out

    def arguments(self, out: Path, seed: int = 2) -> list[str]:
        return [str(part) for part in self.verb.arguments(self._given, out, seed)]

    def state(self, folder: Path) -> State:
        """What readers find; asked once for each set of files."""
        files = contents(folder)
        if files not in self._states:
            self._states[files] = self.verb.state(folder)
        return self._states[files]

    def trials(self, faults: Callable[[Measure], Iterable[Fault]]) -> dict[str, int]:
        """Try every fault; how many trials there were, after none has left a mixture."""
        scratch = self._top / "scratch"
        scratch.mkdir(exist_ok=True)
        made = Trials(
            self.arguments(self.out), self.out, self._before, scratch, self._judge, faults
        )
        problems = made.run()
        assert not problems, "\n".join(problems)
        return made.counts

    def _judge(self, fault: Fault, ending: Ending) -> str | None:
        self.turn += 1
        if ending.status not in (0, 1) and not ending.is_killed:
            return f"ended with {ending.status}: {ending.text}"
        if "internal error" in ending.text or "Traceback" in ending.text:
            return ending.text
        found = self.state(self.out)
        if ending.is_killed:
            return self._judge_killed(found)
        return self._judge_failed(found, ending, may_be_new=not fault.name.startswith("full"))

    def _judge_failed(self, found: State, ending: Ending, *, may_be_new: bool) -> str | None:
        """A write that failed leaves the old state as it was, or the new one, and nothing more."""
        left = [name for name in names_in(self.out) if _is_litter(name)]
        if left:
            return f"left {left}: {ending.text}"
        if found == self.new and (may_be_new or ending.status == 0):
            return None if ending.status == 0 or _says_why(ending) else ending.text
        if found != self.old:
            return f"left a mixture: {sorted(names_in(self.out))}: {ending.text}"
        if ending.status != 1 or not _says_why(ending):
            return f"said nothing: {ending.status}, {ending.text}"
        if names_in(self.out) != names_in(self._before):
            return f"left {sorted(names_in(self.out) - names_in(self._before))}"
        return None

    def _judge_killed(self, found: State) -> str | None:
        """Files that nobody names may be of two runs, each of them whole; else one state."""
        if self.verb.is_loose:
            known = {None, *self.old, *self.new}
            if not set(found) <= known:
                return f"left a part of a file: {sorted(names_in(self.out))}"
        elif found not in (self.old, self.new):
            return f"left a mixture: {sorted(names_in(self.out))}"
        is_done = found == self.new and not self.verb.has_old
        if self.turn % 25 or self.verb.is_slow or is_done:
            return None
        return self._repeat()

    def _repeat(self) -> str | None:
        """What a killed verb has left does not keep it from ending well the next time."""
        copy = self._top / "copy"  # of a folder that a process before its first write has locked
        shutil.copytree(self.out, copy)
        ending = run_apart(self.arguments(copy), self._top / "scratch")
        found, names = self.state(copy), names_in(copy)
        shutil.rmtree(copy)
        if (ending.status, found) == (0, self.new):
            return None
        return f"not again: {ending.status}, {sorted(names)}, {ending.text}"


def _is_litter(name: str) -> bool:
    return any(map(is_temporary, Path(name).parts))


def _says_why(ending: Ending) -> bool:
    return os.strerror(errno.ENOSPC).lower() in ending.text.lower()


def names_in(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}
