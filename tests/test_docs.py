"""docs/running.md and docs/timing.md are complete and true: their tables are those of the code."""

from __future__ import annotations

import math
import re
from pathlib import Path, PurePosixPath

import pytest

from nacre.base.rules import RULES
from nacre.cli.debug.commands import COMMANDS
from nacre.nem.checks import catalogue
from nacre.nem.run.options import HISTORY_BYTES
from nacre.nem.run.sessions.trace import COLUMNS
from nacre.nem.run.timing.compiled import WORTH_COMPILING
from nacre.nem.run.timing.export import CSV_COLUMNS
from nacre.nem.run.timing.result import TimedResult
from nacre.nem.run.timing.what_if import known_keys
from nacre.nem.spec.figures import PARAMETERS
from nacre.nem.spec.limits import DEFAULT_DDR_BYTES, MAX_TASK_INSTANCES
from neminterp import NemInterpreter, RunResult, Session

ROOT = Path(__file__).parent.parent
RUNNING = (ROOT / "docs/running.md").read_text(encoding="utf-8")
TIMING = (ROOT / "docs/timing.md").read_text(encoding="utf-8")
ARCHITECTURE = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")

catalogue.load()


def rows(page: str, columns: int) -> list[list[str]]:
    """The rows of all tables of a page that have so many columns; an escaped bar is no border."""
    found = []
    for line in page.splitlines():
        if line.startswith("|"):
            cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
            if len(cells) == columns:
                found.append(cells)
    return found


# Running


def public_names(kind: type) -> list[str]:
    inherited = {name for base in kind.__mro__ for name in vars(base)}
    fields = getattr(kind, "__dataclass_fields__", {})
    return sorted(name for name in {*inherited, *fields} if not name.startswith("_"))


@pytest.mark.parametrize("kind", [NemInterpreter, Session, RunResult])
def test_every_public_name_is_explained(kind: type) -> None:
    prose = re.sub(r"^```.*?^```$", "", RUNNING, flags=re.M | re.S)
    named = set(re.findall(r"\w+", " ".join(re.findall(r"`([^`]+)`", prose))))
    assert [name for name in public_names(kind) if name not in named] == []


def test_the_debuggers_commands_are_those_of_its_help() -> None:
    shown = {(row[0], row[1], row[2]) for row in rows(RUNNING, 3)}
    expected = set()
    for command in COMMANDS:
        called = f"{command.name} {command.usage}".strip().replace("|", "\\|")
        short = f"`{command.alias}`" if command.alias else ""
        expected.add((f"`{called}`", short, command.summary))
    assert expected <= shown


def test_every_code_of_running_has_a_row() -> None:
    codes = [row[0] for row in rows(RUNNING, 3) if row[0] in RULES]
    assert codes == ["INI02", *sorted(code for code in RULES if code.startswith("RUN"))]


def test_what_stops_a_run_is_an_error_and_what_does_not_is_a_warning() -> None:
    for code, _, ending in rows(RUNNING, 3):
        if code in RULES and code != "RUN07":  # asked for, it reports and looks on
            assert (RULES[code].severity == "warning") == ending.startswith("goes on"), code


def test_the_columns_of_traces_are_named() -> None:
    sentence = RUNNING[RUNNING.index("**Traces.**") :].partition("\n\n")[0]
    assert [name for name in COLUMNS if f"`{name}`" not in sentence] == []


def test_the_limits_are_those_of_the_code() -> None:
    assert f"{MAX_TASK_INSTANCES:,} task instances" in RUNNING
    assert f"{HISTORY_BYTES >> 20} MiB" in RUNNING
    assert f"{DEFAULT_DDR_BYTES >> 20} MiB" in RUNNING


# Timing


def test_the_figures_are_those_of_the_machine() -> None:
    shown = [(row[0], row[1], row[2]) for row in rows(TIMING, 4) if "." in row[0]]
    expected = [
        (f"`{p.unit}.{p.key}`", "-" if p.default is None else str(p.default), p.measure)
        for p in PARAMETERS
    ]
    assert shown == expected


def test_the_sources_of_the_figures_are_those_of_the_machine() -> None:
    sources = {row[0]: row[3] for row in rows(TIMING, 4)}
    words = {"device": "the device", "profile": "a profile"}
    for p in PARAMETERS:
        assert sources[f"`{p.unit}.{p.key}`"].startswith(words.get(p.source, p.source)), p


def timed_example() -> TimedResult:
    interp = NemInterpreter()
    return interp.time(interp.load(ROOT / "examples/conv2d_relu.nem"))


def test_the_example_by_hand_has_every_start_end_and_stall() -> None:
    result = timed_example()
    shown = [tuple(row) for row in rows(TIMING, 8)[2:]]
    expected = []
    for step in result.started:
        row = result.task_row(step)
        unit = row["unit"].partition("@")[0]
        numbers = (row["start"], row["end"], *row["stall"].values())
        name = f"`{result.timeline.steps.name(step)}`"
        expected.append((name, unit, *map(str, numbers)))
    assert shown == expected


