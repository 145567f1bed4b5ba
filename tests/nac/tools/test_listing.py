from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nacre.base.diagnostics import InputError
from nacre.nac import to_bytes
from nacre.nac.format.values import Command, Instruction, NacFile, Tick
from nacre.nac.program.assembly import Assembler
from nacre.nac.tools.difference import difference
from nacre.nac.tools.extraction import weights
from nacre.nac.tools.genome import genome
from nacre.nac.tools.listing import lines_of, listing, value_text
from nacre.nac.tools.opening import OpenedFile, open_nac
from nacre.nac.tools.overview import overview
from tests.nac.files import FIXTURES, FOLDER, changed, small

SMALL = """\
v0 = user_input(name="x")   PRELOAD -> 1,  PRELOAD -> 2
v1 = load_param(name="layer.weight", f32[2, 3])
v2 = load_param(name="layer.bias", f32[2])
v3 = aten.linear.default(v0, v1, v2)   FREE -> 0,  FREE -> 1,  FREE -> 2,  FORWARD -> 4
v4 = aten.relu.default(v3)   SAVE_RESULT -> 4
v5 = aten.sum.dim_IntList(v4, [1], True, None)
v6 = nac.add(v4, v5)   FREE -> 4
return v6, v5"""


def seen(file: NacFile) -> OpenedFile:
    return open_nac(to_bytes(file))


def test_a_program_is_a_line_an_instruction() -> None:
    assert listing(seen(small()), with_schedule=True) == SMALL
    plain = "\n".join(line.partition("   ")[0] for line in SMALL.splitlines())
    assert listing(seen(small())) == plain


def test_commands_stand_as_in_the_text() -> None:
    """The example of the format's text, at tick 1 instead of 43."""
    made = Assembler()
    x = made.input("x")
    y = made.call("aten.relu.default", x)
    w = made.parameter(made.weight("w", np.ones(2, np.float32)))
    made.output(made.call("nac.add", y, w))
    commands = (Command(20, 0), Command(10, 1), Command(40, 2))
    shown = listing(seen(made.file(schedule=(Tick(1, commands),))), with_schedule=True)
    line = "v1 = aten.relu.default(v0)   FREE -> 0,  SAVE_RESULT -> 1,  PRELOAD -> 2"
    assert shown.splitlines()[1] == line


@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: path.stem)
def test_every_fixture_is_listed_whole(path: Path) -> None:
    taken = open_nac(path)
    lines = list(lines_of(taken))
    assert [line.index for line in lines] == list(range(len(taken.file.instructions)))
    commands = [(line.index, line.commands) for line in lines if line.commands]
    assert commands == [(tick.tick, tick.commands) for tick in taken.file.schedule]
    for line, instruction in zip(lines, taken.file.instructions, strict=True):
        refs = [int(text[1:]) - line.index for text in line.arguments if text[:1] == "v"
                and text[1:].isdigit()]  # fmt: skip
        assert refs == [offset for offset in instruction.d if offset]


def test_what_the_file_does_not_define_is_shown_by_its_number() -> None:
    file = small()
    known = [named for named in file.operations if named.text != "aten.relu.default"]
    shown = listing(seen(changed(file, CMAP=tuple(known), CNST=())))
    assert "v5 = aten.sum.dim_IntList(v4, c" in shown
    assert f"v4 = op_{file.instructions[4].op}(v3)" in shown


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "None"), (True, "True"), (1, "1"), (1.0, "1.0"), (0.1, "0.1"), ("a\nb", '"a\\nb"'),
        ((1, 2), "[1, 2]"), ((np.float32(0.1).item(),), "[0.1]"), ((), "[]"),
        (tuple(range(40)), "[0, 1, 2, 3, 4, 5, 6, 7, ..., 32, 33, 34, 35, 36, 37, 38, 39]"),
    ],
)  # fmt: skip
def test_constants_are_shown_by_their_value(value: object, text: str) -> None:
    assert value_text(value) == text  # type: ignore[arg-type]


def test_branches_are_shown_with_their_lengths() -> None:
    made = Assembler()
    x = made.input("x")
    made.output(x)
    file = made.file()
    branch = Instruction(6, 0, (2, 1, 1), (-1,))
    merge = Instruction(7, 50, (1, -2), (3, 1, 2))
    steps = (file.instructions[0], branch, merge, Instruction(3, 1, (1, 0), (-1,)))
    shown = listing(seen(changed(file, OPS=steps)))
    assert shown.splitlines()[1:] == [
        "v1 = branch(v0, true=1, false=1)",
        "v2 = converge(v0, threshold=50%, branches=[4], end=5)",
        "yield v2",
    ]


def test_an_overview_adds_up() -> None:
    for path in FIXTURES:
        made = overview(open_nac(path))
        size = path.stat().st_size
        assert made.bytes == size
        first = made.sections[0].offset
        assert first + sum(section.bytes for section in made.sections) == size
        assert sum(made.operations.values()) < made.instructions
        weights = sum(len(t.data) + len(t.scales) for t in open_nac(path).file.data.tensors)
        assert made.weight_bytes == weights


def test_an_overview_says_true_shapes() -> None:
    made = overview(open_nac(FOLDER / "mlp.BLOCK_FP8.v16.nac"))
    rows = {p.name: (p.shape, p.stored, p.quant) for p in made.parameters}
    assert rows["4.bias"] == ((10,), "i8[64]", "BLOCK_FP8")
    assert json.dumps(made.operations)


@given(
    st.sampled_from(FIXTURES),
    st.lists(st.tuples(st.integers(0, 900), st.integers(0, 255)), min_size=1, max_size=4),
)
def test_broken_files_are_looked_at_or_refused(path: Path, changes: list[tuple[int, int]]) -> None:
    raw = bytearray(path.read_bytes())
    for at, value in changes:
        raw[at] = value
    try:
        taken = open_nac(bytes(raw))
    except InputError as error:
        broken = {found.code[:3] for found in error.diagnostics}
    else:
        broken = set()
    if broken:
        assert broken == {"NAC"}
        return
    assert len(listing(taken, with_schedule=True).splitlines()) == len(taken.file.instructions)
    assert overview(taken).bytes == len(raw)
    assert difference(taken, taken).is_none
    assert difference(taken, open_nac(path)).rows is not None
    assert len(genome("g", taken.file).genes) <= len(taken.file.instructions)
    assert all(part for _, part in weights(taken, as_stored=False))
