"""Buffers in banks: apart where that can be had, packed where not, never beyond the memory."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator

import pytest

from nacre.base.source import Source
from nacre.bind.memory.addresses import place_buffers
from nacre.bind.memory.bank_uses import tiles_used_at_once
from nacre.bind.memory.banks import place_in_banks
from nacre.bind.pipeline import bind_plan
from nacre.bind.report import BindReport
from nacre.bind.request import BindOptions, Bound
from nacre.bind.uarch.reader import Uarch, read_uarch
from nacre.nem.checks.engine import CheckOptions, check_source
from nacre.nem.model.devices import Device
from nacre.nem.plan.plan import Plan
from nacre.tcb.image import Machine
from nacre.tcb.machine.timing import time_image
from nacre.tcbcheck.verify import verify_image
from tests.effort import scaled

HEAD = """include "npm4k.nem"
device npm4k
program p:
buffer D : L2 (size=1048576)
"""


def uarch(banks: int, interleave: int = 64, width: int = 1, slices: int = 0) -> Uarch:
    figures = f"banks = {banks} interleave = {interleave} bank_width = {width} ports = 1"
    l2 = f"slices = {slices} interleave = {interleave}"
    result = read_uarch(Source("u.uarch", f"uarch u {{ l1 {{ {figures} }} l2 {{ {l2} }} }}"))
    assert result.diagnostics == ()
    return result.uarch


def checked(text: str) -> tuple[Plan, Device]:
    found = check_source(Source("p.nem", HEAD + text), CheckOptions())
    assert [d for d in found.diagnostics if d.severity == "error"] == []
    assert found.facts is not None
    return found.facts.plan, found.device


def bound(text: str, described: Uarch) -> tuple[Plan, Bound]:
    plan, device = checked(text)
    return plan, bind_plan(plan, "p", device, BindOptions(described))


def addresses(found: Bound) -> dict[str, int]:
    return {p.buffer: p.address for p in found.image.placements if p.buffer != "D"}


# Two transfers at a time, each into a buffer of its own that begins in the same bank.
SIDE_BY_SIDE = """buffer A : L1 (size=256, align=64)
buffer B : L1 (size=256, align=64)
a = transfer.async(dst=region(A, 0, 64), src=region(D, 0, 64))
b = transfer.async(dst=region(B, 0, 64), src=region(D, 64, 64))
"""


def test_tiles_that_are_used_at_once_lie_in_different_banks() -> None:
    plan, found = bound(SIDE_BY_SIDE, uarch(4))
    assert addresses(found) == {"A": 0, "B": 256 + 64}
    (memory,) = found.banks
    assert (memory.packed_conflicts, memory.conflicts) == (1, 0)
    assert [(b.first, b.used, b.pushed) for b in memory.buffers] == [(0, 1, 0), (1, 1, 64)]
    assert verify_image(plan, found.image) == []
    report = BindReport(found, plan.program)
    assert "banks: 1 buffer pushed back, 0 banks used twice at once, not 1" in report.summary
    assert "\nBanks\n" in report.decisions
    assert report.as_json()["banks"][0]["conflicts"] == 0


def test_it_saves_cycles() -> None:
    _, spread = bound(SIDE_BY_SIDE, uarch(4))
    text = SIDE_BY_SIDE.replace("256, align=64", "320, align=256")  # boundaries of the same bank
    _, packed = bound(text, uarch(4))
    assert packed.banks[0].conflicts == 1
    assert (
        time_image(spread.image).stall_totals["bank"]
        < (time_image(packed.image).stall_totals["bank"])
    )


PACKED = {
    "ordered": (SIDE_BY_SIDE.replace("src=region(D, 64, 64)", "src=region(D, 64, 64), deps=[a]"),
                4, "no two buffers in it are used at once"),
    "full": (SIDE_BY_SIDE.replace("(B, 0, 64)", "(B, 0, 256)").replace(
        "(D, 64, 64)", "(D, 64, 256)"), 4, "nothing is gained"),
    "no room": (SIDE_BY_SIDE.replace("A : L1 (size=256", "A : L1 (size=1048320"), 4,
                "no room to move 1"),
    "many": (SIDE_BY_SIDE, 2048, "more than 1,024 banks"),
}  # fmt: skip


@pytest.mark.parametrize("why", PACKED)
def test_packing_stays_with_its_reason(why: str) -> None:
    text, banks, reason = PACKED[why]
    plan, found = bound(text, uarch(banks))
    device = checked(text)[1]
    assert found.image.placements == bind_plan(plan, "p", device).image.placements
    assert reason in found.banks[0].reason
    assert reason in BindReport(found, plan.program).decisions


def test_ideal_hardware_has_no_banks() -> None:
    plan, device = checked(SIDE_BY_SIDE)
    found = bind_plan(plan, "p", device)
    assert (found.banks, addresses(found)) == ((), {"A": 0, "B": 256})


# Random programs, against a look at every byte


def draw_text(rng: random.Random) -> str:
    lines: list[str] = []
    tasks: list[str] = []
    sizes = [rng.choice((64, 100, 192, 320, 1000)) for _ in range(rng.randint(2, 8))]
    for number, size in enumerate(sizes):
        memory = rng.choice(("L1", "L1", "L2"))
        lines.append(f"buffer B{number} : {memory} (size={size}, align={rng.choice((1, 32, 64))})")
    for number in range(rng.randint(2, 10)):
        at = rng.randrange(len(sizes))
        size = rng.randint(1, min(sizes[at], 256))
        offset = rng.randint(0, sizes[at] - size)
        names = [
            f"t{n}" for n, line in enumerate(tasks) if f"(B{at}," in line or rng.random() < 0.4
        ]
        deps = f", deps=[{', '.join(names)}]" if names else ""
        target = f"region(B{at}, {offset}, {size})"
        source = f"region(D, {number * 512}, {size})"
        tasks.append(f"t{number} = transfer.async(dst={target}, src={source}{deps})")
    return "\n".join([*lines, *tasks, ""])


def naive_conflicts(found: Bound, plan: Plan, banks: int, interleave: int) -> Iterator[int]:
    """Of every memory the banks in which bytes of two tiles lie that are used at once."""
    at = {p.buffer: p for p in found.image.placements}
    names = {b.index: b.name for b in plan.program.buffers}
    inside = frozenset(b.index for b in plan.program.buffers)
    pairs = tiles_used_at_once(plan, inside)
    for memory in found.banks:
        total = 0
        for (a, b), times in pairs.items():
            places = [at[names[tile.buffer]] for tile in (a, b)]
            if all(place.memory == memory.memory for place in places):
                used = [
                    {(place.address + tile.offset + i) // interleave % banks
                     for i in range(tile.size)}
                    for place, tile in zip(places, (a, b), strict=True)
                ]  # fmt: skip
                total += times * len(used[0] & used[1])
        yield total


@pytest.mark.parametrize("number", range(scaled(100)))
def test_random_programs_have_no_more_conflicts_than_packed(number: int) -> None:
    rng = random.Random(number)
    text = draw_text(rng)
    plan, device = checked(text)
    banks, interleave = rng.choice((1, 2, 3, 4, 8)), rng.choice((1, 32, 64, 100))
    described = uarch(banks, interleave, slices=banks)
    found = bind_plan(plan, "p", device, BindOptions(described))
    packed = bind_plan(plan, "p", device)
    assert verify_image(plan, found.image) == []
    left = list(naive_conflicts(found, plan, banks, interleave))
    assert left == [memory.conflicts for memory in found.banks]
    for memory in found.banks:
        assert memory.conflicts <= memory.packed_conflicts
        moved = any(b.pushed for b in memory.buffers)
        assert not moved or memory.conflicts < memory.packed_conflicts
    before = replace_placements(found, packed)
    assert list(naive_conflicts(before, plan, banks, interleave)) == [
        memory.packed_conflicts for memory in found.banks
    ]
    again = bind_plan(plan, "p", device, BindOptions(described))
    assert again.image == found.image


def replace_placements(found: Bound, other: Bound) -> Bound:
    """The choices of one with the places of another."""
    return Bound(other.image, found.units, banks=found.banks)


def test_many_buffers_take_no_more_than_moments() -> None:
    count = 1000
    lines = [f"buffer B{n} : L1 (size=64, align=64)" for n in range(count)]
    lines += [
        f"t{n} = transfer.async(dst=region(B{n}, 0, 64), src=region(D, {n * 64}, 64))"
        for n in range(count)
    ]
    plan, _ = checked("\n".join([*lines, ""]))
    machine = Machine("d", "", "u", "", 1, (), (), (("L2", 1 << 21), ("L1", 1 << 20)))
    begun = time.process_time()
    choices = place_in_banks(plan, machine, uarch(16).figures, place_buffers(plan.program, machine))
    assert choices.memories[0].conflicts <= choices.memories[0].packed_conflicts
    assert time.process_time() - begun < 3