def test_the_cycles_by_hand_are_those_of_the_machine() -> None:
    result = timed_example()
    by_hand = {}
    for name, work, cycles in rows(TIMING, 3):
        sums = re.fullmatch(r"(\d+) \+ (\d+) = (\d+)", cycles)
        if sums is None:
            continue
        latency, busy, total = map(int, sums.groups())
        amount = re.search(r"(\d+) (?:bytes|MACs|elements) at (\d+)$", work)
        assert amount is not None
        factors = [int(part) for part in re.findall(r"\d+", work.partition("=")[0])]
        assert "=" not in work or math.prod(factors) == int(amount[1])
        assert (-(-int(amount[1]) // int(amount[2])), latency + busy) == (busy, total)
        by_hand[name.strip("`")] = total
    assert by_hand == {row["name"]: row["end"] - row["start"] for row in result.tasks}
    assert by_hand == {"tX": 516, "tW": 2308, "tC": 3530, "tR": 99, "tS": 788}
    assert (result.cycles, result.bounds.chain, result.bounds.dma) == (17315, 11658, 2186)
    assert "The total is 17315." in TIMING


def test_the_keys_of_what_if_are_named() -> None:
    section = TIMING[TIMING.index("## What if") :]
    topology = [key.partition(".")[2] for key in known_keys() if key.startswith("topology.")]
    assert [name for name in topology if f"`{name}`" not in section] == []


def test_the_columns_of_the_csv_trace_are_named() -> None:
    assert f"`{','.join(CSV_COLUMNS)}`" in TIMING


def test_the_size_that_is_compiled_is_that_of_the_code() -> None:
    assert f"{WORTH_COMPILING:,} steps" in TIMING


# Architecture


SECTIONS = {
    title.replace(".", "/"): text
    for title, text in re.findall(
        r"^## ([\w.]+)(?::[^\n]*)?\n(.*?)(?=^## |\Z)", ARCHITECTURE, re.M | re.S
    )
}
PACKAGE = ROOT / "src/nacre"
ROOMS = sorted(path.parent.name for path in PACKAGE.glob("*/__init__.py"))
FILES = [PurePosixPath(path.relative_to(PACKAGE).as_posix()) for path in PACKAGE.rglob("[!_]*.py")]
# Files and folders that a section names, relative to its own folder.
NAMED = {
    folder: re.findall(r"`([\w*/]+(?:\.py|/))`", text)
    for folder, text in SECTIONS.items()
    if (PACKAGE / folder).is_dir()
}


def section_of(file: PurePosixPath) -> str | None:
    """The nearest folder above a file that has a section."""
    return next((str(f) for f in file.parents if str(f) in NAMED), None)


def is_named(file: PurePosixPath) -> bool:
    """Whether its section names a file, by a pattern too, or the folder that it lies in."""
    section = section_of(file)
    if section is None:
        return False
    inside = file.relative_to(section)
    pairs = [name.rpartition("/")[::2] for name in NAMED[section]]
    return any(
        (folder or ".") == str(inside.parent) and (not last or inside.match(last))
        for folder, last in pairs
    )


@pytest.mark.parametrize("room", ROOMS)
def test_every_file_of_a_room_has_its_place_in_the_page(room: str) -> None:
    files = sorted(file for file in FILES if file.parts[0] == room)
    assert files
    assert [str(file) for file in files if not is_named(file)] == []


@pytest.mark.parametrize("folder", sorted(NAMED))
def test_what_a_section_of_the_page_names_is_there(folder: str) -> None:
    places = (PACKAGE / folder, PACKAGE, ROOT)
    gone = [name for name in NAMED[folder] if not any(any(p.glob(name)) for p in places)]
    assert gone == []


def test_every_room_of_the_language_has_a_section() -> None:
    rooms = [f"nem/{path.parent.name}" for path in (PACKAGE / "nem").glob("*/__init__.py")]
    assert rooms
    assert [room for room in rooms if room not in NAMED] == []


def test_modules_that_the_page_names_are_there() -> None:
    rooms = "|".join(ROOMS)
    named = set(re.findall(rf"(?<![\w./])((?:{rooms})(?:\.[a-z_]+)+)", ARCHITECTURE))
    modules = {name for name in named if not name.endswith((".md", ".py"))}
    paths = {name: PACKAGE / name.replace(".", "/") for name in modules}
    assert paths
    gone = [n for n, p in paths.items() if not (p.is_dir() or p.with_suffix(".py").is_file())]
    assert gone == []


def test_data_of_others_are_named_with_their_licence() -> None:
    notice = (ROOT / "NOTICE").read_text()
    folders = {"src/nacre/nac/synthesis/data": ["digits.npz"],
               "src/nacre/demo": ["calibration.npz", "samples.npz"]}  # fmt: skip
    for folder, files in folders.items():
        assert sorted(path.name for path in (ROOT / folder).glob("*.npz")) == files
        assert all(f"{folder}/{file}" in notice for file in files)
        said = (ROOT / folder / "README.md").read_text()
        assert all(words in text for text in (notice, said)
                   for words in ("10.24432/C50P49", "CC BY 4.0", "Alpaydin"))  # fmt: skip
