"""What we show is true: the examples, the demo, the commands in the README, the links."""

from __future__ import annotations

import doctest
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from nacre import nem
from nacre.base.rules import RULES
from nacre.nem.checks import catalogue

ROOT = Path(__file__).parent.parent
EXAMPLES = [*sorted(ROOT.glob("examples/*.nem")), *sorted(ROOT.glob("examples/devices/*.nem"))]
KNOWN_NOTES = {"TYP19"}  # maxpool has no type family in the language; the info says so
BROKEN = {"l1_overflow": "BUF07", "ring_too_small": "HAZ06"}  # name -> its one mistake
BROKEN_FILES = sorted(ROOT.glob("examples/broken/*.nem"))
PAGES = [
    *sorted(ROOT.glob("*.md")),
    *sorted(ROOT.glob("docs/*.md")),
    *sorted(ROOT.glob("docs/decisions/*.md")),
    ROOT / "benchmarks/README.md",
]

# A block that is marked is run: each `$ command` must print exactly the lines below it.
MARK = "<!-- run by tests/test_examples.py -->"
BLOCK = re.compile(re.escape(MARK) + r"\n```console\n(.*?)```", re.DOTALL)
RUN_PAGES = ["README.md", "docs/running.md", "docs/timing.md"]
PYTHON_BLOCK = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
NEM_BLOCK = re.compile(r"```nem\n(.*?)```", re.DOTALL)
LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)(?:#[^)]*)?\)")


catalogue.load()


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def environment() -> dict[str, str]:
    """Ours, with the `nacre` of this Python first on the path and nothing about the terminal."""
    kept = {key: value for key, value in os.environ.items() if key not in ("COLUMNS", "LINES")}
    path = f"{Path(sys.executable).parent}{os.pathsep}{kept.get('PATH', '')}"
    return {**kept, "PATH": path, "PYTHONUTF8": "1"}


def output_of(command: str, folder: Path) -> str:
    done = subprocess.run(
        ["sh", "-c", command],
        cwd=folder,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        timeout=120,
        check=False,
    )
    return done.stdout


def test_there_are_examples() -> None:
    assert len(EXAMPLES) >= 8
    assert {path.stem for path in BROKEN_FILES} == set(BROKEN)


@pytest.mark.parametrize("path", [*EXAMPLES, *BROKEN_FILES], ids=name_of)
def test_the_example_is_in_canonical_form(path: Path) -> None:
    text = path.read_text(encoding="utf-8")

    assert nem.format(text) == text


@pytest.mark.parametrize("path", EXAMPLES, ids=name_of)
def test_the_example_has_no_finding_even_in_strict_mode(path: Path) -> None:
    found = [d for d in nem.check(path, strict=True) if d.code not in KNOWN_NOTES]
    assert [str(d) for d in found] == []


@pytest.mark.parametrize(("name", "code"), BROKEN.items())
def test_the_broken_example_has_one_mistake(
    name: str, code: str, request: pytest.FixtureRequest
) -> None:
    if code not in RULES:
        request.applymarker(pytest.mark.xfail(strict=True, reason=f"{code} is to come"))
    found = nem.check(ROOT / f"examples/broken/{name}.nem", strict=True)

    assert {(each.severity, each.code) for each in found} == {("error", code)}


def test_the_demo_runs_from_any_folder(tmp_path: Path) -> None:
    here, scratch = tmp_path / "here", tmp_path / "scratch"
    here.mkdir()
    scratch.mkdir()
    done = subprocess.run(
        [str(ROOT / "examples/demo.sh")],
        cwd=here,
        env={**environment(), "TMPDIR": str(scratch)},
        capture_output=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert all(f"error[{code}]" in done.stdout for code in BROKEN.values())
    assert "the same bytes as NumPy" in done.stdout
    assert "is the bottleneck" in done.stdout
    assert done.stdout.splitlines()[-1].startswith("Shown: ")
    # The page that it speaks of is there, and nothing else is left behind.
    left = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert [path.name for path in left] == ["report.html"]
    assert f"open it in a browser: {left[0]}" in done.stdout


def trimmed(text: str) -> str:
    """Without blanks at line ends, which tables have and editors take away."""
    return "\n".join(line.rstrip() for line in text.rstrip().splitlines())


@dataclass(frozen=True, slots=True)
class Shown:
    """A command in a page and what the page says it prints."""

    page: str
    command: str
    output: str


def shown_blocks(page: Path) -> list[list[Shown]]:
    """The marked blocks of a page; the commands of one may use what those before it wrote."""
    found = []
    for block in BLOCK.findall(page.read_text(encoding="utf-8")):
        steps = re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]
        parts = (step.partition("\n") for step in steps)
        found.append([Shown(name_of(page), command, output) for command, _, output in parts])
    return found


BLOCKS = [block for page in PAGES for block in shown_blocks(page)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder like a clone's, in which commands may leave files."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    return tmp_path


@pytest.mark.parametrize("page", RUN_PAGES)
def test_the_page_shows_commands_that_are_run(page: str) -> None:
    assert len([shown for block in BLOCKS for shown in block if shown.page == page]) >= 4


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: f"{block[0].page}: {block[0].command}")
def test_the_commands_print_what_the_page_shows(block: list[Shown], folder: Path) -> None:
    for shown in block:
        assert trimmed(output_of(shown.command, folder)) == trimmed(shown.output), shown.command


def session_examples(page: Path) -> list[str]:
    """The `python` blocks of a page that show a session at the prompt."""
    blocks = PYTHON_BLOCK.findall(page.read_text(encoding="utf-8"))
    return [block for block in blocks if block.startswith(">>> ")]


@pytest.mark.parametrize("name", RUN_PAGES)
def test_the_python_sessions_of_the_page_go_as_shown(
    name: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    text = "\n".join(session_examples(ROOT / name))
    made = doctest.DocTestParser().get_doctest(text, {}, name, name, 0)
    complaints: list[str] = []
    doctest.DocTestRunner(verbose=False).run(made, out=complaints.append)
    assert made.examples
    assert "".join(complaints) == ""


@pytest.mark.parametrize("script", sorted(ROOT.glob("examples/*.py")), ids=name_of)
def test_the_example_script_runs_from_any_folder(script: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", str(script)],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert "as NumPy says: True" in done.stdout


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_program_in_the_page_is_right(page: Path) -> None:
    for text in NEM_BLOCK.findall(page.read_text(encoding="utf-8")):
        assert [str(found) for found in nem.check(text)] == []
        assert nem.format(text) == text


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_link_leads_to_a_file(page: Path) -> None:
    targets = LINK.findall(page.read_text(encoding="utf-8"))
    local = [target for target in targets if "://" not in target]

    assert [target for target in local if not (page.parent / target).exists()] == []
