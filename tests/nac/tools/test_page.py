"""docs/nac.md is true: its tables are those of the code, its walk is through the file it names."""

from __future__ import annotations

import re
from pathlib import Path

from nacre.cli.nac.command import nac
from nacre.nac.format.header import read as read_header
from nacre.nac.program.interface import INTERFACE, STATES
from nacre.nac.spec.elements import BLOCK, QUANTIZATIONS
from nacre.nac.spec.header import CURRENT, MOST_RECORDS
from nacre.nac.spec.instructions import ACTIONS, SYSTEM
from nacre.nac.tools.genome import LONGEST_GRAM
from nacre.nac.tools.listing import listing
from nacre.nac.tools.opening import open_nac

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs/nac.md").read_text(encoding="utf-8")
WALK = PAGE[PAGE.index("## A file, byte by byte") :]
FILE = ROOT / (re.search(r"`(tests/nac/fixtures/[\w.]+)`", WALK) or [""])[1]
ROW = re.compile(r"^\| (\d+) \| `((?:[0-9a-f]{2} ?)+)` \| (.+) \|$", re.MULTILINE)


def rows(page: str, columns: int) -> list[list[str]]:
    """The rows of tables with so many columns; an escaped bar is no border."""
    lines = (re.split(r"(?<!\\)\|", line)[1:-1] for line in page.splitlines() if line[:1] == "|")
    return [[cell.strip() for cell in cells] for cells in lines if len(cells) == columns]


def walked() -> list[tuple[int, bytes, str]]:
    return [(int(at), bytes.fromhex(text), told) for at, text, told in ROW.findall(WALK)]


def test_the_bytes_are_those_of_the_file() -> None:
    raw = FILE.read_bytes()
    assert f"{len(raw):,} bytes" in WALK
    assert len(walked()) > 80
    for at, expected, _ in walked():
        assert raw[at : at + len(expected)] == expected


def test_the_walk_leaves_nothing_out_but_the_weights() -> None:
    raw = FILE.read_bytes()
    steps = walked()
    ends = [at + len(expected) for at, expected, _ in steps]
    gaps = [(a, at) for a, (at, _, _) in zip([0, *ends], steps, strict=False) if a != at]
    assert ends[-1] == len(raw)
    (gap,) = gaps
    taken = open_nac(FILE)
    tensors = taken.file.record_offsets["DATA tensor"]
    assert tensors[0] < gap[0] < tensors[1]
    assert gap[1] == taken.offsets["ORCH"]


def test_the_sections_of_the_walk_begin_where_the_header_says() -> None:
    _, offsets = read_header(memoryview(FILE.read_bytes()))
    told = {text.split()[0].strip("`"): at for at, raw, text in walked() if raw[:4].isalpha()}
    assert {tag: at for tag, at in told.items() if tag in offsets} == {
        tag: at for tag, at in offsets.items() if tag != "OPS "
    }
    for tag, at in offsets.items():
        assert f"`{tag.strip()}` begins at {at:,}" in WALK


def test_the_numbers_of_instructions_are_those_of_the_file() -> None:
    file = open_nac(FILE).file
    told = [text for _, _, text in walked() if re.match(r"v\d+: A", text)]
    assert len(told) == len(file.instructions)
    for index, (text, instruction) in enumerate(zip(told, file.instructions, strict=True)):
        assert text.startswith(f"v{index}: A = {instruction.op}, B = {instruction.variant}")
        if instruction.d:
            assert f"D = [{', '.join(map(str, instruction.d))}]" in text


def test_the_program_is_the_one_that_is_listed() -> None:
    assert f"```text\n{listing(open_nac(FILE), with_schedule=True)}\n```" in WALK


def test_options_that_the_page_names_are_those_of_its_verbs() -> None:
    notes = re.findall(r"^- `(\w+)(.*?)(?=^- |\n\n)", PAGE, re.MULTILINE | re.DOTALL)
    told = [(verb, text) for verb, text in notes if verb in nac.commands]
    assert told
    for verb, text in told:
        known = {option for p in nac.commands[verb].params for option in p.opts}
        assert [o for o in re.findall(r"--[\w-]+", text) if o not in known] == []


def test_the_tables_are_those_of_the_code() -> None:
    assert {(str(a.code), a.name) for a in ACTIONS.values()} <= {
        (row[0], row[1]) for row in rows(PAGE, 3)
    }
    quants = [(row[0], row[1]) for row in rows(PAGE, 4) if row[0].isdigit()]
    assert quants == [(str(q.code), q.name) for q in QUANTIZATIONS.values()]
    told = {(row[0], row[1]) for row in rows(PAGE, 5)}
    assert {(str(op), str(v)) for op in (2, 3, 6) for v in SYSTEM[op]} <= told


def test_the_figures_are_those_of_the_code() -> None:
    assert f"at most {MOST_RECORDS:,} records" in PAGE
    assert f"blocks of {BLOCK}" in PAGE
    assert f"runs\nof 1 to {LONGEST_GRAM} genes" in PAGE
    assert f"from {CURRENT.first_custom_id} in the order of their names" in PAGE
    assert INTERFACE in PAGE
    assert STATES in PAGE
