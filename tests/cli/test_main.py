from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from importlib.metadata import version
from pathlib import Path

import pytest

from nacre._version import __version__
from tests.cli.runner import environment, invoke, nacre

pytestmark = pytest.mark.sampled(2)  # together they take long

VERBS = ["check", "fmt", "pack", "unpack", "rule", "devices"]
BROKEN_VERB = (
    "from nacre.cli import main\n"
    "main._VERBS['broken'] = ('nacre.cli.does_not_exist', 'x', '')\n"
    "main.run()\n"
)


def test_the_version_is_that_of_the_package() -> None:
    outcome = nacre("--version")
    assert (outcome.status, outcome.out, outcome.err) == (0, f"nacre, version {__version__}\n", "")
    assert version("nacre") == __version__


def test_the_console_script_is_the_module() -> None:
    script = Path(sys.executable).parent / "nacre"
    done = subprocess.run([script, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == nacre("--version").out


@pytest.mark.parametrize("option", ["--help", "-h"])
def test_help_lists_the_verbs_in_order(capsys: pytest.CaptureFixture[str], option: str) -> None:
    outcome = invoke(capsys, option)
    assert (outcome.status, outcome.err) == (0, "")
    listed = [
        line.split()[0] for line in outcome.out.partition("Commands:")[2].splitlines() if line
    ]
    assert listed[: len(VERBS)] == VERBS


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help(capsys: pytest.CaptureFixture[str], verb: str) -> None:
    outcome = invoke(capsys, verb, "--help")
    assert outcome.status == 0
    assert outcome.out.startswith(f"Usage: nacre {verb} ")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["chekc"], "no such command 'chekc'; did you mean `check`?"),
        (["frobnicate"], "no such command 'frobnicate'"),
        (["--frobnicate"], "No such option"),
        (["check"], "Missing argument 'FILE...'"),
        (["check", "--format", "xml", "x.nem"], "'xml' is not one of"),
        (["fmt", "--strict", "x.nem"], "No such option"),
    ],
)
def test_wrong_usage_has_status_2_and_says_why(
    capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    outcome = invoke(capsys, *arguments)
    assert (outcome.status, outcome.out) == (2, "")
    assert message in outcome.err


def test_without_arguments_the_help_is_shown_as_wrong_usage() -> None:
    outcome = nacre()
    assert (outcome.status, outcome.out) == (2, "")
    assert "Commands:" in outcome.err


def test_a_bug_of_ours_has_status_70_and_asks_for_a_report() -> None:
    outcome = nacre("broken", command=("-c", BROKEN_VERB))
    assert (outcome.status, outcome.out) == (70, "")
    assert "nacre: internal error: ModuleNotFoundError" in outcome.err
    assert "please report it" in outcome.err
    assert "Traceback" not in outcome.err


def test_a_bug_of_ours_shows_its_traceback_when_asked() -> None:
    outcome = nacre("broken", command=("-c", BROKEN_VERB), env={"NACRE_TRACEBACK": "1"})
    assert outcome.status == 70
    assert "Traceback (most recent call last)" in outcome.err


def test_the_version_loads_no_verb_and_nothing_heavy() -> None:
    code = (
        "import sys\nfrom nacre.cli import main\n"
        "heavy = ('numpy', 'rich', 'nacre.nem', 'nacre.cli.check')\n"
        "try:\n    main.run(['--version'])\n"
        "except SystemExit:\n    print([m for m in heavy if m in sys.modules])\n"
    )
    assert nacre(command=("-c", code)).out.splitlines()[1] == "[]"


@pytest.mark.parametrize(
    ("arguments", "status"),
    [(["rule"], 0), (["rule", "--format", "json"], 0), (["check", "bad.nem"], 1)],
)
def test_a_reader_that_goes_away_changes_no_status(
    arguments: list[str], status: int, tmp_path: Path
) -> None:
    lines = "".join(f"buffer B{i} : L9 (size=64)\n" for i in range(900))
    (tmp_path / "bad.nem").write_text(f"program p:\n{lines}")
    process = subprocess.Popen(
        [sys.executable, "-m", "nacre", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
        cwd=tmp_path,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    assert process.stdout.readline()
    process.stdout.close()
    assert process.wait(timeout=60) == status
    assert process.stderr.read() == b""
    process.stderr.close()


def test_a_full_disk_is_reported_and_no_bug() -> None:
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full here")
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "nacre", "rule"],
            stdout=full,
            stderr=subprocess.PIPE,
            env=environment(),
            check=False,
        )
    assert done.returncode == 1
    assert done.stderr == b"nacre: cannot write the output: No space left on device\n"


@pytest.mark.parametrize(
    ("closed", "arguments", "status", "err"),
    [
        (0, ["check", "-"], 2, "nacre: standard input is closed\n"),
        (1, ["rule"], 0, ""),
        (1, ["devices"], 0, ""),
        (1, ["check", "missing.nem"], 2, "nacre: missing.nem does not exist\n"),
    ],
)
def test_closed_standard_streams_are_no_bug(
    closed: int, arguments: list[str], status: int, err: str, tmp_path: Path
) -> None:
    # A process that gives its stream away before it becomes nacre.
    code = (
        f"import os, sys; os.close({closed}); "
        f"os.execv(sys.executable, [sys.executable, '-m', 'nacre', *{arguments!r}])"
    )
    outcome = nacre(command=("-c", code), cwd=tmp_path)
    assert (outcome.status, outcome.out, outcome.err) == (status, "", err)


def test_an_interrupt_stops_with_status_130() -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "nacre", "check", "-"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
    )
    try:
        _wait_until_it_reads(process.pid)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert (process.returncode, out, err) == (130, b"", b"stopped\n")


@pytest.mark.parametrize("module", ["click", "numpy"])
def test_an_interrupted_import_stops_with_status_130(module: str) -> None:
    code = (
        "import os, sys\n"
        "class Interrupting:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        f"        if name == {module!r}:\n"
        "            os.kill(os.getpid(), 2)\n"
        "            try:\n                for _ in range(1000): pass\n"
        "            except KeyboardInterrupt: raise ImportError('as numpy does')\n"
        "sys.meta_path.insert(0, Interrupting())\n"
        "sys.argv = ['nacre', 'run', 'none.nem']\n"
        "from nacre.__main__ import run\nrun()\n"
    )
    done = nacre(command=("-c", code))
    assert (done.status, done.out, done.err) == (130, "", "stopped\n")


def test_the_package_loads_hardly_anything() -> None:
    code = (
        "import sys\nbefore = set(sys.modules)\nimport nacre, nacre.cli.terminal.interrupts\n"
        "print(sorted(m for m in set(sys.modules) - before if not m.startswith('nacre')))\n"
    )
    loaded = nacre(command=("-c", code)).out
    assert not {"typing", "enum", "re", "click", "msgspec"} & set(loaded.split("'"))


def _wait_until_it_reads(pid: int) -> None:
    """Until the process has loaded everything and sleeps in a read of its standard input."""
    wchan, deadline = Path(f"/proc/{pid}/wchan"), time.monotonic() + 30
    while time.monotonic() < deadline:
        if not wchan.exists():
            pytest.skip("no /proc here")
        if "pipe" in wchan.read_text():
            return
        time.sleep(0.05)
    os.kill(pid, 0)
    pytest.skip("the system does not tell what the process waits for")
