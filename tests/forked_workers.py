"""A pytest plugin: `--forks N` collects the tests once and forks N processes that share them.

Processes that start anew each import, rewrite and collect all tests, which takes as long as a
twentieth of the tier of CI. Files stay together: what a test keeps for others of its file is made
once.
"""

from __future__ import annotations

import os
import pickle
import struct
import sys
import traceback
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkProcess
from typing import Any

import pytest

_NUMBER = struct.Struct("<H")
# Of a file that has more, others take a share, lest one is still at work when all are done.
_MOST_IN_GROUP = 200
_SECONDS_TO_STOP = 5.0

Group = list[pytest.Item]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--forks", type=int, metavar="N", help="run the tests in N forked processes")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--forks"):
        config.pluginmanager.register(ForkedWorkers(config.getoption("--forks")))


class ForkedWorkers:
    """Runs the tests in processes of their own, and reports them here."""

    def __init__(self, count: int) -> None:
        self._count = count

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        if session.testsfailed or session.config.option.collectonly or not session.items:
            return None  # the usual loop says what is to be said
        # One folder for all of them: what is made in it is cleaned up by this process.
        session.config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]
        groups = groups_of(session.items)
        queue = _queue_of(len(groups))
        workers = [_started(session, groups, queue) for _ in range(self._count)]
        os.close(queue)
        try:
            _report(session, {worker.results: worker for worker in workers})
        finally:
            for worker in workers:
                worker.stop()
        return True


def groups_of(items: list[pytest.Item]) -> list[Group]:
    """Tests that one process runs in a row, those with long ones first."""
    files = [list(group) for _, group in groupby(items, lambda item: item.path)]
    groups = [
        file[at : at + _MOST_IN_GROUP]
        for file in files
        for at in range(0, len(file), _MOST_IN_GROUP)
    ]
    return sorted(groups, key=lambda group: not any(i.get_closest_marker("heavy") for i in group))


def _queue_of(count: int) -> int:
    """A pipe with the numbers of all groups: who is free reads the next one."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)  # an error where they are too many for a pipe
    for number in range(count):
        os.write(writer, _NUMBER.pack(number))
    os.close(writer)
    return reader


# In the process that was called


@dataclass(slots=True)
class _Worker:
    process: ForkProcess
    results: Connection
    last: str = "anything"

    def stop(self) -> None:
        self.process.join(0 if self.process.is_alive() else None)
        if self.process.is_alive():
            self.process.terminate()
            self.process.join(_SECONDS_TO_STOP)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()


def _started(session: pytest.Session, groups: list[Group], queue: int) -> _Worker:
    results, sender = get_context("fork").Pipe(duplex=False)
    process = get_context("fork").Process(target=_work, args=(session, groups, queue, sender))
    process.start()
    sender.close()  # the end of the process is the end of its results
    return _Worker(process, results)


def _report(session: pytest.Session, workers: dict[Connection, _Worker]) -> None:
    """Say what the workers send as if it were done here, until all have ended."""
    while workers:
        for results in wait(list(workers)):
            assert isinstance(results, Connection)
            try:
                sent = pickle.loads(results.recv_bytes())
            except EOFError:
                _ended(workers.pop(results))
                continue
            workers[results].last = _said(session.config, sent) or workers[results].last
        if session.shouldfail:
            raise session.Failed(session.shouldfail)
        if session.shouldstop:
            raise session.Interrupted(session.shouldstop)


def _said(config: pytest.Config, sent: dict[str, Any] | list[Any]) -> str:
    """Report one test, or a warning; the name of the test."""
    if isinstance(sent, dict):
        config.hook.pytest_warning_recorded.call_historic(kwargs=sent)
        return ""
    reports = [
        config.hook.pytest_report_from_serializable(config=config, data=data) for data in sent
    ]
    for report in reports:
        config.hook.pytest_runtest_logreport(report=report)
    return str(reports[-1].nodeid)


def _ended(worker: _Worker) -> None:
    worker.process.join()
    if worker.process.exitcode:
        raise pytest.exit.Exception(
            f"a process ended with {worker.process.exitcode}, the last test that it finished was"
            f" {worker.last}",
            pytest.ExitCode.INTERNAL_ERROR,
        )


# In the processes that run tests


class _Sender:
    """Hands on what is reported in this process."""

    def __init__(self, config: pytest.Config, results: Connection) -> None:
        self._config = config
        self._results = results
        self._reports: list[Any] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        hook = self._config.hook
        data = hook.pytest_report_to_serializable(config=self._config, report=report)
        self._reports.append(data)

    def pytest_runtest_logfinish(self) -> None:
        self._send(self._reports)
        self._reports = []

    def pytest_warning_recorded(
        self,
        warning_message: warnings.WarningMessage,
        when: str,
        nodeid: str,
        location: tuple[str, int, str] | None,
    ) -> None:
        told = warnings.WarningMessage(
            str(warning_message.message),
            UserWarning,
            warning_message.filename,
            warning_message.lineno,
        )
        row = {"warning_message": told, "when": when, "nodeid": nodeid, "location": location}
        self._send(row)

    def _send(self, sent: object) -> None:
        self._results.send_bytes(pickle.dumps(sent, pickle.HIGHEST_PROTOCOL))


def _work(session: pytest.Session, groups: list[Group], queue: int, results: Connection) -> None:
    """Run groups as long as there are any; nothing of this process is written on the terminal."""
    status = 1
    try:
        _be_silent(session.config)
        session.config.pluginmanager.register(_Sender(session.config, results))
        _run(session, _items(groups, queue))
        status = 0
    except KeyboardInterrupt:
        pass  # the caller has been interrupted, too, and says so
    except BaseException:  # whatever it is, the caller must hear of it
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(status)  # the rest of the session belongs to the process that was called


def _be_silent(config: pytest.Config) -> None:
    plugins = config.pluginmanager
    plugins.unregister(name="terminalreporter")
    capture: Any = plugins.getplugin("capturemanager")
    # The file that holds what tests print would be shared, and with it the place in it.
    capture.stop_global_capturing()
    capture.start_global_capturing()
    capture.suspend_global_capture()


def _items(groups: list[Group], queue: int) -> Iterator[pytest.Item]:
    while number := os.read(queue, _NUMBER.size):
        yield from groups[_NUMBER.unpack(number)[0]]


def _run(session: pytest.Session, items: Iterator[pytest.Item]) -> None:
    item = next(items, None)
    while item is not None:
        following = next(items, None)  # fixtures that it needs, too, are kept
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if session.shouldfail or session.shouldstop:
            return
        item = following
