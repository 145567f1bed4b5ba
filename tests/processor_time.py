"""A pytest plugin: what every test takes of the processors, with a limit in the tier of CI.

Processor time, not time on the wall: other work on the machine changes it little. What a test
starts in other processes counts as well, once it has waited for them.
"""

from __future__ import annotations

import csv
import math
import os
from collections.abc import Generator
from pathlib import Path

import pytest

LIMIT_SECONDS = 2.0
# Examples of properties change with the commit: the slowest that can be drawn must pass, too.
PROPERTY_LIMIT_SECONDS = 10.0
# Beside other work processors are slower: what is above a limit is shown, above twice it fails.
_TOLERANCE = 2.0
_PROPERTY = "processor_seconds"
_SHOWN = 10  # tests, the slowest


def _processor_seconds() -> float:
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


class ProcessorTime:
    """Measures in the processes that run tests, gathers and judges in the one that reports."""

    def __init__(self, table: Path | None) -> None:
        self._table = table
        self._start = 0.0
        self._seconds: dict[str, float] = {}
        self._slow: dict[str, float] = {}
        self._is_failed = False

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        self._start = _processor_seconds()
        return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        if report.when == "teardown":
            seconds = round(_processor_seconds() - self._start, 3)
            report.user_properties.append((_PROPERTY, (seconds, _limit_of(item))))
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        for name, value in report.user_properties:
            if name == _PROPERTY:
                assert isinstance(value, tuple | list)  # a list, where it came from a worker
                self._seconds[report.nodeid] = value[0]
                if value[0] > value[1]:
                    self._slow[report.nodeid] = value[0]
                    self._is_failed |= value[0] > _TOLERANCE * value[1]

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self._is_failed and session.exitstatus == pytest.ExitCode.OK and not _is_worker(session):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
        if self._table is not None and not _is_worker(session):
            with self._table.open("w", newline="") as file:
                csv.writer(file).writerows(_by_seconds(self._seconds))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        total = sum(self._seconds.values())
        terminalreporter.write_line(f"processor time of the tests: {total:.0f} s; the slowest:")
        for test, seconds in _by_seconds(self._seconds)[:_SHOWN]:
            terminalreporter.write_line(f"{seconds:6.1f} s  {test}")
        for test, seconds in _by_seconds(self._slow):
            terminalreporter.write_line(
                f"SLOW {test}: {seconds:.1f} s, {LIMIT_SECONDS:g} are allowed, of a property"
                f" {PROPERTY_LIMIT_SECONDS:g}; make it"
                " faster, mark it `full`, or mark it `heavy` with the reason"
            )


def _limit_of(item: pytest.Item) -> float:
    if any(item.iter_markers("full")) or any(item.iter_markers("heavy")):
        return math.inf
    is_property = getattr(getattr(item, "obj", None), "is_hypothesis_test", False)
    return PROPERTY_LIMIT_SECONDS if is_property else LIMIT_SECONDS


def _by_seconds(seconds: dict[str, float]) -> list[tuple[str, float]]:
    return sorted(seconds.items(), key=lambda row: -row[1])


def _is_worker(session: pytest.Session) -> bool:
    return hasattr(session.config, "workerinput")
