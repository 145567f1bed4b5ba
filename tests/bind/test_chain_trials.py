"""Chains are kept where the image is faster with them: timed, or by what their members wait for."""

from __future__ import annotations

import pytest

from nacre.base.source import Source
from nacre.bind.chains import trials
from nacre.bind.pipeline import bind_plan
from nacre.bind.report import BindReport
from nacre.bind.request import BindOptions, Bound
from nacre.bind.uarch.builtin import load_uarch
from nacre.nem.checks.engine import CheckOptions, check_source
from nacre.nem.plan.plan import Plan
from nacre.tcb.machine.timing import time_image
from nacre.tcbcheck.verify import verify_image

# The product needs what comes from L2 alone. What is added comes from DDR, behind the result of the
# iteration before: chained, the product waits for both.
PROGRAM = """include "npm4k.nem"
device npm4k
program p:
buffer D : DDR (size=1048576)
buffer O : DDR (size=1048576)
buffer L : L2 (size=1048576)
buffer A : L1 (size=524288)
loop i in [0..11] @max_in_flight(2):
    let X = region(A, (i mod 2) * 65536, 16384) elem=f16, shape=[64, 128], layout=MN
    let W = region(A, 262144, 131072) elem=f16, shape=[128, 512], layout=KN
    let Y = region(A, (i mod 2) * 65536 + 393216, 65536) elem=f16, shape=[64, 512], layout=MN
    let V = region(A, (i mod 2) * 65536 + 131072, 65536) elem=f16, shape=[64, 512], layout=MN
    v = transfer.async(dst=V, src=region(D, i * 65536, 65536))
    x = transfer.async(dst=X, src=region(L, i * 16384, 16384))
    c = gemm.async in X, W out Y deps=[x] accum_type=f32
    a = add.async in V, Y out V deps=[v, c]
    s = transfer.async(dst=region(O, i * 65536, 65536), src=V, deps=[a])
endloop
"""
# The same where the product waits for both anyway.
PROMPT = PROGRAM.replace("W out Y deps=[x]", "W out Y deps=[x, v]")


def bound(text: str, *, fuse: bool = True) -> tuple[Plan, Bound]:
    found = check_source(Source("p.nem", text), CheckOptions())
    assert [d for d in found.diagnostics if d.severity == "error"] == []
    assert found.facts is not None
    options = BindOptions(load_uarch(None, "npm4k"), fuse)
    return found.facts.plan, bind_plan(found.facts.plan, "p", found.device, options)


def chains(found: Bound) -> list[list[str]]:
    return [[task.name for task in chain.tasks] for chain in found.fused.chains]


@pytest.mark.parametrize(("text", "kept"), [(PROGRAM, []), (PROMPT, [["c", "a"]])])
def test_an_image_is_as_fast_as_without_chains(text: str, kept: list[list[str]]) -> None:
    plan, chosen = bound(text)
    _, plain = bound(text, fuse=False)
    assert chains(chosen) == kept
    assert time_image(chosen.image).cycles <= time_image(plain.image).cycles
    assert verify_image(plan, chosen.image) == []
    report = BindReport(chosen, plan.program).decisions
    assert bool(kept) != ("the writer would wait with it" in report)


@pytest.mark.parametrize(("text", "kept"), [(PROGRAM, []), (PROMPT, [["c", "a"]])])
def test_larger_programs_are_cut_before_a_task_that_waits_for_more(
    text: str, kept: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trials, "MOST_TIMED", 0)
    plan, found = bound(text)
    assert chains(found) == kept
    late = [r for r in found.fused.refusals if r.reason == "late"]
    assert [(r.writer.name, r.reader.name) for r in late] == ([] if kept else [("c", "a")])
    assert verify_image(plan, found.image) == []


def test_chains_of_another_binding_are_kept() -> None:
    plan, found = bound(PROMPT)
    device = check_source(Source("p.nem", PROMPT), CheckOptions()).device
    options = BindOptions(load_uarch(None, "npm4k"), fuse=False)
    again = bind_plan(plan, "p", device, options, fused=found.fused)
    assert again.image == found.image
