"""What intervals say of a region: sound only where nothing is wrong in any iteration."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from nacre.base.source import Source
from nacre.nem.model.program import Program
from nacre.nem.model.resolver import resolve
from nacre.nem.plan.bounds import find_region_problems
from nacre.nem.plan.plan import build_plan
from nacre.nem.plan.sound_bounds import is_surely_sound
from nacre.nem.syntax.parser import parse

SIZES = st.integers(0, 9)
OFFSETS = st.sampled_from(
    [
        "0",
        "8",
        "i",
        "i * 4",
        "(i mod 3) * 4 + 2",
        "i * 3 - 2",
        "(5 - i) * 2",
        "8 / (i - 1)",
        "i / 2",
    ]
)


@st.composite
def _programs(draw: st.DrawFn) -> Program:
    shape = draw(st.lists(st.integers(0, 4), min_size=1, max_size=3))
    order = "layout=" + "ABC"[: len(shape)]
    if draw(st.booleans()):
        order = f"strides={draw(st.lists(st.integers(-2, 5), min_size=1, max_size=3))}"
    elem = draw(st.sampled_from(["i8", "f16", "i4"]))
    text = (
        f"buffer B : L2 (size={draw(st.integers(1, 40))})\n"
        f"loop i in [0..{draw(st.integers(0, 5))}]:\n"
        f"    let r = region(B, {draw(OFFSETS)}, {draw(SIZES)})\n"
        f"        elem={elem}, shape={shape}, {order}\n"
        "endloop\n"
    )
    parsed = parse(Source("<drawn>", text))
    return resolve(parsed.source, parsed.document, is_valid=parsed.is_valid).program


@given(_programs())
def test_what_is_surely_sound_has_no_problem_in_any_iteration(program: Program) -> None:
    plan = build_plan(program, 100)
    for region in program.regions:
        grid = plan.region_grid(region)
        if grid is not None and is_surely_sound(region, grid):
            assert find_region_problems(region, grid) == []


def test_regions_of_plans_are_told_from_intervals() -> None:
    text = (
        "buffer B : L2 (size=48)\n"
        "loop i in [0..7]:\n"
        "    let r = region(B, (i mod 3) * 16, 16) elem=i8, shape=[2, 6], strides=[8, 1]\n"
        "endloop\n"
    )
    parsed = parse(Source("<plan>", text))
    program = resolve(parsed.source, parsed.document).program
    (region,), plan = program.regions, build_plan(program, 100)
    grid = plan.region_grid(region)
    assert grid is not None
    assert is_surely_sound(region, grid)
