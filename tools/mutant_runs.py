"""Tests run against mutants: collected once, then a process is forked for each mutant.

In the forked process the code of a function is replaced wherever the function is held, and the
tests that reach it run until one fails. Which tests these are is found first, in a forked process
too: the one that collected the tests never runs any, so that what functions cache stays empty.
What a module computed when it was imported is not computed again.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import signal
import sys
import tempfile
import threading
import time
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import Literal, NoReturn

import pytest

from tools.mutants import Mutant, mutated_code

MOST_CASES = 4  # of a test with parameters, as its reach is found
MOST_BYTES = 8 << 30  # of address space: a mutant may ask for any size
_NOT_APPLIED = 3

Outcome = Literal["killed", "survived", "endless", "not applied"]
Row = tuple[str, float, list[tuple[str, str]]]


@dataclass(frozen=True)
class Reach:
    """Tests with the functions that they run, by file and name, and their processor seconds."""

    functions: Mapping[str, frozenset[tuple[str, str]]]
    seconds: Mapping[str, float]

    @staticmethod
    def of(rows: Iterable[Row]) -> Reach:
        """From rows of a test, its seconds and its functions, as they are kept in a file."""
        kept = {test: (seconds, functions) for test, seconds, functions in rows}
        functions = {test: frozenset((f[0], f[1]) for f in row[1]) for test, row in kept.items()}
        return Reach(functions, {test: row[0] for test, row in kept.items()})

    def tests_near(self, path: Path) -> tuple[str, ...]:
        """The tests that reach a file: of some of them, other cases may reach other functions."""
        files = {test: {file for file, _ in found} for test, found in self.functions.items()}
        return tuple(test for test, found in files.items() if str(path) in found)

    def tests_of(self, path: Path, name: str, most: int) -> tuple[str, ...]:
        """The tests that show a function best: quick ones, and such that reach little else."""
        key = (str(path), name)
        found = [test for test, functions in self.functions.items() if key in functions]
        by_time = sorted(found, key=lambda test: self.seconds[test])
        by_breadth = sorted(found, key=lambda test: len(self.functions[test]))
        rank = {test: by_time.index(test) + by_breadth.index(test) for test in found}
        return tuple(sorted(found, key=lambda test: (rank[test], test))[:most])


@dataclass(frozen=True)
class Verdict:
    """What became of a mutant, and the test that noticed it."""

    outcome: Outcome
    test: str | None = None


class MutantRuns:
    """A plugin of pytest that does something else with the tests than running them once."""

    def __init__(self, sources: Path, work: Callable[[MutantRuns], None]) -> None:
        self._sources, self._work = str(sources), work
        self._items: dict[str, pytest.Item] = {}
        self._failed = False
        self._passed: set[str] = set()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Do the work instead of running what was collected."""
        self._items = {item.nodeid: item for item in session.items}
        self._work(self)
        return True

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Remember what failed and what passed."""
        self._failed |= report.failed
        if report.when == "call" and report.passed:
            self._passed.add(report.nodeid)

    def known(self, tests: Iterable[str]) -> tuple[str, ...]:
        """Those of some tests that were collected."""
        return tuple(test for test in tests if test in self._items)

    def further_cases(self, tests: Sequence[str], word: str, most: int) -> tuple[str, ...]:
        """Other cases of some tests, as many of each; those that name a word come first."""
        cases = _cases(self._items.values())
        queues = [[i.nodeid for i in cases[name]] for name in dict.fromkeys(map(_test, tests))]
        rounds = chain.from_iterable(zip_longest(*queues))
        known = set(tests)
        found = [case for case in rounds if case is not None and case not in known]
        return tuple(sorted(found, key=lambda case: word not in case)[:most])

    def reach(self) -> list[Row]:
        """Which functions of the sources every test runs; of many cases of a test, some."""
        with tempfile.NamedTemporaryFile("r") as file:
            status = self._fork(lambda: self._trace_all(Path(file.name)), None)
            if status:
                raise RuntimeError(f"the tests could not be followed: status {status}")
            rows: list[Row] = json.load(file)
        return rows

    def _trace_all(self, path: Path) -> int:
        rows = []
        for item in _some_cases(self._items.values()):
            start = time.process_time()
            codes = self._trace(item)
            if item.nodeid in self._passed:
                functions = sorted({(c.co_filename, _outer(c.co_qualname)) for c in codes})
                rows.append((item.nodeid, time.process_time() - start, functions))
        path.write_text(json.dumps(rows))
        return 0

    def _trace(self, item: pytest.Item) -> set[CodeType]:
        codes: set[CodeType] = set()

        def called(frame: FrameType, event: str, argument: object) -> None:
            codes.add(frame.f_code)

        threading.settrace(called)
        sys.settrace(called)
        try:
            self._run(item)
        finally:
            sys.settrace(None)
        return {code for code in codes if code.co_filename.startswith(self._sources)}

    def _run(self, item: pytest.Item) -> None:
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)

    def verdict(self, mutant: Mutant, tests: Sequence[str], seconds: int) -> Verdict:
        """Run tests on a mutant until one fails, or until that takes so much processor time."""
        with tempfile.NamedTemporaryFile("r") as file:
            status = self._fork(lambda: self._try_tests(mutant, tests, Path(file.name)), seconds)
            noticed = file.read() or None
        if status < 0:
            return Verdict("endless", noticed)
        outcomes: dict[int, Outcome] = {0: "survived", 1: "killed", _NOT_APPLIED: "not applied"}
        return Verdict(outcomes[status], noticed if status == 1 else None)

    def sure_verdict(self, mutant: Mutant, tests: Sequence[str], seconds: int) -> Verdict:
        """The same with tests that may fail, or not end, without the change as well."""
        left = list(tests)
        while True:
            verdict = self.verdict(mutant, left, seconds)
            if verdict.test is None or self._passes(verdict.test, seconds):
                return verdict
            left = left[left.index(verdict.test) + 1 :]

    def _passes(self, test: str, seconds: int) -> bool:
        with tempfile.NamedTemporaryFile("r") as file:
            return self._fork(lambda: self._run_tests([test], Path(file.name)), seconds) == 0

    def _try_tests(self, mutant: Mutant, tests: Sequence[str], log: Path) -> int:
        if not replace_code(mutated_code(mutant), mutant.function.path):
            return _NOT_APPLIED
        return self._run_tests(tests, log)

    def _run_tests(self, tests: Sequence[str], log: Path) -> int:
        """Run tests until one fails; the log names the last one."""
        for test in tests:
            log.write_text(test)
            self._run(self._items[test])
            if self._failed:
                return 1
        return 0

    def _fork(self, work: Callable[[], int], seconds: int | None) -> int:
        """The status of a process that does the work; negative where a limit ended it."""
        child = os.fork()
        if child == 0:
            _work_and_exit(work, seconds)
        _, status = os.waitpid(child, 0)
        return os.waitstatus_to_exitcode(status)


def replace_code(codes: Mapping[tuple[str, int], CodeType], path: Path) -> int:
    """Put code into all functions that are of a file, a name and a line; how many there are."""
    count = 0
    for found in gc.get_objects():
        if type(found) is FunctionType and found.__code__.co_filename == str(path):
            code = found.__code__
            new = codes.get((code.co_qualname, code.co_firstlineno))
            if new is not None:
                found.__code__ = new
                count += 1
    return count


def _work_and_exit(work: Callable[[], int], seconds: int | None) -> NoReturn:
    """Do the work in this process, which is a copy, with limits and without output."""
    status = 70
    try:
        signal.signal(signal.SIGXCPU, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES))
        if seconds is not None:
            resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
        silent = os.open(os.devnull, os.O_RDWR)
        for number in (1, 2):
            os.dup2(silent, number)
        status = work()
    finally:
        os._exit(status)


def _some_cases(items: Iterable[pytest.Item]) -> list[pytest.Item]:
    """Up to some of the cases of every test."""
    return [item for cases in _cases(items).values() for item in cases[:MOST_CASES]]


def _cases(items: Iterable[pytest.Item]) -> dict[str, list[pytest.Item]]:
    """The cases of every test, shuffled, but alike in every run."""
    cases: dict[str, list[pytest.Item]] = {}
    for item in sorted(items, key=lambda i: zlib.crc32(i.nodeid.encode())):
        cases.setdefault(_test(item.nodeid), []).append(item)
    return cases


def _test(case: str) -> str:
    """The test that a case is of."""
    return case.partition("[")[0]


def _outer(name: str) -> str:
    """The function that something is defined in, by their qualified names."""
    return name.partition(".<locals>")[0]


def collect_tests(folder: Path, sources: Path, work: Callable[[MutantRuns], None]) -> int:
    """Collect the tests of a folder in this process, and work with them; the status of pytest."""
    import tests.effort

    # Which cases and examples there are must not follow from the commit, nor tests be left out.
    vars(tests.effort)["commit_number"] = lambda: 0
    vars(tests.effort)["_is_left_out"] = lambda *_: False
    with tempfile.TemporaryDirectory() as scratch:
        os.environ["HYPOTHESIS_STORAGE_DIRECTORY"] = f"{scratch}/examples"
        return pytest.main(
            [str(folder), "-m", "not full", "-p", "no:cacheprovider", "--capture=no",
             "--hypothesis-seed=0", f"--basetemp={scratch}/files", "--no-summary"],
            plugins=[MutantRuns(sources, work)],
        )  # fmt: skip
