"""Tests that forked processes share are all run, once, and end as they would in one process."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FILES = {
    "test_one.py": """
import os, warnings
import pytest

@pytest.mark.parametrize("number", range(210))
def test_many(number):
    assert number != 17, f"of {os.getpid()}"

def test_with_output():
    print("seen in one")
    assert False

def test_with_a_warning():
    warnings.warn("take care", stacklevel=1)
""",
    "test_two.py": """
import pytest

@pytest.fixture(scope="module")
def counted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("counted")
    yield folder
    raise ValueError("when all is done")

@pytest.mark.parametrize("number", range(20))
def test_with_a_fixture(number, counted, tmp_path):
    (counted / str(number)).touch()
    print("seen in two")
    assert len(list(counted.iterdir())) == number + 1

@pytest.mark.xfail(strict=True)
def test_that_is_to_come():
    assert False

def test_of_another_day():
    pytest.skip("not today")
""",
    "test_three.py": "def test_alone(tmp_path): print(tmp_path.parent)",
}


def ran(folder: Path, *options: str, files: dict[str, str] = FILES) -> tuple[int, str]:
    """How pytest ends, and what it says."""
    for name, text in files.items():
        (folder / name).write_text(text)
    plugins = ("-p", "no:cacheprovider", "-p", "tests.forked_workers")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *plugins, "--rootdir", str(folder), *options],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def verdicts(text: str) -> list[str]:
    """The lines that name a test and how it ended."""
    return sorted(re.findall(r"^(?:PASSED|FAILED|ERROR|SKIPPED|XFAIL) .*", text, re.MULTILINE))


def test_every_test_ends_as_in_one_process(tmp_path: Path) -> None:
    alone = ran(tmp_path, "-rA")
    forked = ran(tmp_path, "-rA", "--forks", "2")
    number = re.compile(r"of \d+|in \d+\.\d+s")
    assert forked[0] == alone[0] == pytest.ExitCode.TESTS_FAILED
    assert [number.sub("", line) for line in verdicts(forked[1])] == [
        number.sub("", line) for line in verdicts(alone[1])
    ]
    counts = "2 failed, 231 passed, 1 skipped, 1 xfailed, 1 warning, 1 error"
    assert counts in alone[1]
    assert counts in forked[1]
    assert "take care" in forked[1]
    # What a test printed stands with that test, once.
    assert forked[1].count("seen in one\n") == 1
    assert forked[1].count("seen in two\n") == alone[1].count("seen in two\n")


def test_a_number_of_failures_ends_the_run(tmp_path: Path) -> None:
    files = {
        f"test_{n}.py": "import time\ndef test_it():\n    time.sleep(.01); assert 0\n"
        for n in range(60)
    }
    status, text = ran(tmp_path, "--forks", "2", "--maxfail", "2", files=files)
    assert status == pytest.ExitCode.TESTS_FAILED
    assert "stopping after 2 failures" in text
    assert "60 failed" not in text


def test_a_process_that_dies_fails_the_run(tmp_path: Path) -> None:
    files = {"test_it.py": "import os\ndef test_well(): pass\ndef test_ill(): os._exit(7)\n"}
    status, text = ran(tmp_path, "--forks", "2", files=files)
    assert status == pytest.ExitCode.INTERNAL_ERROR
    assert (
        "a process ended with 7, the last test that it finished was test_it.py::test_well" in text
    )


def test_a_file_that_cannot_be_collected_fails_the_run(tmp_path: Path) -> None:
    files = {"test_it.py": "import nothing_of_this_name\n", "test_that.py": "def test_it(): pass\n"}
    status, text = ran(tmp_path, "--forks", "2", files=files)
    assert status == pytest.ExitCode.INTERRUPTED
    assert "1 error during collection" in text
