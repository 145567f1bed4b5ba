"""Requests of transfers: as short as their runs, and no slower for it; the busiest unit first."""

from __future__ import annotations

import random

import pytest
from msgspec.structs import replace

from nacre.base.source import Source
from nacre.bind.memory.priorities import PriorityChoice
from nacre.bind.pipeline import bind_plan
from nacre.bind.report import BindReport
from nacre.bind.request import BindOptions, Bound
from nacre.bind.uarch.reader import Uarch, read_uarch
from nacre.nem.checks.engine import CheckOptions, check_source
from nacre.nem.plan.plan import Plan
from nacre.tcb.image import Block, Image, Item, Repeat
from nacre.tcb.machine.timing import time_image
from nacre.tcbcheck.verify import verify_image
from tests.effort import scaled

HEAD = """include "npm4k.nem"
device npm4k
program p:
buffer D : DDR (size=1048576)
buffer L : L2 (size=65536)
buffer A : L1 (size=65536)
"""


def uarch(burst: int = 256, align: int = 64, classes: int = 1) -> Uarch:
    dma = f"dma {{ burst = {burst} align = {align} burst_cycles = 3 }}"
    text = f"uarch u {{ {dma} arbitration {{ classes = {classes} }} }}"
    result = read_uarch(Source("u.uarch", text))
    assert result.diagnostics == ()
    return result.uarch


def bound(text: str, described: Uarch) -> tuple[Plan, Bound]:
    found = check_source(Source("p.nem", HEAD + text), CheckOptions())
    assert [d for d in found.diagnostics if d.severity == "error"] == []
    assert found.facts is not None
    plan = found.facts.plan
    return plan, bind_plan(plan, "p", found.device, BindOptions(described))


def blocks(image: Image) -> dict[str, Block]:
    names = {origin.position: origin.name for origin in image.origins}
    found = [block for stream in image.streams for block, _ in stream.blocks()]
    return {names[block.position]: block for block in found if block.kind == "task"}


@pytest.mark.parametrize(
    ("text", "burst"),
    [
        ("t = transfer.async(dst=region(L, 0, 4096), src=region(D, 0, 4096))\n", 0),
        ("t = transfer.async(dst=region(L, 0, 100), src=region(D, 0, 100))\n", 128),
        ("t = transfer.async(dst=region(L, 0, 100), src=region(D, 8, 100))\n", 192),
        ("t = transfer.async(dst=region(L, 0, 250), src=region(D, 8, 250))\n", 0),
        ("t = transfer.async(dst=region(L, 0, 64) elem=u8, shape=[4, 16], layout=MN, "
         "src=region(D, 0, 1552) elem=u8, shape=[4, 16], strides=[512, 1])\n", 128),
    ],
)  # fmt: skip
def test_a_request_is_as_long_as_its_run(text: str, burst: int) -> None:
    plan, found = bound(text, uarch())
    assert blocks(found.image)["t"].burst == burst
    (choice,) = found.requests
    assert choice.reason == ("short" if burst else "longest")
    report = BindReport(found, plan.program)
    assert "\nRequests\n" in report.decisions
    assert report.as_json()["requests"][0]["burst"] == (burst or None)


UNITS = """let X = region(A, 0, 512) elem=f16, shape=[16, 16], layout=MN
let W = region(A, 8192, 512) elem=f16, shape=[16, 16], layout=KN
let Y = region(A, 16384, 512) elem=f16, shape=[16, 16], layout=MN
loop i in [0..8]:
    a = transfer.async(dst=X, src=region(D, 0, 512))
    c = gemm.async in X, W out Y deps=[a] accum_type=f32
endloop
r = relu.async in Y out Y deps=[c]
"""
ONE = "a = transfer.async(dst=region(A, 0, 4096), src=region(D, 0, 4096))\n"


def test_what_computes_on_the_busiest_unit_goes_first() -> None:
    text = UNITS.replace(" deps=[c]", "")
    plan, found = bound(text, uarch(classes=3))
    assert {name: block.priority for name, block in blocks(found.image).items()} == {
        "a": 0, "c": 2, "r": 0
    }  # fmt: skip
    assert found.priority == PriorityChoice("NMU", 2, "busiest")
    report = BindReport(found, plan.program)
    assert "\nPriority\nNMU is of class 2, before all others: " in report.decisions
    assert report.as_json()["priority"]["unit"] == "NMU"
    _, elsewhere = bound(text.replace("gemm.async in X, W", "relu.async in X")
                         .replace(" accum_type=f32", ""), uarch(classes=2))  # fmt: skip
    assert elsewhere.priority.unit == "CSTL"


@pytest.mark.parametrize(
    ("text", "classes", "reason"), [(UNITS, 1, "one class"), (ONE, 2, "no unit")]
)
def test_all_are_alike(text: str, classes: int, reason: str) -> None:
    plan, found = bound(text.replace(" deps=[c]", ""), uarch(classes=classes))
    assert all(block.priority == 0 for block in blocks(found.image).values())
    assert found.priority == PriorityChoice(reason=reason)
    assert BindReport(found, plan.program).as_json()["priority"]["unit"] is None


def test_ideal_hardware_has_neither() -> None:
    plan, found = bound(ONE, uarch(0, 1))
    assert found.requests == ()
    assert "Requests" not in BindReport(found, plan.program).decisions


def with_long_requests(image: Image) -> Image:
    def walk(items: tuple[Item, ...]) -> tuple[Item, ...]:
        return tuple(
            replace(item, items=walk(item.items)) if isinstance(item, Repeat)
            else replace(item, burst=0)
            for item in items
        )  # fmt: skip

    return replace(image, streams=tuple(replace(s, items=walk(s.items)) for s in image.streams))


@pytest.mark.parametrize("number", range(scaled(60)))
def test_short_requests_take_no_longer(number: int) -> None:
    rng = random.Random(number)
    lines = []
    for at in range(rng.randint(1, 5)):
        size, offset = rng.randint(1, 600), rng.randrange(0, 2000)
        target = f"region({rng.choice('LA')}, {at * 4096 + rng.choice((0, 0, 7))}, {size})"
        line = f"t{at} = transfer.async(dst={target}, src=region(D, {offset} + i * 37, {size}))"
        if rng.random() < 0.4:
            row, rows = rng.randint(1, 200), rng.randint(1, 4)
            span = (rows - 1) * 300 + row
            line = (f"t{at} = transfer.async(dst=region(L, {at * 4096}, {row * rows}) elem=u8, "
                    f"shape=[{rows}, {row}], layout=MN, src=region(D, {offset} + i * 64, {span}) "
                    f"elem=u8, shape=[{rows}, {row}], strides=[300, 1])")  # fmt: skip
        lines.append(line)
    text = "\n".join(["loop i in [0..3]:", *lines, "endloop", ""])
    described = uarch(rng.choice((64, 128, 256)), rng.choice((1, 16, 64)), rng.choice((1, 2)))
    plan, found = bound(text, described)
    assert verify_image(plan, found.image) == []
    assert time_image(found.image).cycles == time_image(with_long_requests(found.image)).cycles
