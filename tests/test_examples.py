"""What we show is true: the examples, the demo, the commands in the README, the links."""

from __future__ import annotations

import doctest
import re
import subprocess
import sys
from pathlib import Path

import pytest

from nacre import nem
from nacre.base.rules import RULES
from nacre.nem.checks import catalogue
from tools.shown_commands import WHOLE, Shown, Step, environment, make_folder, shown_blocks, taken

ROOT = Path(__file__).parent.parent
EXAMPLES = [*sorted(ROOT.glob("examples/*.nem")), *sorted(ROOT.glob("examples/devices/*.nem"))]
KNOWN_NOTES = {"TYP19"}  # maxpool has no type family in the language; the info says so
BROKEN = {"l1_overflow": "BUF07", "ring_too_small": "HAZ06"}  # name -> its one mistake
BROKEN_FILES = sorted(ROOT.glob("examples/broken/*.nem"))
PAGES = [
    *sorted(ROOT.glob("*.md")),
    *sorted(ROOT.glob("docs/*.md")),
    *sorted(ROOT.glob("docs/decisions/*.md")),
    *sorted(ROOT.glob("docs/contracts/*.md")),
    ROOT / "benchmarks/README.md",
]

RUN_PAGES = [
    "README.md",
    "docs/running.md",
    "docs/timing.md",
    "docs/tour.md",
    "docs/binding.md",
    "docs/calibrate.md",
]
SESSION_PAGES = [
    "README.md",
    "docs/running.md",
    "docs/timing.md",
    "docs/calibrate.md",
    "docs/compile.md",
    "docs/accuracy.md",
    "docs/examples.md",
    "docs/shapes.md",
    "docs/types.md",
    "docs/tcb-format.md",
    "docs/binding.md",
    "docs/contracts/opcode-registry.md",
]
PYTHON_BLOCK = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
NEM_BLOCK = re.compile(r"```nem\n(.*?)```", re.DOTALL)
LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)(?:#[^)]*)?\)")
PLACE = re.compile(r"\[[^\]]*\]\(([^)#\s]*)#([^)\s]+)\)")  # a link to a heading


catalogue.load()


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


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


@pytest.mark.full
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
        timeout=300,
        check=False,
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert "16 of 16 digits" in done.stdout
    assert all(f"error[{code}]" in done.stdout for code in BROKEN.values())
    assert "the same bytes as NumPy" in done.stdout
    assert "is the bottleneck" in done.stdout
    assert done.stdout.splitlines()[-1].startswith("Shown: ")
    # The pages that it speaks of are there, and the network's bundle; nothing else is left behind.
    left = [path for path in tmp_path.rglob("*") if path.is_file()]
    pages = [path for path in left if path.name == "report.html"]
    assert all(f"open it in a browser: {page}" in done.stdout for page in pages)
    assert sorted(page.parent.name == "digits" for page in pages) == [False, True]
    assert {path.parent.name for path in left if path not in pages} == {"bundle"}


BLOCKS = [block for page in PAGES for block in shown_blocks(page)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder like a clone's, in which commands may leave files."""
    make_folder(tmp_path)
    return tmp_path


@pytest.mark.parametrize("page", RUN_PAGES)
def test_the_page_shows_commands_that_are_run(page: str) -> None:
    steps = [step for block in BLOCKS for step in block if step.page == page]
    assert len([step for step in steps if isinstance(step, Shown)]) >= 4


def block_name(block: list[Step]) -> str:
    first = block[0]
    return f"{first.page}: {first.command if isinstance(first, Shown) else first.name}"


def tier(block: list[Step]) -> tuple[pytest.MarkDecorator, ...]:
    """The README's are always run; of the others a part with every commit, the longer the fewer."""
    heavy = pytest.mark.heavy("every command is a process of its own, and some compile networks")
    if block[0].page == "README.md":
        return (heavy,)
    return heavy, pytest.mark.sampled(24 if block[0].page in WHOLE else 6)


@pytest.mark.parametrize(
    "block", [pytest.param(block, marks=tier(block), id=block_name(block)) for block in BLOCKS]
)
def test_the_commands_print_what_the_page_shows(block: list[Step], folder: Path) -> None:
    for step in block:
        found = taken(step, folder)
        if isinstance(step, Shown) and not step.is_printed(found):
            assert found == step.output, step.command


@pytest.mark.parametrize(
    ("shown", "found", "is_same"),
    [
        ("a\nb\n", "a  \nb\n\n", True),
        ("a\nb\n", "a\nc\n", False),
        ("a\n...\nd\n", "a\nb\nc\nd\n", True),
        ("a\n...\nd\n", "a\nd\n", True),
        ("a\n...\na\n", "a\n", False),
        ("a\n...\n", "b\n", False),
        ("done (1.5 s)\n", "done (20.1 s)\n", True),
        ("scale=0.12345678, 12 cycles\n", "scale=0.12345671, 12 cycles\n", True),
        ("scale=0.12345678, 12 cycles\n", "scale=0.12345678, 13 cycles\n", False),
        ("scale=0.12345678\n", "scale=0.22345678\n", False),
        ("1.25x of it\n", "1.26x of it\n", False),
        ("SQNR 49.9 dB\n", "SQNR 45.4 dB\n", True),
        ("SQNR 49.9 dB\n", "SQNR 29.9 dB\n", False),
        ("15.0 dB; error 2.97e-03\n", "15.0 dB; error 5.07e-03\n", True),
        ("15.0 dB; error 2.97e-03\n", "15.0 dB; error 2.97e-02\n", False),
    ],
)
def test_an_output_is_held_to_the_page(shown: str, found: str, is_same: bool) -> None:
    assert Shown("page", "command", shown).is_printed(found) == is_same


def test_an_output_is_renewed_around_its_dots() -> None:
    shown = Shown("page", "command", "a\n...\ny\nz\n")
    assert shown.renewed("1\n2\n3\n4\n5\n") == "1\n...\n4\n5\n"
    assert shown.renewed("1\n2\n3\n") == "1\n2\n3\n"


def session_examples(page: Path) -> list[str]:
    """The `python` blocks of a page that show a session at the prompt."""
    blocks = PYTHON_BLOCK.findall(page.read_text(encoding="utf-8"))
    return [block for block in blocks if block.startswith(">>> ")]


@pytest.mark.parametrize("name", SESSION_PAGES)
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


# One asks a model of a file that does not come along: tests/llm/test_example.py runs it.
SCRIPTS = sorted(set(ROOT.glob("examples/*.py")) - {ROOT / "examples/chat_with_gguf.py"})


@pytest.mark.parametrize("script", SCRIPTS, ids=name_of)
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


def anchors(page: Path) -> set[str]:
    """What a page's headings can be linked by: lower case, hyphens, nothing else."""
    prose = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    titles = re.findall(r"^#+ (.*)$", prose, re.M)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_link_to_a_heading_leads_to_one(page: Path) -> None:
    places = PLACE.findall(page.read_text(encoding="utf-8"))
    local = [(page.parent / to if to else page, name) for to, name in places if "://" not in to]
    pages = [(to, name) for to, name in local if to.suffix == ".md"]

    assert [f"{to.name}#{name}" for to, name in pages if name not in anchors(to)] == []
